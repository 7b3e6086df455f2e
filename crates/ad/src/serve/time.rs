//! Times as logs have them.

use jiff::{Timestamp, Unit};

/// Now, as RFC 3339 has it, in milliseconds.
pub(super) fn now() -> String {
    let now = Timestamp::now();
    format!("{:.3}", now.round(Unit::Millisecond).unwrap_or(now))
}
