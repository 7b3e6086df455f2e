//! What the text of a value can't be: of a parameter, of a key of an arm, of one of a delivery.

use std::str::FromStr;

use lastbyte_link::{UnitError, nearest};
use lastbyte_sizes::UnknownGroup;
use thiserror::Error;

/// Why a text is not the value that it should be, with what it can be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ValueError {
    /// It is none of the names that there are.
    #[error("{}", nearest(text, known.iter().copied()))]
    Unlisted {
        /// The text.
        text: String,
        /// The names.
        known: Vec<&'static str>,
    },
    /// It is no group.
    #[error(transparent)]
    Group(UnknownGroup),
    /// It is no quantity in its unit.
    #[error(transparent)]
    Unit(#[from] UnitError),
    /// It is no size.
    #[error(transparent)]
    Size(#[from] SizeError),
    /// It is no whole number within these.
    #[error("use {least} to {most}")]
    Whole {
        /// The smallest that is possible.
        least: u32,
        /// The greatest that is possible.
        most: u32,
    },
    /// It is no payload of a record.
    #[error("use 1 to {most} bytes, or auto")]
    RecordSize {
        /// The largest that TLS has.
        most: u16,
    },
    /// It is no part of a ClientHello.
    #[error("use 1B to {most}B")]
    HelloSplit {
        /// The largest.
        most: u16,
    },
    /// It is no share.
    #[error("write a share from 0% to 100%")]
    Share,
    /// It is no time.
    #[error("use a time such as 1ms")]
    Time,
    /// It is longer than the other side waits.
    #[error("use 0ms to 5s")]
    ResolverRtt,
    /// There is no path.
    #[error("name a PEM file")]
    NoFile,
    /// A list has something twice.
    #[error("name {0} once")]
    Twice(&'static str),
    /// A list is parted by commas.
    #[error("write several as {}", text.replace(',', "+"))]
    Commas {
        /// The list.
        text: String,
    },
    /// It is no compression.
    #[error("{}", .0.hint)]
    Compression(lastbyte_sizes::UnknownCompression),
    /// They are no cosigners.
    #[error("name ca, chrome, apple, or a number from 1 to {most}")]
    Cosigners {
        /// How many there can be.
        most: u8,
    },
    /// It is no number of entries.
    #[error("use 1 to {most}, without a unit")]
    Entries {
        /// How many there can be.
        most: u32,
    },
}

/// Why a text is no size.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SizeError {
    /// Its number stands alone.
    #[error("missing unit in size {0:?}: did you mean \"{0}B\"?")]
    NoUnit(String),
    /// It is no number with a unit.
    #[error(transparent)]
    Unit(#[from] UnitError),
}

/// Reads one of the names that there are.
pub(super) fn one_of<T: FromStr>(
    text: &str,
    known: impl IntoIterator<Item = &'static str>,
) -> Result<T, ValueError> {
    text.parse().map_err(|_| ValueError::Unlisted {
        text: text.to_owned(),
        known: known.into_iter().collect(),
    })
}

/// Reads a whole number within these.
pub(super) fn whole<T>(text: &str, least: T, most: T) -> Result<T, ValueError>
where
    T: Copy + FromStr + Into<u32> + PartialOrd,
{
    let number = text.parse().ok();
    let number = number.filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| ValueError::Whole {
        least: least.into(),
        most: most.into(),
    })
}
