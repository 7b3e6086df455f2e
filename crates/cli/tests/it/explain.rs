//! `lastbyte explain`: arithmetic, and one line where it does not go.
use std::path::Path;

use openssl::asn1::Asn1Time;
use openssl::ec::{EcGroup, EcKey};
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::{PKey, Private};
use openssl::rsa::Rsa;
use openssl::x509::{X509, X509Name};
use serde_json::Value;

use crate::common::{assert_fits, lastbyte, run};

const ARM: &str = "SecP256r1MLKEM768/ml-dsa-65";
/// As an arm of a study has it.
const PRIVATE: [&str; 2] = ["--chain-profile", "private"];

#[test]
fn arms_are_explained() {
    let command = ["explain", ARM, "x25519/ecdsa-p256", "--initcwnd", "10,20"];
    let ended = run(lastbyte(command).args(PRIVATE));
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
fn rates_may_differ_by_direction() {
    let times = |rate: &str| {
        let options = ["--rate", rate, "--data", "50KiB", "--format", "json"];
        let ended = run(lastbyte(["explain", ARM]).args(options));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let document: Value = serde_json::from_str(&ended.stdout).unwrap();
        let time = &document["arms"][0]["times"][0];
        let cell = time["cell"].as_str().unwrap().to_owned();
        (cell, time["ttlb_ns"].as_u64().unwrap())
    };
    let (cell, slow_up) = times("50mbit/1mbit");
    assert_eq!(
        cell,
        "RTT 35ms, 1mbit up and 50mbit down, loss 0%, initcwnd 10, 50KiB"
    );
    // A response is what comes down.
    let slow_down = times("1mbit/50mbit").1;
    assert!(slow_down > 2 * slow_up, "{slow_down} and {slow_up}");
    assert_eq!(times("2mbit/2mbit"), times("2mbit"));
}

#[test]
fn networks_have_names() {
    let cells = |options: &[&str]| {
        let command = ["explain", ARM, "--data", "1KiB", "--format", "json"];
        let ended = run(lastbyte(command).args(options));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let document: Value = serde_json::from_str(&ended.stdout).unwrap();
        let times = document["arms"][0]["times"].as_array().unwrap().clone();
        let cells = times.iter().map(|time| time["cell"].as_str().unwrap());
        cells.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(
        cells(&["--link", "lte,geo"]),
        [
            "lte, RTT 55ms, 6mbit up and 21mbit down, loss 0%, initcwnd 10, 1KiB",
            "geo, RTT 600ms, 10mbit up and 100mbit down, loss 0%, initcwnd 10, 1KiB",
        ]
    );
    // What is said besides has the last word, even if it is what is usual without a name.
    assert_eq!(
        cells(&["--link", "leo", "--rtt", "35ms", "--loss", "0%"]),
        ["leo, RTT 35ms, 15mbit up and 150mbit down, loss 0%, initcwnd 10, 1KiB"]
    );

    // The luck of a network by name is left out, in so many words.
    let lossy = run(&mut lastbyte(["explain", ARM, "--link", "leo"]));
    assert_eq!(lossy.code, Some(0), "{lossy:?}");
    assert_eq!(
        lossy.stderr,
        "lastbyte: leo without its loss and jitter, which are luck: `lastbyte compare` has them\n"
    );
}

#[test]
fn without_an_arm_it_is_what_compare_compares() {
    let ended = run(&mut lastbyte(["explain"]));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for arm in ["secp256r1/rsa-2048\n", "\nSecP256r1MLKEM768/ml-dsa-65\n"] {
        assert!(ended.stdout.contains(arm), "{ended:?}");
    }
}

#[test]
fn programs_can_read_it() {
    let command = ["explain", ARM, "--data", "0KiB", "--format", "json"];
    let ended = run(lastbyte(command).args(PRIVATE));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_fits(&document, lastbyte::report::EXPLANATION_SCHEMA);
    let arm = &document["arms"][0];
    assert_eq!(arm["arm"], ARM);
    assert_eq!(arm["messages"]["certificate_bytes"], 11_620);
    let window = &arm["windows"][0];
    assert_eq!(window["server_flights"], 2);
    assert_eq!(window["excess"]["certificate_distance"], 1857);
    assert!(arm["times"][0]["ttfb_ns"].is_null());
}

/// SecP256r1MLKEM768 leaves 4 bytes less than nothing: its hello of 1449 takes two segments with what stands before.
#[test]
fn a_client_hello_has_an_edge_of_its_own() {
    let command = ["explain", ARM, "x25519/ecdsa-p256", "--format", "json"];
    let ended = run(&mut lastbyte(command));
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_fits(&document, lastbyte::report::EXPLANATION_SCHEMA);
    let hello = |arm: usize| {
        let arm = &document["arms"][arm];
        let bytes = arm["client_hello_wire_bytes"].as_u64().unwrap();
        (bytes, arm["windows"][0]["client_hello"].clone())
    };
    let (bytes, large) = hello(0);
    assert_eq!(large["segments"], 2);
    assert_eq!(large["excess"], bytes - 1448);
    assert_eq!(large["room"], 2 * 1448 - bytes);
    let (bytes, small) = hello(1);
    assert_eq!(small["segments"], 1);
    assert_eq!(small["room"], 1448 - bytes);
    assert!(small["excess"].is_null());
}

/// A time that would be wrong is none.
#[test]
fn a_queue_that_overflows_is_told() {
    let command = ["explain", ARM, "--initcwnd", "32", "--queue", "10"];
    let ended = run(&mut lastbyte(command));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(
        ended.stdout.contains("not by arithmetic"),
        "{}",
        ended.stdout
    );
    assert!(
        !ended.stdout.contains("measures the same"),
        "{}",
        ended.stdout
    );
    assert!(
        ended
            .stdout
            .contains("more packets than the link's queue holds"),
        "{}",
        ended.stdout
    );
    let ended = run(lastbyte(command).args(["--format", "json"]));
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_fits(&document, lastbyte::report::EXPLANATION_SCHEMA);
    assert_eq!(document["arms"][0]["times"][0]["overflows"], true);
    assert_eq!(
        document["arms"][0]["times"][0]["limit"]["reason"],
        "queue-overflow"
    );
    assert!(document["arms"][0]["times"][0]["ttfb_ns"].is_null());
}

#[test]
fn flights_are_drawn() {
    let folder = tempfile::TempDir::new().unwrap();
    let file = crate::common::at(&folder, "flights.svg");
    let ended = run(lastbyte(["explain", ARM, "x25519/ecdsa-p256", "--svg"])
        .arg(&file)
        .args(PRIVATE));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for part in [
        "client →    ■ 1 segment",
        "← server  ■■■■■■■■■■ 10 segments, 14480 B",
        "ServerHello ends in segment 1, Certificate in 9",
        "CertVerify ends in segment 12",
        "* first byte",
    ] {
        assert!(ended.stdout.contains(part), "{part:?}: {}", ended.stdout);
    }
    let drawing = std::fs::read_to_string(&file).unwrap();
    for part in [
        "10 segments, 14480 B",
        "x25519/ecdsa-p256",
        "Certificate in 9",
        "last byte",
    ] {
        assert!(drawing.contains(part), "{part:?}: {drawing}");
    }
}

#[test]
fn what_is_no_arithmetic_is_told_in_one_line() {
    for (arguments, expected) in [
        (vec!["x25519/./none.pem"], "can't be read: No such file"),
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

fn explained(arguments: &[&str]) -> Value {
    let ended = run(lastbyte(["explain"])
        .args(arguments)
        .args(["--format", "json"]));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_fits(&document, lastbyte::report::EXPLANATION_SCHEMA);
    document["arms"][0].clone()
}

/// The hello of ML-KEM fills two Initials, so that a server may send twice as much.
#[test]
fn shares_of_chains_are_of_each_arm_and_window() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("chains.csv");
    std::fs::write(
        &file,
        "chain_bytes,certificates,count\n2500,2,3\n4000,3,1\n",
    )
    .unwrap();
    let shares = |arm: &str| {
        let own = explained(&[arm, "--chain-sizes", file.to_str().unwrap()]);
        let windows = own["windows"].as_array().unwrap().clone();
        let chains = windows.iter().map(|window| window["chains"].to_string());
        chains.collect::<Vec<_>>()
    };
    let both = r#"[{"chains":3,"server_flights":1},{"chains":1,"server_flights":2}]"#;
    let one = r#"[{"chains":4,"server_flights":1}]"#;
    assert_eq!(shares("x25519/ecdsa-p256/transport=quic"), [both]);
    assert_eq!(shares("X25519MLKEM768/ecdsa-p256/transport=quic"), [one]);
    let compressed = "x25519/ecdsa-p256/delivery=compressed/compression=zlib";
    let ended = run(&mut lastbyte([
        "explain",
        compressed,
        "--chain-sizes",
        "public",
    ]));
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    let without = explained(&["x25519/ecdsa-p256"]);
    assert_eq!(without["windows"][0]["chains"], Value::Null);
}

/// With other keys, a file's chain keeps its names and extensions: a hundred names are another thing than two.
#[test]
fn the_keys_of_a_file_are_exchanged_in_its_own_certificates() {
    let folder = tempfile::tempdir().unwrap();
    for names in ["2", "100"] {
        let kept = format!("intermediates=1/names={names}/scts=0");
        let site = folder.path().join(names);
        let made = run(lastbyte(["chain", "new"])
            .arg(format!("ecdsa-p256/{kept}"))
            .arg("-o")
            .arg(&site));
        assert_eq!(made.code, Some(0), "{made:?}");
        let of_file = explained(&[site.join("chain.pem").to_str().unwrap()]);
        let supposed = of_file["supposed"].as_array().unwrap();
        for (key, one) in ["ml-dsa-44", "ml-dsa-65"].into_iter().zip(supposed) {
            assert_eq!(one["if"], format!("its keys are {key}"));
            let made = explained(&[&format!("{key}/{kept}")]);
            let bytes = |value: &Value| value.as_i64().unwrap();
            let own = bytes(&one["certificate_bytes"]);
            // How long serial numbers and ECDSA's signatures are is luck.
            let alike = bytes(&made["messages"]["certificate_bytes"]);
            assert!((own - alike).abs() <= 8, "{key} {names}: {own} {alike}");
            assert_eq!(one["flights"][0], made["windows"][0]["server_flights"]);
        }
    }
}

fn ec(curve: Nid) -> PKey<Private> {
    let group = EcGroup::from_curve_name(curve).unwrap();
    PKey::from_ec_key(EcKey::generate(&group).unwrap()).unwrap()
}

/// A server's certificate of this key, in a file of its own.
fn of_key(folder: &Path, name: &str, key: &PKey<Private>) -> String {
    let named = |name: &str| {
        let mut made = X509Name::builder().unwrap();
        made.append_entry_by_text("CN", name).unwrap();
        made.build()
    };
    let mut made = X509::builder().unwrap();
    made.set_version(2).unwrap();
    made.set_subject_name(&named("shop.example")).unwrap();
    made.set_issuer_name(&named("CA")).unwrap();
    made.set_pubkey(key).unwrap();
    let [from, until] = [0, 30].map(|days| Asn1Time::days_from_now(days).unwrap());
    made.set_not_before(&from).unwrap();
    made.set_not_after(&until).unwrap();
    let ca = ec(Nid::X9_62_PRIME256V1);
    made.sign(&ca, MessageDigest::sha256()).unwrap();
    let path = folder.join(name);
    std::fs::write(&path, made.build().to_pem().unwrap()).unwrap();
    path.to_str().unwrap().to_owned()
}

/// What signs classically has another key to come to, whether or not Lastbyte makes chains with it; its signatures are as long as
/// they are, and what nobody takes is said.
#[test]
fn files_of_keys_that_are_not_made_are_explained() {
    let folder = tempfile::tempdir().unwrap();
    let rsa = |bits| PKey::from_rsa(Rsa::generate(bits).unwrap()).unwrap();
    for (name, key, verify, warning) in [
        (
            "ed25519",
            PKey::generate_ed25519().unwrap(),
            "  CertVerify          72  ",
            "",
        ),
        (
            "ed448",
            PKey::generate_ed448().unwrap(),
            "  CertVerify         122  ",
            "",
        ),
        ("p521", ec(Nid::SECP521R1), "  CertVerify      147 -2  ", ""),
        (
            "brainpool",
            ec(Nid::BRAINPOOL_P256R1),
            "  CertVerify       78 +2  ",
            "has a key ecdsa-brainpoolP256r1, with which servers and browsers have no TLS 1.3",
        ),
        (
            "rsa",
            rsa(1024),
            "  CertVerify         136  ",
            "has a key rsa-1024, with which servers and browsers have no TLS 1.3",
        ),
    ] {
        let file = of_key(folder.path(), name, &key);
        let ended = run(&mut lastbyte(["explain", &file]));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(ended.stdout.contains(verify), "{name}: {}", ended.stdout);
        assert!(
            ended.stdout.contains("\nIf its keys are ml-dsa-44, "),
            "{name}: {}",
            ended.stdout
        );
        assert!(ended.stderr.contains(warning), "{name}: {}", ended.stderr);
        assert_eq!(
            ended.stderr.is_empty(),
            warning.is_empty(),
            "{name}: {}",
            ended.stderr
        );
    }
}

/// By hand: a chain of a public site has two intermediates and two timestamps, and 12 segments where the window is 10.
#[test]
fn a_chain_that_says_nothing_is_a_public_sites() {
    let public = explained(&["ml-dsa-44"]);
    assert_eq!(public["name"], "X25519MLKEM768/ml-dsa-44");
    assert_eq!(
        public["arm"],
        "X25519MLKEM768/ml-dsa-44/intermediates=2/scts=2"
    );
    assert_eq!(public["windows"][0]["server_flights"], 2);
    let same = explained(&[
        "ml-dsa-44/intermediates=2/scts=2",
        "--chain-profile",
        "private",
    ]);
    assert_eq!(same["messages"], public["messages"]);
    // What turns it is there with it, and is what asking for it gives.
    let supposed = public["supposed"].as_array().unwrap();
    assert_eq!(supposed.len(), 4);
    for one in supposed {
        let asked = explained(&[one["arm"].as_str().unwrap(), "--chain-profile", "private"]);
        assert_eq!(
            asked["messages"]["certificate_bytes"], one["certificate_bytes"],
            "{one}"
        );
        assert_eq!(
            asked["server_flight_wire_bytes"], one["server_flight_wire_bytes"],
            "{one}"
        );
        assert_eq!(
            asked["windows"][0]["server_flights"], one["flights"][0],
            "{one}"
        );
    }
    let of = |subject: &str| {
        let assumptions = public["assumptions"].as_array().unwrap();
        let assumption = assumptions.iter().find(|one| one["subject"] == subject);
        assumption.unwrap()["value"].as_str().unwrap().to_owned()
    };
    assert_eq!(of("timestamps"), "2, by logs that sign with ecdsa-p256");
    assert_eq!(of("intermediates"), "2");
    for subject in ["names", "OCSP", "window", "rate", "tickets", "hello"] {
        assert!(!of(subject).is_empty());
    }
    // The pair that nobody has named is the paper's.
    let usual = explained(&[]);
    assert_eq!(usual["arm"], "secp256r1/rsa-2048");
}

#[test]
fn logs_that_sign_as_the_chain_does_can_turn_the_answer() {
    let ended = run(&mut lastbyte(["explain", "ml-dsa-44/intermediates=1"]));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let text = ended
        .stdout
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    for part in [
        "initcwnd 10: it fits one flight, and 1859 bytes are left for the chain",
        "If logs sign with ml-dsa-44 too, or if two intermediates are sent, the server's handshake takes 2 flights and not 1: a \
         round trip more until the first byte (by arithmetic).",
        "Assumed of X25519MLKEM768/ml-dsa-44/intermediates=1: timestamps: 2, by logs that sign with ecdsa-p256 (scts= and \
         sct_algorithm= in the arm, or --chain-profile);",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_budget_ends_with_99() {
    let folder = tempfile::TempDir::new().unwrap();
    let file = crate::common::at(&folder, "budget.xml");
    let mut asked = lastbyte(["explain", "ml-dsa-44", "--initcwnd", "10,20", "--fail-if"]);
    let ended = run(asked.args(["flights > 1,left<500B", "--junit"]).arg(&file));
    assert_eq!(ended.code, Some(99), "{ended:?}");
    assert_eq!(
        ended.stderr.lines().collect::<Vec<_>>(),
        [
            "lastbyte: budget exceeded: flights > 1: X25519MLKEM768/ml-dsa-44 with initcwnd 10 is 2",
            "lastbyte: within budget: flights of X25519MLKEM768/ml-dsa-44 with initcwnd 20 is 1 (fails if flights > 1)",
            "lastbyte: within budget: left of X25519MLKEM768/ml-dsa-44 with initcwnd 10 is 26518B (fails if left < 500B)",
            "lastbyte: within budget: left of X25519MLKEM768/ml-dsa-44 with initcwnd 20 is 12060B (fails if left < 500B)",
        ]
    );
    let junit = std::fs::read_to_string(&file).unwrap();
    assert!(
        junit.contains("tests=\"4\" failures=\"1\" errors=\"0\""),
        "{junit}"
    );
    // What is printed is what would be without it.
    assert!(ended.stdout.contains("message, bytes"));
    let ended = run(&mut lastbyte([
        "explain",
        "ml-dsa-44",
        "--fail-if",
        "flights > 2",
    ]));
    assert_eq!(
        (ended.code, ended.stderr.as_str()),
        (
            Some(0),
            "lastbyte: within budget: flights of X25519MLKEM768/ml-dsa-44 is 2 (fails if flights > 2)\n"
        )
    );
    let ended = run(&mut lastbyte([
        "explain",
        "ml-dsa-44",
        "--fail-if",
        "left < 500",
    ]));
    assert_eq!(ended.code, Some(2));
    assert!(
        ended
            .stderr
            .contains("\"500\" has no unit: write one, as in 500B"),
        "{}",
        ended.stderr
    );
}
