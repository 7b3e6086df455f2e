//! What there is to know of a parameter, whichever it is.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use lastbyte_link::{Bytes, Direction, Link, Loss, Rate, format_duration};

use crate::study::value::ParameterError;
use crate::study::{Cell, StudyFolder};

/// All that there is to know of a parameter.
pub(in crate::study) struct Spec {
    /// In studies, and, with hyphens, on the command line.
    pub(in crate::study) name: &'static str,
    pub(in crate::study) scope: Scope,
    /// What is measured where it means something.
    pub(in crate::study) measures: Measures,
    /// The title of an axis, with its unit.
    pub(in crate::study) title: &'static str,
    pub(in crate::study) caption: Caption,
    pub(in crate::study) reading: Reading,
    pub(in crate::study) place: Place,
    pub(in crate::study) command_line: Option<CommandLine>,
    /// A column of rows, if it is no part of the link.
    pub(in crate::study) column: Option<Column>,
}

/// What has one value of it at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::study) enum Scope {
    /// All connections of a cell: it is how the laboratory is set up.
    Cell,
    /// Each connection: a population may draw it.
    Connection,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::study) enum Measures {
    /// Transfers or pages.
    Both,
    /// Transfers of so many bytes.
    Transfers,
    /// Pages that a browser loads.
    Pages,
}

/// How it is reported in the name of a cell.
pub(in crate::study) enum Caption {
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
    /// A whole number within these.
    Whole(RangeInclusive<u32>),
    /// A size of so much at most.
    Bytes(Bytes),
}

/// Where it is, and how it is set.
pub(in crate::study) enum Place {
    LinkName,
    Link(Access<Link>),
    Direction(Access<Direction>),
    Cell(Access<Cell>),
}

/// Files are looked for in a folder.
pub(in crate::study) struct Access<T> {
    pub(in crate::study) get: fn(&T) -> Value,
    pub(in crate::study) set: Set<T>,
}

pub(in crate::study) type Set<T> = fn(&mut T, &str, &StudyFolder) -> Result<(), ParameterError>;

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
pub(in crate::study) fn read<T>(value: &mut T, text: &str) -> Result<(), ParameterError>
where
    T: FromStr<Err: Into<ParameterError>>,
{
    *value = text.parse().map_err(Into::into)?;
    Ok(())
}
