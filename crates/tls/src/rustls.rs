//! rustls with OpenSSL's cryptography behind [`ClientSide`] and [`ServerSide`].

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io::{self, BufRead, IoSlice, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ::rustls::client::danger::ServerCertVerifier;
use ::rustls::client::{
    ClientSessionStore, Resumption as ClientResumption, Tls12ClientSessionValue,
    Tls13ClientSessionValue, WebPkiServerVerifier,
};
use ::rustls::crypto::CryptoProvider;
use ::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName};
use ::rustls::server::{NoServerSessionStorage, StoresServerSessions, WebPkiClientVerifier};
use ::rustls::sign::{CertifiedKey, SingleCertAndKey};
use ::rustls::{
    self as library, ClientConfig, ClientConnection, NamedGroup, RootCertStore, ServerConfig,
    ServerConnection,
};
use lastbyte_link::Side;
use lastbyte_pki::{Chain, KeyAlgorithm};
use lastbyte_sizes::framing::RECORD_HEADER;

use self::quic::RustlsQuic;
use crate::ask::Ask;
use crate::error::cannot;
use crate::quic::QuicTls;
use crate::stack::{ClientSide, Outgoing, ServerSide};
use crate::stacks;
use crate::{
    Alert, CertificateCompression, Connection, Delivery, Group, KeyLog, MAX_EARLY_DATA,
    MAX_PLAINTEXT, Progress, Resumption, Session, StackName, TlsConfig, TlsError, openssl_version,
};

mod abridged;
mod compression;
mod merkle_tree;
mod provider;
mod quic;

pub(crate) use self::compression::decompress;

const STACK: StackName = StackName::Rustls;

/// The most that rustls is given of a Certificate message, header included. It refuses those above
/// 65535 bytes, and all that comes in more than 65535 bytes of records not yet complete: how much
/// that leaves depends on what the server packs into the message's last record, at most
/// CertificateVerify and Finished.
pub(crate) const MAX_CERTIFICATE_MESSAGE: usize = 60_000;

#[derive(Debug)]
struct RustlsClient {
    config: ClientConfig,
    server_name: ServerName<'static>,
}

#[derive(Debug)]
struct RustlsServer {
    config: ServerConfig,
}

/// See [`stacks::Implementation`].
pub(crate) struct Implementation;

impl stacks::Implementation for Implementation {
    fn version(&self) -> String {
        let (own, between) = (env!("RUSTLS_VERSION"), env!("RUSTLS_OPENSSL_VERSION"));
        format!(
            "rustls {own}, rustls-openssl {between}, {}",
            openssl_version()
        )
    }

    fn check(&self, ask: &Ask) -> Result<(), TlsError> {
        check(ask)
    }

    fn client(&self, config: &TlsConfig<'_>) -> Result<Box<dyn ClientSide>, TlsError> {
        Ok(Box::new(RustlsClient::new(config)?))
    }

    fn server(&self, config: &TlsConfig<'_>) -> Result<Box<dyn ServerSide>, TlsError> {
        Ok(Box::new(RustlsServer::new(config)?))
    }
}

/// Whether rustls can do that.
fn check(ask: &Ask) -> Result<(), TlsError> {
    ask.check_delivery(STACK)?;
    check_compressions(ask.compressions())?;
    // Those there are today; what others chains come to be made with is not among them.
    use KeyAlgorithm::*;
    ask.check_keys(
        STACK,
        &[
            EcdsaP256, EcdsaP384, Rsa2048, Rsa3072, Rsa4096, MlDsa44, MlDsa65, MlDsa87,
        ],
    )?;
    ask.check_certificate_list(STACK, MAX_CERTIFICATE_MESSAGE)?;
    match ask.side {
        Side::Client => {
            let provider = provider(&ask.client_groups)?;
            let shares = key_shares(&provider)?.into_iter().map(u16::from);
            let wanted = ask.key_shares.iter().map(|group| group.code_point());
            if shares.eq(wanted) {
                Ok(())
            } else {
                Err(cannot(
                    STACK,
                    "send these key shares",
                    "give it one, or a hybrid group and then its classical half",
                ))
            }
        }
        Side::Server => provider(&[ask.group]).map(drop),
    }
}

