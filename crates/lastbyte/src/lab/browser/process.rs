//! A browser in the client's namespace, driven by its debugging pipe.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use lastbyte_link::Time;
use lastbyte_page::cdp;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::pipe;
use openssl::x509::X509;

use crate::lab::process::{Priority, Process, StartError};
use crate::lab::programs::{BrowserPrograms, Computing, Origin, PORT, PageError};
use crate::lab::sys::{self, Computes};
use crate::study::TransportName;

/// What the browser is called in messages.
const NAME: &str = "browser";
/// Where it reads messages and writes them, with `--remote-debugging-pipe`.
const READS: i32 = 3;
const WRITES: i32 = 4;
/// Takes the processor's own random numbers (bit 62, RDRAND) from what BoringSSL finds there: where
/// they are fast, it mixes them into all of its own, and in a guest the same seed would have other
/// handshakes on other processors.
const NO_RDRAND: &str = "~0x4000000000000000";
/// Bytes that are read at once.
const SCRATCH: usize = 1 << 16;

/// A browser that runs.
#[derive(Debug)]
pub(super) struct Browser {
    pub(super) process: Process,
    to: File,
    from: File,
    scratch: Vec<u8>,
    /// Where it writes the secrets of its TLS.
    pub(super) keys: PathBuf,
}

/// Why nothing was read.
#[derive(Debug)]
pub(super) enum Silence {
    /// The deadline has come.
    Late,
    /// The browser has ended; the last line that it printed.
    Ended(String),
}

impl Browser {
    /// Starts it in the calling thread's namespace with a profile of its own, for which `folder`
    /// is. It trusts the roots of origins, and no others of ours; and it knows no other names than
    /// theirs.
    pub(super) fn start(
        programs: &BrowserPrograms,
        origins: &[Origin],
        transport: TransportName,
        folder: &Path,
        computing: Computing,
    ) -> Result<Browser, PageError> {
        let home = folder.join("home");
        let profile = folder.join("profile");
        trust(programs, origins, &home)?;
        fs::create_dir_all(profile.join("Default")).map_err(PageError::Write)?;
        fs::write(profile.join("Default/Preferences"), cdp::PREFERENCES)
            .map_err(PageError::Write)?;
        let keys = folder.join("keys.txt");
        // Of the one before, if there was one.
        let _ = fs::remove_file(&keys);

        let failed =
            |error: io::Error| PageError::start(NAME, StartError::Ended(error.to_string()));
        let (browser_reads, to) = pipe().map_err(|error| failed(error.into()))?;
        let (from, browser_writes) = pipe().map_err(|error| failed(error.into()))?;
        let mut command = Command::new(&programs.browser);
        command
            .args(cdp::SWITCHES)
            .args(MACHINE)
            .args(carried(origins, transport))
            .arg(format!("--user-data-dir={}", profile.display()))
            .arg(format!("--host-resolver-rules={}", names(origins)))
            .arg("about:blank")
            .env_clear()
            .env("HOME", &home)
            .env("TMPDIR", folder)
            .env("XDG_RUNTIME_DIR", folder)
            .env("SSLKEYLOGFILE", &keys)
            .env("LANG", "C.UTF-8")
            .env("TZ", "UTC")
            .env("OPENSSL_ia32cap", NO_RDRAND);
        computing.of(&mut command, Computes::Browser);
        let given = vec![(browser_reads, READS), (browser_writes, WRITES)];
        sys::give(&mut command, given).map_err(failed)?;
        let process = Process::start(NAME, command, folder, Priority::Usual)
            .map_err(|error| PageError::start(NAME, error))?;
        Ok(Browser {
            process,
            to: to.into(),
            from: from.into(),
            scratch: vec![0; SCRATCH],
            keys,
        })
    }

    /// Gives it bytes.
    pub(super) fn send(&mut self, bytes: &[u8]) -> Result<(), Silence> {
        self.to.write_all(bytes).map_err(|_| self.ended())
    }

    /// What it has written, once there is something.
    pub(super) fn read(&mut self, until: Time) -> Result<&[u8], Silence> {
        let left = Duration::from_nanos(until.0.saturating_sub(sys::now().0));
        // Rounded up: it is not yet late.
        let left = left.as_nanos().div_ceil(1_000_000);
        let left = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
        let mut waits = [PollFd::new(self.from.as_fd(), PollFlags::POLLIN)];
        match poll(&mut waits, left) {
            Ok(0) => return Err(Silence::Late),
            Ok(_) => {}
            Err(_) => return Err(self.ended()),
        }
        match self.from.read(&mut self.scratch) {
            Ok(0) | Err(_) => Err(self.ended()),
            Ok(length) => Ok(self.scratch.get(..length).unwrap_or_default()),
        }
    }

    fn ended(&self) -> Silence {
        Silence::Ended(self.process.last_line())
    }
}

/// Makes the store of roots that the browser looks for in its home.
fn trust(programs: &BrowserPrograms, origins: &[Origin], home: &Path) -> Result<(), PageError> {
    let store = home.join(".pki/nssdb");
    if store.exists() {
        return Ok(());
    }
    fs::create_dir_all(&store).map_err(PageError::Write)?;
    let certutil = |arguments: &[&str]| {
        let output = Command::new(&programs.certutil)
            .arg("-d")
            .arg(format!("sql:{}", store.display()))
            .args(arguments)
            .env_clear()
            .env("HOME", home)
            .output()
            .map_err(PageError::Write)?;
        if output.status.success() {
            Ok(())
        } else {
            Err(PageError::Root(
                String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            ))
        }
    };
    certutil(&["-N", "--empty-password"])?;
    let mut roots: Vec<&X509> = Vec::new();
    for root in origins.iter().map(|origin| origin.chain.root()) {
        if roots.iter().any(|other| other.as_ref() == root.as_ref()) {
            continue;
        }
        let file = home.join(format!("root{}.pem", roots.len()));
        fs::write(&file, root.to_pem().map_err(PageError::Crypto)?).map_err(PageError::Write)?;
        let name = format!("root{}", roots.len());
        certutil(&[
            "-A",
            "-n",
            &name,
            "-t",
            "C,,",
            "-i",
            &file.to_string_lossy(),
        ])?;
        roots.push(root);
    }
    Ok(())
}

/// Where each origin is, and that nothing else is anywhere.
fn names(origins: &[Origin]) -> String {
    let mapped = origins
        .iter()
        .map(|origin| format!("MAP {} {}", origin.name, origin.address));
    let rules: Vec<String> = mapped.chain(["MAP * ~NOTFOUND".to_owned()]).collect();
    rules.join(", ")
}

/// What its connections are carried in. Over QUIC each origin is asked by HTTP/3 from the first request on, as if the browser knew
/// already that it has it; that is also what has it take a user's own root over QUIC, which it verifies for real.
fn carried(origins: &[Origin], transport: TransportName) -> Vec<String> {
    match transport {
        TransportName::Tcp => vec!["--disable-quic".to_owned()],
        TransportName::Quic => {
            let origins = origins.iter();
            let origins = origins.map(|origin| format!("{}:{PORT}", origin.name));
            let origins: Vec<String> = origins.collect();
            vec![
                "--enable-quic".to_owned(),
                format!("--origin-to-force-quic-on={}", origins.join(",")),
            ]
        }
    }
}

/// What the machine needs besides: there is no GPU, and namespaces of our own are all that parts it
/// from others.
const MACHINE: [&str; 3] = ["--no-sandbox", "--no-zygote", "--disable-gpu"];
