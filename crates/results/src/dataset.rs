//! What a run has measured so far, or altogether.

use std::path::{Path, PathBuf};
use std::vec;

use super::folder::{parts_of, read_manifest, rows_path, study_path};
use super::merged::MergedSamples;
use super::part::study_sha256;
use super::{Action, EngineReport, FolderError, Manifest, Sample, SampleKey, Summary, read_part};
use lastbyte_study::{Measure, Study, StudyError};

/// The folder of a run, to read from.
#[derive(Debug)]
pub struct Dataset {
    /// What was to be measured.
    pub study: Study,
    /// And with what.
    pub manifest: Manifest,
    path: PathBuf,
}

/// How much of a run has been measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// All of it.
    Complete,
    /// Some of it: it was interrupted, or is a shard.
    SoFar,
}

impl Dataset {
    /// Opens a folder of `lastbyte run`, complete or not.
    ///
    /// # Errors
    ///
    /// When it can't be read, or holds no run.
    pub fn open(path: &Path) -> Result<Dataset, FolderError> {
        let manifest = read_manifest(path)?.ok_or_else(|| FolderError::NoRun(path.to_owned()))?;
        if let Some(problem) = manifest.foreign_schema() {
            let path = path.to_owned();
            return Err(FolderError::Content { path, problem });
        }
        let file = study_path(path);
        let study = Study::load(&file).map_err(|error| match error {
            StudyError::Unreadable { path, error } => FolderError::io(Action::Read, &path)(error),
            error @ StudyError::Wrong { .. } => FolderError::Content {
                path: file.clone(),
                problem: error.to_string(),
            },
        })?;
        // Whoever edits it would have rows under names of networks that they never crossed.
        if study_sha256(&study) != manifest.study_sha256 {
            return Err(FolderError::Content {
                path: file,
                problem: "it is another file than what was measured, as the manifest beside it tells: bring it back, and \
                          give what is to be drawn in another one with --study"
                    .to_owned(),
            });
        }
        Ok(Dataset {
            study: Study {
                // The file may have had its name from its old place.
                name: manifest.study.clone(),
                ..study
            },
            manifest,
            path: path.to_owned(),
        })
    }

    /// Whether the run has come to its end.
    pub fn progress(&self) -> Progress {
        if rows_path(&self.path).exists() {
            Progress::Complete
        } else {
            Progress::SoFar
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The samples in the order of the study. Of a run that has not come to its end, those with a
    /// finished block, as far as they go.
    ///
    /// # Errors
    ///
    /// When the rows can't be read.
    pub fn samples(&self) -> Result<Samples<'_>, FolderError> {
        let rows = rows_path(&self.path);
        let source = if rows.exists() {
            // What was made of parts can be made again.
            let mended = |error| match error {
                FolderError::Content { path, problem } => FolderError::Content {
                    path,
                    problem: format!("{problem}: delete it, and measure again with --resume"),
                },
                error => error,
            };
            Source::Merged(Box::new(MergedSamples::open(&rows).map_err(mended)?))
        } else {
            Source::Parts
        };
        Ok(Samples {
            dataset: self,
            left: SampleKey::all(&self.study).collect::<Vec<_>>().into_iter(),
            source,
        })
    }

    /// Summarises one measure after the other, with as many cells in memory as there are processors, and
    /// gives each to `tell`, with its index.
    ///
    /// # Errors
    ///
    /// When the rows can't be read, or `tell` has one.
    pub fn summarise<E: From<FolderError>>(
        &self,
        tell: impl FnMut(usize, &Measure, Summary) -> Result<(), E>,
    ) -> Result<(), E> {
        self.summarise_seeing(|_, _| (), tell)
    }

    /// As [`Dataset::summarise`]; each sample is shown to `see` before it is summarised.
    ///
    /// # Errors
    ///
    /// When the rows can't be read, or `tell` has one.
    pub fn summarise_seeing<E: From<FolderError>>(
        &self,
        mut see: impl FnMut(SampleKey, &Sample),
        mut tell: impl FnMut(usize, &Measure, Summary) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut samples = self.samples()?.peekable();
        for (index, measure) in self.study.measures.iter().enumerate() {
            let of_cell = |cell| {
                let mut found = Vec::new();
                // An error may be of any cell.
                while let Some(sample) = samples.next_if(|sample| match sample {
                    Ok((key, _)) => (key.measure, key.cell) == (index, cell),
                    Err(_) => true,
                }) {
                    let (key, sample) = sample?;
                    see(key, &sample);
                    found.push(sample);
                }
                Ok::<_, FolderError>(found)
            };
            let percentiles = &self.study.percentiles;
            tell(
                index,
                measure,
                Summary::by_cell(&measure.experiment, percentiles, of_cell)?,
            )?;
        }
        Ok(())
    }

    /// What there is of a sample in part files.
    fn sample_of_parts(&self, key: SampleKey) -> Result<Option<Sample>, FolderError> {
        let mut rows = Vec::new();
        let mut chain = None;
        let mut reports = Vec::new();
        for (block, path) in parts_of(&self.path, &self.study, &self.manifest, key) {
            if !path.exists() {
                continue;
            }
            let part = read_part(&path)?;
            rows.extend(part.rows);
            chain.get_or_insert(part.header.chain_sha256);
            reports.push((block, part.header.report));
        }
        let (Some(chain_digest), Some(engine)) = (chain, EngineReport::of_blocks(&reports)) else {
            return Ok(None);
        };
        Ok(Some(Sample {
            arm: key.arm,
            cell: key.cell,
            rows,
            chain_digest,
            engine,
        }))
    }
}

/// The samples of a [`Dataset`], one in memory at a time. One is an error when its rows can't be read.
pub struct Samples<'a> {
    dataset: &'a Dataset,
    /// Those of the study that have not come yet.
    left: vec::IntoIter<SampleKey>,
    source: Source,
}

enum Source {
    Merged(Box<MergedSamples>),
    Parts,
}

impl Iterator for Samples<'_> {
    type Item = Result<(SampleKey, Sample), FolderError>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.source {
            Source::Merged(samples) => {
                let sample = samples.next()?;
                // What else it has would be passed over, and nobody told.
                Some(sample.and_then(|sample| {
                    if self.left.any(|left| left == sample.0) {
                        Ok(sample)
                    } else {
                        Err(FolderError::Content {
                            path: rows_path(&self.dataset.path),
                            problem:
                                "it has samples twice, in no order, or that its study does not have"
                                    .to_owned(),
                        })
                    }
                }))
            }
            Source::Parts => self.left.find_map(|key| {
                let sample = self.dataset.sample_of_parts(key).transpose()?;
                Some(sample.map(|sample| (key, sample)))
            }),
        }
    }
}
