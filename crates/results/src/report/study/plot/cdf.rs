//! The distribution function of each arm.

use std::time::Duration;

use crate::report::chart::{Cdf, Curve, Ink, Stroke};
use crate::report::study::plan::{Baseline, Content, Kind, Plan, Series};
use crate::report::text;
use crate::results::Group;
use crate::study::Quantity;

pub(super) static KIND: Kind = Kind {
    quantity: Quantity::Time,
    baseline: Baseline::Drawn,
    title: |metric| format!("Distribution of the {}", text::metric(metric)),
    note: |_| String::new(),
    draw,
};

/// Quantiles that a distribution function is drawn through.
const QUANTILES: usize = 200;

fn draw(plan: &Plan) -> Content {
    let series = plan.series();
    let panels: Vec<_> = (plan.panels().into_iter())
        .map(|(title, groups)| (title, curves(plan, &series, &groups)))
        .collect();
    let reach = plan.reach(panels.iter().map(|(_, curves)| times(curves)).collect());
    let panel = |(title, curves)| {
        Cdf {
            title,
            x_title: "ms",
            curves,
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

/// One for each series that was measured.
fn curves(plan: &Plan, series: &[Series], groups: &[&Group]) -> Vec<Curve> {
    let series = series.iter().enumerate();
    let curves = series.filter_map(|(index, one)| {
        Some(Curve {
            ink: ink(index),
            quantiles: quantiles(plan, one, groups)?,
        })
    });
    curves.collect()
}

/// In milliseconds, with their shares.
fn quantiles(plan: &Plan, series: &Series, groups: &[&Group]) -> Option<Vec<(f64, f64)>> {
    let group = plan.at(groups, series, "")?;
    let findings = plan.findings;
    let times = (findings.times).series(&findings.study, group, &series.arm, plan.figure.metric);
    let quantiles = times.ok()?.quantiles(QUANTILES).into_iter();
    let milliseconds = |(time, share): (Duration, f64)| (time.as_secs_f64() * 1e3, share);
    Some(quantiles.map(milliseconds).collect())
}

fn times(curves: &[Curve]) -> Vec<f64> {
    let quantiles = curves.iter().flat_map(|curve| &curve.quantiles);
    quantiles.map(|(time, _)| *time).collect()
}

fn ink(index: usize) -> Ink {
    Ink::new(index, Stroke::nth(index / 3))
}