/// A peer refuses a ClientHello that names an algorithm twice.
fn check_compressions(algorithms: &[CertificateCompression]) -> Result<(), TlsError> {
    let mut rest = algorithms;
    while let [first, others @ ..] = rest {
        if others.contains(first) {
            let what = format!("compress certificates with {first} twice");
            return Err(cannot(STACK, what, "name it once"));
        }
        rest = others;
    }
    Ok(())
}

fn provider(groups: &[Group]) -> Result<Arc<CryptoProvider>, TlsError> {
    let found = groups.iter().map(|&group| {
        let hint = || {
            cannot(
                STACK,
                format!("use {group}"),
                "choose another group or stack",
            )
        };
        provider::find_group(group).ok_or_else(hint)
    });
    Ok(Arc::new(provider::provider(
        found.collect::<Result<_, _>>()?,
    )))
}

/// What rustls sends key shares for: its first group and, if it supports that one by itself too,
/// the classical half of it.
fn key_shares(provider: &CryptoProvider) -> Result<Vec<NamedGroup>, TlsError> {
    let Some(first) = provider.kx_groups.first() else {
        return Ok(Vec::new());
    };
    let mut shares = vec![first.name()];
    if let Some((half, _)) = first.start().map_err(failure)?.hybrid_component()
        && provider.kx_groups.iter().any(|group| group.name() == half)
    {
        shares.push(half);
    }
    Ok(shares)
}

impl RustlsClient {
    pub(crate) fn new(config: &TlsConfig<'_>) -> Result<Self, TlsError> {
        let ask = Ask::client(config);
        check(&ask)?;
        let provider = provider(&config.client_groups())?;
        let verifier = verifier(config, &provider)?;
        let proof =
            (config.client_chain).map(|chain| proof(certificates(chain)?, chain, &provider));
        let proof = proof.transpose()?;
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&library::version::TLS13])
            .map_err(setup("TLS 1.3"))?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut client = match proof {
            Some(proof) => builder.with_client_cert_resolver(proof),
            None => builder.with_no_client_auth(),
        };
        (client.cert_compressors, client.cert_decompressors) = compression::both_ways(&ask);
        client.enable_early_data = config.resumption == Resumption::EarlyData;
        Ok(Self {
            config: client,
            server_name: ServerName::try_from(config.chain.server_name().to_owned())
                .map_err(|error| setup("the server's name")(error))?,
        })
    }
}

/// What a client takes from a server.
fn verifier(
    config: &TlsConfig<'_>,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, TlsError> {
    if let Delivery::MerkleTree(tree) = &config.delivery {
        return Ok(Arc::new(merkle_tree::Verifier {
            tree: tree.clone(),
            provider: provider.clone(),
        }));
    }
    let verifier =
        WebPkiServerVerifier::builder_with_provider(roots(config.chain)?, provider.clone());
    Ok(verifier.build().map_err(setup("the root certificate"))?)
}

impl RustlsClient {
    /// What one connection has of its own: its tickets, and where its secrets are kept.
    fn own(&self, session: Option<&Session>) -> Result<Own, TlsError> {
        let tickets = match session {
            Some(session) => {
                let tickets: &Arc<Tickets> = session.get().ok_or(TlsError::NoSession)?;
                vec![lock(&tickets.0).pop().ok_or(TlsError::NoSession)?]
            }
            None => Vec::new(),
        };
        let tickets = Arc::new(Tickets(Mutex::new(tickets)));
        let key_log = Arc::new(Log::default());
        let mut config = self.config.clone();
        config.key_log = key_log.clone();
        config.resumption = ClientResumption::store(tickets.clone());
        Ok(Own {
            config,
            tickets,
            key_log,
        })
    }
}

/// See [`RustlsClient::own`].
struct Own {
    config: ClientConfig,
    tickets: Arc<Tickets>,
    key_log: Arc<Log>,
}

