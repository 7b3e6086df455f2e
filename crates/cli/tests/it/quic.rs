//! Arms over QUIC where readers meet them: explained, searched and planned. None of it takes root or a kernel.
use std::fs;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::common::{Ended, assert_fits, lastbyte, run};

const PRIVATE: [&str; 2] = ["--chain-profile", "private"];

fn succeed(command: &mut Command) -> Ended {
    let ended = run(command);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended
}

/// A text, however it is laid out.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn an_arm_is_explained_beside_one_over_tcp() {
    let arms = [
        "x25519/ml-dsa-44",
        "X25519MLKEM768/ml-dsa-44/transport=quic",
    ];
    let command = || {
        let mut command = lastbyte(["explain"]);
        command
            .args(arms)
            .args(PRIVATE)
            .args(["--rtt", "100ms", "--data", "1KiB"]);
        command
    };
    let ended = succeed(&mut command());
    for part in [
        "initcwnd 10: the server's handshake takes 2 flights, as credit ends the first: cut 5492 bytes of the",
        "ClientHello         1484 -7 +8                 2",
        "EncryptedExtensions  139 -7 +8                 3     flight 1",
        "Initials, and bytes to the next edge                    2, -331 for 1",
        "credit that they give, bytes                                     7200",
        "datagrams of each, and what ends it                       6 credit, 5",
        "18053 (+9491, window)",
        "3070 (-5492, credit)",
        "TCP's slow start, and QUIC's credit, window and pacer as quinn has them",
    ] {
        assert!(
            words(&ended.stdout).contains(&words(part)),
            "{part:?}: {}",
            ended.stdout
        );
    }
    assert_eq!(ended.stdout.matches("SYN").count(), 1, "{}", ended.stdout);
    let too_wide = ended.stdout.lines().find(|line| line.chars().count() > 100);
    assert_eq!(too_wide, None);
    let ended = succeed(command().args(["--format", "json"]));
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_fits(&document, lastbyte::report::EXPLANATION_SCHEMA);
    let window = &document["arms"][1]["windows"][0];
    assert_eq!(window["flights"][0]["ended_by"], "credit");
    assert_eq!(window["excess"]["certificate_bytes"], 3070);
    assert_eq!(document["arms"][1]["times"][0]["connect_ns"], Value::Null);
}

/// Each edge is measured to the byte, a byte less on one side and a byte more on the other, and is where arithmetic has it: that of
/// the window with one Initial, and that of credit with three.
#[test]
fn a_search_finds_the_edges_of_credit_and_window_to_the_byte() {
    let place = TempDir::new().unwrap();
    let path = |name: &str| place.path().join(name);
    let study = r#"
connections = 4
[arm.one]
tls = "x25519/ml-dsa-44/intermediates=0/transport=quic"
[arm.three]
tls = "X25519MLKEM768/ml-dsa-44/key_share=X25519MLKEM768+MLKEM1024/intermediates=0/transport=quic"
[link.clean]
rtt = "100ms"
[[measure]]
id = "m"
arms = ["one"]
connections = 2
[[search]]
id = "edges"
from = "2KB"
to = "24KB"
sizes = 6
data = "1KiB"
"#;
    fs::write(path("study.toml"), study).unwrap();
    let ended = succeed(
        lastbyte(["run"])
            .arg(path("study.toml"))
            .arg("-o")
            .arg(path("results")),
    );
    assert!(
        ended
            .stdout
            .contains("2 edges without loss, 2 of them exactly"),
        "{}",
        ended.stdout
    );
    let text = fs::read_to_string(path("results/search-edges.json")).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_fits(&document, lastbyte::report::SEARCH_SCHEMA);
    for found in document["found"].as_array().unwrap() {
        assert_eq!(found["no_arithmetic"], Value::Null, "{found:#}");
        let is_one = found["arm"] == "one";
        let [computed] = &found["arithmetic"].as_array().unwrap()[..] else {
            panic!("{found:#}")
        };
        assert_eq!(computed["flights_below"], if is_one { 2 } else { 1 });
        for edge in found["edges"].as_array().unwrap() {
            let bytes = |of: &str| edge[of]["certificate_bytes"].as_u64().unwrap();
            assert_eq!(bytes("above"), bytes("below") + 1, "{edge:#}");
            assert_eq!(edge["from_arithmetic_bytes"], 0, "{edge:#}");
            let [most, fewest] = ["most_wire_bytes_below", "fewest_wire_bytes_above"];
            let [most, fewest] = [most, fewest].map(|of| edge[of].as_u64().unwrap());
            assert_eq!(fewest, most + 1, "{edge:#}");
        }
    }
}

