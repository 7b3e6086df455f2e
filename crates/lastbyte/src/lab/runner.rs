//! Runs the blocks of a study on an engine, whichever it is.

mod agenda;

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::io;
use std::mem;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use self::agenda::{Agenda, Stage, Turn};
use super::inspection::{Inspection, ObservedBlock, Retention, Whose};
use super::lock::lock;
use super::{LabError, PreparedArm};
use crate::results::{
    Action, Environment, Folder, FolderError, Loaded, Look, PAGES, Row, SampleKey, loads_path, look,
};
use crate::study::{BlockId, Cell, Experiment, Study};

/// What carries a block's bytes.
pub trait Engine: Sync {
    /// Where its results come from, its name among that.
    fn environment(&self) -> &Environment;

    /// Whether it can do all that `study` asks for.
    ///
    /// # Errors
    ///
    /// One line with what it can't do, and the hint.
    fn check(&self, study: &Study) -> Result<(), String>;

    /// Has this machine have what a study needs besides: other people's programs, and room for
    /// them.
    ///
    /// # Errors
    ///
    /// What is missing, with the hint.
    fn equip(&self, _: &Study) -> Result<(), LabError> {
        Ok(())
    }

    /// Connections of a block; at least 1.
    fn block_size(&self, study: &Study) -> u32;

    /// Blocks of a study that are measured at once.
    fn workers(&self, study: &Study) -> usize;

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
    /// Hears of each connection that has ended, where blocks take long.
    pub ended: &'a (dyn Fn() + Sync),
    /// What is kept of it besides its part.
    pub inspection: Option<&'a Inspection>,
    /// The folder for what browsers tell of page loads.
    pub pages: &'a Path,
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

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Everything was measured.
    Complete,
    /// It was interrupted; finished blocks are kept.
    Interrupted,
}

/// Hears how a run goes.
pub trait Watcher: Sync {
    /// All blocks together will take about this long.
    fn expect(&self, total: Duration);

    /// A part of the work is done that was expected to take this long.
    fn advance(&self, part: Duration);

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
    /// What is kept of connections besides rows.
    pub inspection: Option<&'a Inspection>,
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
    /// There is no folder for parts.
    #[error("can't make a folder for parts: {0}")]
    Scratch(#[source] io::Error),
    /// A block failed of a study that has no other chance.
    #[error("{0}")]
    Block(FailedBlock),
}

/// What the workers share.
struct Shared {
    queue: Mutex<Queue>,
    /// A worker is done with its turn.
    changed: Condvar,
}

struct Queue {
    agenda: Agenda,
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

    /// Measures `blocks` in their order, and keeps the part of each in `folder`. Those of a cell
    /// that is measured until it is precise enough have their turn when they are needed; what it
    /// has besides them is finished.
    ///
    /// # Errors
    ///
    /// When nothing can go on. A block that fails is reported to the watcher, and the others go on.
    pub fn run(&self, blocks: &[BlockId], folder: &Folder) -> Result<Finished, RunError> {
        let expected = Expected::new(self, blocks);
        let total = blocks.iter().map(|id| expected.of(self, *id)).sum();
        self.watcher.expect(total);
        let shared = Shared {
            queue: Mutex::new(Queue {
                agenda: Agenda::new(self.study, self.engine.block_size(self.study), blocks),
                measured: 0,
                failed: Vec::new(),
                error: None,
                ending: Ending::Complete,
            }),
            changed: Condvar::new(),
        };
        thread::scope(|scope| {
            let workers = expected.workers.min(blocks.len().max(1));
            let workers: Vec<_> = (0..workers)
                .map(|_| scope.spawn(|| self.work(&shared, &expected, folder)))
                .collect();
            for worker in workers {
                // Its panic has ended the run.
                let _ = worker.join();
            }
        });
        let queue = shared.queue.into_inner();
        let queue = queue.unwrap_or_else(PoisonError::into_inner);
        match queue.error {
            Some(error) => Err(error),
            None => Ok(Finished {
                ending: queue.ending,
                measured: queue.measured,
                failed: queue.failed,
            }),
        }
    }

    /// Has one turn after the other until there are no more, or the run ends.
    fn work(&self, shared: &Shared, expected: &Expected, folder: &Folder) {
        let _guard = TellsPanic(shared);
        while let Some(turn) = self.next(shared) {
            let passed = match turn {
                Turn::Block(id) => self.measure_and_tell(id, shared, expected, folder),
                Turn::Look(stage) => self.look_and_tell(stage, shared, folder),
                Turn::Wait | Turn::Over => Vec::new(),
            };
            shared.changed.notify_all();
            for id in passed {
                self.watcher.advance(expected.of(self, id));
            }
        }
    }

