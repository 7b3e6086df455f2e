//! What both ends of a connection agreed on.

use lastbyte_link::named;
use lastbyte_sizes::{ABRIDGED, CertificateCompression};

/// What the hellos and certificates of a handshake say. Code points are IANA's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Negotiated {
    /// The key-exchange group.
    pub group: Option<u16>,
    /// The cipher suite.
    pub cipher_suite: Option<u16>,
    /// The signature scheme of the server's CertificateVerify.
    pub signature: Option<u16>,
    /// The signature scheme of the client's CertificateVerify.
    pub client_signature: Option<u16>,
    /// Certificates in the server's Certificate message.
    pub certificates: Option<u32>,
    /// How the server's Certificate message was compressed, if it was.
    pub compression: Option<Compression>,
    /// How the client's was.
    pub client_compression: Option<Compression>,
    /// Whether a pre-shared key was accepted.
    pub resumption: Resumption,
    /// What became of early data.
    pub early_data: EarlyData,
    /// What the hellos have of certificates from DNS.
    pub hello_digest: HelloDigest,
    /// What was negotiated of intermediates that the client has.
    pub signal: ChainSignal,
}

impl Negotiated {
    /// How many certificates the server sent: none without a Certificate message.
    #[must_use]
    pub fn certificate_count(&self) -> u32 {
        self.certificates.unwrap_or(0)
    }
}

/// What the hellos have of certificates that the client has from DNS (PQTLS-AD).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HelloDigest {
    /// Neither has anything of it.
    #[default]
    None,
    /// The client's alone has which.
    Offered,
    /// The server's has the same.
    Echoed,
    /// The server's has something else.
    Contradicted,
}

named!(HelloDigest, {
    None => "none",
    Offered => "offered",
    Echoed => "echoed",
    Contradicted => "contradicted",
});

/// What a client declared of intermediates that it has, and the server's answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChainSignal {
    /// Nothing.
    #[default]
    None,
    /// The client declared by a flag that it has them.
    TlsFlags,
    /// The client named anchors, none of which the server has a path for.
    TrustAnchors,
    /// The client named anchors, and the server sent the path of one.
    Anchored,
}

named!(ChainSignal, {
    None => "none",
    TlsFlags => "tls-flags",
    TrustAnchors => "trust-anchors",
    Anchored => "anchored",
});

/// How a Certificate message was compressed (RFC 8879, section 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compression {
    /// The algorithm (IANA code point).
    pub algorithm: u16,
    /// What the message has uncompressed, in bytes with its 4-byte handshake header.
    pub uncompressed_bytes: u32,
}

impl Compression {
    /// What abridged certificates are called among algorithms.
    pub const ABRIDGED: &str = "abridged";

    /// IANA's name of the algorithm or our own, else its code point.
    #[must_use]
    pub fn algorithm_name(self) -> String {
        if self.algorithm == ABRIDGED {
            return Compression::ABRIDGED.to_owned();
        }
        let known = CertificateCompression::of_code_point(self.algorithm);
        known.map_or_else(|| self.algorithm.to_string(), |known| known.to_string())
    }
}

/// What became of early data (RFC 8446, section 4.2.10).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EarlyData {
    /// The client sent none.
    #[default]
    None,
    /// The server took it.
    Accepted,
    /// The server left it, so that the client had to send it again.
    Refused,
}

named!(EarlyData, {
    None => "none",
    Accepted => "accepted",
    Refused => "refused",
});

/// Whether the handshake resumed an earlier session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Resumption {
    /// A full handshake.
    #[default]
    Full,
    /// The server accepted a pre-shared key.
    Resumed,
}
