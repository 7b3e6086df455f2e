//! The folder of a run.
//!
//! ```text
//! study.toml       the study file as it was read
//! files/           the files that its population names, if it names any
//! manifest.json    what is measured, and with what
//! parts/           one file for each finished block, while the run is under way
//! rows.parquet     all rows, once every block is finished; the parts are gone then
//! 00-MEASURE.json  the summary of each measure, the same document as that of `compare`
//! search/          the rounds of each search, each a folder like this one
//! search-ID.json   what each search found
//! ```
//!
//! A file takes its name once it is complete and on the disk. Until then it is hidden, and nobody
//! reads it.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;

use lastbyte_link::visible;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use thiserror::Error;

use super::merged::{MergedHeader, SampleKey};
use super::part::{PartProblem, read_header, study_sha256};
use super::rows::{Batch, ParquetWriter, RequestWriter, Unreadable};
use super::{
    EngineReport, Environment, PAGES, PartError, PartHeader, Row, loads_path, read_loads, read_part,
};
use lastbyte_study::{BlockId, Connections, EngineName, NamedFile, Study};

const SCHEMA: &str = "lastbyte.run/1";
const STUDY: &str = "study.toml";
const MANIFEST: &str = "manifest.json";
const PARTS: &str = "parts";
const ROWS: &str = "rows.parquet";
const ANSWER: &str = "answer.json";
/// Of page loads.
const REQUESTS: &str = "requests.parquet";
const DRAFT: &str = ".draft";
const LOCK: &str = ".lock";
/// Parts that are in memory at once, while they are merged.
const READ_AHEAD: usize = 16;

const OTHER_CHAIN: &str = "server had another chain, which this study no longer has: name the folder of that one with \
                           --chains";

/// What a run measures, and with what: `manifest.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// `lastbyte.run/1`.
    pub schema: String,
    /// Name of the study.
    pub study: String,
    /// SHA-256 of the study file, in hex.
    pub study_sha256: String,
    /// What carries the bytes.
    pub engine: EngineName,
    /// Connections of a block.
    pub block_size: u32,
    /// Cells of all measures.
    pub cells: u64,
    /// Samples of all cells.
    pub samples: u64,
    /// Blocks of all samples, at most.
    pub blocks: u64,
    /// Connections of all blocks, at most.
    pub connections: u64,
    /// SHA-256 of the program that began it, in hex, if it is known. Two builds of one version draw other random numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program_sha256: Option<String>,
    /// SHA-256 of the environment as it was written, in hex: nothing else would tell that somebody, or a disk, has changed it. Manifests
    /// of earlier versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment_sha256: Option<String>,
    /// Where the run began.
    pub environment: Environment,
}

/// Whether a run begins or goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// There must be nothing in the folder yet.
    Afresh,
    /// Finished blocks are kept.
    Resume,
}

/// The folder of a run that is under way in this process, and in no other.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    manifest: Manifest,
    /// Held as long as this lives.
    _lock: File,
}

/// What is done with a file or folder of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Read it.
    Read,
    /// Make a folder.
    Make,
    /// Write it.
    Write,
    /// Copy it from another run.
    Copy,
    /// Remove it.
    Remove,
    /// Keep other processes out.
    Lock,
}

/// A folder can't be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// It can't be read or written.
    #[error("can't {action} {path:?}: {error}{}", rights(*action, error))]
    Io {
        /// What was tried.
        action: Action,
        /// The file or folder.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// A file in it is not what it should be.
    #[error("can't read {path:?}: {problem}")]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// It holds no run.
    #[error("{0:?} holds no run: name a folder of `lastbyte run`")]
    NoRun(PathBuf),
    /// It is a file.
    #[error("{0:?} is a file: name a folder with -o")]
    NoFolder(PathBuf),
    /// It holds something else.
    #[error("{0:?} is not empty and holds no run: name another folder with -o")]
    NotEmpty(PathBuf),
    /// It holds a run already.
    #[error("{0:?} holds a run already: go on with it by --resume, or name another folder with -o")]
    Exists(PathBuf),
    /// What it holds does not belong to this run.
    #[error("{path:?} is of another run: its {what}, or name another folder with -o")]
    OtherRun {
        /// The folder, or a part in it.
        path: PathBuf,
        /// What tells it from this one, with the hint.
        what: String,
    },
    /// Another process works in it.
    #[error("another run is under way in {0:?}: wait for it, or name another folder with -o")]
    Busy(PathBuf),
    /// A part is damaged.
    #[error(transparent)]
    Part(PartError),
}

