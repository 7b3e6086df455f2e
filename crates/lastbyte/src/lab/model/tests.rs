#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use lastbyte_exchange::{AddressValidation, Handshake, HandshakeFlight};
use lastbyte_flights::quic::{ServerFlight, initials};
use lastbyte_link::{Bytes, Direction, Link, Side};
use lastbyte_pki::Store;
use lastbyte_sizes::{MessageSizes, quic};
use lastbyte_tls::observer::Message;

use super::*;
use lastbyte_flights::Compute;

use crate::explain;
use crate::lab::PreparedArm;
use crate::results::{
    Cause, EarlyData, Exchange, FailureKind, Outcome, Resumption, expected, quic_flights,
};
use crate::study::{
    Arm, Cell, Congestion, Experiment, Gso, MtuDiscovery, Preset, Quic, RecordSize,
};

fn prepared(arm: &str) -> PreparedArm {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let store = Store::open(target.join("test-chains"));
    PreparedArm::new(arm.parse().unwrap(), &store).unwrap()
}

fn cell(data: u64, direction: Direction) -> Cell {
    Cell {
        link: Link::symmetric(Duration::from_millis(100), direction),
        data: Bytes(data),
        ..Cell::default()
    }
}

fn rows(arm: &str, cell: &Cell, count: u32) -> Vec<Row> {
    let arm = prepared(arm);
    let experiment = Experiment::new(vec![arm.arm.clone()], vec![cell.clone()], count);
    (0..count)
        .map(|index| connection(&arm, cell, &experiment, index, None).row)
        .collect()
}

const ECDSA: &str = "X25519MLKEM768/ecdsa-p256/transport=quic";
const ML_DSA: &str = "X25519MLKEM768/ml-dsa-65/transport=quic";

fn ms(milliseconds: u64) -> Option<Duration> {
    Some(Duration::from_millis(milliseconds))
}

#[test]
fn a_row_has_what_was_on_the_wire_and_no_connect_time() {
    let [row] = &rows(ML_DSA, &cell(1000, Direction::default()), 1)[..] else {
        panic!("one was measured");
    };
    assert_eq!(row.outcome, Outcome::Completed);
    assert_eq!((row.times.connect, row.times.handshake), (None, ms(200)));
    assert_eq!(row.times.ttfb, ms(300));
    assert_eq!(row.times.ttlb, ms(300));
    // The server has it half a round trip later.
    assert_eq!(row.times.server_handshake, ms(250));
    let bytes = |message| row.exchange.handshake.messages.get(message);
    assert_eq!(bytes(Message::ServerHello), Some(1178));
    assert_eq!(bytes(Message::ClientFinished), Some(52));
    assert_eq!(row.exchange.negotiated.group, Some(0x11ec));
    assert_eq!(row.exchange.negotiated.certificates, Some(2));
    // Two Initials of 1200 bytes.
    assert_eq!(
        row.exchange.wire_bytes(HandshakeFlight::ClientHello),
        Some(2400)
    );
    assert_eq!(
        row.exchange
            .transport
            .quic()
            .unwrap()
            .client_hello_datagrams,
        Some(2)
    );
    let [client, server] = row.transport.quic().map(Option::unwrap);
    assert!(client.datagrams > 2 && client.unvalidated_bytes.is_none());
    // Three times what it had, in whole datagrams, and then a round trip of waiting.
    assert_eq!(server.credited_bytes.unwrap() % 1200, 0);
    assert!(server.unvalidated_bytes.unwrap() >= 3 * 2400);
    assert_eq!(server.blocked_by_credit, ms(100));
    assert_eq!(
        (server.counted.unwrap().lost, client.counted.unwrap().lost),
        (0, 0)
    );
}

