#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fmt::Write as _;

use proptest::prelude::*;
use sha2::{Digest, Sha256};

use super::*;
use crate::tree::Tree;

/// The tree of the draft's vectors: entry `i` is the byte `i`.
fn tree(size: u64) -> Tree {
    let mut tree = Tree::new();
    for entry in 0..size {
        tree.push(HashValue::leaf([&[entry as u8][..]]));
    }
    tree
}

fn subtrees(end: u64) -> impl Iterator<Item = Subtree> {
    (0..=end).filter_map(move |start| Subtree::new(start, end).ok())
}

fn accumulated(lines: impl Fn(&mut String)) -> String {
    let mut text = String::new();
    lines(&mut text);
    hex::encode(Sha256::digest(text))
}

fn put_proof(text: &mut String, proof: &[HashValue]) {
    for hash in proof {
        write!(text, " {hash}").unwrap();
    }
    text.push('\n');
}

/// Appendix C.1 of the draft.
#[test]
fn accumulated_vectors_are_the_drafts() {
    let tree = tree(130);
    let hashes = accumulated(|text| {
        for subtree in (0..=130).flat_map(subtrees) {
            writeln!(text, "{subtree} {}", subtree.hash(&tree).unwrap()).unwrap();
        }
    });
    assert_eq!(
        hashes,
        "b82806ad4265bb151c1119c0f4db437bb4d1a1f887b3a7fba1cd4ebf552e3e81"
    );
    let inclusion = accumulated(|text| {
        for subtree in (0..=130).flat_map(subtrees) {
            for index in subtree.start()..subtree.end() {
                write!(text, "{index} {subtree}").unwrap();
                put_proof(text, &subtree.inclusion_proof(index, &tree).unwrap());
            }
        }
    });
    assert_eq!(
        inclusion,
        "ac2a8f989e44d99e399db448050ff5f19757df53cfb716aa81015d3955d8163f"
    );
    let consistency = accumulated(|text| {
        for size in 0..=130 {
            for subtree in (0..=size).flat_map(subtrees) {
                write!(text, "{subtree} {size}").unwrap();
                put_proof(text, &subtree.consistency_proof(size, &tree).unwrap());
            }
        }
    });
    assert_eq!(
        consistency,
        "10fa99b37bf9bf9ffa26b412fbd98bd75363256d0b75d61bc4538b9c9c5a0a74"
    );
    let covering = accumulated(|text| {
        for end in 0..=130 {
            for start in 0..=end {
                let [left, right] = Subtree::cover(start..end);
                writeln!(text, "{left} {right}").unwrap();
            }
        }
    });
    assert_eq!(
        covering,
        "7fd9c8b926e9d2b5cf831560e8ce295a5ef97ad5c5ede4ea0dea28a8c8fc8bb0"
    );
}

/// Appendix C.2.1 of the draft.
#[test]
fn large_intervals_are_subtrees_as_the_draft_says() {
    for end in [
        (1 << 47) + 1,
        (1 << 48) - 1,
        (1 << 62) + 1,
        (1 << 63) - 1,
        (1 << 63) + 1,
        u64::MAX,
    ] {
        Subtree::new(0, end).unwrap();
    }
    for (start, end) in [
        (1 << 46, (1 << 47) + 1),
        (1 << 46, (1 << 48) - 1),
        (1 << 61, (1 << 62) + 1),
        (1 << 61, (1 << 63) - 1),
        (1 << 62, (1 << 63) + 1),
        (1 << 62, u64::MAX),
    ] {
        Subtree::new(start, end).unwrap_err();
    }
    for (start, end) in [(5, 4), (u64::MAX, 0), (1, u64::MAX)] {
        Subtree::new(start, end).unwrap_err();
    }
    for at in [0, 1, 77, u64::MAX] {
        Subtree::new(at, at).unwrap();
    }
}

