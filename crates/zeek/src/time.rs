//! Zeek's times: seconds since 1970 with six digits, or ISO 8601, or milliseconds.

use jiff::Timestamp;

/// Microseconds since 1970.
pub(crate) type Micros = i64;

/// A number above it is of milliseconds: as seconds it would be in the year 5138.
const MOST_SECONDS: i64 = 100_000_000_000;

/// What a field says, if it says a time after 1970 and before the year 10000.
pub(crate) fn parse(text: &[u8]) -> Option<Micros> {
    let micros = match decimal(text) {
        Some(micros) => from_number(micros),
        None => iso(std::str::from_utf8(text).ok()?)?,
    };
    is_plausible(micros).then_some(micros)
}

/// What a number says, in microseconds as if it were seconds.
pub(crate) fn from_number(micros: Micros) -> Micros {
    if micros / 1_000_000 > MOST_SECONDS {
        micros / 1000
    } else {
        micros
    }
}

pub(crate) fn is_plausible(micros: Micros) -> bool {
    (1..253_402_300_800_000_000).contains(&micros)
}

/// A span of time, of zero or more microseconds.
pub(crate) fn span(text: &[u8]) -> Option<u64> {
    u64::try_from(decimal(text)?).ok()
}

/// Millionths of a decimal number; digits after the sixth are cut off.
fn decimal(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text.split_first()? {
        (b'-', rest) => (true, rest),
        _ => (false, text),
    };
    let mut value: i64 = 0;
    let mut decimals: Option<u32> = None;
    let mut is_number = false;
    for &byte in digits {
        match (byte, decimals) {
            (b'.', None) => decimals = Some(0),
            (b'0'..=b'9', Some(6..)) => {}
            (b'0'..=b'9', _) => {
                is_number = true;
                value = value.checked_mul(10)?.checked_add(i64::from(byte - b'0'))?;
                decimals = decimals.map(|count| count + 1);
            }
            _ => return None,
        }
    }
    let scale = 10_i64.pow(6 - decimals.unwrap_or(0).min(6));
    let value = value.checked_mul(scale)?;
    is_number.then_some(if negative { -value } else { value })
}

fn iso(text: &str) -> Option<Micros> {
    let timestamp: Timestamp = text.parse().ok()?;
    Some(timestamp.as_microsecond())
}

/// As RFC 3339 has it, to the second.
pub(crate) fn rfc3339(micros: Micros) -> String {
    let timestamp = Timestamp::from_second(micros / 1_000_000).unwrap_or_default();
    timestamp.to_string()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_zeek_writes() {
        let expected = Some(1_541_001_600_123_456);
        for text in [
            "1541001600.123456",
            "1541001600.1234567",
            "2018-10-31T16:00:00.123456Z",
        ] {
            assert_eq!(parse(text.as_bytes()), expected, "{text}");
        }
        assert_eq!(parse(b"1541001600123"), Some(1_541_001_600_123_000));
        assert_eq!(span(b"0.000001"), Some(1));
        assert_eq!(span(b"3"), Some(3_000_000));
        for text in [
            "",
            "-",
            ".",
            "-1.0",
            "XXXXXXXXXX.XXXXXX",
            "1e9",
            "0.0",
            "99999999999999999999",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
        assert_eq!(rfc3339(1_541_001_600_123_456), "2018-10-31T16:00:00Z");
    }
}
