#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

use std::time::Duration;

use lastbyte_exchange::HandshakeFlight;
use lastbyte_explore::{CONNECTION, Network, Question, answer};
use lastbyte_link::{Bytes, Direction, Link, Rate};
use lastbyte_sizes::{Group, Message};
use proptest::prelude::*;
use serde_json::Value;

use super::*;
use lastbyte_explain::{explain, explain_own, wire};
use lastbyte_results::reduce::{Reduction, Subject};
use lastbyte_study::{Buffers, Cell};

/// What the page's scripts are given.
fn data(page: &str) -> Value {
    let (_, rest) = page
        .split_once("<script id=\"known\" type=\"application/json\">")
        .unwrap();
    let (json, _) = rest.split_once("</script>").unwrap();
    serde_json::from_str(json).unwrap()
}

/// The messages of an arm as `model.js` puts them together, without a HelloRetryRequest and writes of their own.
fn messages(data: &Value, group: usize, chain: usize, way: usize) -> Option<[f64; 7]> {
    let sizes = &data["sizes"];
    let (group, chain) = (&sizes["groups"][group], &sizes["chains"][chain]);
    let own = &chain["ways"][way];
    let number = |value: &Value| value.as_f64().unwrap();
    (!own.is_null()).then(|| {
        [
            number(&group["client_hello"]) + number(&own[0]),
            number(&group["server_hello"]) + number(&own[4]),
            number(&own[1]),
            number(&own[2]),
            number(&chain["certificate_verify"]),
            number(&sizes["server_finished"]),
            number(&sizes["client_finish"]),
        ]
    })
}

fn name(data: &Value, group: usize, chain: usize, way: usize) -> String {
    let sizes = &data["sizes"];
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    text(&sizes["groups"][group]["name"])
        + "/"
        + &text(&sizes["chains"][chain]["name"])
        + &text(&sizes["ways"][way]["key"])
}

/// Each sum of a group and of a chain is what `lastbyte explain` has of both together.
#[test]
fn sizes_are_those_of_explain() {
    let data = data(&page(None).unwrap());
    let count = |key: &str| data["sizes"][key].as_array().unwrap().len();
    let mut found = 0;
    for group in 0..count("groups") {
        for chain in 0..count("chains") {
            for way in 0..count("ways") {
                let Some(told) = messages(&data, group, chain, way) else {
                    continue;
                };
                let arm = name(&data, group, chain, way);
                let wire = wire(&arm.parse().unwrap()).unwrap();
                let of = |message| f64::from(wire.bytes(message));
                let expected = [
                    f64::from(wire.sent(HandshakeFlight::ClientHello)),
                    of(Message::ServerHello),
                    of(Message::EncryptedExtensions),
                    of(Message::Certificate),
                    of(Message::CertificateVerify),
                    of(Message::ServerFinished),
                    f64::from(wire.sent(HandshakeFlight::ClientFinish)),
                ];
                assert_eq!(told, expected, "{arm}");
                found += 1;
            }
        }
    }
    assert!(found > 2000, "{found}");
    // Every way to send less is there, in the words of `lastbyte reduce`.
    let ways = data["sizes"]["ways"].as_array().unwrap();
    let words: Vec<&str> = ways
        .iter()
        .map(|way| way["words"].as_str().unwrap())
        .collect();
    let reductions = Reduction::ALL.into_iter();
    for reduction in reductions.filter(|reduction| reduction.subject == Subject::Chain) {
        assert!(
            words.iter().any(|words| words.starts_with(reduction.name)),
            "{reduction:?}: {words:?}"
        );
    }
}

