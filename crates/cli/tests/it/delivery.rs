//! Certificates that come through DNS, end to end, with BIND and Unbound. They need both, and the
//! virtual engine's kernel (`lastbyte kernel build`).
use std::fs;
use std::process::Command;
use std::time::Duration;

use crate::common::{Row, at, compare_with, read_rows, run};
use serde_json::Value;
use tempfile::TempDir;

const ML_DSA: &str = "MLKEM768/ml-dsa-65/intermediates=0/root=sent";
const SLH_DSA: &str = "MLKEM768/slh-dsa-sha2-192f/intermediates=0/root=sent";
const MS: Duration = Duration::from_millis(1);

/// The program with the user's own cache, which has the kernel.
fn lastbyte() -> Command {
    Command::new(env!("CARGO_BIN_EXE_lastbyte"))
}

/// Compares arms in the virtual engine. Gives the rows by arm, and the file that they are in.
fn virtually(options: &str, arms: &[&str]) -> (Vec<Vec<Row>>, Vec<u8>, Value) {
    let folder = TempDir::new().unwrap();
    let file = at(&folder, "rows.csv");
    let mut command = lastbyte();
    command.args(["compare", "--engine", "virtual", "--format", "json"]);
    command.args(["--chain-profile", "private", "-o"]);
    command.arg(&file).args(options.split_whitespace());
    for (place, arm) in arms.iter().enumerate() {
        command.args([
            if place == 0 {
                "--baseline"
            } else {
                "--against"
            },
            *arm,
        ]);
    }
    let ended = run(&mut command);
    assert_eq!(ended.code, Some(0), "{command:?}: {}", ended.stderr);
    let rows = read_rows(&file);
    let of = |arm: &&str| {
        rows.iter()
            .filter(|row| row.text("arm") == *arm)
            .cloned()
            .collect()
    };
    let document = serde_json::from_str(&ended.stdout).unwrap();
    (
        arms.iter().map(of).collect(),
        fs::read(&file).unwrap(),
        document,
    )
}

fn outcomes(rows: &[Row]) -> Vec<&str> {
    let mut outcomes: Vec<_> = rows
        .iter()
        .map(|row| row.text("delivery_outcome"))
        .collect();
    outcomes.sort_unstable();
    outcomes.dedup();
    outcomes
}

/// Whether each row has a time within 1 % of `rtts` of them.
fn assert_round_trips(rows: &[Row], rtt: Duration, rtts: u32) {
    for row in rows {
        let time = row.time("handshake_ns") - row.time("connect_ns");
        let expected = rtt * rtts;
        assert!(
            time >= expected && time < expected.mul_f64(1.01),
            "{} took {time:?}, not {rtts} round trips",
            row.text("arm")
        );
    }
}

#[test]
fn what_dns_delivers_saves_a_round_trip() {
    let arms = [
        ML_DSA.to_owned(),
        format!("{ML_DSA}/delivery=pqtls-ad"),
        SLH_DSA.to_owned(),
        format!("{SLH_DSA}/delivery=pqtls-ad/from=root"),
        format!("{SLH_DSA}/delivery=pqtls-ad-raw-key"),
        format!("{SLH_DSA}/delivery=pqtls-ad-carrier"),
    ];
    let arms: Vec<&str> = arms.iter().map(String::as_str).collect();
    let (rows, _, document) = virtually("--rtt 247ms --data 0KiB --connections 5", &arms);
    let rtt = 247 * MS;
    for (rows, round_trips) in rows.iter().zip([2, 1, 4, 3, 2, 2]) {
        assert_round_trips(rows, rtt, round_trips);
    }
    let bytes = |arm: usize| rows[arm][0].number("certificate_bytes");
    // The length of the root and of its place in the message.
    assert_eq!(bytes(0) - bytes(1), 5592);
    assert_eq!(rows[0][0].text("hello_digest"), "");
    for rows in [&rows[1], &rows[3], &rows[4], &rows[5]] {
        assert_eq!(outcomes(rows), ["used"]);
        assert_eq!(rows[0].text("hello_digest"), "echoed");
        // The resolver is on the client's host and has the record.
        assert!(rows[0].time("dns_record_ns") < MS);
    }
    let summary = &document["cells"][0]["arms"][1];
    assert_eq!(summary["delivery_outcomes"]["used"], 5);
    assert!(summary["dns_record_ms"]["p50"].as_f64().unwrap() < 1.0);
    assert!(summary["tls_handshake_ms"]["p50"].as_f64().unwrap() < 250.0);
    assert_eq!(
        document["cells"][0]["arms"][0]["delivery_outcomes"],
        Value::Null
    );
}

