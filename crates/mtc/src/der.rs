//! As much of DER (X.690) as certificates need, read strictly: one byte of tag, definite lengths in
//! as few bytes as possible, nothing left over.

use std::fmt;

pub(crate) const BOOLEAN: u8 = 0x01;
pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const BIT_STRING: u8 = 0x03;
pub(crate) const OCTET_STRING: u8 = 0x04;
pub(crate) const OID: u8 = 0x06;
pub(crate) const UTF8_STRING: u8 = 0x0c;
pub(crate) const RELATIVE_OID: u8 = 0x0d;
pub(crate) const UTC_TIME: u8 = 0x17;
pub(crate) const GENERALIZED_TIME: u8 = 0x18;
pub(crate) const SEQUENCE: u8 = 0x30;
pub(crate) const SET: u8 = 0x31;

/// The tag `[number]` of something primitive.
pub(crate) const fn implicit(number: u8) -> u8 {
    0x80 | number
}

/// The tag `[number]` around something else.
pub(crate) const fn explicit(number: u8) -> u8 {
    0xa0 | number
}

/// Why something is no DER, or not what it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DerError {
    /// It ends too early.
    #[error("it is cut short")]
    Short,
    /// A length is not in as few bytes as possible, or not definite, or there is a tag of several
    /// bytes.
    #[error("it is no DER")]
    Form,
    /// Another element should stand here.
    #[error("there is {found}, where {expected:#04x} should be", found = Tag(.found))]
    Tag {
        /// The tag that should.
        expected: u8,
        /// The tag that does.
        found: Option<u8>,
    },
    /// Something follows where nothing should.
    #[error("{bytes} bytes follow")]
    Trailing {
        /// As many as there are.
        bytes: usize,
    },
    /// A number is negative, too large or too long.
    #[error("a number is negative, too large or not in as few bytes as possible")]
    Integer,
    /// A string of bits that is not whole bytes.
    #[error("a string of bits is not whole bytes")]
    Bits,
    /// A date that is none, or not written as RFC 5280 asks, section 4.1.2.5.
    #[error("a date is none, or not written as in certificates")]
    Date,
    /// A truth value that is none, or written though it is the default.
    #[error("a truth value is not as it should be")]
    Boolean,
}

struct Tag<'a>(&'a Option<u8>);

impl fmt::Display for Tag<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(tag) => write!(f, "{tag:#04x}"),
            None => f.write_str("nothing"),
        }
    }
}

/// An element.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Element<'a> {
    pub(crate) tag: u8,
    pub(crate) content: &'a [u8],
    /// With tag and length.
    pub(crate) whole: &'a [u8],
}

/// Elements, one after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Elements<'a> {
    rest: &'a [u8],
}

