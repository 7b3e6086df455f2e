#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::Path;
use std::time::Duration;

use lastbyte_link::{Direction, Link};
use lastbyte_pki::Store;

use super::*;
use crate::lab::model::ends::{Carried, connection};

const ECDSA: &str = "X25519MLKEM768/ecdsa-p256/transport=quic";

/// The first handshake of an arm over such a path.
fn carried(arm: &str, rtt: Duration) -> Carried {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let store = Store::open(target.join("test-chains"));
    let arm = PreparedArm::new(arm.parse().unwrap(), &store).unwrap();
    let cell = Cell {
        link: Link::symmetric(rtt, Direction::default()),
        ..Cell::default()
    };
    let experiment = Experiment::new(vec![arm.arm.clone()], vec![cell.clone()], 1);
    connection(&arm, &cell, &experiment, 0, None)
}

fn told(carried: &Carried) -> Vec<(Side, String)> {
    let all = datagrams_of(&carried.observed, &carried.row.exchange.handshake.messages).into_iter();
    all.map(|(sender, _, _, carries)| (sender, carries))
        .collect()
}

/// As `ClientHello`, `a part of ClientHello`; each sender by itself.
fn of(told: &[(Side, String)], side: Side) -> Vec<&str> {
    let of_side = told.iter().filter(|(sender, _)| *sender == side);
    of_side.map(|(_, carries)| carries.as_str()).collect()
}

#[test]
fn a_second_hello_is_told_from_an_acknowledgement() {
    let arm = "X25519MLKEM768/ecdsa-p256/key_share=x25519/transport=quic";
    let told = told(&carried(arm, Duration::from_millis(100)));
    assert_eq!(
        of(&told, Side::Client)[..4],
        [
            "ClientHello",
            "the beginning of second ClientHello",
            "the end of second ClientHello",
            "an acknowledgement",
        ],
        "{told:?}"
    );
    assert_eq!(of(&told, Side::Server)[0], "HelloRetryRequest", "{told:?}");
}

/// Before a first sample of the round-trip time, a client asks again after a second (RFC 9002, 6.2.2).
#[test]
fn what_is_sent_again_says_so_and_is_no_part_of_a_flight() {
    let far = carried(ECDSA, Duration::from_millis(1500));
    let told = told(&far);
    assert_eq!(
        of(&told, Side::Client)[..4],
        [
            "the beginning of ClientHello",
            "the end of ClientHello",
            "the beginning of ClientHello again",
            "the end of ClientHello again",
        ],
        "{told:?}"
    );
    let near = carried(ECDSA, Duration::from_millis(100));
    let sent = |carried: &Carried| {
        let exchange = &carried.row.exchange;
        let flights = [HandshakeFlight::ClientHello, HandshakeFlight::Server];
        let quic = exchange.transport.quic().unwrap();
        (
            quic.client_hello_datagrams,
            flights.map(|flight| exchange.wire_bytes(flight)),
        )
    };
    assert_eq!(sent(&far), sent(&near));
    assert_eq!(sent(&near).0, Some(2));
}

#[test]
fn hellos_of_a_retry_are_no_repetition() {
    let arm = format!("{ECDSA}/address_validation=retry");
    let told = told(&carried(&arm, Duration::from_millis(100)));
    assert_eq!(of(&told, Side::Server)[..2], ["Retry", "Retry"]);
    let hello = ["the beginning of ClientHello", "the end of ClientHello"];
    assert_eq!(of(&told, Side::Client)[..4], [hello, hello].concat());
}