/// Whichever stack is the TLS of either end.
#[cfg(feature = "rustls")]
#[test]
fn stacks_share_what_is_on_the_wire() {
    let cell = cell(1000, Direction::default());
    let row = |options: &str| rows(&format!("{ML_DSA}{options}"), &cell, 1).remove(0);
    let openssl = row("");
    for options in [
        "/stack=rustls",
        "/client_stack=rustls",
        "/stack=rustls/client_stack=openssl",
    ] {
        let own = row(options);
        assert_eq!(own.outcome, Outcome::Completed, "{options}");
        assert_eq!(own.times.ttlb, ms(300), "{options}");
        let of_server = |row: &Row| {
            [
                Message::ServerHello,
                Message::Certificate,
                Message::CertificateVerify,
            ]
            .map(|message| row.exchange.handshake.messages.get(message))
        };
        assert_eq!(of_server(&own), of_server(&openssl), "{options}");
        assert!(
            rows(&format!("{ML_DSA}{options}"), &cell, 1) == [own],
            "{options}"
        );
    }
    let bytes = |options: &str| {
        let row = row(options);
        assert_eq!(row.outcome, Outcome::Completed, "{options}");
        row.exchange.handshake.messages.get(Message::Certificate)
    };
    let whole = bytes("/stack=rustls");
    // Only rustls has these.
    let smaller = ["compressed", "abridged"];
    for delivery in smaller {
        assert!(
            bytes(&format!("/stack=rustls/delivery={delivery}")) < whole,
            "{delivery}"
        );
    }
    let resumed = row("/stack=rustls/resume=ticket");
    assert_eq!(resumed.times.handshake, ms(100));
    assert_eq!(
        resumed.exchange.negotiated.resumption,
        lastbyte_exchange::Resumption::Resumed
    );
}

#[test]
fn two_runs_have_the_same_rows() {
    let direction = Direction {
        loss: "3%".parse().unwrap(),
        rate: Some("10mbit".parse().unwrap()),
        ..Direction::default()
    };
    for arm in [ECDSA, ML_DSA] {
        let cell = cell(50 << 10, direction.clone());
        assert!(rows(arm, &cell, 20) == rows(arm, &cell, 20), "{arm}");
    }
}

#[test]
fn each_congestion_control_carries_every_byte() {
    for congestion in Congestion::ALL {
        let cell = Cell {
            congestion,
            requests: 3,
            upload: Bytes(5000),
            think: Duration::from_millis(7),
            ..cell(100_000, Direction::default())
        };
        for row in rows(ECDSA, &cell, 2) {
            assert_eq!(row.outcome, Outcome::Completed, "{congestion}");
            let requests = row.times.ttlb.unwrap() - row.times.handshake.unwrap();
            assert!(
                requests > Duration::from_millis(314),
                "{congestion}: {requests:?}"
            );
        }
    }
}

#[test]
fn a_body_without_a_response_ends_at_the_server() {
    let cell = Cell {
        upload: Bytes(100),
        ..cell(0, Direction::default())
    };
    for row in rows(ECDSA, &cell, 1) {
        assert_eq!(row.times.ttfb, None);
        assert_eq!(row.times.ttlb, ms(150));
    }
}

#[test]
fn a_handshake_alone_ends_with_it() {
    for row in rows(ECDSA, &cell(0, Direction::default()), 1) {
        assert_eq!(row.times.ttlb, ms(100));
        assert_eq!(row.outcome, Outcome::Completed);
    }
}

#[test]
fn a_resumed_session_and_a_proved_client_are_seen() {
    let resumed = format!("{ML_DSA}/resume=ticket");
    for row in rows(&resumed, &cell(1000, Direction::default()), 3) {
        assert_eq!(row.times.handshake, ms(100));
        assert_eq!(row.exchange.bytes(Message::Certificate), 0);
        assert_eq!(
            row.exchange.negotiated.resumption,
            crate::results::Resumption::Resumed
        );
    }
    let mutual = format!("{ECDSA}/mutual=ecdsa-p256");
    for row in rows(&mutual, &cell(1000, Direction::default()), 1) {
        assert!(row.exchange.client_certificate_bytes() > 0);
        assert_eq!(row.outcome, Outcome::Completed);
    }
}

