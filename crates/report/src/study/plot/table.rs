//! The numbers themselves: the cells of a figure with a row for each arm.

use maud::{Markup, html};

use super::time_title;
use crate::study::finding;
use crate::study::plan::{Baseline, Content, Kind, Plan};
use crate::text;
use lastbyte_results::ArmSummary;
use lastbyte_study::{Parameter, Quantity, varying};

pub(super) static KIND: Kind = Kind {
    quantity: Quantity::Time,
    baseline: Baseline::Drawn,
    title: time_title,
    note: |_| String::new(),
    draw: |plan| Content::Table(table(plan)),
    finding: finding::times,
    numbers: |plan| plan.numbers(),
};

fn table(plan: &Plan) -> Markup {
    let places = plan.cells.iter();
    let cells = places.filter_map(|place| plan.findings.cell(*place));
    let differ = varying(&cells.collect::<Vec<_>>());
    html! {
        div.scroll {
            table {
                thead {
                    tr {
                        @for parameter in &differ { th { (parameter.title()) } }
                        th { "arm" }
                        @for percentile in plan.percentiles { th { (percentile) ", ms" } }
                        @for percentile in plan.percentiles { th { (percentile) ", %" } }
                    }
                }
                @for place in &plan.cells { (rows(plan, *place, &differ)) }
            }
        }
    }
}

fn rows(plan: &Plan, place: (usize, usize), differ: &[Parameter]) -> Markup {
    let Plan {
        findings,
        figure,
        percentiles,
        ..
    } = *plan;
    let Some((cell, summary)) = findings.cell(place).zip(findings.cell_summary(place)) else {
        return Markup::default();
    };
    let is_drawn = |arm: &&ArmSummary| figure.arms.is_empty() || figure.arms.contains(&arm.label);
    html! {
        @for arm in summary.arms.iter().filter(is_drawn) {
            @let metric = arm.metric(figure.metric);
            tr {
                @for parameter in differ { td { (parameter.of(cell)) } }
                td { (arm.label) }
                @for percentile in percentiles {
                    td { (metric.percentiles.get(percentile).map_or("–".to_owned(), text::time)) }
                }
                @for percentile in percentiles {
                    td { (text::increase(metric, *percentile, findings.critical()).unwrap_or_default()) }
                }
            }
        }
    }
}
