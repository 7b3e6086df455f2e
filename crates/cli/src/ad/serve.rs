//! `lastbyte ad serve`.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use clap::{Args, ValueEnum};
use lastbyte_ad::serve::{
    AccessLogTo, Account, ChainFiles, ClientAddress, Config, GROUPS, HeaderName, Limits, Listen,
    ListenError, LogFormat, Network, ServeError, Served, Server, State, UnknownNames, check,
    hold_signals, is_root, operate, out_of_reach, shield,
};
use lastbyte_link::counted;

use super::{Mechanism, Proof, duration, tell, ttl};
use crate::Failure;
use crate::options::{cannot_listen, socket_address};

/// Ends TLS 1.3 in front of any TCP or HTTP server.
///
/// Chains are loaded again when their files have changed and stay as they are for a second, and on SIGHUP. The one
/// before is accepted for the TTL and a minute more, in which the new record is to be published. SIGUSR1, after a
/// key became known, loads them and forgets all before. SIGUSR2 starts the program anew and gives it the socket.
/// SIGTERM ends it once its connections have ended; a second one ends it at once.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Where to listen; systemd, or fd:NAME among several, is a socket that systemd has opened
    #[arg(long, value_name = "ADDRESS:PORT|systemd|fd:NAME", value_parser = listen)]
    listen: Listen,
    /// A chain in PEM, the end-entity first. Several are told apart by the names in their
    /// certificates and by their algorithms
    #[arg(long, value_name = "FILE", required = true)]
    chain: Vec<PathBuf>,
    /// The key of each chain in PEM, in the same order
    #[arg(long, value_name = "FILE", required = true)]
    key: Vec<PathBuf>,
    /// Where the plain text goes. One more for each protocol of --alpn that goes elsewhere: h2=HOST:PORT
    #[arg(long, value_name = "[PROTOCOL=]HOST:PORT", required = true, value_parser = backend)]
    backend: Vec<Backend>,
    /// Protocols that clients may choose from, the preferred ones first, such as h2,http/1.1: what is spoken inside goes
    /// to the backend as it is
    #[arg(long, value_name = "PROTOCOL,...", value_delimiter = ',', value_parser = protocol)]
    alpn: Vec<String>,
    /// Tell the backend each client's address first, by the PROXY protocol: version 2 tells name and protocol, too
    #[arg(long, value_name = "VERSION", num_args = 0..=1, require_equals = true, default_missing_value = "v1")]
    proxy_protocol: Option<ProxyProtocol>,
    /// Load balancers in front, each an address or a network such as 192.0.2.0/24: their connections begin with the PROXY
    /// protocol, which says whose they are
    #[arg(long, value_name = "FROM,...", value_delimiter = ',')]
    accept_proxy_protocol: Vec<Network>,
    /// Tell the backend each client's address in each request of HTTP/1.1 (X-Forwarded-For, X-Forwarded-Proto), in place of
    /// what the client says of it
    #[arg(long, conflicts_with = "proxy_protocol")]
    forwarded_for: bool,
    /// With --forwarded-for, a field of requests that does not go on, with its forms in _ and . for -. The fields that are left out
    /// anyway are those that are known to be believed by some, and not all: name what your application believes
    #[arg(long, value_name = "NAME", requires = "forwarded_for", value_parser = field)]
    drop_field: Vec<HeaderName>,
    /// Refuse clients that ask for a name that no chain is for, or for none
    #[arg(long)]
    strict_names: bool,
    /// How long resolvers may keep the records: as given to `lastbyte ad publish`
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = ttl)]
    ttl: Duration,
    #[command(flatten)]
    mechanism: Mechanism,
    /// What clients get that have the whole chain and take no raw public key
    #[arg(long, value_name = "HOW", default_value = "raw-public-key")]
    end_entity: Proof,
    /// Key-exchange groups, the preferred ones first
    #[arg(long, value_name = "GROUP:...", default_value = GROUPS)]
    groups: String,
    /// Connections at a time. More make those give way that say nothing, of the address that has most: the oldest without a
    /// handshake, then sessions without a request, then handshakes; else they wait
    #[arg(long, value_name = "COUNT", default_value = "10000", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    max_connections: u32,
    /// Those of one address, or of one IPv6 network of 64 bits [default: half of --max-connections, and an eighth once half of
    /// all places are taken]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    max_connections_per_address: Option<u32>,
    /// Handshakes at a time, of clients whose ClientHello has begun to come. More make the oldest ones give way
    #[arg(long, value_name = "COUNT", default_value = "2000", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    max_handshakes: u32,
    /// What a handshake may take
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    handshake_timeout: Duration,
    /// With --forwarded-for, what the head of a request may take from its first byte, and a body besides a second for each 500
    /// bytes
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration, requires = "forwarded_for")]
    request_timeout: Duration,
    /// How long a connection may rest
    #[arg(long, value_name = "TIME", default_value = "300s", value_parser = duration)]
    idle_timeout: Duration,
    /// How long connections may go on when it is to end. Who waits for no answer, and got nothing for 5 s, is closed before
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    drain: Duration,
    /// Keep chains and keys in this folder for the next start, for as long as resolvers may hold their records
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Become this user once the socket is open and the keys are read: later ones have to be theirs to read
    #[arg(long, value_name = "NAME[:GROUP]")]
    user: Option<Account>,
    /// Tell what would keep it from starting, a line each, and exit with 2 if anything would
    #[arg(long)]
    check_config: bool,
    /// How lines of the log look
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    log_format: Format,
    /// Write a line of JSON for each connection to a file, or to the standard output. SIGHUP opens it again
    #[arg(long, value_name = "FILE|-")]
    access_log: Option<PathBuf>,
    /// Answer Prometheus there, at /metrics
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = crate::options::socket_address)]
    metrics: Option<SocketAddr>,
}

