//! Distributions of jitter by name or from a file.

use std::io;
use std::path::{Path, PathBuf};

use lastbyte_link::{Distribution, Table, TableError, UnitError};
use thiserror::Error;

use super::StudyFolder;

/// The text names no distribution of jitter.
#[derive(Debug, Error)]
pub enum DistributionError {
    /// It is neither the name of one nor a file.
    #[error(transparent)]
    Name(UnitError),
    /// The file can't be read.
    #[error("can't read jitter distribution {path:?}: {error}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// The file holds no distribution.
    #[error("jitter distribution {0}")]
    Table(TableError),
}

/// The distribution of jitter that `text` names: one that the link knows, or a file, whose path
/// begins at `folder`. A `.dist` file holds quantiles, as tc has them, a `.csv` or `.txt` file delays
/// that were measured.
///
/// # Errors
///
/// When there is no such distribution, in one line with the hint.
pub fn load_distribution(
    text: &str,
    folder: &StudyFolder,
) -> Result<Distribution, DistributionError> {
    let extension = Path::new(text).extension().unwrap_or_default();
    let table = match extension.to_str() {
        Some("dist") => Table::from_quantiles,
        Some("csv" | "txt") => Table::from_delays,
        _ => return text.parse().map_err(DistributionError::Name),
    };
    let content = folder.read(text).and_then(|file| {
        let content = file.content.to_vec();
        String::from_utf8(content)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    });
    let content = content.map_err(|error| DistributionError::Unreadable {
        path: folder.path.join(text),
        error,
    })?;
    let table = table(text, &content).map_err(DistributionError::Table)?;
    Ok(table.into())
}
