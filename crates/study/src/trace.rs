//! Rate traces from files.

use std::io;
use std::path::PathBuf;

use lastbyte_link::{Passes, Trace, TraceError};
use thiserror::Error;

use super::StudyFolder;

/// That there is no trace, in studies and on the command line.
pub(crate) const NO_TRACE: &str = "none";

/// The text names no rate trace.
#[derive(Debug, Error)]
pub enum TraceFileError {
    /// The file can't be read.
    #[error("can't read rate trace {path:?}: {error}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// The file holds no trace.
    #[error("rate trace {0}")]
    Trace(TraceError),
}

/// The rate trace that `text` names, if it names one: a file, whose path begins at `folder`, and `once` behind it where it
/// does not begin again.
///
/// # Errors
///
/// When there is no such file, or it is no trace, in one line with the hint.
pub(crate) fn load_trace(
    text: &str,
    folder: &StudyFolder,
) -> Result<Option<Trace>, TraceFileError> {
    if text == NO_TRACE {
        return Ok(None);
    }
    let (file, passes) = Passes::of(text);
    let content = folder.read_within(file, Trace::MOST_BYTES);
    let content = content.map_err(|error| TraceFileError::Unreadable {
        path: folder.path.join(file),
        error,
    })?;
    let trace = Trace::parse(file, passes, &content.content).map_err(TraceFileError::Trace)?;
    Ok(Some(trace))
}
