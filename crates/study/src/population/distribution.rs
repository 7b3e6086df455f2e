//! What one parameter is drawn from.

use std::f64::consts::TAU;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lastbyte_link::{Bytes, Loss, Rate, format_duration};

use super::super::parameter::{Reading, Value};
use super::super::quoted::quoted;
use super::super::{Cell, Parameter, StudyFolder};

/// What one parameter is drawn from.
#[derive(Clone, Debug)]
pub enum Distribution {
    /// One of these.
    Values(Weighted),
    /// A number, as it is distributed; none below the first of `bounds`, none above the second.
    Number {
        /// How.
        shape: Shape,
        /// In nanoseconds, bytes, bits per second, a count, or a fraction.
        bounds: (f64, f64),
    },
}

/// How a number is distributed. Numbers are nanoseconds, bytes, bits per
/// second, counts, or fractions.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// Evenly between these.
    Uniform {
        /// From here.
        least: f64,
        /// Up to here.
        most: f64,
    },
    /// Its logarithm is normal.
    LogNormal {
        /// Half is below.
        median: f64,
        /// 95 % is below.
        p95: f64,
    },
    /// As times between events are that know nothing of each other.
    Exponential {
        /// Its mean.
        mean: f64,
    },
    /// As it was measured: percentiles from 0 to 100 with their values, and straight lines between them.
    Percentiles(Vec<(f64, f64)>),
}

/// Texts, each with its share.
#[derive(Clone, Debug, PartialEq)]
pub struct Weighted {
    values: Vec<Arc<str>>,
    weights: Vec<f64>,
    /// Sums of weights up to each.
    sums: Vec<f64>,
}

/// Why something can't be drawn from.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DistributionProblem {
    /// There is nothing.
    #[error("a population can't be drawn from nothing: give at least one value")]
    Empty,
    /// Not as many of one as of the other.
    #[error("{values} values and {weights} weights: give each value its weight")]
    Lengths {
        /// Of these.
        values: usize,
        /// Of those.
        weights: usize,
    },
    /// A weight that is none.
    #[error("weight {0} can't be: weights are numbers from 0 on")]
    Weight(String),
    /// All weights are zero.
    #[error("the weights sum to zero: give at least one value a weight above 0")]
    NoWeight,
    /// Their sum is no number any more.
    #[error("the weights sum to more than a number can hold: make them smaller")]
    TooMuchWeight,
    /// A parameter that has no numbers between two values.
    #[error(
        "{0} has no numbers to draw between: list values, as {{ values = [...], weights = [...] }}"
    )]
    NoNumber(&'static str),
    /// Values that are in no order.
    #[error("{0}")]
    Order(String),
}

impl Weighted {
    /// Texts with their weights; without weights, all have the same.
    ///
    /// # Errors
    ///
    /// When there is nothing that could be drawn.
    pub fn new(
        values: Vec<Arc<str>>,
        weights: Option<Vec<f64>>,
    ) -> Result<Weighted, DistributionProblem> {
        let weights = weights.unwrap_or_else(|| vec![1.0; values.len()]);
        if values.is_empty() {
            return Err(DistributionProblem::Empty);
        }
        if values.len() != weights.len() {
            return Err(DistributionProblem::Lengths {
                values: values.len(),
                weights: weights.len(),
            });
        }
        let sums = sums(&weights)?;
        Ok(Weighted {
            values,
            weights,
            sums,
        })
    }

    /// The texts.
    pub fn values(&self) -> &[Arc<str>] {
        &self.values
    }

    /// The one that stands at a place from 0 to 1.
    pub(super) fn at(&self, place: f64) -> Arc<str> {
        let values = self.values.get(index_at(&self.sums, place));
        values.cloned().unwrap_or_default()
    }
}

/// Sums of weights up to each.
pub(super) fn sums(weights: &[f64]) -> Result<Vec<f64>, DistributionProblem> {
    let wrong = weights
        .iter()
        .find(|weight| !(weight.is_finite() && **weight >= 0.0));
    if let Some(weight) = wrong {
        return Err(DistributionProblem::Weight(weight.to_string()));
    }
    let mut sum = 0.0;
    let sums: Vec<f64> = weights
        .iter()
        .map(|weight| {
            sum += weight;
            sum
        })
        .collect();
    match sum {
        0.0 => Err(DistributionProblem::NoWeight),
        _ if sum.is_infinite() => Err(DistributionProblem::TooMuchWeight),
        _ => Ok(sums),
    }
}

/// The first whose sum is above a place from 0 to 1.
pub(super) fn index_at(sums: &[f64], place: f64) -> usize {
    let all = sums.last().copied().unwrap_or_default();
    let target = place * all;
    let index = sums.partition_point(|sum| *sum <= target);
    // Who has no weight has no place, at the end either.
    let last = sums.partition_point(|sum| *sum < all);
    index.min(last)
}

impl Distribution {
    /// One of numbers of `parameter`.
    ///
    /// # Errors
    ///
    /// When the parameter has none.
    pub fn of_numbers(
        parameter: Parameter,
        shape: Shape,
        bounds: (Option<f64>, Option<f64>),
    ) -> Result<Distribution, DistributionProblem> {
        if text(parameter, 1.0).is_none() {
            return Err(DistributionProblem::NoNumber(parameter.name()));
        }
        let (lowest, highest) = range(parameter);
        let bounds = (
            bounds.0.unwrap_or(lowest).max(lowest),
            bounds.1.unwrap_or(highest).min(highest),
        );
        if bounds.0 > bounds.1 {
            return Err(DistributionProblem::Order(
                "least is above most: swap them".to_owned(),
            ));
        }
        Ok(Distribution::Number { shape, bounds })
    }

