//! `lastbyte trace`: no root, no network, but for measuring over what it makes.
use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::common::{Ended, compare_with, lastbyte, run};

fn trace(place: &TempDir, arguments: &str) -> Ended {
    let mut command = lastbyte(["trace"]);
    command.args(arguments.split(' ')).current_dir(place.path());
    run(&mut command)
}

#[test]
fn traces_are_made_and_told() {
    let place = TempDir::new().unwrap();
    let made = trace(&place, "lte -o lte.down --up lte.up --for 10s");
    assert_eq!((made.code, &*made.stderr), (Some(0), ""), "{made:?}");
    let (lines, command) = made.stdout.split_once("\n\n").unwrap();
    assert_eq!(
        command,
        "lastbyte compare --emulation link --trace lte.down:lte.up\n"
    );
    let told = trace(&place, "show lte.down lte.up");
    assert_eq!((told.code, told.stdout.trim_end()), (Some(0), lines));
    let read = |name: &str| fs::read_to_string(place.path().join(name)).unwrap();
    for name in ["lte.down", "lte.up"] {
        assert_eq!(read(name).lines().last(), Some("10000"));
    }
    // A file that is there is made anew, and the same seed has the same user.
    let before = read("lte.down");
    let again = trace(&place, "lte --for 10s -o lte.down");
    assert_eq!(again.code, Some(0), "{again:?}");
    assert_eq!(read("lte.down"), before);
    let other = trace(&place, "lte --for 10s -o lte.down --seed 2");
    assert_eq!(other.code, Some(0), "{other:?}");
    assert_ne!(read("lte.down"), before);
    // Nothing for 260 ms, and then all together, which goes with `once` alone.
    let idle = trace(
        &place,
        "5g --bandwidth 40MHz --motion standing --signal good --for 1s --idle -o d --up u",
    );
    assert_eq!(
        idle.stdout.lines().last(),
        Some("lastbyte compare --emulation link --trace 'd once:u once'")
    );
    assert_eq!(read("d").lines().next(), Some("261"));
}

/// By hand.
#[test]
fn what_a_trace_carries_is_its_lines() {
    let place = TempDir::new().unwrap();
    let write = |name: &str, lines: &str| fs::write(place.path().join(name), lines).unwrap();
    // In its first second 100, in its second 50, in its third none but the last.
    let lines = format!("{}{}3000\n", "7\n".repeat(100), "1001\n".repeat(50));
    write("steps", &lines);
    write("short", "0\n1\n");
    assert_eq!(
        trace(&place, "show steps short").stdout,
        "steps: 3s of 0.61 Mbit/s in the mean; its seconds 0.01 (p5), 0.60 (p50), 1.20 (p95); at most 1.999s without a packet\n\
         short: 1ms of 24.1 Mbit/s in the mean; at most 1ms without a packet\n"
    );
    write("zeros", "0\n0\n");
    let told = trace(&place, "show steps zeros");
    assert_eq!(
        (told.code, &*told.stdout, &*told.stderr),
        (
            Some(2),
            "",
            "lastbyte: \"zeros\" has nothing but zeros: its last line is when it ends, 1 or later\n"
        )
    );
}

#[test]
fn what_can_be_no_trace_ends_with_2_and_makes_none() {
    let place = TempDir::new().unwrap();
    fs::write(place.path().join("there"), "3\n").unwrap();
    for (arguments, problem) in [
        ("lte", "--output"),
        ("6g -o a", "6g"),
        ("lte -o a --bandwidth 7MHz", "LTE has 1.4MHz, 3MHz"),
        ("5g -o a --bandwidth 5MHz", "5G has 10MHz"),
        ("lte -o a --share 0%", "nothing of a cell"),
        ("lte -o a --share 101%", "above 100%"),
        ("lte -o a --share 0.5", "did you mean \"50%\""),
        ("lte -o a --for 0s", "not from 1s to 3600s"),
        ("lte -o a --for 3601s", "not from 1s to 3600s"),
        ("lte -o a --for 60", "missing unit"),
        ("lte -o a --for -5s", "negative duration"),
        ("lte -o a --for 1.0005s", "no whole number of milliseconds"),
        ("lte -o a --signal bad", "use one of good, fair, edge"),
        ("lte -o a --motion flying", "did you mean \"walking\""),
        ("lte -o a --seed -1", "0 is the least"),
        ("lte -o a --up a", "two outputs"),
        ("lte -o a --up ./a", "two outputs"),
        ("lte -o a --up there/a", "there is no folder"),
        ("lte -o nowhere/a", "make it first"),
        ("lte -o .", "it is a folder"),
        ("lte -o /proc/a", "can't write"),
        (
            "5g -o a --for 3600s --share 100% --signal good",
            "shorten --for, or take less by --share",
        ),
        ("show", "<FILE>"),
        ("show absent", "can't read \"absent\""),
        ("show /dev/zero", "no regular file"),
    ] {
        let ended = trace(&place, arguments);
        assert_eq!(
            (ended.code, &*ended.stdout),
            (Some(2), ""),
            "{arguments}: {}",
            ended.stderr
        );
        assert!(
            ended.stderr.contains(problem),
            "{arguments}: {}",
            ended.stderr
        );
        assert_eq!(
            ended.stderr.lines().count(),
            1,
            "{arguments}: {}",
            ended.stderr
        );
    }
    let there: Vec<_> = fs::read_dir(place.path()).unwrap().collect();
    assert_eq!(there.len(), 1, "{there:?}");
    assert_eq!(fs::read(place.path().join("there")).unwrap(), b"3\n");
}

/// Of QUIC, between ends in one process: who begins idle waits until the radio is connected, and nobody else does.
#[test]
fn an_idle_radio_makes_connections_wait() {
    let place = TempDir::new().unwrap();
    let path = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    let connects = |idle: &str| -> Vec<u64> {
        let made = trace(
            &place,
            &format!("lte --for 20s --signal good --motion standing -o d --up u{idle}"),
        );
        assert_eq!(made.code, Some(0), "{made:?}");
        let both = format!("{} once:{} once", path("d"), path("u"));
        let measured = compare_with(&[
            "--baseline",
            "x25519/ecdsa-p256/transport=quic",
            "--engine",
            "virtual",
            "--rtt",
            "40ms",
            "--data",
            "0KiB",
            "--connections",
            "2",
            "--trace",
            &both,
        ]);
        let rows = measured.rows.iter();
        rows.map(|row| row.time("handshake_ns").as_millis() as u64)
            .collect()
    };
    for handshake in connects("") {
        assert!((40..60).contains(&handshake), "{handshake} ms");
    }
    for handshake in connects(" --idle") {
        // The delay of 20 ms up is over by then, that down is not.
        assert!((281..300).contains(&handshake), "{handshake} ms");
    }
    assert!(Path::new(&path("d")).is_file());
}
