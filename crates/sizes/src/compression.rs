//! Certificate messages that are compressed (RFC 8879).

use std::str::FromStr;

use lastbyte_link::{Side, named, nearest};

/// An algorithm of certificate compression (RFC 8879, section 7.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CertificateCompression {
    /// ZLIB (RFC 1950).
    Zlib,
    /// Brotli (RFC 7932).
    Brotli,
    /// Zstandard (RFC 8878).
    Zstd,
}

// The names in IANA's registry "TLS Certificate Compression Algorithm IDs".
named!(CertificateCompression, {
    Zlib => "zlib",
    Brotli => "brotli",
    Zstd => "zstd",
});

/// The number of abridged certificates in a ClientHello and a CompressedCertificate. The draft has none yet
/// (draft-ietf-tls-cert-abridge-02), so it is one of those for private use (RFC 8879, 7.3), of our own choice.
pub const ABRIDGED: u16 = 0xab02;

impl CertificateCompression {
    /// The value in that registry.
    pub fn code_point(self) -> u16 {
        match self {
            CertificateCompression::Zlib => 1,
            CertificateCompression::Brotli => 2,
            CertificateCompression::Zstd => 3,
        }
    }

    /// The algorithm that has that value.
    pub fn of_code_point(code_point: u16) -> Option<CertificateCompression> {
        let mut all = CertificateCompression::ALL.into_iter();
        all.find(|algorithm| algorithm.code_point() == code_point)
    }
}

impl FromStr for CertificateCompression {
    type Err = UnknownCompression;

    /// Reads an IANA name.
    fn from_str(text: &str) -> Result<CertificateCompression, UnknownCompression> {
        let mut all = CertificateCompression::ALL.into_iter();
        all.find(|algorithm| algorithm.name() == text)
            .ok_or_else(|| UnknownCompression::new(text))
    }
}

/// The text is not the IANA name of a [`CertificateCompression`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown certificate compression {text:?}: {hint}")]
pub struct UnknownCompression {
    text: String,
    /// The nearest one, or all.
    pub hint: String,
}

impl UnknownCompression {
    fn new(text: &str) -> UnknownCompression {
        let elsewhere = match text.to_ascii_lowercase().as_str() {
            "deflate" | "gzip" => Some(CertificateCompression::Zlib),
            "br" => Some(CertificateCompression::Brotli),
            "zstandard" => Some(CertificateCompression::Zstd),
            _ => None,
        };
        let names = || CertificateCompression::ALL.map(CertificateCompression::name);
        UnknownCompression {
            text: text.to_owned(),
            hint: match elsewhere {
                Some(algorithm) => format!("did you mean \"{algorithm}\"?"),
                None => nearest(text, names()),
            },
        }
    }
}

/// What each side can compress with, which is also what it decompresses.
///
/// Whoever sends a certificate compresses it with the first of its own algorithms that the other
/// side has, too. If there is none, the certificate is sent as it is (RFC 8879, section 3): what
/// was negotiated is in the observation of the wire.
///
/// What that costs: a stack compresses in the first handshake that it carries
/// out, at the level for what is used many times (zlib 9, brotli 11, Zstandard 19), and keeps the
/// result. In each later one it finds that again, by comparing all of the Certificate message, as a
/// server in production does. So a first handshake takes longer than the others, with brotli by tens of
/// milliseconds, and whoever measures CPU time does one beforehand. Decompressing is work of each handshake.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Compressions {
    /// The server's, the preferred first. An empty list is a server that compresses nothing and,
    /// where it asks for a certificate, does not offer to decompress it.
    pub server: Vec<CertificateCompression>,
    /// The client's, likewise. Without any, its ClientHello lacks the extension.
    pub client: Vec<CertificateCompression>,
}

impl Compressions {
    /// Both sides have these, the preferred first.
    pub fn both(algorithms: &[CertificateCompression]) -> Compressions {
        Compressions {
            server: algorithms.to_vec(),
            client: algorithms.to_vec(),
        }
    }

    /// What `side` has.
    pub fn of(&self, side: Side) -> &[CertificateCompression] {
        match side {
            Side::Client => &self.client,
            Side::Server => &self.server,
        }
    }
}

#[cfg(test)]
mod tests;
