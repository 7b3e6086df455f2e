//! Rate traces: when a link carries how much, as Mahimahi's files have it (Netravali et al.,
//! "Mahimahi: Accurate Record-and-Replay for HTTP", USENIX ATC 2015).
//!
//! Each line is a whole number of milliseconds since the beginning, at which one packet of 1504
//! bytes can go: an opportunity. Lines are in order, and one that comes n times is n opportunities.
//! The last line is also when the trace ends, and begins again.
//!
//! As in Mahimahi's `LinkQueue`, an opportunity carries what of 1504 bytes is there when it comes:
//! several small packets, or the rest of one and the beginning of the next. What nobody uses is gone.
//! A packet arrives with the opportunity that carries its last byte.

use std::fmt;
use std::num::NonZero;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use crate::{Rate, Time};

/// When a direction carries how much.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Trace {
    name: Arc<str>,
    /// In milliseconds, in their order; the last one is not 0.
    opportunities: Arc<[u32]>,
    passes: Passes,
}

/// What comes after the last line of a [`Trace`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Passes {
    /// The first one. A connection begins anywhere, by its luck.
    #[default]
    Looped,
    /// Nothing more. A connection begins with the first line.
    Once,
}

impl Trace {
    /// Bytes of an opportunity: an Ethernet's MTU, and what a TUN device has before each packet.
    pub const OPPORTUNITY: u32 = 1504;
    /// Bytes of an opportunity that a packet takes besides its own, so that one of 1500 takes all.
    pub const HEADER: usize = 4;
    /// Opportunities that a trace has at most: of 100 Mbit/s, 20 minutes.
    pub const MOST: usize = 10_000_000;
    /// Bytes that the file of a trace has at most.
    pub const MOST_BYTES: u64 = 1 << 27;

    /// Reads a trace, which is called as its file is.
    ///
    /// # Errors
    ///
    /// When a line is no such number or earlier than the one before, when there are none or too
    /// many, or when it ends as it begins.
    pub fn parse(name: &str, passes: Passes, text: &[u8]) -> Result<Trace, TraceError> {
        let file = || name.to_owned();
        let mut opportunities: Vec<u32> = Vec::new();
        for (line, text) in (1..).zip(text.split(|byte| *byte == b'\n')) {
            let text = text.trim_ascii();
            if text.is_empty() {
                continue;
            }
            if opportunities.len() == Self::MOST {
                return Err(TraceError::TooLong { file: file() });
            }
            let number = std::str::from_utf8(text).ok();
            let at: u32 = number.and_then(|text| text.parse().ok()).ok_or_else(|| {
                let text = String::from_utf8_lossy(text);
                TraceError::NotATime {
                    file: file(),
                    line,
                    text: text.chars().take(20).collect(),
                }
            })?;
            match opportunities.last() {
                Some(before) if at < *before => {
                    return Err(TraceError::Unsorted {
                        file: file(),
                        line,
                        at,
                        before: *before,
                    });
                }
                _ => opportunities.push(at),
            }
        }
        match opportunities.last() {
            None => Err(TraceError::Empty { file: file() }),
            Some(0) => Err(TraceError::Instant { file: file() }),
            Some(_) => Ok(Trace {
                name: name.into(),
                opportunities: opportunities.into(),
                passes,
            }),
        }
    }

    /// One that begins again after `end`, in milliseconds, with opportunities from 1 on in their order. At its end it has one at
    /// least, without which it would end before.
    ///
    /// `None` when there are too many.
    pub(crate) fn new(name: &str, end: NonZero<u32>, mut opportunities: Vec<u32>) -> Option<Trace> {
        if opportunities.last() != Some(&end.get()) {
            opportunities.push(end.get());
        }
        (opportunities.len() <= Self::MOST).then(|| Trace {
            name: name.into(),
            opportunities: opportunities.into(),
            passes: Passes::Looped,
        })
    }

