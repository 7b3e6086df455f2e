//! From when to when certificates are valid.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lastbyte_sizes::profile::Validity;

/// From an hour before `now`, since not every client's clock is right, until
/// `life` after it. Times before 1970 become 1970.
pub(crate) fn validity(now: SystemTime, life: Duration) -> Validity {
    let since_1970 = |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap_or_default();
    Validity {
        not_before: since_1970(now - Duration::from_secs(3600)),
        not_after: since_1970(now + life),
    }
}
