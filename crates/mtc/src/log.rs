//! An issuance log in a folder, as c2sp.org/mtc-tlog has it: a checkpoint, tiles, bundles of
//! entries and landmarks, which any web server can serve.
//!
//! A batch of entries is acknowledged once it is on the disk: first its tiles and bundles, in files
//! that no earlier size of the log is read from, then `.tree`, which tells the size that holds.
//! Whatever is cut off between leaves the log as it was, or with the whole batch. Signatures come
//! after that, so that nothing is ever signed of a log that could turn out another one.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::ops::{Deref, Range};
use std::path::{Path, PathBuf};

use crate::entry::{self, MAX_ENTRY_BYTES};
use crate::hash::HashValue;
use crate::id::{LogId, decimal};
use crate::issue::IssueError;
use crate::landmark::{Landmark, LandmarkError, Landmarks};
use crate::note::{self, Checkpoint, NoteSigner};
use crate::subtree::{Nodes, Subtree};
use crate::time::UnixTime;

/// Hashes of a full tile, and entries of a full bundle.
const TILE: usize = 256;
/// Levels of the tree in a tile.
const TILE_LEVELS: u32 = 8;
const STATE: &str = ".tree";
const LOCK: &str = ".lock";
const CHECKPOINT: &str = "checkpoint";
const LANDMARKS: &str = "landmarks";

/// Why a log can't be opened, read or added to.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// A file can't be read.
    #[error("can't read \"{}\": {error}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Something can't be written. Nothing of the batch is acknowledged, and the log is as it was.
    #[error("can't write the log in \"{}\": {error}; nothing of this batch counts", path.display())]
    Write {
        /// In which folder.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Another process has it.
    #[error("the log in \"{}\" is in use by another process", .0.display())]
    InUse(PathBuf),
    /// A file is not what the log wrote.
    #[error("\"{}\" is damaged: {problem}", path.display())]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        problem: &'static str,
    },
    /// An entry is too long.
    #[error("an entry has at most {MAX_ENTRY_BYTES} bytes, not {0}")]
    Long(usize),
    /// There is no such entry or node.
    #[error("the log of {size} entries has no entry {index}")]
    NoEntry {
        /// Which entry.
        index: u64,
        /// The log's entries.
        size: u64,
    },
    /// A log has at most 2^48-1 entries.
    #[error("the log is full: start the next one")]
    Full,
    /// There can be no such landmark.
    #[error("{0}")]
    Landmark(#[from] LandmarkError),
    /// A cosigner does not sign.
    #[error("{0}")]
    Sign(#[from] crate::cosign::SignError),
}

impl From<LogError> for IssueError {
    fn from(error: LogError) -> IssueError {
        IssueError::Log(error.to_string())
    }
}

/// How files get on the disk. Tests have disks that are full, or lose power.
trait Disk {
    /// Writes files that nobody reads yet, and has them and their names on the disk.
    fn put(&mut self, folder: &Path, files: &[(PathBuf, Vec<u8>)]) -> io::Result<()>;

    /// Replaces a file, at once or not at all.
    fn replace(&mut self, path: &Path, content: &[u8]) -> io::Result<()>;
}

/// The disk that there is.
#[derive(Debug)]
struct RealDisk;

impl Disk for RealDisk {
    fn put(&mut self, folder: &Path, files: &[(PathBuf, Vec<u8>)]) -> io::Result<()> {
        let mut folders = BTreeSet::new();
        // As many as may be open at once. All are written before the first is waited for, so that
        // the disk can take them together.
        for files in files.chunks(TILE) {
            let mut open = Vec::with_capacity(files.len());
            for (path, content) in files {
                if let Some(parent) = path.parent() {
                    fs::create_dir_all(parent)?;
                    folders.extend(
                        path.ancestors()
                            .skip(1)
                            .take_while(|path| path.starts_with(folder)),
                    );
                }
                let mut file = File::create(path)?;
                file.write_all(content)?;
                open.push(file);
            }
            open.iter().try_for_each(File::sync_all)?;
        }
        folders.into_iter().try_for_each(sync_folder)
    }

    fn replace(&mut self, path: &Path, content: &[u8]) -> io::Result<()> {
        lastbyte_files::write(path, content)
    }
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    match File::open(folder)?.sync_all() {
        // Not every file system can.
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::InvalidInput | ErrorKind::Unsupported
            ) =>
        {
            Ok(())
        }
        synced => synced,
    }
}