/// What the module answers of an arm over QUIC is what `lastbyte explain` tells of it.
#[test]
fn answers_over_quic_are_those_of_explain() {
    let data = data(&page(None).unwrap());
    let sizes = &data["sizes"];
    let count = |key: &str| sizes[key].as_array().unwrap().len();
    let mut found = 0;
    for (number, (group, chain)) in (0..count("groups"))
        .flat_map(|group| (0..count("chains")).map(move |chain| (group, chain)))
        .enumerate()
    {
        let way = number % count("ways");
        let Some(own) = messages(&data, group, chain, way) else {
            continue;
        };
        let arm = name(&data, group, chain, way) + "/transport=quic";
        let is_tcp = sizes["ways"][way]["tcp"].as_bool() == Some(true);
        let parsed: Result<Arm, _> = arm.parse();
        assert_eq!(parsed.is_err(), is_tcp, "{arm}");
        let Ok(parsed) = parsed else {
            continue;
        };
        let mut question = Question {
            what: 1.0,
            ..Question::default()
        };
        question.network.rtt = 100.0;
        question.network.rate = 1000.0;
        question.network.initcwnd = [10.0, 20.0][number % 2];
        question.network.payload = 1000.0;
        question.network.request = data["request"].as_f64().unwrap();
        let [
            hello,
            server_hello,
            extensions,
            certificate,
            verify,
            finished,
            finish,
        ] = own;
        question.arms[0] = lastbyte_explore::Arm {
            client_hello: hello,
            server_hello,
            encrypted_extensions: extensions,
            certificate,
            certificate_verify: verify,
            server_finished: finished,
            client_finish: finish,
            transport: 1.0,
            ..lastbyte_explore::Arm::default()
        };
        let answer = answer(&question.numbers());
        let told = |name: &str| answer[CONNECTION.iter().position(|known| *known == name).unwrap()];
        let direction = Direction {
            rate: Rate::from_bits_per_second(1_000_000_000),
            ..Direction::default()
        };
        let cell = Cell {
            link: Link::symmetric(Duration::from_millis(100), direction),
            initcwnd: question.network.initcwnd as u32,
            data: Bytes(1000),
            ..Cell::default()
        };
        let explained = explain(&parsed, &[cell]).unwrap();
        let (_, timeline) = &explained.times[0];
        let ms = |time: Duration| time.as_nanos() as f64 / 1e6;
        assert_eq!(told("connect"), -1.0);
        assert_eq!(told("handshake"), ms(timeline.handshake), "{arm}");
        assert_eq!(told("first"), timeline.ttfb.map_or(-1.0, ms), "{arm}");
        let sent = explained.exchange.carried(HandshakeFlight::Server);
        assert_eq!(told("sent"), f64::from(sent), "{arm}");
        assert_eq!(told("flights"), timeline.flights.len() as f64, "{arm}");
        let window = &explained.windows[0];
        let edge = |edge: Option<lastbyte_explain::Edge>| {
            edge.map_or(-1.0, |edge| edge.certificate as f64)
        };
        assert_eq!(told("below"), edge(window.edges.below), "{arm}");
        assert_eq!(told("above"), edge(window.edges.above), "{arm}");
        let datagrams: u32 = window.flights.iter().map(|flight| flight.segments).sum();
        assert_eq!(told("segments"), f64::from(datagrams), "{arm}");
        found += 1;
    }
    assert!(found > 60, "{found}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// What the module answers to the page is what `lastbyte explain` tells.
    #[test]
    fn answers_are_those_of_explain(
        group in 0_usize..8,
        chain in 0_usize..20,
        way in 0_usize..13,
        rtt in 1_u32..500,
        rate in prop_oneof![Just(0_u32), 1_u32..1000],
        initcwnd in 1_u32..60,
        payload in prop_oneof![Just(0_u32), 1_u32..300_000],
    ) {
        let data = data(&page(None).unwrap());
        let arm = name(&data, group, chain, way);
        let Some(own) = messages(&data, group, chain, way) else {
            return Ok(());
        };
        let mut question = Question { what: 1.0, ..Question::default() };
        question.network.rtt = f64::from(rtt);
        question.network.rate = f64::from(rate);
        question.network.initcwnd = f64::from(initcwnd);
        question.network.payload = f64::from(payload);
        question.network.request = data["request"].as_f64().unwrap();
        question.network.mss = data["mss"].as_f64().unwrap();
        let numbers = [question.numbers()[..=Network::names().len()].to_vec(), own.to_vec()].concat();
        let answer = answer(&numbers);
        let told = |name: &str| answer[CONNECTION.iter().position(|known| *known == name).unwrap()];

        let link = Link::symmetric(
            Duration::from_millis(rtt.into()),
            Direction { rate: Rate::from_bits_per_second(1_000_000 * u64::from(rate)), ..Direction::default() },
        );
        let mut cell = Cell { link, initcwnd, data: Bytes(payload.into()), ..Cell::default() };
        cell.hosts.buffers = Buffers::Large;
        let explained = explain(&arm.parse().unwrap(), &[cell]).unwrap();
        let (_, timeline) = &explained.times[0];
        let ms = |time: Duration| time.as_nanos() as f64 / 1e6;
        prop_assert_eq!(told("connect"), ms(timeline.connect.unwrap()));
        prop_assert_eq!(told("handshake"), ms(timeline.handshake));
        prop_assert_eq!(told("first"), timeline.ttfb.map_or(-1.0, ms));
        prop_assert_eq!(told("last"), ms(timeline.ttlb));
        prop_assert_eq!(told("sent"), f64::from(explained.exchange.sent(HandshakeFlight::Server)));
        prop_assert_eq!(told("flights"), timeline.flights.len() as f64);
        let window = &explained.windows[0];
        let edge = |edge: Option<lastbyte_explain::Edge>| edge.map_or(-1.0, |edge| edge.certificate as f64);
        prop_assert_eq!(told("serverFlights"), window.edges.flights as f64);
        prop_assert_eq!(told("below"), edge(window.edges.below));
        prop_assert_eq!(told("above"), edge(window.edges.above));
        prop_assert_eq!(told("window"), window.larger_window.map_or(-1.0, |window| f64::from(window.at_once)));
    }
}

/// A page stands alone: nothing in it is asked of anybody.
#[test]
fn the_page_asks_no_network() {
    let page = page(None).unwrap();
    let own = page.replace("url(#", "");
    for trace in [
        "http:",
        "https:",
        "//cdn",
        " src=",
        "@import",
        "url(",
        "fetch(",
        "XMLHttp",
        "<link",
        "import(",
        "sendBeacon",
        "WebSocket",
    ] {
        assert!(!own.contains(trace), "{trace}");
    }
    assert!(page.len() < 245_000, "{} bytes", page.len());
}

#[test]
fn questions_worth_asking_are_of_arms_that_there_are() {
    for (address, words) in TRIES {
        for key in ["baseline=", "against="] {
            let part = address.split('&').find_map(|part| part.strip_prefix(key));
            let arm: Arm = part.unwrap().parse().unwrap();
            wire(&arm).unwrap_or_else(|error| panic!("{words}: {error}"));
        }
    }
}

const SEEN: &str = r#"{
  "version": 1, "host": "example.com:443", "rtt_ms": 23.4, "rate_mbit": 50, "initial_window": 20, "mss": 1400,
  "group": "x25519", "seen": "yesterday", "certificate_verify_bytes": 80,
  "chain": [{"algorithm": "ecdsa-p256", "bytes": 1046, "serial": 1}, {"algorithm": "ecdsa-p384", "bytes": 832}]
}"#;

