//! What a run must not exceed: `ttlb.p75 > 10%`, `handshake.p90 >= 300ms`, `ttlb.p75 > 2% since
//! saved`.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use lastbyte_link::{UnitError, format_duration, parse_duration};
use thiserror::Error;

use super::number::{interval, millisecond_digits, milliseconds, percent_digits};
use super::{
    Absent, ArmSummary, Estimate, Interval, Measured, Metric, MetricSummary, NoPercentile, Percent,
    Percentile, Role, Summary,
};
use lastbyte_study::UnknownName;

/// What tells a change from an increase.
const SINCE: &str = "since";
const SAVED: &str = "saved";

/// What makes a run fail: a metric's percentile that exceeds a bound.
///
/// A percentage bounds the increase of every arm over the baseline, a percentage `since saved` the
/// change of every arm, the baseline too, and a duration the time of every arm. A percentile that is absent because connections failed is infinitely late and exceeds all.
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
    /// The change since results were saved.
    Change(Percent),
}

/// What a threshold says of one sample, with the number and its interval in words that follow the arm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is not crossed.
    Kept(String),
    /// It is crossed.
    Crossed(String),
    /// Noise hides whether it is.
    Unclear(String),
    /// There is nothing that could cross it.
    Idle(Absent),
}

impl Threshold {
    /// One line for each sample of `summary` that crosses the threshold.
    pub fn crossings(&self, summary: &Summary) -> Vec<String> {
        self.lines(summary, |verdict| match verdict {
            Verdict::Crossed(what) => Some(what),
            _ => None,
        })
    }

    /// One line for each sample of `summary` of which noise hides whether it does.
    pub fn doubts(&self, summary: &Summary) -> Vec<String> {
        self.lines(summary, |verdict| match verdict {
            Verdict::Unclear(what) => Some(what),
            _ => None,
        })
    }

    /// `None` if the threshold is not about this arm.
    pub fn verdict(&self, arm: &ArmSummary) -> Option<Verdict> {
        let metric = arm.metric(self.metric);
        match self.bound {
            Bound::Increase(_) if arm.role == Role::Baseline => None,
            Bound::Increase(bound) => {
                let describe = |increase| format!("increases by {}", percents(increase));
                Some(match metric.increases.get(&self.percentile) {
                    // Connections that say nothing cross nothing.
                    Some(Ok(increase)) if increase.interval.is_unknown() => {
                        Verdict::Unclear(describe(*increase))
                    }
                    _ => self.judge(&metric.increases, bound, describe),
                })
            }
            Bound::Time(bound) => Some(self.judge(&metric.percentiles, bound, |time| {
                let interval = interval(&time.interval, millisecond_digits);
                format!("is {} {interval}", milliseconds(time.value))
            })),
            Bound::Change(bound) => Some(self.judge_change(metric, bound)),
        }
    }

    fn lines(&self, summary: &Summary, pick: impl Fn(Verdict) -> Option<String>) -> Vec<String> {
        let mut lines = Vec::new();
        for cell in &summary.cells {
            for arm in &cell.arms {
                if let Some(what) = self.verdict(arm).and_then(&pick) {
                    lines.push(format!("{self}: {}{} {what}", arm.label, cell.place()));
                }
            }
        }
        lines
    }

    fn judge<T: Copy + PartialOrd>(
        &self,
        measured: &BTreeMap<Percentile, Measured<T>>,
        bound: T,
        describe: impl Fn(Estimate<T>) -> String,
    ) -> Verdict {
        match measured.get(&self.percentile) {
            None => Verdict::Crossed("was not summarised".to_owned()),
            Some(Ok(estimate)) if self.is_exceeded(bound, estimate.value) => {
                Verdict::Crossed(describe(*estimate))
            }
            Some(Ok(estimate)) => Verdict::Kept(describe(*estimate)),
            Some(Err(absent @ (Absent::NoData | Absent::NoTcp))) => Verdict::Idle(*absent),
            Some(Err(absent)) => Verdict::Crossed(format!("is absent: {absent}")),
        }
    }

    /// A change that noise alone could make crosses nothing: its interval must be without zero, or lie
    /// beyond the bound as a whole.
    fn judge_change(&self, metric: &MetricSummary, bound: Percent) -> Verdict {
        let describe = |change| format!("changed by {}", percents(change));
        let change = match metric.changes.get(&self.percentile) {
            Some(Ok(change)) => *change,
            // Whatever it is now, it was infinitely late.
            Some(Err(absent @ Absent::NoSaved)) => {
                return Verdict::Unclear(format!("has no change: {absent}"));
            }
            _ => return self.judge(&metric.changes, bound, describe),
        };
        let Interval { low, high } = change.interval;
        let beyond = low.is_some_and(|low| self.is_exceeded(bound, low));
        let within = high.is_some_and(|high| !self.is_exceeded(bound, high));
        let exceeded = self.is_exceeded(bound, change.value);
        let what = describe(change);
        match () {
            () if exceeded && (beyond || !change.interval.holds_zero()) => Verdict::Crossed(what),
            () if exceeded || !within => Verdict::Unclear(what),
            () => Verdict::Kept(what),
        }
    }

    fn is_exceeded<T: PartialOrd>(&self, bound: T, value: T) -> bool {
        match self.comparison {
            Comparison::Above => value > bound,
            Comparison::AtLeast => value >= bound,
        }
    }
}

/// `3.1 % [2.5, 3.8]`
fn percents(estimate: Estimate<Percent>) -> String {
    let Estimate {
        value,
        interval: of,
    } = estimate;
    format!(
        "{} % {}",
        percent_digits(value),
        interval(&of, percent_digits)
    )
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
            Bound::Change(Percent(percent)) => write!(f, "{percent}% {SINCE} {SAVED}"),
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
    /// A change is since something else, or no percentage.
    #[error("a change is written \"2% since saved\", with a percentage")]
    Change,
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
    if let Some((bound, what)) = text.split_once(SINCE) {
        return match parse_bound(bound.trim_end()) {
            Ok(Bound::Increase(percent)) if what.trim() == SAVED => Ok(Bound::Change(percent)),
            Err(problem @ ThresholdProblem::Percentage(_)) => Err(problem),
            _ => Err(ThresholdProblem::Change),
        };
    }
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
