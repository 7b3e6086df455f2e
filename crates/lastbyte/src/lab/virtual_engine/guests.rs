//! The guests of the virtual engine: how one is started, heard, and kept for the next block.
//!
//! A boot costs as much as some twenty connections. So a guest whose block is done waits, stopped,
//! for another that begins as its own did: with the same arm, seed, time of day and memory
//! (`guest::fork_server`).

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::symlink;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use lastbyte_link::Bytes;
use lastbyte_sizes::Resumption;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

use crate::kernel::Kernel;
use crate::lab::guest::fork_server::TURN;
use crate::lab::interception::Interception;
use crate::lab::lock::lock;
use crate::lab::scratch::Scratch;
use crate::lab::shortcuts::Shortcuts;
use crate::lab::{SHARED_MEMORY, boot, cores, guest, machine};
use crate::study::{Arm, PageSource, Profile};

/// How often the engine looks whether it is interrupted.
const LOOK: Duration = Duration::from_millis(50);
/// The guest's allocator gives nothing back to its kernel. Each page that it gets again would be
/// a fault, and a fault costs the guest several system calls of the host.
const ALLOCATOR: &str = "GLIBC_TUNABLES=glibc.malloc.mmap_threshold=33554432\
    :glibc.malloc.trim_threshold=1073741824:glibc.malloc.top_pad=67108864";
/// Where the links are that a guest starts from.
const PLACES: &str = "/tmp";
const INIT_LINK: &str = "init";
const JOB_LINK: &str = "job";
/// Lines of the console that are kept to tell why a guest died.
const RETAINED_LINES: usize = 100;
/// How many guests wait at most. Each has some 40 MB of memory.
const IDLE: usize = 16;
/// A guest that has waited while so many blocks were measured makes room for another.
const PASSED_OVER: u64 = 64;
/// What the machine has left where guests wait.
const SPARE: Bytes = Bytes(1 << 30);

/// How a guest is started.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Boot {
    /// What it prepares before it measures: an arm, with the ways that its connections may begin.
    pub(super) arm: Option<(Arm, Vec<Resumption>)>,
    /// The time of day.
    pub(super) wall_clock: Duration,
    /// Of all its randomness.
    pub(super) seed: u64,
    /// What it may use.
    pub(super) memory: Bytes,
    pub(super) counter: Counter,
    /// What other people's programs take, if they take time.
    pub(super) computing: Option<Profile>,
}

/// Whose counter the programs of a guest read (`rdtsc`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counter {
    /// The processor's. AWS-LC, of s2n-tls, reads it thousands of times as it begins, for
    /// randomness, and nothing else here does.
    Host,
    /// One of virtual time, each read of which stops the program: browsers note it, and allocate by
    /// what they have noted. OpenSSL mixes it into its random numbers, of which Node.js seeds its
    /// hash tables, and these decide which pages it touches.
    Guest,
}

/// How many blocks a guest measures. No row tells which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuestTerm {
    /// One.
    Block,
    /// As many as begin alike.
    Blocks,
}

/// What became of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Done,
    Failed(String),
    Interrupted,
}

impl Counter {
    /// The one of a guest in which other people's programs run, or our own ends only.
    pub(super) fn of(arm: &Arm, page: Option<&PageSource>) -> Counter {
        if page.is_some() || arm.has_foreign_ends() {
            Counter::Guest
        } else {
            Counter::Host
        }
    }

    /// What tells the kernel of it.
    fn parameter(self) -> Option<&'static str> {
        match self {
            Counter::Host => None,
            Counter::Guest => Some("lastbyte_counter"),
        }
    }
}

/// What tells the kernel how much time computing takes (`kernel/patches/0010-computing.patch`).
fn computing_parameter(profile: Profile) -> String {
    let costs = [profile.browser, profile.server].into_iter();
    let costs = costs.flat_map(|costs| costs.all().map(|cost| cost.as_nanos()));
    let spread = [profile.run.into(), profile.spread.into()];
    let numbers: Vec<String> = (spread.into_iter())
        .chain(costs)
        .map(|number: u128| number.to_string())
        .collect();
    format!("lastbyte_computing={}", numbers.join(","))
}

/// All guests of an engine. They end with it.
pub(super) struct Guests {
    /// `lastbyte` itself, which is their init.
    program: PathBuf,
    kernel: Kernel,
    interception: Interception,
    starter: Starter,
    waiting: Mutex<Waiting>,
}

