//! Looks records up, and checks them.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use openssl::ssl::SslContext;
use pqtlsad::client::{Fallback, Lookup, Outcome};
use pqtlsad::record::{Assembly, Delivered, Fragment, RecordError, RecordType, owner};
use pqtlsad::validate::{Algorithms, Trust, choose};
use tokio::task::{JoinHandle, JoinSet, spawn_blocking};

use super::ConnectError;
use crate::dns::{Answer, Client, First, Name, Question, Rtype, Transport};

/// What became of a lookup.
#[derive(Clone, Debug)]
pub struct Looked {
    /// The certificates to offer, or why there are none.
    pub lookup: Lookup,
    /// The record, if there is one.
    pub found: Option<Found>,
}

/// A record, whatever it is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// How long it may be kept.
    pub ttl: Duration,
    /// The DNS messages that it came in, in bytes.
    pub message_bytes: usize,
    /// How many messages those were.
    pub messages: usize,
    /// How the first came.
    pub transport: Transport,
    /// How many chains the name has records of.
    pub chains: usize,
}

/// Looks the record of `name` up on a task of its own, and has `keep` see it.
pub(super) fn spawn(
    dns: &Arc<Client>,
    context: &SslContext,
    record_type: RecordType,
    name: &str,
    keep: impl FnOnce(String, &Looked) + Send + 'static,
) -> JoinHandle<Looked> {
    let (dns, context, name) = (Arc::clone(dns), context.clone(), name.to_owned());
    tokio::spawn(async move {
        let looked = look_up(&dns, &context, record_type, &name).await;
        let looked = looked.unwrap_or_else(|error| none(Outcome::NoRecord, error.to_string()));
        keep(name, &looked);
        looked
    })
}

pub(super) async fn look_up(
    dns: &Arc<Client>,
    context: &SslContext,
    record_type: RecordType,
    name: &str,
) -> Result<Looked, ConnectError> {
    if name.parse::<IpAddr>().is_ok() {
        return Ok(none(Outcome::NoRecord, "an address has none"));
    }
    let (lists, found) = match fetch(dns, record_type, name).await? {
        Ok(found) => found,
        Err(fallback) => {
            return Ok(Looked {
                lookup: Err(fallback),
                found: None,
            });
        }
    };
    let (context, name) = (context.clone(), name.to_owned());
    // Signatures take a while to check.
    let lookup = spawn_blocking(move || {
        let trust = Trust {
            anchors: context.cert_store(),
            at: SystemTime::now(),
            algorithms: Algorithms::All,
        };
        choose(lists, &name, &trust)
    });
    let lookup = lookup.await;
    let failed = |error| Err(Fallback::new(Outcome::Invalid, format!("{error}")));
    Ok(Looked {
        lookup: lookup.unwrap_or_else(failed),
        found: Some(found),
    })
}

pub(super) fn domain_name(name: &str) -> Result<Name, ConnectError> {
    name.parse().map_err(|error| ConnectError::Name {
        name: name.to_owned(),
        reason: format!("{error}"),
    })
}

fn none(outcome: Outcome, reason: impl Into<String>) -> Looked {
    Looked {
        lookup: Err(Fallback::new(outcome, reason)),
        found: None,
    }
}

type Lists = Vec<Result<Delivered, RecordError>>;

/// Asks for all fragments: for the first, which says how many there are, and then for the others at
/// the same time.
async fn fetch(
    dns: &Arc<Client>,
    record_type: RecordType,
    name: &str,
) -> Result<Result<(Lists, Found), Fallback>, ConnectError> {
    let question = |index| {
        Ok::<_, ConnectError>(Question {
            name: domain_name(&owner(name, index))?,
            rtype: Rtype::from_int(record_type.number()),
        })
    };
    // Such a record does not fit a datagram.
    let reply = match dns.ask(&question(0)?, First::Tcp).await {
        Ok(reply) => reply,
        Err(error) => return Ok(Err(Fallback::new(Outcome::NoRecord, error.to_string()))),
    };
    let absent = |reason: &str| Ok(Err(Fallback::new(Outcome::NoRecord, reason)));
    let records = match reply.answer {
        Answer::Records(records) => records,
        Answer::NoData => return absent("the name has none"),
        Answer::NoSuchName => return absent("there is no such name"),
    };
    let mut found = Found {
        ttl: records.ttl,
        message_bytes: reply.message_bytes,
        messages: 1,
        transport: reply.transport,
        chains: 0,
    };
    let mut assembly = Assembly::default();
    let mut wrong = None;
    let mut add = |assembly: &mut Assembly, data: &[u8]| match Fragment::decode(record_type, data) {
        // Of DANE, for example.
        Err(RecordError::NotOurs) => {}
        decoded => {
            let added = decoded.and_then(|fragment| assembly.add(fragment));
            wrong = added.err().or(wrong.take());
        }
    };
    for data in &records.data {
        add(&mut assembly, data);
    }
    let mut queries = JoinSet::new();
    for index in assembly.missing() {
        let (dns, question) = (Arc::clone(dns), question(index)?);
        queries.spawn(async move { dns.ask(&question, First::Tcp).await });
    }
    while let Some(reply) = queries.join_next().await {
        let Ok(Ok(reply)) = reply else { continue };
        if let Answer::Records(records) = reply.answer {
            found.ttl = found.ttl.min(records.ttl);
            found.message_bytes += reply.message_bytes;
            found.messages += 1;
            for data in &records.data {
                add(&mut assembly, data);
            }
        }
    }
    let lists = assembly.finish();
    found.chains = lists.len();
    Ok(match (lists.is_empty(), wrong) {
        (false, _) => Ok((lists, found)),
        (true, Some(error)) => Err(Fallback::new(Outcome::Invalid, error.to_string())),
        (true, None) => Err(Fallback::new(Outcome::NoRecord, "the name has none")),
    })
}
