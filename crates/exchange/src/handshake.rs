//! The handshake: its messages, and the flights that they leave in.

use lastbyte_sizes::{Message, MessageSizes};

use crate::Writes;

/// What one end writes of a handshake before it waits for the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandshakeFlight {
    /// The first ClientHello, and early data.
    ClientHello,
    /// The HelloRetryRequest.
    HelloRetryRequest,
    /// The second ClientHello.
    SecondClientHello,
    /// The server's messages from ServerHello to Finished.
    Server,
    /// The client's last messages.
    ClientFinish,
}

impl HandshakeFlight {
    /// All of them, in their order.
    pub const ALL: [HandshakeFlight; 5] = [
        HandshakeFlight::ClientHello,
        HandshakeFlight::HelloRetryRequest,
        HandshakeFlight::SecondClientHello,
        HandshakeFlight::Server,
        HandshakeFlight::ClientFinish,
    ];

    /// The messages that leave in it, as far as there are such.
    #[must_use]
    pub fn messages(self) -> &'static [Message] {
        match self {
            HandshakeFlight::ClientHello => &[Message::ClientHello],
            HandshakeFlight::HelloRetryRequest => &[Message::HelloRetryRequest],
            HandshakeFlight::SecondClientHello => &[Message::SecondClientHello],
            HandshakeFlight::Server => &[
                Message::ServerHello,
                Message::EncryptedExtensions,
                Message::CertificateRequest,
                Message::Certificate,
                Message::CertificateVerify,
                Message::ServerFinished,
            ],
            HandshakeFlight::ClientFinish => &[
                Message::ClientCertificate,
                Message::ClientCertificateVerify,
                Message::ClientFinished,
            ],
        }
    }
}

/// The messages of a handshake and the flights that they leave in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Handshake {
    /// How large each message is.
    pub messages: MessageSizes,
    /// The bytes of each flight on the wire that are no message: records, change_cipher_spec,
    /// alerts, early data; less than none where messages were read that did not come whole.
    around: [Option<i64>; HandshakeFlight::ALL.len()],
    /// The writes of [`HandshakeFlight::Server`], where they are known.
    pub server_writes: Option<Writes>,
}

impl Handshake {
    /// One of these messages, of whose flights nothing is known yet.
    #[must_use]
    pub fn of(messages: MessageSizes) -> Handshake {
        Handshake {
            messages,
            ..Handshake::default()
        }
    }

    /// How large a message is with its 4-byte header, to add it up: one that was not seen adds
    /// nothing.
    #[must_use]
    pub fn bytes(&self, message: Message) -> u32 {
        self.messages.get(message).unwrap_or(0)
    }

    /// The messages of a flight together, in bytes.
    #[must_use]
    pub fn payload(&self, flight: HandshakeFlight) -> u32 {
        let messages = flight.messages().iter();
        messages
            .map(|message| self.bytes(*message))
            .fold(0, u32::saturating_add)
    }

    /// A flight on the wire, in bytes of what packets carry; none if it was not seen.
    #[must_use]
    pub fn wire_bytes(&self, flight: HandshakeFlight) -> Option<u32> {
        let around = self.around[flight as usize]?;
        let bytes = i64::from(self.payload(flight)).saturating_add(around);
        Some(u32::try_from(bytes.max(0)).unwrap_or(u32::MAX))
    }

    /// A flight in bytes on the wire whose messages are in records of their own each, and nothing
    /// besides.
    #[must_use]
    pub fn in_own_records(&self, flight: HandshakeFlight) -> usize {
        let messages = flight.messages().iter();
        let sent = messages.filter_map(|message| {
            let bytes = self.messages.get(*message)?;
            Some(message.wire_bytes(bytes as usize))
        });
        sent.sum()
    }

    /// Notes how large a flight is on the wire, whose messages are noted already.
    pub fn see(&mut self, flight: HandshakeFlight, wire_bytes: Option<u32>) {
        let payload = i64::from(self.payload(flight));
        self.around[flight as usize] = wire_bytes.map(|bytes| i64::from(bytes) - payload);
    }

    /// Notes several of them.
    pub fn see_all(&mut self, flights: impl IntoIterator<Item = (HandshakeFlight, Option<u32>)>) {
        for (flight, wire_bytes) in flights {
            self.see(flight, wire_bytes);
        }
    }
}

/// What a connection had on the wire whose client gave up in the handshake and tried once more. In
/// bytes with record framing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FailedAttempt {
    /// The client's first flight.
    pub client_hello_wire_bytes: u32,
    /// All that the server sent of its handshake.
    pub server_flight_wire_bytes: u32,
    /// What of that the client needed to know better: all up to the end of the Certificate message.
    pub through_certificate_wire_bytes: u32,
    /// The client's answer to that: its alert.
    pub alert_wire_bytes: u32,
}
