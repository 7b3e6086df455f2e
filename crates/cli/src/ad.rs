//! `lastbyte ad`: certificates through DNS.

mod check;
mod fetch;
mod publish;
mod report;
mod serve;

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use lastbyte_ad::client::{Addresses, ConnectError, Connector, Settings};
use lastbyte_ad::dns::{Client, Server, TlsServer};
use lastbyte_link::{UnitError, parse_duration, parse_lifetime};
use lastbyte_pki::openssl_reason;
use pqtlsad::extension::ExtensionType;
use pqtlsad::openssl::{EndEntity, is_free};
use pqtlsad::record::RecordType;
use tokio::signal::unix::{SignalKind, signal};

use super::Failure;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Publish certificates in DNS: zone lines on standard output, or an update
    Publish(publish::Publish),
    /// End TLS in front of a server, and leave out what DNS delivered
    Serve(serve::Serve),
    /// Fetch a URL with what DNS delivers, and tell what took how long
    Fetch(fetch::Fetch),
    /// Tell whether the record is in step with what the server sends; exits with 1 if not
    Check(check::Check),
}

impl Command {
    pub(super) fn run(self) -> Result<(), Failure> {
        match self {
            Command::Publish(publish) => publish.run(),
            Command::Serve(serve) => serve.run(),
            Command::Fetch(fetch) => fetch.run(),
            Command::Check(check) => check.run(),
        }
    }
}

/// Whom a client asks, and whom it trusts.
#[derive(Debug, Args)]
struct ClientOptions {
    /// The DNS resolver, ADDRESS[:PORT] [default: those of /etc/resolv.conf]
    #[arg(long, value_name = "ADDRESS")]
    resolver: Option<Address>,
    /// Ask the resolver over TLS; its certificate is for this name, or for its address
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true, requires = "resolver")]
    dot: Option<Option<String>>,
    /// CAs of the resolver in PEM [default: the system's]
    #[arg(long, value_name = "FILE", requires = "dot")]
    dot_ca: Option<PathBuf>,
    /// CAs of the server in PEM [default: the system's]
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Connect there, whatever addresses the name has
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = super::options::socket_address)]
    connect: Option<SocketAddr>,
    /// What the connection and the handshake may take
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration)]
    timeout: Duration,
    #[command(flatten)]
    mechanism: Mechanism,
}

/// What both sides have to agree on.
#[derive(Debug, Args)]
struct Mechanism {
    /// The number of the TLS extension
    #[arg(long, value_name = "NUMBER", default_value = "64", value_parser = extension)]
    extension: ExtensionType,
}

/// The type of records.
#[derive(Debug, Args)]
struct Type {
    /// The type of the records: tlsa, or a number for private use
    #[arg(long = "type", value_name = "TYPE", default_value = "65280")]
    record_type: RecordType,
}

/// How the key is proved when DNS delivers the whole chain.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Proof {
    /// A raw public key (RFC 7250)
    #[default]
    RawPublicKey,
    /// An experiment: a certificate that carries the digest of the true one
    Carrier,
}

