//! The virtual engine's guest kernel: User-Mode Linux with time travel, built once from the
//! distribution's source package, or from a source archive that the user names, and kept; or taken
//! as somebody else has built it.
//!
//! ```text
//! CACHE/kernel/lock                 held by whoever builds or removes, and by their tools
//!              build.log            what the tools of the last build printed
//!              download/            the distribution's source package, while a build needs it
//!              work-KEY/            a build that goes on, or that the next one goes on with
//!              work-fetch/          a kernel that was made elsewhere, until it has proved itself
//!              KEY/linux            a kernel: an ordinary program
//!              KEY/kernel.json      where it comes from: a [`KernelInfo`]
//!              KEY/built-here       the digest of that, where it was built here
//! ```
//!
//! `KEY` is a digest of the source and of the recipe: the configuration, the patches and how they
//! are used. Each series of Linux has a recipe, so that a cache holds kernels of all of them side by
//! side; `LASTBYTE_LINUX` says which measures. A kernel takes its name when it is complete, so there is never half a one. Packages
//! install such folders beside the program, in `../lib/lastbyte/kernels` as its folder sees it,
//! where they are only read.

mod build;
mod cache;
pub(crate) mod digest;
mod error;
mod owner;
mod packed;
mod process;
mod progress;
mod recipe;
mod released;
mod source;
#[cfg(test)]
mod tests;
mod tools;

pub use build::{Builder, Built};
pub use cache::{Cache, Cached};
pub use digest::{Digest, sha256_of_file};
pub use error::{GET, KernelError};
pub use owner::foreign;
pub use packed::{Packed, PackedError, Taken};
pub use progress::Progress;
pub use recipe::Series;
pub use released::is_released;

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A kernel that is ready to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The program.
    pub path: PathBuf,
    /// Where it comes from.
    pub info: KernelInfo,
    /// Who says so.
    pub witness: Witness,
}

/// Who says where a kernel comes from. A digest in `kernel.json` tells that program and description
/// belong together, not that anything of it is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Witness {
    /// This cache: the kernel was built for it.
    Built,
    /// This program, which knows the kernels of releases.
    Released,
    /// Whoever has installed this program, and the kernel beside it.
    Installed,
    /// Nobody but the kernel's own description.
    Itself,
}

impl Kernel {
    /// What it was made of, as a claim where nobody else says so.
    #[must_use]
    pub fn source(&self) -> String {
        let name = &self.info.source.name;
        match self.witness {
            Witness::Built | Witness::Released | Witness::Installed => name.clone(),
            Witness::Itself => format!("says that it is of {name}"),
        }
    }
}

/// Where a kernel comes from. Digests are SHA-256 in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelInfo {
    /// What it calls itself: `6.12.117`.
    pub version: String,
    /// Digest of the program.
    pub sha256: String,
    /// What it was made of.
    pub source: SourceInfo,
    /// Digest of configuration, patches and how they were used. A kernel fits a version of
    /// Lastbyte that has the same.
    pub recipe_sha256: String,
    /// Digest of the configuration fragment.
    pub config_sha256: String,
    /// What was changed in the source, in this order.
    pub patches: Vec<PatchInfo>,
    /// The compiler, as it calls itself.
    pub compiler: String,
    /// When it was complete, in UTC, as RFC 3339 writes it.
    pub built: String,
    /// How long the build took, without what an interrupted one before it had done.
    pub build_seconds: u64,
}

/// The source that a kernel was made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceInfo {
    /// The package and its version, or the name of the user's file.
    pub name: String,
    /// Digest of the package or file.
    pub sha256: String,
    /// Where it was had from.
    pub origin: Origin,
}

/// Where a source was had from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// The distribution's package that Lastbyte is tested with; its digest was the recorded one.
    Pinned,
    /// Another version of that package.
    Package,
    /// A file that the user named.
    File,
}

/// A change of the source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PatchInfo {
    /// Its name.
    pub name: String,
    /// Digest of its file.
    pub sha256: String,
}

impl KernelInfo {
    /// The series that it is of, as its version says.
    #[must_use]
    pub fn series(&self) -> Option<Series> {
        self.version.parse().ok()
    }
}

/// What names the series of Linux that measures in virtual time.
pub const LINUX: &str = "LASTBYTE_LINUX";

/// Names the recipe of this version of Lastbyte: the digest of the configuration, the patches and
/// how they are used, which kernels have in [`KernelInfo::recipe_sha256`]. It is that of the series
/// which measures unless another is asked for.
#[must_use]
pub fn recipe() -> String {
    recipe::RECIPES.first.digest()
}

/// The user's kernel for this version of Lastbyte, if one is built: of the series that [`LINUX`]
/// names, else of the first that there is one of; the newest, if it was built from several sources.
///
/// # Errors
///
/// [`KernelError::NoCache`] or [`KernelError::Cache`] if it can't be known, [`KernelError::Damaged`] if there is one that
/// can't be used.
pub fn find() -> Result<Option<Kernel>, KernelError> {
    Cache::of_user()?.find()
}

/// As [`find`], if there must be one.
///
/// # Errors
///
/// Those of [`find`], and [`KernelError::NotBuilt`].
pub fn require() -> Result<Kernel, KernelError> {
    let cache = Cache::of_user()?;
    let found = cache.find()?;
    found.ok_or_else(|| cache.not_built())
}

/// A number of bytes, printed with two digits or more: `5.9 MB`, `2.5 GB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0 as f64;
        let (unit, size) = [("GB", 1e9), ("MB", 1e6), ("kB", 1e3)]
            .into_iter()
            .find(|(_, size)| bytes >= *size)
            .unwrap_or(("B", 1.0));
        let digits = usize::from(size > 1.0 && bytes / size < 10.0);
        write!(f, "{:.digits$} {unit}", bytes / size)
    }
}
