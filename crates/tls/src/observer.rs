//! Reads a handshake off the wire.
//!
//! An [`Observer`] stores what both sides sent. With the handshake secrets from
//! the key log it opens their records, and gives an [`Observation`]: which
//! messages there were, how large each was, how they were packed into flights, and
//! what was negotiated. So this means the same for every stack.
//!
//! It reads what others wrote: whatever the bytes are, it observes as much as
//! can be read of them.

mod cursor;
mod message;
pub mod quic;
mod record;

use std::borrow::Cow;
use std::ops::Range;

pub use lastbyte_link::Side;
use lastbyte_mtc::TrustAnchorId;
use lastbyte_sizes::framing;
pub use lastbyte_sizes::{Message, MessageSizes, MessageType};
use pqtlsad::Digest;

use self::cursor::Cursor;
use self::message::next_message;
use self::record::{ALERT, APPLICATION_DATA, HANDSHAKE, Opener, records};
use crate::{Alert, KeyLog};

/// The most that an [`Observer`] stores, in bytes: one handshake message of the
/// largest size that there is, and room for the others.
const CAPACITY: usize = framing::MAX_MESSAGE + (1 << 20);

/// Stores the bytes of one connection's handshake.
#[derive(Debug, Clone, Default)]
pub struct Observer {
    client: Vec<u8>,
    server: Vec<u8>,
    /// How many bytes each side sent before the other one did, in turn.
    turns: Vec<(Side, usize)>,
}

impl Observer {
    /// Notes that `sender` sent `bytes` after all that was noted before.
    ///
    /// Call this until the handshake is complete. Application data behind it does
    /// not change the observation, but is stored (16 MiB in all at most).
    pub fn sent(&mut self, sender: Side, bytes: &[u8]) {
        let room = CAPACITY - self.client.len() - self.server.len();
        let bytes = bytes.get(..room).unwrap_or(bytes);
        if bytes.is_empty() {
            return;
        }
        match sender {
            Side::Client => self.client.extend_from_slice(bytes),
            Side::Server => self.server.extend_from_slice(bytes),
        }
        match self.turns.last_mut() {
            Some((side, length)) if *side == sender => *length += bytes.len(),
            _ => self.turns.push((sender, bytes.len())),
        }
    }

    /// Reads all that was sent. Without the handshake secrets of both sides in
    /// `key_log`, only the hellos can be read, and the flights hold whatever records
    /// follow.
    pub fn observe(&self, key_log: &KeyLog) -> Observation {
        let mut observation = Observation::default();
        // The server's side first: it tells how to open both.
        let server = observation.read(Side::Server, &self.server, key_log);
        let client = observation.read(Side::Client, &self.client, key_log);
        observation.flights = flights(&self.turns, client, server);
        observation
    }

    /// Where in the bytes of each side its messages are, as far as they can be read with these secrets.
    pub fn messages(&self, key_log: &KeyLog) -> Vec<PlacedMessage> {
        let mut observation = Observation::default();
        let server = observation.read(Side::Server, &self.server, key_log);
        let client = observation.read(Side::Client, &self.client, key_log);
        let mut placed = places(Side::Client, &client);
        placed.extend(places(Side::Server, &server));
        placed.extend(self.tickets(&observation, &server, key_log));
        placed
    }

    /// Bytes on the wire of the session tickets that follow the server's handshake, as far as they can be read with these
    /// secrets.
    pub fn ticket_bytes(&self, key_log: &KeyLog) -> usize {
        let mut observation = Observation::default();
        let server = observation.read(Side::Server, &self.server, key_log);
        let tickets = self.tickets(&observation, &server, key_log);
        tickets.iter().map(|ticket| ticket.bytes.len()).sum()
    }

    /// Bytes on the wire of the record of application data or of an encrypted message that begins at this place of what
    /// `sender` sent, whether or not all of it has come; none where another one does.
    pub fn encrypted_record_at(&self, sender: Side, offset: usize) -> Option<usize> {
        let bytes = match sender {
            Side::Client => &self.client,
            Side::Server => &self.server,
        };
        let mut header = Cursor(bytes.get(offset..)?);
        let content_type = header.u8()?;
        let major_version = header.u8()?;
        let _minor_version = header.u8()?;
        let length = header.number(2)?;
        let is_encrypted = content_type == APPLICATION_DATA && major_version == 3;
        is_encrypted.then_some(framing::RECORD_HEADER + length)
    }

