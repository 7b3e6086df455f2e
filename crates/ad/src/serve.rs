//! A proxy that ends TLS in front of a server, and leaves out what DNS delivered.

mod chains;
mod check;
mod drain;
mod flight;
mod follow;
mod listen;
mod log;
mod pem;
mod process;
mod relay;
mod state;
mod user;

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use openssl::error::ErrorStack;
use openssl::ssl::{Ssl, SslContext, SslContextBuilder, SslMethod, SslMode};
use pqtlsad::extension::ExtensionType;
use pqtlsad::openssl::{EndEntity, server};
use pqtlsad::server::{Chains, SharedChains};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_openssl::SslStream;

pub use self::chains::{ChainFiles, Unfit};
pub use self::check::{Findings, check};
pub use self::listen::{Listen, ListenError};
pub use self::pem::PemError;
pub use self::process::{hold_signals, operate};
pub use self::state::State;
pub use self::user::{Account, AccountError, is_root, shield};

use self::chains::{Followed, Loaded, load};
use self::drain::{Noted, Serving, Turn};
use self::flight::FlightStream;
use self::follow::{Before, Reload};
use self::log::Log;
use self::relay::relay;
use crate::tls;

/// The groups that a server agrees to, the preferred ones first: hybrid ones before those that a
/// quantum computer breaks.
pub const GROUPS: &str = "X25519MLKEM768:SecP256r1MLKEM768:SecP384r1MLKEM1024:MLKEM768:MLKEM1024:\
                          X25519:secp256r1:secp384r1";

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
        error: Unfit,
    },
    /// What outlives the server can't be kept.
    #[error("can't keep chains in \"{}\": {error}", folder.display())]
    State {
        /// The folder.
        folder: PathBuf,
        /// The system's words.
        error: io::Error,
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

/// What a running server is told to do.
#[derive(Debug)]
pub enum Order {
    /// Load the chains again. The sender is dropped when that is done, or can't be.
    Reload(oneshot::Sender<()>),
    /// The same, and forget all chains before them, with their keys.
    Forget(oneshot::Sender<()>),
    /// Accept no more, and end when connections have, or their time is over.
    Stop,
    /// End.
    Abandon,
}

/// A server that is set up.
#[derive(Debug)]
pub struct Server {
    config: Config,
    context: SslContext,
    /// None for a server without the mechanism.
    chains: Option<Arc<SharedChains>>,
    /// Their files, until the server runs.
    followed: Mutex<Vec<Followed>>,
    state: Option<State>,
    serving: watch::Sender<Serving>,
    served: Served,
}

impl Server {
    /// Loads the chains.
    ///
    /// # Errors
    ///
    /// If one can't be used.
    pub fn new(config: Config) -> Result<Server, ServeError> {
        let loaded = load_all(&config)?;
        let followed = config.chains.iter().zip(&loaded);
        let followed = followed.map(|(files, loaded)| Followed::new(files, loaded));
        let followed = followed.collect();
        let chains = Chains::new(loaded.into_iter().map(|loaded| loaded.chain).collect());
        let chains = Arc::new(SharedChains::new(chains));
        let mut context = context(&config)?;
        server::install(
            &mut context,
            Arc::clone(&chains),
            config.extension,
            config.end_entity,
        )?;
        let mut server = Server::with(config, context);
        server.chains = Some(chains);
        server.followed = Mutex::new(followed);
        Ok(server)
    }

    /// The same server without the mechanism, to compare with: it sends its first chain.
    ///
    /// # Errors
    ///
    /// If that can't be used.
    pub fn plain(config: Config) -> Result<Server, ServeError> {
        let mut context = context(&config)?;
        context.set_mode(SslMode::NO_AUTO_CHAIN);
        for Loaded { chain, .. } in load_all(&config)?.iter().take(1) {
            context.set_certificate(chain.end_entity())?;
            context.set_private_key(chain.key())?;
            for issuer in chain.certificates().iter().skip(1) {
                context.add_extra_chain_cert(issuer.clone())?;
            }
        }
        Ok(Server::with(config, context))
    }

    fn with(config: Config, context: SslContextBuilder) -> Server {
        Server {
            context: context.build(),
            chains: None,
            followed: Mutex::default(),
            state: None,
            serving: watch::Sender::new(Serving::Accepting),
            config,
            served: Served::default(),
        }
    }

    /// Has chains outlive this server: those that an earlier one kept are accepted, for as long as resolvers may have them.
    /// Returns what is to be said of files that are no use.
    ///
    /// # Errors
    ///
    /// If they can't be read.
    pub fn remember(&mut self, state: State) -> Result<Vec<String>, ServeError> {
        let now = SystemTime::now();
        let kept = state.load(now)?;
        if let Some(shared) = &self.chains {
            // When the earlier server ended is not known: not after now.
            let latest = now + self.config.ttl + PUBLISHING;
            shared.update(|chains| {
                for (chain, until) in kept.chains {
                    chains.restore(chain, until.unwrap_or(latest));
                }
                chains.expire(now);
            });
        }
        self.state = Some(state);
        Ok(kept.useless)
    }

    /// Serves until it is ordered to stop, or nobody is left to do so, and then lets connections end. Chains are loaded
    /// again when their files change, or when that is ordered.
    pub async fn run(
        self: Arc<Self>,
        listener: TcpListener,
        mut orders: mpsc::UnboundedReceiver<Order>,
        say: impl Fn(&str) + Send + Sync + 'static,
    ) {
        let log = Arc::new(Log::new(say));
        let mut connections = JoinSet::new();
        let (reload, reloads) = mpsc::unbounded_channel();
        tokio::select! {
            never = self.accept(listener, &mut connections, &log) => match never {},
            never = self.follow(reloads, &log) => match never {},
            () = until_stopped(&mut orders, &reload) => {}
        }
        self.serving.send_replace(Serving::Stopping);
        let drained = async { while connections.join_next().await.is_some() {} };
        let is_drained = tokio::select! {
            drained = timeout(self.config.limits.drain, drained) => drained.is_ok(),
            () = abandoned(&mut orders) => false,
        };
        if !is_drained {
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
        let turn = Turn::new();
        let noted = Noted {
            stream: &mut client,
            turn: &turn,
        };
        tokio::select! {
            relayed = relay(noted, backend, limits.idle) => {
                return relayed.map_err(|error| Failure::new("relaying", error));
            }
            () = turn.rests(self.serving.subscribe()) => {}
        }
        // The client waits for nothing, and learns that it is over.
        let _ = timeout(limits.handshake, client.shutdown()).await;
        Ok(())
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

/// Passes on what keeps a server running, until it is to stop.
async fn until_stopped(
    orders: &mut mpsc::UnboundedReceiver<Order>,
    reload: &mpsc::UnboundedSender<Reload>,
) {
    loop {
        let (before, done) = match orders.recv().await {
            Some(Order::Reload(done)) => (Before::Kept, done),
            Some(Order::Forget(done)) => (Before::Forgotten, done),
            Some(Order::Stop | Order::Abandon) | None => return,
        };
        // Nobody takes it once the server has stopped.
        let _ = reload.send(Reload {
            before,
            _done: done,
        });
    }
}

/// Waits until a server that stops is not to wait any more.
async fn abandoned(orders: &mut mpsc::UnboundedReceiver<Order>) {
    loop {
        match orders.recv().await {
            Some(Order::Abandon) => return,
            Some(_) => {}
            None => return std::future::pending().await,
        }
    }
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

fn load_all(config: &Config) -> Result<Vec<Loaded>, ServeError> {
    config.chains.iter().map(load).collect()
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
