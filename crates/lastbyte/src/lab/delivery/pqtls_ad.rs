//! PQTLS-AD: what DNS delivers of an arm's chain.

mod lookup;
mod poison;

pub(in crate::lab) use lookup::Lookup;

use std::time::{Duration, SystemTime};

use lastbyte_pki::Chain;
use lastbyte_tls::observer::Message;
use lastbyte_tls::{self as tls, Stack, handshake_between};
use openssl::x509::store::{X509Store, X509StoreBuilder};
use pqtlsad::client::Outcome;
use pqtlsad::flight::{InitialWindow, Plan};
use pqtlsad::record::{Delivered, split};
use pqtlsad::validate::{Algorithms, Offer, Trust, validate};
use pqtlsad::{Part, server};

use super::{Mechanism, to_line};
use crate::lab::dns::Published;
use crate::study::{Arm, DnsCache, EndEntity, PqtlsAd};

impl Mechanism for PqtlsAd {
    fn bare(&self) -> Result<tls::Delivery, String> {
        use pqtlsad::openssl::EndEntity as Proof;
        Ok(tls::Delivery::PqtlsAd(match self.end_entity {
            EndEntity::Sent | EndEntity::RawKey => Proof::RawPublicKey,
            EndEntity::Carrier => Proof::Carrier,
        }))
    }

    fn prepare(
        &self,
        arm: &Arm,
        chain: &Chain,
        stack: &dyn Stack,
    ) -> Result<Option<PreparedDelivery>, String> {
        PreparedDelivery::new(arm, self, chain, stack).map(Some)
    }
}

/// An arm's chain, in part in DNS.
pub struct PreparedDelivery {
    /// What is in DNS.
    pub(crate) published: Published,
    /// What clients trust.
    anchors: X509Store,
    /// How long a client that is connected waits for the record.
    grace: Duration,
    /// What a client has that got it.
    offer: Offer,
    /// Bytes of the Certificate message without and with DNS.
    certificate_bytes: [u32; 2],
}

impl PreparedDelivery {
    /// Chooses what is delivered.
    ///
    /// # Errors
    ///
    /// Why that can't be, in one line with the hint.
    fn new(
        arm: &Arm,
        delivery: &PqtlsAd,
        chain: &Chain,
        stack: &dyn Stack,
    ) -> Result<Self, String> {
        let certificates = chain.certificates().to_vec();
        let own = server::Chain::new(certificates, chain.key().clone()).map_err(to_line)?;
        let share = arm.group.server_share_bytes();
        let plan = Plan::new(&own, share, InitialWindow::default());
        let part = match (delivery.end_entity, delivery.from) {
            (EndEntity::Sent, Some(part)) => part,
            (EndEntity::Sent, None) => by_rule(&plan)?,
            (EndEntity::RawKey | EndEntity::Carrier, _) => Part::EndEntity,
        };
        let count = own.count(part).map_err(to_line)?;
        let list = own.topmost(count).map_err(to_line)?;
        let mut fragments = split(part, &list).map_err(to_line)?;
        if delivery.cache == DnsCache::Cold && fragments.len() > 1 {
            return Err(format!(
                "dns=cold is for a record that one DNS message holds, and this one takes {}: \
                 use dns=cached, or deliver less with from=",
                fragments.len()
            ));
        }
        let mut anchors = X509StoreBuilder::new().map_err(to_line)?;
        anchors.add_cert(chain.root().clone()).map_err(to_line)?;
        match delivery.cache {
            DnsCache::Cached | DnsCache::Cold => {}
            DnsCache::Absent => fragments.clear(),
            DnsCache::Broken => poison::break_bit(&mut fragments),
            DnsCache::Foreign => {
                let other = poison::another_root().map_err(to_line)?;
                fragments = poison::record_of(&other)?;
                anchors.add_cert(other).map_err(to_line)?;
            }
        }
        let anchors = anchors.build();
        let trust = Trust {
            anchors: &anchors,
            at: SystemTime::now(),
            algorithms: Algorithms::All,
        };
        let name = chain.server_name();
        let offer = validate(Delivered { part, list }, name, &trust).map_err(|fallback| {
            format!(
                "its DNS record is {}: {}",
                fallback.outcome, fallback.reason
            )
        })?;
        let planned = plan.flights.get(count).map(|flight| flight.certificate);
        let left = match delivery.end_entity {
            EndEntity::Carrier => sent_with(stack, &offer)?,
            EndEntity::Sent | EndEntity::RawKey => planned.ok_or("nothing is planned")?,
        };
        Ok(Self {
            published: Published {
                name: name.to_owned(),
                fragments,
                cache: delivery.cache,
                resolver_rtt: delivery.resolver_rtt,
            },
            anchors,
            grace: delivery.grace,
            offer,
            certificate_bytes: [chain.certificate_message_bytes() as u32, left as u32],
        })
    }

    /// What a client has that got the record in time.
    pub(in crate::lab) fn offer(&self) -> &Offer {
        &self.offer
    }

    /// What the Certificate message has, if this became of the record.
    pub(in crate::lab) fn certificate_bytes(&self, outcome: Outcome) -> u32 {
        let [whole, left] = self.certificate_bytes;
        if outcome == Outcome::Used {
            left
        } else {
            whole
        }
    }
}

/// The least that brings the server's first flight within an initial window.
fn by_rule(plan: &Plan) -> Result<Part, String> {
    match plan.choice().part {
        None => Err(
            "its whole chain fits an initial window, so a record would save nothing: \
             name from= to deliver one anyway"
                .to_owned(),
        ),
        // All but the end-entity.
        Some(Part::EndEntity) => {
            let flights = plan.flights.iter().rev().skip(1);
            let mut parts = flights.filter_map(|flight| flight.part);
            parts.next().ok_or_else(|| {
                "its chain is an end-entity alone: use delivery=pqtls-ad-raw-key".to_owned()
            })
        }
        Some(part) => Ok(part),
    }
}

/// Bytes of the Certificate message of a handshake in memory.
fn sent_with(stack: &dyn Stack, offer: &Offer) -> Result<usize, String> {
    let client = stack.offering_client(offer).map_err(to_line)?;
    let handshake = handshake_between(client, stack.server().map_err(to_line)?).map_err(to_line)?;
    let observation = handshake.observer.observe(&handshake.client.key_log());
    observation
        .bytes(Message::Certificate)
        .ok_or_else(|| "its server sent no certificate".to_owned())
}