#[test]
fn a_record_that_is_late_costs_nothing() {
    let far = format!("{ML_DSA}/delivery=pqtls-ad/resolver_rtt=150ms");
    let patient = format!("{far}/grace=100ms");
    let arms = [ML_DSA, &far, &patient];
    let (rows, ..) = virtually("--rtt 100ms --data 0KiB --connections 5", &arms);
    assert_round_trips(&rows[0], 100 * MS, 2);
    assert_round_trips(&rows[1], 100 * MS, 2);
    assert_eq!(outcomes(&rows[1]), ["late"]);
    assert_eq!(
        rows[1][0].number("certificate_bytes"),
        rows[0][0].number("certificate_bytes")
    );
    // The address after one round trip to the resolver, the record after another: Nagle's algorithm
    // holds back its last segment.
    assert_eq!(rows[1][0].time("dns_address_ns").as_millis(), 150);
    assert_eq!(rows[1][0].time("dns_record_ns").as_millis(), 300);
    // TCP was there after 250 ms.
    assert_eq!(outcomes(&rows[2]), ["used"]);
    let waited = rows[2][0].time("handshake_ns") - rows[2][0].time("connect_ns");
    assert_eq!(waited.as_millis(), 150);
}

#[test]
fn whatever_goes_wrong_with_dns_costs_nothing() {
    let wrong = [
        ("absent", "no-record"),
        ("broken", "invalid"),
        ("foreign", "mismatch"),
    ];
    let arms = wrong.map(|(dns, _)| format!("{ML_DSA}/delivery=pqtls-ad/dns={dns}"));
    let all = [ML_DSA, &arms[0], &arms[1], &arms[2]];
    let (rows, ..) = virtually("--rtt 247ms --data 0KiB --connections 5", &all);
    let plain = rows[0][0].number("certificate_bytes");
    assert_round_trips(&rows[0], 247 * MS, 2);
    for (rows, (_, outcome)) in rows[1..].iter().zip(wrong) {
        assert_round_trips(rows, 247 * MS, 2);
        assert_eq!(outcomes(rows), [outcome]);
        assert_eq!(rows[0].number("certificate_bytes"), plain);
    }
}

#[test]
fn a_cold_resolver_fetches_each_record_over_the_same_link() {
    let cold = format!("{ML_DSA}/delivery=pqtls-ad/dns=cold");
    let options = "--rtt 100ms --loss 3% --data 0KiB --connections 60";
    let (rows, file, _) = virtually(options, &[ML_DSA, &cold]);
    let times: Vec<_> = rows[1]
        .iter()
        .map(|row| row.time("dns_record_ns"))
        .collect();
    // By UDP, in vain, then over TCP, whose connection Unbound keeps for a while.
    assert!(times.iter().all(|time| *time >= 200 * MS), "{times:?}");
    assert!(
        rows[1]
            .iter()
            .all(|row| row.time("dns_address_ns") >= 100 * MS)
    );
    assert!(outcomes(&rows[1]).contains(&"late"));

    let (_, again, _) = virtually(options, &[ML_DSA, &cold]);
    assert!(file == again, "two runs differ");
}

#[test]
fn the_live_engine_has_dns_servers_as_well() {
    let cached = format!("{ML_DSA}/delivery=pqtls-ad");
    let cold = format!("{ML_DSA}/delivery=pqtls-ad/dns=cold");
    let raw_key = format!("{SLH_DSA}/delivery=pqtls-ad-raw-key");
    let arms = [
        "--baseline",
        ML_DSA,
        "--against",
        &cached,
        "--against",
        &cold,
        "--against",
        &raw_key,
    ];
    let options = [
        "--engine",
        "live",
        "--rtt",
        "40ms",
        "--data",
        "0KiB",
        "--connections",
        "8",
    ];
    let measured = compare_with(&[&arms[..], &options[..]].concat());
    let fastest = |arm: &str, column: &str| {
        measured
            .rows_of(arm)
            .map(|row| row.time(column))
            .min()
            .unwrap()
    };
    // Three round trips without DNS, two with it: by how much is the machine's.
    assert!(fastest(ML_DSA, "handshake_ns") >= 120 * MS);
    assert!(fastest(&cached, "handshake_ns") >= 80 * MS);
    assert!(fastest(&cached, "handshake_ns") < 120 * MS);
    assert!(fastest(&cold, "dns_address_ns") >= 40 * MS);
    for arm in [&cached, &raw_key] {
        let rows: Vec<Row> = measured.rows_of(arm).cloned().collect();
        // Where the machine is busy, some are late.
        assert!(outcomes(&rows).contains(&"used"), "{arm}");
    }
}

