//! Results that were saved, for later ones to be compared with.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use lastbyte_link::nearest;
use serde::{Deserialize, Serialize};

use super::merged::MergedSamples;
#[cfg(feature = "fixtures")]
use super::rows::ParquetReader;
use super::{Environment, FolderError, Sample};
use lastbyte_study::{Arm, Cell, Experiment, Study};

/// The results of one experiment, read back from a file of all rows.
#[derive(Debug)]
pub struct Saved {
    /// What they are called.
    pub name: String,
    /// When they were saved; rows that were kept for their own sake don't say.
    pub at: Option<Moment>,
    /// What was measured.
    pub experiment: Experiment,
    /// And with what.
    pub environment: Environment,
    samples: Vec<Sample>,
}

/// A moment in whole seconds since 1 January 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Moment(pub u64);

/// What is wrong with rows that are part of a run's folder, which says it.
pub const SILENT: &str = "it does not say what was measured";

/// Saved results can't be compared with.
#[derive(Debug, thiserror::Error)]
pub enum SavedError {
    /// They can't be read.
    #[error("{error}{}", anew(error))]
    Unreadable {
        /// Why not.
        #[from]
        error: FolderError,
    },
    /// They lack something that is to be measured.
    #[error("results saved as {name:?} lack the {kind} {text:?}: save it first, or {hint}")]
    Lacking {
        /// What they are called.
        name: String,
        /// `arm` or `cell`.
        kind: &'static str,
        /// Which one.
        text: String,
        /// What they have instead.
        hint: String,
    },
}

/// What to do about results that can't be read, unless it is the system that refuses them.
fn anew(error: &FolderError) -> &'static str {
    match error {
        FolderError::Io { .. } => "",
        _ => ": save them anew",
    }
}

impl Saved {
    /// Reads a file that [`write_rows`](super::write_rows) wrote. Relative paths in it begin at the
    /// current folder.
    ///
    /// # Errors
    ///
    /// When it can't be read, or does not say what was measured.
    pub fn open(path: &Path, name: &str) -> Result<Saved, SavedError> {
        Self::of(MergedSamples::open(path)?, path, name)
    }

    /// The same of the bytes of such a file.
    ///
    /// # Errors
    ///
    /// As [`Saved::open`].
    #[cfg(feature = "fixtures")]
    pub fn parse(bytes: Vec<u8>) -> Result<Saved, SavedError> {
        let path = Path::new("rows.parquet");
        let reader = ParquetReader::of_bytes(bytes).map_err(|error| FolderError::Content {
            path: path.to_owned(),
            problem: error.to_string(),
        })?;
        Self::of(MergedSamples::of(reader, path)?, path, "rows")
    }

    fn of(rows: MergedSamples, path: &Path, name: &str) -> Result<Saved, SavedError> {
        let content = |problem: String| FolderError::Content {
            path: path.to_owned(),
            problem,
        };
        let about = rows.about();
        let silent = || content(SILENT.to_owned());
        let text = about.experiment.as_deref().ok_or_else(silent)?;
        let study = Study::parse(text, Path::new("saved.toml"))
            .map_err(|error| content(error.to_string()))?;
        let measure = study.measures.into_iter().next().ok_or_else(silent)?;
        let environment = about.environments.first().ok_or_else(silent)?;
        let (at, environment) = (
            about.saved,
            Environment {
                engine: about.engine,
                ..environment.clone()
            },
        );
        let experiment = measure.experiment;
        let (arms, cells) = (0..experiment.arms.len(), 0..experiment.cells.len());
        let mut known = BTreeSet::new();
        let mut samples = Vec::new();
        for sample in rows {
            let (_, sample) = sample?;
            let is_measured = arms.contains(&sample.arm) && cells.contains(&sample.cell);
            if !is_measured || !known.insert((sample.arm, sample.cell)) {
                return Err(content(
                    "it has samples twice, or of no arm or cell that it tells of".to_owned(),
                )
                .into());
            }
            samples.push(sample);
        }
        Ok(Saved {
            name: name.to_owned(),
            at,
            experiment,
            environment,
            samples,
        })
    }

    /// Whether all that `experiment` measures can be compared.
    ///
    /// # Errors
    ///
    /// With the first arm or cell that is lacking.
    pub fn check(&self, experiment: &Experiment) -> Result<(), SavedError> {
        let lacking = |kind, text: &str, known: Vec<String>| SavedError::Lacking {
            name: self.name.clone(),
            kind,
            text: text.to_owned(),
            hint: nearest(text, known.iter().map(String::as_str)),
        };
        for cell in &experiment.cells {
            if !self.samples.iter().any(|sample| self.is_of(sample, cell)) {
                let known = self.experiment.cells.iter().map(Cell::to_string);
                return Err(lacking("cell", &cell.to_string(), known.collect()));
            }
            for arm in &experiment.arms {
                if self.sample(&arm.name, cell).is_none() {
                    let known = self.experiment.arms.iter().map(|arm| arm.name.clone());
                    return Err(lacking("arm", &arm.name, known.collect()));
                }
            }
        }
        Ok(())
    }

    /// What was measured of each arm and cell.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// The sample of an arm in a cell.
    pub(super) fn sample(&self, arm: &str, cell: &Cell) -> Option<&Sample> {
        let name = |sample: &Sample| self.experiment.arms.get(sample.arm).map(arm_name);
        let mut samples = self.samples.iter();
        samples.find(|sample| self.is_of(sample, cell) && name(sample) == Some(arm))
    }

    fn is_of(&self, sample: &Sample, cell: &Cell) -> bool {
        self.experiment.cells.get(sample.cell) == Some(cell)
    }
}

fn arm_name(arm: &Arm) -> &str {
    &arm.name
}

impl Moment {
    /// As RFC 3339 has it: `2026-11-22T09:58:07Z`.
    pub fn rfc3339(self) -> String {
        self.timestamp().to_string()
    }

    /// The end of the year 9999 for what is later.
    fn timestamp(self) -> Timestamp {
        let seconds = i64::try_from(self.0).ok();
        let timestamp = seconds.and_then(|seconds| Timestamp::from_second(seconds).ok());
        timestamp.unwrap_or(Timestamp::MAX)
    }
}

impl From<SystemTime> for Moment {
    /// Before 1970 there was nothing to save.
    fn from(time: SystemTime) -> Moment {
        Moment(
            time.duration_since(UNIX_EPOCH)
                .map_or(0, |since| since.as_secs()),
        )
    }
}

impl fmt::Display for Moment {
    /// To the minute: `2026-11-22 09:58 UTC`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.timestamp().strftime("%F %H:%M UTC"))
    }
}

#[cfg(test)]
mod tests;
