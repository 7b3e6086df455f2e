//! What is read of a packet besides its place in the stream.

use lastbyte_link::TcpPacket;

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
const TCP: u8 = 6;

impl<'a> Segment<'a> {
    /// Reads a packet from its IPv4 header on; `None` when it is no whole TCP segment.
    #[must_use]
    pub fn parse(packet: &'a [u8]) -> Option<Segment<'a>> {
        let header = TcpPacket::parse(packet)?;
        let segment = tcp_segment(packet)?;
        let data = usize::from(segment.get(12)? >> 4) * 4;
        Some(Segment {
            header,
            blocks: blocks(segment.get(TCP_HEADER..data)?),
            payload: segment.get(data..)?,
        })
    }
}

fn tcp_segment(packet: &[u8]) -> Option<&[u8]> {
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
    if packet.get(9) == Some(&TCP) {
        [header + 16, header + 17].into_iter().for_each(&mut clear);
    }
    constant
}

/// Gives a TCP segment the checksum that its sender's device would have computed (RFC 9293, 3.1). Others stay as they are.
pub fn complete_checksums(packet: &mut [u8]) {
    let Some(header) = TcpPacket::parse(packet) else {
        return;
    };
    let start = usize::from(packet.first().map_or(0, |first| first & 0x0f)).max(5) * 4;
    if start < IP_HEADER {
        return;
    }
    let place = start + 16;
    let Some(field) = packet.get_mut(place..place + 2) else {
        return;
    };
    field.fill(0);
    let Some(segment) = tcp_segment(packet) else {
        return;
    };
    let length = u16::try_from(segment.len()).unwrap_or(0);
    let mut sum = Sum::default();
    sum.add(&header.source.octets());
    sum.add(&header.destination.octets());
    sum.add(&[0, TCP]);
    sum.add(&length.to_be_bytes());
    sum.add(segment);
    let checksum = sum.finish().to_be_bytes();
    if let Some(field) = packet.get_mut(place..place + 2) {
        field.copy_from_slice(&checksum);
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

    proptest! {
        #[test]
        fn any_bytes_are_read_without_harm(mut bytes in proptest::collection::vec(any::<u8>(), 0..200), like in any::<bool>()) {
            if like && bytes.len() > 10 {
                bytes[0] = 0x45;
                bytes[9] = 6;
            }
            let _ = Segment::parse(&bytes);
            let constant = constant_part(&bytes);
            complete_checksums(&mut bytes);
            prop_assert_eq!(constant, constant_part(&bytes));
        }
    }
}
