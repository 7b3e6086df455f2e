//! A stream, cut into pieces of whole lines, in memory of one size.

use std::io::{self, ErrorKind, Read};

use memchr::{memchr, memrchr};

/// What is held of a stream. A line that is longer is not read.
const SIZE: usize = 256 << 10;

/// Pieces of whole lines.
pub(crate) struct Lines<R> {
    input: R,
    buffer: Box<[u8]>,
    /// What was given out, and where what was read ends.
    used: usize,
    filled: usize,
    line: Line,
    state: State,
}

/// Whether the buffer begins with a line, or in one that is too long.
#[derive(PartialEq)]
enum Line {
    Kept,
    Skipped,
}

enum State {
    Open,
    Ended,
    Broken(io::Error),
}

/// What comes next.
pub(crate) enum Piece<'a> {
    /// One line or more. The last of a stream may have no newline.
    Lines(&'a [u8]),
    /// A line that does not fit.
    TooLong,
    /// The stream broke off, after so many bytes of a line.
    Broken(io::Error, usize),
    End,
}

impl<R: Read> Lines<R> {
    pub(crate) fn new(input: R) -> Self {
        Lines {
            input,
            buffer: vec![0; SIZE].into_boxed_slice(),
            used: 0,
            filled: 0,
            line: Line::Kept,
            state: State::Open,
        }
    }

    pub(crate) fn next(&mut self) -> Piece<'_> {
        self.drop_used();
        loop {
            self.fill();
            if self.line == Line::Skipped {
                let read = self.buffer.get(..self.filled).unwrap_or_default();
                match memchr(b'\n', read) {
                    Some(end) => {
                        self.used = end + 1;
                        self.drop_used();
                        self.line = Line::Kept;
                        continue;
                    }
                    None => self.filled = 0,
                }
            }
            let read = self.buffer.get(..self.filled).unwrap_or_default();
            if let Some(end) = memrchr(b'\n', read) {
                self.used = end + 1;
                return Piece::Lines(self.buffer.get(..=end).unwrap_or_default());
            }
            let rest = self.filled;
            match std::mem::replace(&mut self.state, State::Ended) {
                State::Open => {
                    self.state = State::Open;
                    if rest == self.buffer.len() {
                        self.filled = 0;
                        self.line = Line::Skipped;
                        return Piece::TooLong;
                    }
                }
                State::Broken(error) => {
                    self.filled = 0;
                    return Piece::Broken(error, rest);
                }
                State::Ended if rest == 0 => return Piece::End,
                State::Ended => {
                    self.used = rest;
                    return Piece::Lines(self.buffer.get(..rest).unwrap_or_default());
                }
            }
        }
    }

    fn drop_used(&mut self) {
        self.buffer.copy_within(self.used..self.filled, 0);
        self.filled -= self.used;
        self.used = 0;
    }

    /// Reads until the buffer is full.
    fn fill(&mut self) {
        while let State::Open = self.state {
            let room = self.buffer.get_mut(self.filled..).unwrap_or_default();
            if room.is_empty() {
                return;
            }
            match self.input.read(room) {
                Ok(0) => self.state = State::Ended,
                Ok(count) => self.filled += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => self.state = State::Broken(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    /// Gives its bytes in dribs, and fails at the end if it is to.
    struct Dribs<'a>(&'a [u8], usize, bool);

    impl Read for Dribs<'_> {
        fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
            let count = self.1.min(room.len()).min(self.0.len());
            if count == 0 && self.2 {
                return Err(io::Error::other("broken"));
            }
            room[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    fn read(input: Dribs<'_>) -> (Vec<Vec<u8>>, usize, Option<usize>) {
        let mut lines = Lines::new(input);
        let (mut read, mut too_long) = (Vec::new(), 0);
        loop {
            match lines.next() {
                Piece::Lines(piece) => {
                    read.extend(
                        piece
                            .split_inclusive(|byte| *byte == b'\n')
                            .map(<[u8]>::to_vec),
                    );
                }
                Piece::TooLong => too_long += 1,
                Piece::Broken(_, rest) => return (read, too_long, Some(rest)),
                Piece::End => return (read, too_long, None),
            }
        }
    }

    proptest! {
            #![proptest_config(ProptestConfig::with_cases(40))]
            #[test]
            fn every_line_that_fits(lengths in prop::collection::vec(prop_oneof![0usize..80, 70_000usize..600_000], 0..12), drib in 1usize..300_000, ends in any::<bool>(), breaks in any::<bool>()) {
                let mut text = Vec::new();
                let mut expected = Vec::new();
                let mut too_long = 0;
                for length in lengths {
                    let line = [vec![b'x'; length], vec![b'\n']].concat();
                    if line.len() > SIZE {
    too_long += 1;
    } else {
    expected.push(line.clone());
    }
                    text.extend(line);
                }
                if !ends && !breaks {
                    text.extend(b"last");
                    expected.push(b"last".to_vec());
                } else if breaks {
                    text.extend(b"last");
                }
                let (lines, skipped, broken) = read(Dribs(&text, drib, breaks));
                prop_assert!(lines == expected);
                prop_assert_eq!(skipped, too_long);
                prop_assert_eq!(broken, breaks.then_some(4));
            }
        }
}
