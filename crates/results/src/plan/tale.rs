//! What measured settings tell of each other.

use lastbyte_link::Seed;

use super::{Lever, Measured, Plan};
use crate::results::{ComparedSide, Estimate, Metric, Percentile, Waiting, waiting};

/// What the measured settings tell.
#[derive(Clone, Debug)]
pub struct Tale {
    /// The metric that it is told of.
    pub metric: Metric,
    /// How much longer connections wait as planned than today: all, and each class.
    pub planned: Vec<Waiting>,
    /// Levers alone, what gains most first.
    pub levers: Vec<(&'static Lever, Gain)>,
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
        let compared = waiting(metric, side(today), side(planned), percentiles, seed);
        let mut levers = Vec::new();
        for ((lever, setting), measured) in plan.levers.iter().zip(alone.get(2..)?) {
            if measured.setting != *setting {
                return None;
            }
            levers.push((
                *lever,
                gain(metric, percentiles, seed, today, planned, measured)?,
            ));
        }
        levers.sort_by(|(_, one), (_, other)| gained(other).total_cmp(&gained(one)));
        Some(Tale {
            metric,
            connections: compared.first()?.connections + compared.first()?.failed,
            planned: compared,
            levers,
            together: Vec::new(),
        })
    }

    /// The levers that gain anything, what gains most first.
    pub fn order(&self) -> Vec<&'static Lever> {
        let gaining = self.levers.iter().filter(|(_, gain)| gained(gain) > 0.0);
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
        than_today: than(today).into_iter().next()?,
        than_planned: than(planned).into_iter().next()?,
    })
}

/// In milliseconds; least of all where it is not known.
fn gained(gain: &Gain) -> f64 {
    gain.mean().map_or(f64::NEG_INFINITY, |mean| mean.value)
}

fn side(measured: &Measured) -> ComparedSide<'_> {
    ComparedSide {
        cell: &measured.setting.cell,
        rows: &measured.rows,
    }
}
