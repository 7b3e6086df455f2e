#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use lastbyte_pki::{ChainSpec, KeyAlgorithm, SlhDsa};

use super::*;
use crate::fixtures::{chain, spec};

/// Of ML-KEM-768.
const SHARE: usize = 1088;

fn plan(spec: &ChainSpec, segments: u32) -> Plan {
    let window = InitialWindow {
        segments,
        ..InitialWindow::default()
    };
    Plan::new(&chain(spec).0, SHARE, window)
}

/// As the mechanism's authors had it.
fn root_and_end_entity(algorithm: KeyAlgorithm) -> ChainSpec {
    ChainSpec {
        intermediates: 0,
        ..spec(algorithm)
    }
}

#[test]
fn as_little_as_brings_the_flight_within_the_window() {
    let ml_dsa = root_and_end_entity(KeyAlgorithm::MlDsa65);
    let ten = plan(&ml_dsa, 10);
    assert_eq!(ten.choice().part, Some(Part::Root));
    assert!(!ten.flights[0].fits && ten.flights[1].fits && ten.flights[2].fits);
    // Twenty segments hold it all.
    assert_eq!(plan(&ml_dsa, 20).choice().part, None);
    assert_eq!(
        plan(&root_and_end_entity(KeyAlgorithm::EcdsaP256), 10)
            .choice()
            .omitted,
        0
    );
    // With an intermediate and the root sent, leaving out the root is not enough.
    assert_eq!(plan(&spec(KeyAlgorithm::MlDsa65), 10).choice().omitted, 2);
}

#[test]
fn what_never_fits_is_published_whole() {
    let slh_dsa = KeyAlgorithm::SlhDsa(SlhDsa::Sha2_192f);
    let plan = plan(&root_and_end_entity(slh_dsa), 10);
    assert_eq!(plan.choice().part, Some(Part::EndEntity));
    assert!(!plan.choice().fits);
}

#[test]
fn the_operator_is_told_why() {
    let told = plan(&root_and_end_entity(KeyAlgorithm::MlDsa65), 10).to_string();
    let lines: Vec<_> = told.lines().collect();
    assert_eq!(
        lines[0],
        "The initial window is 14480 bytes (10 segments of 1448). The server's first flight:"
    );
    assert!(lines[1].starts_with("   nothing from DNS: ") && lines[1].ends_with(", does not fit"));
    assert!(lines[2].starts_with("-> from DNS down to the root (1): "));
    assert_eq!(
        lines[4],
        "That is the least that saves the wait for an acknowledgement."
    );
}
