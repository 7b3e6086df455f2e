#![allow(clippy::unwrap_used, clippy::panic)]

use std::time::Duration;

use lastbyte_link::{Direction, Link, Loss, Probability, Rate, mix};

use proptest::prelude::*;

use crate::simulation::{Control, Server};
use crate::{Arrival, Certainty, Connection, Counters, Event, Findings, Limits, Probe};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn link(rtt: Duration, rate: Option<u64>, loss: f64) -> Link {
    Link::symmetric(
        rtt,
        Direction {
            rate: rate.and_then(Rate::from_bits_per_second),
            loss: Loss::Random(Probability::from_fraction(loss).unwrap()),
            queue: 10_000,
            ..Direction::default()
        },
    )
}

fn probe(server: &Server) -> (Findings, usize) {
    let mut probe = Probe::new(Limits::default());
    let mut made = 0;
    while let Some(ask) = probe.next() {
        probe.add(server.connect(ask, made));
        made += 1;
    }
    (probe.findings(), probe.connections().len())
}

fn server(window: u32) -> Server {
    Server {
        window,
        retry: 0,
        flight: 3000,
        tickets: 510,
        response: vec![16_406; 8],
        think: Duration::ZERO,
        control: Control::Reno,
        paced: false,
        restarts: true,
        link: link(ms(50), None, 0.0),
        seed: 1,
    }
}

#[test]
fn every_window_is_found() {
    for window in 1..=64 {
        let (findings, made) = probe(&server(window));
        let found = findings.window.unwrap();
        assert_eq!(
            (found.least, found.most),
            (window, Some(window)),
            "{findings:?}"
        );
        assert_eq!(
            found.certainty,
            Certainty::Exact,
            "{window} after {made}: {findings:?}"
        );
    }
}

/// A number from 0 to 1 of this draw.
fn draw(seed: u64, what: u64) -> f64 {
    (mix(mix(seed) ^ what) >> 11) as f64 / (1u64 << 53) as f64
}

fn between(seed: u64, what: u64, least: f64, most: f64) -> f64 {
    (least.ln() + draw(seed, what) * (most / least).ln()).exp()
}

/// A server of chance.
fn drawn(seed: u64, loss: f64) -> Server {
    let object = between(seed, 5, 1e3, 1e6) as usize;
    let rate = between(seed, 3, 1e6, 1e9);
    Server {
        window: 1 + (draw(seed, 1) * 64.0) as u32,
        retry: 0,
        flight: between(seed, 4, 1e3, 30e3) as usize + 400,
        tickets: [0, 510][usize::from(draw(seed, 7) > 0.5)],
        response: if draw(seed, 8) > 0.5 {
            vec![object]
        } else {
            let mut writes = vec![16_406; object / 16_406];
            writes.push(object % 16_406 + 1);
            writes
        },
        think: Duration::from_secs_f64(if draw(seed, 9) > 0.5 {
            0.0
        } else {
            between(seed, 10, 1e-3, 0.3)
        }),
        control: Control::Reno,
        paced: draw(seed, 11) > 0.8,
        restarts: draw(seed, 12) > 0.2,
        link: link(
            Duration::from_secs_f64(between(seed, 2, 0.005, 0.3)),
            Some(rate as u64),
            loss,
        ),
        seed,
    }
}

#[derive(Debug, Default)]
struct Score {
    exact: usize,
    /// A range that the truth is in.
    range: usize,
    uncertain: usize,
    none: usize,
    wrong: Vec<u64>,
    /// Those that send enough to fill their window: of others nobody can know it, who asks once.
    filled: usize,
    filled_exact: usize,
    rtt: usize,
    /// Rates that are told as the path's, and those of them that are not within 5 % of it.
    rates: usize,
    wrong_rates: Vec<(u64, f64)>,
    connections: usize,
}

fn score(cases: u64, loss: f64) -> Score {
    score_of(cases, |seed| drawn(seed, loss))
}

