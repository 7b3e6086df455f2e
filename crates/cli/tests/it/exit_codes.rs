//! What `lastbyte compare` ends with. See `usage`, `privileges` and `interrupts` for
//! 2, 3 and 130.
use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::common::{Ended, lastbyte, need_live_engine, run};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

fn compare(options: &[&str]) -> Command {
    need_live_engine();
    let mut command = lastbyte(["compare", "--baseline", "x25519/ecdsa-p256"]);
    command.args(["--rtt", "10ms", "--data", "0KiB", "--connections", "2"]);
    command.args(options);
    command
}

#[test]
fn thresholds() {
    let against = ["--against", "x25519/rsa-2048"];
    for (threshold, code) in [
        ("handshake.p50 > 1000s", 0),
        // Not among the percentiles that are told anyway.
        ("handshake.p99 > 1000s", 0),
        ("handshake.p99 > 1ms", 99),
        ("handshake.p50 > 1000s,connect.p50 >= 10ms", 99),
        ("ttlb.p50 > 100000%", 0),
        // Two connections tell no increase.
        ("ttlb.p50 > -99%", 0),
        // Without data there is no first byte.
        ("ttfb.p50 > 1ms", 0),
    ] {
        let ended = run(compare(&against).args(["--fail-if", threshold]));
        assert_eq!(ended.code, Some(code), "{threshold}: {}", ended.stderr);
        let crossed = ended.stderr.contains("lastbyte: threshold crossed: ");
        assert_eq!(crossed, code == 99, "{threshold}: {}", ended.stderr);
        // Results come first, whatever they are.
        assert!(ended.stdout.contains("x25519/rsa-2048"), "{}", ended.stdout);
    }
}

#[test]
fn a_threshold_of_an_increase_needs_connections_that_tell_it() {
    let ask = |connections: &str| {
        need_live_engine();
        let arms = [
            "compare",
            "--baseline",
            "x25519/ecdsa-p256",
            "--against",
            "x25519/rsa-2048",
        ];
        let mut command = lastbyte(arms);
        command.args(["--engine", "live", "--rtt", "10ms", "--data", "0KiB"]);
        command.args(["--fail-if", "ttlb.p50 > -99%", "--connections", connections]);
        run(&mut command)
    };
    let few = ask("1");
    assert_eq!(few.code, Some(0), "{}", few.stderr);
    assert!(
        few.stderr.contains("lastbyte: can't tell: ttlb.p50 > -99%"),
        "{}",
        few.stderr
    );
    assert_eq!(ask("30").code, Some(99));
}

/// Standard output is a place, too.
#[test]
fn output_that_can_not_be_written() {
    for command in ["explain", "--help", "--version"] {
        let full = fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap();
        let ended = lastbyte([command]).stdout(full).output().unwrap();
        assert_eq!(ended.status.code(), Some(2), "{command}");
        let told = String::from_utf8(ended.stderr).unwrap();
        assert!(
            told.starts_with("lastbyte: can't write the results: No space left"),
            "{command}: {told}"
        );
    }
}

#[test]
fn no_connection_completed() {
    let ended = run(&mut compare(&["--timeout", "5ms"]));
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert_eq!(
        ended.stderr,
        "lastbyte: no connection completed: timed out after 5ms, which is the timeout\n"
    );
    assert!(
        ended
            .stdout
            .contains("2 of 2 connections failed (timed out: 2)"),
        "{}",
        ended.stdout
    );
}

