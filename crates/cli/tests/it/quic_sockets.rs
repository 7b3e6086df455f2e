//! QUIC over sockets of UDP, held against the model that moves its datagrams in memory.
use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;

use lastbyte::results::Outcome;
use lastbyte_link::{Bytes, Direction, Link};
use tempfile::TempDir;

use crate::common::{Row, at, cell, measure, need_live_engine, prepare, read_rows, run};

const ARMS: &str = "--baseline X25519MLKEM768/ecdsa-p256/transport=quic \
    --against X25519MLKEM768/ml-dsa-44/transport=quic --against X25519MLKEM768/ml-dsa-87/transport=quic";

/// What the virtual engine measures.
fn virtually(options: &str) -> Vec<Row> {
    on("virtual", options)
}

/// What an engine measures, with the user's own cache, which has the kernel: the chains are the same on all.
fn on(engine: &str, options: &str) -> Vec<Row> {
    let folder = TempDir::new().unwrap();
    let file = at(&folder, "rows.csv");
    let mut command = Command::new(env!("CARGO_BIN_EXE_lastbyte"));
    command
        .args(["compare", "--engine", engine, "--cpu", "none", "-o"])
        .arg(&file)
        .args(["--chain-profile", "private"])
        .args(options.split_whitespace());
    let ended = run(&mut command);
    // Where nothing completes, there is no answer, but rows.
    assert!(file.exists(), "{command:?}: {}", ended.stderr);
    read_rows(&file)
}

/// Columns that tell of the datagrams: how many, of how many bytes, with what in them.
const DATAGRAMS: &[&str] = &[
    "outcome",
    "client_datagrams",
    "server_datagrams",
    "client_udp_bytes",
    "server_udp_bytes",
    "client_lost_packets",
    "server_lost_packets",
    "client_hello_datagrams",
    "unvalidated_bytes",
    "credited_bytes",
    "client_hello_wire_bytes",
    "server_flight_wire_bytes",
    "client_finish_wire_bytes",
];

/// What a row has in these columns.
fn texts<'r>(row: &'r Row, columns: &[&str]) -> Vec<&'r str> {
    columns.iter().map(|column| row.text(column)).collect()
}

/// The handshake and the first byte are within 0.1 % of the model's, the last byte within 0.5 %.
#[track_caller]
fn assert_near(model: &Row, guest: &Row, what: &str) {
    for (column, thousandths) in [("handshake_ns", 1), ("ttfb_ns", 1), ("ttlb_ns", 5)] {
        let (one, other) = (model.time(column), guest.time(column));
        let near = one.abs_diff(other) <= one * thousandths / 1000;
        assert!(near, "{what}, {column}: {one:?} and {other:?}");
    }
}

/// netem draws luck of its own, and is what the model is without any.
#[test]
fn the_guest_has_the_models_datagrams_over_netem() {
    for link in [
        "--rtt 100ms --data 50KiB",
        // Every datagram fills its packet, and none may be cut up.
        "--rtt 30ms --rate 20mbit --data 300KiB --mtu 1228",
        "--rtt 30ms --quic-datagram 1472 --initcwnd 32 --data 50KiB",
        "--rtt 30ms --upload 100KiB --data 2KiB --requests 3 --think 7ms --congestion reno",
    ] {
        let options = format!("{ARMS} {link} --connections 4");
        let model = virtually(&options);
        let guest = virtually(&format!("{options} --quic-in guest"));
        assert_eq!((model.len(), guest.len()), (12, 12));
        for (model, guest) in model.iter().zip(&guest) {
            let emulations = [model, guest].map(|row| row.text("emulation"));
            assert_eq!(emulations, ["link", "netem"]);
            assert_eq!(texts(model, DATAGRAMS), texts(guest, DATAGRAMS), "{link}");
            assert_near(model, guest, link);
        }
    }
}

/// What clients bring from a connection before is in memory whatever carries theirs, and a Retry packet goes through the server's socket.
#[test]
fn the_guest_has_the_models_datagrams_of_early_data_retries_and_tokens() {
    let arms = "--baseline X25519MLKEM768/ml-dsa-65/transport=quic/resume=0rtt \
        --against X25519MLKEM768/ml-dsa-65/transport=quic/address_validation=retry \
        --against X25519MLKEM768/ml-dsa-65/transport=quic/address_validation=token";
    let options = format!("{arms} --rtt 100ms --data 1KiB --connections 2");
    let model = virtually(&options);
    let guest = virtually(&format!("{options} --quic-in guest"));
    assert_eq!((model.len(), guest.len()), (6, 6));
    for (model, guest) in model.iter().zip(&guest) {
        assert_eq!(texts(model, DATAGRAMS), texts(guest, DATAGRAMS));
        let known = ["early_data", "address_validation", "token_bytes"];
        assert_eq!(texts(model, &known), texts(guest, &known));
        assert_near(model, guest, model.text("arm"));
    }
}

