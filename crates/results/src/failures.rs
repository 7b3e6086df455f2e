//! Why connections of a sample failed.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;

use super::{Cause, Outcome, Row};

/// Connections that failed for one cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failures {
    /// The cause; `None` of those that timed out.
    pub cause: Option<Cause>,
    /// The first one's reason, in one line.
    pub reason: String,
    /// Whether the others have it too.
    pub reasons: Reasons,
    /// How many.
    pub connections: u32,
}

/// Whether connections that failed for one cause have one reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reasons {
    /// Each has the same.
    Alike,
    /// They differ in numbers or words.
    Various,
}

impl fmt::Display for Failures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)?;
        match self.reasons {
            Reasons::Alike => Ok(()),
            Reasons::Various => f.write_str(", or the like"),
        }
    }
}

/// Causes with how many connections failed for them, the most frequent first.
pub(super) fn failures(rows: &[Row]) -> Vec<Failures> {
    // Of an unknown cause, the reason is all that tells one from another.
    let mut found: BTreeMap<(Option<Cause>, &str), Failures> = BTreeMap::new();
    for row in rows {
        let Some(reason) = row.outcome.reason() else {
            continue;
        };
        let cause = match row.outcome {
            Outcome::Failed { cause, .. } => Some(cause),
            Outcome::Completed | Outcome::TimedOut => None,
        };
        let words = match cause {
            Some(Cause::Unknown) => reason,
            _ => "",
        };
        let failures = found.entry((cause, words)).or_insert_with(|| Failures {
            cause,
            reason: reason.to_owned(),
            reasons: Reasons::Alike,
            connections: 0,
        });
        failures.connections += 1;
        if failures.reason != reason {
            failures.reasons = Reasons::Various;
        }
    }
    let mut failures: Vec<_> = found.into_values().collect();
    failures.sort_by_key(|failures| Reverse(failures.connections));
    failures
}
