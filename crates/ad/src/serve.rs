//! A proxy that ends TLS in front of a server, and leaves out what DNS delivered.

mod flight;
mod log;
mod relay;

use std::convert::Infallible;
use std::fs;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use openssl::error::ErrorStack;
use openssl::ssl::{Ssl, SslContext, SslContextBuilder, SslMethod, SslMode};
use pqtlsad::extension::ExtensionType;
use pqtlsad::openssl::{EndEntity, server};
use pqtlsad::server::{Chain, ChainError, Chains, SharedChains};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_openssl::SslStream;

use self::flight::FlightStream;
use self::log::Log;
use self::relay::relay;
use crate::tls;

/// The groups that a server agrees to, the preferred ones first: hybrid ones before those that a
/// quantum computer breaks.
pub const GROUPS: &str = "X25519MLKEM768:SecP256r1MLKEM768:SecP384r1MLKEM1024:MLKEM768:MLKEM1024:\
                          X25519:secp256r1:secp384r1";

/// How often the files of chains are looked at.
const INTERVAL: Duration = Duration::from_secs(1);

/// How long after a reload the old record may still be published: whoever publishes the new one has
/// to see first that it is accepted.
pub const PUBLISHING: Duration = Duration::from_secs(60);

/// How long accepting rests when the system has no room for another connection.
const NO_ROOM: Duration = Duration::from_millis(100);

/// What to serve.
#[derive(Clone, Debug)]
pub struct Config {
    /// The chains, the first for clients that ask for no known name.
    pub chains: Vec<ChainFiles>,
    /// Where the plain text goes: `HOST:PORT`.
    pub backend: String,
    /// What the backend learns of clients besides what they send.
    pub clients: ClientAddress,
    /// How long resolvers may keep the records that name a chain.
    pub ttl: Duration,
    /// The extension's number.
    pub extension: ExtensionType,
    /// How the key is proved when the whole chain comes from DNS.
    pub end_entity: EndEntity,
    /// Key-exchange groups, as OpenSSL lists them.
    pub groups: String,
    /// What connections may take.
    pub limits: Limits,
}

/// Whether the backend learns whose connection it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientAddress {
    /// It sees this server's own address.
    #[default]
    Kept,
    /// In a line before all else, as version 1 of the PROXY protocol has it.
    Told,
}

/// A chain and its key, in PEM.
#[derive(Clone, Debug)]
pub struct ChainFiles {
    /// The end-entity first.
    pub chain: PathBuf,
    /// The end-entity's key.
    pub key: PathBuf,
}

/// What connections may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// At a time. Others wait to be accepted.
    pub connections: usize,
    /// A handshake, or the connection to the backend.
    pub handshake: Duration,
    /// Without a byte in either direction.
    pub idle: Duration,
    /// What connections get to end by themselves when the server stops.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections: 10_000,
            handshake: Duration::from_secs(10),
            idle: Duration::from_secs(300),
            drain: Duration::from_secs(10),
        }
    }
}

/// Why nothing can be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A file can't be read.
    #[error("can't read \"{}\": {error}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// The system's words.
        error: io::Error,
    },
    /// A chain can't be used.
    #[error("\"{}\" with \"{}\": {error}", files.chain.display(), files.key.display())]
    Chain {
        /// Its files.
        files: ChainFiles,
        /// What is wrong.
        error: ChainError,
    },
    /// OpenSSL can't be set up.
    #[error("can't set TLS up: {0}")]
    OpenSsl(#[from] ErrorStack),
}

/// What was served.
#[derive(Debug, Default)]
pub struct Served {
    /// Handshakes that succeeded.
    pub handshakes: AtomicU64,
    /// Those among them that left out certificates.
    pub shortened: AtomicU64,
    /// Connections that failed.
    pub failed: AtomicU64,
    /// Those among them whose backend could not be connected to.
    pub unanswered: AtomicU64,
}

/// A server that is set up.
#[derive(Debug)]
pub struct Server {
    config: Config,
    context: SslContext,
    /// None for a server without the mechanism.
    chains: Option<Arc<SharedChains>>,
    served: Served,
}

impl Server {
    /// Loads the chains.
    ///
    /// # Errors
    ///
    /// If one can't be used.
    pub fn new(config: Config) -> Result<Server, ServeError> {
        let chains = Chains::new(load(&config.chains)?);
        let chains = Arc::new(SharedChains::new(chains));
        let mut context = context(&config)?;
        server::install(
            &mut context,
            Arc::clone(&chains),
            config.extension,
            config.end_entity,
        )?;
        Ok(Server {
            context: context.build(),
            chains: Some(chains),
            config,
            served: Served::default(),
        })
    }

