//! A CA, and how it issues.

use std::time::{Duration, SystemTime};

use openssl::error::ErrorStack;
use openssl::pkey::{PKey, PKeyRef, Private};
use openssl::rand::rand_bytes;
use openssl::x509::X509;

use crate::algorithm::KeyAlgorithm;
use crate::error::PkiError;
use crate::profile::{self, Contents, Kind, SERIAL_BYTES, Validity};

const DAY: Duration = Duration::from_secs(86_400);
const ROOT_LIFE: Duration = DAY.saturating_mul(20 * 365);
const INTERMEDIATE_LIFE: Duration = DAY.saturating_mul(5 * 365);
pub(crate) const END_ENTITY_LIFE: Duration = DAY.saturating_mul(90);

/// A root and its intermediates.
#[derive(Clone)]
pub(crate) struct Authority {
    pub(crate) algorithm: KeyAlgorithm,
    /// The one that issues end-entity certificates first.
    pub(crate) intermediates: Vec<X509>,
    pub(crate) root: X509,
    /// The key that issues end-entity certificates.
    pub(crate) key: PKey<Private>,
}

impl Authority {
    /// Makes keys and certificates. The URL of each intermediate's CRL is
    /// `crl_padding` characters longer than it need be.
    pub(crate) fn new(
        algorithm: KeyAlgorithm,
        intermediates: u8,
        crl_padding: usize,
        now: SystemTime,
    ) -> Result<Authority, PkiError> {
        let key = algorithm.generate()?;
        let public = key.public_key_to_der()?;
        let root = Contents {
            level: 0,
            serial: serial()?,
            validity: Validity::from(now, ROOT_LIFE),
            key: &public,
            issuer_key: &public,
            signature: algorithm,
            kind: Kind::Root,
        };
        let mut authority = Authority {
            algorithm,
            intermediates: Vec::new(),
            root: sign(&root, &key)?,
            key,
        };
        for path_length in (0..intermediates).rev() {
            let key = algorithm.generate()?;
            let validity = Validity::from(now, INTERMEDIATE_LIFE);
            let kind = Kind::Intermediate {
                path_length,
                crl_padding,
            };
            let certificate = authority.issue(&key, validity, kind)?;
            authority.intermediates.insert(0, certificate);
            authority.key = key;
        }
        Ok(authority)
    }

    /// Issues a certificate for `key`.
    pub(crate) fn issue(
        &self,
        key: &PKeyRef<Private>,
        validity: Validity,
        kind: Kind,
    ) -> Result<X509, PkiError> {
        let contents = Contents {
            level: 1 + self.intermediates.len(),
            serial: serial()?,
            validity,
            key: &key.public_key_to_der()?,
            issuer_key: &self.key.public_key_to_der()?,
            signature: self.algorithm,
            kind,
        };
        sign(&contents, &self.key)
    }
}

fn sign(contents: &Contents, key: &PKeyRef<Private>) -> Result<X509, PkiError> {
    let to_be_signed = contents.to_be_signed();
    let signature = contents.signature.sign(key, &to_be_signed)?;
    let der = profile::certificate(&to_be_signed, contents.signature, &signature);
    Ok(X509::from_der(&der)?)
}

/// A positive number that fills all its bytes.
fn serial() -> Result<[u8; SERIAL_BYTES], ErrorStack> {
    let mut serial = [0; SERIAL_BYTES];
    rand_bytes(&mut serial)?;
    let [first, ..] = &mut serial;
    *first = 0x40 | (*first & 0x3f);
    Ok(serial)
}
