//! Why other people's programs can't be had, or can't do what an arm needs.

use std::io;
use std::path::PathBuf;

use lastbyte_link::Bytes;
use lastbyte_page::SiteError;
use openssl::error::ErrorStack;

use crate::lab::SHARED_MEMORY;
use crate::lab::process::StartError;
use crate::study::Arm;

/// Why no page can be loaded, or a server that people run can't answer.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// There is no Chromium, or what was named is none.
    #[error(
        "page loads need Chromium, and {0:?} is none that runs: install it with `apt-get install chromium`, or name it in \
         LASTBYTE_CHROMIUM"
    )]
    NoBrowser(PathBuf),
    /// Another program is not there.
    #[error("{by} needs {program}: {hint}")]
    NotInstalled {
        /// What needs it.
        by: &'static str,
        /// Which.
        program: &'static str,
        /// How it is had.
        hint: &'static str,
    },
    /// A program lacks what an arm needs.
    #[error("{program} ({version}) has no {what}: that takes {least} or newer")]
    TooOld {
        /// Which.
        program: String,
        /// What it is.
        version: String,
        /// What it lacks.
        what: &'static str,
        /// What has it.
        least: String,
    },
    /// A program lacks what an arm needs, and so does every newer one.
    #[error(
        "{program} ({version}) has no {what}, nor has a newer one: write server=node or server=go"
    )]
    Never {
        /// Which.
        program: String,
        /// What it is.
        version: String,
        /// What it lacks.
        what: &'static str,
    },
    /// The browser's store does not take a root.
    #[error("the browser's store of trusted roots does not take the chain's: {0}")]
    Root(String),
    /// There is too little memory.
    #[error(
        "a guest with other people's programs needs {} MB of memory ({left}): free some, or make {SHARED_MEMORY} larger",
        memory.0 >> 20
    )]
    Memory {
        /// What it needs.
        memory: Bytes,
        /// How much each folder has left.
        left: String,
    },
    /// Another one, of an arm.
    #[error("arm {arm:?}: {error}")]
    Arm {
        /// Which.
        arm: String,
        /// What it is.
        error: Box<PageError>,
    },
    /// A user's own chain is for too few names.
    #[error(
        "the page has {origins} origins, and the chain is for {names} of them: use a chain with more names, or fewer origins"
    )]
    Names {
        /// Of the page.
        origins: usize,
        /// In the certificate.
        names: usize,
    },
    /// There is no such page.
    #[error("{0}")]
    Page(String),
    /// Files can't be written.
    #[error("can't write the files of a server: {0}")]
    Write(#[source] io::Error),
    /// The site can't be written.
    #[error("can't write the site of a page: {0}")]
    Site(#[source] SiteError),
    /// OpenSSL can't write a certificate.
    #[error("can't write a chain: {}", lastbyte_pki::openssl_reason(.0))]
    Crypto(#[source] ErrorStack),
    /// A program did not start, or ended.
    #[error("{program} did not start: {reason}")]
    Start {
        /// Which.
        program: String,
        /// The last line that it printed.
        reason: String,
    },
}

impl PageError {
    /// Lastbyte's own server is no program: who gets here has not asked whether it is ours.
    pub(in crate::lab) const OURS: PageError = PageError::NotInstalled {
        by: "a page load",
        program: "another server than Lastbyte's own",
        hint: "write server=node",
    };

    /// Says which arm it is of.
    pub(in crate::lab) fn of_arm(self, arm: &Arm) -> PageError {
        PageError::Arm {
            arm: arm.name.clone(),
            error: Box::new(self),
        }
    }

    /// What is wrong, whichever arm it is of.
    #[must_use]
    pub fn itself(&self) -> &PageError {
        match self {
            PageError::Arm { error, .. } => error.itself(),
            other => other,
        }
    }

    pub(in crate::lab) fn start(program: &str, error: StartError) -> PageError {
        match error {
            StartError::Write(error) => PageError::Write(error),
            StartError::Ended(reason) => PageError::Start {
                program: program.to_owned(),
                reason,
            },
        }
    }
}
