//! Programs that end TLS in front of a server, side by side: `lastbyte ad serve` as it is and as it
//! was, nginx, Caddy.
//!
//!     cargo bench -p lastbyte-ad --bench fronts -- rates|memory|silent|large|hellos|slow PROGRAM...
//!
//! A program is `nginx`, `nginx-anew`, `nginx-stream`, `caddy` or the path of a `lastbyte`. nginx keeps its connections to
//! the backend for whoever comes next; as `-anew` it makes one for each request, and as `-stream` one for each client,
//! of which it reads nothing, as a `lastbyte` does (it takes libnginx-mod-stream). Their turns alternate, and are short
//! for `rates`, whose ratios are those of neighbouring turns, with what holds their median 97 times
//! of 100: what else a machine does is done to both. CPU time is that of the program's processes
//! alone.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::env;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use lastbyte_pki::{ChainSpec, KeyAlgorithm, RootDelivery, Store};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::time::ClockId;
use nix::unistd::Pid;
use openssl::ssl::{
    Ssl, SslContext, SslMethod, SslSessionCacheMode, SslStream, SslVerifyMode, SslVersion,
};
use socket2::{Domain, Socket, Type};
use tempfile::TempDir;

const NAME: &str = "server.example";
const SLOW: &str = "slh-dsa-sha2-192s";
const TURNS: usize = 5;
const TURN: Duration = Duration::from_secs(3);
/// For rates. Whatever the numbers, the sixth and the sixteenth of 21 have their median between
/// them.
const RATE_TURNS: usize = 21;
const BETWEEN: [usize; 2] = [5, 15];
const RATE_TURN: Duration = Duration::from_secs(1);
const CLIENTS: usize = 2;
const GOOD: [u8; 4] = [127, 0, 0, 2];
const BAD: [u8; 4] = [127, 0, 0, 1];

fn main() {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, most, most).unwrap();
    let arguments: Vec<_> = env::args()
        .skip(1)
        .filter(|word| word != "--bench")
        .collect();
    let usage = "usage: cargo bench -p lastbyte-ad --bench fronts -- rates|memory|silent|large|hellos|slow PROGRAM...";
    let Some((what, programs)) = arguments.split_first() else {
        return eprintln!("{usage}");
    };
    let backend = backend();
    match what.as_str() {
        "rates" => rates(programs, backend),
        "silent" => attack(Attack::Silent(5000), &["ecdsa-p256"], programs, backend),
        "large" => attack(Attack::Large(1000), &["ecdsa-p256"], programs, backend),
        "hellos" => attack(Attack::Hellos(6), &["ecdsa-p256", SLOW], programs, backend),
        "slow" => attack(Attack::Hellos(6), &[SLOW], programs, backend),
        "memory" => memory(programs, backend),
        _ => eprintln!("{usage}"),
    }
}

/// Connections with one request each, and requests of connections that stay.
fn rates(programs: &[String], backend: SocketAddr) {
    for chain in ["ecdsa-p256", "ml-dsa-65"] {
        let files = Files::new(&[chain]);
        let context = files.client(0, groups(programs));
        let running: Vec<_> = programs
            .iter()
            .filter_map(|program| Front::start(program, &files, backend))
            .filter(|front| front.answers(&context))
            .collect();
        for kind in [Kind::Connections, Kind::Requests] {
            let mut measured: Vec<Measured> = running.iter().map(|_| Measured::default()).collect();
            for _ in 0..RATE_TURNS {
                for (front, measured) in running.iter().zip(&mut measured) {
                    measured.turn(front, &context, kind);
                }
            }
            println!(
                "\n{chain}, {}, {kind:?}, {RATE_TURNS} turns of {RATE_TURN:?}, {CLIENTS} clients",
                groups(programs)
            );
            println!(
                "{:<30} {:>8} {:>20} {:>12} {:>20} {:>9} {:>9}",
                "", "a second", "to the first", "a CPU second", "to the first", "p50", "p99"
            );
            let Some(first) = measured.first() else {
                continue;
            };
            for (front, measured) in running.iter().zip(&measured) {
                println!(
                    "{:<30} {:>8.0} {:>20} {:>12.0} {:>20} {:>9.2?} {:>9.2?}",
                    front.name,
                    median(&measured.rates),
                    ratio(&measured.rates, &first.rates),
                    median(&measured.per_cpu),
                    ratio(&measured.per_cpu, &first.per_cpu),
                    percentile(&measured.times, 50),
                    percentile(&measured.times, 99),
                );
            }
        }
    }
}