fn score_of(cases: u64, drawn: impl Fn(u64) -> Server) -> Score {
    let mut score = Score::default();
    let first = asked("LASTBYTE_PROBE_FIRST").unwrap_or_default();
    for seed in first..first + cases {
        let server = drawn(seed);
        let (findings, made) = probe(&server);
        score.connections += made;
        let least = server.link.rtt().as_secs_f64();
        let found = findings.path.unwrap().rtt.least.as_secs_f64();
        // What two SYNs take on the link belongs to the round trip.
        let rate = server.link.forward.rate.unwrap().bits_per_second() as f64;
        let truth = least + 2.0 * 8.0 * 74.0 / rate;
        score.rtt += usize::from((found / truth - 1.0).abs() < 0.02);
        // In the smallest segments that can be asked for.
        let segments = |bytes: usize| u32::try_from(bytes / 76).unwrap();
        let (flight, response) = (segments(server.flight), server.response.iter().sum());
        // Slow start makes it twice the flight, if that is more.
        let is_filled =
            flight > server.window || segments(response) > server.window.max(2 * flight);
        score.filled += usize::from(is_filled);
        if let Some(crate::RateSeen::About(found)) = findings.path.unwrap().rate {
            score.rates += 1;
            if (found / rate - 1.0).abs() > 0.05 {
                score.wrong_rates.push((seed, found / rate));
            }
        }
        let Some(window) = findings.window else {
            score.none += 1;
            continue;
        };
        let holds =
            window.least <= server.window && window.most.is_none_or(|most| server.window <= most);
        match window.certainty {
            Certainty::Uncertain => score.uncertain += 1,
            _ if !holds => score.wrong.push(seed),
            Certainty::Exact | Certainty::Likely => {
                score.exact += 1;
                score.filled_exact += usize::from(is_filled);
            }
            _ => score.range += 1,
        }
    }
    score
}

/// How many servers are drawn: `LASTBYTE_PROBE_CASES=500` is what docs/benchmarks/probes.md
/// reports. `LASTBYTE_PROBE_FIRST` draws others.
fn cases() -> u64 {
    asked("LASTBYTE_PROBE_CASES").unwrap_or(100)
}

