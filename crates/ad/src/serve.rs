//! A proxy that ends TLS in front of a server, and leaves out what DNS delivered.

mod access;
mod announce;
pub mod announced;
mod backend;
mod chains;
mod check;
mod connection;
mod drain;
mod flight;
mod follow;
mod forwarded;
mod listen;
mod log;
mod metrics;
mod pem;
mod process;
mod relay;
mod room;
mod signing;
mod source;
mod state;
mod time;
mod user;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use openssl::error::ErrorStack;
use openssl::ssl::{
    AlpnError, ClientHelloResponse, SslContext, SslContextBuilder, SslMethod, SslMode,
};
use pqtlsad::extension::ExtensionType;
use pqtlsad::openssl::tickets::{self, TicketKeys};
use pqtlsad::openssl::{EndEntity, server};
use pqtlsad::server::{Chains, SharedChains};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use self::access::AccessLog;
use self::backend::Backend;
pub(crate) use self::chains::public_chain;
use self::chains::{Followed, Loaded, load};
use self::drain::Serving;
use self::follow::{Before, Reload};
use self::log::{Causes, Log};
use self::room::{Most, Room};
use self::signing::{Idle, Priority, Signers};
use crate::tls;

pub use self::access::AccessLogTo;
pub use self::announce::ClientAddress;
pub use self::announced::Network;
pub use self::chains::{ChainFiles, Unfit};
pub use self::check::{Findings, check, out_of_reach};
pub use self::listen::{Listen, ListenError};
pub use self::log::LogFormat;
pub use self::metrics::Served;
pub use self::pem::PemError;
pub use self::process::{hold_signals, operate};
pub use self::state::State;
pub use self::user::{Account, AccountError, is_root, shield};
pub use hyper::header::HeaderName;
pub use pqtlsad::openssl::server::UnknownNames;

/// The groups that a server agrees to, the preferred ones first: hybrid ones before those that a
/// quantum computer breaks.
pub const GROUPS: &str = "X25519MLKEM768:SecP256r1MLKEM768:SecP384r1MLKEM1024:MLKEM768:MLKEM1024:\
                          X25519:secp256r1:secp384r1";

/// How long tickets are sealed with one key. They can be resumed for as long again: who learns a
/// key can read the sessions of two hours at most.
const TICKET_KEY: Duration = Duration::from_secs(3600);

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
    /// Fields of requests that do not go on, where [`ClientAddress::Forwarded`] has requests read.
    pub dropped: Vec<HeaderName>,
    /// Load balancers in front, which say by the PROXY protocol whose each connection is. Nobody
    /// else is believed.
    pub balancers: Vec<Network>,
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
    /// Protocols that are spoken inside (RFC 7301), the preferred ones first. Without any, none is
    /// agreed on.
    pub alpn: Vec<String>,
    /// Backends of some of those protocols, which don't go to the other one.
    pub protocol_backends: Vec<(String, String)>,
    /// What clients get that ask for no known name.
    pub unknown_names: UnknownNames,
    /// How lines of the log look.
    pub log_format: LogFormat,
    /// Where a line for each connection goes.
    pub access_log: Option<AccessLogTo>,
    /// Where Prometheus is answered.
    pub metrics: Option<SocketAddr>,
}

impl Config {
    /// These chains in front of that backend, and all else as is usual.
    pub fn new(chains: Vec<ChainFiles>, backend: &str) -> Config {
        /// An hour, as DNS likes it.
        const TTL: Duration = Duration::from_secs(3600);
        Config {
            chains,
            backend: backend.to_owned(),
            clients: ClientAddress::default(),
            dropped: Vec::new(),
            balancers: Vec::new(),
            ttl: TTL,
            extension: ExtensionType::DEFAULT,
            end_entity: EndEntity::default(),
            groups: GROUPS.to_owned(),
            limits: Limits::default(),
            alpn: Vec::new(),
            protocol_backends: Vec::new(),
            unknown_names: UnknownNames::default(),
            log_format: LogFormat::default(),
            access_log: None,
            metrics: None,
        }
    }

