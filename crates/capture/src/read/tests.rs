#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;
use crate::{About, write};

fn about<'a>(comment: &'a str, secrets: &'a str) -> About<'a> {
    About {
        comment,
        program: "lastbyte",
        secrets,
        unseen: 0,
        closed: Time(7),
    }
}

fn written(about: &About<'_>, packets: &[(Packet, Option<String>)]) -> Vec<u8> {
    let mut file = Vec::new();
    let packets = packets
        .iter()
        .map(|(packet, comment)| (packet, comment.clone()));
    write(&mut file, about, packets).unwrap();
    file
}

fn packets() -> impl Strategy<Value = Vec<(Packet, Option<String>)>> {
    let fates = [Fate::Carried, Fate::Lost, Fate::QueueFull, Fate::UnderWay];
    let packet = (
        any::<u64>(),
        0..4_usize,
        0..4_usize,
        proptest::collection::vec(any::<u8>(), 0..100),
        proptest::option::of("[a-z ]{1,20}"),
    );
    let packet = packet.prop_map(move |(at, point, fate, bytes, comment)| {
        (
            Packet::whole(Time(at), Point::ALL[point], fates[fate], bytes),
            comment,
        )
    });
    proptest::collection::vec(packet, 0..20)
}

fn read_again(packets: &[(Packet, Option<String>)]) -> Vec<(Packet, Vec<String>)> {
    let said = |packet: &Packet, comment: &Option<String>| {
        let fate = packet.fate.comment().map(str::to_owned);
        comment.iter().cloned().chain(fate).collect()
    };
    let packets = packets.iter();
    packets
        .map(|(packet, comment)| (packet.clone(), said(packet, comment)))
        .collect()
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        packets in packets(), comment in ".{0,40}", secrets in "[A-Z_ a-f0-9]{0,300}", unseen in any::<u64>(),
    ) {
        let about = About { unseen, ..about(&comment, &secrets) };
        let capture = read(&*written(&about, &packets)).unwrap();
        prop_assert_eq!(capture.comment, comment);
        prop_assert_eq!(capture.secrets, secrets);
        prop_assert_eq!(capture.unseen, unseen);
        prop_assert_eq!(capture.taken, Taken::Whole);
        prop_assert_eq!(capture.packets, read_again(&packets));
    }

    #[test]
    fn a_file_that_is_cut_is_read_as_far_as_it_goes(packets in packets(), cut in 0.0..1.0) {
        let whole = written(&about("what", "CLIENT_RANDOM"), &packets);
        let cut = (whole.len() as f64 * cut) as usize;
        match read(&whole[..cut]) {
            Ok(capture) => {
                let all = read_again(&packets);
                prop_assert_eq!(&capture.packets[..], &all[..capture.packets.len()]);
            }
            Err(error) => {
                let told = error.to_string();
                prop_assert!(!told.contains('\n') && !told.is_empty());
                // Not before its interfaces are there.
                prop_assert!(cut < 400, "{} of {}: {}", cut, whole.len(), told);
            }
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused_in_a_line(
        packets in packets(), at in any::<prop::sample::Index>(), byte in any::<u8>(), noise in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        let mut file = written(&about("what", ""), &packets);
        let place = at.index(file.len());
        file[place] = byte;
        for bytes in [&file, &noise] {
            if let Err(error) = read(&bytes[..]) {
                prop_assert!(!error.to_string().contains('\n'));
            }
        }
    }
}

#[test]
fn what_is_no_capture_says_what_it_is() {
    let told = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
    for bytes in [
        &b""[..],
        b"\x0a\x0d\x0d",
        b"hello, this is text, not packets",
    ] {
        assert_eq!(told(bytes), "it is no pcapng file");
    }
    // A section and an interface of somebody else's.
    let file = written(&about("", ""), &[]);
    let foreign = replace(
        &replace(&file, b"delivered", b"delivexxx"),
        b"sent by",
        b"sent up",
    );
    assert_eq!(
        told(&foreign),
        "it has no packets of both sides of a link, with interfaces called \"sent by the client\" and so on: \
         `lastbyte compare --capture 1` makes one that has"
    );
    let mut damaged = file.clone();
    let second = u32::from_le_bytes(*file[4..].first_chunk().unwrap()) as usize;
    damaged[second + 4] = 0xff;
    assert_eq!(told(&damaged), format!("it is damaged at byte {second}"));
}

fn replace(bytes: &[u8], what: &[u8], by: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    while let Some(place) = bytes.windows(what.len()).position(|window| window == what) {
        bytes[place..place + what.len()].copy_from_slice(by);
    }
    bytes
}

#[test]
fn a_block_that_claims_to_be_huge_takes_no_memory() {
    let mut file = written(&about("", ""), &[]);
    file.extend(6_u32.to_le_bytes());
    file.extend(0x7fff_fff0_u32.to_le_bytes());
    file.extend([0; 4]);
    assert!(matches!(read(&*file), Err(ReadError::Damaged(_))));
}

#[test]
fn a_packet_of_no_interface_is_damage() {
    let mut file = written(&about("", ""), &[]);
    let before = file.len();
    // Four interfaces are described, and no fifth.
    for interface in [3_u32, 4] {
        file.extend(6_u32.to_le_bytes());
        file.extend(36_u32.to_le_bytes());
        file.extend(interface.to_le_bytes());
        for word in [0_u32, 0, 2, 2] {
            file.extend(word.to_le_bytes());
        }
        file.extend(b"hi\0\0");
        file.extend(36_u32.to_le_bytes());
        match interface {
            3 => assert_eq!(read(&*file).unwrap().packets.len(), 1),
            _ => assert_eq!(
                read(&*file).unwrap_err().to_string(),
                format!("it is damaged at byte {}", before + 36)
            ),
        }
    }
}

#[test]
fn a_big_endian_file_is_read_too() {
    let block = |kind: u32, body: &[u8]| {
        let length = (body.len() + 12) as u32;
        let mut block = kind.to_be_bytes().to_vec();
        block.extend(length.to_be_bytes());
        block.extend(body);
        block.extend(length.to_be_bytes());
        block
    };
    let option = |code: u16, value: &[u8]| {
        let mut option = code.to_be_bytes().to_vec();
        option.extend((value.len() as u16).to_be_bytes());
        option.extend(value);
        option.resize(option.len().next_multiple_of(4), 0);
        option
    };
    let mut file = block(
        0x0a0d_0d0a,
        &[&[0x1a, 0x2b, 0x3c, 0x4d, 0, 1, 0, 0][..], &[0xff; 8]].concat(),
    );
    let name = option(2, Point::SentByServer.name().as_bytes());
    file.extend(block(
        1,
        &[
            &[0, 101, 0, 0, 0, 0, 0, 0][..],
            &name,
            &option(9, &[3]),
            &[0; 4],
        ]
        .concat(),
    ));
    let packet = [
        &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 2, 0, 0, 0, 2][..],
        b"hi\0\0",
    ];
    file.extend(block(6, &packet.concat()));
    let capture = read(&*file).unwrap();
    let packet = Packet::whole(
        Time(5_000_000),
        Point::SentByServer,
        Fate::Carried,
        b"hi".to_vec(),
    );
    assert_eq!(capture.packets, [(packet, Vec::new())]);
}

