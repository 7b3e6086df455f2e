//! What a client demands of a record before it uses it.
//!
//! The chain is verified again in the handshake, whole and with the server's name: nothing here
//! makes a certificate trusted. What is refused here costs no round trip, what slips through costs
//! the connection.

use std::time::SystemTime;

use lastbyte_sizes::Outcome;
use openssl::error::ErrorStack;
use openssl::nid::Nid;
use openssl::stack::Stack;
use openssl::x509::store::X509StoreRef;
use openssl::x509::verify::{X509CheckFlags, X509VerifyParamRef};
use openssl::x509::{X509, X509PurposeId, X509Ref, X509StoreContext, X509VerifyResult};
use thiserror::Error;

use crate::fallback::Fallback;
use crate::ffi::{self, reason};
use crate::record::{Delivered, RecordError};
use crate::server::expiry;
use crate::{CertificateList, Digest, Part};

/// What the lookup came to.
pub type Lookup = Result<Offer, Fallback>;

/// Whom a client trusts.
pub struct Trust<'a> {
    /// Its own anchors. A root from DNS is never one.
    pub anchors: &'a X509StoreRef,
    /// When.
    pub at: SystemTime,
    /// The algorithms whose signatures it accepts.
    pub algorithms: Algorithms<'a>,
}

/// Algorithms of certificates' keys and signatures.
#[derive(Clone, Copy, Debug)]
pub enum Algorithms<'a> {
    /// All that the library can verify.
    All,
    /// Keys of these kinds only.
    Only(&'a [Nid]),
}

/// A record that may be used: what a client says that it has.
#[derive(Clone, Debug)]
pub struct Offer {
    part: Part,
    list: CertificateList,
    digest: Digest,
    /// The top one first.
    certificates: Vec<X509>,
}

impl Offer {
    /// How far down the certificates go.
    pub fn part(&self) -> Part {
        self.part
    }

    /// Of its certificates.
    pub fn digest(&self) -> &Digest {
        &self.digest
    }

    /// Them in DER.
    pub fn list(&self) -> &CertificateList {
        &self.list
    }

    /// The certificates, the top one first.
    pub fn certificates(&self) -> &[X509] {
        &self.certificates
    }

    /// When the first of its certificates expires.
    pub fn valid_until(&self) -> SystemTime {
        let expiries = self.certificates.iter().map(|one| expiry(one));
        let first = expiries
            .map(|at| at.unwrap_or(SystemTime::UNIX_EPOCH))
            .min();
        first.unwrap_or(SystemTime::UNIX_EPOCH)
    }

    /// The end-entity, if DNS delivered it.
    pub(crate) fn end_entity(&self) -> Option<&X509Ref> {
        let lowest = self.certificates.last().map(AsRef::as_ref);
        lowest.filter(|_| self.part == Part::EndEntity)
    }
}

/// Checks a record for the server `name`: that each certificate is one and is signed by the one
/// before it, that the lowest leads to an anchor, with dates, names, path lengths and name
/// constraints, and that it is the end-entity of `name` if it is one at all.
///
/// # Errors
/// A [`Fallback`] with [`Outcome::Unsupported`] for an algorithm that can't be verified, and with
/// [`Outcome::Invalid`] for everything else.
pub fn validate(delivered: Delivered, name: &str, trust: &Trust<'_>) -> Result<Offer, Fallback> {
    let invalid = |reason: String| Fallback::new(Outcome::Invalid, reason);
    let certificates = delivered
        .list
        .certificates()
        .iter()
        .map(|der| parse(der))
        .collect::<Option<Vec<_>>>()
        .ok_or_else(|| invalid("not a certificate".to_owned()))?;
    for certificate in &certificates {
        check_algorithm(certificate, trust.algorithms)?;
    }
    let links = certificates.iter().zip(certificates.iter().skip(1));
    for (issuer, certificate) in links {
        let is_signed = || {
            let key = issuer.public_key()?;
            certificate.verify(&key)
        };
        if issuer.issued(certificate) != X509VerifyResult::OK || !is_signed().unwrap_or(false) {
            return Err(invalid("its certificates are not a chain".to_owned()));
        }
    }
    let lowest = certificates
        .last()
        .ok_or_else(|| invalid("no certificate".to_owned()))?;
    check_kind(delivered.part, lowest, &certificates)
        .map_err(|reason| invalid(reason.to_owned()))?;
    let host = (delivered.part == Part::EndEntity).then_some(name);
    let verified = verify(lowest, &certificates, host, trust);
    verified.map_err(|problem| invalid(problem.to_string()))?;
    Ok(Offer {
        part: delivered.part,
        digest: delivered.list.digest(),
        list: delivered.list,
        certificates,
    })
}