impl<'a> Elements<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Elements<'a> {
        Elements { rest: bytes }
    }

    /// What is not read yet.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    fn tag(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    /// The next element, of any tag.
    pub(crate) fn any(&mut self) -> Result<Element<'a>, DerError> {
        let [tag, first, after @ ..] = self.rest else {
            return Err(DerError::Short);
        };
        if tag & 0x1f == 0x1f {
            return Err(DerError::Form);
        }
        let (length, body) = match *first {
            short @ ..=0x7f => (usize::from(short), after),
            long @ 0x81..=0x84 => {
                let digits = after.split_at_checked(usize::from(long & 0x7f));
                let (digits, body) = digits.ok_or(DerError::Short)?;
                let length = digits
                    .iter()
                    .fold(0, |length, digit| length << 8 | usize::from(*digit));
                if length < 0x80 || digits.first() == Some(&0) {
                    return Err(DerError::Form);
                }
                (length, body)
            }
            _ => return Err(DerError::Form),
        };
        let (content, rest) = body.split_at_checked(length).ok_or(DerError::Short)?;
        let whole = &self.rest[..self.rest.len() - rest.len()];
        self.rest = rest;
        Ok(Element {
            tag: *tag,
            content,
            whole,
        })
    }

    /// The next element, which must have this tag.
    pub(crate) fn element(&mut self, tag: u8) -> Result<Element<'a>, DerError> {
        match self.tag() {
            Some(found) if found == tag => self.any(),
            found => Err(DerError::Tag {
                expected: tag,
                found,
            }),
        }
    }

    /// What is in the next element, which must have this tag.
    pub(crate) fn content(&mut self, tag: u8) -> Result<&'a [u8], DerError> {
        Ok(self.element(tag)?.content)
    }

    /// The elements inside the next one, which must have this tag.
    pub(crate) fn inside(&mut self, tag: u8) -> Result<Elements<'a>, DerError> {
        Ok(Elements::new(self.content(tag)?))
    }

    /// The next element, if it has this tag.
    pub(crate) fn optional(&mut self, tag: u8) -> Result<Option<Element<'a>>, DerError> {
        if self.tag() == Some(tag) {
            self.any().map(Some)
        } else {
            Ok(None)
        }
    }

    /// A number from 0 to 2^64-1.
    pub(crate) fn unsigned(&mut self) -> Result<u64, DerError> {
        let content = self.content(INTEGER)?;
        let digits = match content {
            [] | [0x80..=0xff, ..] | [0, 0..=0x7f, ..] => return Err(DerError::Integer),
            [0] => content,
            [0, digits @ ..] => digits,
            digits => digits,
        };
        if digits.len() > 8 {
            return Err(DerError::Integer);
        }
        let add = |number, digit: &u8| number << 8 | u64::from(*digit);
        Ok(digits.iter().fold(0, add))
    }

    /// A string of bits that is whole bytes.
    pub(crate) fn bits(&mut self) -> Result<&'a [u8], DerError> {
        match self.content(BIT_STRING)? {
            [0, bytes @ ..] => Ok(bytes),
            _ => Err(DerError::Bits),
        }
    }

    /// A truth value that is false where it is not there.
    pub(crate) fn flag(&mut self) -> Result<bool, DerError> {
        match self.optional(BOOLEAN)?.map(|element| element.content) {
            None => Ok(false),
            Some([0xff]) => Ok(true),
            Some(_) => Err(DerError::Boolean),
        }
    }

    /// A date, as seconds since 1970.
    pub(crate) fn date(&mut self) -> Result<u64, DerError> {
        let element = self.any()?;
        let century = match (element.tag, element.content) {
            (UTC_TIME, [b'0'..=b'4', ..]) => 20,
            (UTC_TIME, _) => 19,
            (GENERALIZED_TIME, _) => 0,
            (found, _) => {
                return Err(DerError::Tag {
                    expected: UTC_TIME,
                    found: Some(found),
                });
            }
        };
        let (year, rest) = match (element.tag, element.content) {
            (UTC_TIME, [year @ .., _, _, _, _, _, _, _, _, _, _, b'Z']) if year.len() == 2 => {
                (century * 100 + digits(year)?, &element.content[2..12])
            }
            (GENERALIZED_TIME, [year @ .., _, _, _, _, _, _, _, _, _, _, b'Z'])
                if year.len() == 4 =>
            {
                (digits(year)?, &element.content[4..14])
            }
            _ => return Err(DerError::Date),
        };
        if element.tag == GENERALIZED_TIME && year < 2050 {
            return Err(DerError::Date);
        }
        let mut fields = [0; 5];
        for (field, pair) in fields.iter_mut().zip(rest.chunks(2)) {
            *field = digits(pair)?;
        }
        seconds(year, fields).ok_or(DerError::Date)
    }

    pub(crate) fn finish(self) -> Result<(), DerError> {
        match self.rest.len() {
            0 => Ok(()),
            bytes => Err(DerError::Trailing { bytes }),
        }
    }
}

fn digits(text: &[u8]) -> Result<u64, DerError> {
    text.iter().try_fold(0, |number, digit| match digit {
        b'0'..=b'9' => Ok(number * 10 + u64::from(digit - b'0')),
        _ => Err(DerError::Date),
    })
}

