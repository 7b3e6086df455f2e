//! Lists of certificates as records and messages hold them.

use std::fmt;

use thiserror::Error;

use crate::Digest;

/// Certificates as DNS delivers them: DER, from the top of a chain downwards. There is at least one.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct CertificateList(Vec<Vec<u8>>);

impl CertificateList {
    /// The most certificates that a list holds. Chains in use have up to five.
    pub const MAX_CERTIFICATES: usize = 10;
    /// The most bytes of a list's encoding: four of the largest SLH-DSA certificates.
    pub const MAX_BYTES: usize = 256 << 10;
    /// Of the length before each certificate.
    pub(crate) const LENGTH_BYTES: usize = 3;

    /// These, the top one first.
    ///
    /// # Errors
    /// [`ListError`] if there are none, or more than [`CertificateList::MAX_CERTIFICATES`] or
    /// [`CertificateList::MAX_BYTES`] allow.
    pub fn new(certificates: Vec<Vec<u8>>) -> Result<CertificateList, ListError> {
        if certificates.is_empty() || certificates.iter().any(Vec::is_empty) {
            return Err(ListError::Empty);
        }
        if certificates.len() > CertificateList::MAX_CERTIFICATES {
            return Err(ListError::TooMany(certificates.len()));
        }
        match encoded_length(&certificates) {
            bytes if bytes > CertificateList::MAX_BYTES => Err(ListError::TooLarge(bytes)),
            _ => Ok(CertificateList(certificates)),
        }
    }

    /// The DER of each, the top one first.
    pub fn certificates(&self) -> &[Vec<u8>] {
        &self.0
    }

    /// The lowest one.
    pub fn lowest(&self) -> &[u8] {
        self.0.last().map_or(&[], Vec::as_slice)
    }

    /// What [`CertificateList::digest`] is computed over, and what records hold: each certificate
    /// after its length in three bytes.
    pub fn encode(&self) -> Vec<u8> {
        encode(&self.0)
    }

    /// Bytes of [`CertificateList::encode`].
    pub fn encoded_length(&self) -> usize {
        encoded_length(&self.0)
    }

    /// What the hellos say of this list.
    pub fn digest(&self) -> Digest {
        Digest::of(&self.encode())
    }
}

impl fmt::Debug for CertificateList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lengths: Vec<_> = self.0.iter().map(Vec::len).collect();
        write!(f, "CertificateList(DER of {lengths:?} bytes)")
    }
}

/// Why certificates can't be listed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ListError {
    /// Nothing to list.
    #[error("there is no certificate")]
    Empty,
    /// More than [`CertificateList::MAX_CERTIFICATES`].
    #[error("{0} certificates: at most {max} are taken", max = CertificateList::MAX_CERTIFICATES)]
    TooMany(usize),
    /// More than [`CertificateList::MAX_BYTES`].
    #[error("{0} bytes of certificates: at most {max} are taken", max = CertificateList::MAX_BYTES)]
    TooLarge(usize),
    /// Bytes end within a certificate or its length.
    #[error("truncated within a certificate")]
    Truncated,
}

pub(crate) fn encode(certificates: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(encoded_length(certificates));
    for certificate in certificates {
        // Lists are far smaller than three bytes of length can say.
        let length = (certificate.len() as u32).to_be_bytes();
        bytes.extend_from_slice(&length[1..]);
        bytes.extend_from_slice(certificate);
    }
    bytes
}

fn encoded_length(certificates: &[Vec<u8>]) -> usize {
    let lengths = certificates.iter().map(Vec::len);
    lengths
        .map(|length| length + CertificateList::LENGTH_BYTES)
        .sum()
}

/// The inverse of [`encode`]; stops at the first certificate too many.
pub(crate) fn decode(mut bytes: &[u8]) -> Result<Vec<Vec<u8>>, ListError> {
    let mut certificates = Vec::new();
    while !bytes.is_empty() {
        let (length, rest) = bytes
            .split_first_chunk::<{ CertificateList::LENGTH_BYTES }>()
            .ok_or(ListError::Truncated)?;
        let length = u32::from_be_bytes([0, length[0], length[1], length[2]]) as usize;
        let (certificate, rest) = rest.split_at_checked(length).ok_or(ListError::Truncated)?;
        if certificate.is_empty() {
            return Err(ListError::Empty);
        }
        if certificates.len() == CertificateList::MAX_CERTIFICATES {
            return Err(ListError::TooMany(certificates.len() + 1));
        }
        certificates.push(certificate.to_vec());
        bytes = rest;
    }
    Ok(certificates)
}
