//! TLS without records, for a transport that protects packets by itself (RFC 9001, 4).

use crate::protection::PacketSecret;
use crate::{Alert, KeyLog, Progress, Session, TlsError};

/// The application protocol that is offered and chosen over QUIC, which needs one (RFC 9001, 8.1): HTTP/3.
pub const ALPN: &str = "h3";

/// One side's TLS of one QUIC connection. It owns no socket and reads no clock.
pub trait QuicTls: Send + Sync {
    /// Takes what came in CRYPTO frames of the level that it is at, in order; nothing is done with it yet.
    fn receive(&mut self, crypto: &[u8]);

    /// Goes as far as it gets with what was received: through the handshake, or through what follows it.
    ///
    /// # Errors
    /// As [`Connection::advance`](crate::Connection::advance).
    fn advance(&mut self) -> Result<Progress, TlsError>;

    /// What it has to give next, in the order in which it came to that.
    fn next(&mut self) -> Option<QuicOutput>;

    /// What protects packets of the peer at a level, once TLS has it.
    fn opening_secret(&self, level: Level) -> Option<PacketSecret>;

    /// What protects 0-RTT packets (RFC 9001, 4.6), of a client that may send some, or of a server that takes them. It is
    /// there once the ClientHello is.
    fn early_secret(&self) -> Option<PacketSecret>;

    /// Whether the server accepted this client's early data. Known once established.
    fn is_early_data_accepted(&self) -> bool;

    /// The peer's transport parameters (RFC 9000, 18), once they came. Until then, of a client that may send early data,
    /// those that it remembers (RFC 9000, 7.4.1).
    fn peer_parameters(&self) -> Option<Vec<u8>>;

    /// The latest session that can be resumed, when a client has got a ticket; with the peer's transport parameters.
    fn session(&self) -> Option<Session>;

    /// The alert that it has for the peer, after an error.
    fn alert(&self) -> Option<Alert>;

    /// The secrets so far.
    fn key_log(&self) -> KeyLog;
}

/// What TLS has to give to its transport.
#[derive(Clone, PartialEq, Eq)]
pub enum QuicOutput {
    /// Handshake messages for CRYPTO frames of the level that it writes at.
    Crypto(Vec<u8>),
    /// From now on it writes at this level, with this secret.
    Level(Level, PacketSecret),
}

/// What packets are protected with (RFC 9001, 4.1.4), besides Initial packets and early data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Handshake packets.
    Handshake,
    /// 1-RTT packets.
    Application,
}

#[cfg(test)]
mod tests;
