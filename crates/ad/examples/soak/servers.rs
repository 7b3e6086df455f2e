//! All that serves, and how it is broken.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpListener as Socket;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use lastbyte_ad::test_servers::{BIND, Daemon, KEY, bind, unbound};
use lastbyte_pki::Chain;
use lastbyte_pki::test_chains::{self, Ca};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::clients::{page, write_roots};
use crate::clock::{self, Step};
use crate::pace::Pace;
use crate::verdict::{Lost, Verdict};
use crate::{Luck, NAME, SERVER};

const ZONE: &str = "server A 127.0.0.9";
const BACKEND: &str = "127.0.0.1:8080";

/// What no step takes on any machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// How many CAs take turns.
const AUTHORITIES: usize = 4;

/// How long there have been CAs: longer than clocks step.
const AUTHORITIES_SINCE: Duration = Duration::from_secs(30 * 24 * 3600);

/// How far clocks step: past what resolvers and clients keep, or past the end of any certificate.
const STEPS: [Range<Duration>; 2] = [
    Duration::from_secs(60)..Duration::from_secs(2 * 3600),
    Duration::from_secs(2 * 24 * 3600)..Duration::from_secs(4 * 24 * 3600),
];

/// What a server takes to load another chain, and longer.
const LOADING: Duration = Duration::from_secs(10);

/// What goes wrong, or is done by operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Renewal,
    HalfRenewal,
    WrongKey,
    Reload,
    Forget,
    HandOver,
    Restart,
    KilledServer,
    KilledPublisher,
    KilledResolver,
    KilledNameServer,
    KilledBackend,
    FullDisk,
    LossyLink,
    SlowLink,
    ClockAhead,
    ClockBehind,
}

impl Fault {
    pub(crate) const ALL: [Fault; 17] = [
        Fault::Renewal,
        Fault::HalfRenewal,
        Fault::WrongKey,
        Fault::Reload,
        Fault::Forget,
        Fault::HandOver,
        Fault::Restart,
        Fault::KilledServer,
        Fault::KilledPublisher,
        Fault::KilledResolver,
        Fault::KilledNameServer,
        Fault::KilledBackend,
        Fault::FullDisk,
        Fault::LossyLink,
        Fault::SlowLink,
        Fault::ClockAhead,
        Fault::ClockBehind,
    ];

    pub(crate) fn steps_clocks(self) -> bool {
        matches!(self, Fault::ClockAhead | Fault::ClockBehind)
    }

    /// What clients may lose because of it. A link that is slow or loses costs them time and
    /// nothing else, and so does whatever operators do.
    fn loses(self) -> Option<Lost> {
        match self {
            Fault::KilledServer | Fault::KilledBackend => Some(Lost::Connections),
            Fault::KilledResolver | Fault::KilledNameServer => Some(Lost::Names),
            _ => None,
        }
    }
}

pub(crate) struct Servers {
    pace: &'static Pace,
    program: PathBuf,
    folder: PathBuf,
    verdict: Arc<Verdict>,
    authorities: Vec<Ca>,
    next: usize,
    /// How often clocks have stepped.
    steps: usize,
    /// As systemd would hold it: whatever happens to the server, connections wait.
    socket: Socket,
    server: Server,
    publisher: Option<Child>,
    name_server: Option<Daemon>,
    resolver: Option<Daemon>,
    backend: Option<Backend>,
    roots: PathBuf,
}

impl Servers {
    pub(crate) async fn start(
        pace: &'static Pace,
        program: PathBuf,
        folder: PathBuf,
        verdict: Arc<Verdict>,
    ) -> Servers {
        let since = SystemTime::now() - AUTHORITIES_SINCE;
        let authorities = (0..AUTHORITIES).map(|_| Ca::new(since).unwrap());
        let authorities: Vec<_> = authorities.collect();
        let roots = folder.join("roots.pem");
        write_roots(&roots, &authorities);
        fs::write(folder.join("update.key"), KEY).unwrap();
        let chain = issue(&authorities[0], pace);
        write_chain(&folder, &chain);
        verdict.goodness.is_of(&chain);
        let socket = Socket::bind(SERVER).unwrap();
        let mut servers = Servers {
            pace,
            server: Server::start(pace, &program, &folder, &socket),
            publisher: None,
            name_server: Some(bind(ZONE)),
            resolver: Some(resolver(&folder)),
            backend: Some(Backend::start().await),
            program,
            folder,
            verdict,
            authorities,
            next: 1,
            steps: 0,
            socket,
            roots,
        };
        servers.publish();
        servers
    }