/// Of the lists that a name has records of, the valid one that leaves out most.
///
/// # Errors
/// The [`Fallback`] of the last that is not valid, with [`Outcome::NoRecord`] if there are none at all.
pub fn choose(lists: Vec<Result<Delivered, RecordError>>, name: &str, trust: &Trust<'_>) -> Lookup {
    let mut best: Option<Offer> = None;
    let mut fallback = Fallback::new(Outcome::NoRecord, "the name has none");
    for list in lists {
        let checked = match list {
            Ok(delivered) => validate(delivered, name, trust),
            Err(error) => Err(Fallback::new(Outcome::Invalid, error.to_string())),
        };
        let bytes = |offer: &Offer| offer.list().encoded_length();
        match checked {
            Ok(offer) if best.as_ref().is_none_or(|best| bytes(best) < bytes(&offer)) => {
                best = Some(offer);
            }
            Ok(_) => {}
            Err(refused) => fallback = refused,
        }
    }
    best.ok_or(fallback)
}

/// Has a certificate be for `host`, a DNS name, as RFC 9525 has it (6.3 and 6.4): by its
/// subjectAltName alone, whatever its common name is, and a wildcard is a whole label.
///
/// # Errors
/// OpenSSL's.
pub fn require_host(parameters: &mut X509VerifyParamRef, host: &str) -> Result<(), ErrorStack> {
    parameters
        .set_hostflags(X509CheckFlags::NEVER_CHECK_SUBJECT | X509CheckFlags::NO_PARTIAL_WILDCARDS);
    parameters.set_host(host)
}

/// Exactly one certificate: OpenSSL would let other bytes follow.
fn parse(der: &[u8]) -> Option<X509> {
    let certificate = X509::from_der(der).ok()?;
    let again = certificate.to_der().ok()?;
    (again == der).then_some(certificate)
}

fn check_algorithm(certificate: &X509Ref, algorithms: Algorithms<'_>) -> Result<(), Fallback> {
    let unsupported = |what: String| Err(Fallback::new(Outcome::Unsupported, what));
    let signature = certificate.signature_algorithm().object();
    if signature.nid() == Nid::UNDEF {
        return unsupported(format!("signatures of the algorithm {signature}"));
    }
    if certificate.public_key().is_err() {
        return unsupported("a key of an unknown algorithm".to_owned());
    }
    let kind = ffi::key_algorithm(certificate);
    match algorithms {
        Algorithms::Only(accepted) if !accepted.contains(&kind) => {
            let name = kind.long_name().unwrap_or("unknown");
            unsupported(format!("{name} keys"))
        }
        _ => Ok(()),
    }
}

/// That the lowest certificate is what the record says.
fn check_kind(part: Part, lowest: &X509Ref, all: &[X509]) -> Result<(), &'static str> {
    let is_ca = ffi::is_ca(lowest);
    match part {
        Part::EndEntity if is_ca => {
            Err("said to hold the end-entity, but holds CA certificates only")
        }
        Part::EndEntity => Ok(()),
        _ if !is_ca => Err("said to hold CA certificates only, but holds an end-entity"),
        Part::Root if all.len() > 1 => Err("said to hold the root only, but holds more"),
        _ => Ok(()),
    }
}

/// A chain leads to no anchor.
#[derive(Debug, Error)]
enum Unverified {
    #[error("{}", .0.error_string())]
    Path(X509VerifyResult),
    #[error("{}", reason(.0))]
    OpenSsl(#[source] ErrorStack),
}

/// That a chain leads from `lowest` over the others to an anchor.
fn verify(
    lowest: &X509Ref,
    certificates: &[X509],
    host: Option<&str>,
    trust: &Trust<'_>,
) -> Result<(), Unverified> {
    let at = trust.at.duration_since(SystemTime::UNIX_EPOCH);
    let at = at.map_or(0, |since| since.as_secs()) as libc::time_t;
    let verified = || {
        let mut untrusted = Stack::new()?;
        for certificate in certificates {
            untrusted.push(certificate.clone())?;
        }
        X509StoreContext::new()?.init(trust.anchors, lowest, &untrusted, |context| {
            let parameters = ffi::parameters(context);
            parameters.set_time(at);
            if let Some(host) = host {
                require_host(parameters, host)?;
                parameters.set_purpose(X509PurposeId::SSL_SERVER)?;
            }
            let verified = context.verify_cert()?;
            Ok(if verified {
                X509VerifyResult::OK
            } else {
                context.error()
            })
        })
    };
    match verified() {
        Ok(X509VerifyResult::OK) => Ok(()),
        Ok(result) => Err(Unverified::Path(result)),
        Err(error) => Err(Unverified::OpenSsl(error)),
    }
}

#[cfg(test)]
mod tests;
