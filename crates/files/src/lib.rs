//! Files and folders that take their names once they are complete and on the disk.
//!
//! Whoever reads a name finds what was there before or all that is new, also after a crash: content
//! is on the disk before it has its name, and the name is before anybody hears of it.

#[cfg(feature = "parquet")]
pub mod bounded_parquet;

use std::collections::BTreeSet;
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The files that [`open`] has opened. Those of a command are few, and programs that run on read with [`read_regular`].
static OPENED: Mutex<BTreeSet<Id>> = Mutex::new(BTreeSet::new());

/// The device and the inode of a file.
type Id = (u64, u64);

fn id(found: &Metadata) -> Id {
    (found.dev(), found.ino())
}

/// Whether two names are of one file that is there, be it by links: by its device and inode.
pub fn is_same(one: &Path, other: &Path) -> bool {
    let id = |path: &Path| Some(id(&path.metadata().ok()?));
    id(one).is_some_and(|found| id(other) == Some(found))
}

/// Whether [`open`] has opened the file that has this name now, under whatever name. One that has taken its place since then is
/// another.
pub fn was_opened(path: &Path) -> bool {
    let opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    let found = path.metadata();
    found.is_ok_and(|found| opened.contains(&id(&found)))
}

/// Reads a file that a user names, of at most `most` bytes.
///
/// A pipe that a shell has opened, as `<(...)` and `/dev/stdin` are, is read to its end. Pipes and
/// devices in folders are refused: nobody may ever write into a pipe, and some devices have no end.
///
/// # Errors
///
/// When it can't be read, is no regular file or is larger.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    read_all(open(path)?, most)
}

/// Opens what [`read`] reads, for who does not want all of it at once.
///
/// # Errors
///
/// As [`read`], whatever the size.
pub fn open(path: &Path) -> io::Result<File> {
    let is_open_already = ["/dev/fd", "/proc/self/fd", "/dev/stdin"];
    let file = if is_open_already.iter().any(|fd| path.starts_with(fd)) {
        File::open(path)
    } else {
        open_regular(path, Links::Followed)
    }?;
    let found = file.metadata()?;
    if found.is_file() {
        let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
        opened.insert(id(&found));
    }
    Ok(file)
}

/// Whether the name of a file may be a link to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// It may.
    Followed,
    /// It is refused then.
    Refused,
}

/// Reads a file of at most `most` bytes that is one in a folder, and no pipe either: for programs
/// that read again later. The content has one place in memory, so that who erases that has erased
/// it.
///
/// # Errors
///
/// As [`read`].
pub fn read_regular(path: &Path, most: u64, links: Links) -> io::Result<Vec<u8>> {
    read_all(open_regular(path, links)?, most)
}

/// Opens first, without waiting for anybody, and looks then: between two looks at a name it may
/// become another's.
fn open_regular(path: &Path, links: Links) -> io::Result<File> {
    let link = match links {
        Links::Followed => 0,
        Links::Refused => libc::O_NOFOLLOW,
    };
    let mut options = OpenOptions::new();
    // The standard library adds O_CLOEXEC.
    options
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY | link);
    let irregular = || refused("it is no regular file: name another".to_owned());
    let file = options
        .open(path)
        .map_err(|error| match error.raw_os_error() {
            // A socket, or a device that is not there.
            Some(libc::ENXIO) => irregular(),
            Some(libc::ELOOP) if links == Links::Refused => irregular(),
            _ => error,
        })?;
    let found = file.metadata()?;
    // Of a folder, reading says best that it is one.
    if found.is_file() || found.is_dir() {
        Ok(file)
    } else {
        Err(irregular())
    }
}

fn read_all(file: File, most: u64) -> io::Result<Vec<u8>> {
    // All of it at once: a buffer that grows leaves copies behind, which may be of keys. More is
    // read only to be refused.
    let length = file.metadata()?.len().min(most).saturating_add(1);
    let mut content = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
    let read = file
        .take(most.saturating_add(1))
        .read_to_end(&mut content)?;
    if read as u64 > most {
        Err(refused(format!("it is larger than {}", size(most))))
    } else {
        Ok(content)
    }
}

