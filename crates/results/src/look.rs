//! Whether what is reported of a cell is precise enough.
//!
//! A cell may be looked at several times while it grows. Whoever looks often enough sees an interval
//! that misses the truth, so looks are counted beforehand, and intervals are so wide that those of all
//! looks hold together ([`Level`]): the last ones do, wherever the cell ends. Only their width decides
//! about that, never whether they hold zero.

use std::time::Duration;

use super::repeats::repeat_each_other;
use super::stats::{self, Estimate, Level, Percent, Percentiles, Series};
use super::{Metric, Percentile, Row};
use lastbyte_study::{Cell, Connections, Experiment, Until};

/// Connections that should lie beyond a percentile for it, and its interval, to mean something.
pub(super) const BEYOND: u32 = 10;

/// What a look at a cell shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Look {
    /// All that is reported of it is precise enough.
    Precise,
    /// Something is not.
    Imprecise(Imprecision),
    /// Its connections repeat each other, so that more of them would show nothing else.
    Repeating,
    /// They might, but differ.
    Differing,
}

/// What would take the most connections to be precise enough.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Imprecision {
    /// Index of the arm.
    pub arm: usize,
    /// The metric.
    pub metric: Metric,
    /// The percentile of it.
    pub percentile: Percentile,
    /// What is wrong.
    pub fault: Fault,
    /// Connections that would about do. `None` where there are failures among them, and where a sample
    /// can't have so many.
    pub enough: Option<u32>,
}

/// Why a percentile is not precise enough.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// How far its interval reaches to the farther side, as a share of it.
    Wide(Percent),
    /// How far the interval of its increase reaches to the farther side, in percentage points.
    WideIncrease(Percent),
    /// It, or an end of its interval, leans on connections that failed.
    Open,
    /// Too few connections lie beyond it.
    Sparse,
}

/// Looks at a cell of `experiment`: at the `rows` of each arm, the baseline's first. The number of
/// connections is enough where it is fixed, and where they differ by luck that is not looked for.
pub fn look(
    experiment: &Experiment,
    cell: &Cell,
    rows: &[&[Row]],
    percentiles: &[Percentile],
) -> Look {
    let metrics: Vec<_> = reported(cell).collect();
    let all: Vec<Series> = metrics
        .iter()
        .flat_map(|metric| rows.iter().map(|rows| series(*metric, cell, *rows)))
        .collect();
    let known = stats::percentiles(&all, percentiles, experiment.seed);
    let known = metrics.into_iter().zip(known.chunks(rows.len().max(1)));
    judge(experiment, cell, rows, percentiles, known)
}

/// The metrics of a cell that say something about its arms: the connect time is before all TLS.
pub(super) fn reported(cell: &Cell) -> impl Iterator<Item = Metric> + use<> {
    let metrics = cell.metrics().iter().copied();
    metrics.filter(|metric| *metric != Metric::Connect)
}

/// The times of one metric, of connections in `cell`: those of one user are resampled together.
pub(super) fn series<'a>(
    metric: Metric,
    cell: &Cell,
    rows: impl IntoIterator<Item = &'a Row>,
) -> Series {
    let rows = rows.into_iter();
    rows.map(|row| (cell.user(row.index), metric.of(row)))
        .collect()
}

/// Connections of which enough lie beyond a percentile, on either side.
pub(super) fn fewest(percentile: Percentile) -> u32 {
    let per_mille = u32::from(percentile.per_mille());
    (1000 * BEYOND).div_ceil(per_mille.min(1000 - per_mille))
}