    /// Whether the access log is to be a file that is read: lines would be written behind a key.
    ///
    /// # Errors
    ///
    /// If it is.
    fn check_access_log(&self) -> Result<(), ServeError> {
        let Some(to) = &self.access_log else {
            return Ok(());
        };
        let chains = self.chains.iter();
        let files = chains.flat_map(|files| [files.chain.as_path(), files.key.as_path()]);
        match to.is_one_of(files) {
            Some(file) => Err(ServeError::AccessLogIsRead {
                to: to.clone(),
                file: file.to_owned(),
            }),
            None => Ok(()),
        }
    }
}

/// What connections may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// At a time. Where there is no room for others, a connection makes room that waits for its
    /// client, of the address that has most of them: the oldest that says nothing, else the session
    /// that has rested for longest, else the oldest handshake. Where there is none, they wait to be
    /// accepted.
    pub connections: usize,
    /// Of one address, or of one network of IPv6 (64 bits), at a time. Without a number, half of
    /// all, and an eighth once half of all are taken.
    pub of_one: Option<usize>,
    /// Handshakes under way, of clients that have sent a record. The oldest one makes room for
    /// others.
    pub handshakes: usize,
    /// A handshake, or the connection to the backend.
    pub handshake: Duration,
    /// The head of a request, where those are read, from its first byte; a body has as long, and a
    /// second for each 500 bytes.
    pub request: Duration,
    /// Without a byte in either direction.
    pub idle: Duration,
    /// What connections get to end by themselves when the server stops.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections: 10_000,
            of_one: None,
            handshakes: 2_000,
            handshake: Duration::from_secs(10),
            request: Duration::from_secs(30),
            idle: Duration::from_secs(300),
            drain: Duration::from_secs(10),
        }
    }
}

impl Limits {
    /// As much of it as there are files for.
    fn room(&self) -> Most {
        let connections = self.connections.min(room::files_for()).max(1);
        let share = |part| {
            self.of_one
                .unwrap_or(connections.div_ceil(part))
                .min(connections)
        };
        Most {
            connections,
            of_one: share(2),
            of_one_in_a_crowd: share(8),
            handshakes: self.handshakes.min(connections),
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
    /// The access log can't be written.
    #[error("can't write the access log {to}: {error}")]
    AccessLog {
        /// Where.
        to: AccessLogTo,
        /// The system's words.
        error: io::Error,
    },
    /// The access log is a file that is read.
    #[error(
        "the access log {to} is \"{}\", which is read: name another file for it",
        file.display()
    )]
    AccessLogIsRead {
        /// Where it was to be.
        to: AccessLogTo,
        /// What it is.
        file: PathBuf,
    },
    /// Nobody can ask for metrics.
    #[error("can't listen on {address}: {error}")]
    Metrics {
        /// Where.
        address: SocketAddr,
        /// The system's words.
        error: io::Error,
    },
    /// No such group for key exchange.
    #[error(
        "--groups: there is no group \"{0}\" here: `lastbyte ad serve --help` has those that are usual"
    )]
    Group(String),
    /// There are files for too few connections.
    #[error(
        "files for {0} connections at a time, and fewer than {fewest} serve nobody: raise the limit (ulimit -n, LimitNOFILE=)",
        fewest = room::FEWEST
    )]
    Files(usize),
    /// OpenSSL can't be set up.
    #[error("can't set TLS up: {}", lastbyte_providers::reason(.0))]
    OpenSsl(#[from] ErrorStack),
}

