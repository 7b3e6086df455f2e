//! All that serves, and how it is broken.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpListener as Socket;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use lastbyte_ad::test_servers::{BIND, Daemon, KEY, bind, unbound};
use lastbyte_pki::{Chain, test_chains};
use nix::sys::signal::{Signal, kill};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_settime};
use nix::unistd::Pid;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::clients::{page, write_roots};
use crate::verdict::{Lost, Verdict};
use crate::{Luck, NAME, Pace, SERVER, World};

const ZONE: &str = "server A 127.0.0.9";
const BACKEND: &str = "127.0.0.1:8080";

/// What no step takes on any machine.
const PATIENCE: Duration = Duration::from_secs(120);

const HOUR: Duration = Duration::from_secs(3600);

/// How many chains follow one another.
const CHAINS: usize = 4;

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
    ClockStep,
}

impl Fault {
    const ALL: [Fault; 16] = [
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
        Fault::ClockStep,
    ];

    /// Those that there are in a world. The kernel of the virtual one has no iptables, and loses nothing of its own; the clock
    /// of the real one is others', too.
    pub(crate) fn of(world: World) -> Vec<Fault> {
        let missing = match world {
            World::Real => Fault::ClockStep,
            World::Virtual => Fault::LossyLink,
        };
        let all = Fault::ALL.into_iter();
        all.filter(|fault| *fault != missing).collect()
    }

    /// What clients may lose because of it. A link that is slow or loses costs them time and nothing else, and so does
    /// whatever operators do.
    fn loses(self) -> Option<Lost> {
        match self {
            Fault::KilledServer | Fault::KilledBackend => Some(Lost::Connections),
            Fault::KilledResolver | Fault::KilledNameServer => Some(Lost::Names),
            _ => None,
        }
    }
}

pub(crate) struct Servers {
    program: PathBuf,
    folder: PathBuf,
    pace: Pace,
    verdict: Arc<Verdict>,
    chains: Vec<Chain>,
    next: usize,
    /// As systemd would hold it: whatever happens to the server, connections wait.
    socket: Socket,
    server: Server,
    publisher: Option<Child>,
    name_server: Option<Daemon>,
    resolver: Option<Daemon>,
    backend: Option<Backend>,
    roots: PathBuf,
    /// What the clock would have told at the beginning of monotonic time.
    epoch: Duration,
}

impl Servers {
    pub(crate) async fn start(
        program: PathBuf,
        folder: PathBuf,
        verdict: Arc<Verdict>,
        pace: Pace,
    ) -> Servers {
        let chains = (0..CHAINS).map(|_| test_chains::for_name(NAME).unwrap());
        let chains: Vec<_> = chains.collect();
        let roots = folder.join("roots.pem");
        write_roots(&roots, &chains);
        fs::write(folder.join("update.key"), KEY).unwrap();
        write_chain(&folder, &chains[0]);
        let socket = Socket::bind(SERVER).unwrap();
        let mut servers = Servers {
            server: Server::start(&program, &folder, &socket, pace),
            publisher: None,
            name_server: Some(bind(ZONE)),
            resolver: Some(resolver(&folder)),
            backend: Some(Backend::start().await),
            program,
            folder,
            pace,
            epoch: now(ClockId::CLOCK_REALTIME) - now(ClockId::CLOCK_MONOTONIC),
            verdict,
            chains,
            next: 1,
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
            Fault::Renewal => {
                let chain = self.next_chain();
                write_chain(&self.folder, &chain);
            }
            Fault::HalfRenewal => self.renew_by_halves(luck).await,
            Fault::WrongKey => {
                let key = fs::read(self.folder.join("key.pem")).unwrap();
                let other = self.chains[self.next % CHAINS].key();
                let other = other.private_key_to_pem_pkcs8().unwrap();
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
            Fault::LossyLink => {
                let drop =
                    "INPUT -i lo -p tcp -m statistic --mode random --probability 0.02 -j DROP";
                run(&format!("iptables -A {drop}"));
                sleep(luck.between(500, 3000)).await;
                run(&format!("iptables -D {drop}"));
            }
            Fault::SlowLink => {
                let shape = match self.pace.world {
                    World::Real => "tbf rate 20mbit burst 64kbit latency 100ms",
                    World::Virtual => "netem rate 20mbit delay 100ms",
                };
                run(&format!("tc qdisc add dev lo root {shape}"));
                sleep(luck.between(500, 3000)).await;
                run("tc qdisc del dev lo root");
            }
            Fault::ClockStep => {
                // Never before the beginning: certificates begin there.
                let ahead = HOUR * u32::try_from(luck.below(96)).unwrap();
                let told = self.epoch + now(ClockId::CLOCK_MONOTONIC) + ahead;
                let clock = ClockId::CLOCK_REALTIME;
                clock_settime(clock, TimeSpec::from_duration(told)).unwrap();
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
        let chain = self.chains[self.next % CHAINS].clone();
        self.next += 1;
        chain
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
        self.server = Server::start(&self.program, &self.folder, &self.socket, self.pace);
    }

    /// Starts what publishes, in the place of the one that runs.
    fn publish(&mut self) {
        if let Some(mut publisher) = self.publisher.take() {
            end(&mut publisher);
        }
        let mut command = Command::new(&self.program);
        command
            .args(["ad", "publish", NAME, "--watch", "--from", "end-entity"])
            .args(["--ttl", &seconds(self.pace.ttl), "--server", SERVER])
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
    fn start(program: &Path, folder: &Path, socket: &Socket, pace: Pace) -> Server {
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
            .args(["--ttl", &seconds(pace.ttl), "--drain", "60s"])
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

fn seconds(time: Duration) -> String {
    format!("{}s", time.as_secs())
}

fn now(clock: ClockId) -> Duration {
    clock.now().unwrap().into()
}

fn run(line: &str) {
    let mut words = line.split(' ');
    let status = Command::new(words.next().unwrap()).args(words).status();
    let status = status.unwrap_or_else(|error| panic!("{line}: {error}"));
    assert!(status.success(), "{line}: {status}");
}