/// Days from the beginning of 1970 to that of a year, in the Gregorian calendar.
fn days_before(year: u64) -> u64 {
    let leap_days = |year: u64| year / 4 - year / 100 + year / 400;
    365 * (year - 1970) + leap_days(year - 1) - leap_days(1969)
}

fn days_of_months(year: u64) -> [u64; 12] {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let february = if leap { 29 } else { 28 };
    [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
}

/// Seconds since 1970 of a year and month, day, hour, minute and second. There are no leap seconds.
pub(crate) fn seconds(year: u64, [month, day, hour, minute, second]: [u64; 5]) -> Option<u64> {
    let months = days_of_months(year);
    let place = usize::try_from(month.checked_sub(1)?).ok()?;
    let length = *months.get(place)?;
    let valid =
        year >= 1970 && (1..=length).contains(&day) && hour < 24 && minute < 60 && second < 60;
    let days = || days_before(year) + months.iter().take(place).sum::<u64>() + day - 1;
    valid.then(|| ((days() * 24 + hour) * 60 + minute) * 60 + second)
}

/// Appends an element whose content `write` makes.
pub(crate) fn put(out: &mut Vec<u8>, tag: u8, write: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(&[tag, 0]);
    let start = out.len();
    write(out);
    let length = out.len() - start;
    if length < 0x80 {
        out[start - 1] = length as u8;
        return;
    }
    let bytes = length.to_be_bytes();
    let digits = &bytes[bytes.iter().take_while(|byte| **byte == 0).count()..];
    out[start - 1] = 0x80 | digits.len() as u8;
    out.splice(start..start, digits.iter().copied());
}

/// Appends an element.
pub(crate) fn put_bytes(out: &mut Vec<u8>, tag: u8, content: &[u8]) {
    put(out, tag, |out| out.extend_from_slice(content));
}

/// Appends a number.
pub(crate) fn put_unsigned(out: &mut Vec<u8>, number: u64) {
    let bytes = number.to_be_bytes();
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count().min(7);
    put(out, INTEGER, |out| {
        if bytes[zeros] >= 0x80 {
            out.push(0);
        }
        out.extend_from_slice(&bytes[zeros..]);
    });
}

/// Appends a string of bits that is whole bytes.
pub(crate) fn put_bits(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, BIT_STRING, |out| {
        out.push(0);
        out.extend_from_slice(bytes);
    });
}

/// Year, month, day, hour, minute and second of seconds since 1970, up to the end of the year 9999.
pub(crate) fn calendar(time: u64) -> (u64, [u64; 5]) {
    const END_OF_9999: u64 = 253_402_300_799;
    let time = time.min(END_OF_9999);
    let (days, second) = (time / 86_400, time % 86_400);
    let mut year = 1970 + days / 366;
    while days_before(year + 1) <= days {
        year += 1;
    }
    let mut day = days - days_before(year);
    let mut month = 1;
    for length in days_of_months(year) {
        if day < length {
            break;
        }
        day -= length;
        month += 1;
    }
    let clock = [second / 3600, second / 60 % 60, second % 60];
    (year, [month, day + 1, clock[0], clock[1], clock[2]])
}

/// Appends a date: seconds since 1970, up to the end of the year 9999.
pub(crate) fn put_date(out: &mut Vec<u8>, time: u64) {
    let (year, rest) = calendar(time);
    let (tag, year) = match year {
        ..2050 => (UTC_TIME, &[year % 100][..]),
        _ => (GENERALIZED_TIME, &[year / 100 % 100, year % 100][..]),
    };
    put(out, tag, |out| {
        for pair in year.iter().chain(&rest) {
            out.extend([b'0' + (pair / 10) as u8, b'0' + (pair % 10) as u8]);
        }
        out.push(b'Z');
    });
}

#[cfg(test)]
mod tests;
