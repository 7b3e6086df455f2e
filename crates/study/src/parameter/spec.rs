//! What there is to know of a parameter, whichever it is.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use lastbyte_link::{Bytes, Direction, Link, Loss, Rate, format_duration, parse_duration};

use crate::value::ParameterError;
use crate::{Cell, StudyFolder, TransportName};

/// All that there is to know of a parameter.
pub(crate) struct Spec {
    /// In studies, and, with hyphens, on the command line.
    pub(crate) name: &'static str,
    pub(crate) scope: Scope,
    /// What is measured where it means something.
    pub(crate) measures: Measures,
    /// The only transport that has it, if the other has not.
    pub(crate) transport: Option<TransportName>,
    /// The title of an axis, with its unit.
    pub(crate) title: &'static str,
    pub(crate) caption: Caption,
    pub(crate) reading: Reading,
    pub(crate) place: Place,
    pub(crate) command_line: Option<CommandLine>,
    /// A column of rows, if it is no part of the link.
    pub(crate) column: Option<Column>,
}

/// What has one value of it at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All connections of a cell: it is how the laboratory is set up.
    Cell,
    /// Each connection: a population may draw it.
    Connection,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measures {
    /// Transfers or pages.
    Both,
    /// Transfers of so many bytes.
    Transfers,
    /// Pages that a browser loads.
    Pages,
}

/// How it is reported in the name of a cell.
pub(crate) enum Caption {
    Always(fn(&Cell) -> String),
    /// Unless that goes without saying.
    Unusual(fn(&Cell) -> String),
    Never,
}

/// What its text must be.
pub enum Reading {
    /// A name that only what measures can check.
    Name,
    /// What can be read.
    Text,
    /// What can be read, or two such as `DOWN/UP`: from server to client, and from client to server.
    Ways,
    /// The name of a file, or two such as `DOWN:UP`.
    Files,
    /// A whole number within these.
    Whole(RangeInclusive<u32>),
    /// A size of so much at most.
    Bytes(Bytes),
}

impl Reading {
    /// What parts a text of both directions into DOWN and UP.
    pub(crate) fn separator(&self) -> Option<char> {
        match self {
            Reading::Ways => Some('/'),
            Reading::Files => Some(':'),
            Reading::Name | Reading::Text | Reading::Whole(_) | Reading::Bytes(_) => None,
        }
    }
}

/// Where it is, and how it is set.
pub(crate) enum Place {
    LinkName,
    Link(Access<Link>),
    Direction(Access<Direction>),
    Cell(Access<Cell>),
}

/// Files are looked for in a folder.
pub(crate) struct Access<T> {
    pub(crate) get: fn(&T) -> Value,
    pub(crate) set: Set<T>,
}

pub(crate) type Set<T> = fn(&mut T, &str, &StudyFolder) -> Result<(), ParameterError>;

/// Reads a time of a parameter within its limits.
pub(crate) fn read_time(
    parameter: &'static str,
    text: &str,
    least: Duration,
    most: Duration,
) -> Result<Duration, ParameterError> {
    let time = parse_duration(text)?;
    if (least..=most).contains(&time) {
        Ok(time)
    } else {
        Err(ParameterError::Range {
            parameter,
            text: text.to_owned(),
            least: format_duration(least),
            most: format_duration(most),
        })
    }
}

/// What a parameter is.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A word, or a number in a unit of its own.
    Text(String),
    /// A number of things.
    Count(u32),
    /// A size.
    Bytes(Bytes),
    /// A time.
    Time(Duration),
    /// A rate, if there is a limit.
    Rate(Option<Rate>),
    /// A share of packets.
    Loss(Loss),
}

/// How it is an option.
#[derive(Debug)]
pub struct CommandLine {
    /// What its value is called in help.
    pub value_name: &'static str,
    /// What it does.
    pub help: &'static str,
    /// What it is if nothing is said.
    pub choice: Choice,
    /// Whether it takes several values.
    pub lists: Lists,
}

/// What a parameter is if nothing is said.
#[derive(Debug)]
pub enum Choice {
    /// This.
    Usual(&'static str),
    /// As the preset has it.
    Presets,
}

/// Whether a comma parts values.
#[derive(Debug, PartialEq, Eq)]
pub enum Lists {
    /// It does.
    Taken,
    /// It is a part of the value.
    Refused,
}

/// A column of rows.
#[derive(Debug)]
pub struct Column {
    /// Its name; of a time, with `_ns`.
    pub name: &'static str,
    /// What it holds.
    pub doc: &'static str,
}

impl fmt::Display for Value {
    /// As a study would say it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Text(text) => f.pad(text),
            Value::Count(count) => count.fmt(f),
            Value::Bytes(bytes) => bytes.fmt(f),
            Value::Time(time) => f.pad(&format_duration(*time)),
            Value::Rate(None) => f.pad("unlimited"),
            Value::Rate(Some(rate)) => rate.fmt(f),
            Value::Loss(loss) => loss.fmt(f),
        }
    }
}

/// Reads what is written as its type writes it.
pub(crate) fn read<T>(value: &mut T, text: &str) -> Result<(), ParameterError>
where
    T: FromStr<Err: Into<ParameterError>>,
{
    *value = text.parse().map_err(Into::into)?;
    Ok(())
}
