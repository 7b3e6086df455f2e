//! Certificate messages that are compressed (RFC 8879).

use std::fmt;
use std::str::FromStr;

use lastbyte_link::Side;

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

impl CertificateCompression {
    /// All that there are, in the order of their code points.
    pub const ALL: [CertificateCompression; 3] = [
        CertificateCompression::Zlib,
        CertificateCompression::Brotli,
        CertificateCompression::Zstd,
    ];

    /// The name in IANA's registry "TLS Certificate Compression Algorithm IDs".
    pub fn name(self) -> &'static str {
        match self {
            CertificateCompression::Zlib => "zlib",
            CertificateCompression::Brotli => "brotli",
            CertificateCompression::Zstd => "zstd",
        }
    }

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

impl fmt::Display for CertificateCompression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
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
    hint: String,
}

impl UnknownCompression {
    fn new(text: &str) -> UnknownCompression {
        const ALIKE: f64 = 0.6;
        let lower = text.to_ascii_lowercase();
        let nearest = match lower.as_str() {
            "deflate" | "gzip" => Some(CertificateCompression::Zlib),
            "br" => Some(CertificateCompression::Brotli),
            "zstandard" => Some(CertificateCompression::Zstd),
            _ => CertificateCompression::ALL
                .into_iter()
                .map(|algorithm| {
                    let likeness = strsim::normalized_damerau_levenshtein(&lower, algorithm.name());
                    (likeness, algorithm)
                })
                .filter(|(likeness, _)| *likeness >= ALIKE)
                .max_by(|(a, _), (b, _)| a.total_cmp(b))
                .map(|(_, algorithm)| algorithm),
        };
        let all = || CertificateCompression::ALL.map(CertificateCompression::name);
        UnknownCompression {
            text: text.to_owned(),
            hint: match nearest {
                Some(nearest) => format!("did you mean \"{nearest}\"?"),
                None => format!("use one of {}", all().join(", ")),
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
