//! Verifying certificates as a client does.

use std::cmp::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

use lastbyte_sizes::ChainRole;
use openssl::asn1::Asn1Time;
use openssl::error::ErrorStack;
use openssl::stack::Stack;
use openssl::x509::store::X509StoreBuilder;
use openssl::x509::verify::X509VerifyParam;
use openssl::x509::{X509, X509PurposeId, X509Ref, X509StoreContext, X509VerifyResult};

/// Why a chain doesn't verify.
#[derive(Debug)]
pub(crate) struct Unverified {
    /// Certificates before the one at fault.
    pub(crate) depth: u32,
    pub(crate) reason: X509VerifyResult,
}

/// What a chain is to prove.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose<'a> {
    /// That it is a TLS server of this name.
    Server(&'a str),
    /// That it is a TLS client, whatever its name.
    Client,
}

impl Purpose<'_> {
    /// What a chain of this role is to prove.
    pub(crate) fn of(role: ChainRole, server_name: &str) -> Purpose<'_> {
        match role {
            ChainRole::Server => Purpose::Server(server_name),
            ChainRole::Client => Purpose::Client,
        }
    }
}

/// Verifies that these certificates prove that to a peer that trusts `anchors`. Gives the anchor
/// that they lead to.
pub(crate) fn verify(
    end_entity: &X509Ref,
    issuers: &[X509],
    anchors: &[X509],
    purpose: Purpose<'_>,
) -> Result<Result<X509, Unverified>, ErrorStack> {
    let mut parameters = X509VerifyParam::new()?;
    match purpose {
        Purpose::Server(name) => {
            parameters.set_host(name)?;
            parameters.set_purpose(X509PurposeId::SSL_SERVER)?;
        }
        Purpose::Client => parameters.set_purpose(X509PurposeId::SSL_CLIENT)?,
    }
    let mut store = X509StoreBuilder::new()?;
    store.set_param(&parameters)?;
    for anchor in anchors {
        store.add_cert(anchor.clone())?;
    }
    let mut untrusted = Stack::new()?;
    for issuer in issuers {
        untrusted.push(issuer.clone())?;
    }
    X509StoreContext::new()?.init(&store.build(), end_entity, &untrusted, |context| {
        let verified = context.verify_cert()?;
        let anchor = context.chain().and_then(|chain| chain.iter().last());
        Ok(match anchor {
            Some(anchor) if verified => Ok(anchor.to_owned()),
            _ => Err(Unverified {
                depth: context.error_depth(),
                reason: context.error(),
            }),
        })
    })
}

/// Whether a certificate is its own issuer.
pub(crate) fn is_self_signed(certificate: &X509Ref) -> bool {
    let (subject, issuer) = (certificate.subject_name(), certificate.issuer_name());
    subject.try_cmp(issuer).is_ok_and(Ordering::is_eq) && is_signed_by(certificate, certificate)
}

/// Whether a CA issued a certificate.
pub(crate) fn is_issued_by(certificate: &X509Ref, issuer: &X509Ref) -> bool {
    issuer.issued(certificate) == X509VerifyResult::OK && is_signed_by(certificate, issuer)
}

fn is_signed_by(certificate: &X509Ref, issuer: &X509Ref) -> bool {
    let key = issuer.public_key();
    key.and_then(|key| certificate.verify(&key))
        .unwrap_or(false)
}

/// Whether a certificate is valid from one time until another.
pub(crate) fn is_valid(certificate: &X509Ref, from: SystemTime, until: SystemTime) -> bool {
    let asn1 = |time: SystemTime| {
        let since_epoch = time.duration_since(UNIX_EPOCH).ok()?;
        let seconds = i64::try_from(since_epoch.as_secs()).ok()?;
        Asn1Time::from_unix(seconds).ok()
    };
    match (asn1(from), asn1(until)) {
        (Some(from), Some(until)) => {
            certificate.not_before() <= from && certificate.not_after() >= until
        }
        _ => false,
    }
}
