//! What a summary was compared with.

use std::fmt;

use super::saved::Moment;

/// What a summary was compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Since {
    /// What the saved results are called.
    pub name: String,
    /// When they were saved, if they say.
    pub at: Option<Moment>,
    /// How their connections were resampled.
    pub pairing: Pairing,
}

/// Whether connections of two samples are resampled together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// Those of one index met the same luck, which cancels in the change.
    ByConnection,
    /// Each sample has luck of its own.
    Apart,
}

impl fmt::Display for Since {
    /// `main, saved 2026-11-22 09:58 UTC, paired by connection`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if let Some(at) = self.at {
            write!(f, ", saved {at}")?;
        }
        write!(f, ", {}", self.pairing)
    }
}

impl fmt::Display for Pairing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Pairing::ByConnection => "paired by connection",
            Pairing::Apart => "not paired",
        })
    }
}
