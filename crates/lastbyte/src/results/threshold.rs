//! What a run must not exceed: `ttlb.p75 > 10%`, `handshake.p90 >= 300ms`.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use lastbyte_link::{UnitError, format_duration, parse_duration};
use thiserror::Error;

use super::number::{milliseconds, percent};
use super::{
    Absent, ArmSummary, CellSummary, Measured, Metric, NoPercentile, Percent, Percentile, Role,
    Summary,
};
use crate::study::UnknownName;

/// What makes a run fail: a metric's percentile that exceeds a bound.
///
/// A percentage bounds the increase of every arm over the baseline, a duration the time of every
/// arm. A percentile that is absent because connections failed is infinitely late and exceeds both.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold {
    /// The metric.
    pub metric: Metric,
    /// The percentile of it.
    pub percentile: Percentile,
    /// Whether the bound itself exceeds it.
    pub comparison: Comparison,
    /// What it is compared with.
    pub bound: Bound,
}

/// How a bound is exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `>`
    Above,
    /// `>=`
    AtLeast,
}

/// What a percentile is compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// The increase over the baseline.
    Increase(Percent),
    /// The time itself.
    Time(Duration),
}

impl Threshold {
    /// One line for each sample of `summary` that crosses the threshold.
    pub fn crossings(&self, summary: &Summary) -> Vec<String> {
        summary
            .cells
            .iter()
            .flat_map(|cell| self.crossings_in(cell))
            .collect()
    }

    fn crossings_in(&self, cell: &CellSummary) -> Vec<String> {
        let place = if cell.name.is_empty() {
            String::new()
        } else {
            format!(" at {}", cell.name)
        };
        cell.arms
            .iter()
            .filter_map(|arm| {
                let what = self.exceeded_by(arm)?;
                Some(format!("{self}: {}{place} {what}", arm.label))
            })
            .collect()
    }

    /// What exceeds the bound, in words.
    fn exceeded_by(&self, arm: &ArmSummary) -> Option<String> {
        let metric = arm.metric(self.metric);
        match self.bound {
            Bound::Increase(_) if arm.role == Role::Baseline => None,
            Bound::Increase(bound) => self.exceeds(&metric.increases, bound, |value| {
                format!("increases by {}", percent(value))
            }),
            Bound::Time(bound) => self.exceeds(&metric.percentiles, bound, |value| {
                format!("is {}", milliseconds(value))
            }),
        }
    }

    fn exceeds<T: Copy + PartialOrd>(
        &self,
        measured: &BTreeMap<Percentile, Measured<T>>,
        bound: T,
        describe: impl Fn(T) -> String,
    ) -> Option<String> {
        let Some(measured) = measured.get(&self.percentile) else {
            return Some("was not summarised".into());
        };
        match measured {
            Ok(estimate) => {
                let exceeds = match self.comparison {
                    Comparison::Above => estimate.value > bound,
                    Comparison::AtLeast => estimate.value >= bound,
                };
                exceeds.then(|| describe(estimate.value))
            }
            Err(Absent::NoData) => None,
            Err(absent) => Some(format!("is absent: {absent}")),
        }
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let comparison = match self.comparison {
            Comparison::Above => ">",
            Comparison::AtLeast => ">=",
        };
        write!(f, "{}.{} {comparison} ", self.metric, self.percentile)?;
        match self.bound {
            Bound::Increase(Percent(percent)) => write!(f, "{percent}%"),
            Bound::Time(time) => f.write_str(&format_duration(time)),
        }
    }
}

impl FromStr for Threshold {
    type Err = ThresholdError;

    fn from_str(text: &str) -> Result<Threshold, ThresholdError> {
        parse(text).map_err(|problem| ThresholdError {
            text: text.to_owned(),
            problem,
        })
    }
}

/// The text is no [`Threshold`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("threshold {text:?}: {problem}")]
pub struct ThresholdError {
    /// The whole text.
    pub text: String,
    /// What is wrong with it.
    pub problem: ThresholdProblem,
}

/// What is wrong with the text of a threshold.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ThresholdProblem {
    /// It does not have three parts.
    #[error("write METRIC.PERCENTILE > BOUND, such as \"ttlb.p75 > 10%\"")]
    Form,
    /// It compares in another way.
    #[error("a threshold is crossed from below: use > or >=")]
    Comparison,
    /// There is no such metric.
    #[error(transparent)]
    Metric(#[from] UnknownName),
    /// There is no such percentile.
    #[error(transparent)]
    Percentile(#[from] NoPercentile),
    /// The percentage is no number.
    #[error("{0:?} is no percentage: write one such as \"10%\"")]
    Percentage(String),
    /// The bound is no duration.
    #[error(transparent)]
    Duration(#[from] UnitError),
    /// The bound stands alone.
    #[error("missing unit in {0:?}: did you mean \"{0}%\" or \"{0}ms\"?")]
    NoUnit(String),
}

fn parse(text: &str) -> Result<Threshold, ThresholdProblem> {
    let operators = ['<', '>', '=', '!'];
    let start = text.find(operators).ok_or(ThresholdProblem::Form)?;
    let (left, rest) = text.split_at(start);
    let bound = rest.trim_start_matches(operators);
    let comparison = match &rest[..rest.len() - bound.len()] {
        ">" => Comparison::Above,
        ">=" => Comparison::AtLeast,
        _ => return Err(ThresholdProblem::Comparison),
    };
    let (metric, percentile) = left.trim().split_once('.').ok_or(ThresholdProblem::Form)?;
    Ok(Threshold {
        metric: metric.parse()?,
        percentile: percentile.parse()?,
        comparison,
        bound: parse_bound(bound.trim())?,
    })
}

fn parse_bound(text: &str) -> Result<Bound, ThresholdProblem> {
    let number = |text: &str| {
        text.trim()
            .parse()
            .ok()
            .filter(|number: &f64| number.is_finite())
    };
    if let Some(percent) = text.strip_suffix('%') {
        return number(percent)
            .map(|percent| Bound::Increase(Percent(percent)))
            .ok_or_else(|| ThresholdProblem::Percentage(text.to_owned()));
    }
    if number(text).is_some() {
        return Err(ThresholdProblem::NoUnit(text.to_owned()));
    }
    Ok(Bound::Time(parse_duration(text)?))
}

#[cfg(test)]
mod tests;
