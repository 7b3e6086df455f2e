//! A study that is measured once, and of which nothing is kept on the disk.

use super::runner::{Ending, RunError, Runner};
use crate::results::{Dataset, Folder, Manifest, Sample, Start};

/// Samples, and whether all were measured.
#[derive(Debug)]
pub struct Run {
    /// By measure, cell and arm; those with no finished block are absent.
    pub samples: Vec<Sample>,
    /// Whether the run came to its end.
    pub ending: Ending,
}

/// Measures all blocks of a study.
///
/// # Errors
///
/// Those of [`Runner::run`], and the first block that failed.
pub fn run_in_passing(runner: &Runner<'_>) -> Result<Run, RunError> {
    let place = tempfile::Builder::new()
        .prefix("lastbyte-")
        .tempdir()
        .map_err(RunError::Scratch)?;
    let path = place.path().join("run");
    let size = runner.engine.block_size(runner.study);
    let manifest = Manifest::new(runner.study, size, runner.engine.environment().clone());
    let folder = Folder::take(&path, runner.study, manifest, Start::Afresh)?;

    let blocks: Vec<_> = runner.study.blocks(size).collect();
    let run = runner.run(&blocks, &folder)?;
    if let Some(block) = run.failed.into_iter().next() {
        return Err(RunError::Block(block));
    }
    let data = Dataset::open(&path)?;
    let samples = data.samples()?;
    let samples = samples.map(|sample| sample.map(|(_, sample)| sample));
    Ok(Run {
        samples: samples.collect::<Result<_, _>>()?,
        ending: run.ending,
    })
}