#[test]
fn what_can_not_be_delivered_is_told_before_anything_is_measured() {
    let told = |arm: &str| {
        let options = [
            "compare",
            "--engine",
            "virtual",
            "--connections",
            "2",
            "--baseline",
        ];
        let ended = run(lastbyte().args(options).arg(arm));
        assert_eq!(ended.code, Some(2), "{arm}: {}", ended.stderr);
        ended.stderr
    };
    let fits = told("MLKEM768/ecdsa-p256/delivery=pqtls-ad");
    assert!(
        fits.contains("its whole chain fits an initial window"),
        "{fits}"
    );
    let cold = told(&format!("{SLH_DSA}/delivery=pqtls-ad-raw-key/dns=cold"));
    assert!(cold.contains("this one takes 2"), "{cold}");
    let no_root = told("MLKEM768/ml-dsa-65/delivery=pqtls-ad/from=root");
    assert!(
        no_root.contains("the chain has no root to publish"),
        "{no_root}"
    );
}

/// Nothing of a block is left when it has ended.
#[test]
fn no_dns_server_outlives_its_block() {
    let folder = TempDir::new().unwrap();
    let cached = format!("{ML_DSA}/delivery=pqtls-ad");
    let mut command = crate::common::lastbyte(["compare", "--engine", "live", "--rtt", "5ms"]);
    command.args([
        "--data",
        "0KiB",
        "--connections",
        "3",
        "--baseline",
        &cached,
    ]);
    let ended = run(command.env("TMPDIR", folder.path()));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    let is_there = |entry: &fs::DirEntry| {
        fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder.path()))
    };
    let processes = fs::read_dir("/proc").unwrap().flatten();
    assert_eq!(processes.filter(is_there).count(), 0);
}

/// Certificates that are compressed (RFC 8879), on rustls.
mod compressed {
    use super::*;

    const CHAIN: &str = "X25519MLKEM768/ml-dsa-44/stack=rustls";

    fn compressed(algorithm: &str) -> String {
        format!("{CHAIN}/delivery=compressed/compression={algorithm}")
    }

    /// Whether rows say that the chain of `plain` came compressed with this.
    fn assert_compressed(rows: &[Row], algorithm: &str, plain: &Row) {
        for row in rows {
            assert_eq!(row.text("outcome"), "completed", "{row:?}");
            assert_eq!(row.text("delivery"), "compressed");
            assert_eq!(row.text("certificate_compression"), algorithm);
            let uncompressed = row.number("uncompressed_certificate_bytes");
            assert_eq!(uncompressed, plain.number("certificate_bytes"));
            let bytes = row.number("certificate_bytes");
            assert!(bytes < uncompressed, "{bytes} of {uncompressed}");
            // Those in it are the chain's.
            assert_eq!(row.text("certificates"), plain.text("certificates"));
            // What was saved of the message was saved on the wire, but for records that end elsewhere.
            let saved = |column| plain.number(column) - row.number(column);
            let (message, flight) = (
                saved("certificate_bytes"),
                saved("server_flight_wire_bytes"),
            );
            // The client's offer is answered by nothing, and signatures have one length.
            assert!(flight.abs_diff(message) <= 22, "{flight} against {message}");
        }
    }

    #[test]
    fn a_chain_comes_compressed_and_is_the_same_chain() {
        let algorithms = ["zlib", "brotli", "zstd"];
        let arms: Vec<_> = [CHAIN.to_owned()]
            .into_iter()
            .chain(algorithms.map(compressed))
            .collect();
        let arms: Vec<&str> = arms.iter().map(String::as_str).collect();
        let (rows, _, document) = virtually("--rtt 50ms --data 1KiB --connections 5", &arms);
        let plain = &rows[0][0];
        assert_eq!(plain.text("certificate_compression"), "");
        for (rows, algorithm) in rows[1..].iter().zip(algorithms) {
            assert_compressed(rows, algorithm, plain);
        }
        for arm in document["cells"][0]["arms"].as_array().unwrap() {
            assert_eq!(arm["valid"], true, "{arm}");
        }
    }

