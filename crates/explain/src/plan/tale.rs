//! What measured settings tell of each other.

use lastbyte_link::Seed;

use super::because::causes;
use super::{About, Arithmetic, Cause, Lever, Measured, Plan};
use lastbyte_results::{ComparedSide, Estimate, Metric, Percentile, Step, Waiting, waiting};

/// How much longer a wait is that people notice.
pub const NOTICEABLE: Step = Step::Milliseconds(20);

/// What the measured settings tell.
#[derive(Clone, Debug)]
pub struct Tale {
    /// The metric that it is told of.
    pub metric: Metric,
    /// How much longer connections wait as planned than today: all, and each class, the largest first.
    pub planned: Vec<Waiting>,
    /// Why those wait that wait longer by [`NOTICEABLE`]: all, and each class, the largest first. None where arithmetic does not know
    /// the chains.
    pub causes: Vec<Cause>,
    /// Levers alone, what gains most first: those about certificates, and then those about paths.
    pub levers: Vec<(&'static Lever, Gain)>,
    /// Levers that can't be measured here, by arithmetic.
    pub calculated: Vec<(&'static Lever, Gain)>,
    /// How much longer they wait as planned by arithmetic, which is what suppositions are held against.
    pub planned_by_arithmetic: Option<Waiting>,
    /// How much longer connections would wait than today if something about the chain were otherwise, by arithmetic.
    pub supposed: Vec<(String, Waiting)>,
    /// Levers together, each with one more than the one before.
    pub together: Vec<Gain>,
    /// Connections of each setting.
    pub connections: u32,
}

/// What a change to what is planned gains.
#[derive(Clone, Debug)]
pub struct Gain {
    /// What was changed.
    pub name: String,
    /// How much longer connections wait than today, after all.
    pub than_today: Waiting,
    /// How much longer they wait than as planned: below zero for a gain.
    pub than_planned: Waiting,
}

impl Gain {
    /// The mean gain of a connection, in milliseconds; above zero for a gain.
    pub fn mean(&self) -> Option<Estimate<f64>> {
        self.than_planned.mean.map(Estimate::negated)
    }
}

impl Tale {
    /// What is told of the settings of [`Plan::alone`], in their order. `None` if some are missing.
    pub fn new(
        plan: &Plan,
        metric: Metric,
        percentiles: &[Percentile],
        seed: Seed,
        alone: &[Measured],
    ) -> Option<Tale> {
        let (today, planned) = (alone.first()?, alone.get(1)?);
        // One for each setting.
        if alone.len() != 2 + plan.levers.len() {
            return None;
        }
        let pulled = plan.levers.iter().zip(alone.get(2..)?);
        let levers = pulled.map(|((lever, setting), measured)| {
            (measured.setting == *setting).then_some((*lever, measured))
        });
        let levers: Vec<_> = levers.collect::<Option<_>>()?;
        Tale::of(metric, percentiles, seed, [today, planned], &levers)
    }

    /// What is told of two settings, and of the second with each of some levers.
    pub(super) fn of(
        metric: Metric,
        percentiles: &[Percentile],
        seed: Seed,
        [today, planned]: [&Measured; 2],
        levers: &[(&'static Lever, &Measured)],
    ) -> Option<Tale> {
        let compared = waiting(metric, side(today), side(planned), percentiles, seed);
        let mut compared: Vec<Waiting> = compared.collect();
        // All of them first.
        if let Some(classes) = compared.get_mut(1..) {
            classes.sort_by_key(|waiting| std::cmp::Reverse(waiting.connections));
        }
        let gains = levers.iter().map(|(lever, measured)| {
            let gain = gain(metric, percentiles, seed, today, planned, measured)?;
            Some((*lever, gain))
        });
        let gains: Option<Vec<_>> = gains.collect();
        Some(Tale {
            metric,
            connections: compared.first()?.connections + compared.first()?.failed,
            planned: compared,
            causes: Vec::new(),
            levers: ranked(gains?),
            calculated: Vec::new(),
            planned_by_arithmetic: None,
            supposed: Vec::new(),
            together: Vec::new(),
        })
    }

    /// Whether any connection has come to its metric.
    pub fn is_of_any(&self) -> bool {
        self.planned.first().is_some_and(|all| all.connections > 0)
    }

    /// Adds what arithmetic knows of the same connections, of which `alone` is what the tale began with.
    pub fn add_arithmetic(
        &mut self,
        arithmetic: &Arithmetic,
        percentiles: &[Percentile],
        seed: Seed,
        alone: [&Measured; 2],
    ) {
        let [today, planned] = [&arithmetic.today, &arithmetic.planned];
        let flights = [today, planned].map(|one| one.flights.as_slice());
        self.causes = causes(self.metric, NOTICEABLE, alone, flights);
        let [today, planned] = [&today.measured, &planned.measured];
        let only = arithmetic.levers.iter().filter(|(lever, _)| {
            let mut measured = self.levers.iter();
            !measured.any(|(known, _)| known == lever)
        });
        let only = only.filter_map(|(lever, measured)| {
            let gain = gain(self.metric, percentiles, seed, today, planned, measured)?;
            Some((*lever, gain))
        });
        self.calculated = ranked(only.collect());
        let metric = self.metric;
        let than_today = |measured| {
            let mut waiting = waiting(metric, side(today), side(measured), percentiles, seed);
            waiting.next()
        };
        self.planned_by_arithmetic = than_today(planned);
        let supposed = arithmetic.supposed.iter();
        let supposed =
            supposed.filter_map(|(what, measured)| Some((what.clone(), than_today(measured)?)));
        self.supposed = supposed.collect();
    }

    /// The levers about certificates that gain anything, what gains most first.
    pub fn order(&self) -> Vec<&'static Lever> {
        let gaining = self.levers.iter();
        let gaining = gaining
            .filter(|(lever, gain)| lever.about == About::Certificates && gained(gain) > 0.0);
        gaining.map(|(lever, _)| *lever).collect()
    }

    /// Adds what the settings of [`Plan::together`] tell. `alone` is what the tale began with.
    pub fn add_together(
        &mut self,
        percentiles: &[Percentile],
        seed: Seed,
        alone: &[Measured],
        together: &[Measured],
    ) {
        let [today, planned, ..] = alone else { return };
        let gains = together
            .iter()
            .filter_map(|measured| gain(self.metric, percentiles, seed, today, planned, measured));
        self.together = gains.collect();
    }
}

/// Those about certificates first, and what gains most.
fn ranked(mut levers: Vec<(&'static Lever, Gain)>) -> Vec<(&'static Lever, Gain)> {
    levers.sort_by(|(one, gain), (other, others)| {
        let is_path = |lever: &Lever| lever.about == About::Paths;
        let by_gain = gained(others).total_cmp(&gained(gain));
        is_path(one).cmp(&is_path(other)).then(by_gain)
    });
    levers
}

fn gain(
    metric: Metric,
    percentiles: &[Percentile],
    seed: Seed,
    today: &Measured,
    planned: &Measured,
    measured: &Measured,
) -> Option<Gain> {
    let than = |other| waiting(metric, side(other), side(measured), percentiles, seed);
    Some(Gain {
        name: measured.setting.name.clone(),
        than_today: than(today).next()?,
        than_planned: than(planned).next()?,
    })
}

/// In milliseconds; least of all where it is not known.
fn gained(gain: &Gain) -> f64 {
    gain.mean().map_or(f64::NEG_INFINITY, |mean| mean.value)
}

pub(super) fn side(measured: &Measured) -> ComparedSide<'_> {
    ComparedSide {
        cell: &measured.setting.cell,
        rows: &measured.rows,
    }
}
