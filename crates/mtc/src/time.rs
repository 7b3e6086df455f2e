//! Times, which callers give: nothing here reads a clock.

use std::fmt;
use std::time::Duration;

/// Seconds since 1970, without leap seconds (POSIX).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixTime(pub u64);

impl UnixTime {
    /// The time so much later, to the second.
    pub fn after(self, duration: Duration) -> UnixTime {
        UnixTime(self.0.saturating_add(duration.as_secs()))
    }
}

impl fmt::Display for UnixTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{}", self.0)
    }
}

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
