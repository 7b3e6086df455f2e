//! Cosignatures by OpenSSL.

use openssl::ec::{EcGroup, EcKey};
use openssl::error::ErrorStack;
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::{HasPublic, KeyType, PKey, PKeyRef, Private, Public};
use openssl::rand::rand_bytes;
use openssl::sign::{Signer, Verifier};

use crate::certificate::CaCertificate;
use crate::cosign::{CheckCosignature, Cosigner, SignError, Signature};
use crate::id::TrustAnchorId;
use crate::oid::SignatureAlgorithm;
use crate::time::Validity;
use crate::verify::TrustedAuthority;

/// Why a key is of no use.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// OpenSSL can't read or make it.
    #[error("OpenSSL: {}", reason(.0))]
    OpenSsl(#[from] ErrorStack),
    /// It is of an algorithm that cosigners don't have.
    #[error("the key is none of {}", names())]
    Algorithm,
    /// It is of another algorithm than its certificate says.
    #[error("the key is of {found}, and the certificate says {stated}")]
    Other {
        /// What it is of.
        found: SignatureAlgorithm,
        /// What the certificate states.
        stated: SignatureAlgorithm,
    },
}

/// OpenSSL's reason, without its codes. Some of its functions give none.
fn reason(stack: &ErrorStack) -> &str {
    let mut reasons = stack.errors().iter().filter_map(|error| error.reason());
    reasons.next().unwrap_or("it gives no reason")
}

fn names() -> String {
    SignatureAlgorithm::ALL
        .map(SignatureAlgorithm::name)
        .join(", ")
}

/// A cosigner with its private key. What it signs, whoever calls has made sure of.
#[derive(Debug)]
pub struct SigningKey {
    id: TrustAnchorId,
    algorithm: SignatureAlgorithm,
    key: PKey<Private>,
}

impl SigningKey {
    /// Makes a new key.
    ///
    /// # Errors
    ///
    /// If OpenSSL can't.
    pub fn generate(
        id: TrustAnchorId,
        algorithm: SignatureAlgorithm,
    ) -> Result<SigningKey, KeyError> {
        let ec = |curve| PKey::from_ec_key(EcKey::generate(&*EcGroup::from_curve_name(curve)?)?);
        let ml_dsa = |kind| {
            let mut seed = [0; 32];
            rand_bytes(&mut seed)?;
            PKey::private_key_from_seed(None, kind, None, &seed)
        };
        let key = match algorithm {
            SignatureAlgorithm::EcdsaP256 => ec(Nid::X9_62_PRIME256V1),
            SignatureAlgorithm::EcdsaP384 => ec(Nid::SECP384R1),
            SignatureAlgorithm::MlDsa44 => ml_dsa(KeyType::ML_DSA_44),
            SignatureAlgorithm::MlDsa65 => ml_dsa(KeyType::ML_DSA_65),
            SignatureAlgorithm::MlDsa87 => ml_dsa(KeyType::ML_DSA_87),
        }?;
        Ok(SigningKey { id, algorithm, key })
    }

    /// With a key that there is.
    ///
    /// # Errors
    ///
    /// If it is of an algorithm that cosigners don't have.
    pub fn new(id: TrustAnchorId, key: PKey<Private>) -> Result<SigningKey, KeyError> {
        let algorithm = algorithm_of(&key)?;
        Ok(SigningKey { id, algorithm, key })
    }

    /// With a key as PEM (PKCS #8).
    ///
    /// # Errors
    ///
    /// If it is none, or of an algorithm that cosigners don't have.
    pub fn from_pem(id: TrustAnchorId, pem: &[u8]) -> Result<SigningKey, KeyError> {
        SigningKey::new(id, PKey::private_key_from_pem(pem)?)
    }

    /// How it signs.
    pub fn algorithm(&self) -> SignatureAlgorithm {
        self.algorithm
    }

    /// The private key.
    pub fn private(&self) -> &PKeyRef<Private> {
        &self.key
    }

    /// The public key, as a SubjectPublicKeyInfo in DER.
    ///
    /// # Errors
    ///
    /// If OpenSSL can't write it.
    pub fn public(&self) -> Result<Vec<u8>, KeyError> {
        Ok(self.key.public_key_to_der()?)
    }

    /// What checks its signatures.
    ///
    /// # Errors
    ///
    /// If OpenSSL can't write or read its public key.
    pub fn checker(&self) -> Result<PublicKey, KeyError> {
        PublicKey::from_der(&self.public()?)
    }

