//! What arithmetic says of an arm's messages is what an observer reads of them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;

use lastbyte_flights::Compute;
use lastbyte_pki::{KeyAlgorithm, Store};
use lastbyte_tls::Group;

use super::*;
use crate::explain;
use crate::lab::PreparedArm;
use crate::results::expected;
use crate::study::{Arm, Cell};

/// Chains take longer to make than to use, so they are kept.
fn store() -> Store {
    Store::open(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-chains"))
}

fn agree(arm: &str) {
    let arm: Arm = arm.parse().unwrap();
    let computed = explain::wire(&arm).unwrap();
    let prepared = PreparedArm::new(arm, &store()).unwrap();
    let handshake = prepared.handshake().unwrap();
    let read = prepared.exchange(&handshake);
    let arm = prepared.arm;
    let computed = with_signature_of(&read, computed);
    assert_eq!(computed, read, "{arm}");
    for initcwnd in [1, 10, 32] {
        let cell = Cell {
            initcwnd,
            data: "50KiB".parse().unwrap(),
            ..Cell::default()
        };
        let times = |wire| expected(wire, &cell, arm.record_size, Compute::default());
        assert_eq!(times(&computed), times(&read), "{arm} {initcwnd}");
    }
}

/// A signature of ECDSA varies, as arithmetic says.
fn with_signature_of(read: &Exchange, computed: Exchange) -> Exchange {
    let bytes = |wire: &Exchange| wire.bytes(Message::CertificateVerify);
    let is_ecdsa = matches!(read.negotiated.signature, Some(0x0403 | 0x0503));
    let (usual, actual) = (bytes(&computed), bytes(read));
    let span = if is_ecdsa {
        usual - 3..=usual + 1
    } else {
        usual..=usual
    };
    assert!(span.contains(&actual), "{usual} {actual}");
    let mut computed = computed;
    (computed.handshake.messages).set(Message::CertificateVerify, Some(actual));
    computed
}

#[test]
fn every_algorithm_group_and_number_of_intermediates() {
    for key in KeyAlgorithm::ALL {
        // Signatures of SLH-DSA's small sets take up to seconds, those of its others up to a tenth of one.
        let is_small = key.name().starts_with("slh-dsa") && key.name().ends_with('s');
        let intermediates = match key.provided() {
            // FN-DSA is quick.
            Some(_) if key.name().starts_with("fn-dsa") => 0..=3,
            Some(_) if is_small => 1..=1,
            Some(_) => 1..=2,
            None => 0..=3,
        };
        for intermediates in intermediates {
            agree(&format!(
                "X25519MLKEM768/{key}/intermediates={intermediates}"
            ));
        }
    }
    // A group changes the hellos alone, whatever the chain is.
    for group in Group::ALL {
        for key in ["ecdsa-p256", "rsa-2048", "ml-dsa-87"] {
            agree(&format!("{group}/{key}"));
        }
    }
}

#[test]
fn every_choice_of_key_shares() {
    for group in Group::ALL {
        for shares in [
            "x25519",
            "secp256r1",
            "X25519MLKEM768",
            "MLKEM1024",
            "X25519MLKEM768+x25519",
            "SecP256r1MLKEM768+secp256r1",
        ] {
            agree(&format!("{group}/ecdsa-p256/key_share={shares}"));
        }
    }
}

#[test]
fn whatever_else_a_chain_can_have() {
    for chain in [
        "ecdsa-p256/root=sent",
        "ecdsa-p256+rsa-2048+ml-dsa-65",
        "ecdsa-p256+fn-dsa-512+ml-dsa-44/intermediates=2",
        "fn-dsa-512+fn-dsa-512+fn-dsa-1024/root=sent",
        "ml-dsa-44/scts=3",
        "ml-dsa-44/scts=2/sct_algorithm=ml-dsa-44",
        "rsa-2048:2500B",
        "rsa-2048:16000B/intermediates=2",
        // The Certificate message fills one record, two and more.
        "rsa-2048:16384B",
        "rsa-2048:16385B",
        "rsa-2048:70000B/padding=last/root=sent",
        "ml-dsa-65/intermediates=0/max_cert_list=40000B",
        "ml-dsa-65/record_size=1000",
        "ml-dsa-65/names=1/leaf_without=policies+aia+crl",
        "rsa-2048/names=50/leaf_without=crl",
        "ecdsa-p256:3000B/names=1/leaf_without=aia",
    ] {
        agree(&format!("X25519MLKEM768/{chain}"));
    }
}

/// What is left where DNS has the rest, and was asked before.
#[test]
fn whatever_dns_delivers() {
    for chain in [
        "X25519MLKEM768/ml-dsa-65/delivery=pqtls-ad/from=intermediate",
        "x25519/rsa-2048/intermediates=3/delivery=pqtls-ad/from=intermediate",
        "x25519/ml-dsa-44/delivery=pqtls-ad-raw-key",
        "SecP256r1MLKEM768/ecdsa-p256/delivery=pqtls-ad-raw-key",
    ] {
        agree(chain);
    }
}

/// What compression leaves of usual chains is predicted but for some bytes, of which luck has a share: of eighty new chains, one or
/// two can be further off than any usual one. LASTBYTE_CHAINS=400 has so many new ones of each.
#[cfg(feature = "rustls")]
#[test]
fn whatever_is_compressed() {
    use crate::study::COMPRESSED_WITHIN;
    let asked = std::env::var("LASTBYTE_CHAINS").ok();
    let asked: Option<usize> = asked.map(|chains| chains.parse().unwrap());
    let mut off = Vec::new();
    let (mut rare, mut all) = (0, 0);
    for key in [
        "ecdsa-p256",
        "rsa-2048",
        "ml-dsa-44",
        "ml-dsa-65",
        "ml-dsa-87",
    ] {
        for intermediates in 0..=3 {
            for delivery in [
                "compressed",
                "compressed/scts=2",
                "compressed/scts=3/sct_algorithm=ml-dsa-44",
                "abridged",
            ] {
                let arm = |stack| {
                    let name = format!(
                        "x25519/{key}/intermediates={intermediates}/delivery={delivery}{stack}"
                    );
                    name.parse::<Arm>().unwrap()
                };
                let computed = explain::wire(&arm("")).unwrap();
                let bytes = |wire: &Exchange| i64::from(wire.bytes(Message::Certificate));
                let read = |store: &Store| {
                    let prepared = PreparedArm::new(arm("/stack=rustls"), store).unwrap();
                    bytes(&prepared.exchange(&prepared.handshake().unwrap()))
                };
                let anew = |_| read(&Store::open(tempfile::TempDir::new().unwrap().path()));
                let mut more: Vec<i64> = match asked {
                    Some(chains) => (0..chains).map(anew).collect(),
                    None => vec![read(&store())],
                };
                let computed = bytes(&computed);
                more.iter_mut().for_each(|bytes| *bytes -= computed);
                more.sort_unstable();
                let (least, most) = (more[0], more[more.len() - 1]);
                let median = more[more.len() / 2];
                println!(
                    "{key} {intermediates} {delivery}: {computed} and {least} to {most}, median {median}"
                );
                let within = COMPRESSED_WITHIN as i64;
                rare += more.iter().filter(|off| off.abs() > within).count();
                all += more.len();
                let worst = least.abs().max(most.abs());
                assert!(
                    worst <= 3 * within,
                    "{arm}: {least} to {most}",
                    arm = arm("")
                );
                off.push(median.abs());
            }
        }
    }
    off.sort_unstable();
    assert!(off[off.len() / 2] <= 15, "{off:?}");
    assert!(rare <= 2 + all / 40, "{rare} of {all}");
}

#[test]
fn whatever_a_client_has_and_says() {
    for elided in [
        "",
        "/client=stale",
        "/signal=trust-anchors",
        "/signal=trust-anchors/client=stale",
        "/signal=trust-anchors/client=stale/fallback=short",
        "/signal=trust-anchors/fallback=short",
    ] {
        for chain in [
            "ml-dsa-44",
            "rsa-2048/intermediates=3/root=sent",
            "fn-dsa-512:20000B",
            "ml-dsa-65+ml-dsa-44:30000B",
        ] {
            agree(&format!("X25519MLKEM768/{chain}/delivery=elide{elided}"));
        }
    }
    // What is left out is what was made larger, and comes in the second connection.
    agree("X25519MLKEM768/ml-dsa-65+ml-dsa-44:30000B/padding=last/delivery=elide/client=stale");
}
