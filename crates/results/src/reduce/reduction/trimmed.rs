//! An end-entity's certificate that says less.

use super::{Had, Reduction, Subject, unless_sized, with};

pub(super) static REDUCTION: Reduction = Reduction {
    name: "trimmed leaf",
    doc: "an end-entity's certificate with one name, and without policies, AIA, a CRL's place and SCTs, as far as root programs \
          and CT logs let a CA leave them out",
    words: "one name, no policies, AIA, CRL and SCTs",
    subject: Subject::Chain,
    holds: None,
    stale: "none can be",
    had: Had::Today,
    support: "any client; CAs decide (2026)",
    whole: unless_sized,
    apply: |whole| {
        let trimmed = [
            ("names", "1"),
            ("leaf_without", "policies+aia+crl"),
            ("scts", "0"),
        ];
        with(whole, &trimmed)
    },
    lacking: None,
};
