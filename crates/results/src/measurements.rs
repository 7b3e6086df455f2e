//! The times of a whole run, and what can be asked of them.

use std::collections::BTreeMap;
use std::time::Duration;

use lastbyte_exchange::HandshakeFlight;
use lastbyte_link::Seed;
use thiserror::Error;

use super::stats::{self, Estimate, Level, Percentiles, Series};
use super::{
    Cut, Exchange, Interval, Metric, Outcome, Percentile, Sample, SampleKey, Sent, Validity,
};
use lastbyte_sizes::Message;

use lastbyte_study::{
    Cell, Direction, Experiment, MessageSize, Parameter, Quantity, Question, Study,
};

/// Why there is no number.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Missing {
    /// There is no such sample.
    #[error("{0} was not measured there")]
    NotMeasured(String),
    /// One of two samples is not there.
    #[error("{0} or {1} was not measured there")]
    OneOf(String, String),
    /// A sample is not what it should be.
    #[error("{arm} is not to be trusted: {reason}")]
    NotTrusted {
        /// The arm.
        arm: String,
        /// Why not.
        reason: String,
    },
    /// There are no arms.
    #[error("there is no baseline")]
    NoBaseline,
    /// The question is of no comparison.
    #[error("there is nothing to compare with")]
    NothingToCompare,
    /// The study has no such cell.
    #[error("there is no such cell")]
    NoCell,
    /// Nothing is alike but for what is compared.
    #[error("there is no cell to compare with")]
    NoOtherCell,
    /// So many connections have none.
    #[error("connections failed, or there is no such time")]
    NoTime,
}

/// The times of each connection of a run.
#[derive(Clone, Debug, Default)]
pub struct Measurements(BTreeMap<SampleKey, SampleTimes>);

/// The times of one sample.
#[derive(Clone, Debug)]
pub struct SampleTimes {
    /// By user, or else by index of the connection, in the order of [`Metric::ALL`].
    rows: Vec<(u32, [Option<Duration>; Metric::ALL.len()])>,
    /// Likewise, those that were not measured as they would repeat these in turn.
    repeated: Vec<u32>,
    /// Whether the sample may be trusted.
    pub validity: Validity,
    /// Bytes of the Certificate and CertificateVerify messages of the median connection that completed.
    authentication: Option<u32>,
    /// Bytes of messages of the median connection that completed, in the order of [`MessageSize::all`].
    messages: Vec<Option<u32>>,
    /// Bytes of all the server's messages on the wire, of the median connection that completed.
    server_wire_bytes: Option<u32>,
}

/// Cells whose connections are taken together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Each as the index of its measure and its own among the measure's.
    pub cells: Vec<(usize, usize)>,
}

/// Connections of one cell, at most: those of several cells are numbered apart by it.
const STRIDE: u32 = 1 << 20;

impl Measurements {
    /// Adds a sample of a cell; `user` is whose a connection is, by its index.
    pub fn add(
        &mut self,
        key: SampleKey,
        sample: &Sample,
        validity: Validity,
        user: impl Fn(u32) -> u32,
        experiment: &Experiment,
    ) {
        let times = |row| Metric::ALL.map(|metric| metric.of(row));
        let rows = (sample.rows.iter()).map(|row| (user(row.index), times(row)));
        let rows: Vec<_> = rows.collect();
        let measured = u32::try_from(rows.len()).unwrap_or(u32::MAX);
        let shown = (experiment.cells.get(key.cell))
            .map_or(measured, |cell| experiment.shown_by(cell, measured));
        let median = |of: &dyn Fn(&Exchange) -> u32| {
            let completed = (sample.rows.iter()).filter(|row| row.outcome == Outcome::Completed);
            let mut bytes: Vec<u32> = completed.map(|row| of(&row.exchange)).collect();
            bytes.sort_unstable();
            bytes.get(bytes.len() / 2).copied()
        };
        let messages = |messages: &[Message]| {
            median(&|wire| messages.iter().map(|message| wire.bytes(*message)).sum())
        };
        let times = SampleTimes {
            rows,
            repeated: (measured..shown).map(&user).collect(),
            validity,
            authentication: messages(&[Message::Certificate, Message::CertificateVerify]),
            messages: MessageSize::all()
                .map(|size| messages(&size.messages()))
                .collect(),
            server_wire_bytes: median(&|wire| wire.sent(HandshakeFlight::Server)),
        };
        self.0.insert(key, times);
    }

    /// One sample, if it was measured.
    pub fn sample(&self, measure: usize, cell: usize, arm: usize) -> Option<&SampleTimes> {
        self.0.get(&SampleKey { measure, cell, arm })
    }

