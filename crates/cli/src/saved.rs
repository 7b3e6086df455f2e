//! Where results are saved, to be compared with later.

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::Failure;
use super::draft::cannot_write;
use lastbyte::results::Saved;
use lastbyte_link::{is_hidden, nearest};

/// In the current folder: what a build's cache or a repository can hold.
const FOLDER: &str = ".lastbyte";
const EXTENSION: &str = "parquet";

/// The name of saved results, or their path.
#[derive(Clone, Debug)]
pub(super) struct SavedName {
    name: String,
    path: PathBuf,
}

impl FromStr for SavedName {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let is_file = Path::new(name)
            .extension()
            .is_some_and(|extension| extension == EXTENSION);
        let path = match (name.contains('/'), is_file) {
            _ if name.is_empty() => return Err("give it a name".to_owned()),
            _ if name.contains(is_hidden) => {
                return Err("it has a character that is not seen: leave that out".to_owned());
            }
            (true, true) => PathBuf::from(name),
            (true, false) => {
                return Err(format!(
                    "with a /, it is the path of a file: .../NAME.{EXTENSION}"
                ));
            }
            (false, true) => {
                return Err(format!("for a file in this folder, write ./{name}"));
            }
            (false, false) => Path::new(FOLDER).join(format!("{name}.{EXTENSION}")),
        };
        Ok(Self {
            name: name.to_owned(),
            path,
        })
    }
}

impl SavedName {
    /// Reads what was saved.
    pub(super) fn open(&self) -> Result<Saved, Failure> {
        if !self.path.exists() {
            return Err(Failure::Usage(self.unknown()));
        }
        Saved::open(&self.path, &self.name).map_err(Failure::usage)
    }

    /// Where to save. The folder of all names is made if it is not there.
    pub(super) fn place(&self) -> Result<&Path, Failure> {
        if self.path.starts_with(FOLDER) {
            fs::create_dir_all(FOLDER).map_err(|error| cannot_write(&self.path, error))?;
        }
        Ok(&self.path)
    }

    /// Whether it is this file.
    pub(super) fn is_at(&self, path: &Path) -> bool {
        self.path == path || lastbyte_files::is_same(&self.path, path)
    }

    fn unknown(&self) -> String {
        let Self { name, path } = self;
        if name.contains('/') {
            return format!("there is no file {path:?}: save results there with --save {name}");
        }
        match &*names() {
            [] => format!("nothing is saved as {name:?}: save results with --save {name}"),
            known => {
                let hint = nearest(name, known.iter().map(String::as_str));
                format!("nothing is saved as {name:?}: {hint}")
            }
        }
    }
}

/// All names that results are saved under.
fn names() -> Vec<String> {
    let files = fs::read_dir(FOLDER).into_iter().flatten().flatten();
    let paths = files.map(|file| file.path());
    let saved = paths.filter(|path| path.extension().is_some_and(|found| found == EXTENSION));
    let mut names: Vec<_> = saved
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .collect();
    names.sort_unstable();
    names
}
