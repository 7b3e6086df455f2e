//! How a kernel is made.

use std::env::consts::ARCH;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::cache::{self, Cache, remove_if_there};
use super::digest::{sha256, sha256_of_file};
use super::process::{AtInterrupt, Runner, free};
use super::progress::Progress;
use super::recipe::Recipe;
use super::source::{self, Archive, Source, TREE, source_version};
use super::{Kernel, KernelError, KernelInfo, PatchInfo, Size, tools};

/// What a source, unpacked and built, takes besides its archive, with some room to spare.
const NEEDED: Size = Size(2_500_000_000);
/// What the rest takes when it is unpacked already.
const NEEDED_TO_GO_ON: Size = Size(500_000_000);
/// CPU time of a build with gcc 12, in all.
const CPU_TIME: Duration = Duration::from_secs(600);
/// The lines that a whole build prints. The bar depends on it, and nothing else.
const STEPS: u64 = 1000;
const CHECKING: &str = "checking the kernel";
/// How often somebody who waits looks.
const LOOK: Duration = Duration::from_millis(100);

/// Builds a kernel, or continues where an earlier build stopped.
pub struct Builder<'a> {
    cache: &'a Cache,
    source: Source,
    interrupt: &'a AtomicBool,
    progress: &'a dyn Progress,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Built {
    /// A new kernel.
    New(Kernel),
    /// It was there already.
    AlreadyThere(Kernel),
}

impl<'a> Builder<'a> {
    /// Builds from the distribution's source package. Setting `interrupt` stops it.
    pub fn new(cache: &'a Cache, interrupt: &'a AtomicBool, progress: &'a dyn Progress) -> Self {
        Self {
            cache,
            source: Source::Package(cache.recipe_of_package()),
            interrupt,
            progress,
        }
    }

    /// Builds from this file instead: a source of Linux, or a package of Debian with one.
    ///
    /// # Errors
    ///
    /// [`KernelError::WrongSource`] if it can't be read or is no archive.
    pub fn source(mut self, file: &Path) -> Result<Self, KernelError> {
        self.source = Source::of_file(file)?;
        Ok(self)
    }

    /// Builds the kernel unless it is there. One build at a time goes on in a cache; others
    /// wait.
    ///
    /// # Errors
    ///
    /// Any but [`KernelError::NotBuilt`] and [`KernelError::Busy`]. What was done is kept,
    /// unless the source is at fault.
    pub fn build(&self) -> Result<Built, KernelError> {
        if ARCH != "x86_64" {
            return Err(KernelError::Processor(ARCH));
        }
        if let Some(kernel) = self.source.built(self.cache)? {
            self.clean_up_after(&kernel)?;
            return Ok(Built::AlreadyThere(kernel));
        }
        let folder = self.cache.folder();
        // Linux's Makefile refuses such names.
        if folder.to_string_lossy().contains([' ', '\t', '\n', ':']) {
            return Err(KernelError::Folder(folder.to_owned()));
        }
        let lock = self.lock()?;
        // Somebody else may have built it in the meantime.
        if let Some(kernel) = self.source.built(self.cache)? {
            return Ok(Built::AlreadyThere(kernel));
        }
        let started = Instant::now();
        let log = self.open_log()?;
        let runner = Runner::new(log, &lock, self.interrupt);
        self.tell_cost(runner.log());
        self.ensure_tools(&runner)?;
        self.ensure_space()?;

        let archive = self.source.fetch(self.cache, &runner, self.progress)?;
        let key = self.cache.recipes().work_key(&archive.info.sha256);
        let work = self.clear_all_but(&key)?;
        let made = self.make(&archive, &work, &runner, started);
        // Without a tree, nothing is left that the next build could go on with.
        if matches!(made, Err(KernelError::WrongSource { .. })) || !work.join(TREE).exists() {
            remove_if_there(&work)?;
        }
        let (folder, recipe) = made?;
        let kernel = self
            .cache
            .install(&recipe.key(&archive.info.sha256), &folder)?;
        self.progress.stage("cleaning up");
        remove_if_there(&work)?;
        remove_if_there(&self.cache.downloads())?;
        Ok(Built::New(kernel))
    }

    /// Removes what the build of a kernel left if it was killed just before its end.
    fn clean_up_after(&self, kernel: &Kernel) -> Result<(), KernelError> {
        let key = (self.cache.recipes()).work_key(&kernel.info.source.sha256);
        let work = self.cache.work(&key);
        if work.exists()
            && let Some(_lock) = self.cache.try_lock()?
        {
            remove_if_there(&work)?;
            remove_if_there(&self.cache.downloads())?;
        }
        Ok(())
    }

