//! A Chromium on this machine, and a server for a site: sockets, clock and processes, which the
//! crate has none of.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use lastbyte_page::cdp::{Browser, Failure, Load, PREFERENCES, SWITCHES, Visit};
use lastbyte_page::{Content, Site};

/// A Chromium with a profile of its own.
pub(crate) struct Chromium {
    child: Child,
    pipe: ChildStdin,
    read: Receiver<Vec<u8>>,
    began: Instant,
    browser: Browser,
    /// All that it said.
    #[allow(dead_code)]
    pub(crate) said: Vec<u8>,
    _profile: tempfile::TempDir,
}

impl Chromium {
    /// Starts it, with switches besides the usual ones.
    pub(crate) fn start(more: &[&str]) -> Chromium {
        let profile = tempfile::tempdir().unwrap();
        let inside = profile.path().join("Default");
        std::fs::create_dir(&inside).unwrap();
        std::fs::write(inside.join("Preferences"), PREFERENCES).unwrap();
        // The shell puts the pipe where the browser looks for it.
        let mut child = Command::new("sh")
            .args([
                "-c",
                "exec \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1",
                "sh",
            ])
            .arg("chromium")
            .args(SWITCHES)
            .args(["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("--host-resolver-rules=MAP *.example 127.0.0.1")
            .args(more)
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let pipe = child.stdin.take().unwrap();
        let mut out = child.stdout.take().unwrap();
        let (send, read) = channel();
        thread::spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            while let Ok(bytes @ 1..) = out.read(&mut buffer) {
                if send.send(buffer[..bytes].to_vec()).is_err() {
                    break;
                }
            }
        });
        Chromium {
            child,
            pipe,
            read,
            began: Instant::now(),
            browser: Browser::new(),
            said: Vec::new(),
            _profile: profile,
        }
    }

    /// Visits a page.
    pub(crate) fn visit(&mut self, visit: Visit) -> Result<Load, Failure> {
        self.browser.begin(visit, self.began.elapsed());
        loop {
            let outgoing = self.browser.outgoing();
            if self.pipe.write_all(&outgoing).is_err() {
                self.browser.closed();
            }
            if let Some(outcome) = self.browser.outcome() {
                return outcome;
            }
            let now = self.began.elapsed();
            let wake = self.browser.wake().unwrap_or(Duration::MAX);
            // As long as nobody waits, nothing is late.
            let wait = wake.saturating_sub(now).min(Duration::from_secs(3600));
            match self.read.recv_timeout(wait) {
                Ok(bytes) => {
                    self.said.extend(&bytes);
                    self.browser.receive(&bytes, self.began.elapsed());
                }
                Err(RecvTimeoutError::Timeout) => self.browser.tick(self.began.elapsed()),
                Err(RecvTimeoutError::Disconnected) => self.browser.closed(),
            }
        }
    }

    /// Ends the processes that its pages run in, and says how many those were.
    #[allow(dead_code)]
    pub(crate) fn crasher(&self) -> impl Fn() -> usize + Send + use<> {
        let browser = self.child.id();
        move || {
            let pages = below(browser).into_iter().filter(|id| {
                let line = std::fs::read_to_string(format!("/proc/{id}/cmdline"));
                line.is_ok_and(|line| line.contains("--type=renderer"))
            });
            let killed =
                pages.map(|id| Command::new("kill").args(["-9", &id.to_string()]).status());
            killed
                .filter(|status| matches!(status, Ok(status) if status.success()))
                .count()
        }
    }

    /// Has it do nothing any more, or end at once: `STOP`, `KILL`.
    #[allow(dead_code)]
    pub(crate) fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        let status = Command::new("kill").args(["-s", signal, &id]).status();
        assert!(status.unwrap().success());
    }
}

/// The processes below one.
fn below(top: u32) -> Vec<u32> {
    let mut parents: Vec<(u32, u32)> = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let id = entry.file_name().to_string_lossy().parse::<u32>();
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        // Behind the name, which may have anything in it: state and parent.
        let parent: Option<u32> = stat
            .rsplit(") ")
            .next()
            .and_then(|rest| rest.split(' ').nth(1)?.parse().ok());
        parents.extend(id.ok().zip(parent));
    }
    let mut found = vec![top];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        found.extend(
            parents
                .iter()
                .filter(|(_, above)| *above == parent)
                .map(|(id, _)| *id),
        );
        next += 1;
    }
    found
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Serves a site's origins over HTTP/1.1, each on its own port; the names in the site need those
/// ports.
pub(crate) fn serve(listeners: Vec<TcpListener>, site: Site) {
    let site = Arc::new(site);
    for (origin, listener) in listeners.into_iter().enumerate() {
        let site = Arc::clone(&site);
        thread::spawn(move || {
            let answers: HashMap<String, usize> = (site.answers.iter().enumerate())
                .filter(|(_, answer)| answer.origin == origin)
                .map(|(place, answer)| (answer.path.clone(), place))
                .collect();
            let answers = Arc::new(answers);
            for stream in listener.incoming().map_while(Result::ok) {
                let (site, answers) = (Arc::clone(&site), Arc::clone(&answers));
                thread::spawn(move || answer(stream, &site, &answers));
            }
        });
    }
}

fn answer(mut stream: TcpStream, site: &Site, answers: &HashMap<String, usize>) {
    let _ = stream.set_nodelay(true);
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let end = request.windows(4).position(|four| four == b"\r\n\r\n");
        let Some(end) = end else {
            match stream.read(&mut buffer) {
                Ok(bytes @ 1..) => request.extend(&buffer[..bytes]),
                _ => return,
            }
            continue;
        };
        let head: Vec<u8> = request.drain(..end + 4).collect();
        let head = String::from_utf8_lossy(&head);
        let path = head.split(' ').nth(1).unwrap_or_default();
        let answer = answers.get(path).map(|place| &site.answers[*place]);
        let mut out = Vec::new();
        match answer.map(|answer| (&answer.content, &answer.fields)) {
            None => out.extend(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"),
            // What never ends.
            Some((Content::Elsewhere(place), _)) if place == "nowhere" => {
                out.extend(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nbegins");
            }
            Some((content, fields)) => {
                let (status, body) = match content {
                    Content::Body(body) => ("200 OK", &body[..]),
                    Content::Elsewhere(_) => ("302 Found", &b""[..]),
                };
                out.extend(format!("HTTP/1.1 {status}\r\n").bytes());
                if let Content::Elsewhere(location) = content {
                    out.extend(format!("location: {location}\r\n").bytes());
                }
                for (name, value) in fields {
                    out.extend(format!("{name}: {value}\r\n").bytes());
                }
                out.extend(format!("content-length: {}\r\n\r\n", body.len()).bytes());
                out.extend(body);
            }
        }
        if stream.write_all(&out).is_err() {
            return;
        }
    }
}

/// Listeners for so many origins.
pub(crate) fn listen(origins: u8) -> Vec<TcpListener> {
    (0..origins)
        .map(|_| TcpListener::bind("127.0.0.1:0").unwrap())
        .collect()
}

/// The names of origins that listen there.
pub(crate) fn names(listeners: &[TcpListener], name: impl Fn(u8) -> String) -> Vec<String> {
    let ports = listeners.iter().map(|one| one.local_addr().unwrap().port());
    (0..)
        .zip(ports)
        .map(|(origin, port)| format!("{}:{port}", name(origin)))
        .collect()
}
