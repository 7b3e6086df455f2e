//! `lastbyte compare` from end to end: what is asked is what is measured.
use std::fs;
use std::time::Duration;

use crate::common::{Measured, assert_fits, at, compare, compare_with, store};
use lastbyte_pki::{ChainSpec, KeyAlgorithm, test_chains};
use lastbyte_tls::Group;
use serde_json::json;
use tempfile::TempDir;

const CLASSICAL: &str = "secp256r1/rsa-2048";
const PADDED: &str = "SecP256r1MLKEM768/ml-dsa-65:16000B";

#[test]
fn the_document_says_what_was_asked_and_what_was_seen() {
    let measured = compare(&format!(
        "--baseline {CLASSICAL} --against {PADDED} --chain-profile private --rtt 20ms --data 0KiB,20KiB --connections 8 --seed 7"
    ));
    assert_fits(&measured.document, lastbyte::report::SCHEMA);
    assert_eq!(measured.document["engine"], "live");
    assert_eq!(measured.document["seed"], 7);
    assert_eq!(measured.document["connections"], 8);

    let cells = measured.document["cells"].as_array().unwrap();
    let data: Vec<_> = cells.iter().map(|cell| &cell["data_bytes"]).collect();
    assert_eq!(data, [0, 20 << 10]);
    for (index, cell) in cells.iter().enumerate() {
        assert_eq!(cell["rtt_ms"], 20.0);
        assert_eq!(cell["rate_bps"], 1_000_000_000);
        assert_eq!(cell["initcwnd"], 10);
        assert_eq!(cell["arms"].as_array().unwrap().len(), 2);
        for (arm, label, group, signature, spec) in [
            (
                0,
                CLASSICAL,
                "secp256r1",
                "rsa_pss_rsae_sha256",
                ChainSpec::new(KeyAlgorithm::Rsa2048),
            ),
            (
                1,
                PADDED,
                "SecP256r1MLKEM768",
                "mldsa65",
                ChainSpec {
                    certificate_bytes: Some(16_000),
                    ..ChainSpec::new(KeyAlgorithm::MlDsa65)
                },
            ),
        ] {
            let sample = measured.sample(index, arm);
            assert_eq!(sample["arm"], label);
            assert_eq!(sample["baseline"], arm == 0);
            assert_eq!(sample["connections"], 8);
            assert_eq!(sample["failed"], 0);
            assert_eq!(sample["negotiated"]["group"], group);
            assert_eq!(sample["negotiated"]["signature"], signature);
            let bytes = spec.certificate_bytes.unwrap_or(spec.unpadded_bytes());
            assert_eq!(sample["certificate_bytes"], bytes);
            let chain = store().chain(&spec).unwrap();
            assert_eq!(
                sample["certificate_bytes"],
                chain.certificate_message_bytes()
            );
            assert_eq!(sample["chain_sha256"], chain.digest());
        }
    }
    let nothing = json!({"p50": null, "p75": null, "p90": null});
    assert_eq!(measured.sample(0, 0)["ttfb_ms"], nothing);
    assert!(measured.sample(1, 0)["ttfb_ms"]["p50"].is_number());
}

#[test]
fn times_are_in_order_and_no_faster_than_light() {
    const RTT: Duration = Duration::from_millis(20);
    let measured = compare("--baseline x25519/ecdsa-p256 --rtt 20ms --data 20KiB --connections 8");
    for row in &measured.rows {
        let [connect, handshake, ttfb, ttlb] =
            ["connect_ns", "handshake_ns", "ttfb_ns", "ttlb_ns"].map(|name| row.time(name));
        assert!(connect < handshake && handshake < ttfb && ttfb <= ttlb);
        // A round trip each: SYN; ClientHello; request. 20 KiB are 15 segments, more than
        // the 10 that may go at once; the handshake has acknowledged but 2 of them.
        assert!(connect >= RTT, "{connect:?}");
        assert!(handshake >= 2 * RTT, "{handshake:?}");
        assert!(ttfb >= 3 * RTT, "{ttfb:?}");
        assert!(ttlb >= 4 * RTT, "{ttlb:?}");
    }
}

