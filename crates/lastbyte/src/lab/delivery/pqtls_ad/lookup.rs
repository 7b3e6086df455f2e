//! What one client knows from DNS, and what becomes of it.

use std::net::Ipv4Addr;
use std::time::{Duration, SystemTime};

use domain::base::iana::OptRcode;
use lastbyte_link::Time;
use lastbyte_tls::{Connection, Stack, TlsError};
use pqtlsad::client::{Decision, Fallback, Lookup as LookedUp, Outcome, Race};
use pqtlsad::record::{Assembly, Fragment, RecordType};
use pqtlsad::validate::{Algorithms, Trust, choose};

use super::PreparedDelivery;
use crate::lab::dns::{Question, ResolverAnswer as Answer, resolved_address};
use crate::lab::exchange::{Source, Step};
use crate::results::Dns;

/// What DNS delivers to one connection. Times are since it asked.
pub(in crate::lab) struct Lookup<'a> {
    arm: &'a PreparedDelivery,
    stack: &'a dyn Stack,
    started: Time,
    /// Of the server, and when it was known.
    address: Option<(Result<Ipv4Addr, String>, Duration)>,
    assembly: Option<Assembly>,
    /// Fragments that are asked for.
    awaited: usize,
    /// When the record was whole, or known not to be there.
    record: Option<Duration>,
    race: Race,
    /// What the ClientHello offered.
    sent: Sent,
}

/// What a ClientHello offered.
#[derive(Debug)]
enum Sent {
    Nothing,
    Offer,
    Plain(Fallback),
}

impl<'a> Lookup<'a> {
    /// Of a client that asks [`FIRST`] at `started`.
    pub(in crate::lab) fn new(
        arm: &'a PreparedDelivery,
        stack: &'a dyn Stack,
        started: Time,
    ) -> Self {
        Self {
            arm,
            stack,
            started,
            address: None,
            assembly: Some(Assembly::default()),
            awaited: 1,
            record: None,
            race: Race::new(arm.grace),
            sent: Sent::Nothing,
        }
    }

    /// The name that connection `index` of the sample asks for.
    pub(in crate::lab) fn name_of(&self, index: u32) -> String {
        self.arm.published.name_of(index)
    }

    /// Takes an answer that came at `now`. Gives what to ask next.
    pub(in crate::lab) fn take(&mut self, answer: Answer, now: Time) -> Vec<Question> {
        let at = now.since(self.started);
        match answer.question {
            Question::Address => {
                self.address
                    .get_or_insert((first_address(&answer.records), at));
                Vec::new()
            }
            Question::Fragment(_) => self.take_fragment(&answer.records, at),
        }
    }

    fn take_fragment(
        &mut self,
        records: &Result<Vec<Vec<u8>>, OptRcode>,
        at: Duration,
    ) -> Vec<Question> {
        self.awaited = self.awaited.saturating_sub(1);
        let Some(assembly) = &mut self.assembly else {
            return Vec::new();
        };
        match add(assembly, records) {
            Ok(()) if self.awaited > 0 => return Vec::new(),
            Ok(()) => {
                let missing = assembly.missing();
                if !missing.is_empty() && !missing.contains(&0) && self.record.is_none() {
                    self.awaited = missing.len();
                    return missing.into_iter().map(Question::Fragment).collect();
                }
                let assembly = self.assembly.take().unwrap_or_default();
                self.looked_up(self.offer(assembly), at);
            }
            Err(fallback) => self.looked_up(Err(fallback), at),
        }
        Vec::new()
    }

    /// What the whole record is good for.
    fn offer(&self, assembly: Assembly) -> LookedUp {
        let trust = Trust {
            anchors: &self.arm.anchors,
            at: SystemTime::now(),
            algorithms: Algorithms::All,
        };
        choose(assembly.finish(), &self.arm.published.name, &trust)
    }

    fn looked_up(&mut self, lookup: LookedUp, at: Duration) {
        self.assembly = None;
        self.record.get_or_insert(at);
        self.race.looked_up(lookup);
    }

    /// The server's address, once it is known.
    pub(in crate::lab) fn address(&self) -> Option<Result<Ipv4Addr, String>> {
        self.address.as_ref().map(|(address, _)| address.clone())
    }

    /// Whether DNS has answered everything.
    pub(in crate::lab) fn is_answered(&self) -> bool {
        self.address.is_some() && self.record.is_some()
    }

    /// What a row says of it. `client` is the connection's, if it was established.
    pub(in crate::lab) fn finish(self, client: Option<&dyn Connection>) -> Dns {
        let became = match self.sent {
            Sent::Nothing => None,
            Sent::Plain(fallback) => Some(Err(fallback)),
            Sent::Offer => client.and_then(Connection::delivery),
        };
        let (outcome, reason) = match became {
            None => (None, None),
            Some(Ok(())) => (Some(Outcome::Used), None),
            Some(Err(fallback)) => (Some(fallback.outcome), Some(fallback.reason)),
        };
        Dns {
            address: self.address.map(|(_, at)| at),
            record: self.record,
            outcome,
            reason,
            certificate_bytes: outcome.map(|outcome| self.arm.certificate_bytes(outcome)),
        }
    }
}

impl Source for Lookup<'_> {
    fn connected(&mut self, now: Time) {
        self.race.connected(now.since(self.started));
    }

    fn decide(&mut self, now: Time) -> Result<Step, TlsError> {
        match self.race.decide(now.since(self.started)) {
            Decision::Connecting => Ok(Step::Wait(now)),
            Decision::Wait(until) => Ok(Step::Wait(self.started + until)),
            Decision::Plain(fallback) => {
                self.sent = Sent::Plain(fallback);
                Ok(Step::Plain)
            }
            Decision::Offer(offer) => {
                self.sent = Sent::Offer;
                self.stack.offering_client(&offer).map(Step::Offer)
            }
        }
    }
}

/// Adds the fragments that an answer holds.
fn add(assembly: &mut Assembly, records: &Result<Vec<Vec<u8>>, OptRcode>) -> Result<(), Fallback> {
    let records = match records {
        Ok(records) if !records.is_empty() => records,
        Ok(_) | Err(OptRcode::NXDOMAIN) => {
            return Err(Fallback::new(
                Outcome::NoRecord,
                "the name has no such record",
            ));
        }
        Err(code) => {
            let reason = format!("the resolver answered {code}");
            return Err(Fallback::new(Outcome::NoRecord, reason));
        }
    };
    for rdata in records {
        Fragment::decode(RecordType::DEFAULT, rdata)
            .and_then(|fragment| assembly.add(fragment))
            .map_err(|error| Fallback::new(Outcome::Invalid, error.to_string()))?;
    }
    Ok(())
}

fn first_address(records: &Result<Vec<Vec<u8>>, OptRcode>) -> Result<Ipv4Addr, String> {
    match records {
        Ok(records) => {
            let mut addresses = records.iter().filter_map(|rdata| resolved_address(rdata));
            addresses
                .next()
                .ok_or_else(|| "the name has no address".to_owned())
        }
        Err(code) => Err(format!("the resolver answered {code}")),
    }
}
