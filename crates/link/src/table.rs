//! Distributions of jitter that were measured.

use std::fmt;

use thiserror::Error;

use crate::distribution::{TABLE_SIZE, to_table};
use crate::{UnitError, parse_duration};

/// `NETEM_DIST_MAX`: as many quantiles as netem takes.
const MAX_SIZE: usize = 16384;

/// A distribution of jitter that was measured.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Table {
    name: String,
    quantiles: Vec<i16>,
}

impl Table {
    /// Reads a table as `tc` reads its `.dist` files: quantiles in 1/8192 of the jitter, with white
    /// space between them. Lines that begin with `#` are comments.
    ///
    /// # Errors
    ///
    /// When something else is in it, or not between 1 and 16384 quantiles are.
    pub fn from_quantiles(file: &str, text: &str) -> Result<Table, TableError> {
        let mut quantiles = Vec::new();
        for (line, text) in lines(text) {
            for word in text.split_ascii_whitespace() {
                if quantiles.len() == MAX_SIZE {
                    return Err(TableError::TooLong { file: file.into() });
                }
                quantiles.push(word.parse().map_err(|_| TableError::NotAQuantile {
                    file: file.into(),
                    line,
                    text: word.chars().take(20).collect(),
                })?);
            }
        }
        if quantiles.is_empty() {
            return Err(TableError::Empty { file: file.into() });
        }
        Ok(Table {
            name: file.into(),
            quantiles,
        })
    }

    /// Makes a table of delays that were measured, such as `35.2ms`, one on a line. Lines that
    /// begin with `#` are comments.
    ///
    /// Only the shape is taken. The mean becomes the delay of a direction, and the standard
    /// deviation its jitter, whatever these are. As in `netem/maketable.c` of iproute2, the table
    /// holds 4096 quantiles, a delay between those that were measured is interpolated,
    /// and one that is more than four standard deviations from the mean is held at four.
    ///
    /// # Errors
    ///
    /// When a line is no duration, or there are not at least two different ones.
    pub fn from_delays(file: &str, text: &str) -> Result<Table, TableError> {
        let mut delays = Vec::new();
        for (line, text) in lines(text) {
            let delay = parse_duration(text).map_err(|problem| TableError::NotADelay {
                file: file.into(),
                line,
                problem,
            })?;
            delays.push(delay.as_nanos() as f64);
        }
        delays.sort_by(f64::total_cmp);
        match (delays.first(), delays.last()) {
            (Some(least), Some(most)) if least < most => (),
            (None, _) => return Err(TableError::Empty { file: file.into() }),
            _ => return Err(TableError::Same { file: file.into() }),
        }
        let mean = mean(&delays, |delay| delay);
        let deviation = self::mean(&delays, |delay| (delay - mean).powi(2)).sqrt();
        let quantiles = (0..TABLE_SIZE).map(|i| {
            let share = (i as f64 + 0.5) / TABLE_SIZE as f64;
            to_table((quantile(&delays, share) - mean) / deviation)
        });
        Ok(Table {
            name: file.into(),
            quantiles: quantiles.collect(),
        })
    }

    /// The name of its file.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// At least one and at most 16384, in 1/8192 of the jitter.
    #[must_use]
    pub fn quantiles(&self) -> &[i16] {
        &self.quantiles
    }
}

impl fmt::Debug for Table {
    /// Its name alone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Table").field(&self.name).finish()
    }
}

/// Why a file is no distribution of jitter.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TableError {
    /// A word of it is no quantile.
    #[error(
        "{file:?}, line {line}: {text:?} is no whole number from -32768 to 32767: \
         a .dist file holds quantiles in 1/8192 of the jitter"
    )]
    NotAQuantile {
        /// The file.
        file: String,
        /// Counted from 1.
        line: usize,
        /// The beginning of the word.
        text: String,
    },
    /// A line of it is no delay.
    #[error("{file:?}, line {line}: {problem}")]
    NotADelay {
        /// The file.
        file: String,
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        problem: UnitError,
    },
    /// There is nothing but comments.
    #[error(
        "{file:?} holds no numbers: put quantiles into a .dist file, or delays such as 35.2ms \
         into a .csv or .txt file"
    )]
    Empty {
        /// The file.
        file: String,
    },
    /// There are more quantiles than netem takes.
    #[error(
        "{file:?} holds more than {MAX_SIZE} quantiles: leave out all but every second or third"
    )]
    TooLong {
        /// The file.
        file: String,
    },
    /// There is no jitter in the delays.
    #[error("all delays in {file:?} are the same: leave out the jitter, or measure again")]
    Same {
        /// The file.
        file: String,
    },
}

/// The lines that are not empty and no comments, trimmed, with their numbers.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..)
        .zip(text.lines().map(str::trim))
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

fn mean(values: &[f64], of: impl Fn(f64) -> f64) -> f64 {
    values.iter().map(|value| of(*value)).sum::<f64>() / values.len() as f64
}

/// The value that a `share` of the sorted `values` lies below; the value in place `i` stands for
/// the shares around `(i + 1/2) / n`.
fn quantile(values: &[f64], share: f64) -> f64 {
    let last = values.len().saturating_sub(1);
    let place = (share * values.len() as f64 - 0.5).clamp(0.0, last as f64);
    let at = |place: f64| values.get(place as usize).copied().unwrap_or_default();
    let (below, above) = (at(place.floor()), at(place.ceil()));
    below + (above - below) * place.fract()
}
