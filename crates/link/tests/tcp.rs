//! TCP packets and their keys.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::net::Ipv4Addr;

use lastbyte_link::{KeyMaker, PacketKey, Side, TcpPacket, UdpPacket};
use proptest::prelude::*;

const ACK: u8 = TcpPacket::ACK;
const SYN: u8 = TcpPacket::SYN;
const FIN: u8 = TcpPacket::FIN;
const PSH: u8 = 0x08;

/// An IPv4 packet with `ip_words` and `tcp_words` of options.
fn bytes(packet: &TcpPacket, ip_words: u8, tcp_words: u8) -> Vec<u8> {
    let ip_header = 20 + 4 * usize::from(ip_words);
    let tcp_header = 20 + 4 * usize::from(tcp_words);
    let total = ip_header + tcp_header + usize::from(packet.payload_length);
    let mut out = vec![0; total];
    out[0] = 0x40 | (5 + ip_words);
    out[2..4].copy_from_slice(&u16::try_from(total).unwrap().to_be_bytes());
    out[6] = 0x40; // don't fragment
    out[9] = 6;
    out[12..16].copy_from_slice(&packet.source.octets());
    out[16..20].copy_from_slice(&packet.destination.octets());
    let tcp = &mut out[ip_header..];
    tcp[0..2].copy_from_slice(&packet.source_port.to_be_bytes());
    tcp[2..4].copy_from_slice(&packet.destination_port.to_be_bytes());
    tcp[4..8].copy_from_slice(&packet.sequence.to_be_bytes());
    tcp[8..12].copy_from_slice(&packet.acknowledgement.to_be_bytes());
    tcp[12] = (5 + tcp_words) << 4;
    tcp[13] = packet.flags;
    out
}

fn segment(flags: u8, sequence: u32, acknowledgement: u32, payload_length: u16) -> TcpPacket {
    TcpPacket {
        source: Ipv4Addr::new(10, 77, 0, 1),
        destination: Ipv4Addr::new(10, 78, 0, 1),
        source_port: 40_000,
        destination_port: 443,
        sequence,
        acknowledgement,
        flags,
        payload_length,
    }
}

/// A connection whose sequence numbers wrap at once, as [`KeyMaker`] sees it.
struct Connection {
    keys: KeyMaker,
    client: u32,
    server: u32,
}

impl Connection {
    fn established(client: u32, server: u32) -> Connection {
        let mut connection = Connection {
            keys: KeyMaker::new(),
            client,
            server,
        };
        let syn = connection.client(SYN, 0, 0, 0);
        assert_eq!(syn, PacketKey::segment(SYN, 0, 0));
        let syn_ack = connection.server(SYN | ACK, 0, 1, 0);
        assert_eq!(syn_ack, PacketKey::segment(SYN, 0, 0));
        assert_eq!(
            connection.client(ACK, 1, 1, 0),
            PacketKey::acknowledgement(1, 0)
        );
        connection
    }

    fn client(&mut self, flags: u8, sequence: u32, acknowledgement: u32, length: u16) -> PacketKey {
        let sequence = self.client.wrapping_add(sequence);
        let acknowledgement = self.server.wrapping_add(acknowledgement);
        let packet = bytes(&segment(flags, sequence, acknowledgement, length), 0, 3);
        self.keys.key(Side::Server, &packet).unwrap()
    }

    fn server(&mut self, flags: u8, sequence: u32, acknowledgement: u32, length: u16) -> PacketKey {
        let sequence = self.server.wrapping_add(sequence);
        let acknowledgement = self.client.wrapping_add(acknowledgement);
        let packet = bytes(&segment(flags, sequence, acknowledgement, length), 0, 3);
        self.keys.key(Side::Client, &packet).unwrap()
    }
}

#[test]
fn keys_are_relative_to_the_initial_sequence_numbers() {
    for (client, server) in [
        (0, 0),
        (1000, 2000),
        (u32::MAX, u32::MAX - 500),
        (1 << 31, 7),
    ] {
        let mut c = Connection::established(client, server);
        assert_eq!(
            c.client(ACK | PSH, 1, 1, 271),
            PacketKey::segment(ACK, 1, 0)
        );
        assert_eq!(c.server(ACK, 1, 272, 1448), PacketKey::segment(ACK, 1, 0));
        assert_eq!(
            c.server(ACK, 1449, 272, 552),
            PacketKey::segment(ACK, 1449, 0)
        );
        assert_eq!(
            c.client(ACK, 272, 1449, 0),
            PacketKey::acknowledgement(1449, 0)
        );
        assert_eq!(
            c.client(ACK, 272, 2001, 0),
            PacketKey::acknowledgement(2001, 0)
        );
        assert_eq!(
            c.client(ACK | FIN, 272, 2001, 0),
            PacketKey::segment(FIN, 272, 0)
        );
        assert_eq!(
            c.server(ACK, 2001, 273, 0),
            PacketKey::acknowledgement(273, 0)
        );
    }
}

