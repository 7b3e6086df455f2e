//! Certificates that come through DNS.

use super::{Had, Holds, Reduction, Subject, Unavailable, as_it_is, unless_sized, with};
use lastbyte_study::Arm;

const HOLDS: Holds = Holds {
    what: "nothing: its resolver has the record",
    age: "the record's TTL",
    bytes: |_| Some(0),
};
const STALE: &str = "the whole chain in the same handshake, at no round trip";
const SUPPORT: &str = "this project (2026)";

pub(super) static REDUCTION: Reduction = Reduction {
    name: "PQTLS-AD",
    doc: "certificates above the end-entity through DNS, asked for while TCP connects (PQTLS-AD)",
    words: "from the first intermediate on",
    subject: Subject::Chain,
    holds: Some(HOLDS),
    stale: STALE,
    had: Had::Experiments,
    support: SUPPORT,
    whole: as_it_is,
    apply: |whole| with(whole, &[("delivery", "pqtls-ad"), ("from", "intermediate")]),
    lacking: Some(|whole| lacking(&(REDUCTION.apply)(whole)?)),
};

pub(super) static RAW_KEY: Reduction = Reduction {
    name: "PQTLS-AD, raw key",
    doc: "all certificates through DNS, and a raw public key from the server (PQTLS-AD, RFC 7250)",
    words: "all certificates",
    subject: Subject::Chain,
    holds: Some(HOLDS),
    stale: STALE,
    had: Had::Experiments,
    support: SUPPORT,
    whole: unless_sized,
    apply: |whole| with(whole, &[("delivery", "pqtls-ad-raw-key")]),
    lacking: Some(|whole| lacking(&(RAW_KEY.apply)(whole)?)),
};

/// There is no record.
fn lacking(arm: &Arm) -> Result<Arm, Unavailable> {
    with(arm, &[("dns", "absent")])
}
