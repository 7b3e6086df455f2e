//! Runs the tools of a build, one at a time.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use lastbyte_link::visible;
use nix::sys::signal::{Signal, killpg};
use nix::sys::statvfs::statvfs;
use nix::unistd::Pid;

use super::Size;

/// How often a tool is looked at.
const LOOK: Duration = Duration::from_millis(20);
/// How long a tool may take to end when it is asked to.
const GRACE: Duration = Duration::from_secs(10);
/// A disk with less is full: what tools say then differs, if they say anything.
const FULL: Size = Size(1_000_000);
const NO_SPACE: &str = "No space left on device";

/// What tools get of the environment, beside the search path. The rest could bend a build, as
/// `ARCH` or the `MAKEFLAGS` of a make that runs Lastbyte would.
const PASSED: [&str; 8] = [
    "HOME",
    "TMPDIR",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
];

/// Runs tools, and keeps all that they say in a log.
#[derive(Debug)]
pub(super) struct Runner<'a> {
    path: OsString,
    log: PathBuf,
    lock: &'a File,
    interrupt: &'a AtomicBool,
}

/// Why a tool did not do its work.
#[derive(Debug)]
pub(super) enum ToolError {
    /// The user asked for an end.
    Interrupted,
    /// The disk that the log is on is full.
    DiskFull,
    /// It failed; the line says why.
    Failed(String),
}

/// What becomes of a tool at an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AtInterrupt {
    Stop,
    /// It leaves the system in disorder when stopped.
    Finish,
}

impl<'a> Runner<'a> {
    /// Tools share the `lock`: killing Lastbyte does not end them, and until they have ended
    /// nobody else may work in their folder.
    pub(super) fn new(log: PathBuf, lock: &'a File, interrupt: &'a AtomicBool) -> Self {
        Self {
            path: env::var_os("PATH").unwrap_or_default(),
            log,
            lock,
            interrupt,
        }
    }

    pub(super) fn log(&self) -> &Path {
        &self.log
    }

    /// Whether there is a tool of this name.
    pub(super) fn has(&self, tool: &str) -> bool {
        env::split_paths(&self.path).any(|folder| {
            let metadata = folder.join(tool).metadata();
            metadata.is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
        })
    }

    /// A tool that is about to be run.
    pub(super) fn tool(&self, name: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(name);
        command.env_clear().env("PATH", &self.path);
        // Messages are read here, and are the same in the log of any user.
        command.env("LC_ALL", "C");
        for name in PASSED {
            if let Some(value) = env::var_os(name) {
                command.env(name, value);
            }
        }
        command
    }

    pub(super) fn run(&self, command: &mut Command) -> Result<(), ToolError> {
        self.run_with(command, AtInterrupt::Stop, |_| {})
    }

    /// The lines that a tool prints.
    pub(super) fn lines(&self, command: &mut Command) -> Result<Vec<String>, ToolError> {
        let mut lines = Vec::new();
        self.run_with(command, AtInterrupt::Stop, |line| {
            lines.push(line.to_owned())
        })?;
        Ok(lines)
    }

    /// Runs a tool to its end, and hands over each line when it is printed.
    pub(super) fn run_with(
        &self,
        command: &mut Command,
        at_interrupt: AtInterrupt,
        mut each: impl FnMut(&str),
    ) -> Result<(), ToolError> {
        let mut excerpt = Excerpt::default();
        let mut look = |line: &str| {
            excerpt.read(line);
            each(line);
        };
        let status = self.run_logged(command, at_interrupt, &mut look);
        let interrupted = self.interrupt.load(Ordering::Relaxed);
        match status {
            _ if interrupted => Err(ToolError::Interrupted),
            Ok(status) if status.success() => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::StorageFull => Err(ToolError::DiskFull),
            _ if excerpt.no_space || self.is_disk_full() => Err(ToolError::DiskFull),
            Ok(status) => Err(ToolError::Failed(excerpt.reason(status))),
            Err(error) => {
                let tool = command.get_program().display();
                Err(ToolError::Failed(format!("can't run {tool}: {error}")))
            }
        }
    }

