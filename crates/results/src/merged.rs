//! All rows in one Parquet file, and what is known of them.

use std::io::{self, Seek, Write};
use std::mem;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::vec;

use serde::{Deserialize, Serialize};

use super::part::SCHEMA;
use super::rows::{Batch, Origin, ParquetReader, ParquetWriter};
use super::{EngineReport, Environment, FolderError, Moment, Sample, Validity};
use lastbyte_study::{Connections, EngineName, Experiment, Study};

/// Which sample of a study. All indices count from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SampleKey {
    /// Index of the measure.
    pub measure: usize,
    /// Index of the cell among the measure's.
    pub cell: usize,
    /// Index of the arm among the measure's.
    pub arm: usize,
}

impl SampleKey {
    /// All samples of a study, in their order.
    pub(super) fn all(study: &Study) -> impl Iterator<Item = SampleKey> {
        let measures = study.measures.iter().enumerate();
        measures.flat_map(|(measure, of)| {
            let arms = of.experiment.arms.len();
            (0..of.experiment.cells.len())
                .flat_map(move |cell| (0..arms).map(move |arm| SampleKey { measure, cell, arm }))
        })
    }
}

/// Writes the samples of one experiment to a Parquet file, and the moment at which they are `saved`
/// to be compared with.
///
/// # Errors
///
/// When `out` can't be written, or a sample is not of the experiment.
pub fn write_rows(
    out: impl Write + Seek + Send,
    origin: Origin<'_>,
    experiment: &Experiment,
    samples: &[Sample],
    environment: &Environment,
    saved: Option<Moment>,
) -> io::Result<()> {
    let mut writer = ParquetWriter::new(out)?;
    writer.describe();
    // The file may be read elsewhere: what it names is looked for from where that is.
    let study = Study {
        folder: PathBuf::from("."),
        ..Study::single(origin.study, experiment.clone())
    };
    let mut header = MergedHeader {
        experiment: Some(study.to_toml()),
        saved,
        ..MergedHeader::new(origin.study, origin.engine)
    };
    header.add_environment(environment.clone());
    for sample in samples {
        writer.write(&Batch::new(origin, experiment, sample)?)?;
        let key = SampleKey {
            measure: 0,
            cell: sample.cell,
            arm: sample.arm,
        };
        header.add_sample(
            key,
            u32::try_from(sample.rows.len()).unwrap_or(u32::MAX),
            sample.chain_digest.clone(),
            sample.engine.clone(),
        );
    }
    writer.finish(&header)?;
    Ok(())
}

/// What a file of all rows says of them.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct MergedHeader {
    schema: String,
    study: String,
    pub(super) engine: EngineName,
    /// What was measured, as a study file, where there is none beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) experiment: Option<String>,
    /// When the rows were saved to be compared with, if they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) saved: Option<Moment>,
    /// In the order of their rows.
    samples: Vec<SampleHeader>,
    /// All that parts come from.
    pub(super) environments: Vec<Environment>,
}

/// What every version of a [`MergedHeader`] has.
#[derive(Deserialize)]
struct Version {
    schema: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct SampleHeader {
    #[serde(flatten)]
    key: SampleKey,
    connections: u32,
    chain_sha256: String,
    report: EngineReport,
}

impl MergedHeader {
    pub(super) fn new(study: &str, engine: EngineName) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            study: study.to_owned(),
            engine,
            experiment: None,
            saved: None,
            samples: Vec::new(),
            environments: Vec::new(),
        }
    }

    pub(super) fn add_environment(&mut self, environment: Environment) {
        if !self.environments.contains(&environment) {
            self.environments.push(environment);
        }
    }

    pub(super) fn add_sample(
        &mut self,
        key: SampleKey,
        connections: u32,
        chain_sha256: String,
        report: EngineReport,
    ) {
        self.samples.push(SampleHeader {
            key,
            connections,
            chain_sha256,
            report,
        });
    }
}