#[test]
fn what_is_sent_again_is_a_further_attempt() {
    let mut c = Connection::established(1, u32::MAX);
    assert_eq!(c.client(SYN, 0, 0, 0), PacketKey::segment(SYN, 0, 1));
    assert_eq!(c.server(ACK, 1, 1, 1448), PacketKey::segment(0, 1, 0));
    assert_eq!(c.server(ACK, 1449, 1, 1448), PacketKey::segment(0, 1449, 0));
    assert_eq!(c.server(ACK, 1, 1, 1448), PacketKey::segment(0, 1, 1));
    assert_eq!(c.server(ACK, 1, 1, 1448), PacketKey::segment(0, 1, 2));
    assert_eq!(c.server(ACK, 2897, 1, 100), PacketKey::segment(0, 2897, 0));
    assert_eq!(
        c.server(ACK | PSH, 1449, 1, 1448),
        PacketKey::segment(0, 1449, 1)
    );
    // Duplicate acknowledgements.
    assert_eq!(
        c.client(ACK, 1, 1449, 0),
        PacketKey::acknowledgement(1449, 0)
    );
    assert_eq!(
        c.client(ACK, 1, 1449, 0),
        PacketKey::acknowledgement(1449, 1)
    );
    assert_eq!(
        c.client(ACK, 1, 1449, 0),
        PacketKey::acknowledgement(1449, 2)
    );
    assert_eq!(
        c.client(ACK, 1, 2897, 0),
        PacketKey::acknowledgement(2897, 0)
    );
}

#[test]
fn a_connection_that_is_joined_late_counts_from_there() {
    let mut keys = KeyMaker::new();
    let data = bytes(&segment(ACK, 5000, 900, 100), 0, 0);
    assert_eq!(
        keys.key(Side::Server, &data),
        Some(PacketKey::segment(0, 1, 0))
    );
    let answer = bytes(&segment(ACK, 900, 5100, 0), 0, 0);
    assert_eq!(
        keys.key(Side::Client, &answer),
        Some(PacketKey::acknowledgement(101, 0))
    );
}

/// Wherever its numbers begin, and whatever the first connection has sent.
#[test]
fn a_later_connection_has_luck_of_its_own() {
    let keys = |mut maker: KeyMaker, initial: u32| {
        let packets = [
            segment(SYN, initial, 0, 0),
            segment(ACK | PSH, initial.wrapping_add(1), 1, 1000),
            segment(ACK, initial.wrapping_add(1001), 1, 0),
        ];
        packets.map(|packet| maker.key_of(Side::Server, &packet))
    };
    let first = keys(KeyMaker::new(), 7);
    let second = keys(KeyMaker::of_later_connection(1), u32::MAX);
    assert_eq!(second, keys(KeyMaker::of_later_connection(1), 7));
    for (one, other) in first.iter().zip(&second) {
        assert_ne!(one, other);
    }
}

#[test]
fn fields_of_a_key_do_not_mix() {
    let keys = [
        PacketKey::segment(0, 1, 0),
        PacketKey::segment(0, 0, 1),
        PacketKey::segment(FIN, 0, 0),
        PacketKey::segment(SYN, 0, 0),
        PacketKey::segment(TcpPacket::RST, 0, 0),
        PacketKey::segment(0, 0, u32::MAX),
        PacketKey::segment(0, u32::MAX, 0),
        PacketKey::acknowledgement(0, 0),
        PacketKey::acknowledgement(1, 0),
        PacketKey::acknowledgement(0, 1),
    ];
    for (i, key) in keys.iter().enumerate() {
        assert!(!keys[i + 1..].contains(key), "{i}");
    }
    assert_eq!(
        PacketKey::segment(ACK | PSH, 9, 2),
        PacketKey::segment(0, 9, 2)
    );
}

