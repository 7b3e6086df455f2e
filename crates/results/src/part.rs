//! Part files: the rows of one block, and all that is known of it.

use std::io::{self, Cursor, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::rows::{Batch, Origin, ParquetReader, ParquetWriter, Unreadable};
use super::{EngineReport, Environment, Row, Sample};
use lastbyte_study::{BlockId, Connections, EngineName, Study};

/// The version of rows and of what is said about them.
pub(super) const SCHEMA: &str = "lastbyte.rows/1";

/// What a part file says of its rows, in JSON in the metadata of the Parquet file, under the key
/// `lastbyte`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PartHeader {
    /// `lastbyte.rows/1`.
    pub schema: String,
    /// Name of the study.
    pub study: String,
    /// SHA-256 of the study file, in hex.
    pub study_sha256: String,
    /// Name of the measure.
    pub measure: String,
    /// Which block it is.
    pub id: BlockId,
    /// Index of its first connection.
    pub first: u32,
    /// How many connections it has.
    pub connections: u32,
    /// Name of the arm.
    pub arm: String,
    /// The cell, in words.
    pub cell: String,
    /// SHA-256 of the certificates as sent, in hex.
    pub chain_sha256: String,
    /// Where all randomness comes from.
    pub seed: u64,
    /// What carried the bytes.
    pub engine: EngineName,
    /// How the engine fared.
    pub report: EngineReport,
    /// Where the rows come from.
    pub environment: Environment,
}

/// The rows of one block.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// What is known of them.
    pub header: PartHeader,
    /// The rows, by index.
    pub rows: Vec<Row>,
}

/// A part file can't be used.
#[derive(Debug, thiserror::Error)]
#[error("can't use {path:?}: {problem}: {}", problem.remedy())]
pub struct PartError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub problem: PartProblem,
}

/// What is wrong with a part file.
#[derive(Debug, thiserror::Error)]
pub enum PartProblem {
    /// Its rows can't be had.
    #[error(transparent)]
    Unreadable(Unreadable),
    /// Its schema is another one.
    #[error("its schema is {0:?}, not {SCHEMA:?}")]
    Schema(String),
    /// It does not hold the rows that its header tells of.
    #[error("it does not hold the rows that it tells of")]
    Rows,
}

impl PartProblem {
    /// What to do about it. Nothing is said against the content of a file that can't be read.
    fn remedy(&self) -> &'static str {
        match self {
            PartProblem::Unreadable(Unreadable::Io(_)) => "run again with --resume once it can be",
            PartProblem::Unreadable(Unreadable::Damaged | Unreadable::Foreign(_))
            | PartProblem::Schema(_)
            | PartProblem::Rows => "delete it and run again with --resume",
        }
    }
}

impl PartHeader {
    /// Of a block with these connections; `None` if `study` has no such block. The engine is that of
    /// the `environment`.
    pub fn new(
        study: &Study,
        id: BlockId,
        connections: Range<u32>,
        chain_sha256: String,
        report: EngineReport,
        environment: Environment,
    ) -> Option<PartHeader> {
        let measure = study.measures.get(id.measure)?;
        let experiment = &measure.experiment;
        Some(PartHeader {
            schema: SCHEMA.to_owned(),
            study: study.name.clone(),
            study_sha256: study_sha256(study),
            measure: measure.id.clone(),
            id,
            first: connections.start,
            connections: connections.end - connections.start,
            arm: experiment.arms.get(id.arm)?.name.clone(),
            cell: experiment.cells.get(id.cell)?.to_string(),
            chain_sha256,
            seed: experiment.seed.0,
            engine: environment.engine,
            report,
            environment,
        })
    }
}

/// Writes a part of `study`. It is one `write` to `out`, of a whole file.
///
/// # Errors
///
/// When `out` can't be written, or `study` has no such block.
pub fn write_part(
    mut out: impl Write,
    header: &PartHeader,
    study: &Study,
    rows: &[Row],
) -> io::Result<()> {
    out.write_all(&part_of(header, study, header.id, rows)?)
}

