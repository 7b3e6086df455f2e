//! Results for a terminal.

use std::time::Duration;

use lastbyte_link::counted;

use super::answer::answer;
use super::layout::{Field, Line, Role, Style, set, wrap};
use super::messages::{Messages, messages};
use super::text;
use super::waiting::{Waits, WaitsRow, waits};
use crate::results::number::millisecond_digits;
use crate::results::{
    ArmSummary, CellSummary, Measured, Metric, Percentile, Role as ArmRole, Since, Summary,
    Validity,
};

/// The results as text of at most 100 columns: times and increases of each cell, the handshakes'
/// messages, what it comes to in a sentence, and warnings.
pub fn table(summary: &Summary, style: Style) -> String {
    let mut times = Vec::new();
    for cell in &summary.cells {
        times.extend(cell_lines(cell, summary));
        times.push(Line::Text(Role::Normal, String::new()));
    }
    if let Some(since) = &summary.since {
        times.extend(change_lines(summary, since));
        times.push(Line::Text(Role::Normal, String::new()));
    }
    let mut out = set(&times, style);
    for line in [text::legend(summary), text::precision(summary)]
        .into_iter()
        .flatten()
    {
        out.push_str(&format!("{}\n\n", style.paint(Role::Dim, &wrap(&line, 0))));
    }
    let cells = summary
        .cells
        .iter()
        .filter(|cell| cell.cell.population.is_some());
    for cell in cells {
        let lines = waiting_lines(cell, &summary.percentiles);
        out.push_str(&format!("{}\n", set(&lines, style)));
    }
    let handshakes = set(&handshake_lines(summary), style);
    if !handshakes.is_empty() {
        out.push_str(&format!("{handshakes}\n"));
    }
    for sentence in answer(summary) {
        out.push_str(&wrap(&sentence, 0));
        out.push('\n');
    }
    if let Some(engine) = text::engine(summary) {
        out.push_str(&format!(
            "\n{}\n",
            style.paint(Role::Dim, &wrap(&engine, 0))
        ));
    }
    if !summary.warnings.is_empty() {
        out.push('\n');
    }
    for warning in &summary.warnings {
        let text = wrap(&format!("warning: {warning}"), 2);
        let rest = text.strip_prefix("warning:").unwrap_or(&text);
        out.push_str(&style.paint(Role::Warning, "warning:"));
        out.push_str(rest);
        out.push('\n');
    }
    out
}

/// How much longer the connections of a population wait in one cell.
fn waiting_lines(cell: &CellSummary, percentiles: &[Percentile]) -> Vec<Line> {
    let mut lines = vec![Line::Text(Role::Heading, heading(cell))];
    for Waits {
        title,
        titles,
        rows,
    } in waits(cell, percentiles)
    {
        lines.push(Line::Text(Role::Normal, wrap(&format!("  {title}"), 4)));
        let titles = titles.into_iter().map(|title| Field::new(Role::Dim, title));
        lines.push(Line::Fields(Field::new(Role::Normal, ""), titles.collect()));
        for WaitsRow { arm, fields } in rows {
            let (values, intervals): (Vec<_>, Vec<_>) = fields
                .into_iter()
                .map(|(value, interval)| {
                    (
                        Field::new(Role::Normal, value),
                        Field::new(Role::Dim, interval),
                    )
                })
                .unzip();
            lines.push(Line::Fields(
                Field::new(Role::Normal, format!("    {arm}")),
                values,
            ));
            lines.push(Line::Fields(Field::new(Role::Normal, ""), intervals));
        }
    }
    lines
}

/// Times of one cell.
fn cell_lines(cell: &CellSummary, summary: &Summary) -> Vec<Line> {
    let mut lines = vec![Line::Text(Role::Heading, heading(cell))];
    if cell.arms.is_empty() {
        lines.push(Line::Text(Role::Normal, "  not measured".into()));
        return lines;
    }
    let percentiles = summary.percentiles.iter();
    let mut titles: Vec<Field> = percentiles
        .map(|percentile| Field::new(Role::Dim, percentile.to_string()))
        .collect();
    for metric in text::metrics(cell) {
        let name = Field::new(Role::Normal, format!("  {}", text::metric(*metric)));
        lines.push(Line::Fields(name, std::mem::take(&mut titles)));
        for arm in &cell.arms {
            lines.extend(arm_lines(cell, arm, *metric, summary.critical));
        }
    }
    lines
}