#[test]
fn a_page_begins_with_what_was_seen() {
    let probe = Probe::read(SEEN).unwrap();
    let page = page(Some(&probe)).unwrap();
    assert!(
        page.contains("example.com:443 as it was seen"),
        "{}",
        &page[..2000]
    );
    let data = data(&page);
    assert_eq!(data["start"]["baseline"], "x25519/example.com:443");
    assert_eq!(data["start"]["rtt"], 23.4);
    assert_eq!(data["start"]["initcwnd"], 20);
    assert_eq!(data["mss"], 1400);
    assert_eq!(data["mtu"], 1452);
    // Of such a probe no other chain is known.
    assert_eq!(data["start"]["against"], "x25519/ml-dsa-65");
    assert_eq!(data["site"]["words"], "");
    // Its chain is as it is: 8 bytes of message, 5 around each certificate.
    let own = &data["sizes"]["chains"][0];
    assert_eq!(own["name"], "example.com:443");
    assert_eq!(own["ways"][0][2], 8 + 5 + 1046 + 5 + 832);
    assert_eq!(own["certificate_verify"], 80);
    // A name of one byte more than `server.example`.
    assert_eq!(
        own["ways"][0][0],
        "example.com".len() as i64 - "server.example".len() as i64
    );
}

/// What a page draws of a server comes to what was seen of it on the wire: with what it says besides, such as a protocol, and
/// where it has several messages in a record.
#[test]
fn a_page_draws_as_many_bytes_as_were_seen() {
    for (extensions, flight) in [(6, 2500), (21, 2515), (21, 2440), (6, 9000)] {
        let tls = format!(
            r#""tls": {{"encrypted_extensions_bytes": {extensions}, "server_flight_wire_bytes": {flight}}}, "chain""#
        );
        let probe = Probe::read(&SEEN.replace("\"chain\"", &tls)).unwrap();
        let data = data(&page(Some(&probe)).unwrap());
        let sizes = &data["sizes"];
        let number = |value: &serde_json::Value| value.as_i64().unwrap();
        let groups = sizes["groups"].as_array().unwrap();
        let group = groups
            .iter()
            .find(|group| group["name"] == "x25519")
            .unwrap();
        let own = &sizes["chains"][0];
        let way = &own["ways"][0];
        let messages = [
            number(&group["server_hello"]) + number(&way[4]),
            number(&way[1]),
            number(&way[2]),
            number(&own["certificate_verify"]),
            number(&sizes["server_finished"]),
        ];
        let drawn: usize = (Message::SERVER_FLIGHT.iter().zip(messages))
            .map(|(message, bytes)| message.wire_bytes(usize::try_from(bytes).unwrap()))
            .sum();
        assert_eq!(number(&way[1]), extensions);
        assert_eq!(drawn + framing::CHANGE_CIPHER_SPEC, flight);
    }
}