    /// What is drawn; `place` gives places from 0 to 1, each of a name.
    pub(super) fn at(&self, parameter: Parameter, place: impl Fn(&str) -> f64) -> Arc<str> {
        match self {
            Distribution::Values(values) => values.at(place("")),
            Distribution::Number { shape, bounds } => {
                let drawn = shape.at(place).clamp(bounds.0, bounds.1);
                text(parameter, drawn).unwrap_or_default().into()
            }
        }
    }

    /// As a study would say it.
    pub(super) fn to_toml(&self, parameter: Parameter) -> String {
        match self {
            Distribution::Values(values) => values.to_string(),
            Distribution::Number { shape, bounds } => {
                let text = |number| format!("{:?}", text(parameter, number).unwrap_or_default());
                let mut entries: Vec<String> = match shape {
                    Shape::Uniform { least, most } => {
                        vec![format!("uniform = [{}, {}]", text(*least), text(*most))]
                    }
                    Shape::LogNormal { median, p95 } => vec![
                        format!("median = {}", text(*median)),
                        format!("p95 = {}", text(*p95)),
                    ],
                    Shape::Exponential { mean } => vec![format!("mean = {}", text(*mean))],
                    Shape::Percentiles(points) => {
                        let points: Vec<_> = points
                            .iter()
                            .map(|(percent, value)| format!("\"{percent}\" = {}", text(*value)))
                            .collect();
                        vec![format!("percentiles = {{ {} }}", points.join(", "))]
                    }
                };
                entries.push(format!("least = {}", text(bounds.0)));
                entries.push(format!("most = {}", text(bounds.1)));
                format!("{{ {} }}", entries.join(", "))
            }
        }
    }
}

impl Shape {
    fn at(&self, place: impl Fn(&str) -> f64) -> f64 {
        /// The normal distribution's 95th percentile.
        const P95: f64 = 1.644_853_626_951_472_7;
        match self {
            Shape::Uniform { least, most } => least + (most - least) * place(""),
            Shape::LogNormal { median, p95 } => {
                // Box and Muller 1958: the first of the two.
                let (one, other) = (1.0 - place(""), place(" angle"));
                let normal = (-2.0 * one.ln()).sqrt() * (TAU * other).cos();
                median * ((p95 / median).ln() / P95 * normal).exp()
            }
            Shape::Exponential { mean } => -mean * (1.0 - place("")).ln(),
            Shape::Percentiles(points) => between(points, place("") * 100.0),
        }
    }
}

/// On the line between the points on either side.
fn between(points: &[(f64, f64)], at: f64) -> f64 {
    let after = points.partition_point(|(percent, _)| *percent < at);
    match (
        after.checked_sub(1).and_then(|before| points.get(before)),
        points.get(after),
    ) {
        (Some((left, low)), Some((right, high))) => {
            low + (high - low) * (at - left) / (right - left)
        }
        (None, Some((_, value))) | (Some((_, value)), None) => *value,
        (None, None) => 0.0,
    }
}

impl fmt::Display for Weighted {
    /// As a study would say it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values: Vec<_> = self.values.iter().map(quoted).collect();
        let weights: Vec<_> = self.weights.iter().map(f64::to_string).collect();
        let (values, weights) = (values.join(", "), weights.join(", "));
        f.write_str(&format!("{{ values = [{values}], weights = [{weights}] }}"))
    }
}

/// What a text of a parameter is as a number: nanoseconds, bytes, bits per second, a count, or a fraction.
/// `None` for what is none.
pub(crate) fn number(parameter: Parameter, text: &str) -> Option<f64> {
    let mut cell = Cell::default();
    parameter.set(&mut cell, text, &StudyFolder::HERE).ok()?;
    Some(match parameter.value(&cell)? {
        Value::Time(time) => time.as_nanos() as f64,
        Value::Bytes(Bytes(bytes)) => bytes as f64,
        Value::Rate(rate) => rate?.bits_per_second() as f64,
        Value::Count(count) => f64::from(count),
        Value::Loss(Loss::Random(loss)) => loss.fraction(),
        Value::Loss(Loss::Bursts { .. } | Loss::GilbertElliott { .. }) | Value::Text(_) => {
            return None;
        }
    })
}

/// Such a number as a text: times in whole microseconds, rates in whole bytes, shares in millionths.
pub(crate) fn text(parameter: Parameter, number: f64) -> Option<String> {
    Some(match parameter.value(&Cell::default())? {
        Value::Time(_) => format_duration(Duration::from_micros((number / 1e3).round() as u64)),
        Value::Bytes(_) => Bytes(number.round() as u64).to_string(),
        Value::Rate(_) => {
            let bits = (number / 8.0).round().max(1.0) as u64 * 8;
            Rate::from_bits_per_second(bits)?.to_string()
        }
        Value::Count(_) => (number.round() as u64).to_string(),
        Value::Loss(_) => format!("{}%", (number * 1e6).round() / 1e4),
        Value::Text(_) => return None,
    })
}

/// The numbers that a parameter can be.
fn range(parameter: Parameter) -> (f64, f64) {
    /// No user waits longer.
    const LONGEST: Duration = Duration::from_secs(3600);
    match (parameter.reading(), parameter.value(&Cell::default())) {
        (Reading::Whole(range), _) => (f64::from(*range.start()), f64::from(*range.end())),
        (Reading::Bytes(most), _) => (0.0, most.0 as f64),
        (_, Some(Value::Time(_))) => (0.0, LONGEST.as_nanos() as f64),
        (_, Some(Value::Rate(_))) => (8.0, 1e12),
        (_, Some(Value::Loss(_))) => (0.0, 1.0),
        _ => (0.0, f64::MAX),
    }
}
