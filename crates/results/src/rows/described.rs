//! What a column is, in words.

use serde_json::{Value, json};

use super::{Column, Kind, Presence};

/// What each column holds, as JSON: an object of its name, type, unit, and when it is absent, for each in order.
pub(super) fn descriptions<V>(columns: &[Column<V>]) -> String {
    let columns = columns.iter().map(|column| {
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

/// The type of a column, in words.
pub(super) fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Text => "text",
        Kind::Whole => "whole number",
        Kind::Fraction => "fraction",
        Kind::Truth => "truth",
    }
}

impl<V> Column<V> {
    /// When it is absent, in words; empty if it never is.
    pub(super) fn absent_where(&self) -> &'static str {
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