    #[test]
    fn both_sides_of_mutual_tls_come_compressed_on_the_live_engine() {
        let plain = format!("{CHAIN}/mutual=ml-dsa-44");
        let arm = format!("{}/mutual=ml-dsa-44", compressed("zlib"));
        let measured = compare_with(&[
            "--engine",
            "live",
            "--rtt",
            "5ms",
            "--connections",
            "3",
            "--baseline",
            &plain,
            "--against",
            &arm,
        ]);
        let whole = measured.rows_of(&plain).next().unwrap();
        for row in measured.rows_of(&arm) {
            assert_compressed(std::slice::from_ref(row), "zlib", whole);
            assert_eq!(row.text("client_certificate_compression"), "zlib");
            let uncompressed = row.number("uncompressed_client_certificate_bytes");
            assert_eq!(uncompressed, whole.number("client_certificate_bytes"));
            assert!(row.number("client_certificate_bytes") < uncompressed);
        }
    }

    /// The preferred algorithm of the server that the client has, too, is used.
    #[test]
    fn both_sides_agree_on_an_algorithm() {
        let arm = format!("{}/client_compression=zstd+brotli", compressed("zlib+zstd"));
        let (rows, _, _) = virtually("--rtt 5ms --connections 2", &[CHAIN, &arm]);
        assert_compressed(&rows[1], "zstd", &rows[0][0]);
    }

    #[test]
    fn what_can_not_be_compressed_is_refused_before() {
        let plain = "x25519/ecdsa-p256";
        for (baseline, arm, expected) in [
            (
                plain,
                "x25519/ecdsa-p256/delivery=compressed",
                "openssl can't compress certificates",
            ),
            (
                "x25519/ecdsa-p256/stack=s2n-tls",
                "x25519/ecdsa-p256/stack=s2n-tls/delivery=compressed",
                "s2n-tls can't compress certificates",
            ),
            (
                // Whose mistake it is comes first.
                "x25519/ecdsa-p256/stack=rustls",
                "x25519/ecdsa-p256/delivery=compressed",
                "openssl can't compress certificates",
            ),
            (
                plain,
                "x25519/ecdsa-p256/stack=rustls/delivery=compressed",
                "has another stack, so the difference would be that of the stacks too: have that one say stack=rustls and \
                 no other client_stack=",
            ),
            (
                "x25519/ecdsa-p256/stack=rustls",
                "x25519/ecdsa-p256/stack=rustls/delivery=compressed/client_compression=zlib",
                "the server compresses with brotli and the client takes zlib, so nothing would be compressed: \
                 name an algorithm of both in compression= and client_compression=",
            ),
            (
                "x25519/ecdsa-p256/stack=rustls",
                "x25519/ecdsa-p256/stack=rustls/delivery=compressed/compression=brotly",
                "compression=\"brotly\" is not possible: did you mean \"brotli\"?",
            ),
            (
                "x25519/ecdsa-p256/stack=rustls",
                "x25519/ecdsa-p256/stack=rustls/compression=zlib",
                "compression= is for certificates that are compressed: add delivery=compressed",
            ),
            (
                "x25519/ecdsa-p256/stack=rustls",
                "x25519/ecdsa-p256/stack=rustls/delivery=compressed/resume=ticket",
                "a resumed session has no certificates to compress: leave resume= out",
            ),
            (
                "x25519/ecdsa-p256/stack=rustls",
                "x25519/ecdsa-p256:70000B/stack=rustls/delivery=compressed",
                "rustls can't take a Certificate message of 70000 bytes",
            ),
        ] {
            let mut command = lastbyte();
            command.args([
                "compare",
                "--engine",
                "virtual",
                "--chain-profile",
                "private",
            ]);
            command.args(["--baseline", baseline]);
            let ended = run(command.args(["--against", arm]));
            assert_eq!(ended.code, Some(2), "{arm}: {}", ended.stderr);
            let line = ended.stderr.lines().next().unwrap();
            assert!(line.contains(expected), "{}", ended.stderr);
        }
    }
}

/// Intermediates that a server leaves out for clients that have them, and clients that are wrong about that.
mod elided {
    use super::*;

    const CHAIN: &str = "X25519MLKEM768/ml-dsa-65/intermediates=2";
    const LOSSLESS: &str = "--rtt 100ms --data 20KiB --connections 3";

    fn elided(options: &str) -> String {
        format!("{CHAIN}/delivery=elide{options}")
    }

