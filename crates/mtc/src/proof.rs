//! The proof in a certificate that a log has it: an MTCProof (section 6.2).

use std::cmp::Ordering;

use crate::cosign::Cosignature;
use crate::entry::{EntryError, check_extensions};
use crate::hash::HashValue;
use crate::id::order;
use crate::subtree::{NoSubtree, Subtree};
use crate::wire::{Reader, WireError, put_uint, put_vector};

/// What a certificate has in the place of a signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// The entry's extensions, without their length.
    pub extensions: Vec<u8>,
    /// The subtree that has the entry.
    pub subtree: Subtree,
    /// The hashes beside the entry's way up.
    pub path: Vec<HashValue>,
    /// Who vouches for the subtree, in order of their names. None, if the subtree is a landmark's.
    pub cosignatures: Vec<Cosignature>,
}

/// Why something is no proof.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodingError {
    /// Its frame is not as it should be.
    #[error("{0}")]
    Wire(#[from] WireError),
    /// The entry's extensions are not as they should be.
    #[error("{0}")]
    Extensions(#[from] EntryError),
    /// Its interval is no subtree.
    #[error("{0}")]
    Subtree(#[from] NoSubtree),
    /// Its hashes are not whole.
    #[error("{0} bytes of hashes are not whole ones")]
    Hashes(usize),
    /// A cosigner is there twice.
    #[error("a cosigner is there twice")]
    Duplicate,
    /// Cosigners are not in order: shorter names first.
    #[error("cosigners are not in order")]
    Unsorted,
    /// A cosigner has no name.
    #[error("a cosigner has no name")]
    Nameless,
}

const PROOF: &str = "the proof";

impl Proof {
    /// Reads a proof.
    ///
    /// # Errors
    ///
    /// If it is none. Cosigners that are there twice or out of order are refused here already.
    pub fn parse(bytes: &[u8]) -> Result<Proof, EncodingError> {
        let mut reader = Reader::new(PROOF, bytes);
        let extensions = reader.vector(2)?;
        check_extensions(extensions)?;
        let subtree = Subtree::new(reader.uint(6)?, reader.uint(6)?)?;
        let hashes = reader.vector(2)?;
        let (path, rest) = hashes.as_chunks();
        if !rest.is_empty() {
            return Err(EncodingError::Hashes(hashes.len()));
        }
        let cosignatures = cosignatures(reader.vector(3)?)?;
        reader.finish()?;
        Ok(Proof {
            extensions: extensions.to_owned(),
            subtree,
            path: path.iter().copied().map(HashValue).collect(),
            cosignatures,
        })
    }

    /// The proof as bytes.
    ///
    /// # Errors
    ///
    /// If something is too long, or cosigners are not in order.
    pub fn to_bytes(&self) -> Result<Vec<u8>, EncodingError> {
        let mut out = Vec::with_capacity(64 + self.path.len() * HashValue::BYTES);
        put_vector(&mut out, PROOF, 2, &self.extensions)?;
        for edge in [self.subtree.start(), self.subtree.end()] {
            if edge >> 48 != 0 {
                return Err(WireError::Long {
                    what: PROOF,
                    bytes: 8,
                }
                .into());
            }
            put_uint(&mut out, 6, edge);
        }
        let path: Vec<[u8; HashValue::BYTES]> = self.path.iter().map(|hash| hash.0).collect();
        put_vector(&mut out, PROOF, 2, path.as_flattened())?;
        let mut signatures = Vec::new();
        for (place, cosignature) in self.cosignatures.iter().enumerate() {
            if let Some(before) = place.checked_sub(1) {
                check_order(&self.cosignatures[before].cosigner, &cosignature.cosigner)?;
            }
            put_vector(&mut signatures, "a cosigner", 1, &cosignature.cosigner)?;
            put_vector(&mut signatures, "a cosignature", 2, &cosignature.signature)?;
        }
        put_vector(&mut out, "the list of cosignatures", 3, &signatures)?;
        Ok(out)
    }
}

fn cosignatures(list: &[u8]) -> Result<Vec<Cosignature>, EncodingError> {
    let mut reader = Reader::new("the list of cosignatures", list);
    let mut cosignatures: Vec<Cosignature> = Vec::new();
    while !reader.is_empty() {
        let cosigner = reader.vector(1)?;
        if cosigner.is_empty() {
            return Err(EncodingError::Nameless);
        }
        if let Some(before) = cosignatures.last() {
            check_order(&before.cosigner, cosigner)?;
        }
        cosignatures.push(Cosignature {
            cosigner: cosigner.to_owned(),
            signature: reader.vector(2)?.to_owned(),
        });
    }
    Ok(cosignatures)
}

fn check_order(before: &[u8], after: &[u8]) -> Result<(), EncodingError> {
    match order(before, after) {
        Ordering::Less => Ok(()),
        Ordering::Equal => Err(EncodingError::Duplicate),
        Ordering::Greater => Err(EncodingError::Unsorted),
    }
}
