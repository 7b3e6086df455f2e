//! What is read of a packet besides its place in the stream.

use std::net::SocketAddrV4;

use lastbyte_link::{EcnCodepoint, TcpPacket, UdpPacket};

/// A TCP segment in an IPv4 packet, and its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    /// Its header fields.
    pub header: TcpPacket,
    /// The blocks that it acknowledges selectively, first and behind the last byte of each (RFC 2018, 3).
    pub blocks: Vec<(u32, u32)>,
    /// Its data.
    pub payload: &'a [u8],
}

const IP_HEADER: usize = 20;
const TCP_HEADER: usize = 20;
const UDP_HEADER: usize = 8;
const TCP: u8 = 6;
const UDP: u8 = 17;
/// Where the checksum is in a segment's header, and in a datagram's.
const TCP_CHECKSUM: usize = 16;
const UDP_CHECKSUM: usize = 6;

impl<'a> Segment<'a> {
    /// Reads a packet from its IPv4 header on; `None` when it is no whole TCP segment.
    #[must_use]
    pub fn parse(packet: &'a [u8]) -> Option<Segment<'a>> {
        let header = TcpPacket::parse(packet)?;
        let segment = ip_payload(packet)?;
        let data = usize::from(segment.get(12)? >> 4) * 4;
        Some(Segment {
            header,
            blocks: blocks(segment.get(TCP_HEADER..data)?),
            payload: segment.get(data..)?,
        })
    }
}

/// A UDP datagram in an IPv4 packet, and its payload (RFC 768).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// Where it comes from.
    pub source: SocketAddrV4,
    /// Where it goes.
    pub destination: SocketAddrV4,
    /// What its packet has to say about congestion.
    pub ecn: EcnCodepoint,
    /// Its data.
    pub payload: &'a [u8],
}

