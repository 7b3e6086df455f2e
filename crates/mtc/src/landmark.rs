//! Landmarks: sizes of a log at which clients know its subtrees beforehand (section 6.4.1), and the
//! document that tells of them (section 6.4.3).

use std::fmt;

use crate::id::decimal;
use crate::subtree::Subtree;
use crate::time::UnixTime;

/// A size of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Landmark {
    /// Its number, counted from zero. That one is the empty log.
    pub number: u64,
    /// The log's entries.
    pub size: u64,
    /// The last second at which it is of use: no certificate before it holds longer.
    pub expiry: UnixTime,
}

impl Landmark {
    /// Whether it is of use at a time. The empty log never is.
    pub fn is_active(self, now: UnixTime) -> bool {
        self.number > 0 && now <= self.expiry
    }
}

/// The landmarks of a log, from the latest that is of no use any more, or from zero, to the newest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Landmarks {
    /// The oldest first; never empty.
    all: Vec<Landmark>,
}

/// A landmark that can't follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LandmarkError {
    /// The log has not grown.
    #[error(
        "a landmark must have more entries than the one before it, which has {before}: the log has {size}"
    )]
    Size {
        /// The size of the one before.
        before: u64,
        /// Its own.
        size: u64,
    },
    /// It would expire before the one before it.
    #[error("a landmark must not expire before the one before it")]
    Expiry,
    /// Numbers or sizes are at their end.
    #[error("a log has at most 2^48-1 entries")]
    Full,
}

