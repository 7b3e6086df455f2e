//! Reads a handshake off QUIC's datagrams (RFC 9000, RFC 9001).
//!
//! Initial packets are opened with keys that anybody can have, Handshake packets with the secrets of the key log. What
//! is in CRYPTO frames is put in order, and read as the messages of records are: so an [`Observation`] means the same
//! over both transports. 1-RTT packets are counted, and not opened.

use std::collections::BTreeMap;

use super::cursor::Cursor;
use super::{CAPACITY, Observation, Side};
use crate::KeyLog;
use crate::protection::{HeaderProtection, PacketProtection, PacketSecret, QUIC_V1};

/// Stores the datagrams of one connection's handshake.
#[derive(Debug, Clone, Default)]
pub struct QuicObserver {
    datagrams: Vec<(Side, Vec<u8>)>,
    bytes: usize,
}

/// What was seen of a handshake, and which datagrams carried it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QuicObservation {
    /// What the messages say. It has no [`flights`](Observation::flights): those are of records.
    pub handshake: Observation,
    /// Each datagram, in the order in which they were sent.
    pub datagrams: Vec<Datagram>,
}

/// A UDP datagram, as far as it could be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Datagram {
    /// Who sent it.
    pub sender: Side,
    /// Its payload, in bytes.
    pub bytes: usize,
    /// The QUIC packets in it.
    pub packets: Vec<Packet>,
}

/// A QUIC packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// What it is protected with.
    pub kind: PacketKind,
    /// All of it, in bytes.
    pub bytes: usize,
    /// Its number, if it could be opened.
    pub number: Option<u64>,
    /// Bytes of handshake messages in it, if it could be opened.
    pub crypto: Option<usize>,
    /// Bytes of its token, of an Initial packet.
    pub token: usize,
}

/// A type of packets (RFC 9000, 17).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketKind {
    /// Of the first flights, with keys that anybody can have.
    Initial,
    /// Early data.
    ZeroRtt,
    /// Of the rest of the handshake.
    Handshake,
    /// A server that wants to see the client's address confirmed first.
    Retry,
    /// A server that does not speak the client's version.
    VersionNegotiation,
    /// Everything else.
    OneRtt,
}

impl QuicObserver {
    /// Notes that `sender` sent this datagram after all that was noted before.
    ///
    /// Call this until both sides' handshake is complete. 17 MiB are stored at most.
    pub fn sent(&mut self, sender: Side, datagram: &[u8]) {
        if self.bytes + datagram.len() <= CAPACITY {
            self.bytes += datagram.len();
            self.datagrams.push((sender, datagram.to_vec()));
        }
    }

    /// Reads all that was sent. Without the handshake secrets of both sides in `key_log`, only the hellos can be
    /// read.
    pub fn observe(&self, key_log: &KeyLog) -> QuicObservation {
        let mut reader = Reader::new(key_log);
        let datagrams = self.datagrams.iter().map(|(sender, datagram)| Datagram {
            sender: *sender,
            bytes: datagram.len(),
            packets: reader.packets(*sender, datagram),
        });
        let mut datagrams: Vec<_> = datagrams.collect();
        // Handshake packets may come before the ServerHello that says how to open them.
        let mut again = Reader::new(key_log);
        again.cipher_suite = reader.cipher_suite;
        if reader.cipher_suite.is_some() {
            for (datagram, (sender, bytes)) in datagrams.iter_mut().zip(&self.datagrams) {
                datagram.packets = again.packets(*sender, bytes);
            }
            reader = again;
        }
        QuicObservation {
            handshake: reader.observation(),
            datagrams,
        }
    }
}

/// Whether a datagram has a packet of this kind, by its headers alone.
pub fn has_packet(datagram: &[u8], kind: PacketKind) -> bool {
    headers(datagram).any(|header| header.kind == kind)
}

/// Whether a datagram has an Initial packet with a token.
pub fn has_token(datagram: &[u8]) -> bool {
    headers(datagram).any(|header| header.token > 0)
}

/// What can be read of a packet before it is opened.
#[derive(Clone, Copy)]
struct Header<'a> {
    kind: PacketKind,
    destination: &'a [u8],
    /// All of the packet.
    packet: &'a [u8],
    /// Where its number begins.
    number_at: usize,
    /// Bytes of its token.
    token: usize,
}

/// The packets of a datagram, up to the first that can't be read.
fn headers(datagram: &[u8]) -> impl Iterator<Item = Header<'_>> {
    let mut rest = datagram;
    std::iter::from_fn(move || {
        let header = header(rest)?;
        rest = rest.get(header.packet.len()..)?;
        Some(header)
    })
}