/// Whatever it is that can't be written, and by which command: see `report` for the others.
#[test]
fn places_that_can_not_be_written() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    fs::write(folder.path().join("study.toml"), STUDY).unwrap();
    assert_eq!(
        run(lastbyte(["mtc", "ca", "ca"]).current_dir(folder.path())).code,
        Some(0)
    );
    for command in [
        "compare -o file/rows.csv",
        "compare --junit file/junit.xml --strict",
        "compare --save file/rows.parquet",
        "run study.toml --engine live -o file/results",
        "explain x25519/ecdsa-p256 --svg file/flights.svg",
        "plan ml-dsa-44 -o file/plan.html",
        "reduce ml-dsa-44 -o file/reduce.html",
        "zeek study.toml -o file/profile.toml",
        "zeek study.toml --parquet file/connections",
        "chain new ecdsa-p256 -o file/chain",
        "mtc ca file/ca",
        "mtc issue ca a.example -o file/host",
        "ad fetch https://127.0.0.1:1/ -o file/body",
        "compare --engine live --capture 1 --capture-to file/captures",
        "compare --keylog file/keys",
        "man -o file/pages",
    ] {
        let mut program = lastbyte(command.split(' '));
        let ended = run(program.current_dir(folder.path()));
        assert_eq!(ended.code, Some(2), "{command}: {}", ended.stderr);
        let told = ended.stderr.trim_end();
        assert_eq!(told.lines().count(), 1, "{command}: {told}");
        assert!(told.starts_with("lastbyte: can't "), "{command}: {told}");
        assert!(told.contains("file"), "{command}: {told}");
        assert!(!told.contains(".lastbyte-"), "{command}: {told}");
    }
}

/// What a disk has no room for is told in the end, when the rows are kept.
#[test]
fn places_that_become_full() {
    let folder = TempDir::new().unwrap();
    let full = folder.path().join("full");
    fs::create_dir(&full).unwrap();
    let script = "mount -t tmpfs -o size=64k tmpfs full && \
                  head -c 64k /dev/zero > full/file && exec \"$@\"";
    for option in [
        "--keylog full/keys",
        "--capture 1 --capture-to full/captures",
    ] {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", script, "sh"]);
        command.args([env!("CARGO_BIN_EXE_lastbyte"), "compare"]);
        command.args("--baseline x25519/ecdsa-p256 --engine virtual --connections 2".split(' '));
        command.args(option.split(' '));
        let ended = run(command.current_dir(folder.path()));
        assert_eq!(ended.code, Some(2), "{option}: {ended:?}");
        let told = ended.stderr.lines().last().unwrap();
        assert!(
            told.starts_with("lastbyte: can't write "),
            "{option}: {told}"
        );
        assert!(told.contains("No space left on device"), "{option}: {told}");
    }
}

const STUDY: &str = "connections = 1\n[arm.one]\ntls = \"x25519/ecdsa-p256\"\n[link.near]\nrtt = \"2ms\"\n\
                     [[measure]]\nid = \"one\"\n";

#[test]
fn an_invalid_sample_fails_a_strict_run_only() {
    for (options, code) in [(&[] as &[_], 0), (&["--strict"], 1)] {
        let ended = disturbed(&mut compare(options));
        assert_eq!(ended.code, Some(code), "{}", ended.stderr);
        let warning =
            "warning: x25519/ecdsa-p256: not to be trusted: 1 % of packets were more than";
        assert!(ended.stdout.contains(warning), "{}", ended.stdout);
        let failure = "lastbyte: invalid sample: x25519/ecdsa-p256: 1 % of packets were more than";
        // A busy machine is told besides how long it takes.
        let mut lines = ended.stderr.lines();
        let is_told = lines.any(|line| line.starts_with(failure));
        assert_eq!(is_told, code == 1, "{}", ended.stderr);
    }
}

/// Runs a command that is not let run most of the time, so that its packets are late.
fn disturbed(command: &mut Command) -> Ended {
    let mut child = piped(command);
    let pid = Pid::from_raw(child.id() as i32);
    while child.try_wait().unwrap().is_none() {
        kill(pid, Signal::SIGSTOP).unwrap();
        thread::sleep(Duration::from_millis(12));
        kill(pid, Signal::SIGCONT).unwrap();
        thread::sleep(Duration::from_millis(2));
    }
    child.wait_with_output().unwrap().into()
}

#[test]
fn a_reader_that_has_gone_away_is_no_failure() {
    let mut child = piped(&mut compare(&[]));
    drop(child.stdout.take());
    let ended: Ended = child.wait_with_output().unwrap().into();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

fn piped(command: &mut Command) -> Child {
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}
