//! Compares what DNS says of a server with what the server sends.

use std::time::{Duration, SystemTime};

use openssl::error::ErrorStack;
use openssl::nid::Nid;
use openssl::x509::X509;
use pqtlsad::Part;
use pqtlsad::client::Outcome;
use pqtlsad::server::expiry;

use crate::client::{ConnectError, Connector, Found, Handshake, Use};

/// What was found.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The handshake without the record.
    pub plain: Handshake,
    /// The handshake with it.
    pub with_record: Handshake,
    /// The record, if there is one.
    pub found: Option<Found>,
    /// How far down its certificates go, and how many there are.
    pub delivered: Option<(Part, usize)>,
    /// What became of the record.
    pub outcome: Outcome,
    /// Why it was not used.
    pub reason: Option<String>,
    /// When the first certificate of those expires, and whose it is.
    pub expiry: Option<Expiry>,
    /// What is to be mended.
    pub problems: Vec<Problem>,
}

/// When a certificate expires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expiry {
    /// Its subject.
    pub subject: String,
    /// When.
    pub at: SystemTime,
    /// How long until then: zero if that is past.
    pub left: Duration,
}

/// What is to be mended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// DNS has no record that can be read.
    #[error("there is no record: {0}: run `lastbyte ad publish`")]
    Missing(String),
    /// The record is not one that clients use.
    #[error(
        "the record can't be used: {0}: publish again, with `lastbyte ad publish` and the chain that the server has"
    )]
    Invalid(String),
    /// The record has what this client has no algorithm for.
    #[error("the record can't be used: {0}")]
    Unsupported(String),
    /// The server does not leave out what the record holds.
    #[error("record and server are not in step: {reason}: {hint}")]
    OutOfStep {
        /// What the server does instead.
        reason: String,
        /// What to do.
        hint: &'static str,
    },
    /// A certificate expires, or has expired.
    #[error("the certificate of {subject} expires in {} days: renew it", left.as_secs() / 86_400)]
    Expires {
        /// Whose.
        subject: String,
        /// How long until then.
        left: Duration,
    },
    /// Resolvers may keep the record for longer than it is good.
    #[error("the record's TTL of {ttl:?} outlasts its certificates: publish the next ones")]
    Outlasts {
        /// How long the record may be kept.
        ttl: Duration,
    },
}

/// Asks DNS and the server of `name`. Certificates that expire within `margin` are a problem.
///
/// # Errors
///
/// If there is no connection even without the record.
pub async fn check(
    connector: &Connector,
    name: &str,
    port: u16,
    margin: Duration,
) -> Result<Checked, ConnectError> {
    let looked = connector.look_up(name).await?;
    let plain = connector.connect(name, port, Use::Nothing).await?.handshake;
    let offer = looked.lookup.clone();
    let found = looked.found;
    let with_record = connector.connect(name, port, Use::Looked(looked)).await;
    let with_record = with_record?.handshake;
    let (outcome, reason) = match &with_record.result {
        Ok(_) => (Outcome::Used, None),
        Err(fallback) => (fallback.outcome, Some(fallback.reason.clone())),
    };
    let mut problems = Vec::new();
    let words = reason.clone().unwrap_or_default();
    problems.extend(match outcome {
        Outcome::Used => None,
        Outcome::NoRecord | Outcome::Late => Some(Problem::Missing(words)),
        Outcome::Invalid => Some(Problem::Invalid(words)),
        Outcome::Unsupported => Some(Problem::Unsupported(words)),
        Outcome::Mismatch => Some(Problem::OutOfStep {
            reason: words,
            hint: "publish its chain",
        }),
        Outcome::RefusedByServer => Some(Problem::OutOfStep {
            reason: words,
            hint: "run `lastbyte ad serve` there, with the same --extension",
        }),
    });
    let delivered = offer.as_ref().ok();
    let delivered_certificates = delivered.map_or(&[][..], |offer| offer.certificates());
    let now = SystemTime::now();
    let expiry = first_expiry(plain.sent.iter().chain(delivered_certificates), now)?;
    if let Some(expiry) = expiry.as_ref().filter(|expiry| expiry.left <= margin) {
        problems.push(Problem::Expires {
            subject: expiry.subject.clone(),
            left: expiry.left,
        });
    }
    let delivered_expiry = first_expiry(delivered_certificates.iter(), now)?;
    if let (Some(found), Some(expiry)) = (found, delivered_expiry)
        && found.ttl > expiry.left
    {
        problems.push(Problem::Outlasts { ttl: found.ttl });
    }
    Ok(Checked {
        delivered: delivered.map(|offer| (offer.part(), offer.certificates().len())),
        plain,
        with_record,
        found,
        outcome,
        reason,
        expiry,
        problems,
    })
}

fn first_expiry<'a>(
    certificates: impl Iterator<Item = &'a X509>,
    now: SystemTime,
) -> Result<Option<Expiry>, ErrorStack> {
    let mut first: Option<Expiry> = None;
    for certificate in certificates {
        let at = expiry(certificate)?;
        if first.as_ref().is_none_or(|first| at < first.at) {
            first = Some(Expiry {
                subject: subject(certificate),
                at,
                left: at.duration_since(now).unwrap_or_default(),
            });
        }
    }
    Ok(first)
}

/// Its common name, or else its first DNS name.
fn subject(certificate: &X509) -> String {
    let common_name = certificate
        .subject_name()
        .entries_by_nid(Nid::COMMONNAME)
        .find_map(|entry| entry.data().to_string().ok());
    let names = || {
        let names = certificate.subject_alt_names();
        names
            .iter()
            .flatten()
            .find_map(|name| name.dnsname().map(str::to_owned))
    };
    common_name
        .or_else(names)
        .unwrap_or_else(|| "an unnamed subject".to_owned())
}
