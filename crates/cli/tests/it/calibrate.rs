//! `lastbyte calibrate`: no root, no namespaces.
use std::fs;

use crate::common::{at, lastbyte, run};
use lastbyte::lab::calibration::Calibration;
use serde_json::Value;
use tempfile::TempDir;

#[test]
fn calibrations_are_printed_and_kept() {
    let cache = TempDir::new().unwrap();
    let arms = ["x25519/ecdsa-p256", "X25519MLKEM768/ecdsa-p256"];
    let mut command = lastbyte(["calibrate", "--handshakes", "10", "--format", "json"]);
    let ended = run(command.args(arms).env("LASTBYTE_CACHE", cache.path()));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(document["schema"], "lastbyte.calibrate/1");
    let calibrations = document["arms"].as_array().unwrap();
    assert_eq!(calibrations.len(), 2);
    for (calibration, arm) in calibrations.iter().zip(arms) {
        assert_eq!(calibration["arm"], arm);
        assert_eq!(calibration["handshakes"], 10);
        assert!(calibration["server_flight"]["p50_ns"].as_u64() > Some(0));
        let nanos = |step: &str| calibration[step]["p50_ns"].as_f64().unwrap();
        // A client may sign in its last step, which takes as long as it takes in the mean.
        let factors = calibration["finishes"].as_array().unwrap();
        let mean = |all: &[Value]| {
            let sum: f64 = all.iter().map(|factor| factor.as_f64().unwrap()).sum();
            sum / 1000.0 / all.len() as f64
        };
        let finish = nanos("client_finish") * mean(factors);
        let client = nanos("client_setup") + nanos("client_hello") + finish;
        let rate = calibration["client_handshakes_per_second"]
            .as_f64()
            .unwrap();
        assert!((rate * client / 1e9 - 1.0).abs() < 0.01, "{calibration}");
        assert!(calibration["server_handshakes_per_second"].as_f64() > Some(1.0));
        let file = calibration["file"].as_str().unwrap();
        assert!(file.starts_with(cache.path().join("calibration").to_str().unwrap()));
        let kept: Calibration = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
        assert_eq!(kept.arm, arm);
        assert_eq!(
            Some(kept.server_flight.p50_ns),
            calibration["server_flight"]["p50_ns"].as_u64()
        );
    }
}

#[test]
fn the_default_is_what_compare_compares() {
    let ended = run(&mut lastbyte(["calibrate", "--handshakes", "1"]));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    for arm in ["secp256r1/rsa-2048", "SecP256r1MLKEM768/ml-dsa-65"] {
        let heading = format!("{arm}: 1 handshake\n");
        assert!(ended.stdout.contains(&heading), "{}", ended.stdout);
    }
    let rates = ended.stdout.lines().rev().take(3);
    let rates: Vec<&str> = rates.collect();
    assert!(
        rates[2].starts_with("handshakes a second and core"),
        "{rates:?}"
    );
}

#[test]
fn wrong_input_ends_with_2() {
    let cache = TempDir::new().unwrap();
    fs::write(at(&cache, "file"), "").unwrap();
    for (arguments, problem) in [
        (
            ["secp256r2/rsa-2048", "--handshakes=1"],
            "did you mean \"secp256r1\"?",
        ),
        (
            ["x25519/rsa-2048", "--handshakes=0"],
            "0 is not in 1..=1000000",
        ),
        (["x25519/missing.pem", "--handshakes=1"], "can't be read"),
    ] {
        let ended = run(lastbyte(["calibrate"]).args(arguments));
        assert_eq!(ended.code, Some(2), "{arguments:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(problem), "{}", ended.stderr);
    }
    let mut command = lastbyte(["calibrate", "x25519/ecdsa-p256", "--handshakes=1"]);
    let ended = run(command.env("LASTBYTE_CACHE", at(&cache, "file")));
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("can't write "), "{}", ended.stderr);
}
