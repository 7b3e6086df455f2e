//! A line for each connection that has ended.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::unistd::{AccessFlags, access};
use serde_json::{Map, Value};

use super::log::Log;
use super::relay::Carried;
use super::time::now;

/// How many lines may wait for the disk. What comes when so many wait is lost, and counted.
const WAITING: usize = 10_000;

const WHAT: &str = "writing the access log";

/// Where the lines go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessLogTo {
    /// The standard output.
    Stdout,
    /// The end of a file.
    File(PathBuf),
}

impl fmt::Display for AccessLogTo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AccessLogTo::Stdout => f.write_str("to the standard output"),
            AccessLogTo::File(path) => write!(f, "\"{}\"", path.display()),
        }
    }
}

/// A thread that writes lines, so that nobody else waits for the disk.
#[derive(Debug)]
pub(super) struct AccessLog {
    sender: Option<SyncSender<Message>>,
    /// What writes, until it does.
    writer: Mutex<Option<Writer>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    log: OnceLock<Arc<Log>>,
}

enum Message {
    Line(String),
    Reopen,
}

struct Writer {
    to: AccessLogTo,
    output: Box<dyn Write + Send>,
    receiver: Receiver<Message>,
}

impl AccessLog {
    /// Opens it.
    ///
    /// # Errors
    ///
    /// If that can't be done.
    pub(super) fn open(to: AccessLogTo) -> io::Result<AccessLog> {
        let output = to.open()?;
        let (sender, receiver) = sync_channel(WAITING);
        let writer = Writer {
            to,
            output,
            receiver,
        };
        Ok(AccessLog {
            sender: Some(sender),
            writer: Mutex::new(Some(writer)),
            thread: Mutex::default(),
            log: OnceLock::new(),
        })
    }

    /// Begins to write, and says what goes wrong.
    pub(super) fn start(&self, log: &Arc<Log>) {
        let Some(writer) = lock(&self.writer).take() else {
            return;
        };
        // There was none before.
        let _ = self.log.set(Arc::clone(log));
        let tells = Arc::clone(log);
        let thread = thread::Builder::new().name("access log".to_owned());
        match thread.spawn(move || writer.write(&tells)) {
            Ok(thread) => *lock(&self.thread) = Some(thread),
            Err(error) => log.failed(WHAT, None, &error.to_string()),
        }
    }

    /// Opens the file again, which may have been moved.
    pub(super) fn reopen(&self) {
        self.send(Message::Reopen);
    }

    fn send(&self, message: Message) {
        let sent = self.sender.as_ref().map(|sender| sender.try_send(message));
        if let (Some(Err(TrySendError::Full(_))), Some(log)) = (sent, self.log.get()) {
            log.failed(
                WHAT,
                None,
                "it is not written as fast as connections end: lines are lost",
            );
        }
    }
}

impl Drop for AccessLog {
    fn drop(&mut self) {
        self.sender = None;
        if let Some(thread) = lock(&self.thread).take() {
            // All lines are written then.
            let _ = thread.join();
        }
    }
}

impl AccessLogTo {
    /// The one of these files that it is, whatever it is called: lines would be written behind what
    /// is in it.
    pub(super) fn is_one_of<'a>(&self, files: impl Iterator<Item = &'a Path>) -> Option<&'a Path> {
        let AccessLogTo::File(path) = self else {
            return None;
        };
        let mut files = files;
        files.find(|file| lastbyte_files::is_same(path, file))
    }

    /// Whether whoever asks can open it, without making it.
    ///
    /// # Errors
    ///
    /// Why not.
    pub(super) fn check(&self) -> io::Result<()> {
        let AccessLogTo::File(path) = self else {
            return Ok(());
        };
        match OpenOptions::new().append(true).open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let folder = path.parent().filter(|folder| *folder != Path::new(""));
                let folder = folder.unwrap_or(Path::new("."));
                Ok(access(folder, AccessFlags::W_OK | AccessFlags::X_OK)?)
            }
            opened => opened.map(drop),
        }
    }

    fn open(&self) -> io::Result<Box<dyn Write + Send>> {
        Ok(match self {
            AccessLogTo::Stdout => Box::new(io::stdout()),
            AccessLogTo::File(path) => Box::new(append(path)?),
        })
    }
}

fn append(path: &PathBuf) -> io::Result<File> {
    // Addresses and names of clients are not for all to read.
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(0o640).open(path)
}

