//! Percentiles of many arms: a row for each, and a dot for each value of what changes.

use super::time_title;
use crate::chart::{Dot, Dots, Ink, KeyEntry, reached};
use crate::study::finding;
use crate::study::plan::{Baseline, Content, Kind, Plan, Series};
use lastbyte_results::Group;
use lastbyte_study::{Parameter, Quantity};

pub(super) static KIND: Kind = Kind {
    quantity: Quantity::Time,
    baseline: Baseline::Drawn,
    title: time_title,
    note,
    draw,
    finding: finding::times,
    numbers: |plan| plan.numbers(),
};

fn note(plan: &Plan) -> String {
    let whiskers = "whiskers are 95 % intervals";
    match (plan.figure.x, plan.percentiles) {
        (None, _) => format!("A dot for each percentile; {whiskers}."),
        (Some(x), [percentile]) => format!(
            "A dot for each value of {}, at the {percentile}; {whiskers}.",
            x.title()
        ),
        (Some(x), percentiles) => {
            let percentiles: Vec<_> = percentiles.iter().map(ToString::to_string).collect();
            format!(
                "Dots for each value of {}, at {} from dark to light; {whiskers}.",
                x.title(),
                percentiles.join(", ")
            )
        }
    }
}

fn draw(plan: &Plan) -> Content {
    let series = plan.series();
    let row = |groups: &[&Group], one: &Series| (plan.name(one), dots(plan, groups, one));
    let panels: Vec<(String, Vec<_>)> = (plan.panels().into_iter())
        .map(|(title, groups)| (title, series.iter().map(|one| row(&groups, one)).collect()))
        .collect();
    let reach = plan.reach(panels.iter().map(|(_, rows)| values(rows)).collect());
    let drawing = |rows| Dots {
        x_title: plan.y_title(),
        rows,
        reach: reach.clone().unwrap_or_default(),
    };
    let panels = panels
        .into_iter()
        .map(|(title, rows)| (title, drawing(rows)));
    // Rows have the same names everywhere.
    plan.chart(panels.collect(), key(plan), Some(&Vec::new()))
}

fn dots(plan: &Plan, groups: &[&Group], series: &Series) -> Vec<Dot> {
    let at = |x: &str| {
        let group = plan.at(groups, series, x);
        (
            plan.points(group, &series.arm),
            plan.theirs(group, &series.arm),
        )
    };
    let dots: Vec<(Vec<_>, Vec<_>)> = match plan.figure.x {
        Some(_) => plan.axis().iter().map(|(x, _)| at(x)).collect(),
        None => {
            let (points, theirs) = at("");
            let alone = points.into_iter().zip(theirs);
            alone
                .map(|(point, theirs)| (vec![point], vec![theirs]))
                .collect()
        }
    };
    let dot = |(place, (points, theirs)): (usize, (Vec<_>, Vec<Option<f64>>))| Dot {
        colour: ink(place).colour,
        points,
        theirs: theirs.into_iter().flatten().collect(),
    };
    dots.into_iter().enumerate().map(dot).collect()
}

/// What colours mean: values of what changes, or percentiles.
fn key(plan: &Plan) -> Vec<KeyEntry> {
    let names: Vec<String> = match plan.figure.x.map(Parameter::title) {
        Some(title) => {
            let values = plan.axis().into_iter();
            values
                .map(|(value, _)| format!("{title} {value}"))
                .collect()
        }
        None => plan.percentiles.iter().map(ToString::to_string).collect(),
    };
    let entry = |(place, name)| KeyEntry {
        name,
        ink: ink(place),
    };
    names.into_iter().enumerate().map(entry).collect()
}

fn ink(place: usize) -> Ink {
    Ink::nth(place)
}

fn values(rows: &[(String, Vec<Dot>)]) -> Vec<f64> {
    let dots = rows.iter().flat_map(|(_, dots)| dots);
    let theirs = dots.clone().flat_map(|dot| dot.theirs.iter().copied());
    let ours = reached(dots.flat_map(|dot| dot.points.iter().flatten()));
    ours.into_iter().chain(theirs).collect()
}
