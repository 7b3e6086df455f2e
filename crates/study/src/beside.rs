//! Files that a study names.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lastbyte_link::{Distribution, Trace};
use sha2::{Digest, Sha256};

use super::{PageSource, Study};

/// Where the files are that a study names.
#[derive(Clone, Debug)]
pub struct StudyFolder {
    /// Where relative paths begin.
    pub path: PathBuf,
    /// Where the study itself is, with what is kept of files beside it.
    pub beside: PathBuf,
}

/// A file that a study names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedFile {
    /// What it is called where results are kept, so that they can be read without the file itself: the SHA-256 of
    /// how the study names it, in hex.
    pub name: String,
    /// What is in it.
    pub content: Arc<[u8]>,
}

impl NamedFile {
    /// The folder of such files, beside a study.
    pub const FOLDER: &str = "files";
}

impl StudyFolder {
    /// The current one.
    pub const HERE: StudyFolder = StudyFolder {
        path: PathBuf::new(),
        beside: PathBuf::new(),
    };

    /// That of a file.
    pub fn of(file: &Path) -> StudyFolder {
        let folder = file.parent().unwrap_or(Path::new(""));
        StudyFolder {
            path: folder.to_owned(),
            beside: folder.to_owned(),
        }
    }

    /// A file that is named so. What results have kept of it goes before.
    ///
    /// # Errors
    ///
    /// Why it can't be read.
    pub fn read(&self, named: &str) -> io::Result<NamedFile> {
        /// Tables of some ten million users.
        const MOST: u64 = 1 << 30;
        self.read_within(named, MOST)
    }

    /// The same of so many bytes at most.
    pub(crate) fn read_within(&self, named: &str, most: u64) -> io::Result<NamedFile> {
        let name = hex::encode(Sha256::digest(named));
        let retained = self.beside.join(NamedFile::FOLDER).join(&name);
        let read = |path: PathBuf| lastbyte_files::read(&path, most);
        let read = read(retained).or_else(|_| read(self.path.join(named)));
        Ok(NamedFile {
            name,
            content: read?.into(),
        })
    }
}

impl Study {
    /// All files that it names and that are not chains, each once.
    ///
    /// # Errors
    ///
    /// When one can't be read any more.
    pub fn named_files(&self) -> io::Result<Vec<NamedFile>> {
        let folder = StudyFolder {
            path: self.folder.clone(),
            ..StudyFolder::of(&self.path)
        };
        let measured = self.measures.iter().map(|measure| &measure.experiment);
        let searched = self.searches.iter().map(|search| &search.experiment);
        let mut files: Vec<NamedFile> = Vec::new();
        // Cells name the same files again and again.
        let mut read = BTreeSet::new();
        for cell in measured
            .chain(searched)
            .flat_map(|experiment| &experiment.cells)
        {
            let drawn = cell.population.iter();
            let mut found: Vec<NamedFile> = drawn.flat_map(|drawn| drawn.files.clone()).collect();
            for way in [&cell.link.forward, &cell.link.backward] {
                let table = match &way.distribution {
                    Distribution::Empirical(table) => Some(table.name()),
                    _ => None,
                };
                let trace = way.trace.as_ref().map(Trace::name);
                for named in table.into_iter().chain(trace) {
                    if read.insert(named) {
                        found.push(folder.read(named)?);
                    }
                }
            }
            if let Some(PageSource::Har(har)) = &cell.page {
                found.push(har.retained());
            }
            found.retain(|file| files.iter().all(|known| known.name != file.name));
            files.extend(found);
        }
        Ok(files)
    }
}
