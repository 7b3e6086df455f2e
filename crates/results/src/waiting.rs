//! How much longer the connections of a population wait with one arm than with another, each compared with
//! itself: connection 17 has one link, one response and one luck in both.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use lastbyte_link::Seed;

use super::stats::{self, Estimate, Interval, count};
use super::{Metric, Percentile, Row};
use lastbyte_study::Cell;

/// How much longer connections wait than with the baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct Waiting {
    /// For what.
    pub metric: Metric,
    /// Of which class they are; all, without one.
    pub class: Option<String>,
    /// Connections that are compared.
    pub connections: u32,
    /// Connections that are not, since they failed with both.
    pub failed: u32,
    /// Users whose connections they are.
    pub users: u32,
    /// The shares that wait longer by more than each of [`Step::ALL`].
    pub slower: Vec<Slower>,
    /// Percentiles of the differences, in milliseconds; below zero for who waits less. Absent where they lean
    /// on a connection that failed.
    pub percentiles: BTreeMap<Percentile, Option<Estimate<f64>>>,
    /// The mean of the differences, in milliseconds; absent if a connection failed with one of the two.
    pub mean: Option<Estimate<f64>>,
}

/// The share that waits longer by more than a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slower {
    /// By how much.
    pub step: Step,
    /// Of connections, from 0 to 1.
    pub connections: Estimate<f64>,
    /// Of users, by the mean of each one's connections.
    pub users: Estimate<f64>,
}

/// What a difference is held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// More than this many milliseconds.
    Milliseconds(u32),
    /// So many round trips of the connection's own link, to the nearest whole one, or more.
    RoundTrips(u32),
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Milliseconds(step) => f.pad(&format!("{step} ms")),
            Step::RoundTrips(trips) => f.pad(&format!("{trips} RTT")),
        }
    }
}

impl Step {
    /// All that are told.
    pub const ALL: [Step; 6] = [
        Step::Milliseconds(5),
        Step::Milliseconds(20),
        Step::Milliseconds(50),
        Step::Milliseconds(100),
        Step::RoundTrips(1),
        Step::RoundTrips(2),
    ];

    /// Whether a difference is above it. Both times are in nanoseconds.
    pub fn is_passed(self, difference: f64, rtt: f64) -> bool {
        match self {
            Step::Milliseconds(step) => difference > f64::from(step) * 1e6,
            Step::RoundTrips(trips) => rtt > 0.0 && difference >= (f64::from(trips) - 0.5) * rtt,
        }
    }
}

/// One connection, with two arms.
#[derive(Clone, Copy, Debug)]
struct Pair {
    user: u32,
    /// In nanoseconds; infinite if the connection failed with one of the two.
    difference: f64,
    /// In nanoseconds.
    rtt: f64,
}

/// One side of a comparison: the rows of a sample, with its cell.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// The cell.
    pub cell: &'a Cell,
    /// The rows, by index.
    pub rows: &'a [Row],
}

/// How much longer the connections of `arm` wait than those of `baseline`: all of them, and those of each class, each resampled
/// when it is asked for. Both must draw from one population. Intervals are of 95 %.
pub fn waiting<'a>(
    metric: Metric,
    baseline: Side<'_>,
    arm: Side<'_>,
    percentiles: &'a [Percentile],
    seed: Seed,
) -> impl Iterator<Item = Waiting> + use<'a> {
    let mut all = Group::default();
    let mut classes: BTreeMap<String, Group> = BTreeMap::new();
    let mut others = arm.rows.iter().peekable();
    for row in baseline.rows {
        while others.next_if(|other| other.index < row.index).is_some() {}
        let Some(other) = others.next_if(|other| other.index == row.index) else {
            continue;
        };
        let draw = baseline.cell.draw(row.index).unwrap_or_default();
        let link = baseline.cell.with(&draw).link;
        let pair = match (metric.of(row), metric.of(other)) {
            (None, None) => None,
            (before, after) => {
                let nanos = |time: Option<Duration>| {
                    time.map_or(f64::INFINITY, |time| time.as_nanos() as f64)
                };
                Some(Pair {
                    user: draw.user,
                    difference: nanos(after) - nanos(before),
                    rtt: link.rtt().as_nanos() as f64,
                })
            }
        };
        all.add(pair);
        if let Some(class) = &draw.class {
            classes.entry(class.to_string()).or_default().add(pair);
        }
    }
    let classes = classes
        .into_iter()
        .map(|(class, group)| (Some(class), group));
    let groups = [(None, all)].into_iter().chain(classes);
    groups.map(move |(class, group)| group.waiting(metric, class, percentiles, seed))
}