/// The right edge of the tree: what is in no full tile yet.
#[derive(Clone, Debug, Default)]
struct Edge {
    size: u64,
    /// From the leaves up, each shorter than a full tile.
    tiles: Vec<Vec<HashValue>>,
    /// The entries that are in no full bundle.
    bundle: Vec<u8>,
}

/// A log in a folder, to add to: for one process at a time.
#[derive(Debug)]
pub struct Log {
    reader: LogReader,
    /// Held as long as the log is open.
    _lock: File,
}

/// A log in a folder, as it was when it was opened, for anyone who may read it: whoever adds to it
/// meanwhile is in nobody's way.
#[derive(Debug)]
pub struct LogReader {
    id: LogId,
    folder: PathBuf,
    edge: Edge,
    checkpoint: Option<Checkpoint>,
    landmarks: Landmarks,
}

impl Log {
    /// Opens the log in a folder, or begins one.
    ///
    /// # Errors
    ///
    /// If another process has it, it can't be read or written, or its files are not what it wrote.
    pub fn open(id: LogId, folder: &Path) -> Result<Log, LogError> {
        let failed = |error| LogError::Write {
            path: folder.to_owned(),
            error,
        };
        fs::create_dir_all(folder).map_err(failed)?;
        if let Some(above) = folder.parent().filter(|above| above.exists()) {
            sync_folder(above).map_err(failed)?;
        }
        let lock = File::create(folder.join(LOCK)).map_err(failed)?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => LogError::InUse(folder.to_owned()),
            TryLockError::Error(error) => failed(error),
        })?;
        Ok(Log {
            reader: LogReader::open(id, folder)?,
            _lock: lock,
        })
    }

    /// Adds entries, and tells where. They are on the disk then.
    ///
    /// # Errors
    ///
    /// If an entry is too long or the disk does not take them. The log is as it was then.
    pub fn append<E: AsRef<[u8]>>(&mut self, entries: &[E]) -> Result<Range<u64>, LogError> {
        self.append_to(&mut RealDisk, entries)
    }

    fn append_to<E: AsRef<[u8]>>(
        &mut self,
        disk: &mut dyn Disk,
        entries: &[E],
    ) -> Result<Range<u64>, LogError> {
        let before = self.edge.size;
        let after = before + entries.len() as u64;
        if after >> 48 != 0 {
            return Err(LogError::Full);
        }
        let mut edge = self.edge.clone();
        let mut files = Vec::new();
        for entry in entries {
            edge.push(entry.as_ref(), &mut files)?;
        }
        edge.partial(before, &mut files);
        for (path, _) in &mut files {
            *path = self.folder.join(&*path);
        }
        let failed = |error| LogError::Write {
            path: self.folder.clone(),
            error,
        };
        disk.put(&self.folder, &files).map_err(failed)?;
        let root = edge.root();
        let state = format!("{}\n{after}\n{root}\n", self.id.id());
        (disk.replace(&self.folder.join(STATE), state.as_bytes())).map_err(failed)?;
        self.reader.edge = edge;
        for (path, _) in &files {
            // The narrower ones of a tile that is full now. Whether they go is of no consequence.
            let _ = fs::remove_dir_all(path.with_extension("p"));
        }
        Ok(before..after)
    }

    /// Signs the log as it is now and publishes that, the CA first.
    ///
    /// # Errors
    ///
    /// If one does not sign, or the disk does not take it.
    pub fn publish(
        &mut self,
        time: UnixTime,
        signers: &[NoteSigner<'_>],
    ) -> Result<String, LogError> {
        let note = note::sign(&self.id, self.size(), self.root()?, time, signers)?;
        self.replace(CHECKPOINT, note.as_bytes())?;
        self.reader.checkpoint = self.parse_checkpoint(Some(&note))?;
        Ok(note)
    }

    /// Makes the published size a landmark, publishes that, and forgets those before that are of no
    /// use any more. No certificate among the entries may hold after `expiry`.
    ///
    /// # Errors
    ///
    /// If nothing was published since the last landmark, or the disk does not take it.
    pub fn make_landmark(&mut self, expiry: UnixTime, now: UnixTime) -> Result<Landmark, LogError> {
        let published = self.checkpoint().map_or(0, |checkpoint| checkpoint.size);
        let mut landmarks = self.landmarks.clone();
        let landmark = landmarks.push(published, expiry)?;
        landmarks.forget_before(now);
        self.replace(LANDMARKS, landmarks.to_string().as_bytes())?;
        self.reader.landmarks = landmarks;
        Ok(landmark)
    }

    fn replace(&self, name: &str, content: &[u8]) -> Result<(), LogError> {
        let written = RealDisk.replace(&self.folder.join(name), content);
        written.map_err(|error| LogError::Write {
            path: self.folder.clone(),
            error,
        })
    }
}

