//! Whether a client has the record in time, and what became of it. Times are since the client asked
//! DNS; they come in as arguments.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, SystemTime};

pub use lastbyte_sizes::Outcome;

use crate::Digest;
pub use crate::fallback::Fallback;
pub use crate::validate::Lookup;
use crate::validate::Offer;

/// The race of the record against the TCP handshake.
#[derive(Debug)]
pub struct Race {
    grace: Duration,
    lookup: Option<Lookup>,
    connected: Option<Duration>,
}

/// What a client is to do.
#[derive(Clone, Debug)]
pub enum Decision {
    /// There is no connection yet.
    Connecting,
    /// Wait for the record, until this time at most.
    Wait(Duration),
    /// Send the ClientHello with this offer.
    Offer(Offer),
    /// Send the ClientHello of plain TLS.
    Plain(Fallback),
}

impl Race {
    /// A race in which the client, when TCP is established, waits `grace` for the record. Zero, as
    /// the mechanism's authors have it, never delays a ClientHello.
    pub fn new(grace: Duration) -> Race {
        Race {
            grace,
            lookup: None,
            connected: None,
        }
    }

    /// The lookup has ended, validation included. The first end counts.
    pub fn looked_up(&mut self, lookup: Lookup) {
        self.lookup.get_or_insert(lookup);
    }

    /// TCP is established at `at`.
    pub fn connected(&mut self, at: Duration) {
        self.connected.get_or_insert(at);
    }

    /// What to do at `now`. What it says to send is to be sent; the race is over then.
    pub fn decide(&self, now: Duration) -> Decision {
        let Some(connected) = self.connected else {
            return Decision::Connecting;
        };
        let until = connected.saturating_add(self.grace);
        match &self.lookup {
            Some(Ok(offer)) => Decision::Offer(offer.clone()),
            Some(Err(fallback)) => Decision::Plain(fallback.clone()),
            None if now < until => Decision::Wait(until),
            None => Decision::Plain(Fallback::new(
                Outcome::Late,
                if self.grace.is_zero() {
                    "not there when TCP was established".to_owned()
                } else {
                    format!("not there {:?} after TCP was established", self.grace)
                },
            )),
        }
    }
}

/// What the ServerHello answered to an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It has no such extension.
    None,
    /// It has this digest.
    Digest(Digest),
}

impl Answer {
    /// What comes of it. [`Outcome::Used`] is true of a handshake that succeeds, and only of one.
    pub fn outcome(self, offered: &Digest) -> Result<(), Fallback> {
        match self {
            Answer::Digest(digest) if digest == *offered => Ok(()),
            Answer::Digest(digest) => Err(Fallback::new(
                Outcome::Mismatch,
                format!("the server's chain has the digest {digest}"),
            )),
            Answer::None => Err(Fallback::new(
                Outcome::RefusedByServer,
                "the server did not answer the extension",
            )),
        }
    }
}

/// The longest that certificates from DNS are kept: what is wrong with them, or has been revoked,
/// is so no longer.
pub const LONGEST: Duration = Duration::from_secs(86_400);

/// How long an offer may be kept that DNS lets be kept for `ttl` from `now` on: for a day at most
/// ([`LONGEST`]), and until the first of its certificates expires.
pub fn cacheable_for(offer: &Offer, ttl: Duration, now: SystemTime) -> Duration {
    let valid = offer.valid_until().duration_since(now).unwrap_or_default();
    ttl.min(LONGEST).min(valid)
}

/// What a client keeps of DNS, each for a while.
#[derive(Debug)]
pub struct Cache<K, V> {
    entries: HashMap<K, Entry<V>>,
    capacity: usize,
}

#[derive(Debug)]
struct Entry<V> {
    value: V,
    until: Duration,
}

impl<K: Hash + Eq + Clone, V> Cache<K, V> {
    /// One that holds `capacity` entries at most.
    pub fn new(capacity: usize) -> Cache<K, V> {
        Cache {
            entries: HashMap::new(),
            capacity,
        }
    }

    /// Keeps `value` from `now` for `ttl`. If it is full, what would end first goes.
    pub fn insert(&mut self, key: K, value: V, ttl: Duration, now: Duration) {
        self.entries.retain(|_, entry| entry.until > now);
        if self.capacity == 0 || ttl.is_zero() {
            return;
        }
        if self.entries.len() >= self.capacity && !self.entries.contains_key(&key) {
            let first = self.entries.iter().min_by_key(|(_, entry)| entry.until);
            if let Some(first) = first.map(|(key, _)| key.clone()) {
                self.entries.remove(&first);
            }
        }
        let until = now.saturating_add(ttl);
        self.entries.insert(key, Entry { value, until });
    }

    /// Forgets what is kept.
    pub fn remove(&mut self, key: &K) {
        self.entries.remove(key);
    }

    /// What is kept, if it is still good at `now`.
    pub fn get(&self, key: &K, now: Duration) -> Option<&V> {
        let entry = self.entries.get(key)?;
        (entry.until > now).then_some(&entry.value)
    }
}

#[cfg(test)]
mod tests;
