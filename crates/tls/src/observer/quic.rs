//! Reads a handshake off QUIC's datagrams (RFC 9000, RFC 9001).
//!
//! Initial packets are opened with keys that anybody can have, Handshake packets with the secrets of the key log. What
//! is in CRYPTO frames is put in order, and read as the messages of records are: so an [`Observation`] means the same
//! over both transports. 0-RTT and 1-RTT packets are opened where [all](read_all) is asked for, and counted otherwise.

mod credit;
mod frame;

use std::collections::BTreeMap;
use std::ops::Range;

use lastbyte_sizes::framing;

pub use self::credit::Credit;
pub use self::frame::{Frame, Layer};
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
    /// The random of the ClientHello; empty without one.
    pub client_random: Vec<u8>,
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    /// What it is protected with.
    pub kind: PacketKind,
    /// All of it, in bytes.
    pub bytes: usize,
    /// Its number, if it could be opened.
    pub number: Option<u64>,
    /// Handshake messages in it, if it could be opened.
    pub crypto: Option<Vec<Crypto>>,
    /// Bytes of its token, of an Initial packet.
    pub token: usize,
    /// The connection ID of its receiver, as far as it is known how long that is.
    pub destination: Vec<u8>,
    /// The connection ID of its sender, of a packet with a long header.
    pub source: Option<Vec<u8>>,
    /// What is in it, if it could be opened.
    pub frames: Vec<Frame>,
}

/// What is in a packet that was opened.
#[derive(Default)]
struct Content {
    number: Option<u64>,
    crypto: Vec<Crypto>,
    frames: Vec<Frame>,
}

impl Content {
    /// That of a packet, whose CRYPTO frames follow those that were `sent`.
    fn of(opened: &Opened, sent: &mut Ranges) -> Content {
        let frames: Vec<_> = (frame::frames(opened.payload()).map(|(frame, _)| frame)).collect();
        let crypto = frames.iter().filter_map(|frame| match frame {
            Frame::Crypto { offset, length } => Some(*offset..offset.saturating_add(*length)),
            _ => None,
        });
        let crypto = crypto.map(|bytes| Crypto {
            new: sent.add(&bytes),
            bytes,
        });
        Content {
            number: Some(opened.number),
            crypto: crypto.collect(),
            frames,
        }
    }
}

/// Which packets are opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Depth {
    /// Those of the handshake.
    Handshake,
    /// All of them.
    All,
}

impl Packet {
    /// Whether it asks for an acknowledgement and says nothing else of its own.
    pub fn is_ping(&self) -> bool {
        self.frames.contains(&Frame::Ping)
            && !(self.frames.iter()).any(|frame| frame.is_ack_eliciting() && *frame != Frame::Ping)
    }

    /// Whether it has handshake messages that its sender sends for the first time.
    pub fn has_new_crypto(&self) -> bool {
        (self.crypto.iter().flatten()).any(|crypto| crypto.new > 0)
    }
}

/// A CRYPTO frame (RFC 9000, 19.6).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crypto {
    /// Where its bytes are among all that its sender says in packets of its kind.
    pub bytes: Range<u64>,
    /// How many of them were sent for the first time, or for the first time since a Retry packet has the client begin again.
    pub new: u64,
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
        let datagrams = self.datagrams.iter();
        let datagrams = datagrams.map(|(sender, datagram)| (*sender, datagram.as_slice()));
        read(datagrams, key_log, Depth::Handshake)
    }
}

/// Reads all datagrams of a connection in the order in which they were sent, and opens each packet that the secrets in
/// `key_log` open: 0-RTT and 1-RTT packets, too, and those behind updates of keys (RFC 9001, 6).
pub fn read_all<'d>(
    datagrams: impl Iterator<Item = (Side, &'d [u8])> + Clone,
    key_log: &KeyLog,
) -> QuicObservation {
    read(datagrams, key_log, Depth::All)
}