#[test]
fn early_data_is_answered_in_one_round_trip() {
    let rustls = [
        format!("{ECDSA}/client_stack=rustls"),
        format!("{ML_DSA}/stack=rustls"),
    ];
    for arm in [ECDSA, ML_DSA].map(str::to_owned).into_iter().chain(rustls) {
        let early = format!("{arm}/resume=0rtt");
        for row in rows(&early, &cell(1000, Direction::default()), 3) {
            assert_eq!(row.outcome, Outcome::Completed);
            let negotiated = &row.exchange.negotiated;
            assert_eq!(negotiated.early_data, EarlyData::Accepted);
            assert_eq!(negotiated.resumption, Resumption::Resumed);
            assert_eq!(row.times.handshake, ms(100));
            assert_eq!(row.times.ttfb, ms(100));
            // It leaves with the ClientHello, in the room that this leaves.
            let first = row.exchange.wire_bytes(HandshakeFlight::ClientHello);
            assert_eq!(first, Some(2400));
        }
    }
    // One that is larger takes datagrams of its own; one without a response ends at the server.
    let early = format!("{ECDSA}/resume=0rtt");
    let upload = Cell {
        upload: Bytes(3000),
        ..cell(0, Direction::default())
    };
    for row in rows(&early, &upload, 1) {
        assert_eq!(row.times.ttlb, ms(50));
        let first = row.exchange.wire_bytes(HandshakeFlight::ClientHello);
        assert!(first.unwrap() > 2400 + 2000, "{first:?}");
    }
    for row in rows(&early, &cell(0, Direction::default()), 1) {
        assert_eq!(row.times.ttlb, ms(100));
    }
}

#[test]
fn a_retry_costs_a_round_trip_and_lifts_the_limit_and_a_token_costs_none() {
    let cell = Cell {
        initcwnd: 40,
        ..cell(1000, Direction::default())
    };
    let first = |arm: &str| -> Row {
        let mut rows = rows(arm, &cell, 2);
        assert!(
            rows.iter().all(|row| row.outcome == Outcome::Completed),
            "{arm}"
        );
        rows.remove(0)
    };
    let quic = |row: &Row| row.exchange.transport.quic().unwrap();
    let none = first(ML_DSA);
    assert_eq!(none.times.handshake, ms(200));
    assert_eq!(
        (quic(&none).address_validation, quic(&none).token_bytes),
        (None, None)
    );
    let known = |known: AddressValidation| {
        let row = first(&format!("{ML_DSA}/address_validation={known}"));
        assert_eq!(quic(&row).address_validation, Some(known));
        let [_, server] = row.transport.quic().map(Option::unwrap);
        assert_eq!(server.blocked_by_credit, Some(Duration::ZERO));
        assert_eq!(
            (server.counted.unwrap().probes, server.counted.unwrap().lost),
            (0, 0)
        );
        // Ten datagrams leave at once, and the others as the pacer lets them: of 40 in 1.25 times 333 ms.
        let pace = Duration::from_micros(66_600);
        assert!(
            server.counted.unwrap().blocked_by_pacer.abs_diff(pace) < Duration::from_millis(1),
            "{server:?}"
        );
        assert_eq!(server.counted.unwrap().blocked_by_window, Duration::ZERO);
        (row, server)
    };
    let (token, _) = known(AddressValidation::Token);
    assert_eq!(token.times.handshake.unwrap().as_millis(), 166);
    assert_eq!(quic(&token).token_bytes, Some(46));
    assert_eq!(quic(&token).client_hello_datagrams, Some(2));
    let (retry, server) = known(AddressValidation::Retry);
    assert_eq!(retry.times.handshake.unwrap().as_millis(), 266);
    assert_eq!(quic(&retry).token_bytes, Some(57));
    // It says hello twice, and each of the first two datagrams has a Retry packet for an answer.
    assert_eq!(quic(&retry).client_hello_datagrams, Some(4));
    assert_eq!(
        (server.unvalidated_bytes, server.credited_bytes),
        (Some(192), Some(2400))
    );
    assert_eq!(
        retry.exchange.bytes(Message::ClientHello),
        none.exchange.bytes(Message::ClientHello)
    );
}

/// A client acknowledges every second packet at once, and the last of an odd number after the delay: it is the server that sees it.
#[test]
fn acknowledgements_come_as_late_as_ends_ask_each_other() {
    let waited = |ack_delay: Duration| {
        let quic = Quic {
            ack_delay,
            ..Quic::default()
        };
        let cell = Cell {
            quic,
            requests: 3,
            think: Duration::from_millis(500),
            ..cell(500, Direction::default())
        };
        let row = rows(ECDSA, &cell, 1).remove(0);
        assert_eq!(row.outcome, Outcome::Completed);
        row.transport.quic()[1].unwrap().counted.unwrap().rtt
    };
    let rtts = [1, 25, 80].map(|delay| waited(Duration::from_millis(delay)));
    assert!(rtts[0] <= rtts[1] && rtts[1] <= rtts[2], "{rtts:?}");
}

