//! Who connects.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use lastbyte_ad::client::{Connector, Settings, Use};
use lastbyte_ad::dns::Client;
use lastbyte_ad::fetch::{FetchError, Fetched, fetch};
use lastbyte_ad::http::Url;
use lastbyte_ad::test_servers::{BIND, UNBOUND};
use lastbyte_pki::test_chains::{self, Ca};
use openssl::ssl::{SslAcceptor, SslMethod};
use pqtlsad::client::Outcome;
use pqtlsad::openssl::EndEntity;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, LocalSet, spawn_local};
use tokio::time::{sleep, timeout};

use crate::clock::Moment;
use crate::pace::Pace;
use crate::servers::Servers;
use crate::verdict::{Lost, Verdict};
use crate::{Luck, NAME, SERVER};

const COUNT: usize = 6;

/// What a page is asked for in, and what a server of another CA says.
const IMPOSTOR: &str = "127.0.0.66:443";

/// What no connection takes.
const NEVER: Duration = Duration::from_secs(120);

/// What a client waits for.
const PATIENCE: Duration = Duration::from_secs(30);

/// Bytes of the largest page.
const LARGEST: usize = 300_000;

pub(crate) struct Clients {
    shared: Arc<Shared>,
    /// Of their own: whatever is broken takes time.
    thread: thread::JoinHandle<()>,
}

struct Shared {
    pace: &'static Pace,
    verdict: Arc<Verdict>,
    roots: PathBuf,
    /// One for each client that may connect.
    go: Semaphore,
    stop: AtomicBool,
}

impl Clients {
    pub(crate) fn start(
        pace: &'static Pace,
        servers: &Servers,
        luck: &mut Luck,
        verdict: Arc<Verdict>,
    ) -> Clients {
        let shared = Arc::new(Shared {
            pace,
            verdict,
            roots: servers.roots().to_owned(),
            go: Semaphore::new(COUNT),
            stop: AtomicBool::new(false),
        });
        let lucks: Vec<_> = (0..COUNT).map(|_| Luck(luck.next())).collect();
        let theirs = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            let clients = async {
                let clients = lucks.into_iter().map(|luck| {
                    let shared = Arc::clone(&theirs);
                    spawn_local(async move { shared.connect_until_stopped(luck).await })
                });
                for client in clients.collect::<Vec<_>>() {
                    client.await.unwrap();
                }
            };
            LocalSet::new().block_on(&runtime.unwrap(), clients);
        });
        Clients { shared, thread }
    }

    /// Waits until nobody is connected, and the server has noticed.
    pub(crate) async fn rest(&self) {
        let all = u32::try_from(COUNT).unwrap();
        self.shared.go.acquire_many(all).await.unwrap().forget();
        sleep(Duration::from_secs(2)).await;
    }

    pub(crate) fn go_on(&self) {
        self.shared.go.add_permits(COUNT);
    }

    pub(crate) async fn stop(self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        let joined = tokio::task::spawn_blocking(|| self.thread.join());
        joined.await.unwrap().unwrap();
    }
}

impl Shared {
    async fn connect_until_stopped(&self, mut luck: Luck) {
        let mut connector = self.connector(&mut luck, None);
        while !self.stop.load(Ordering::Relaxed) {
            let go = self.go.acquire().await.unwrap();
            match luck.below(20) {
                0 => self.say_nothing(&mut luck).await,
                1 => self.meet_an_impostor(&mut luck).await,
                // As long as it lives, it keeps records.
                2..=8 => self.fetch(&connector, &mut luck).await,
                _ => {
                    connector = self.connector(&mut luck, None);
                    self.fetch(&connector, &mut luck).await;
                }
            }
            drop(go);
            sleep(luck.within(&self.pace.between_connections)).await;
        }
    }

    fn connector(&self, luck: &mut Luck, connect: Option<&str>) -> Connector {
        let dns = [BIND, UNBOUND][luck.below(2)];
        let settings = Settings {
            ca: Some(self.roots.clone()),
            connect: connect.map(|address| address.parse().unwrap()),
            grace: [Duration::ZERO, Duration::from_millis(500)][luck.below(2)],
            end_entity: [EndEntity::RawPublicKey, EndEntity::Carrier][luck.below(2)],
            patience: PATIENCE,
            ..Settings::default()
        };
        Connector::new(Arc::new(Client::new([dns.into()])), settings).unwrap()
    }

