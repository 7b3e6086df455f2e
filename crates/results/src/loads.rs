//! What browsers told of page loads, besides rows: a file of it for each block.

use std::io;
use std::path::{Path, PathBuf};

use lastbyte_link::visible;

use super::Loaded;
use super::folder::{Action, FolderError, file_name};
use lastbyte_study::{BlockId, Study};

/// Where that is in the folder of a run.
pub const PAGES: &str = "pages";
/// More than the loads of any block take.
const MOST: u64 = 256 << 20;

/// Where the loads of a block are, the first of which is the sample's `first`, below a folder of them.
#[must_use]
pub fn loads_path(pages: &Path, study: &Study, id: BlockId, first: u32) -> PathBuf {
    pages.join(format!("{}.json", block_name(study, id, first)))
}

/// The loads of a block; none if there is no such file.
///
/// # Errors
///
/// When it can't be read, or is damaged.
pub fn read_loads(path: &Path) -> Result<Option<Vec<Loaded>>, FolderError> {
    let bytes = match lastbyte_files::read(path, MOST) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        read => read.map_err(FolderError::io(Action::Read, path))?,
    };
    let loads = serde_json::from_slice(&bytes).map_err(|error| FolderError::Content {
        path: path.to_owned(),
        problem: format!(
            "{}: remove it to go on without",
            visible(&error.to_string())
        ),
    });
    loads.map(Some)
}

/// What files of a block are called, but for what they are: of its sample, and of the index of its first connection unless that is 0.
#[must_use]
pub fn block_name(study: &Study, id: BlockId, first: u32) -> String {
    let measure = study.measures.get(id.measure);
    let arm = measure.and_then(|measure| measure.experiment.arms.get(id.arm));
    let (measure, arm) = (
        measure.map_or("", |measure| &measure.id),
        arm.map_or("", |arm| &arm.name),
    );
    let name = format!(
        "{}-cell-{}-arm-{}-{}",
        file_name(measure),
        id.cell,
        id.arm,
        file_name(arm)
    );
    match first {
        0 => name,
        first => format!("{name}-from-{first}"),
    }
}