fn read<'d>(
    datagrams: impl Iterator<Item = (Side, &'d [u8])> + Clone,
    key_log: &KeyLog,
    depth: Depth,
) -> QuicObservation {
    let mut reader = Reader::new(key_log, depth);
    let read = datagrams.clone().map(|(sender, datagram)| Datagram {
        sender,
        bytes: datagram.len(),
        packets: reader.packets(sender, datagram),
    });
    let mut read: Vec<_> = read.collect();
    // Handshake packets may come before the ServerHello that says how to open them.
    if reader.cipher_suite.is_some() {
        let mut again = Reader::new(key_log, depth);
        again.cipher_suite = reader.cipher_suite;
        for (place, (sender, bytes)) in read.iter_mut().zip(datagrams) {
            place.packets = again.packets(sender, bytes);
        }
        reader = again;
    }
    QuicObservation {
        client_random: reader.client_random(),
        handshake: reader.observation(),
        datagrams: read,
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
    source: Option<&'a [u8]>,
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
            source: None,
            packet: bytes,
            number_at: bytes.len(),
            token: 0,
        });
    }
    let version = u32::try_from(cursor.number(4)?).ok()?;
    let destination = cursor.vector(1)?.0;
    let source = cursor.vector(1)?.0;
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
        source: Some(source),
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
    messages: Ordered,
    sent: Ranges,
}

/// What of a stream was sent: ranges that don't touch, the end of each by its beginning.
#[derive(Default)]
struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    /// Adds some bytes, and tells how many of them are new.
    fn add(&mut self, bytes: &Range<u64>) -> u64 {
        let mut all = bytes.clone();
        let mut known = 0;
        // From the last one that may reach it, each that it touches becomes a part of it.
        while let Some((&start, &end)) = self.0.range(..=all.end).next_back() {
            if end < all.start {
                break;
            }
            let common = end.min(bytes.end).saturating_sub(start.max(bytes.start));
            known += common;
            self.0.remove(&start);
            all = all.start.min(start)..all.end.max(end);
        }
        if !all.is_empty() {
            self.0.insert(all.start, all.end);
        }
        bytes.end - bytes.start - known
    }
}

/// Handshake messages, in order as far as they have come.
#[derive(Default)]
struct Ordered {
    whole: Vec<u8>,
    /// What came ahead, by its offset.
    ahead: BTreeMap<u64, Vec<u8>>,
}

impl Ordered {
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

/// What a side's 1-RTT packets are opened with.
struct Phases {
    header: HeaderProtection,
    packets: PacketProtection,
    secret: PacketSecret,
    /// The Key Phase bit of these keys (RFC 9001, 6).
    phase: u8,
}

impl Phases {
    fn of(secret: PacketSecret) -> Option<Phases> {
        Some(Phases {
            header: secret.header()?,
            packets: secret.opening()?,
            secret,
            phase: 0,
        })
    }

    fn open(&mut self, header: &Header<'_>, largest: Option<u64>) -> Option<Opened> {
        const KEY_PHASE: u8 = 0x04;
        let shown = show(header, &self.header, largest)?;
        let phase = shown.packet.first()? & KEY_PHASE;
        if phase == self.phase {
            return shown.open(&self.packets);
        }
        let secret = self.secret.updated()?;
        let packets = secret.opening()?;
        let opened = shown.open(&packets)?;
        (self.packets, self.secret, self.phase) = (packets, secret, phase);
        Some(opened)
    }
}

struct Reader<'k> {
    key_log: &'k KeyLog,
    depth: Depth,
    cipher_suite: Option<u16>,
    /// The client's and the server's, of Initial and of Handshake packets.
    spaces: [[Space; 2]; 2],
    /// Of the client's 0-RTT packets.
    early: Option<(HeaderProtection, PacketProtection)>,
    /// Of both sides' 1-RTT packets.
    phases: [Option<Phases>; 2],
    /// The largest number of a side's 0-RTT and 1-RTT packets.
    largest: [Option<u64>; 2],
    /// What a side's 1-RTT packets had in CRYPTO frames.
    data_sent: [Ranges; 2],
    /// How long the connection IDs are that each side has for itself.
    id_lengths: [Option<usize>; 2],
    /// Whether a packet of the server's could be opened: a Retry after that is none (RFC 9000, 17.2.5.2).
    is_answered: bool,
    /// Whether the client has begun again with the token of a Retry packet: others that come then are none (RFC 9000, 17.2.5.2).
    has_begun_again: bool,
    is_retried: bool,
}

