//! Trees in memory: a real one, and one of any size around a few real entries.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use crate::hash::HashValue;
use crate::subtree::{Nodes, Subtree};

/// A node that a tree does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the tree of {size} entries has no node {index} at level {level}")]
pub struct NoNode {
    level: u32,
    index: u64,
    size: u64,
}

/// All full nodes of a tree: 64 bytes for each entry.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// From the leaves up.
    levels: Vec<Vec<HashValue>>,
}

impl Tree {
    /// One without entries.
    pub fn new() -> Tree {
        Tree::default()
    }

    /// As many entries as there are.
    pub fn size(&self) -> u64 {
        self.levels.first().map_or(0, |leaves| leaves.len() as u64)
    }

    /// Adds an entry by its hash, and tells its index.
    pub fn push(&mut self, leaf: HashValue) -> u64 {
        let index = self.size();
        let mut hash = leaf;
        for level in 0.. {
            if level == self.levels.len() {
                self.levels.push(Vec::new());
            }
            let nodes = &mut self.levels[level];
            nodes.push(hash);
            match nodes.as_slice() {
                [.., left, right] if nodes.len().is_multiple_of(2) => {
                    hash = HashValue::node(left, right)
                }
                _ => break,
            }
        }
        index
    }

    /// The hash of all entries.
    ///
    /// # Errors
    ///
    /// None: it has all nodes.
    pub fn root(&self) -> Result<HashValue, NoNode> {
        Subtree::whole(self.size()).hash(self)
    }
}

impl Nodes for Tree {
    type Error = NoNode;

    // Proofs are made elsewhere, and are little else.
    #[inline]
    fn node(&self, level: u32, index: u64) -> Result<HashValue, NoNode> {
        let nodes = self.levels.get(level as usize);
        let node = nodes.and_then(|nodes| nodes.get(usize::try_from(index).ok()?));
        node.copied().ok_or_else(|| NoNode {
            level,
            index,
            size: self.size(),
        })
    }
}

/// A tree of any size in which a few entries are real; the hashes of all others follow from a seed.
/// Proofs of the real ones are as long, and verified with as much work, as in a tree whose entries
/// all are.
#[derive(Clone, Debug)]
pub struct SparseTree {
    seed: u64,
    size: u64,
    leaves: BTreeMap<u64, HashValue>,
}

impl SparseTree {
    /// A tree of `size` entries.
    pub fn new(size: u64, seed: u64) -> SparseTree {
        SparseTree {
            seed,
            size,
            leaves: BTreeMap::new(),
        }
    }

    /// As many entries as there are.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Makes an entry a real one.
    ///
    /// # Errors
    ///
    /// If there is none of that index.
    pub fn set(&mut self, index: u64, leaf: HashValue) -> Result<(), NoNode> {
        self.check(0, index)?;
        self.leaves.insert(index, leaf);
        Ok(())
    }

    fn check(&self, level: u32, index: u64) -> Result<(), NoNode> {
        let last = self.size.checked_shr(level).unwrap_or(0);
        if index < last {
            Ok(())
        } else {
            Err(NoNode {
                level,
                index,
                size: self.size,
            })
        }
    }

    fn hash(&self, level: u32, index: u64) -> HashValue {
        let first = index << level;
        let last = first + ((1 << level) - 1);
        let mut real = self.leaves.range(first..=last);
        match (real.next(), level.checked_sub(1)) {
            (Some((_, leaf)), None) => *leaf,
            (Some(_), Some(below)) => HashValue::node(
                &self.hash(below, 2 * index),
                &self.hash(below, 2 * index + 1),
            ),
            (None, _) => {
                let mut hash = Sha256::new_with_prefix(self.seed.to_be_bytes());
                hash.update(level.to_be_bytes());
                hash.update(index.to_be_bytes());
                HashValue(hash.finalize().into())
            }
        }
    }
}

impl Nodes for SparseTree {
    type Error = NoNode;

    fn node(&self, level: u32, index: u64) -> Result<HashValue, NoNode> {
        self.check(level, index)?;
        Ok(self.hash(level, index))
    }
}