/// An order to a running server.
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
    state: Option<Arc<State>>,
    serving: watch::Sender<Serving>,
    served: Served,
    causes: Arc<Causes>,
    ticket_keys: Arc<TicketKeys>,
    access: Option<Arc<AccessLog>>,
    /// Where metrics are asked for, until the server runs.
    metrics: Mutex<Option<std::net::TcpListener>>,
    room: Arc<Room>,
    signers: Signers,
    /// For signatures that take long: others wait neither for those nor for the processors that
    /// compute them.
    slow_signers: Signers,
    backend: Backend,
    /// Of protocols that have their own.
    protocols: Vec<(String, Backend)>,
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
        let mut server = Server::with(config, context)?;
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
        context.set_client_hello_callback(|ssl, _| {
            Ok(server::stopped(ssl).unwrap_or(ClientHelloResponse::SUCCESS))
        });
        Server::with(config, context)
    }

    fn with(config: Config, mut context: SslContextBuilder) -> Result<Server, ServeError> {
        let places = room::files_for();
        if places < room::FEWEST {
            return Err(ServeError::Files(places));
        }
        config.check_access_log()?;
        let ticket_keys = Arc::new(TicketKeys::new()?);
        tickets::install(&mut context, Arc::clone(&ticket_keys))?;
        let access = config.access_log.clone().map(|to| {
            AccessLog::open(to.clone()).map_err(|error| ServeError::AccessLog { to, error })
        });
        let metrics = match config
            .metrics
            .map(|address| (address, metrics::listen(address)))
        {
            Some((_, Ok(listener))) => Some(listener),
            // It is the earlier process's for a while yet.
            Some((_, Err(_))) if listen::handed_over_by().is_some() => None,
            Some((address, Err(error))) => return Err(ServeError::Metrics { address, error }),
            None => None,
        };
        let protocols = config.protocol_backends.iter();
        let protocols = protocols.map(|(name, backend)| (name.clone(), Backend::new(backend)));
        Ok(Server {
            context: context.build(),
            chains: None,
            followed: Mutex::default(),
            state: None,
            serving: watch::Sender::new(Serving::Accepting),
            ticket_keys,
            served: Served::default(),
            causes: Arc::default(),
            access: access.transpose()?.map(Arc::new),
            metrics: Mutex::new(metrics),
            room: Room::new(config.limits.room()),
            signers: Signers::new("handshakes", Priority::Usual, Idle::Owner),
            slow_signers: Signers::new("slow handshakes", Priority::Low, Idle::Thread),
            backend: Backend::new(&config.backend),
            protocols: protocols.collect(),
            config,
        })
    }

    /// A warning if there are files for fewer connections than were asked for.
    #[must_use]
    pub fn fewer_places(&self) -> Option<String> {
        let (wanted, places) = (self.config.limits.connections, room::files_for());
        (places < wanted).then(|| {
            format!(
                "it takes {places} connections at a time in place of {wanted}, as it may have no more files: raise the limit \
                 (ulimit -n, LimitNOFILE=)"
            )
        })
    }

    /// Has chains outlive this server: those that an earlier one kept are accepted, for as long as
    /// resolvers may have them. Returns a warning of each file that is no use.
    ///
    /// # Errors
    ///
    /// If they can't be read.
    pub fn remember(&mut self, state: State) -> Result<Vec<String>, ServeError> {
        let now = SystemTime::now();
        let stored = state.load(now)?;
        if let Some(shared) = &self.chains {
            // When the earlier server ended is not known: not after now.
            let latest = now + self.config.ttl + PUBLISHING;
            shared.update(|chains| {
                for (chain, until) in stored.chains {
                    chains.restore(chain, until.unwrap_or(latest));
                }
                chains.expire(now);
            });
        }
        self.state = Some(Arc::new(state));
        Ok(stored.useless)
    }

    /// Serves until it is ordered to stop, or nobody is left to do so, and then lets connections
    /// end. Chains are loaded again when their files change, or when that is ordered.
    pub async fn run(
        self: Arc<Self>,
        listener: TcpListener,
        mut orders: mpsc::UnboundedReceiver<Order>,
        say: impl Fn(&str) + Send + Sync + 'static,
    ) {
        let log = Arc::new(Log::new(
            say,
            self.config.log_format,
            Arc::clone(&self.causes),
        ));
        if let Some(access) = &self.access {
            access.start(&log);
        }
        let mut connections = JoinSet::new();
        let (reload, reloads) = mpsc::unbounded_channel();
        tokio::select! {
            never = self.accept(listener, &mut connections, &log) => match never {},
            never = self.follow(reloads, &log) => match never {},
            never = self.change_ticket_keys(&log) => match never {},
            never = self.expose(&log) => match never {},
            () = self.until_stopped(&mut orders, &reload) => {}
        }
        self.serving.send_replace(Serving::Stopping);
        let drained = async { while connections.join_next().await.is_some() {} };
        let is_drained = tokio::select! {
            drained = timeout(self.config.limits.drain, drained) => drained.is_ok(),
            () = abandoned(&mut orders) => false,
        };
        if !is_drained {
            log.say(&match connections.len() {
                1 => "1 connection is cut".to_owned(),
                count => format!("{count} connections are cut"),
            });
        }
        connections.shutdown().await;
    }

    /// What was served.
    pub fn served(&self) -> &Served {
        &self.served
    }

    /// Opens the access log again, whose file may have been moved.
    fn reopen_logs(&self) {
        if let Some(access) = &self.access {
            access.reopen();
        }
    }

    async fn change_ticket_keys(&self, log: &Log) -> Infallible {
        loop {
            sleep(TICKET_KEY).await;
            if let Err(error) = self.ticket_keys.change() {
                log.failed("changing the key of tickets", None, &error.to_string());
            }
        }
    }

    /// Passes on what keeps a server running, until it is to stop.
    async fn until_stopped(
        &self,
        orders: &mut mpsc::UnboundedReceiver<Order>,
        reload: &mpsc::UnboundedSender<Reload>,
    ) {
        loop {
            let (before, done) = match orders.recv().await {
                Some(Order::Reload(done)) => (Before::Kept, done),
                Some(Order::Forget(done)) => (Before::Forgotten, done),
                Some(Order::Stop | Order::Abandon) | None => return,
            };
            self.reopen_logs();
            // Nobody takes it once the server has stopped.
            let _ = reload.send(Reload {
                before,
                _done: done,
            });
        }
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

fn context(config: &Config) -> Result<SslContextBuilder, ServeError> {
    let mut context = tls::context(SslMethod::tls_server())?;
    if let Err(error) = context.set_groups_list(&config.groups) {
        let mut groups = config.groups.split([':', '/']);
        let unknown = groups.find(|group| context.set_groups_list(group).is_err());
        return Err(unknown.map_or(error.into(), |group| ServeError::Group(group.to_owned())));
    }
    // What is held back of a relay may move.
    context.set_mode(SslMode::RELEASE_BUFFERS | SslMode::ACCEPT_MOVING_WRITE_BUFFER);
    // Otherwise each record takes two system calls: for its header, and for the rest.
    context.set_read_ahead(true);
    if !config.alpn.is_empty() {
        let own = config.alpn.clone();
        context.set_alpn_select_callback(move |_, offered| {
            let mut own = own.iter();
            let chosen = own.find_map(|own| {
                // OpenSSL has checked the lengths.
                let mut rest = offered;
                while let Some((length, after)) = rest.split_first() {
                    let (protocol, after) = after.split_at_checked((*length).into())?;
                    if protocol == own.as_bytes() {
                        return Some(protocol);
                    }
                    rest = after;
                }
                None
            });
            chosen.ok_or(AlpnError::ALERT_FATAL)
        });
    }
    context.set_session_id_context(b"lastbyte ad serve")?;
    Ok(context)
}

fn load_all(config: &Config) -> Result<Vec<Loaded>, ServeError> {
    config.chains.iter().map(load).collect()
}
