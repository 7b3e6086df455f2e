//! One file: its lines, of whatever format and kind.

use std::io::{self, Read};

use memchr::memchr;

use crate::json::Object;
use crate::lines::{Lines, Piece};
use crate::reason::Reason;
use crate::row::{Kind, Row, Written};
use crate::time::Micros;
use crate::tsv::Header;

/// A file that is read.
pub(crate) struct Log {
    lines: Lines<Box<dyn Read>>,
    header: Header,
    /// By the name of the file, where its lines don't say.
    written: Written,
    /// What its last row was, or its header says that the next will be.
    kind: Option<Kind>,
    /// Lines so far.
    line: u64,
    clock: Option<Micros>,
    times: Vec<Micros>,
}

/// What a file says.
pub(crate) enum Event<'a> {
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
    pub(crate) fn new(input: Box<dyn Read>, written: Written) -> Self {
        Log {
            written,
            lines: Lines::new(input),
            header: Header::default(),
            kind: None,
            line: 0,
            clock: None,
            times: Vec::new(),
        }
    }

    /// About when the rows were written that were read last: the median, so that single rows with
    /// another clock change nothing. `None` before the first time.
    pub(crate) fn clock(&self) -> Option<Micros> {
        self.clock
    }

    /// Reads the next piece of it.
    pub(crate) fn read(&mut self, mut say: impl FnMut(Event<'_>)) -> Left {
        self.times.clear();
        let left = match self.lines.next() {
            Piece::Lines(mut rest) => {
                while !rest.is_empty() {
                    let end = memchr(b'\n', rest).unwrap_or(rest.len());
                    let (line, after) = rest.split_at(end);
                    rest = after.get(1..).unwrap_or_default();
                    self.line += 1;
                    let line = line.strip_suffix(b"\r").unwrap_or(line);
                    let line = match self.line {
                        1 if is_utf_16(line) => {
                            say(Event::Unreadable(1, None, Reason::Utf16));
                            return Left::Nothing;
                        }
                        // A whole file, as far as line feeds tell.
                        1 if memchr(b'\r', line).is_some() => {
                            say(Event::Unreadable(1, None, Reason::CarriageReturns));
                            return Left::Nothing;
                        }
                        1 => line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line),
                        _ => line,
                    };
                    let mut reader = Reader {
                        header: &mut self.header,
                        written: self.written,
                        kind: &mut self.kind,
                        times: &mut self.times,
                    };
                    if let Err(reason) = reader.line(line, &mut say) {
                        let is_over_lines = reason == Reason::JsonOverLines;
                        say(Event::Unreadable(self.line, self.kind, reason));
                        if is_over_lines {
                            return Left::Nothing;
                        }
                    }
                }
                Left::More
            }
            Piece::TooLong => {
                self.line += 1;
                say(Event::Unreadable(self.line, self.kind, Reason::TooLong));
                Left::More
            }
            Piece::Broken(error, rest) => {
                if rest > 0 {
                    self.line += 1;
                    say(Event::Unreadable(self.line, self.kind, Reason::BrokenOff));
                }
                say(Event::BrokenOff(self.line, error));
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

/// What Windows' programs begin a file of UTF-8 with.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

fn is_utf_16(line: &[u8]) -> bool {
    line.starts_with(&[0xff, 0xfe]) || line.starts_with(&[0xfe, 0xff])
}

/// Whether an object begins, or goes on, in a line of its own.
fn is_json_over_lines(line: &[u8]) -> bool {
    matches!(line.trim_ascii(), b"{" | [b'"', ..])
        || (line.first() != Some(&b'{') && line.trim_ascii_start().starts_with(b"{"))
}

struct Reader<'l> {
    header: &'l mut Header,
    written: Written,
    kind: &'l mut Option<Kind>,
    times: &'l mut Vec<Micros>,
}

impl Reader<'_> {
    fn line(&mut self, line: &[u8], say: &mut impl FnMut(Event<'_>)) -> Result<(), Reason> {
        match line.first() {
            None => Ok(()),
            Some(b'#') => {
                self.header.directive(line);
                *self.kind = self.header.kind().or(*self.kind);
                Ok(())
            }
            Some(b'{' | b' ' | b'\t') if is_json_over_lines(line) => Err(Reason::JsonOverLines),
            Some(b'{') => {
                // An element of an array, whose brackets may be in lines of their own.
                let object = line.trim_ascii_end();
                let object = object.strip_suffix(b"]").unwrap_or(object);
                let object = object.trim_ascii_end();
                let object = object.strip_suffix(b",").unwrap_or(object);
                self.object(&Object::parse(object)?, say)
            }
            Some(b'[') => match line.trim_ascii_end() {
                b"[" => Ok(()),
                array if array.ends_with(b"]") => {
                    for object in Object::parse_all(array)? {
                        self.object(&object, say)?;
                    }
                    Ok(())
                }
                first => self.line(first.get(1..).unwrap_or_default(), say),
            },
            Some(b']') if line.trim_ascii_end() == b"]" => Ok(()),
            Some(_) => {
                let row = self.header.row(line)?;
                let written = self.header.written().unwrap_or(self.written);
                self.times.extend(row.written());
                *self.kind = row.kind();
                say(Event::Row(of_those(written, row)));
                Ok(())
            }
        }
    }

    fn object(
        &mut self,
        object: &Object<'_>,
        say: &mut impl FnMut(Event<'_>),
    ) -> Result<(), Reason> {
        *self.kind = object.kind().or(*self.kind);
        let row = object.row()?;
        let written = object.log().unwrap_or(self.written);
        self.times.extend(object.written().or(row.written()));
        say(Event::Row(of_those(written, row)));
        Ok(())
    }
}

/// A row of a log that is written at these times.
fn of_those(written: Written, row: Row<'_>) -> Row<'_> {
    match (written, row.kind()) {
        (Written::InBetween, Some(_)) => Row::Interim,
        _ => row,
    }
}
