//! A second cosigner in the same process: it signs what is consistent with all that it has signed
//! before.

use std::collections::BTreeMap;

use crate::cosign::{Cosignature, CosignedSubtree, Cosigner, SignError};
use crate::hash::HashValue;
use crate::id::LogId;
use crate::subtree::{ProofError, Subtree};
use crate::time::UnixTime;

/// Why a mirror does not sign.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MirrorError {
    /// The log is not the one that it was, or its proof is none.
    #[error("log {log} is not consistent with what was seen of it: {error}")]
    Inconsistent {
        /// Which log, by its name.
        log: String,
        /// Why.
        error: ProofError,
    },
    /// The log is smaller than it was.
    #[error("log {log} had {seen} entries, and now {size}")]
    Smaller {
        /// Which log, by its name.
        log: String,
        /// As many as it had.
        seen: u64,
        /// As many as it is claimed to have.
        size: u64,
    },
    /// The subtree is beyond what was seen.
    #[error("nothing was seen of log {0}")]
    Unseen(String),
    /// It can't sign.
    #[error("{0}")]
    Sign(#[from] SignError),
}

/// What it has seen of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The log's entries.
    pub size: u64,
    /// Their hash.
    pub root: HashValue,
}

/// Signs subtrees of logs that only grow.
#[derive(Debug)]
pub struct Mirror<C> {
    cosigner: C,
    seen: BTreeMap<LogId, Seen>,
}

impl<C: Cosigner> Mirror<C> {
    /// One that has seen nothing yet.
    pub fn new(cosigner: C) -> Mirror<C> {
        Mirror {
            cosigner,
            seen: BTreeMap::new(),
        }
    }

    /// One that goes on where it was.
    pub fn resume(cosigner: C, seen: impl IntoIterator<Item = (LogId, Seen)>) -> Mirror<C> {
        let seen = seen.into_iter().collect();
        Mirror { cosigner, seen }
    }

    /// Who signs.
    pub fn cosigner(&self) -> &C {
        &self.cosigner
    }

    /// What it has seen of a log. It must be on the disk before a signature leaves.
    pub fn seen(&self, log: &LogId) -> Option<Seen> {
        self.seen.get(log).copied()
    }

    /// Looks at a log that has grown.
    ///
    /// # Errors
    ///
    /// If it is not shown that all that was seen is a part of it. Nothing is changed then.
    pub fn observe(
        &mut self,
        log: &LogId,
        now: Seen,
        proof: &[HashValue],
    ) -> Result<(), MirrorError> {
        if let Some(before) = self.seen(log) {
            if now.size < before.size {
                return Err(MirrorError::Smaller {
                    log: log.id().to_string(),
                    seen: before.size,
                    size: now.size,
                });
            }
            let old = Subtree::whole(before.size);
            check(log, (old, before.root), now, proof)?;
        }
        self.seen.insert(log.clone(), now);
        Ok(())
    }

    /// Signs a subtree of what was seen, for certificates.
    ///
    /// # Errors
    ///
    /// If it is not shown to be a part, or can't be signed.
    pub fn cosign(
        &self,
        log: &LogId,
        subtree: Subtree,
        hash: HashValue,
        proof: &[HashValue],
    ) -> Result<Cosignature, MirrorError> {
        let seen = self
            .seen(log)
            .ok_or_else(|| MirrorError::Unseen(log.id().to_string()))?;
        check(log, (subtree, hash), seen, proof)?;
        let statement = CosignedSubtree::of_certificates(log, subtree, hash);
        Ok(Cosignature::new(&self.cosigner, &statement)?)
    }

    /// Signs what was seen, for a checkpoint.
    ///
    /// # Errors
    ///
    /// If nothing was, or it can't be signed.
    pub fn cosign_checkpoint(&self, log: &LogId, time: UnixTime) -> Result<Vec<u8>, MirrorError> {
        let seen = self
            .seen(log)
            .ok_or_else(|| MirrorError::Unseen(log.id().to_string()))?;
        let statement = CosignedSubtree::of_checkpoint(log, seen.size, seen.root, time);
        Ok(self.cosigner.sign(&statement.message(self.cosigner.id()))?)
    }
}

fn check(
    log: &LogId,
    (subtree, hash): (Subtree, HashValue),
    whole: Seen,
    proof: &[HashValue],
) -> Result<(), MirrorError> {
    let checked = subtree.check_consistency(hash, whole.size, whole.root, proof);
    checked.map_err(|error| MirrorError::Inconsistent {
        log: log.id().to_string(),
        error,
    })
}

#[cfg(test)]
mod tests;