impl Deref for Log {
    type Target = LogReader;

    fn deref(&self) -> &LogReader {
        &self.reader
    }
}

impl LogReader {
    /// Opens the log in a folder, to read it. Nothing is written there, not even a lock.
    ///
    /// # Errors
    ///
    /// If it can't be read, or its files are not what it wrote.
    pub fn open(id: LogId, folder: &Path) -> Result<LogReader, LogError> {
        loop {
            // A landmark's size was published, and a published size is in `.tree`: in this order,
            // what has grown between two of them goes together.
            let landmarks = read_text(&folder.join(LANDMARKS))?;
            let checkpoint = read_text(&folder.join(CHECKPOINT))?;
            let state = read_text(&folder.join(STATE))?;
            let mut log = LogReader {
                id: id.clone(),
                folder: folder.to_owned(),
                edge: Edge::default(),
                checkpoint: None,
                landmarks: Landmarks::new(),
            };
            let loaded = log.load(landmarks, checkpoint, state.as_deref());
            // Tiles go once they are full. Those of the size that was read may be gone then.
            if loaded.is_err() && read_text(&folder.join(STATE))? != state {
                continue;
            }
            return loaded.map(|()| log);
        }
    }

    /// Which log it is.
    pub fn id(&self) -> &LogId {
        &self.id
    }

    /// Its entries.
    pub fn size(&self) -> u64 {
        self.edge.size
    }

    /// The hash of all entries.
    ///
    /// # Errors
    ///
    /// If a tile can't be read.
    pub fn root(&self) -> Result<HashValue, LogError> {
        Subtree::whole(self.size()).hash(self)
    }

    /// Its landmarks: those that count, and the last one before.
    pub fn landmarks(&self) -> &Landmarks {
        &self.landmarks
    }

    /// The published checkpoint, if there is one. Its signatures are not checked.
    pub fn checkpoint(&self) -> Option<&Checkpoint> {
        self.checkpoint.as_ref()
    }

    fn parse_checkpoint(&self, note: Option<&str>) -> Result<Option<Checkpoint>, LogError> {
        let checkpoint = note.map(Checkpoint::parse).transpose();
        checkpoint.map_err(|_| damaged(&self.folder.join(CHECKPOINT), "it is no checkpoint"))
    }

    /// An entry's bytes.
    ///
    /// # Errors
    ///
    /// If it is not there, or can't be read.
    pub fn entry(&self, index: u64) -> Result<Vec<u8>, LogError> {
        let size = self.size();
        let found = self.entries(index..index.saturating_add(1)).next();
        found.unwrap_or(Err(LogError::NoEntry { index, size }))
    }

