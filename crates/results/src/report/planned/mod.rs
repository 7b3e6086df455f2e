//! What a chain will cost the users of a site, told: in a terminal, as JSON, and as a page.

mod json;
mod page;
#[cfg(test)]
mod tests;
mod text;

pub use self::json::{SCHEMA, json};
pub use self::page::page;
pub use self::text::text;

use crate::plan::{Gain, Plan, Tale, Usual};
use crate::results::number::{self, difference_digits, interval};
use crate::results::{Environment, Estimate, Percentile, Slower, Step, Waiting};

use super::answer::FELT;
use super::text::{UNCERTAIN, metric};
use super::waiting::{Waits, both};

/// All that is told.
#[derive(Clone, Debug)]
pub struct Planned<'a> {
    /// What was measured.
    pub plan: &'a Plan,
    /// What it tells.
    pub tale: &'a Tale,
    /// The percentiles of differences that are told.
    pub percentiles: &'a [Percentile],
    /// What was taken for granted.
    pub usual: &'a [Usual],
    /// Whose connections they are: the profile and tables that were given.
    pub sources: &'a [String],
    /// What to mind, in lines.
    pub warnings: &'a [String],
    /// Where it was measured.
    pub environment: &'a Environment,
    /// The command that gives the same.
    pub command: &'a str,
}

impl Planned<'_> {
    /// All connections, as planned.
    fn all(&self) -> Option<&Waiting> {
        self.tale.planned.first()
    }

    /// Who waits, and how long: all connections, and then each class.
    fn waits(&self) -> Vec<Waits> {
        let named = |waiting: &Waiting| match &waiting.class {
            None => ("all".to_owned(), waiting.clone()),
            Some(class) => (class.clone(), waiting.clone()),
        };
        let rows: Vec<_> = self.tale.planned.iter().map(named).collect();
        both(
            self.tale.metric,
            None,
            &self.plan.today.name,
            &rows,
            self.percentiles,
        )
    }

    /// What it comes to, in sentences.
    fn answer(&self) -> Vec<String> {
        let Some(all) = self.all() else {
            return vec!["No connection was measured.".to_owned()];
        };
        let what = metric(self.tale.metric);
        let slower = slower(all, FELT);
        let mut sentences = vec![format!(
            "With {} in place of {}, {} of connections wait more than {FELT} longer for their {what}; {} \
             wait at least a round trip longer.",
            self.plan.planned.arm.label,
            self.plan.today.arm.label,
            share(slower.connections),
            share(self::slower(all, Step::RoundTrips(1)).connections),
        )];
        sentences.push(match all.mean {
            Some(mean) => {
                let is_none = mean.interval.holds_zero();
                let (mean, longer) = match mean.value < 0.0 {
                    true => (mean.negated(), "less"),
                    false => (mean, "longer"),
                };
                let each = format!("each waits {} ms {longer}", estimate(mean));
                match is_none {
                    true => format!(
                        "In the mean, no difference was shown: {each}, and this interval holds zero."
                    ),
                    false => format!(
                        "In the mean, {each}; a million connections together wait {} {longer}.",
                        hours(mean.map(|mean| mean * 1e6))
                    ),
                }
            }
            None => "How long they wait together is not known, since connections failed.".to_owned(),
        });
        let best = self.tale.levers.first();
        let gain = best.and_then(|(lever, gain)| Some((lever, gain, gain.mean()?)));
        sentences.push(match gain {
            Some((lever, gain, mean)) if mean.interval.low.is_some_and(|low| low > 0.0) => {
                let gains = format!(
                    "Of what could win it back, {} ({}) gains most: {} ms for each connection",
                    lever.name,
                    lever.words(&self.plan.amounts),
                    estimate(mean),
                );
                let left = self::slower(&gain.than_today, FELT).connections;
                // A packet that is lost at another time costs another connection.
                match left.value > slower.connections.value {
                    false => format!(
                        "{gains}, which leaves {} that wait more than {FELT} longer than today.",
                        share(left)
                    ),
                    true => format!(
                        "{gains}. With it, {} wait more than {FELT} longer than today, others than without it: where \
                         packets are lost, another connection is hit.",
                        share(left)
                    ),
                }
            }
            _ => "None of the levers gains anything that can be told from nothing.".to_owned(),
        });
        sentences
    }

    /// Levers alone, and then together.
    fn gains(&self) -> impl Iterator<Item = (String, &Gain)> {
        let alone = self.tale.levers.iter();
        let alone = alone.map(|(lever, gain)| {
            (
                format!("{}: {}", lever.name, lever.words(&self.plan.amounts)),
                gain,
            )
        });
        let together = self.tale.together.iter();
        alone.chain(together.map(|gain| (gain.name.clone(), gain)))
    }
}

fn slower(waiting: &Waiting, step: Step) -> Slower {
    let mut all = waiting.slower.iter();
    let nothing = Estimate {
        value: 0.0,
        interval: crate::results::Interval {
            low: None,
            high: None,
        },
    };
    all.find(|slower| slower.step == step)
        .copied()
        .unwrap_or(Slower {
            step,
            connections: nothing,
            users: nothing,
        })
}

/// `11.4 % [11.2, 11.6]`.
fn share(share: Estimate<f64>) -> String {
    let (share, interval) = number::share(share);
    format!("{share} {interval}")
}

/// `3.1 [2.9, 3.3]`, in milliseconds.
fn estimate(time: Estimate<f64>) -> String {
    format!(
        "{} {}",
        difference_digits(time.value),
        interval(&time.interval, difference_digits)
    )
}

/// The same, marked where it may as well be nothing.
fn known(time: Option<Estimate<f64>>) -> String {
    time.map_or_else(
        || "not known".to_owned(),
        |time| match time.interval.holds_zero() {
            true => format!("{UNCERTAIN}{}", estimate(time)),
            false => estimate(time),
        },
    )
}

/// `8.3 hours [7.8, 8.9]`, of milliseconds.
fn hours(ms: Estimate<f64>) -> String {
    let (unit, name) = match ms.value.abs() / 60_000.0 {
        120.0.. => (3.6e6, "hours"),
        2.0.. => (6e4, "minutes"),
        _ => (1e3, "seconds"),
    };
    let digits = |ms: f64| format!("{:.1}", ms / unit);
    let interval = interval(&ms.interval, digits);
    format!("{} {name} {interval}", digits(ms.value))
}

/// What [`UNCERTAIN`] means, if it was used in what is `shown`.
fn legend(shown: &str) -> Option<String> {
    let is_used = shown.contains(UNCERTAIN);
    is_used.then(|| format!("{UNCERTAIN} no difference was shown: its interval holds zero"))
}
