#![allow(clippy::unwrap_used)]

use std::path::Path;

use lastbyte_pki::{Chain, ChainSpec, KeyAlgorithm, Store};
use lastbyte_probe::FirstAnswer;
use lastbyte_quic::Retries;
use lastbyte_tls::{Group, Stack, TlsConfig, stack};

use super::seen::seen;
use super::*;

const RTT: Duration = Duration::from_millis(40);

fn chain(algorithm: KeyAlgorithm) -> Chain {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let store = Store::open(target.join("test-chains"));
    store.chain(&ChainSpec::new(algorithm)).unwrap()
}

fn stack_of(algorithm: KeyAlgorithm) -> Arc<dyn Stack> {
    let chain = chain(algorithm);
    Arc::from(stack(&TlsConfig::new(Group::X25519MlKem768, &chain)).unwrap())
}

/// What a client notes of a connection over a link with that round trip. The server takes so long to answer what comes.
fn connection(
    stack: &Arc<dyn Stack>,
    window: u32,
    retries: Retries,
    thinks: Duration,
) -> (Vec<Passed>, End, Time) {
    let settings = |window| Settings::with_window(window, Settings::DATAGRAM);
    let client = End::client(stack.clone(), &settings(10), Kept::default(), 1, Time(0));
    let mut ends = [
        client.unwrap(),
        End::server(stack.clone(), &settings(window), retries, 2),
    ];
    let sides = [Side::Client, Side::Server];
    let mut passed = Vec::new();
    let mut under_way: Vec<(Time, usize, Vec<u8>)> = Vec::new();
    let (mut now, mut finished) = (Time(0), None);
    while now < Time(2_000_000_000) {
        let mut sent: Vec<(usize, Vec<u8>)> = Vec::new();
        if let Some(place) = under_way.iter().position(|(at, ..)| *at <= now) {
            let (_, to, datagram) = under_way.remove(place);
            if to == 0 {
                passed.push(Passed {
                    at: now,
                    sender: Side::Server,
                    datagram: datagram.clone(),
                });
            }
            sent.extend(
                ends[to]
                    .receive(now, EcnCodepoint::NotEct, &datagram)
                    .map(|answer| (to, answer)),
            );
        }
        for (index, end) in ends.iter_mut().enumerate() {
            end.on_time(now);
            let mut datagram = Vec::new();
            while end.transmit(now, &mut datagram).is_some() {
                sent.push((index, datagram.clone()));
            }
        }
        for (from, datagram) in sent {
            let thinks = if from == 1 { thinks } else { Duration::ZERO };
            under_way.push((now + RTT / 2 + thinks, 1 - from, datagram.clone()));
            if from == 0 {
                passed.push(Passed {
                    at: now,
                    sender: sides[from],
                    datagram,
                });
            }
        }
        under_way.sort_by_key(|(at, ..)| *at);
        if ends[0].is_established() && finished.is_none() {
            finished = Some(now);
        }
        if is_confirmed(&passed, &ends[0].key_log()) {
            break;
        }
        let next = under_way.first().map(|(at, ..)| *at);
        let due = ends.iter_mut().filter_map(End::deadline);
        now = due.chain(next).min().unwrap().max(now);
    }
    let [client, _] = ends;
    (passed, client, finished.unwrap())
}

/// What a probe finds of that.
fn found(algorithm: KeyAlgorithm, window: u32, retries: Retries) -> QuicSeen {
    let (passed, client, finished) =
        connection(&stack_of(algorithm), window, retries, Duration::ZERO);
    seen(&passed, &client.key_log(), Some(finished))
}

#[test]
fn flights_and_credit_are_what_came_of_the_model() {
    for (algorithm, flights, factor) in [
        (KeyAlgorithm::EcdsaP256, 1, 1.0..2.0),
        (KeyAlgorithm::MlDsa44, 2, 3.0..3.1),
        (KeyAlgorithm::MlDsa65, 2, 3.0..3.1),
        (KeyAlgorithm::MlDsa87, 2, 3.0..3.1),
    ] {
        let quic = found(algorithm, 40, Retries::Never);
        assert_eq!(quic.flights, Some(flights), "{algorithm}: {quic:?}");
        assert_eq!(quic.rtt_ms, Some(40.0), "{algorithm}");
        assert_eq!(
            quic.handshake_ms,
            Some(40.0 * flights as f64),
            "{algorithm}"
        );
        assert!(factor.contains(&quic.amplification().unwrap()), "{quic:?}");
        assert_eq!(quic.credited_bytes, 2400, "{algorithm}");
        let sent: usize = quic.server_datagrams.iter().sum();
        let left = (flights == 1).then(|| 7200 - sent);
        assert_eq!(quic.credit_left_bytes, left, "{algorithm}");
        assert_eq!((quic.hello_retry, quic.retry_token_bytes), (false, None));
        // quinn answers each Initial, and the hello has two.
        assert_eq!(quic.first_answer, Some(FirstAnswer::AckOfPart));
        assert_eq!(quic.client_datagrams[..2], [1200, 1200]);
        let bytes = chain(algorithm).certificate_message_bytes();
        assert_eq!(quic.certificate_bytes, Some(bytes));
    }
}

