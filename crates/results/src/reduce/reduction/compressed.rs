//! Certificates that are compressed.

use super::{Had, Reduction, Subject, on_rustls, unless_padded};

pub(super) static REDUCTION: Reduction = Reduction {
    name: "compression",
    doc: "certificates compressed with brotli (RFC 8879); keys and signatures do not compress",
    words: "brotli",
    subject: Subject::Chain,
    holds: None,
    stale: "none can be: a client says what it takes",
    had: Had::Today,
    support: "Chrome and Safari take it, Firefox since 2025; servers: rustls, BoringSSL, OpenSSL 3.2 where it is built in (2026)",
    whole: on_rustls,
    apply: |whole| unless_padded(whole, &[("delivery", "compressed")]),
    lacking: None,
};