    async fn fetch(&self, connector: &Connector, luck: &mut Luck) {
        let size = luck.below(LARGEST);
        let how = match luck.below(5) {
            0 => Use::Nothing,
            _ => Use::Record,
        };
        let since = Moment::now();
        let mut body = Vec::new();
        let fetching = get(connector, how, size, &mut body);
        match timeout(NEVER, fetching).await {
            Err(_) => self
                .verdict
                .failed(format!("a connection hangs for {} s", NEVER.as_secs())),
            Ok(Err(error)) => self.refused(&error, since),
            Ok(Ok(fetched)) if fetched.status != 200 || body != page(size) => {
                let got = body.len();
                self.verdict
                    .failed(format!("{got} bytes of {size}, or others: {fetched:?}"));
            }
            Ok(Ok(fetched)) => {
                let outcome = match &fetched.handshake.result {
                    Ok(_) => Outcome::Used,
                    Err(fallback) => fallback.outcome,
                };
                self.verdict.verified(outcome, since);
            }
        }
    }

    fn refused(&self, error: &FetchError, since: Moment) {
        let why = reason(error);
        let says = |what| why.contains(what);
        let lost = match () {
            () if says("has no address") => Lost::Names,
            () if says("expired") || says("not yet valid") => Lost::Trust,
            () => Lost::Connections,
        };
        self.verdict.refused(lost, &why, since);
    }

    /// A server that nobody trusts, at the address that DNS might say.
    async fn meet_an_impostor(&self, luck: &mut Luck) {
        let connector = self.connector(luck, Some(IMPOSTOR));
        let mut body = Vec::new();
        let fetching = get(&connector, Use::Record, 1, &mut body);
        let end = match timeout(NEVER, fetching).await {
            Err(_) => return self.verdict.failed("an impostor holds a client".to_owned()),
            Ok(Ok(_)) => return self.verdict.failed("an impostor is believed".to_owned()),
            Ok(Err(FetchError::Connect(error))) => error.to_string(),
            Ok(Err(error)) => {
                return self
                    .verdict
                    .failed(format!("an impostor is asked: {error}"));
            }
        };
        self.verdict
            .ended(if end.contains("certificate is not accepted") {
                "refused: an impostor"
            } else {
                // The name was not known at the moment.
                "refused: an impostor, before it had said anything"
            });
    }

    /// Connects, and goes away half-way.
    async fn say_nothing(&self, luck: &mut Luck) {
        let Ok(mut stream) = TcpStream::connect(SERVER).await else {
            return;
        };
        let hello: &[u8] = match luck.below(3) {
            0 => b"",
            // The first record of 512 bytes, and not all of it.
            1 => b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
            _ => b"GET / HTTP/1.1\r\n\r\n",
        };
        let _ = stream.write_all(hello).await;
        sleep(luck.between(0, 300)).await;
        self.verdict.ended("given up by the client");
    }
}

async fn get(
    connector: &Connector,
    how: Use,
    size: usize,
    body: &mut Vec<u8>,
) -> Result<Fetched, FetchError> {
    let url: Url = format!("https://{NAME}/{size}").parse().unwrap();
    fetch(connector, &url, how, PATIENCE, body).await
}

/// What the backend answers.
pub(crate) fn page(size: usize) -> Vec<u8> {
    (0..size).map(|at| (at % 251) as u8).collect()
}

/// Without what differs from time to time.
fn reason(error: &FetchError) -> String {
    let text = error.to_string();
    let words = text
        .split([' ', '/'])
        .filter(|word| !word.bytes().any(|byte| byte.is_ascii_digit()));
    words.collect::<Vec<_>>().join(" ")
}

/// A server whose CA nobody trusts.
pub(crate) struct Impostor(JoinHandle<()>);

impl Impostor {
    pub(crate) async fn start() -> Impostor {
        let chain = test_chains::for_name(NAME).unwrap();
        let mut acceptor = SslAcceptor::mozilla_modern_v5(SslMethod::tls_server()).unwrap();
        let certificates = chain.certificates();
        acceptor.set_certificate(&certificates[0]).unwrap();
        acceptor
            .add_extra_chain_cert(certificates[1].clone())
            .unwrap();
        acceptor.set_private_key(chain.key()).unwrap();
        let context = acceptor.build().into_context();
        let listener = TcpListener::bind(IMPOSTOR).await.unwrap();
        Impostor(tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let ssl = openssl::ssl::Ssl::new(&context).unwrap();
                let mut stream = tokio_openssl::SslStream::new(ssl, stream).unwrap();
                tokio::spawn(async move {
                    let _ = std::pin::Pin::new(&mut stream).accept().await;
                    let _ = stream.read(&mut [0]).await;
                });
            }
        }))
    }
}

impl Drop for Impostor {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The roots that these have.
pub(crate) fn write_roots(file: &Path, authorities: &[Ca]) {
    let roots = authorities.iter().map(|ca| ca.root().to_pem().unwrap());
    std::fs::write(file, roots.collect::<Vec<_>>().concat()).unwrap();
}
