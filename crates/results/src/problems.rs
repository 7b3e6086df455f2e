//! Finds what to mind when reading results.

use std::time::Duration;

use lastbyte_link::Link;

use super::look::{Look, fewest};
use super::summary::{ArmSummary, CellSummary};
use super::warning::{Problem, Warning};
use super::{Contents, Percentile, Validity};
use lastbyte_study::{Arm, Connections, Experiment, Metric, TransportName};

/// Connections on either side of a percentile that are this far apart make a cliff of it: the
/// retransmission timeout of a SYN is 1 s (RFC 6298, section 2).
const GAP: Duration = Duration::from_millis(900);
/// How many standard errors a percentile should keep away from a cliff.
const STANDARD_ERRORS: f64 = 3.0;

/// Finds what to mind, the gravest first.
pub(super) fn find(experiment: &Experiment, cells: &[CellSummary]) -> Vec<Warning> {
    let mut warnings: Vec<Warning> = Vec::new();
    for find in [
        invalid,
        failures,
        imprecise,
        cliffs,
        too_few,
        gaps,
        sent_again,
        modes,
        computes_nothing,
        buffers,
    ] {
        for cell in cells {
            for problem in find(experiment, cell) {
                let index = warnings
                    .iter()
                    .position(|warning| warning.problem == problem);
                let known = index.and_then(|index| warnings.get_mut(index));
                match known {
                    Some(warning) if warning.cells.contains(&cell.name) => (),
                    Some(warning) => warning.cells.push(cell.name.clone()),
                    None => warnings.push(Warning {
                        problem,
                        cells: vec![cell.name.clone()],
                    }),
                }
            }
        }
    }
    for warning in &mut warnings {
        if warning.cells.len() == cells.len() {
            warning.cells.clear();
        }
    }
    warnings
}

fn invalid(_: &Experiment, cell: &CellSummary) -> Vec<Problem> {
    let problem = |arm: &ArmSummary| match &arm.validity {
        Validity::Valid => None,
        Validity::Invalid(reason) => Some(Problem::Invalid {
            arm: arm.label.clone(),
            reason: reason.clone(),
        }),
    };
    cell.arms.iter().filter_map(problem).collect()
}

fn failures(_: &Experiment, cell: &CellSummary) -> Vec<Problem> {
    let failing = cell.arms.iter().filter(|arm| !arm.failures.is_empty());
    failing
        .map(|arm| Problem::Failures {
            arm: arm.label.clone(),
            failed: arm.failed(),
            connections: arm.connections,
            reasons: arm.failures.clone(),
        })
        .collect()
}

fn imprecise(experiment: &Experiment, cell: &CellSummary) -> Vec<Problem> {
    let (Connections::Until(until), Look::Imprecise(imprecision)) =
        (experiment.connections, cell.look)
    else {
        return Vec::new();
    };
    let arm = experiment
        .arms
        .get(imprecision.arm)
        .map(|arm| arm.name.clone());
    vec![Problem::Imprecise {
        arm: arm.unwrap_or_default(),
        imprecision,
        connections: fewest_connections(cell).unwrap_or(0),
        precision: until.precision,
    }]
}

fn cliffs(experiment: &Experiment, cell: &CellSummary) -> Vec<Problem> {
    let Some(connections) = fewest_connections(cell) else {
        return Vec::new();
    };
    // Of a population, each connection has a share of its own. A browser does not wait: it makes another connection.
    if cell.cell.population.is_some() || cell.cell.page.is_some() {
        return Vec::new();
    }
    // QUIC has neither, and waits for its first datagrams otherwise.
    let is_over_tcp = |arm: &Arm| arm.transport == TransportName::Tcp;
    if !experiment.arms.iter().any(is_over_tcp) {
        return Vec::new();
    }
    let Link { forward, backward } = &cell.cell.link;
    let [syn, syn_ack] = [forward, backward].map(|way| way.loss.of_first().fraction());
    let share = 1.0 - (1.0 - syn) * (1.0 - syn_ack);
    let error = (share * (1.0 - share) / f64::from(connections)).sqrt();
    percentiles(cell)
        .filter(|percentile| {
            let beyond = 1.0 - f64::from(percentile.per_mille()) / 1000.0;
            share > 0.0 && (share - beyond).abs() <= STANDARD_ERRORS * error
        })
        .map(|percentile| Problem::Cliff { percentile, share })
        .collect()
}