/// A server with all that a page draws besides chains, as scripts/explore has it too.
const SITE: &str = include_str!("site.json");

/// What a page has for a server is what `lastbyte probe --what-if` has: its bytes, hellos, writes and tickets, with its chain and
/// with those that are supposed. That the page's words say the same is checked by scripts/explore.
#[test]
fn a_page_has_what_a_server_does_besides() {
    let probe = Probe::read(SITE).unwrap();
    assert!(probe.notes.is_empty(), "{:?}", probe.notes);
    let page = page(Some(&probe)).unwrap();
    insta::assert_snapshot!(probe.besides());
    assert!(page.contains(&probe.besides()));
    assert!(!page.contains("no HelloRetryRequest"));
    assert!(page.contains("shop.example.com:443, today</option>"));
    let data = data(&page);
    assert_eq!(data["start"]["baseline"], "secp384r1/shop.example.com:443");
    assert_eq!(
        data["start"]["against"],
        "secp384r1/shop.example.com:443 under ml-dsa-65"
    );
    assert_eq!(data["site"]["response"][1], 16_384.0);
    assert_eq!(data["site"]["tickets"][0], 510.0);
    assert_eq!(data["site"]["words"], "/tickets=2");
    let hosts = serde_json::json!([["writes", "16384B+8192B"]]);
    assert_eq!(data["site"]["hosts"], hosts);
    let sizes = &data["sizes"];
    let number = |value: &Value| value.as_f64().unwrap() as u32;
    let groups = sizes["groups"].as_array().unwrap();
    let group = groups
        .iter()
        .find(|group| group["name"] == "secp384r1")
        .unwrap();
    assert_eq!(group["key_share"], "x25519");
    let arm: Arm = "secp384r1/server.example:443".parse().unwrap();
    let arm = probe.as_seen(arm);
    let chains = [&probe.chain]
        .into_iter()
        .chain(probe.supposed.iter().map(|(_, shown)| shown));
    let mut compared = 0;
    for (own, shown) in sizes["chains"].as_array().unwrap().iter().zip(chains) {
        let wire = explain_own(&arm, shown, &[]).unwrap().exchange;
        let way = &own["ways"][0];
        let hello = |known: &Value| {
            u32::try_from(known.as_i64().unwrap() + way[0].as_i64().unwrap()).unwrap()
        };
        assert_eq!(
            hello(&group["client_hello"]),
            wire.sent(HandshakeFlight::ClientHello)
        );
        assert_eq!(
            hello(&group["second_client_hello"]),
            wire.sent(HandshakeFlight::SecondClientHello)
        );
        assert_eq!(
            number(&sizes["hello_retry_request"]),
            wire.sent(HandshakeFlight::HelloRetryRequest)
        );
        assert_eq!(
            number(&sizes["client_finish"]),
            wire.sent(HandshakeFlight::ClientFinish)
        );
        assert_eq!(number(&way[2]), wire.bytes(Message::Certificate));
        assert_eq!(number(&own["writes"][0]), 170);
        assert_eq!(
            Some(number(&data["site"]["tickets"][0])),
            wire.ticket_wire_bytes()
        );
        for (name, transfer, second) in [
            ("tickets", &wire.tickets, 255),
            ("response", &wire.response, 8214),
        ] {
            let writes = transfer.as_ref().unwrap().writes.as_ref().unwrap();
            assert_eq!(writes.sizes()[1], second);
            // Behind its bytes and its record.
            assert_eq!(number(&data["site"][name][3]), second);
        }
        // What is measured in its place has as many bytes.
        if let Some(measured) = own["measured"].as_str() {
            let measured: Arm = format!("secp384r1/{measured}/key_share=x25519")
                .parse()
                .unwrap();
            let measured = lastbyte_explain::wire(&measured).unwrap();
            assert_eq!(
                measured.sent(HandshakeFlight::Server),
                wire.sent(HandshakeFlight::Server)
            );
            compared += 1;
        }
    }
    assert_eq!(compared, 3);
}

