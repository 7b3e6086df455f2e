//! Packets as the link tells them apart: by their place in the TCP stream.

use std::collections::HashMap;
use std::net::Ipv4Addr;

use crate::{PacketKey, Side};

/// The header fields of a TCP segment in an IPv4 packet.
///
/// RFC 791, section 3.1 and RFC 9293, section 3.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpPacket {
    /// Source address.
    pub source: Ipv4Addr,
    /// Destination address.
    pub destination: Ipv4Addr,
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Sequence number, as on the wire.
    pub sequence: u32,
    /// Acknowledgement number, as on the wire; it means nothing without the ACK flag.
    pub acknowledgement: u32,
    /// The eight flags, CWR to FIN.
    pub flags: u8,
    /// Bytes of payload.
    pub payload_length: u16,
}

impl TcpPacket {
    /// FIN: the sender has no more data.
    pub const FIN: u8 = 0x01;
    /// SYN: the sequence number is the initial one.
    pub const SYN: u8 = 0x02;
    /// RST: the connection is reset.
    pub const RST: u8 = 0x04;
    /// ACK: the acknowledgement number counts.
    pub const ACK: u8 = 0x10;

    /// Reads an IPv4 packet, header first, without link-layer header.
    ///
    /// `None` when it is not TCP over IPv4, is a later fragment, or is cut short.
    #[must_use]
    pub fn parse(packet: &[u8]) -> Option<TcpPacket> {
        const TCP: u8 = 6;

        let ip = IpPacket::parse(packet, TCP)?;
        let segment = ip.payload;
        let tcp: &[u8; 20] = segment.first_chunk()?;
        let tcp_header = usize::from(tcp[12] >> 4) * 4;
        if tcp_header < 20 {
            return None;
        }
        let payload_length = segment.len().checked_sub(tcp_header)?;

        Some(TcpPacket {
            source: ip.source,
            destination: ip.destination,
            source_port: u16::from_be_bytes([tcp[0], tcp[1]]),
            destination_port: u16::from_be_bytes([tcp[2], tcp[3]]),
            sequence: u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]),
            acknowledgement: u32::from_be_bytes([tcp[8], tcp[9], tcp[10], tcp[11]]),
            flags: tcp[13],
            payload_length: u16::try_from(payload_length).ok()?,
        })
    }
}

/// A UDP datagram in an IPv4 packet (RFC 768).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpPacket<'a> {
    /// Source address.
    pub source: Ipv4Addr,
    /// Destination address.
    pub destination: Ipv4Addr,
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// What it carries.
    pub payload: &'a [u8],
}

impl UdpPacket<'_> {
    /// Reads an IPv4 packet, header first, without link-layer header.
    ///
    /// `None` when it is not UDP over IPv4, is a later fragment, or is cut short.
    #[must_use]
    pub fn parse(packet: &[u8]) -> Option<UdpPacket<'_>> {
        const UDP: u8 = 17;

        let ip = IpPacket::parse(packet, UDP)?;
        let ([a, b, c, d, ..], payload) = ip.payload.split_first_chunk::<8>()?;
        Some(UdpPacket {
            source: ip.source,
            destination: ip.destination,
            source_port: u16::from_be_bytes([*a, *b]),
            destination_port: u16::from_be_bytes([*c, *d]),
            payload,
        })
    }
}

struct IpPacket<'a> {
    source: Ipv4Addr,
    destination: Ipv4Addr,
    payload: &'a [u8],
}

impl IpPacket<'_> {
    fn parse(packet: &[u8], protocol: u8) -> Option<IpPacket<'_>> {
        let ip: &[u8; 20] = packet.first_chunk()?;
        let ip_header = usize::from(ip[0] & 0x0f) * 4;
        let total = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
        let fragment_offset = u16::from_be_bytes([ip[6], ip[7]]) & 0x1fff;
        if ip[0] >> 4 != 4 || ip_header < 20 || fragment_offset != 0 || ip[9] != protocol {
            return None;
        }
        Some(IpPacket {
            source: Ipv4Addr::new(ip[12], ip[13], ip[14], ip[15]),
            destination: Ipv4Addr::new(ip[16], ip[17], ip[18], ip[19]),
            payload: packet.get(ip_header..total)?,
        })
    }
}

