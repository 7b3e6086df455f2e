//! `--capture` and `--keylog`: what `compare` and `run` keep of connections besides rows.

use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};

use clap::Args;
use lastbyte_link::{counted, shell_word};

use super::draft::{Draft, cannot_write, check_unread};
use super::{Failure, tell};
use lastbyte::lab::{Captures, Inspection};
use lastbyte::study::Experiment;

#[derive(Debug, Default, Args)]
pub(super) struct Inside {
    /// Write the packets of the first N connections of each sample as pcapng, with their TLS secrets inside, on both
    /// sides of the link; `lastbyte show` draws them
    #[arg(long, value_name = "N", help_heading = "See inside", value_parser = clap::value_parser!(u32).range(1..))]
    capture: Option<u32>,
    /// Write the TLS secrets of every connection, as SSLKEYLOGFILE has them
    #[arg(long, value_name = "FILE", help_heading = "See inside")]
    keylog: Option<PathBuf>,
}

/// What is to be kept, and where.
pub(super) struct Selection<'a> {
    pub(super) inspection: Inspection,
    folder: PathBuf,
    keylog: Option<Draft<'a>>,
}

impl Inside {
    /// Begins to keep it; captures go into this folder.
    pub(super) fn begin(&self, folder: &Path) -> Result<Selection<'_>, Failure> {
        let mut keylog = self.keylog.as_deref().map(Draft::new).transpose()?;
        let captures = self.capture.map(|connections| Captures {
            connections,
            folder: folder.to_owned(),
        });
        let secrets = match (&mut keylog, &self.keylog) {
            (Some(draft), Some(path)) => {
                let file = draft.file().try_clone();
                let file = file.map_err(|error| cannot_write(path, error))?;
                Some(Box::new(io::BufWriter::new(file)) as Box<dyn Write + Send>)
            }
            _ => None,
        };
        Ok(Selection {
            inspection: Inspection::new(captures, secrets),
            folder: folder.to_owned(),
            keylog,
        })
    }

    /// Makes sure that secrets have a place outside of a folder of results, which is nobody's but the run's, and not that of
    /// what was read up to here.
    pub(super) fn check_place(&self, folder: &Path) -> Result<(), Failure> {
        if let Some(path) = &self.keylog {
            check_unread(path)?;
        }
        match &self.keylog {
            Some(path) if real(path).starts_with(real(folder)) => Err(cannot_write(
                path,
                format!(
                    "\"{}\" is the folder of the results: name a place outside of it",
                    folder.display()
                ),
            )),
            _ => Ok(()),
        }
    }

    /// Makes sure that there is something to keep: of a browser's connections there is nothing but what is in its loads.
    pub(super) fn check_loads<'a>(
        &self,
        experiments: impl IntoIterator<Item = &'a Experiment>,
    ) -> Result<(), Failure> {
        let option = match (self.capture, &self.keylog) {
            (Some(_), _) => "--capture",
            (None, Some(_)) => "--keylog",
            (None, None) => return Ok(()),
        };
        if experiments.into_iter().any(Experiment::has_pages) {
            Err(Failure::Usage(format!(
                "{option} is of transfers, and a browser loads pages: leave it out"
            )))
        } else {
            Ok(())
        }
    }

    /// Whether packets are asked for.
    pub(super) fn captures(&self) -> bool {
        self.capture.is_some()
    }
}

/// Where a path leads, as far as there is anything yet.
fn real(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut found = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                found.pop();
            }
            part => found.push(part),
        }
        if let Ok(canonical) = found.canonicalize() {
            found = canonical;
        }
    }
    found
}

impl Selection<'_> {
    /// Tells what was kept, whether or not all was measured.
    pub(super) fn finish(self) -> Result<(), Failure> {
        let told = self.inspection.finish();
        let told = told.map_err(|error| match &self.keylog {
            Some(keylog) => cannot_write(keylog.path(), error),
            None => Failure::run(error),
        })?;
        if let Some(first) = told.files.iter().min() {
            tell(format_args!(
                "{} in {}: draw a connection with `lastbyte show {}`",
                counted(told.files.len(), "capture"),
                self.folder.display(),
                shell_word(&first.to_string_lossy())
            ));
        }
        if told.unseen > 0 {
            tell(format_args!(
                "{} had no room in captures, and are missing there: capture fewer connections",
                counted(told.unseen, "packet")
            ));
        }
        let mut problems = told.problems.into_iter();
        if let Some(problem) = problems.next() {
            let more = match problems.len() {
                0 => String::new(),
                more => format!(", and {more} more"),
            };
            return Err(Failure::Usage(format!(
                "{problem}{more}; rows are kept all the same"
            )));
        }
        self.keylog.map_or(Ok(()), Draft::finish)
    }
}
