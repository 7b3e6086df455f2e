//! Whether two sets of results agree, sample by sample.
//!
//! Agreement is shown, not assumed: a percentile agrees when the whole interval of its difference
//! is within a margin that was stated beforehand, and differs when the whole interval is outside.
//! Anything else needs more connections. Intervals are so wide that, over all comparisons
//! together, a wrong verdict has a probability of at most [`FAMILY_WISE_ERROR`] (Bonferroni).

mod confidence;
mod margin;
mod source;
#[cfg(test)]
mod tests;

pub use margin::{Margin, MarginError, MarginProblem, Margins};
pub use source::{Computing, Key, Nature, Results, SampleTimes, SourceError, arithmetic};

use std::fmt;
use std::time::Duration;

use self::confidence::{Confidence, Ordered, ratio};
use self::source::ARITHMETIC;
use crate::{Interval, Metric, Percent, Percentile, Validity};

/// How probable one wrong verdict or more is, at most, over all comparisons together.
pub const FAMILY_WISE_ERROR: f64 = 0.05;

/// What came of comparing two sets of results, A and B.
#[derive(Clone, Debug)]
pub struct Validation {
    /// What A and B are called.
    pub names: [String; 2],
    /// What carried their bytes: `live`, `virtual`, or `arithmetic`, which carries none.
    pub engines: [&'static str; 2],
    /// What was asked of the differences.
    pub margins: Margins,
    /// How many percentiles were judged.
    pub comparisons: usize,
    /// The samples that A and B have in common, in the order of A.
    pub samples: Vec<SampleComparison>,
    /// What to mind, one line each.
    pub warnings: Vec<String>,
}

/// One arm in one cell, in A and in B.
#[derive(Clone, Debug)]
pub struct SampleComparison {
    /// Which sample.
    pub key: Key,
    /// Its connections in A and in B; `None` where times were computed.
    pub connections: [Option<Connections>; 2],
    /// The metrics that both have.
    pub metrics: Vec<MetricComparison>,
}

/// The connections of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connections {
    /// How many there are.
    pub all: usize,
    /// How many of them failed or timed out.
    pub failed: usize,
}

/// One metric of one sample, in A and in B.
#[derive(Clone, Debug)]
pub struct MetricComparison {
    /// The metric.
    pub metric: Metric,
    /// The largest distance between the two distribution functions, from 0 to 1 (Kolmogorov and
    /// Smirnov). `None` where all times of one side are equal: then it says no more than their order.
    pub distance: Option<f64>,
    /// Its percentiles.
    pub percentiles: Vec<Comparison>,
    times: [Ordered; 2],
}

/// One percentile of one metric of one sample, in A and in B.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// The percentile.
    pub percentile: Percentile,
    /// What it is in A and in B; `None` where it leans on connections that failed.
    pub times: [Option<Duration>; 2],
    /// 100 x (B - A) / A; `None` where only one side has a time.
    pub difference: Option<Percent>,
    /// Where the difference could as well be. The level is that of the whole [`Validation`]. An end
    /// is absent where connections are too few, or too many failed.
    pub interval: Interval<Percent>,
    /// What was asked of it, and the answer; `None` if it has no margin.
    pub judgement: Option<Judgement>,
}

/// A margin and the verdict on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judgement {
    /// How far the difference may be from zero, either way.
    pub margin: Percent,
    /// Whether it is.
    pub verdict: Verdict,
}

/// Whether A and B agree. Later ones outweigh earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The whole interval is within the margin.
    Agrees,
    /// The interval is partly within and partly outside.
    Undecided {
        /// About how many connections a sample needs for a decision. `None` where the difference
        /// is too near to the margin, or connections that fail are in the way.
        needed: Option<u64>,
    },
    /// The whole interval is outside of the margin.
    Differs,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Verdict::Agrees => "agrees",
            Verdict::Undecided { .. } => "undecided",
            Verdict::Differs => "differs",
        })
    }
}

/// No sample is in both results.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NothingInCommon {
    /// Both were measured.
    #[error("{a:?} and {b:?} have no sample in common: measure the same arms in the same cells")]
    Measured {
        /// One's name.
        a: String,
        /// The other's.
        b: String,
    },
    /// One is arithmetic.
    #[error(
        "{measured:?} has no sample that arithmetic can tell: it takes cells without loss, jitter and queues that overflow, \
         in which a connection completes"
    )]
    Arithmetic {
        /// The name of what was measured.
        measured: String,
    },
}

