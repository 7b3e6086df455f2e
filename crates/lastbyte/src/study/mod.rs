//! What to measure: arms and cells.

mod arm;
mod cell;
#[cfg(test)]
mod tests;

pub use arm::{ArmError, ArmProblem};
pub use cell::distinctions;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use lastbyte_link::{Bytes, Link, Seed};
use lastbyte_pki::{ChainSpec, PemFiles};
use lastbyte_tls::Group;

/// One TLS configuration under comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arm {
    /// As it was written: `GROUP/CHAIN[:BYTESB][/KEY=VALUE...]`.
    pub label: String,
    /// Key-exchange group.
    pub group: Group,
    /// Where its chain comes from.
    pub chain: ArmChain,
    /// How the response is cut into records.
    pub record_size: RecordSize,
}

/// Where an arm's chain comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArmChain {
    /// Made once and kept.
    Made(ChainSpec),
    /// The user's own files.
    Pem(PemFiles),
}

/// How a response is cut into TLS records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecordSize {
    /// The first record fits one segment, later ones hold 16 KiB, as large sites do.
    #[default]
    FirstSegment,
    /// Every record holds at most this many bytes (1 to 16384).
    Fixed(u16),
}

/// Congestion control of both ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Congestion {
    /// Linux's default.
    #[default]
    Cubic,
    /// NewReno.
    Reno,
    /// BBR, as the host's kernel has it.
    Bbr,
}

impl Congestion {
    const ALL: [Congestion; 3] = [Congestion::Cubic, Congestion::Reno, Congestion::Bbr];

    /// The name that the kernel knows it by.
    pub fn name(self) -> &'static str {
        match self {
            Congestion::Cubic => "cubic",
            Congestion::Reno => "reno",
            Congestion::Bbr => "bbr",
        }
    }
}

impl fmt::Display for Congestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Congestion {
    type Err = UnknownCongestion;

    fn from_str(text: &str) -> Result<Congestion, UnknownCongestion> {
        Congestion::ALL
            .into_iter()
            .find(|congestion| congestion.name() == text)
            .ok_or_else(|| UnknownCongestion {
                text: text.to_owned(),
                mend: mend(text, Congestion::ALL.map(Congestion::name)),
            })
    }
}

/// The text names no [`Congestion`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown congestion control {text:?}: {mend}")]
pub struct UnknownCongestion {
    text: String,
    mend: String,
}

/// link x initcwnd x transfer size. Every arm is measured in every cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The network.
    pub link: Link,
    /// The server's initial congestion window, in segments.
    pub initcwnd: u32,
    /// The client's initial congestion window, in segments.
    pub client_initcwnd: u32,
    /// Congestion control of both ends.
    pub congestion: Congestion,
    /// Response payload.
    pub data: Bytes,
}

/// Arms, cells and how many connections: all that an engine needs.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The arms; the first is the baseline.
    pub arms: Vec<Arm>,
    /// The cells, in the order in which they are reported.
    pub cells: Vec<Cell>,
    /// Connections of each sample.
    pub connections: u32,
    /// Connections at once, or the engine's choice: as many as don't disturb each other.
    pub concurrency: Option<u32>,
    /// When a connection counts as failed.
    pub timeout: Duration,
    /// Where all randomness comes from.
    pub seed: Seed,
}

/// `did you mean "rsa-2048"?` when a known word is near, else all of them.
pub(crate) fn mend<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    const ALIKE: f64 = 0.5;
    let known: Vec<&str> = known.into_iter().collect();
    let word = word.to_ascii_lowercase();
    let likeness =
        |name: &&str| strsim::normalized_damerau_levenshtein(&word, &name.to_ascii_lowercase());
    known
        .iter()
        .map(|name| (likeness(name), name))
        .filter(|(likeness, _)| *likeness >= ALIKE)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, nearest)| format!("did you mean {nearest:?}?"))
        .unwrap_or_else(|| format!("use one of {}", known.join(", ")))
}
