//! Numbers with units, written as users of tc and iperf3 write them.
//!
//! Every number is read exactly or refused: `"1.5mbit"` is 1,500,000 bit/s, and `"0.5bit"` is
//! an error, as is anything that would have to be rounded.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;
use std::time::Duration;

use thiserror::Error;

use crate::{UnknownName, nearest};

/// A data rate in bits per second, never zero.
///
/// Written with the units of tc: `bit`, `kbit`, `mbit`, `gbit` and `tbit`, powers of 1000, in any
/// case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(NonZeroU64);

/// A probability, from 0 to 1. Written as a percentage: `0.5%`.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Probability(f64);

/// A number of bytes.
///
/// Written with `B`, with `KB`, `MB` and `GB` (powers of 1000), or with `KiB`, `MiB` and `GiB`
/// (powers of 1024).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

/// Why a text is not the quantity that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UnitError {
    /// There is nothing.
    #[error("empty {quantity}: write one such as {example:?}")]
    Empty {
        /// What was asked for.
        quantity: &'static str,
        /// How one is written.
        example: &'static str,
    },
    /// It does not begin with a decimal number.
    #[error("{text:?} is no {quantity}: write one such as {example:?}")]
    NotANumber {
        /// What was asked for.
        quantity: &'static str,
        /// What was found.
        text: String,
        /// How one is written.
        example: &'static str,
    },
    /// It is below zero.
    #[error("negative {quantity} {text:?}: write one such as {example:?}")]
    Negative {
        /// What was asked for.
        quantity: &'static str,
        /// What was found.
        text: String,
        /// How one is written.
        example: &'static str,
    },
    /// The number stands alone.
    #[error("missing unit in {quantity} {text:?}: did you mean {hint}?")]
    MissingUnit {
        /// What was asked for.
        quantity: &'static str,
        /// What was found.
        text: String,
        /// The same with a unit, in quotes.
        hint: String,
    },
    /// The unit is none of those known.
    #[error("unknown unit {unit:?} in {text:?}: {hint}")]
    UnknownUnit {
        /// The unit.
        unit: String,
        /// All that was found.
        text: String,
        /// The nearest known unit, or all of them.
        hint: String,
    },
    /// The name is none of those known.
    #[error(transparent)]
    UnknownName(#[from] UnknownName),
    /// It is too small, too large or too fine.
    #[error("{quantity} {text:?} {hint}")]
    OutOfRange {
        /// What was asked for.
        quantity: &'static str,
        /// What was found.
        text: String,
        /// What is allowed.
        hint: String,
    },
}

impl Rate {
    /// 1 bit per second.
    pub const MIN: Rate = Rate(NonZeroU64::MIN);

    /// `None` for zero.
    #[must_use]
    pub fn from_bits_per_second(bits: u64) -> Option<Rate> {
        NonZeroU64::new(bits).map(Rate)
    }

    /// Bits per second.
    #[must_use]
    pub fn bits_per_second(self) -> u64 {
        self.0.get()
    }