fn header(bytes: &[u8]) -> Option<Header<'_>> {
    let mut cursor = Cursor(bytes);
    let first = cursor.u8()?;
    if first & 0x80 == 0 {
        // Its connection ID is as long as its receiver made it: nothing else here says how long.
        return (first & 0x40 != 0).then_some(Header {
            kind: PacketKind::OneRtt,
            destination: &[],
            packet: bytes,
            number_at: bytes.len(),
            token: 0,
        });
    }
    let version = u32::try_from(cursor.number(4)?).ok()?;
    let destination = cursor.vector(1)?.0;
    let _source = cursor.vector(1)?;
    let kind = match (version, first >> 4 & 3) {
        (0, _) => PacketKind::VersionNegotiation,
        (QUIC_V1, 0) => PacketKind::Initial,
        (QUIC_V1, 1) => PacketKind::ZeroRtt,
        (QUIC_V1, 2) => PacketKind::Handshake,
        (QUIC_V1, _) => PacketKind::Retry,
        _ => return None,
    };
    let whole = Header {
        kind,
        destination,
        packet: bytes,
        number_at: bytes.len(),
        token: 0,
    };
    let mut token = 0;
    match kind {
        PacketKind::VersionNegotiation | PacketKind::Retry => return Some(whole),
        PacketKind::Initial => {
            token = usize::try_from(varint(&mut cursor)?).ok()?;
            cursor.bytes(token)?;
        }
        PacketKind::ZeroRtt | PacketKind::Handshake | PacketKind::OneRtt => {}
    }
    let length = usize::try_from(varint(&mut cursor)?).ok()?;
    let number_at = bytes.len() - cursor.0.len();
    let packet = bytes.get(..number_at.checked_add(length)?)?;
    Some(Header {
        packet,
        number_at,
        token,
        ..whole
    })
}

/// A variable-length integer (RFC 9000, 16).
fn varint(cursor: &mut Cursor<'_>) -> Option<u64> {
    let first = cursor.u8()?;
    let more = (1_usize << (first >> 6)) - 1;
    let rest = cursor.bytes(more)?.iter();
    Some(rest.fold(u64::from(first & 0x3f), |number, byte| {
        number << 8 | u64::from(*byte)
    }))
}

/// What a side's packets of one kind are opened with, and what came in their CRYPTO frames.
#[derive(Default)]
struct Space {
    keys: Option<(HeaderProtection, PacketProtection)>,
    largest: Option<u64>,
    crypto: Crypto,
}

/// Handshake messages, in order as far as they have come.
#[derive(Default)]
struct Crypto {
    whole: Vec<u8>,
    /// What came ahead, by its offset.
    ahead: BTreeMap<u64, Vec<u8>>,
}

impl Crypto {
    fn add(&mut self, offset: u64, bytes: &[u8]) {
        // A peer has no more than this to say.
        if offset.saturating_add(bytes.len() as u64) > CAPACITY as u64 {
            return;
        }
        let longest = self.ahead.entry(offset).or_default();
        if longest.len() < bytes.len() {
            *longest = bytes.to_vec();
        }
        while let Some(first) = self.ahead.first_entry() {
            let at = *first.key();
            let Some(known) = (self.whole.len() as u64).checked_sub(at) else {
                break;
            };
            let bytes = first.remove();
            let new = usize::try_from(known)
                .ok()
                .and_then(|known| bytes.get(known..));
            self.whole.extend_from_slice(new.unwrap_or_default());
        }
    }
}

struct Reader<'k> {
    key_log: &'k KeyLog,
    cipher_suite: Option<u16>,
    /// The client's and the server's, of Initial and of Handshake packets.
    spaces: [[Space; 2]; 2],
    /// Whether a packet of the server's could be opened: a Retry after that is none (RFC 9000, 17.2.5.2).
    is_answered: bool,
}

