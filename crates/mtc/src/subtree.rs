//! Subtrees of a log: which there are, their hashes, and proofs about them (section 4 of the
//! draft).
//!
//! Nothing here holds a tree. Whatever can tell the hashes of full nodes is [`Nodes`]: a tree in
//! memory, tiles on a disk, tiles that were fetched.

use std::fmt;
use std::ops::Range;

use crate::hash::HashValue;

/// Gives the hashes of a tree's full nodes.
pub trait Nodes {
    /// Why a node can't be had.
    type Error;

    /// The hash of the entries from `index << level` to before `(index + 1) << level`, all of which
    /// the tree must have.
    ///
    /// # Errors
    ///
    /// If the tree does not go that far, or can't be read.
    fn node(&self, level: u32, index: u64) -> Result<HashValue, Self::Error>;
}

/// An interval of entries that is a Merkle tree of its own and stands well in the larger one: its
/// start is a multiple of its size, rounded up to a power of two. It may be empty.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subtree {
    start: u64,
    end: u64,
}

/// An interval that is no subtree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "[{start}, {end}) is no subtree: its start must be a multiple of its size, rounded up to a power of two"
)]
pub struct NoSubtree {
    start: u64,
    end: u64,
}

/// Why a proof does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    /// The entry is not in the subtree.
    #[error("entry {index} is not in {subtree}")]
    Outside {
        /// Which entry.
        index: u64,
        /// Of which subtree.
        subtree: Subtree,
    },
    /// The subtree is larger than the tree.
    #[error("{subtree} is not in a tree of {size} entries")]
    Beyond {
        /// Which subtree.
        subtree: Subtree,
        /// The tree's entries.
        size: u64,
    },
    /// There are hashes missing.
    #[error("the proof is too short: {hashes} hashes")]
    Short {
        /// As many as there are.
        hashes: usize,
    },
    /// There are more hashes than levels.
    #[error("the proof is too long: {hashes} hashes")]
    Long {
        /// As many as there are.
        hashes: usize,
    },
    /// The proof is of another tree.
    #[error("the proof is of another tree: it leads to {found}, not to {expected}")]
    Differs {
        /// Where it leads.
        found: HashValue,
        /// Where it should.
        expected: HashValue,
    },
}

impl Subtree {
    /// The entries from `start` to before `end`.
    ///
    /// # Errors
    ///
    /// If they are no subtree.
    pub fn new(start: u64, end: u64) -> Result<Subtree, NoSubtree> {
        let valid = end.checked_sub(start).is_some_and(|size| {
            // None is 2^64, of which only 0 is a multiple here.
            let step = size.checked_next_power_of_two();
            step.map_or(start == 0, |step| start & (step - 1) == 0)
        });
        if valid {
            Ok(Subtree { start, end })
        } else {
            Err(NoSubtree { start, end })
        }
    }

    /// All entries of a tree of this size.
    pub fn whole(size: u64) -> Subtree {
        Subtree {
            start: 0,
            end: size,
        }
    }

    /// The two subtrees, side by side, that cover an interval (section 4.5): they end with it, and
    /// what they have before it is less than half of the first. Either may be empty. An interval
    /// that ends before it starts is taken for an empty one.
    pub fn cover(interval: Range<u64>) -> [Subtree; 2] {
        let Range { start, end } = interval;
        let end = end.max(start);
        let pair = |from, middle| {
            [
                Subtree {
                    start: from,
                    end: middle,
                },
                Subtree { start: middle, end },
            ]
        };
        if end - start <= 1 {
            return pair(start, end);
        }
        let last = end - 1;
        // Both differ, since there are two entries at least.
        let mask = (1 << (start ^ last).ilog2()) - 1;
        let zeros = !start & mask;
        let mask_of_first = match zeros.checked_ilog2() {
            Some(bit) => (1 << (bit + 1)) - 1,
            None => 0,
        };
        pair(start & !mask_of_first, last & !mask)
    }

    /// The first entry's index.
    pub fn start(self) -> u64 {
        self.start
    }

    /// The index after the last entry's.
    pub fn end(self) -> u64 {
        self.end
    }

    /// As many entries as it has.
    pub fn size(self) -> u64 {
        self.end - self.start
    }

    /// Whether an entry is in it.
    pub fn contains(self, index: u64) -> bool {
        (self.start..self.end).contains(&index)
    }

    /// Its hash.
    ///
    /// # Errors
    ///
    /// If a node can't be had.
    pub fn hash<N: Nodes + ?Sized>(self, nodes: &N) -> Result<HashValue, N::Error> {
        let mut end = self.end;
        let mut hash = None;
        // Full trees make it up, the smallest at the right.
        while end > self.start {
            let level = (end - self.start).trailing_zeros();
            let left = nodes.node(level, (end - 1) >> level)?;
            hash = Some(match hash {
                Some(right) => HashValue::node(&left, &right),
                None => left,
            });
            end -= 1 << level;
        }
        Ok(hash.unwrap_or_else(HashValue::empty))
    }