impl<'k> Reader<'k> {
    fn new(key_log: &'k KeyLog, depth: Depth) -> Reader<'k> {
        Reader {
            key_log,
            depth,
            cipher_suite: None,
            spaces: Default::default(),
            early: None,
            phases: [None, None],
            largest: [None; 2],
            data_sent: Default::default(),
            id_lengths: [None; 2],
            is_answered: false,
            has_begun_again: false,
            is_retried: false,
        }
    }

    fn packets(&mut self, sender: Side, datagram: &[u8]) -> Vec<Packet> {
        headers(datagram)
            .map(|header| self.packet(sender, header))
            .collect()
    }

    fn packet(&mut self, sender: Side, mut header: Header<'_>) -> Packet {
        match header.source {
            Some(id) => self.id_lengths[sender as usize] = Some(id.len()),
            // What it is called by is its receiver's.
            None => {
                let length = self.id_lengths[sender.other() as usize];
                let id = length.and_then(|length| header.packet.get(1..1 + length));
                if let Some(id) = id {
                    (header.destination, header.number_at) = (id, 1 + id.len());
                }
            }
        }
        let opened = self.open(sender, &header).unwrap_or_default();
        Packet {
            kind: header.kind,
            bytes: header.packet.len(),
            number: opened.number,
            crypto: opened.number.map(|_| opened.crypto),
            token: header.token,
            destination: header.destination.to_vec(),
            source: header.source.map(<[u8]>::to_vec),
            frames: opened.frames,
        }
    }

    /// What is in a packet.
    fn open(&mut self, sender: Side, header: &Header<'_>) -> Option<Content> {
        let level = match (header.kind, self.depth) {
            (PacketKind::Initial, _) => 0,
            (PacketKind::Handshake, _) => 1,
            (PacketKind::Retry, _)
                if sender == Side::Server && !self.is_answered && !self.has_begun_again =>
            {
                self.is_retried = true;
                // The client begins again, with keys of the connection ID that is in it (RFC 9001, 5.2).
                for side in &mut self.spaces {
                    side[0].keys = None;
                    side[0].sent = Ranges::default();
                }
                return None;
            }
            (PacketKind::ZeroRtt | PacketKind::OneRtt, Depth::All) => {
                let opened = self.open_data(sender, header)?;
                let sent = &mut self.data_sent[sender as usize];
                return Some(Content::of(&opened, sent));
            }
            _ => return None,
        };
        self.has_begun_again |= self.is_retried && sender == Side::Client && header.token > 0;
        self.find_keys(sender, header);
        let space = &mut self.spaces[sender as usize][level];
        let (header_keys, packet_keys) = space.keys.as_ref()?;
        let opened = show(header, header_keys, space.largest)?.open(packet_keys)?;
        self.is_answered |= sender == Side::Server;
        space.largest = space.largest.max(Some(opened.number));
        let content = Content::of(&opened, &mut space.sent);
        for (frame, data) in frame::frames(opened.payload()) {
            if let Frame::Crypto { offset, .. } = frame {
                space.messages.add(offset, data);
            }
        }
        if (sender, level) == (Side::Server, 0) && self.cipher_suite.is_none() {
            let mut hello = Observation::default();
            let mut whole = space.messages.whole.clone();
            hello.take_messages(Side::Server, &mut whole);
            self.cipher_suite = hello.cipher_suite;
        }
        Some(content)
    }

    /// Opens a packet that has no handshake messages of its own.
    fn open_data(&mut self, sender: Side, header: &Header<'_>) -> Option<Opened> {
        let largest = self.largest[sender as usize];
        let opened = match (header.kind, sender) {
            (PacketKind::ZeroRtt, Side::Client) => {
                if self.early.is_none() {
                    let secret = self.secret("CLIENT_EARLY_TRAFFIC_SECRET")?;
                    self.early = Some((secret.header()?, secret.opening()?));
                }
                let (header_keys, packet_keys) = self.early.as_ref()?;
                show(header, header_keys, largest)?.open(packet_keys)?
            }
            (PacketKind::ZeroRtt, Side::Server) => return None,
            _ => {
                let label = match sender {
                    Side::Client => "CLIENT_TRAFFIC_SECRET_0",
                    Side::Server => "SERVER_TRAFFIC_SECRET_0",
                };
                if self.phases[sender as usize].is_none() {
                    self.phases[sender as usize] = Some(Phases::of(self.secret(label)?)?);
                }
                (self.phases[sender as usize].as_mut()?).open(header, largest)?
            }
        };
        self.largest[sender as usize] = largest.max(Some(opened.number));
        Some(opened)
    }

    fn secret(&self, label: &str) -> Option<PacketSecret> {
        let (cipher_suite, secret) = self.cipher_suite.zip(self.key_log.secret(label))?;
        Some(PacketSecret {
            cipher_suite,
            secret,
        })
    }

    fn client_random(&self) -> Vec<u8> {
        /// Of the message, and the version.
        const BEFORE: usize = framing::MESSAGE_HEADER + 2;
        let hello = &self.spaces[Side::Client as usize][0].messages.whole;
        (hello.get(BEFORE..BEFORE + 32).unwrap_or_default()).to_vec()
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
                self.spaces[sender as usize][1].keys = self.secret(label).as_ref().and_then(both);
            }
            _ => {}
        }
    }

    /// What all messages say, the server's first: they tell what became of the client's.
    fn observation(&mut self) -> Observation {
        let mut observation = Observation::default();
        for side in [Side::Server, Side::Client] {
            for space in &mut self.spaces[side as usize] {
                observation.take_messages(side, &mut space.messages.whole);
            }
        }
        observation
    }
}