/// What all of them have.
fn groups(programs: &[String]) -> &'static str {
    if programs.iter().any(|program| is_other(program)) {
        "X25519"
    } else {
        "X25519MLKEM768"
    }
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    /// A handshake, a request, and the end.
    Connections,
    Requests,
}

#[derive(Default)]
struct Measured {
    rates: Vec<f64>,
    per_cpu: Vec<f64>,
    times: Vec<Duration>,
}

impl Measured {
    fn turn(&mut self, front: &Front, context: &SslContext, kind: Kind) {
        let cpu = front.cpu();
        let start = Instant::now();
        let done = AtomicBool::new(false);
        let times: Vec<_> = thread::scope(|scope| {
            let clients = (0..CLIENTS).map(|_| scope.spawn(|| client(front, context, kind, &done)));
            let clients: Vec<_> = clients.collect();
            thread::sleep(RATE_TURN);
            done.store(true, Ordering::Relaxed);
            let times = clients
                .into_iter()
                .flat_map(|client| client.join().unwrap());
            times.collect()
        });
        let took = start.elapsed().as_secs_f64();
        let cpu = (front.cpu() - cpu).as_secs_f64();
        self.rates.push(times.len() as f64 / took);
        self.per_cpu.push(times.len() as f64 / cpu);
        self.times.extend(times);
    }
}

fn client(front: &Front, context: &SslContext, kind: Kind, done: &AtomicBool) -> Vec<Duration> {
    let mut times = Vec::new();
    let mut kept = None;
    while !done.load(Ordering::Relaxed) {
        let start = Instant::now();
        let mut stream = match kept.take() {
            Some(stream) => stream,
            None => connect(context, front.address, GOOD).unwrap(),
        };
        request(&mut stream);
        times.push(start.elapsed());
        if matches!(kind, Kind::Requests) {
            kept = Some(stream);
        }
    }
    times
}

/// What a client that does no harm waits while another one, of another address, does. It gets the
/// first chain.
fn attack(attack: Attack, chains: &[&str], programs: &[String], backend: SocketAddr) {
    let files = Files::new(chains);
    let context = files.client(0, "X25519MLKEM768");
    let running: Vec<_> = programs
        .iter()
        .filter_map(|program| Front::start(program, &files, backend))
        .collect();
    let mut times: Vec<_> = running.iter().map(|_| [Vec::new(), Vec::new()]).collect();
    for _ in 0..TURNS {
        for (front, [calm, under_attack]) in running.iter().zip(&mut times) {
            handshakes(front, &context, calm);
            let stop = AtomicBool::new(false);
            let begun = AtomicU64::new(0);
            thread::scope(|scope| {
                scope.spawn(|| attack.run(front.address, &files, &begun, &stop));
                while begun.load(Ordering::Relaxed) < attack.size() {
                    thread::sleep(Duration::from_millis(10));
                }
                handshakes(front, &context, under_attack);
                stop.store(true, Ordering::Relaxed);
            });
            // What is still to be signed is not of the next turn.
            thread::sleep(Duration::from_secs(2));
        }
    }
    println!("\n{attack:?}, chains {}", chains.join(" and "));
    println!(
        "{:<40} {:>6} {:>10} {:>10} {:>6} {:>10} {:>10} {:>7}",
        "", "calm n", "p50", "p99", "n", "p50", "p99", "ratio"
    );
    for (front, [calm, under_attack]) in running.iter().zip(&times) {
        let (before, after) = (percentile(calm, 99), percentile(under_attack, 99));
        println!(
            "{:<40} {:>6} {:>10.2?} {before:>10.2?} {:>6} {:>10.2?} {after:>10.2?} {:>7.2}",
            front.name,
            calm.len(),
            percentile(calm, 50),
            under_attack.len(),
            percentile(under_attack, 50),
            after.as_secs_f64() / before.as_secs_f64(),
        );
    }
}

fn handshakes(front: &Front, context: &SslContext, times: &mut Vec<Duration>) {
    /// Enough of them, however long they take.
    const LEAST: usize = 5;
    let (start, before) = (Instant::now(), times.len());
    while start.elapsed() < TURN || times.len() < before + LEAST {
        let start = Instant::now();
        // One that fails took as long as its client may wait.
        match connect(context, front.address, GOOD) {
            Ok(_) => times.push(start.elapsed()),
            Err(_) => times.push(Duration::from_secs(10)),
        }
        thread::sleep(Duration::from_millis(10));
    }
}

