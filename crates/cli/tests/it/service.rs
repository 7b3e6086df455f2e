//! `ad serve` as a service: signals, sockets of others, restarts, rights, units of systemd.

use std::collections::HashMap;
use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use lastbyte_ad::test_servers::{bind, isolate};
use lastbyte_pki::{Chain, test_chains};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use openssl::ssl::{SslConnector, SslMethod, SslStream, SslVersion};
use tempfile::TempDir;

use crate::ad::{BODY, Files, NAME, PATIENCE, Program, SERVER, ZONE, fetch, greet, publish, serve};
use crate::ad::{chain, serve_in_front_of};
use crate::common::repository::root;
use crate::common::{lastbyte, run};

#[test]
fn a_restart_with_systemds_socket_refuses_nobody() {
    isolate();
    let files = Files::new(&chain("ecdsa-p256"));
    // Who holds it is systemd, in real life.
    let socket = TcpListener::bind(SERVER).unwrap();
    let start = || {
        let mut command = activated(&files);
        let server = Program::start_with(
            &mut command,
            OwnedFd::from(socket.try_clone().unwrap()).into(),
        );
        server.line_with("serving on 127.0.0.9:443");
        server
    };
    let mut server = start();
    let clients = Clients::start(&files);
    for _ in 0..3 {
        clients.served(20);
        assert_eq!(server.stop(Signal::SIGTERM), Some(0));
        // Who comes now waits.
        let waiting = TcpStream::connect(SERVER).unwrap();
        server = start();
        drop(waiting);
    }
    clients.stop();
    assert_eq!(server.stop(Signal::SIGTERM), Some(0));
}

#[test]
fn another_process_takes_over_and_refuses_nobody() {
    isolate();
    let files = Files::new(&chain("ecdsa-p256"));
    let server = serve(&[&files], &["--access-log", "-"]);
    let clients = Clients::start(&files);
    let mut process = server.pid();
    for _ in 0..3 {
        clients.served(20);
        kill(process, Signal::SIGUSR2).unwrap();
        let line = server.line_with("goes on, and this one ends");
        let mut words = line.split(' ').skip_while(|word| *word != "process");
        process = Pid::from_raw(words.nth(1).unwrap().parse().unwrap());
        // The one before tells what it served.
        server.line_with("handshakes, ");
    }
    // It writes where the one before wrote.
    for _ in 0..100 {
        server.line_with("{");
    }
    // What it is to serve can't be served any more: the one that is there goes on.
    let key = fs::read(&files.key).unwrap();
    fs::write(&files.key, "nothing").unwrap();
    kill(process, Signal::SIGUSR2).unwrap();
    server.line_with(
        "no other process has taken over, and this one goes on: it ended with exit status: 2",
    );
    fs::write(&files.key, key).unwrap();
    clients.served(20);
    clients.stop();
    kill(process, Signal::SIGTERM).unwrap();
    server.line_with("handshakes, ");
}

#[test]
fn chains_survive_a_restart_until_they_are_forgotten() {
    isolate();
    let _dns = bind(ZONE);
    let [old, new] = [(); 2].map(|()| test_chains::for_name(NAME).unwrap());
    let files = Files::new(&old);
    let state = files.folder.path().join("state");
    let options = ["--state", state.to_str().unwrap()];
    let server = serve(&[&files], &options);
    let published = publish(&files, &["--from", "end-entity"]);
    assert_eq!(published.code, Some(0), "{}", published.stderr);
    let outcome = || fetch(&files, &[])["outcome"].clone();
    assert_eq!(outcome(), "used");

    // Renewed while nobody looks.
    assert_eq!(server.stop(Signal::SIGTERM), Some(0));
    files.write(&new);
    trust(&files, &[&old, &new]);
    let server = serve(&[&files], &options);
    assert_eq!(outcome(), "used", "the record is of the chain before");
    assert_eq!(fs::read_dir(&state).unwrap().count(), 2);
    assert_eq!(server.stop(Signal::SIGKILL), None);
    let server = serve(&[&files], &options);
    assert_eq!(outcome(), "used");
    // Without a folder, it is as if it had never been.
    assert_eq!(server.stop(Signal::SIGTERM), Some(0));
    let server = serve(&[&files], &[]);
    assert_eq!(outcome(), "mismatch");
    assert_eq!(server.stop(Signal::SIGTERM), Some(0));

    let server = serve(&[&files], &options);
    assert_eq!(outcome(), "used");
    kill(server.pid(), Signal::SIGUSR1).unwrap();
    server.line_with("chains that were sent before: 1 forgotten");
    assert_eq!(outcome(), "mismatch");
    assert_eq!(fs::read_dir(&state).unwrap().count(), 1);
    // A key became known: the chain that takes its place is loaded, and the one that was sent a moment ago goes.
    let newest = test_chains::for_name(NAME).unwrap();
    let published = publish(&files, &["--from", "end-entity"]);
    assert_eq!(published.code, Some(0), "{}", published.stderr);
    files.write(&newest);
    trust(&files, &[&new, &newest]);
    kill(server.pid(), Signal::SIGUSR1).unwrap();
    server.line_with("the chains are loaded again");
    server.line_with("chains that were sent before: 1 forgotten");
    assert_eq!(outcome(), "mismatch");
    assert_eq!(server.stop(Signal::SIGTERM), Some(0));
}