/// The bytes of a part whose block is another one, `within`, in `study`: a study may be large, and
/// one with a single block has what a part says of it.
///
/// # Errors
///
/// When `study` has no such block.
pub fn part_of(
    header: &PartHeader,
    study: &Study,
    within: BlockId,
    rows: &[Row],
) -> io::Result<Vec<u8>> {
    let there = PartHeader {
        id: within,
        ..header.clone()
    };
    let sample = there.sample(rows.to_vec());
    let mut writer = ParquetWriter::of_part(Cursor::new(Vec::new()), rows.len())?;
    writer.write(&there.batch(study, &sample)?)?;
    Ok(writer.finish(header)?.into_inner())
}

/// Reads a part file.
///
/// # Errors
///
/// When it can't be read, or is not what [`write_part`] wrote.
pub fn read_part(path: &Path) -> Result<Part, PartError> {
    let read = || rows_of(ParquetReader::read(path).map_err(PartProblem::Unreadable)?);
    read().map_err(in_file(path))
}

fn in_file(path: &Path) -> impl Fn(PartProblem) -> PartError {
    move |problem| PartError {
        path: path.to_owned(),
        problem,
    }
}

/// Reads the bytes of a part file.
///
/// # Errors
///
/// As [`read_part`].
#[cfg(feature = "fixtures")]
pub fn parse_part(bytes: Vec<u8>) -> Result<Part, PartProblem> {
    rows_of(ParquetReader::of_bytes(bytes).map_err(PartProblem::Unreadable)?)
}

fn rows_of(mut reader: ParquetReader) -> Result<Part, PartProblem> {
    let header = header_of(&reader)?;
    let connections = header.connections as usize;
    let rows = reader.take(connections).map_err(PartProblem::Unreadable)?;
    let indices = rows.iter().map(|row| u64::from(row.index));
    let told = u64::from(header.first)..u64::from(header.first) + u64::from(header.connections);
    if !indices.eq(told) || rows.iter().any(|row| row.block != header.id.block) {
        return Err(PartProblem::Rows);
    }
    Ok(Part { header, rows })
}

/// Reads what a part file says of its rows, and makes sure that it is whole.
pub(super) fn read_header(path: &Path) -> Result<PartHeader, PartError> {
    let read = || header_of(&ParquetReader::read(path).map_err(PartProblem::Unreadable)?);
    read().map_err(in_file(path))
}

fn header_of(reader: &ParquetReader) -> Result<PartHeader, PartProblem> {
    let mut header: PartHeader = reader.about().map_err(PartProblem::Unreadable)?;
    if header.schema != SCHEMA {
        return Err(PartProblem::Schema(header.schema));
    }
    // Before any of them is read.
    if reader.count() != u64::from(header.connections) || header.connections > Connections::MOST {
        return Err(PartProblem::Rows);
    }
    header.environment.engine = header.engine;
    Ok(header)
}

impl PartHeader {
    /// The block as a sample of its own.
    pub(super) fn sample(&self, rows: Vec<Row>) -> Sample {
        Sample {
            arm: self.id.arm,
            cell: self.id.cell,
            rows,
            chain_digest: self.chain_sha256.clone(),
            engine: self.report.clone(),
        }
    }

    /// The rows of the block, which are `sample`.
    pub(super) fn batch<'a>(
        &'a self,
        study: &'a Study,
        sample: &'a Sample,
    ) -> io::Result<Batch<'a>> {
        let origin = Origin {
            study: &study.name,
            measure: &self.measure,
            engine: self.engine,
        };
        let measure = study
            .measures
            .get(self.id.measure)
            .ok_or_else(|| io::Error::other("a part is of no measure of the study"))?;
        Batch::new(origin, &measure.experiment, sample)
    }
}

/// SHA-256 of a study file, and of the files that its population was read from, in hex.
pub(super) fn study_sha256(study: &Study) -> String {
    let mut digest = Sha256::new_with_prefix(study.text.as_bytes());
    let mut cells = study
        .measures
        .iter()
        .flat_map(|measure| &measure.experiment.cells);
    let population = cells.find_map(|cell| cell.population.as_ref());
    if let Some(files) = population.and_then(|population| population.digest.as_ref()) {
        digest.update(files.as_bytes());
    }
    hex::encode(digest.finalize())
}

#[cfg(test)]
mod tests;
