//! Transfers that are answered by servers of others: Node.js and Go of `scripts/interop`, and Debian's nginx. A kernel has to be there.

use std::fs;
use std::path::Path;
use std::time::Duration;

use lastbyte::results::{Outcome, Row, Sample, Validity};
use lastbyte_exchange::HandshakeFlight;
use lastbyte_sizes::{Message, framing};

use crate::common::run;
use crate::pages::{Place, StandIns, refused, samples, told};

const OURS: &str = "x25519/ecdsa-p256";
const NGINX: &str = "x25519/ecdsa-p256/server=nginx";
const OBJECT: &str = "data = \"10KiB\"";

/// A study of these arms, which are called `a0` and so on.
fn place(arms: &[&str], measure: &str) -> Place {
    let place = Place::new(OURS, measure);
    let study = place.path("study.toml");
    let text = fs::read_to_string(&study).unwrap();
    let arms = arms.iter().enumerate();
    let arms = arms.map(|(number, arm)| format!("[arm.a{number}]\ntls = \"{arm}\"\n"));
    let usual = format!("[arm.a]\ntls = \"{OURS}\"\n");
    assert!(text.contains(&usual), "{text}");
    fs::write(&study, text.replace(&usual, &arms.collect::<String>())).unwrap();
    place
}

fn measured(place: &Place, folder: &str, options: &[&str]) -> Vec<Sample> {
    let mut command = place.run(folder);
    let ended = run(command.args(options));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    samples(&place.path(folder))
}

/// A connection did what was asked for, with this group and a signature of this scheme.
fn did(row: &Row, group: u16, signature: u16) {
    assert_eq!(row.outcome, Outcome::Completed);
    assert_eq!(
        (
            row.exchange.negotiated.group,
            row.exchange.negotiated.signature
        ),
        (Some(group), Some(signature))
    );
    let times = [
        row.times.connect,
        row.times.handshake,
        row.times.ttfb,
        row.times.ttlb,
    ];
    let times = times.map(Option::unwrap);
    assert!(times.is_sorted(), "{times:?}");
    let messages = Message::SERVER_FLIGHT
        .iter()
        .map(|message| row.exchange.bytes(*message));
    let messages: u32 = messages.sum();
    // Each is in a record, or some are in one.
    let flight = row.exchange.sent(HandshakeFlight::Server);
    let most = messages + 6 * framing::RECORD_OVERHEAD as u32;
    assert!((messages..most).contains(&flight), "{flight}, {messages}");
}

const MLKEM: u16 = 0x11ec;
const X25519: u16 = 0x001d;
const ML_DSA_65: u16 = 0x0905;
const ECDSA: u16 = 0x0403;

/// Three servers, each with its own records and tickets; and twice, to the nanosecond.
#[test]
fn transfers_are_the_same_each_time() {
    let arms = [
        "X25519MLKEM768/ml-dsa-65",
        "X25519MLKEM768/ml-dsa-65/server=node",
        "X25519MLKEM768/ml-dsa-65/server=go",
        OURS,
        NGINX,
    ];
    let measure = format!("{OBJECT}\nrequests = 2\nthink = \"12s\"");
    let place = place(&arms, &measure);
    let one = measured(&place, "one", &[]);
    let other = measured(&place, "other", &[]);
    assert_eq!(one.len(), arms.len());
    for (sample, again) in one.iter().zip(&other) {
        assert_eq!(sample.rows, again.rows);
        assert_eq!(sample.engine.validity, Validity::Valid);
        assert_eq!(sample.rows.len(), 2);
        for row in &sample.rows {
            match sample.arm {
                ..3 => did(row, MLKEM, ML_DSA_65),
                _ => did(row, X25519, ECDSA),
            }
            // The link takes that long for both, and the client thinks between them.
            let least = Duration::from_millis(4 * 50) + Duration::from_secs(12);
            assert!(row.times.ttlb.unwrap() > least);
            let is_ours = [0, 3].contains(&sample.arm);
            assert_eq!(row.server_tcp().is_some(), is_ours);
            assert_eq!(row.exchange.ticket_wire_bytes().is_some(), !is_ours);
        }
    }
    // Node.js' OpenSSL sends what ours does, but for ALPN, and Go as well: chains, keys and signatures are the same.
    for [ours, theirs] in [[0, 1], [0, 2], [3, 4]] {
        let [ours, theirs] = [ours, theirs].map(|arm| &one[arm].rows[0].exchange);
        for message in [
            Message::ClientHello,
            Message::ServerHello,
            Message::Certificate,
        ] {
            assert_eq!(ours.bytes(message), theirs.bytes(message), "{message:?}");
        }
    }
    let text = fs::read_to_string(place.path("one/study.toml")).unwrap();
    assert!(text.contains("server=go"), "{text}");
}