    fn run_logged(
        &self,
        command: &mut Command,
        at_interrupt: AtInterrupt,
        each: &mut impl FnMut(&str),
    ) -> io::Result<ExitStatus> {
        let mut log = OpenOptions::new().append(true).open(&self.log)?;
        let arguments: Vec<_> = command.get_args().collect();
        let arguments = arguments.join(OsStr::new(" "));
        let program = command.get_program().display();
        writeln!(log, "$ {program} {}", arguments.display())?;
        let mut output = Tail::at_end_of(&self.log)?;
        let mut child = command
            .stdin(self.lock.try_clone()?)
            .stdout(log.try_clone()?)
            .stderr(log)
            // So that a Ctrl-C is Lastbyte's alone, and a tool ends with all that it started.
            .process_group(0)
            .spawn()?;
        let mut stopping: Option<Instant> = None;
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if at_interrupt == AtInterrupt::Stop && self.interrupt.load(Ordering::Relaxed) {
                match stopping {
                    None => send(&child, Signal::SIGTERM),
                    Some(stopping) if stopping.elapsed() > GRACE => send(&child, Signal::SIGKILL),
                    Some(_) => {}
                }
                stopping.get_or_insert_with(Instant::now);
            }
            output.read(each)?;
            thread::sleep(LOOK);
        };
        output.read(each)?;
        output.read_rest(each);
        Ok(status)
    }

    fn is_disk_full(&self) -> bool {
        let folder = self.log.parent().unwrap_or(Path::new("/"));
        free(folder).is_ok_and(|free| free < FULL)
    }
}

/// The room on the disk of a folder, for this user.
pub(super) fn free(folder: &Path) -> io::Result<Size> {
    let disk = statvfs(folder)?;
    Ok(Size(disk.blocks_available() * disk.fragment_size()))
}

/// To a tool and all that it started.
fn send(child: &Child, signal: Signal) {
    // It may have ended just now.
    let _ = killpg(Pid::from_raw(child.id() as i32), signal);
}

/// What is appended to a file.
struct Tail {
    file: File,
    partial: Vec<u8>,
}

impl Tail {
    fn at_end_of(path: &Path) -> io::Result<Self> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::End(0))?;
        Ok(Self {
            file,
            partial: Vec::new(),
        })
    }

    fn read(&mut self, each: &mut impl FnMut(&str)) -> io::Result<()> {
        self.file.read_to_end(&mut self.partial)?;
        let whole = self.partial.iter().rposition(|byte| *byte == b'\n');
        if let Some(end) = whole {
            let lines: Vec<u8> = self.partial.drain(..=end).collect();
            String::from_utf8_lossy(&lines).lines().for_each(each);
        }
        Ok(())
    }

    fn read_rest(self, each: &mut impl FnMut(&str)) {
        String::from_utf8_lossy(&self.partial)
            .lines()
            .for_each(each);
    }
}

/// The line of a tool's output that says best why it failed.
#[derive(Default)]
struct Excerpt {
    first_error: Option<String>,
    last: Option<String>,
    no_space: bool,
}

impl Excerpt {
    fn read(&mut self, line: &str) {
        // Kbuild tells what it does in lines such as `  CC      lib/errname.o`.
        let line = match line.trim_end() {
            "" => return,
            line if line.starts_with("  ") => return,
            line => line,
        };
        self.no_space |= line.contains(NO_SPACE);
        let lower = line.to_lowercase();
        let words = ["error", "fatal", "unexpected", "cannot", "failed", "e: "];
        let tells = words.iter().any(|word| lower.contains(word)) && !lower.contains("warning:");
        if tells && self.first_error.is_none() {
            self.first_error = Some(printable(line));
        }
        self.last = Some(printable(line));
    }

    fn reason(self, status: ExitStatus) -> String {
        let line = self.first_error.or(self.last);
        line.unwrap_or_else(|| format!("it ended with {status}"))
    }
}

/// Something that fits a line of ours, whatever it was.
fn printable(line: &str) -> String {
    visible(line).chars().take(200).collect()
}