/// What the rows of each arm show, and the percentiles of each metric of theirs.
pub(super) fn judge<'a>(
    experiment: &Experiment,
    cell: &Cell,
    rows: &[&[Row]],
    percentiles: &[Percentile],
    known: impl IntoIterator<Item = (Metric, &'a [Percentiles])>,
) -> Look {
    let until = match &experiment.connections {
        Connections::Until(until) => until,
        Connections::UpTo(_) if !experiment.has_luck(cell) => {
            return if repeat_each_other(rows, percentiles) {
                Look::Repeating
            } else {
                Look::Differing
            };
        }
        Connections::UpTo(_) | Connections::Fixed(_) => return Look::Precise,
    };
    let connections = rows.iter().map(|rows| rows.len()).min().unwrap_or(0);
    let judge = Judge {
        until,
        level: Level::of(&experiment.connections),
        connections: connections as f64,
    };
    let mut worst = (judge.connections, Look::Precise);
    for (metric, arms) in known {
        for (arm, own) in arms.iter().enumerate() {
            let baseline = arms.first().filter(|_| arm > 0);
            for percentile in percentiles.iter().copied() {
                for fault in judge.faults(own, baseline, percentile) {
                    let needed = judge.needed(fault, percentile);
                    if needed > worst.0 {
                        let enough = enough(needed);
                        let imprecision = Imprecision {
                            arm,
                            metric,
                            percentile,
                            fault,
                            enough,
                        };
                        worst = (needed, Look::Imprecise(imprecision));
                    }
                }
            }
        }
    }
    worst.1
}

struct Judge<'a> {
    until: &'a Until,
    level: Level,
    connections: f64,
}

impl Judge<'_> {
    /// What keeps a percentile of an arm from being precise, be it little or much.
    fn faults(
        &self,
        own: &Percentiles,
        baseline: Option<&Percentiles>,
        percentile: Percentile,
    ) -> Vec<Fault> {
        // It is infinitely late beyond doubt, and more connections will not change that.
        if own.is_never(percentile, self.level) {
            return Vec::new();
        }
        let time = own.estimate(percentile, self.level).and_then(reach);
        let increase = baseline.and_then(|baseline| {
            // Where there is none, one of the two is infinitely late: that is its own fault.
            let increase = own.increase(baseline, percentile, self.level)?;
            Some(reach_of_increase(increase).map_or(Fault::Open, Fault::WideIncrease))
        });
        [Some(time.map_or(Fault::Open, Fault::Wide)), increase]
            .into_iter()
            .flatten()
            .chain([Fault::Sparse])
            .collect()
    }

    /// How many connections it would take, as intervals narrow with the square root.
    fn needed(&self, fault: Fault, percentile: Percentile) -> f64 {
        match fault {
            Fault::Wide(Percent(reached)) | Fault::WideIncrease(Percent(reached)) => {
                self.connections * (reached / self.until.precision.percent()).powi(2)
            }
            Fault::Open => f64::INFINITY,
            Fault::Sparse => f64::from(fewest(percentile)),
        }
    }
}

/// How far the interval of a time reaches to its farther side, as a share of the time, unless it is open.
fn reach(estimate: Estimate<Duration>) -> Option<Percent> {
    let Estimate { value, interval } = estimate;
    let above = interval.high?.saturating_sub(value);
    let below = value.saturating_sub(interval.low?);
    let value = value.max(Duration::from_nanos(1)).as_secs_f64();
    Some(Percent(100.0 * above.max(below).as_secs_f64() / value))
}

/// The same in percentage points.
fn reach_of_increase(estimate: Estimate<Percent>) -> Option<Percent> {
    let Estimate { value, interval } = estimate;
    let (above, below) = (interval.high?.0 - value.0, value.0 - interval.low?.0);
    Some(Percent(above.max(below)))
}

/// A number of connections of two digits, since nobody knows it better.
fn enough(needed: f64) -> Option<u32> {
    if needed > f64::from(Connections::MOST) {
        return None;
    }
    let needed = needed.ceil() as u32;
    let unit = 10_u32.pow(needed.checked_ilog10().unwrap_or(0).saturating_sub(1));
    Some(needed.next_multiple_of(unit).min(Connections::MOST))
}

#[cfg(test)]
mod tests;
