//! The module that is kept was made of the sources as they are.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use sha2::{Digest, Sha256};

/// Whoever changes one of these makes the module anew: `scripts/explore --write`, which has the same list.
#[test]
fn the_module_is_of_these_sources() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let kept = fs::read_to_string(root.join("crates/explore/explore.sources")).unwrap();
    let kept: BTreeMap<&str, &str> = kept
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let (digest, path) = line.split_once("  ").unwrap();
            (path, digest)
        })
        .collect();
    assert!(kept.len() > 30, "{}", kept.len());
    for (path, digest) in &kept {
        let content = fs::read(root.join(path)).unwrap_or_default();
        let found = hex::encode(Sha256::digest(content));
        assert!(
            found == *digest,
            "{path} has changed since crates/explore/explore.wasm was made: run `scripts/explore --write`"
        );
    }
}
