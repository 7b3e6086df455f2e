//! Issues certificates from a log in memory.

use std::ops::Range;

use crate::certificate::Certificate;
use crate::cosign::{Cosignature, CosignedSubtree, Cosigner, SignError};
use crate::entry::{self, Entry, EntryError, Request};
use crate::hash::HashValue;
use crate::id::{IdError, LogId, Properties};
use crate::landmark::{Landmark, LandmarkError, Landmarks};
use crate::proof::{EncodingError, Proof};
use crate::subtree::{Nodes, Subtree};
use crate::time::{UnixTime, Validity};
use crate::tree::{NoNode, SparseTree, Tree};

/// Why a certificate is not issued.
#[derive(Debug, thiserror::Error)]
pub enum IssueError {
    /// The entry is none of a certificate.
    #[error("{0}")]
    Entry(#[from] EntryError),
    /// It says nothing.
    #[error("entry {0} says nothing, so there is no certificate of it")]
    Null(u64),
    /// The entry is of another key.
    #[error("entry {0} is of another public key")]
    OtherKey(u64),
    /// A cosigner does not sign.
    #[error("{0}")]
    Sign(#[from] SignError),
    /// The proof can't be written.
    #[error("{0}")]
    Proof(#[from] EncodingError),
    /// The tree is not that large.
    #[error("{0}")]
    Tree(#[from] NoNode),
    /// No landmark has the entry yet, or none that is known any more.
    #[error("no landmark has entry {0}")]
    NoLandmark(u64),
    /// No landmark can be made.
    #[error("{0}")]
    Landmark(#[from] LandmarkError),
    /// An identifier is too long.
    #[error("{0}")]
    Id(#[from] IdError),
    /// The log can't be read.
    #[error("{0}")]
    Log(String),
}

/// An entry, its place in a log and its public key: what a certificate of it is made from.
#[derive(Clone, Copy, Debug)]
pub struct Certified<'a> {
    /// The log.
    pub log: &'a LogId,
    /// The entry's place.
    pub index: u64,
    /// The entry's bytes.
    pub entry: &'a [u8],
    /// The public key, as a SubjectPublicKeyInfo in DER.
    pub key: &'a [u8],
}

impl Certified<'_> {
    /// The certificate with a proof for `subtree`, whose hash the cosigners sign. As DER.
    ///
    /// # Errors
    ///
    /// If the entry is not of this key, a node can't be had, or a cosigner does not sign.
    pub fn certificate<N: Nodes + ?Sized>(
        &self,
        subtree: Subtree,
        nodes: &N,
        cosigners: &[&dyn Cosigner],
    ) -> Result<Vec<u8>, IssueError>
    where
        IssueError: From<N::Error>,
    {
        let path = subtree.inclusion_proof(self.index, nodes)?;
        let cosignatures = match cosigners {
            [] => Vec::new(),
            _ => cosign(self.log, subtree, subtree.hash(nodes)?, cosigners)?,
        };
        self.with_proof(subtree, path, cosignatures)
    }

    /// The certificate with this proof. As DER.
    ///
    /// # Errors
    ///
    /// If the entry is not of this key, or the proof can't be written.
    pub fn with_proof(
        &self,
        subtree: Subtree,
        path: Vec<HashValue>,
        cosignatures: Vec<Cosignature>,
    ) -> Result<Vec<u8>, IssueError> {
        let entry = Entry::parse(self.entry)?.ok_or(IssueError::Null(self.index))?;
        if entry.key_hash() != HashValue::of(self.key) {
            return Err(IssueError::OtherKey(self.index));
        }
        let proof = Proof {
            extensions: entry.extensions.to_owned(),
            subtree,
            path,
            cosignatures,
        };
        let (log, index) = (self.log.number(), self.index);
        Ok(Certificate::encode(&entry, self.key, log, index, &proof)?)
    }
}

/// Has all cosigners sign a subtree for certificates, and puts their signatures in order.
///
/// # Errors
///
/// If one does not sign.
pub fn cosign(
    log: &LogId,
    subtree: Subtree,
    hash: HashValue,
    cosigners: &[&dyn Cosigner],
) -> Result<Vec<Cosignature>, SignError> {
    let subtree = CosignedSubtree::of_certificates(log, subtree, hash);
    let signed = cosigners
        .iter()
        .map(|cosigner| Cosignature::new(*cosigner, &subtree));
    let mut signed: Vec<Cosignature> = signed.collect::<Result<_, _>>()?;
    signed.sort_by(|one, other| crate::id::order(&one.cosigner, &other.cosigner));
    Ok(signed)
}

/// A log in memory, all of whose entries are real.
#[derive(Clone, Debug)]
pub struct MemoryLog {
    id: LogId,
    tree: Tree,
    entries: Vec<Vec<u8>>,
    landmarks: Landmarks,
}

impl MemoryLog {
    /// One without entries.
    pub fn new(id: LogId) -> MemoryLog {
        MemoryLog {
            id,
            tree: Tree::new(),
            entries: Vec::new(),
            landmarks: Landmarks::new(),
        }
    }

    /// One with `count` entries that follow from a seed: of hosts below `example`, with keys that nobody has.
    ///
    /// # Errors
    ///
    /// None.
    pub fn filled(
        id: LogId,
        count: u64,
        seed: u64,
        validity: Validity,
    ) -> Result<MemoryLog, EntryError> {
        let mut log = MemoryLog::new(id);
        for number in 0..count {
            let host = format!("host-{seed:x}-{number:x}.example");
            let key = made_up_key(seed, number);
            log.append(&Request {
                names: &[&host, &format!("www.{host}")],
                key: &key,
                validity,
            })?;
        }
        Ok(log)
    }

    /// Which log it is.
    pub fn id(&self) -> &LogId {
        &self.id
    }

    /// Its tree.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Its landmarks.
    pub fn landmarks(&self) -> &Landmarks {
        &self.landmarks
    }

    /// The bytes of an entry.
    pub fn entry(&self, index: u64) -> Option<&[u8]> {
        let index = usize::try_from(index).ok()?;
        self.entries.get(index).map(Vec::as_slice)
    }

    /// Certifies a request, and tells its place.
    ///
    /// # Errors
    ///
    /// If there can be no such certificate.
    pub fn append(&mut self, request: &Request<'_>) -> Result<u64, EntryError> {
        let entry = request.entry(self.id.ca())?;
        let index = self.tree.push(entry::leaf(&entry));
        self.entries.push(entry);
        Ok(index)
    }

    /// Makes the size of now a landmark.
    ///
    /// # Errors
    ///
    /// If the log has not grown since the last one.
    pub fn make_landmark(&mut self, expiry: UnixTime) -> Result<Landmark, LandmarkError> {
        self.landmarks.push(self.tree.size(), expiry)
    }

    /// The subtrees of a landmark, with their hashes: what clients hold.
    ///
    /// # Errors
    ///
    /// If there is no such landmark.
    pub fn landmark_subtrees(&self, number: u64) -> Result<[(Subtree, HashValue); 2], IssueError> {
        let subtrees = self.landmarks.subtrees(number);
        let [left, right] = subtrees.ok_or(IssueError::NoLandmark(number))?;
        Ok([
            (left, left.hash(&self.tree)?),
            (right, right.hash(&self.tree)?),
        ])
    }

    /// A standalone certificate of an entry that came among `batch`, cosigned. As DER.
    ///
    /// # Errors
    ///
    /// If the entry is not there or of another key, or a cosigner does not sign.
    pub fn standalone(
        &self,
        index: u64,
        key: &[u8],
        batch: Range<u64>,
        cosigners: &[&dyn Cosigner],
    ) -> Result<Vec<u8>, IssueError> {
        let [left, right] = Subtree::cover(batch);
        let subtree = if left.contains(index) { left } else { right };
        self.certified(index, key)?
            .certificate(subtree, &self.tree, cosigners)
    }

    /// A certificate of an entry that is relative to the first landmark with it. As DER.
    ///
    /// # Errors
    ///
    /// If the entry is not there or of another key, or no landmark has it.
    pub fn landmark_relative(&self, index: u64, key: &[u8]) -> Result<Vec<u8>, IssueError> {
        let found = self.landmarks.subtree_of(index);
        let (_, subtree) = found.ok_or(IssueError::NoLandmark(index))?;
        self.certified(index, key)?
            .certificate(subtree, &self.tree, &[])
    }

    fn certified<'a>(&'a self, index: u64, key: &'a [u8]) -> Result<Certified<'a>, IssueError> {
        let entry = self.entry(index);
        let entry = entry.ok_or_else(|| IssueError::Log(format!("there is no entry {index}")))?;
        Ok(Certified {
            log: &self.id,
            index,
            entry,
            key,
        })
    }
}

/// The public key of nobody: P-256, with coordinates that follow from a seed.
pub fn made_up_key(seed: u64, number: u64) -> Vec<u8> {
    const P256: [u8; 27] = [
        0x30, 0x59, 0x30, 0x13, 6, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1, 6, 8, 0x2a, 0x86, 0x48,
        0xce, 0x3d, 3, 1, 7, 3, 0x42, 0, 4,
    ];
    let mut key = P256.to_vec();
    for coordinate in [0_u64, 1] {
        let numbers = [seed, number, coordinate].map(u64::to_be_bytes);
        key.extend(HashValue::of(numbers.as_flattened()).0);
    }
    key
}

/// One real certificate in a log of any size, made without the rest: the hashes of all others follow from
/// a seed. It is as large and as much work to verify as if they were real.
#[derive(Clone, Debug)]
pub struct Sample {
    log: LogId,
    tree: SparseTree,
    index: u64,
    entry: Vec<u8>,
    key: Vec<u8>,
    landmarks: Landmarks,
}

impl Sample {
    /// Certifies `request` as the entry `index` of a log of `size` entries.
    ///
    /// # Errors
    ///
    /// If there can be no such certificate, or no such place.
    pub fn new(
        log: LogId,
        request: &Request<'_>,
        index: u64,
        size: u64,
        seed: u64,
    ) -> Result<Sample, IssueError> {
        let entry = request.entry(log.ca())?;
        let mut tree = SparseTree::new(size, seed);
        tree.set(index, entry::leaf(&entry))?;
        Ok(Sample {
            log,
            tree,
            index,
            entry,
            key: request.key.to_owned(),
            landmarks: Landmarks::new(),
        })
    }

    /// Which log it is in.
    pub fn log(&self) -> &LogId {
        &self.log
    }

    /// The log's landmarks: just those that were made.
    pub fn landmarks(&self) -> &Landmarks {
        &self.landmarks
    }

    /// Makes a size of the log a landmark.
    ///
    /// # Errors
    ///
    /// If it is not larger than the last one.
    pub fn make_landmark(
        &mut self,
        size: u64,
        expiry: UnixTime,
    ) -> Result<Landmark, LandmarkError> {
        self.landmarks.push(size, expiry)
    }

    /// The standalone certificate, as it came among `batch`, cosigned. As DER.
    ///
    /// # Errors
    ///
    /// If the log is not that large, or a cosigner does not sign.
    pub fn standalone(
        &self,
        batch: Range<u64>,
        cosigners: &[&dyn Cosigner],
    ) -> Result<Vec<u8>, IssueError> {
        let [left, right] = Subtree::cover(batch);
        let subtree = if left.contains(self.index) {
            left
        } else {
            right
        };
        self.certified().certificate(subtree, &self.tree, cosigners)
    }

    /// What a server is to know of the standalone certificate.
    pub fn standalone_properties(&self) -> Properties {
        self.log.standalone_properties()
    }

    /// The certificate that is relative to the first landmark with it. As DER.
    ///
    /// # Errors
    ///
    /// If no landmark has it.
    pub fn landmark_relative(&self) -> Result<Vec<u8>, IssueError> {
        let (_, subtree) = self.landmark()?;
        self.certified().certificate(subtree, &self.tree, &[])
    }

    /// What a server is to know of the landmark-relative certificate.
    ///
    /// # Errors
    ///
    /// If no landmark has it.
    pub fn landmark_properties(&self) -> Result<Properties, IssueError> {
        let (landmark, _) = self.landmark()?;
        Ok(self.log.landmark_properties(landmark.number)?)
    }

    /// The landmark that the certificate is relative to, and its subtree.
    ///
    /// # Errors
    ///
    /// If no landmark has it.
    pub fn landmark(&self) -> Result<(Landmark, Subtree), IssueError> {
        let found = self.landmarks.subtree_of(self.index);
        found.ok_or(IssueError::NoLandmark(self.index))
    }

    /// The subtrees of a landmark, with their hashes: what clients hold.
    ///
    /// # Errors
    ///
    /// If there is no such landmark.
    pub fn landmark_subtrees(&self, number: u64) -> Result<[(Subtree, HashValue); 2], IssueError> {
        let subtrees = self.landmarks.subtrees(number);
        let [left, right] = subtrees.ok_or(IssueError::NoLandmark(number))?;
        Ok([
            (left, left.hash(&self.tree)?),
            (right, right.hash(&self.tree)?),
        ])
    }

    fn certified(&self) -> Certified<'_> {
        Certified {
            log: &self.log,
            index: self.index,
            entry: &self.entry,
            key: &self.key,
        }
    }
}

#[cfg(test)]
mod tests;