#[test]
fn what_a_path_does_not_hold_is_lost_and_ends_fall_back() {
    let near = |client_datagram, server_datagram, mtu_discovery| Cell {
        link: Link::symmetric(Duration::from_millis(1), Direction::default()),
        quic: Quic {
            client_datagram,
            server_datagram,
            initial_rtt: Duration::from_millis(1),
            mtu_discovery,
            ..Quic::default()
        },
        ..cell(0, Direction::default())
    };
    // A timer is noticed a microsecond later.
    let handshake = |arm, cell: &Cell| {
        let row = rows(arm, cell, 1).remove(0);
        assert_eq!(row.outcome, Outcome::Completed);
        row.times.handshake.unwrap().as_millis()
    };
    let classical = "x25519/ecdsa-p256/intermediates=0/transport=quic";
    let large = "X25519MLKEM768/ecdsa-p256/intermediates=0/transport=quic";
    // Initials of quinn are padded to 1200 bytes alone, so what fits those is not lost.
    let both = near(8912, 8912, MtuDiscovery::On);
    assert_eq!(handshake(classical, &both), 1);
    assert_eq!(handshake(large, &both), 8);
    // s2n-quic PR #3299 has 5 ms, too.
    assert_eq!(handshake(large, &near(1422, 8912, MtuDiscovery::On)), 5);
    // Where the path holds all, nothing is lost.
    let mut wide = near(8912, 8912, MtuDiscovery::Off);
    wide.hosts.mtu = "9000".parse().unwrap();
    assert_eq!(handshake(large, &wide), 1);
    // Larger ones are searched for once the handshake is complete, up to what quinn does.
    let largest = |mtu_discovery| {
        let cell = Cell {
            data: Bytes(500_000),
            ..near(1200, 1200, mtu_discovery)
        };
        let arm = prepared(ECDSA);
        let experiment = Experiment::new(vec![arm.arm.clone()], vec![cell.clone()], 1);
        let carried = connection(&arm, &cell, &experiment, 0, None);
        assert_eq!(carried.row.times.handshake, ms(1));
        carried.datagrams.iter().map(|sent| sent.bytes).max()
    };
    assert_eq!(largest(MtuDiscovery::Off), Some(1200));
    assert_eq!(largest(MtuDiscovery::On), Some(1452));
}

#[test]
fn a_window_that_is_full_and_a_pacer_are_told_apart_and_probes_are_counted() {
    // Without credit's limit a window of 10 holds back what is more than nine datagrams, for a round trip.
    let token = format!("{ML_DSA}/address_validation=token");
    for row in rows(&token, &cell(1000, Direction::default()), 1) {
        let [client, server] = row.transport.quic().map(Option::unwrap);
        assert_eq!(row.times.handshake, ms(200));
        assert_eq!(Some(server.counted.unwrap().blocked_by_window), ms(100));
        assert_eq!(server.counted.unwrap().blocked_by_pacer, Duration::ZERO);
        assert_eq!(
            client.counted.unwrap().blocked_by_window + client.counted.unwrap().blocked_by_pacer,
            Duration::ZERO
        );
    }
    // What the server waits for credit is neither.
    for row in rows(ML_DSA, &cell(1000, Direction::default()), 1) {
        let [_, server] = row.transport.quic().map(Option::unwrap);
        assert_eq!(server.blocked_by_credit, ms(100));
        assert_eq!(
            server.counted.unwrap().blocked_by_window + server.counted.unwrap().blocked_by_pacer,
            Duration::ZERO
        );
    }
    // All is lost: the client alone asks again and again.
    let direction = Direction {
        loss: "100%".parse().unwrap(),
        ..Direction::default()
    };
    for row in rows(ECDSA, &cell(1000, direction), 1) {
        let [client, _] = row.transport.quic();
        let client = client.unwrap();
        // All that it sends but the two of its hello.
        assert_eq!(
            client.counted.unwrap().probes,
            client.datagrams - 2,
            "{client:?}"
        );
        assert!(client.counted.unwrap().probes > 4, "{client:?}");
    }
}

