//! Connects to a server, with what DNS delivers of its chain if that is there in time.

mod lookup;
mod observed;
mod tcp;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use lastbyte_flights::flights_needed;
use lastbyte_sizes::framing;
use lastbyte_tls::key_log;
use lastbyte_tls::observer::{Message, Observation, Side};
use openssl::error::ErrorStack;
use openssl::ssl::{Ssl, SslContext, SslMethod, SslRef, SslVerifyMode};
use openssl::x509::X509;
use pqtlsad::client::{Cache, Decision, Fallback, Lookup, Outcome, Race, cacheable_for};
use pqtlsad::extension::ExtensionType;
use pqtlsad::flight::{self, InitialWindow};
use pqtlsad::openssl::{EndEntity, client};
use pqtlsad::record::RecordType;
use pqtlsad::validate::Offer;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_openssl::SslStream;

pub use self::lookup::{Found, Looked};
pub use self::observed::Observed;
use self::tcp::Established;
use crate::dns::{Client, DnsError, system_roots};
use crate::tls::{context, reason, require};

/// How connections are made.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Whom to trust (PEM); the system's CAs if absent.
    pub ca: Option<PathBuf>,
    /// How long the ClientHello may wait for the record after TCP is established.
    pub grace: Duration,
    /// The extension's number.
    pub extension: ExtensionType,
    /// The type of records.
    pub record_type: RecordType,
    /// How the server is to prove its key if DNS delivers the whole chain.
    pub end_entity: EndEntity,
    /// Who tells the addresses of a name.
    pub addresses: Addresses,
    /// Where to connect, whatever the name's addresses are.
    pub connect: Option<SocketAddr>,
    /// What a connection and its handshake may take together.
    pub patience: Duration,
}

/// Who tells the addresses of a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Addresses {
    /// The DNS servers that records are asked of.
    #[default]
    Dns,
    /// The system's resolver (getaddrinfo), which reads /etc/hosts and whatever else nsswitch.conf
    /// names.
    System,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            ca: None,
            grace: Duration::ZERO,
            extension: ExtensionType::DEFAULT,
            record_type: RecordType::DEFAULT,
            end_entity: EndEntity::default(),
            addresses: Addresses::default(),
            connect: None,
            patience: Duration::from_secs(30),
        }
    }
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The file of CAs can't be used.
    #[error("\"{}\": {}", file.display(), lastbyte_providers::reason(error))]
    Ca {
        /// The file.
        file: PathBuf,
        /// OpenSSL's words.
        error: ErrorStack,
    },
    /// OpenSSL can't be set up.
    #[error("can't set TLS up: {}", lastbyte_providers::reason(.0))]
    OpenSsl(#[from] ErrorStack),
    /// The name is not one that DNS has.
    #[error("\"{name}\" is no domain name: {reason}")]
    Name {
        /// What was given.
        name: String,
        /// What is wrong.
        reason: String,
    },
    /// DNS has no address.
    #[error("{name} has no address{}", why.as_ref().map_or_else(String::new, |why| format!(": {why}")))]
    NoAddress {
        /// The name.
        name: String,
        /// Why DNS did not answer.
        why: Option<DnsError>,
    },
    /// No address can be connected to.
    #[error("can't connect to {address}: {error}")]
    Tcp {
        /// The last one that was tried.
        address: SocketAddr,
        /// The system's words.
        error: std::io::Error,
    },
    /// The handshake fails.
    #[error("{address}: the TLS handshake failed: {reason}")]
    Tls {
        /// The server.
        address: SocketAddr,
        /// OpenSSL's words.
        reason: String,
    },
    /// It takes too long.
    #[error("{name}: no TLS connection within {patience:?}")]
    Timeout {
        /// The name.
        name: String,
        /// What it was given.
        patience: Duration,
    },
}

/// Makes connections.
#[derive(Debug)]
pub struct Connector {
    context: SslContext,
    dns: Arc<Client>,
    settings: Settings,
    records: Arc<Records>,
    started: Instant,
}

/// Records that were looked up, by name, each for as long as [`cacheable_for`] says. Times are
/// since the connector was made.
type Records = Mutex<Cache<String, Looked>>;

/// Names that records are kept of.
const CAPACITY: usize = 1000;

