//! What else is on a link, in virtual time: bulk transfers, and connections that begin together. A kernel has to be there.
use std::fs;
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use crate::common::{Row, at, read_rows, run};

const ARM: &str = "x25519/ecdsa-p256";

/// The program with the user's own cache, which has the kernel.
fn compare(options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lastbyte"));
    command
        .args([
            "compare",
            "--engine",
            "virtual",
            "--chain-profile",
            "private",
        ])
        .args(options);
    command
}

fn rows(options: &[&str]) -> Vec<Row> {
    let folder = TempDir::new().unwrap();
    let file = at(&folder, "rows.csv");
    let mut command = compare(options);
    let ended = run(command.args(["--cpu", "none", "-o"]).arg(&file));
    assert_eq!(ended.code, Some(0), "{command:?}: {}", ended.stderr);
    read_rows(&file)
}

/// What comes before arms differ is the same for all, and an arm has the same in each order, over each way to emulate a link.
#[test]
fn each_arm_meets_the_same_crowd() {
    let (one, other) = (ARM, "X25519MLKEM768/ml-dsa-65");
    for more in [
        &["--cross-traffic", "2 cubic+bbr up", "--loss", "1%"][..],
        &[
            "--cross-traffic",
            "bbr",
            "--emulation",
            "link",
            "--qdisc",
            "fq_codel",
            "--at-once",
            "3",
        ],
    ] {
        let options = [
            "--rtt",
            "20ms",
            "--rate",
            "5mbit",
            "--data",
            "20KiB",
            "--connections",
            "6",
            "--cross-lead",
            "1s",
        ];
        let measured = |arms: [&str; 2]| {
            let arms = ["--baseline", arms[0], "--against", arms[1]];
            rows(&[&options[..], more, &arms].concat())
        };
        let of = |rows: &[Row], arm: &str, columns: &[&str]| -> Vec<String> {
            let rows = rows.iter().filter(|row| row.text("arm") == arm);
            let texts = rows.map(|row| {
                columns
                    .iter()
                    .map(|column| row.text(column))
                    .collect::<Vec<_>>()
                    .join(" ")
            });
            texts.collect()
        };
        let rows = measured([one, other]);
        let before = of(&rows, one, &["index", "connect_ns"]);
        assert_eq!(before.len(), 6);
        assert_eq!(
            before,
            of(&rows, other, &["index", "connect_ns"]),
            "{more:?}"
        );
        let swapped = measured([other, one]);
        let all = [
            "index",
            "outcome",
            "connect_ns",
            "handshake_ns",
            "ttfb_ns",
            "ttlb_ns",
            "server_retransmits",
        ];
        for arm in [one, other] {
            assert_eq!(of(&rows, arm, &all), of(&swapped, arm, &all), "{more:?}");
        }
    }
}

/// A transfer by CUBIC fills the queue, and whoever comes then waits behind it, but not for longer than it is.
#[test]
fn a_connection_waits_behind_the_queue_that_a_transfer_has_filled() {
    let options = [
        "--baseline",
        ARM,
        "--rtt",
        "20ms",
        "--rate",
        "10mbit",
        "--data",
        "0B",
        "--connections",
        "4",
    ];
    let more = ["--emulation", "link", "--qdisc", "fifo limit 50"];
    let connect = |crowd: &[&str]| -> Vec<Duration> {
        let rows = rows(&[&options[..], &more, crowd].concat());
        rows.iter().map(|row| row.time("connect_ns")).collect()
    };
    let alone = connect(&[]);
    // Fifty packets of 1514 bytes.
    let queue = Duration::from_nanos(50 * 1514 * 8 * 100);
    let waits: Vec<Duration> = (connect(&["--cross-traffic", "cubic"]).iter())
        .zip(&alone)
        .map(|(beside, alone)| *beside - *alone)
        .collect();
    assert!(waits.iter().all(|wait| *wait <= queue), "{waits:?}");
    assert!(waits.iter().any(|wait| *wait > queue / 2), "{waits:?}");
    // What goes the other way has a queue of its own, in which there are acknowledgements alone.
    let up = connect(&["--cross-traffic", "cubic up", "--cross-lead", "0ms"]);
    assert!(
        up.iter().zip(&alone).all(|(beside, alone)| beside >= alone),
        "{up:?}"
    );
}