    /// Flight arithmetic of the rows that were saved agrees with them.
    pub(super) fn assert_arithmetic(options: &str, arm: &str) {
        let folder = TempDir::new().unwrap();
        let rows = at(&folder, "rows.parquet");
        let mut command = lastbyte();
        command
            .args([
                "compare",
                "--engine",
                "virtual",
                "--chain-profile",
                "private",
                "-o",
            ])
            .arg(&rows);
        command.args(options.split_whitespace());
        let ended = run(command.args(["--baseline", arm]));
        assert_eq!(ended.code, Some(0), "{arm}: {}", ended.stderr);
        let mut command = lastbyte();
        command
            .args(["validate", "--margin", "p50=0.1%"])
            .arg(&rows);
        let ended = run(command.arg("arithmetic"));
        let said = "0 differ and 0 are undecided";
        assert!(
            ended.stdout.contains(said),
            "{arm}: {}{}",
            ended.stdout,
            ended.stderr
        );
    }

    #[test]
    fn what_the_client_has_is_not_sent() {
        let arms = [
            CHAIN.to_owned(),
            elided(""),
            elided("/signal=trust-anchors"),
        ];
        let arms: Vec<&str> = arms.iter().map(String::as_str).collect();
        let (rows, ..) = virtually(LOSSLESS, &arms);
        let bytes = |arm: usize, column| rows[arm][0].number(column);
        assert_eq!(rows[0][0].text("chain_signal"), "");
        for (arm, signal, hello, encrypted, certificate) in
            [(1, "tls-flags", 6, 0, 0), (2, "anchored", 12, 18, 4)]
        {
            for row in &rows[arm] {
                assert_eq!(row.text("outcome"), "completed", "{row:?}");
                assert_eq!(row.text("chain_signal"), signal);
                assert_eq!(row.number("certificates"), 1);
                assert_eq!(row.number("attempts"), 1);
                assert_eq!(row.text("failed_alert_wire_bytes"), "");
            }
            let more = |column| bytes(arm, column) - bytes(0, column);
            assert_eq!(more("client_hello_bytes"), hello);
            assert_eq!(more("encrypted_extensions_bytes"), encrypted);
            let spec = lastbyte_pki::ChainSpec {
                intermediates: 2,
                ..lastbyte_pki::ChainSpec::new(lastbyte_pki::KeyAlgorithm::MlDsa65)
            };
            let intermediates = &spec.certificate_lengths().unwrap()[1..];
            let left_out: usize = intermediates.iter().map(|der| der + 5).sum();
            let saved = bytes(0, "certificate_bytes") - bytes(arm, "certificate_bytes");
            assert_eq!(saved, left_out as u64 - certificate);
        }
        // Three flights' worth of certificates in one.
        assert_round_trips(&rows[0], 100 * MS, 2);
        assert_round_trips(&rows[1], 100 * MS, 1);
        assert_round_trips(&rows[2], 100 * MS, 1);
    }

    #[test]
    fn a_client_without_it_pays_a_connection() {
        let stale = elided("/client=stale");
        let named = elided("/client=stale/signal=trust-anchors");
        let short = elided("/client=stale/signal=trust-anchors/fallback=short");
        let arms = [CHAIN, &stale, &named, &short];
        let (rows, file, document) = virtually(LOSSLESS, &arms);
        for arm in document["cells"][0]["arms"].as_array().unwrap() {
            assert_eq!(arm["valid"], true, "{arm}");
        }
        let signals = [("", 1), ("", 2), ("trust-anchors", 1), ("anchored", 2)];
        for (rows, (signal, attempts)) in rows.iter().zip(signals) {
            for row in rows {
                assert_eq!(row.text("outcome"), "completed", "{row:?}");
                assert_eq!(row.text("chain_signal"), signal);
                assert_eq!(row.number("attempts"), attempts);
                assert_eq!(row.number("certificates"), 3);
                // From the first connect() on, and the first one's.
                assert!(row.time("connect_ns") < 101 * MS);
            }
        }
        for failing in [&rows[1], &rows[3]] {
            for (row, plain) in failing.iter().zip(&rows[0]) {
                assert!(row.number("failed_client_hello_wire_bytes") > 1400);
                let sent = row.number("failed_server_flight_wire_bytes");
                assert!(sent > row.number("failed_through_certificate_wire_bytes"));
                assert_eq!(row.number("failed_alert_wire_bytes"), 7);
                for column in ["handshake_ns", "ttfb_ns", "ttlb_ns"] {
                    // TCP, and what the failing handshake took.
                    let more = row.time(column) - plain.time(column);
                    assert!(more >= 200 * MS && more < 202 * MS, "{column}: {more:?}");
                }
            }
        }
        let (_, again, _) = virtually(LOSSLESS, &arms);
        assert!(file == again, "two runs differ");
    }