/// Compares the samples that `a` and `b` have in common.
///
/// # Errors
///
/// [`NothingInCommon`] if there are none.
pub fn validate(a: &Results, b: &Results, margins: Margins) -> Result<Validation, NothingInCommon> {
    let pairs: Vec<[&SampleTimes; 2]> = (a.samples.iter())
        .filter_map(|of_a| Some([of_a, b.sample(&of_a.key)?]))
        .collect();
    if pairs.is_empty() {
        let [name_a, name_b] = [a, b].map(|results| results.name.clone());
        return Err(match (a.engine, b.engine) {
            (_, ARITHMETIC) => NothingInCommon::Arithmetic { measured: name_a },
            (ARITHMETIC, _) => NothingInCommon::Arithmetic { measured: name_b },
            _ => NothingInCommon::Measured {
                a: name_a,
                b: name_b,
            },
        });
    }
    let comparisons = pairs
        .iter()
        .map(|[sample, _]| sample.key.cell.metrics().len() * margins.of(&sample.key.cell).len())
        .sum();
    let tail = FAMILY_WISE_ERROR / 2.0 / f64::max(comparisons as f64, 1.0);
    Ok(Validation {
        warnings: warnings([a, b], &pairs),
        samples: pairs
            .into_iter()
            .map(|pair| SampleComparison::new(pair, &margins, tail))
            .collect(),
        names: [a.name.clone(), b.name.clone()],
        engines: [a.engine, b.engine],
        margins,
        comparisons,
    })
}

impl Validation {
    /// The confidence of each interval, from 0 to 1.
    pub fn level(&self) -> f64 {
        1.0 - FAMILY_WISE_ERROR / f64::max(self.comparisons as f64, 1.0)
    }

    /// The weightiest verdict of all.
    pub fn verdict(&self) -> Verdict {
        let verdicts = self.samples.iter().filter_map(SampleComparison::verdict);
        verdicts
            .max()
            .unwrap_or(Verdict::Undecided { needed: None })
    }

    /// All verdicts.
    pub fn verdicts(&self) -> impl Iterator<Item = Verdict> {
        let metrics = self.samples.iter().flat_map(|sample| &sample.metrics);
        metrics.flat_map(MetricComparison::verdicts)
    }
}

impl SampleComparison {
    fn new(pair: [&SampleTimes; 2], margins: &Margins, tail: f64) -> SampleComparison {
        let [a, _] = pair;
        SampleComparison {
            key: a.key.clone(),
            connections: pair.map(SampleTimes::connections),
            metrics: a
                .key
                .cell
                .metrics()
                .iter()
                .filter(|metric| pair.iter().any(|sample| sample.has(**metric)))
                // What arithmetic has no time for is not compared.
                .filter(|metric| {
                    let is_left_out = |sample: &&SampleTimes| {
                        sample.nature == Nature::Computed
                            && sample.times(**metric).all(|time| time.is_none())
                    };
                    !pair.iter().any(is_left_out)
                })
                .map(|metric| MetricComparison::new(pair, *metric, margins, tail))
                .collect(),
        }
    }

    /// The weightiest verdict on its metrics; `None` if nothing was asked.
    pub fn verdict(&self) -> Option<Verdict> {
        self.metrics
            .iter()
            .filter_map(MetricComparison::verdict)
            .max()
    }
}

impl MetricComparison {
    fn new(
        pair: [&SampleTimes; 2],
        metric: Metric,
        margins: &Margins,
        tail: f64,
    ) -> MetricComparison {
        let times = pair.map(|sample| ordered(sample, metric));
        let [a, b] = &times;
        let connections = a.times().len().max(b.times().len());
        let asked = margins.of(&pair[0].key.cell);
        let compare = |percentile: Percentile| {
            let [of_a, of_b] = [a, b].map(|times| times.percentile(percentile));
            let known_a = confidence(pair[0], a, percentile);
            let known_b = confidence(pair[1], b, percentile);
            let difference = percent(ratio(of_b, of_a));
            let [low, high] = known_b.ratio_to(&known_a, tail).map(percent);
            let margin = asked.iter().find(|margin| margin.percentile == percentile);
            let finite = |end: f64| end.is_finite().then_some(Percent(end));
            Comparison {
                percentile,
                times: [of_a, of_b].map(duration),
                difference: finite(difference),
                interval: Interval {
                    low: finite(low),
                    high: finite(high),
                },
                judgement: margin.map(|margin| Judgement {
                    margin: margin.most,
                    verdict: judge(&Evidence {
                        difference,
                        low,
                        high,
                        margin: margin.most.0,
                        percentile,
                        connections,
                        tail,
                    }),
                }),
            }
        };
        MetricComparison {
            metric,
            distance: (!a.is_one() && !b.is_one()).then(|| a.distance(b)),
            percentiles: margins.percentiles().into_iter().map(compare).collect(),
            times,
        }
    }

    /// The weightiest verdict on its percentiles; `None` if nothing was asked.
    pub fn verdict(&self) -> Option<Verdict> {
        self.verdicts().max()
    }

    fn verdicts(&self) -> impl Iterator<Item = Verdict> {
        let judgements = self.percentiles.iter().filter_map(|one| one.judgement);
        judgements.map(|judgement| judgement.verdict)
    }

    /// The quantile `share`, from 0 to 1, of A and of B in nanoseconds; `None` where a side has
    /// none because connections failed.
    pub fn quantiles(&self, share: f64) -> Option<[f64; 2]> {
        let quantile = |times: &Ordered| {
            let times = times.times();
            let rank = (times.len().checked_sub(1)? as f64 * share).round();
            times
                .get(rank as usize)
                .copied()
                .filter(|time| time.is_finite())
        };
        let [a, b] = &self.times;
        Some([quantile(a)?, quantile(b)?])
    }
}

