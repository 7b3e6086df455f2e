//! Times, which callers give: nothing here reads a clock.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use std::time::Duration;

use crate::der::{calendar, seconds};

/// Seconds since 1970, without leap seconds (POSIX).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixTime(pub u64);

impl UnixTime {
    /// The time so much later, to the second.
    pub fn after(self, duration: Duration) -> UnixTime {
        UnixTime(self.0.saturating_add(duration.as_secs()))
    }
}

/// As RFC 3339 has it, in UTC; what comes after the year 9999 is its end.
impl fmt::Display for UnixTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, [month, day, hour, minute, second]) = calendar(self.0);
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"
        )
    }
}

/// The text is no [`UnixTime`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no time: write one such as \"2026-01-31T12:00:00Z\", or seconds since 1970")]
pub struct NoTime;

/// Seconds since 1970, or a time in UTC as RFC 3339 has it, in whole seconds.
impl FromStr for UnixTime {
    type Err = NoTime;

    fn from_str(text: &str) -> Result<UnixTime, NoTime> {
        if let Ok(seconds) = text.parse() {
            return Ok(UnixTime(seconds));
        }
        let has_shape = text.len() == SHAPE.len()
            && (text.bytes().zip(SHAPE.bytes())).all(|(byte, shape)| match shape {
                b'0' => byte.is_ascii_digit(),
                shape => byte == shape,
            });
        let part = |place: Range<usize>| {
            let digits = text.get(place).filter(|_| has_shape)?;
            digits.parse::<u64>().ok()
        };
        let time = || {
            let rest = [
                part(5..7)?,
                part(8..10)?,
                part(11..13)?,
                part(14..16)?,
                part(17..19)?,
            ];
            seconds(part(0..4)?, rest)
        };
        time().map(UnixTime).ok_or(NoTime)
    }
}

const SHAPE: &str = "0000-00-00T00:00:00Z";

/// When a certificate holds, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// The first second.
    pub from: UnixTime,
    /// The last second.
    pub to: UnixTime,
}

impl Validity {
    /// From a time on, for so long.
    pub fn of(from: UnixTime, duration: Duration) -> Validity {
        Validity {
            from,
            to: UnixTime(from.after(duration).0.saturating_sub(1)),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::{NoTime, UnixTime};

    #[test]
    fn times_are_written_and_read_as_rfc_3339_has_them() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (253_402_300_799, "9999-12-31T23:59:59Z"),
        ] {
            assert_eq!(UnixTime(seconds).to_string(), text);
            assert_eq!(text.parse(), Ok(UnixTime(seconds)));
        }
        assert_eq!(UnixTime(u64::MAX).to_string(), "9999-12-31T23:59:59Z");
        assert_eq!("1".parse(), Ok(UnixTime(1)));
        for text in [
            "",
            "-1",
            "2026-01-31",
            "2026-02-30T00:00:00Z",
            "2026-01-31T12:00:00+01",
        ] {
            assert_eq!(text.parse::<UnixTime>(), Err(NoTime), "{text}");
        }
    }
}
