//! Published numbers and claims against what was measured.

use super::findings::{Answer, Findings};
use lastbyte_results::{Estimate, Interval, Percentile};
use lastbyte_study::{Bounds, Check, Claim, Published, Quantity};

/// Whether a published claim is borne out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Every number lies within its bounds, and so does its whole interval.
    Holds,
    /// The whole interval of some number lies outside.
    Fails,
    /// Neither can be known.
    Unknown,
}

impl Verdict {
    /// Its class on a page.
    pub(super) fn class(self) -> &'static str {
        match self {
            Verdict::Holds => "agrees",
            Verdict::Fails => "differs",
            Verdict::Unknown => "unknown",
        }
    }

    /// What a claim does.
    pub(super) fn word(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Fails => "does not hold",
            Verdict::Unknown => "can’t tell",
        }
    }
}

/// A claim, checked.
pub(super) struct CheckedClaim<'a> {
    pub(super) claim: &'a Claim,
    pub(super) verdict: Verdict,
    /// The numbers of each check.
    pub(super) checks: Vec<(&'a Check, Vec<(Answer, Verdict)>)>,
}

/// Whether a published number is what we measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Agreement {
    /// It is as near as was asked for, or where another run could as well have been.
    Agrees,
    /// It is neither.
    Differs,
    /// Connections were too few to say where another run could have been.
    Open,
    /// We have none.
    Unmeasured,
}

/// A published row with its numbers beside ours.
pub(super) struct Compared<'a> {
    pub(super) published: &'a Published,
    pub(super) numbers: Vec<Beside>,
}

/// A published number beside ours.
pub(super) struct Beside {
    pub(super) percentile: Percentile,
    pub(super) published: f64,
    pub(super) ours: Option<Estimate<f64>>,
    pub(super) agreement: Agreement,
}

pub(super) fn check_claims(findings: &Findings) -> Vec<CheckedClaim<'_>> {
    findings
        .study
        .claims
        .iter()
        .map(|claim| {
            let checks: Vec<_> = (claim.checks.iter())
                .map(|check| (check, check_numbers(findings, check)))
                .collect();
            let verdicts = || {
                checks
                    .iter()
                    .flat_map(|(_, numbers)| numbers)
                    .map(|(_, v)| *v)
            };
            let verdict = if verdicts().any(|verdict| verdict == Verdict::Fails) {
                Verdict::Fails
            } else if verdicts().all(|verdict| verdict == Verdict::Holds) && verdicts().count() > 0
            {
                Verdict::Holds
            } else {
                Verdict::Unknown
            };
            CheckedClaim {
                claim,
                verdict,
                checks,
            }
        })
        .collect()
}

fn check_numbers(findings: &Findings, check: &Check) -> Vec<(Answer, Verdict)> {
    let answers = findings.answers(&check.question);
    let verdict = |answer: &Answer| match &answer.number {
        Ok(estimate) => within(estimate, check.within),
        Err(_) => Verdict::Unknown,
    };
    (answers.into_iter())
        .map(|answer| {
            let verdict = verdict(&answer);
            (answer, verdict)
        })
        .collect()
}

/// Whether a number lies within bounds, with its whole interval.
pub(super) fn within(estimate: &Estimate<f64>, bounds: Bounds) -> Verdict {
    let low = estimate.interval.low.unwrap_or(f64::NEG_INFINITY);
    let high = estimate.interval.high.unwrap_or(f64::INFINITY);
    let least = bounds.least.unwrap_or(f64::NEG_INFINITY);
    let most = bounds.most.unwrap_or(f64::INFINITY);
    if low >= least && high <= most {
        Verdict::Holds
    } else if high < least || low > most {
        Verdict::Fails
    } else {
        Verdict::Unknown
    }
}

pub(super) fn compare(findings: &Findings) -> Vec<Compared<'_>> {
    let rows = findings.study.published.iter();
    rows.map(|published| Compared {
        published,
        numbers: beside(findings, published),
    })
    .collect()
}

fn beside(findings: &Findings, published: &Published) -> Vec<Beside> {
    let answers = findings.answers(&published.question);
    let ours = |percentile: &Percentile| {
        let mut answers = answers.iter();
        let answer = answers.find(|answer| answer.percentile == *percentile)?;
        answer.number.as_ref().ok().copied()
    };
    let percentiles = published.question.percentiles.iter();
    (percentiles.zip(&published.values))
        .map(|(percentile, value)| {
            let ours = ours(percentile);
            Beside {
                percentile: *percentile,
                published: *value,
                ours,
                agreement: ours.map_or(Agreement::Unmeasured, |ours| {
                    agreement(published, *value, ours)
                }),
            }
        })
        .collect()
}

fn agreement(published: &Published, value: f64, ours: Estimate<f64>) -> Agreement {
    let most = match published.question.quantity {
        Quantity::Time => published.within / 100.0 * value.abs(),
        Quantity::Increase
        | Quantity::Later { .. }
        | Quantity::Sooner { .. }
        | Quantity::Slowdown { .. }
        | Quantity::Authentication
        | Quantity::Message(_)
        | Quantity::Ratio { .. }
        | Quantity::Multiple { .. } => published.within,
    };
    let near = (ours.value - value).abs() <= most;
    let Interval { low, high } = prediction(ours);
    match (low, high) {
        _ if near => Agreement::Agrees,
        (Some(low), _) if value < low => Agreement::Differs,
        (_, Some(high)) if value > high => Agreement::Differs,
        (Some(_), Some(_)) => Agreement::Agrees,
        _ => Agreement::Open,
    }
}

/// Where another run of as many connections could as well have been, 19 times in 20: it has as much luck
/// of its own as ours had, so the interval is wider by the root of two.
pub(super) fn prediction(ours: Estimate<f64>) -> Interval<f64> {
    let wider = |end: f64| ours.value + std::f64::consts::SQRT_2 * (end - ours.value);
    Interval {
        low: ours.interval.low.map(wider),
        high: ours.interval.high.map(wider),
    }
}