#[test]
fn who_waits_for_nothing_is_closed_and_a_second_sigterm_closes_all() {
    isolate();
    let files = Files::new(&chain("ecdsa-p256"));
    // It answers the first word, and never the second.
    let backend = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = backend.local_addr().unwrap().to_string();
    thread::spawn(move || {
        let mut held = Vec::new();
        for stream in backend.incoming() {
            let mut stream = stream.unwrap();
            let mut word = [0; 4];
            stream.read_exact(&mut word).unwrap();
            if word == *b"ping" {
                stream.write_all(b"pong").unwrap();
            }
            held.push(stream);
        }
    });
    let server = serve_in_front_of(&address, &[&files], &["--drain", "100000s"]);
    let mut idle = connect(&files.root).unwrap();
    idle.write_all(b"ping").unwrap();
    idle.read_exact(&mut [0; 4]).unwrap();
    let mut waiting = connect(&files.root).unwrap();
    waiting.write_all(b"wait").unwrap();
    kill(server.pid(), Signal::SIGTERM).unwrap();
    // With close_notify, or it were an error.
    assert_eq!(idle.read(&mut [0]).unwrap(), 0);
    let wait = Duration::from_millis(300);
    waiting.get_ref().set_read_timeout(Some(wait)).unwrap();
    let error = waiting.read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
    assert_eq!(server.stop(Signal::SIGTERM), Some(0));
    assert!(waiting.read(&mut [0]).unwrap_or(0) == 0);
}

#[test]
fn signals_that_come_too_soon_wait() {
    isolate();
    let files = Files::new(&chain("ecdsa-p256"));
    let mut command = lastbyte([
        "ad",
        "serve",
        "--backend",
        "127.0.0.1:1",
        "--listen",
        SERVER,
    ]);
    command
        .arg("--chain")
        .arg(&files.chain)
        .arg("--key")
        .arg(&files.key);
    let server = Program::start(&mut command);
    // As soon as it holds them back, if it does not answer them yet.
    let early = [Signal::SIGHUP, Signal::SIGUSR1];
    while !early.iter().all(|signal| takes(server.pid(), *signal)) {
        std::thread::yield_now();
    }
    for signal in early {
        kill(server.pid(), signal).unwrap();
    }
    server.line_with("serving on 127.0.0.9:443");
    server.line_with("chains that were sent before: 0 forgotten");
    assert_eq!(server.stop(Signal::SIGTERM), Some(0));
}

/// Whether a signal does not end a process: it is blocked, or answered.
fn takes(process: Pid, signal: Signal) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    ["SigBlk:", "SigCgt:"].iter().any(|name| {
        let mask = status.lines().find_map(|line| line.strip_prefix(name));
        let mask = u64::from_str_radix(mask.unwrap().trim(), 16).unwrap();
        mask & 1 << (signal as u32 - 1) != 0
    })
}