    /// One for each percentile of a question.
    ///
    /// # Errors
    ///
    /// Why there is none at all, in one line.
    pub fn numbers(
        &self,
        study: &Study,
        question: &Question,
        group: &Group,
    ) -> Result<Vec<Option<Estimate<f64>>>, Missing> {
        let series = |group: &Group, arm: &str| self.series(study, group, arm, question.metric);
        let baseline = || baseline(study, group);
        let own = series(group, &question.arm)?;
        let all = match &question.quantity {
            Quantity::Time => vec![own],
            Quantity::Authentication | Quantity::Message(_) | Quantity::Multiple { .. } => {
                let size = self.size(study, question, group);
                return Ok(vec![size; question.percentiles.len()]);
            }
            Quantity::Increase => vec![own, series(group, baseline()?)?],
            Quantity::Later { of } | Quantity::Sooner { of } => {
                let other = match of {
                    Some(of) => of,
                    None => baseline()?,
                };
                vec![own, series(group, other)?]
            }
            Quantity::Ratio { of } => vec![own, series(group, of)?, series(group, baseline()?)?],
            Quantity::Slowdown { .. } => {
                let other = Group {
                    cells: (group.cells.iter())
                        .map(|cell| reference(study, question, *cell))
                        .collect::<Result<_, _>>()?,
                };
                vec![own, series(&other, &question.arm)?]
            }
        };
        let known = stats::percentiles(&all, &question.percentiles, seed(study, group));
        let level = level(study, group);
        let number = |percentile: &Percentile| match (question.quantity.distance(), &*known) {
            (Some(distance), [own, other]) => {
                distance_of(distance.direction, own, other, *percentile, level)
            }
            _ => number(&known, *percentile, level),
        };
        Ok(question.percentiles.iter().map(number).collect())
    }

    /// Of the first cell of a group: the network has nothing to do with it.
    fn size(&self, study: &Study, question: &Question, group: &Group) -> Option<Estimate<f64>> {
        let cell = *group.cells.first()?;
        let sample = self.trusted(study, cell, &question.arm).ok()?;
        let value = match &question.quantity {
            Quantity::Message(message) => f64::from(sample.message(*message)?),
            Quantity::Multiple { of } => {
                let whole = self.trusted(study, cell, of).ok()?.sent()?;
                Cut::new(cell_of(study, cell)?, sample.sent()?, whole).multiple()?
            }
            _ => f64::from(sample.authentication?) / 1e3,
        };
        Some(Estimate {
            value,
            interval: Interval {
                low: Some(value),
                high: Some(value),
            },
        })
    }

    /// A sample that was measured and may be trusted.
    ///
    /// # Errors
    ///
    /// Which of the two it is not, in one line.
    pub fn trusted(
        &self,
        study: &Study,
        (measure, cell): (usize, usize),
        arm: &str,
    ) -> Result<&SampleTimes, Missing> {
        let known = study.measures.get(measure);
        let mut arms = known.into_iter().flat_map(|known| &known.experiment.arms);
        let index = arms.position(|known| known.name == arm);
        let sample = index.and_then(|arm| self.sample(measure, cell, arm));
        let sample = sample.ok_or_else(|| Missing::NotMeasured(arm.to_owned()))?;
        match &sample.validity {
            Validity::Valid => Ok(sample),
            Validity::Invalid(reason) => Err(Missing::NotTrusted {
                arm: arm.to_owned(),
                reason: reason.clone(),
            }),
        }
    }

    /// The times of one arm over a group of cells, all of which must have been measured.
    ///
    /// # Errors
    ///
    /// What is missing or must not be trusted, in one line.
    pub fn series(
        &self,
        study: &Study,
        group: &Group,
        arm: &str,
        metric: Metric,
    ) -> Result<Series, Missing> {
        let mut times = Vec::new();
        for (place, cell) in (0_u32..).zip(&group.cells) {
            let sample = self.trusted(study, *cell, arm)?.times(metric);
            times.extend(sample.map(|(index, time)| (place * STRIDE + index, time)));
        }
        Ok(times.into_iter().collect())
    }
}

impl SampleTimes {
    /// The times of one metric, with the connections' indices. Those that were not measured, as they would repeat others, have the
    /// times of these.
    pub fn times(&self, metric: Metric) -> impl Iterator<Item = (u32, Option<Duration>)> {
        let place = Metric::ALL.iter().position(|known| *known == metric);
        let repeats = self.rows.iter().cycle().map(|(_, times)| times);
        let repeated = self.repeated.iter().zip(repeats);
        let measured = self.rows.iter().map(|(index, times)| (index, times));
        measured.chain(repeated).map(move |(index, times)| {
            let time = place.and_then(|place| times.get(place)).copied();
            (*index, time.flatten())
        })
    }

    fn message(&self, size: MessageSize) -> Option<u32> {
        let place = MessageSize::all().position(|known| known == size)?;
        *self.messages.get(place)?
    }

