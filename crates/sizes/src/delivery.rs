//! The words for certificates that DNS delivers (PQTLS-AD).

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// The lowest certificate of those that DNS delivers: all above it are delivered as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// The root alone.
    Root,
    /// CA certificates, down to an intermediate.
    Intermediate,
    /// The whole chain.
    EndEntity,
}

impl Part {
    /// All, from the top.
    pub const ALL: [Part; 3] = [Part::Root, Part::Intermediate, Part::EndEntity];

    /// The word for it on command lines and in files.
    pub fn name(self) -> &'static str {
        match self {
            Part::Root => "root",
            Part::Intermediate => "intermediate",
            Part::EndEntity => "end-entity",
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Part {
    type Err = UnknownPart;

    fn from_str(text: &str) -> Result<Part, UnknownPart> {
        let found = Part::ALL.into_iter().find(|part| part.name() == text);
        found.ok_or_else(|| UnknownPart {
            text: text.to_owned(),
        })
    }
}

/// The text names no [`Part`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown part {text:?}: use one of {}", Part::ALL.map(Part::name).join(", "))]
pub struct UnknownPart {
    text: String,
}

/// What became of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Its certificates were left out of the handshake, and the chain was verified with them.
    Used,
    /// There is none.
    NoRecord,
    /// It was not there when TCP was.
    Late,
    /// It is not to be used: it is no record, or no chain of this name.
    Invalid,
    /// A certificate is of an algorithm that the client can't verify.
    Unsupported,
    /// The server has another chain, which it sent.
    Mismatch,
    /// The server does not know the extension.
    RefusedByServer,
}

impl Outcome {
    /// All.
    pub const ALL: [Outcome; 7] = [
        Outcome::Used,
        Outcome::NoRecord,
        Outcome::Late,
        Outcome::Invalid,
        Outcome::Unsupported,
        Outcome::Mismatch,
        Outcome::RefusedByServer,
    ];

    /// The word for it in results.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Used => "used",
            Outcome::NoRecord => "no-record",
            Outcome::Late => "late",
            Outcome::Invalid => "invalid",
            Outcome::Unsupported => "unsupported",
            Outcome::Mismatch => "mismatch",
            Outcome::RefusedByServer => "refused-by-server",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