/// Connections that are told of together.
#[derive(Default)]
struct Group {
    pairs: Vec<Pair>,
    failed: u32,
}

impl Group {
    fn add(&mut self, pair: Option<Pair>) {
        match pair {
            Some(pair) => self.pairs.push(pair),
            None => self.failed += 1,
        }
    }

    fn waiting(
        self,
        metric: Metric,
        class: Option<String>,
        percentiles: &[Percentile],
        seed: Seed,
    ) -> Waiting {
        let users = by_user(&self.pairs);
        let differences: Vec<(u32, f64)> = (self.pairs.iter())
            .map(|pair| (pair.user, pair.difference / 1e6))
            .collect();
        let resampled = stats::resample(&differences, percentiles, seed);
        let passed = |pairs: &[Pair], step: Step| {
            let passed = pairs
                .iter()
                .filter(|pair| step.is_passed(pair.difference, pair.rtt));
            passed.count()
        };
        let slower = Step::ALL.map(|step| {
            let of_users = stats::share(passed(&users, step), users.len());
            let of_connections = if users.len() == self.pairs.len() {
                of_users
            } else {
                // The connections of one user fare alike.
                let passed: Vec<(u32, f64)> = (self.pairs.iter())
                    .map(|pair| {
                        let is_passed = step.is_passed(pair.difference, pair.rtt);
                        (pair.user, f64::from(u8::from(is_passed)))
                    })
                    .collect();
                widened(
                    stats::resample(&passed, &[], seed).mean,
                    users.len(),
                    self.pairs.len(),
                )
            };
            Slower {
                step,
                connections: of_connections,
                users: of_users,
            }
        });
        Waiting {
            metric,
            class,
            connections: count(self.pairs.len()),
            failed: self.failed,
            users: count(users.len()),
            slower: slower.to_vec(),
            percentiles: resampled.percentiles,
            mean: resampled.mean,
        }
    }
}

/// A share by resampling users, with the interval (Wilson's) of as many connections that know nothing of each other as
/// would spread as far: no fewer than there are users, and no more than there are connections.
fn widened(share: Option<Estimate<f64>>, users: usize, connections: usize) -> Estimate<f64> {
    let (least, most) = (users as f64, connections.max(users) as f64);
    let Some(share) = share else {
        return stats::share_of(0.0, 0.0);
    };
    let Interval {
        low: Some(low),
        high: Some(high),
    } = share.interval
    else {
        return stats::share_of(share.value, least);
    };
    let deviation = (high - low) / (2.0 * stats::Z);
    let alike = share.value * (1.0 - share.value) / deviation.powi(2);
    if alike.is_finite() {
        stats::share_of(share.value, alike.clamp(least, most))
    } else {
        stats::share_of(share.value, least)
    }
}

/// Each user's mean difference and RTT.
fn by_user(pairs: &[Pair]) -> Vec<Pair> {
    let mut users: Vec<Pair> = Vec::new();
    let mut connections = 0.0;
    for pair in pairs {
        match users.last_mut() {
            // Connections of one user follow each other.
            Some(user) if user.user == pair.user => {
                connections += 1.0;
                user.difference += (pair.difference - user.difference) / connections;
                user.rtt += (pair.rtt - user.rtt) / connections;
            }
            _ => {
                connections = 1.0;
                users.push(*pair);
            }
        }
    }
    users
}

impl Waiting {
    /// How long all connections together wait longer.
    pub fn total(&self) -> Option<Estimate<f64>> {
        let connections = f64::from(self.connections);
        Some(self.mean?.map(|mean| mean * connections))
    }
}

#[cfg(test)]
mod tests;
