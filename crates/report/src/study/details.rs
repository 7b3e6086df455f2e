//! Every number of every measure.

use lastbyte_link::counted;
use maud::{Markup, html};

use super::findings::Findings;
use crate::messages::messages;
use crate::text;
use lastbyte_results::{ArmSummary, CellSummary, Metric, Percentile, Summary, Validity};

pub(super) fn details(findings: &Findings) -> Markup {
    let measures = findings.study.measures.iter().zip(&findings.summaries);
    html! {
        section id="numbers" {
            h2 { "All numbers" }
            @for (measure, summary) in measures {
                details {
                    summary { (measure.id) ": " (counted(summary.cells.len(), "cell")) }
                    (times(summary))
                    (handshakes(summary))
                }
            }
        }
    }
}

/// A row for each metric of each sample.
fn times(summary: &Summary) -> Markup {
    let percentiles = &summary.percentiles;
    html! {
        div.scroll {
            table {
                thead {
                    tr {
                        th { "cell" } th { "arm" } th { "n" } th {}
                        @for percentile in percentiles { th { (percentile) } th {} }
                    }
                }
                @for cell in &summary.cells {
                    @if cell.arms.is_empty() {
                        tr { th { (name(cell)) } th.unknown { "not measured" } }
                    }
                    @for metric in text::metrics(cell) {
                        @for arm in &cell.arms {
                            (row(cell, arm, *metric, percentiles, summary.critical))
                        }
                    }
                }
            }
        }
    }
}

fn row(
    cell: &CellSummary,
    arm: &ArmSummary,
    metric: Metric,
    percentiles: &[Percentile],
    critical: f64,
) -> Markup {
    let summary = arm.metric(metric);
    let time = |percentile| {
        let time = summary.percentiles.get(percentile);
        time.map_or("–".to_owned(), text::time)
    };
    let invalid = match arm.validity {
        Validity::Valid => None,
        Validity::Invalid(_) => Some("differs"),
    };
    html! {
        tr {
            th { (name(cell)) }
            th class=[invalid] { (arm.label) }
            td {
                (arm.connections)
                @if arm.failed() > 0 { " (" (arm.failed()) " failed)" }
                @if invalid.is_some() { " (disturbed)" }
            }
            th { (text::metric(metric)) }
            @for percentile in percentiles {
                td { (time(percentile)) }
                td.interval { (text::increase(summary, *percentile, critical).unwrap_or_default()) }
            }
        }
    }
}

fn name(cell: &CellSummary) -> String {
    match &*cell.name {
        "" => cell.cell.to_string(),
        name => name.to_owned(),
    }
}

fn handshakes(summary: &Summary) -> Markup {
    let messages = messages(summary);
    html! {
        div.scroll {
            table {
                thead {
                    tr {
                        th { "handshake messages, bytes" }
                        @for title in &messages.titles { th { (title) } }
                    }
                }
                @for (arm, sizes) in &messages.rows {
                    tr {
                        th { (arm) }
                        @for size in sizes { td { (size) } }
                    }
                }
            }
        }
    }
}