#[derive(Clone, Copy, Debug)]
enum Attack {
    /// Connections that say nothing.
    Silent(usize),
    /// Those that say 60 KB of a ClientHello that does not end.
    Large(usize),
    /// Whole ones, which ask for a signature of SLH-DSA and go away when they have it.
    Hellos(usize),
}

impl Attack {
    fn size(self) -> u64 {
        match self {
            Attack::Silent(count) | Attack::Large(count) | Attack::Hellos(count) => count as u64,
        }
    }

    /// Goes on until it is stopped: what is closed is begun anew, once a second at most.
    fn run(self, to: SocketAddr, files: &Files, begun: &AtomicU64, stop: &AtomicBool) {
        let said = match self {
            Attack::Silent(_) => Vec::new(),
            // A record of 16 KB after the other, all of one message of 131,000 bytes.
            Attack::Large(_) => {
                let mut record = vec![0x16, 3, 1, 0x40, 0];
                record.extend([1, 1, 0xff, 0]);
                record.resize(5 + (1 << 14), 0);
                let mut next = vec![0x16, 3, 1, 0x40, 0];
                next.resize(5 + (1 << 14), 0);
                [record, next.clone(), next.clone(), next].concat()
            }
            Attack::Hellos(_) => files.slow_hello(),
        };
        let begin = || {
            let mut stream = tcp(to, BAD).ok()?;
            // As much as there is room for.
            stream.set_nonblocking(true).ok()?;
            // Otherwise its port is taken for a minute after its end, and there are too few of
            // them.
            let reset = Some(Duration::ZERO);
            socket2::SockRef::from(&stream).set_linger(reset).ok()?;
            let _ = stream.write(&said);
            begun.fetch_add(1, Ordering::Relaxed);
            Some(stream)
        };
        let mut streams: Vec<_> = (0..self.size()).map(|_| begin()).collect();
        let mut looked = Instant::now();
        while !stop.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(10));
            let often = matches!(self, Attack::Hellos(_));
            if !often && looked.elapsed() < Duration::from_secs(1) {
                continue;
            }
            looked = Instant::now();
            for stream in &mut streams {
                let is_over = match stream {
                    Some(stream) => {
                        let read = stream.peek(&mut [0]);
                        !matches!(read, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
                    }
                    None => true,
                };
                if is_over {
                    *stream = begin();
                }
            }
        }
    }
}

/// What connections take that say nothing.
fn memory(programs: &[String], backend: SocketAddr) {
    const CONNECTIONS: usize = 1000;
    let files = Files::new(&["ecdsa-p256"]);
    let context = files.client(0, groups(programs));
    for program in programs {
        let Some(front) = Front::start(program, &files, backend) else {
            continue;
        };
        // What is there once is no connection's.
        drop(
            (0..50)
                .map(|_| connect(&context, front.address, GOOD).unwrap())
                .collect::<Vec<_>>(),
        );
        thread::sleep(Duration::from_secs(1));
        let before = front.memory();
        let mut streams: Vec<_> = (0..CONNECTIONS)
            .map(|_| connect(&context, front.address, GOOD).unwrap())
            .collect();
        let established = front.memory();
        streams.iter_mut().for_each(|stream| drop(request(stream)));
        let idle = front.memory();
        drop(streams);
        let silent: Vec<_> = (0..CONNECTIONS)
            .map(|_| tcp(front.address, GOOD).unwrap())
            .collect();
        thread::sleep(Duration::from_secs(1));
        let with_silent = front.memory();
        drop(silent);
        thread::sleep(Duration::from_secs(1));
        println!(
            "{:<40} {CONNECTIONS} connections: {} KiB each when established, {} after a request; {} KiB in all before, {} with as many silent ones, {} after",
            front.name,
            established.saturating_sub(before) as f64 / CONNECTIONS as f64,
            idle.saturating_sub(before) as f64 / CONNECTIONS as f64,
            before,
            with_silent,
            front.memory(),
        );
    }
}

/// Chains in files.
struct Files {
    folder: TempDir,
    algorithms: Vec<String>,
}

