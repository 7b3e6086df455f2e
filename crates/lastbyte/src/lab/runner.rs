//! Runs the blocks of a study on an engine, whichever it is.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::{Ending, LabError, PreparedArm, Progress};
use crate::results::{Environment, Folder, FolderError, SampleKey};
use crate::study::{BlockId, Cell, Experiment, Study};

/// What carries a block's bytes.
pub trait Engine: Sync {
    /// Where its results come from, its name among that.
    fn environment(&self) -> &Environment;

    /// Whether it can do all that `study` asks for.
    ///
    /// # Errors
    ///
    /// One line with what it can't do, and the mend.
    fn check(&self, study: &Study) -> Result<(), String>;

    /// Connections of a block; at least 1.
    fn block_size(&self, study: &Study) -> u32;

    /// Blocks that are measured at once.
    fn workers(&self) -> usize;

    /// About how long a block takes. Asked before anything is measured.
    fn expected_block(&self, job: &Job<'_>) -> Duration;

    /// Measures a block and writes its part to `draft`, which does not exist yet. What is there
    /// after an interruption or an error is not kept.
    ///
    /// # Errors
    ///
    /// [`BlockError`] tells whether others may fare better.
    fn measure(&self, job: &Job<'_>, draft: &Path) -> Result<Ending, BlockError>;
}

/// One block to be measured.
pub struct Job<'a> {
    /// The study.
    pub study: &'a Study,
    /// Which block of it.
    pub id: BlockId,
    /// The indices of its connections.
    pub connections: Range<u32>,
    /// The experiment of its measure.
    pub experiment: &'a Experiment,
    /// Its cell.
    pub cell: &'a Cell,
    /// Its arm.
    pub arm: &'a PreparedArm,
    /// Ends it early when set.
    pub interrupt: &'a AtomicBool,
}

/// A block was not measured.
#[derive(Debug, thiserror::Error)]
pub enum BlockError {
    /// This one failed, for this reason in one line; others may not.
    #[error("{0}")]
    Failed(String),
    /// Its part can't be written. No other will be either.
    #[error("can't write a part: {0}")]
    Write(#[source] io::Error),
    /// The laboratory can't go on.
    #[error(transparent)]
    Lab(#[from] LabError),
}

/// Hears how a study goes.
pub trait Watcher: Progress {
    /// Something went wrong that does not end the run, in one line.
    fn warn(&self, line: &str);
}

/// Runs the blocks of a study.
pub struct Runner<'a> {
    /// The study.
    pub study: &'a Study,
    /// What carries the bytes.
    pub engine: &'a dyn Engine,
    /// The arms of all measures, each label once.
    pub arms: &'a [PreparedArm],
    /// Ends the run early when set.
    pub interrupt: &'a AtomicBool,
    /// Hears how it goes.
    pub watcher: &'a dyn Watcher,
}

/// What became of the blocks that were to be measured.
#[derive(Debug)]
pub struct Finished {
    /// Whether all had their turn.
    pub ending: Ending,
    /// How many were measured.
    pub measured: usize,
    /// Those that failed.
    pub failed: Vec<FailedBlock>,
}

/// A block that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedBlock {
    /// Which.
    pub id: BlockId,
    /// Which, in words.
    pub name: String,
    /// Why, in one line.
    pub reason: String,
}

impl fmt::Display for FailedBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed: {}", self.name, self.reason)
    }
}

/// A run can't go on. What it has measured is kept.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The laboratory can't.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// The folder can't be written.
    #[error(transparent)]
    Folder(#[from] FolderError),
}

/// What the workers share.
struct Queue<'a> {
    todo: std::slice::Iter<'a, BlockId>,
    measured: usize,
    failed: Vec<FailedBlock>,
    /// Ends the run.
    error: Option<RunError>,
    ending: Ending,
}