    /// A turn that is not waiting.
    fn next(&self, shared: &Shared) -> Option<Turn> {
        let mut queue = lock(&shared.queue);
        while queue.error.is_none() && queue.ending == Ending::Complete {
            match queue.agenda.next() {
                Turn::Over => return None,
                Turn::Wait => {
                    let changed = shared.changed.wait(queue);
                    queue = changed.unwrap_or_else(PoisonError::into_inner);
                }
                Turn::Block(_) | Turn::Look(_) if self.interrupt.load(Ordering::Relaxed) => {
                    queue.ending = Ending::Interrupted;
                    shared.changed.notify_all();
                }
                turn => return Some(turn),
            }
        }
        None
    }

    /// Measures a block, and gives those that nobody waits for any more besides.
    fn measure_and_tell(
        &self,
        id: BlockId,
        shared: &Shared,
        expected: &Expected,
        folder: &Folder,
    ) -> Vec<BlockId> {
        let progress = BlockProgress {
            watcher: self.watcher,
            each: expected.of(self, id) / self.connections(id).max(1),
            left: Mutex::new(expected.of(self, id)),
        };
        let measured = self.measure(id, folder, &|| progress.advance());
        progress.finish();
        let mut queue = lock(&shared.queue);
        let mut passed = Vec::new();
        match measured {
            Ok(Ending::Complete) => {
                queue.measured += 1;
                queue.agenda.done(id);
            }
            Ok(Ending::Interrupted) => queue.ending = Ending::Interrupted,
            Err(Unmeasured::Block(reason)) => {
                let name = self.name(id);
                let failed = FailedBlock { id, name, reason };
                self.watcher.warn(&failed.to_string());
                queue.failed.push(failed);
                passed.extend(queue.agenda.failed(id));
            }
            Err(Unmeasured::Run(error)) => {
                queue.error.get_or_insert(error);
            }
        }
        passed
    }

    /// Looks at a cell, and gives the blocks that nobody waits for any more.
    fn look_and_tell(&self, stage: Stage, shared: &Shared, folder: &Folder) -> Vec<BlockId> {
        let look = self.look(stage, folder);
        let mut queue = lock(&shared.queue);
        match look {
            Ok(look) => queue.agenda.looked(stage, &look),
            Err(error) => {
                queue.error.get_or_insert(error.into());
                Vec::new()
            }
        }
    }

    /// What the finished blocks of a cell show.
    fn look(&self, stage: Stage, folder: &Folder) -> Result<Look, FolderError> {
        let Stage { measure, cell, end } = stage;
        let rows = folder.rows(self.study, measure, cell, end)?;
        let rows: Vec<&[Row]> = rows.iter().map(Vec::as_slice).collect();
        let experiment = (self.study.measures.get(measure)).map(|measure| &measure.experiment);
        let cell = experiment.and_then(|experiment| experiment.cells.get(cell));
        Ok(match experiment.zip(cell) {
            Some((experiment, cell)) => look(experiment, cell, &rows, &self.study.percentiles),
            None => Look::Precise,
        })
    }

