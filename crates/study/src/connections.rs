//! How many connections are enough.

use std::fmt;
use std::iter;
use std::str::FromStr;

/// How many connections each sample has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connections {
    /// So many.
    Fixed(u32),
    /// So many, or fewer in cells in which nothing is by chance: until they repeat each other.
    UpTo(u32),
    /// As many as it takes, the same in all arms of a cell.
    Until(Until),
}

/// Connections until all that is reported of a cell is precise enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Until {
    /// Half the width of every interval, at most: a share of the percentile, and as many percentage
    /// points of an increase.
    pub precision: Precision,
    /// Connections that every sample has.
    pub least: u32,
    /// Connections after which nothing more is measured, precise or not; not fewer than `least`.
    pub most: u32,
}

/// How far a number may be from the truth: `±2%`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Precision {
    /// Thousandths of a percent.
    thousandths: u32,
}

impl Connections {
    /// Connections of a sample, at most.
    pub const MOST: u32 = 1_000_000;

    /// So many bound p90 and p99 from above, and would show what befalls one in ten, or one in a hundred: that none of them
    /// has it happens by chance in 1.5 % and 1.8 %.
    const REPEATS: [u32; 2] = [40, 400];

    /// Connections that a sample has at most.
    pub fn most(&self) -> u32 {
        match self {
            Connections::Fixed(connections) | Connections::UpTo(connections) => *connections,
            Connections::Until(until) => until.most,
        }
    }

    /// After how many connections a cell is looked at for how precise its numbers are, the last time when all are measured.
    pub fn looks(&self) -> Vec<u32> {
        match self {
            Connections::Fixed(connections) | Connections::UpTo(connections) => vec![*connections],
            Connections::Until(until) => until.looks(),
        }
    }

    /// After how many connections those of a cell without luck may show that they repeat each other, in ascending order and
    /// fewer than all.
    pub(super) fn repeats(&self) -> impl Iterator<Item = u32> + Clone + use<> {
        let most = match self {
            Connections::UpTo(most) => *most,
            Connections::Fixed(_) | Connections::Until(_) => 0,
        };
        Self::REPEATS.into_iter().filter(move |n| *n < most)
    }
}

impl Until {
    /// Enough to tell p90 by, and not more than one look for nothing where a block has some hundreds.
    pub const LEAST: u32 = 200;
    /// Intervals narrow with the square root: whoever needs more should know it.
    pub const MOST: u32 = 10_000;

    /// With the usual bounds.
    pub fn new(precision: Precision) -> Until {
        Until {
            precision,
            least: Self::LEAST,
            most: Self::MOST,
        }
    }

    /// After `least` connections, after twice as many each time, and at last after `most`. Known
    /// beforehand, so that intervals can allow for all looks.
    fn looks(&self) -> Vec<u32> {
        let doubled = iter::successors(Some(self.least.max(1)), |n| n.checked_mul(2));
        let mut looks: Vec<u32> = doubled.take_while(|n| *n < self.most).collect();
        looks.push(self.most);
        looks
    }
}

impl Precision {
    /// In percent, or in percentage points.
    pub fn percent(self) -> f64 {
        f64::from(self.thousandths) / 1000.0
    }
}

impl From<u32> for Connections {
    fn from(connections: u32) -> Connections {
        Connections::Fixed(connections)
    }
}

impl fmt::Display for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Connections::Fixed(connections) => connections.fmt(f),
            Connections::UpTo(most) => f.pad(&format!("up to {most}")),
            Connections::Until(Until { precision, .. }) => f.pad(&format!("until {precision}")),
        }
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("±{}%", self.percent()))
    }
}

impl FromStr for Connections {
    type Err = ConnectionsError;

    /// `1000`, `up to 1000`, or as [`Until`] is written.
    fn from_str(text: &str) -> Result<Connections, ConnectionsError> {
        let (number, kind): (&str, fn(u32) -> Connections) = match text.strip_prefix("up to ") {
            Some(most) => (most.trim_start(), Connections::UpTo),
            None => (text, Connections::Fixed),
        };
        if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return text.parse().map(Connections::Until);
        }
        (number.parse().ok())
            .filter(|connections| (1..=Self::MOST).contains(connections))
            .map(kind)
            .ok_or_else(|| ConnectionsError::Range(number.to_owned()))
    }
}

impl FromStr for Until {
    type Err = ConnectionsError;

    /// `until ±2%`, or without the sign.
    fn from_str(text: &str) -> Result<Until, ConnectionsError> {
        let (until, precision) = text.split_once(' ').unwrap_or((text, ""));
        match (until, precision.trim()) {
            ("until", "") => Err(ConnectionsError::NoPrecision(text.to_owned())),
            ("until", precision) => Ok(Until::new(precision.parse()?)),
            _ => Err(ConnectionsError::NoNumber(text.to_owned())),
        }
    }
}

impl FromStr for Precision {
    type Err = PrecisionError;

    fn from_str(text: &str) -> Result<Precision, PrecisionError> {
        let number = text.strip_prefix('±').unwrap_or(text);
        let (number, unit) = match number.strip_suffix('%') {
            Some(number) => (number.trim_end(), "%"),
            None => (number, ""),
        };
        let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
        let is_digits =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_digits(whole) || !is_digits(decimals) {
            return Err(PrecisionError::NoNumber(text.to_owned()));
        }
        if unit.is_empty() {
            let (text, hint) = (text.to_owned(), format!("±{number}%"));
            return Err(PrecisionError::MissingUnit { text, hint });
        }
        let thousandths = match decimals.trim_end_matches('0') {
            decimals if decimals.len() <= 3 => format!("{whole}{decimals:0<3}").parse().ok(),
            _ => None,
        };
        thousandths
            .filter(|thousandths| (1..=100_000).contains(thousandths))
            .map(|thousandths| Precision { thousandths })
            .ok_or_else(|| PrecisionError::Range(text.to_owned()))
    }
}

/// The text says no number of [`Connections`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectionsError {
    /// It is something else.
    #[error(
        "{0:?} is no number of connections: write one such as 1000, \"up to 1000\" or \"until ±2%\""
    )]
    NoNumber(String),
    /// It is too small or too large.
    #[error("{0} connections can't be had: use 1 to {most}", most = Connections::MOST)]
    Range(String),
    /// It does not say until when.
    #[error("{0:?} says no precision: write one such as \"until ±2%\"")]
    NoPrecision(String),
    /// What it says is none.
    #[error(transparent)]
    Precision(#[from] PrecisionError),
}

/// The text is no [`Precision`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrecisionError {
    /// It is something else.
    #[error("{0:?} is no precision: write one such as \"±2%\"")]
    NoNumber(String),
    /// The number stands alone.
    #[error("missing unit in precision {text:?}: did you mean {hint:?}?")]
    MissingUnit {
        /// What was found.
        text: String,
        /// The same with a unit.
        hint: String,
    },
    /// It is too small, too large or too fine.
    #[error("precision {0:?} can't be had: use ±0.001% to ±100%")]
    Range(String),
}

#[cfg(test)]
mod tests;
