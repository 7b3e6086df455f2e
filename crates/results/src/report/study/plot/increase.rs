//! The increase of each arm over the baseline: lines along an axis, or bars without one.

mod beside;

use crate::report::chart::{Ink, KeyEntry, Line, Lines, Stroke};
use crate::report::study::bars::bars;
use crate::report::study::plan::{Baseline, Content, Kind, Plan, Series, short};
use crate::report::text;
use crate::results::{Group, Percentile};
use crate::study::{Parameter, Quantity};

pub(super) static KIND: Kind = Kind {
    quantity: Quantity::Increase,
    baseline: Baseline::Compared,
    title: |metric| format!("Increase of the {}", text::metric(metric)),
    note,
    draw,
};

fn note(plan: &Plan) -> String {
    let baseline = plan.baselines().next().unwrap_or_default();
    let intervals = match plan.figure.x {
        Some(_) => "bands",
        None => "whiskers",
    };
    format!("Percent over {baseline}; {intervals} are 95 % intervals.")
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
    let panel = |(title, lines)| {
        Lines {
            title,
            x_title: x.title(),
            y_title: plan.y_title(),
            x: places.clone(),
            lines,
            marks: plan.marks(),
            reach: reach.clone(),
        }
        .panel()
    };
    plan.chart(panels.into_iter().map(panel).collect(), key(plan, &series))
}

/// Those that have any point.
fn lines_of_panel(
    plan: &Plan,
    series: &[Series],
    axis: &[(String, Option<f64>)],
    groups: &[&Group],
) -> Vec<Line> {
    let mut lines = Vec::new();
    for (index, one) in series.iter().enumerate() {
        let points: Vec<_> = (axis.iter())
            .map(|(x, _)| plan.points(plan.at(groups, one, x), &one.arm))
            .collect();
        for (nth, percentile) in plan.percentiles.iter().enumerate() {
            let points = points.iter();
            lines.push(Line {
                ink: ink(series, index, nth),
                label: match plan.percentiles {
                    [_] => String::new(),
                    _ => percentile.to_string(),
                },
                points: points.map(|all| all.get(nth).copied().flatten()).collect(),
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
    for (index, one) in series.iter().enumerate() {
        for (nth, percentile) in plan.percentiles.iter().enumerate() {
            key.push(KeyEntry {
                name: name(plan, series, one, percentile),
                ink: ink(series, index, nth),
            });
        }
    }
    key.extend(beside::key(plan));
    key
}

fn name(plan: &Plan, series: &[Series], one: &Series, percentile: &Percentile) -> String {
    match (series, plan.percentiles) {
        ([_], _) => percentile.to_string(),
        (_, [_]) => plan.name(one),
        _ => format!("{} {percentile}", plan.name(one)),
    }
}

/// A colour for each series, or for each percentile of the only one.
fn ink(series: &[Series], index: usize, nth: usize) -> Ink {
    match series {
        [_] => Ink::new(nth, Stroke::nth(nth)),
        _ => Ink::new(index, Stroke::nth(nth)),
    }
}

fn values(lines: &[Line]) -> Vec<f64> {
    let points = lines.iter().flat_map(|line| line.points.iter().flatten());
    points.map(|point| point.value).collect()
}