/// Whether all that is told of a cell is known, however many connections there are.
fn is_exact(cell: &CellSummary) -> bool {
    let metrics = cell.arms.iter().flat_map(|arm| {
        let metrics = cell.cell.metrics().iter();
        metrics.map(move |metric| arm.metric(*metric))
    });
    let mut times = metrics.flat_map(|metric| metric.percentiles.values());
    times.all(|time| {
        time.is_ok_and(|time| {
            time.interval.low == time.interval.high && !time.interval.is_unknown()
        })
    })
}

fn too_few(experiment: &Experiment, cell: &CellSummary) -> Vec<Problem> {
    // Too few are not precise enough, where that was asked for, and where they repeat each other, there are enough.
    if matches!(experiment.connections, Connections::Until(_)) || cell.look == Look::Repeating {
        return Vec::new();
    }
    let Some(connections) = fewest_connections(cell) else {
        return Vec::new();
    };
    // Where nothing is by chance, one says as much as a thousand.
    if is_exact(cell) {
        return Vec::new();
    }
    let enough = |percentile: &Percentile| fewest(*percentile);
    let percentiles: Vec<_> = percentiles(cell)
        .filter(|percentile| connections < enough(percentile))
        .collect();
    match percentiles.iter().map(enough).max() {
        Some(enough) => vec![Problem::TooFew {
            percentiles,
            connections,
            enough,
        }],
        None => Vec::new(),
    }
}

fn buffers(_: &Experiment, cell: &CellSummary) -> Vec<Problem> {
    let bind = cell.arms.iter().any(|arm| arm.linux_buffers_matter);
    bind.then_some(Problem::Buffers).into_iter().collect()
}

fn gaps(experiment: &Experiment, cell: &CellSummary) -> Vec<Problem> {
    // Of the last byte, which pages have none of their own.
    if cell.cell.page.is_some() {
        return Vec::new();
    }
    let cliffs = cliffs(experiment, cell);
    let explained = |at: Percentile| {
        cliffs
            .iter()
            .any(|cliff| matches!(cliff, Problem::Cliff { percentile, .. } if *percentile == at))
    };
    let gaps_of = |arm: &ArmSummary| -> Vec<Problem> {
        arm.metric(Metric::Ttlb)
            .neighbours
            .iter()
            .filter(|(percentile, (below, above))| {
                above.saturating_sub(*below) > GAP && !explained(**percentile)
            })
            .map(|(percentile, (below, above))| Problem::Gap {
                arm: arm.label.clone(),
                percentile: *percentile,
                below: *below,
                above: *above,
            })
            .collect()
    };
    cell.arms.iter().flat_map(gaps_of).collect()
}

fn sent_again(_: &Experiment, cell: &CellSummary) -> Vec<Problem> {
    let of = |arm: &ArmSummary| {
        let (again, reason) = arm.sent_again?;
        Some(Problem::SentAgain {
            arm: arm.label.clone(),
            again,
            connections: arm.connections,
            reason,
        })
    };
    cell.arms.iter().filter_map(of).collect()
}

fn modes(_: &Experiment, cell: &CellSummary) -> Vec<Problem> {
    let of = |arm: &ArmSummary| {
        let modes = arm.modes.iter().map(|(metric, modes)| Problem::Modes {
            arm: arm.label.clone(),
            metric: *metric,
            modes: modes.clone(),
        });
        modes.collect::<Vec<_>>()
    };
    cell.arms.iter().flat_map(of).collect()
}

fn computes_nothing(_: &Experiment, cell: &CellSummary) -> Vec<Problem> {
    let mut arms = cell.arms.iter();
    let nothing =
        cell.cell.page.is_some() && arms.any(|arm| arm.engine.contents() == Contents::Network);
    nothing
        .then_some(Problem::ComputesNothing)
        .into_iter()
        .collect()
}

/// The time that everything else is before.
fn last(cell: &CellSummary) -> Metric {
    match cell.cell.page {
        Some(_) => Metric::Load,
        None => Metric::Ttlb,
    }
}

fn percentiles(cell: &CellSummary) -> impl Iterator<Item = Percentile> + use<'_> {
    cell.arms
        .first()
        .into_iter()
        .flat_map(|arm| arm.metric(last(cell)).percentiles.keys().copied())
}

fn fewest_connections(cell: &CellSummary) -> Option<u32> {
    cell.arms.iter().map(|arm| arm.connections).min()
}