    #[test]
    fn arithmetic_knows_all_of_it() {
        for options in [
            "",
            "/client=stale",
            "/signal=trust-anchors",
            "/signal=trust-anchors/client=stale/fallback=short",
        ] {
            assert_arithmetic(
                "--rtt 35ms,200ms --rate 1mbit,unlimited --initcwnd 4,10 --data 0KiB,20KiB --connections 5",
                &elided(options),
            );
        }
    }

    #[test]
    fn the_live_engine_tries_again_too() {
        let stale = elided("/client=stale");
        let arms = ["--baseline", CHAIN, "--against", &stale];
        let options = [
            "--engine",
            "live",
            "--rtt",
            "40ms",
            "--data",
            "1KiB",
            "--connections",
            "10",
        ];
        let measured = compare_with(&[&arms[..], &options[..]].concat());
        for row in measured.rows_of(&stale) {
            assert_eq!(row.text("outcome"), "completed", "{row:?}");
            assert_eq!(row.number("attempts"), 2);
            assert!(row.time("handshake_ns") >= 200 * MS, "{row:?}");
        }
        for row in measured.rows_of(CHAIN) {
            assert_eq!(row.number("attempts"), 1);
        }
    }

    /// In loss, a connection anew has luck of its own, which the seed decides.
    #[test]
    fn loss_meets_both_connections() {
        let stale = elided("/client=stale");
        let options = "--rtt 50ms --loss 5% --data 0KiB --connections 40";
        let (rows, file, _) = virtually(options, &[CHAIN, &stale]);
        assert!(rows[1].iter().all(|row| row.text("outcome") == "completed"));
        let (_, again, _) = virtually(options, &[CHAIN, &stale]);
        assert!(file == again, "two runs differ");
    }

    #[test]
    fn what_can_not_be_left_out_is_refused_before() {
        for (arm, expected) in [
            (
                "x25519/ecdsa-p256/stack=rustls/delivery=elide",
                "rustls can't leave out intermediates that the client has: it has no custom extensions: use stack=openssl",
            ),
            (
                "x25519/ecdsa-p256/stack=s2n-tls/delivery=elide",
                "s2n-tls can't leave out intermediates that the client has: it has no custom extensions: use stack=openssl",
            ),
            (
                "x25519/ecdsa-p256/intermediates=0/delivery=elide",
                "its chain has no intermediate to leave out",
            ),
            (
                "x25519/ecdsa-p256/delivery=elide/resume=ticket",
                "a resumed session has no certificates to leave out",
            ),
            (
                "x25519/ecdsa-p256/delivery=elide/fallback=short",
                "fallback= is for signal=trust-anchors",
            ),
            (
                "x25519/ecdsa-p256/delivery=elide/signal=tls-flag",
                "did you mean \"tls-flags\"?",
            ),
            (
                "x25519/ecdsa-p256/signal=tls-flags",
                "signal= is for intermediates that a client has: add delivery=elide",
            ),
        ] {
            let mut command = lastbyte();
            let ended = run(command.args(["compare", "--engine", "virtual", "--baseline", arm]));
            assert_eq!(ended.code, Some(2), "{arm}: {}", ended.stderr);
            let line = ended.stderr.lines().next().unwrap();
            assert!(line.contains(expected), "{}", ended.stderr);
        }
    }
}

/// Certificates of which both ends know some beforehand, on rustls.
mod abridged {
    use super::*;

    const CHAIN: &str = "X25519MLKEM768/ml-dsa-44/stack=rustls";

    #[test]
    fn known_certificates_take_three_bytes() {
        let abridged = format!("{CHAIN}/delivery=abridged");
        let compressed = format!("{CHAIN}/delivery=compressed/compression=zstd");
        let (rows, _, document) = virtually(
            "--rtt 50ms --data 1KiB --connections 3",
            &[CHAIN, &abridged, &compressed],
        );
        let plain = &rows[0][0];
        for row in &rows[1] {
            assert_eq!(row.text("outcome"), "completed", "{row:?}");
            assert_eq!(row.text("certificate_compression"), "abridged");
            let uncompressed = row.number("uncompressed_certificate_bytes");
            assert_eq!(uncompressed, plain.number("certificate_bytes"));
            assert_eq!(row.text("certificates"), plain.text("certificates"));
            // The key and the signature of the end-entity are left, and little besides.
            let left = row.number("certificate_bytes");
            assert!((1312 + 2420..1312 + 2420 + 400).contains(&left), "{left}");
            assert!(left < rows[2][0].number("certificate_bytes"));
        }
        for arm in document["cells"][0]["arms"].as_array().unwrap() {
            assert_eq!(arm["valid"], true, "{arm}");
        }
    }