    /// Whether the server asks for a client's certificate before it encrypts anything, as in TLS 1.2 (RFC 5246, 7.4.4).
    pub fn asks_for_certificate_in_clear(&self) -> bool {
        let plain = records(&self.server).take_while(|record| record.content_type == HANDSHAKE);
        let handshake: Vec<u8> = plain.flat_map(|record| record.body).copied().collect();
        let mut rest = Cursor(&handshake);
        std::iter::from_fn(|| next_message(&mut rest))
            .any(|message| message.kind == MessageType::CertificateRequest)
    }

    /// The random of the ClientHello; empty without one.
    pub fn client_random(&self) -> &[u8] {
        /// Of a record and of a message, and the version.
        const BEFORE: usize = framing::RECORD_HEADER + framing::MESSAGE_HEADER + 2;
        let is_hello = self.client.first() == Some(&HANDSHAKE);
        let random = self.client.get(BEFORE..BEFORE + 32);
        random.filter(|_| is_hello).unwrap_or_default()
    }

    /// The application data that the server sent, record by record: where each ends in all that it sent, and what it says. As far
    /// as it can be read with these secrets.
    pub fn response_records<'a>(
        &'a self,
        key_log: &KeyLog,
    ) -> impl Iterator<Item = (usize, Vec<u8>)> + use<'a> {
        let mut observation = Observation::default();
        let server = observation.read(Side::Server, &self.server, key_log);
        let records = self.after_handshake(&observation, &server, key_log);
        records.filter_map(|(bytes, content_type, content)| {
            (content_type == APPLICATION_DATA).then_some((bytes.end, content))
        })
    }

    /// The session tickets that follow the server's handshake.
    fn tickets(
        &self,
        observation: &Observation,
        server: &[ReadRecord],
        key_log: &KeyLog,
    ) -> Vec<PlacedMessage> {
        let records = self.after_handshake(observation, server, key_log);
        let tickets = records.map_while(|(bytes, content_type, content)| {
            let code = content.first().filter(|_| content_type == HANDSHAKE)?;
            Some(PlacedMessage {
                sender: Side::Server,
                kind: MessageType::Other(*code),
                bytes,
            })
        });
        tickets.collect()
    }

    /// The server's records behind its handshake, opened: where each is, its content type and its content.
    fn after_handshake<'a>(
        &'a self,
        observation: &Observation,
        server: &[ReadRecord],
        key_log: &KeyLog,
    ) -> impl Iterator<Item = (Range<usize>, u8, Vec<u8>)> + use<'a> {
        let end = server.last().filter(|last| {
            let mut messages = last.messages.iter();
            messages.any(|message| message.kind == MessageType::Finished)
        });
        let end = end.map(|last| last.offset + last.wire_bytes);
        let secret = key_log.secret("SERVER_TRAFFIC_SECRET_0");
        let opener = (observation.cipher_suite.zip(secret))
            .and_then(|(suite, secret)| Opener::new(suite, &secret));
        end.zip(opener).into_iter().flat_map(|(end, mut opener)| {
            let mut offset = end;
            records(self.server.get(end..).unwrap_or_default()).map_while(move |record| {
                let (content_type, content) = opener.open(&record)?;
                let bytes = offset..offset + record.wire_bytes();
                offset = bytes.end;
                Some((bytes, content_type, content))
            })
        })
    }
}

/// A handshake message in the bytes that its sender sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedMessage {
    /// Who sent it.
    pub sender: Side,
    /// Which one.
    pub kind: MessageType,
    /// Its first byte and the one behind its last, counted from the beginning of all that its sender sent. Headers and
    /// tags of records are in it: of those between, of the one that it begins, and of the one that it ends.
    pub bytes: Range<usize>,
}