/// The emulator in user space has the model's own luck, which goes by the number of a datagram: were one another, another
/// would be lost. It is some microseconds late, as it is for TCP; where a timer ends within those, an acknowledgement may go
/// with another datagram.
#[test]
fn the_guest_has_the_models_luck_over_the_same_link() {
    let options = format!(
        "{ARMS} --rtt 30ms --rate 20mbit --loss 2% --data 50KiB --connections 30 --emulation link"
    );
    let model = virtually(&options);
    let guest = virtually(&format!("{options} --quic-in guest"));
    let (mut alike, mut lucky) = (0, 0);
    for (model, guest) in model.iter().zip(&guest) {
        assert_eq!(model.text("outcome"), guest.text("outcome"));
        if texts(model, DATAGRAMS) != texts(guest, DATAGRAMS) {
            continue;
        }
        alike += 1;
        lucky += u32::from(model.number("server_lost_packets") == 0);
        if model.text("outcome") == "completed" {
            assert_near(model, guest, &format!("connection {}", model.text("index")));
        }
    }
    assert!(
        alike >= 80 && lucky < 60,
        "{alike} of 90, {lucky} of them without loss"
    );
}

/// Sockets carry what datagrams say about congestion: a queue drops those of who does not understand ECN, and marks others'.
#[test]
fn a_queue_marks_datagrams_of_those_who_use_ecn() {
    let lost = |ecn: &str, place: &str| -> Vec<u64> {
        let rows = virtually(&format!(
            "--baseline X25519MLKEM768/ecdsa-p256/transport=quic --rtt 20ms --rate 20mbit \
            --data 2MiB --connections 3 --qdisc fq_codel --ecn {ecn} {place}"
        ));
        let lost = rows.iter().map(|row| {
            assert_eq!((row.text("outcome"), row.text("ecn")), ("completed", ecn));
            row.number("server_lost_packets")
        });
        lost.collect()
    };
    for place in ["", "--quic-in guest --emulation link"] {
        assert!(lost("off", place).iter().all(|lost| *lost > 0), "{place}");
        assert_eq!(lost("on", place), [0; 3], "{place}");
    }
}

/// Of a link that loses all, nothing comes, and each connection ends.
#[test]
fn a_guest_that_hears_nothing_ends_by_idleness_or_by_its_timeout() {
    let options =
        format!("{ARMS} --rtt 30ms --data 1KiB --loss 100% --connections 2 --quic-in guest");
    let outcomes = |options: &str| {
        let rows = virtually(options);
        assert_eq!(rows.len(), 6);
        let texts = rows
            .iter()
            .map(|row| texts(row, &["outcome", "reason"]).join(": "));
        texts.collect::<BTreeSet<_>>()
    };
    let idle = "failed: client: nothing came any more".to_owned();
    assert_eq!(outcomes(&options), [idle].into());
    let timed_out = "timed-out: ".to_owned();
    assert_eq!(
        outcomes(&format!("{options} --timeout 2s")),
        [timed_out].into()
    );
}

/// In real time, the fastest of several connections speaks.
#[test]
fn the_live_engine_has_the_models_handshakes() {
    const SIZES: &[&str] = &[
        "client_hello_datagrams",
        "client_hello_wire_bytes",
        "unvalidated_bytes",
        "credited_bytes",
    ];
    const LATE: Duration = Duration::from_millis(10);
    need_live_engine();
    let options = format!("{ARMS} --rtt 40ms --data 5KiB --connections 8");
    let (model, live) = (virtually(&options), on("live", &options));
    assert_eq!(live.len(), model.len());
    for (model, live) in model.chunks(8).zip(live.chunks(8)) {
        let arm = model[0].text("arm");
        let fastest = |rows: &[Row], column| rows.iter().map(|row| row.time(column)).min();
        for column in ["handshake_ns", "ttfb_ns", "ttlb_ns"] {
            let [least, fastest] = [model, live].map(|rows| fastest(rows, column).unwrap());
            let is_near = least <= fastest && fastest < least + 2 * LATE;
            assert!(is_near, "{arm}, {column}: {fastest:?} and {least:?}");
        }
        for (model, live) in model.iter().zip(live) {
            assert_eq!(
                texts(live, &["outcome", "emulation"]),
                ["completed", "link"]
            );
            // Where the machine was busy, there may be a probe besides.
            let has_lost = |end: &str| live.number(&format!("{end}_lost_packets")) > 0;
            let is_late = live.time("handshake_ns") > model.time("handshake_ns") + LATE;
            if !is_late && !has_lost("client") && !has_lost("server") {
                assert_eq!(texts(live, SIZES), texts(model, SIZES), "{arm}");
            }
        }
    }
}

#[test]
fn a_live_connection_that_hears_nothing_ends_by_its_timeout() {
    let direction = Direction {
        loss: "100%".parse().unwrap(),
        ..Direction::default()
    };
    let link = Link::symmetric(Duration::from_millis(10), direction);
    let arm = prepare("X25519MLKEM768/ecdsa-p256/transport=quic");
    let run = measure(arm, cell(link, Bytes(1000)), 2, Duration::from_millis(300));
    let rows = &run.samples[0].rows;
    assert_eq!(rows.len(), 2);
    assert!(rows.iter().all(|row| row.outcome == Outcome::TimedOut));
}