impl ClientSide for RustlsClient {
    fn connect(&self, session: Option<&Session>) -> Result<Box<dyn Connection>, TlsError> {
        let own = self.own(session)?;
        let side = State::Unstarted(Arc::new(own.config), self.server_name.clone());
        Ok(Box::new(RustlsConnection::new(
            side,
            own.tickets,
            own.key_log,
        )))
    }

    fn connect_quic(
        &self,
        session: Option<&Session>,
        parameters: &[u8],
    ) -> Result<Box<dyn QuicTls>, TlsError> {
        let own = self.own(session)?;
        let name = self.server_name.clone();
        Ok(Box::new(RustlsQuic::client(
            own.config,
            name,
            parameters,
            own.key_log,
            own.tickets,
        )?))
    }

    /// rustls offers a ticket once, so there have to be many: but not where they hold the client's
    /// certificates, since it takes no more than 64 KiB of messages that it reads without a break.
    fn tickets_per_session(&self) -> u8 {
        if self.config.client_auth_cert_resolver.has_certs() {
            1
        } else {
            16
        }
    }
}

impl RustlsServer {
    pub(crate) fn new(config: &TlsConfig<'_>) -> Result<Self, TlsError> {
        let ask = Ask::server(config);
        check(&ask)?;
        let provider = provider(&[config.group])?;
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&library::version::TLS13])
            .map_err(setup("TLS 1.3"))?;
        let builder = match config.client_chain {
            Some(chain) => {
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(roots(chain)?, provider.clone());
                let verifier = verifier
                    .build()
                    .map_err(|error| setup("the client's root")(error))?;
                builder.with_client_cert_verifier(verifier)
            }
            None => builder.with_no_client_auth(),
        };
        let certificates = match &config.delivery {
            Delivery::MerkleTree(tree) => {
                let preferred = tree.sides().certificates.iter().take(1);
                let preferred = preferred.map(|preferred| preferred.certificate.clone().into());
                preferred.collect()
            }
            _ => certificates(config.chain)?,
        };
        let proof = proof(certificates, config.chain, &provider)?;
        let mut server = builder.with_cert_resolver(proof);
        (server.cert_compressors, server.cert_decompressors) = compression::both_ways(&ask);
        match config.resumption {
            // rustls takes early data only of sessions that it keeps itself.
            Resumption::EarlyData => {
                server.session_storage = Arc::new(Sessions::default());
                server.max_early_data_size = MAX_EARLY_DATA;
                server.send_half_rtt_data = true;
            }
            Resumption::Full | Resumption::Ticket => {
                server.session_storage = Arc::new(NoServerSessionStorage {});
                server.ticketer = provider::ticketer().map_err(setup("tickets"))?;
            }
        }
        Ok(Self { config: server })
    }
}

impl RustlsServer {
    /// What one connection has of its own: how many tickets it sends, and where its secrets are kept.
    fn own(&self, tickets: u8) -> (ServerConfig, Arc<Log>) {
        let key_log = Arc::new(Log::default());
        let mut config = self.config.clone();
        config.key_log = key_log.clone();
        config.send_tls13_tickets = tickets.into();
        (config, key_log)
    }
}

impl ServerSide for RustlsServer {
    fn accept(&self, tickets: u8) -> Result<Box<dyn Connection>, TlsError> {
        let (config, key_log) = self.own(tickets);
        let server = ServerConnection::new(Arc::new(config)).map_err(failure)?;
        let side = State::Started(Box::new(server.into()));
        Ok(Box::new(RustlsConnection::new(
            side,
            Arc::default(),
            key_log,
        )))
    }

    fn accept_quic(&self, tickets: u8, parameters: &[u8]) -> Result<Box<dyn QuicTls>, TlsError> {
        let (config, key_log) = self.own(tickets);
        Ok(Box::new(RustlsQuic::server(config, parameters, key_log)?))
    }
}

