//! Sessions that are resumed.

use super::{Had, Holds, Reduction, Subject, as_it_is, with};

const HOLDS: Holds = Holds {
    what: "a session ticket of this server",
    age: "seven days at most (RFC 8446, section 4.6.1), and as long as the server has its key",
    bytes: |_| None,
};
const STALE: &str =
    "the whole chain in the same handshake, at no round trip; early data is sent again";

pub(super) static REDUCTION: Reduction = Reduction {
    name: "resumption",
    doc: "no certificates in a session that is resumed (RFC 8446, section 2.2)",
    words: "a ticket",
    subject: Subject::Session,
    holds: Some(HOLDS),
    stale: STALE,
    had: Had::Today,
    support: "all browsers and servers (2026)",
    whole: as_it_is,
    apply: |whole| with(whole, &[("resume", "ticket")]),
    lacking: None,
};

pub(super) static EARLY_DATA: Reduction = Reduction {
    name: "resumption, 0-RTT",
    doc: "a request in the first flight of a session that is resumed (RFC 8446, section 2.3), which may be replayed",
    words: "a ticket and early data",
    subject: Subject::Session,
    holds: Some(HOLDS),
    stale: STALE,
    had: Had::Today,
    support: "Chrome, Firefox and Safari; servers that allow it (2026)",
    whole: as_it_is,
    apply: |whole| with(whole, &[("resume", "0rtt")]),
    lacking: None,
};