impl<'k> Reader<'k> {
    fn new(key_log: &'k KeyLog) -> Reader<'k> {
        Reader {
            key_log,
            cipher_suite: None,
            spaces: Default::default(),
            is_answered: false,
        }
    }

    fn packets(&mut self, sender: Side, datagram: &[u8]) -> Vec<Packet> {
        headers(datagram)
            .map(|header| {
                let opened = self.open(sender, &header);
                Packet {
                    kind: header.kind,
                    bytes: header.packet.len(),
                    number: opened.map(|(number, _)| number),
                    crypto: opened.map(|(_, crypto)| crypto),
                    token: header.token,
                }
            })
            .collect()
    }

    /// The number of a packet, and how much of the handshake is in it.
    fn open(&mut self, sender: Side, header: &Header<'_>) -> Option<(u64, usize)> {
        let level = match header.kind {
            PacketKind::Initial => 0,
            PacketKind::Handshake => 1,
            PacketKind::Retry if sender == Side::Server && !self.is_answered => {
                // The client begins again, with keys of the connection ID that is in it (RFC 9001, 5.2).
                for side in &mut self.spaces {
                    side[0].keys = None;
                }
                return None;
            }
            _ => return None,
        };
        self.find_keys(sender, header);
        let space = &mut self.spaces[sender as usize][level];
        let (header_keys, packet_keys) = space.keys.as_ref()?;
        let (number, mut opened, start) = open(header, header_keys, packet_keys, space.largest)?;
        self.is_answered |= sender == Side::Server;
        space.largest = space.largest.max(Some(number));
        let end = opened.len();
        let payload = opened.get_mut(start..end)?;
        let length = payload.len();
        let mut crypto = 0;
        for (offset, bytes) in crypto_frames(&payload[..length]) {
            space.crypto.add(offset, bytes);
            crypto += bytes.len();
        }
        if (sender, level) == (Side::Server, 0) && self.cipher_suite.is_none() {
            let mut hello = Observation::default();
            let mut whole = space.crypto.whole.clone();
            hello.take_messages(Side::Server, &mut whole);
            self.cipher_suite = hello.cipher_suite;
        }
        Some((number, crypto))
    }

    fn find_keys(&mut self, sender: Side, header: &Header<'_>) {
        let both = |secret: &PacketSecret| Some((secret.header()?, secret.opening()?));
        match header.kind {
            // The client's first packet names what both sides' keys are made of.
            PacketKind::Initial if sender == Side::Client => {
                if self.spaces[0][0].keys.is_none()
                    && let Some([client, server]) = PacketSecret::initial(header.destination)
                {
                    self.spaces[0][0].keys = both(&client);
                    self.spaces[1][0].keys = both(&server);
                }
            }
            PacketKind::Handshake if self.spaces[sender as usize][1].keys.is_none() => {
                let label = match sender {
                    Side::Client => "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
                    Side::Server => "SERVER_HANDSHAKE_TRAFFIC_SECRET",
                };
                let secret = self.cipher_suite.zip(self.key_log.secret(label));
                let secret = secret.map(|(cipher_suite, secret)| PacketSecret {
                    cipher_suite,
                    secret,
                });
                self.spaces[sender as usize][1].keys = secret.as_ref().and_then(both);
            }
            _ => {}
        }
    }

    /// What all messages say, the server's first: they tell what became of the client's.
    fn observation(&mut self) -> Observation {
        let mut observation = Observation::default();
        for side in [Side::Server, Side::Client] {
            for space in &mut self.spaces[side as usize] {
                observation.take_messages(side, &mut space.crypto.whole);
            }
        }
        observation
    }
}

/// A packet's number, what it is when it is opened, and where its payload begins in that.
fn open(
    header: &Header<'_>,
    header_keys: &HeaderProtection,
    packet_keys: &PacketProtection,
    largest: Option<u64>,
) -> Option<(u64, Vec<u8>, usize)> {
    let sample = header.packet.get(header.number_at + 4..)?.first_chunk()?;
    let [first_mask, number_mask @ ..] = header_keys.mask(*sample)?;
    let mut packet = header.packet.to_vec();
    let first = packet.first_mut()?;
    *first ^= first_mask & 0x0f;
    let count = usize::from(*first & 3) + 1;
    let payload_at = header.number_at + count;
    let mut truncated = 0;
    let bytes = packet.get_mut(header.number_at..payload_at)?;
    for (byte, mask) in bytes.iter_mut().zip(number_mask) {
        *byte ^= mask;
        truncated = truncated << 8 | u64::from(*byte);
    }
    let number = packet_number(largest, truncated, count);
    let (header, payload) = packet.split_at_mut_checked(payload_at)?;
    let length = packet_keys.open(number, header, payload)?;
    packet.truncate(payload_at + length);
    Some((number, packet, payload_at))
}

/// The whole number of which so many bytes were sent (RFC 9000, A.3).
fn packet_number(largest: Option<u64>, truncated: u64, bytes: usize) -> u64 {
    let expected = largest.map_or(0, |largest| largest + 1);
    let window = 1_u64 << (8 * bytes);
    let candidate = expected & !(window - 1) | truncated;
    if candidate + window / 2 <= expected && candidate + window < 1 << 62 {
        candidate + window
    } else if candidate > expected + window / 2 && candidate >= window {
        candidate - window
    } else {
        candidate
    }
}

/// The CRYPTO frames of an Initial or a Handshake packet, each with its offset. Such packets have few other frames (RFC
/// 9000, 12.4).
fn crypto_frames(payload: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    const PADDING: u64 = 0;
    const PING: u64 = 1;
    const ACK: u64 = 2;
    const ACK_WITH_ECN: u64 = 3;
    const CRYPTO: u64 = 6;

    let mut cursor = Cursor(payload);
    std::iter::from_fn(move || {
        loop {
            match varint(&mut cursor)? {
                PADDING | PING => {}
                kind @ (ACK | ACK_WITH_ECN) => {
                    let _largest = varint(&mut cursor)?;
                    let _delay = varint(&mut cursor)?;
                    let ranges = varint(&mut cursor)?;
                    let _first = varint(&mut cursor)?;
                    let counts = if kind == ACK_WITH_ECN { 3 } else { 0 };
                    for _ in 0..ranges.saturating_mul(2).saturating_add(counts) {
                        varint(&mut cursor)?;
                    }
                }
                CRYPTO => {
                    let offset = varint(&mut cursor)?;
                    let length = usize::try_from(varint(&mut cursor)?).ok()?;
                    return Some((offset, cursor.bytes(length)?));
                }
                _ => return None,
            }
        }
    })
}

#[cfg(test)]
mod tests;
