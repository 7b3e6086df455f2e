//! The date, for people.

use std::time::{SystemTime, UNIX_EPOCH};

/// A time in UTC, to the second, as RFC 3339 writes it.
pub(super) fn rfc3339(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (mut days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let mut year = 1970;
    while days >= length_of_year(year) {
        days -= length_of_year(year);
        year += 1;
    }
    let february = length_of_year(year) - 337;
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let day = days + 1;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

fn length_of_year(year: u64) -> u64 {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    365 + u64::from(leap)
}
