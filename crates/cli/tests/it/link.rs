//! The emulated link, as the connections over it feel it.
use std::fs::{self, File};
use std::time::Duration;

use crate::common::{cell, compare, compare_with, lastbyte, measure, prepare, run};
use lastbyte::results::{Outcome, Row};
use lastbyte_link::{Bytes, Direction, Link, Rate};
use tempfile::TempDir;

const CHAIN: &str = "x25519/ecdsa-p256";

#[test]
fn a_link_that_loses_packets_makes_tcp_send_them_again() {
    let measured = compare(&format!(
        "--baseline {CHAIN} --loss 5% --rtt 10ms --data 100KiB --connections 10 --timeout 60s"
    ));
    for row in &measured.rows {
        assert_eq!(row.text("outcome"), "completed");
    }
    // Of 10 times 73 segments, hardly none is lost.
    let retransmits = measured
        .rows
        .iter()
        .map(|row| row.number("server_retransmits"));
    assert!(retransmits.sum::<u64>() > 0);
}

#[test]
fn a_link_that_loses_everything_carries_no_connection() {
    let links = [("0%", "100%"), ("100%", "0%")].map(|(forward, backward)| Link {
        forward: Direction {
            loss: forward.parse().unwrap(),
            ..Direction::default()
        },
        backward: Direction {
            loss: backward.parse().unwrap(),
            ..Direction::default()
        },
    });
    for link in links {
        for row in rows(link, 0, Duration::from_millis(100)) {
            assert_eq!(row.outcome, Outcome::TimedOut);
            assert_eq!(row.times.connect, None);
            assert_eq!(row.client_tcp().unwrap().segments_in, 0);
        }
    }
}

#[test]
fn a_queue_that_is_too_short_drops_packets_and_yet_connections_complete() {
    for queue in [1, 2, 5] {
        let measured = compare(&format!(
            "--baseline {CHAIN} --queue {queue} --rtt 10ms --data 20KiB --connections 4 --timeout 60s"
        ));
        for row in &measured.rows {
            assert_eq!(row.text("outcome"), "completed", "queue {queue}");
            // The first window of 10 segments finds room for less.
            assert!(row.number("server_retransmits") > 0, "queue {queue}");
        }
    }
}

#[test]
fn a_slow_link_takes_the_time_that_its_rate_takes() {
    let measured = compare(&format!(
        "--baseline {CHAIN} --rate 1mbit --rtt 10ms --data 100KiB --connections 4"
    ));
    let wire = Duration::from_secs_f64(f64::from(100 << 10) * 8.0 / 1e6);
    for row in &measured.rows {
        assert!(row.time("ttlb_ns") >= wire, "{row:?}");
    }
}

#[test]
fn jitter_delays_each_connection_in_its_own_way() {
    for distribution in ["uniform", "normal"] {
        let measured = compare(&format!(
            "--baseline {CHAIN} --rtt 20ms --jitter 4ms --jitter-distribution {distribution} \
             --data 20KiB --connections 16 --timeout 60s"
        ));
        let connects = || measured.rows.iter().map(|row| row.time("connect_ns"));
        let spread = connects().max().unwrap() - connects().min().unwrap();
        // Of 32 draws; a link without jitter can only be made to spread by a busy machine.
        assert!(
            spread >= Duration::from_millis(4),
            "{distribution}: {spread:?}"
        );
        if distribution == "uniform" {
            assert!(connects().min() >= Some(Duration::from_millis(20 - 2 * 4)));
        }
        for row in &measured.rows {
            assert_eq!(row.text("outcome"), "completed");
        }
    }
}