    /// The bytes of entries, one after the other, as far as there are any. Each bundle is read
    /// once.
    pub fn entries(&self, range: Range<u64>) -> impl Iterator<Item = Result<Vec<u8>, LogError>> {
        let Range { start, end } = range;
        let end = end.min(self.size());
        let tile = TILE as u64;
        let tiles = start / tile..end.div_ceil(tile);
        tiles.flat_map(move |number| {
            let first = number * tile;
            let within = start.max(first) - first..end.min(first + tile).saturating_sub(first);
            self.bundle(number).map_or_else(
                |error| vec![Err(error)],
                |entries| {
                    let places = (within.start as usize)..(within.end as usize);
                    let entries = entries.get(places).unwrap_or_default();
                    entries.iter().cloned().map(Ok).collect()
                },
            )
        })
    }

    /// The entries of a bundle.
    fn bundle(&self, number: u64) -> Result<Vec<Vec<u8>>, LogError> {
        let full = self.size() / TILE as u64;
        let path = self.folder.join(bundle_path(number, TILE));
        let (bundle, expected) = if number == full {
            (
                self.edge.bundle.clone(),
                (self.size() % TILE as u64) as usize,
            )
        } else {
            (read(&path)?, TILE)
        };
        let entries: Option<Vec<Vec<u8>>> = bundled(&bundle)
            .map(|entry| entry.map(<[u8]>::to_owned))
            .collect();
        entries
            .filter(|entries| entries.len() == expected)
            .ok_or_else(|| damaged(&path, "it has not as many entries as it should"))
    }

    /// Reads all entries, and checks that each full file is what they make. The others were checked
    /// when the log was opened.
    ///
    /// # Errors
    ///
    /// If a file can't be read, or is another.
    pub fn check(&self) -> Result<(), LogError> {
        let mut edge = Edge::default();
        for tile in 0..self.size() / TILE as u64 {
            let mut files = Vec::new();
            for entry in self.bundle(tile)? {
                edge.push(&entry, &mut files)?;
            }
            for (path, content) in files {
                let path = self.folder.join(path);
                if read(&path)? != content {
                    return Err(damaged(&path, "it is not what the entries make"));
                }
            }
        }
        // What is above the leaves comes from full tiles alone, and that of the edge is known to be
        // right.
        let above = |edge: &Edge| -> Vec<HashValue> {
            let tiles = edge.tiles.iter().skip(1);
            tiles.flatten().copied().collect()
        };
        if above(&edge) == above(&self.edge) {
            Ok(())
        } else {
            Err(damaged(&self.folder, "the entries are of another log"))
        }
    }

    /// Takes what is on the disk, and checks it against what was acknowledged.
    fn load(
        &mut self,
        landmarks: Option<String>,
        checkpoint: Option<String>,
        state: Option<&str>,
    ) -> Result<(), LogError> {
        let path = self.folder.join(STATE);
        self.checkpoint = self.parse_checkpoint(checkpoint.as_deref())?;
        let Some(state) = state else {
            return match self.checkpoint {
                None => Ok(()),
                Some(_) => Err(damaged(&path, "it is missing")),
            };
        };
        let lines: Vec<&str> = state.lines().collect();
        let [id, size, root] = lines[..] else {
            return Err(damaged(&path, "it has not three lines"));
        };
        if id != self.id.id().to_string() {
            return Err(damaged(&path, "it is of another log"));
        }
        let size = decimal(size).ok_or_else(|| damaged(&path, "it has no size"))?;
        self.edge = self.read_edge(size)?;
        if self.edge.root().to_string() != root {
            return Err(damaged(&path, "the tiles are of another log"));
        }
        let published = self.checkpoint.as_ref();
        if published.is_some_and(|published| published.size > size) {
            return Err(damaged(&path, "more was published than it knows of"));
        }
        if let Some(document) = landmarks {
            let landmarks = Landmarks::parse(&document);
            let path = self.folder.join(LANDMARKS);
            self.landmarks = landmarks.map_err(|_| damaged(&path, "it is no list of landmarks"))?;
        }
        Ok(())
    }

