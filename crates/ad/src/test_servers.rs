//! DNS servers of the distribution for tests, each a process on a loopback address of its own.
//!
//! Whatever is missing fails the test that needs it, with the hint.
#![allow(clippy::panic, clippy::unwrap_used, reason = "this is a part of tests")]

use std::fs::{self, File};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use domain::base::{Message, Rtype};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::geteuid;
use tempfile::TempDir;

use crate::dns::{Name, Question};

/// The zone that the authoritative servers hold.
pub const ZONE: &str = "example";

/// Where BIND listens.
pub const BIND: SocketAddr = address(1, 53);

/// Where Knot or NSD listens.
pub const OTHER: SocketAddr = address(2, 53);

/// Where Unbound listens.
pub const UNBOUND: SocketAddr = address(3, 53);

/// Where Unbound answers over TLS.
pub const UNBOUND_TLS: SocketAddr = address(3, 853);

/// The file of the key that may update BIND's zone, as BIND writes it.
pub const KEY: &str = "key \"update.example\" {\n\talgorithm hmac-sha256;\n\
                       \tsecret \"bGFzdGJ5dGUncyB0ZXN0cyBvZiBkeW5hbWljIHVwZGF0ZXM=\";\n};\n";

/// How long a server may take until it answers.
const PATIENCE: Duration = Duration::from_secs(60);

const fn address(host: u8, port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 0, 0, host)), port)
}

/// Moves this thread, and what it starts, into a network of its own, in which there is nothing but
/// the loopback interface.
///
/// # Panics
///
/// Without root's rights or iproute2.
pub fn isolate() {
    assert!(
        geteuid().is_root(),
        "this test needs root for a network of its own: run it with `sudo -E`"
    );
    unshare(CloneFlags::CLONE_NEWNET).unwrap_or_else(|error| {
        panic!("this test needs a network namespace, but unshare says {error}: allow CLONE_NEWNET")
    });
    let mut command = Command::new("ip");
    let status = command.args(["link", "set", "lo", "up"]).status();
    let status = status.unwrap_or_else(|error| missing(&command, "iproute2", &error));
    assert!(status.success(), "{command:?}: {status}");
}

/// A process that answers DNS queries, until it is dropped.
#[derive(Debug)]
pub struct Daemon {
    child: Child,
    /// Its configuration and what it says.
    _folder: TempDir,
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// BIND, with these lines in its zone. [`KEY`] may update it.
pub fn bind(lines: &str) -> Daemon {
    let folder = folder(lines);
    let path = folder.path().display();
    let configuration = format!(
        "options {{
            directory \"{path}\";
            pid-file none;
            session-keyfile none;
            lock-file none;
            listen-on {{ {address}; }};
            listen-on-v6 {{ none; }};
            recursion no;
            dnssec-validation no;
        }};
        controls {{ }};
        {KEY}
        zone \"{ZONE}\" {{
            type primary;
            file \"zone\";
            allow-update {{ key \"update.example\"; }};
        }};\n",
        address = BIND.ip(),
    );
    let arguments = ["-g", "-n", "1", "-c"];
    start("named", "bind9", folder, &configuration, &arguments, BIND)
}

/// Knot DNS, with these lines in its zone.
pub fn knot(lines: &str) -> Daemon {
    let folder = folder(lines);
    let path = folder.path().display();
    let configuration = format!(
        "server:
  listen: {address}@53
  rundir: {path}
  udp-workers: 1
  tcp-workers: 1
  background-workers: 1
database:
  storage: {path}
zone:
  - domain: {ZONE}
    storage: {path}
    file: zone\n",
        address = OTHER.ip(),
    );
    start("knotd", "knot", folder, &configuration, &["-c"], OTHER)
}