impl EngineReport {
    /// Of a sample, from those of its blocks; the worst of them tells how late it was.
    pub fn of_blocks(blocks: &[(u32, EngineReport)]) -> Option<EngineReport> {
        let (_, first) = blocks.first()?;
        let reports = || blocks.iter().map(|(_, report)| report);
        let mut disturbed = blocks
            .iter()
            .filter_map(|(block, report)| match &report.validity {
                Validity::Valid => None,
                Validity::Invalid(reason) => Some((block, reason)),
            });
        let calibrations = || reports().map(|report| report.cpu_costs);
        let validity = match (blocks.len(), disturbed.next(), disturbed.count()) {
            (_, None, _) if calibrations().any(|costs| costs != first.cpu_costs) => {
                Validity::Invalid(
                    "its blocks had different calibrations: measure all of it on one machine"
                        .to_owned(),
                )
            }
            (_, None, _) if reports().any(|report| report.computing != first.computing) => {
                Validity::Invalid(
                    "its blocks had different profiles of computing: measure all of it with one version"
                        .to_owned(),
                )
            }
            (_, None, _) => Validity::Valid,
            (1, Some((_, reason)), _) => Validity::Invalid(reason.clone()),
            (all, Some((block, reason)), others) => Validity::Invalid(format!(
                "{} of {all} blocks were disturbed, such as block {block}: {reason}",
                others + 1
            )),
        };
        let most = |of: fn(&EngineReport) -> Duration| reports().map(of).max().unwrap_or(of(first));
        Some(EngineReport {
            concurrency: reports().map(|report| report.concurrency).max()?,
            lowered: (reports()).fold(0, |sum, report| sum.saturating_add(report.lowered)),
            link_lateness_p99: most(|report| report.link_lateness_p99),
            endpoint_wait_p50: most(|report| report.endpoint_wait_p50),
            packets: (reports()).fold(0, |sum, report| sum.saturating_add(report.packets)),
            emulator_cpu: reports().map(|report| report.emulator_cpu).sum(),
            endpoint_cpu: reports().map(|report| report.endpoint_cpu).sum(),
            cpu_costs: first.cpu_costs,
            beside: first.beside.clone(),
            computing: first.computing,
            buffers: first.buffers,
            validity,
        })
    }
}

/// Gives the samples of a file of all rows, one by one.
pub(super) struct MergedSamples {
    path: PathBuf,
    reader: ParquetReader,
    about: MergedHeader,
    headers: vec::IntoIter<SampleHeader>,
}

impl MergedSamples {
    pub(super) fn open(path: &Path) -> Result<Self, FolderError> {
        Self::of(
            ParquetReader::open(path).map_err(FolderError::rows(path))?,
            path,
        )
    }

    /// Of a file that is open.
    pub(super) fn of(reader: ParquetReader, path: &Path) -> Result<Self, FolderError> {
        let unreadable = FolderError::rows(path);
        let Version { schema } = reader.about().map_err(&unreadable)?;
        if schema != SCHEMA {
            return Err(FolderError::Content {
                path: path.to_owned(),
                problem: format!("its schema is {schema:?}, not {SCHEMA:?}"),
            });
        }
        let mut about: MergedHeader = reader.about().map_err(&unreadable)?;
        Ok(Self {
            path: path.to_owned(),
            reader,
            headers: mem::take(&mut about.samples).into_iter(),
            about,
        })
    }

    /// What the file says of its rows, but for its samples.
    pub(super) fn about(&self) -> &MergedHeader {
        &self.about
    }

    fn read(&mut self, header: SampleHeader) -> Result<(SampleKey, Sample), FolderError> {
        let content = |problem| FolderError::Content {
            path: self.path.clone(),
            problem,
        };
        if header.connections > Connections::MOST {
            return Err(content(format!(
                "it tells of {} connections of one sample",
                header.connections
            )));
        }
        let connections = header.connections as usize;
        let rows = self.reader.take(connections);
        let rows = rows.map_err(FolderError::rows(&self.path))?;
        if rows.len() < connections {
            return Err(content("it holds fewer rows than it tells of".to_owned()));
        }
        let is_in_order = rows.is_sorted_by(|row, next| row.index < next.index);
        let last = rows.last().map_or(0, |row| row.index);
        if !is_in_order || last >= Connections::MOST {
            return Err(content(
                "it has connections twice, in no order, or with numbers that no study has"
                    .to_owned(),
            ));
        }
        let sample = Sample {
            arm: header.key.arm,
            cell: header.key.cell,
            rows,
            chain_digest: header.chain_sha256,
            engine: header.report,
        };
        Ok((header.key, sample))
    }
}

impl Iterator for MergedSamples {
    type Item = Result<(SampleKey, Sample), FolderError>;

    fn next(&mut self) -> Option<Self::Item> {
        let header = self.headers.next()?;
        let sample = self.read(header);
        if sample.is_err() {
            // What follows would be rows of other samples.
            self.headers = Vec::new().into_iter();
        }
        Some(sample)
    }
}

#[cfg(test)]
mod tests;