#[test]
fn a_retry_is_a_round_trip_and_lifts_the_limit() {
    let quic = found(KeyAlgorithm::MlDsa44, 40, Retries::Always);
    assert_eq!(quic.retry_token_bytes, Some(57));
    assert_eq!(quic.flights, Some(1), "{quic:?}");
    assert_eq!(quic.round_trips(1), 2);
    // The pacer holds back what is more than ten datagrams.
    assert!(
        quic.handshake_ms
            .is_some_and(|ms| (80.0..120.0).contains(&ms))
    );
    assert_eq!(quic.credit_left_bytes, None);
    assert!(quic.amplification().unwrap() < 0.2, "{quic:?}");
}

/// The server's time is in what it answers first, and not in what it acknowledges.
#[test]
fn the_round_trip_is_the_least() {
    let stack = stack_of(KeyAlgorithm::EcdsaP256);
    let (mut passed, client, finished) =
        connection(&stack, 10, Retries::Never, Duration::from_millis(5));
    let keys = client.key_log();
    let all = seen(&passed, &keys, Some(finished));
    assert_eq!(all.rtt_ms, Some(45.0));
    // As if the first had acknowledged the hello at once.
    let first = passed
        .iter()
        .position(|passed| passed.sender == Side::Server);
    passed[first.unwrap()].at = Time(30_000_000);
    assert_eq!(seen(&passed, &keys, Some(finished)).rtt_ms, Some(30.0));
}

#[test]
fn flights_below_a_millisecond_are_not_told_apart() {
    let (mut passed, client, finished) = connection(
        &stack_of(KeyAlgorithm::MlDsa65),
        10,
        Retries::Never,
        Duration::ZERO,
    );
    for passed in &mut passed {
        passed.at = Time(passed.at.0 / 1000);
    }
    let quic = seen(&passed, &client.key_log(), Some(Time(finished.0 / 1000)));
    assert_eq!((quic.flights, quic.credit_left_bytes), (None, None));
    assert!(quic.amplification().unwrap() > 2.0, "{quic:?}");
}

/// What was seen of a handshake that broke off anywhere.
#[test]
fn a_handshake_that_breaks_off_is_seen_as_far_as_it_went() {
    let (passed, client, _) = connection(
        &stack_of(KeyAlgorithm::MlDsa44),
        10,
        Retries::Never,
        Duration::ZERO,
    );
    let keys = client.key_log();
    for length in 0..passed.len() {
        let quic = seen(&passed[..length], &keys, None);
        assert_eq!((quic.flights, quic.handshake_ms), (None, None));
        assert!(quic.client_datagrams.is_empty());
    }
    assert!(!is_quic(&passed[..2]));
    assert!(is_quic(&passed[..4]));
    let mut garbage = passed[..2].to_vec();
    garbage.push(Passed {
        at: Time(1),
        sender: Side::Server,
        datagram: vec![0xc0; 1200],
    });
    assert!(!is_quic(&garbage));
}

#[test]
fn where_quic_is_asked_for() {
    let target: Target = "site.example:8443".parse().unwrap();
    let head = |fields: &str| {
        let text = format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
        let head = lastbyte_probe::Head::default().add(text.as_bytes());
        head.unwrap().unwrap()
    };
    let place = |wanted: WithQuic, fields: &str| {
        let place = wanted.place(&target, Some(&head(fields)));
        place.map(|place| place.map(|place| (place.port, place.named_by)))
    };
    let here = "Alt-Svc: h3=\":443\"; ma=86400\r\n";
    let named = Ok(Some((443, NamedBy::AltSvc)));
    assert_eq!(place(WithQuic::AltSvc, here), named);
    assert_eq!(place(WithQuic::Always, here), named);
    assert_eq!(place(WithQuic::Never, here), Ok(None));
    let asked = Ok(Some((8443, NamedBy::Asked)));
    for nothing in ["", "Alt-Svc: clear\r\n", "Alt-Svc: h2=\":443\"\r\n"] {
        assert_eq!(place(WithQuic::AltSvc, nothing), Ok(None), "{nothing}");
        assert_eq!(place(WithQuic::Always, nothing), asked, "{nothing}");
    }
    for (wrong, why) in [
        (
            "Alt-Svc: h3=\"alt.example:443\"\r\n",
            "probe alt.example:443",
        ),
        ("Alt-Svc: h3=:443\r\n", "at byte 3, and is not followed"),
        ("Alt-Svc: h3=\":0\"\r\n", "a port from 1 to 65535"),
    ] {
        let told = place(WithQuic::AltSvc, wrong).unwrap_err();
        assert!(told.contains(why) && !told.contains('\n'), "{told}");
        assert_eq!(place(WithQuic::Always, wrong), asked, "{wrong}");
        assert_eq!(place(WithQuic::Never, wrong), Ok(None), "{wrong}");
    }
    let nothing_came = WithQuic::AltSvc.place(&target, None);
    assert_eq!(nothing_came, Ok(None));
}