/// NSD, with these lines in its zone.
pub fn nsd(lines: &str) -> Daemon {
    let folder = folder(lines);
    let path = folder.path().display();
    let configuration = format!(
        "server:
  ip-address: {address}
  zonesdir: {path}
  pidfile: \"\"
  zonelistfile: {path}/zonelist
  xfrdfile: {path}/xfrd
  xfrdir: {path}
  username: \"\"
  chroot: \"\"
remote-control:
  control-enable: no
zone:
  name: {ZONE}
  zonefile: zone\n",
        address = OTHER.ip(),
    );
    start("nsd", "nsd", folder, &configuration, &["-d", "-c"], OTHER)
}

/// Unbound, which asks `authority` about the zone. Over TLS it proves itself with this chain and
/// key (PEM).
pub fn unbound(authority: SocketAddr, chain: &Path, key: &Path) -> Daemon {
    let folder = folder("");
    let configuration = format!(
        "server:
  interface: {address}@53
  interface: {address}@853
  tls-port: 853
  tls-service-pem: {chain}
  tls-service-key: {key}
  access-control: 127.0.0.0/8 allow
  do-not-query-localhost: no
  do-daemonize: no
  use-syslog: no
  username: \"\"
  chroot: \"\"
  pidfile: \"\"
  directory: {path}
  module-config: iterator
  num-threads: 1
remote-control:
  control-enable: no
stub-zone:
  name: {ZONE}
  stub-addr: {authority}\n",
        address = UNBOUND.ip(),
        path = folder.path().display(),
        chain = chain.display(),
        key = key.display(),
        authority = authority.ip(),
    );
    let arguments = ["-d", "-c"];
    start(
        "unbound",
        "unbound",
        folder,
        &configuration,
        &arguments,
        UNBOUND,
    )
}

/// A folder that holds the zone.
fn folder(lines: &str) -> TempDir {
    let folder = TempDir::new().unwrap();
    let zone = format!(
        "$ORIGIN {ZONE}.\n$TTL 300\n@ SOA ns hostmaster 1 3600 600 86400 60\n@ NS ns\n\
         ns A 127.0.0.1\n{lines}\n"
    );
    fs::write(folder.path().join("zone"), zone).unwrap();
    folder
}

fn start(
    program: &str,
    package: &str,
    folder: TempDir,
    configuration: &str,
    arguments: &[&str],
    server: SocketAddr,
) -> Daemon {
    let file = folder.path().join("configuration");
    fs::write(&file, configuration).unwrap();
    let log = folder.path().join("log");
    let output = File::create(&log).unwrap();
    let mut command = Command::new(program);
    command
        .args(arguments)
        .arg(file)
        .stdout(output.try_clone().unwrap())
        .stderr(output);
    let child = command.spawn();
    let child = child.unwrap_or_else(|error| missing(&command, package, &error));
    let mut daemon = Daemon {
        child,
        _folder: folder,
    };
    let start = Instant::now();
    while !answers(server) {
        let ended = daemon.child.try_wait().unwrap();
        assert!(
            ended.is_none() && start.elapsed() < PATIENCE,
            "{program} does not answer:\n{}",
            fs::read_to_string(&log).unwrap()
        );
    }
    daemon
}

fn missing(command: &Command, package: &str, error: &std::io::Error) -> ! {
    let program = command.get_program();
    panic!("this test needs {program:?} ({error}): apt-get install {package}")
}

/// Asks for the zone's SOA record, and waits a moment for it.
fn answers(server: SocketAddr) -> bool {
    let question = Question {
        name: ZONE.parse::<Name>().unwrap(),
        rtype: Rtype::SOA,
    };
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    let wait = Duration::from_millis(50);
    socket.set_read_timeout(Some(wait)).unwrap();
    socket.connect(server).unwrap();
    let mut answer = [0; 512];
    let received =
        (socket.send(&question.query(1).unwrap())).and_then(|_| socket.recv(&mut answer));
    match received {
        Ok(length) => Message::from_octets(&answer[..length])
            .is_ok_and(|message| message.no_error() && message.header_counts().ancount() > 0),
        Err(_) => {
            std::thread::sleep(wait);
            false
        }
    }
}
