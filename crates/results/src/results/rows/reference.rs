//! `docs/columns.md`: all columns of rows.

use serde_json::{Value, json};

use super::{COLUMNS, Column, Kind, Presence};

const HEAD: &str = "# Columns of rows\n\n\
     The code writes this page from the table that it writes rows by (see CONTRIBUTING.md).\n\n\
     A row is one connection, with all that it depends on. `lastbyte run` keeps rows in `rows.parquet`, and \
     `lastbyte compare --output FILE.csv` or `FILE.parquet` writes them: the same columns in the same order. In Parquet, \
     text is UTF-8, a whole number INT64, a fraction DOUBLE, a truth BOOLEAN, and what is absent null; in CSV it is empty. \
     Files of all rows hold this table too, as JSON in their metadata under the key `columns` ([notebook.md](notebook.md)). \
     Times are in nanoseconds, and those of a connection from just before `connect()`.\n\n\
     | column | type | unit | absent where | what it holds |\n\
     |---|---|---|---|---|\n";

/// All columns, as a page of Markdown.
pub fn reference() -> String {
    let lines = COLUMNS.iter().map(|column| {
        format!(
            "| `{}` | {} | {} | {} | {} |\n",
            column.name,
            kind(column.kind),
            column.unit(),
            column.absent_where(),
            column.doc
        )
    });
    HEAD.to_owned() + &lines.collect::<String>()
}

/// What each column holds, as JSON: an object of its name, type, unit, and when it is absent, for each in order.
pub(in crate::results) fn descriptions() -> String {
    let columns = COLUMNS.iter().map(|column| {
        json!({
            "column": column.name,
            "type": kind(column.kind),
            "unit": column.unit(),
            "absent": column.absent_where(),
            "holds": column.doc,
        })
    });
    Value::Array(columns.collect()).to_string()
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Text => "text",
        Kind::Whole => "whole number",
        Kind::Fraction => "fraction",
        Kind::Truth => "truth",
    }
}

impl Column {
    /// When it is absent, in words; empty if it never is.
    fn absent_where(&self) -> &'static str {
        match self.presence {
            Presence::Required => "",
            Presence::Optional => self.absent,
        }
    }

    /// The unit of a number, as its name ends in it.
    pub fn unit(&self) -> &'static str {
        const UNITS: [(&str, &str); 7] = [
            ("_ns", "ns"),
            ("_bytes", "bytes"),
            ("_bps", "bit/s"),
            ("_packets", "packets"),
            ("_mss", "bytes"),
            ("cwnd", "segments"),
            ("_segments", "segments"),
        ];
        let mut units = UNITS.iter();
        match self.kind {
            Kind::Whole => units
                .find(|(ending, _)| self.name.ends_with(ending))
                .map_or("", |(_, unit)| unit),
            Kind::Text | Kind::Fraction | Kind::Truth => "",
        }
    }
}