/// A version of the PROXY protocol.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ProxyProtocol {
    V1,
    V2,
}

/// How lines of the log look.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Text,
    Json,
}

/// A backend, and the protocol that it is for.
#[derive(Clone, Debug)]
struct Backend {
    protocol: Option<String>,
    name: String,
}

impl Serve {
    pub(super) fn run(self) -> Result<(), Failure> {
        self.check_options()?;
        let config = self.config()?;
        if self.check_config {
            return self.check(&config);
        }
        // There are no threads yet: what follows is to hold for all.
        hold_signals().map_err(Failure::run)?;
        let socket = self.listen.open()?;
        keep_keys_to_itself()?;
        let mut server = Server::new(config.clone())?;
        if let Some(line) = server.fewer_places() {
            self.say(&line);
        }
        self.give_up_rights(&config)?;
        if let Some(folder) = &self.state {
            let useless = server.remember(State::open(folder)?)?;
            useless.iter().for_each(|line| self.say(line));
        }
        let server = Arc::new(server);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .map_err(Failure::run)?;
        let tell = match self.log_format {
            Format::Text => tell,
            Format::Json => tell_as_it_is,
        };
        let running = operate(Arc::clone(&server), socket, tell);
        let ran = runtime.block_on(running);
        // A file system that hangs keeps nobody from ending.
        runtime.shutdown_background();
        ran.map_err(Failure::run)?;
        self.say(&self.summary(server.served()));
        Ok(())
    }

    /// Checks what options have to be together.
    fn check_options(&self) -> Result<(), Failure> {
        if self.chain.len() != self.key.len() {
            return Err(Failure::Usage(format!(
                "{} of --chain and {} of --key: give one key for each chain",
                self.chain.len(),
                self.key.len()
            )));
        }
        if let Some(other) = self.alpn.iter().find(|protocol| *protocol != "http/1.1")
            && self.forwarded_for
        {
            return Err(Failure::Usage(format!(
                "--forwarded-for is for HTTP/1.1: leave {other} out of --alpn, or use --proxy-protocol"
            )));
        }
        Ok(())
    }

