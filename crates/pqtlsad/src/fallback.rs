//! Why a client does without what DNS delivers.

use lastbyte_sizes::Outcome;

/// Why a handshake goes without DNS's certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fallback {
    /// Any but [`Outcome::Used`].
    pub outcome: Outcome,
    /// What exactly, in words.
    pub reason: String,
}

impl Fallback {
    /// One for this reason.
    pub fn new(outcome: Outcome, reason: impl Into<String>) -> Fallback {
        Fallback {
            outcome,
            reason: reason.into(),
        }
    }
}
