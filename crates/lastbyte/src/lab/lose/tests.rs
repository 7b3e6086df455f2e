#![allow(clippy::unwrap_used)]

use std::time::Duration;

use lastbyte_capture::Fate;
use proptest::prelude::*;

use super::*;

#[test]
fn the_first_connection_loses_nothing_and_each_other_one_segment() {
    use Side::{Client, Server};
    let losing = Losing {
        client: 2,
        server: 3,
    };
    let lost: Vec<_> = (0..8).map(|slot| losing.of_slot(slot)).collect();
    assert_eq!(
        lost,
        [
            None,
            Some((Client, 0)),
            Some((Client, 1)),
            Some((Server, 0)),
            Some((Server, 1)),
            Some((Server, 2)),
            None,
            None
        ]
    );
    assert_eq!(losing.connections(), 6);
    assert!((0..10).all(|slot| Losing::default().of_slot(slot).is_none()));
    assert_eq!(Losing::default().connections(), 1);
}

proptest! {
    #[test]
    fn each_segment_has_a_slot_of_its_own(client in 0..50_u32, server in 0..50_u32) {
        let losing = Losing { client, server };
        for slot in 1..losing.connections() {
            let (sender, number) = losing.of_slot(slot).unwrap();
            prop_assert_eq!(losing.slot(sender, number), slot as usize);
        }
        prop_assert_eq!(losing.of_slot(losing.connections()), None);
    }

    #[test]
    fn a_guest_reads_what_is_lost(client: u32, server: u32) {
        let losing = Losing { client, server };
        prop_assert_eq!(Losing::from_bytes(losing.to_bytes()), losing);
        let _ = losing.connections();
    }
}

#[test]
fn a_segment_is_named_by_what_is_in_it() {
    let placed = |message, bytes| Placed {
        message,
        sender: Side::Server,
        bytes,
    };
    let messages = [
        placed(Message::ServerHello, 0..100),
        placed(Message::Certificate, 100..3000),
        Placed {
            message: Message::ClientHello,
            sender: Side::Client,
            bytes: 0..1000,
        },
    ];
    let sent = |offset, bytes, flags: &[Flag]| Transmission {
        sender: Side::Server,
        sent: Duration::ZERO,
        arrived: None,
        fate: Fate::Carried,
        flags: flags.to_vec(),
        offset,
        payload: vec![0; bytes],
        acknowledges: 0,
        is_selective: false,
        again: None,
        in_flight: 0,
    };
    let name = |offset, bytes, flags: &[Flag]| carries(&sent(offset, bytes, flags), &messages);
    assert_eq!(name(0, 0, &[Flag::Syn]), "SYN-ACK");
    assert_eq!(name(0, 0, &[]), "an acknowledgement");
    assert_eq!(name(3000, 0, &[Flag::Fin]), "FIN");
    assert_eq!(name(0, 100, &[]), "ServerHello");
    assert_eq!(
        name(0, 1448, &[]),
        "ServerHello, the beginning of Certificate"
    );
    assert_eq!(name(1448, 1448, &[]), "a part of Certificate");
    assert_eq!(name(2896, 1448, &[]), "the end of Certificate");
    assert_eq!(name(3000, 24, &[]), "data");
}

#[test]
fn what_only_netem_can_do_is_refused_with_the_hint() {
    let refused = |arm: &str, change: fn(&mut Cell)| {
        let mut cell = Cell::default();
        change(&mut cell);
        check(&Experiment::new(vec![arm.parse().unwrap()], vec![cell], 1))
    };
    const TCP: &str = "x25519/ecdsa-p256";
    for (arm, change, what) in [
        (
            "x25519/ecdsa-p256/server=nginx",
            (|_| ()) as fn(&mut Cell),
            "arm \"x25519/ecdsa-p256/server=nginx\": server=nginx runs over netem",
        ),
        (
            TCP,
            |cell| cell.preset = Preset::Published2024,
            "the preset published-2024 is made of netem",
        ),
        (TCP, |cell| cell.gso = Gso::On, "gso makes super-packets"),
    ] {
        let error = refused(arm, change).unwrap_err();
        assert!(error.contains(what), "{error}");
        assert!(error.ends_with("by luck alone: leave it out"), "{error}");
    }
    assert_eq!(refused(TCP, |_| ()), Ok(()));
    // QUIC's have no netem, and are refused elsewhere.
    let quic = "x25519/ecdsa-p256/transport=quic";
    assert_eq!(refused(quic, |cell| cell.gso = Gso::On), Ok(()));
}