    /// The proof that it has the entry `index`: the hashes beside its way up. An entry outside has
    /// none.
    ///
    /// # Errors
    ///
    /// If a node can't be had.
    pub fn inclusion_proof<N: Nodes + ?Sized>(
        self,
        index: u64,
        nodes: &N,
    ) -> Result<Vec<HashValue>, N::Error> {
        if !self.contains(index) {
            return Ok(Vec::new());
        }
        let mut at = index - self.start;
        let mut last = self.size() - 1;
        let mut level = 0;
        let mut proof = Vec::with_capacity(64 - last.leading_zeros() as usize);
        while last > 0 {
            let first = self.start >> level;
            if at & 1 == 1 {
                proof.push(nodes.node(level, first + at - 1)?);
            } else if at + 1 < last {
                proof.push(nodes.node(level, first + at + 1)?);
            } else if at < last {
                // The right edge: perhaps not full.
                let right = Subtree {
                    start: (first + at + 1) << level,
                    end: self.end,
                };
                proof.push(right.hash(nodes)?);
            }
            at >>= 1;
            last >>= 1;
            level += 1;
        }
        Ok(proof)
    }

    /// The hash that a proof of inclusion leads to (section 4.3.2).
    ///
    /// # Errors
    ///
    /// If the proof has not as many hashes as it should, or the entry is outside.
    pub fn evaluate(
        self,
        index: u64,
        leaf: HashValue,
        proof: &[HashValue],
    ) -> Result<HashValue, ProofError> {
        if !self.contains(index) {
            return Err(ProofError::Outside {
                index,
                subtree: self,
            });
        }
        let hashes = proof.len();
        let mut at = index - self.start;
        let mut last = self.size() - 1;
        let mut hash = leaf;
        for beside in proof {
            if last == 0 {
                return Err(ProofError::Long { hashes });
            }
            if at & 1 == 1 || at == last {
                hash = HashValue::node(beside, &hash);
                let levels = at.trailing_zeros();
                at >>= levels;
                last >>= levels;
            } else {
                hash = HashValue::node(&hash, beside);
            }
            at >>= 1;
            last >>= 1;
        }
        match last {
            0 => Ok(hash),
            _ => Err(ProofError::Short { hashes }),
        }
    }

    /// The proof that it is a part of the tree of `size` entries (section 4.4.1). One that is no
    /// part has none.
    ///
    /// # Errors
    ///
    /// If a node can't be had.
    pub fn consistency_proof<N: Nodes + ?Sized>(
        self,
        size: u64,
        nodes: &N,
    ) -> Result<Vec<HashValue>, N::Error> {
        let Subtree { mut start, end } = self;
        let mut proof = Vec::new();
        if start == end || end > size {
            return Ok(proof);
        }
        // Where in the tree we are, from the root down.
        let (mut low, mut high) = (0, size);
        while (start, end) != (low, high) {
            let middle = low + (1 << (high - low - 1).ilog2());
            let (left, right) = (
                Subtree {
                    start: low,
                    end: middle,
                },
                Subtree {
                    start: middle,
                    end: high,
                },
            );
            if end <= middle {
                proof.push(right.hash(nodes)?);
                high = middle;
            } else {
                proof.push(left.hash(nodes)?);
                start = start.max(middle);
                low = middle;
            }
        }
        if start != self.start {
            // Only a part of it is a node, whose hash nobody knows yet.
            proof.push(Subtree { start, end }.hash(nodes)?);
        }
        proof.reverse();
        Ok(proof)
    }

    /// Checks that it, with the hash `own`, is a part of the tree of `size` entries with the hash
    /// `root` (section 4.4.3).
    ///
    /// # Errors
    ///
    /// If the proof does not show that.
    pub fn check_consistency(
        self,
        own: HashValue,
        size: u64,
        root: HashValue,
        proof: &[HashValue],
    ) -> Result<(), ProofError> {
        let hashes = proof.len();
        if self.end > size {
            return Err(ProofError::Beyond {
                subtree: self,
                size,
            });
        }
        if self.start == self.end {
            return match hashes {
                0 => same(own, HashValue::empty()),
                _ => Err(ProofError::Long { hashes }),
            };
        }
        let (mut first, mut last, mut edge) = (self.start, self.end - 1, size - 1);
        let levels = if last == edge {
            u64::BITS - (first ^ last).leading_zeros()
        } else {
            last.trailing_ones()
                .min(u64::BITS - (first ^ last).leading_zeros())
        };
        let down = |value: u64, levels| value.checked_shr(levels).unwrap_or(0);
        (first, last, edge) = (down(first, levels), down(last, levels), down(edge, levels));
        let (mut of_own, mut of_root, rest) = match (first == last, proof.split_first()) {
            (true, _) => (own, own, proof),
            (false, Some((&seed, rest))) => (seed, seed, rest),
            (false, None) => return Err(ProofError::Short { hashes }),
        };
        for beside in rest {
            if edge == 0 {
                return Err(ProofError::Long { hashes });
            }
            if last & 1 == 1 || last == edge {
                if first < last {
                    of_own = HashValue::node(beside, &of_own);
                }
                of_root = HashValue::node(beside, &of_root);
                let levels = last.trailing_zeros();
                (first, last, edge) = (down(first, levels), down(last, levels), down(edge, levels));
            } else {
                of_root = HashValue::node(&of_root, beside);
            }
            (first, last, edge) = (first >> 1, last >> 1, edge >> 1);
        }
        if edge != 0 {
            return Err(ProofError::Short { hashes });
        }
        same(of_own, own)?;
        same(of_root, root)
    }
}

fn same(found: HashValue, expected: HashValue) -> Result<(), ProofError> {
    if found == expected {
        Ok(())
    } else {
        Err(ProofError::Differs { found, expected })
    }
}

impl fmt::Display for Subtree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}, {})", self.start, self.end)
    }
}

impl fmt::Debug for Subtree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests;