impl Files {
    fn new(algorithms: &[&str]) -> Files {
        let kept = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/test-chains");
        let folder = TempDir::new().unwrap();
        for (index, algorithm) in algorithms.iter().enumerate() {
            let algorithm: KeyAlgorithm = algorithm.parse().unwrap();
            let spec = ChainSpec {
                intermediates: 0,
                root: RootDelivery::Sent,
                ..ChainSpec::new(algorithm)
            };
            let chain = Store::open(kept).chain(&spec).unwrap();
            let pem = chain
                .certificates()
                .iter()
                .flat_map(|one| one.to_pem().unwrap());
            let path = |kind| folder.path().join(format!("{kind}{index}.pem"));
            fs::write(path("chain"), pem.collect::<Vec<_>>()).unwrap();
            fs::write(path("key"), chain.key().private_key_to_pem_pkcs8().unwrap()).unwrap();
            fs::write(path("root"), chain.root().to_pem().unwrap()).unwrap();
        }
        Files {
            folder,
            algorithms: algorithms.iter().map(|&name| name.to_owned()).collect(),
        }
    }

    fn path(&self, kind: &str, index: usize) -> PathBuf {
        self.folder.path().join(format!("{kind}{index}.pem"))
    }

    /// A client that trusts one of the chains, and verifies its signatures only.
    fn client(&self, index: usize, groups: &str) -> SslContext {
        let signatures: Vec<_> = lastbyte_providers::signatures().collect();
        let context = || SslContext::builder(SslMethod::tls_client());
        let mut context = lastbyte_providers::offering(&signatures, context)
            .unwrap()
            .unwrap();
        context
            .set_min_proto_version(Some(SslVersion::TLS1_3))
            .unwrap();
        context.set_ca_file(self.path("root", index)).unwrap();
        context.set_verify(SslVerifyMode::PEER);
        context.set_session_cache_mode(SslSessionCacheMode::OFF);
        context.set_groups_list(groups).unwrap();
        context
            .set_sigalgs_list(scheme(&self.algorithms[index]))
            .unwrap();
        context.build()
    }

    /// A ClientHello that is answered with the last of the chains.
    fn slow_hello(&self) -> Vec<u8> {
        struct Recorded(Vec<u8>);
        impl Read for Recorded {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::ErrorKind::WouldBlock.into())
            }
        }
        impl Write for Recorded {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.extend(bytes);
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let context = self.client(self.algorithms.len() - 1, "X25519MLKEM768");
        let mut ssl = Ssl::new(&context).unwrap();
        ssl.set_hostname(NAME).unwrap();
        let mut stream = SslStream::new(ssl, Recorded(Vec::new())).unwrap();
        assert!(stream.connect().is_err());
        std::mem::take(&mut stream.get_mut().0)
    }
}

fn scheme(algorithm: &str) -> &'static str {
    match algorithm {
        "ecdsa-p256" => "ecdsa_secp256r1_sha256",
        "ml-dsa-65" => "mldsa65",
        _ => "slhdsa_sha2_192s",
    }
}

/// A program that runs.
struct Front {
    name: String,
    child: Child,
    address: SocketAddr,
}

fn is_other(program: &str) -> bool {
    program == "caddy" || program.starts_with("nginx")
}

impl Front {
    /// None of a program that ends with these chains.
    fn start(program: &str, files: &Files, backend: SocketAddr) -> Option<Front> {
        let mut command = match program {
            "nginx" => nginx(files, backend, Upstream::Kept),
            "nginx-anew" => nginx(files, backend, Upstream::Anew),
            "nginx-stream" => nginx(files, backend, Upstream::Stream),
            "caddy" => caddy(files, backend),
            lastbyte => {
                let mut command = Command::new(lastbyte);
                command.args([
                    "ad",
                    "serve",
                    "--listen",
                    "127.0.0.1:0",
                    "--max-connections",
                    "10000",
                ]);
                command.arg("--backend").arg(backend.to_string());
                for index in 0..files.algorithms.len() {
                    command.arg("--chain").arg(files.path("chain", index));
                    command.arg("--key").arg(files.path("key", index));
                }
                command
            }
        };
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let address = match program {
            "nginx" | "nginx-anew" | "nginx-stream" => {
                let upstream = Upstream::of(program);
                upstream.listens().parse().unwrap()
            }
            "caddy" => CADDY.parse().unwrap(),
            _ => {
                let serving = "serving on ";
                let mut said = (&mut lines).lines().map(Result::unwrap);
                let line = said.find(|line| line.contains(serving)).unwrap();
                let (_, address) = line.split_once(serving).unwrap();
                address.parse().unwrap()
            }
        };
        thread::spawn(move || io::copy(&mut lines, &mut io::sink()));
        while TcpStream::connect(address).is_err() {
            if child.try_wait().unwrap().is_some() {
                return None;
            }
            thread::sleep(Duration::from_millis(20));
        }
        let name = program.to_owned();
        Some(Front {
            name,
            child,
            address,
        })
    }