    /// The same server without the mechanism, to compare with: it sends its first chain.
    ///
    /// # Errors
    ///
    /// If that can't be used.
    pub fn plain(config: Config) -> Result<Server, ServeError> {
        let mut context = context(&config)?;
        context.set_mode(SslMode::NO_AUTO_CHAIN);
        for chain in load(&config.chains)?.iter().take(1) {
            context.set_certificate(chain.end_entity())?;
            context.set_private_key(chain.key())?;
            for issuer in chain.certificates().iter().skip(1) {
                context.add_extra_chain_cert(issuer.clone())?;
            }
        }
        Ok(Server {
            context: context.build(),
            chains: None,
            config,
            served: Served::default(),
        })
    }

    /// Serves until `stop` is done, and then lets connections end. Chains are loaded again when
    /// their files change, or when `reload` is notified.
    pub async fn run(
        self: Arc<Self>,
        listener: TcpListener,
        reload: Arc<Notify>,
        stop: impl Future<Output = ()>,
        say: impl Fn(&str) + Send + Sync + 'static,
    ) {
        let log = Arc::new(Log::new(say));
        let mut connections = JoinSet::new();
        tokio::select! {
            never = self.accept(listener, &mut connections, &log) => match never {},
            never = self.follow(&reload, &log) => match never {},
            () = stop => {}
        }
        let drained = async { while connections.join_next().await.is_some() {} };
        if timeout(self.config.limits.drain, drained).await.is_err() {
            log.say(&format!("{} connections are cut", connections.len()));
        }
        connections.shutdown().await;
    }

    /// What was served.
    pub fn served(&self) -> &Served {
        &self.served
    }

    async fn accept(
        self: &Arc<Self>,
        listener: TcpListener,
        connections: &mut JoinSet<()>,
        log: &Arc<Log>,
    ) -> Infallible {
        let room = Arc::new(Semaphore::new(self.config.limits.connections));
        loop {
            // It is never closed.
            let permit = Arc::clone(&room).acquire_owned().await;
            match listener.accept().await {
                Ok((stream, peer)) => {
                    let server = Arc::clone(self);
                    let log = Arc::clone(log);
                    connections.spawn(async move {
                        let _permit = permit;
                        server.connection(stream, peer, &log).await;
                    });
                }
                Err(error) => {
                    log.failed("accepting", None, &error.to_string());
                    sleep(NO_ROOM).await;
                }
            }
            while connections.try_join_next().is_some() {}
        }
    }

    async fn connection(&self, stream: TcpStream, peer: SocketAddr, log: &Log) {
        let (what, reason) = match self.serve(stream).await {
            Ok(()) => return,
            Err(Failure { what, reason }) => (what, reason),
        };
        self.served.failed.fetch_add(1, Ordering::Relaxed);
        log.failed(what, Some(peer), &reason);
    }

    async fn serve(&self, stream: TcpStream) -> Result<(), Failure> {
        let limits = &self.config.limits;
        let announced = self.announced(&stream);
        let mut client = self.handshake(stream).await?;
        let backend = match timed(limits.handshake, self.connect(&announced)).await {
            Ok(backend) => backend,
            Err(error) => {
                self.served.unanswered.fetch_add(1, Ordering::Relaxed);
                // The client learns that it is over, and not that it was cut.
                let _ = timeout(limits.handshake, client.shutdown()).await;
                let reason = format!("{}: {error}", self.config.backend);
                let what = "connecting to the backend";
                return Err(Failure { what, reason });
            }
        };
        relay(client, backend, limits.idle)
            .await
            .map_err(|error| Failure::new("relaying", error))
    }

    /// Connects to the backend, and tells it what is to come first.
    async fn connect(&self, announced: &str) -> io::Result<TcpStream> {
        let mut backend = TcpStream::connect(&self.config.backend).await?;
        backend.set_nodelay(true)?;
        backend.write_all(announced.as_bytes()).await?;
        Ok(backend)
    }

    /// What the backend is told of a client's connection.
    fn announced(&self, stream: &TcpStream) -> String {
        match (self.config.clients, stream.peer_addr(), stream.local_addr()) {
            (ClientAddress::Kept, ..) => String::new(),
            (ClientAddress::Told, Ok(client), Ok(server)) => proxy_line(client, server),
            // It has gone already.
            (ClientAddress::Told, ..) => PROXY_UNKNOWN.to_owned(),
        }
    }

    async fn handshake(&self, stream: TcpStream) -> Result<SslStream<FlightStream>, Failure> {
        const WHAT: &str = "the handshake";
        let failed = |reason: String| Failure { what: WHAT, reason };
        stream
            .set_nodelay(true)
            .map_err(|error| Failure::new(WHAT, error))?;
        let ssl = Ssl::new(&self.context).map_err(|error| failed(error.to_string()))?;
        let mut stream = SslStream::new(ssl, FlightStream::new(stream))
            .map_err(|error| failed(error.to_string()))?;
        match timeout(self.config.limits.handshake, Pin::new(&mut stream).accept()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(failed(reason(&error))),
            Err(_) => return Err(failed("not done in time".to_owned())),
        }
        stream.get_mut().handshake_done();
        self.served.handshakes.fetch_add(1, Ordering::Relaxed);
        if server::omitted(stream.ssl()).is_some() && !stream.ssl().session_reused() {
            self.served.shortened.fetch_add(1, Ordering::Relaxed);
        }
        Ok(stream)
    }