    fn config(&self) -> Result<Config, Failure> {
        let files = self.chain.iter().zip(&self.key);
        let chains = files.map(|(chain, key)| ChainFiles {
            chain: chain.clone(),
            key: key.clone(),
        });
        let connections = usize::try_from(self.max_connections).unwrap_or(usize::MAX);
        let of_one = self
            .max_connections_per_address
            .map(|of_one| usize::try_from(of_one).unwrap_or(usize::MAX));
        Ok(Config {
            clients: match self.proxy_protocol {
                Some(ProxyProtocol::V1) => ClientAddress::ProxyV1,
                Some(ProxyProtocol::V2) => ClientAddress::ProxyV2,
                None if self.forwarded_for => ClientAddress::Forwarded,
                None => ClientAddress::Kept,
            },
            dropped: self.drop_field.clone(),
            balancers: self.accept_proxy_protocol.clone(),
            unknown_names: if self.strict_names {
                UnknownNames::Refused
            } else {
                UnknownNames::Served
            },
            ttl: self.ttl,
            extension: self.mechanism.extension,
            end_entity: self.end_entity.into(),
            groups: self.groups.clone(),
            limits: Limits {
                connections,
                of_one,
                handshakes: usize::try_from(self.max_handshakes).unwrap_or(usize::MAX),
                handshake: self.handshake_timeout,
                request: self.request_timeout,
                idle: self.idle_timeout,
                drain: self.drain,
            },
            alpn: self.alpn.clone(),
            protocol_backends: self.protocol_backends()?,
            log_format: self.log_format.into(),
            metrics: self.metrics,
            access_log: self.access_log.as_ref().map(|file| match file.to_str() {
                Some("-") => AccessLogTo::Stdout,
                _ => AccessLogTo::File(file.clone()),
            }),
            ..Config::new(chains.collect(), self.backend()?)
        })
    }

    /// Where all goes that has no backend of its own.
    fn backend(&self) -> Result<&str, Failure> {
        let mut general = self
            .backend
            .iter()
            .filter(|backend| backend.protocol.is_none());
        match (general.next(), general.next()) {
            (Some(backend), None) => Ok(&backend.name),
            (Some(_), Some(_)) => Err(Failure::Usage(
                "two of --backend without a protocol: name the one of each other, such as h2=HOST:PORT"
                    .to_owned(),
            )),
            (None, _) => Err(Failure::Usage(
                "no --backend for clients that choose no protocol: add one without".to_owned(),
            )),
        }
    }

    fn protocol_backends(&self) -> Result<Vec<(String, String)>, Failure> {
        let own = self.backend.iter().filter_map(|backend| {
            let protocol = backend.protocol.clone()?;
            Some((protocol, backend.name.clone()))
        });
        let own: Vec<_> = own.collect();
        for (index, (protocol, _)) in own.iter().enumerate() {
            if !self.alpn.contains(protocol) {
                return Err(Failure::Usage(format!(
                    "a backend for \"{protocol}\", which no client can choose: add it to --alpn"
                )));
            }
            if own
                .iter()
                .skip(index + 1)
                .any(|(other, _)| other == protocol)
            {
                return Err(Failure::Usage(format!(
                    "two of --backend for \"{protocol}\""
                )));
            }
        }
        Ok(own)
    }

    fn say(&self, message: &str) {
        say(self.log_format.into(), message);
    }

    fn check(&self, config: &Config) -> Result<(), Failure> {
        let findings = check(
            config,
            &self.listen,
            self.state.as_deref(),
            self.user.as_ref(),
        );
        for warning in &findings.warnings {
            self.say(&format!("warning: {warning}"));
        }
        let Some((last, others)) = findings.problems.split_last() else {
            return Ok(());
        };
        others.iter().for_each(|problem| tell(problem));
        Err(Failure::Usage(last.clone()))
    }

    /// From here on, keys can be read only as files say.
    fn give_up_rights(&self, config: &Config) -> Result<(), Failure> {
        match &self.user {
            Some(user) => {
                user.assume().map_err(Failure::usage)?;
                for line in out_of_reach(config, user.name()) {
                    self.say(&line);
                }
            }
            None if is_root() => self.say("it has root's rights: give them up with --user NAME"),
            None => {}
        }
        // Another user's process is not shielded any more.
        keep_keys_to_itself()
    }

