//! `lastbyte ad serve`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use clap::Args;
use lastbyte_ad::secret::exposure;
use lastbyte_ad::serve::{
    ChainFiles, ClientAddress, Config, GROUPS, Limits, ServeError, Served, Server,
};
use lastbyte_link::counted;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;

use super::{Mechanism, Proof, duration, stopped, tell, ttl};
use crate::Failure;
use crate::options::cannot_listen;

/// Ends TLS 1.3 in front of any TCP or HTTP server.
///
/// Chains are loaded again when their files change, and on SIGHUP. The one before is accepted for the
/// TTL and a minute more, in which the new record is to be published. SIGTERM ends it once its
/// connections have ended, for ten seconds at most.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Where to listen
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = crate::options::socket_address)]
    listen: SocketAddr,
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
                ..Limits::default()
            },
        };
        let server = Arc::new(Server::new(config)?);
        let warnings = self.key.iter().filter_map(|key| exposure(key));
        warnings.for_each(|warning| tell(&warning));
        allow_files();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .map_err(Failure::run)?;
        runtime.block_on(self.serve(&server))?;
        tell(&self.summary(server.served()));
        Ok(())
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

    async fn serve(&self, server: &Arc<Server>) -> Result<(), Failure> {
        let listener = TcpListener::bind(self.listen)
            .await
            .map_err(|error| cannot_listen(self.listen, &error))?;
        let address = listener.local_addr().map_err(Failure::run)?;
        let mut hangup = signal(SignalKind::hangup()).map_err(Failure::run)?;
        let reload = Arc::new(Notify::new());
        let notified = Arc::clone(&reload);
        tokio::spawn(async move {
            while hangup.recv().await.is_some() {
                notified.notify_one();
            }
        });
        let (stop, may_stop) = tokio::sync::oneshot::channel();
        tokio::spawn(async move {
            // Without signals it runs until it is killed.
            if stopped().await.is_ok() {
                let _ = stop.send(());
            } else {
                std::future::pending::<()>().await;
            }
        });
        tell(&format!("serving on {address}"));
        let stop = async {
            let _ = may_stop.await;
        };
        Arc::clone(server).run(listener, reload, stop, tell).await;
        Ok(())
    }
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