/// How every cell has changed.
fn change_lines(summary: &Summary, since: &Since) -> Vec<Line> {
    let heading = wrap(&format!("since {since}"), 2);
    let mut lines = vec![Line::Text(Role::Heading, heading)];
    for cell in summary.cells.iter().filter(|cell| !cell.arms.is_empty()) {
        lines.push(Line::Text(Role::Normal, cell.cell.to_string()));
        let percentiles = summary.percentiles.iter();
        let mut titles: Vec<Field> = percentiles
            .map(|percentile| Field::new(Role::Dim, percentile.to_string()))
            .collect();
        for metric in text::metrics(cell) {
            let name = Field::new(Role::Normal, format!("  {}", text::metric(*metric)));
            lines.push(Line::Fields(name, std::mem::take(&mut titles)));
            for arm in &cell.arms {
                let metric = arm.metric(*metric);
                let changes = metric.changes.keys().filter_map(|percentile| {
                    text::change(metric, *percentile, summary.critical_change)
                });
                lines.push(Line::Fields(
                    Field::new(Role::Normal, format!("    {}", arm.label)),
                    changes.map(|text| Field::new(Role::Normal, text)).collect(),
                ));
            }
        }
    }
    lines
}

/// The times of an arm, and below them their increases or, for an arm alone, their intervals.
fn arm_lines(cell: &CellSummary, arm: &ArmSummary, metric: Metric, critical: f64) -> Vec<Line> {
    let label = match arm.validity {
        Validity::Valid => Field::new(Role::Normal, format!("    {}", arm.label)),
        Validity::Invalid(_) => Field::new(Role::Warning, format!("    {} (invalid)", arm.label)),
    };
    let below = |fields: Vec<Field>| Line::Fields(Field::new(Role::Normal, ""), fields);
    let metric = arm.metric(metric);
    let times = metric.percentiles.values();
    let mut lines = vec![Line::Fields(
        label,
        times
            .clone()
            .map(|time| Field::new(Role::Normal, text::time(time)))
            .collect(),
    )];
    if arm.role == ArmRole::Compared {
        let increases = metric.increases.keys();
        let increases =
            increases.filter_map(|percentile| text::increase(metric, *percentile, critical));
        lines.push(below(
            increases.map(|text| Field::new(Role::Dim, text)).collect(),
        ));
    } else if cell.arms.len() == 1 {
        lines.push(below(times.map(time_interval).collect()));
    }
    lines
}

fn time_interval(time: &Measured<Duration>) -> Field {
    let text = time.map_or(String::new(), |time| {
        text::interval(&time.interval, millisecond_digits)
    });
    Field::new(Role::Dim, text)
}

/// The cell, and how many connections each of its samples has if they agree.
fn heading(cell: &CellSummary) -> String {
    let mut counts: Vec<u32> = cell.arms.iter().map(|arm| arm.connections).collect();
    counts.dedup();
    match *counts {
        [connections] => {
            format!("{}: {}", cell.cell, counted(connections, "connection"))
        }
        _ => cell.cell.to_string(),
    }
}

/// The handshakes' messages, once for each arm.
fn handshake_lines(summary: &Summary) -> Vec<Line> {
    let Messages { titles, rows } = messages(summary);
    let names = titles
        .into_iter()
        .map(|name| Field::new(Role::Dim, name))
        .collect();
    let title = Line::Fields(
        Field::new(Role::Heading, "handshake messages, bytes"),
        names,
    );
    let rows = rows.into_iter().map(|(label, numbers)| {
        let numbers = numbers
            .into_iter()
            .map(|number| Field::new(Role::Normal, number));
        Line::Fields(
            Field::new(Role::Normal, format!("    {label}")),
            numbers.collect(),
        )
    });
    let rows: Vec<Line> = rows.collect();
    if rows.is_empty() {
        rows
    } else {
        std::iter::once(title).chain(rows).collect()
    }
}
