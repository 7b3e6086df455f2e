#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;
use crate::observer::Message;

/// RFC 9001, A.2: a client's Initial, and what it says.
fn initial() -> Vec<u8> {
    let header = hex::decode("c300000001088394c8f03e5157080000449e00000002").unwrap();
    let hello = hex::decode(concat!(
        "060040f1010000ed0303ebf8fa56f12939b9584a3896472ec40bb863cfd3e86804fe3a47f06a2b69484c",
        "00000413011302010000c000000010000e00000b6578616d706c652e636f6dff01000100000a00080006",
        "001d0017001800100007000504616c706e000500050100000000003300260024001d00209370b2c9caa4",
        "7fbabaf4559fedba753de171fa71f50f1ce15d43e994ec74d748002b0003020304000d0010000e040305",
        "0306030203080408050806002d00020101001c00024001003900320408ffffffffffffffff0504800",
        "0ffff07048000ffff0801100104800075300901100f088394c8f03e51570806048000ffff"
    ));
    seal(&header, &hello.unwrap(), 1162, 2)
}

/// A client's Initial packet with this payload, padded. Its header is not protected yet, its number has four bytes.
fn seal(header: &[u8], payload: &[u8], length: usize, number: u64) -> Vec<u8> {
    let [client, _] =
        PacketSecret::initial(&[0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08]).unwrap();
    let mut payload = payload.to_vec();
    payload.resize(length, 0);
    let tag = client
        .sealing()
        .unwrap()
        .seal(number, header, &mut payload)
        .unwrap();
    let mask = client
        .header()
        .unwrap()
        .mask(*payload.first_chunk().unwrap())
        .unwrap();
    let mut packet = [header, &payload, &tag].concat();
    packet[0] ^= mask[0] & 0x0f;
    let number_at = header.len() - 4;
    for (byte, mask) in packet[number_at..].iter_mut().zip(&mask[1..]) {
        *byte ^= mask;
    }
    packet
}

#[test]
fn the_initial_of_the_appendix_is_read() {
    let mut observer = QuicObserver::default();
    observer.sent(Side::Client, &initial());
    let observed = observer.observe(&KeyLog::default());
    assert_eq!(observed.handshake.bytes(Message::ClientHello), Some(241));
    assert_eq!(
        observed.handshake.server_name.as_deref(),
        Some("example.com")
    );
    let [datagram] = &observed.datagrams[..] else {
        unreachable!("one was sent");
    };
    assert_eq!(datagram.bytes, 1200);
    let packet = Packet {
        kind: PacketKind::Initial,
        bytes: 1200,
        number: Some(2),
        crypto: Some(vec![Crypto {
            bytes: 0..241,
            new: 241,
        }]),
        token: 0,
        destination: hex::decode("8394c8f03e515708").unwrap(),
        source: Some(Vec::new()),
        frames: vec![
            Frame::Crypto {
                offset: 0,
                length: 241,
            },
            Frame::Padding(917),
        ],
    };
    assert_eq!(datagram.packets, [packet]);
    assert_eq!(observed.client_random[..2], [0xeb, 0xf8]);
    assert!(has_packet(&initial(), PacketKind::Initial));
    assert!(!has_packet(&initial(), PacketKind::Handshake));
}

#[test]
fn crypto_is_put_in_order() {
    let mut crypto = Ordered::default();
    for (offset, bytes) in [
        (4, "efg"),
        (0, "ab"),
        (1, "b"),
        (2, "cd"),
        (2, "cde"),
        (20, "late"),
    ] {
        crypto.add(offset, bytes.as_bytes());
    }
    assert_eq!(crypto.whole, b"abcdefg");
    crypto.add(u64::MAX, b"far");
    assert_eq!(crypto.ahead.len(), 1);
}

/// What a client sends again is known by its place: a part of it may be new.
#[test]
fn what_is_sent_again_is_not_new() {
    let header = |number: u8| {
        hex::decode(format!(
            "c300000001088394c8f03e5157080000449e000000{number:02x}"
        ))
        .unwrap()
    };
    let mut observer = QuicObserver::default();
    let frames: [&[u8]; 5] = [
        &[1, 6, 4, 2, 7, 7],
        &[6, 0, 3, 7, 7, 7],
        &[6, 2, 5, 7, 7, 7, 7, 7],
        &[6, 0, 7, 7, 7, 7, 7, 7, 7, 7],
        &[2, 0, 0, 0, 0],
    ];
    for (number, frames) in (0..).zip(frames) {
        observer.sent(
            Side::Client,
            &seal(&header(number), frames, 1162, number.into()),
        );
    }
    let observed = observer.observe(&KeyLog::default());
    let packets = observed
        .datagrams
        .iter()
        .flat_map(|datagram| &datagram.packets);
    let read: Vec<_> = packets
        .map(|packet| {
            let crypto = packet.crypto.clone().unwrap();
            let ranges = crypto.into_iter().map(|crypto| (crypto.bytes, crypto.new));
            let pings = packet.frames.iter().filter(|frame| **frame == Frame::Ping);
            (pings.count(), ranges.collect::<Vec<_>>())
        })
        .collect();
    let expected = [
        (1, vec![(4..6, 2)]),
        (0, vec![(0..3, 3)]),
        (0, vec![(2..7, 2)]),
        (0, vec![(0..7, 0)]),
        (0, vec![]),
    ];
    assert_eq!(read, expected);
}

/// RFC 9000, A.3.
#[test]
fn numbers_are_made_whole() {
    assert_eq!(packet_number(Some(0xa82f_30ea), 0x9b32, 2), 0xa82f_9b32);
    assert_eq!(packet_number(None, 0, 1), 0);
    assert_eq!(packet_number(Some(255), 0, 1), 256);
}

proptest! {
    #[test]
    fn nothing_is_too_strange_to_observe(
        datagrams in prop::collection::vec((any::<bool>(), prop::collection::vec(any::<u8>(), 0..200)), 0..8)
    ) {
        let mut observer = QuicObserver::default();
        for (is_client, datagram) in &datagrams {
            let sender = if *is_client { Side::Client } else { Side::Server };
            observer.sent(sender, datagram);
        }
        let observed = observer.observe(&KeyLog::default());
        prop_assert_eq!(observed.datagrams.len(), datagrams.len());
    }

    #[test]
    fn ranges_count_each_byte_once(all in prop::collection::vec((0_u64..60, 0_u64..12), 0..30)) {
        let (mut ranges, mut known) = (Ranges::default(), std::collections::BTreeSet::new());
        for (start, length) in all {
            let new = (start..start + length).filter(|byte| known.insert(*byte)).count() as u64;
            prop_assert_eq!(ranges.add(&(start..start + length)), new);
        }
        let covered: u64 = ranges.0.iter().map(|(start, end)| end - start).sum();
        prop_assert_eq!(covered, known.len() as u64);
    }

    #[test]
    fn a_changed_packet_is_observed_without_what_can_not_be_opened(at in 0_usize..1200, bit in 0_u8..8) {
        let mut changed = initial();
        changed[at] ^= 1 << bit;
        let mut observer = QuicObserver::default();
        observer.sent(Side::Client, &changed);
        let observed = observer.observe(&KeyLog::default());
        prop_assert_eq!(observed.handshake, Observation::default());
    }
}
