//! What a survey reports.

mod json;
mod text;

pub use json::{SCHEMA, json};
pub use text::text;

use crate::share::Share;
use crate::survey::Survey;

/// Resumed shares of servers with enough handshakes, from the least.
struct ByServer {
    /// Servers that are distinguished.
    known: u64,
    shares: Vec<f64>,
}

/// A server with fewer handshakes has no share to speak of.
const ENOUGH: u64 = 20;

impl ByServer {
    fn new(survey: &Survey) -> Self {
        let entries = survey.servers.entries();
        let enough = entries.iter().filter(|entry| entry.handshakes >= ENOUGH);
        let shares = enough.map(|entry| entry.resumed as f64 / entry.handshakes as f64);
        let mut shares: Vec<f64> = shares.collect();
        shares.sort_unstable_by(f64::total_cmp);
        ByServer {
            known: entries.len() as u64,
            shares,
        }
    }

    /// A percentile, nearest rank.
    fn share(&self, percent: usize) -> Option<f64> {
        let rank = (self.shares.len() * percent).div_ceil(100);
        self.shares.get(rank.checked_sub(1)?).copied()
    }
}

/// A server by name.
struct Named<'a> {
    name: &'a str,
    /// Its handshakes, and of these the resumed ones.
    resumed: Share,
    /// Its handshakes, and of these the ones over QUIC.
    over_quic: Share,
}

/// The servers with most handshakes, for those who ask for names.
fn largest(survey: &Survey, count: usize) -> Vec<Named<'_>> {
    let named = survey.servers.entries().iter().filter_map(|entry| {
        let of = |part| Share {
            part,
            of: entry.handshakes,
        };
        let named = Named {
            name: entry.name.as_deref()?,
            resumed: of(entry.resumed),
            over_quic: of(entry.over_quic),
        };
        (entry.handshakes > 0).then_some(named)
    });
    let mut named: Vec<_> = named.collect();
    named.sort_by(|a, b| b.resumed.of.cmp(&a.resumed.of).then(a.name.cmp(b.name)));
    named.truncate(count);
    named
}
