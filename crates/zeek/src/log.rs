//! One file: its lines, of whatever format and kind.

use std::io::{self, Read};

use memchr::memchr;

use crate::json::Object;
use crate::lines::{Lines, Piece};
use crate::reason::Reason;
use crate::row::{Kind, Row};
use crate::time::Micros;
use crate::tsv::Header;

/// A file that is read.
pub(crate) struct Log {
    lines: Lines<Box<dyn Read>>,
    header: Header,
    /// What its last row was, or its header says that the next will be.
    kind: Option<Kind>,
    /// Lines so far.
    line: u64,
    clock: Option<Micros>,
    times: Vec<Micros>,
}

/// What a file says.
pub(crate) enum Said<'a> {
    Row(Row<'a>),
    /// A line that says nothing, its number from 1, and what kind of row it would have been.
    Unreadable(u64, Option<Kind>, Reason),
    /// The file can't be read further than this line.
    BrokenOff(u64, io::Error),
}

/// Whether there is more of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    More,
    Nothing,
}

impl Log {
    pub(crate) fn new(input: Box<dyn Read>) -> Self {
        Log {
            lines: Lines::new(input),
            header: Header::default(),
            kind: None,
            line: 0,
            clock: None,
            times: Vec::new(),
        }
    }

    /// About when the rows were written that were read last: the median, so that single rows with another
    /// clock change nothing. `None` before the first time.
    pub(crate) fn clock(&self) -> Option<Micros> {
        self.clock
    }

    /// Reads the next piece of it.
    pub(crate) fn read(&mut self, mut say: impl FnMut(Said<'_>)) -> Left {
        self.times.clear();
        let left = match self.lines.next() {
            Piece::Lines(mut rest) => {
                while !rest.is_empty() {
                    let end = memchr(b'\n', rest).unwrap_or(rest.len());
                    let (line, after) = rest.split_at(end);
                    rest = after.get(1..).unwrap_or_default();
                    self.line += 1;
                    let line = line.strip_suffix(b"\r").unwrap_or(line);
                    let mut reader = Reader {
                        header: &mut self.header,
                        kind: &mut self.kind,
                        times: &mut self.times,
                    };
                    if let Err(reason) = reader.line(line, &mut say) {
                        say(Said::Unreadable(self.line, self.kind, reason));
                    }
                }
                Left::More
            }
            Piece::TooLong => {
                self.line += 1;
                say(Said::Unreadable(self.line, self.kind, Reason::TooLong));
                Left::More
            }
            Piece::Broken(error, rest) => {
                if rest > 0 {
                    self.line += 1;
                    say(Said::Unreadable(self.line, self.kind, Reason::BrokenOff));
                }
                say(Said::BrokenOff(self.line, error));
                Left::Nothing
            }
            Piece::End => Left::Nothing,
        };
        let middle = self.times.len() / 2;
        if middle < self.times.len() {
            self.clock = Some(*self.times.select_nth_unstable(middle).1);
        }
        left
    }
}

struct Reader<'l> {
    header: &'l mut Header,
    kind: &'l mut Option<Kind>,
    times: &'l mut Vec<Micros>,
}

impl Reader<'_> {
    fn line(&mut self, line: &[u8], say: &mut impl FnMut(Said<'_>)) -> Result<(), Reason> {
        match line.first() {
            None => Ok(()),
            Some(b'#') => {
                self.header.directive(line);
                *self.kind = self.header.kind().or(*self.kind);
                Ok(())
            }
            Some(b'{') => {
                let object = Object::parse(line)?;
                *self.kind = object.kind().or(*self.kind);
                let row = object.row()?;
                self.times.extend(object.written().or(row.written()));
                say(Said::Row(row));
                Ok(())
            }
            Some(_) => {
                let row = self.header.row(line)?;
                self.times.extend(row.written());
                *self.kind = row.kind();
                say(Said::Row(row));
                Ok(())
            }
        }
    }
}
