//! Why an end of a connection can't go on.

use std::io;

use lastbyte_tls::TlsError;

/// What ends a connection before it has done what it should.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The transport was not established.
    #[error("connect: {0}")]
    Connect(#[source] io::Error),
    /// The socket failed later.
    #[error(transparent)]
    Socket(#[from] io::Error),
    /// TLS can't go on.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The peer closed the connection too early.
    #[error("the peer closed the connection {0}")]
    PeerClosed(During),
    /// The peer sent more than was asked for.
    #[error("more data than asked for")]
    TooMuchData,
    /// The response is not what was asked for.
    #[error("the response {0}")]
    Response(String),
    /// No buffer holds a record of this payload, in bytes.
    #[error("a record of {0} bytes is too large")]
    RecordTooLarge(usize),
}

/// When a peer closed the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum During {
    /// Before the handshake was complete.
    #[error("during the handshake")]
    Handshake,
    /// Before the last request was sent.
    #[error("before the last request")]
    Request,
    /// With this many bytes of the response missing.
    #[error("{missing} bytes before the end")]
    Response {
        /// Bytes.
        missing: u64,
    },
}