    pub(crate) fn roots(&self) -> &Path {
        &self.roots
    }

    /// The process that serves now.
    pub(crate) fn process(&self) -> u32 {
        self.server.process.load(Ordering::SeqCst)
    }

    pub(crate) fn publisher(&self) -> u32 {
        self.publisher.as_ref().map_or(0, Child::id)
    }

    /// Lets something happen, and has all as it should be again.
    pub(crate) async fn suffer(&mut self, fault: Fault, luck: &mut Luck) {
        let since = Instant::now();
        if let Some(lost) = fault.loses() {
            self.verdict.is_rough(lost, since);
        }
        self.verdict.fault(format!("{fault:?}"));
        match fault {
            Fault::Renewal => self.renew().await,
            Fault::HalfRenewal => self.renew_by_halves(luck).await,
            Fault::WrongKey => {
                let key = fs::read(self.folder.join("key.pem")).unwrap();
                let other = issue(&self.authorities[0], self.pace);
                let other = other.key().private_key_to_pem_pkcs8().unwrap();
                fs::write(self.folder.join("key.pem"), other).unwrap();
                sleep(luck.between(100, 4000)).await;
                fs::write(self.folder.join("key.pem"), key).unwrap();
            }
            Fault::Reload => self.signal(Signal::SIGHUP),
            Fault::Forget => self.signal(Signal::SIGUSR1),
            Fault::HandOver => self.hand_over().await,
            Fault::Restart => {
                self.signal(Signal::SIGTERM);
                self.gone(self.process()).await;
                self.serve();
            }
            Fault::KilledServer => {
                self.signal(Signal::SIGKILL);
                self.gone(self.process()).await;
                sleep(luck.between(0, 500)).await;
                self.serve();
            }
            Fault::KilledPublisher => self.publish(),
            Fault::KilledResolver => {
                self.resolver = None;
                sleep(luck.between(100, 1000)).await;
                self.resolver = Some(resolver(&self.folder));
            }
            Fault::KilledNameServer => {
                self.name_server = None;
                sleep(luck.between(100, 1000)).await;
                self.name_server = Some(bind(ZONE));
                // It has lost the record, and Unbound remembers for long who did not answer.
                self.publish();
                self.resolver = None;
                self.resolver = Some(resolver(&self.folder));
            }
            Fault::KilledBackend => {
                self.backend = None;
                sleep(luck.between(100, 1000)).await;
                self.backend = Some(Backend::start().await);
            }
            Fault::FullDisk => self.fill_the_disk(luck).await,
            Fault::LossyLink => break_link(&self.pace.lossy_link, luck).await,
            Fault::SlowLink => break_link(&self.pace.slow_link, luck).await,
            Fault::ClockAhead => {
                let step = Step::Ahead(self.how_far(luck));
                self.step_the_clock(step, luck).await;
            }
            Fault::ClockBehind => {
                let step = Step::Behind(self.how_far(luck));
                self.step_the_clock(step, luck).await;
            }
        }
        if let Some(lost) = fault.loses() {
            self.verdict.was_rough(lost, since);
        }
    }

    /// The server ends by itself, and says that all is well.
    pub(crate) async fn end(&mut self) {
        self.signal(Signal::SIGTERM);
        self.gone(self.process()).await;
        if let Some(mut publisher) = self.publisher.take() {
            end(&mut publisher);
        }
    }

    fn next_chain(&mut self) -> Chain {
        let chain = issue(&self.authorities[self.next % AUTHORITIES], self.pace);
        self.next += 1;
        chain
    }

    async fn renew(&mut self) {
        self.verdict.goodness.begins_to_change();
        let chain = self.next_chain();
        write_chain(&self.folder, &chain);
        self.verdict.goodness.is_of(&chain);
        if self.pace.clocks_step {
            sleep(LOADING).await;
        }
        self.verdict.goodness.has_changed();
    }

    /// Both ways past any certificate at first, as short runs have no more.
    fn how_far(&mut self, luck: &mut Luck) -> Duration {
        let [near, far] = &STEPS;
        self.steps += 1;
        if self.steps > 2 && luck.below(2) == 0 {
            luck.within(near)
        } else {
            luck.within(far)
        }
    }

