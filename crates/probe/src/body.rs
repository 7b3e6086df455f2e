//! The body of a response: how it says where it ends (RFC 9112, section 6), and whether it came to that.

use thiserror::Error;

/// A body, as far as it has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body(Ends);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Ends {
    /// After so many bytes, of which some are left.
    Length {
        all: usize,
        left: usize,
    },
    Chunked(Chunks),
    /// With the connection.
    Closed,
    /// Nobody knows: this is no length.
    NoLength(String),
}

/// Chunks (RFC 9112, section 7.1), as far as they have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chunks {
    /// The line with a chunk's size: its digits so far, how many they are, and whether others may follow.
    Size {
        size: u64,
        digits: u32,
        is_open: bool,
    },
    /// So many bytes of a chunk are left.
    Data(u64),
    /// The line break behind it.
    DataEnd,
    /// A line behind the last chunk, which is empty so far or not.
    Trailer {
        is_empty: bool,
    },
    Done,
    /// What should be a size is none.
    Broken,
}

/// Why a body is not whole.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Cut {
    /// Fewer bytes came than it says.
    #[error("its response ends {left} bytes before the {all} that its Content-Length says")]
    Length {
        /// As it says.
        all: usize,
        /// That did not come.
        left: usize,
    },
    /// Its last chunk did not come.
    #[error("its response ends before its last chunk (Transfer-Encoding: chunked)")]
    Chunks,
    /// A chunk has no size.
    #[error("its response has a chunk without a size (Transfer-Encoding: chunked)")]
    NoSize,
    /// It says how long it is in no number.
    #[error("its response has a Content-Length of \"{0}\", which is no number of bytes")]
    NoLength(String),
}

impl Body {
    /// Of so many bytes.
    pub(crate) fn of(bytes: usize) -> Body {
        Body(Ends::Length {
            all: bytes,
            left: bytes,
        })
    }

    pub(crate) fn chunked() -> Body {
        Body(Ends::Chunked(Chunks::BEGIN))
    }

    pub(crate) fn until_closed() -> Body {
        Body(Ends::Closed)
    }

    /// Of what fields `Content-Length` say, of which all must say the same.
    pub(crate) fn of_lengths(lengths: &[String]) -> Body {
        let all = lengths.join(", ");
        let mut each = all.split(',').map(str::trim);
        let Some(first) = each.next().filter(|_| !lengths.is_empty()) else {
            return Body::until_closed();
        };
        let is_number = !first.is_empty() && first.bytes().all(|digit| digit.is_ascii_digit());
        match first.parse() {
            Ok(bytes) if is_number && each.all(|other| other == first) => Body::of(bytes),
            _ => Body(Ends::NoLength(all)),
        }
    }

    /// Adds what has come.
    pub fn add(&mut self, new: &[u8]) {
        match &mut self.0 {
            Ends::Length { left, .. } => *left = left.saturating_sub(new.len()),
            Ends::Chunked(chunks) => chunks.add(new),
            Ends::Closed | Ends::NoLength(_) => {}
        }
    }

    /// Whether it came to the end that it says itself.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        matches!(
            self.0,
            Ends::Length { left: 0, .. } | Ends::Chunked(Chunks::Done)
        )
    }

    /// Whether so many bytes are its end, and not the connection's.
    #[must_use]
    pub fn has_length(&self) -> bool {
        matches!(self.0, Ends::Length { .. })
    }

    /// What is wrong with it, however much of it came.
    ///
    /// # Errors
    ///
    /// That.
    pub fn check(&self) -> Result<(), Cut> {
        match &self.0 {
            Ends::Chunked(Chunks::Broken) => Err(Cut::NoSize),
            Ends::NoLength(length) => Err(Cut::NoLength(length.clone())),
            _ => Ok(()),
        }
    }

    /// The same where no more comes.
    ///
    /// # Errors
    ///
    /// As [`check`](Body::check), and what is missing.
    pub fn end(&self) -> Result<(), Cut> {
        self.check()?;
        match self.0 {
            Ends::Length { all, left } if left > 0 => Err(Cut::Length { all, left }),
            Ends::Chunked(chunks) if chunks != Chunks::Done => Err(Cut::Chunks),
            _ => Ok(()),
        }
    }
}

impl Chunks {
    const BEGIN: Chunks = Chunks::Size {
        size: 0,
        digits: 0,
        is_open: true,
    };

    fn add(&mut self, mut new: &[u8]) {
        while let Some((byte, rest)) = new.split_first() {
            if let Chunks::Data(left) = *self {
                let here = usize::try_from(left).unwrap_or(usize::MAX).min(new.len());
                *self = match left - here as u64 {
                    0 => Chunks::DataEnd,
                    left => Chunks::Data(left),
                };
                new = new.get(here..).unwrap_or_default();
                continue;
            }
            *self = self.after(*byte);
            new = rest;
        }
    }