    /// Whether it serves this client, and is who it should be.
    fn answers(&self, context: &SslContext) -> bool {
        let Ok(mut stream) = connect(context, self.address, GOOD) else {
            return false;
        };
        let head = request(&mut stream).to_ascii_lowercase();
        // None of a proxy that passes on what it gets.
        let server = head.lines().find_map(|line| line.strip_prefix("server: "));
        if is_other(&self.name) && self.name != "nginx-stream" {
            let name = self.name.trim_end_matches("-anew");
            assert!(server.is_some_and(|server| server.starts_with(name)));
        } else {
            assert_eq!(server, None);
        }
        true
    }

    /// The processes: the program's own, and those that it has started.
    fn processes(&self) -> Vec<u32> {
        let own = self.child.id();
        let children = fs::read_to_string(format!("/proc/{own}/task/{own}/children"));
        let children = children.unwrap_or_default();
        let children = children
            .split_whitespace()
            .filter_map(|pid| pid.parse().ok());
        [own].into_iter().chain(children).collect()
    }

    /// The CPU time that they have taken.
    fn cpu(&self) -> Duration {
        let taken = self.processes().into_iter().map(|pid| {
            let pid = Pid::from_raw(i32::try_from(pid).unwrap());
            let clock = ClockId::pid_cpu_clock_id(pid).unwrap();
            Duration::from(clock.now().unwrap())
        });
        taken.sum()
    }

    /// The memory that they have, in KiB.
    fn memory(&self) -> usize {
        let memory = self.processes().into_iter().map(|pid| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
            let line = status
                .lines()
                .find_map(|line| line.strip_prefix("VmRSS:"))
                .unwrap();
            line.split_whitespace()
                .next()
                .unwrap()
                .parse::<usize>()
                .unwrap()
        });
        memory.sum()
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        let processes = self.processes();
        let _ = self.child.kill();
        let _ = self.child.wait();
        for pid in processes.into_iter().skip(1) {
            let pid = Pid::from_raw(i32::try_from(pid).unwrap());
            let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL);
        }
    }
}

/// Where programs listen that can't say which port they have.
const NGINX: [&str; 3] = ["127.0.0.1:28443", "127.0.0.1:28445", "127.0.0.1:28446"];
const CADDY: &str = "127.0.0.1:28444";

/// What nginx does with connections to the backend.
#[derive(Clone, Copy)]
enum Upstream {
    /// They are kept.
    Kept,
    /// Each request has one.
    Anew,
    /// Each client has one, and what it sends is not read.
    Stream,
}

impl Upstream {
    fn of(program: &str) -> Upstream {
        match program {
            "nginx-anew" => Upstream::Anew,
            "nginx-stream" => Upstream::Stream,
            _ => Upstream::Kept,
        }
    }

    fn listens(self) -> &'static str {
        NGINX[self as usize]
    }
}

