//! What leaving certificates out costs a server: handshakes with and without the mechanism, side by
//! side, and a thousand connections at a time.
//!
//!     cargo bench -p lastbyte-ad --bench serve [-- SECONDS]
//!
//! Servers are processes of their own, so that the CPU time is theirs alone. Their turns alternate,
//! and medians are printed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use lastbyte_ad::serve::{ChainFiles, Config, Server};
use lastbyte_pki::{ChainSpec, KeyAlgorithm, RootDelivery, Store};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use openssl::ssl::{Ssl, SslContext, SslMethod, SslSessionCacheMode, SslStream, SslVerifyMode};
use openssl::x509::store::X509StoreBuilder;
use pqtlsad::extension::ExtensionType;
use pqtlsad::openssl::{EndEntity, client};
use pqtlsad::record::Delivered;
use pqtlsad::server::PublicChain;
use pqtlsad::validate::{Algorithms, Offer, Trust, validate};
use tempfile::TempDir;
use tokio::sync::mpsc;

const NAME: &str = "server.example";
const TURNS: usize = 7;
const CLIENTS: usize = 2;
const CONNECTIONS: usize = 1000;

fn main() {
    // A held connection takes two files at each end of the proxy.
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, most, most).unwrap();
    let arguments: Vec<_> = env::args().skip(1).collect();
    match arguments.as_slice() {
        [word, mode, folder, backend] if word == "__server" => serve(mode, folder, backend),
        rest => {
            let seconds = rest.iter().find_map(|word| word.parse().ok());
            measure(Duration::from_secs_f64(seconds.unwrap_or(1.5)));
        }
    }
}

/// A client and the server that it speaks with.
struct Arm {
    what: &'static str,
    server: usize,
    offer: Option<Offer>,
    rates: Vec<f64>,
    cpu: Vec<f64>,
}

fn measure(turn: Duration) {
    for algorithm in ["ecdsa-p256", "ml-dsa-65"] {
        let algorithm: KeyAlgorithm = algorithm.parse().unwrap();
        let spec = ChainSpec {
            intermediates: 0,
            root: RootDelivery::Sent,
            ..ChainSpec::new(algorithm)
        };
        let kept = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/test-chains");
        let chain = Store::open(kept).chain(&spec).unwrap();
        let folder = TempDir::new().unwrap();
        let pem = chain
            .certificates()
            .iter()
            .flat_map(|one| one.to_pem().unwrap());
        fs::write(folder.path().join("chain.pem"), pem.collect::<Vec<_>>()).unwrap();
        let key = chain.key().private_key_to_pem_pkcs8().unwrap();
        fs::write(folder.path().join("key.pem"), key).unwrap();

        let backend = echo();
        let servers = ["plain", "pqtls-ad"].map(|mode| Running::start(mode, &folder, backend));
        let context = context(&chain);
        let public = PublicChain::new(chain.certificates().to_vec()).unwrap();
        let offer = |count| {
            let delivered = Delivered {
                part: public.part(count),
                list: public.topmost(count).unwrap(),
            };
            let trust = Trust {
                anchors: context.cert_store(),
                at: SystemTime::now(),
                algorithms: Algorithms::All,
            };
            Some(validate(delivered, NAME, &trust).unwrap())
        };
        let arm = |what, server, offer| Arm {
            what,
            server,
            offer,
            rates: Vec::new(),
            cpu: Vec::new(),
        };
        let mut arms = [
            arm("without the mechanism", 0, None),
            arm("with it, a plain client", 1, None),
            arm("with it, root left out", 1, offer(1)),
            arm("with it, all left out", 1, offer(2)),
        ];
        for _ in 0..TURNS {
            for arm in &mut arms {
                let server = &servers[arm.server];
                let cpu = server.cpu();
                let start = Instant::now();
                let handshakes = handshakes(&context, server.address, &arm.offer, turn);
                arm.rates
                    .push(handshakes as f64 / start.elapsed().as_secs_f64());
                arm.cpu
                    .push((server.cpu() - cpu).as_secs_f64() / handshakes as f64);
            }
        }
        println!(
            "\n{algorithm}, end-entity and root, {TURNS} turns of {turn:?}, {CLIENTS} clients"
        );
        println!(
            "{:<26} {:>12} {:>7} {:>14} {:>7}",
            "", "handshakes/s", "ratio", "CPU/handshake", "ratio"
        );
        let base = (median(&arms[0].rates), median(&arms[0].cpu));
        for arm in &arms {
            let (rate, cpu) = (median(&arm.rates), median(&arm.cpu));
            println!(
                "{:<26} {rate:>12.0} {:>7.3} {:>11.0} µs {:>7.3}",
                arm.what,
                rate / base.0,
                cpu * 1e6,
                cpu / base.1
            );
        }
        hold(&context, &servers[1], &arms[2].offer);
    }
}

