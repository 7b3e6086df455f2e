//! A CA, and how it issues.

use std::time::{Duration, SystemTime};

use lastbyte_sizes::profile::{
    self, Contents, KeyIdentifier, Kind, Padding, SERIAL_BYTES, Validity,
};
use lastbyte_sizes::{ChainRole, ChainSpec, KeyAlgorithm};
use openssl::error::ErrorStack;
use openssl::pkey::{PKey, PKeyRef, Private};
use openssl::rand::rand_bytes;
use openssl::sha::sha256;
use openssl::x509::X509;

use crate::error::PkiError;
use crate::keys::Keys;
use crate::sct::{self, Log};
use crate::validity::validity;

const DAY: Duration = Duration::from_secs(86_400);
const ROOT_LIFE: Duration = DAY.saturating_mul(20 * 365);
const INTERMEDIATE_LIFE: Duration = DAY.saturating_mul(5 * 365);
pub(crate) const END_ENTITY_LIFE: Duration = DAY.saturating_mul(90);

/// A root and its intermediates.
#[derive(Clone)]
pub(crate) struct Authority {
    /// The algorithm of `key`.
    pub(crate) algorithm: KeyAlgorithm,
    pub(crate) role: ChainRole,
    /// The one that issues end-entity certificates first.
    pub(crate) intermediates: Vec<X509>,
    pub(crate) root: X509,
    /// The key that issues end-entity certificates.
    pub(crate) key: PKey<Private>,
}

impl Authority {
    /// Makes the keys and certificates that `spec` asks for, with their share of the padding.
    pub(crate) fn new(
        spec: &ChainSpec,
        padding: &Padding,
        now: SystemTime,
    ) -> Result<Authority, PkiError> {
        let padding_at = |level| match &padding.extension {
            Some(bytes) if spec.padded_level() == level => Some(bytes.as_slice()),
            _ => None,
        };
        let key = spec.root_key.generate()?;
        let public = key.public_key_to_der()?;
        let root = Contents {
            level: 0,
            serial: serial()?,
            validity: validity(now, ROOT_LIFE),
            key: &public,
            key_identifier: key_identifier(&public),
            issuer_identifier: key_identifier(&public),
            signature: spec.root_key,
            role: spec.role,
            kind: Kind::Root,
            padding: padding_at(0),
        };
        let mut authority = Authority {
            algorithm: spec.root_key,
            role: spec.role,
            intermediates: Vec::new(),
            root: sign(&root, &key)?,
            key,
        };
        for path_length in (0..spec.intermediates).rev() {
            let key = spec.ca.generate()?;
            let kind = Kind::Intermediate {
                path_length,
                crl_padding: padding.intermediate_crl,
            };
            let level = authority.next_level();
            let intermediate = Subject {
                key: &key,
                validity: validity(now, INTERMEDIATE_LIFE),
                kind,
                padding: padding_at(level),
            };
            let certificate = authority.issue(&intermediate)?;
            authority.intermediates.insert(0, certificate);
            authority.key = key;
            authority.algorithm = spec.ca;
        }
        Ok(authority)
    }

    /// Issues the end-entity certificate of a chain, with SCTs of `logs`.
    pub(crate) fn issue_end_entity(
        &self,
        spec: &ChainSpec,
        key: &PKeyRef<Private>,
        padding: &Padding,
        logs: &[Log],
        now: SystemTime,
    ) -> Result<X509, PkiError> {
        let padded = spec.padded_level() == spec.end_entity_level();
        let name = spec.name();
        let kind = |scts| Kind::EndEntity {
            algorithm: spec.leaf,
            name: &name,
            crl_padding: padding.crl,
            scts,
            names: spec.names,
            without: &spec.leaf_without,
        };
        let subject = |scts| Subject {
            key,
            validity: validity(now, END_ENTITY_LIFE),
            kind: kind(scts),
            padding: padding.extension.as_deref().filter(|_| padded),
        };
        if logs.is_empty() {
            return self.issue(&subject(&[]));
        }
        // The logs sign what the certificate says without their SCTs (RFC 6962, section 3.2).
        let serial = serial()?;
        let public = key.public_key_to_der()?;
        let issuer = self.key.public_key_to_der()?;
        let without = self.contents(&subject(&[]), serial, &public, &issuer);
        let scts = sct::extension(logs, &issuer, &without.to_be_signed(), now)?;
        sign(
            &self.contents(&subject(&scts), serial, &public, &issuer),
            &self.key,
        )
    }

    /// Issues a certificate.
    pub(crate) fn issue(&self, subject: &Subject) -> Result<X509, PkiError> {
        let public = subject.key.public_key_to_der()?;
        let issuer = self.key.public_key_to_der()?;
        sign(
            &self.contents(subject, serial()?, &public, &issuer),
            &self.key,
        )
    }

    fn contents<'a>(
        &self,
        subject: &Subject<'a>,
        serial: [u8; SERIAL_BYTES],
        public: &'a [u8],
        issuer: &[u8],
    ) -> Contents<'a> {
        Contents {
            level: self.next_level(),
            serial,
            validity: subject.validity,
            key: public,
            key_identifier: key_identifier(public),
            issuer_identifier: key_identifier(issuer),
            signature: self.algorithm,
            role: self.role,
            kind: subject.kind,
            padding: subject.padding,
        }
    }

    /// Certificates above the next one that is issued.
    fn next_level(&self) -> usize {
        1 + self.intermediates.len()
    }
}

/// What a certificate is issued for.
pub(crate) struct Subject<'a> {
    pub(crate) key: &'a PKeyRef<Private>,
    pub(crate) validity: Validity,
    pub(crate) kind: Kind<'a>,
    pub(crate) padding: Option<&'a [u8]>,
}

fn sign(contents: &Contents, key: &PKeyRef<Private>) -> Result<X509, PkiError> {
    let to_be_signed = contents.to_be_signed();
    let signature = contents.signature.sign(key, &to_be_signed)?;
    let der = profile::certificate(&to_be_signed, contents.signature, &signature);
    Ok(X509::from_der(&der)?)
}

/// A positive number that fills all its bytes.
pub(crate) fn serial() -> Result<[u8; SERIAL_BYTES], ErrorStack> {
    let mut serial = [0; SERIAL_BYTES];
    rand_bytes(&mut serial)?;
    let [first, ..] = &mut serial;
    *first = 0x40 | (*first & 0x3f);
    Ok(serial)
}

/// The first 160 bits of the key's SHA-256: RFC 5280 section 4.2.1.2 asks only
/// that it be unique.
fn key_identifier(key: &[u8]) -> KeyIdentifier {
    let mut identifier = [0; _];
    for (to, from) in identifier.iter_mut().zip(sha256(key)) {
        *to = from;
    }
    identifier
}

/// The padding that gives a chain's Certificate message the size asked for.
///
/// # Errors
///
/// Those of [`lastbyte_sizes::padding`].
pub(crate) fn padding(spec: &ChainSpec) -> Result<Padding, PkiError> {
    let mut padding = lastbyte_sizes::padding(spec)?;
    if let Some(contents) = &mut padding.extension {
        // As keys and signatures, it can't be compressed.
        rand_bytes(contents)?;
    }
    Ok(padding)
}
