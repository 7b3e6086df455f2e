//! A search for edges: sizes of chains at which a time steps.

use std::time::Duration;

use super::{Arm, ArmChain, Cell, Experiment, Metric};

/// Some arms over some networks with chains of growing size, to find where a time steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    /// Its name, unique among the study's searches.
    pub id: String,
    /// The arms as they are without padding, the cells, and how many connections each size gets.
    pub experiment: Experiment,
    /// The time that steps.
    pub metric: Metric,
    /// Bytes of the smallest Certificate message, its 4-byte header included. An arm whose chain is larger begins
    /// with that.
    pub from: usize,
    /// Bytes of the largest.
    pub to: usize,
    /// How many sizes are looked at first.
    pub sizes: usize,
    /// Edges that others found.
    pub published: Vec<PublishedEdges>,
}

/// Edges that others found, of one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedEdges {
    /// Where they are published.
    pub source: String,
    /// Bytes of the chain at each, the first one first.
    pub edges: Vec<usize>,
    /// What else there is to say.
    pub note: Option<String>,
}

impl Search {
    /// How many sizes there can be in the first look.
    pub const MOST_SIZES: usize = 1000;
    /// How many there are if nothing is said.
    pub const SIZES: usize = 25;
    /// Fewer connections of a size say nothing of their median where there is luck.
    pub const LEAST_WITH_LUCK: u32 = 50;

    /// The sizes that an arm's chain has in the first look, in bytes of the Certificate message: evenly spread.
    pub fn first_sizes(&self, arm: &Arm) -> Vec<usize> {
        let least = unpadded(arm).map_or(self.from, |least| self.from.max(least));
        let steps = self.sizes.saturating_sub(1).max(1);
        let span = self.to.saturating_sub(least);
        let mut sizes: Vec<usize> = (0..=steps)
            .filter_map(|step| {
                let wanted = least + span * step / steps;
                (wanted..=self.to).find(|bytes| is_possible(arm, *bytes))
            })
            .collect();
        sizes.dedup();
        sizes
    }

    /// How much a time must differ to be a step: half a round trip.
    pub fn threshold(cell: &Cell) -> Duration {
        cell.link.rtt() / 2
    }

    /// Whether one size has not always one time in this cell.
    pub fn has_luck(cell: &Cell) -> bool {
        cell.has_loss() || cell.has_jitter()
    }
}

/// Bytes of the Certificate message of an arm whose chain is made, without padding.
pub(super) fn unpadded(arm: &Arm) -> Option<usize> {
    match &arm.chain {
        ArmChain::Made(spec) => Some(spec.unpadded_bytes()),
        ArmChain::Pem(_) => None,
    }
}

/// Whether a chain can be padded to this size.
pub fn is_possible(arm: &Arm, bytes: usize) -> bool {
    match &arm.chain {
        ArmChain::Made(spec) => {
            let mut spec = spec.clone();
            spec.certificate_bytes = Some(bytes);
            spec.validate().is_ok()
        }
        ArmChain::Pem(_) => false,
    }
}
