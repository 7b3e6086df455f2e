//! A study that is measured once, and of which nothing is kept on the disk.

use std::path::PathBuf;

use super::runner::{Ending, FailedBlock, RunError, Runner};
use super::scratch::Scratch;
use crate::results::{Dataset, Folder, Manifest, PAGES, Sample, Start};

/// Samples, and whether all were measured.
#[derive(Debug)]
pub struct Run {
    /// By measure, cell and arm; those with no finished block are absent.
    pub samples: Vec<Sample>,
    /// Blocks that failed.
    pub failed: Vec<FailedBlock>,
    /// Whether the run came to its end.
    pub ending: Ending,
    place: Scratch,
}

/// Its folder, as long as there is a [`Run`].
const FOLDER: &str = "run";

impl Run {
    /// Where what browsers reported of page loads is, as long as this is there.
    pub fn pages(&self) -> PathBuf {
        self.place.path().join(FOLDER).join(PAGES)
    }

    /// The run, if no block failed.
    ///
    /// # Errors
    ///
    /// The first block that failed.
    pub fn whole(mut self) -> Result<Run, RunError> {
        if self.failed.is_empty() {
            Ok(self)
        } else {
            Err(RunError::Block(self.failed.swap_remove(0)))
        }
    }
}

/// Measures all blocks of a study.
///
/// # Errors
///
/// Those of [`Runner::run`].
pub fn run_in_passing(runner: &Runner<'_>) -> Result<Run, RunError> {
    let place = Scratch::new_in(&std::env::temp_dir()).map_err(RunError::Scratch)?;
    let path = place.path().join(FOLDER);
    let size = runner.engine.block_size(runner.study);
    let manifest = Manifest::new(runner.study, size, runner.engine.environment().clone());
    let folder = Folder::take(&path, runner.study, manifest, Start::Afresh)?;

    let blocks: Vec<_> = runner.study.blocks(size).collect();
    let run = runner.run(&blocks, &folder)?;
    let data = Dataset::open(&path)?;
    let samples = data.samples()?;
    let samples = samples.map(|sample| sample.map(|(_, sample)| sample));
    Ok(Run {
        samples: samples.collect::<Result<_, _>>()?,
        failed: run.failed,
        ending: run.ending,
        place,
    })
}