/// 13 segments of the server's do not fit an initial congestion window of 10.
#[test]
fn a_large_chain_costs_a_round_trip_unless_the_window_is_large() {
    let arms = [
        "secp256r1/rsa-2048:2500B",
        "SecP256r1MLKEM768/rsa-2048:8000B",
        "SecP256r1MLKEM768/rsa-2048:16000B",
    ];
    let [baseline, middle, large] = arms;
    let measured = compare(&format!(
        "--baseline {baseline} --against {middle} --against {large} \
         --rtt 40ms --initcwnd 10,20 --data 0KiB --connections 8"
    ));
    for (initcwnd, expected) in [("10", [2, 2, 3]), ("20", [2, 2, 2])] {
        for (arm, expected) in arms.into_iter().zip(expected) {
            let round_trips: Vec<_> = round_trips(&measured, arm, initcwnd, "handshake_ns", 40);
            let fastest = round_trips.iter().min();
            assert_eq!(fastest, Some(&expected), "{arm}, initcwnd {initcwnd}");
        }
    }
}

/// Whole round trips that each connection took.
fn round_trips(measured: &Measured, arm: &str, initcwnd: &str, time: &str, rtt: u128) -> Vec<u128> {
    measured
        .rows_of(arm)
        .filter(|row| row.text("initcwnd") == initcwnd)
        .map(|row| row.time(time).as_millis() / rtt)
        .collect()
}

#[test]
fn the_servers_initial_window_doubles_from_flight_to_flight() {
    let arm = "x25519/rsa-2048:16000B";
    let measured = compare(&format!(
        "--baseline {arm} --rtt 20ms --initcwnd 1,2,4,10,20 --data 0KiB --connections 4"
    ));
    // 12 segments: 1+2+4+5, 2+4+6, 4+8, 10+2, 12.
    for (initcwnd, flights) in [("1", 4), ("2", 3), ("4", 2), ("10", 2), ("20", 1)] {
        let round_trips = round_trips(&measured, arm, initcwnd, "handshake_ns", 20);
        let fastest = round_trips.iter().min();
        assert_eq!(fastest, Some(&(1 + flights)), "initcwnd {initcwnd}");
    }
}

#[test]
fn every_group_is_negotiated() {
    let mut options = String::from("--rtt 10ms --data 1KiB --connections 1");
    for (index, group) in Group::ALL.iter().enumerate() {
        let option = if index == 0 { "baseline" } else { "against" };
        options += &format!(" --{option} {group}/ecdsa-p256");
    }
    let measured = compare(&options);
    for (index, group) in Group::ALL.iter().enumerate() {
        let sample = measured.sample(0, index);
        assert_eq!(sample["failed"], 0);
        assert_eq!(sample["negotiated"]["group"], group.name());
    }
}

/// However busy the machine is, most of these are known to a factor of two soon.
#[test]
fn a_cell_ends_when_it_is_precise_enough() {
    let options = "--baseline x25519/ecdsa-p256 --engine live --rtt 4ms --data 0KiB";
    let mut options: Vec<_> = options.split_whitespace().collect();
    options.extend(["--connections", "until ±50%"]);
    let measured = compare_with(&options);
    assert_fits(&measured.document, lastbyte::report::SCHEMA);
    assert_eq!(measured.document["until"]["looks"], 7);
    let connections = measured.sample(0, 0)["connections"].as_u64().unwrap();
    assert!(
        [200, 400, 800, 1600].contains(&connections),
        "{connections}"
    );
    assert_eq!(measured.rows.len() as u64, connections);
}

#[test]
fn a_chain_of_ones_own_is_sent_as_it_is() {
    let folder = TempDir::new().unwrap();
    let chain = test_chains::for_name("www.example").unwrap();
    let certificates = chain.certificates().iter();
    let pem: Vec<_> = certificates
        .flat_map(|sent| sent.to_pem().unwrap())
        .collect();
    fs::write(at(&folder, "chain.pem"), pem).unwrap();
    fs::write(at(&folder, "root.pem"), chain.root().to_pem().unwrap()).unwrap();
    let key = chain.key().private_key_to_pem_pkcs8().unwrap();
    fs::write(at(&folder, "key.pem"), key).unwrap();

    let folder = folder.path().display();
    let measured = compare(&format!(
        "--baseline x25519/{folder}/chain.pem/ca={folder}/root.pem --rtt 10ms --data 0KiB --connections 2"
    ));
    let sample = measured.sample(0, 0);
    assert_eq!(sample["failed"], 0);
    assert_eq!(
        sample["certificate_bytes"],
        chain.certificate_message_bytes()
    );
    assert_eq!(sample["chain_sha256"], chain.digest());
}

#[test]
fn every_congestion_control_of_this_kernel_carries_data() {
    for congestion in ["cubic", "reno"] {
        let measured = compare(&format!(
            "--baseline x25519/ecdsa-p256 --congestion {congestion} --rtt 10ms --data 50KiB --connections 2"
        ));
        assert_eq!(measured.document["cells"][0]["congestion"], congestion);
        assert_eq!(measured.sample(0, 0)["failed"], 0);
    }
}