#[test]
fn a_link_that_loses_all_ends_by_the_timer_of_idleness() {
    let direction = Direction {
        loss: "100%".parse().unwrap(),
        ..Direction::default()
    };
    for row in rows(ECDSA, &cell(1000, direction), 1) {
        let Outcome::Failed { cause, reason } = &row.outcome else {
            panic!("{:?}", row.outcome);
        };
        assert_eq!(*cause, Cause::Client(FailureKind::Idle));
        assert_eq!(reason, "client: nothing came any more");
    }
}

#[test]
fn a_timeout_comes_before_that() {
    let arm = prepared(ECDSA);
    let cell = cell(1000, Direction::default());
    let experiment = Experiment {
        timeout: Duration::from_millis(120),
        ..Experiment::new(vec![arm.arm.clone()], vec![cell.clone()], 1)
    };
    let row = connection(&arm, &cell, &experiment, 0, None).row;
    assert_eq!(row.outcome, Outcome::TimedOut);
    assert_eq!(row.times.handshake, ms(100));
}

#[test]
fn what_is_of_tcp_is_refused_with_the_hint() {
    let refused = |change: fn(&mut Cell)| {
        let mut cell = cell(1000, Direction::default());
        change(&mut cell);
        let arms = vec![ECDSA.parse().unwrap()];
        check(&Study::single("test", Experiment::new(arms, vec![cell], 1))).unwrap_err()
    };
    for (error, what) in [
        (refused(|cell| cell.gso = Gso::On), "gso is TCP's"),
        (
            refused(|cell| cell.hosts.mtu = "1227".parse().unwrap()),
            "1228 does",
        ),
        (
            refused(|cell| cell.hosts.receive_buffer = "64KiB".parse().unwrap()),
            "receive_buffer is TCP's",
        ),
        (
            refused(|cell| cell.hosts.writes = "4322B".parse().unwrap()),
            "writes is TCP's",
        ),
        (
            refused(|cell| cell.preset = Preset::Published2024),
            "the preset",
        ),
    ] {
        assert!(error.contains(what), "{error}");
    }
    for (key, what) in [
        ("record_size=1000", "record_size"),
        ("flush=native", "flush"),
        ("client_hello_split=10B", "client_hello_split"),
        ("server=nginx", "server"),
        ("stack=s2n-tls", "stack"),
        ("delivery=pqtls-ad", "delivery"),
    ] {
        let error = format!("{ECDSA}/{key}")
            .parse::<Arm>()
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(&format!("transport=quic does not go with this {what}=")),
            "{error}"
        );
    }
}

/// Of the first packet quinn counts what is in it alone, without its tag: so the edge of credit lies 48 bytes lower than three
/// times what was received.
#[test]
fn a_tag_is_no_credit() {
    for (datagram, trips) in [(1200, 2), (1209, 2), (1216, 2), (1217, 1), (1472, 1)] {
        let mut cell = cell(0, Direction::default());
        cell.quic.client_datagram = datagram;
        let arm = "X25519MLKEM768/ecdsa-p256:6500B/transport=quic";
        let [row] = &rows(arm, &cell, 1)[..] else {
            panic!("one was measured");
        };
        let handshake = row.times.handshake.unwrap();
        let [_, server] = row.transport.quic().map(Option::unwrap);
        assert_eq!(
            handshake.as_millis() / 100,
            trips,
            "{datagram}: {handshake:?}"
        );
        // What waited may be what comes after the handshake.
        let blocked = server.blocked_by_credit.unwrap();
        assert!(
            trips == 1 || blocked >= Duration::from_millis(100),
            "{datagram}: {blocked:?}"
        );
        let expected = expected(
            &row.exchange,
            &cell,
            RecordSize::default(),
            Compute::default(),
        );
        assert_eq!(expected.handshake, handshake, "{datagram}");
    }
}

/// Arithmetic and the model have the same datagrams, each at the same time but for what the pacer makes of round-trip times that
/// vary.
#[test]
fn arithmetic_is_the_model_datagram_by_datagram() {
    let rates = [None, Some("1gbit"), Some("10mbit"), Some("2mbit")];
    let (mut exact, mut count) = (0, 0);
    for (group, initcwnd) in [
        ("X25519", 10),
        ("X25519MLKEM768", 10),
        ("X25519MLKEM768", 12),
        ("X25519MLKEM768", 20),
        ("X25519MLKEM768", 32),
        ("SecP384r1MLKEM1024", 10),
    ] {
        for bytes in (1400..34_000).step_by(1021) {
            let arm = prepared(&format!("{group}/ecdsa-p256:{bytes}B/transport=quic"));
            for rate in rates {
                count += 1;
                exact += u32::from(is_walked(&arm, bytes, initcwnd, rate));
            }
        }
    }
    assert!(exact * 100 > count * 99, "{exact} of {count} connections");
}