/// What ends in the root of `chain` is taken from the peer.
fn roots(chain: &Chain) -> Result<Arc<RootCertStore>, TlsError> {
    let mut roots = RootCertStore::empty();
    let root = chain
        .root()
        .to_der()
        .map_err(setup("the root certificate"))?;
    roots
        .add(CertificateDer::from(root))
        .map_err(setup("the root certificate"))?;
    Ok(Arc::new(roots))
}

fn certificates(chain: &Chain) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let mut certificates = Vec::new();
    for certificate in chain.certificates() {
        let der = certificate.to_der().map_err(setup("a certificate"))?;
        certificates.push(CertificateDer::from(der));
    }
    Ok(certificates)
}

/// Certificates and the key of `chain`, together. rustls has a shorter way, but that one reads
/// the certificates as its client would, and so finds nothing above 64 KiB.
fn proof(
    certificates: Vec<CertificateDer<'static>>,
    chain: &Chain,
    provider: &CryptoProvider,
) -> Result<Arc<SingleCertAndKey>, TlsError> {
    let key = lastbyte_pki::private_key_pkcs8(chain.key()).map_err(setup("the private key"))?;
    let key = (provider.key_provider)
        .load_private_key(PrivatePkcs8KeyDer::from(key).into())
        .map_err(setup("the private key"))?;
    Ok(Arc::new(CertifiedKey::new(certificates, key).into()))
}

enum State {
    /// A client: rustls makes the key shares together with the connection, and that is work of the
    /// handshake.
    Unstarted(Arc<ClientConfig>, ServerName<'static>),
    Started(Box<library::Connection>),
}

struct RustlsConnection {
    state: State,
    progress: Progress,
    incoming: VecDeque<u8>,
    /// Bytes of the record that rustls has got a part of which it has not got yet.
    rest_of_record: usize,
    outgoing: Outgoing,
    tickets: Arc<Tickets>,
    key_log: Arc<Log>,
}

impl RustlsConnection {
    fn new(state: State, tickets: Arc<Tickets>, key_log: Arc<Log>) -> Self {
        Self {
            state,
            progress: Progress::Handshaking,
            incoming: VecDeque::new(),
            rest_of_record: 0,
            outgoing: Outgoing::default(),
            tickets,
            key_log,
        }
    }

    /// Makes a client's hello, without early data: rustls would offer to send some even if it has
    /// none to send.
    fn start(&mut self) -> Result<&mut library::Connection, TlsError> {
        if let State::Unstarted(config, _) = &mut self.state {
            Arc::make_mut(config).enable_early_data = false;
        }
        self.start_as_configured()
    }

    fn start_as_configured(&mut self) -> Result<&mut library::Connection, TlsError> {
        if let State::Unstarted(config, name) = &self.state {
            let client = ClientConnection::new(config.clone(), name.clone()).map_err(failure)?;
            self.state = State::Started(Box::new(client.into()));
        }
        self.started()
    }

    fn started(&mut self) -> Result<&mut library::Connection, TlsError> {
        match &mut self.state {
            State::Started(connection) => Ok(connection),
            State::Unstarted(..) => Err(TlsError::NotEstablished),
        }
    }

    /// Lets rustls take in one record, or what there is of one. False when nothing is left.
    ///
    /// Were it given more, it would decrypt all of that at once.
    fn take_record(&mut self) -> Result<bool, TlsError> {
        if self.rest_of_record == 0 {
            let (Some(&high), Some(&low)) = (self.incoming.get(3), self.incoming.get(4)) else {
                return Ok(false);
            };
            self.rest_of_record = RECORD_HEADER + usize::from(u16::from_be_bytes([high, low]));
        }
        let State::Started(connection) = &mut self.state else {
            return Ok(false);
        };
        let length = self.rest_of_record.min(self.incoming.len());
        let mut part = (&mut self.incoming).take(length as u64);
        while part.limit() > 0 {
            match connection.read_tls(&mut part) {
                Ok(1..) => {}
                Ok(0) => return Err(protocol("it takes no more bytes")),
                Err(error) => return Err(protocol(error)),
            }
        }
        self.rest_of_record -= length;
        if length > 0 {
            connection.process_new_packets().map_err(failure)?;
        }
        Ok(length > 0)
    }