impl Runner<'_> {
    /// About how long `blocks` take.
    pub fn expected(&self, blocks: &[BlockId]) -> Duration {
        let expected = Expected::new(self, blocks);
        blocks.iter().map(|id| expected.of(self, *id)).sum()
    }

    /// Measures `blocks` in their order, and keeps the part of each in `folder`.
    ///
    /// # Errors
    ///
    /// When nothing can go on. A block that fails is told to the watcher, and the others go on.
    pub fn run(&self, blocks: &[BlockId], folder: &Folder) -> Result<Finished, RunError> {
        let expected = Expected::new(self, blocks);
        let total = blocks.iter().map(|id| expected.of(self, *id)).sum();
        self.watcher.expect(total);
        let queue = Mutex::new(Queue {
            todo: blocks.iter(),
            measured: 0,
            failed: Vec::new(),
            error: None,
            ending: Ending::Complete,
        });
        thread::scope(|scope| {
            let workers = self.engine.workers().clamp(1, blocks.len().max(1));
            let workers: Vec<_> = (0..workers)
                .map(|_| scope.spawn(|| self.work(&queue, &expected, folder)))
                .collect();
            for worker in workers {
                if worker.join().is_err() {
                    let error = LabError::Crashed("the thread of a block");
                    lock(&queue).error.get_or_insert(error.into());
                }
            }
        });
        let queue = queue.into_inner().unwrap_or_else(PoisonError::into_inner);
        match queue.error {
            Some(error) => Err(error),
            None => Ok(Finished {
                ending: queue.ending,
                measured: queue.measured,
                failed: queue.failed,
            }),
        }
    }

    /// Measures block after block until there are no more, or the run ends.
    fn work(&self, queue: &Mutex<Queue<'_>>, expected: &Expected, folder: &Folder) {
        while let Some(id) = self.next(queue) {
            let measured = self.measure(id, folder);
            let mut queue = lock(queue);
            match measured {
                Ok(Ending::Complete) => queue.measured += 1,
                Ok(Ending::Interrupted) => queue.ending = Ending::Interrupted,
                Err(Unmeasured::Block(reason)) => {
                    let name = self.name(id);
                    let failed = FailedBlock { id, name, reason };
                    self.watcher.warn(&failed.to_string());
                    queue.failed.push(failed);
                }
                Err(Unmeasured::Run(error)) => {
                    queue.error.get_or_insert(error);
                }
            }
            drop(queue);
            self.watcher.advance(expected.of(self, id));
        }
    }

    fn next(&self, queue: &Mutex<Queue<'_>>) -> Option<BlockId> {
        let mut queue = lock(queue);
        if queue.error.is_some() || queue.ending == Ending::Interrupted {
            return None;
        }
        let id = *queue.todo.next()?;
        if self.interrupt.load(Ordering::Relaxed) {
            queue.ending = Ending::Interrupted;
            return None;
        }
        Some(id)
    }

    fn measure(&self, id: BlockId, folder: &Folder) -> Result<Ending, Unmeasured> {
        let job = self
            .job(id)
            .ok_or_else(|| Unmeasured::Block("the study has no such block".to_owned()))?;
        let draft = folder.draft(self.study, id);
        let measured = match self.engine.measure(&job, &draft) {
            Ok(Ending::Complete) => match folder.keep(self.study, id) {
                Ok(()) => return Ok(Ending::Complete),
                Err(error @ FolderError::Io { .. }) => Err(Unmeasured::Run(error.into())),
                Err(error) => Err(Unmeasured::Block(error.to_string())),
            },
            Ok(Ending::Interrupted) => Ok(Ending::Interrupted),
            Err(BlockError::Failed(reason)) => Err(Unmeasured::Block(reason)),
            Err(BlockError::Write(error)) => {
                let error = FolderError::io("write", &draft)(error);
                Err(Unmeasured::Run(error.into()))
            }
            Err(BlockError::Lab(error)) => Err(Unmeasured::Run(error.into())),
        };
        // There may be none, and it is hidden.
        let _ = fs::remove_file(&draft);
        measured
    }

    fn job(&self, id: BlockId) -> Option<Job<'_>> {
        let experiment = &self.study.measures.get(id.measure)?.experiment;
        let arm = experiment.arms.get(id.arm)?;
        let connections = self.study.block(id, self.engine.block_size(self.study));
        (!connections.is_empty()).then_some(Job {
            study: self.study,
            id,
            connections,
            experiment,
            cell: experiment.cells.get(id.cell)?,
            arm: (self.arms.iter()).find(|prepared| prepared.arm.label == arm.label)?,
            interrupt: self.interrupt,
        })
    }

    fn name(&self, id: BlockId) -> String {
        let job = self.job(id);
        let experiment = job.as_ref().map(|job| job.experiment);
        let arm = experiment.and_then(|experiment| experiment.arms.get(id.arm));
        let arm = arm.map_or("", |arm| &arm.name);
        let cell = job
            .as_ref()
            .map_or(String::new(), |job| job.cell.to_string());
        format!("block {} of {arm} ({cell})", id.block)
    }
}

