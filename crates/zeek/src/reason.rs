//! Why a line could not be read.

use std::fmt;

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// Its file has no header of its fields.
    NoHeader,
    /// What says it has blanks in place of separators.
    Blanks,
    /// It needs a column that its file has not.
    NoColumn(&'static str),
    /// It has more or fewer columns than its header.
    Columns,
    /// The separator that its header says is more than one byte.
    Separator,
    /// A field holds what it can't.
    Field(&'static str),
    /// It is no JSON, or no object of it.
    Json,
    /// It is JSON that has this key twice.
    Twice(Box<str>),
    /// It has more bytes than are kept of a file.
    TooLong,
    /// The file breaks off in it.
    BrokenOff,
    /// The file has 16 bits a letter.
    Utf16,
    /// It is JSON of which a row takes several lines.
    JsonOverLines,
    /// The file's lines end in a carriage return alone.
    CarriageReturns,
}

impl fmt::Display for Reason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::NoHeader => out.write_str("no #fields before it"),
            Reason::Blanks => {
                out.write_str("its log has blanks in place of tabs: take it as Zeek wrote it")
            }
            Reason::NoColumn(column) => write!(out, "its log has no column {column}"),
            Reason::Columns => out.write_str("not as many columns as #fields has"),
            Reason::Separator => out.write_str("its log has a #separator of more than one byte"),
            Reason::Field(field) => write!(out, "{field} is not what it should be"),
            Reason::Json => out.write_str("neither JSON nor complete"),
            Reason::Twice(key) => write!(out, "it has the key {key:?} twice"),
            Reason::TooLong => out.write_str("longer than 256 KiB"),
            Reason::BrokenOff => out.write_str("the file breaks off in it"),
            Reason::JsonOverLines => {
                out.write_str("JSON of which a row takes several lines: write each on one, as jq -c \".[]\" does")
            }
            Reason::CarriageReturns => out.write_str(
                "its lines end in a carriage return alone: write line feeds, as tr '\\r' '\\n' does",
            ),
            Reason::Utf16 => out.write_str("the file is UTF-16: write it as UTF-8"),
        }
    }
}