    #[test]
    fn both_ends_need_the_same_list() {
        let folder = TempDir::new().unwrap();
        let store = crate::common::store();
        let spec = lastbyte_pki::ChainSpec::new(lastbyte_pki::KeyAlgorithm::MlDsa44);
        let chain = store.chain(&spec).unwrap();
        let pem = chain
            .certificates()
            .iter()
            .map(|certificate| certificate.to_pem().unwrap());
        let [list, root, leaf] = ["list.pem", "root.pem", "leaf.pem"].map(|name| at(&folder, name));
        fs::write(&list, pem.clone().flatten().collect::<Vec<u8>>()).unwrap();
        fs::write(&root, chain.root().to_pem().unwrap()).unwrap();
        fs::write(&leaf, pem.clone().next().unwrap()).unwrap();
        let large = at(&folder, "large.pem");
        fs::copy(&list, &large).unwrap();
        let file = fs::OpenOptions::new().write(true).open(&large).unwrap();
        file.set_len((32 << 20) + 1).unwrap();
        let arm = |keys: &str| format!("{CHAIN}/delivery=abridged{keys}");
        let told = |arm: &str| {
            let mut command =
                crate::common::lastbyte(["compare", "--engine", "live", "--rtt", "1ms"]);
            command.args(["--data", "0KiB", "--connections", "2", "--baseline", arm]);
            run(&mut command)
        };
        let named = |path: &std::path::Path| path.display().to_string();
        let same = told(&arm(&format!("/abridged_list={}", named(&list))));
        assert_eq!(same.code, Some(0), "{}", same.stderr);
        for (keys, expected) in [
            (
                format!(
                    "/abridged_list={}/client_abridged_list={}",
                    named(&list),
                    named(&root)
                ),
                "its handshake, tried in memory, fails: ",
            ),
            (
                format!("/abridged_list={}", named(&leaf)),
                "it holds no certificate of a CA",
            ),
            (
                format!("/abridged_list={}", named(&large)),
                "large.pem: it is larger than 32 MiB",
            ),
            (
                "/abridged_list=./nowhere.pem".to_owned(),
                "nowhere.pem: No such file",
            ),
        ] {
            let ended = told(&arm(&keys));
            assert_eq!(ended.code, Some(2), "{keys}: {}", ended.stderr);
            let line = ended.stderr.lines().next().unwrap();
            assert!(line.contains(expected), "{}", ended.stderr);
        }
    }

    #[test]
    fn only_rustls_abridges() {
        for (arm, expected) in [
            (
                "x25519/ecdsa-p256/delivery=abridged",
                "openssl can't abridge certificates",
            ),
            (
                "x25519/ecdsa-p256/stack=s2n-tls/delivery=abridged",
                "s2n-tls can't abridge certificates",
            ),
        ] {
            let mut command = lastbyte();
            let ended = run(command.args(["compare", "--engine", "virtual", "--baseline", arm]));
            assert_eq!(ended.code, Some(2), "{arm}: {}", ended.stderr);
            let line = ended.stderr.lines().next().unwrap();
            assert!(line.contains(expected), "{}", ended.stderr);
        }
    }
}

/// A leaf that says less is as much smaller, on every stack, and clients take it.
#[test]
fn a_trimmed_leaf_is_as_small_as_arithmetic_has_it() {
    const TRIMMED: &str = "names=1/leaf_without=policies+aia+crl";
    for chain in ["x25519/ecdsa-p256", "X25519MLKEM768/ml-dsa-44+ml-dsa-65"] {
        for stack in ["openssl", "rustls"] {
            let whole = format!("{chain}/scts=2/stack={stack}");
            let trimmed = format!("{chain}/{TRIMMED}/stack={stack}");
            let (rows, ..) =
                virtually("--rtt 5ms --data 0KiB --connections 1", &[&whole, &trimmed]);
            for (rows, arm) in rows.iter().zip([whole, trimmed]) {
                let arm: lastbyte::study::Arm = arm.parse().unwrap();
                let lastbyte::study::ArmChain::Made(spec) = &arm.chain else {
                    panic!("it is made")
                };
                assert_eq!(rows[0].text("outcome"), "completed");
                let bytes = rows[0].number("certificate_bytes");
                assert_eq!(bytes, spec.unpadded_bytes() as u64, "{}", arm.label);
            }
        }
    }
}