    fn handshake(&mut self) -> Result<Progress, TlsError> {
        while self.start()?.is_handshaking() {
            if !self.take_record()? {
                return Ok(Progress::Handshaking);
            }
        }
        Ok(Progress::Established)
    }

    /// Takes what rustls has to send.
    fn flush(&mut self) {
        if let State::Started(connection) = &mut self.state {
            while connection.wants_write() {
                // Writing to memory cannot fail.
                let _ = connection.write_tls(&mut Writes(&mut self.outgoing));
            }
        }
    }

    /// Early data that waits to be read, of a server that accepted it.
    fn early_data(&mut self) -> Option<impl Read> {
        match &mut self.state {
            State::Started(connection) => match &mut **connection {
                library::Connection::Server(server) => server.early_data(),
                library::Connection::Client(_) => None,
            },
            State::Unstarted(..) => None,
        }
    }
}

impl Connection for RustlsConnection {
    fn receive(&mut self, bytes: &[u8]) {
        self.incoming.extend(bytes);
    }

    fn advance(&mut self) -> Result<Progress, TlsError> {
        if self.progress == Progress::Handshaking {
            let result = self.handshake();
            self.flush();
            self.progress = result?;
        }
        Ok(self.progress)
    }

    fn transmit(&mut self, out: &mut Vec<u8>) {
        self.outgoing.transmit(out);
    }

    fn transmit_write(&mut self, out: &mut Vec<u8>) -> bool {
        self.outgoing.transmit_write(out)
    }

    fn write_record(&mut self, plaintext: &[u8]) -> Result<(), TlsError> {
        if !(1..=MAX_PLAINTEXT).contains(&plaintext.len()) {
            return Err(TlsError::RecordLength(plaintext.len()));
        }
        if self.progress == Progress::Handshaking && self.early_data().is_none() {
            return Err(TlsError::NotEstablished);
        }
        let mut writer = self.started()?.writer();
        writer.write_all(plaintext).map_err(protocol)?;
        self.flush();
        Ok(())
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, TlsError> {
        if let Some(mut early_data) = self.early_data() {
            let length = early_data.read(buffer).map_err(protocol)?;
            if length > 0 {
                return Ok(length);
            }
        }
        if self.progress == Progress::Handshaking {
            return Ok(0);
        }
        loop {
            let mut reader = self.started()?.reader();
            match reader.fill_buf() {
                Ok([]) => return Err(TlsError::Closed),
                Ok(record) => {
                    let length = record.len().min(buffer.len());
                    let (Some(to), Some(from)) = (buffer.get_mut(..length), record.get(..length))
                    else {
                        return Ok(0);
                    };
                    to.copy_from_slice(from);
                    reader.consume(length);
                    return Ok(length);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(protocol(error)),
            }
            let taken = self.take_record();
            self.flush();
            if !taken? {
                return Ok(0);
            }
        }
    }

    fn write_early_data(&mut self, plaintext: &[u8]) -> Result<(), TlsError> {
        let library::Connection::Client(client) = self.start_as_configured()? else {
            return Err(TlsError::NoEarlyData);
        };
        let mut early_data = client.early_data().ok_or(TlsError::NoEarlyData)?;
        (early_data.write_all(plaintext)).map_err(|_| TlsError::NoEarlyData)?;
        self.flush();
        Ok(())
    }

    fn is_early_data_accepted(&self) -> bool {
        match &self.state {
            State::Started(connection) => match &**connection {
                library::Connection::Client(client) => client.is_early_data_accepted(),
                library::Connection::Server(_) => false,
            },
            State::Unstarted(..) => false,
        }
    }

    fn session(&mut self) -> Option<Session> {
        self.tickets.session()
    }

    fn key_log(&self) -> KeyLog {
        self.key_log.key_log()
    }
}

/// Takes all that rustls gives in one call as one write.
struct Writes<'a>(&'a mut Outgoing);

impl Write for Writes<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes);
        Ok(bytes.len())
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let bytes: Vec<&[u8]> = slices.iter().map(|slice| &**slice).collect();
        self.write(&bytes.concat())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The secrets so far. To write them as lines takes hundredths of a handshake, so that is done when
/// somebody asks.
#[derive(Default)]
struct Log(Mutex<Vec<Secret>>);

struct Secret {
    label: String,
    client_random: Vec<u8>,
    secret: Vec<u8>,
}

impl Log {
    /// The first of that name.
    fn secret(&self, label: &str) -> Option<Vec<u8>> {
        let secrets = lock(&self.0);
        let found = secrets.iter().find(|secret| secret.label == label);
        found.map(|found| found.secret.clone())
    }