/// Holds connections, and has each of them answered while all are open.
fn hold(context: &SslContext, server: &Running, offer: &Option<Offer>) {
    let start = Instant::now();
    let before = server.memory();
    let mut streams: Vec<_> = (0..CONNECTIONS)
        .map(|_| connect(context, server.address, offer))
        .collect();
    let held = server.memory();
    for (index, stream) in streams.iter_mut().enumerate() {
        stream.write_all(&index.to_be_bytes()).unwrap();
    }
    for (index, stream) in streams.iter_mut().enumerate() {
        let mut answer = [0; size_of::<usize>()];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(answer, index.to_be_bytes());
    }
    println!(
        "{} connections held, and each answered, within {:.1?}: {} KiB of memory each",
        streams.len(),
        start.elapsed(),
        held.saturating_sub(before) / CONNECTIONS
    );
}

fn handshakes(
    context: &SslContext,
    server: SocketAddr,
    offer: &Option<Offer>,
    turn: Duration,
) -> u64 {
    let done = AtomicBool::new(false);
    let count = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    drop(connect(context, server, offer));
                    count.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        thread::sleep(turn);
        done.store(true, Ordering::Relaxed);
    });
    count.load(Ordering::Relaxed)
}

fn connect(
    context: &SslContext,
    server: SocketAddr,
    offer: &Option<Offer>,
) -> SslStream<TcpStream> {
    let mut ssl = Ssl::new(context).unwrap();
    ssl.set_hostname(NAME).unwrap();
    ssl.param_mut().set_host(NAME).unwrap();
    if let Some(offer) = offer {
        client::offer(&mut ssl, offer.clone(), EndEntity::RawPublicKey).unwrap();
    }
    let stream = TcpStream::connect(server).unwrap();
    stream.set_nodelay(true).unwrap();
    let mut stream = SslStream::new(ssl, stream).unwrap();
    stream.connect().unwrap();
    assert!(offer.is_none() || client::outcome(stream.ssl()).unwrap().is_ok());
    stream
}

fn context(chain: &lastbyte_pki::Chain) -> SslContext {
    let mut context = SslContext::builder(SslMethod::tls_client()).unwrap();
    let mut anchors = X509StoreBuilder::new().unwrap();
    anchors.add_cert(chain.root().clone()).unwrap();
    context.set_cert_store(anchors.build());
    context.set_verify(SslVerifyMode::PEER);
    context.set_session_cache_mode(SslSessionCacheMode::OFF);
    client::install(&mut context, ExtensionType::DEFAULT).unwrap();
    context.build()
}

/// A server that sends back what it gets.
fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            listener.set_nonblocking(true).unwrap();
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                tokio::spawn(async move {
                    let (mut reader, mut writer) = stream.split();
                    let _ = tokio::io::copy(&mut reader, &mut writer).await;
                });
            }
        });
    });
    address
}

struct Running {
    child: Child,
    address: SocketAddr,
}

impl Running {
    fn start(mode: &str, folder: &TempDir, backend: SocketAddr) -> Running {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["__server", mode])
            .arg(folder.path())
            .arg(backend.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        Running {
            child,
            address: line.trim().parse().unwrap(),
        }
    }

    /// The CPU time that it has taken.
    fn cpu(&self) -> Duration {
        /// Of Linux on all machines that Rust knows.
        const TICKS: f64 = 100.0;
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let (_, fields) = stat.rsplit_once(") ").unwrap();
        let fields: Vec<_> = fields.split(' ').collect();
        let ticks: f64 = [fields[11], fields[12]]
            .map(|field| field.parse::<f64>().unwrap())
            .iter()
            .sum();
        Duration::from_secs_f64(ticks / TICKS)
    }

    /// The memory that it has, in KiB.
    fn memory(&self) -> usize {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Serves until its parent has ended.
fn serve(mode: &str, folder: &str, backend: &str) {
    let folder = Path::new(folder);
    let chains = vec![ChainFiles {
        chain: folder.join("chain.pem"),
        key: folder.join("key.pem"),
    }];
    let config = Config {
        ttl: Duration::from_secs(300),
        ..Config::new(chains, backend)
    };
    let server = match mode {
        "plain" => Server::plain(config),
        _ => Server::new(config),
    };
    let server = Arc::new(server.unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        println!("{}", listener.local_addr().unwrap());
        let (orders, received) = mpsc::unbounded_channel();
        tokio::task::spawn_blocking(|| {
            let _ = std::io::stdin().read(&mut [0]);
            drop(orders);
        });
        server
            .run(listener, received, |line| eprintln!("{line}"))
            .await;
    });
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
