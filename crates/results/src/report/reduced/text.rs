//! For a terminal.

use super::super::layout::{Field, Line, Role, Screen, set};
use super::{COLUMNS, Column, Reduced, name, sizes, times};
use crate::reduce::Table;

/// The answer, a table for each cell, and what each way takes: text of at most 100 columns.
pub fn text(reduced: &Reduced<'_>, screen: Screen) -> String {
    let mut out = String::new();
    for sentence in reduced.answer() {
        out.push_str(&screen.wrap(&sentence, 0));
        out.push('\n');
    }
    for table in reduced.tables {
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
    for way in &reduced.reduce.ways {
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
    tell(COLUMNS.to_owned());
    for warning in reduced.warnings {
        let line = screen.wrap(&format!("warning: {warning}"), 2);
        out.push_str(&format!("{}\n", screen.paint(Role::Warning, &line)));
    }
    out
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