impl From<Proof> for EndEntity {
    fn from(proof: Proof) -> EndEntity {
        match proof {
            Proof::RawPublicKey => EndEntity::RawPublicKey,
            Proof::Carrier => EndEntity::Carrier,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Table,
    Json,
}

impl ClientOptions {
    /// Makes what connects.
    fn connector(
        &self,
        record_type: RecordType,
        grace: Duration,
        proof: Proof,
    ) -> Result<Connector, Failure> {
        let settings = Settings {
            ca: self.ca.clone(),
            grace,
            extension: self.mechanism.extension,
            record_type,
            end_entity: proof.into(),
            addresses: Addresses::Dns,
            connect: self.connect,
            patience: self.timeout,
        };
        Ok(Connector::new(Arc::new(self.dns()?), settings)?)
    }

    fn dns(&self) -> Result<Client, Failure> {
        let Some(resolver) = self.resolver else {
            return Client::system().map_err(|error| {
                Failure::Machine(format!("can't read /etc/resolv.conf: {error}"))
            });
        };
        let Some(name) = &self.dot else {
            return Ok(Client::new([resolver.or_port(53).into()]));
        };
        let name = name.clone().unwrap_or_else(|| resolver.ip.to_string());
        let tls = TlsServer::new(&name, self.dot_ca.as_deref());
        let tls = tls.map_err(|error| {
            let file = self
                .dot_ca
                .as_deref()
                .unwrap_or("the system's CAs".as_ref());
            let reason = openssl_reason(&error);
            Failure::Usage(format!("can't use \"{}\": {reason}", file.display()))
        })?;
        Ok(Client::new([Server {
            address: resolver.or_port(853),
            tls: Some(tls),
        }]))
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Failure {
        match error {
            ConnectError::Ca { .. } | ConnectError::Name { .. } => Failure::usage(error),
            ConnectError::Tls { ref reason, .. } if is_of_unknown_ca(reason) => {
                Failure::Run(format!("{error}; name its CA with --ca if you trust it"))
            }
            _ => Failure::run(error),
        }
    }
}

/// Whether OpenSSL's words are that a chain ends in nobody whom it trusts.
fn is_of_unknown_ca(reason: &str) -> bool {
    [
        "self-signed certificate",
        "unable to get local issuer certificate",
    ]
    .iter()
    .any(|words| reason.contains(words))
}

/// An address, whose port may be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Address {
    ip: IpAddr,
    port: Option<u16>,
}

impl Address {
    fn or_port(self, port: u16) -> SocketAddr {
        SocketAddr::new(self.ip, self.port.unwrap_or(port))
    }
}

impl FromStr for Address {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Address, Self::Err> {
        let bare = text.trim_start_matches('[').trim_end_matches(']');
        if let Ok(ip) = bare.parse() {
            return Ok(Address { ip, port: None });
        }
        let address: SocketAddr = text
            .parse()
            .map_err(|_| "write 192.0.2.1, 192.0.2.1:53, 2001:db8::1 or [2001:db8::1]:53")?;
        Ok(Address {
            ip: address.ip(),
            port: Some(address.port()),
        })
    }
}

fn extension(text: &str) -> Result<ExtensionType, String> {
    let number: ExtensionType = text.parse().map_err(|error| format!("{error}"))?;
    if is_free(number) {
        Ok(number)
    } else {
        Err(format!(
            "OpenSSL has extension {number} itself: use another number"
        ))
    }
}

/// A TTL has whole seconds (RFC 2181, section 8).
fn ttl(text: &str) -> Result<Duration, String> {
    const MOST: u64 = (1 << 31) - 1;
    let ttl = parse_lifetime(text).map_err(|error| error.to_string())?;
    if (1..=MOST).contains(&ttl.as_secs()) && ttl.subsec_nanos() == 0 {
        Ok(ttl)
    } else {
        Err(format!("a TTL has whole seconds, from 1s to {MOST}s"))
    }
}

pub(super) fn duration(text: &str) -> Result<Duration, UnitError> {
    parse_duration(text)
}

/// Runs to the end on this thread. Whatever else still runs then is not waited for: the system's resolver can't be
/// stopped.
pub(super) fn block_on<T>(work: impl Future<Output = T>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(Failure::run)?;
    let done = runtime.block_on(work);
    runtime.shutdown_background();
    Ok(done)
}

/// Waits for SIGTERM or SIGINT.
async fn stopped() -> io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}

/// Tells the operator something.
fn tell(line: &str) {
    crate::tell(line);
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::{Address, is_of_unknown_ca};

    #[test]
    fn who_is_trusted_by_nobody_here_is_told_from_what_is_wrong() {
        let refused = "the server's certificate is not accepted: ";
        for (words, expected) in [
            ("self-signed certificate", true),
            ("self-signed certificate in certificate chain", true),
            ("unable to get local issuer certificate", true),
            ("certificate has expired", false),
        ] {
            assert_eq!(is_of_unknown_ca(&format!("{refused}{words}")), expected);
        }
    }

    #[test]
    fn a_port_may_be_left_out() {
        for (text, expected) in [
            ("192.0.2.1", "192.0.2.1:53"),
            ("192.0.2.1:54", "192.0.2.1:54"),
            ("2001:db8::1", "[2001:db8::1]:53"),
            ("[2001:db8::1]", "[2001:db8::1]:53"),
            ("[2001:db8::1]:54", "[2001:db8::1]:54"),
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!(address.or_port(53).to_string(), expected);
        }
        assert!("resolver.example".parse::<Address>().is_err());
    }
}