/// What can be known of a handshake. A field is `None` where its message did not
/// come, or could not be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observation {
    /// How large each message was.
    pub messages: MessageSizes,

    /// The negotiated version: 0x0304 is TLS 1.3. Of others only the hellos are read.
    pub version: Option<u16>,
    /// The cipher suite; see [`names::cipher_suite`](crate::names::cipher_suite).
    pub cipher_suite: Option<u16>,
    /// The key-exchange group; see [`names::group`](crate::names::group).
    pub group: Option<u16>,
    /// The algorithm of the server's CertificateVerify; see
    /// [`names::signature_scheme`](crate::names::signature_scheme).
    pub signature: Option<u16>,
    /// The algorithm of the client's CertificateVerify.
    pub client_signature: Option<u16>,
    /// What the ClientHello says that DNS delivered, in the extension of [`pqtlsad`] (number 64).
    pub offered_certificates: Option<Digest>,
    /// What the ServerHello answers to that.
    pub answered_certificates: Option<Digest>,
    /// Whether the ClientHello asks to leave certificates of CAs out (draft-kampanakis-tls-scas-latest-03).
    pub suppresses_cas: bool,
    /// The anchors that the ClientHello names, if it says anything of them (draft-ietf-tls-trust-anchor-ids-06).
    pub named_anchors: Option<Vec<TrustAnchorId>>,
    /// Those that the EncryptedExtensions say that the server has paths for.
    pub available_anchors: Vec<TrustAnchorId>,
    /// Whether the Certificate message says that its path ends below one that was named.
    pub is_anchored: bool,
    /// Whether the ServerHello accepted a pre-shared key.
    pub resumed: Option<bool>,
    /// What became of early data.
    pub early_data: EarlyData,
    /// The name that the client asked for (RFC 6066, 3).
    pub server_name: Option<String>,
    /// The application protocol that the server chose (RFC 7301).
    pub alpn: Option<String>,
    /// What the server's certificates are.
    pub certificate_type: CertificateType,
    /// The algorithms that the ClientHello offers to decompress certificates with (RFC 8879, 3); see
    /// [`names::certificate_compression`](crate::names::certificate_compression).
    pub offered_compressions: Vec<u16>,
    /// The algorithm of the server's CompressedCertificate (RFC 8879, 4).
    pub certificate_compression: Option<u16>,
    /// Bytes that the server says its certificate has when decompressed: of the Certificate message
    /// without its 4-byte header.
    pub uncompressed_certificate: Option<usize>,
    /// The algorithm of the client's CompressedCertificate.
    pub client_certificate_compression: Option<u16>,
    /// Bytes that the client says its certificate has when decompressed, likewise.
    pub uncompressed_client_certificate: Option<usize>,
    /// The size in bytes of each of the server's certificates, the end-entity's first. Of a
    /// CompressedCertificate they are known where the feature `rustls` is built in, which
    /// decompresses it, and only if it is as long as it says.
    pub certificates: Vec<usize>,
    /// What of the server's Certificate message are OCSP responses (RFC 8446, section 4.4.2.1), with the headers of their
    /// extensions, in bytes.
    pub staple_bytes: usize,
    /// An alert that was sent during the handshake.
    pub alert: Option<(Side, Alert)>,

    /// What each side sent before the other one did, up to its Finished.
    pub flights: Vec<TlsFlight>,
}

/// What one side sent before the other one did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFlight {
    /// Who sent it.
    pub sender: Side,
    /// The bytes on the wire: whole records, with their headers, tags and padding.
    /// Those of compatibility (change_cipher_spec), alerts and early data count too.
    pub wire_bytes: usize,
    /// The number of records.
    pub records: usize,
    /// The messages that ended in this flight, in order.
    pub messages: Vec<FlightMessage>,
}

/// One handshake message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlightMessage {
    /// Which one.
    pub kind: MessageType,
    /// Its size in bytes, handshake header included.
    pub bytes: usize,
}

/// What became of early data (RFC 8446, 4.2.10).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EarlyData {
    /// The client did not offer any.
    #[default]
    NotOffered,
    /// The client offered some, and the server is not seen to accept it.
    Offered,
    /// The server accepted it.
    Accepted,
}

/// What stands in a Certificate message (RFC 7250).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CertificateType {
    /// Certificates.
    #[default]
    X509,
    /// The public key alone.
    RawPublicKey,
}

impl Observation {
    /// How large a message was, handshake header included; `None` if it did not come, or could not be read.
    pub fn bytes(&self, message: Message) -> Option<usize> {
        self.messages.get(message).map(|bytes| bytes as usize)
    }

