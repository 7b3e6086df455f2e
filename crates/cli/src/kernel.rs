//! `lastbyte kernel`.

mod fetch;

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use lastbyte_link::visible;

use super::compare::interrupt;
use super::{Failure, print};
use lastbyte::kernel::{
    Builder, Built, Cache, Cached, Kernel, KernelError, Origin, Progress, Size, Witness,
};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Build it, unless it is there
    Build(Build),
    /// Take one that was built elsewhere, which needs no compiler: a program that runs with your rights
    Fetch(fetch::Fetch),
    /// Write the one that is there to a file, which `kernel fetch` takes
    Pack(fetch::Pack),
    /// Tell what is there
    Status,
    /// Remove it, and what builds left behind
    Remove,
}

#[derive(Debug, Args)]
pub(super) struct Build {
    /// A source of Linux 6.12 or 7.3: linux-*.tar.xz, .tar.gz or .tar, or a linux-source package (.deb)
    /// [default: the distribution's package linux-source-6.12, or that of the series which LASTBYTE_LINUX names]
    #[arg(long, value_name = "FILE")]
    source: Option<PathBuf>,
}

impl Command {
    pub(super) fn run(self) -> Result<(), Failure> {
        let cache = Cache::of_user()?;
        match self {
            Command::Build(build) => build.run(&cache),
            Command::Fetch(fetch) => fetch.run(&cache),
            Command::Pack(pack) => pack.run(),
            Command::Status => status(&cache),
            Command::Remove => remove(&cache),
        }
    }
}

impl Build {
    fn run(self, cache: &Cache) -> Result<(), Failure> {
        let interrupt = interrupt().map_err(Failure::run)?;
        let watch = Watch::new();
        let mut builder = Builder::new(cache, &interrupt, &watch);
        if let Some(source) = &self.source {
            builder = builder.source(source)?;
        }
        let built = builder.build();
        watch.finish();
        let text = match built? {
            Built::New(Kernel { path, info, .. }) => format!(
                "Linux {} is built, in {} min {} s: {}\n",
                info.version,
                info.build_seconds / 60,
                info.build_seconds % 60,
                super::shown(&path)
            ),
            Built::AlreadyThere(Kernel { path, info, .. }) => format!(
                "Linux {} is built already: {}\n",
                info.version,
                super::shown(&path)
            ),
        };
        print(&text)
    }
}

fn status(cache: &Cache) -> Result<(), Failure> {
    let mut text = String::new();
    // What is there may be damaged.
    let found = cache.find();
    let measures = |kernel| matches!(&found, Ok(Some(found)) if found == kernel);
    for kept in &cache.contents()? {
        // Writing to a String can't fail.
        let _ = match kept {
            Cached::Fitting(kernel) => {
                let fit = if measures(kernel) {
                    "fits this version of Lastbyte"
                } else {
                    "fits this version of Lastbyte, but another one measures"
                };
                describe(&mut text, kernel, fit, cache)
            }
            Cached::Other(kernel) => {
                let fit = "does not fit: this version of Lastbyte has other options or patches";
                describe(&mut text, kernel, fit, cache)
            }
            Cached::Damaged(folder) => {
                let mend = if cache.is_installed(folder) {
                    "install its package anew"
                } else {
                    "a build makes it anew"
                };
                writeln!(text, "{}: damaged, {mend}", super::shown(folder))
            }
            Cached::Unfinished(folder) => writeln!(
                text,
                "{}: unfinished, a build of the same source continues it",
                super::shown(folder)
            ),
        };
    }
    print(&text)?;
    match found? {
        Some(_) => Ok(()),
        None => Err(cache.not_built().into()),
    }
}

fn describe(text: &mut String, kernel: &Kernel, fit: &str, cache: &Cache) -> std::fmt::Result {
    let Kernel {
        path,
        info,
        witness,
    } = kernel;
    let installed = if cache.is_installed(path) {
        ", installed"
    } else {
        ""
    };
    let size = Size(path.metadata().map_or(0, |file| file.len()));
    let origin = match info.source.origin {
        Origin::Pinned => "the version that Lastbyte is tested with",
        Origin::Package => "not the version that Lastbyte is tested with",
        Origin::File => "a file of yours",
    };
    let patches: Vec<_> = info.patches.iter().map(|patch| &*patch.name).collect();
    writeln!(text, "Linux {}, {fit}", info.version)?;
    writeln!(
        text,
        "  program   {} ({size}{installed})",
        super::shown(path)
    )?;
    writeln!(text, "  sha256    {}", info.sha256)?;
    let witness = match witness {
        Witness::Built => "built here",
        Witness::Released => "of a release of Lastbyte, whose digest this program has",
        Witness::Installed => "installed, as this program is",
        Witness::Itself => {
            "built elsewhere: what follows is what it says of itself, and nobody else does"
        }
    };
    writeln!(text, "  known as  {witness}")?;
    writeln!(text, "  source    {} ({origin})", kernel.source())?;
    writeln!(text, "            sha256 {}", info.source.sha256)?;
    writeln!(text, "  config    sha256 {}", info.config_sha256)?;
    writeln!(text, "  patches   {}", patches.join(", "))?;
    writeln!(text, "  built     {}, with {}", info.built, info.compiler)
}

fn remove(cache: &Cache) -> Result<(), Failure> {
    match cache.remove()? {
        Size(0) => print("There was no kernel.\n"),
        freed => print(&format!(
            "Removed what was there: {freed} are free again.\n"
        )),
    }
}

impl From<KernelError> for Failure {
    fn from(error: KernelError) -> Self {
        let message = error.to_string();
        match error {
            KernelError::WrongSource { .. }
            | KernelError::NoCache(_)
            | KernelError::UnknownSeries { .. }
            | KernelError::Cache { .. }
            | KernelError::Folder(_)
            | KernelError::Space { .. }
            | KernelError::DiskFull(_)
            | KernelError::NoRoom(_) => Failure::Usage(message),
            KernelError::Failed { .. } | KernelError::Busy => Failure::Run(message),
            KernelError::Interrupted => Failure::Interrupted(message),
            _ => Failure::Machine(message),
        }
    }
}

/// Shows how a build goes on: with a spinner and a bar on a terminal, else in lines.
struct Watch(Option<ProgressBar>);

impl Watch {
    fn new() -> Self {
        let bar = io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new_spinner();
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        Self(bar)
    }

    fn finish(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

impl Progress for Watch {
    fn note(&self, note: &str) {
        let line = format!("lastbyte: {}", visible(note));
        match &self.0 {
            Some(bar) => bar.println(line),
            None => {
                let _ = writeln!(io::stderr(), "{line}");
            }
        }
    }

    fn stage(&self, stage: &str) {
        match &self.0 {
            Some(bar) => {
                set_style(bar, "{spinner} {msg} {elapsed}");
                bar.unset_length();
                bar.reset();
                bar.set_message(stage.to_owned());
            }
            None => self.note(stage),
        }
    }

    fn advance(&self, done: u64, all: u64) {
        if let Some(bar) = &self.0 {
            if bar.length() != Some(all) {
                set_style(bar, "{msg} {wide_bar} {percent:>3} %  {eta} left");
                bar.set_length(all);
                // What an earlier build did says nothing of the speed of this one.
                bar.set_position(done);
                bar.reset_eta();
            }
            bar.set_position(done);
        }
    }
}

fn set_style(bar: &ProgressBar, template: &str) {
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
}
