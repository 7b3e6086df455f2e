#![allow(clippy::unwrap_used)]

use super::*;

fn reduce(arm: &str) -> Reduce {
    Reduce::new(&arm.parse().unwrap())
}

#[test]
fn each_way_has_a_whole_chain_on_its_own_stacks() {
    for way in &reduce("X25519MLKEM768/ml-dsa-44").ways {
        let whole = &reduce("X25519MLKEM768/ml-dsa-44").whole[way.whole];
        let stacks = |arm: &Arm| (arm.client_stack, arm.server_stack);
        assert_eq!(stacks(whole), stacks(&way.arm), "{}", way.reduction.name);
        let is_trimmed = way.reduction.name == "trimmed leaf";
        assert_eq!(
            whole.chain == way.arm.chain,
            !is_trimmed,
            "{}",
            way.reduction.name
        );
        assert_ne!(whole.label, way.arm.label);
        if let Some(stale) = &way.stale {
            assert_eq!(stacks(stale), stacks(&way.arm), "{}", way.reduction.name);
        }
    }
}

#[test]
fn a_chain_of_any_length_and_timestamps_has_its_merkle_tree_certificate() {
    let reduce = reduce("X25519MLKEM768/ml-dsa-44/intermediates=2/scts=2/sct_algorithm=ml-dsa-44");
    let label = |name: &str| {
        let mut ways = reduce.ways.iter();
        let way = ways.find(|way| way.reduction.name == name);
        way.map(|way| way.arm.label.clone())
    };
    assert_eq!(
        label("MTC, landmark").as_deref(),
        Some("X25519MLKEM768/ml-dsa-44/delivery=mtc-landmark")
    );
    assert!(label("MTC, standalone").is_some());
}

#[test]
fn names_are_there_once() {
    let mut names: Vec<_> = Reduction::ALL.iter().map(|way| way.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Reduction::ALL.len());
}

#[test]
fn arms_are_measured_once() {
    let mut labels: Vec<String> = (reduce("X25519MLKEM768/ml-dsa-44").arms().into_iter())
        .map(|arm| arm.label)
        .collect();
    assert_eq!(labels[0], "X25519MLKEM768/ml-dsa-44");
    let count = labels.len();
    labels.sort_unstable();
    labels.dedup();
    assert_eq!(labels.len(), count);
}

/// Padding takes the place of what was left out, so there would be nothing to see.
#[test]
fn a_chain_with_a_size_is_not_trimmed() {
    let reduce = reduce("X25519MLKEM768/ml-dsa-44:16000B");
    for name in ["trimmed leaf", "PQTLS-AD, raw key"] {
        let mut unavailable = reduce.unavailable.iter();
        let (_, reason) = unavailable.find(|(way, _)| way.name == name).unwrap();
        assert!(reason.starts_with("the chain has a size"), "{reason}");
    }
    assert!(
        reduce
            .ways
            .iter()
            .any(|way| way.reduction.name == "PQTLS-AD")
    );
}

#[test]
fn what_comes_otherwise_already_is_left_alone() {
    let reduce = reduce("X25519MLKEM768/ml-dsa-44/delivery=pqtls-ad");
    assert!(reduce.ways.is_empty(), "{:?}", reduce.ways);
    assert_eq!(reduce.unavailable.len(), Reduction::ALL.len());
    let (_, reason) = &reduce.unavailable[0];
    assert_eq!(reason, "delivery=pqtls-ad is there already: leave it out");
}