/// A packet whose header is shown.
struct Shown {
    number: u64,
    packet: Vec<u8>,
    payload_at: usize,
}

/// A packet that was opened.
struct Opened {
    number: u64,
    packet: Vec<u8>,
    payload_at: usize,
}

impl Opened {
    fn payload(&self) -> &[u8] {
        self.packet.get(self.payload_at..).unwrap_or_default()
    }
}

/// Takes the protection off a header (RFC 9001, 5.4.1).
fn show(header: &Header<'_>, keys: &HeaderProtection, largest: Option<u64>) -> Option<Shown> {
    let sample = header.packet.get(header.number_at + 4..)?.first_chunk()?;
    let [first_mask, number_mask @ ..] = keys.mask(*sample)?;
    let mut packet = header.packet.to_vec();
    let first = packet.first_mut()?;
    *first ^= match header.source {
        Some(_) => first_mask & 0x0f,
        None => first_mask & 0x1f,
    };
    let count = usize::from(*first & 3) + 1;
    let payload_at = header.number_at + count;
    let mut truncated = 0;
    let bytes = packet.get_mut(header.number_at..payload_at)?;
    for (byte, mask) in bytes.iter_mut().zip(number_mask) {
        *byte ^= mask;
        truncated = truncated << 8 | u64::from(*byte);
    }
    Some(Shown {
        number: packet_number(largest, truncated, count),
        packet,
        payload_at,
    })
}

impl Shown {
    fn open(mut self, keys: &PacketProtection) -> Option<Opened> {
        let (header, payload) = self.packet.split_at_mut_checked(self.payload_at)?;
        let length = keys.open(self.number, header, payload)?;
        self.packet.truncate(self.payload_at + length);
        Some(Opened {
            number: self.number,
            packet: self.packet,
            payload_at: self.payload_at,
        })
    }
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

#[cfg(test)]
mod tests;
