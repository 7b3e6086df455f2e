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
            "X25519MLKEM768/ecdsa-p256/key_share=x25519/transport=quic",
            &[][..],
            "a HelloRetryRequest over QUIC is not walked through; measure it with `lastbyte compare`",
        ),
        (
            "x25519/ecdsa-p256/transport=quic",
            &["--receive-buffer", "64KiB"],
            "receive_buffer is TCP's, and transport=quic has none of it: leave it out",
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