/// What a connection has on the wire is what arithmetic says of its arm, but for what varies by chance: of that, as much as arithmetic
/// says.
#[test]
fn an_arm_is_on_the_wire_what_arithmetic_has_of_it() {
    let mut lengths = BTreeSet::new();
    for arm in [
        "x25519/ecdsa-p256",
        "secp256r1/rsa-2048/intermediates=3",
        "X25519MLKEM768/ml-dsa-44",
        "X25519MLKEM768/ml-dsa-65/intermediates=0",
        "SecP256r1MLKEM768/ml-dsa-87/scts=2",
        "SecP384r1MLKEM1024/ecdsa-p384/root=sent",
        "MLKEM1024/fn-dsa-512",
        "X25519MLKEM768/ml-dsa-44/key_share=X25519MLKEM768+x25519",
        "X25519MLKEM768/rsa-2048:9000B/intermediates=2",
        "X25519MLKEM768/ml-dsa-65/delivery=mtc-landmark",
        "X25519MLKEM768/ml-dsa-65/delivery=elide",
        "X25519MLKEM768/ml-dsa-44/delivery=elide/signal=trust-anchors",
        "X25519MLKEM768/ml-dsa-44/address_validation=token",
        "X25519MLKEM768/ml-dsa-65/address_validation=retry",
    ] {
        let arm = format!("{arm}/transport=quic");
        let computed = explain::wire(&arm.parse().unwrap()).unwrap();
        let is_ecdsa = matches!(computed.negotiated.signature, Some(0x0403 | 0x0503));
        for row in rows(&arm, &cell(1000, Direction::default()), 8) {
            let read = row.exchange;
            let mut messages = MessageSizes::default();
            for message in Message::all() {
                let (usual, bytes) = (computed.bytes(message), read.bytes(message));
                let (less, more) = match message {
                    Message::ClientHello | Message::EncryptedExtensions => quic::RESERVED,
                    Message::CertificateVerify if is_ecdsa => (3, 1),
                    _ => (0, 0),
                };
                let span = usual.saturating_sub(less as u32)..=usual + more as u32;
                assert!(span.contains(&bytes), "{arm}, {message:?}: {usual} {bytes}");
                if message == Message::EncryptedExtensions {
                    lengths.insert(i64::from(bytes) - i64::from(usual));
                }
                let seen = read.handshake.messages.get(message);
                messages.set(message, seen);
            }
            assert_eq!(computed.negotiated, read.negotiated, "{arm}");
            // With that, each datagram is where it was measured to be.
            let cell = cell(1000, Direction::default());
            let with = Exchange {
                handshake: Handshake::of(messages),
                ..computed.clone()
            };
            let expected = expected(&with, &cell, RecordSize::default(), Compute::default());
            assert_eq!(Some(expected.handshake), row.times.handshake, "{arm}");
            assert_eq!(expected.ttfb, row.times.ttfb, "{arm}");
            let [hello, server] = [HandshakeFlight::ClientHello, HandshakeFlight::Server];
            let flights = quic_flights(&with, &cell);
            let flights: usize = flights.iter().map(ServerFlight::bytes).sum();
            assert_eq!(Some(flights as u32), read.wire_bytes(server), "{arm}");
            let [known, seen] = [&computed, &read].map(|one| one.transport.quic().unwrap());
            assert_eq!(known.address_validation, seen.address_validation, "{arm}");
            assert_eq!(known.token_bytes, seen.token_bytes, "{arm}");
            let token = known.token_bytes.unwrap_or(0) as usize;
            let hellos = initials(computed.bytes(Message::ClientHello) as usize, 1200, token);
            // Behind a Retry packet it is sent a second time.
            let times = match known.address_validation {
                Some(AddressValidation::Retry) => 2,
                Some(AddressValidation::Token) | None => 1,
            };
            assert_eq!(
                Some(times * 1200 * hellos as u32),
                read.wire_bytes(hello),
                "{arm}"
            );
        }
    }
    // All of the span is in use.
    let (least, most) = (lengths.first().unwrap(), lengths.last().unwrap());
    assert!(*least <= -5 && *most >= 6, "{lengths:?}");
}