fn ordered(sample: &SampleTimes, metric: Metric) -> Ordered {
    let times = sample.times(metric);
    times
        .map(|time| time.map_or(f64::INFINITY, |time| time.as_nanos() as f64))
        .collect()
}

/// What the times of a sample tell of a percentile. Where nothing is left to chance and all times are
/// one, it is known.
fn confidence(sample: &SampleTimes, times: &Ordered, percentile: Percentile) -> Confidence {
    let is_known = match sample.nature {
        Nature::Computed => true,
        Nature::Measured => !sample.key.has_chance() && times.is_constant(),
    };
    if is_known {
        Confidence::certain(times.percentile(percentile))
    } else {
        Confidence::of(times, percentile)
    }
}

/// What a verdict depends on. Differences are in percent, and infinite where one side never comes.
struct Evidence {
    difference: f64,
    low: f64,
    high: f64,
    margin: f64,
    percentile: Percentile,
    /// Of the larger sample.
    connections: usize,
    /// The confidence outside of the interval, on either side.
    tail: f64,
}

fn judge(evidence: &Evidence) -> Verdict {
    let Evidence {
        low, high, margin, ..
    } = *evidence;
    if low >= -margin && high <= margin {
        Verdict::Agrees
    } else if low > margin || high < -margin {
        Verdict::Differs
    } else {
        Verdict::Undecided {
            needed: needed(evidence),
        }
    }
}

/// About how many connections would decide: an interval narrows with their square root.
fn needed(evidence: &Evidence) -> Option<u64> {
    /// No sample can have more.
    const MOST: f64 = 1e6;

    let Evidence {
        difference,
        low,
        high,
        margin,
        ..
    } = *evidence;
    let connections = evidence.connections as f64;
    let needed = if low.is_finite() && high.is_finite() {
        let reach = f64::max(high - difference, difference - low);
        connections * (reach / (difference.abs() - margin)).powi(2)
    } else {
        // That all connections are on one side of the percentile must be improbable enough.
        let share = f64::from(evidence.percentile.per_mille()) / 1000.0;
        let least = evidence.tail.ln() / f64::max(share, 1.0 - share).ln();
        // Else it is connections that failed that leave it open.
        if least <= connections {
            return None;
        }
        1.5 * least
    };
    (needed <= MOST).then(|| two_digits(needed.max(connections)))
}

/// Rounded up to two digits.
fn two_digits(number: f64) -> u64 {
    let unit = 10_f64.powf((number.max(1.0).log10().floor() - 1.0).max(0.0));
    ((number / unit).ceil() * unit) as u64
}

/// How far a ratio is from 1. Zero is of what never comes, as far away as infinity.
fn percent(ratio: f64) -> f64 {
    if ratio > 0.0 {
        100.0 * (ratio - 1.0)
    } else {
        f64::NEG_INFINITY
    }
}

fn duration(nanos: f64) -> Option<Duration> {
    nanos
        .is_finite()
        .then(|| Duration::from_nanos(nanos.round() as u64))
}

/// What the reader of a verdict should know about the samples.
fn warnings(sides: [&Results; 2], pairs: &[[&SampleTimes; 2]]) -> Vec<String> {
    let are = |samples| match samples {
        1 => "1 sample is".to_owned(),
        _ => format!("{samples} samples are"),
    };
    let mut warnings = Vec::new();
    for side in sides {
        let alone = side.samples.len().saturating_sub(pairs.len());
        if alone > 0 {
            warnings.push(format!("{} only in {:?}", are(alone), side.name));
        }
        let invalid = |sample: &&SampleTimes| matches!(sample.validity, Validity::Invalid(_));
        let invalid = side.samples.iter().filter(invalid).count();
        if invalid > 0 {
            warnings.push(format!(
                "{} marked invalid in {:?}",
                are(invalid),
                side.name
            ));
        }
    }
    let mut arms: Vec<&str> = pairs
        .iter()
        .filter(|[a, b]| a.chain_digest != b.chain_digest)
        .map(|[a, _]| a.key.arm.as_str())
        .collect();
    arms.sort_unstable();
    arms.dedup();
    let computed = |[a, b]: &[&SampleTimes; 2]| {
        let natures = [a.nature, b.nature];
        natures.contains(&Nature::Computed) && a.computing != b.computing
    };
    if pairs.iter().any(computed) {
        warnings.push("arithmetic leaves out the CPU time that was measured".to_owned());
    }
    let other_buffers = |[a, b]: &[&SampleTimes; 2]| {
        let [of_a, of_b] = [a, b].map(|side| side.key.cell.hosts.buffers.or(side.buffers));
        of_a != of_b
    };
    if pairs.iter().any(other_buffers) {
        warnings.push(
            "hosts had Linux's own buffers on one side and large ones on the other, as nothing was said: measure both with \
             buffers = \"large\", or with \"linux\""
                .to_owned(),
        );
    }
    for arm in arms {
        warnings.push(format!(
            "{arm}: A and B sent different chains, whose sizes may differ by some bytes"
        ));
    }
    warnings
}