impl<'a> Datagram<'a> {
    /// Reads a packet from its IPv4 header on; `None` when it is no whole UDP datagram.
    #[must_use]
    pub fn parse(packet: &'a [u8]) -> Option<Datagram<'a>> {
        let header = UdpPacket::parse(packet)?;
        let datagram = ip_payload(packet)?;
        let number = |at: usize| {
            let bytes = datagram.get(at..at + 2)?.try_into().ok()?;
            Some(u16::from_be_bytes(bytes))
        };
        Some(Datagram {
            source: SocketAddrV4::new(header.source, number(0)?),
            destination: SocketAddrV4::new(header.destination, number(2)?),
            ecn: EcnCodepoint::of_class(*packet.get(1)?),
            payload: datagram.get(UDP_HEADER..usize::from(number(4)?))?,
        })
    }

    /// The packet that carries it, its IPv4 header first, as Linux sends it but for a time to live of 64 everywhere: with DF,
    /// and no identification, which nothing that is never fragmented needs (RFC 6864). `None` when no packet can be so long.
    #[must_use]
    pub fn packet(&self) -> Option<Vec<u8>> {
        const DONT_FRAGMENT: u16 = 0x4000;
        let length = u16::try_from(UDP_HEADER + self.payload.len()).ok()?;
        let total = u16::try_from(IP_HEADER).ok()?.checked_add(length)?;
        let mut packet = Vec::with_capacity(usize::from(total));
        packet.extend([0x45, self.ecn.class()]);
        packet.extend(total.to_be_bytes());
        packet.extend(0_u16.to_be_bytes());
        packet.extend(DONT_FRAGMENT.to_be_bytes());
        packet.extend([64, UDP, 0, 0]);
        packet.extend(self.source.ip().octets());
        packet.extend(self.destination.ip().octets());
        let mut sum = Sum::default();
        sum.add(&packet);
        if let Some(field) = packet.get_mut(10..12) {
            field.copy_from_slice(&sum.finish().to_be_bytes());
        }
        packet.extend(self.source.port().to_be_bytes());
        packet.extend(self.destination.port().to_be_bytes());
        packet.extend(length.to_be_bytes());
        packet.extend([0, 0]);
        packet.extend(self.payload);
        complete_checksums(&mut packet);
        Some(packet)
    }
}

fn ip_payload(packet: &[u8]) -> Option<&[u8]> {
    let total = usize::from(u16::from_be_bytes([*packet.get(2)?, *packet.get(3)?]));
    packet.get(usize::from(packet.first()? & 0x0f) * 4..total)
}

/// The blocks of the option SACK.
fn blocks(mut options: &[u8]) -> Vec<(u32, u32)> {
    const END: u8 = 0;
    const NOTHING: u8 = 1;
    const SACK: u8 = 5;
    loop {
        match options {
            [END, ..] | [] => return Vec::new(),
            [NOTHING, rest @ ..] => options = rest,
            [kind, length, ..] => {
                let Some((option, rest)) = options.split_at_checked(usize::from(*length).max(2))
                else {
                    return Vec::new();
                };
                if *kind == SACK {
                    let (pairs, _) = option.get(2..).unwrap_or_default().as_chunks::<8>();
                    let edge = |[a, b, c, d]: [u8; 4]| u32::from_be_bytes([a, b, c, d]);
                    return (pairs.iter())
                        .map(|[a, b, c, d, e, f, g, h]| {
                            (edge([*a, *b, *c, *d]), edge([*e, *f, *g, *h]))
                        })
                        .collect();
                }
                options = rest;
            }
            [_] => return Vec::new(),
        }
    }
}

/// What is the same of a packet before a router and behind it: all but the time to live and checksums, which a
/// device may leave to be filled in.
pub(crate) fn constant_part(packet: &[u8]) -> Vec<u8> {
    let mut constant = packet.to_vec();
    let header = usize::from(packet.first().map_or(0, |first| first & 0x0f)) * 4;
    let mut clear = |at: usize| {
        if let Some(byte) = constant.get_mut(at) {
            *byte = 0;
        }
    };
    [8, 10, 11].into_iter().for_each(&mut clear);
    let checksum = match packet.get(9) {
        Some(&TCP) => Some(TCP_CHECKSUM),
        Some(&UDP) => Some(UDP_CHECKSUM),
        _ => None,
    };
    if let Some(at) = checksum {
        [header + at, header + at + 1]
            .into_iter()
            .for_each(&mut clear);
    }
    constant
}

/// Gives a TCP segment or a UDP datagram the checksum that its sender's device would have computed (RFC 9293, 3.1; RFC 768).
/// Others stay as they are.
pub fn complete_checksums(packet: &mut [u8]) {
    let tcp = TcpPacket::parse(packet).map(|header| (header.source, header.destination));
    let udp = || UdpPacket::parse(packet).map(|header| (header.source, header.destination));
    let (ends, protocol, at) = match tcp {
        Some(ends) => (ends, TCP, TCP_CHECKSUM),
        None => match udp() {
            Some(ends) => (ends, UDP, UDP_CHECKSUM),
            None => return,
        },
    };
    let start = usize::from(packet.first().map_or(0, |first| first & 0x0f)).max(5) * 4;
    let place = start + at;
    let Some(field) = packet.get_mut(place..place + 2) else {
        return;
    };
    field.fill(0);
    let Some(payload) = ip_payload(packet) else {
        return;
    };
    let length = u16::try_from(payload.len()).unwrap_or(0);
    let (source, destination) = ends;
    let mut sum = Sum::default();
    sum.add(&source.octets());
    sum.add(&destination.octets());
    sum.add(&[0, protocol]);
    sum.add(&length.to_be_bytes());
    sum.add(payload);
    let checksum = match (protocol, sum.finish()) {
        // None would mean that there is none.
        (UDP, 0) => u16::MAX,
        (_, checksum) => checksum,
    };
    if let Some(field) = packet.get_mut(place..place + 2) {
        field.copy_from_slice(&checksum.to_be_bytes());
    }
}

/// The Internet checksum (RFC 1071).
#[derive(Default)]
struct Sum(u64);

impl Sum {
    fn add(&mut self, bytes: &[u8]) {
        for pair in bytes.chunks(2) {
            let word = [pair[0], pair.get(1).copied().unwrap_or(0)];
            self.0 += u64::from(u16::from_be_bytes(word));
        }
    }

    fn finish(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }
}

#[cfg(test)]
pub(crate) mod fixtures {
    //! Packets made by hand.

    use std::net::Ipv4Addr;

    use lastbyte_link::Side;