/// Those that wait for a block.
#[derive(Default)]
struct Waiting {
    idle: Vec<Idle>,
    /// How many blocks have asked for one.
    asked: u64,
}

struct Idle {
    boot: Boot,
    guest: Guest,
    /// When it had its last block, by [`Waiting::asked`].
    since: u64,
}

/// A block for a guest.
pub(super) struct Order<'a> {
    pub(super) boot: Boot,
    pub(super) term: GuestTerm,
    /// The processor that it stays on.
    pub(super) cpu: Option<usize>,
    pub(super) shortcuts: Shortcuts,
    /// The job's folder.
    pub(super) folder: &'a Path,
    pub(super) interrupt: &'a AtomicBool,
    /// How long it may give no sign of life.
    pub(super) patience: Duration,
}

impl Guests {
    pub(super) fn new(program: PathBuf, kernel: Kernel, interception: Interception) -> Self {
        Self {
            program,
            kernel,
            interception,
            starter: Starter::new(),
            waiting: Mutex::default(),
        }
    }

    /// Has a guest measure a block: one that waits, or a new one.
    ///
    /// # Errors
    ///
    /// When none can be started.
    pub(super) fn measure(&self, order: &Order<'_>) -> io::Result<Fate> {
        let idle = lock(&self.waiting).take(order);
        if let Some(guest) = idle
            && let Some(fate) = self.measure_in_turn(guest, order)?
        {
            return Ok(fate);
        }
        self.attend(self.start(order)?, order)
    }

    /// Has a guest that waited measure a block; none if it is not there any more.
    fn measure_in_turn(&self, mut guest: Guest, order: &Order<'_>) -> io::Result<Option<Fate>> {
        if !guest.is_alive()? {
            return Ok(None);
        }
        if let Some(cpu) = order.cpu {
            cores::keep_on(guest.id(), cpu);
        }
        guest.take_turn(order.folder)?;
        self.attend(guest, order).map(Some)
    }

    /// Listens to a guest, and keeps it if it can measure another block.
    fn attend(&self, mut guest: Guest, order: &Order<'_>) -> io::Result<Fate> {
        let fate = guest.attend(order)?;
        if fate == Fate::Done && order.term == GuestTerm::Blocks && guest.stop().is_ok() {
            let ended = lock(&self.waiting).keep(order.boot.clone(), guest);
            // Without the lock: it takes a while.
            drop(ended);
        }
        Ok(fate)
    }

    /// Starts a guest, which sees paths of one length, wherever they lead.
    fn start(&self, order: &Order<'_>) -> io::Result<Guest> {
        let place = Scratch::new_in(Path::new(PLACES))?;
        symlink(&self.program, place.path().join(INIT_LINK))?;
        symlink(order.folder, place.path().join(JOB_LINK))?;
        if order.term == GuestTerm::Blocks {
            symlink("0", place.path().join(TURN))?;
        }
        let child = self.starter.start(self.command(order, place.path())?)?;
        Ok(Guest::new(child, place))
    }

    fn command(&self, order: &Order<'_>, place: &Path) -> io::Result<Command> {
        let Boot {
            arm: _,
            wall_clock,
            seed,
            memory,
            counter,
            computing,
        } = order.boot;
        let folder = boot::memory_folder(memory).map_err(io::Error::other)?;
        let mut command = boot::command(
            &self.program,
            &self.kernel.path,
            &folder.path,
            order.cpu,
            order.shortcuts,
        );
        command
            .arg(format!("mem={}", memory.0))
            .args(["rootfstype=hostfs", "rootflags=/", "ro", "quiet"])
            .args(["con=null", "con0=null,fd:1", "panic=-1"])
            .arg("time-travel=inf-cpu")
            .arg(format!("time-travel-start={}", wall_clock.as_nanos()))
            .arg(format!("lastbyte_seed={seed}"))
            .args(self.interception.parameter(&self.kernel.info))
            .args(counter.parameter())
            .args(computing.map(computing_parameter))
            .arg(ALLOCATOR)
            .arg(parameter("init=", &place.join(INIT_LINK)))
            .args(["--", guest::COMMAND])
            .arg(place.join(JOB_LINK))
            // The kernel keeps a socket and its process id below.
            .env("HOME", place)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Of its own, so that all of its processes can be ended at once.
            .process_group(0);
        Ok(command)
    }
}

/// A parameter of the kernel's command line.
fn parameter(name: &str, path: &Path) -> OsString {
    [OsStr::new(name), path.as_os_str()].into_iter().collect()
}

