//! How measured numbers are written for people.

use std::time::Duration;

use jiff::SignedDuration;

use super::{Estimate, Interval, Percent};

/// `70.4 ms`, `2208.3 ms`, `0.412 ms`: to a tenth of a millisecond, or three digits.
pub fn milliseconds(duration: Duration) -> String {
    format!("{} ms", millisecond_digits(duration))
}

/// The same of a time that may be negative: `-33.7 ms`.
pub fn signed_milliseconds(duration: SignedDuration) -> String {
    let sign = if duration.is_negative() { "-" } else { "" };
    format!("{sign}{}", milliseconds(duration.unsigned_abs()))
}

/// The number of [`milliseconds`].
pub fn millisecond_digits(duration: Duration) -> String {
    let value = duration.as_secs_f64() * 1e3;
    let decimals = match value {
        10.0.. => 1,
        1.0.. => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

/// A difference in milliseconds, of three digits where it is large: `128`, `14.5`, `-0.04`.
pub fn difference_digits(ms: f64) -> String {
    let decimals = match ms.abs() {
        100.0.. => 0,
        10.0.. => 1,
        _ => 2,
    };
    without_negative_zero(format!("{ms:.decimals$}"))
}

/// `50 %`, `14 %`, `1.9 %`, `0.04 %`: two digits.
pub fn percent(Percent(value): Percent) -> String {
    let decimals = match value.abs() {
        9.95.. => 0,
        0.095.. => 1,
        _ => 2,
    };
    format!("{} %", without_negative_zero(format!("{value:.decimals$}")))
}

/// A share from 0 to 1 with its interval: `11.4 %` and `[11.2, 11.6]`.
pub fn share(share: Estimate<f64>) -> (String, String) {
    let digits = |share: f64| {
        let percent = 100.0 * share;
        let decimals = match percent {
            0.095.. => 1,
            _ => 2,
        };
        format!("{percent:.decimals$}")
    };
    (
        format!("{} %", digits(share.value)),
        interval(&share.interval, digits),
    )
}

/// A number of percent for a column: `128`, `14.5`, `-0.04`.
pub fn percent_digits(Percent(value): Percent) -> String {
    let decimals = match value.abs() {
        99.95.. => 0,
        0.095.. | 0.0 => 1,
        _ => 2,
    };
    without_negative_zero(format!("{value:.decimals$}"))
}

/// `[1.7, 2.1]`; an end that is absent is infinite, and both are where connections are too few to say anything.
pub fn interval<T: Copy>(interval: &Interval<T>, digits: impl Fn(T) -> String) -> String {
    if interval.is_unknown() {
        return "[too few]".into();
    }
    let low = interval.low.map_or("-∞".into(), &digits);
    let high = interval.high.map_or("∞".into(), &digits);
    format!("[{low}, {high}]")
}

fn without_negative_zero(number: String) -> String {
    match number.strip_prefix('-') {
        Some(zero) if zero.bytes().all(|byte| matches!(byte, b'0' | b'.')) => zero.to_owned(),
        _ => number,
    }
}