impl From<PartError> for FolderError {
    /// Likewise, what the system refuses is no fault of the part's.
    fn from(error: PartError) -> FolderError {
        match error {
            PartError {
                path,
                problem: PartProblem::Unreadable(Unreadable::Io(error)),
            } if error.kind() != io::ErrorKind::NotFound => {
                FolderError::io(Action::Read, &path)(error)
            }
            error => FolderError::Part(error),
        }
    }
}

/// What to do about an error of the system that says nothing against the content of a file, where that is known.
fn rights(action: Action, error: &io::Error) -> &'static str {
    match (action, error.kind()) {
        (Action::Read, io::ErrorKind::PermissionDenied) => {
            ": have its owner let you read it (chmod u+r, or chown)"
        }
        _ => "",
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Action::Read => "read",
            Action::Make => "make",
            Action::Write => "write",
            Action::Copy => "copy",
            Action::Remove => "remove",
            Action::Lock => "lock",
        })
    }
}

impl FolderError {
    /// Of a file of rows. What the system refuses is no fault of the file's.
    pub(super) fn rows(path: &Path) -> impl Fn(Unreadable) -> FolderError {
        let path = path.to_owned();
        move |error| match error {
            Unreadable::Io(error) => FolderError::io(Action::Read, &path)(error),
            error @ (Unreadable::Damaged | Unreadable::Foreign(_)) => FolderError::Content {
                path: path.clone(),
                problem: error.to_string(),
            },
        }
    }

    /// Of the system, while it was to do that with a file or folder.
    pub fn io(action: Action, path: &Path) -> impl Fn(io::Error) -> FolderError {
        let path = path.to_owned();
        move |error| FolderError::Io {
            action,
            path: path.clone(),
            error,
        }
    }
}

/// SHA-256 of a value, however it is set.
fn digest(value: &Value) -> String {
    hex::encode(Sha256::digest(value.to_string()))
}