    fn sent(&self) -> Option<Sent> {
        Some(Sent {
            certificate_bytes: self.message(MessageSize::One(Message::Certificate))?,
            server_wire_bytes: self.server_wire_bytes?,
        })
    }

    /// Connections measured, those that failed included.
    pub fn connections(&self) -> usize {
        self.rows.len()
    }
}

/// One for each set of values that cells have of what is not in `pool`; without it, each cell stands
/// alone.
pub fn groups(study: &Study, cells: Vec<(usize, usize)>, pool: &[Parameter]) -> Vec<Group> {
    if pool.is_empty() {
        let alone = |cell| Group { cells: vec![cell] };
        return cells.into_iter().map(alone).collect();
    }
    let key = |cell: &(usize, usize)| -> Vec<String> {
        let known = cell_of(study, *cell);
        let parameters = Parameter::measured().filter(|parameter| !pool.contains(parameter));
        (known.into_iter())
            .flat_map(|cell| parameters.clone().map(|parameter| parameter.of(cell)))
            .collect()
    };
    let groups = group_by(cells, key).into_iter();
    groups.map(|(_, cells)| Group { cells }).collect()
}

/// Gathers what has one key, in order of first appearance.
pub fn group_by<T, K: PartialEq>(
    items: impl IntoIterator<Item = T>,
    key: impl Fn(&T) -> K,
) -> Vec<(K, Vec<T>)> {
    let mut gathered: Vec<(K, Vec<T>)> = Vec::new();
    for item in items {
        let key = key(&item);
        match gathered.iter_mut().find(|(known, _)| *known == key) {
            Some((_, items)) => items.push(item),
            None => gathered.push((key, vec![item])),
        }
    }
    gathered
}

/// What the arms of a group are compared with.
///
/// # Errors
///
/// When there are no arms, in one line.
pub fn baseline<'a>(study: &'a Study, group: &Group) -> Result<&'a str, Missing> {
    let arm = experiment(study, group).and_then(|experiment| experiment.arms.first());
    Ok(&arm.ok_or(Missing::NoBaseline)?.name)
}

/// The cell that a slowdown is measured from.
fn reference(
    study: &Study,
    question: &Question,
    cell: (usize, usize),
) -> Result<(usize, usize), Missing> {
    let Quantity::Slowdown { measures, than } = &question.quantity else {
        return Err(Missing::NothingToCompare);
    };
    let own = cell_of(study, cell).ok_or(Missing::NoCell)?;
    let alike = |other: &Cell| {
        let mut parameters = Parameter::measured().filter(|parameter| !than.names(*parameter));
        parameters.all(|parameter| parameter.of(own) == parameter.of(other))
    };
    study
        .cells_named(measures, than)
        .find(|(_, known)| alike(known))
        .map(|(cell, _)| cell)
        .ok_or(Missing::NoOtherCell)
}

fn cell_of(study: &Study, (measure, cell): (usize, usize)) -> Option<&Cell> {
    study.measures.get(measure)?.experiment.cells.get(cell)
}

fn experiment<'a>(study: &'a Study, group: &Group) -> Option<&'a Experiment> {
    let (measure, _) = group.cells.first()?;
    Some(&study.measures.get(*measure)?.experiment)
}

fn seed(study: &Study, group: &Group) -> Seed {
    experiment(study, group).map_or(Seed(1), |experiment| experiment.seed)
}

fn level(study: &Study, group: &Group) -> Level {
    experiment(study, group).map_or(Level::USUAL, |experiment| {
        Level::of(&experiment.connections)
    })
}

/// How much later, or sooner, one is than another, in milliseconds.
fn distance_of(
    direction: Direction,
    own: &Percentiles,
    other: &Percentiles,
    percentile: Percentile,
    level: Level,
) -> Option<Estimate<f64>> {
    let later = |[own, other]: [f64; 2]| Some(direction.of((own - other) / 1e6));
    stats::combine([own, other], percentile, level, later)
}

/// Of one sample a time in milliseconds, of two an increase in percent, of three a ratio of increases.
fn number(known: &[Percentiles], percentile: Percentile, level: Level) -> Option<Estimate<f64>> {
    match known {
        [own] => stats::combine([own], percentile, level, |[time]| Some(time / 1e6)),
        [own, baseline] => stats::combine([own, baseline], percentile, level, |[own, baseline]| {
            stats::increase(own, baseline)
        }),
        [own, other, baseline] => {
            let ratio = |[own, other, baseline]: [f64; 3]| {
                let other = stats::increase(other, baseline)?;
                let own = stats::increase(own, baseline)?;
                // A ratio to an increase of nothing, or to a decrease, says nothing.
                (other > 0.0).then_some(own / other)
            };
            stats::combine([own, other, baseline], percentile, level, ratio)
        }
        _ => None,
    }
}