    /// As of a machine whose clock is wrong until somebody sets it right. Its operator renews the
    /// chain, or does not.
    async fn step_the_clock(&mut self, by: Step, luck: &mut Luck) {
        for step in [by, by.back()] {
            self.verdict.goodness.begins_to_change();
            clock::step(step);
            sleep(LOADING).await;
            self.verdict.goodness.has_changed();
            sleep(luck.within(&self.pace.between_faults)).await;
            if luck.below(2) == 0 {
                self.renew().await;
                sleep(luck.within(&self.pace.between_faults)).await;
            }
        }
        if !self.verdict.goodness.lasts(self.pace.life / 2) {
            self.renew().await;
        }
    }

    async fn renew_by_halves(&mut self, luck: &mut Luck) {
        let chain = self.next_chain();
        let (certificates, key) = pem(&chain);
        let cut = luck.below(certificates.len());
        let file = self.folder.join("chain.pem");
        fs::write(&file, &certificates[..cut]).unwrap();
        sleep(luck.between(10, 900)).await;
        if luck.below(2) == 0 {
            self.signal(Signal::SIGHUP);
        }
        let mut file = OpenOptions::new().append(true).open(file).unwrap();
        file.write_all(&certificates[cut..]).unwrap();
        sleep(luck.between(10, 3000)).await;
        fs::write(self.folder.join("key.pem"), key).unwrap();
        self.verdict.goodness.is_of(&chain);
    }

    async fn hand_over(&mut self) {
        let before = self.process();
        self.signal(Signal::SIGUSR2);
        let start = Instant::now();
        while self.process() == before {
            if start.elapsed() > PATIENCE {
                return self
                    .verdict
                    .failed("no other process takes over".to_owned());
            }
            sleep(Duration::from_millis(20)).await;
        }
        self.gone(before).await;
    }

    async fn fill_the_disk(&mut self, luck: &mut Luck) {
        let filler = self.folder.join("state/filler");
        let mut file = File::create(&filler).unwrap();
        // Until there is no room.
        while file.write_all(&[0; 1024]).is_ok() {}
        // Into what is left of its own file.
        let chain = self.next_chain();
        write_chain(&self.folder, &chain);
        self.verdict.goodness.is_of(&chain);
        sleep(luck.between(2500, 4000)).await;
        fs::remove_file(filler).unwrap();
    }

    fn signal(&self, signal: Signal) {
        let process = i32::try_from(self.process()).unwrap();
        if let Err(error) = kill(Pid::from_raw(process), signal) {
            let log = self.folder.join("serve.log");
            self.verdict.failed(format!(
                "ad serve ({process}) has ended by itself ({error}): see {}",
                log.display()
            ));
        }
    }

    /// Waits until a process of the server has ended.
    async fn gone(&mut self, process: u32) {
        let start = Instant::now();
        while is_running(process) {
            // Those that it was not started for are somebody else's to bury.
            let _ = self.server.child.try_wait();
            if start.elapsed() > PATIENCE {
                return self
                    .verdict
                    .failed(format!("ad serve ({process}) does not end"));
            }
            sleep(Duration::from_millis(20)).await;
        }
    }

    fn serve(&mut self) {
        let _ = self.server.child.try_wait();
        self.server = Server::start(self.pace, &self.program, &self.folder, &self.socket);
    }

    /// Starts what publishes, in the place of the one that runs.
    fn publish(&mut self) {
        if let Some(mut publisher) = self.publisher.take() {
            end(&mut publisher);
        }
        let mut command = Command::new(&self.program);
        command
            .args(["ad", "publish", NAME, "--watch", "--from", "end-entity"])
            .args([
                "--ttl",
                &format!("{}s", self.pace.ttl.as_secs()),
                "--server",
                SERVER,
            ])
            .args(["--update", &BIND.to_string(), "--tsig", "update.key"])
            .args(["--chain", "chain.pem"])
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stderr(log(&self.folder, "publish.log"));
        self.publisher = Some(command.spawn().unwrap());
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        if let Some(publisher) = &mut self.publisher {
            end(publisher);
        }
        let process = i32::try_from(self.process()).unwrap();
        if is_running(self.process()) {
            let _ = kill(Pid::from_raw(process), Signal::SIGKILL);
        }
    }
}

/// `ad serve`: the process that was started, and the one that serves, which may be its grandchild.
struct Server {
    child: Child,
    process: Arc<AtomicU32>,
}