    /// How long `bytes` take at this rate, in whole nanoseconds, rounded down as netem's
    /// `packet_time_ns` does.
    #[must_use]
    pub fn serialisation(self, bytes: usize) -> Duration {
        const BIT_NANOS: u128 = 8 * 1_000_000_000;
        let nanos = bytes as u128 * BIT_NANOS / u128::from(self.bits_per_second());
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

impl Probability {
    /// Never.
    pub const ZERO: Probability = Probability(0.0);
    /// Always.
    pub const ONE: Probability = Probability(1.0);

    /// `None` unless `fraction` lies between 0 and 1.
    #[must_use]
    pub fn from_fraction(fraction: f64) -> Option<Probability> {
        // `abs` makes one zero of the two that there are.
        (0.0..=1.0)
            .contains(&fraction)
            .then_some(Probability(fraction.abs()))
    }

    /// From 0 to 1.
    #[must_use]
    pub fn fraction(self) -> f64 {
        self.0
    }

    /// That it does not happen.
    #[must_use]
    pub fn complement(self) -> Probability {
        Probability(1.0 - self.0)
    }

    /// As `tc` tells it to netem: in 1/(2^32 - 1), to the nearest.
    #[must_use]
    pub fn to_netem(self) -> u32 {
        (self.0 * f64::from(u32::MAX)).round() as u32
    }
}

// A probability is never NaN.
impl Eq for Probability {}

/// Reads a duration such as `35ms`, in `ns`, `us`, `ms` or `s`.
///
/// # Errors
///
/// When it is no such duration, is not a whole number of nanoseconds, or is above 584 years.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    DURATION.parse(text).map(Duration::from_nanos)
}

/// Reads how long something is kept, such as `1h`: as [`parse_duration`], and in `min`, `h` and `d`.
///
/// # Errors
///
/// As [`parse_duration`].
pub fn parse_lifetime(text: &str) -> Result<Duration, UnitError> {
    LIFETIME.parse(text).map(Duration::from_nanos)
}

/// Writes a duration exactly, in the greatest unit of which it holds at least one: `35ms`, `1.5s`.
#[must_use]
pub fn format_duration(duration: Duration) -> String {
    DURATION.format(duration.as_nanos())
}

/// `1 cell`, `2 cells`.
#[must_use]
pub fn counted(count: impl fmt::Display, noun: &str) -> String {
    let count = count.to_string();
    let plural = if count == "1" { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

impl FromStr for Rate {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Rate, UnitError> {
        let zero = || RATE.out_of_range(text, "is zero: leave it out for a link without limit");
        // Of no unit.
        if text.parse() == Ok(0.0) {
            return Err(zero());
        }
        Rate::from_bits_per_second(RATE.parse(text)?).ok_or_else(zero)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&RATE.format(u128::from(self.bits_per_second())))
    }
}

impl FromStr for Probability {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Probability, UnitError> {
        let (number, unit) = PERCENTAGE.split(text)?;
        PERCENTAGE.unit(text, number, unit)?;
        // Scaled in decimal, so that "7%" is the double nearest to 0.07.
        format!("{number}e-2")
            .parse()
            .ok()
            .and_then(Probability::from_fraction)
            .ok_or_else(|| PERCENTAGE.out_of_range(text, "is above 100%"))
    }
}

impl fmt::Display for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Moves the point of the shortest decimal that reads back as this double.
        let fraction = self.0.to_string();
        let (whole, decimals) = fraction.split_once('.').unwrap_or((&fraction, ""));
        let decimals = format!("{decimals:0<2}");
        let (percents, rest) = decimals.split_at(2);
        let digits = format!("{whole}{percents}");
        let percents = match digits.trim_start_matches('0') {
            "" => "0",
            percents => percents,
        };
        let point = if rest.is_empty() { "" } else { "." };
        f.pad(&format!("{percents}{point}{rest}%"))
    }
}

impl FromStr for Bytes {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Bytes, UnitError> {
        BYTES.parse(text).map(Bytes)
    }
}

impl fmt::Display for Bytes {
    /// A whole number of the greatest power of 1024 that allows one: `200KiB`, `16000B`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, size) = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)]
            .into_iter()
            .find(|(_, size)| self.0 != 0 && self.0.is_multiple_of(*size))
            .unwrap_or(("B", 1));
        f.pad(&format!("{}{unit}", self.0 / size))
    }
}

/// How a quantity is written.
struct Quantity {
    name: &'static str,
    example: &'static str,
    base: &'static str,
    /// From the greatest to the smallest, each with how many of the base unit it is.
    units: &'static [(&'static str, u64)],
    case: Case,
}

#[derive(PartialEq)]
enum Case {
    Sensitive,
    Insensitive,
}

const RATE: Quantity = Quantity {
    name: "rate",
    example: "10mbit",
    base: "bits per second",
    units: &[
        ("tbit", 1_000_000_000_000),
        ("gbit", 1_000_000_000),
        ("mbit", 1_000_000),
        ("kbit", 1000),
        ("bit", 1),
    ],
    // As tc reads them.
    case: Case::Insensitive,
};

const DURATION: Quantity = Quantity {
    name: "duration",
    example: "35ms",
    base: "nanoseconds",
    units: &[
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("us", 1000),
        ("ns", 1),
    ],
    case: Case::Sensitive,
};

const LIFETIME: Quantity = Quantity {
    name: "duration",
    example: "1h",
    base: "nanoseconds",
    units: &[
        ("d", 86_400_000_000_000),
        ("h", 3_600_000_000_000),
        ("min", 60_000_000_000),
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("us", 1000),
        ("ns", 1),
    ],
    case: Case::Sensitive,
};

const BYTES: Quantity = Quantity {
    name: "size",
    example: "200KiB",
    base: "bytes",
    units: &[
        ("GiB", 1 << 30),
        ("GB", 1_000_000_000),
        ("MiB", 1 << 20),
        ("MB", 1_000_000),
        ("KiB", 1 << 10),
        ("KB", 1000),
        ("B", 1),
    ],
    case: Case::Sensitive,
};

const PERCENTAGE: Quantity = Quantity {
    name: "probability",
    example: "1%",
    base: "percent",
    units: &[("%", 1)],
    case: Case::Sensitive,
};