/// A text is no manifest that could be gone on with.
#[derive(Debug, Error)]
#[error("it is no manifest, or damaged ({0}): name another folder, or delete this one")]
pub struct ManifestError(#[from] Damage);

/// What is wrong with a manifest.
#[derive(Debug, Error)]
pub enum Damage {
    /// It is no JSON, or of something else.
    #[error("{}", visible(&.0.to_string()))]
    Json(serde_json::Error),
    /// Somebody has changed it.
    #[error("its environment is not as it was written, by its SHA-256")]
    Environment,
    /// No part has so many connections.
    #[error("its blocks have {0} connections")]
    BlockSize(u32),
}

impl Manifest {
    /// Of a run of `study` by the engine of `environment` in blocks of `block_size` connections.
    pub fn new(study: &Study, block_size: u32, environment: Environment) -> Manifest {
        let size = study.size(block_size);
        Manifest {
            schema: SCHEMA.to_owned(),
            study: study.name.clone(),
            study_sha256: study_sha256(study),
            engine: environment.engine,
            block_size,
            cells: size.cells,
            samples: size.samples,
            blocks: size.blocks,
            connections: size.connections,
            program_sha256: None,
            environment_sha256: None,
            environment,
        }
    }

    /// What is written of it, with the digest of its environment.
    fn text(&self) -> String {
        let environment = serde_json::to_value(&self.environment).ok();
        let whole = Manifest {
            environment_sha256: environment.as_ref().map(digest),
            ..self.clone()
        };
        // Serialising plain structures to memory cannot fail.
        serde_json::to_string_pretty(&whole).unwrap_or_default() + "\n"
    }

    /// Reads a `manifest.json`, which anybody may have written.
    ///
    /// # Errors
    ///
    /// What is wrong with it, with the hint.
    pub fn parse(text: &str) -> Result<Manifest, ManifestError> {
        let mut manifest: Manifest = serde_json::from_str(text).map_err(Damage::Json)?;
        // As it stands there: this version may know other fields.
        let whole: Value = serde_json::from_str(text).map_err(Damage::Json)?;
        let written = whole.get("environment").map(digest);
        if manifest.environment_sha256.is_some() && manifest.environment_sha256 != written {
            return Err(Damage::Environment.into());
        }
        if !(1..=Connections::MOST).contains(&manifest.block_size) {
            return Err(Damage::BlockSize(manifest.block_size).into());
        }
        manifest.environment.engine = manifest.engine;
        Ok(manifest)
    }

    /// The same with the digest of the program that measures.
    #[must_use]
    pub fn by_program(self, sha256: String) -> Manifest {
        Manifest {
            program_sha256: Some(sha256),
            ..self
        }
    }

    /// Why this version can't read the run, if it can't.
    pub(super) fn foreign_schema(&self) -> Option<String> {
        let schema = &self.schema;
        (schema != SCHEMA).then(|| {
            format!("its schema is {schema:?}, not {SCHEMA:?}: use the version of Lastbyte that measured it")
        })
    }

    /// The first of its counts that is not that of `study`, if there is one.
    pub(super) fn miscounted(&self, study: &Study) -> Option<String> {
        let size = study.size(self.block_size);
        let counts = [
            ("cells", self.cells, size.cells),
            ("samples", self.samples, size.samples),
            ("blocks", self.blocks, size.blocks),
            ("connections", self.connections, size.connections),
        ];
        let mut wrong = counts.into_iter().filter(|(_, told, has)| told != has);
        let (what, told, has) = wrong.next()?;
        Some(format!("{told} {what}, of which its study has {has}"))
    }

    /// What tells another run from this one, if anything does.
    pub(super) fn difference(&self, other: &Manifest) -> Option<String> {
        if other.schema != self.schema {
            let schema = &other.schema;
            return Some(format!(
                "schema is {schema:?}: use the version of Lastbyte that began it"
            ));
        }
        if let Some(what) = self.foreign(&other.study, &other.study_sha256, other.engine) {
            return Some(what);
        }
        (other.block_size != self.block_size).then(|| {
            let size = other.block_size;
            format!("blocks have {size} connections: use the version of Lastbyte that began it")
        })
    }

    /// What tells a study and an engine from those of this run, if anything does.
    fn foreign(&self, study: &str, study_sha256: &str, engine: EngineName) -> Option<String> {
        if study_sha256 != self.study_sha256 {
            return Some(format!("study {study:?} was another file: run that one"));
        }
        (engine != self.engine).then(|| format!("engine was {engine}: add --engine {engine}"))
    }
}

impl Folder {
    /// Takes a folder for a run, and makes it if need be. To [`Start::Resume`], there may be parts in
    /// it already, even without a manifest: those that other machines have measured.
    ///
    /// # Errors
    ///
    /// When it can't be written, or holds anything that does not belong to this run.
    pub fn take(
        path: &Path,
        study: &Study,
        manifest: Manifest,
        start: Start,
    ) -> Result<Folder, FolderError> {
        if path.is_file() {
            return Err(FolderError::NoFolder(path.to_owned()));
        }
        fs::create_dir_all(path).map_err(FolderError::io(Action::Make, path))?;
        let lock = lock(path)?;
        let known = read_manifest(path)?;
        match (&known, start) {
            (Some(_), Start::Afresh) => return Err(FolderError::Exists(path.to_owned())),
            (Some(known), Start::Resume) => {
                if let Some(what) = manifest.difference(known) {
                    let path = path.to_owned();
                    return Err(FolderError::OtherRun { path, what });
                }
            }
            (None, _) => {
                let foreign = |name: &str| match start {
                    _ if name == LOCK => false,
                    Start::Afresh => true,
                    Start::Resume => ![PARTS, STUDY, NamedFile::FOLDER].contains(&name),
                };
                if (entries(path)?.iter()).any(|name| foreign(name) && !is_draft(name)) {
                    return Err(FolderError::NotEmpty(path.to_owned()));
                }
            }
        }
        // A run that began with what takes no kernel is from now on one of this kernel.
        let is_first_kernel = |known: &Manifest| {
            let has_kernel = |of: &Manifest| of.environment.kernel != Environment::NO_KERNEL;
            has_kernel(&manifest) && !has_kernel(known)
        };
        let known = known.filter(|known| !is_first_kernel(known));
        let folder = Folder {
            path: path.to_owned(),
            manifest: known.clone().unwrap_or(manifest),
            _lock: lock,
        };
        folder.remove_drafts()?;
        if folder.is_complete() {
            // Whoever completed it may have had no time for that.
            folder.remove_parts(study)?;
            return Ok(folder);
        }
        let parts = path.join(PARTS);
        fs::create_dir_all(&parts).map_err(FolderError::io(Action::Make, &parts))?;
        if known.is_none() {
            folder.keep_files(study)?;
            folder.write(STUDY, study.text.as_bytes())?;
            folder.write(MANIFEST, folder.manifest.text().as_bytes())?;
        }
        Ok(folder)
    }

    /// Keeps the files that a study's population and its distributions name.
    fn keep_files(&self, study: &Study) -> Result<(), FolderError> {
        let files = study.named_files();
        let files = files.map_err(FolderError::io(Action::Read, &study.folder))?;
        if files.is_empty() {
            return Ok(());
        }
        let folder = self.path.join(NamedFile::FOLDER);
        fs::create_dir_all(&folder).map_err(FolderError::io(Action::Make, &folder))?;
        for file in files {
            let path = folder.join(&file.name);
            lastbyte_files::write(&path, &file.content)
                .map_err(FolderError::io(Action::Write, &path))?;
        }
        Ok(())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the run has come to its end.
    pub fn is_complete(&self) -> bool {
        self.path.join(ROWS).exists()
    }

    /// The blocks that are finished. A part that is damaged is reported to `damaged`, and counts as
    /// missing. `chain` has the digest of the certificates that a block would be measured with now.
    ///
    /// # Errors
    ///
    /// When a part belongs to another run, was measured with another chain, or the system does not let it be read.
    pub fn finished(
        &self,
        study: &Study,
        chain: impl Fn(BlockId) -> Option<String>,
        mut damaged: impl FnMut(PartError),
    ) -> Result<BTreeSet<BlockId>, FolderError> {
        let mut finished = BTreeSet::new();
        for id in study.blocks(self.manifest.block_size) {
            let path = self.part(study, id);
            if !path.exists() {
                continue;
            }
            match read_header(&path) {
                Ok(header) => {
                    let other = chain(id).filter(|chain| *chain != header.chain_sha256);
                    let other = other.map(|_| OTHER_CHAIN.to_owned());
                    if let Some(what) = self.difference(study, id, &header).or(other) {
                        return Err(FolderError::OtherRun { path, what });
                    }
                    finished.insert(id);
                }
                Err(error) => match FolderError::from(error) {
                    FolderError::Part(error) => damaged(error),
                    error => return Err(error),
                },
            }
        }
        Ok(finished)
    }

    /// Where a block's part is to be written. It is hidden, and so must be all that is put beside it.
    pub fn draft(&self, study: &Study, id: BlockId) -> PathBuf {
        draft(&self.part(study, id))
    }

    /// Gives the [draft](Folder::draft) of a block its name, once it is on the disk.
    ///
    /// # Errors
    ///
    /// When it is not what it should be, or can't be kept.
    pub fn keep(&self, study: &Study, id: BlockId) -> Result<(), FolderError> {
        let (draft, part) = (self.draft(study, id), self.part(study, id));
        let header = read_header(&draft)?;
        if let Some(what) = self.difference(study, id, &header) {
            return Err(FolderError::OtherRun { path: draft, what });
        }
        persist(&draft, &part)
    }

    /// Has the part of a block that is in another folder in this one too: the same file, where the file system can do
    /// that, else a copy.
    ///
    /// # Errors
    ///
    /// When it can't be read, or be kept here.
    pub(super) fn adopt(&self, study: &Study, id: BlockId, part: &Path) -> Result<(), FolderError> {
        adopt(part, &self.part(study, id))
    }

    /// The same of what browsers told of the block's loads, if the run in the folder `other` has that.
    ///
    /// # Errors
    ///
    /// As of [`adopt`](Folder::adopt).
    pub(super) fn adopt_loads(
        &self,
        study: &Study,
        id: BlockId,
        first: u32,
        other: &Path,
    ) -> Result<(), FolderError> {
        let theirs = loads_path(&other.join(PAGES), study, id, first);
        if !theirs.exists() {
            return Ok(());
        }
        let pages = self.path.join(PAGES);
        fs::create_dir_all(&pages).map_err(FolderError::io(Action::Make, &pages))?;
        adopt(&theirs, &self.loads(study, id, first))
    }

    /// The rows of the first `blocks` blocks of a cell, those of each arm by themselves.
    ///
    /// # Errors
    ///
    /// When a part is missing or damaged.
    pub fn rows(
        &self,
        study: &Study,
        measure: usize,
        cell: usize,
        blocks: u32,
    ) -> Result<Vec<Vec<Row>>, FolderError> {
        let experiment = study.measures.get(measure).map(|m| &m.experiment);
        let arms = 0..experiment.map_or(0, |experiment| experiment.arms.len());
        let rows_of = |arm| {
            let key = SampleKey { measure, cell, arm };
            let parts = parts_of(&self.path, study, &self.manifest, key);
            let mut rows = Vec::new();
            for (_, path) in parts.take(blocks as usize) {
                rows.extend(read_part(&path)?.rows);
            }
            Ok(rows)
        };
        arms.map(rows_of).collect()
    }

    /// Makes one file of all parts, which must be there, and removes them. A cell may have ended at the
    /// end of any stage.
    ///
    /// # Errors
    ///
    /// When a part is missing or damaged, or the file can't be written.
    pub fn merge(&self, study: &Study) -> Result<(), FolderError> {
        let rows = self.path.join(ROWS);
        let draft = draft(&rows);
        let failed = FolderError::io(Action::Write, &rows);
        let file = File::create(&draft).map_err(&failed)?;
        let mut writer = ParquetWriter::new(file).map_err(&failed)?;
        writer.describe();
        let mut requests = (study.has_pages())
            .then(|| Requests::new(self.path.join(REQUESTS)))
            .transpose()?;
        let mut header = MergedHeader::new(&study.name, self.manifest.engine);
        thread::scope(|scope| -> Result<(), FolderError> {
            let (sender, parts) = mpsc::sync_channel(READ_AHEAD);
            // Half of the work is to read them.
            scope.spawn(move || {
                for key in SampleKey::all(study) {
                    let blocks = self.blocks(study, key.measure, key.cell);
                    let parts = parts_of(&self.path, study, &self.manifest, key).take(blocks);
                    let read =
                        parts.map(|(block, path)| read_part(&path).map(|part| (block, part)));
                    for part in read {
                        if sender.send((key, part)).is_err() {
                            return;
                        }
                    }
                }
            });
            let mut parts = parts.into_iter().peekable();
            while let Some((key, _)) = parts.peek() {
                let key = *key;
                let mut chain = None;
                let mut reports = Vec::new();
                let mut connections = 0;
                while let Some((_, part)) = parts.next_if(|(of, _)| *of == key) {
                    let (block, part) = part?;
                    connections += part.header.connections;
                    let sample = part.header.sample(part.rows);
                    let batch = part.header.batch(study, &sample).map_err(&failed)?;
                    writer.write(&batch).map_err(&failed)?;
                    if let Some(requests) = &mut requests {
                        let id = part.header.id;
                        let path = self.loads(study, id, part.header.first);
                        requests.write(&batch, &path)?;
                    }
                    header.add_environment(part.header.environment);
                    chain.get_or_insert(part.header.chain_sha256);
                    reports.push((block, part.header.report));
                }
                if let (Some(chain), Some(report)) = (chain, EngineReport::of_blocks(&reports)) {
                    header.add_sample(key, connections, chain, report);
                }
            }
            Ok(())
        })?;
        // First, as a run with rows has come to its end.
        if let Some(requests) = requests {
            requests.finish(&study.name)?;
        }
        writer.finish(&header).map_err(&failed)?;
        persist(&draft, &rows)?;
        self.remove_parts(study)
    }

    /// Where what browsers told of a block's loads is.
    fn loads(&self, study: &Study, id: BlockId, first: u32) -> PathBuf {
        loads_path(&self.path.join(PAGES), study, id, first)
    }

    /// Blocks that each sample of a cell must have: all of a stage that has begun.
    fn blocks(&self, study: &Study, measure: usize, cell: usize) -> usize {
        let Some(experiment) = study.measures.get(measure).map(|m| &m.experiment) else {
            return 0;
        };
        let begun = |arm| {
            let key = SampleKey { measure, cell, arm };
            let parts = parts_of(&self.path, study, &self.manifest, key);
            let there = parts.filter(|(_, path)| path.exists());
            there.map(|(block, _)| block + 1).last().unwrap_or(0)
        };
        let begun = (0..experiment.arms.len()).map(begun).max().unwrap_or(0);
        let ends = (experiment.cells.get(cell))
            .map(|cell| experiment.stages(cell, self.manifest.block_size))
            .unwrap_or_default();
        let end = ends.iter().find(|end| **end >= begun).or(ends.last());
        end.map_or(0, |end| *end as usize)
    }

    /// Keeps the document of a measure, by its index.
    ///
    /// # Errors
    ///
    /// When it can't be written.
    pub fn keep_document(
        &self,
        study: &Study,
        measure: usize,
        document: &str,
    ) -> Result<(), FolderError> {
        let name = format!("{}.json", measure_name(study, measure));
        self.write(&name, document.as_bytes())
    }

    /// Keeps the document of the study's answer.
    ///
    /// # Errors
    ///
    /// When it can't be written.
    pub fn keep_answer(&self, document: &str) -> Result<(), FolderError> {
        self.write(ANSWER, document.as_bytes())
    }

    /// Keeps the document of a search.
    ///
    /// # Errors
    ///
    /// When it can't be written.
    pub fn keep_search(&self, id: &str, document: &str) -> Result<(), FolderError> {
        self.write(
            &format!("search-{}.json", file_name(id)),
            document.as_bytes(),
        )
    }

    fn write(&self, name: &str, content: &[u8]) -> Result<(), FolderError> {
        let path = self.path.join(name);
        let draft = draft(&path);
        fs::write(&draft, content).map_err(FolderError::io(Action::Write, &path))?;
        persist(&draft, &path)
    }

    /// What tells a part from the one that the run would have measured, if anything does.
    pub(super) fn difference(
        &self,
        study: &Study,
        id: BlockId,
        header: &PartHeader,
    ) -> Option<String> {
        let foreign = (self.manifest).foreign(&header.study, &header.study_sha256, header.engine);
        if foreign.is_some() {
            return foreign;
        }
        let connections = study.block(id, self.manifest.block_size);
        let place = (id, connections.start, connections.len() as u32);
        let measure = study.measures.get(id.measure);
        let names = measure.and_then(|measure| {
            let arm = measure.experiment.arms.get(id.arm)?;
            Some((&measure.id, &arm.name, measure.experiment.seed.0))
        });
        let is_told = (header.id, header.first, header.connections) == place
            && Some((&header.measure, &header.arm, header.seed)) == names;
        (!is_told).then(|| "block is another one than its name says: delete it".to_owned())
    }

    fn part(&self, study: &Study, id: BlockId) -> PathBuf {
        part_of(&self.path, study, id)
    }

    /// Blocks that cells still need: all of the stages that have begun.
    pub(super) fn missing(&self, study: &Study) -> Vec<BlockId> {
        let mut missing = Vec::new();
        for SampleKey { measure, cell, arm } in SampleKey::all(study) {
            let blocks = self.blocks(study, measure, cell) as u32;
            let of_sample = (0..blocks).map(|block| BlockId {
                measure,
                cell,
                block,
                arm,
            });
            missing.extend(of_sample.filter(|id| !self.part(study, *id).exists()));
        }
        missing
    }

    /// Removes what an earlier run had no time to finish.
    fn remove_drafts(&self) -> Result<(), FolderError> {
        for name in entries(&self.path)? {
            if is_draft(&name) {
                remove(&self.path.join(name))?;
            }
        }
        let parts = self.path.join(PARTS);
        if !parts.exists() {
            return Ok(());
        }
        // Besides drafts, what an engine keeps beside them while it measures.
        for name in entries(&parts)? {
            let path = parts.join(&name);
            if name.starts_with('.') && path.is_dir() {
                fs::remove_dir_all(&path).map_err(FolderError::io(Action::Remove, &path))?;
            } else if name.starts_with('.') {
                remove(&path)?;
            }
        }
        Ok(())
    }

    fn remove_parts(&self, study: &Study) -> Result<(), FolderError> {
        for id in study.blocks(self.manifest.block_size) {
            remove(&self.part(study, id))?;
        }
        // Not when there is anything else in it: that is somebody's.
        let _ = fs::remove_dir(self.path.join(PARTS));
        Ok(())
    }
}

/// Has a file of another folder in this one: the same, where the file system can do that, else a copy.
fn adopt(theirs: &Path, own: &Path) -> Result<(), FolderError> {
    if fs::hard_link(theirs, own).is_ok() {
        return Ok(());
    }
    let draft = draft(own);
    fs::copy(theirs, &draft).map_err(|error| {
        let copied = FolderError::io(Action::Copy, theirs)(error);
        // What was begun would take up the last room of a full disk.
        let _ = fs::remove_file(&draft);
        copied
    })?;
    persist(&draft, own)
}

/// The table of all requests, until it is complete.
struct Requests {
    path: PathBuf,
    writer: RequestWriter<File>,
}

impl Requests {
    fn new(path: PathBuf) -> Result<Requests, FolderError> {
        let file = File::create(draft(&path));
        let writer = file.and_then(RequestWriter::new);
        let writer = writer.map_err(FolderError::io(Action::Write, &path))?;
        Ok(Requests { path, writer })
    }

    /// Those of the loads in a file that are rows of a batch; none if it is not there, as of a run that was begun by an earlier version.
    fn write(&mut self, batch: &Batch<'_>, loads: &Path) -> Result<(), FolderError> {
        let loads = read_loads(loads)?.unwrap_or_default();
        let written = self.writer.write(batch, &loads);
        written.map_err(FolderError::io(Action::Write, &self.path))
    }

    fn finish(self, study: &str) -> Result<(), FolderError> {
        let written = self.writer.finish(study);
        written.map_err(FolderError::io(Action::Write, &self.path))?;
        persist(&draft(&self.path), &self.path)
    }
}

/// A name for files and folders that is much like `text`.
pub fn file_name(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let name: String = text
        .chars()
        .map(|c| if plain(c) { c } else { '-' })
        .collect();
    let name = name.trim_matches(['-', '.']);
    if name.is_empty() { "run" } else { name }.to_owned()
}

/// The manifest of the run in `folder`, if there is one.
pub(super) fn read_manifest(folder: &Path) -> Result<Option<Manifest>, FolderError> {
    /// Far more than any command line.
    const MOST: u64 = 16 << 20;
    let path = folder.join(MANIFEST);
    let text = match lastbyte_files::read_text(&path, MOST) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        text => text.map_err(FolderError::io(Action::Read, &path))?,
    };
    let manifest = Manifest::parse(&text);
    let manifest = manifest.map_err(|error| FolderError::Content {
        path,
        problem: error.to_string(),
    })?;
    Ok(Some(manifest))
}

/// The study file of the run in `folder`.
pub(super) fn study_path(folder: &Path) -> PathBuf {
    folder.join(STUDY)
}

/// All rows of the run in `folder`, once it is complete.
pub(super) fn rows_path(folder: &Path) -> PathBuf {
    folder.join(ROWS)
}

/// The blocks of a sample, with the files of their parts.
pub(super) fn parts_of(
    folder: &Path,
    study: &Study,
    manifest: &Manifest,
    key: SampleKey,
) -> impl Iterator<Item = (u32, PathBuf)> {
    let SampleKey { measure, cell, arm } = key;
    (0..)
        .map(move |block| BlockId {
            measure,
            cell,
            block,
            arm,
        })
        .take_while(|id| !study.block(*id, manifest.block_size).is_empty())
        .map(|id| (id.block, part_of(folder, study, id)))
}

/// The names of all finished parts in the folder of a run.
pub(super) fn part_names(folder: &Path) -> Result<Vec<String>, FolderError> {
    let parts = folder.join(PARTS);
    let mut names = if parts.exists() {
        entries(&parts)?
    } else {
        Vec::new()
    };
    names.retain(|name| !name.starts_with('.'));
    Ok(names)
}

/// Where a block's part is in the folder of a run.
pub(super) fn part_of(folder: &Path, study: &Study, id: BlockId) -> PathBuf {
    folder.join(PARTS).join(part_name(study, id))
}

pub(super) fn part_name(study: &Study, id: BlockId) -> String {
    let BlockId {
        measure,
        cell,
        block,
        arm,
    } = id;
    let name = measure_name(study, measure);
    format!("{name}-{cell:04}-{arm:02}-{block:05}.parquet")
}

/// How the files of a measure begin: with its number, since names may be alike without the characters
/// that files don't have.
fn measure_name(study: &Study, index: usize) -> String {
    let measure = study.measures.get(index);
    let name = file_name(measure.map_or("", |measure| &measure.id));
    format!("{index:02}-{name}")
}

/// Where a file is until it is complete.
fn draft(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}{DRAFT}"))
}

