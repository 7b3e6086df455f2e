//! The distribution function of each arm.

use std::time::Duration;

use crate::chart::{Cdf, Curve, Point};
use crate::study::finding;
use crate::study::plan::{Baseline, Content, Kind, Number, Plan, Series};
use crate::text;
use lastbyte_results::Group;
use lastbyte_study::Quantity;

pub(super) static KIND: Kind = Kind {
    quantity: Quantity::Time,
    baseline: Baseline::Drawn,
    title: |metric| format!("Distribution of the {}", text::metric(metric)),
    note: |_| String::new(),
    draw,
    finding: finding::tail,
    numbers,
};

/// Quantiles that a distribution function is drawn through.
const QUANTILES: usize = 200;

fn draw(plan: &Plan) -> Content {
    let series = plan.series();
    let panels: Vec<_> = (plan.panels().into_iter())
        .map(|(title, groups)| (title, curves(plan, &series, &groups)))
        .collect();
    let reach = plan.reach(panels.iter().map(|(_, curves)| times(curves)).collect());
    let cdf = |curves| Cdf {
        x_title: "ms",
        curves,
        marks: plan.marks(),
        reach: reach.clone().unwrap_or_default(),
    };
    let panels = panels
        .into_iter()
        .map(|(title, curves)| (title, cdf(curves)));
    // Shares are on one axis at any rate; times are told below each panel.
    plan.chart(panels.collect(), plan.key(&series), Some(&Vec::new()))
}

/// All quantiles that curves are drawn through.
fn numbers(plan: &Plan) -> Vec<Number> {
    let mut numbers = Vec::new();
    for (panel, groups) in plan.panels() {
        for one in &plan.series() {
            for (time, share) in quantiles(plan, one, &groups).into_iter().flatten() {
                numbers.push(Number {
                    panel: panel.clone(),
                    x: String::new(),
                    series: plan.name(one),
                    percentile: format!("p{}", (1e4 * share).round() / 100.0),
                    ours: Some(Point {
                        value: time,
                        interval: None,
                    }),
                    theirs: None,
                });
            }
        }
    }
    numbers
}

/// One for each series that was measured.
fn curves(plan: &Plan, series: &[Series], groups: &[&Group]) -> Vec<Curve> {
    let curves = series.iter().filter_map(|one| {
        Some(Curve {
            ink: plan.ink(series, one),
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
