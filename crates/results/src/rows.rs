//! Rows on paper: one table of columns, and files of them as CSV and as Parquet.

mod columns;
mod csv;
mod described;
mod parquet;
mod reference;
mod requests;
#[cfg(test)]
mod tests;

pub use self::columns::COLUMNS;
pub(super) use self::columns::LONGEST;
pub use self::csv::CsvWriter;
pub(super) use self::parquet::ParquetReader;
#[cfg(any(test, feature = "fixtures"))]
pub use self::parquet::reseal;
pub use self::parquet::{ParquetWriter, Unreadable};
pub use self::reference::reference;
pub use self::requests::{REQUEST_COLUMNS, RequestWriter};

use std::borrow::Cow;
use std::io;
use std::time::Duration;

use lastbyte_sizes::Message;

use super::{CpuCosts, Exchange, Row, Sample, Validity};
use lastbyte_study::{Arm, Cell, Draw, EngineName, Experiment, Parameter};

/// One column of a table: of the rows, if nothing else is said.
#[derive(Clone)]
pub struct Column<V = OfConnection> {
    /// Its name, in the first line of a CSV file and in the schema of a Parquet file.
    pub name: &'static str,
    /// What it holds.
    pub doc: &'static str,
    /// The type of its fields.
    pub kind: Kind,
    /// Whether a field can be absent.
    pub presence: Presence,
    /// When it is absent, if it can be.
    pub absent: &'static str,
    value: V,
}

/// What a column says of a connection, and how that is had back.
#[derive(Clone, Copy)]
pub struct OfConnection {
    source: Source,
    restore: Restore,
}

/// Gives a row what a field of a column says; `None` when it can't say that.
#[derive(Clone, Copy)]
enum Restore {
    /// The column is not the row's own: all rows of a batch have the first one's in Parquet.
    Never,
    Row(fn(&mut Row, Value<'_>) -> Option<()>),
    /// The size of a message.
    Message(Message),
}

/// Where its fields come from.
#[derive(Clone, Copy)]
enum Source {
    Connection(for<'a> fn(&'a Connection<'a>) -> Value<'a>),
    Cell(Parameter),
    Message(Message),
    /// A size of an exchange besides those of its messages.
    Size(fn(&Exchange) -> Option<u32>),
}

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// UTF-8.
    Text,
    /// A whole number, in Parquet of 64 bits with a sign.
    Whole,
    /// A number of double precision.
    Fraction,
    /// `true` or `false`.
    Truth,
}

/// Whether a field can be absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Every row has one.
    Required,
    /// It is empty in CSV and null in Parquet where there is nothing to tell: a time that was not
    /// reached, a message that was not seen, no rate limit.
    Optional,
}

/// Where rows come from.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    /// The study.
    pub study: &'a str,
    /// The part of it that was measured.
    pub measure: &'a str,
    /// What carried the bytes.
    pub engine: EngineName,
}

/// Rows with all that they depend on, and have in common.
#[derive(Clone, Debug)]
pub struct Batch<'a> {
    origin: Origin<'a>,
    experiment: &'a Experiment,
    arm: &'a Arm,
    cell: Cow<'a, Cell>,
    chain_digest: &'a str,
    cpu_costs: Option<CpuCosts>,
    concurrency: u32,
    validity: Validity,
    rows: &'a [Row],
}

impl<'a> Batch<'a> {
    /// The rows of a sample of `experiment`.
    ///
    /// # Errors
    ///
    /// When the experiment has no such arm or cell.
    pub fn new(
        origin: Origin<'a>,
        experiment: &'a Experiment,
        sample: &'a Sample,
    ) -> io::Result<Batch<'a>> {
        let (Some(arm), Some(cell)) = (
            experiment.arms.get(sample.arm),
            experiment.cells.get(sample.cell),
        ) else {
            return Err(io::Error::other(
                "a sample is of no arm or no cell of the experiment",
            ));
        };
        Ok(Batch {
            origin,
            experiment,
            arm,
            cell: cell.with_buffers(sample.engine.buffers),
            chain_digest: &sample.chain_digest,
            cpu_costs: sample.engine.cpu_costs,
            concurrency: sample.engine.concurrency,
            validity: sample.validity(experiment),
            rows: &sample.rows,
        })
    }

    fn connections(&self) -> impl Iterator<Item = Connection<'_>> {
        self.rows.iter().map(|row| {
            let draw = self.cell.draw(row.index);
            Connection {
                batch: self,
                row,
                cell: match &draw {
                    Some(draw) => Cow::Owned(self.cell.with(draw)),
                    None => Cow::Borrowed(&*self.cell),
                },
                draw,
            }
        })
    }
}

/// One connection, with all that it depends on.
struct Connection<'a> {
    batch: &'a Batch<'a>,
    row: &'a Row,
    /// As it was for this connection.
    cell: Cow<'a, Cell>,
    /// What it drew, if it is of a population.
    draw: Option<Draw>,
}

/// What a field holds.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value<'a> {
    Absent,
    Text(Cow<'a, str>),
    Whole(u64),
    Fraction(f64),
    Truth(bool),
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Value<'a> {
        value.map_or(Value::Absent, Into::into)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Value<'a> {
        Value::Text(text.into())
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Value::Text(text.into())
    }
}

impl From<u32> for Value<'_> {
    fn from(number: u32) -> Self {
        Value::Whole(number.into())
    }
}

impl From<u64> for Value<'_> {
    fn from(number: u64) -> Self {
        Value::Whole(number)
    }
}

impl From<f64> for Value<'_> {
    fn from(number: f64) -> Self {
        Value::Fraction(number)
    }
}

impl From<bool> for Value<'_> {
    fn from(truth: bool) -> Self {
        Value::Truth(truth)
    }
}

impl From<Duration> for Value<'_> {
    /// In nanoseconds.
    fn from(duration: Duration) -> Self {
        Value::Whole(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}