/// Appendix C.2.4 of the draft.
#[test]
fn large_intervals_are_covered_as_the_draft_says() {
    const TOP: u64 = 1 << 63;
    const HALF: u64 = 1 << 62;
    for (start, end, from, middle) in [
        (0, 0x8000_0000_0000, 0, 0x4000_0000_0000),
        (
            0x5000_0000_0000,
            0xd000_0000_0000,
            0x4000_0000_0000,
            0x8000_0000_0000,
        ),
        (
            0x7fff_ffff_ffff,
            0x8000_0000_0001,
            0x7fff_ffff_ffff,
            0x8000_0000_0000,
        ),
        (
            0xffff_ffff_fffe,
            0xffff_ffff_ffff,
            0xffff_ffff_fffe,
            0xffff_ffff_ffff,
        ),
        (0, HALF, 0, HALF / 2),
        (
            0x2800_0000_0000_0000,
            0x6800_0000_0000_0000,
            0x2000_0000_0000_0000,
            HALF,
        ),
        (HALF - 1, HALF + 1, HALF - 1, HALF),
        (TOP - 2, TOP - 1, TOP - 2, TOP - 1),
        (TOP - 1, TOP - 1, TOP - 1, TOP - 1),
        (0, TOP, 0, HALF),
        (0x5000_0000_0000_0000, 0xd000_0000_0000_0000, HALF, TOP),
        (TOP - 1, TOP + 1, TOP - 1, TOP),
        (u64::MAX - 1, u64::MAX, u64::MAX - 1, u64::MAX),
        (u64::MAX, u64::MAX, u64::MAX, u64::MAX),
    ] {
        let expected = [(from, middle), (middle, end)];
        let found = Subtree::cover(start..end).map(|subtree| (subtree.start(), subtree.end()));
        assert_eq!(found, expected, "{start:#x}..{end:#x}");
    }
}

#[test]
fn every_proof_holds_and_none_that_was_changed() {
    let tree = tree(130);
    let flip = |hash: HashValue| {
        let mut hash = hash;
        hash.0[7] ^= 0x10;
        hash
    };
    for subtree in (1..=130).flat_map(subtrees) {
        let own = subtree.hash(&tree).unwrap();
        for index in subtree.start()..subtree.end() {
            let leaf = HashValue::leaf([&[index as u8][..]]);
            let proof = subtree.inclusion_proof(index, &tree).unwrap();
            assert_eq!(subtree.evaluate(index, leaf, &proof), Ok(own));
            assert_ne!(subtree.evaluate(index, flip(leaf), &proof), Ok(own));
            if let Some((_, shorter)) = proof.split_last() {
                subtree.evaluate(index, leaf, shorter).unwrap_err();
            }
            let longer = [proof.clone(), vec![own]].concat();
            subtree.evaluate(index, leaf, &longer).unwrap_err();
        }
        for size in [subtree.end(), subtree.end() + 1, 130] {
            let Ok(root) = Subtree::whole(size).hash(&tree) else {
                continue;
            };
            let proof = subtree.consistency_proof(size, &tree).unwrap();
            let check = |own, size, root, proof: &[HashValue]| {
                subtree.check_consistency(own, size, root, proof)
            };
            check(own, size, root, &proof).unwrap();
            check(flip(own), size, root, &proof).unwrap_err();
            if subtree.size() > 0 {
                check(own, size, flip(root), &proof).unwrap_err();
            }
            if let Some((_, shorter)) = proof.split_last() {
                check(own, size, root, shorter).unwrap_err();
            }
            check(own, size, root, &[proof, vec![own]].concat()).unwrap_err();
        }
        subtree
            .check_consistency(own, subtree.end() - 1, own, &[])
            .unwrap_err();
        for outside in [subtree.end(), subtree.start().wrapping_sub(1)] {
            subtree.evaluate(outside, own, &[]).unwrap_err();
        }
    }
}

proptest! {
    /// Section 4.5's promises.
    #[test]
    fn two_subtrees_cover_any_interval(start: u64, length: u64) {
        let end = start.saturating_add(length);
        let [left, right] = Subtree::cover(start..end);
        for subtree in [left, right] {
            prop_assert_eq!(Subtree::new(subtree.start(), subtree.end()), Ok(subtree));
        }
        prop_assert_eq!(left.end(), right.start());
        prop_assert_eq!(right.end(), end);
        prop_assert!(left.start() <= start);
        if start < end {
            prop_assert!(start - left.start() < left.end() - start);
        }
    }

    /// Nothing that comes from outside makes it loop or panic.
    #[test]
    fn any_proof_is_judged(start: u64, end: u64, index: u64, size: u64, hashes in 0_usize..70) {
        let hash = HashValue::empty();
        let proof = vec![hash; hashes];
        let subtrees = [Subtree::new(start, end), Subtree::new(0, end)];
        for subtree in subtrees.into_iter().flatten() {
            let _ = subtree.evaluate(index, hash, &proof);
            let _ = subtree.evaluate(start, hash, &proof);
            let _ = subtree.check_consistency(hash, size, hash, &proof);
            let _ = subtree.check_consistency(hash, end, hash, &proof);
        }
    }
}
