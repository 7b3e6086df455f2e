//! Certificates that both ends know.

use super::{Had, Holds, Reduction, Subject, on_rustls, unless_padded};

pub(super) static REDUCTION: Reduction = Reduction {
    name: "abridged",
    doc: "three bytes for each certificate of a CA that both ends have listed, and the rest compressed with a dictionary of \
          theirs (draft-ietf-tls-cert-abridge-02); here the list is a small one of our own",
    words: "both passes",
    subject: Subject::Chain,
    holds: Some(Holds {
        what: "the CAs' certificates: of the Web's, about 2200 and 3 MB",
        age: "as old as the list that both name; who names another one gets the whole chain",
        bytes: |_| None,
    }),
    stale: "none can be: a client says which list it has",
    had: Had::Experiments,
    support: "nobody; the draft expired in 2025 and has no number of its own",
    whole: on_rustls,
    apply: |whole| unless_padded(whole, &[("delivery", "abridged")]),
    lacking: None,
};