/// Where a link has room for all, each has what it has alone: the arithmetic of one holds for all. Where it has not, nothing
/// is carried faster than the rate.
#[test]
fn connections_at_once_share_the_rate_and_nothing_else() {
    let arms = ["--baseline", ARM, "--connections", "12"];
    let wide = ["--rtt", "50ms", "--data", "10KiB", "--rate", "100gbit"];
    let alone = rows(&[&arms[..], &wide].concat());
    for emulation in ["netem", "link"] {
        let together = rows(
            &[
                &arms[..],
                &wide,
                &["--at-once", "6", "--emulation", emulation],
            ]
            .concat(),
        );
        assert_eq!(together.len(), 12);
        for (one, other) in alone.iter().zip(&together) {
            let (one, other) = (one.time("ttlb_ns"), other.time("ttlb_ns"));
            assert!(
                one.abs_diff(other) < Duration::from_micros(200),
                "{emulation}: {one:?} {other:?}"
            );
        }
    }
    let narrow = [
        "--rtt",
        "10ms",
        "--data",
        "100KiB",
        "--rate",
        "8mbit",
        "--at-once",
        "6",
    ];
    let together = rows(&[&arms[..], &narrow].concat());
    for group in together.chunks(6) {
        let last = group.iter().map(|row| row.time("ttlb_ns")).max().unwrap();
        // A byte takes a microsecond.
        assert!(last > Duration::from_micros(6 * 102_400), "{last:?}");
        assert!(last < Duration::from_micros(8 * 102_400), "{last:?}");
    }
}

/// Where users have networks of their own, a transfer shares the rate that each draws.
#[test]
fn users_of_several_networks_meet_cross_traffic_at_the_rate_of_theirs() {
    let options = [
        "--baseline",
        ARM,
        "--mix",
        "lte=1,fibre=1",
        "--data",
        "0B",
        "--connections",
        "4",
    ];
    let connect = |crowd: &[&str]| -> Vec<Duration> {
        let rows = rows(&[&options[..], crowd].concat());
        rows.iter().map(|row| row.time("connect_ns")).collect()
    };
    let crowd = ["--cross-traffic", "cubic", "--cross-lead", "2s"];
    let (alone, beside) = (connect(&[]), connect(&crowd));
    assert_eq!(beside.len(), 4);
    assert!(
        beside
            .iter()
            .zip(&alone)
            .any(|(beside, alone)| beside > alone),
        "{beside:?}"
    );
}

/// A block holds whole groups, whatever their size.
#[test]
fn a_sample_of_several_blocks_has_whole_groups() {
    let options = [
        "--baseline",
        ARM,
        "--rtt",
        "5ms",
        "--rate",
        "20mbit",
        "--data",
        "0B",
        "--connections",
        "252",
        "--at-once",
        "7",
    ];
    let rows = rows(&options);
    assert_eq!(rows.len(), 252);
    // Seven ClientHellos behind each other: the places of a group are those of every other.
    let places = |group: &[Row]| -> Vec<u64> {
        let times = group.iter().map(|row| row.number("connect_ns") / 1000);
        times.collect()
    };
    let first = places(&rows[..7]);
    assert!(first.windows(2).all(|pair| pair[0] < pair[1]), "{first:?}");
    for group in rows.chunks(7) {
        assert_eq!(places(group), first);
    }
}