    /// A segment between 198.18.0.1:20000 and 198.19.0.1:443.
    pub(crate) fn segment(
        from: Side,
        flags: u8,
        sequence: u32,
        acknowledgement: u32,
        payload: &[u8],
        blocks: &[(u32, u32)],
    ) -> Vec<u8> {
        let client = (Ipv4Addr::new(198, 18, 0, 1), 20_000_u16);
        let server = (Ipv4Addr::new(198, 19, 0, 1), 443_u16);
        let (source, destination) = match from {
            Side::Client => (client, server),
            Side::Server => (server, client),
        };
        let mut options = Vec::new();
        if !blocks.is_empty() {
            options.extend([1, 1, 5, 2 + 8 * blocks.len() as u8]);
            for (first, end) in blocks {
                options.extend(first.to_be_bytes());
                options.extend(end.to_be_bytes());
            }
        }
        let total = 40 + options.len() + payload.len();
        let mut packet = vec![0x45, 0];
        packet.extend((total as u16).to_be_bytes());
        packet.extend([0, 7, 0x40, 0, 64, 6, 0, 0]);
        packet.extend(source.0.octets());
        packet.extend(destination.0.octets());
        packet.extend(source.1.to_be_bytes());
        packet.extend(destination.1.to_be_bytes());
        packet.extend(sequence.to_be_bytes());
        packet.extend(acknowledgement.to_be_bytes());
        packet.extend([
            ((5 + options.len() / 4) << 4) as u8,
            flags,
            1,
            0,
            0,
            0,
            0,
            0,
        ]);
        packet.extend(options);
        packet.extend(payload);
        packet
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use lastbyte_link::Side;
    use proptest::prelude::*;

    use super::fixtures::segment;
    use super::*;

    #[test]
    fn a_segment_has_its_payload_and_what_it_acknowledges_selectively() {
        let packet = segment(Side::Client, 0x10, 5, 9, b"abc", &[(20, 30), (40, 50)]);
        let read = Segment::parse(&packet).unwrap();
        assert_eq!(read.blocks, [(20, 30), (40, 50)]);
        assert_eq!(read.payload, b"abc");
        assert_eq!((read.header.sequence, read.header.acknowledgement), (5, 9));
    }

    #[test]
    fn a_segment_with_its_checksum_adds_up_to_nothing() {
        // A SYN with an empty place for its checksum.
        let mut packet = hex::decode(
            "4500003c1c4640004006203e7f0000017f000001c3500050000000010000000050027fff0000000000000000\
             00000000000000000000000000000000",
        )
        .unwrap();
        complete_checksums(&mut packet);
        // One's complement: all words of header, data and pseudo header add up to nothing.
        let mut sum = Sum::default();
        sum.add(&packet[12..20]);
        sum.add(&[0, 6, 0, 40]);
        sum.add(&packet[20..60]);
        assert_eq!(sum.finish(), 0);
    }

    #[test]
    fn a_packet_of_a_datagram_is_as_linux_would_send_it() {
        // Its checksum is by hand, as RFC 1071 has it.
        let datagram = Datagram {
            source: "198.18.0.1:20000".parse().unwrap(),
            destination: "198.19.0.1:443".parse().unwrap(),
            ecn: EcnCodepoint::NotEct,
            payload: b"abc",
        };
        let packet = datagram.packet().unwrap();
        let header = "4500001f000040004011aea6c6120001c61300014e2001bb000b";
        assert_eq!(hex::encode(&packet[..26]), header);
        let mut sum = Sum::default();
        sum.add(&packet[..20]);
        assert_eq!(sum.finish(), 0);
        let mut sum = Sum::default();
        sum.add(&packet[12..20]);
        sum.add(&[0, 17, 0, 11]);
        sum.add(&packet[20..]);
        assert_eq!(sum.finish(), 0);
        let long = Datagram {
            payload: &[0; 65_508],
            ..datagram
        };
        assert_eq!(long.packet(), None);
    }

    proptest! {
        #[test]
        fn a_datagram_is_read_back(source: u32, port: u16, class: u8, payload in proptest::collection::vec(any::<u8>(), 0..1500)) {
            let datagram = Datagram {
                source: SocketAddrV4::new(source.into(), port),
                destination: SocketAddrV4::new((!source).into(), !port),
                ecn: EcnCodepoint::of_class(class),
                payload: &payload,
            };
            let packet = datagram.packet().unwrap();
            prop_assert_eq!(Datagram::parse(&packet), Some(datagram));
        }

        #[test]
        fn any_bytes_are_read_without_harm(
            mut bytes in proptest::collection::vec(any::<u8>(), 0..200),
            like in proptest::option::of(proptest::sample::select(&[6_u8, 17][..])),
        ) {
            if let (Some(protocol), 11..) = (like, bytes.len()) {
                bytes[0] = 0x45;
                bytes[9] = protocol;
            }
            let _ = Segment::parse(&bytes);
            let _ = Datagram::parse(&bytes);
            let constant = constant_part(&bytes);
            complete_checksums(&mut bytes);
            prop_assert_eq!(constant, constant_part(&bytes));
        }
    }
}
