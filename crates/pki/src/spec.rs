//! What a chain is to be.

use std::fmt;

use crate::algorithm::KeyAlgorithm;
use crate::error::PkiError;
use crate::profile::Padding;
use crate::size;

/// Whether the server sends the root as well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RootDelivery {
    /// The client has it already.
    #[default]
    Omitted,
    /// After the intermediates, as the last certificate.
    Sent,
}

/// What a chain is to be: the name by which a [`Store`](crate::Store) keeps it.
///
/// Its `Display` is the chain part of an arm, with the keys that are not at
/// their default: `rsa-2048`, `ecdsa-p256+ml-dsa-65:16000B`,
/// `ml-dsa-44/intermediates=2/root=sent`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ChainSpec {
    /// The end-entity's key.
    pub leaf: KeyAlgorithm,
    /// The keys of the root and the intermediates.
    pub ca: KeyAlgorithm,
    /// Certificates between the root and the end-entity, at most
    /// [`ChainSpec::MAX_INTERMEDIATES`].
    pub intermediates: u8,
    /// Whether the root is sent.
    pub root: RootDelivery,
    /// Bytes that the TLS 1.3 Certificate message is to have, its 4-byte header
    /// included; `None` leaves it as it is.
    pub certificate_bytes: Option<usize>,
}

impl ChainSpec {
    /// The most intermediates a chain can have.
    pub const MAX_INTERMEDIATES: u8 = 3;

    /// The most bytes that a Certificate message can have: the length in its
    /// header has 24 bits (RFC 8446 section 4).
    pub const MAX_CERTIFICATE_BYTES: usize = 4 + (1 << 24) - 1;

    /// A chain of one algorithm with one intermediate, unpadded, its root not sent.
    pub fn new(algorithm: KeyAlgorithm) -> ChainSpec {
        ChainSpec {
            leaf: algorithm,
            ca: algorithm,
            intermediates: 1,
            root: RootDelivery::Omitted,
            certificate_bytes: None,
        }
    }

    /// Bytes of the Certificate message without padding, the least that
    /// [`certificate_bytes`](Self::certificate_bytes) can ask for.
    pub fn unpadded_bytes(&self) -> usize {
        size::message_bytes(self, &Padding::default())
    }

    /// Checks that such a chain can be made, without making it.
    ///
    /// # Errors
    ///
    /// [`PkiError::TooManyIntermediates`], [`PkiError::TooSmall`],
    /// [`PkiError::TooLarge`] and [`PkiError::Unreachable`].
    pub fn validate(&self) -> Result<(), PkiError> {
        if self.intermediates > ChainSpec::MAX_INTERMEDIATES {
            return Err(PkiError::TooManyIntermediates(self.clone()));
        }
        size::padding(self).map(drop)
    }
}

impl fmt::Display for ChainSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.leaf)?;
        if self.ca != self.leaf {
            write!(f, "+{}", self.ca)?;
        }
        if let Some(bytes) = self.certificate_bytes {
            write!(f, ":{bytes}B")?;
        }
        if self.intermediates != 1 {
            write!(f, "/intermediates={}", self.intermediates)?;
        }
        if self.root == RootDelivery::Sent {
            write!(f, "/root=sent")?;
        }
        Ok(())
    }
}
