//! A plan as bars: along the axis, each of all percentiles; without an axis, a group for each percentile.

use super::plan::Content;
use super::plan::{Plan, Series, short};
use crate::report::chart::{Bar, Bars, Ink, Point, Stroke};
use crate::results::Group;
use crate::study::Parameter;

/// Bars that stand together, and their name.
type BarGroup = (String, Vec<Bar>);

pub(super) fn bars(plan: &Plan) -> Content {
    let series = plan.series();
    let panels: Vec<_> = (plan.panels().into_iter())
        .map(|(title, groups)| match plan.figure.x {
            Some(_) => (title, along_axis(plan, &series, &groups)),
            None => (title, by_percentile(plan, &series, &groups)),
        })
        .collect();
    let reach = plan.reach(panels.iter().map(|(_, groups)| values(groups)).collect());
    let panel = |(title, groups)| {
        Bars {
            title,
            x_title: plan.figure.x.map_or("", Parameter::title),
            y_title: plan.y_title(),
            groups,
            marks: plan.marks(),
            reach: reach.clone(),
        }
        .panel()
    };
    plan.chart(
        panels.into_iter().map(panel).collect(),
        plan.key(&series, ink),
    )
}

fn along_axis(plan: &Plan, series: &[Series], groups: &[&Group]) -> Vec<BarGroup> {
    let group = |(x, number): (String, Option<f64>)| {
        let points = points(plan, series, groups, &x).into_iter().enumerate();
        let bars = points.map(|(index, parts)| bar(index, parts)).collect();
        (number.map_or(x, short), bars)
    };
    plan.axis().into_iter().map(group).collect()
}

fn by_percentile(plan: &Plan, series: &[Series], groups: &[&Group]) -> Vec<BarGroup> {
    let points = points(plan, series, groups, "");
    let group = |(nth, percentile): (usize, &_)| {
        let parts = points.iter().map(|parts| parts.get(nth).copied().flatten());
        let parts = parts.enumerate();
        let bars = parts.map(|(index, part)| bar(index, vec![part])).collect();
        (ToString::to_string(percentile), bars)
    };
    plan.percentiles.iter().enumerate().map(group).collect()
}

/// Of each series at a place on the axis, one for each percentile.
fn points(plan: &Plan, series: &[Series], groups: &[&Group], x: &str) -> Vec<Vec<Option<Point>>> {
    (series.iter())
        .map(|one| plan.points(plan.at(groups, one, x), &one.arm))
        .collect()
}

fn bar(index: usize, parts: Vec<Option<Point>>) -> Bar {
    Bar {
        ink: ink(index),
        parts,
    }
}

fn ink(index: usize) -> Ink {
    Ink::new(index, Stroke::Solid)
}

fn values(groups: &[BarGroup]) -> Vec<f64> {
    let bars = groups.iter().flat_map(|(_, bars)| bars);
    let parts = bars.flat_map(|bar| bar.parts.iter().flatten());
    parts.map(|part| part.value).collect()
}
