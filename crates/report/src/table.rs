//! Results for a terminal.

use lastbyte_link::counted;

use super::answer::answer;
use super::brief::brief;
use super::layout::{self, Field, Line, Role, Screen, set};
use super::messages::{Messages, messages};
use super::text;
use super::waiting::{Waits, WaitsRow, Which, waits};
use lastbyte_results::number::milliseconds;
use lastbyte_results::{
    ArmSummary, CellSummary, Metric, Percentile, Role as ArmRole, Since, Summary, Validity,
};

/// How much is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// What it comes to, and one row for each network.
    Answer,
    /// All percentiles of all times of all arms, with what they consist of.
    Everything,
}

/// The results as text: what it comes to in sentences, times and increases of each cell, the handshakes' messages, and
/// warnings.
pub fn table(summary: &Summary, screen: Screen, detail: Detail) -> String {
    let mut parts = Vec::new();
    let answer = answer(summary);
    let answer = answer
        .iter()
        .map(|sentence| screen.wrap(sentence, 0) + "\n");
    parts.push(answer.collect());
    let times = match detail {
        Detail::Answer => set(&brief(summary, screen), screen),
        Detail::Everything => times(summary, screen),
    };
    let legend = text::legend(summary, &times);
    parts.push(times);
    if let Some(since) = &summary.since {
        parts.push(set(&change_lines(summary, since, screen), screen));
    }
    let notes = [legend, text::precision(summary)].into_iter().flatten();
    parts.extend(notes.map(|note| dim(&note, screen)));
    for cell in &summary.cells {
        let which = match detail {
            Detail::Answer => Which::Felt,
            Detail::Everything => Which::All,
        };
        parts.push(match &cell.cell.population {
            Some(_) => set(
                &waiting_lines(cell, &summary.percentiles, which, screen),
                screen,
            ),
            None => String::new(),
        });
    }
    parts.push(set(&handshake_lines(summary, screen), screen));
    let origin = [text::contents(summary), text::engine(summary)]
        .into_iter()
        .flatten();
    let mut origin: Vec<String> = origin.collect();
    if detail == Detail::Answer && has_more(summary) {
        origin.push("More of it: -v.".to_owned());
    }
    parts.push(dim(&origin.join(" "), screen));
    parts.push(warnings(summary, screen));
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

/// A note in a paragraph of its own; nothing of nothing.
fn dim(note: &str, screen: Screen) -> String {
    match note {
        "" => String::new(),
        note => screen.paint(Role::Dim, &screen.wrap(note, 0)) + "\n",
    }
}

/// Whether there is anything besides the answer.
fn has_more(summary: &Summary) -> bool {
    summary.cells.iter().any(|cell| !cell.arms.is_empty())
}

fn warnings(summary: &Summary, screen: Screen) -> String {
    let line = |warning| {
        let text = screen.wrap(&format!("warning: {warning}"), 2);
        let rest = text.strip_prefix("warning:").unwrap_or(&text);
        format!("{}{rest}\n", screen.paint(Role::Warning, "warning:"))
    };
    summary.warnings.iter().map(line).collect()
}

/// All times of all cells.
fn times(summary: &Summary, screen: Screen) -> String {
    let mut lines = Vec::new();
    for (index, cell) in summary.cells.iter().enumerate() {
        if index > 0 {
            lines.push(Line::Text(Role::Normal, String::new()));
        }
        lines.extend(cell_lines(cell, summary, screen));
    }
    set(&lines, screen)
}

/// How much longer the connections of a population wait in one cell.
fn waiting_lines(
    cell: &CellSummary,
    percentiles: &[Percentile],
    which: Which,
    screen: Screen,
) -> Vec<Line> {
    let mut lines = vec![Line::Text(Role::Heading, screen.wrap(&heading(cell), 2))];
    for Waits {
        title,
        titles,
        rows,
    } in waits(cell, percentiles, which)
    {
        lines.push(Line::Text(
            Role::Normal,
            screen.wrap(&format!("  {title}"), 4),
        ));
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
fn cell_lines(cell: &CellSummary, summary: &Summary, screen: Screen) -> Vec<Line> {
    let mut lines = vec![Line::Text(Role::Heading, screen.wrap(&heading(cell), 2))];
    if cell.arms.is_empty() {
        lines.push(Line::Text(Role::Normal, "  not measured".into()));
        return lines;
    }
    let mut told = Vec::new();
    for metric in text::metrics(cell) {
        let columns = Columns::new(cell, *metric, summary);
        let titles = columns.titles();
        let name = Field::new(Role::Normal, format!("  {}", text::metric(*metric)));
        let fields = if titles == told {
            Vec::new()
        } else {
            titles
                .iter()
                .map(|title| Field::new(Role::Dim, title.as_str()))
                .collect()
        };
        told = titles;
        lines.push(Line::Fields(name, fields));
        for (index, arm) in cell.arms.iter().enumerate() {
            lines.extend(arm_lines(arm, &columns, index));
        }
    }
    lines
}

/// The percentiles of a metric with what is written of each arm; those of which the same is written stand together.
struct Columns(Vec<Column>);

struct Column {
    first: Percentile,
    last: Percentile,
    /// Of each arm what stands below each other.
    arms: Vec<Vec<String>>,
}

impl Columns {
    fn new(cell: &CellSummary, metric: Metric, summary: &Summary) -> Columns {
        let mut columns: Vec<Column> = Vec::new();
        for percentile in summary.percentiles.iter().copied() {
            let texts = |arm: &ArmSummary| texts(cell, arm, metric, percentile, summary.critical);
            let arms: Vec<_> = cell.arms.iter().map(texts).collect();
            match columns.last_mut() {
                Some(last) if last.arms == arms => last.last = percentile,
                _ => columns.push(Column {
                    first: percentile,
                    last: percentile,
                    arms,
                }),
            }
        }
        Columns(columns)
    }

    /// `p50`, or `p50 to p90`.
    fn titles(&self) -> Vec<String> {
        let title = |column: &Column| {
            if column.first == column.last {
                column.first.to_string()
            } else {
                format!("{} to {}", column.first, column.last)
            }
        };
        self.0.iter().map(title).collect()
    }
}

/// What is written of a percentile of an arm: the time, what it consists of, and the increase or, for an arm alone, the
/// interval. Nothing where there is nothing to say.
fn texts(
    cell: &CellSummary,
    arm: &ArmSummary,
    metric: Metric,
    percentile: Percentile,
    critical: f64,
) -> Vec<String> {
    let metric = arm.metric(metric);
    let Some(time) = metric.percentiles.get(&percentile) else {
        return Vec::new();
    };
    let shares = metric.shares(percentile).map(|shares| {
        let network = milliseconds(shares.network);
        if shares.cpu.is_negative() {
            format!("{network} - {}", milliseconds(shares.cpu.unsigned_abs()))
        } else {
            format!("{network} + {}", milliseconds(shares.cpu.unsigned_abs()))
        }
    });
    let besides = match arm.role {
        ArmRole::Compared => text::increase(metric, percentile, critical),
        ArmRole::Baseline if cell.arms.len() == 1 => time.as_ref().ok().and_then(text::spread),
        ArmRole::Baseline => None,
    };
    vec![
        text::time(time),
        shares.unwrap_or_default(),
        besides.unwrap_or_default(),
    ]
}

/// How every cell has changed.
fn change_lines(summary: &Summary, since: &Since, screen: Screen) -> Vec<Line> {
    let heading = screen.wrap(&text::since(summary, since), 2);
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

/// What is written of an arm, line by line.
fn arm_lines(arm: &ArmSummary, columns: &Columns, index: usize) -> Vec<Line> {
    let label = match arm.validity {
        Validity::Valid => Field::new(Role::Normal, format!("    {}", arm.label)),
        Validity::Invalid(_) => Field::new(Role::Warning, format!("    {} (invalid)", arm.label)),
    };
    let texts = |line: usize| -> Vec<String> {
        let of_arm = columns.0.iter().filter_map(|column| column.arms.get(index));
        of_arm
            .map(|texts| texts.get(line).cloned().unwrap_or_default())
            .collect()
    };
    let below = [("      network + computing", 1), ("", 2)];
    let below = below.into_iter().filter_map(|(title, line)| {
        let texts = texts(line);
        let is_told = texts.iter().any(|text| !text.is_empty());
        let fields = texts.into_iter().map(|text| Field::new(Role::Dim, text));
        is_told.then(|| Line::Fields(Field::new(Role::Dim, title), fields.collect()))
    });
    let times = texts(0)
        .into_iter()
        .map(|text| Field::new(Role::Normal, text));
    [Line::Fields(label, times.collect())]
        .into_iter()
        .chain(below)
        .collect()
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

/// The handshakes' messages, once for each arm: beside each other where the screen allows that.
fn handshake_lines(summary: &Summary, screen: Screen) -> Vec<Line> {
    const TITLE: &str = "handshake messages, bytes";
    let Messages { titles, rows } = messages(summary);
    if rows.is_empty() {
        return Vec::new();
    }
    let heading = Field::new(Role::Heading, TITLE);
    let number = |number: String| Field::new(Role::Normal, number);
    let label = |label: &str| Field::new(Role::Normal, format!("    {label}"));
    let names = titles.iter().map(|name| Field::new(Role::Dim, *name));
    let beside: Vec<Line> = [Line::Fields(heading, names.collect())]
        .into_iter()
        .chain(rows.iter().map(|(arm, numbers)| {
            let numbers = numbers.iter().cloned().map(number);
            Line::Fields(label(arm), numbers.collect())
        }))
        .collect();
    if layout::width(&beside) <= screen.columns {
        return beside;
    }
    let below = rows.into_iter().flat_map(|(arm, numbers)| {
        let numbers = titles.iter().zip(numbers).map(|(title, of)| {
            let title = Field::new(Role::Dim, format!("      {title}"));
            Line::Fields(title, vec![number(of)])
        });
        let numbers: Vec<_> = numbers.collect();
        [Line::Fields(label(arm), Vec::new())]
            .into_iter()
            .chain(numbers)
    });
    let heading = Line::Text(Role::Heading, screen.wrap(TITLE, 2));
    [heading].into_iter().chain(below).collect()
}