    /// When its opportunities come, in milliseconds: its lines.
    #[must_use]
    pub fn opportunities(&self) -> &[u32] {
        &self.opportunities
    }

    /// The name of its file.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What comes after its last line.
    #[must_use]
    pub fn passes(&self) -> Passes {
        self.passes
    }

    /// How long one pass takes.
    #[must_use]
    pub fn period(&self) -> Duration {
        let last = self.opportunities.last().copied().unwrap_or(1);
        Duration::from_millis(last.into())
    }

    /// What it carries in the mean of a pass.
    #[must_use]
    pub fn mean_rate(&self) -> Rate {
        const MILLIS: u128 = 1000;
        let bits = self.opportunities.len() as u128 * u128::from(Self::OPPORTUNITY) * 8 * MILLIS;
        let rate = bits / self.period().as_millis().max(1);
        u64::try_from(rate)
            .ok()
            .and_then(Rate::from_bits_per_second)
            .unwrap_or(Rate::MIN)
    }

    /// How many bits it carries in each whole second of a pass.
    #[must_use]
    pub fn bits_by_second(&self) -> Vec<u64> {
        const SECOND: u32 = 1000;
        let last = self.opportunities.last().copied().unwrap_or(0);
        let mut bits = vec![0; (last / SECOND) as usize];
        for at in self.opportunities.iter() {
            // What can go at the end of a second was there in it.
            let second = at.saturating_sub(1) / SECOND;
            if let Some(bits) = bits.get_mut(second as usize) {
                *bits += u64::from(Self::OPPORTUNITY) * 8;
            }
        }
        bits
    }

    /// The longest time without an opportunity.
    #[must_use]
    pub fn longest_gap(&self) -> Duration {
        // The last one is the beginning of the next pass, too.
        let before = [0].iter().chain(self.opportunities.iter());
        let gaps = before.zip(self.opportunities.iter());
        let longest = gaps.map(|(before, at)| at - before).max();
        Duration::from_millis(longest.unwrap_or(0).into())
    }

    /// Distinguishes traces by all that is in them.
    #[must_use]
    pub fn digest(&self) -> u64 {
        let begin = crate::mix(self.passes as u64);
        let all = self.opportunities.iter();
        all.fold(begin, |digest, at| crate::mix(digest ^ u64::from(*at)))
    }
}

impl fmt::Display for Trace {
    /// As a study says it: the file, and `once` behind it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.passes {
            Passes::Looped => f.pad(&self.name),
            Passes::Once => f.pad(&format!("{}{ONCE}", self.name)),
        }
    }
}

/// What follows the name of a file whose trace does not begin again.
const ONCE: &str = " once";

impl Passes {
    /// Parts a text such as `lte.trace once` into the name of a file and what comes after its last line.
    #[must_use]
    pub fn of(text: &str) -> (&str, Passes) {
        match text.strip_suffix(ONCE) {
            Some(file) => (file.trim_end(), Passes::Once),
            None => (text, Passes::Looped),
        }
    }
}

impl fmt::Debug for Trace {
    /// Its name alone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.to_string();
        f.debug_tuple("Trace").field(&name).finish()
    }
}

/// Why a file is no rate trace.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TraceError {
    /// A line is no number.
    #[error(
        "{file:?}, line {line}: {text:?} is no whole number of milliseconds from 0 to 4294967295: \
         a trace has on each line when a packet of 1504 bytes can go"
    )]
    NotATime {
        /// The file.
        file: String,
        /// Counted from 1.
        line: usize,
        /// The beginning of the line.
        text: String,
    },
    /// A line is earlier than the one before.
    #[error("{file:?}, line {line}: {at} comes after {before}: sort its lines (sort -n)")]
    Unsorted {
        /// The file.
        file: String,
        /// Counted from 1.
        line: usize,
        /// What is there.
        at: u32,
        /// What was before.
        before: u32,
    },
    /// There are no lines.
    #[error(
        "{file:?} has no lines: write for each packet of 1504 bytes in which millisecond it can go"
    )]
    Empty {
        /// The file.
        file: String,
    },
    /// There are too many.
    #[error("{file:?} has more than {} lines: cut it", Trace::MOST)]
    TooLong {
        /// The file.
        file: String,
    },
    /// It takes no time.
    #[error("{file:?} has nothing but zeros: its last line is when it ends, 1 or later")]
    Instant {
        /// The file.
        file: String,
    },
}