#[test]
fn the_service_manager_is_told() {
    isolate();
    let files = Files::new(&chain("ecdsa-p256"));
    let socket = files.folder.path().join("notify");
    let manager = UnixDatagram::bind(&socket).unwrap();
    manager.set_read_timeout(Some(PATIENCE)).unwrap();
    let told = || {
        let mut message = [0; 4096];
        let length = manager.recv(&mut message).unwrap();
        String::from_utf8_lossy(&message[..length]).into_owned()
    };
    let next = |wanted: &str| loop {
        let message = told();
        if message.lines().any(|line| line == wanted) {
            return message;
        }
        assert_eq!(message, "WATCHDOG=1\n", "before {wanted}");
    };
    let mut command = command("127.0.0.1:1", &files, &["--listen", SERVER]);
    command.env("NOTIFY_SOCKET", &socket);
    command.env("WATCHDOG_USEC", "100000");
    let server = Program::start(&mut command);
    next("READY=1");
    next("WATCHDOG=1");
    next("WATCHDOG=1");
    kill(server.pid(), Signal::SIGHUP).unwrap();
    assert!(next("RELOADING=1").contains("\nMONOTONIC_USEC="));
    next("READY=1");
    kill(server.pid(), Signal::SIGUSR2).unwrap();
    let main = told_main(&next, &server);
    kill(main, Signal::SIGTERM).unwrap();
    next("STOPPING=1");
}

/// The process that the manager is told to look after.
fn told_main(next: &impl Fn(&str) -> String, server: &Program) -> Pid {
    // Its own word comes first.
    next("READY=1");
    let line = server.line_with("goes on, and this one ends");
    let process = line.split(' ').nth(2).unwrap();
    next(&format!("MAINPID={process}"));
    Pid::from_raw(process.parse().unwrap())
}