/// What is on the wire, packet by packet, explains the times: the object with a head before it, tickets, and a round trip more
/// where these take more segments than the window has. nginx has a segment for each ticket.
#[test]
fn packets_explain_what_other_servers_take() {
    const WINDOW: usize = 10;
    let node = "x25519/ecdsa-p256/server=node";
    let place = place(&[OURS, NGINX, node], "data = \"13600B\"");
    let samples = measured(&place, "results", &["--capture", "1"]);
    let mut flights = Vec::new();
    for (sample, arm) in samples.iter().zip(["a0", "a1", "a2"]) {
        let row = &sample.rows[0];
        let segments = segments_of_server(&place.path("results/captures"), arm);
        let sent: usize = segments.iter().sum();
        let mss = *segments.iter().max().unwrap();
        let handshake = row.exchange.sent(HandshakeFlight::Server) as usize;
        let tickets = row.exchange.ticket_wire_bytes().unwrap_or(0) as usize;
        // Records of the object, and a head that others send.
        let rest = sent - handshake - tickets - 13_600;
        match arm {
            "a0" => assert_eq!(rest, 2 * framing::RECORD_OVERHEAD),
            _ => assert!((150..500).contains(&rest), "{arm}: {rest}"),
        }
        let response = segments.len() - handshake.div_ceil(mss);
        let flight = response.div_ceil(WINDOW);
        let round_trips = Duration::from_millis(50) * (2 + flight as u32);
        let ttlb = row.times.ttlb.unwrap();
        assert!(ttlb >= round_trips, "{arm}: {ttlb:?}, {response} segments");
        // The link's rate takes a part of one.
        let later = ttlb - round_trips;
        assert!(later < Duration::from_millis(25), "{arm}: {later:?}");
        flights.push(flight);
    }
    assert_eq!(flights, [1, 2, 1]);
}

/// Payload of each segment that the server has sent.
fn segments_of_server(captures: &Path, arm: &str) -> Vec<usize> {
    use lastbyte_capture::{Point, Segment, read};
    let files = fs::read_dir(captures).unwrap();
    let mut paths = files.map(|file| file.unwrap().path());
    let named = |path: &Path| path.file_name().unwrap().to_string_lossy().contains(arm);
    let path = paths.find(|path| named(path)).unwrap();
    let capture = read(fs::File::open(path).unwrap()).unwrap();
    let packets = capture.packets.iter().map(|(packet, _)| packet);
    let sent = packets.filter(|packet| packet.point == Point::SentByServer);
    let payloads = sent.filter_map(|packet| Some(Segment::parse(&packet.bytes)?.payload.len()));
    payloads.filter(|bytes| *bytes > 0).collect()
}

#[test]
fn the_live_engine_has_them_too() {
    let arms = ["X25519MLKEM768/ml-dsa-65/server=node", NGINX];
    let place = place(&arms, OBJECT);
    let measured = measured(&place, "results", &["--engine", "live"]);
    for (sample, (group, signature)) in measured.iter().zip([(MLKEM, ML_DSA_65), (X25519, ECDSA)]) {
        assert_eq!(sample.rows.len(), 2);
        for row in &sample.rows {
            did(row, group, signature);
            // TCP and TLS take a round trip each, and so does the request.
            assert!(row.times.ttfb.unwrap() >= Duration::from_millis(150));
        }
    }
}

/// What another arm's server has answered is kept.
#[test]
fn a_server_that_does_not_start_is_told() {
    let place = place(&[OURS, NGINX], OBJECT);
    let ends = StandIns::new(&place).named("nginx-ends");
    let ended = run(place.run("results").env("LASTBYTE_NGINX", ends));
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let lines = told(&ended);
    let [block, all] = lines.as_slice() else {
        panic!("{}", ended.stderr);
    };
    let expected = "failed: nginx did not start: nginx: bad option";
    assert!(
        block.contains("block 0 of a1 (") && block.ends_with(expected),
        "{block}"
    );
    assert!(all.contains("blocks failed; the others are kept"), "{all}");
    measured(&place, "results", &["--resume"]);
}

/// Before anything is measured, by either engine.
#[test]
fn what_other_servers_can_not_is_refused() {
    let missing = place(&[NGINX], OBJECT);
    for engine in ["live", "virtual"] {
        let mut command = missing.run("results");
        command
            .args(["--engine", engine])
            .env("LASTBYTE_NGINX", "/nowhere/nginx");
        refused(
            &run(&mut command),
            3,
            "server=nginx needs nginx: install it",
        );
        let mut command = missing.run("results");
        // Debian's is built with an older OpenSSL.
        command.args(["--engine", engine]);
        let study = missing.path("study.toml");
        let text = fs::read_to_string(&study).unwrap();
        fs::write(&study, text.replace("x25519/", "SecP256r1MLKEM768/")).unwrap();
        let expected = "has no SecP256r1MLKEM768: that takes OpenSSL 3.5";
        refused(&run(&mut command), 3, expected);
        fs::write(&study, text).unwrap();
    }
    let refusals = [
        (
            &["--baseline", "x25519/ecdsa-p256/tickets=1/server=nginx"][..],
            "tickets= is for Lastbyte's own server",
        ),
        (
            &["--baseline", NGINX, "--upload", "1KiB"],
            "takes no uploads: leave upload out",
        ),
        (
            &["--baseline", NGINX, "--mix", "lte=1"],
            "leave [population] out",
        ),
        (
            &["--baseline", NGINX, "--writes", "17B"],
            "leave writes out",
        ),
    ];
    for (options, expected) in refusals {
        refused(&run(&mut missing.compare(options)), 2, expected);
    }
    assert!(!missing.path("results").exists());
}

/// A server that people run takes time for what it computes; our own ends take none, and are what they are without it.
#[test]
fn servers_of_others_compute_and_ours_does_not() {
    let node = "x25519/ecdsa-p256/server=node";
    let of = |cpu: &str| {
        let place = place(&[OURS, node], &format!("{OBJECT}\n{cpu}"));
        measured(&place, "results", &[])
    };
    let [with, without] = ["", "cpu = \"none\""].map(of);
    assert_eq!(with[0].rows, without[0].rows);
    let longer = (with[1].rows.iter().zip(&without[1].rows))
        .map(|(with, without)| with.times.ttfb.unwrap() - without.times.ttfb.unwrap());
    for longer in longer {
        let range = Duration::from_micros(300)..Duration::from_millis(20);
        assert!(range.contains(&longer), "{longer:?}");
    }
}