fn asked(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn servers_of_chance_are_found_without_loss() {
    let cases = cases();
    let score = score(cases, 0.0);
    println!("{score:?}");
    assert!(score.wrong.is_empty() && score.none == 0, "{score:?}");
    assert!(score.wrong_rates.is_empty(), "{score:?}");
    assert!(score.exact as u64 * 100 >= cases * 95, "{score:?}");
    assert!(score.filled_exact * 100 >= score.filled * 98, "{score:?}");
    assert_eq!(score.rtt as u64, cases, "{score:?}");
}

#[test]
fn servers_of_chance_are_found_with_loss() {
    // The goal is of 500, and the first hundred are harder than most.
    let cases = cases().max(250);
    let score = score(cases, 0.01);
    println!("{score:?}");
    assert!(score.wrong.is_empty(), "{score:?}");
    assert!(score.wrong_rates.is_empty(), "{score:?}");
    assert!(score.exact as u64 * 100 >= cases * 80, "{score:?}");
    assert!(score.rtt as u64 * 100 >= cases * 98, "{score:?}");
}

/// Paced responses of slow start that lost packets: two of them agree on no window by its rule, and
/// by BBR's on a smaller one.
#[test]
fn what_loss_has_made_of_slow_start_is_not_told_as_bbr() {
    let server = drawn(40_696, 0.01);
    let (findings, _) = probe(&server);
    let found = findings.window.unwrap();
    let holds = found.least <= server.window && found.most.is_none_or(|most| server.window <= most);
    assert!(
        holds || found.certainty == Certainty::Uncertain,
        "{found:?}: {:?}",
        findings.looks
    );
}

/// How sure a probe of this server is, whose window is in what it reports, or it reports to be
/// uncertain.
fn certainty_without_a_wrong_window(server: &Server, window: u32) -> Certainty {
    let (findings, _) = probe(server);
    let found = findings.window.unwrap();
    let holds = found.least <= window && found.most.is_none_or(|most| window <= most);
    assert!(
        holds || found.certainty == Certainty::Uncertain,
        "{server:?}: {found:?}: {:?}",
        findings.looks
    );
    found.certainty
}

/// BBR's window grows by all that is acknowledged, used or not.
#[test]
fn windows_of_bbr_are_not_told_wrong() {
    for window in 1..=32 {
        for flight in [900, 1500, 2000, 3000, 5000, 10_000] {
            let server = Server {
                control: Control::Bbr,
                flight,
                ..server(window)
            };
            certainty_without_a_wrong_window(&server, window);
        }
    }
}

#[test]
fn servers_of_chance_with_bbr_are_not_told_wrong() {
    let cases = cases();
    let score = score_of(cases, |seed| Server {
        control: Control::Bbr,
        paced: false,
        ..drawn(seed, 0.0)
    });
    println!("{score:?}");
    assert!(score.wrong.is_empty(), "{score:?}");
    // Where nothing paced is seen, what slow start does not explain is uncertain.
    assert!(score.exact as u64 * 100 >= cases * 75, "{score:?}");
}

/// BBR's window has grown by the HelloRetryRequest when the server's flight begins, and a window of
/// one segment, which that fills, has by slow start, too.
#[test]
fn a_window_behind_a_hello_retry_request_is_the_one_before_it() {
    for control in [Control::Reno, Control::Bbr] {
        let mut exact = 0;
        for window in [1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 32] {
            for flight in [900, 3000, 10_000] {
                let server = Server {
                    control,
                    retry: 99,
                    flight,
                    ..server(window)
                };
                let certainty = certainty_without_a_wrong_window(&server, window);
                exact += usize::from(certainty == Certainty::Exact);
            }
        }
        println!("{control:?}: {exact}");
        // Where the response is over before a window of either way of growing is full, two windows
        // are left.
        assert!(exact >= 20, "{control:?}: {exact} of 36");
    }
}

#[test]
fn servers_of_chance_that_ask_for_another_group_are_not_told_wrong() {
    let cases = cases() / 4;
    for (control, loss, least) in [
        (Control::Reno, 0.0, 65),
        // Most of these answer with less than tells slow start and BBR apart, and have both windows
        // in a range.
        (Control::Bbr, 0.0, 20),
        (Control::Reno, 0.01, 30),
    ] {
        let score = score_of(cases, |seed| Server {
            retry: 99,
            control,
            paced: control == Control::Reno && drawn(seed, loss).paced,
            ..drawn(seed, loss)
        });
        println!("{control:?} {loss}: {score:?}");
        assert!(score.wrong.is_empty(), "{control:?} {loss}: {score:?}");
        let enough = score.exact as u64 * 100 >= cases * least;
        assert!(enough, "{control:?} {loss}: {score:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever is noted of a connection, nothing panics, and a range is one.
    #[test]
    fn whatever_happens_is_judged(
        connections in prop::collection::vec(any_connection(), 0..4),
        limit in 0_usize..8,
    ) {
        let mut probe = Probe::new(Limits { connections: limit });
        for connection in connections {
            probe.add(connection);
            let findings = probe.findings();
            if let Some(window) = findings.window {
                prop_assert!(window.least >= 1);
                prop_assert!(window.most.is_none_or(|most| most >= window.least));
            }
            let _ = probe.next();
        }
    }
}

fn any_connection() -> impl Strategy<Value = Connection> {
    let times = [any::<Option<u32>>(), any::<Option<u32>>()];
    let counters = (any::<u32>(), 0_u32..3, any::<u32>(), times);
    let counters = counters.prop_map(|(segments, out_of_order, retransmitted, times)| Counters {
        segments: segments >> (segments % 32),
        out_of_order,
        retransmitted,
        min_rtt: times[0].map(|rtt| Duration::from_micros(u64::from(rtt))),
        receiver_rtt: times[1].map(|rtt| Duration::from_micros(u64::from(rtt))),
    });
    let arrival = (any::<usize>(), prop::option::of(counters));
    let arrival = arrival.prop_map(|(bytes, counters)| {
        Event::Arrived(Arrival {
            bytes: bytes >> (bytes % 64),
            counters,
        })
    });
    let event = prop_oneof![
        1 => Just(Event::Connected),
        1 => any::<usize>().prop_map(Event::Hello),
        1 => any::<usize>().prop_map(Event::Finished),
        1 => any::<usize>().prop_map(Event::Request),
        1 => Just(Event::FirstByte),
        1 => Just(Event::LastByte),
        10 => arrival,
    ];
    let events = prop::collection::vec((any::<u64>(), event), 0..60);
    (any::<usize>(), any::<usize>(), events).prop_map(|(segment, headers, events)| {
        let mut at = Duration::ZERO;
        let events = events.into_iter().map(|(step, event)| {
            at = at.saturating_add(Duration::from_nanos(step >> (step % 64)));
            (at, event)
        });
        Connection {
            segment: segment >> (segment % 64),
            headers: headers >> (headers % 64),
            events: events.collect(),
        }
    })
}

mod documents {
    use lastbyte_sizes::{ChainSpec, KeyAlgorithm};
    use proptest::prelude::*;

    use crate::{Certificate, Document, DocumentError, VERSION};

    const LEAST: &str = r#"{"version": 1, "host": "example.com:443", "chain": []}"#;

    fn signed_as(key: KeyAlgorithm) -> String {
        match key.name() {
            name if name.starts_with("rsa") => "sha256WithRSAEncryption".to_owned(),
            name if name.starts_with("ecdsa") => "ecdsa-with-SHA256".to_owned(),
            name => name.to_owned(),
        }
    }

    /// What is supposed of a chain is what a chain of those keys has, to the byte.
    #[test]
    fn other_keys_make_certificates_of_their_size() {
        // Key identifiers and serial numbers have one size, whatever the key; only its use has not.
        let lengths = |key| ChainSpec::new(key).certificate_lengths().unwrap();
        for from in KeyAlgorithm::ALL {
            for to in KeyAlgorithm::ALL {
                for (index, bytes) in lengths(from).into_iter().enumerate() {
                    let certificate = Certificate {
                        algorithm: from.to_string(),
                        bytes,
                        signature: signed_as(from),
                        key_bytes: from.public_key_bytes(),
                        signature_bytes: from.signature_bytes(),
                        ..Certificate::default()
                    };
                    let expected = lengths(to)[index];
                    assert_eq!(
                        certificate.with(to, to),
                        Some(expected),
                        "{from} to {to}, {index}"
                    );
                }
            }
        }
    }

    /// Certificates of OpenSSL 3's, encoded anew by hand: of RSASSA-PSS and P-521.
    #[test]
    fn keys_and_signatures_of_other_kinds_are_replaced_to_the_byte() {
        use KeyAlgorithm::{MlDsa44, MlDsa65};
        for (algorithm, signature, bytes, key_bytes, signature_bytes, to, expected) in [
            ("ecdsa-p256", "rsassaPss", 717, 65, 256, MlDsa44, 4905),
            (
                "rsassaPss",
                "ecdsa-with-SHA256",
                677,
                270,
                138,
                MlDsa65,
                5533,
            ),
            (
                "id-ecPublicKey",
                "ecdsa-with-SHA512",
                534,
                133,
                139,
                MlDsa65,
                5523,
            ),
            (
                "ecdsa-p521",
                "ecdsa-with-SHA512",
                534,
                133,
                139,
                MlDsa65,
                5523,
            ),
        ] {
            let certificate = Certificate {
                algorithm: algorithm.to_owned(),
                bytes,
                signature: signature.to_owned(),
                key_bytes,
                signature_bytes,
                ..Certificate::default()
            };
            assert_eq!(certificate.with(to, MlDsa65), Some(expected), "{algorithm}");
        }
    }

    #[test]
    fn documents_are_read_again() {
        let document = Document::read(LEAST).unwrap();
        assert_eq!(Document::read(&document.write()).unwrap(), document);
    }

    /// Whatever a server sent, what is written of it is read again.
    #[test]
    fn what_a_probe_found_is_read_again() {
        let mut found = Document::read(LEAST).unwrap();
        let certificate = Certificate {
            bytes: 500,
            ..Certificate::default()
        };
        found.chain = vec![certificate; 150];
        found.tls.tickets = 119_700;
        found.response = Some(crate::ResponseSeen {
            first_record_wire_bytes: Some(22),
            writes: Some(crate::ResponseWrites {
                first: vec![22],
                is_certain: true,
            }),
            ..crate::ResponseSeen::default()
        });
        assert!(Document::read(&found.write()).is_err());
        let fitted = found.clone().fitted().unwrap();
        assert_eq!(Document::read(&fitted.write()).unwrap(), fitted);
        assert_eq!(fitted.chain.len(), 100);
        assert_eq!(fitted.notes.len(), 1);
        found.rtt_ms = Some(f64::NAN);
        assert!(found.fitted().is_err());
    }

    /// A peer that answers without end costs what was found over TCP nothing.
    #[test]
    fn what_came_over_quic_takes_nothing_else_along() {
        let mut found = Document::read(LEAST).unwrap();
        found.quic = Some(crate::QuicSeen {
            port: 443,
            credited_bytes: 2_458_800,
            client_datagrams: vec![1200; 5000],
            ..crate::QuicSeen::default()
        });
        let fitted = found.clone().fitted().unwrap();
        let quic = fitted.quic.clone().unwrap();
        assert_eq!((quic.port, quic.credited_bytes), (443, 0));
        let problem = quic.problem.unwrap();
        assert!(
            problem.contains("quic.credited_bytes: 2458800"),
            "{problem}"
        );
        assert_eq!(Document::read(&fitted.write()).unwrap(), fitted);
        assert_eq!(fitted.host, found.host);
    }

    #[test]
    fn what_is_no_document_is_refused() {
        let refused = |text: &str| Document::read(text).unwrap_err().to_string();
        assert_eq!(
            refused(&LEAST.replace(": 1", ": 2")),
            "version 2 is not known here: only 1 is; get a newer lastbyte, or probe again"
        );
        assert_eq!(
            refused(r#"{"host": "a.b:1"}"#),
            "no probe's: it says no \"version\": 1"
        );
        assert!(refused("{").starts_with("no JSON: "));
        assert!(refused(r#"{"version": 1}"#).starts_with("no probe's: missing field"));
        let chain = r#"[{"algorithm": "rsa-2048", "bytes": 10, "key_bytes": 270}]"#;
        assert!(
            refused(&LEAST.replace("[]", chain))
                .contains("certificate 1: 10 bytes, with parts of 270")
        );
        let host = LEAST.replace("example.com:443", "../x");
        assert!(refused(&host).contains("host"));
        let with = |part: &str| LEAST.replace("\"chain\"", &format!("{part}, \"chain\""));
        assert!(refused(&with("\"rtt_ms\": -1")).contains("rtt_ms: -1"));
        assert_eq!(
            refused(&with("\"schema\": \"lastbyte.probe/2\"")),
            "schema \"lastbyte.probe/2\" is not known here: only \"lastbyte.probe/1\" is; get a newer lastbyte, or probe again"
        );
        for (part, expected) in [
            (
                "\"tls\": {\"server_flight_wire_bytes\": 18446744073709551615}",
                "tls.server_flight_wire_bytes: 18446744073709552000 is not from 0 to 1048576",
            ),
            (
                "\"tls\": {\"certificate_bytes\": 1000000000}",
                "tls.certificate_bytes: 1000000000 is not",
            ),
            (
                "\"tls\": {\"writes\": {\"first\": [0], \"is_certain\": true}}",
                "tls.writes: 0 is not from 1 to",
            ),
            ("\"times\": {\"server_ms\": 1e300}", "times.server_ms: "),
            (
                "\"window\": {\"least\": 0, \"certainty\": \"exact\"}",
                "window.least: 0 is not above 0",
            ),
            (
                "\"window\": {\"least\": 10, \"certainty\": \"exakt\"}",
                "unknown variant `exakt`, expected one of `exact`, `likely`, `between`, `at-least`, `uncertain`",
            ),
            (
                "\"response\": {\"first_record_wire_bytes\": 20000}",
                "from 23 to 18437",
            ),
            (
                "\"response\": {\"writes\": {\"first\": [22], \"is_certain\": true}}",
                "response.writes: 22 is not from 23 to 8388608",
            ),
            (
                "\"response\": {\"writes\": {\"first\": [23,23,23,23,23,23,23,23,23,23,23,23,23], \"is_certain\": true}}",
                "response.writes: how many: 13 is not from 0 to 12",
            ),
        ] {
            assert!(
                refused(&with(part)).contains(expected),
                "{part}: {}",
                refused(&with(part))
            );
        }
        assert_eq!(VERSION, 1);
        assert_eq!(
            Document::read(&" ".repeat(5 << 20)).unwrap_err(),
            DocumentError::TooLong(5 << 20)
        );
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".*") {
            let _ = Document::read(&text);
        }

        /// Whatever a certificate says of itself, nothing overflows.
        #[test]
        fn any_certificate_is_rewritten(
            bytes in 0_usize..1 << 20,
            key in 0_usize..1 << 20,
            signature in 0_usize..1 << 20,
        ) {
            let certificate = Certificate {
                algorithm: "ed25519".to_owned(),
                bytes,
                key_bytes: key,
                signature_bytes: signature,
                ..Certificate::default()
            };
            let _ = certificate.with(KeyAlgorithm::MlDsa65, KeyAlgorithm::MlDsa65);
        }
    }
}

/// Where a SYN-ACK was lost, Linux begins with a window of one segment, on one connection or on all
/// of them: what that connection says is nothing of the server's usual window.
#[test]
fn a_connection_whose_syn_was_sent_again_says_nothing_of_the_window() {
    let is_late = |connection: &Connection| {
        connection.connected().unwrap() > connection.counters().unwrap().min_rtt.unwrap() + ms(900)
    };
    let (mut one, mut all) = (0, 0);
    for seed in 0..400 {
        let mut server = drawn(seed, 0.0);
        server.window = server.window.max(2);
        // Those that lose much lose SYNs, and some of them each SYN.
        server.link = lossy_on_the_way_back(&server.link, [0.1, 0.4][usize::from(seed % 4 == 0)]);
        let mut probe = Probe::new(Limits::default());
        while let Some(ask) = probe.next() {
            let made = probe.connections().len() as u32;
            let connection = server.connect(ask, made);
            if connection.counters().is_none() {
                break;
            }
            probe.add(connection);
        }
        let late = probe
            .connections()
            .iter()
            .filter(|connection| is_late(connection));
        match late.count() {
            0 => continue,
            count if count == probe.connections().len() => all += 1,
            _ => one += 1,
        }
        let findings = probe.findings();
        for (connection, look) in probe.connections().iter().zip(&findings.looks) {
            if is_late(connection) {
                assert_eq!(look, &Default::default(), "seed {seed}");
            }
        }
        let path = findings.path.unwrap();
        assert!(
            path.rtt.most < path.rtt.least + ms(900),
            "seed {seed}: {path:?}"
        );
    }
    assert!(one > 100 && all > 1, "{one} and {all}");
}

fn lossy_on_the_way_back(link: &Link, loss: f64) -> Link {
    let mut link = link.clone();
    link.backward.loss = Loss::Random(Probability::from_fraction(loss).unwrap());
    link
}
