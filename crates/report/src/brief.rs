//! Results at a glance: one row for each network.

use lastbyte_link::counted;

use super::layout::{Field, Line, Role, Screen};
use super::text;
use lastbyte_results::number::{milliseconds, signed_milliseconds};
use lastbyte_results::{
    ArmSummary, CellSummary, Contents, Metric, Percentile, Role as ArmRole, Summary, Validity,
};
use lastbyte_study::{Cell, common};

/// What stands in one row of the table: a network, and one percentile or several that are equal.
struct Row<'a> {
    cell: &'a CellSummary,
    metric: Metric,
    percentile: Percentile,
    label: String,
}

/// The most telling time of each network, arm beside arm where the screen allows that, else one below the other.
pub(crate) fn brief(summary: &Summary, screen: Screen) -> Vec<Line> {
    let Some(usual) = summary.representative() else {
        return Vec::new();
    };
    let mut lines = vec![Line::Text(
        Role::Heading,
        screen.wrap(&title(summary, usual), 2),
    )];
    let rows: Vec<Row<'_>> = (summary.cells.iter())
        .flat_map(|cell| rows(cell, summary, usual))
        .collect();
    let beside = side_by_side(summary, &rows);
    let is_narrow = super::layout::width(&beside) <= screen.columns;
    lines.extend(if is_narrow {
        beside
    } else {
        one_below_the_other(summary, &rows)
    });
    lines
}

/// What all networks have in common, and how many connections there are.
fn title(summary: &Summary, usual: Percentile) -> String {
    let cells: Vec<Cell> = (summary.cells.iter())
        .map(|cell| cell.cell.clone())
        .collect();
    let samples = || summary.cells.iter().flat_map(|cell| &cell.arms);
    let connections = samples().map(|arm| arm.connections);
    let counted = match (connections.clone().min(), connections.max()) {
        (Some(least), Some(most)) if least == most => counted(most, "connection"),
        (Some(least), Some(most)) => format!("{least} to {most} connections"),
        _ => "not measured".to_owned(),
    };
    let common = match common(&cells) {
        common if common.is_empty() => common,
        common => format!("{common}: "),
    };
    let each = match samples().count() {
        0 | 1 => "",
        _ => " each",
    };
    let usual = match usual {
        Percentile::MEDIAN => "medians".to_owned(),
        other => other.to_string(),
    };
    format!("{common}{counted}{each}, {usual}")
}

/// One row for a cell, and those of other percentiles where chance makes them others.
fn rows<'a>(cell: &'a CellSummary, summary: &Summary, usual: Percentile) -> Vec<Row<'a>> {
    let Some(metric) = text::metrics(cell).first().copied() else {
        return Vec::new();
    };
    let what = text::metric(metric);
    let label = match &*cell.name {
        "" => what.to_owned(),
        name => format!("{name}, {what}"),
    };
    let row = |percentile, label| Row {
        cell,
        metric,
        percentile,
        label,
    };
    let is_chance =
        cell.cell.has_loss() || cell.cell.has_jitter() || cell.cell.population.is_some();
    let others = summary.percentiles.iter().filter(|one| **one != usual);
    let others = others
        .filter(|_| is_chance)
        .map(|one| row(*one, format!("    {one}")));
    [row(usual, label)].into_iter().chain(others).collect()
}

