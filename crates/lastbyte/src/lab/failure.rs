//! Why an end of a connection can't go on.

use std::io;

use lastbyte_quic::Ended;
use lastbyte_tls::TlsError;

use crate::results::FailureKind;

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
    /// Nothing came for as long as QUIC waits.
    #[error("nothing came any more")]
    Idle,
    /// QUIC can't go on, in the words of who said so.
    #[error("{0}")]
    Transport(String),
}

impl Failure {
    /// What it has in common with others of its kind.
    pub(crate) fn kind(&self) -> FailureKind {
        match self {
            Failure::Connect(_) => FailureKind::Connect,
            Failure::Socket(_) => FailureKind::Socket,
            Failure::Tls(TlsError::Refused(_)) => FailureKind::Refused,
            Failure::Tls(TlsError::Certificate { .. }) => FailureKind::Certificate,
            Failure::Tls(_) => FailureKind::Tls,
            Failure::PeerClosed(During::Handshake) => FailureKind::ClosedInHandshake,
            Failure::PeerClosed(During::Request) => FailureKind::ClosedBeforeRequest,
            Failure::PeerClosed(During::Response { .. }) => FailureKind::ClosedInResponse,
            Failure::TooMuchData => FailureKind::TooMuchData,
            Failure::Response(_) => FailureKind::Response,
            Failure::RecordTooLarge(_) => FailureKind::RecordTooLarge,
            Failure::Idle => FailureKind::Idle,
            Failure::Transport(_) => FailureKind::Transport,
        }
    }
}

impl From<&Ended> for Failure {
    fn from(ended: &Ended) -> Failure {
        match ended {
            Ended::Tls(error) => Failure::Tls(error.clone()),
            Ended::Transport(reason) => Failure::Transport(reason.clone()),
            Ended::Idle => Failure::Idle,
        }
    }
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::collections::BTreeSet;

    use lastbyte_tls::Alert;

    use super::*;

    #[test]
    fn a_failure_has_one_kind_whatever_its_numbers() {
        let failures = |number: u8| {
            let refused = TlsError::Refused(Alert(number));
            let certificate = TlsError::Certificate {
                reason: format!("depth {number}"),
            };
            [
                Failure::Connect(io::Error::from_raw_os_error(number.into())),
                Failure::Socket(io::Error::from_raw_os_error(number.into())),
                refused.into(),
                certificate.into(),
                TlsError::RecordLength(number.into()).into(),
                Failure::PeerClosed(During::Handshake),
                Failure::PeerClosed(During::Request),
                Failure::PeerClosed(During::Response {
                    missing: number.into(),
                }),
                Failure::TooMuchData,
                Failure::Response(format!("has {number} bytes")),
                Failure::RecordTooLarge(number.into()),
                Failure::Idle,
                Failure::Transport(format!("code {number}")),
            ]
        };
        let kinds = |number| failures(number).map(|failure| failure.kind());
        assert_eq!(kinds(1), kinds(42));
        let all: BTreeSet<FailureKind> = kinds(1).into();
        assert_eq!(all.len(), FailureKind::ALL.len());
    }
}
