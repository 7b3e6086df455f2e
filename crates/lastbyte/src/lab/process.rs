//! Other people's programs, in the namespaces of a block.

use std::fs::{self, File};
use std::io;
use std::net::{SocketAddr, SocketAddrV4, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::unistd::Pid;

use super::sys;

/// Of [`Priority::RealTime`].
const PRIORITY: i32 = 30;
const LOOK: Duration = Duration::from_millis(10);
/// Where distributions have programs, whatever PATH says.
const PLACES: [&str; 4] = ["/usr/sbin", "/usr/local/sbin", "/usr/bin", "/usr/local/bin"];

/// A program where distributions have it.
pub(super) fn installed(program: &str) -> Option<PathBuf> {
    let mut places = PLACES.iter().map(|place| Path::new(place).join(program));
    places.find(|path| path.exists())
}

/// Whether some socket of UDP has this address in the calling thread's namespace.
fn is_bound(address: SocketAddrV4) -> io::Result<bool> {
    let sockets = fs::read_to_string("/proc/thread-self/net/udp")?;
    // As the kernel writes it: in the order of the machine's bytes.
    let bits = u32::from_ne_bytes(address.ip().octets());
    let local = format!("{bits:08X}:{:04X}", address.port());
    let mut columns = sockets.lines().map(|line| line.split_whitespace().nth(1));
    Ok(columns.any(|column| column == Some(&local)))
}

/// A program that runs. It is ended when dropped, and when this thread ends.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    log: PathBuf,
}

/// When a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Priority {
    /// Below the engine's own threads, above all else: elsewhere it would have a machine of its
    /// own.
    RealTime,
    /// Like all else. Programs whose threads spin while they wait for each other would never let go
    /// of the machine otherwise.
    Usual,
}

/// Why there is none.
#[derive(Debug)]
pub(super) enum StartError {
    /// Its files can't be written.
    Write(io::Error),
    /// It ended, or was never there; the last line that it printed.
    Ended(String),
}

impl Process {
    /// Starts it in the calling thread's namespace. What it says for people is kept in `folder`,
    /// which is its own.
    pub(super) fn start(
        program: &str,
        mut command: Command,
        folder: &Path,
        priority: Priority,
    ) -> Result<Process, StartError> {
        let log = folder.join(format!("{program}.log"));
        let output = File::create(&log).map_err(StartError::Write)?;
        let priority = match priority {
            Priority::RealTime => Some(PRIORITY),
            Priority::Usual => None,
        };
        sys::serve_this_thread(&mut command, priority);
        let child = command
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(output)
            .spawn()
            .map_err(|error| StartError::Ended(error.to_string()))?;
        Ok(Process { child, log })
    }

    /// Waits until it listens there over TCP.
    pub(super) fn wait_for(
        &mut self,
        address: SocketAddr,
        patience: Duration,
    ) -> Result<(), StartError> {
        let listens = || Ok(TcpStream::connect_timeout(&address, patience).is_ok());
        self.wait_until(listens, patience)
    }

    /// Waits until it has a socket of UDP there.
    pub(super) fn wait_for_datagrams(
        &mut self,
        address: SocketAddrV4,
        patience: Duration,
    ) -> Result<(), StartError> {
        self.wait_until(|| is_bound(address).map_err(StartError::Write), patience)
    }

    fn wait_until(
        &mut self,
        listens: impl Fn() -> Result<bool, StartError>,
        patience: Duration,
    ) -> Result<(), StartError> {
        let begun = Instant::now();
        loop {
            if listens()? {
                return Ok(());
            }
            if self.has_ended() {
                return Err(StartError::Ended(self.last_line()));
            }
            if begun.elapsed() > patience {
                let line = self.last_line();
                let deaf = format!("it does not listen within {patience:?}: {line}");
                return Err(StartError::Ended(deaf));
            }
            thread::sleep(LOOK);
        }
    }

    /// Its number.
    pub(super) fn id(&self) -> Pid {
        Pid::from_raw(self.child.id() as i32)
    }

    /// Whether it runs no more.
    pub(super) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Whether it has done what it was to, once it has ended.
    pub(super) fn succeeded(&mut self) -> Option<bool> {
        match self.child.try_wait() {
            Ok(None) => None,
            Ok(Some(status)) => Some(status.success()),
            Err(_) => Some(false),
        }
    }

    /// The last line that it printed.
    pub(super) fn last_line(&self) -> String {
        let output = fs::read(&self.log).unwrap_or_default();
        let output = String::from_utf8_lossy(&output);
        let line = output.lines().rfind(|line| !line.trim().is_empty());
        line.unwrap_or("it said nothing").trim().to_owned()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        // The kernel spins in `wait` while one of its threads still leaves /proc. Virtual time
        // would stand still then, and with it what lets that thread run; time passes here only
        // after all threads are gone.
        thread::sleep(LOOK);
        let _ = self.child.wait();
    }
}
