//! What browsers told of page loads, besides rows: a file of it for each block.

use std::io;
use std::path::{Path, PathBuf};

use lastbyte_link::visible;
use lastbyte_page::cdp::Load;
use serde::{Deserialize, Serialize};

use super::folder::{Action, FolderError, file_name};
use crate::study::{BlockId, Study};

/// Where that is in the folder of a run.
pub const PAGES: &str = "pages";
/// More than the loads of any block take.
const MOST: u64 = 256 << 20;

/// What a navigation has left besides its row.
#[derive(Debug, Serialize, Deserialize)]
pub struct Loaded {
    /// Index of the navigation in its sample.
    pub index: u32,
    /// What the browser told, if the page was loaded.
    pub load: Option<Load>,
    /// Connections, in the order in which they began, as the observer saw them.
    pub connections: Vec<SeenConnection>,
}

/// A connection of a browser, as the observer saw it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenConnection {
    /// The origin's name.
    pub name: String,
    /// From the first SYN of the page to this one, in nanoseconds.
    pub began_ns: u64,
    /// Key-exchange group (IANA code point), when negotiated.
    pub group: Option<u16>,
    /// Signature scheme of the server's CertificateVerify (IANA code point), when seen.
    pub signature: Option<u16>,
    /// Cipher suite (IANA code point), when negotiated.
    pub cipher_suite: Option<u16>,
    /// Certificates in the server's Certificate message.
    pub certificates: u32,
    /// Bytes of that message, as it is uncompressed.
    pub certificate_bytes: u32,
    /// Whether a session was resumed.
    pub resumed: bool,
    /// The client's first flight, record framing included.
    pub client_hello_wire_bytes: u32,
    /// The server's messages, record framing included.
    pub server_flight_wire_bytes: u32,
}

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