fn is_draft(name: &str) -> bool {
    name.starts_with('.') && name.ends_with(DRAFT)
}

/// Gives a file its name, once it is on the disk.
fn persist(draft: &Path, path: &Path) -> Result<(), FolderError> {
    lastbyte_files::keep(draft, path).map_err(FolderError::io(Action::Write, path))
}

fn remove(path: &Path) -> Result<(), FolderError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(FolderError::io(Action::Remove, path)(error))
        }
        _ => Ok(()),
    }
}

/// Keeps other runs out of a folder for as long as the file is open.
fn lock(folder: &Path) -> Result<File, FolderError> {
    let file = File::open(folder).map_err(FolderError::io(Action::Read, folder))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(FolderError::Busy(folder.to_owned())),
        // NFS can lock only what is open to be written, as folders never are.
        Err(TryLockError::Error(_)) => lock_by_file(folder),
    }
}

/// The same with a file that stays in the folder.
fn lock_by_file(folder: &Path) -> Result<File, FolderError> {
    let path = folder.join(LOCK);
    let file = File::options().create(true).append(true).open(&path);
    let file = file.map_err(FolderError::io(Action::Write, &path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(FolderError::Busy(folder.to_owned())),
        Err(TryLockError::Error(error)) => Err(FolderError::io(Action::Lock, &path)(error)),
    }
}

fn entries(folder: &Path) -> Result<Vec<String>, FolderError> {
    let names = fs::read_dir(folder).and_then(|entries| {
        entries
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect()
    });
    names.map_err(FolderError::io(Action::Read, folder))
}

#[cfg(test)]
mod tests;