    fn read_edge(&self, size: u64) -> Result<Edge, LogError> {
        let mut edge = Edge {
            size,
            ..Edge::default()
        };
        let mut nodes = size;
        for level in 0.. {
            let width = (nodes % TILE as u64) as usize;
            nodes /= TILE as u64;
            let mut tile = Vec::new();
            if width > 0 {
                let path = self.folder.join(tile_path(level, nodes, width));
                tile = hashes(&path, width)?;
            }
            edge.tiles.push(tile);
            if nodes == 0 {
                break;
            }
        }
        let width = edge.tiles[0].len();
        if width > 0 {
            let path = self.folder.join(bundle_path(size / TILE as u64, width));
            edge.bundle = read(&path)?;
            let leaves = bundled(&edge.bundle).map(|entry| entry.map(entry::leaf));
            if !leaves.eq(edge.tiles[0].iter().copied().map(Some)) {
                return Err(damaged(&path, "its entries are not those of the tile"));
            }
        }
        Ok(edge)
    }
}

impl Nodes for Log {
    type Error = LogError;

    fn node(&self, level: u32, index: u64) -> Result<HashValue, LogError> {
        self.reader.node(level, index)
    }
}

impl Nodes for LogReader {
    type Error = LogError;

    fn node(&self, level: u32, index: u64) -> Result<HashValue, LogError> {
        let size = self.size();
        let no_entry = LogError::NoEntry { index, size };
        let nodes = size.checked_shr(level).unwrap_or(0);
        if index >= nodes {
            return Err(no_entry);
        }
        let (row, above) = (level / TILE_LEVELS, level % TILE_LEVELS);
        let first = index << above;
        let (tile, place) = (first / TILE as u64, (first % TILE as u64) as usize);
        let full;
        let hashes = if tile == (size >> (TILE_LEVELS * row)) / TILE as u64 {
            self.edge.tiles.get(row as usize)
        } else {
            let path = self.folder.join(tile_path(row, tile, TILE));
            full = hashes(&path, TILE)?;
            Some(&full)
        };
        let hashes = hashes.and_then(|hashes| hashes.get(place..place + (1 << above)));
        hashes.map(full_tree).ok_or(no_entry)
    }
}

impl Edge {
    /// Adds an entry, and the files that get full by it.
    fn push(&mut self, entry: &[u8], files: &mut Vec<(PathBuf, Vec<u8>)>) -> Result<(), LogError> {
        let length = u16::try_from(entry.len()).map_err(|_| LogError::Long(entry.len()))?;
        self.bundle.extend(length.to_be_bytes());
        self.bundle.extend_from_slice(entry);
        let mut number = self.size / TILE as u64;
        self.size += 1;
        let mut hash = entry::leaf(entry);
        for level in 0.. {
            if level == self.tiles.len() {
                self.tiles.push(Vec::with_capacity(TILE));
            }
            let tile = &mut self.tiles[level];
            tile.push(hash);
            if tile.len() < TILE {
                break;
            }
            hash = full_tree(tile);
            files.push((tile_path(level as u32, number, TILE), bytes(tile)));
            tile.clear();
            if level == 0 {
                let bundle = std::mem::take(&mut self.bundle);
                files.push((bundle_path(number, TILE), bundle));
            }
            number /= TILE as u64;
        }
        Ok(())
    }

    /// Adds the files that are not full and that the log of `before` entries did not have.
    fn partial(&self, before: u64, files: &mut Vec<(PathBuf, Vec<u8>)>) {
        let (mut old, mut new) = (before, self.size);
        for (level, tile) in (0..).zip(&self.tiles) {
            let number = new / TILE as u64;
            if old != new && !tile.is_empty() {
                files.push((tile_path(level, number, tile.len()), bytes(tile)));
                if level == 0 {
                    let path = bundle_path(number, tile.len());
                    files.push((path, self.bundle.clone()));
                }
            }
            (old, new) = (old / TILE as u64, number);
        }
    }

