//! Files that take their names once they are complete.

use std::ffi::OsString;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::Failure;

/// A file that takes its name once it is complete, so that an earlier one is never lost
/// to a run that fails.
pub(super) struct Draft<'a> {
    path: &'a Path,
    draft: lastbyte_files::Draft,
    /// Until the file is there or given up.
    name: Taken,
    earlier: Earlier,
}

/// What may become of a file of this name that the command has read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Earlier {
    Kept,
    Replaced,
}

impl<'a> Draft<'a> {
    /// Before anything is measured, so that a place that can't be written is reported at once. A file that the command reads stays.
    pub(super) fn new(path: &'a Path) -> Result<Self, Failure> {
        if is_named_besides(path, std::env::args_os().skip(1)) {
            return Err(cannot_write(
                path,
                "the command names it for something else besides: name another file",
            ));
        }
        check_unread(path)?;
        Self::begin(path, Earlier::Kept)
    }

    /// The same of what may take the place of what was read, such as results of what they are compared with.
    pub(super) fn replacing(path: &'a Path) -> Result<Self, Failure> {
        Self::begin(path, Earlier::Replaced)
    }

    fn begin(path: &'a Path, earlier: Earlier) -> Result<Self, Failure> {
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
        let name = Taken::new(path, folder)?;
        match lastbyte_files::Draft::new(path) {
            Ok(draft) => Ok(Self {
                path,
                draft,
                name,
                earlier,
            }),
            Err(error) => Err(cannot_write(path, error)),
        }
    }

    /// Looks again whether what has this name was read: before anything is measured, for who reads after having begun.
    pub(super) fn check(&self) -> Result<(), Failure> {
        match self.earlier {
            Earlier::Kept => check_unread(self.path),
            Earlier::Replaced => Ok(()),
        }
    }

    /// What it becomes.
    pub(super) fn path(&self) -> &'a Path {
        self.path
    }

    /// The same, of what must not take the place of what was read or is written besides.
    pub(super) fn beside(path: &'a Path, others: &[&Path]) -> Result<Self, Failure> {
        let is_other = |other: &&&Path| **other == path || lastbyte_files::is_same(path, other);
        match others.iter().find(is_other) {
            Some(other) => Err(cannot_write(
                path,
                format!("it is \"{}\", which is used besides", other.display()),
            )),
            None => Draft::new(path),
        }
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
        self.draft.file()
    }

    /// Gives the file its name.
    pub(super) fn finish(self) -> Result<(), Failure> {
        self.check()?;
        let Self {
            path, draft, name, ..
        } = self;
        let kept = draft.keep();
        drop(name);
        kept.map_err(|error| cannot_write(path, error))
    }
}

/// The name of a file that is being written, however it is spelled. Of all outputs of a command, each has to have its
/// own: the last one would take the place of the others.
struct Taken(Name);

/// A name in a folder, by the folder's device and inode. A link is a name of its own: drafts replace it.
#[derive(Clone, PartialEq, Eq)]
struct Name {
    folder: (u64, u64),
    file: OsString,
}

static TAKEN: Mutex<Vec<Name>> = Mutex::new(Vec::new());

impl Taken {
    fn new(path: &Path, folder: &Path) -> Result<Taken, Failure> {
        let found = folder
            .metadata()
            .map_err(|error| cannot_write(path, error))?;
        let name = Name {
            folder: (found.dev(), found.ino()),
            file: path.file_name().unwrap_or_default().to_owned(),
        };
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.contains(&name) {
            return Err(named_twice(path));
        }
        taken.push(name.clone());
        Ok(Taken(name))
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        taken.retain(|name| *name != self.0);
    }
}

/// Makes sure that nothing was read of what has this name, be it named in a study or found beside a chain.
pub(super) fn check_unread(path: &Path) -> Result<(), Failure> {
    if lastbyte_files::was_opened(path) {
        Err(cannot_write(
            path,
            "the command reads this file: name another",
        ))
    } else {
        Ok(())
    }
}

