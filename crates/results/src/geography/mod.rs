//! What distances make of an arm: the first byte by region, with an edge near the users and without.
//!
//! Nothing is measured. Times come from flight arithmetic, as [`explain`](crate::explain) has it, over RTTs that
//! users bring: a [`RttTable`], and what is known of their [regions](Region). `docs/geography.md` has the model.

mod model;
mod table;
#[cfg(test)]
mod tests;
mod users;

pub use model::{
    Aggregate, Distances, Geography, Known, OriginConnection, Question, RegionTimes, Setting, Way,
};
pub use table::{Asymmetry, RttTable, Source};
pub use users::{Place, Region, Users};

use std::time::Duration;

use lastbyte_link::{format_duration, is_hidden, parse_duration};
use thiserror::Error;

use crate::study::table_file::number;

/// Something in a file, or what is asked of it, can't be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}{problem}", place(.file, *.line))]
pub struct GeographyError {
    /// Where it is; empty for what is in no file.
    pub file: String,
    /// The line, where it is in one.
    pub line: Option<u64>,
    /// What is wrong, and the hint.
    pub problem: String,
}

impl GeographyError {
    fn new(file: &str, line: impl Into<Option<u64>>, problem: impl Into<String>) -> GeographyError {
        GeographyError {
            file: file.to_owned(),
            line: line.into(),
            problem: problem.into(),
        }
    }
}

fn place(file: &str, line: Option<u64>) -> String {
    match (file, line) {
        ("", _) => String::new(),
        (file, None) => format!("{file:?}: "),
        (file, Some(line)) => format!("{file:?}, line {line}: "),
    }
}

/// The longest RTT that is taken for one.
const MOST: Duration = Duration::from_secs(60);

/// How a column of RTTs is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    /// Bare numbers are milliseconds.
    Milliseconds,
    /// Each has its unit.
    Said,
}

/// Reads an RTT above zero.
fn rtt(cell: &str, unit: Unit) -> Result<Duration, String> {
    let written = number(cell)?;
    let cell = written.as_ref();
    let number = cell.parse::<f64>().ok();
    let rtt = match (number, unit) {
        (Some(number), Unit::Milliseconds) if number.is_nan() => {
            return Err(format!(
                "{cell:?} is no RTT: leave the cell empty if none is known"
            ));
        }
        (Some(number), Unit::Milliseconds) if number < 0.0 => {
            return Err(format!(
                "{cell:?} is a negative RTT: leave the cell empty if none is known"
            ));
        }
        (Some(number), Unit::Milliseconds) => {
            Duration::try_from_secs_f64(number / 1e3).unwrap_or(Duration::MAX)
        }
        (_, _) => parse_duration(cell).map_err(|error| error.to_string())?,
    };
    match rtt {
        Duration::ZERO => Err(format!(
            "{cell:?} is no RTT, since nothing takes no time: leave the cell empty if none is known"
        )),
        _ if rtt > MOST => Err(format!(
            "{cell:?} is longer than {}: is it in milliseconds?",
            format_duration(MOST)
        )),
        _ => Ok(rtt),
    }
}

/// A name as it may stand in a line of text.
fn name(cell: &str, what: &str) -> Result<String, String> {
    match cell {
        "" => Err(format!(
            "there is no name of {what}: fill the cell, or leave the row out"
        )),
        _ if cell.contains(is_hidden) => Err(format!(
            "the name {cell:?} has a control character: leave that out"
        )),
        _ => Ok(cell.to_owned()),
    }
}