/// What computing takes is added to the network's times, or within them: a slower client's too.
#[test]
fn a_slower_client_is_the_same_in_sums_and_in_the_clock() {
    let options = [
        "--baseline",
        ARM,
        "--rtt",
        "20ms",
        "--data",
        "1KiB",
        "--connections",
        "2",
        "--client-cpu",
        "100x",
    ];
    let handshake = |cpu: &str| {
        let ended = run(compare(&options).args(["--cpu", cpu, "--format", "json"]));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let document: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
        let cell = &document["cells"][0];
        assert_eq!(cell["client_cpu"], "100x");
        cell["arms"][0]["handshake_ms"]["p50"].as_f64().unwrap()
    };
    let (beside, calibrated) = (handshake("beside"), handshake("calibrated"));
    // A client's tenth of a millisecond at least, and two calibrations apart by no more than this.
    assert!(beside > 50.0, "{beside}");
    let apart = (beside - calibrated).abs() / (beside - 40.0);
    assert!(apart < 0.5, "{beside} {calibrated}");
}

#[test]
fn what_a_crowd_does_not_go_with_is_refused_in_a_line() {
    let place = TempDir::new().unwrap();
    let trace = place.path().join("lte.trace");
    fs::write(&trace, "1\n").unwrap();
    let once = format!("{} once", trace.display());
    let quic = "x25519/ecdsa-p256/transport=quic";
    for (options, expected) in [
        (
            &["--baseline", ARM, "--cross-traffic", "vegas"][..],
            "use one of cubic, reno, bbr",
        ),
        (
            &["--baseline", ARM, "--cross-traffic", "0 bbr"],
            "write 1 to 32 in all",
        ),
        (
            &[
                "--baseline",
                ARM,
                "--cross-traffic",
                "bbr",
                "--rate",
                "unlimited",
            ],
            "give the link a rate or a trace",
        ),
        (
            &[
                "--baseline",
                ARM,
                "--cross-traffic",
                "bbr",
                "--emulation",
                "link",
                "--trace",
                &once,
            ],
            "begins with the cross traffic, 5s before a connection at least, and does not begin again: leave once out",
        ),
        (&["--baseline", ARM, "--at-once", "0"], "--at-once"),
        (&["--baseline", ARM, "--at-once", "10001"], "--at-once"),
        (
            &["--baseline", ARM, "--cross-lead", "11min"],
            "--cross-lead",
        ),
        (
            &["--baseline", ARM, "--cross-lead", "1s"],
            "give cross_traffic, or leave cross_lead out",
        ),
        (
            &["--baseline", quic, "--at-once", "2"],
            "quic_in = \"guest\"",
        ),
        (
            &["--baseline", ARM, "--at-once", "2", "--cpu", "calibrated"],
            "leave at_once or cpu out",
        ),
        (
            &["--baseline", ARM, "--at-once", "6", "--connections", "200"],
            "ask for 204",
        ),
        (
            &[
                "--baseline",
                ARM,
                "--at-once",
                "2",
                "--preset",
                "published-2024",
            ],
            "leave at_once or preset out",
        ),
        (
            &["--baseline", ARM, "--at-once", "7919,7907"],
            "no common multiple",
        ),
        (
            &[
                "--baseline",
                ARM,
                "--cross-traffic",
                "bbr",
                "--capture",
                "1",
                "--capture-to",
                "c",
            ],
            "--capture",
        ),
        (
            &[
                "--baseline",
                "x25519/ml-dsa-65/delivery=pqtls-ad",
                "--at-once",
                "2",
            ],
            "leave at_once out",
        ),
    ] {
        let ended = run(&mut compare(options));
        assert_eq!(ended.code, Some(2), "{options:?}: {ended:?}");
        let last = ended.stderr.lines().last().unwrap_or_default();
        assert!(last.contains(expected), "{options:?}: {ended:?}");
    }
    let live = [
        "compare",
        "--engine",
        "live",
        "--baseline",
        ARM,
        "--cross-traffic",
        "bbr",
    ];
    let lose = ["lose", ARM, "--rtt", "10ms", "--at-once", "2"];
    for (options, expected) in [(&live[..], "use --engine virtual"), (&lose, "at_once")] {
        let ended = run(Command::new(env!("CARGO_BIN_EXE_lastbyte")).args(options));
        assert_eq!(ended.code, Some(2), "{options:?}: {ended:?}");
        assert!(ended.stderr.contains(expected), "{options:?}: {ended:?}");
    }
}
