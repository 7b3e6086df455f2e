//! The summary as Markdown, for an issue or a page.

use super::answer::answer;
use super::assumed;
use super::escape;
use super::messages::{Messages, messages};
use super::text;
use super::waiting::{Waits, WaitsRow, Which, waits};
use lastbyte_results::{ArmSummary, CellSummary, MetricSummary, Percentile, Summary, Validity};

/// What it comes to, a table for each cell, one of what has changed, the handshakes' messages, and
/// warnings.
pub fn markdown(summary: &Summary) -> String {
    let mut out = String::new();
    for sentence in answer(summary) {
        out.push_str(&format!("{}\n\n", escape::markdown(&sentence)));
    }
    for cell in summary.cells.iter().filter(|cell| !cell.arms.is_empty()) {
        let times = times(cell, summary);
        out.push_str(&format!("**{}**\n\n{times}\n", heading(cell)));
    }
    for cell in &summary.cells {
        for Waits {
            title,
            titles,
            rows,
        } in waits(cell, &summary.percentiles, Which::All)
        {
            let titles = std::iter::once("arm".to_owned()).chain(titles);
            let rows = rows.into_iter().map(|WaitsRow { arm, fields }| {
                let fields = fields
                    .into_iter()
                    .map(|(value, interval)| format!("{value} {interval}"));
                std::iter::once(escape::markdown_code(&arm))
                    .chain(fields)
                    .collect()
            });
            let table = table(1, titles.collect(), rows);
            out.push_str(&format!(
                "**{}**: {}\n\n{table}\n",
                heading(cell),
                escape::markdown(&title)
            ));
        }
    }
    if let Some(since) = &summary.since {
        let changes = changes(summary);
        out.push_str(&format!(
            "**{}**\n\n{changes}\n",
            escape::markdown(&text::since(summary, since))
        ));
    }
    if let Some(line) = assumed::line_of(&summary.experiment) {
        out.push_str(&format!("{}\n\n", escape::markdown(&line)));
    }
    let contents = text::contents(summary);
    for line in [
        text::legend(summary, &out),
        text::precision(summary),
        contents,
    ]
    .into_iter()
    .flatten()
    {
        out.push_str(&format!("{}\n\n", escape::markdown(&line)));
    }
    let Messages { titles, rows } = messages(summary);
    let titles = std::iter::once("handshake messages, bytes")
        .chain(titles)
        .map(str::to_owned);
    let sizes = rows.into_iter().map(|(label, sizes)| {
        std::iter::once(escape::markdown_code(label))
            .chain(sizes)
            .collect()
    });
    out.push_str(&table(1, titles.collect(), sizes));
    if !summary.warnings.is_empty() {
        out.push('\n');
    }
    for warning in &summary.warnings {
        out.push_str(&format!(
            "- Warning: {}\n",
            escape::markdown(&warning.to_string())
        ));
    }
    out
}

fn heading(cell: &CellSummary) -> String {
    escape::markdown(&cell.cell.to_string())
}

/// Times of one cell, with their increases over the baseline.
fn times(cell: &CellSummary, summary: &Summary) -> String {
    let percentiles = &summary.percentiles;
    let titles = ["metric".to_owned(), "arm".to_owned()];
    let titles = titles
        .into_iter()
        .chain(percentiles.iter().map(Percentile::to_string));
    let rows = text::metrics(cell).iter().flat_map(|metric| {
        cell.arms.iter().map(|arm| {
            let fields = percentiles
                .iter()
                .map(|percentile| field(arm.metric(*metric), *percentile, summary.critical));
            [text::metric(*metric).to_owned(), label(arm)]
                .into_iter()
                .chain(fields)
                .collect()
        })
    });
    table(2, titles.collect(), rows)
}

/// Changes of all cells.
fn changes(summary: &Summary) -> String {
    let titles = ["cell", "metric", "arm"].map(str::to_owned);
    let titles = titles
        .into_iter()
        .chain(summary.percentiles.iter().map(Percentile::to_string));
    let mut rows = Vec::new();
    for cell in &summary.cells {
        for metric in text::metrics(cell) {
            for arm in &cell.arms {
                let words = [heading(cell), text::metric(*metric).into(), label(arm)];
                let metric = arm.metric(*metric);
                let changes = metric.changes.keys().filter_map(|percentile| {
                    text::change(metric, *percentile, summary.critical_change)
                });
                rows.push(words.into_iter().chain(changes).collect());
            }
        }
    }
    table(3, titles.collect(), rows.into_iter())
}

/// `250.8 ms (+1.9 % [1.7, 2.1])`
fn field(metric: &MetricSummary, percentile: Percentile, critical: f64) -> String {
    let time = metric
        .percentiles
        .get(&percentile)
        .map_or(String::new(), text::time);
    match text::increase(metric, percentile, critical) {
        Some(increase) => format!("{time} ({increase})"),
        None => time,
    }
}

fn label(arm: &ArmSummary) -> String {
    match arm.validity {
        Validity::Valid => escape::markdown_code(&arm.label),
        Validity::Invalid(_) => format!("{} (invalid)", escape::markdown_code(&arm.label)),
    }
}

/// A table of which the first columns are words, and the others numbers.
fn table(words: usize, titles: Vec<String>, rows: impl Iterator<Item = Vec<String>>) -> String {
    let line = |fields: &[String]| format!("| {} |\n", fields.join(" | "));
    let alignment = |column| if column < words { "---" } else { "---:" };
    let rule: Vec<String> = (0..titles.len())
        .map(|column| alignment(column).into())
        .collect();
    let mut out = line(&titles) + &line(&rule);
    for row in rows {
        out.push_str(&line(&row));
    }
    out
}