fn nginx(files: &Files, backend: SocketAddr, upstream: Upstream) -> Command {
    let own = files.folder.path().display();
    let name = upstream.listens().replace([':', '.'], "-");
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let temporary: String = temporary
        .iter()
        .map(|path| format!("{path}_temp_path {own}/{path};\n"))
        .collect();
    let listens = format!(
        "listen {} ssl;\nssl_certificate {};\nssl_certificate_key {};\nssl_protocols TLSv1.3;\n",
        upstream.listens(),
        files.path("chain", 0).display(),
        files.path("key", 0).display(),
    );
    let keepalive = match upstream {
        Upstream::Kept => "keepalive 100; keepalive_requests 10000000;",
        Upstream::Anew | Upstream::Stream => "",
    };
    let serves = match upstream {
        Upstream::Stream => {
            format!("stream {{\nserver {{\n{listens}proxy_pass {backend};\n}}\n}}\n")
        }
        Upstream::Kept | Upstream::Anew => format!(
            "http {{\naccess_log off;\n{temporary}keepalive_requests 10000000;\n\
             upstream backend {{ server {backend}; {keepalive} }}\nserver {{\n{listens}\
             location / {{ proxy_pass http://backend; proxy_http_version 1.1; proxy_set_header Connection \"\"; }}\n}}\n}}\n"
        ),
    };
    let modules = match upstream {
        Upstream::Stream => "load_module /usr/lib/nginx/modules/ngx_stream_module.so;\n",
        Upstream::Kept | Upstream::Anew => "",
    };
    let text = format!(
        "{modules}user root;\ndaemon off;\nworker_processes auto;\nworker_rlimit_nofile 20000;\npid {own}/{name}.pid;\n\
         error_log stderr crit;\nevents {{ worker_connections 10000; }}\n{serves}"
    );
    let path = files.folder.path().join(format!("{name}.conf"));
    fs::write(&path, text).unwrap();
    let mut command = Command::new("/usr/sbin/nginx");
    command
        .arg("-p")
        .arg(files.folder.path())
        .arg("-c")
        .arg(path);
    command
}

fn caddy(files: &Files, backend: SocketAddr) -> Command {
    let text = format!(
        "{{\n admin off\n auto_https off\n}}\nhttps://{CADDY} {{\n tls {} {}\n reverse_proxy {backend}\n}}\n\
         https://{NAME}:28444 {{\n tls {} {}\n reverse_proxy {backend}\n}}\n",
        files.path("chain", 0).display(),
        files.path("key", 0).display(),
        files.path("chain", 0).display(),
        files.path("key", 0).display(),
    );
    let path = files.folder.path().join("Caddyfile");
    fs::write(&path, text).unwrap();
    let mut command = Command::new("caddy");
    command
        .arg("run")
        .arg("--config")
        .arg(path)
        .env("HOME", files.folder.path());
    command
}

fn tcp(to: SocketAddr, from: [u8; 4]) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&SocketAddr::from((from, 0)).into())?;
    socket.connect_timeout(&to.into(), Duration::from_secs(10))?;
    socket.set_tcp_nodelay(true)?;
    Ok(socket.into())
}

fn connect(
    context: &SslContext,
    to: SocketAddr,
    from: [u8; 4],
) -> Result<SslStream<TcpStream>, String> {
    let stream = tcp(to, from).map_err(|error| error.to_string())?;
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let mut ssl = Ssl::new(context).unwrap();
    ssl.set_hostname(NAME).unwrap();
    let mut stream = SslStream::new(ssl, stream).unwrap();
    stream.connect().map_err(|error| error.to_string())?;
    Ok(stream)
}

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

fn request(stream: &mut SslStream<TcpStream>) -> String {
    let request = format!("GET / HTTP/1.1\r\nHost: {NAME}\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let mut buffer = [0; 1 << 12];
    while !answer.ends_with(b"hello") {
        let length = stream.read(&mut buffer).unwrap();
        assert!(length > 0, "{}", String::from_utf8_lossy(&answer));
        answer.extend(&buffer[..length]);
    }
    String::from_utf8(answer).unwrap()
}

/// A server of HTTP that answers each request with five bytes.
fn backend() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            use tokio::io::{AsyncReadExt, AsyncWriteExt};
            listener.set_nonblocking(true).unwrap();
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                tokio::spawn(async move {
                    let mut request = [0; 1 << 12];
                    while stream
                        .read(&mut request)
                        .await
                        .is_ok_and(|length| length > 0)
                    {
                        if stream.write_all(ANSWER).await.is_err() {
                            return;
                        }
                    }
                });
            }
        });
    });
    address
}

/// The median of the ratios of two in one turn, and where that may be.
fn ratio(these: &[f64], those: &[f64]) -> String {
    let ratios = these.iter().zip(those).map(|(this, that)| this / that);
    let mut ratios: Vec<_> = ratios.collect();
    ratios.sort_by(f64::total_cmp);
    let [low, high] = BETWEEN.map(|at| ratios[at]);
    format!("{:.3} [{low:.3}, {high:.3}]", median(&ratios))
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The nearest rank.
fn percentile(times: &[Duration], percent: usize) -> Duration {
    let mut times = times.to_vec();
    times.sort();
    times[(times.len() * percent).div_ceil(100).saturating_sub(1)]
}