    /// Waits until nobody else builds.
    fn lock(&self) -> Result<File, KernelError> {
        if let Some(lock) = self.cache.try_lock()? {
            return Ok(lock);
        }
        self.progress
            .note("another build is under way: waiting for its end");
        self.progress.stage("waiting");
        while !self.interrupt.load(Ordering::Relaxed) {
            thread::sleep(LOOK);
            if let Some(lock) = self.cache.try_lock()? {
                return Ok(lock);
            }
        }
        Err(KernelError::Interrupted)
    }

    /// Goes on with the log of the build that this one continues.
    fn open_log(&self) -> Result<PathBuf, KernelError> {
        let log = self.cache.log();
        let continued = !self.cache.works()?.is_empty();
        let mut options = OpenOptions::new();
        options.create(true).append(continued).truncate(!continued);
        options
            .write(true)
            .open(&log)
            .map_err(KernelError::cache(&log))?;
        Ok(log)
    }

    fn tell_cost(&self, log: &Path) {
        let processors = processors();
        let minutes = CPU_TIME.as_secs().div_ceil(60 * processors as u64) + 1;
        let continued = match self.cache.works() {
            Ok(works) if !works.is_empty() => ", less what an earlier build has done",
            _ => "",
        };
        self.progress.note(&format!(
            "building Linux for the virtual engine: about {minutes} minutes on {processors} \
             processors{continued}; the log is {log:?}"
        ));
    }

    fn ensure_tools(&self, runner: &Runner<'_>) -> Result<(), KernelError> {
        let mut needed = self.source.tools().to_vec();
        needed.extend(tools::BUILD);
        tools::ensure(runner, &needed, |stage| self.progress.stage(stage))
    }

    fn ensure_space(&self) -> Result<(), KernelError> {
        let folder = self.cache.folder();
        let unpacked = |work: &PathBuf| work.join(TREE).exists();
        let needed = if self.cache.works()?.iter().any(unpacked) {
            NEEDED_TO_GO_ON
        } else {
            NEEDED
        };
        let free = free(folder).map_err(KernelError::cache(folder))?;
        if free < needed {
            return Err(KernelError::Space {
                folder: folder.to_owned(),
                needed,
                free,
            });
        }
        Ok(())
    }

    /// The folder of this build. Those of others are of no use any more: their source or their
    /// recipe is not what is wanted now.
    fn clear_all_but(&self, key: &str) -> Result<PathBuf, KernelError> {
        let work = self.cache.work(key);
        for other in self.cache.works()? {
            if other != work {
                remove_if_there(&other)?;
            }
        }
        lastbyte_files::make_folders(&work).map_err(KernelError::cache(&work))?;
        Ok(work)
    }

    /// A folder with the kernel and its origin, not yet in its place.
    fn make(
        &self,
        archive: &Archive,
        work: &Path,
        runner: &Runner<'_>,
        started: Instant,
    ) -> Result<(PathBuf, &'static Recipe), KernelError> {
        self.progress.stage("unpacking the source");
        let (tree, recipe) = source::unpack(archive, self.cache.recipes(), work, runner)?;
        self.progress.stage("configuring");
        configure(archive, recipe, work, &tree, runner)?;
        self.progress.stage("compiling");
        compile(&tree, runner, self.progress)?;
        self.progress.stage(CHECKING);
        let folder = finish(archive, recipe, work, &tree, runner, started)?;
        Ok((folder, recipe))
    }
}

/// Changes nothing when it is done again, so that `make` continues where it stopped.
fn configure(
    archive: &Archive,
    recipe: &Recipe,
    work: &Path,
    tree: &Path,
    runner: &Runner<'_>,
) -> Result<(), KernelError> {
    let fragment = work.join("config");
    fs::write(&fragment, recipe.config()).map_err(KernelError::cache(&fragment))?;
    let mut all = OsString::from("KCONFIG_ALLCONFIG=");
    all.push(&fragment);
    let mut configure = make(tree, runner);
    let configured = runner.run(configure.arg(all).arg("allnoconfig"));
    configured.map_err(|error| KernelError::from_tool("configuring", runner.log(), error))?;
    let path = tree.join(".config");
    let config = fs::read_to_string(&path).map_err(KernelError::cache(&path))?;
    let missing = recipe.missing_options(&config);
    if !missing.is_empty() {
        let missing = missing.join(", ");
        let problem = format!("can't be configured with {missing}");
        return Err(archive.wrong(problem, runner));
    }
    Ok(())
}

