//! For a terminal.

use super::super::assumed::line;
use super::super::layout::{Field, Line, Role, Screen, set, width};
use super::super::table::Detail;
use super::beside::{Beside, LEGEND};
use super::{COLUMNS, Column, Reduced, name, sizes, times};
use lastbyte_results::reduce::Table;

/// The answer and one table of all networks: a screen. With all details, a table for each cell and what each way takes, too. Text
/// of at most 100 columns.
pub fn text(reduced: &Reduced<'_>, screen: Screen, detail: Detail) -> String {
    let mut out = String::new();
    for sentence in reduced.answer() {
        out.push_str(&screen.wrap(&sentence, 0));
        out.push('\n');
    }
    let beside = Beside::new(reduced);
    for lines in beside_each_other(&beside, screen) {
        out.push('\n');
        out.push_str(&set(&lines, screen));
    }
    let tables = match detail {
        Detail::Answer => &[],
        Detail::Everything => reduced.tables,
    };
    for table in tables {
        out.push('\n');
        let title = Line::Text(Role::Heading, screen.wrap(&table.cell.to_string(), 2));
        out.push_str(&set(&[title], screen));
        for columns in [sizes(table), times(table, reduced.percentiles)] {
            out.push_str(&set(&part(table, &columns), screen));
        }
    }
    out.push('\n');
    let mut tell = |line: String| {
        out.push_str(&screen.paint(Role::Dim, &screen.wrap(&line, 2)));
        out.push('\n');
    };
    tell(LEGEND.to_owned());
    if let (Some(arm), Detail::Answer) = (reduced.reduce.whole.first(), detail) {
        let cells: Vec<_> = reduced
            .tables
            .iter()
            .map(|table| table.cell.clone())
            .collect();
        tell(line(arm, &cells));
        tell("-v has all times, what computing takes, clients that are stale, and who has each way today.".to_owned());
    }
    let ways = match detail {
        Detail::Answer => &[][..],
        Detail::Everything => &reduced.reduce.ways,
    };
    for way in ways {
        let way = way.reduction;
        tell(format!("{}: {}", way.name, way.doc));
        if let Some(holds) = way.holds {
            tell(format!(
                "  clients hold: {}; how old: {}",
                holds.what, holds.age
            ));
        }
        tell(format!(
            "  clients that lack it: {}; who has it: {}",
            way.stale, way.support
        ));
    }
    for (way, reason) in &reduced.reduce.unavailable {
        tell(format!("{} can't be had: {reason}", way.name));
    }
    if detail == Detail::Everything {
        tell(COLUMNS.to_owned());
    }
    for warning in reduced.warnings {
        let line = screen.wrap(&format!("warning: {warning}"), 2);
        out.push_str(&format!("{}\n", screen.paint(Role::Warning, &line)));
    }
    out
}

/// One table, or several where networks are too many for the screen.
fn beside_each_other(beside: &Beside, screen: Screen) -> Vec<Vec<Line>> {
    let times = beside.times();
    let lines = |networks: &[usize]| -> Vec<Line> {
        let titles = networks.iter().map(|number| {
            let network = beside.networks.get(*number).map_or("", String::as_str);
            match network {
                "" => times.clone(),
                network => network.to_owned(),
            }
        });
        let titles = ["Certificate", "server, B", "flights"]
            .map(str::to_owned)
            .into_iter()
            .chain(titles);
        let titles = titles.map(|title| Field::new(Role::Dim, title));
        let heading = format!("{times}, ms than whole");
        let mut lines = vec![Line::Fields(
            Field::new(Role::Heading, heading),
            titles.collect(),
        )];
        for entry in &beside.entries {
            let number =
                |number: Option<u32>| number.map_or("-".to_owned(), |number| number.to_string());
            let flights = entry
                .flights
                .map_or("-".to_owned(), |flights| flights.to_string());
            let sizes = [number(entry.certificate), number(entry.server), flights];
            let changes = networks.iter().map(|number| match entry.subject {
                None => String::new(),
                Some(_) => entry.change(*number),
            });
            let fields = sizes.into_iter().chain(changes);
            let fields = fields.map(|text| Field::new(Role::Normal, text));
            lines.push(Line::Fields(
                Field::new(Role::Normal, format!("  {}", entry.name)),
                fields.collect(),
            ));
        }
        lines
    };
    let all: Vec<usize> = (0..beside.networks.len()).collect();
    let fits = |count: &usize| {
        let mut chunks = all.chunks(*count);
        chunks.all(|chunk| width(&lines(chunk)) <= screen.columns)
    };
    let count = (1..=all.len()).rev().find(fits).unwrap_or(1);
    all.chunks(count).map(lines).collect()
}

fn part(table: &Table<'_>, columns: &[Column]) -> Vec<Line> {
    let titles = columns
        .iter()
        .map(|column| Field::new(Role::Dim, &*column.title));
    let mut lines = vec![Line::Fields(Field::new(Role::Normal, ""), titles.collect())];
    for ranked in &table.ranked {
        let cells = columns
            .iter()
            .map(|column| Field::new(Role::Normal, column.of(ranked)));
        let label = Field::new(Role::Normal, format!("  {}", name(ranked)));
        lines.push(Line::Fields(label, cells.collect()));
    }
    lines
}