impl Writer {
    /// Writes all that comes, as much at a time as there is.
    fn write(mut self, log: &Log) {
        /// What is written at a time, at least when there is more.
        const ENOUGH: usize = 1 << 16;
        let tell = |done: io::Result<()>| match done {
            Ok(()) => log.succeeded(WHAT),
            Err(error) => log.failed(WHAT, None, &error.to_string()),
        };
        let mut lines = String::new();
        while let Ok(message) = self.receiver.recv() {
            let mut message = Some(message);
            let reopen = loop {
                match message {
                    Some(Message::Line(line)) => {
                        lines.push_str(&line);
                        lines.push('\n');
                    }
                    Some(Message::Reopen) => break true,
                    None => break false,
                }
                message = if lines.len() < ENOUGH {
                    self.receiver.try_recv().ok()
                } else {
                    None
                };
            };
            if !lines.is_empty() {
                let written = self.output.write_all(lines.as_bytes());
                tell(written.and_then(|()| self.output.flush()));
                lines.clear();
            }
            if reopen {
                match self.to.open() {
                    Ok(opened) => self.output = opened,
                    // The one that is open goes on.
                    Err(error) => tell(Err(error)),
                }
            }
        }
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Writer").field(&self.to).finish()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A connection's line, which is written when it is dropped.
#[derive(Debug)]
pub(super) struct Entry {
    log: Option<Arc<AccessLog>>,
    time: String,
    start: Instant,
    pub(super) client: SocketAddr,
    /// The name that the client asked for, whatever became of the handshake.
    pub(super) requested_name: Option<String>,
    pub(super) session: Option<Session>,
    pub(super) carried: Carried,
    /// In a word.
    pub(super) end: &'static str,
    /// Why it failed.
    pub(super) reason: Option<String>,
}

/// What a handshake came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Session {
    /// What it took, waiting included.
    pub(super) took: Duration,
    /// The name that the client asked for.
    pub(super) name: Option<String>,
    /// As OpenSSL names it.
    pub(super) group: Option<String>,
    /// What is spoken inside (ALPN).
    pub(super) protocol: Option<String>,
    /// What of the chain came from DNS.
    pub(super) delivery: &'static str,
    pub(super) bytes_omitted: usize,
    pub(super) round_trips_saved: u32,
}

impl Entry {
    pub(super) fn new(log: Option<Arc<AccessLog>>, client: SocketAddr) -> Entry {
        Entry {
            time: match log {
                Some(_) => now(),
                None => String::new(),
            },
            log,
            start: Instant::now(),
            client,
            requested_name: None,
            session: None,
            carried: Carried::default(),
            // Unless it ends by itself.
            end: "cut",
            reason: None,
        }
    }

    pub(super) fn start(&self) -> Instant {
        self.start
    }

    fn line(&self) -> String {
        let session = self.session.as_ref();
        let of = |get: fn(&Session) -> Value| session.map_or(Value::Null, get);
        let fields = [
            ("time", self.time.clone().into()),
            ("client", canonical(self.client).to_string().into()),
            (
                "name",
                match session {
                    Some(session) => session.name.clone().into(),
                    None => self.requested_name.clone().into(),
                },
            ),
            ("group", of(|session| session.group.clone().into())),
            ("protocol", of(|session| session.protocol.clone().into())),
            ("delivery", of(|session| session.delivery.into())),
            (
                "bytes_sent",
                self.carried.to_client.load(Ordering::Relaxed).into(),
            ),
            (
                "bytes_received",
                self.carried.to_backend.load(Ordering::Relaxed).into(),
            ),
            ("bytes_omitted", of(|session| session.bytes_omitted.into())),
            (
                "round_trips_saved",
                of(|session| session.round_trips_saved.into()),
            ),
            ("handshake_s", of(|session| seconds(session.took))),
            ("duration_s", seconds(self.start.elapsed())),
            ("end", self.end.into()),
            ("reason", self.reason.clone().into()),
        ];
        let fields = fields.map(|(name, value)| (name.to_owned(), value));
        Value::from(Map::from_iter(fields)).to_string()
    }
}

/// As IPv4 where it is that, although the socket is one of IPv6.
fn canonical(client: SocketAddr) -> SocketAddr {
    match client.ip().to_canonical() {
        IpAddr::V4(address) => (address, client.port()).into(),
        IpAddr::V6(_) => client,
    }
}

/// To the microsecond.
fn seconds(time: Duration) -> Value {
    const MICROSECONDS: f64 = 1e6;
    ((time.as_secs_f64() * MICROSECONDS).round() / MICROSECONDS).into()
}

impl Drop for Entry {
    fn drop(&mut self) {
        if let Some(log) = &self.log {
            log.send(Message::Line(self.line()));
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::sync::Arc;

    use serde_json::Value;
    use tempfile::TempDir;

    use super::super::log::{Log, LogFormat};
    use super::{AccessLog, AccessLogTo, Entry};

    #[test]
    fn clients_of_ipv4_are_told_as_such() {
        for (client, told) in [
            ("[::ffff:127.0.0.1]:7", "127.0.0.1:7"),
            ("192.0.2.1:7", "192.0.2.1:7"),
            ("[2001:db8::1]:7", "[2001:db8::1]:7"),
        ] {
            let entry = Entry::new(None, client.parse().unwrap());
            let line: Value = serde_json::from_str(&entry.line()).unwrap();
            assert_eq!(line["client"], told);
        }
    }

    #[test]
    fn not_everybody_reads_who_the_clients_are() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("access.log");
        drop(AccessLog::open(AccessLogTo::File(path.clone())).unwrap());
        let mode = path.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o007, 0, "{mode:o}");
    }

    #[test]
    fn a_file_that_was_moved_is_opened_again() {
        let folder = TempDir::new().unwrap();
        let [path, old] = ["access.log", "access.log.1"].map(|name| folder.path().join(name));
        let log = Arc::new(AccessLog::open(AccessLogTo::File(path.clone())).unwrap());
        let tells = Log::new(|_: &str| {}, LogFormat::Text, Arc::default());
        log.start(&Arc::new(tells));
        let entry = |end| {
            let mut entry = Entry::new(Some(Arc::clone(&log)), "192.0.2.1:7".parse().unwrap());
            entry.end = end;
        };
        entry("first");
        while fs::read(&path).unwrap().is_empty() {
            std::thread::yield_now();
        }
        fs::rename(&path, &old).unwrap();
        entry("second");
        log.reopen();
        entry("third");
        drop(log);
        let ends = |path| {
            let text = fs::read_to_string(path).unwrap();
            let lines = text
                .lines()
                .map(|line| serde_json::from_str::<Value>(line).unwrap());
            lines.map(|line| line["end"].clone()).collect::<Vec<_>>()
        };
        assert_eq!(ends(&old), ["first", "second"]);
        assert_eq!(ends(&path), ["third"]);
    }
}
