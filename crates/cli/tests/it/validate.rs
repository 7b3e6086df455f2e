//! `lastbyte validate`: what it says of two sets of results, and how it ends.
use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::common::{Ended, assert_fits, at, lastbyte, need_live_engine, run};
use lastbyte::report::validation::SCHEMA;
use lastbyte::results::rows::Origin;
use lastbyte::results::{
    Dns, EngineReport, Environment, Exchange, Lateness, Measurement, Outcome, Row, Sample, Times,
    TransportStats, Validity, expected, write_rows,
};
use lastbyte::study::{Arm, Buffers, Cell, EngineName, Experiment, RecordSize};
use lastbyte_exchange::HandshakeFlight;
use lastbyte_flights::Compute;
use lastbyte_link::{Bytes, Direction, Link};
use lastbyte_tls::Group;
use lastbyte_tls::observer::Message;
use serde_json::Value;
use tempfile::TempDir;

/// 35 ms and 1 Gbit/s with 50 KiB.
fn cell(loss: &str) -> Cell {
    let way = Direction {
        rate: Some("1gbit".parse().unwrap()),
        loss: loss.parse().unwrap(),
        ..Direction::default()
    };
    Cell {
        link: Link::symmetric(Duration::from_millis(35), way),
        data: Bytes(50 << 10),
        ..Cell::default()
    }
}

/// What the handshakes of x25519 with 2500 B of RSA-2048 are on the wire, all but for their last flight.
fn exchange() -> Exchange {
    let mut exchange = Exchange::default();
    for (message, bytes) in [
        (Message::Certificate, 2500),
        (Message::CertificateVerify, 264),
    ] {
        exchange.handshake.messages.set(message, Some(bytes));
    }
    for (flight, bytes) in [
        (HandshakeFlight::ClientHello, 250),
        (HandshakeFlight::Server, 2000),
        (HandshakeFlight::ClientFinish, 58),
    ] {
        exchange.handshake.see(flight, Some(bytes));
    }
    exchange.negotiated.group = Some(Group::X25519.code_point());
    exchange.negotiated.signature = Some(0x0804);
    exchange.negotiated.certificates = Some(2);
    exchange
}

/// A file of rows with these times in nanoseconds.
fn write(path: &Path, loss: &str, rows: impl IntoIterator<Item = [u128; 4]>) {
    let arm: Arm = "x25519/rsa-2048:2500B".parse().unwrap();
    let rows = rows.into_iter().zip(0..).map(|(times, index)| {
        let [connect, handshake, ttfb, ttlb] =
            times.map(|nanos| Some(Duration::from_nanos(nanos.try_into().unwrap())));
        Row {
            index,
            block: 0,
            outcome: Outcome::Completed,
            times: Times {
                connect,
                handshake,
                server_handshake: handshake,
                ttfb,
                ttlb,
            },
            exchange: exchange(),
            dns: Dns::default(),
            measurement: Measurement::Transfer,
            transport: TransportStats::default(),
            lateness: Lateness::default(),
        }
    });
    let rows: Vec<Row> = rows.collect();
    let experiment = Experiment::new(vec![arm], vec![cell(loss)], rows.len().max(1) as u32);
    let sample = Sample {
        arm: 0,
        cell: 0,
        rows,
        chain_digest: "ab".to_owned(),
        engine: EngineReport {
            buffers: Buffers::Linux,
            concurrency: 1,
            lowered: 0,
            link_lateness_p99: Duration::ZERO,
            endpoint_wait_p50: Duration::ZERO,
            packets: 0,
            emulator_cpu: Duration::ZERO,
            endpoint_cpu: Duration::ZERO,
            cpu_costs: None,
            beside: Default::default(),
            computing: None,
            validity: Validity::Valid,
        },
    };
    let origin = Origin {
        study: "compare",
        measure: "compare",
        engine: EngineName::Live,
    };
    let samples: Vec<Sample> = Some(sample)
        .into_iter()
        .filter(|sample| !sample.rows.is_empty())
        .collect();
    let (file, environment) = (fs::File::create(path).unwrap(), Environment::default());
    write_rows(file, origin, &experiment, &samples, &environment, None).unwrap();
}

/// This many connections within 0.1 % of each other, and this much slower.
fn spread(connections: u32, slower: f64) -> impl Iterator<Item = [u128; 4]> {
    (0..connections).map(move |index| {
        let spread = 1.0 + f64::from(index) / f64::from(connections) / 1000.0;
        [35e6, 70e6, 105e6, 140e6].map(|time| (time * spread * slower) as u128)
    })
}

fn validate(a: &Path, b: &Path, options: &[&str]) -> Ended {
    run(lastbyte(["validate"]).arg(a).arg(b).args(options))
}

