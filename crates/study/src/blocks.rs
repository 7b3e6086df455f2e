//! A study cut into blocks, the unit of work.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::{Experiment, Measure, Study};

/// A block of a study: which connections of which sample. All indices count from 0.
///
/// Blocks are ordered by measure, cell, block and arm, so that the arms of a comparison are measured
/// close together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BlockId {
    /// Index of the measure.
    pub measure: usize,
    /// Index of the cell among the measure's.
    pub cell: usize,
    /// Place of the block among the sample's.
    pub block: u32,
    /// Index of the arm among the measure's.
    pub arm: usize,
}

/// How much there is to do, at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Cells of all measures.
    pub cells: u64,
    /// One for each arm in each cell.
    pub samples: u64,
    /// One for each block of each sample.
    pub blocks: u64,
    /// Connections of all samples.
    pub connections: u64,
}

impl Study {
    /// All blocks of at most `block_size` connections (at least 1), in their order.
    pub fn blocks(&self, block_size: u32) -> impl Iterator<Item = BlockId> {
        self.measures
            .iter()
            .enumerate()
            .flat_map(move |(measure, Measure { experiment, .. })| {
                let Experiment { arms, cells, .. } = experiment;
                let blocks = experiment.blocks(block_size);
                (0..cells.len()).flat_map(move |cell| {
                    (0..blocks).flat_map(move |block| {
                        (0..arms.len()).map(move |arm| BlockId {
                            measure,
                            cell,
                            block,
                            arm,
                        })
                    })
                })
            })
    }

    /// The indices of the connections of a block, none for a block that the study does not have.
    /// `block_size` is that of [`Study::blocks`].
    pub fn block(&self, id: BlockId, block_size: u32) -> Range<u32> {
        let Some(Measure { experiment, .. }) = self.measures.get(id.measure) else {
            return 0..0;
        };
        let exists = id.cell < experiment.cells.len() && id.arm < experiment.arms.len();
        let first = id.block.saturating_mul(block_size.max(1));
        let end = first.saturating_add(block_size.max(1));
        let most = if exists {
            experiment.connections.most()
        } else {
            0
        };
        first.min(most)..end.min(most)
    }

    /// Whether a block is measured whatever others show.
    pub fn is_certain(&self, id: BlockId, block_size: u32) -> bool {
        let measure = self.measures.get(id.measure);
        let stages = measure.map(|measure| measure.experiment.stages(block_size));
        let first = stages.and_then(|stages| stages.first().copied());
        first.is_some_and(|end| id.block < end)
    }

    /// How much there is to do at most, in blocks of at most `block_size` connections.
    pub fn size(&self, block_size: u32) -> Size {
        let mut size = Size::default();
        for Measure { experiment, .. } in &self.measures {
            let cells = experiment.cells.len() as u64;
            let samples = cells * experiment.arms.len() as u64;
            size.cells += cells;
            size.samples += samples;
            size.blocks += samples * u64::from(experiment.blocks(block_size));
            size.connections += samples * u64::from(experiment.connections.most());
        }
        size
    }
}

impl Experiment {
    /// Where the stages of a cell end, in blocks of each sample. After each stage but the last, a look
    /// at what is measured decides whether there is another one.
    pub fn stages(&self, block_size: u32) -> Vec<u32> {
        let looks = self.connections.looks().into_iter();
        let mut ends: Vec<u32> = looks
            .map(|connections| connections.div_ceil(block_size.max(1)))
            .collect();
        // Looks within one block are one.
        ends.dedup();
        ends
    }

    /// Blocks of each sample, at most.
    fn blocks(&self, block_size: u32) -> u32 {
        self.connections.most().div_ceil(block_size.max(1))
    }
}
