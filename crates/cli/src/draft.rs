//! Files that take their names once they are complete.

use std::fmt::Display;
use std::fs::{File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::Failure;

/// A file that takes its name once it is complete, so that an earlier one is never lost
/// to a run that fails.
pub(super) struct Draft<'a> {
    path: &'a Path,
    file: tempfile::NamedTempFile<File>,
}

impl<'a> Draft<'a> {
    /// Before anything is measured, so that a place that can't be written is told at once.
    pub(super) fn new(path: &'a Path) -> Result<Self, Failure> {
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        if path.is_dir() {
            return Err(cannot_write(path, "it is a folder"));
        }
        if !folder.is_dir() {
            let problem = format!("there is no folder \"{}\": make it first", folder.display());
            return Err(cannot_write(path, problem));
        }
        let file = tempfile::Builder::new()
            .prefix(".lastbyte-")
            // Less the umask, as for any file that a user makes.
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder)
            .map_err(|error| cannot_write(path, error))?;
        Ok(Self { path, file })
    }

    /// Has `content` written, and gives the file its name.
    pub(super) fn write(
        mut self,
        content: impl FnOnce(&mut BufWriter<&mut File>) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let path = self.path;
        let mut out = BufWriter::new(self.file());
        content(&mut out)
            .and_then(|()| out.flush())
            .map_err(|error| cannot_write(path, error))?;
        drop(out);
        self.finish()
    }

    /// Where the content goes.
    pub(super) fn file(&mut self) -> &mut File {
        self.file.as_file_mut()
    }

    /// Gives the file its name.
    pub(super) fn finish(self) -> Result<(), Failure> {
        self.file
            .persist(self.path)
            .map_err(|error| cannot_write(self.path, error.error))?;
        Ok(())
    }
}

pub(super) fn cannot_write(path: &Path, error: impl Display) -> Failure {
    Failure::Usage(format!("can't write \"{}\": {error}", path.display()))
}
