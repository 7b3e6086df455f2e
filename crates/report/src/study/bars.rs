//! A plan as bars: along the axis, each of all percentiles; without an axis, a group for each percentile.

use super::plan::{Content, Plan, Series, short};
use crate::chart::{Bar, Bars, reached};
use lastbyte_results::Group;
use lastbyte_study::Parameter;

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
    let bars = |groups| Bars {
        x_title: plan.figure.x.map_or("", Parameter::title),
        y_title: plan.y_title(),
        groups,
        marks: plan.marks(),
        reach: reach.clone().unwrap_or_default(),
    };
    let panels = panels
        .into_iter()
        .map(|(title, groups)| (title, bars(groups)));
    plan.chart(panels.collect(), plan.key(&series), reach.as_ref())
}

fn along_axis(plan: &Plan, series: &[Series], groups: &[&Group]) -> Vec<BarGroup> {
    let here = plan.series_of(series, groups);
    let group = |(x, number): (String, Option<f64>)| {
        let bar = |one: &Series| {
            let group = plan.at(groups, one, &x);
            Bar {
                colour: plan.ink(series, one).colour,
                parts: plan.points(group, &one.arm),
                theirs: plan.theirs(group, &one.arm),
            }
        };
        let bars = here.iter().map(|one| bar(one)).collect();
        (number.map_or_else(|| x.clone(), short), bars)
    };
    plan.axis().into_iter().map(group).collect()
}

fn by_percentile(plan: &Plan, series: &[Series], groups: &[&Group]) -> Vec<BarGroup> {
    let here = plan.series_of(series, groups);
    let group = |(nth, percentile): (usize, &_)| {
        let bar = |one: &Series| {
            let group = plan.at(groups, one, "");
            Bar {
                colour: plan.ink(series, one).colour,
                parts: vec![plan.points(group, &one.arm).get(nth).copied().flatten()],
                theirs: vec![plan.theirs(group, &one.arm).get(nth).copied().flatten()],
            }
        };
        (
            ToString::to_string(percentile),
            here.iter().map(|one| bar(one)).collect(),
        )
    };
    plan.percentiles.iter().enumerate().map(group).collect()
}

/// What an axis has to reach.
fn values(groups: &[BarGroup]) -> Vec<f64> {
    let bars = || groups.iter().flat_map(|(_, bars)| bars);
    let ours = bars().flat_map(|bar| bar.parts.iter().flatten());
    let theirs = bars().flat_map(|bar| bar.theirs.iter().flatten());
    reached(ours).into_iter().chain(theirs.copied()).collect()
}
