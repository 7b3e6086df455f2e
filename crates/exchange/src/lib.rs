//! One TLS connection: predicted, seen or measured, in the same type.
//!
//! An [`Exchange`] has the messages of the handshake with their sizes, what both ends agreed on, and what each end sends after
//! it. What was not seen is `None`, never 0. Bytes on the wire are derived by the [`Transport`].

mod handshake;
mod negotiated;
#[cfg(test)]
mod tests;
mod transfer;
mod transport;

use std::time::Duration;

use lastbyte_sizes::Message;

pub use handshake::{FailedAttempt, Handshake, HandshakeFlight};
pub use negotiated::{ChainSignal, Compression, EarlyData, HelloDigest, Negotiated, Resumption};
pub use transfer::{Cut, Records, Then, Transfer, Unit, Writes};
pub use transport::{AddressValidation, Framed, Quic, Tcp, Transport};

/// One connection, and the one before it if that failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exchange {
    /// What carries it.
    pub transport: Transport,
    /// The connection before this one, if that failed so that the client tried once more.
    pub failed: Option<FailedAttempt>,
    /// The handshake.
    pub handshake: Handshake,
    /// What both ends agreed on.
    pub negotiated: Negotiated,
    /// Session tickets, which answer the client's Finished. They leave with what follows them, unless their writes are known.
    pub tickets: Option<Transfer>,
    /// What the client asks for.
    pub requests: Option<Box<Requests>>,
    /// The response to each request.
    pub response: Option<Transfer>,
}

impl Exchange {
    /// One whose flights have so many bytes on the wire, whatever they consist of.
    #[must_use]
    pub fn of_flights(flights: impl IntoIterator<Item = (HandshakeFlight, u32)>) -> Exchange {
        let mut exchange = Exchange::default();
        let flights = flights.into_iter();
        (exchange.handshake).see_all(flights.map(|(flight, bytes)| (flight, Some(bytes))));
        exchange
    }

    /// A flight of the handshake on the wire, in bytes of what packets carry; none if it was not seen.
    #[must_use]
    pub fn wire_bytes(&self, flight: HandshakeFlight) -> Option<u32> {
        self.handshake.wire_bytes(flight)
    }

    /// The same, to add it up: one that was not seen adds nothing.
    #[must_use]
    pub fn sent(&self, flight: HandshakeFlight) -> u32 {
        self.wire_bytes(flight).unwrap_or(0)
    }

    /// A flight of the handshake in the stream that the transport makes packets of, in bytes: over TCP with records, and over
    /// QUIC the messages alone, as its frames and packets depend on where datagrams end.
    #[must_use]
    pub fn carried(&self, flight: HandshakeFlight) -> u32 {
        match self.transport {
            Transport::Tcp(_) => self.sent(flight),
            Transport::Quic(_) => self.handshake.payload(flight),
        }
    }

    /// How large a message is with its 4-byte header, to add it up: one that was not seen adds nothing.
    #[must_use]
    pub fn bytes(&self, message: Message) -> u32 {
        self.handshake.bytes(message)
    }

    /// The session tickets on the wire; none if none were seen.
    #[must_use]
    pub fn ticket_wire_bytes(&self) -> Option<u32> {
        let tickets = self.tickets.as_ref()?;
        let framed = self.transport.framed(tickets);
        Some(u32::try_from(framed.bytes).unwrap_or(u32::MAX))
    }

    /// The server's Certificate message as it is uncompressed; 0 if there was none.
    #[must_use]
    pub fn certificate_bytes(&self) -> u32 {
        let compressed = self.negotiated.compression;
        compressed.map_or(self.bytes(Message::Certificate), |compressed| {
            compressed.uncompressed_bytes
        })
    }

    /// The client's, likewise.
    #[must_use]
    pub fn client_certificate_bytes(&self) -> u32 {
        let compressed = self.negotiated.client_compression;
        compressed.map_or(self.bytes(Message::ClientCertificate), |compressed| {
            compressed.uncompressed_bytes
        })
    }
}

/// The requests of one connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// What of the first one goes with the ClientHello (early data; RFC 8446, section 2.3).
    pub early: Option<Transfer>,
    /// What of it leaves with the client's Finished. The server answers before it has that, where all is early.
    pub first: Option<Transfer>,
    /// Bytes of the body of each.
    pub body: usize,
    /// How many follow the first one, each answered like that.
    pub later: u32,
    /// Each of those.
    pub each: Option<Transfer>,
    /// From the end of a response to the next request.
    pub think: Duration,
}
