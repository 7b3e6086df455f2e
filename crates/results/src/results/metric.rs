//! Metrics of a row.

use std::time::Duration;

use super::{Outcome, Row};
use crate::study::Metric;

impl Metric {
    /// The time of one connection. A connection that did not complete is infinitely late in
    /// every metric, and has none.
    pub fn of(self, row: &Row) -> Option<Duration> {
        if row.outcome != Outcome::Completed {
            return None;
        }
        match self {
            Metric::Connect => row.times.connect,
            Metric::Handshake => row.times.handshake,
            Metric::Ttfb => row.times.ttfb,
            Metric::Ttlb => row.times.ttlb,
            Metric::TlsHandshake => row.times.handshake?.checked_sub(row.times.connect?),
            Metric::DnsRecord => row.dns.record,
            Metric::Fcp => row.load().and_then(|load| load.fcp),
            Metric::Lcp => row.load().and_then(|load| load.lcp),
            Metric::Load => row.load().and_then(|load| load.load),
            Metric::SpeedIndex => row.load().and_then(|load| load.speed_index),
        }
    }
}
