//! Why a stack can't be set up, or a connection can't go on.

use std::fmt;

use crate::{MAX_PLAINTEXT, StackName, names};

/// Why a stack can't be set up or a connection can't go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    /// The library does not accept the configuration.
    #[error("{stack} can't use {what}: {reason}")]
    Setup {
        /// The stack's name.
        stack: &'static str,
        /// The part of the configuration that it rejects.
        what: String,
        /// The library's words.
        reason: String,
    },
    /// An implementation can't do what is asked of it.
    #[error("{stack} can't {what}: {hint}")]
    Unsupported {
        /// The stack's name.
        stack: &'static str,
        /// What it can't do.
        what: String,
        /// What to do instead.
        hint: String,
    },
    /// The peer ended the connection with an alert.
    #[error("the peer refused: {0}")]
    Refused(Alert),
    /// The peer's certificates do not satisfy this side.
    #[error("certificate verification failed: {reason}")]
    Certificate {
        /// The library's words.
        reason: String,
    },
    /// What was received is not what TLS 1.3 allows here, or the library failed.
    #[error("TLS failed: {reason}")]
    Protocol {
        /// The library's words.
        reason: String,
    },
    /// The peer sent close_notify.
    #[error("the peer closed the connection")]
    Closed,
    /// A record was to be written before the handshake was complete.
    #[error("the handshake is not complete: no application data can be written yet")]
    NotEstablished,
    /// There is nothing to resume, or it is another implementation's.
    #[error("there is no session to resume")]
    NoSession,
    /// The configuration is for chains that servers send.
    #[error("this client can't offer certificates from DNS")]
    NoOffers,
    /// The configuration is one whose first connection succeeds or is the last one.
    #[error("this client has nothing else to try on a new connection")]
    NoRetry,
    /// The implementation has no TLS without records.
    #[error("this implementation has no TLS for QUIC")]
    NoQuic,
    /// Early data needs a session that allows it, and comes first.
    #[error("no early data can be sent on this connection")]
    NoEarlyData,
    /// A record can't hold this many bytes.
    #[error("a record holds 1 to {MAX_PLAINTEXT} bytes, not {0}")]
    RecordLength(usize),
}

/// An alert's description (RFC 8446, 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alert(pub u8);

impl fmt::Display for Alert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "alert {} ({})",
            names::alert(self.0).unwrap_or("unassigned"),
            self.0
        )
    }
}

/// That a stack can't do something, and what to do instead.
pub(crate) fn cannot(
    stack: StackName,
    what: impl Into<String>,
    hint: impl Into<String>,
) -> TlsError {
    TlsError::Unsupported {
        stack: stack.name(),
        what: what.into(),
        hint: hint.into(),
    }
}