/// The same of servers that know the client's address beforehand: by nothing but the window and the pacer are they held back.
#[test]
fn arithmetic_knows_retries_and_tokens() {
    let (mut exact, mut count) = (0, 0);
    for (group, initcwnd) in [
        ("X25519", 10),
        ("X25519MLKEM768", 10),
        ("X25519MLKEM768", 20),
        ("SecP384r1MLKEM1024", 32),
    ] {
        for bytes in (1400..34_000).step_by(2042) {
            for known in ["retry", "token"] {
                let arm = format!(
                    "{group}/ecdsa-p256:{bytes}B/transport=quic/address_validation={known}"
                );
                let arm = prepared(&arm);
                for rate in [Some("1gbit"), Some("2mbit")] {
                    count += 1;
                    exact += u32::from(is_walked(&arm, bytes, initcwnd, rate));
                }
            }
        }
    }
    assert!(exact * 100 > count * 95, "{exact} of {count} connections");
}

/// The same where the server asks for another hello, of one Initial or two, and of two or three.
#[test]
fn arithmetic_knows_hello_retry_requests() {
    let arm = "X25519MLKEM768/ml-dsa-44/key_share=x25519/transport=quic";
    let computed = explain::wire(&arm.parse().unwrap()).unwrap();
    for row in rows(arm, &cell(1000, Direction::default()), 4) {
        let reserved =
            |message| i64::from(row.exchange.bytes(message)) - i64::from(computed.bytes(message));
        let by_chance = reserved(Message::ClientHello);
        assert!((-7..=8).contains(&by_chance), "{by_chance}");
        assert_eq!(reserved(Message::SecondClientHello), by_chance);
        for message in [
            Message::HelloRetryRequest,
            Message::ServerHello,
            Message::Certificate,
        ] {
            assert_eq!(reserved(message), 0, "{message:?}");
        }
    }
    let (mut exact, mut count) = (0, 0);
    for (group, share, initcwnd) in [
        ("X25519", "secp256r1", 10),
        ("X25519MLKEM768", "x25519", 10),
        ("X25519", "X25519MLKEM768", 20),
        ("SecP384r1MLKEM1024", "X25519MLKEM768", 10),
    ] {
        for bytes in (1400..34_000).step_by(4084) {
            for known in ["", "/address_validation=retry", "/address_validation=token"] {
                let arm =
                    format!("{group}/ecdsa-p256:{bytes}B/key_share={share}/transport=quic{known}");
                let arm = prepared(&arm);
                for rate in [None, Some("2mbit")] {
                    count += 1;
                    exact += u32::from(is_walked(&arm, bytes, initcwnd, rate));
                }
            }
        }
    }
    assert!(exact * 100 > count * 95, "{exact} of {count} connections");
}

/// The first byte of what answers early data is there with the server's last message, or behind it.
#[test]
fn arithmetic_knows_early_data() {
    // Where the request does not join the ClientHello, or the response the first flight, arithmetic says that it does not know.
    for group in ["X25519", "X25519MLKEM768"] {
        for known in ["", "/address_validation=retry", "/address_validation=token"] {
            let arm = format!("{group}/ecdsa-p256/transport=quic/resume=0rtt{known}");
            let arm = prepared(&arm);
            for (size, rate) in (0..).zip([None, Some("10mbit"), Some("2mbit"), Some("2mbit")]) {
                is_walked(&arm, size, 10, rate);
            }
        }
    }
}

