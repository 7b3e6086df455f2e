//! Which block comes next.
//!
//! A cell that is measured until it is precise enough has its blocks in stages. When those of one
//! stage are finished, a look at them decides whether the next one begins; meanwhile, other cells
//! have their turn. What is decided depends on finished blocks alone, so neither the number of
//! workers nor an interruption changes it.

use std::collections::VecDeque;

use crate::results::Look;
use crate::study::{BlockId, Study};

/// What there is to do, in the order of the study.
pub(super) struct Agenda {
    /// Those that have blocks that may begin, or might get some.
    cells: VecDeque<OpenCell>,
}

/// What a worker does.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// It measures a block.
    Block(BlockId),
    /// It looks at a cell.
    Look(Stage),
    /// It waits until another worker is done.
    Wait,
    /// There is nothing more, and will not be.
    Over,
}

/// A cell up to the end of one of its stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stage {
    /// Index of the measure.
    pub(super) measure: usize,
    /// Index of the cell among the measure's.
    pub(super) cell: usize,
    /// Blocks of each sample.
    pub(super) end: u32,
}

/// What is left of a cell.
struct OpenCell {
    /// The one that is under way.
    stage: Stage,
    /// Blocks of it that have not begun.
    todo: VecDeque<BlockId>,
    /// Workers that are busy with it.
    busy: usize,
    /// Blocks of later stages.
    later: VecDeque<BlockId>,
    /// Where those stages end.
    ends: VecDeque<u32>,
}

impl Agenda {
    /// All of `missing`, which is in the order of the study. What a cell has besides is finished.
    pub(super) fn new(study: &Study, block_size: u32, missing: &[BlockId]) -> Agenda {
        let cells = missing.chunk_by(|a, b| (a.measure, a.cell) == (b.measure, b.cell));
        let cells = cells.filter_map(|missing| OpenCell::new(study, block_size, missing));
        Agenda {
            cells: cells.collect(),
        }
    }

    /// What is to be done next; [`done`](Agenda::done) or [`looked`](Agenda::looked) must follow.
    pub(super) fn next(&mut self) -> Turn {
        let ready = |cell: &OpenCell| !cell.todo.is_empty() || cell.busy == 0;
        let Some(index) = self.cells.iter().position(ready) else {
            return if self.cells.is_empty() {
                Turn::Over
            } else {
                Turn::Wait
            };
        };
        let turn = self.cells.get_mut(index).map_or(Turn::Over, OpenCell::next);
        self.drop_if_over(index);
        turn
    }

    /// A block is measured.
    pub(super) fn done(&mut self, id: BlockId) {
        if let Some((_, cell)) = self.find(id.measure, id.cell) {
            cell.busy -= 1;
        }
    }

    /// A block is not measured: there can be no look at its cell. Those that will not be measured
    /// therefore.
    pub(super) fn failed(&mut self, id: BlockId) -> Vec<BlockId> {
        let Some((index, cell)) = self.find(id.measure, id.cell) else {
            return Vec::new();
        };
        cell.ends.clear();
        let dropped = std::mem::take(&mut cell.later).into();
        self.drop_if_over(index);
        dropped
    }

    /// A look has shown something. Those that need not be measured therefore.
    pub(super) fn looked(&mut self, stage: Stage, look: &Look) -> Vec<BlockId> {
        let Some((index, cell)) = self.find(stage.measure, stage.cell) else {
            return Vec::new();
        };
        cell.busy -= 1;
        match look {
            Look::Imprecise(_) | Look::Differing => {
                cell.advance();
                Vec::new()
            }
            Look::Precise | Look::Repeating => self
                .cells
                .remove(index)
                .map_or_else(Vec::new, |cell| cell.later.into()),
        }
    }

    /// A cell that may still need a look.
    fn find(&mut self, measure: usize, cell: usize) -> Option<(usize, &mut OpenCell)> {
        let mut cells = self.cells.iter_mut().enumerate();
        cells.find(|(_, open)| (open.stage.measure, open.stage.cell) == (measure, cell))
    }

    fn drop_if_over(&mut self, index: usize) {
        let cell = self.cells.get(index);
        if cell.is_some_and(|cell| cell.todo.is_empty() && cell.later.is_empty()) {
            self.cells.remove(index);
        }
    }
}

impl OpenCell {
    /// `missing` is of one cell. `None` unless the study has it.
    fn new(study: &Study, block_size: u32, missing: &[BlockId]) -> Option<OpenCell> {
        let first = missing.first()?;
        let experiment = &study.measures.get(first.measure)?.experiment;
        let cell = experiment.cells.get(first.cell)?;
        let mut ends = VecDeque::from(experiment.stages(cell, block_size));
        let most = *ends.back()?;
        // A stage has begun when some block of it is finished, or more than that.
        let is_untouched = |end: u32| {
            let after = missing.iter().filter(|id| id.block >= end).count();
            after == (most - end) as usize * experiment.arms.len()
        };
        while ends.len() > 1 && ends.front().is_some_and(|end| !is_untouched(*end)) {
            ends.pop_front();
        }
        let mut cell = OpenCell {
            stage: Stage {
                measure: first.measure,
                cell: first.cell,
                end: 0,
            },
            todo: VecDeque::new(),
            busy: 0,
            later: missing.to_vec().into(),
            ends,
        };
        cell.advance();
        Some(cell)
    }

    /// Begins the next stage.
    fn advance(&mut self) {
        self.stage.end = self.ends.pop_front().unwrap_or(u32::MAX);
        let end = self.stage.end;
        while let Some(id) = self.later.pop_front_if(|id| id.block < end) {
            self.todo.push_back(id);
        }
    }

    fn next(&mut self) -> Turn {
        self.busy += 1;
        match self.todo.pop_front() {
            Some(id) => Turn::Block(id),
            None => Turn::Look(self.stage),
        }
    }
}

#[cfg(test)]
mod tests;