/// Gives the packets of one TCP connection their [`PacketKey`]s, and datagrams that go with it.
///
/// It sees the packets of both directions in the order in which they are sent, takes the
/// two initial sequence numbers from the SYNs, and counts attempts.
#[derive(Clone, Debug, Default)]
pub struct KeyMaker {
    client: Sender,
    server: Sender,
    /// What attempts are counted from.
    first_attempt: u32,
}

impl KeyMaker {
    /// For a connection of which no packet was seen yet.
    #[must_use]
    pub fn new() -> KeyMaker {
        KeyMaker::default()
    }

    /// For another connection over the same link, of which no packet was seen yet: `number` is 1 for the one after
    /// the first. It has luck of its own, as if its packets were sent again.
    #[must_use]
    pub fn of_later_connection(number: u16) -> KeyMaker {
        /// More often than any packet is sent.
        const ATTEMPTS: u32 = 1 << 16;
        KeyMaker {
            first_attempt: ATTEMPTS * u32::from(number),
            ..KeyMaker::default()
        }
    }

    /// The key of an IPv4 packet; `None` when [`TcpPacket::parse`] can't read it.
    pub fn key(&mut self, toward: Side, packet: &[u8]) -> Option<PacketKey> {
        TcpPacket::parse(packet).map(|packet| self.key_of(toward, &packet))
    }

    /// The key of the next datagram in this direction.
    pub fn key_of_datagram(&mut self, toward: Side) -> PacketKey {
        let sender = match toward {
            Side::Server => &mut self.client,
            Side::Client => &mut self.server,
        };
        let key = PacketKey::datagram(self.first_attempt.wrapping_add(sender.datagrams));
        sender.datagrams = sender.datagrams.wrapping_add(1);
        key
    }

    /// The key of a packet that is parsed already.
    pub fn key_of(&mut self, toward: Side, packet: &TcpPacket) -> PacketKey {
        let first_attempt = self.first_attempt;
        let (sender, receiver) = match toward {
            Side::Server => (&mut self.client, &mut self.server),
            Side::Client => (&mut self.server, &mut self.client),
        };
        // Where no SYN was seen, numbers count as if the first one were that of the first data.
        let initial = |first: u32| first.wrapping_sub(1);
        let control = TcpPacket::SYN | TcpPacket::FIN | TcpPacket::RST;
        if packet.payload_length == 0 && packet.flags & control == 0 {
            let first = initial(packet.acknowledgement);
            let initial = *receiver.initial.get_or_insert(first);
            let acknowledgement = packet.acknowledgement.wrapping_sub(initial);
            let attempt = sender.acknowledgements.attempt(acknowledgement, 1);
            return PacketKey::acknowledgement(
                acknowledgement,
                first_attempt.saturating_add(attempt),
            );
        }
        if packet.flags & TcpPacket::SYN != 0 {
            sender.initial = Some(packet.sequence);
        }
        let first = initial(packet.sequence);
        let sequence = packet
            .sequence
            .wrapping_sub(*sender.initial.get_or_insert(first));
        let attempt = sender
            .segments
            .attempt(sequence, u32::from(packet.payload_length).max(1));
        PacketKey::segment(
            packet.flags,
            sequence,
            first_attempt.saturating_add(attempt),
        )
    }
}

/// One end's state.
#[derive(Clone, Debug, Default)]
struct Sender {
    initial: Option<u32>,
    segments: Attempts,
    acknowledgements: Attempts,
    datagrams: u32,
}

/// Counts how often each number was sent. Only those that are sent again take memory.
#[derive(Clone, Debug, Default)]
struct Attempts {
    next: u32,
    again: HashMap<u32, u32>,
}

impl Attempts {
    /// Which attempt this is at sending `length` numbers from `start`, from 0.
    fn attempt(&mut self, start: u32, length: u32) -> u32 {
        // Compared as TCP does (RFC 9293, section 3.4), so that wrapping is no matter.
        let is_new = start.wrapping_sub(self.next) <= i32::MAX as u32;
        if is_new {
            self.next = start.wrapping_add(length);
            return 0;
        }
        let attempt = self.again.entry(start).or_insert(0);
        *attempt = attempt.saturating_add(1);
        *attempt
    }
}