/// Holds the arithmetic of a connection to the model, with datagrams whose sizes are by a number. Whether its times are the same to the
/// nanosecond.
fn is_walked(arm: &PreparedArm, number: usize, initcwnd: u32, rate: Option<&str>) -> bool {
    let near = |one: Duration, other: Duration| one.abs_diff(other) <= one / 1000;
    let direction = Direction {
        rate: rate.map(|rate| rate.parse().unwrap()),
        ..Direction::default()
    };
    let quic = Quic {
        client_datagram: [1200, 1250][number % 2],
        server_datagram: [1200, 1252, 1350, 1472][number % 4],
        ..Quic::default()
    };
    let cell = Cell {
        initcwnd,
        quic,
        ..cell(300, direction)
    };
    let what = format!("{} {number} {initcwnd} {rate:?}", arm.arm.name);
    let experiment = Experiment::new(vec![arm.arm.clone()], vec![cell.clone()], 1);
    let carried = connection(arm, &cell, &experiment, number as u32, None);
    let row = &carried.row;
    assert_eq!(row.outcome, Outcome::Completed, "{what}");
    let computed = expected(
        &row.exchange,
        &cell,
        arm.arm.record_size,
        Compute::default(),
    );
    let (handshake, ttfb) = (row.times.handshake.unwrap(), row.times.ttfb.unwrap());
    assert!(
        near(computed.handshake, handshake),
        "{what}: {handshake:?} {computed:?}"
    );
    assert!(
        near(computed.ttfb.unwrap(), ttfb),
        "{what}: {ttfb:?} {computed:?}"
    );
    assert_eq!(computed.beyond(computed.ttfb.unwrap()), None, "{what}");
    let walked = walked(row, &cell);
    for side in [Side::Client, Side::Server] {
        let sent = carried.datagrams.iter().filter(|one| one.sender == side);
        let walked = walked.iter().filter(|one| one.sender == side);
        for (place, (sent, walked)) in sent.zip(walked).enumerate() {
            let what = format!("{what}, {place}: {sent:?} {walked:?}");
            assert_eq!(sent.bytes, walked.bytes, "{what}");
            assert!(
                near(Duration::from_nanos(sent.sent.0), walked.sent),
                "{what}"
            );
        }
    }
    computed.handshake == handshake && computed.ttfb == Some(ttfb)
}

fn walked(row: &Row, cell: &Cell) -> Vec<lastbyte_flights::quic::Datagram> {
    let path = lastbyte_flights::Path {
        link: cell.link.clone(),
        server_initcwnd: cell.initcwnd,
        quic: lastbyte_flights::QuicPath {
            client_datagram: cell.quic.client_datagram.into(),
            server_datagram: cell.quic.server_datagram.into(),
            initial_rtt: cell.quic.initial_rtt,
            ..Default::default()
        },
        ..Default::default()
    };
    let is_early = row.exchange.negotiated.early_data == EarlyData::Accepted;
    let messages = lastbyte_flights::quic::Messages {
        early_response: if is_early { cell.data.0 as usize } else { 0 },
        ..lastbyte_flights::quic::Messages::of(&row.exchange)
    };
    lastbyte_flights::quic::walk(messages, &path).datagrams
}

/// docs/quic.md has this.
#[test]
fn a_lost_datagram_costs_what_quinn_makes_of_it() {
    let losses = |arm: &str| {
        let arm = prepared(arm);
        let cell = cell(1000, Direction::default());
        let experiment = Experiment::new(vec![arm.arm.clone()], vec![cell.clone()], 1);
        lose(&arm, &cell, &experiment, &AtomicBool::new(false)).unwrap()
    };
    let never = |losses: &crate::results::Losses| -> Vec<(Side, u32, String)> {
        let lost = losses.lost.iter().filter(|lost| lost.handshake().is_none());
        lost.map(|lost| (lost.sender, lost.number, lost.carries.clone()))
            .collect()
    };
    let pq = losses(ML_DSA);
    let beginning = "the beginning of ServerHello".to_owned();
    assert_eq!(never(&pq), [(Side::Server, 2, beginning)]);
    assert_eq!(pq.whole.times.handshake, ms(200));
    let added = |side, number| {
        let mut lost = pq.lost.iter();
        let lost = lost.find(|lost| (lost.sender, lost.number) == (side, number));
        lost.and_then(|lost| pq.added(lost))
            .map(|added| added.as_millis())
    };
    assert_eq!(added(Side::Client, 1), Some(112));
    assert_eq!(added(Side::Client, 2), Some(300));
    assert_eq!(added(Side::Server, 3), Some(450));
    assert_eq!(added(Side::Server, 4), Some(100));
    // A classical chain leaves room in the window: nothing is beyond recovery.
    assert_eq!(never(&losses(ECDSA)), []);
    let last = pq.lost.last().unwrap();
    assert_eq!(
        (last.sender, &*last.carries),
        (Side::Client, "client Finished")
    );
}