    /// With one byte more, which is none of a chunk's.
    fn after(self, byte: u8) -> Chunks {
        const MOST_DIGITS: u32 = 16;
        match (self, byte) {
            (Chunks::Size { digits: 0, .. }, b'\n') => Chunks::Broken,
            (Chunks::Size { size: 0, .. }, b'\n') => Chunks::Trailer { is_empty: true },
            (Chunks::Size { size, .. }, b'\n') => Chunks::Data(size),
            (
                Chunks::Size {
                    size,
                    digits,
                    is_open: true,
                },
                _,
            ) => match (char::from(byte).to_digit(16), byte) {
                (Some(digit), _) if digits < MOST_DIGITS => Chunks::Size {
                    size: size << 4 | u64::from(digit),
                    digits: digits + 1,
                    is_open: true,
                },
                // Extensions, and blanks that some servers fill a line with.
                (None, b';' | b' ' | b'\t' | b'\r') if digits > 0 => Chunks::Size {
                    size,
                    digits,
                    is_open: false,
                },
                _ => Chunks::Broken,
            },
            (Chunks::DataEnd, b'\n') => Chunks::BEGIN,
            (Chunks::DataEnd, b'\r') => Chunks::DataEnd,
            (Chunks::DataEnd, _) => Chunks::Broken,
            (Chunks::Trailer { is_empty: true }, b'\n') => Chunks::Done,
            (Chunks::Trailer { .. }, b'\n') => Chunks::Trailer { is_empty: true },
            (Chunks::Trailer { .. }, byte) if byte != b'\r' => Chunks::Trailer { is_empty: false },
            (unchanged, _) => unchanged,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn chunked(text: &str) -> Body {
        let mut body = Body::chunked();
        body.add(text.as_bytes());
        body
    }

    #[test]
    fn chunks_end_with_the_last_one() {
        for whole in [
            "0\r\n\r\n",
            "5\r\nhello\r\n0\r\n\r\n",
            "A;name=\"x\"\r\n0123456789\r\n00\r\nTrailer: 1\r\nOther: 2\r\n\r\n",
            "5 \nhello\n0\n\n",
        ] {
            assert_eq!(chunked(whole).end(), Ok(()), "{whole:?}");
            for at in 0..whole.len() {
                let cut = chunked(&whole[..at]);
                assert_eq!(cut.end(), Err(Cut::Chunks), "{:?}", &whole[..at]);
            }
        }
        for broken in [
            "\r\n",
            "hello",
            "-5\r\n",
            "5\r\nhello, world",
            "00000000000000000\r\n",
        ] {
            assert_eq!(chunked(broken).check(), Err(Cut::NoSize), "{broken:?}");
        }
        assert_eq!(chunked("ffffffffffffffff\r\nhi").end(), Err(Cut::Chunks));
    }

    #[test]
    fn lengths_are_numbers_of_bytes() {
        let of = |lengths: &[&str]| {
            let lengths: Vec<String> = lengths.iter().map(|&length| length.to_owned()).collect();
            Body::of_lengths(&lengths)
        };
        assert_eq!(of(&[]).end(), Ok(()));
        assert_eq!(of(&["0"]).end(), Ok(()));
        assert_eq!(of(&["7", "7"]), Body::of(7));
        assert_eq!(of(&["7, 7"]), Body::of(7));
        let mut five = of(&["5"]);
        five.add(b"hi");
        assert_eq!(five.check(), Ok(()));
        assert_eq!(five.end(), Err(Cut::Length { all: 5, left: 3 }));
        for none in [
            "",
            "-5",
            "+5",
            "5 bytes",
            "0x5",
            "1e3",
            "99999999999999999999999",
            "5, 6",
        ] {
            assert_eq!(of(&[none]).check(), Err(Cut::NoLength(none.to_owned())));
        }
    }

    proptest! {
        /// However it is cut, the same comes of it.
        #[test]
        fn cuts_change_nothing(
            chunks in prop::collection::vec(0_usize..40, 0..6),
            cuts in prop::collection::vec(1_usize..30, 0..40),
        ) {
            let mut text = String::new();
            for size in chunks {
                text += &format!("{size:x}\r\n{}\r\n", "x".repeat(size));
            }
            let (mut body, mut left) = (Body::chunked(), text.as_bytes());
            let mut cuts = cuts.into_iter();
            while !left.is_empty() {
                let (now, then) = left.split_at(cuts.next().unwrap_or(left.len()).min(left.len()));
                body.add(now);
                left = then;
            }
            prop_assert_eq!(body, chunked(&text));
        }
    }
}
