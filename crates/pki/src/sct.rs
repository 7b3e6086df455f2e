//! Signed Certificate Timestamps of logs that are made here (RFC 6962).

use std::time::{Duration, SystemTime};

use lastbyte_sizes::KeyAlgorithm;
use lastbyte_sizes::sct::{V1, sct, with_length};
use openssl::pkey::{HasPublic, PKey, PKeyRef, Private, Public};
use openssl::sha::sha256;
use openssl::sign::Verifier;
use openssl::x509::X509Ref;

use crate::anatomy::{PrecertificateParts, precertificate};
use crate::error::PkiError;
use crate::keys::{Keys, key_algorithm};
use crate::validity::validity;

const CERTIFICATE_TIMESTAMP: u8 = 0;
const PRECERT_ENTRY: u16 = 1;

/// A log: one of those that a [`Store`](crate::Store) has for each algorithm.
pub(crate) struct Log {
    pub(crate) algorithm: KeyAlgorithm,
    pub(crate) key: PKey<Private>,
}

/// A Signed Certificate Timestamp of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sct {
    /// SHA-256 of the log's public key.
    pub log: [u8; 32],
    /// When the log says that it saw the certificate, since 1970.
    pub timestamp: Duration,
    /// Two bytes that name its signature's algorithm: a SignatureAndHashAlgorithm of TLS 1.2 for
    /// ECDSA and RSA, else the SignatureScheme of TLS 1.3, since RFC 6962 has no others.
    pub algorithm: u16,
    /// Bytes of its signature.
    pub signature_bytes: usize,
    /// What a client makes of it.
    pub status: SctStatus,
}

/// What a client makes of an SCT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SctStatus {
    /// The log signed this certificate.
    Valid,
    /// The log signed something else.
    Invalid,
    /// No such log is known.
    UnknownLog,
}

/// Verifies the SCTs in a certificate, in their order.
///
/// # Errors
///
/// [`PkiError::Der`] for a certificate that can't be taken apart, [`PkiError::SctList`] for an
/// extension that is no list of SCTs.
pub fn verify_scts(
    certificate: &X509Ref,
    issuer: &X509Ref,
    logs: &[PKey<Public>],
) -> Result<Vec<Sct>, PkiError> {
    let PrecertificateParts { scts, signed } = precertificate(&certificate.to_der()?)?;
    let Some(extension) = scts else {
        return Ok(Vec::new());
    };
    let issuer = issuer.public_key()?.public_key_to_der()?;
    let list = read_list(&extension).ok_or(PkiError::SctList)?;
    list.into_iter()
        .map(|sct| {
            let log = find_log(logs, &sct.log)?;
            let message = signed_data(sct.timestamp, &issuer, &signed);
            Ok(Sct {
                log: sct.log,
                timestamp: Duration::from_millis(sct.timestamp),
                algorithm: sct.algorithm,
                signature_bytes: sct.signature.len(),
                status: match log {
                    None => SctStatus::UnknownLog,
                    Some(log) if verifies(log, sct.algorithm, sct.signature, &message) => {
                        SctStatus::Valid
                    }
                    Some(_) => SctStatus::Invalid,
                },
            })
        })
        .collect()
}

fn find_log<'a>(
    logs: &'a [PKey<Public>],
    id: &[u8; 32],
) -> Result<Option<&'a PKey<Public>>, PkiError> {
    for log in logs {
        if sha256(&log.public_key_to_der()?) == *id {
            return Ok(Some(log));
        }
    }
    Ok(None)
}

fn verifies<T: HasPublic>(
    log: &PKeyRef<T>,
    algorithm: u16,
    signature: &[u8],
    message: &[u8],
) -> bool {
    let Some(key) = key_algorithm(log).filter(|key| key.sct_algorithm() == algorithm) else {
        return false;
    };
    let verifier = match key.digest() {
        Some(digest) => Verifier::new(digest, log),
        None => Verifier::new_without_digest(log),
    };
    verifier
        .and_then(|mut verifier| verifier.verify_oneshot(signature, message))
        .unwrap_or(false)
}

/// The DER of the extension with an SCT of each log. The issuer is the DER of its
/// `SubjectPublicKeyInfo`, and `signed` the `TBSCertificate` without the extension.
pub(crate) fn extension(
    logs: &[Log],
    issuer: &[u8],
    signed: &[u8],
    now: SystemTime,
) -> Result<Vec<u8>, PkiError> {
    // When the certificate becomes valid: clients refuse timestamps that are yet to come.
    let timestamp = validity(now, Duration::ZERO).not_before.as_secs() * 1000;
    let message = signed_data(timestamp, issuer, signed);
    let mut scts = Vec::new();
    for log in logs {
        let id = sha256(&log.key.public_key_to_der()?);
        let signature = log.algorithm.sign(&log.key, &message)?;
        scts.push(sct(&id, timestamp, log.algorithm, &signature));
    }
    Ok(lastbyte_sizes::sct::extension(&scts))
}

/// What a log signs of a precertificate (RFC 6962, section 3.2).
fn signed_data(timestamp: u64, issuer: &[u8], signed: &[u8]) -> Vec<u8> {
    // A certificate is shorter than three bytes can say.
    let [.., high, middle, low] = signed.len().to_be_bytes();
    [
        &[V1, CERTIFICATE_TIMESTAMP][..],
        &timestamp.to_be_bytes(),
        &PRECERT_ENTRY.to_be_bytes(),
        &sha256(issuer),
        &[high, middle, low],
        signed,
        &with_length(&[]),
    ]
    .concat()
}

struct ReadSct<'a> {
    log: [u8; 32],
    timestamp: u64,
    algorithm: u16,
    signature: &'a [u8],
}

/// The SCTs of an extension's value: a list in an OCTET STRING.
fn read_list(list: &[u8]) -> Option<Vec<ReadSct<'_>>> {
    let (mut list, rest) = split_length(list)?;
    let mut scts = Vec::new();
    while !list.is_empty() {
        let (sct, after) = split_length(list)?;
        scts.push(read_sct(sct)?);
        list = after;
    }
    rest.is_empty().then_some(scts)
}

fn read_sct(sct: &[u8]) -> Option<ReadSct<'_>> {
    let (version, rest) = sct.split_first()?;
    let (log, rest) = rest.split_first_chunk()?;
    let (timestamp, rest) = rest.split_first_chunk()?;
    let (_extensions, rest) = split_length(rest)?;
    let (algorithm, rest) = rest.split_first_chunk()?;
    let (signature, rest) = split_length(rest)?;
    (*version == V1 && rest.is_empty()).then_some(ReadSct {
        log: *log,
        timestamp: u64::from_be_bytes(*timestamp),
        algorithm: u16::from_be_bytes(*algorithm),
        signature,
    })
}

fn split_length(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))
}
