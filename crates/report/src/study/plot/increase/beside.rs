//! What is drawn beside a measured increase.

use lastbyte_sizes::Message;

use crate::chart::{Colour, Ink, KeyEntry, Line, Point, Shape, Stroke};
use crate::study::findings::Findings;
use crate::study::plan::{Plan, Series};
use lastbyte_results::{Group, Metric};
use lastbyte_study::{Beside, Cell};

/// A curve that was not measured.
#[derive(Clone, Copy)]
enum Model {
    Arithmetic,
    /// So much of H, the handshake's increase by the time of its additional bytes.
    Rule {
        share: f64,
    },
    /// H for a connection whose data takes y round trips.
    LongerRule,
}

pub(super) fn lines(
    plan: &Plan,
    series: &Series,
    axis: &[(String, Option<f64>)],
    groups: &[&Group],
) -> Vec<Line> {
    let point = |x: &str, model| {
        Some(Point {
            value: value(plan, plan.at(groups, series, x)?, &series.arm, model)?,
            interval: None,
        })
    };
    let models = models(plan).into_iter().enumerate();
    let lines = models.map(|(nth, (name, model))| Line {
        ink: ink(nth),
        shape: match model {
            Model::Arithmetic => Shape::Step,
            Model::Rule { .. } | Model::LongerRule => Shape::Slope,
        },
        label: name.to_owned(),
        points: axis.iter().map(|(x, _)| point(x, model)).collect(),
        theirs: Vec::new(),
    });
    lines.collect()
}

pub(super) fn key(plan: &Plan) -> Vec<KeyEntry> {
    let models = models(plan).into_iter().enumerate();
    let entries = models.map(|(nth, (name, _))| KeyEntry {
        name: name.to_owned(),
        ink: ink(nth),
    });
    entries.collect()
}

fn ink(nth: usize) -> Ink {
    Ink::new(Colour::Baseline, Stroke::nth(nth + 1))
}

/// What a figure asks for, by name.
fn models(plan: &Plan) -> Vec<(&'static str, Model)> {
    let metric = plan.figure.metric;
    let mut models = Vec::new();
    for beside in &plan.figure.beside {
        match beside {
            Beside::Arithmetic => models.push(("flight arithmetic", Model::Arithmetic)),
            Beside::RulesOfThumb => {
                models.push(rule_of_thumb(metric));
                if metric == Metric::Ttlb {
                    models.push(("H less y/(y+2)", Model::LongerRule));
                }
            }
        }
    }
    models
}

fn rule_of_thumb(metric: Metric) -> (&'static str, Model) {
    match metric {
        Metric::Handshake | Metric::TlsHandshake | Metric::DnsRecord => {
            ("H = x / 2 RTT", Model::Rule { share: 1.0 })
        }
        Metric::Ttfb => ("0.66 H", Model::Rule { share: 2.0 / 3.0 }),
        Metric::Connect
        | Metric::Ttlb
        | Metric::Fcp
        | Metric::Lcp
        | Metric::Load
        | Metric::SpeedIndex => ("0.40 H", Model::Rule { share: 0.4 }),
    }
}

/// An increase of one cell, in percent; none over several cells.
fn value(plan: &Plan, group: &Group, arm: &str, model: Model) -> Option<f64> {
    let [place] = *group.cells else { return None };
    let findings = plan.findings;
    let arms = &findings.study.measures.get(place.0)?.experiment.arms;
    let arm = arms.iter().position(|other| other.name == arm)?;
    match model {
        Model::Arithmetic => arithmetic(findings, place, arm, plan.figure.metric),
        Model::Rule { share } => Some(handshake(findings, place, arm)? * share),
        Model::LongerRule => {
            let round_trips = data_round_trips(findings, place)?;
            Some(handshake(findings, place, arm)? * 2.0 / (round_trips + 2.0))
        }
    }
}

fn arithmetic(
    findings: &Findings,
    place: (usize, usize),
    arm: usize,
    metric: Metric,
) -> Option<f64> {
    let seconds = |arm| Some(findings.computed(place, arm, metric)?.as_secs_f64());
    let baseline = seconds(0)?;
    Some(100.0 * (seconds(arm)? - baseline) / baseline)
}

/// H: what the additional bytes take at the link's rate, of two round trips, in percent.
fn handshake(findings: &Findings, place: (usize, usize), arm: usize) -> Option<f64> {
    let cell = findings.cell(place)?;
    let summary = findings.cell_summary(place)?;
    let bytes = |arm: usize| {
        let wire = summary.arms.get(arm)?.wire.as_ref()?;
        Some(wire.bytes(Message::ClientHello).median + wire.server_wire_bytes().median)
    };
    let more = f64::from(bytes(arm)?) - f64::from(bytes(0)?);
    let rate = cell.link.backward.rate?.bits_per_second() as f64;
    Some(100.0 * more * 8.0 / rate / (2.0 * round_trip(cell)))
}

/// y: how many round trips the baseline's data takes after the handshake.
fn data_round_trips(findings: &Findings, place: (usize, usize)) -> Option<f64> {
    let time = |metric| findings.computed(place, 0, metric);
    let data = time(Metric::Ttlb)?.checked_sub(time(Metric::Handshake)?)?;
    Some(data.as_secs_f64() / round_trip(findings.cell(place)?))
}

/// In seconds.
fn round_trip(cell: &Cell) -> f64 {
    cell.link.rtt().as_secs_f64()
}