/// Whether a file that is there is in more than one of a command's arguments, under whatever names: then it is read, too. Arms have
/// files between their slashes and signs of equality, and options of one letter have them right behind that.
fn is_named_besides(path: &Path, arguments: impl Iterator<Item = OsString>) -> bool {
    if !path.is_file() {
        return false;
    }
    let is_mark = |letter: char| matches!(letter, '=' | '/' | ',');
    let names = |argument: &OsString| {
        let text = argument.to_string_lossy();
        let begins = text.char_indices().filter(|(_, letter)| is_mark(*letter));
        let letters = match text.strip_prefix('-') {
            Some(rest) => rest.bytes().take_while(u8::is_ascii_alphabetic).count(),
            None => 0,
        };
        let behind_letters = (1..=letters).map(|letter| letter + 1);
        let begins = begins.map(|(at, _)| at + 1).chain([0]);
        begins.chain(behind_letters).any(|begin| {
            let rest = text.get(begin..).unwrap_or_default();
            let ends = rest.char_indices().filter(|(_, letter)| is_mark(*letter));
            let mut ends = ends.map(|(at, _)| at).chain([rest.len()]);
            ends.any(|end| {
                let part = Path::new(rest.get(..end).unwrap_or_default());
                part.is_file() && lastbyte_files::is_same(path, part)
            })
        })
    };
    arguments.filter(names).count() > 1
}

pub(super) fn named_twice(path: &Path) -> Failure {
    Failure::Usage(format!(
        "\"{}\" is named for two outputs: name another",
        path.display()
    ))
}

/// Writes a drawing, which is one by its name too.
pub(super) fn write_drawing(path: &Path, drawing: &str) -> Result<(), Failure> {
    if path.extension().is_none_or(|extension| extension != "svg") {
        return Err(Failure::Usage(format!(
            "can't write {path:?}: name it .svg"
        )));
    }
    Draft::new(path)?.write(|out| out.write_all(drawing.as_bytes()))
}

/// Takes the name of a page, whose ending browsers and mail go by.
///
/// # Errors
///
/// When it has another one.
pub(super) fn page_path(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    let ending = path.extension().and_then(|ending| ending.to_str());
    if ending.is_some_and(|ending| ["html", "htm"].contains(&ending)) {
        Ok(path)
    } else {
        Err("it is a page: name it .html".to_owned())
    }
}

/// The same of what a report can be, besides a page.
///
/// # Errors
///
/// When it has another ending.
pub(super) fn report_path(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    let ending = path.extension().and_then(|ending| ending.to_str());
    if ending.is_some_and(|ending| ["md", "json"].contains(&ending)) {
        Ok(path)
    } else {
        page_path(text)
            .map_err(|_| "name it .html, for the page, or .md or .json, for its answer".to_owned())
    }
}

/// Makes sure that a folder can be had that files are to be kept in, before anything is measured for it.
pub(super) fn check_folder(folder: &Path) -> Result<(), Failure> {
    let was_there = folder.exists();
    let made = std::fs::create_dir_all(folder);
    let written = made.and_then(|()| lastbyte_files::Draft::new(&folder.join("any")));
    written.map_err(|error| cannot_write(folder, error))?;
    if !was_there {
        // It is made again for the first file.
        let _ = std::fs::remove_dir(folder);
    }
    Ok(())
}

pub(super) fn cannot_write(path: &Path, error: impl Display) -> Failure {
    Failure::Usage(format!("can't write \"{}\": {error}", path.display()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_output_is_no_input() {
        let folder = tempfile::tempdir().unwrap();
        let [file, other, link] = ["a.svg", "b.svg", "c.svg"].map(|name| folder.path().join(name));
        std::fs::write(&file, "").unwrap();
        std::fs::write(&other, "").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let [file, other, link] = [file, other, link].map(|path| path.to_str().unwrap().to_owned());
        let is_named = |arguments: &[&str]| {
            let arguments = arguments.iter().map(OsString::from);
            is_named_besides(Path::new(&file), arguments)
        };
        for arguments in [
            &["explain", &file, "--svg", &file][..],
            &["explain", &link, "--svg", &file],
            &[
                "explain",
                &format!("today=x25519/{file}/key={other}"),
                "--svg",
                &file,
            ],
            &[
                "explain",
                &format!("x25519/{other}/key={file}"),
                &format!("--svg={file}"),
            ],
            &["explore", &file, &format!("-o{file}")],
            &["explore", &link, &format!("-o={file}")],
            &["explore", &file, &format!("-vo{link}")],
        ] {
            assert!(is_named(arguments), "{arguments:?}");
        }
        for arguments in [
            &["explain", &other, "--svg", &file][..],
            &[
                "explain",
                &format!("x25519/{other}/root=sent"),
                &format!("--svg={file}"),
            ],
            &["explore", &other, &format!("-o{file}")],
            &["explore", &format!("-vo={file}")],
        ] {
            assert!(!is_named(arguments), "{arguments:?}");
        }
        std::fs::remove_file(&file).unwrap();
        assert!(!is_named(&["explain", &file, "--svg", &file]));
    }
}
