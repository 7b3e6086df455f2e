//! Where results come from: engine, kernel, host, versions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Where results come from: all that someone else needs to get them again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// What carried the bytes: `live` or `virtual`. It stands beside the environment in a document.
    #[serde(skip)]
    pub engine: String,
    /// The command line, from the program's name on.
    pub command: Vec<String>,
    /// Versions of Lastbyte and of the libraries under test, by name.
    pub versions: BTreeMap<String, String>,
    /// The kernel whose TCP was measured, as `uname -sr` prints it.
    pub kernel: String,
    /// Kernel settings in the namespaces of both ends, by their names under `/proc/sys`.
    pub sysctls: BTreeMap<String, String>,
    /// The machine.
    pub host: Host,
}

/// The machine that measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// Its processor, as `/proc/cpuinfo` calls it.
    pub cpu: String,
    /// Processors that could be used.
    pub cpus: u32,
    /// Memory, in bytes.
    pub memory_bytes: u64,
}
