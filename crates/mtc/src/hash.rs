//! Hashes of a log's Merkle tree (RFC 9162, section 2.1.1), with SHA-256.

use std::fmt;

use sha2::{Digest, Sha256};

/// The hash of a node, of a whole tree or of a public key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HashValue(pub [u8; HashValue::BYTES]);

impl HashValue {
    /// Bytes of a hash.
    pub const BYTES: usize = 32;

    /// The hash of a tree without entries.
    pub fn empty() -> HashValue {
        HashValue::of(&[])
    }

    /// The hash of anything, such as a public key.
    pub fn of(bytes: &[u8]) -> HashValue {
        HashValue(Sha256::digest(bytes).into())
    }

    /// The hash of an entry, whose bytes may come in pieces.
    pub fn leaf<'a>(entry: impl IntoIterator<Item = &'a [u8]>) -> HashValue {
        let mut hash = Sha256::new_with_prefix([0]);
        for piece in entry {
            hash.update(piece);
        }
        HashValue(hash.finalize().into())
    }

    /// The hash of the node above two others.
    pub fn node(left: &HashValue, right: &HashValue) -> HashValue {
        let mut bytes = [1; 1 + 2 * HashValue::BYTES];
        bytes[1..=HashValue::BYTES].copy_from_slice(&left.0);
        bytes[1 + HashValue::BYTES..].copy_from_slice(&right.0);
        HashValue::of(&bytes)
    }
}

impl AsRef<[u8]> for HashValue {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for HashValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for HashValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