impl Server {
    fn start(pace: &Pace, program: &Path, folder: &Path, socket: &Socket) -> Server {
        let mut command = Command::new("bash");
        command
            .args([
                "-c",
                r#"exec 3<&0 0</dev/null; LISTEN_PID=$$ LISTEN_FDS=1 exec "$@""#,
                "bash",
            ])
            .arg(program)
            .args(["ad", "serve", "--listen", "systemd", "--backend", BACKEND])
            .args([
                "--chain",
                "chain.pem",
                "--key",
                "key.pem",
                "--state",
                "state",
            ])
            .args([
                "--ttl",
                &format!("{}s", pace.ttl.as_secs()),
                "--drain",
                "60s",
            ])
            .current_dir(folder)
            .stdin(OwnedFd::from(socket.try_clone().unwrap()))
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let process = Arc::new(AtomicU32::new(child.id()));
        let said = BufReader::new(child.stderr.take().unwrap());
        let log = Mutex::new(log(folder, "serve.log"));
        let serving = Arc::clone(&process);
        thread::spawn(move || {
            for line in said.lines().map_while(Result::ok) {
                let words: Vec<_> = line.split(' ').collect();
                if let ["lastbyte:", "process", next, "goes", "on,", ..] = words[..] {
                    serving.store(next.parse().unwrap(), Ordering::SeqCst);
                }
                let _ = writeln!(log.lock().unwrap(), "{line}");
            }
        });
        Server { child, process }
    }
}

/// A server of pages of any size.
struct Backend(tokio::task::JoinHandle<()>);

impl Backend {
    async fn start() -> Backend {
        let start = Instant::now();
        let listener = loop {
            match TcpListener::bind(BACKEND).await {
                Ok(listener) => break listener,
                Err(error) => assert!(start.elapsed() < PATIENCE, "{BACKEND}: {error}"),
            }
            sleep(Duration::from_millis(20)).await;
        };
        Backend(tokio::spawn(async move {
            // They end with it.
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(timeout(PATIENCE, answer(stream)));
                while connections.try_join_next().is_some() {}
            }
        }))
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn answer(mut stream: TcpStream) -> io::Result<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        if stream.read_buf(&mut request).await? == 0 {
            return Ok(());
        }
    }
    let request = String::from_utf8_lossy(&request).into_owned();
    let path = request
        .split(' ')
        .nth(1)
        .and_then(|path| path.strip_prefix('/'));
    let size = path.and_then(|size| size.parse().ok()).unwrap_or_default();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(&page(size)).await?;
    stream.shutdown().await?;
    // Until the client has it.
    stream.read(&mut [0; 100]).await.map(drop)
}

fn resolver(folder: &Path) -> Daemon {
    let chain = folder.join("resolver.pem");
    let key = folder.join("resolver.key");
    if !chain.exists() {
        let (certificates, private) = pem(&test_chains::for_name("resolver.example").unwrap());
        fs::write(&chain, certificates).unwrap();
        fs::write(&key, private).unwrap();
    }
    unbound(BIND, &chain, &key)
}

fn issue(authority: &Ca, pace: &Pace) -> Chain {
    let issued = authority.issue(NAME, SystemTime::now(), pace.life);
    issued.unwrap()
}

fn pem(chain: &Chain) -> (Vec<u8>, Vec<u8>) {
    let certificates = chain.certificates().iter().map(|one| one.to_pem().unwrap());
    let key = chain.key().private_key_to_pem_pkcs8().unwrap();
    (certificates.collect::<Vec<_>>().concat(), key)
}

fn write_chain(folder: &Path, chain: &Chain) {
    let (certificates, key) = pem(chain);
    fs::write(folder.join("chain.pem"), certificates).unwrap();
    fs::write(folder.join("key.pem"), key).unwrap();
}

fn log(folder: &Path, name: &str) -> File {
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(folder.join(name));
    file.unwrap()
}

fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// Not gone, and not waiting to be buried either.
fn is_running(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/stat"));
    status.is_ok_and(|status| {
        let state = status.rsplit_once(") ").map(|(_, rest)| rest);
        state.is_some_and(|state| !state.starts_with('Z'))
    })
}

async fn break_link([begin, end]: &[&str; 2], luck: &mut Luck) {
    run(begin);
    sleep(luck.between(500, 3000)).await;
    run(end);
}

fn run(line: &str) {
    let mut words = line.split(' ');
    let status = Command::new(words.next().unwrap()).args(words).status();
    let status = status.unwrap_or_else(|error| panic!("{line}: {error}"));
    assert!(status.success(), "{line}: {status}");
}