/// Why a document of landmarks is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the landmarks: {problem}")]
pub struct DocumentError {
    /// Which line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub problem: DocumentProblem,
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DocumentProblem {
    /// It does not end with a newline.
    #[error("it does not end")]
    Unended,
    /// It is no number, or not as many as it should be.
    #[error("{0:?} is not {1}, with one space between and no zeros before")]
    Form(String, &'static str),
    /// A number is too large.
    #[error("{0} is above 2^48-1")]
    Large(u64),
    /// There are no landmarks.
    #[error("there is no landmark")]
    None,
    /// There are more than the latest number says.
    #[error("there are more landmarks than numbers")]
    Many,
    /// An older one is not smaller, or the empty log is not the one numbered zero.
    #[error("its size does not go with its number and the line above")]
    Size,
    /// An older one expires later.
    #[error("it expires after the newer one above it")]
    Expiry,
}

const LARGEST: u64 = (1 << 48) - 1;
const ZERO: Landmark = Landmark {
    number: 0,
    size: 0,
    expiry: UnixTime(0),
};

impl Default for Landmarks {
    fn default() -> Landmarks {
        Landmarks { all: vec![ZERO] }
    }
}

impl Landmarks {
    /// Those of a log that has none but zero.
    pub fn new() -> Landmarks {
        Landmarks::default()
    }

    /// The newest.
    pub fn latest(&self) -> Landmark {
        self.all.last().copied().unwrap_or(ZERO)
    }

    /// All of them, the oldest first.
    pub fn all(&self) -> &[Landmark] {
        &self.all
    }

    /// Adds one. No certificate among the entries may hold after `expiry`.
    ///
    /// # Errors
    ///
    /// If it is not larger than the latest, or expires before that.
    pub fn push(&mut self, size: u64, expiry: UnixTime) -> Result<Landmark, LandmarkError> {
        let latest = self.latest();
        let before = latest.size;
        if size <= before {
            return Err(LandmarkError::Size { before, size });
        }
        if expiry < latest.expiry {
            return Err(LandmarkError::Expiry);
        }
        if size > LARGEST || latest.number == LARGEST || expiry.0 > LARGEST {
            return Err(LandmarkError::Full);
        }
        let landmark = Landmark {
            number: latest.number + 1,
            size,
            expiry,
        };
        self.all.push(landmark);
        Ok(landmark)
    }

    /// The landmark that a certificate of the entry is relative to: the first with the entry.
    pub fn covering(&self, index: u64) -> Option<Landmark> {
        let at = (self.all).partition_point(|landmark| landmark.size <= index);
        // The one before it must be known for its subtrees.
        at.checked_sub(1)?;
        self.all.get(at).copied()
    }

    /// The subtrees of a landmark, which cover what has come since the one before it. `None` if
    /// either is not known; the empty log has none.
    pub fn subtrees(&self, number: u64) -> Option<[Subtree; 2]> {
        let first = self.all.first()?.number;
        let at = usize::try_from(number.checked_sub(first)?).ok()?;
        let before = self.all.get(at.checked_sub(1)?)?;
        Some(Subtree::cover(before.size..self.all.get(at)?.size))
    }

    /// The landmark of which the entry's certificate is relative to, and the subtree with the
    /// entry.
    pub fn subtree_of(&self, index: u64) -> Option<(Landmark, Subtree)> {
        let landmark = self.covering(index)?;
        let mut subtrees = self.subtrees(landmark.number)?.into_iter();
        let subtree = subtrees.find(|subtree| subtree.contains(index))?;
        Some((landmark, subtree))
    }

    /// Those that are of use at a time, the oldest first, and at most `limit`: if there are more,
    /// the oldest, which the most certificates are relative to. `None` if the document begins with
    /// one that is of use, so that its subtrees are not known.
    pub fn active(&self, now: UnixTime, limit: usize) -> Option<&[Landmark]> {
        let first = (self.all).partition_point(|landmark| !landmark.is_active(now));
        if first == 0 {
            return None;
        }
        let active = &self.all[first..];
        Some(&active[..active.len().min(limit)])
    }

    /// Forgets those that are of no use any more, but the latest of them.
    pub fn forget_before(&mut self, now: UnixTime) {
        let first = (self.all).partition_point(|landmark| !landmark.is_active(now));
        self.all.drain(..first.saturating_sub(1));
    }

    /// Reads the published document.
    ///
    /// # Errors
    ///
    /// If anything is not as it should be. All of it is refused then.
    pub fn parse(document: &str) -> Result<Landmarks, DocumentError> {
        let mut all: Vec<Landmark> = Vec::new();
        let mut latest = None;
        let mut line = 0;
        for text in document.split_inclusive('\n') {
            line += 1;
            let at = |problem| DocumentError { line, problem };
            let text = text
                .strip_suffix('\n')
                .ok_or_else(|| at(DocumentProblem::Unended))?;
            match latest {
                None => latest = Some(number(text).map_err(at)?),
                Some(latest) => {
                    let landmark = body_line(text, latest, all.last()).map_err(at)?;
                    all.push(landmark);
                }
            }
        }
        if all.is_empty() {
            let problem = DocumentProblem::None;
            let line = line + 1;
            return Err(DocumentError { line, problem });
        }
        all.reverse();
        Ok(Landmarks { all })
    }
}

fn number(text: &str) -> Result<u64, DocumentProblem> {
    let number = decimal(text);
    let number = number.ok_or_else(|| DocumentProblem::Form(text.to_owned(), "a number"))?;
    small(number)
}

fn small(number: u64) -> Result<u64, DocumentProblem> {
    match number {
        ..=LARGEST => Ok(number),
        _ => Err(DocumentProblem::Large(number)),
    }
}

/// Reads the line below that of `newer`, or the first one.
fn body_line(
    text: &str,
    latest: u64,
    newer: Option<&Landmark>,
) -> Result<Landmark, DocumentProblem> {
    let two = || {
        let (size, expiry) = text.split_once(' ')?;
        Some((decimal(size)?, decimal(expiry)?))
    };
    let (size, expiry) =
        two().ok_or_else(|| DocumentProblem::Form(text.to_owned(), "a size and a time"))?;
    let (size, expiry) = (small(size)?, small(expiry)?);
    let number = match newer {
        Some(newer) => newer.number.checked_sub(1).ok_or(DocumentProblem::Many)?,
        None => latest,
    };
    let landmark = Landmark {
        number,
        size,
        expiry: UnixTime(expiry),
    };
    // Each number below has a size of its own.
    if newer.is_some_and(|newer| newer.size <= size)
        || size < number
        || (number == 0) != (size == 0)
    {
        return Err(DocumentProblem::Size);
    }
    if newer.is_some_and(|newer| newer.expiry < landmark.expiry) {
        return Err(DocumentProblem::Expiry);
    }
    Ok(landmark)
}

/// The published document.
impl fmt::Display for Landmarks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.latest().number)?;
        for landmark in self.all.iter().rev() {
            writeln!(f, "{} {}", landmark.size, landmark.expiry.0)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
