//! The words for certificates that DNS delivers (PQTLS-AD).

use std::str::FromStr;

use lastbyte_link::named;
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

named!(Part, {
    Root => "root",
    Intermediate => "intermediate",
    EndEntity => "end-entity",
});

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

named!(Outcome, {
    Used => "used",
    NoRecord => "no-record",
    Late => "late",
    Invalid => "invalid",
    Unsupported => "unsupported",
    Mismatch => "mismatch",
    RefusedByServer => "refused-by-server",
});