#[test]
fn each_direction_has_a_rate_of_its_own() {
    const DATA: u64 = 50 << 10;
    let (fast, slow) = (Direction::default(), rate("1mbit"));
    let wire = Duration::from_secs_f64(DATA as f64 * 8.0 / 1e6);
    let ttlb = |link| rows(link, DATA, Duration::from_secs(60)).map(|row| row.times.ttlb.unwrap());
    let slow_down = Link {
        forward: fast.clone(),
        backward: slow.clone(),
    };
    for ttlb in ttlb(slow_down) {
        assert!(ttlb >= wire, "{ttlb:?}");
    }
    // Requests are small: it is the fastest connection's that shows it.
    let slow_up = Link {
        forward: slow,
        backward: fast,
    };
    assert!(ttlb(slow_up).min() < Some(wire));
}

#[test]
fn each_direction_has_a_delay_of_its_own() {
    let delay = |milliseconds| Direction {
        delay: Duration::from_millis(milliseconds),
        ..Direction::default()
    };
    for (forward, backward) in [(5, 25), (25, 5)] {
        let link = Link {
            forward: delay(forward),
            backward: delay(backward),
        };
        for row in rows(link, 1 << 10, Duration::from_secs(60)) {
            assert!(row.times.connect.unwrap() >= Duration::from_millis(30));
            assert!(row.times.ttlb.unwrap() >= Duration::from_millis(3 * 30));
        }
    }
}

fn rate(rate: &str) -> Direction {
    let rate: Rate = rate.parse().unwrap();
    Direction {
        rate: Some(rate),
        ..Direction::default()
    }
}

/// Three connections over a link.
fn rows(link: Link, data: u64, timeout: Duration) -> impl Iterator<Item = Row> {
    let arm = prepare(CHAIN);
    let run = measure(arm, cell(link, Bytes(data)), 3, timeout);
    let rows: Vec<_> = run
        .samples
        .into_iter()
        .flat_map(|sample| sample.rows)
        .collect();
    assert_eq!(rows.len(), 3);
    rows.into_iter()
}

