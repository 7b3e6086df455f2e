//! What cosigners sign, and who signs and checks it (section 5.3). Keys are others' business: see
//! [`Cosigner`] and [`CheckCosignature`].

use crate::hash::HashValue;
use crate::id::{LogId, TrustAnchorId};
use crate::subtree::Subtree;
use crate::time::UnixTime;

/// What a cosigner states: that a log has this subtree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CosignedSubtree<'a> {
    log: &'a LogId,
    subtree: Subtree,
    hash: HashValue,
    /// Zero states no time, and nothing about what else the cosigner has seen.
    time: UnixTime,
}

impl<'a> CosignedSubtree<'a> {
    /// As it is signed for certificates.
    pub fn of_certificates(
        log: &'a LogId,
        subtree: Subtree,
        hash: HashValue,
    ) -> CosignedSubtree<'a> {
        CosignedSubtree {
            log,
            subtree,
            hash,
            time: UnixTime(0),
        }
    }

    /// As it is signed for a checkpoint: that at this time, the largest tree known had this size.
    pub fn of_checkpoint(
        log: &'a LogId,
        size: u64,
        root: HashValue,
        time: UnixTime,
    ) -> CosignedSubtree<'a> {
        CosignedSubtree {
            log,
            subtree: Subtree::whole(size),
            hash: root,
            time,
        }
    }

    /// Which log has it.
    pub fn log(&self) -> &LogId {
        self.log
    }

    /// Which entries.
    pub fn subtree(&self) -> Subtree {
        self.subtree
    }

    /// The subtree's hash.
    pub fn hash(&self) -> HashValue {
        self.hash
    }

    /// What a cosigner signs (section 5.3.1).
    pub fn message(&self, cosigner: &TrustAnchorId) -> Vec<u8> {
        let mut out = b"subtree/v1\n\0".to_vec();
        put_origin(&mut out, cosigner);
        out.extend(self.time.0.to_be_bytes());
        put_origin(&mut out, self.log.id());
        out.extend(self.subtree.start().to_be_bytes());
        out.extend(self.subtree.end().to_be_bytes());
        out.extend(self.hash.0);
        out
    }
}

/// Names fit: an identifier has 32 bytes at most, so 144 characters.
fn put_origin(out: &mut Vec<u8>, id: &TrustAnchorId) {
    let origin = id.origin();
    out.push(origin.len() as u8);
    out.extend_from_slice(origin.as_bytes());
}

/// A cosigner did not sign.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{cosigner} does not sign: {reason}")]
pub struct SignError {
    /// Who.
    pub cosigner: TrustAnchorId,
    /// Why.
    pub reason: String,
}

/// Signs subtrees: a CA, or whoever else watches its log.
pub trait Cosigner {
    /// Its name.
    fn id(&self) -> &TrustAnchorId;

    /// Signs a message, as [`CosignedSubtree::message`] makes it. Whoever calls has made sure that it is true.
    ///
    /// # Errors
    ///
    /// If it can't or won't.
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, SignError>;
}

/// Whether a cosignature is what it seems to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signature {
    /// It is the cosigner's.
    Good,
    /// It is not.
    Bad,
}

/// Checks what a cosigner has signed, with the cosigner's key.
pub trait CheckCosignature: Send + Sync {
    /// Whether `signature` is the cosigner's, over `message`.
    fn check(&self, message: &[u8], signature: &[u8]) -> Signature;
}

/// A cosigner's signature of a subtree, as it stands in a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cosignature {
    /// The cosigner's name, which need not be one that anybody knows, or that could be one: 1 to 255 bytes.
    pub cosigner: Vec<u8>,
    /// The signature.
    pub signature: Vec<u8>,
}

impl Cosignature {
    /// Has a cosigner sign a subtree for certificates.
    ///
    /// # Errors
    ///
    /// If the cosigner does not.
    pub fn new(
        cosigner: &dyn Cosigner,
        subtree: &CosignedSubtree<'_>,
    ) -> Result<Cosignature, SignError> {
        let id = cosigner.id();
        Ok(Cosignature {
            cosigner: id.as_bytes().to_owned(),
            signature: cosigner.sign(&subtree.message(id))?,
        })
    }
}
