//! Where results come from: engine, kernel, host, versions.

use std::collections::BTreeMap;
use std::ffi::OsString;

use lastbyte_link::shell_word;
use serde::{Deserialize, Serialize};

use lastbyte_study::EngineName;

/// Where results come from: all that someone else needs to get them again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// What carried the bytes. It stands beside the environment in a document.
    #[serde(skip)]
    pub engine: EngineName,
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

impl Environment {
    /// In place of a kernel where none was needed.
    pub const NO_KERNEL: &str = "none: the model of QUIC has none";

    /// The command line as a shell takes it.
    pub fn command_line(&self) -> String {
        let words: Vec<String> = self.command.iter().map(|word| shell_word(word)).collect();
        words.join(" ")
    }
}

/// What [`Environment::versions`] calls the library that speaks QUIC.
pub const QUIC: &str = "QUIC";

/// A command line, in words.
pub fn command_of(arguments: &[OsString]) -> Vec<String> {
    let words = arguments.iter();
    words
        .map(|word| word.to_string_lossy().into_owned())
        .collect()
}

/// What [`Environment::versions`] calls the source of a guest's kernel. It may be what the kernel says of itself, where another
/// machine knows it: results are compared by the digest beside it.
pub const KERNEL_SOURCE: &str = "kernel source";

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