    async fn follow(&self, reload: &Notify, log: &Log) -> Infallible {
        let mut loaded = self.files();
        loop {
            let asked = tokio::select! {
                () = reload.notified() => Asked::Always,
                () = sleep(INTERVAL) => Asked::IfChanged,
            };
            let Some(chains) = &self.chains else {
                continue;
            };
            let now = SystemTime::now();
            chains.update(|chains| chains.expire(now));
            let files = self.files();
            if files == loaded && asked == Asked::IfChanged {
                continue;
            }
            match load(&self.config.chains) {
                Ok(new) => {
                    chains.update(|chains| {
                        chains.rotate(new, now + self.config.ttl + PUBLISHING);
                        chains.expire(now);
                    });
                    log.say("the chains are loaded again");
                    loaded = files;
                }
                // A renewal may write one file after the other: what is there is tried again.
                Err(error) => log.failed("loading the chains again", None, &error.to_string()),
            }
        }
    }

    /// What the files hold.
    fn files(&self) -> Vec<Option<Vec<u8>>> {
        let files = self.config.chains.iter();
        let files = files.flat_map(|files| [&files.chain, &files.key]);
        files.map(|file| fs::read(file).ok()).collect()
    }
}

/// For addresses that the protocol has no words for.
const PROXY_UNKNOWN: &str = "PROXY UNKNOWN\r\n";

/// Version 1 of HAProxy's PROXY protocol.
fn proxy_line(client: SocketAddr, server: SocketAddr) -> String {
    let family = match (client.ip().to_canonical(), server.ip().to_canonical()) {
        (IpAddr::V4(_), IpAddr::V4(_)) => "TCP4",
        (IpAddr::V6(_), IpAddr::V6(_)) => "TCP6",
        _ => return PROXY_UNKNOWN.to_owned(),
    };
    format!(
        "PROXY {family} {} {} {} {}\r\n",
        client.ip().to_canonical(),
        server.ip().to_canonical(),
        client.port(),
        server.port()
    )
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Always,
    IfChanged,
}

/// Why a connection failed.
struct Failure {
    /// At what.
    what: &'static str,
    reason: String,
}

impl Failure {
    fn new(what: &'static str, error: io::Error) -> Failure {
        let reason = error.to_string();
        Failure { what, reason }
    }
}

/// OpenSSL's reason alone, which is the same for all who fail alike.
fn reason(error: &openssl::ssl::Error) -> String {
    let first = error.ssl_error().and_then(|stack| stack.errors().first());
    match (first.and_then(|error| error.reason()), error.io_error()) {
        (Some(reason), _) => reason.to_owned(),
        (None, Some(error)) => error.to_string(),
        (None, None) => "the client closed the connection".to_owned(),
    }
}

async fn timed<T>(limit: Duration, work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    match timeout(limit, work).await {
        Ok(done) => done,
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}

fn context(config: &Config) -> Result<SslContextBuilder, ErrorStack> {
    let mut context = tls::context(SslMethod::tls_server())?;
    context.set_groups_list(&config.groups)?;
    context.set_mode(SslMode::RELEASE_BUFFERS);
    context.set_session_id_context(b"lastbyte ad serve")?;
    Ok(context)
}

fn load(files: &[ChainFiles]) -> Result<Vec<Chain>, ServeError> {
    let read = |file: &PathBuf| {
        fs::read(file).map_err(|error| ServeError::Read {
            file: file.clone(),
            error,
        })
    };
    let load = |files: &ChainFiles| {
        Chain::from_pem(&read(&files.chain)?, &read(&files.key)?).map_err(|error| {
            ServeError::Chain {
                files: files.clone(),
                error,
            }
        })
    };
    files.iter().map(load).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::proxy_line;

    #[test]
    fn clients_are_announced_as_the_proxy_protocol_has_it() {
        for (client, server, expected) in [
            (
                "192.0.2.7:1234",
                "192.0.2.1:443",
                "PROXY TCP4 192.0.2.7 192.0.2.1 1234 443\r\n",
            ),
            (
                "[2001:db8::7]:1234",
                "[2001:db8::1]:443",
                "PROXY TCP6 2001:db8::7 2001:db8::1 1234 443\r\n",
            ),
            // As a socket of both families tells it.
            (
                "[::ffff:192.0.2.7]:1234",
                "[::ffff:192.0.2.1]:443",
                "PROXY TCP4 192.0.2.7 192.0.2.1 1234 443\r\n",
            ),
        ] {
            let line = proxy_line(client.parse().unwrap(), server.parse().unwrap());
            assert_eq!(line, expected);
        }
    }
}