fn refused(problem: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, problem)
}

/// The same of a text in UTF-8, without the byte order mark that some editors put before it.
///
/// # Errors
///
/// As [`read`], and when it is none.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    let text = String::from_utf8(read(path, most)?);
    let text =
        text.map_err(|_| io::Error::new(ErrorKind::InvalidData, "it is no text in UTF-8"))?;
    Ok(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    })
}

/// `1 MiB`, or bytes where it is no whole number of those.
fn size(bytes: u64) -> String {
    const MIB: u64 = 1 << 20;
    if bytes.is_multiple_of(MIB) && bytes > 0 {
        format!("{} MiB", bytes / MIB)
    } else {
        format!("{bytes} bytes")
    }
}

/// Makes a folder, and those above it, which nobody but this user can change, whatever the umask.
/// One that is there stays as it is.
///
/// # Errors
///
/// If it can't be made.
pub fn make_folders(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(path)
}

/// A file without its name yet. Dropped, it leaves nothing behind.
#[derive(Debug)]
pub struct Draft {
    path: PathBuf,
    file: tempfile::NamedTempFile,
}

impl Draft {
    /// Begins the file `path`, in its folder, which must be there. It has the permissions of an
    /// earlier one of this name, else those of any file that this user makes.
    ///
    /// # Errors
    ///
    /// If the folder can't be written to.
    pub fn new(path: &Path) -> io::Result<Draft> {
        let earlier = path.metadata().ok();
        // Its name would be taken from a device or a pipe.
        if earlier.as_ref().is_some_and(|earlier| !earlier.is_file()) {
            return Err(io::Error::new(
                ErrorKind::InvalidInput,
                "it is no regular file: name another",
            ));
        }
        let file = tempfile::Builder::new()
            .prefix(".lastbyte-")
            // Less the umask.
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder_of(path))
            // Nobody knows the name that it has for now.
            .map_err(|error| io::Error::from(error.kind()))?;
        if let Some(earlier) = earlier {
            file.as_file().set_permissions(earlier.permissions())?;
        }
        Ok(Draft {
            path: path.to_owned(),
            file,
        })
    }

    /// Where the content goes.
    pub fn file(&mut self) -> &mut File {
        self.file.as_file_mut()
    }

    /// Gives the file its name.
    ///
    /// # Errors
    ///
    /// If the disk or the folder does not take it. An earlier file is still there then.
    pub fn keep(self) -> io::Result<()> {
        self.file.as_file().sync_all()?;
        self.file.persist(&self.path).map_err(|error| error.error)?;
        sync_folder(folder_of(&self.path))
    }
}

/// Writes a whole file, in the place of an earlier one if there is one.
///
/// # Errors
///
/// As [`Draft::new`] and [`Draft::keep`].
pub fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut draft = Draft::new(path)?;
    draft.file().write_all(content)?;
    draft.keep()
}

/// Gives the file `draft` the name `path`, on the same file system.
///
/// # Errors
///
/// If the disk or the folder does not take it. Both files are as they were then.
pub fn keep(draft: &Path, path: &Path) -> io::Result<()> {
    File::open(draft)?.sync_all()?;
    fs::rename(draft, path)?;
    sync_folder(folder_of(path))
}

/// Gives the folder `draft`, with all that is in it, the name `path`, on the same file system. An
/// earlier folder of this name is removed first, so for a moment there is none.
///
/// # Errors
///
/// If the disk or the folder above does not take it.
pub fn keep_folder(draft: &Path, path: &Path) -> io::Result<()> {
    sync_all(draft)?;
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => fs::rename(draft, path)?,
    }
    sync_folder(folder_of(path))
}

fn sync_all(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            sync_all(&entry.path())?;
        } else if kind.is_file() {
            File::open(entry.path())?.sync_all()?;
        }
    }
    sync_folder(folder)
}

/// Has the names in a folder on the disk, where the file system can do that and the user may ask.
fn sync_folder(folder: &Path) -> io::Result<()> {
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::PermissionDenied | ErrorKind::InvalidInput | ErrorKind::Unsupported
            ) =>
        {
            Ok(())
        }
        synced => synced,
    }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests;