impl Quantity {
    /// Reads a number with a unit into a whole number of the base unit.
    fn parse(&self, text: &str) -> Result<u64, UnitError> {
        let (number, unit) = self.split(text)?;
        let size = u128::from(self.unit(text, number, unit)?);
        let too_large = || self.out_of_range(text, "is too large");

        let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
        let decimals = decimals.trim_end_matches('0');
        let too_fine =
            || self.out_of_range(text, &format!("is not a whole number of {}", self.base));
        // A byte has 30 decimals in GiB; none has more.
        let scale = u32::try_from(decimals.len())
            .ok()
            .filter(|digits| *digits <= 30)
            .map(|digits| 10_u128.pow(digits))
            .ok_or_else(too_fine)?;
        let digits = |text: &str| -> Option<u128> {
            if text.is_empty() {
                Some(0)
            } else {
                text.parse().ok()
            }
        };
        let whole = digits(whole)
            .and_then(|whole| whole.checked_mul(size))
            .ok_or_else(too_large)?;
        let part = digits(decimals)
            .and_then(|part| part.checked_mul(size))
            .ok_or_else(too_fine)?;
        if !part.is_multiple_of(scale) {
            return Err(too_fine());
        }
        whole
            .checked_add(part / scale)
            .and_then(|value| u64::try_from(value).ok())
            .ok_or_else(too_large)
    }

    /// Writes a whole number of the base unit.
    fn format(&self, value: u128) -> String {
        let (unit, size) = self
            .units
            .iter()
            .copied()
            .find(|(_, size)| value >= u128::from(*size))
            .unwrap_or_default();
        let size = u128::from(size.max(1));
        let (whole, part) = (value / size, value % size);
        let unit = if value == 0 {
            self.units.first().map_or("", |(unit, _)| unit)
        } else {
            unit
        };
        let width = size.ilog10() as usize;
        let decimals = format!("{part:0width$}");
        match decimals.trim_end_matches('0') {
            "" => format!("{whole}{unit}"),
            decimals => format!("{whole}.{decimals}{unit}"),
        }
    }

    /// Takes the decimal number off the front.
    fn split<'text>(&self, text: &'text str) -> Result<(&'text str, &'text str), UnitError> {
        let (quantity, example) = (self.name, self.example);
        if text.is_empty() {
            return Err(UnitError::Empty { quantity, example });
        }
        if text.starts_with('-') {
            return Err(UnitError::Negative {
                quantity,
                text: text.into(),
                example,
            });
        }
        let end = text
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let points = number.bytes().filter(|byte| *byte == b'.').count();
        if points > 1 || !number.bytes().any(|byte| byte.is_ascii_digit()) {
            return Err(UnitError::NotANumber {
                quantity,
                text: text.into(),
                example,
            });
        }
        // "9.5 ms", as ping and spreadsheets write it.
        Ok((number, unit.trim_start_matches([' ', '\u{a0}'])))
    }

    /// The size of `unit` in base units.
    fn unit(&self, text: &str, number: &str, unit: &str) -> Result<u64, UnitError> {
        if unit.is_empty() {
            let unit = self
                .example
                .trim_start_matches(|c: char| c.is_ascii_digit());
            return Err(UnitError::MissingUnit {
                quantity: self.name,
                text: text.into(),
                hint: self.with_unit(number, unit),
            });
        }
        let matches = |name: &str| match self.case {
            Case::Sensitive => name == unit,
            Case::Insensitive => name.eq_ignore_ascii_case(unit),
        };
        self.units
            .iter()
            .find(|(name, _)| matches(name))
            .map(|(_, size)| *size)
            .ok_or_else(|| UnitError::UnknownUnit {
                unit: unit.into(),
                text: text.into(),
                hint: match (self.name, unit) {
                    (_, decimals) if let Some(decimals) = decimals.strip_prefix(',') => {
                        let meant = format!("{number}.{decimals}");
                        format!("decimals take a point, as in {meant:?}")
                    }
                    // Both are written so elsewhere.
                    ("size", "k" | "K" | "m" | "M" | "g" | "G") => {
                        let letter = unit.to_ascii_uppercase();
                        format!("did you mean \"{number}{letter}iB\" (of 1024) or \"{number}{letter}B\" (of 1000)?")
                    }
                    _ => nearest(unit, self.units.iter().map(|(name, _)| *name)),
                },
            })
    }

    /// A bare number as it may have been meant: one below one can be a share, or a part of a percent.
    fn with_unit(&self, number: &str, unit: &str) -> String {
        let fraction = number.parse().ok().and_then(Probability::from_fraction);
        match fraction {
            Some(share) if unit == "%" && share.0 > 0.0 && share.0 < 1.0 => {
                format!("\"{share}\" or \"{number}{unit}\"")
            }
            _ => format!("\"{number}{unit}\""),
        }
    }

    fn out_of_range(&self, text: &str, hint: &str) -> UnitError {
        UnitError::OutOfRange {
            quantity: self.name,
            text: text.into(),
            hint: hint.into(),
        }
    }
}