/// A column for each arm.
fn side_by_side(summary: &Summary, rows: &[Row<'_>]) -> Vec<Line> {
    let labels: Vec<&str> = labels(summary);
    let cells: Vec<Vec<[String; 2]>> = (rows.iter())
        .map(|row| {
            labels
                .iter()
                .map(|label| entry(summary, row, label))
                .collect()
        })
        .collect();
    // Within a column, times and increases stand below each other.
    let width = |column: usize, part: usize| {
        let texts = cells
            .iter()
            .filter_map(|cells| cells.get(column)?.get(part));
        texts.map(|text| text.chars().count()).max().unwrap_or(0)
    };
    let set = |(column, [time, increase]): (usize, &[String; 2])| {
        let (times, increases) = (width(column, 0), width(column, 1));
        let gap = if increases > 0 { "  " } else { "" };
        format!("{time:>times$}{gap}{increase:>increases$}")
    };
    let titles = labels.iter().map(|label| Field::new(Role::Dim, *label));
    let mut lines = vec![Line::Fields(Field::new(Role::Normal, ""), titles.collect())];
    for (row, cells) in rows.iter().zip(&cells) {
        let fields = cells.iter().enumerate().map(set);
        let fields = fields.map(|text| Field::new(Role::Normal, text));
        lines.push(Line::Fields(
            Field::new(Role::Normal, format!("  {}", row.label)),
            fields.collect(),
        ));
    }
    let cpu: Vec<_> = labels
        .iter()
        .map(|label| cpu(summary, rows, label))
        .collect();
    if cpu.iter().any(|cpu| !cpu.is_empty()) {
        let fields = cpu.into_iter().map(|text| Field::new(Role::Dim, text));
        lines.push(Line::Fields(
            Field::new(Role::Dim, "  of which computing, here"),
            fields.collect(),
        ));
    }
    lines
}

/// A line for each arm, below its network.
fn one_below_the_other(summary: &Summary, rows: &[Row<'_>]) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut titles = vec![Field::new(Role::Dim, "all")];
    let labels = labels(summary);
    let has_cpu = labels
        .iter()
        .any(|label| !cpu(summary, rows, label).is_empty());
    if has_cpu {
        titles = ["network", "+ computing", "= all"]
            .map(|title| Field::new(Role::Dim, title))
            .to_vec();
    }
    for row in rows {
        lines.push(Line::Fields(
            Field::new(Role::Normal, format!("  {}", row.label)),
            std::mem::take(&mut titles),
        ));
        for label in &labels {
            let [time, increase] = entry(summary, row, label);
            let shares =
                arm(row.cell, label).and_then(|arm| arm.metric(row.metric).shares(row.percentile));
            let shares = match (has_cpu, shares) {
                (false, _) => Vec::new(),
                (true, None) => vec![String::new(), String::new()],
                (true, Some(shares)) => vec![
                    milliseconds(shares.network),
                    signed_milliseconds(shares.cpu),
                ],
            };
            let fields = shares.into_iter().chain([time, increase]);
            lines.push(Line::Fields(
                Field::new(Role::Normal, format!("    {label}")),
                fields.map(|text| Field::new(Role::Normal, text)).collect(),
            ));
        }
    }
    lines
}

fn labels(summary: &Summary) -> Vec<&str> {
    let arms = summary.experiment.arms.iter();
    arms.map(|arm| arm.name.as_str()).collect()
}

fn arm<'a>(cell: &'a CellSummary, label: &str) -> Option<&'a ArmSummary> {
    cell.arms.iter().find(|arm| arm.label == label)
}

/// A time, and the increase over the baseline: `107.1 ms` and `+51.4 % [51.2, 51.5]`. Of an arm alone, the interval.
fn entry(summary: &Summary, row: &Row<'_>, label: &str) -> [String; 2] {
    let Some(arm) = arm(row.cell, label) else {
        return ["-".to_owned(), String::new()];
    };
    let metric = arm.metric(row.metric);
    let mut time = metric
        .percentiles
        .get(&row.percentile)
        .map_or("-".into(), text::time);
    if arm.validity != Validity::Valid {
        time.insert_str(0, "invalid ");
    }
    let beside = match arm.role {
        ArmRole::Compared => text::increase(metric, row.percentile, summary.critical),
        ArmRole::Baseline if summary.experiment.arms.len() == 1 => {
            let time = metric.percentiles.get(&row.percentile);
            time.and_then(|time| text::spread(time.as_ref().ok()?))
        }
        ArmRole::Baseline => None,
    };
    [time, beside.unwrap_or_default()]
}

/// What an arm computes, over all rows: `2.12 ms`, `2.12 to 2.31 ms`.
fn cpu(summary: &Summary, rows: &[Row<'_>], label: &str) -> String {
    let contents = summary.contents();
    let shares = rows
        .iter()
        .filter(|row| summary.representative() == Some(row.percentile));
    let shares = shares.filter_map(|row| {
        arm(row.cell, label)?
            .metric(row.metric)
            .shares(row.percentile)
    });
    let times: Vec<_> = shares.map(|shares| shares.cpu).collect();
    match (times.iter().min(), times.iter().max()) {
        (Some(least), Some(most)) if contents == Some(Contents::Shares) => {
            let [least, most] = [least, most].map(|time| signed_milliseconds(*time));
            if least == most {
                most
            } else {
                format!("{} to {most}", least.trim_end_matches(" ms"))
            }
        }
        _ => String::new(),
    }
}
