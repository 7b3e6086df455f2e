#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use crate::id::{LogNumber, TrustAnchorId};
use crate::tree::Tree;

struct Signer(TrustAnchorId);

impl Cosigner for Signer {
    fn id(&self) -> &TrustAnchorId {
        &self.0
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, SignError> {
        Ok(message.to_owned())
    }
}

/// A tree whose entries from `fork` on are others.
fn tree(size: u64, fork: u64) -> Tree {
    let mut tree = Tree::new();
    for entry in 0..size {
        tree.push(HashValue::of(&[entry as u8, u8::from(entry >= fork)]));
    }
    tree
}

fn seen(tree: &Tree) -> Seen {
    Seen {
        size: tree.size(),
        root: tree.root().unwrap(),
    }
}

#[test]
fn a_mirror_follows_a_log_that_grows_and_none_that_forks() {
    let log = LogId::new("32473.1".parse().unwrap(), LogNumber::FIRST).unwrap();
    let mut mirror = Mirror::new(Signer("9".parse().unwrap()));
    let subtree = Subtree::new(16, 20).unwrap();
    mirror
        .cosign(&log, subtree, HashValue::empty(), &[])
        .unwrap_err();
    let grow = |mirror: &mut Mirror<Signer>, tree: &Tree| {
        let before = mirror.seen(&log).map_or(0, |seen| seen.size);
        let proof = Subtree::whole(before)
            .consistency_proof(tree.size(), tree)
            .unwrap();
        mirror.observe(&log, seen(tree), &proof)
    };
    for size in [0, 10, 10, 21] {
        grow(&mut mirror, &tree(size, 100)).unwrap();
    }
    for fork in [0, 5, 20] {
        let error = grow(&mut mirror, &tree(40, fork)).unwrap_err();
        assert!(matches!(error, MirrorError::Inconsistent { .. }), "{error}");
    }
    let shrunk = grow(&mut mirror, &tree(20, 100)).unwrap_err();
    assert_eq!(
        shrunk.to_string(),
        "log 32473.1.0.1 had 21 entries, and now 20"
    );
    grow(&mut mirror, &tree(40, 21)).unwrap();
    let whole = tree(40, 21);
    let hash = subtree.hash(&whole).unwrap();
    let proof = subtree.consistency_proof(40, &whole).unwrap();
    mirror.cosign(&log, subtree, hash, &proof).unwrap();
    mirror
        .cosign(&log, subtree, HashValue::empty(), &proof)
        .unwrap_err();
    mirror.cosign_checkpoint(&log, UnixTime(1)).unwrap();
    let resumed = Mirror::resume(Signer("9".parse().unwrap()), [(log.clone(), seen(&whole))]);
    assert_eq!(resumed.seen(&log), mirror.seen(&log));
}
