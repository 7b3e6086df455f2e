//! The words for what a TLS configuration asks of an implementation.

use std::str::FromStr;

use lastbyte_link::named;

/// An implementation of TLS.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StackName {
    /// OpenSSL, with its own TLS and cryptography.
    #[default]
    OpenSsl,
    /// s2n-tls on AWS-LC.
    S2nTls,
    /// rustls on OpenSSL's cryptography.
    Rustls,
}

named!(StackName, {
    OpenSsl => "openssl",
    S2nTls => "s2n-tls",
    Rustls => "rustls",
});

impl StackName {
    /// Whether the laboratory has it without records, as QUIC needs it (RFC 9001, 4).
    #[must_use]
    pub fn has_quic(self) -> bool {
        match self {
            StackName::OpenSsl | StackName::Rustls => true,
            StackName::S2nTls => false,
        }
    }
}

impl FromStr for StackName {
    type Err = UnknownStack;

    fn from_str(text: &str) -> Result<StackName, UnknownStack> {
        let mut all = StackName::ALL.into_iter();
        all.find(|stack| stack.name() == text)
            .ok_or_else(|| UnknownStack {
                text: text.to_owned(),
            })
    }
}

/// The text names no [`StackName`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown stack {text:?}: use one of {}", StackName::ALL.map(StackName::name).join(", "))]
pub struct UnknownStack {
    text: String,
}

/// What clients do with a session (RFC 8446, 2.2 and 2.3).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Resumption {
    /// There is none: every handshake is a full one.
    #[default]
    Full,
    /// They resume it with a new key exchange (`psk_dhe_ke`).
    Ticket,
    /// They resume it and send their first request as early data (0-RTT).
    EarlyData,
}

named!(Resumption, "resumption", { Full => "no", Ticket => "ticket", EarlyData => "0rtt" });
