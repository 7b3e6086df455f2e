//! Files, however they are compressed.

use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use lastbyte_link::visible;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use crate::ahead::ahead;
use crate::row::Written;

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// What zstd's frames that hold no content begin with, but for the last four bits of the first byte.
const SKIPPABLE: &[u8] = &[0x50, 0x2a, 0x4d, 0x18];
/// What is read of a file at once.
const AT_ONCE: usize = 64 << 10;

/// A place that logs come from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// A file, by its path.
    File(PathBuf),
    /// What is piped in.
    Stdin,
}

impl Source {
    /// Whether it can be read once more.
    pub(crate) fn is_lasting(&self) -> bool {
        match self {
            Source::File(path) => path.is_file(),
            Source::Stdin => false,
        }
    }

    /// When its rows are written, by its name.
    pub(crate) fn written(&self) -> Written {
        match self {
            Source::File(path) => {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                let log = name.split('.').next().unwrap_or_default();
                Written::of(log.as_bytes())
            }
            Source::Stdin => Written::AtTheEnd,
        }
    }

    pub(crate) fn name(&self) -> String {
        match self {
            // In one line, whatever it is called.
            Source::File(path) => visible(&path.to_string_lossy()),
            Source::Stdin => "standard input".to_owned(),
        }
    }

    /// To be read to its end.
    pub(crate) fn open(&self) -> io::Result<Box<dyn Read>> {
        Ok(match self.peek()? {
            (input, Packed::Yes) => Box::new(ahead(input)),
            (input, Packed::No) => input,
        })
    }

    /// To see how it begins.
    pub(crate) fn peek(&self) -> io::Result<(Box<dyn Read + Send>, Packed)> {
        match self {
            Source::File(path) => decompress(lastbyte_files::open(path)?),
            Source::Stdin => decompress(io::stdin()),
        }
    }
}

/// What is found where logs are looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// What is to be read, in order.
    pub sources: Vec<Source>,
    /// What folders have besides, whose names don't end as those of logs.
    pub passed_over: Vec<PathBuf>,
}

impl Found {
    /// What there is to say of what was passed over.
    pub fn note(&self) -> Option<String> {
        const SHOWN: usize = 5;
        let names = self.passed_over.iter().take(SHOWN);
        let names: Vec<String> = names.map(|path| visible(&path.to_string_lossy())).collect();
        let more = match self.passed_over.len().saturating_sub(SHOWN) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        (!names.is_empty()).then(|| {
            format!(
                "passed over, as names of logs end in {}, with .gz or .zst behind it or without: {}{more}",
                ENDS.join(", "),
                names.join(", ")
            )
        })
    }
}

/// What names of logs end in, compressed or not.
const ENDS: [&str; 4] = [".log", ".json", ".ndjson", ".jsonl"];

/// The files that are named, and those in folders that are named and end as logs do.
///
/// # Errors
///
/// When there is no such file or folder, or a folder can't be read: with its path.
pub fn sources(paths: &[PathBuf]) -> Result<Found, (PathBuf, io::Error)> {
    let mut found = Found::default();
    for path in paths {
        if path == Path::new("-") {
            found.sources.push(Source::Stdin);
        } else if path.is_dir() {
            walk(path, &mut found).map_err(|error| (path.clone(), error))?;
        } else {
            path.metadata().map_err(|error| (path.clone(), error))?;
            found.sources.push(Source::File(path.clone()));
        }
    }
    Ok(found)
}

fn walk(folder: &Path, found: &mut Found) -> io::Result<()> {
    let entries: Result<Vec<_>, _> = folder.read_dir()?.collect();
    let mut entries = entries?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        // Links to folders lead to what is read anyway.
        if entry.file_type()?.is_dir() {
            walk(&path, found)?;
        } else if is_log(&path) && path.is_file() {
            found.sources.push(Source::File(path));
        } else {
            found.passed_over.push(path);
        }
    }
    Ok(())
}

fn is_log(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let packed = [".gz", ".zst"].iter();
    let name = packed.fold(&*name, |name, end| name.strip_suffix(end).unwrap_or(name));
    ENDS.iter().any(|end| name.ends_with(end))
}

/// Whether something is compressed, so that reading it is work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packed {
    Yes,
    No,
}

/// Tells how `input` is compressed by how it begins, and reads it to its end, over the ends of what was
/// compressed separately and concatenated.
pub(crate) fn decompress(
    input: impl Read + Send + 'static,
) -> io::Result<(Box<dyn Read + Send>, Packed)> {
    let mut input = BufReader::with_capacity(AT_ONCE, input);
    // A pipe may give less than a file, but nothing that is compressed begins with less.
    let start = input.fill_buf()?;
    Ok(match start {
        start if start.starts_with(GZIP) => (Box::new(MultiGzDecoder::new(input)), Packed::Yes),
        start if is_zstd(start) => (Box::new(Zstd::new(input)), Packed::Yes),
        _ => (Box::new(input), Packed::No),
    })
}

fn is_zstd(start: &[u8]) -> bool {
    start.starts_with(ZSTD) || skippable(start).is_some()
}

fn skippable(start: &[u8]) -> Option<()> {
    let (first, rest) = start.split_first()?;
    (first & 0xf0 == 0x50 && rest.starts_with(SKIPPABLE.get(1..)?)).then_some(())
}

/// Frames of zstd, one after the other.
struct Zstd<R> {
    input: R,
    frame: FrameDecoder,
    place: Place,
}

enum Place {
    Between,
    Inside,
}

impl<R: BufRead> Zstd<R> {
    fn new(input: R) -> Self {
        Zstd {
            input,
            frame: FrameDecoder::new(),
            place: Place::Between,
        }
    }

    /// Begins the next frame, or leaves out one that holds no content.
    fn begin(&mut self) -> io::Result<()> {
        match self.frame.init(&mut self.input) {
            Ok(()) => self.place = Place::Inside,
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                length,
                ..
            })) => {
                let mut skipped = (&mut self.input).take(length.into());
                if io::copy(&mut skipped, &mut io::sink())? < u64::from(length) {
                    return Err(ErrorKind::UnexpectedEof.into());
                }
            }
            Err(error) => return Err(invalid(&error)),
        }
        Ok(())
    }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.place {
                Place::Between if self.input.fill_buf()?.is_empty() => return Ok(0),
                Place::Between => self.begin()?,
                Place::Inside if self.frame.can_collect() > 0 => return self.frame.read(room),
                Place::Inside if self.frame.is_finished() => self.place = Place::Between,
                Place::Inside => {
                    let one = BlockDecodingStrategy::UptoBlocks(1);
                    let decoded = self.frame.decode_blocks(&mut self.input, one);
                    decoded.map_err(|error| invalid(&error))?;
                }
            }
        }
    }
}

fn invalid(error: &impl std::fmt::Display) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, error.to_string())
}