    /// The certificate of the CA whose cosigner this is, for all serial numbers.
    ///
    /// # Errors
    ///
    /// If OpenSSL can't write its public key.
    pub fn ca_certificate(&self, validity: Validity) -> Result<CaCertificate, KeyError> {
        Ok(CaCertificate {
            id: self.id.clone(),
            key: self.public()?,
            algorithm: self.algorithm,
            serials: CaCertificate::ALL_SERIALS,
            validity,
            prefix_url: None,
        })
    }
}

impl Cosigner for SigningKey {
    fn id(&self) -> &TrustAnchorId {
        &self.id
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, SignError> {
        let sign = || match digest(self.algorithm) {
            Some(digest) => Signer::new(digest, &self.key)?.sign_oneshot_to_vec(message),
            None => Signer::new_without_digest(&self.key)?.sign_oneshot_to_vec(message),
        };
        sign().map_err(|error| SignError {
            cosigner: self.id.clone(),
            reason: reason(&error).to_owned(),
        })
    }
}

/// A cosigner's public key.
#[derive(Debug)]
pub struct PublicKey {
    algorithm: SignatureAlgorithm,
    key: PKey<Public>,
}

impl PublicKey {
    /// Of a SubjectPublicKeyInfo in DER.
    ///
    /// # Errors
    ///
    /// If it is none, or of an algorithm that cosigners don't have.
    pub fn from_der(key: &[u8]) -> Result<PublicKey, KeyError> {
        let key = PKey::public_key_from_der(key)?;
        let algorithm = algorithm_of(&key)?;
        Ok(PublicKey { algorithm, key })
    }

    /// How it signs.
    pub fn algorithm(&self) -> SignatureAlgorithm {
        self.algorithm
    }

    /// The key's own bytes, without the algorithm: what c2sp.org/tlog-cosignature makes key ids of.
    ///
    /// # Errors
    ///
    /// If OpenSSL has none: those of ECDSA.
    pub fn raw(&self) -> Result<Vec<u8>, KeyError> {
        Ok(self.key.raw_public_key()?)
    }
}

impl CheckCosignature for PublicKey {
    fn check(&self, message: &[u8], signature: &[u8]) -> Signature {
        let check = || match digest(self.algorithm) {
            Some(digest) => Verifier::new(digest, &self.key)?.verify_oneshot(signature, message),
            None => Verifier::new_without_digest(&self.key)?.verify_oneshot(signature, message),
        };
        match check() {
            Ok(true) => Signature::Good,
            // What is no signature at all is an error to OpenSSL.
            Ok(false) | Err(_) => Signature::Bad,
        }
    }
}

impl TrustedAuthority {
    /// A CA as its certificate describes it, whose cosignatures OpenSSL checks.
    ///
    /// # Errors
    ///
    /// If its key is none, or of another algorithm than it says.
    pub fn of_certificate(certificate: &CaCertificate) -> Result<TrustedAuthority, KeyError> {
        let key = PublicKey::from_der(&certificate.key)?;
        let (found, stated) = (key.algorithm, certificate.algorithm);
        if found == stated {
            Ok(TrustedAuthority::of(certificate, Box::new(key)))
        } else {
            Err(KeyError::Other { found, stated })
        }
    }
}

fn algorithm_of<T: HasPublic>(key: &PKeyRef<T>) -> Result<SignatureAlgorithm, KeyError> {
    let ml_dsa = [
        (KeyType::ML_DSA_44, SignatureAlgorithm::MlDsa44),
        (KeyType::ML_DSA_65, SignatureAlgorithm::MlDsa65),
        (KeyType::ML_DSA_87, SignatureAlgorithm::MlDsa87),
    ];
    if let Some((_, algorithm)) = ml_dsa.into_iter().find(|(kind, _)| key.is_a(*kind)) {
        return Ok(algorithm);
    }
    let curve = key.ec_key().map_err(|_| KeyError::Algorithm)?;
    match curve.group().curve_name() {
        Some(Nid::X9_62_PRIME256V1) => Ok(SignatureAlgorithm::EcdsaP256),
        Some(Nid::SECP384R1) => Ok(SignatureAlgorithm::EcdsaP384),
        _ => Err(KeyError::Algorithm),
    }
}

fn digest(algorithm: SignatureAlgorithm) -> Option<MessageDigest> {
    match algorithm {
        SignatureAlgorithm::EcdsaP256 => Some(MessageDigest::sha256()),
        SignatureAlgorithm::EcdsaP384 => Some(MessageDigest::sha384()),
        SignatureAlgorithm::MlDsa44 | SignatureAlgorithm::MlDsa65 | SignatureAlgorithm::MlDsa87 => {
            None
        }
    }
}

#[cfg(test)]
mod tests;