    fn measure(
        &self,
        id: BlockId,
        folder: &Folder,
        ended: &(dyn Fn() + Sync),
    ) -> Result<Ending, Unmeasured> {
        let job = self
            .job(id)
            .ok_or_else(|| Unmeasured::Block("the study has no such block".to_owned()))?;
        let pages = folder.path().join(PAGES);
        let job = Job {
            ended,
            pages: &pages,
            ..job
        };
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
                let error = FolderError::io(Action::Write, &draft)(error);
                Err(Unmeasured::Run(error.into()))
            }
            Err(BlockError::Lab(error)) => Err(Unmeasured::Run(error.into())),
        };
        // There may be none, and it is hidden.
        let _ = fs::remove_file(&draft);
        measured
    }

    fn job(&self, id: BlockId) -> Option<Job<'_>> {
        self.job_of(id, self.engine.block_size(self.study))
    }

    /// The same where a block has at most `block_size` connections, which takes a look at all cells to know.
    fn job_of(&self, id: BlockId, block_size: u32) -> Option<Job<'_>> {
        let experiment = &self.study.measures.get(id.measure)?.experiment;
        let arm = experiment.arms.get(id.arm)?;
        let connections = self.study.block(id, block_size);
        (!connections.is_empty()).then_some(Job {
            study: self.study,
            id,
            connections,
            experiment,
            cell: experiment.cells.get(id.cell)?,
            arm: (self.arms.iter()).find(|prepared| prepared.arm.label == arm.label)?,
            interrupt: self.interrupt,
            ended: &|| (),
            inspection: self.inspection,
            pages: Path::new(PAGES),
        })
    }

    /// Connections of a block.
    fn connections(&self, id: BlockId) -> u32 {
        self.job(id).map_or(0, |job| job.connections.len() as u32)
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
    /// Keeps what was seen of it besides its rows, if anything was to be kept.
    pub(super) fn keep(&self, observed: ObservedBlock) {
        if let Some(inspection) = self.inspection {
            let block = Whose {
                study: self.study,
                id: self.id,
                connections: self.connections.clone(),
                cell: self.cell,
                arm: &self.arm.arm.label,
            };
            inspection.keep(&block, observed);
        }
    }

    /// Keeps what browsers reported of its loads.
    pub(super) fn write_loads(&self, loads: &[Loaded]) -> io::Result<()> {
        lastbyte_files::write(&self.loads_file()?, &serde_json::to_vec(loads)?)
    }

    /// Keeps what browsers reported of its loads, which a guest has left in a file.
    pub(super) fn keep_loads(&self, left: &Path) -> io::Result<()> {
        fs::rename(left, self.loads_file()?)
    }

    /// Where that is kept, in a folder that is there.
    fn loads_file(&self) -> io::Result<PathBuf> {
        fs::create_dir_all(self.pages)?;
        Ok(loads_path(
            self.pages,
            self.study,
            self.id,
            self.connections.start,
        ))
    }

    /// What is to be kept of it besides its part.
    pub(super) fn retention(&self) -> Retention {
        let inspection = self.inspection;
        inspection.map_or_else(Retention::default, |inspection| {
            inspection.retention(&self.connections)
        })
    }

    /// The sample that it is a part of.
    pub fn sample(&self) -> SampleKey {
        SampleKey {
            measure: self.id.measure,
            cell: self.id.cell,
            arm: self.id.arm,
        }
    }
}

/// What a watcher hears of one block: no more than was expected of it, and all of that in the end.
struct BlockProgress<'a> {
    watcher: &'a dyn Watcher,
    /// A connection's part.
    each: Duration,
    left: Mutex<Duration>,
}

impl BlockProgress<'_> {
    /// A connection has ended. Those of a block that is measured again count once.
    fn advance(&self) {
        let mut left = lock(&self.left);
        let part = self.each.min(*left);
        *left -= part;
        self.watcher.advance(part);
    }

    fn finish(&self) {
        self.watcher.advance(mem::take(&mut lock(&self.left)));
    }
}

/// Each block's share of the time that all take. Those of a sample are alike, but for the last one.
struct Expected {
    /// Blocks that are measured at once.
    workers: usize,
    /// Of a block at most.
    connections: u32,
    shares: HashMap<(SampleKey, usize), Duration>,
}

impl Expected {
    fn new(runner: &Runner<'_>, blocks: &[BlockId]) -> Self {
        let workers = runner.engine.workers(runner.study).max(1);
        let parts = u32::try_from(workers).unwrap_or(u32::MAX);
        let connections = runner.engine.block_size(runner.study);
        let mut shares = HashMap::new();
        let jobs = blocks.iter();
        for job in jobs.filter_map(|id| runner.job_of(*id, connections)) {
            shares
                .entry((job.sample(), job.connections.len()))
                .or_insert_with(|| runner.engine.expected_block(&job) / parts);
        }
        Self {
            workers,
            connections,
            shares,
        }
    }

    fn of(&self, runner: &Runner<'_>, id: BlockId) -> Duration {
        let share = |job: Job<'_>| {
            let of_sample = (job.sample(), job.connections.len());
            self.shares.get(&of_sample).copied()
        };
        let job = runner.job_of(id, self.connections);
        job.and_then(share).unwrap_or_default()
    }
}

/// Ends the run when the thread of a worker panics, so that no other waits for it.
struct TellsPanic<'a>(&'a Shared);