#[test]
fn other_packets_have_no_key() {
    // Read from the wrong place, its sequence number looks like the length of a TCP header.
    let good = bytes(&segment(ACK, 0x5000_0001, 1, 10), 1, 2);
    assert!(TcpPacket::parse(&good).is_some());
    let without = |index: usize, value: u8| {
        let mut bad = good.clone();
        bad[index] = value;
        bad
    };
    let bad = [
        ("IPv6", without(0, 0x66)),
        ("an IP header of 16 bytes", without(0, 0x44)),
        ("an IP header longer than the packet", without(0, 0x4f)),
        ("UDP", without(9, 17)),
        ("a later fragment", without(7, 1)),
        ("a TCP header of 16 bytes", without(24 + 12, 0x40)),
        (
            "a TCP header longer than the packet",
            without(24 + 12, 0xf0),
        ),
        ("a total length above the packet's", without(3, 200)),
        ("a total length of nothing", without(3, 0)),
        ("nothing", Vec::new()),
    ];
    for (name, bad) in bad {
        assert_eq!(TcpPacket::parse(&bad), None, "{name}");
        assert_eq!(KeyMaker::new().key(Side::Server, &bad), None, "{name}");
    }
    for end in 0..good.len() {
        assert_eq!(TcpPacket::parse(&good[..end]), None, "cut at {end}");
    }
}

prop_compose! {
    fn any_packet()(
        source: [u8; 4], destination: [u8; 4], source_port: u16, destination_port: u16,
        sequence: u32, acknowledgement: u32, flags: u8, payload_length in 0_u16..9000,
    ) -> TcpPacket {
        TcpPacket {
            source: source.into(), destination: destination.into(), source_port, destination_port,
            sequence, acknowledgement, flags, payload_length,
        }
    }
}

proptest! {
    #[test]
    fn packets_round_trip(
        packet in any_packet(),
        ip_words in 0_u8..=10,
        tcp_words in 0_u8..=10,
        padding in 0_usize..20,
    ) {
        let mut wire = bytes(&packet, ip_words, tcp_words);
        wire.resize(wire.len() + padding, 0);
        prop_assert_eq!(TcpPacket::parse(&wire), Some(packet));
    }

    #[test]
    fn any_bytes_are_read_or_refused(
        mut wire in proptest::collection::vec(any::<u8>(), 0..100), header in 0_u8..=15,
    ) {
        // Often enough something that looks like TCP.
        if let Some(byte) = wire.get_mut(0) { *byte = 0x40 | header; }
        if let Some(byte) = wire.get_mut(2) { *byte = 0; }
        if let Some(byte) = wire.get_mut(9) { *byte = 6; }
        let length = wire.len();
        if let Some(packet) = TcpPacket::parse(&wire) {
            prop_assert!(usize::from(packet.payload_length) + 40 <= length);
        }
    }

    #[test]
    fn keys_never_repeat(
        packets in proptest::collection::vec((any::<bool>(), any_packet()), 0..50),
    ) {
        let mut keys = KeyMaker::new();
        let mut seen = std::collections::HashSet::new();
        for (toward_server, mut packet) in packets {
            // SYNs that begin a second connection would start the numbers anew.
            packet.flags &= !SYN;
            packet.sequence %= 1 << 16;
            packet.acknowledgement %= 1 << 16;
            let toward = if toward_server { Side::Server } else { Side::Client };
            let key = keys.key_of(toward, &packet);
            prop_assert!(seen.insert((toward_server, key)), "{:?}", packet);
        }
    }
}

#[test]
fn datagrams_are_read_and_have_keys_of_their_own() {
    let tcp = segment(ACK, 1, 1, 0);
    let mut packet = bytes(&tcp, 0, 0);
    assert_eq!(UdpPacket::parse(&packet), None);
    packet[9] = 17;
    assert_eq!(
        UdpPacket::parse(&packet),
        Some(UdpPacket {
            source: tcp.source,
            destination: tcp.destination,
            source_port: tcp.source_port,
            destination_port: tcp.destination_port,
            payload: &packet[28..],
        })
    );
    assert_eq!(TcpPacket::parse(&packet), None);
    // Less than a header.
    packet[2..4].copy_from_slice(&27_u16.to_be_bytes());
    assert_eq!(UdpPacket::parse(&packet[..27]), None);

    let mut keys = KeyMaker::new();
    let sent = [Side::Server, Side::Server, Side::Client];
    let made = sent.map(|toward| keys.key_of_datagram(toward));
    assert_eq!(made, [0, 1, 0].map(PacketKey::datagram));
    let all_flags = PacketKey::segment(SYN | FIN | PSH, 0, 0);
    assert!(!made.contains(&all_flags));
}