impl Waiting {
    /// A guest that began as the block is to begin.
    fn take(&mut self, order: &Order<'_>) -> Option<Guest> {
        if order.term == GuestTerm::Block {
            return None;
        }
        self.asked += 1;
        let alike = (self.idle.iter()).position(|idle| idle.boot == order.boot)?;
        Some(self.idle.swap_remove(alike).guest)
    }

    /// Keeps a guest, if there is room for it, and gives the one that has to go.
    fn keep(&mut self, boot: Boot, guest: Guest) -> Option<Guest> {
        if machine::available_memory().is_some_and(|left| left < SPARE) {
            return Some(guest);
        }
        let mut gone = None;
        if self.idle.len() >= IDLE {
            // Where more begin differently than can wait, some of them do each time.
            let oldest = (0..self.idle.len()).min_by_key(|place| self.idle[*place].since);
            let passed = oldest
                .filter(|place| self.asked.saturating_sub(self.idle[*place].since) > PASSED_OVER);
            match passed {
                Some(place) => gone = Some(self.idle.swap_remove(place).guest),
                None => return Some(guest),
            }
        }
        self.idle.push(Idle {
            boot,
            guest,
            since: self.asked,
        });
        gone
    }
}

/// A thread that starts guests, as they end with the thread that has started them.
struct Starter {
    commands: Sender<(Command, Sender<io::Result<Child>>)>,
}

impl Starter {
    fn new() -> Self {
        let (commands, requests) = mpsc::channel::<(Command, Sender<io::Result<Child>>)>();
        thread::spawn(move || {
            for (mut command, reply) in requests {
                // Who asked waits for it.
                let _ = reply.send(command.spawn());
            }
        });
        Self { commands }
    }

    fn start(&self, command: Command) -> io::Result<Child> {
        let ended = || io::Error::other("the thread that starts guests has ended");
        let (reply, started) = mpsc::channel();
        self.commands.send((command, reply)).map_err(|_| ended())?;
        started.recv().map_err(|_| ended())?
    }
}

/// A guest, which ends when it is dropped.
struct Guest {
    child: Child,
    /// What it writes.
    lines: Receiver<String>,
    /// A folder whose path is as long as any other's and has no blanks, with links to its init and
    /// to the job's folder.
    place: Scratch,
    /// Which block it measures.
    turn: u32,
}

impl Guest {
    fn new(mut child: Child, place: Scratch) -> Self {
        let (sender, lines) = mpsc::channel();
        let outputs = [
            (child.stdout.take()).map(|out| Box::new(out) as Box<dyn Read + Send>),
            (child.stderr.take()).map(|out| Box::new(out) as Box<dyn Read + Send>),
        ];
        for output in outputs.into_iter().flatten() {
            let sender = sender.clone();
            thread::spawn(move || {
                let lines = BufReader::new(output).split(b'\n');
                for line in lines.map_while(Result::ok) {
                    let line = String::from_utf8_lossy(&line).into_owned();
                    if sender.send(line).is_err() {
                        break;
                    }
                }
            });
        }
        Self {
            child,
            lines,
            place,
            turn: 0,
        }
    }

    fn id(&self) -> Pid {
        // Linux has no larger ones.
        Pid::from_raw(i32::try_from(self.child.id()).unwrap_or(i32::MAX))
    }

    fn is_alive(&mut self) -> io::Result<bool> {
        Ok(self.child.try_wait()?.is_none())
    }

    /// Lets it measure the block in this folder.
    fn take_turn(&mut self, folder: &Path) -> io::Result<()> {
        self.turn += 1;
        replace_link(self.place.path(), JOB_LINK, folder.as_os_str())?;
        replace_link(self.place.path(), TURN, OsStr::new(&self.turn.to_string()))?;
        Ok(kill(self.id(), Signal::SIGCONT)?)
    }

    /// Has it wait, and compute nothing.
    fn stop(&self) -> io::Result<()> {
        Ok(kill(self.id(), Signal::SIGSTOP)?)
    }

