//! Intermediates that clients have.

use super::{Had, Holds, Reduction, Subject, as_it_is, with};
use lastbyte_study::{Arm, ArmChain};

const HOLDS: Holds = Holds {
    what: "the intermediates of all CAs that it trusts",
    age: "until one is replaced",
    bytes: intermediates,
};

pub(super) static FLAG: Reduction = Reduction {
    name: "elision, by flag",
    doc: "no intermediates for clients that say by a flag that they have them (draft-kampanakis-tls-scas-latest-03)",
    words: "a flag",
    subject: Subject::Chain,
    holds: Some(HOLDS),
    stale: "the handshake fails, and a second connection gets the whole chain",
    had: Had::Experiments,
    support: "nobody; the draft expired in 2023",
    whole: as_it_is,
    apply: |whole| with(whole, &[("delivery", "elide")]),
    lacking: Some(|whole| with(&(FLAG.apply)(whole)?, &[("client", "stale")])),
};

pub(super) static ANCHORS: Reduction = Reduction {
    name: "elision, by anchor",
    doc: "no intermediates for clients that name them as anchors that they trust (draft-ietf-tls-trust-anchor-ids-06)",
    words: "the id of an intermediate",
    subject: Subject::Chain,
    holds: Some(HOLDS),
    stale: "the whole chain in the same handshake, at no round trip",
    had: Had::Experiments,
    support: "Chrome names 28 anchors in its ClientHello, in 186 bytes (152 and 153, 2026)",
    whole: as_it_is,
    apply: |whole| with(whole, &[("delivery", "elide"), ("signal", "trust-anchors")]),
    lacking: Some(|whole| with(&(ANCHORS.apply)(whole)?, &[("client", "stale")])),
};

/// Those of this chain: a client holds as much for each CA.
fn intermediates(arm: &Arm) -> Option<u64> {
    let ArmChain::Made(spec) = &arm.chain else {
        return None;
    };
    let lengths = spec.certificate_lengths().ok()?;
    let intermediates = lengths.iter().skip(1).take(usize::from(spec.intermediates));
    Some(intermediates.map(|bytes| *bytes as u64).sum())
}