    fn key_log(&self) -> KeyLog {
        let mut key_log = KeyLog::default();
        for logged in &*lock(&self.0) {
            let random = hex::encode(&logged.client_random);
            let secret = hex::encode(&logged.secret);
            key_log.push_line(&format!("{} {random} {secret}", logged.label));
        }
        key_log
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} secrets", lock(&self.0).len())
    }
}

impl library::KeyLog for Log {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        lock(&self.0).push(Secret {
            label: label.to_owned(),
            client_random: client_random.to_vec(),
            secret: secret.to_vec(),
        });
    }
}

/// A client's tickets, each of which can be offered once.
#[derive(Default)]
struct Tickets(Mutex<Vec<Tls13ClientSessionValue>>);

impl Tickets {
    /// What can be resumed with them, if there are any.
    fn session(self: &Arc<Self>) -> Option<Session> {
        let none = lock(&self.0).is_empty();
        (!none).then(|| Session::new(self.clone()))
    }
}

impl fmt::Debug for Tickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tickets", lock(&self.0).len())
    }
}

impl ClientSessionStore for Tickets {
    // A hint would replace the key shares that were asked for.
    fn set_kx_hint(&self, _: ServerName<'static>, _: NamedGroup) {}

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        None
    }

    fn set_tls12_session(&self, _: ServerName<'static>, _: Tls12ClientSessionValue) {}

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        None
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {}

    fn insert_tls13_ticket(&self, _: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        lock(&self.0).push(ticket);
    }

    fn take_tls13_ticket(&self, _: &ServerName<'_>) -> Option<Tls13ClientSessionValue> {
        lock(&self.0).pop()
    }
}

/// A server's sessions, each of which can be resumed as often as a ticket.
#[derive(Debug, Default)]
struct Sessions(Mutex<SessionsByAge>);

#[derive(Debug, Default)]
struct SessionsByAge {
    sessions: HashMap<Vec<u8>, Vec<u8>>,
    /// Their keys, the oldest first.
    keys: VecDeque<Vec<u8>>,
}

impl Sessions {
    /// Of so many connections at once, each may get some tickets.
    const CAPACITY: usize = 1 << 14;
}

impl StoresServerSessions for Sessions {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        let mut cache = lock(&self.0);
        if cache.keys.len() == Self::CAPACITY
            && let Some(oldest) = cache.keys.pop_front()
        {
            cache.sessions.remove(&oldest);
        }
        cache.keys.push_back(key.clone());
        cache.sessions.insert(key, value);
        true
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        lock(&self.0).sessions.get(key).cloned()
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.get(key)
    }

    fn can_cache(&self) -> bool {
        true
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn failure(error: library::Error) -> TlsError {
    match error {
        library::Error::AlertReceived(alert) => TlsError::Refused(Alert(alert.into())),
        library::Error::InvalidCertificate(error) => TlsError::Certificate {
            reason: error.to_string(),
        },
        error => protocol(error),
    }
}

fn protocol(error: impl fmt::Display) -> TlsError {
    TlsError::Protocol {
        reason: error.to_string(),
    }
}

fn setup<E: fmt::Display>(what: &str) -> impl FnOnce(E) -> TlsError {
    let what = what.to_owned();
    move |error| TlsError::Setup {
        stack: STACK.name(),
        what,
        reason: error.to_string(),
    }
}

#[cfg(test)]
mod tests;
