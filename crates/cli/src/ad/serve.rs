//! `lastbyte ad serve`.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use clap::Args;
use lastbyte_ad::serve::{
    Account, ChainFiles, ClientAddress, Config, GROUPS, Limits, Listen, ListenError, ServeError,
    Served, Server, State, check, hold_signals, is_root, operate, shield,
};
use lastbyte_link::counted;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

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
    /// Where the plain text goes
    #[arg(long, value_name = "HOST:PORT", value_parser = host_and_port)]
    backend: String,
    /// Tell the backend each client's address first, in a line of the PROXY protocol (version 1)
    #[arg(long)]
    proxy_protocol: bool,
    /// How long resolvers may keep the records: as given to `lastbyte ad publish`
    #[arg(long, value_name = "TIME", default_value = "3600s", value_parser = ttl)]
    ttl: Duration,
    #[command(flatten)]
    mechanism: Mechanism,
    /// What clients get that have the whole chain and take no raw public key
    #[arg(long, value_name = "HOW", default_value = "raw-public-key")]
    end_entity: Proof,
    /// Key-exchange groups, the preferred ones first
    #[arg(long, value_name = "GROUP:...", default_value = GROUPS)]
    groups: String,
    /// Connections at a time; more wait
    #[arg(long, value_name = "COUNT", default_value = "10000", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    max_connections: u32,
    /// What a handshake may take
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    handshake_timeout: Duration,
    /// How long a connection may rest
    #[arg(long, value_name = "TIME", default_value = "300s", value_parser = duration)]
    idle_timeout: Duration,
    /// How long connections may go on when it is to end. Who waits for no answer is closed at once
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
}

impl Serve {
    pub(super) fn run(self) -> Result<(), Failure> {
        if self.chain.len() != self.key.len() {
            return Err(Failure::Usage(format!(
                "{} of --chain and {} of --key: give one key for each chain",
                self.chain.len(),
                self.key.len()
            )));
        }
        let files = self.chain.iter().zip(&self.key);
        let chains = files.map(|(chain, key)| ChainFiles {
            chain: chain.clone(),
            key: key.clone(),
        });
        let config = Config {
            chains: chains.collect(),
            backend: self.backend.clone(),
            clients: match self.proxy_protocol {
                true => ClientAddress::Told,
                false => ClientAddress::Kept,
            },
            ttl: self.ttl,
            extension: self.mechanism.extension,
            end_entity: self.end_entity.into(),
            groups: self.groups.clone(),
            limits: Limits {
                connections: usize::try_from(self.max_connections).unwrap_or(usize::MAX),
                handshake: self.handshake_timeout,
                idle: self.idle_timeout,
                drain: self.drain,
            },
        };
        if self.check_config {
            return self.check(&config);
        }
        // There are no threads yet: what follows is to hold for all.
        hold_signals().map_err(Failure::run)?;
        let socket = self.listen.open()?;
        keep_keys_to_itself()?;
        let mut server = Server::new(config)?;
        allow_files();
        self.give_up_rights()?;
        if let Some(folder) = &self.state {
            let useless = server.remember(State::open(folder)?)?;
            useless.iter().for_each(|line| tell(line));
        }
        let server = Arc::new(server);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .map_err(Failure::run)?;
        let running = operate(Arc::clone(&server), socket, tell);
        runtime.block_on(running).map_err(Failure::run)?;
        tell(&self.summary(server.served()));
        Ok(())
    }

    fn check(&self, config: &Config) -> Result<(), Failure> {
        let findings = check(config, &self.listen, self.state.as_deref());
        for warning in &findings.warnings {
            tell(&format!("warning: {warning}"));
        }
        match findings.problems.is_empty() {
            true => Ok(()),
            false => Err(Failure::Usage(findings.problems.join("\nlastbyte: "))),
        }
    }

    /// From here on, keys can be read only as files say.
    fn give_up_rights(&self) -> Result<(), Failure> {
        match &self.user {
            Some(user) => {
                user.assume().map_err(Failure::usage)?;
                for file in self.chain.iter().chain(&self.key) {
                    if let Err(error) = File::open(file) {
                        tell(&format!(
                            "\"{}\" can't be read by {} ({error}): its renewal will not be taken",
                            file.display(),
                            user.name()
                        ));
                    }
                }
            }
            None if is_root() => tell("it has root's rights: give them up with --user NAME"),
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

/// Each connection takes two files: as many as this user may have.
fn allow_files() {
    // Where that is refused, connections wait.
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Failure {
        Failure::usage(error)
    }
}

impl From<ListenError> for Failure {
    fn from(error: ListenError) -> Failure {
        match error {
            ListenError::Address { address, error } => cannot_listen(address, &error),
            _ => Failure::usage(error),
        }
    }
}