mod merkle_tree {
    use super::elided::assert_arithmetic;
    use super::*;

    const CHAIN: &str = "X25519MLKEM768/ml-dsa-44";
    const LOSSLESS: &str = "--rtt 100ms --data 20KiB --connections 2";

    fn mtc(options: &str) -> String {
        format!("{CHAIN}/delivery=mtc-{options}")
    }

    /// Bytes of the server's handshake on the wire and of its Certificate message.
    fn sizes(rows: &[Row]) -> [u64; 2] {
        let of = |column| {
            let numbers = rows.iter().map(|row| row.number(column));
            let mut numbers: Vec<u64> = numbers.collect();
            numbers.dedup();
            assert_eq!(numbers.len(), 1, "{column}: {numbers:?}");
            numbers[0]
        };
        [of("server_flight_wire_bytes"), of("certificate_bytes")]
    }

    #[test]
    fn one_certificate_is_all_that_is_sent() {
        let arms = [
            CHAIN.to_owned(),
            mtc("landmark"),
            mtc("landmark/client=stale"),
            mtc("landmark/hello=empty"),
            mtc("standalone"),
            mtc("standalone/cosigners=3"),
        ];
        let arms: Vec<&str> = arms.iter().map(String::as_str).collect();
        let (rows, _, _) = virtually(LOSSLESS, &arms);
        let rtt = 100 * MS;
        // The second connection of who names nothing takes the round trips of the first one besides.
        for (rows, rtts) in rows.iter().zip([1, 1, 1, 3, 1, 1]) {
            assert_round_trips(rows, rtt, rtts);
        }
        let [landmark, stale, empty, standalone, three] =
            [1, 2, 3, 4, 5].map(|arm| sizes(&rows[arm]));
        // draft-ietf-plants-merkle-tree-certs-07: 23 hashes at most, and no signature.
        assert!(landmark[0] <= 6200, "{landmark:?}");
        assert_eq!(landmark[1], empty[1]);
        assert_eq!(stale[1], standalone[1]);
        // A cosigner more is a signature, its length and a name of six bytes with its length.
        assert_eq!(three[1] - standalone[1], 2420 + 2 + 1 + 4);
    }

    #[test]
    fn arithmetic_knows_all_of_it() {
        for options in [
            "landmark",
            "landmark/client=stale",
            "landmark/hello=empty",
            "standalone/cosigners=apple",
        ] {
            assert_arithmetic(LOSSLESS, &mtc(options));
        }
        assert_arithmetic(LOSSLESS, &mtc("landmark/stack=rustls/hello=nothing"));
    }

    #[test]
    fn what_can_not_be_is_refused_before() {
        for (arm, problem) in [
            (mtc("standalone/client=stale"), "no client is stale"),
            (
                mtc("landmark/client=stale/hello=nothing"),
                "leave hello= out",
            ),
            (mtc("landmark/stack=rustls"), "add hello=nothing"),
            (mtc("landmark/resume=ticket"), "leave resume= out"),
            (
                mtc("landmark/cosigners=17"),
                "name ca, chrome, apple, or a number from 1 to 16",
            ),
            (mtc("landmark/entries=0"), "use 1 to 1000000000"),
        ] {
            let ended = run(lastbyte().args(["compare", "--baseline", CHAIN, "--against", &arm]));
            assert_eq!(ended.code, Some(2), "{arm}");
            assert!(ended.stderr.contains(problem), "{arm}: {}", ended.stderr);
        }
    }
}

/// This one stood still: a thread of a DNS server was half ended when the kernel looked for it.
#[test]
fn a_guest_ends_while_threads_of_its_servers_do() {
    let arms = [
        "X25519MLKEM768/ml-dsa-44",
        "X25519MLKEM768/ml-dsa-44/delivery=pqtls-ad/from=intermediate",
    ];
    let (rows, ..) = virtually("--rtt 35ms --data 20KiB --connections 10", &arms);
    assert_eq!(rows.iter().map(Vec::len).collect::<Vec<_>>(), [10, 10]);
}
