//! The increase of each arm over the baseline: lines along an axis, or bars without one.

mod beside;

use crate::chart::{Ink, Intervals, KeyEntry, Line, Lines, Shape, reached};
use crate::study::bars::bars;
use crate::study::finding;
use crate::study::plan::{Baseline, Content, Kind, Plan, Series, short};
use crate::text;
use lastbyte_results::{Group, Percentile};
use lastbyte_study::{Parameter, Quantity};

pub(super) static KIND: Kind = Kind {
    quantity: Quantity::Increase,
    baseline: Baseline::Compared,
    title: |metric| format!("Increase of the {}", text::metric(metric)),
    note,
    draw,
    finding: finding::increase,
    numbers: |plan| plan.numbers(),
};

fn note(plan: &Plan) -> String {
    let baseline = plan.baselines().next().unwrap_or_default();
    let intervals = match plan.figure.x.map(|_| intervals(plan, &plan.series())) {
        Some(Intervals::Bands) => "bands",
        Some(Intervals::Whiskers) | None => "whiskers",
    };
    format!(
        "Percent over {baseline}; {intervals} are 95 % intervals, drawn where both ends are known."
    )
}

/// Bands are for one line.
fn intervals(plan: &Plan, series: &[Series]) -> Intervals {
    match (series, plan.percentiles) {
        ([_], [_]) => Intervals::Bands,
        _ => Intervals::Whiskers,
    }
}

fn draw(plan: &Plan) -> Content {
    match plan.figure.x {
        Some(x) => lines(plan, x),
        None => bars(plan),
    }
}

fn lines(plan: &Plan, x: Parameter) -> Content {
    let series = plan.series();
    let axis = plan.axis();
    let panels: Vec<_> = (plan.panels().into_iter())
        .map(|(title, groups)| (title, lines_of_panel(plan, &series, &axis, &groups)))
        .collect();
    let reach = plan.reach(panels.iter().map(|(_, lines)| values(lines)).collect());
    let places: Vec<_> = (axis.iter())
        .map(|(text, number)| (number.map_or_else(|| text.clone(), short), *number))
        .collect();
    let drawing = |lines| Lines {
        x_title: x.title(),
        y_title: plan.y_title(),
        x: places.clone(),
        lines,
        intervals: intervals(plan, &series),
        marks: plan.marks(),
        reach: reach.clone().unwrap_or_default(),
    };
    let panels = panels
        .into_iter()
        .map(|(title, lines)| (title, drawing(lines)));
    plan.chart(panels.collect(), key(plan, &series), reach.as_ref())
}

/// Those that have any point.
fn lines_of_panel(
    plan: &Plan,
    series: &[Series],
    axis: &[(String, Option<f64>)],
    groups: &[&Group],
) -> Vec<Line> {
    let mut lines = Vec::new();
    for one in series {
        let groups_of = axis.iter().map(|(x, _)| plan.at(groups, one, x));
        let points: Vec<_> = groups_of
            .clone()
            .map(|group| plan.points(group, &one.arm))
            .collect();
        let theirs: Vec<_> = groups_of
            .map(|group| plan.theirs(group, &one.arm))
            .collect();
        for (nth, percentile) in plan.percentiles.iter().enumerate() {
            lines.push(Line {
                ink: ink(plan, series, one, nth),
                shape: Shape::Step,
                label: name(plan, series, one, percentile),
                points: points
                    .iter()
                    .map(|all| all.get(nth).copied().flatten())
                    .collect(),
                theirs: theirs
                    .iter()
                    .map(|all| all.get(nth).copied().flatten())
                    .collect(),
            });
        }
        lines.extend(beside::lines(plan, one, axis, groups));
    }
    lines.retain(|line| line.points.iter().any(Option::is_some));
    lines
}

/// Each percentile of each series, and what is beside.
fn key(plan: &Plan, series: &[Series]) -> Vec<KeyEntry> {
    let mut key = Vec::new();
    for one in series {
        for (nth, percentile) in plan.percentiles.iter().enumerate() {
            key.push(KeyEntry {
                name: name(plan, series, one, percentile),
                ink: ink(plan, series, one, nth),
            });
        }
    }
    key.extend(beside::key(plan));
    key
}

fn name(plan: &Plan, series: &[Series], one: &Series, percentile: &Percentile) -> String {
    match (series, plan.percentiles) {
        (_, [_]) => plan.name(one),
        ([_], _) => percentile.to_string(),
        _ => format!("{} {percentile}", plan.name(one)),
    }
}

/// Percentiles of a series have its colour; those of the only one have each their own.
fn ink(plan: &Plan, series: &[Series], one: &Series, nth: usize) -> Ink {
    match series {
        [_] => Ink::nth(nth),
        _ => plan.ink(series, one).of_several(nth),
    }
}

/// What an axis has to reach.
fn values(lines: &[Line]) -> Vec<f64> {
    let ours = lines.iter().flat_map(|line| line.points.iter().flatten());
    let theirs = lines.iter().flat_map(|line| line.theirs.iter().flatten());
    reached(ours).into_iter().chain(theirs.copied()).collect()
}