/// A server that has what the page has not is drawn, and it is said how.
#[test]
fn what_pages_do_not_have_is_said() {
    let seen = SEEN
        .replace("\"x25519\"", "\"x25518\"")
        .replace("ecdsa-p384", "ecdsa-p385")
        .replace("23.4", "0.04")
        .replace("1400", "9001");
    let probe = Probe::read(&seen).unwrap();
    assert_eq!(probe.group, Group::X25519MlKem768);
    assert_eq!((probe.rtt_ms, probe.mss), (Some(0.1), Some(8948)));
    assert_eq!(probe.chain.certificates, [1046, 832]);
    let page = page(Some(&probe)).unwrap();
    let escaped = |note: &String| note.replace('"', "&quot;");
    assert!(probe.notes.iter().all(|note| page.contains(&escaped(note))));
    insta::assert_snapshot!(probe.notes.join("\n"));
    assert!(Probe::read(SEEN).unwrap().notes.is_empty());
}

#[test]
fn what_is_no_probe_is_told_in_a_line() {
    let with = |from: &str, to: &str| {
        assert!(SEEN.contains(from), "{from}");
        SEEN.replace(from, to)
    };
    let texts = [
        "nonsense".to_owned(),
        "[]".to_owned(),
        with("\"version\": 1, ", ""),
        with("\"version\": 1", "\"version\": 2"),
        with("\"version\": 1", "\"version\": \"1\""),
        with("\"host\": \"example.com:443\", ", ""),
        with("example.com:443", "example.com"),
        with("example.com:443", "</script>:443"),
        with("23.4", "-1"),
        with("23.4", "1e999"),
        with("23.4", "\"fast\""),
        with("\"rate_mbit\": 50", "\"rate_mbit\": 0"),
        with("\"initial_window\": 20", "\"initial_window\": 10.5"),
        with("\"mss\": 1400", "\"mss\": 90000"),
        with("1046", "0"),
        with(
            "\"certificate_verify_bytes\": 80",
            "\"certificate_verify_bytes\": 0",
        ),
        with(
            r#"[{"algorithm": "ecdsa-p256", "bytes": 1046, "serial": 1}, {"algorithm": "ecdsa-p384", "bytes": 832}]"#,
            "[]",
        ),
    ];
    let lines: Vec<String> = texts
        .iter()
        .map(|text| Probe::read(text).unwrap_err().to_string())
        .collect();
    assert!(lines.iter().all(|line| !line.contains('\n')), "{lines:#?}");
    insta::assert_snapshot!(lines.join("\n"));
}

proptest! {
    /// Whatever is in a file: a page or a line, and no page that its content gets out of.
    #[test]
    fn any_file_is_a_page_or_a_line(text in prop_oneof![
        ".{0,200}",
        (".{0,40}", any::<f64>(), any::<i64>(), "[a-z0-9-]{0,12}").prop_map(|(host, rtt, bytes, algorithm)| {
            let host = serde_json::to_string(&host).unwrap();
            format!(r#"{{"version":1,"host":{host},"rtt_ms":{rtt},"chain":[{{"algorithm":"{algorithm}","bytes":{bytes}}}]}}"#)
        }),
    ]) {
        if let Err(problem) = Probe::read(&text) {
            let line = problem.to_string();
            prop_assert!(!line.contains('\n') && line.chars().count() < 400, "{}", line);
        }
    }
}