fn finish(
    archive: &Archive,
    recipe: &Recipe,
    work: &Path,
    tree: &Path,
    runner: &Runner<'_>,
    started: Instant,
) -> Result<PathBuf, KernelError> {
    let failed = |error| KernelError::from_tool(CHECKING, runner.log(), error);
    let result = work.join("result");
    remove_if_there(&result)?;
    fs::create_dir(&result).map_err(KernelError::cache(&result))?;
    let program = cache::program(&result);
    fs::copy(tree.join("linux"), &program).map_err(KernelError::cache(&program))?;
    let mut strip = runner.tool("strip");
    runner.run(strip.arg(&program)).map_err(failed)?;
    let version = check(&program, tree, runner)?;
    let compiler = runner.lines(runner.tool("gcc").arg("--version"));
    let compiler = compiler.map_err(failed)?.into_iter().next();
    let patches = recipe.patches.iter().map(|patch| PatchInfo {
        name: patch.name.to_owned(),
        sha256: sha256(patch.text.as_bytes()),
    });
    let info = KernelInfo {
        version,
        sha256: sha256_of_file(&program).map_err(KernelError::cache(&program))?,
        source: archive.info.clone(),
        recipe_sha256: recipe.digest(),
        config_sha256: sha256(recipe.config().as_bytes()),
        patches: patches.collect(),
        compiler: compiler.unwrap_or_default(),
        built: format!("{:.0}", Timestamp::now()),
        build_seconds: started.elapsed().as_secs(),
    };
    cache::write_info(&result, &info)?;
    cache::note_built(&result)?;
    Ok(result)
}

fn compile(tree: &Path, runner: &Runner<'_>, progress: &dyn Progress) -> Result<(), KernelError> {
    let mut done = steps_in(runner.log());
    let mut command = make(tree, runner);
    command.arg(format!("-j{}", processors())).arg("linux");
    let compiled = runner.run_with(&mut command, AtInterrupt::Stop, |line| {
        done += u64::from(is_step(line));
        progress.advance(done.min(STEPS), STEPS);
    });
    compiled.map_err(|error| KernelError::from_tool("compiling", runner.log(), error))
}

/// Starts the kernel, without booting it, and gives the version that it tells.
fn check(program: &Path, tree: &Path, runner: &Runner<'_>) -> Result<String, KernelError> {
    let failed = |error| KernelError::from_tool(CHECKING, runner.log(), error);
    let mut help = runner.tool(program);
    runner.run(help.arg("--help")).map_err(failed)?;
    let lines = runner.lines(runner.tool(program).arg("--version"));
    let version = lines.map_err(failed)?.into_iter().next();
    let expected = source_version(tree).map(|version| version.to_string());
    match (version, expected) {
        (Some(version), Some(expected)) if version.starts_with(&expected) => Ok(version),
        (version, _) => Err(KernelError::Failed {
            step: CHECKING,
            problem: format!("it tells the version {:?}", version.unwrap_or_default()),
            log: runner.log().to_owned(),
        }),
    }
}

/// Linux's `make`, which gives the same kernel wherever and whenever it is run.
fn make(tree: &Path, runner: &Runner<'_>) -> Command {
    let mut make = runner.tool("make");
    make.arg("ARCH=um").current_dir(tree);
    make.env("KBUILD_BUILD_TIMESTAMP", "1970-01-01 00:00:00 UTC");
    make.env("KBUILD_BUILD_VERSION", "1");
    make.env("KBUILD_BUILD_USER", "lastbyte");
    make.env("KBUILD_BUILD_HOST", "lastbyte");
    make
}

/// What builds have done, as their log tells.
fn steps_in(log: &Path) -> u64 {
    let Ok(file) = File::open(log) else {
        return 0;
    };
    let lines = BufReader::new(file).split(b'\n').map_while(Result::ok);
    let steps = lines.filter(|line| is_step(&String::from_utf8_lossy(line)));
    steps.count() as u64
}

/// Kbuild tells each thing that it does in a line such as `  CC      fs/namei.o`.
fn is_step(line: &str) -> bool {
    let name = line.strip_prefix("  ");
    name.is_some_and(|name| name.starts_with(|char: char| char.is_ascii_uppercase()))
}

fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}
