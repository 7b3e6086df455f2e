//! A study cut into blocks, the unit of work.

use std::iter;
use std::ops::Range;

use lastbyte_sizes::Resumption;
use serde::{Deserialize, Serialize};

use super::{Cell, Congestion, Connections, CpuTime, Experiment, Measure, Study};

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
                (0..).zip(cells).flat_map(move |(cell, of)| {
                    let blocks = experiment.stages(of, block_size).last().copied();
                    (0..blocks.unwrap_or(0)).flat_map(move |block| {
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
        let experiment = (self.measures.get(id.measure)).map(|measure| &measure.experiment);
        let experiment = experiment.filter(|experiment| id.arm < experiment.arms.len());
        let cell =
            experiment.and_then(|experiment| Some((experiment, experiment.cells.get(id.cell)?)));
        cell.map_or(0..0, |(experiment, cell)| {
            experiment.block(cell, id.block, block_size)
        })
    }

    /// Whether a block is measured whatever others show.
    pub fn is_certain(&self, id: BlockId, block_size: u32) -> bool {
        let first = self.measures.get(id.measure).and_then(|measure| {
            let cell = measure.experiment.cells.get(id.cell)?;
            measure.experiment.stages(cell, block_size).first().copied()
        });
        first.is_some_and(|end| id.block < end)
    }

    /// Whether the cell of a block ends as soon as its connections show enough.
    pub fn may_end_early(&self, id: BlockId) -> bool {
        let experiment = (self.measures.get(id.measure)).map(|measure| &measure.experiment);
        experiment.is_some_and(|experiment| {
            let cell = experiment.cells.get(id.cell);
            cell.is_some_and(|cell| experiment.may_end_early(cell))
        })
    }

    /// How much there is to do at most, in blocks of at most `block_size` connections.
    pub fn size(&self, block_size: u32) -> Size {
        let mut size = Size::default();
        for Measure { experiment, .. } in &self.measures {
            let cells = experiment.cells.len() as u64;
            let samples = cells * experiment.arms.len() as u64;
            size.cells += cells;
            size.samples += samples;
            let blocks = experiment.cells.iter().filter_map(|cell| {
                let stages = experiment.stages(cell, block_size);
                stages.last().copied()
            });
            size.blocks += blocks.map(u64::from).sum::<u64>() * experiment.arms.len() as u64;
            size.connections += samples * u64::from(experiment.connections.most());
        }
        size
    }
}

impl Experiment {
    /// Where the stages of a cell end, in blocks of each sample. After each stage but the last, a look
    /// at what is measured decides whether there is another one.
    pub fn stages(&self, cell: &Cell, block_size: u32) -> Vec<u32> {
        let looks = self.connections.looks().into_iter();
        let mut ends: Vec<u32> = (self.repeats(cell).chain(looks))
            .map(|connections| self.blocks_of(cell, connections, block_size))
            .collect();
        // Looks within one block are one.
        ends.dedup();
        ends
    }

    /// Whether a cell ends as soon as its connections show enough, which is known when they are measured.
    pub fn may_end_early(&self, cell: &Cell) -> bool {
        matches!(self.connections, Connections::Until(_)) || self.repeats(cell).next().is_some()
    }

    /// Whether any of its cells does.
    pub fn has_early_ends(&self) -> bool {
        self.cells.iter().any(|cell| self.may_end_early(cell))
    }

    /// How many connections those of a cell show that ended with so many: where they repeat each other, as many as there were
    /// to be. By so many it weighs, where it is put together with others.
    pub fn shown_by(&self, cell: &Cell, connections: u32) -> u32 {
        if self.repeats(cell).any(|end| end == connections) {
            self.connections.most()
        } else {
            connections
        }
    }

    /// Whether connections of a cell can differ by what nobody can name: luck, what they draw, other people's programs, costs
    /// that are drawn, BBR, which begins at a phase that the kernel draws, and tickets, whose lengths several connections share.
    pub fn has_luck(&self, cell: &Cell) -> bool {
        cell.has_luck()
            || cell.page.is_some()
            || cell.congestion == Congestion::Bbr
            || self.cpu == CpuTime::Calibrated
            || self.has_foreign_servers()
            || (self.arms.iter()).any(|arm| arm.resumption != Resumption::Full)
    }

    /// After how many connections those of a cell may show that they repeat each other.
    fn repeats(&self, cell: &Cell) -> impl Iterator<Item = u32> + Clone + use<> {
        let ends = self.connections.repeats();
        // Asked of each block: most experiments have no such look, whatever their cells are.
        let is_looked_at = ends.clone().next().is_some() && !self.has_luck(cell);
        ends.filter(move |_| is_looked_at)
    }

    /// Blocks that so many connections of a cell fill. None goes on behind the place of such a look.
    fn blocks_of(&self, cell: &Cell, connections: u32, block_size: u32) -> u32 {
        let ends = self.repeats(cell).map(|end| end.min(connections));
        let pieces = iter::once(0)
            .chain(ends.clone())
            .zip(ends.chain([connections]));
        pieces
            .map(|(begin, end)| (end - begin).div_ceil(block_size.max(1)))
            .sum()
    }

    /// The indices of the connections of a block of each sample of a cell, none where it has no such block.
    fn block(&self, cell: &Cell, block: u32, block_size: u32) -> Range<u32> {
        let block_size = block_size.max(1);
        let most = self.connections.most();
        let (mut begin, mut left) = (0, block);
        for end in self.repeats(cell).chain([most]) {
            let blocks = (end - begin).div_ceil(block_size);
            if left < blocks {
                let first = begin + left * block_size;
                return first..first.saturating_add(block_size).min(end);
            }
            (begin, left) = (end, left - blocks);
        }
        most..most
    }
}
