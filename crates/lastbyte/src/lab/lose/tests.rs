#![allow(clippy::unwrap_used)]

use std::time::Duration;

use super::*;
use lastbyte_capture::Fate;

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
