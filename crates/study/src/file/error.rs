//! What can be wrong with a study file.

use std::fmt;
use std::io;
use std::path::PathBuf;

use lastbyte_link::visible;
use thiserror::Error;

/// There is no study to be had of a file.
#[derive(Debug, Error)]
pub enum StudyError {
    /// It can't be read.
    #[error("can't read study {path:?}: {error}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// It is no study.
    #[error("{}:{line}: {problem}", visible(&path.display().to_string()))]
    Wrong {
        /// The file.
        path: PathBuf,
        /// Counts from 1.
        line: usize,
        /// What is wrong there.
        problem: Box<StudyProblem>,
    },
}

/// What is wrong at a line of a study file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StudyProblem {
    /// It is not TOML.
    #[error("not TOML: {0}")]
    Syntax(String),
    /// It is not UTF-8.
    #[error("this is not UTF-8: save the file as UTF-8")]
    Encoding,
    /// A text has what no screen shows.
    #[error("{key:?} has the control character {character:?}: leave it out")]
    Control {
        /// The key.
        key: String,
        /// Which one.
        character: char,
    },
    /// A name is too long for files and tables.
    #[error("the name {start:?}... has {found} characters: use at most {most}")]
    Long {
        /// How it begins.
        start: String,
        /// How many it has.
        found: usize,
        /// How many it may have.
        most: usize,
    },
    /// A key or a table is there already.
    #[error("{0:?} is there twice: leave one out")]
    KeyTwice(String),
    /// There is no such key.
    #[error("unknown key {key:?}{}: {hint}", Within(table))]
    UnknownKey {
        /// The key.
        key: String,
        /// The header of its table; empty above all tables.
        table: String,
        /// The nearest one, or all.
        hint: String,
    },
    /// A key is needed.
    #[error("missing {key:?}{}: write {example}", Within(table))]
    Missing {
        /// The key.
        key: String,
        /// The header of the table that needs it; empty above all tables.
        table: String,
        /// How one is written.
        example: &'static str,
    },
    /// A key has another type than it should.
    #[error("{key:?} is {found}: write {wanted}")]
    Type {
        /// The key.
        key: String,
        /// What it is, with its article.
        found: String,
        /// What it should be.
        wanted: String,
    },
    /// A number is too small or too large.
    #[error("{key:?} can't be {value}: use {least} to {most}")]
    Range {
        /// The key.
        key: String,
        /// As it was written.
        value: String,
        /// The smallest that is possible.
        least: String,
        /// The greatest that is possible.
        most: String,
    },
    /// A list or a text has nothing in it.
    #[error("{key:?} is empty: write {wanted}")]
    Empty {
        /// The key.
        key: String,
        /// What it should be.
        wanted: String,
    },
    /// A list says something twice.
    #[error("{key:?} has {value} twice: leave one out")]
    Twice {
        /// The key of the list.
        key: String,
        /// As it was written.
        value: String,
    },
    /// Two tables have one name.
    #[error("{kind} {name:?} is there twice: give each a name of its own")]
    SameName {
        /// What they are.
        kind: &'static str,
        /// Their name.
        name: String,
    },
    /// Two arms are one.
    #[error("arm {name:?} is the same as arm {other:?}: leave one out")]
    SameArm {
        /// The later one.
        name: String,
        /// The earlier one.
        other: String,
    },
    /// Two keys contradict each other.
    #[error("{key:?} does not go with {other}: leave one out")]
    Conflict {
        /// The one.
        key: String,
        /// The other.
        other: &'static str,
    },
    /// There are more cells than anyone can measure.
    #[error("more than {most} cells: shorten the lists, or write several studies")]
    TooMany {
        /// How many a study may have.
        most: usize,
    },
    /// A value is not what its key takes, in one line with the hint.
    #[error("{0}")]
    Value(String),
}

/// ` in [[measure]]`, or nothing above all tables.
struct Within<'a>(&'a str);

impl fmt::Display for Within<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            "" => Ok(()),
            table => write!(f, " in {table}"),
        }
    }
}
