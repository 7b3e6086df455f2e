//! Every number of every measure.

use super::findings::Findings;
use crate::report::escape::xml as escape;
use crate::report::messages::messages;
use crate::report::text;
use crate::results::{ArmSummary, CellSummary, Metric, Percentile, Summary, Validity};

pub(super) fn details(findings: &Findings) -> String {
    let measures = findings.study.measures.iter().zip(&findings.summaries);
    let tables: String = measures
        .map(|(measure, summary)| {
            format!(
                "<details><summary>{}: {} cells</summary>\n{}{}</details>\n",
                escape(&measure.id),
                summary.cells.len(),
                times(summary),
                handshakes(summary)
            )
        })
        .collect();
    format!("<section id=\"numbers\">\n<h2>All numbers</h2>\n{tables}</section>\n")
}

/// A row for each metric of each sample.
fn times(summary: &Summary) -> String {
    let percentiles = &summary.percentiles;
    let title = |percentile: &Percentile| format!("<th>{percentile}</th><th></th>");
    let titles: String = percentiles.iter().map(title).collect();
    let mut text = format!(
        "<div class=\"scroll\"><table>\n<thead><tr><th>cell</th><th>arm</th><th>n</th><th></th>{titles}</tr></thead>\n"
    );
    for cell in &summary.cells {
        if cell.arms.is_empty() {
            text.push_str(&format!(
                "<tr><th>{}</th><th class=\"unknown\">not measured</th></tr>\n",
                escape(&name(cell))
            ));
        }
        for metric in text::metrics(cell) {
            for arm in &cell.arms {
                text.push_str(&row(cell, arm, *metric, percentiles, summary.critical));
            }
        }
    }
    text + "</table></div>\n"
}

fn row(
    cell: &CellSummary,
    arm: &ArmSummary,
    metric: Metric,
    percentiles: &[Percentile],
    critical: f64,
) -> String {
    let summary = arm.metric(metric);
    let numbers: String = (percentiles.iter())
        .map(|percentile| {
            let time = summary.percentiles.get(percentile);
            let increase = text::increase(summary, *percentile, critical);
            format!(
                "<td>{}</td><td class=\"interval\">{}</td>",
                escape(&time.map_or("–".to_owned(), text::time)),
                escape(&increase.unwrap_or_default())
            )
        })
        .collect();
    let failed = match arm.failed() {
        0 => arm.connections.to_string(),
        failed => format!("{} ({failed} failed)", arm.connections),
    };
    let class = match arm.validity {
        Validity::Valid => "",
        Validity::Invalid(_) => " class=\"differs\"",
    };
    format!(
        "<tr><th>{}</th><th{class}>{}</th><td>{failed}</td><th>{}</th>{numbers}</tr>\n",
        escape(&name(cell)),
        escape(&arm.label),
        text::metric(metric),
    )
}

fn name(cell: &CellSummary) -> String {
    match &*cell.name {
        "" => cell.cell.to_string(),
        name => name.to_owned(),
    }
}

fn handshakes(summary: &Summary) -> String {
    let messages = messages(summary);
    let titles: String = (messages.titles.iter())
        .map(|title| format!("<th>{title}</th>"))
        .collect();
    let rows: String = (messages.rows.iter())
        .map(|(arm, sizes)| {
            let sizes: String = sizes
                .iter()
                .map(|size| format!("<td>{}</td>", escape(size)))
                .collect();
            format!("<tr><th>{}</th>{sizes}</tr>\n", escape(arm))
        })
        .collect();
    format!(
        "<div class=\"scroll\"><table>\n<thead><tr><th>handshake messages, bytes</th>{titles}</tr></thead>\n{rows}</table></div>\n"
    )
}