/// A packet that begins a connection.
fn begins(at: u64) -> (Packet, Option<String>) {
    let mut bytes = vec![0; 40];
    bytes[0] = 0x45;
    bytes[3] = 40;
    bytes[9] = 6;
    bytes[12..16].copy_from_slice(&[198, 18, 0, 1]);
    bytes[16..20].copy_from_slice(&[198, 19, 0, 1]);
    bytes[20..24].copy_from_slice(&[0x4e, 0x20, 0x01, 0xbb]);
    bytes[32] = 0x50;
    bytes[33] = TcpPacket::SYN;
    let packet = Packet::whole(Time(at), Point::ALL[0], Fate::Carried, bytes);
    (packet, Some("connection 0".to_owned()))
}

#[test]
fn several_captures_in_one_are_refused() {
    let read = |files: &[(&str, u64)]| {
        let files = files.iter();
        let files: Vec<u8> = files
            .flat_map(|(comment, at)| written(&about(comment, ""), &[begins(*at)]))
            .collect();
        super::read(files.as_slice())
    };
    assert_eq!(read(&[("one", 5)]).unwrap().packets.len(), 1);
    // Somebody cut it at a second's end, and put it together.
    assert_eq!(
        read(&[("one", 5), ("one", 1_000_000_005)])
            .unwrap()
            .packets
            .len(),
        2
    );
    for files in [[("one", 5), ("two", 7)], [("one", 5), ("one", 5)]] {
        let refused = read(&files).unwrap_err();
        assert!(matches!(refused, ReadError::Merged), "{refused}");
    }
    let merged = "File created by merging: \nFile1: one.pcapng";
    assert!(matches!(read(&[(merged, 5)]), Err(ReadError::Merged)));
}