impl Drop for TellsPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            let error = LabError::Crashed("the thread of a block");
            lock(&self.0.queue).error.get_or_insert(error.into());
            self.0.changed.notify_all();
        }
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
    /// in one shard. Nor are cells that end as soon as they show enough.
    pub fn blocks(self, study: &Study, block_size: u32) -> Vec<BlockId> {
        let mut place = 0;
        let mut last = None;
        let mut mine = Vec::new();
        for id in study.blocks(block_size) {
            let group = if study.may_end_early(id) {
                (id.measure, id.cell, 0)
            } else {
                (id.measure, id.cell, id.block)
            };
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

/// A shard that a batch system has given to this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssignedShard {
    /// Which.
    pub shard: Shard,
    /// What gives them: `SLURM_ARRAY_TASK_ID=2 and SLURM_ARRAY_TASK_COUNT=4 say`.
    pub by: String,
}

impl Shard {
    /// The one that a batch system has given to this process: a task of a Slurm array, whichever
    /// numbers that has, or a pod of an indexed Job of Kubernetes, which does not say how many
    /// there are: `LASTBYTE_SHARDS` does. Where that is set for an array, its tasks are the shards
    /// of their numbers, so that some of them can be had again. Where it is not, an array of a list
    /// of numbers is no order of shards.
    ///
    /// # Errors
    ///
    /// When no batch system says it, two say different things, or what one says makes no sense, in
    /// one line with the hint.
    pub fn from_environment(get: impl Fn(&str) -> Option<String>) -> Result<AssignedShard, String> {
        let mut read = Vec::new();
        let mut number = |name: &str| -> Result<Option<u32>, String> {
            let Some(text) = get(name).filter(|text| !text.is_empty()) else {
                return Ok(None);
            };
            let number = text
                .parse()
                .map_err(|_| format!("{name} is {text:?}, which is no whole number"))?;
            read.push(format!("{name}={number}"));
            Ok(Some(number))
        };
        let shards = number("LASTBYTE_SHARDS")?;
        if shards == Some(0) {
            return Err("LASTBYTE_SHARDS is 0: set it to the number of all shards".to_owned());
        }
        let array = match (number("SLURM_ARRAY_TASK_ID")?, shards) {
            (Some(task), Some(of)) => Some((Some(task), of)),
            (Some(task), None) => {
                let of = number("SLURM_ARRAY_TASK_COUNT")?
                    .ok_or("SLURM_ARRAY_TASK_COUNT is not set: write --shard I/N")?;
                let first = number("SLURM_ARRAY_TASK_MIN")?.unwrap_or(1);
                let last = number("SLURM_ARRAY_TASK_MAX")?;
                let step = number("SLURM_ARRAY_TASK_STEP")?.unwrap_or(1).max(1);
                let place = |task: u32| {
                    let past = task.checked_sub(first)?;
                    Some((past / step, past % step))
                };
                // A list of numbers leaves some out, or is of other steps. What ends a range need
                // not be a task.
                let is_range = last.is_none_or(|last| {
                    place(last).and_then(|(steps, _)| steps.checked_add(1)) == Some(of)
                });
                let index = match place(task) {
                    Some((steps, 0)) if is_range => steps.checked_add(1),
                    _ => None,
                };
                Some((index, of))
            }
            (None, _) => None,
        };
        let pod = number("JOB_COMPLETION_INDEX")?.map(|index| index.checked_add(1));
        let read = read.join(", ");
        let (index, of, hint) = match (array, pod) {
            (None, None) => {
                return Err(
                    "no batch system says which shard this is (SLURM_ARRAY_TASK_ID, JOB_COMPLETION_INDEX): write \
                     --shard I/N"
                        .to_owned(),
                );
            }
            (None, Some(index)) => {
                let of = shards.ok_or(
                    "JOB_COMPLETION_INDEX says which shard this is, but not of how many: set LASTBYTE_SHARDS to the \
                     completions of the Job",
                )?;
                let last = of - 1;
                let hint = format!(
                    "the pods of a Job are numbered from 0, here to {last}: set LASTBYTE_SHARDS to its completions"
                );
                (index, of, hint)
            }
            (Some((index, _)), Some(other)) if index != other => {
                return Err(format!(
                    "{read} are of two batch systems, and name different shards: unset the variables of one, or write \
                     --shard I/N"
                ));
            }
            (Some((index, of)), _) => {
                let hint =
                    format!("number the tasks from 1 to {of}, as in --array=1-{of}, without gaps");
                (index, of, hint)
            }
        };
        match index.filter(|index| (1..=of).contains(index)) {
            Some(index) => Ok(AssignedShard {
                shard: Shard { index, of },
                by: format!("{read} say"),
            }),
            None => Err(format!(
                "{read} are the numbers of no shard of {of}: {hint}, or write --shard I/N"
            )),
        }
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

#[cfg(test)]
mod tests;
