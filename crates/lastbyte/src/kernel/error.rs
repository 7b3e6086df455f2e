//! Why there is no kernel.

use std::io;
use std::path::{Path, PathBuf};

use lastbyte_pki::PkiError;
use thiserror::Error;

use super::process::ToolError;
use super::{LINUX, Series, Size};

/// How to have one.
pub const GET: &str = "`lastbyte kernel build`, or `lastbyte kernel fetch` with one that is built";

/// Why there is no kernel for the virtual engine.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum KernelError {
    /// No kernel was built for this version of Lastbyte.
    #[error(
        "no kernel {of}is built for the virtual engine in {folder:?}: run {get}",
        of = series.map(|series| format!("of Linux {series}, which {LINUX} asks for, ")).unwrap_or_default(),
        get = GET
    )]
    NotBuilt {
        /// Where none is.
        folder: PathBuf,
        /// Which was asked for.
        series: Option<Series>,
    },
    /// No series that there is a recipe for was asked for.
    #[error("{LINUX} is {name:?}: kernels are of Linux {known}")]
    UnknownSeries {
        /// What was asked for.
        name: String,
        /// Those that there are recipes for.
        known: String,
    },
    /// Somebody else can put programs there that would be run.
    #[error(
        "kernels are programs, and {0}: make it yours alone (chown, chmod go-w), or set LASTBYTE_CACHE"
    )]
    Foreign(String),
    /// A kernel is there, and its files are missing or not as they were built.
    #[error("the kernel in {folder:?} is damaged: {mend}")]
    Damaged {
        /// Its folder.
        folder: PathBuf,
        /// What to do.
        mend: &'static str,
    },
    /// User-Mode Linux with time travel is for x86-64 only.
    #[error("the virtual engine needs an x86-64 processor, and this one is {0}")]
    Processor(&'static str),
    /// There is no folder for caches.
    #[error(transparent)]
    NoCache(#[from] PkiError),
    /// A file or folder of the cache could not be used.
    #[error("can't use {path:?}: {source}")]
    Cache {
        /// What could not be used.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Linux's makefiles can't work in a folder of this name.
    #[error("Linux can't be built in {0:?}, with a blank or colon in it: set LASTBYTE_CACHE")]
    Folder(PathBuf),
    /// Less disk space than a build needs.
    #[error(
        "the build needs {needed} of disk, and {folder:?} has {free}: make room or set LASTBYTE_CACHE"
    )]
    Space {
        /// Where the build is to be.
        folder: PathBuf,
        /// What it needs.
        needed: Size,
        /// What is there.
        free: Size,
    },
    /// The disk became full.
    #[error("the disk of {0:?} is full: make room and run the build again, it continues there")]
    DiskFull(PathBuf),
    /// A kernel that is built already does not fit the disk.
    #[error("the disk of {0:?} is full: make room or set LASTBYTE_CACHE")]
    NoRoom(PathBuf),
    /// Kernels can't be removed or taken from elsewhere while one is built.
    #[error("a build is under way: wait for it or end it first")]
    Busy,
    /// Tools are missing and can't be installed.
    #[error("{missing} missing, needed to build Linux: {hint}")]
    Tools {
        /// What is missing.
        missing: String,
        /// What to do.
        hint: String,
    },
    /// The distribution's source package could not be had.
    #[error("can't get {package}: {problem}; or name a source of Linux {series} with --source")]
    Package {
        /// The series that it is of.
        series: Series,
        /// Its name, and its version where known.
        package: String,
        /// What was wrong, and its hint.
        problem: String,
    },
    /// What the user named is no source that the kernel can be built from, or no kernel that can be
    /// taken.
    #[error("{path:?} {problem}")]
    WrongSource {
        /// What was named.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A step of the build failed.
    #[error("{step} failed: {problem} (all of it: {log:?})")]
    Failed {
        /// What was being done.
        step: &'static str,
        /// What the tool printed.
        problem: String,
        /// What all tools printed.
        log: PathBuf,
    },
    /// Interrupted; what was done is kept.
    #[error("interrupted: `lastbyte kernel build` continues where this one stopped")]
    Interrupted,
}

impl KernelError {
    pub(super) fn cache(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| match source.kind() {
            io::ErrorKind::StorageFull => KernelError::DiskFull(path),
            _ => KernelError::Cache { path, source },
        }
    }

    /// For a tool whose failure has no other meaning.
    pub(super) fn from_tool(step: &'static str, log: &Path, error: ToolError) -> Self {
        match error {
            ToolError::Interrupted => KernelError::Interrupted,
            ToolError::DiskFull => KernelError::DiskFull(log.parent().unwrap_or(log).to_owned()),
            ToolError::Failed(problem) => KernelError::Failed {
                step,
                problem,
                log: log.to_owned(),
            },
        }
    }
}
