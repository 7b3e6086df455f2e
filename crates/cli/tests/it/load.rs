//! `lastbyte load`: no root, no network.
use serde_json::Value;

use crate::common::{lastbyte, run};

/// Half of the handshakes are without a signature, so a server can do more of them; and both schedules are the same.
#[test]
fn loads_are_measured_and_queued() {
    let arm = "x25519/ecdsa-p256";
    let load = |options: &[&str]| {
        let mut command = lastbyte(["load", "--cores", "4", "--format", "json", arm]);
        let ended = run(command.args(options));
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let document: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(document["schema"], "lastbyte.load/1");
        document["arms"][0].clone()
    };
    let storm = load(&["--storm", "500", "--within", "0s", "--resumes", "50%"]);
    let nanos = |value: &Value| value.as_u64().unwrap();
    let storm = &storm["storm"]["waits"];
    assert_eq!(storm["handshakes"], 500);
    // Nobody is done later than the last.
    assert!(nanos(&storm["at_server_ns"]["p99.9"]) <= nanos(&storm["last_ns"]));
    assert!(nanos(&storm["waiting_ns"]["p50"]) < nanos(&storm["waiting_ns"]["p99"]));

    let rates = load(&["--rate", "0.5/s,100000000/s", "--handshakes", "1000"]);
    let points = rates["points"].as_array().unwrap();
    assert_eq!(points[0]["waits"]["waiting_ns"]["p99"], 0);
    assert_eq!(points[0]["waits"]["handshakes"], 900);
    assert_eq!(points[1]["waits"], Value::Null);
    assert!(points[1]["load"].as_f64().unwrap() > 1.0);
}

/// Real cores and the queue have the same handshakes.
#[test]
fn real_cores_stand_beside_the_queue() {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return;
    }
    let ended = run(&mut lastbyte([
        "load",
        "--live",
        "--cores",
        "1",
        "--rate",
        "200/s",
        "--handshakes",
        "100",
        "--resumes",
        "30%",
        "x25519/ecdsa-p256",
    ]));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    for word in [
        "  cores ",
        "  queue ",
        "A server of 1 core can shake hands at most ",
    ] {
        assert!(ended.stdout.contains(word), "{}", ended.stdout);
    }
}

#[test]
fn wrong_input_ends_with_2() {
    for (options, problem) in [
        (&["--rate", "0"][..], "handshakes a second"),
        (&["--rate", "1e9"], "handshakes a second"),
        (&["--rate", "0.00000000001/s"], "handshakes a second"),
        (&["--live", "--rate", "0.5/s"], "take 4000 s of real time"),
        (&["--cores", "0"], "--cores"),
        (&["--storm", "0"], "--storm"),
        (&["--storm", "100000000"], "--storm"),
        (&["--within", "1s"], "--storm"),
        (
            &["--storm", "10", "--within", "90000s"],
            "longer than a day",
        ),
        (&["--storm", "10", "--rate", "5/s"], "--rate"),
        (&["--live", "--handshakes", "60000"], "at most 50000"),
        (&["--resumes", "101%"], "--resumes"),
        (
            &["--resumes", "10%", "x25519/rsa-2048/resume=ticket"],
            "it resumes already",
        ),
        (
            &["x25519/rsa-2048/transport=quic"],
            "leave transport=quic out",
        ),
    ] {
        let ended = run(lastbyte(["load", "x25519/ecdsa-p256"]).args(options));
        assert_eq!(ended.code, Some(2), "{options:?}: {}", ended.stderr);
        assert!(
            ended.stderr.contains(problem),
            "{options:?}: {}",
            ended.stderr
        );
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    }
    // More than this machine has is its fault.
    let live = ["load", "--live", "--cores", "60000", "--rate", "1/s"];
    let ended = run(lastbyte(live).args(["--handshakes", "10", "x25519/ecdsa-p256"]));
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("take fewer by --cores"),
        "{}",
        ended.stderr
    );
}