    /// Reads what one side sent, up to its Finished.
    fn read(&mut self, sender: Side, stream: &[u8], key_log: &KeyLog) -> Vec<ReadRecord> {
        const TLS_1_3: u16 = 0x0304;

        let mut opener = None;
        let mut handshake = Vec::new();
        let mut read = Vec::new();
        let mut offset = 0;
        for record in records(stream) {
            let content = match record.content_type {
                APPLICATION_DATA => opener
                    .get_or_insert_with(|| self.opener(sender, key_log))
                    .as_mut()
                    .and_then(|opener| opener.open(&record))
                    .map(|(content_type, content)| (content_type, Cow::Owned(content))),
                plain => Some((plain, Cow::Borrowed(record.body))),
            };
            let mut messages = Vec::new();
            let mut content_bytes = 0;
            match content {
                Some((HANDSHAKE, content)) => {
                    content_bytes = content.len();
                    handshake.extend_from_slice(&content);
                    messages = self.take_messages(sender, &mut handshake);
                }
                Some((ALERT, content)) => {
                    let description = content.get(1).copied().map(Alert);
                    self.alert = self.alert.or(description.map(|alert| (sender, alert)));
                }
                _ => {}
            }
            let finished = messages
                .iter()
                .any(|message| message.kind == MessageType::Finished);
            read.push(ReadRecord {
                offset,
                wire_bytes: record.wire_bytes(),
                content: content_bytes,
                messages,
            });
            offset += record.wire_bytes();
            if finished || self.version.is_some_and(|version| version != TLS_1_3) {
                break;
            }
        }
        read
    }

    fn opener(&self, sender: Side, key_log: &KeyLog) -> Option<Opener> {
        let secret = key_log.secret(match sender {
            Side::Client => "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
            Side::Server => "SERVER_HANDSHAKE_TRAFFIC_SECRET",
        })?;
        Opener::new(self.cipher_suite?, &secret)
    }

    /// Takes the whole messages off the front of `handshake`.
    fn take_messages(&mut self, sender: Side, handshake: &mut Vec<u8>) -> Vec<FlightMessage> {
        let mut rest = Cursor(handshake);
        let mut messages = Vec::new();
        while let Some(message) = next_message(&mut rest) {
            self.messages.note(sender, message.kind, message.bytes);
            message::note(self, sender, &message);
            messages.push(FlightMessage {
                kind: message.kind,
                bytes: message.bytes,
            });
        }
        let taken = handshake.len() - rest.0.len();
        handshake.drain(..taken);
        messages
    }
}

/// A record of one side, and the messages that end in it.
struct ReadRecord {
    /// Where it begins in all that the side sent.
    offset: usize,
    wire_bytes: usize,
    /// Bytes of handshake messages in it.
    content: usize,
    messages: Vec<FlightMessage>,
}

/// Where the messages of one side are on the wire.
fn places(sender: Side, records: &[ReadRecord]) -> Vec<PlacedMessage> {
    let messages = records.iter().flat_map(|record| &record.messages);
    // Which record has a byte of all messages, one behind the other, and at which place.
    let find = |mut byte: usize| {
        for record in records {
            if byte < record.content {
                return Some((record, byte));
            }
            byte -= record.content;
        }
        None
    };
    let begin = |byte| match find(byte) {
        Some((record, 0)) => record.offset,
        Some((record, at)) => record.offset + framing::RECORD_HEADER + at,
        None => 0,
    };
    let behind = |byte| match find(byte) {
        Some((record, at)) if at + 1 == record.content => record.offset + record.wire_bytes,
        Some((record, at)) => record.offset + framing::RECORD_HEADER + at + 1,
        None => 0,
    };
    let mut start = 0;
    messages
        .map(|message| {
            let end = start + message.bytes;
            let bytes = begin(start)..behind(end.saturating_sub(1));
            start = end;
            PlacedMessage {
                sender,
                kind: message.kind,
                bytes,
            }
        })
        .collect()
}

/// Sorts the records of both sides into flights: a record belongs where its first
/// byte was sent.
fn flights(
    turns: &[(Side, usize)],
    client: Vec<ReadRecord>,
    server: Vec<ReadRecord>,
) -> Vec<TlsFlight> {
    let mut client = (client.into_iter().peekable(), 0);
    let mut server = (server.into_iter().peekable(), 0);
    let mut flights: Vec<TlsFlight> = Vec::new();
    for &(sender, length) in turns {
        let (records, sent) = match sender {
            Side::Client => &mut client,
            Side::Server => &mut server,
        };
        *sent += length;
        while let Some(record) = records.next_if(|record| record.offset < *sent) {
            match flights.last_mut() {
                Some(flight) if flight.sender == sender => flight.add(record),
                _ => {
                    let mut flight = TlsFlight {
                        sender,
                        wire_bytes: 0,
                        records: 0,
                        messages: Vec::new(),
                    };
                    flight.add(record);
                    flights.push(flight);
                }
            }
        }
    }
    flights
}

impl TlsFlight {
    fn add(&mut self, mut record: ReadRecord) {
        self.wire_bytes += record.wire_bytes;
        self.records += 1;
        self.messages.append(&mut record.messages);
    }
}

#[cfg(test)]
mod tests;
