//! Programs of others. None outlives its test.

use std::env;
use std::fs::read_to_string;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::PATIENCE;

/// Where programs are that no shell may look for: those of Debian for the administrator.
const MORE_PLACES: &str = "/usr/local/sbin:/usr/sbin:/sbin";

/// A program of the system's.
pub(crate) fn tool(name: &str) -> Command {
    let path = env::var("PATH").unwrap_or_default();
    let place = path
        .split(':')
        .chain(MORE_PLACES.split(':'))
        .map(|folder| Path::new(folder).join(name))
        .find(|place| place.is_file())
        .unwrap_or_else(|| missing(&format!("the program {name}")));
    Command::new(place)
}

/// A program that `scripts/interop` keeps outside the repository.
pub(crate) fn installed(name: &str) -> Command {
    Command::new(installed_at("bin").join(name))
}

/// A file or folder that `scripts/interop` keeps outside the repository.
pub(crate) fn installed_at(name: &str) -> PathBuf {
    let folder = |variable| env::var_os(variable).filter(|value| !value.is_empty());
    let home = folder("LASTBYTE_PEERS").map(PathBuf::from).or_else(|| {
        let cache = folder("XDG_CACHE_HOME").map(PathBuf::from);
        let cache = cache.or_else(|| Some(env::home_dir()?.join(".cache")))?;
        Some(cache.join("lastbyte/tools/peers"))
    });
    let wanted = include_str!("../requirements.txt");
    home.filter(|home| read_to_string(home.join("requirements.txt")).is_ok_and(|is| is == wanted))
        .unwrap_or_else(|| missing("each peer of requirements.txt, in that version"))
        .join(name)
}

/// Tests that need a peer fail without it: skipped, they would look as if all was well.
fn missing(what: &str) -> ! {
    panic!("this test needs {what}: run scripts/interop to install it")
}

/// A running program.
pub(crate) struct Program {
    child: Child,
    lines: Receiver<String>,
    errors: Receiver<String>,
}

/// How a program ended, and what it said.
#[derive(Debug)]
pub(crate) struct Ended {
    status: ExitStatus,
    output: String,
    errors: String,
}

impl Program {
    pub(crate) fn start(command: &mut Command) -> Program {
        // A group of its own, so that what it starts ends with it.
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let mut child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        Program {
            lines: lines(child.stdout.take().unwrap()),
            errors: lines(child.stderr.take().unwrap()),
            child,
        }
    }

    /// What follows `start` on the next line of the output that begins with it.
    pub(crate) fn line_after(&mut self, start: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left);
            let line = line.unwrap_or_else(|_| panic!("no line that begins with {start:?}"));
            if let Some(rest) = line.strip_prefix(start) {
                return rest.to_owned();
            }
        }
    }

    /// Says this on its standard input, which must be piped.
    pub(crate) fn say(&mut self, text: &str) {
        let input = self.child.stdin.as_mut().unwrap();
        input.write_all(text.as_bytes()).unwrap();
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Ended {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return Ended {
                    status,
                    output: rest(&self.lines),
                    errors: rest(&self.errors),
                };
            }
            assert!(Instant::now() < deadline, "it does not end");
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Ended {
    /// What it said; it must have succeeded.
    pub(crate) fn output(&self) -> &str {
        assert!(self.status.success(), "{self:#?}");
        &self.output
    }

    /// Fails unless it succeeded and said this.
    pub(crate) fn expect(&self, output: &str) {
        assert!(self.output().contains(output), "{self:#?}");
    }

    /// Fails unless it failed for this reason.
    pub(crate) fn expect_failure(&self, reason: &str) {
        assert!(!self.status.success(), "{self:#?}");
        self.expect_complaint(reason);
    }

    /// Fails unless it said this on its standard error.
    pub(crate) fn expect_complaint(&self, complaint: &str) {
        assert!(self.errors.contains(complaint), "{self:#?}");
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // After its end, its id could be somebody else's.
        if matches!(self.child.try_wait(), Ok(None)) {
            let group = format!("-{}", self.child.id());
            let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
            let _ = self.child.wait();
        }
        if thread::panicking() {
            eprintln!(
                "what the peer said:\n{}{}",
                rest(&self.lines),
                rest(&self.errors)
            );
        }
    }
}

/// The lines of a pipe, read as they come so that nobody waits for a full pipe.
fn lines(pipe: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for line in BufReader::new(pipe).split(b'\n') {
            let Ok(line) = line else { break };
            let line = String::from_utf8_lossy(&line).into_owned();
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    receiver
}

/// The lines that are left of a program that has ended.
fn rest(lines: &Receiver<String>) -> String {
    // What it started may hold on to the pipe.
    let next = || lines.recv_timeout(Duration::from_secs(1)).ok();
    std::iter::from_fn(next).fold(String::new(), |all, line| all + &line + "\n")
}