/// When things happened, since the name was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// An address was known; zero if none was asked for.
    pub name_lookup: Duration,
    /// The record was there and checked, or known to be absent. None if it was not waited for.
    pub record: Option<Duration>,
    /// TCP was established.
    pub connect: Duration,
    /// The TLS handshake was done.
    pub app_connect: Duration,
}

/// A connection whose handshake is done, and verified.
#[derive(Debug)]
pub struct Connection {
    /// Application data goes here.
    pub stream: SslStream<Observed>,
    /// When it began.
    pub start: Instant,
    /// What happened.
    pub handshake: Handshake,
}

/// What there is to say of a handshake.
#[derive(Clone, Debug)]
pub struct Handshake {
    /// The server.
    pub address: SocketAddr,
    /// When.
    pub times: Times,
    /// The record, if it was there.
    pub found: Option<Found>,
    /// Its certificates, if it was used; or why it was not.
    pub result: Result<Offer, Fallback>,
    /// What was seen on the wire.
    pub observation: Observation,
    /// What the server sent, the end-entity first; none if that was a raw public key.
    pub sent: Vec<X509>,
    /// What the whole chain would have cost.
    pub savings: Savings,
}

/// What leaving certificates out saves: by arithmetic, without loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Savings {
    /// Bytes of the Certificate message that were not sent.
    pub bytes_omitted: usize,
    /// The server's first flight, in bytes of TCP payload.
    pub flight_bytes: usize,
    /// Flights that it takes from a standing start ([`flights_needed`]).
    pub flights: u32,
    /// Flights that it would take with the whole chain.
    pub whole_flights: u32,
}

impl Savings {
    /// Each flight less is a round trip less.
    pub fn round_trips(&self) -> u32 {
        self.whole_flights.saturating_sub(self.flights)
    }
}

/// What is to be offered.
#[derive(Debug)]
pub enum Use {
    /// The record, as it comes.
    Record,
    /// What was looked up before.
    Looked(Looked),
    /// Nothing: plain TLS.
    Nothing,
}

impl Connector {
    /// Prepares connections.
    ///
    /// # Errors
    ///
    /// If the file of CAs can't be used.
    pub fn new(dns: Arc<Client>, settings: Settings) -> Result<Connector, ConnectError> {
        let mut context = context(SslMethod::tls_client())?;
        context.set_verify(SslVerifyMode::PEER);
        context.set_alpn_protos(b"\x08http/1.1")?;
        match settings.ca.clone().or_else(system_roots) {
            Some(file) => context
                .set_ca_file(&file)
                .map_err(|error| ConnectError::Ca { file, error })?,
            None => context.set_default_verify_paths()?,
        }
        client::install(&mut context, settings.extension)?;
        key_log::install(&mut context)?;
        Ok(Connector {
            context: context.build(),
            dns,
            settings,
            records: Arc::new(Mutex::new(Cache::new(CAPACITY))),
            started: Instant::now(),
        })
    }

    /// Looks the record of `name` up, and checks it.
    ///
    /// # Errors
    ///
    /// If that is no domain name.
    pub async fn look_up(&self, name: &str) -> Result<Looked, ConnectError> {
        lookup::look_up(&self.dns, &self.context, self.settings.record_type, name).await
    }

    /// Connects to `name`, which may be an address, and verifies it. Where the handshake with what
    /// DNS delivers fails, that is forgotten, and plain TLS is tried once, within the same time.
    ///
    /// # Errors
    ///
    /// If that does not succeed: then no byte of application data was sent.
    pub async fn connect(
        &self,
        name: &str,
        port: u16,
        how: Use,
    ) -> Result<Connection, ConnectError> {
        let connected = self.connect_patiently(name, port, how);
        match timeout(self.settings.patience, connected).await {
            Ok(connected) => connected,
            Err(_) => {
                self.forget(name);
                Err(ConnectError::Timeout {
                    name: name.to_owned(),
                    patience: self.settings.patience,
                })
            }
        }
    }