    /// Listens to it until its block is done and it can measure another one, or until it ends.
    fn attend(&mut self, order: &Order<'_>) -> io::Result<Fate> {
        let mut console = VecDeque::new();
        let mut reported = None;
        let mut sign = Instant::now();
        let cut_short = loop {
            if order.interrupt.load(Ordering::Relaxed) {
                break Some(Fate::Interrupted);
            }
            match self.lines.recv_timeout(LOOK) {
                Ok(line) => {
                    sign = Instant::now();
                    let word = line.trim().strip_prefix(guest::PREFIX).map(str::trim);
                    match word.map(|word| word.split_once(' ').unwrap_or((word, ""))) {
                        Some((guest::ALIVE, _)) => {}
                        Some((guest::DONE, _)) => reported = Some(Fate::Done),
                        Some((guest::FAILED, reason)) => {
                            reported = Some(Fate::Failed(reason.to_owned()));
                        }
                        Some((guest::READY, _)) if reported == Some(Fate::Done) => {
                            return Ok(Fate::Done);
                        }
                        // Nothing is to follow a failure in the same guest.
                        Some((guest::READY, _)) => self.end(),
                        _ => {
                            console.push_back(line);
                            if console.len() > RETAINED_LINES {
                                console.pop_front();
                            }
                        }
                    }
                }
                Err(RecvTimeoutError::Timeout) if sign.elapsed() > order.patience => {
                    let reason = format!(
                        "its guest gave no sign of life for {:.0?}: it hangs, or the machine is overloaded",
                        order.patience
                    );
                    break Some(Fate::Failed(reason));
                }
                // A process of its own may hold its outputs: one that it traced when it was killed.
                Err(RecvTimeoutError::Timeout) if !self.is_alive()? => self.end(),
                Err(RecvTimeoutError::Timeout) => {}
                // Its outputs are closed: it has ended.
                Err(RecvTimeoutError::Disconnected) => break None,
            }
        };
        if cut_short.is_some() {
            self.end();
        }
        let status = self.child.wait()?;
        let console = console.make_contiguous();
        Ok(cut_short
            .or(reported)
            .unwrap_or_else(|| Fate::Failed(death(status, console, order.boot.memory))))
    }

    /// Ends all of its processes.
    fn end(&self) {
        // Nothing is left to be ended when this fails.
        let _ = killpg(self.id(), Signal::SIGKILL);
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            self.end();
            let _ = self.child.wait();
        }
    }
}

/// Has a link of a folder lead elsewhere, in one step.
fn replace_link(folder: &Path, name: &str, target: &OsStr) -> io::Result<()> {
    let new = folder.join("next");
    symlink(target, &new)?;
    fs::rename(new, folder.join(name))
}

/// Why a guest died without a word.
pub(super) fn death(status: ExitStatus, console: &[String], memory: Bytes) -> String {
    let line_with = |what: &str| console.iter().find(|line| line.contains(what));
    // The kernel says the first, the standard library the second.
    if line_with("Out of memory")
        .or(line_with("memory allocation of"))
        .is_some()
    {
        return "its guest ran out of memory".to_owned();
    }
    // SIGBUS: a page of the guest's memory, which is a file, can't be had.
    if status.signal() == Some(7) || line_with("Bus error").is_some() {
        return format!(
            "its guest could not get memory: free some, or make {SHARED_MEMORY} larger (it uses up to {} MB for each \
             processor)",
            memory.0 >> 20
        );
    }
    if let Some(panic) = line_with("panicked at") {
        return format!(
            "Lastbyte panicked in its guest, please report it: {}",
            panic.trim()
        );
    }
    if let Some(panic) = line_with("Kernel panic") {
        let panic = panic
            .split_once("Kernel panic")
            .map_or("", |(_, rest)| rest);
        return format!(
            "its guest kernel panicked{}",
            panic.replace(" - not syncing", "")
        );
    }
    // What the kernel says last of all tells nothing.
    let last = (console.iter().rev()).find(|line| !line.contains("reboot: Power down"));
    match (status.signal(), last) {
        // SIGKILL, SIGXFSZ and SIGSYS.
        (Some(9), _) => format!(
            "its guest was ended by signal 9, as the kernel does where a cgroup or the machine has no memory left: allow {} MB for \
             each processor",
            memory.0 >> 20
        ),
        (Some(25), _) => {
            "its guest was ended by signal 25: its memory is a file, and larger ones are not allowed: raise ulimit -f".to_owned()
        }
        (Some(31), _) => {
            "its guest was ended by signal 31: a filter of system calls kills who makes some (seccomp): \
             have it refuse them, with SystemCallErrorNumber=EPERM in a service of systemd"
                .to_owned()
        }
        (Some(signal), _) => format!("its guest was ended by signal {signal}"),
        (None, Some(line)) => format!("its guest ended early: {}", line.trim()),
        (None, None) => format!("its guest ended early, with {status}"),
    }
}
