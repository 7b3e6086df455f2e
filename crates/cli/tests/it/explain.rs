//! `lastbyte explain`: arithmetic, and one line where it does not go.
use serde_json::Value;

use crate::common::{lastbyte, run};

const ARM: &str = "SecP256r1MLKEM768/ml-dsa-65";

#[test]
fn arms_are_explained() {
    let command = ["explain", ARM, "x25519/ecdsa-p256", "--initcwnd", "10,20"];
    let ended = run(&mut lastbyte(command));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for part in [
        "  ServerHello       1243         1254                1     flight 1     flight 1\n",
        "  CertVerify        3317         3339               12     flight 2     flight 1\n",
        "  CertVerify       79 ±1",
        "9763 (-1857)",
        "2 → 1",
        "RTT 35ms, 1gbit, loss 0%, initcwnd 10, 50KiB",
    ] {
        assert!(ended.stdout.contains(part), "{part:?}: {}", ended.stdout);
    }
    let too_wide = ended.stdout.lines().find(|line| line.chars().count() > 100);
    assert_eq!(too_wide, None);
}

#[test]
fn programs_can_read_it() {
    let command = ["explain", ARM, "--data", "0KiB", "--format", "json"];
    let ended = run(&mut lastbyte(command));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    let arm = &document["arms"][0];
    assert_eq!(arm["arm"], ARM);
    assert_eq!(arm["messages"]["certificate_bytes"], 11_620);
    let window = &arm["windows"][0];
    assert_eq!(window["server_flights"], 2);
    assert_eq!(window["excess"]["certificate_distance"], 1857);
    assert!(arm["times"][0]["ttfb_ns"].is_null());
}

#[test]
fn what_is_no_arithmetic_is_told_in_one_line() {
    for (arguments, expected) in [
        (vec!["x25519/./chain.pem"], "arithmetic does not read files"),
        (
            vec!["x25519/rsa-2048/mutual=rsa-2048"],
            "measure it with `lastbyte compare`",
        ),
        (vec!["x25519/rsa-2048", "--loss", "3%"], "loss is luck"),
        (
            vec!["x25519/rsa-2048", "--congestion", "bbr"],
            "BBR is no slow start",
        ),
        (
            vec!["x25519/rsa-2048", "--rtt", "10ms,0.01s"],
            "given twice",
        ),
    ] {
        let ended = run(lastbyte(["explain"]).args(&arguments));
        assert_eq!(ended.code, Some(2), "{arguments:?}: {ended:?}");
        assert!(ended.stderr.contains(expected), "{ended:?}");
        assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    }
}
