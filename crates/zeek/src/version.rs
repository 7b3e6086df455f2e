//! What a server chose, in Zeek's words (`SSL::version_strings`).

use std::fmt;

/// A version of TLS as `ssl.log` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// SSL 2.
    Ssl2,
    /// SSL 3.
    Ssl3,
    /// TLS 1.0.
    Tls10,
    /// TLS 1.1.
    Tls11,
    /// TLS 1.2.
    Tls12,
    /// TLS 1.3 and its drafts.
    Tls13,
    /// DTLS 1.0.
    Dtls10,
    /// DTLS 1.2.
    Dtls12,
    /// DTLS 1.3.
    Dtls13,
    /// A number that Zeek has no name for, such as `unknown-32257`, or what Zeek does not write.
    Unknown,
    /// No ServerHello was seen.
    None,
}

impl Version {
    /// All of them.
    pub const ALL: [Version; 11] = [
        Version::Tls13,
        Version::Tls12,
        Version::Tls11,
        Version::Tls10,
        Version::Ssl3,
        Version::Ssl2,
        Version::Dtls13,
        Version::Dtls12,
        Version::Dtls10,
        Version::Unknown,
        Version::None,
    ];

    /// Its key in the document.
    pub fn name(self) -> &'static str {
        match self {
            Version::Ssl2 => "SSLv2",
            Version::Ssl3 => "SSLv3",
            Version::Tls10 => "TLSv10",
            Version::Tls11 => "TLSv11",
            Version::Tls12 => "TLSv12",
            Version::Tls13 => "TLSv13",
            Version::Dtls10 => "DTLSv10",
            Version::Dtls12 => "DTLSv12",
            Version::Dtls13 => "DTLSv13",
            Version::Unknown => "unknown",
            Version::None => "none",
        }
    }

    /// What a field says.
    pub(crate) fn parse(text: &[u8]) -> Version {
        match text {
            b"TLSv13" => Version::Tls13,
            b"TLSv12" => Version::Tls12,
            b"" => Version::None,
            draft if draft.starts_with(b"TLSv13-draft") => Version::Tls13,
            other => (Version::ALL.into_iter())
                .find(|version| version.is_written() && version.name().as_bytes() == other)
                .unwrap_or(Version::Unknown),
        }
    }

    /// Whether it is of datagrams.
    pub(crate) fn is_dtls(self) -> bool {
        matches!(self, Version::Dtls10 | Version::Dtls12 | Version::Dtls13)
    }

    fn is_written(self) -> bool {
        !matches!(self, Version::Unknown | Version::None)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}
