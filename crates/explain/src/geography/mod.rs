//! What distances make of an arm: the first byte by region, with an edge near the users and without.
//!
//! Nothing is measured. Times come from flight arithmetic, as [`explain`](crate) has it, over RTTs that
//! users bring: a [`RttTable`], and what is known of their [regions](Region). `docs/geography.md` has the model.

mod model;
mod table;
#[cfg(test)]
mod tests;
mod users;

pub use model::{
    Aggregate, Distances, Geography, OriginConnection, Question, RegionTimes, RttSource, Setting,
    Way,
};
pub use table::{Asymmetry, RttTable, Source};
pub use users::{Place, Region, Users};

use std::time::Duration;

use lastbyte_link::{UnitError, format_duration, is_hidden, parse_duration};
use thiserror::Error;

use lastbyte_study::table_file::{TableError, number};

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
    fn new(file: &str, line: impl Into<Option<u64>>, problem: impl ToString) -> GeographyError {
        GeographyError {
            file: file.to_owned(),
            line: line.into(),
            problem: problem.to_string(),
        }
    }
}

/// What is wrong with what a file says of places.
#[derive(Debug, Error)]
enum PlaceProblem {
    #[error(transparent)]
    Table(#[from] TableError),
    #[error("{0:?} is no RTT: leave the cell empty if none is known")]
    NoRtt(String),
    #[error("{0:?} is a negative RTT: leave the cell empty if none is known")]
    Negative(String),
    #[error(transparent)]
    Unit(#[from] UnitError),
    #[error("{0:?} is no RTT, since nothing takes no time: leave the cell empty if none is known")]
    NoTime(String),
    #[error("{cell:?} is longer than {}: is it in milliseconds?", format_duration(*.most))]
    TooLong { cell: String, most: Duration },
    #[error("there is no name of {0}: fill the cell, or leave the row out")]
    NoName(&'static str),
    #[error("the name {0:?} has a control character: leave that out")]
    Control(String),
    #[error("two columns are {0:?}: leave one out")]
    SameColumn(String),
    #[error("two lines are of {0:?}: leave one out")]
    SameLine(String),
    #[error("from {from:?} to {to:?}: {problem}")]
    Pair {
        from: String,
        to: String,
        problem: Box<PlaceProblem>,
    },
    #[error("from {from:?} to {to:?} is in line {line} already: leave one out")]
    SamePair { from: String, to: String, line: u64 },
    #[error("there are columns \"rtt_ms\" and \"rtt\": leave one out")]
    BothUnits,
    #[error(
        "there is no column of RTTs beside \"from\" and \"to\": call it \"rtt_ms\", or \"rtt\" with units"
    )]
    NoColumn,
    #[error("there are more than {0} places: group those that are close together")]
    TooMany(usize),
    #[error("column {name:?} is none of a region: {hint}")]
    UnknownColumn { name: String, hint: String },
    #[error("{0:?} is there in two columns: leave one out")]
    TwoColumns(String),
    #[error("there is no column \"region\": name one so")]
    NoRegion,
    #[error("there is a {one} without a {other}")]
    HalfAPlace {
        one: &'static str,
        other: &'static str,
    },
    #[error("{0:?} is no number of users: write 0, or a number from 0.000001 to 1000000000000000")]
    Weight(String),
    #[error("{cell:?} is no {what}: write degrees from -{most} to {most}")]
    Degrees {
        cell: String,
        what: &'static str,
        most: f64,
    },
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
fn rtt(cell: &str, unit: Unit) -> Result<Duration, PlaceProblem> {
    let written = number(cell)?;
    let cell = written.as_ref();
    let number = cell.parse::<f64>().ok();
    let rtt = match (number, unit) {
        (Some(number), Unit::Milliseconds) if number.is_nan() => {
            return Err(PlaceProblem::NoRtt(cell.to_owned()));
        }
        (Some(number), Unit::Milliseconds) if number < 0.0 => {
            return Err(PlaceProblem::Negative(cell.to_owned()));
        }
        (Some(number), Unit::Milliseconds) => {
            Duration::try_from_secs_f64(number / 1e3).unwrap_or(Duration::MAX)
        }
        (_, _) => parse_duration(cell)?,
    };
    match rtt {
        Duration::ZERO => Err(PlaceProblem::NoTime(cell.to_owned())),
        _ if rtt > MOST => Err(PlaceProblem::TooLong {
            cell: cell.to_owned(),
            most: MOST,
        }),
        _ => Ok(rtt),
    }
}

/// A name as it may stand in a line of text.
fn name(cell: &str, what: &'static str) -> Result<String, PlaceProblem> {
    match cell {
        "" => Err(PlaceProblem::NoName(what)),
        _ if cell.contains(is_hidden) => Err(PlaceProblem::Control(cell.to_owned())),
        _ => Ok(cell.to_owned()),
    }
}