/// A file of these lines.
fn trace(place: &TempDir, name: &str, lines: &str) -> String {
    let path = place.path().join(name);
    fs::write(&path, lines).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Of QUIC, between ends in one process.
#[test]
fn a_trace_carries_so_many_packets_and_then_no_more() {
    let place = TempDir::new().unwrap();
    // A packet in each fifth millisecond: 70 of them for the data, and up as many as there is room for.
    let down = trace(&place, "down", "5\n");
    let up = trace(&place, "up", &"1\n".repeat(50));
    let quic = format!("{CHAIN}/transport=quic");
    let ask = |trace: &str, more: &[&str]| {
        let mut options = vec![
            "--baseline",
            &quic,
            "--engine",
            "virtual",
            "--data",
            "100KiB",
        ];
        options.extend(["--rtt", "10ms", "--connections", "20", "--trace", trace]);
        options.extend(more);
        compare_with(&options)
    };
    let both = format!("{down}:{up}");
    let measured = ask(&both, &[]);
    let least = Duration::from_millis(5 * (100 << 10) / 1472);
    for row in &measured.rows {
        assert_eq!(row.text("outcome"), "completed");
        assert_eq!(
            (row.text("forward_trace"), row.text("backward_trace")),
            (&*up, &*down)
        );
        let last = row.time("ttlb_ns");
        assert!((least..2 * least).contains(&last), "{last:?}");
    }
    // Connections begin anywhere in it, and so do those of another run.
    let times = |rows: &[crate::common::Row]| -> Vec<Duration> {
        rows.iter().map(|row| row.time("ttlb_ns")).collect()
    };
    let first = times(&measured.rows);
    assert!(first.iter().any(|time| *time != first[0]));
    assert_eq!(times(&ask(&both, &[]).rows), first);

    // Nothing is left for those who come later, and nobody waits for longer than is said.
    let short = trace(&place, "short", "1\n20\n30\n");
    let mut command = lastbyte(["compare", "--baseline", &quic, "--engine", "virtual"]);
    command.args(["--connections", "5", "--timeout", "2s", "--trace"]);
    let ended = run(command.arg(format!("{short} once")));
    assert_eq!(
        (ended.code, &*ended.stderr),
        (
            Some(1),
            "lastbyte: no connection completed: timed out after 2s, which is the timeout\n"
        )
    );
}

#[test]
fn what_is_no_trace_is_told_in_a_line() {
    let place = TempDir::new().unwrap();
    let huge = place.path().join("huge");
    // As many bytes as 10^8 lines have at least.
    File::create(&huge).unwrap().set_len(200_000_000).unwrap();
    for (name, lines, why) in [
        ("empty", "", "has no lines"),
        (
            "unsorted",
            "3\n2\n",
            "line 2: 2 comes after 3: sort its lines",
        ),
        (
            "negative",
            "1\n-2\n",
            "line 2: \"-2\" is no whole number of milliseconds",
        ),
        ("zeros", "0\n0\n", "has nothing but zeros"),
        ("huge", "", "it is larger than"),
        ("absent", "", "No such file"),
    ] {
        let path = place.path().join(name);
        if !["huge", "absent"].contains(&name) {
            fs::write(&path, lines).unwrap();
        }
        let ended = run(lastbyte(["compare", CHAIN, "--trace"]).arg(&path));
        assert_eq!(
            (ended.code, &*ended.stdout),
            (Some(2), ""),
            "{name}: {}",
            ended.stderr
        );
        assert!(ended.stderr.contains(why), "{name}: {}", ended.stderr);
        assert_eq!(
            ended.stderr.trim_end().lines().count(),
            1,
            "{}",
            ended.stderr
        );
    }
}

/// Of QUIC, between ends in one process: a response that would fill any queue.
#[test]
fn a_queue_discipline_keeps_waiting_short() {
    let quic = format!("{CHAIN}/transport=quic");
    let ask = |qdisc: &str| {
        let options = [
            "--baseline",
            &quic,
            "--engine",
            "virtual",
            "--data",
            "2MiB",
            "--rate",
        ];
        let more = [
            "10mbit",
            "--rtt",
            "20ms",
            "--connections",
            "3",
            "--qdisc",
            qdisc,
        ];
        compare_with(&[&options[..], &more].concat()).rows
    };
    let lost = |qdisc: &str| -> Vec<u64> {
        let rows = ask(qdisc);
        for row in &rows {
            assert_eq!(
                (row.text("outcome"), row.text("backward_qdisc")),
                ("completed", qdisc)
            );
        }
        rows.iter()
            .map(|row| row.number("server_lost_packets"))
            .collect()
    };
    assert!(lost("fifo limit 10000").iter().all(|lost| *lost == 0));
    for qdisc in [
        "fifo limit 20ms",
        "codel",
        "fq_codel",
        "pie",
        "red limit 100000B",
    ] {
        let one = lost(qdisc);
        assert!(one.iter().all(|lost| *lost > 0), "{qdisc}: {one:?}");
        assert_eq!(one, lost(qdisc));
    }
}

/// Of TCP over the emulator: marks in place of drops, which nobody has to send again.
#[test]
fn a_queue_marks_those_who_ask_for_it() {
    let sent_again = |ecn: &str, qdisc: &str| -> u64 {
        let options = ["--baseline", CHAIN, "--rate", "20mbit", "--rtt", "20ms"];
        let more = [
            "--data",
            "2MiB",
            "--connections",
            "3",
            "--ecn",
            ecn,
            "--qdisc",
            qdisc,
        ];
        let rows = compare_with(&[&options[..], &more].concat()).rows;
        assert!(
            rows.iter()
                .all(|row| row.text("outcome") == "completed" && row.text("ecn") == ecn)
        );
        rows.iter()
            .map(|row| row.number("server_retransmits"))
            .sum()
    };
    assert!(sent_again("off", "fq_codel") > 0);
    assert!(sent_again("on", "fq_codel noecn") > 0);
    assert_eq!(sent_again("on", "fq_codel"), 0);
}
