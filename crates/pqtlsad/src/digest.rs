//! The digest of a chain, by which both sides know that they mean the same one.

use std::fmt;

/// SHA-256 over the encoding of a [`CertificateList`](crate::CertificateList).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; Digest::LENGTH]);

impl Digest {
    /// Bytes of a SHA-256.
    pub const LENGTH: usize = 32;

    /// The digest of these bytes.
    pub(crate) fn of(bytes: &[u8]) -> Digest {
        Digest(::openssl::sha::sha256(bytes))
    }

    /// The digest that these bytes are, if there are exactly [`Digest::LENGTH`] of them.
    pub fn from_bytes(bytes: &[u8]) -> Option<Digest> {
        bytes.try_into().ok().map(Digest)
    }

    /// Its bytes, as both hellos and the record hold them.
    pub fn as_bytes(&self) -> &[u8; Digest::LENGTH] {
        &self.0
    }
}

impl AsRef<[u8]> for Digest {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// In hexadecimal.
impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}
