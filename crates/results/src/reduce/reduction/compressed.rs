//! Certificates that are compressed.

use super::{Had, Reduction, Subject, on_rustls};
use crate::study::ArmChain;

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
    apply: |whole| match &whole.chain {
        ArmChain::Made(spec) if spec.certificate_bytes.is_some() => Err(
            "the chain is padded, and padding says nothing of how real certificates compress"
                .to_owned(),
        ),
        _ => whole.with("delivery", "compressed"),
    },
    lacking: None,
};
