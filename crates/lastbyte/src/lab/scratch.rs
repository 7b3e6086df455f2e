//! Folders that are of use to one process only, and gone with it.
//!
//! A process that is killed can't take its folders away, so the next one does. A folder's process
//! holds a lock on it, which the kernel gives up however that ends, and in whatever container:
//! process ids come again, and mean nothing elsewhere.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use nix::libc;
use nix::unistd::geteuid;
use tempfile::TempDir;

/// What their names begin with. Versions that took no lock have `lastbyte-`.
const PREFIX: &str = "lastbyte_";
const RANDOM: usize = 8;
/// How old a folder must be that nobody holds: its process may be about to lock it.
const OLD: Duration = Duration::from_secs(60);

/// Where left ones were removed already.
static SWEPT: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A folder of this process, which is removed when it is dropped.
#[derive(Debug)]
pub(super) struct Scratch {
    // The lock is given up last.
    folder: TempDir,
    _lock: File,
}

impl Scratch {
    /// Makes one in `parent`; the first one of this process removes those of processes that were
    /// killed.
    ///
    /// # Errors
    ///
    /// Why it can't be made, with the name of `parent` alone.
    pub(super) fn new_in(parent: &Path) -> io::Result<Scratch> {
        sweep_once(parent);
        let make = || {
            let mut builder = tempfile::Builder::new();
            let folder = builder
                .prefix(PREFIX)
                // Studies and keys are in some.
                .permissions(Permissions::from_mode(0o700))
                .rand_bytes(RANDOM)
                .tempdir_in(parent)?;
            let lock = open(folder.path())?;
            lock.try_lock()?;
            Ok(Scratch {
                folder,
                _lock: lock,
            })
        };
        make().map_err(|error: io::Error| {
            // Nobody knows the name that it would have had.
            let reason = io::Error::from(error.kind());
            io::Error::new(error.kind(), format!("{}: {reason}", parent.display()))
        })
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }
}

fn sweep_once(parent: &Path) {
    let mut swept = SWEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if !swept.iter().any(|other| other == parent) {
        swept.push(parent.to_owned());
        sweep(parent, OLD);
    }
}

/// Removes the folders of processes that were killed. What can't be removed is no concern of this
/// process.
fn sweep(parent: &Path, old: Duration) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if name.to_str().is_some_and(|name| name.starts_with(PREFIX)) {
            let _ = remove_left(&entry.path(), old);
        }
    }
}

fn remove_left(folder: &Path, old: Duration) -> io::Result<()> {
    let file = open(folder)?;
    let metadata = file.metadata()?;
    let age = metadata.modified()?.elapsed().unwrap_or_default();
    if metadata.uid() == geteuid().as_raw() && age >= old && file.try_lock().is_ok() {
        fs::remove_dir_all(folder)?;
    }
    Ok(())
}

/// Opens a folder, and nothing that a link leads to.
fn open(folder: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let options = options.read(true);
    let options = options.custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW);
    options.open(folder)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;
    use std::time::Duration;

    use tempfile::TempDir;

    use super::{OLD, Scratch, sweep};

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }

    #[test]
    fn only_folders_that_nobody_holds_are_removed() {
        let parent = TempDir::new().unwrap();
        let held = Scratch::new_in(parent.path()).unwrap();
        for left in ["lastbyte_left", "lastbyte-other", "mine"] {
            fs::create_dir(parent.path().join(left)).unwrap();
            fs::write(parent.path().join(left).join("file"), "").unwrap();
        }
        symlink(
            parent.path().join("mine"),
            parent.path().join("lastbyte_link"),
        )
        .unwrap();
        fs::write(parent.path().join("lastbyte_file"), "").unwrap();
        let own = held.path().file_name().unwrap().to_str().unwrap();
        // Its process may be about to lock it.
        sweep(parent.path(), OLD);
        assert!(names(parent.path()).contains(&"lastbyte_left".to_owned()));
        sweep(parent.path(), Duration::ZERO);
        let mut left = [
            own,
            "lastbyte-other",
            "lastbyte_file",
            "lastbyte_link",
            "mine",
        ];
        left.sort_unstable();
        assert_eq!(names(parent.path()), left);
        assert_eq!(names(&parent.path().join("mine")), ["file"]);
        drop(held);
        assert_eq!(names(parent.path()).len(), 4);
    }

    #[test]
    fn errors_name_no_folder_that_was_never_there() {
        let parent = TempDir::new().unwrap();
        let none = parent.path().join("none");
        let error = Scratch::new_in(&none).unwrap_err().to_string();
        assert_eq!(error, format!("{}: entity not found", none.display()));
    }
}