impl Job<'_> {
    /// The sample that it is a part of.
    pub fn sample(&self) -> SampleKey {
        SampleKey {
            measure: self.id.measure,
            cell: self.id.cell,
            arm: self.id.arm,
        }
    }
}

/// Each block's share of the time that all take. Those of a sample are alike, but for the last one.
struct Expected(HashMap<(SampleKey, usize), Duration>);

impl Expected {
    fn new(runner: &Runner<'_>, blocks: &[BlockId]) -> Self {
        let workers = u32::try_from(runner.engine.workers().max(1)).unwrap_or(u32::MAX);
        let mut known = HashMap::new();
        for job in blocks.iter().filter_map(|id| runner.job(*id)) {
            known
                .entry((job.sample(), job.connections.len()))
                .or_insert_with(|| runner.engine.expected_block(&job) / workers);
        }
        Self(known)
    }

    fn of(&self, runner: &Runner<'_>, id: BlockId) -> Duration {
        let job = runner.job(id);
        let known = job.and_then(|job| self.0.get(&(job.sample(), job.connections.len())).copied());
        known.unwrap_or_default()
    }
}

/// Why a block was not measured.
enum Unmeasured {
    /// For a reason of its own.
    Block(String),
    /// The run can't go on.
    Run(RunError),
}

/// One of several parts of a study, for machines that share it: `2/3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    index: u32,
    of: u32,
}

impl Shard {
    /// All there is.
    pub const WHOLE: Shard = Shard { index: 1, of: 1 };

    /// Its blocks, in the order of the study. Arms are not parted: those of one block of a cell are
    /// in one shard.
    pub fn blocks(self, study: &Study, block_size: u32) -> Vec<BlockId> {
        let mut place = 0;
        let mut last = None;
        let mut mine = Vec::new();
        for id in study.blocks(block_size) {
            let group = (id.measure, id.cell, id.block);
            if last.is_some_and(|last| last != group) {
                place = (place + 1) % self.of;
            }
            last = Some(group);
            if place + 1 == self.index {
                mine.push(id);
            }
        }
        mine
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}/{}", self.index, self.of))
    }
}

/// The text is no [`Shard`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no shard: write one such as \"1/4\", the first of four")]
pub struct NoShard(String);

impl FromStr for Shard {
    type Err = NoShard;

    fn from_str(text: &str) -> Result<Shard, NoShard> {
        let number = |text: &str| -> Option<u32> {
            (text.bytes().all(|byte| byte.is_ascii_digit()))
                .then(|| text.parse().ok())
                .flatten()
        };
        text.split_once('/')
            .and_then(|(index, of)| Some((number(index)?, number(of)?)))
            .filter(|(index, of)| (1..=*of).contains(index))
            .map(|(index, of)| Shard { index, of })
            .ok_or_else(|| NoShard(text.to_owned()))
    }
}

/// Whoever panicked with the lock has left nothing half done.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
