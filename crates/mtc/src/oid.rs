//! The object identifiers of Merkle Tree Certificates, and those of drafts that this is not.

use std::fmt;

macro_rules! pkix {
    ($arc:literal, $number:literal) => {
        &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, $arc, $number]
    };
}

/// id-alg-mtcProof, 1.3.6.1.5.5.7.6.67: what a certificate's signature is.
pub(crate) const PROOF: &[u8] = pkix!(6, 67);
/// id-rdna-trustAnchorID, 1.3.6.1.5.5.7.25.3: what a CA's name is.
pub(crate) const TRUST_ANCHOR: &[u8] = pkix!(25, 3);
/// id-pe-mtcCertificationAuthority-SHA256, 1.3.6.1.5.5.7.1.38.
pub(crate) const AUTHORITY: &[u8] = pkix!(1, 38);
/// id-alg-unsigned, 1.3.6.1.5.5.7.6.36 (RFC 9925).
pub(crate) const UNSIGNED: &[u8] = pkix!(6, 36);
/// id-rdna-unsigned, 1.3.6.1.5.5.7.25.1 (RFC 9925).
pub(crate) const UNSIGNED_NAME: &[u8] = pkix!(25, 1);
/// id-kp-serverAuth, 1.3.6.1.5.5.7.3.1.
pub(crate) const SERVER_AUTH: &[u8] = pkix!(3, 1);
/// id-mtcTlogPrefixURL, 1.3.6.1.4.1.64829.2.1 (c2sp.org/mtc-tlog).
pub(crate) const PREFIX_URL: &[u8] = &[0x2b, 6, 1, 4, 1, 0x83, 0xfa, 0x3d, 2, 1];

pub(crate) const KEY_USAGE: &[u8] = &[0x55, 0x1d, 15];
pub(crate) const ALTERNATIVE_NAME: &[u8] = &[0x55, 0x1d, 17];
pub(crate) const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 19];
pub(crate) const POLICIES: &[u8] = &[0x55, 0x1d, 32];
pub(crate) const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 37];

/// A text other than draft-ietf-plants-merkle-tree-certs-07, known by its object identifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draft {
    /// Up to -05.
    UpTo05,
    /// -06 or an earlier one.
    UpTo06,
    /// -06.
    Only06,
    /// The working copy between -06 and -07.
    Interim,
}

impl Draft {
    /// The draft that an object identifier is of, if it is an experimental one below 1.3.6.1.4.1.44363.47.
    pub(crate) fn of(oid: &[u8]) -> Option<Draft> {
        match oid.strip_prefix(&[0x2b, 6, 1, 4, 1, 0x82, 0xda, 0x4b, 0x2f])? {
            [0] => Some(Draft::UpTo06),
            [1 | 2] => Some(Draft::UpTo05),
            [3 | 4] => Some(Draft::Only06),
            [5] => Some(Draft::Interim),
            _ => None,
        }
    }
}

impl fmt::Display for Draft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Draft::UpTo05 => "draft-ietf-plants-merkle-tree-certs-05 or older",
            Draft::UpTo06 => "draft-ietf-plants-merkle-tree-certs-06 or older",
            Draft::Only06 => "draft-ietf-plants-merkle-tree-certs-06",
            Draft::Interim => "the text between draft-ietf-plants-merkle-tree-certs-06 and -07",
        })
    }
}

/// How a cosigner signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SignatureAlgorithm {
    /// ECDSA with P-256 and SHA-256.
    EcdsaP256,
    /// ECDSA with P-384 and SHA-384.
    EcdsaP384,
    /// ML-DSA-44, pure, with an empty context.
    MlDsa44,
    /// ML-DSA-65, likewise.
    MlDsa65,
    /// ML-DSA-87, likewise.
    MlDsa87,
}

impl SignatureAlgorithm {
    /// All of them.
    pub const ALL: [SignatureAlgorithm; 5] = [
        SignatureAlgorithm::EcdsaP256,
        SignatureAlgorithm::EcdsaP384,
        SignatureAlgorithm::MlDsa44,
        SignatureAlgorithm::MlDsa65,
        SignatureAlgorithm::MlDsa87,
    ];

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            SignatureAlgorithm::EcdsaP256 => "ecdsa-p256",
            SignatureAlgorithm::EcdsaP384 => "ecdsa-p384",
            SignatureAlgorithm::MlDsa44 => "ml-dsa-44",
            SignatureAlgorithm::MlDsa65 => "ml-dsa-65",
            SignatureAlgorithm::MlDsa87 => "ml-dsa-87",
        }
    }

    /// The object identifier of its signatures, which have no parameters.
    pub(crate) fn oid(self) -> &'static [u8] {
        const ML_DSA: [u8; 8] = [0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x03];
        const fn ml_dsa(number: u8) -> [u8; 9] {
            let [a, b, c, d, e, f, g, h] = ML_DSA;
            [a, b, c, d, e, f, g, h, number]
        }
        const MLDSA44: [u8; 9] = ml_dsa(17);
        const MLDSA65: [u8; 9] = ml_dsa(18);
        const MLDSA87: [u8; 9] = ml_dsa(19);
        match self {
            SignatureAlgorithm::EcdsaP256 => &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2],
            SignatureAlgorithm::EcdsaP384 => &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 3],
            SignatureAlgorithm::MlDsa44 => &MLDSA44,
            SignatureAlgorithm::MlDsa65 => &MLDSA65,
            SignatureAlgorithm::MlDsa87 => &MLDSA87,
        }
    }

    pub(crate) fn of(oid: &[u8]) -> Option<SignatureAlgorithm> {
        let mut all = SignatureAlgorithm::ALL.into_iter();
        all.find(|algorithm| algorithm.oid() == oid)
    }
}

impl fmt::Display for SignatureAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