    async fn connect_patiently(
        &self,
        name: &str,
        port: u16,
        how: Use,
    ) -> Result<Connection, ConnectError> {
        let start = Instant::now();
        let record = match how {
            Use::Record => self.record(name),
            Use::Looked(looked) => Record::There(Box::new(looked)),
            Use::Nothing => Record::There(Box::new(Looked {
                lookup: Err(Fallback::new(Outcome::NoRecord, "none was asked for")),
                found: None,
            })),
        };
        let failed = match self.attempt(start, name, port, record).await {
            Ok(connection) => return Ok(connection),
            Err(failed) => failed,
        };
        let Some(found) = failed.with_record else {
            return Err(failed.error);
        };
        self.forget(name);
        let reason = format!("the handshake with it failed: {}", failed.error);
        let spoilt = Record::There(Box::new(Looked {
            lookup: Err(Fallback::new(Outcome::Invalid, reason)),
            found: Some(found),
        }));
        let again = self.attempt(start, name, port, spoilt).await;
        again.map_err(|failed| failed.error)
    }

    /// One connection, with the record if it is there in time.
    async fn attempt(
        &self,
        start: Instant,
        name: &str,
        port: u16,
        record: Record,
    ) -> Result<Connection, Failed> {
        let tcp = tcp::connect(&self.dns, name, port, &self.settings, start);
        let (established, offer, looked) = self.race(start, record, tcp).await?;
        let mut times = Times {
            name_lookup: established.name_lookup,
            record: looked.at,
            connect: established.connected,
            app_connect: Duration::ZERO,
        };
        let address = established.address;
        let mut stream = self.stream(established.stream, name, offer.as_ref().ok().cloned())?;
        let connected = Pin::new(&mut stream).connect().await;
        times.app_connect = start.elapsed();
        if let Err(error) = connected {
            let reason = reason(&error, stream.ssl().verify_result());
            return Err(Failed {
                error: ConnectError::Tls { address, reason },
                with_record: looked.found.filter(|_| offer.is_ok()),
            });
        }
        let result = match (offer, client::outcome(stream.ssl())) {
            (Err(fallback), _) | (Ok(_), Some(Err(fallback))) => Err(fallback),
            (Ok(offer), _) => Ok(offer),
        };
        let observer = stream.get_mut().finish();
        let observation = observer.observe(&key_log::of(stream.ssl()));
        let sent = sent(stream.ssl());
        let savings = savings(&observation, &result);
        Ok(Connection {
            stream,
            start,
            handshake: Handshake {
                address,
                times,
                found: looked.found,
                result,
                observation,
                sent,
                savings,
            },
        })
    }

    /// What DNS delivered of `name` is not offered again.
    fn forget(&self, name: &str) {
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        records.remove(&name.to_owned());
    }

    /// The record as it was looked up before, or else as it comes.
    fn record(&self, name: &str) -> Record {
        let records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(looked) = records.get(&name.to_owned(), self.started.elapsed()) {
            return Record::There(Box::new(looked.clone()));
        }
        drop(records);
        let keep = {
            let (records, started) = (Arc::clone(&self.records), self.started);
            move |name: String, looked: &Looked| {
                let (Ok(offer), Some(found)) = (&looked.lookup, looked.found) else {
                    return;
                };
                let time = cacheable_for(offer, found.ttl, SystemTime::now());
                let mut records = records.lock().unwrap_or_else(PoisonError::into_inner);
                records.insert(name, looked.clone(), time, started.elapsed());
            }
        };
        let record_type = self.settings.record_type;
        Record::Awaited(lookup::spawn(
            &self.dns,
            &self.context,
            record_type,
            name,
            keep,
        ))
    }

    /// The TCP connection, and what is to be offered on it.
    async fn race(
        &self,
        start: Instant,
        mut record: Record,
        tcp: impl Future<Output = Result<Established, ConnectError>>,
    ) -> Result<(Established, Lookup, LookedAt), ConnectError> {
        let mut race = Race::new(self.settings.grace);
        let mut looked = LookedAt::default();
        let mut established = None;
        let mut tcp = std::pin::pin!(tcp);
        loop {
            let now = start.elapsed();
            match (race.decide(now), established.take()) {
                (Decision::Offer(offer), Some(tcp)) => return Ok((tcp, Ok(offer), looked)),
                (Decision::Plain(fallback), Some(tcp)) => return Ok((tcp, Err(fallback), looked)),
                (decision, tcp_before) => {
                    established = tcp_before;
                    let until = match decision {
                        Decision::Wait(until) => start + until,
                        // TCP ends the wait.
                        _ => start + self.settings.patience,
                    };
                    tokio::select! {
                        // A record that comes at the same moment is in time.
                        biased;
                        answer = record.ready(), if !record.is_taken() => {
                            race.looked_up(answer.lookup);
                            looked = LookedAt {
                                at: record.was_awaited().then(|| start.elapsed()),
                                found: answer.found,
                            };
                            record = Record::Taken;
                        }
                        connected = &mut tcp, if established.is_none() => {
                            let connected = connected?;
                            race.connected(connected.connected);
                            established = Some(connected);
                        }
                        () = sleep_until(until) => {}
                    }
                }
            }
        }
    }