#[test]
fn it_gives_up_its_rights() {
    isolate();
    let files = Files::new(&chain("ecdsa-p256"));
    let server = serve(&[&files], &["--user", "nobody:nogroup"]);
    let status = |server: &Program| -> HashMap<String, String> {
        let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
        let lines = status.lines().filter_map(|line| line.split_once(":\t"));
        lines
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    };
    let status = status(&server);
    assert_eq!(status["Uid"], "65534\t65534\t65534\t65534");
    assert_eq!(status["Gid"], "65534\t65534\t65534\t65534");
    assert_eq!(status["CapPrm"], "0000000000000000");
    assert_eq!(status["NoNewPrivs"], "1");
    // Nobody else of this user sees its memory, and no core has it.
    let environment = format!("/proc/{}/environ", server.pid());
    assert_eq!(Path::new(&environment).metadata().unwrap().uid(), 0);
    assert_eq!(fetched(&files.root).unwrap(), BODY);
    assert_eq!(server.stop(Signal::SIGTERM), Some(0));

    // With files that it can't open later, it says so, and so does who asks before.
    fs::set_permissions(files.folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(&files.key, fs::Permissions::from_mode(0o640)).unwrap();
    let log = files.folder.path().join("access.log");
    let options = [
        "--listen",
        SERVER,
        "--user",
        "nobody",
        "--access-log",
        log.to_str().unwrap(),
    ];
    let check = || {
        let mut check = command("127.0.0.1:1", &files, &options);
        let checked = run(check.arg("--check-config"));
        assert_eq!(checked.code, Some(0), "{}", checked.stderr);
        checked.stderr
    };
    let unread = "key.pem\" can't be read by nobody (Permission denied (os error 13)): its renewal will not be taken";
    let unwritten = "access.log\" can't be opened by nobody (Permission denied (os error 13)): after it is moved";
    let checked = check();
    assert!(
        checked.contains(unread) && checked.contains(unwritten),
        "{checked}"
    );
    assert!(!log.exists(), "it was made by a check");
    let mut command = command("127.0.0.1:1", &files, &options);
    let server = Program::start(&mut command);
    server.line_with(unread);
    server.line_with(unwritten);
    drop(server);
    let root = serve(&[&files], &[]);
    root.line_with("key.pem\" can be read by its group: a key is for its owner alone (chmod 600)");
    drop(root);
    // Through its group, it is meant to.
    chown(&files.key, Some(0), Some(65534)).unwrap();
    chown(&log, Some(65534), None).unwrap();
    assert_eq!(check(), "");
    let server = Program::start(&mut command);
    server.line_with("serving on");
    kill(server.pid(), Signal::SIGTERM).unwrap();
    let end = server.line_with("");
    assert!(end.contains("0 handshakes"), "{end}");
}

#[test]
fn what_would_keep_it_from_starting_is_told() {
    isolate();
    let files = Files::new(&chain("ecdsa-p256"));
    let other = Files::new(&chain("ml-dsa-44"));
    for key in [&files.key, &other.key] {
        fs::set_permissions(key, fs::Permissions::from_mode(0o600)).unwrap();
    }
    let check =
        |options: &[&str]| run(command("127.0.0.1:1", &files, &["--check-config"]).args(options));
    let fine = check(&["--listen", SERVER]);
    assert_eq!((fine.code, fine.stderr.as_str()), (Some(0), ""));
    // It may be the one that runs.
    let held = TcpListener::bind(SERVER).unwrap();
    assert_eq!(check(&["--listen", SERVER]).code, Some(0));
    drop(held);
    assert_eq!(check(&["--listen", "systemd"]).code, Some(0));
    assert!(
        TcpStream::connect(SERVER).is_err(),
        "it has listened nowhere"
    );

    let (chain, key) = (files.chain.to_str().unwrap(), other.key.to_str().unwrap());
    let mut command = lastbyte([
        "ad",
        "serve",
        "--check-config",
        "--backend",
        "no-such-host.invalid:1",
    ]);
    command.args(["--listen", "192.0.2.1:443", "--groups", "no-such-group"]);
    command.args([
        "--chain", chain, "--key", key, "--chain", "/nowhere", "--key", key,
    ]);
    command.args(["--state", "/dev/null/state"]);
    let wrong = run(&mut command);
    assert_eq!(wrong.code, Some(2));
    assert_eq!(wrong.stdout, "");
    let lines: Vec<_> = wrong.stderr.lines().collect();
    for (line, text) in lines.iter().zip([
        "the key is not that of the first certificate",
        "can't read \"/nowhere\"",
        "--groups: there is no group \"no-such-group\" here",
        "can't listen on 192.0.2.1:443",
        "the backend no-such-host.invalid:1",
        "can't keep chains in \"/dev/null/state\"",
    ]) {
        assert!(
            line.starts_with("lastbyte: ") && line.contains(text),
            "{text}: {lines:#?}"
        );
    }
    assert_eq!(lines.len(), 6, "{lines:#?}");
    fs::set_permissions(&files.key, fs::Permissions::from_mode(0o644)).unwrap();
    let warned = check(&["--listen", SERVER]);
    assert_eq!(warned.code, Some(0));
    assert!(
        warned.stderr.starts_with("lastbyte: warning: \""),
        "{}",
        warned.stderr
    );
}

/// What `systemd-analyze security` may say at most. It goes from 0 to 10, and 2.0 is the most that it calls "OK" with a smile.
const EXPOSURE: f64 = 1.5;

#[test]
fn units_of_systemd_are_right_and_hardened() {
    let folder = TempDir::new().unwrap();
    let source = root().join("packaging/systemd");
    let program = env!("CARGO_BIN_EXE_lastbyte");
    let drop_in = "lastbyte-.service.d/hardened.conf";
    fs::create_dir(folder.path().join("lastbyte-.service.d")).unwrap();
    let services = ["lastbyte-ad.service", "lastbyte-ad-publish.service"];
    for name in services.iter().chain(&["lastbyte-ad.socket", drop_in]) {
        let unit = fs::read_to_string(source.join(name)).unwrap();
        // Nothing is installed here.
        let unit = unit.replace("/usr/bin/lastbyte", program);
        let unit = unit
            .lines()
            .filter(|line| !line.starts_with("Documentation="));
        fs::write(
            folder.path().join(name),
            unit.collect::<Vec<_>>().join("\n"),
        )
        .unwrap();
    }
    let analyze = |arguments: &[&str], name: &str| {
        let mut command = Command::new("systemd-analyze");
        command.args(arguments).arg(folder.path().join(name));
        run(command
            .arg("--no-pager")
            .env("SYSTEMD_LOG_LEVEL", "warning"))
    };
    for name in services.iter().chain(&["lastbyte-ad.socket"]) {
        let verified = analyze(&["verify"], name);
        assert_eq!(verified.code, Some(0), "{}", verified.stderr);
        assert_eq!(verified.stderr, "", "{name}");
    }
    for name in services {
        let judged = analyze(&["security", "--offline=true"], name);
        let last = judged.stdout.lines().last().unwrap();
        let (_, level) = last.split_once(": ").unwrap();
        let level: f64 = level.split(' ').next().unwrap().parse().unwrap();
        assert!(level <= EXPOSURE, "{last}");
    }
}

#[test]
fn the_options_of_the_units_are_those_of_the_program() {
    let source = root().join("packaging/systemd");
    let settings = fs::read_to_string(source.join("ad.conf")).unwrap();
    let options = |name: &str| -> Vec<String> {
        let line = settings.lines().find_map(|line| line.strip_prefix(name));
        let words = line
            .unwrap()
            .trim_start_matches("=\"")
            .trim_end_matches('"');
        words.split(' ').map(str::to_owned).collect()
    };
    // All is understood; the files of the example are not there.
    let serve = lastbyte(["ad", "serve", "--listen", "systemd", "--check-config"]);
    let publish = lastbyte(["ad", "publish", "--tsig", "update.key", "--watch"]);
    for (mut command, options) in [(serve, options("SERVE")), (publish, options("PUBLISH"))] {
        let ended = run(command.args(options));
        assert!(
            ended
                .stderr
                .contains("lastbyte: can't read \"/etc/lastbyte/chain.pem\""),
            "{}",
            ended.stderr
        );
    }
}

/// Roots of all of these, for clients.
fn trust(files: &Files, chains: &[&Chain]) {
    let roots = chains.iter().map(|chain| chain.root().to_pem().unwrap());
    fs::write(&files.root, roots.collect::<Vec<_>>().concat()).unwrap();
}

/// `ad serve`, with these options besides.
fn command(backend: &str, files: &Files, options: &[&str]) -> Command {
    let mut command = lastbyte(["ad", "serve", "--backend", backend, "--chain"]);
    command.arg(&files.chain).arg("--key").arg(&files.key);
    command.args(options);
    command
}

/// The same, as systemd starts it: the socket has number 3.
fn activated(files: &Files) -> Command {
    let inner = command(&greet(), files, &["--listen", "fd:tls"]);
    let mut command = Command::new("bash");
    command.args([
        "-c",
        r#"exec 3<&0 0</dev/null; LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=tls exec "$@""#,
        "bash",
    ]);
    command.arg(inner.get_program()).args(inner.get_args());
    command
}

fn connect(root: &Path) -> io::Result<SslStream<TcpStream>> {
    let mut builder = SslConnector::builder(SslMethod::tls_client()).unwrap();
    builder.set_ca_file(root).unwrap();
    builder
        .set_min_proto_version(Some(SslVersion::TLS1_3))
        .unwrap();
    let address: SocketAddr = SERVER.parse().unwrap();
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    builder
        .build()
        .connect(NAME, stream)
        .map_err(|error| io::Error::other(error.to_string()))
}

/// A page, as one connection brings it.
fn fetched(root: &Path) -> io::Result<String> {
    let mut stream = connect(root)?;
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let body = answer
        .split_once("\r\n\r\n")
        .map(|(_, body)| body.to_owned());
    body.ok_or_else(|| io::Error::other(format!("cut: {answer:?}")))
}

/// Fetches one page after the other.
struct Clients {
    served: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Clients {
    fn start(files: &Files) -> Clients {
        let served = Arc::new(AtomicU64::new(0));
        let stop = Arc::new(AtomicBool::new(false));
        let root: PathBuf = files.root.clone();
        let thread = || {
            let (served, stop, root) = (Arc::clone(&served), Arc::clone(&stop), root.clone());
            // The network is that of the thread that starts it.
            thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let page = fetched(&root).expect("nobody is refused");
                    assert_eq!(page, BODY);
                    served.fetch_add(1, Ordering::Relaxed);
                }
            })
        };
        Clients {
            threads: vec![thread(), thread()],
            served,
            stop,
        }
    }

    /// Waits until so many more pages were fetched.
    fn served(&self, more: u64) {
        let wanted = self.served.load(Ordering::Relaxed) + more;
        while self.served.load(Ordering::Relaxed) < wanted {
            assert!(self.threads.iter().all(|thread| !thread.is_finished()));
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
    }
}
