//! What is measured of a connection, and which percentiles of it are told.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::{Outcome, Row};
use crate::study::mend;

/// A time from just before `connect()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// To TCP established.
    Connect,
    /// To the client's Finished written.
    Handshake,
    /// To the first response payload byte decrypted.
    Ttfb,
    /// To the last response payload byte decrypted.
    Ttlb,
}

impl Metric {
    /// All metrics, in the order of a connection.
    pub const ALL: [Metric; 4] = [
        Metric::Connect,
        Metric::Handshake,
        Metric::Ttfb,
        Metric::Ttlb,
    ];

    /// The name on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Metric::Connect => "connect",
            Metric::Handshake => "handshake",
            Metric::Ttfb => "ttfb",
            Metric::Ttlb => "ttlb",
        }
    }

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
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Metric {
    type Err = UnknownMetric;

    fn from_str(text: &str) -> Result<Metric, UnknownMetric> {
        Metric::ALL
            .into_iter()
            .find(|metric| metric.name() == text)
            .ok_or_else(|| UnknownMetric {
                text: text.to_owned(),
                mend: mend(text, Metric::ALL.map(Metric::name)),
            })
    }
}

/// The text names no [`Metric`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown metric {text:?}: {mend}")]
pub struct UnknownMetric {
    text: String,
    mend: String,
}

/// A percentile from 1 to 99, written `p75`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Percentile(u8);

impl Percentile {
    /// Half of all connections are no later.
    pub const MEDIAN: Percentile = Percentile(50);

    /// Those that are told if nothing else is asked for.
    pub const USUAL: [Percentile; 3] = [Percentile(50), Percentile(75), Percentile(90)];

    /// `None` unless from 1 to 99.
    pub fn new(percent: u8) -> Option<Percentile> {
        (1..=99).contains(&percent).then_some(Percentile(percent))
    }

    /// From 1 to 99.
    pub fn percent(self) -> u8 {
        self.0
    }
}

impl fmt::Display for Percentile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("p{}", self.0))
    }
}

impl FromStr for Percentile {
    type Err = NoPercentile;

    fn from_str(text: &str) -> Result<Percentile, NoPercentile> {
        text.strip_prefix('p')
            .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
            .and_then(|digits| digits.parse().ok())
            .and_then(Percentile::new)
            .ok_or_else(|| NoPercentile(text.to_owned()))
    }
}

/// The text is no [`Percentile`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no percentile: use p1 to p99, such as p75")]
pub struct NoPercentile(String);