/// Two files of rows, and what is said of them.
fn compare(a: (u32, f64), b: (u32, f64), options: &[&str]) -> Ended {
    let folder = TempDir::new().unwrap();
    let [path_a, path_b] = ["a.parquet", "b.parquet"].map(|name| at(&folder, name));
    write(&path_a, "0%", spread(a.0, a.1));
    write(&path_b, "0%", spread(b.0, b.1));
    validate(&path_a, &path_b, options)
}

#[test]
fn agreement_ends_with_0() {
    let ended = compare((500, 1.0), (200, 1.0002), &[]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(ended.stderr, "");
    let answer = "Of 8 comparisons, 8 agree, 0 differ and 0 are undecided.\n";
    assert!(ended.stdout.contains(answer), "{}", ended.stdout);
    let heading = "RTT 35ms, 1gbit, loss 0%, initcwnd 10, 50KiB: 500 and 200 connections\n";
    assert!(ended.stdout.starts_with(heading), "{}", ended.stdout);
}

#[test]
fn a_difference_ends_with_1() {
    let ended = compare((500, 1.0), (500, 1.01), &[]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert_eq!(ended.stderr, "lastbyte: 4 of 8 comparisons differ\n");
    // The results come first.
    assert!(ended.stdout.contains("differs"), "{}", ended.stdout);
    // Margins are the user's.
    let ended = compare((500, 1.0), (500, 1.01), &["--margin", "p50=2%,p99=3%"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

#[test]
fn a_sample_that_is_too_small_ends_with_0_unless_strict() {
    let options: [&[&str]; 2] = [&[], &["--strict"]];
    for (options, code) in options.into_iter().zip([0, 1]) {
        let ended = compare((5, 1.0), (5, 1.0), options);
        assert_eq!(ended.code, Some(code), "{}", ended.stderr);
        let undecided = "8 of 8 comparisons are undecided\n";
        assert!(ended.stderr.ends_with(undecided), "{}", ended.stderr);
        let hint = "connections a sample would decide all.";
        assert!(ended.stdout.contains(hint), "{}", ended.stdout);
    }
}

#[test]
fn what_agrees_with_arithmetic_and_what_does_not() {
    let folder = TempDir::new().unwrap();
    let expected = expected(
        &exchange(),
        &cell("0%"),
        RecordSize::FirstSegment,
        Compute::default(),
    );
    let [connect, handshake, ttfb, ttlb] = [
        expected.connect.unwrap(),
        expected.handshake,
        expected.ttfb.unwrap(),
        expected.ttlb,
    ]
    .map(|time| time.as_nanos());
    for (ttlb, code) in [
        (ttlb, 0),
        (ttlb + ttlb / 1100, 0),
        (ttlb + ttlb / 900, 1),
        (ttlb - ttlb / 900, 1),
    ] {
        let path = at(&folder, "rows.parquet");
        write(&path, "0%", vec![[connect, handshake, ttfb, ttlb]; 3]);
        let arithmetic = Path::new("arithmetic");
        for ended in [
            validate(&path, arithmetic, &[]),
            validate(arithmetic, &path, &[]),
        ] {
            assert_eq!(ended.code, Some(code), "{ttlb}: {}", ended.stderr);
            assert!(
                ended.stdout.contains(": 3 connections\n"),
                "{}",
                ended.stdout
            );
        }
    }
    // Of loss, arithmetic knows nothing.
    let lossy = at(&folder, "lossy.parquet");
    write(&lossy, "1%", spread(3, 1.0));
    let ended = validate(&lossy, Path::new("arithmetic"), &[]);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    let told = "has no sample that arithmetic can tell: it takes cells without loss";
    assert!(ended.stderr.contains(told), "{}", ended.stderr);
}

#[test]
fn the_document_is_as_its_schema_says() {
    let ended = compare((300, 1.0), (300, 1.01), &["--format", "json"]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_fits(&document, SCHEMA);
    let ttlb = &document["cells"][0]["arms"][0]["metrics"][3];
    assert_eq!(ttlb["metric"], "ttlb");
    assert_eq!(ttlb["p50"]["verdict"], "differs");
    assert_eq!(ttlb["p75"]["verdict"], Value::Null);
    assert_eq!(ttlb["p90"]["verdict"], "agrees");
    let difference = ttlb["p50"]["difference_percent"]["value"].as_f64().unwrap();
    assert!((difference - 1.0).abs() < 0.01, "{difference}");
}

#[test]
fn a_page_is_written() {
    let folder = TempDir::new().unwrap();
    let page = at(&folder, "validate.html");
    let options = ["-o", page.to_str().unwrap(), "--format", "markdown"];
    let ended = compare((300, 1.0), (300, 1.0), &options);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(
        ended.stdout.contains("| arm | metric | p50 |"),
        "{}",
        ended.stdout
    );
    let html = fs::read_to_string(&page).unwrap();
    assert_eq!(
        ended.stderr,
        format!("lastbyte: wrote {}\n", page.display())
    );
    assert_eq!(html.matches("</svg>").count(), 4);
    assert!(html.ends_with("</html>\n"));
}

#[test]
fn wrong_input_ends_with_2() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| at(&folder, name).to_str().unwrap().to_owned();
    let (good, lossy) = (path("good.parquet"), path("lossy.parquet"));
    write(Path::new(&good), "0%", spread(3, 1.0));
    write(Path::new(&lossy), "1%", spread(3, 1.0));
    write(Path::new(&path("none.parquet")), "0%", []);
    fs::write(path("binary.parquet"), [0xff, 0xfe, 0, 1, 2, b'\n', 0xff]).unwrap();
    fs::write(path("rows.csv"), "study,measure\n").unwrap();
    fs::create_dir(path("folder")).unwrap();

    for (a, b, options, problem) in [
        (&path("missing.parquet"), &good, "", "missing.parquet"),
        (
            &path("rows.csv"),
            &good,
            "",
            "name rows .parquet, as -o rows.parquet does",
        ),
        (
            &path("missing"),
            &good,
            "",
            "holds no run: name a folder of `lastbyte run`",
        ),
        (
            &path("folder"),
            &good,
            "",
            "holds no run: name a folder of `lastbyte run`",
        ),
        (
            &path("none.parquet"),
            &good,
            "",
            "holds no connection: measure some first",
        ),
        (&path("binary.parquet"), &good, "", "binary.parquet"),
        (
            &good,
            &lossy,
            "",
            "have no sample in common: measure the same arms in the same cells",
        ),
        (
            &"arithmetic".to_owned(),
            &"arithmetic".to_owned(),
            "",
            "arithmetic agrees with itself",
        ),
        (&good, &good, "--margin=p50", "write PERCENTILE=PERCENT"),
        (
            &good,
            &good,
            "--margin=p50=1%,p50=2%",
            "margin of p50 is given twice: name each once",
        ),
        (&good, &good, "--output=page.txt", "name it .html"),
        (
            &good,
            &good,
            "--output=/nowhere/page.html",
            "can't write \"/nowhere/page.html\"",
        ),
    ] {
        let options: Vec<_> = options.split_whitespace().collect();
        let ended = validate(Path::new(a), Path::new(b), &options);
        assert_eq!(ended.code, Some(2), "{a} {b} {options:?}: {}", ended.stderr);
        assert_eq!(ended.stdout, "");
        assert!(
            ended.stderr.contains(problem),
            "{}\nnot {problem}",
            ended.stderr
        );
    }
}

/// From `lastbyte run` to a verdict.
#[test]
fn two_runs_of_a_study_are_compared() {
    need_live_engine();
    let folder = TempDir::new().unwrap();
    let study = at(&folder, "study.toml");
    fs::write(
        &study,
        r#"
name = "small"
connections = 20

[arm.classical]
tls = "x25519/ecdsa-p256"

[link.near]
rtt = "20ms"
rate = "1gbit"

[[measure]]
id = "sizes"
arms = ["classical"]
links = ["near"]
data = ["0KiB", "1KiB"]
"#,
    )
    .unwrap();
    let [a, b] = ["a", "b"].map(|name| at(&folder, name));
    for output in [&a, &b] {
        let mut command = lastbyte(["run", "--engine", "live", "-o"]);
        let ended = run(command.arg(output).arg(&study));
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    }
    // The machine may be busy, and both runs be late in their own ways: only what they are
    // compared by is sure.
    let ended = validate(&a, &b, &["--format", "json", "--margin", "p50=1000%"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(document["comparisons"], 2 + 4);
    assert_eq!(document["verdict"], "agrees");
    assert_eq!(document["warnings"], Value::Array(Vec::new()));
    for (cell, bytes) in [(0, 0), (1, 1024)] {
        let cell = &document["cells"][cell];
        assert_eq!(cell["measure"], "sizes");
        assert_eq!(cell["data_bytes"], bytes);
        assert_eq!(cell["arms"][0]["arm"], "classical");
        assert_eq!(cell["arms"][0]["b"]["connections"], 20);
        let connect = &cell["arms"][0]["metrics"][0]["p50"]["a_ms"];
        assert!(connect.as_f64().unwrap() >= 20.0, "{connect}");
    }
}