/// Where a direction is in its trace.
#[derive(Clone, Debug)]
pub(crate) struct Cursor {
    trace: Trace,
    /// When the trace would have begun with its first line, in nanoseconds; before the connection, by luck.
    origin: i128,
    /// The opportunity that is used, counted through all passes.
    next: u64,
    /// What is left of it, in bytes.
    left: u32,
}

impl Cursor {
    /// Of a connection that begins at `begin`, when its trace is at `phase`.
    pub(crate) fn new(trace: Trace, begin: Time, phase: Duration) -> Cursor {
        let phase = match trace.passes {
            Passes::Looped => phase.as_nanos() % trace.period().as_nanos().max(1),
            Passes::Once => 0,
        };
        let mut cursor = Cursor {
            trace,
            origin: i128::from(begin.0) - phase as i128,
            next: 0,
            left: Trace::OPPORTUNITY,
        };
        cursor.advance(begin);
        cursor
    }

    /// When something that waits from `from` on can begin to go; `None` when the trace ends before.
    pub(crate) fn starts(&mut self, from: Time) -> Option<Time> {
        self.advance(from);
        if self.left == 0 {
            self.use_next();
        }
        let at = self.time()?;
        Some(Time(u64::try_from(at).unwrap_or(u64::MAX)))
    }

    /// When a packet of so many bytes is gone that waits from `from` on; `None` when the trace ends before.
    pub(crate) fn carry(&mut self, from: Time, length: usize) -> Option<Time> {
        self.advance(from);
        let mut rest = length.saturating_add(Trace::HEADER);
        loop {
            let used = rest.min(self.left as usize);
            rest -= used;
            self.left -= used as u32;
            let at = self.time()?;
            if rest == 0 {
                return Some(Time(u64::try_from(at).unwrap_or(u64::MAX)));
            }
            self.use_next();
        }
    }

    fn use_next(&mut self) {
        self.next = self.next.saturating_add(1);
        self.left = Trace::OPPORTUNITY;
    }

    /// When the opportunity comes that is used, in nanoseconds; a looped trace has some before the connection begins.
    fn time(&self) -> Option<i128> {
        let count = self.trace.opportunities.len() as u64;
        let (pass, index) = (self.next / count, self.next % count);
        if pass > 0 && self.trace.passes == Passes::Once {
            return None;
        }
        let at = self.trace.opportunities.get(index as usize)?;
        let passed = i128::from(pass) * self.trace.period().as_nanos() as i128;
        Some(self.origin + passed + i128::from(*at) * MILLI)
    }

    /// Leaves out what came before `from`.
    fn advance(&mut self, from: Time) {
        let from = i128::from(from.0);
        if self.time().is_none_or(|time| time >= from) {
            return;
        }
        let (count, period) = (
            self.trace.opportunities.len() as i128,
            self.trace.period().as_nanos() as i128,
        );
        let since = (from - self.origin).max(0);
        // The end of a pass is the beginning of the next one, whose first lines may be zeros: the
        // earlier come first.
        let pass = (since - 1).max(0) / period;
        let within = since - pass * period;
        let index = (self.trace.opportunities)
            .partition_point(|at| i128::from(*at) * MILLI < within) as i128;
        let found = u64::try_from(pass * count + index).unwrap_or(u64::MAX);
        if found > self.next {
            self.next = found;
            self.left = Trace::OPPORTUNITY;
        }
    }
}

const MILLI: i128 = 1_000_000;