/// What a population does over QUIC can't be measured while some of it resume; its first bytes are arithmetic, its last ones
/// are not.
#[test]
fn a_plan_is_arithmetic_where_it_can_not_be_measured() {
    let plan = |more: &[&str]| {
        let mut command = lastbyte(["plan", "X25519MLKEM768/ml-dsa-65/transport=quic"]);
        let today = ["--today", "X25519MLKEM768/ecdsa-p256/transport=quic"];
        run(command
            .args(today)
            .args(["--connections", "100"])
            .args(more))
    };
    let ended = plan(&[]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for part in [
        "By arithmetic",
        "give it resume=no, resume=ticket or resume=0rtt",
        "as the chain is",
    ] {
        assert!(
            words(&ended.stdout).contains(part),
            "{part}: {}",
            ended.stdout
        );
    }
    let ended = plan(&["--metric", "ttlb"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("give it resume=no"), "{ended:?}");
}

#[test]
fn what_is_no_arithmetic_over_quic_is_refused_in_a_line() {
    for (arm, options, why) in [
        (
            "x25519/ecdsa-p256/transport=quic",
            &["--receive-buffer", "64KiB"][..],
            "receive_buffer is of TCP alone, and no arm has transport=tcp: add one without transport=quic",
        ),
        (
            "x25519/ecdsa-p256/transport=quic/resume=ticket",
            &[],
            "the size of a session is no arithmetic",
        ),
    ] {
        let ended = run(lastbyte(["explain", arm]).args(options));
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.contains(why), "{why}: {}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    }
}

/// A study of which one measure is of TCP, in a folder of its own with a cache that has no kernel.
fn two_measures() -> TempDir {
    let place = TempDir::new().unwrap();
    let study = r#"
connections = 3
engine = "virtual"
cpu = "none"
[arm.tcp]
tls = "x25519/ecdsa-p256"
[arm.quic]
tls = "x25519/ecdsa-p256/transport=quic"
[link.clean]
rtt = "20ms"
[[measure]]
id = "stream"
arms = ["tcp"]
data = "0B"
[[measure]]
id = "datagrams"
arms = ["quic"]
data = "0B"
"#;
    fs::write(place.path().join("study.toml"), study).unwrap();
    place
}

fn in_place(place: &TempDir, arguments: &[&str]) -> Ended {
    let mut command = lastbyte(arguments);
    command.env("LASTBYTE_CACHE", place.path().join("cache"));
    run(command.current_dir(place.path()))
}

#[test]
fn a_measure_over_quic_alone_needs_no_kernel() {
    let place = two_measures();
    let measure = ["run", "study.toml", "-o", "results", "--only"];
    let ended = in_place(&place, &[&measure[..], &["datagrams"]].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let left = "1 of 2 blocks are measured: `lastbyte report results` draws what is there, and `lastbyte run study.toml \
                -o results --resume` goes on with what is left";
    assert!(ended.stdout.contains(left), "{ended:?}");
    let ended = in_place(&place, &["report", "results"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

/// Each in a line that says what to write instead, and names no file that nobody has written.
#[test]
fn what_goes_with_no_arm_is_refused_before_anything_is_measured() {
    const QUIC: &str = "x25519/ecdsa-p256/transport=quic";
    const TCP: &str = "x25519/ecdsa-p256";
    let refusals: &[(&str, &[&str], &str)] = &[
        (
            "compare",
            &[QUIC, "--timestamps", "off"],
            "timestamps is of TCP alone, and no arm has transport=tcp",
        ),
        ("compare", &[QUIC, "--tso", "off"], "leave tso out"),
        (
            "compare",
            &[TCP, "--quic-datagram", "1250"],
            "quic_datagram is of QUIC alone, and no arm has transport=quic",
        ),
        (
            "compare",
            &[TCP, "--quic-in", "guest"],
            "quic_in is of QUIC alone",
        ),
        (
            "explain",
            &[QUIC, "--buffers", "large"],
            "buffers is of TCP alone",
        ),
        (
            "lose",
            &[TCP, "--quic-ack-delay", "50ms"],
            "quic_ack_delay is of QUIC alone",
        ),
        (
            "reduce",
            &["x25519/ml-dsa-44/transport=quic", "--timestamps", "off"],
            "timestamps is of TCP alone",
        ),
        (
            "compare",
            &[QUIC, "x25519/ecdsa-p256/transport=quic/resume=50%"],
            "a share of connections can resume only in a population: write resume=ticket or resume=no",
        ),
        (
            "lose",
            &["x25519/ecdsa-p256/resume=50%"],
            "write resume=ticket or resume=no",
        ),
        (
            "compare",
            &[QUIC, "--fail-if", "connect.p50 > 10ms"],
            "there is no connect over QUIC",
        ),
        (
            "compare",
            &[QUIC, "--page", "median-2024"],
            "pages come over QUIC from quic-go and from Caddy",
        ),
    ];
    for (command, arguments, why) in refusals {
        let ended = run(lastbyte([command]).args(*arguments));
        assert_eq!(ended.code, Some(2), "{arguments:?}: {ended:?}");
        let told = ended.stderr.trim_end();
        assert_eq!(told.lines().count(), 1, "{told}");
        assert!(told.contains(why), "{why}: {told}");
        assert!(!told.contains("study.toml"), "{told}");
    }
}

/// Where arithmetic does not follow a handshake, `explain` says so, and why.
#[test]
fn what_arithmetic_does_not_follow_has_its_reason() {
    let arm = "X25519MLKEM768/ml-dsa-65/transport=quic";
    for (options, reason, why) in [
        (
            ["--client-initcwnd", "2"],
            "client-window",
            "does not hold all datagrams of its ClientHello",
        ),
        (
            ["--queue", "10"],
            "queue-overflow",
            "more packets than the link's queue holds",
        ),
        (
            ["--quic-initial-rtt", "50ms"],
            "paced",
            "QUIC's pacer and window make",
        ),
    ] {
        let mut command = lastbyte(["explain", arm, "--rtt", "100ms"]);
        let ended = succeed(command.args(options));
        assert!(
            ended.stdout.contains("not by arithmetic"),
            "{}",
            ended.stdout
        );
        assert!(words(&ended.stdout).contains(why), "{}", ended.stdout);
        let ended = succeed(command.args(["--format", "json"]));
        let document: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_fits(&document, lastbyte::report::EXPLANATION_SCHEMA);
        let times = &document["arms"][0]["times"][0];
        assert_eq!(times["handshake_ns"], Value::Null);
        assert_eq!(times["limit"]["reason"], reason);
    }
}

/// What is written as a plan is of datagrams, where the arms have no segments.
#[test]
fn a_lever_of_a_plan_is_in_packets_of_its_transport() {
    let plan = |transport: &str| {
        let arms = ["ml-dsa-65", "ecdsa-p256"]
            .map(|chain| format!("X25519MLKEM768/{chain}/resume=no{transport}"));
        let mut command = lastbyte(["plan", &arms[0], "--today", &arms[1]]);
        succeed(command.args(["--connections", "30"])).stdout
    };
    let told = words(&plan("/transport=quic"));
    assert!(told.contains("a window of 32 datagrams"), "{told}");
    assert!(!told.contains("segments"), "{told}");
}

/// A flight that is longer than the link's queue loses datagrams, and quinn's client then keeps no more than 16 KiB of what comes
/// behind the gap.
#[test]
fn a_chain_that_no_queue_holds_is_a_row_with_its_reason() {
    let place = TempDir::new().unwrap();
    let rows = place.path().join("rows.csv");
    let compare = |more: &[&str]| {
        let mut command = lastbyte([
            "compare",
            "--baseline",
            "x25519/ml-dsa-44:4MB/transport=quic",
        ]);
        let options = [
            "--connections",
            "1",
            "--cpu",
            "none",
            "--rtt",
            "10ms",
            "--data",
            "0B",
            "-o",
        ];
        run(command.args(options).arg(&rows).args(more))
    };
    let ended = compare(&[]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(
        ended.stderr.contains("no connection completed"),
        "{ended:?}"
    );
    let row = &crate::common::read_rows(&rows)[0];
    assert_eq!(
        [row.text("outcome"), row.text("reason")],
        [
            "failed",
            "client: received more data in CRYPTO frames than can be buffered"
        ]
    );
    fs::remove_file(&rows).unwrap();
    assert_eq!(compare(&["--queue", "100000"]).code, Some(0));
}