    /// The hash of all entries: all that is needed for it is at the edge.
    fn root(&self) -> HashValue {
        let mut hash = None;
        for tile in &self.tiles {
            let mut end = tile.len();
            while end > 0 {
                let start = end & (end - 1);
                let left = full_tree(&tile[start..end]);
                hash = Some(match hash {
                    Some(right) => HashValue::node(&left, &right),
                    None => left,
                });
                end = start;
            }
        }
        hash.unwrap_or_else(HashValue::empty)
    }
}

/// The hash above as many hashes as a power of two.
fn full_tree(hashes: &[HashValue]) -> HashValue {
    let mut row = hashes.to_vec();
    while row.len() > 1 {
        row = row
            .chunks(2)
            .filter_map(|pair| match pair {
                [left, right] => Some(HashValue::node(left, right)),
                _ => None,
            })
            .collect();
    }
    row.pop().unwrap_or_else(HashValue::empty)
}

fn bytes(hashes: &[HashValue]) -> Vec<u8> {
    hashes.iter().flat_map(|hash| hash.0).collect()
}

/// The file of a tile, below the log's folder (c2sp.org/tlog-tiles).
pub fn tile_path(level: u32, number: u64, width: usize) -> PathBuf {
    numbered(Path::new("tile").join(level.to_string()), number, width)
}

/// The file of a bundle of entries, below the log's folder.
pub fn bundle_path(number: u64, width: usize) -> PathBuf {
    numbered(Path::new("tile").join("entries"), number, width)
}

/// Three digits for each part of the path, `x` before all but the last.
fn numbered(mut path: PathBuf, number: u64, width: usize) -> PathBuf {
    let mut groups = vec![number % 1000];
    let mut rest = number / 1000;
    while rest > 0 {
        groups.push(rest % 1000);
        rest /= 1000;
    }
    while let Some(group) = groups.pop() {
        let name = match (groups.is_empty(), width) {
            (false, _) => format!("x{group:03}"),
            (true, TILE) => format!("{group:03}"),
            (true, _) => format!("{group:03}.p"),
        };
        path.push(name);
    }
    if width < TILE {
        path.push(width.to_string());
    }
    path
}

/// The entries of a bundle. What is cut is `None`.
fn bundled(mut bundle: &[u8]) -> impl Iterator<Item = Option<&[u8]>> {
    std::iter::from_fn(move || {
        if bundle.is_empty() {
            return None;
        }
        let entry = bundle
            .split_first_chunk()
            .and_then(|(length, rest)| rest.split_at_checked(u16::from_be_bytes(*length).into()));
        let (entry, rest) = entry.unzip();
        bundle = rest.unwrap_or_default();
        Some(entry)
    })
}

fn hashes(path: &Path, width: usize) -> Result<Vec<HashValue>, LogError> {
    let content = read(path)?;
    let (hashes, rest) = content.as_chunks();
    if rest.is_empty() && hashes.len() == width {
        Ok(hashes.iter().copied().map(HashValue).collect())
    } else {
        Err(damaged(path, "it has not as many hashes as it should"))
    }
}

fn damaged(path: &Path, problem: &'static str) -> LogError {
    LogError::Damaged {
        path: path.to_owned(),
        problem,
    }
}

/// Bytes of a file of a log: a bundle has 256 entries of at most 64 KiB.
const MOST: u64 = 64 << 20;

fn read(path: &Path) -> Result<Vec<u8>, LogError> {
    lastbyte_files::read(path, MOST).map_err(|error| LogError::Read {
        path: path.to_owned(),
        error,
    })
}

/// A file of text, if it is there.
fn read_text(path: &Path) -> Result<Option<String>, LogError> {
    match lastbyte_files::read_text(path, MOST) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(LogError::Read {
            path: path.to_owned(),
            error,
        }),
    }
}

#[cfg(test)]
mod tests;