    fn stream(
        &self,
        stream: TcpStream,
        name: &str,
        offer: Option<Offer>,
    ) -> Result<SslStream<Observed>, ErrorStack> {
        let mut ssl = Ssl::new(&self.context)?;
        require(&mut ssl, name)?;
        if let Some(offer) = offer {
            client::offer(&mut ssl, offer, self.settings.end_entity)?;
        }
        key_log::start(&mut ssl)?;
        SslStream::new(ssl, Observed::new(stream))
    }
}

/// An attempt that made no connection.
struct Failed {
    error: ConnectError,
    /// What was offered, if it was the handshake that failed: another one may not.
    with_record: Option<Found>,
}

impl<E: Into<ConnectError>> From<E> for Failed {
    fn from(error: E) -> Failed {
        Failed {
            error: error.into(),
            with_record: None,
        }
    }
}

/// The record, which may still be on its way: one that comes too late is kept for the next
/// connection.
enum Record {
    Awaited(JoinHandle<Looked>),
    There(Box<Looked>),
    Taken,
}

#[derive(Default)]
struct LookedAt {
    at: Option<Duration>,
    found: Option<Found>,
}

impl Record {
    fn is_taken(&self) -> bool {
        matches!(self, Record::Taken)
    }

    fn was_awaited(&self) -> bool {
        matches!(self, Record::Awaited(_))
    }

    /// Not to be called again once it is done.
    async fn ready(&mut self) -> Looked {
        let absent = |reason: String| Looked {
            lookup: Err(Fallback::new(Outcome::NoRecord, reason)),
            found: None,
        };
        match self {
            Record::Awaited(lookup) => match lookup.await {
                Ok(looked) => looked,
                Err(error) => absent(format!("the lookup failed: {error}")),
            },
            Record::There(looked) => std::mem::replace(looked, absent(String::new())),
            Record::Taken => std::future::pending().await,
        }
    }
}

fn sent(ssl: &SslRef) -> Vec<X509> {
    let chain = ssl.peer_cert_chain();
    chain.map_or_else(Vec::new, |chain| {
        chain.iter().map(ToOwned::to_owned).collect()
    })
}

fn savings(observation: &Observation, result: &Result<Offer, Fallback>) -> Savings {
    let server = observation.flights.iter().rev();
    let flight_bytes = server
        .filter(|flight| flight.sender == Side::Server)
        .map(|flight| flight.wire_bytes)
        .next()
        .unwrap_or_default();
    let InitialWindow { segments, mss } = InitialWindow::default();
    let flights = |bytes| flights_needed(bytes, mss as usize, segments);
    let mut savings = Savings {
        bytes_omitted: 0,
        flight_bytes,
        flights: flights(flight_bytes),
        whole_flights: flights(flight_bytes),
    };
    if let (Ok(offer), Some(sent)) = (result, observation.bytes(Message::Certificate)) {
        let delivered = offer
            .list()
            .certificates()
            .iter()
            .map(|der| framing::CERTIFICATE_ENTRY + der.len());
        let is_whole = offer.part() == pqtlsad::Part::EndEntity;
        // If DNS delivered all of it, what was sent only stands for the end-entity.
        let whole = delivered.sum::<usize>()
            + if is_whole {
                framing::NO_CERTIFICATES
            } else {
                sent
            };
        savings.bytes_omitted = whole.saturating_sub(sent);
        let whole_flight = (flight_bytes + savings.bytes_omitted).saturating_sub(flight::EXTENSION);
        savings.whole_flights = flights(whole_flight);
    }
    savings
}