    fn summary(&self, served: &Served) -> String {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let unanswered = match count(&served.unanswered) {
            0 => String::new(),
            unanswered => format!(
                ", {unanswered} of them as the backend {} did not answer",
                self.backend
                    .iter()
                    .map(|backend| backend.name.as_str())
                    .collect::<Vec<_>>()
                    .join(" or ")
            ),
        };
        format!(
            "{}, {} of them shorter by what DNS had delivered; {} failed{unanswered}",
            counted(count(&served.handshakes), "handshake"),
            count(&served.shortened),
            counted(count(&served.failed), "connection"),
        )
    }
}

/// Takes an address, or what stands for a socket of systemd.
fn listen(text: &str) -> Result<Listen, String> {
    match Listen::of_word(text) {
        Some(listen) => Ok(listen),
        None => socket_address(text).map(Listen::Address),
    }
}

fn keep_keys_to_itself() -> Result<(), Failure> {
    shield()
        .map_err(|error| Failure::Machine(format!("can't keep keys from other processes: {error}")))
}

/// Takes a name or an address with a port: without one, nobody can be connected to.
fn host_and_port(text: &str) -> Result<String, String> {
    let parts = text.rsplit_once(':').filter(|(host, _)| {
        // Else the last colon is one of the address.
        let is_bracketed = host.starts_with('[') && host.ends_with(']');
        !host.is_empty() && (is_bracketed || !host.contains(':'))
    });
    match parts.map(|(_, port)| port.parse::<u16>()) {
        Some(Ok(1..)) => Ok(text.to_owned()),
        Some(_) => Err("no port: write one from 1 to 65535".to_owned()),
        None => Err("no port: write HOST:PORT, such as \"localhost:8080\"".to_owned()),
    }
}

/// Takes a backend, with its protocol if it has one.
fn backend(text: &str) -> Result<Backend, String> {
    let (protocol, name) = match text.split_once('=') {
        Some((protocol, name)) => (Some(self::protocol(protocol)?), name),
        None => (None, text),
    };
    let name = host_and_port(name)?;
    Ok(Backend { protocol, name })
}

/// Takes the name of a field (RFC 9110, section 5.1), which is none without which no request goes on.
fn field(text: &str) -> Result<HeaderName, String> {
    match text.parse::<HeaderName>() {
        Ok(name)
            if matches!(
                name.as_str(),
                "host" | "content-length" | "transfer-encoding"
            ) =>
        {
            Err("a request can't do without it".to_owned())
        }
        Ok(name) => Ok(name),
        Err(_) => Err("no name of a field: write one such as X-Real-IP".to_owned()),
    }
}

/// Takes a protocol's name (RFC 7301, section 3.1).
fn protocol(text: &str) -> Result<String, String> {
    match text.len() {
        0 => Err("no protocol: write one such as h2".to_owned()),
        1..=255 => Ok(text.to_owned()),
        _ => Err("a protocol's name has at most 255 bytes".to_owned()),
    }
}

fn say(format: LogFormat, message: &str) {
    match format {
        LogFormat::Text => tell(message),
        LogFormat::Json => tell_as_it_is(&format.line(message)),
    }
}

fn tell_as_it_is(line: &str) {
    // Nobody is left to tell when this can't be printed.
    let _ = writeln!(io::stderr(), "{line}");
}

impl From<Format> for LogFormat {
    fn from(format: Format) -> LogFormat {
        match format {
            Format::Text => LogFormat::Text,
            Format::Json => LogFormat::Json,
        }
    }
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Failure {
        match error {
            ServeError::Metrics { address, error } => cannot_listen("--metrics", address, &error),
            _ => Failure::usage(error),
        }
    }
}

impl From<ListenError> for Failure {
    fn from(error: ListenError) -> Failure {
        match error {
            ListenError::Address { address, error } => cannot_listen("--listen", address, &error),
            _ => Failure::usage(error),
        }
    }
}
