//! OpenSSL behind [`Stack`].

use std::collections::VecDeque;
use std::ffi::c_long;
use std::io::{self, Read, Write};
use std::sync::Arc;

use lastbyte_pki::Chain;
use lastbyte_providers::reason;
use openssl::error::ErrorStack;
use openssl::ssl::{
    self, AlpnError, ErrorCode, Ssl, SslContext, SslContextBuilder, SslMethod, SslMode, SslRef,
    SslSession, SslSessionCacheMode, SslStream, SslVerifyMode, SslVersion,
};
use openssl::x509::X509VerifyResult;
use openssl::x509::store::X509StoreBuilder;
use pqtlsad::client::Fallback;
use pqtlsad::extension::ExtensionType;
use pqtlsad::openssl::EndEntity;
use pqtlsad::server::{ChainError, Chains, SharedChains};
use pqtlsad::validate::Offer;

use crate::ask::Ask;
use crate::observer::Side;
use crate::quic::{ALPN, QuicTls};
use crate::stack::{ClientSide, Outgoing, Retry, ServerSide};
use crate::stacks;
use crate::{
    Alert, Connection, Delivery, KeyLog, MAX_EARLY_DATA, MAX_PLAINTEXT, Progress, Resumption,
    Session, StackName, TlsConfig, TlsError, key_log,
};

mod credentials;
mod elision;
mod ffi;
mod merkle_tree;
mod quic;
mod random;
mod single;
mod trust_anchors;

use self::credentials::Credentials;
use self::elision::NextTry;
use self::quic::{EarlyPackets, OpenSslQuic};
pub use self::random::{RandomSequence, Randomness};
pub use self::single::SingleClient;

const STACK: StackName = StackName::OpenSsl;

/// TLS 1.3 alone.
#[derive(Debug)]
struct OpenSslClient {
    context: SslContext,
    server_name: String,
    delivery: Delivery,
    resumption: Resumption,
    elision: Option<elision::Client>,
}

struct OpenSslServer {
    context: SslContext,
    resumption: Resumption,
    /// What connections send until their clients say what they have, where they may say that.
    chosen: Option<Arc<Credentials>>,
}

/// See [`stacks::Implementation`].
pub(crate) struct Implementation;

impl stacks::Implementation for Implementation {
    fn version(&self) -> String {
        openssl_version().to_owned()
    }

    fn check(&self, ask: &Ask) -> Result<(), TlsError> {
        check(ask)
    }

    fn client(&self, config: &TlsConfig<'_>) -> Result<Box<dyn ClientSide>, TlsError> {
        Ok(Box::new(OpenSslClient::new(config)?))
    }

    fn server(&self, config: &TlsConfig<'_>) -> Result<Box<dyn ServerSide>, TlsError> {
        Ok(Box::new(OpenSslServer::new(config)?))
    }
}

/// Whether OpenSSL can do that: all but compress, and groups that it does not know. Keys it judges
/// by itself.
fn check(ask: &Ask) -> Result<(), TlsError> {
    ask.check_compressions(STACK, "it is built without compression (no-comp)")?;
    let (method, groups) = match ask.side {
        Side::Client => (SslMethod::tls_client(), ask.client_groups.as_slice()),
        Side::Server => (SslMethod::tls_server(), std::slice::from_ref(&ask.group)),
    };
    let names: Vec<_> = groups.iter().map(|group| group.name()).collect();
    context(method, &names.join(":")).map(drop)
}

impl OpenSslClient {
    pub(crate) fn new(config: &TlsConfig<'_>) -> Result<Self, TlsError> {
        check(&Ask::client(config))?;
        let (context, elision) = offering(config, || client_context(config))?;
        Ok(Self {
            context: context.build(),
            server_name: config.chain.server_name().to_owned(),
            delivery: config.delivery.clone(),
            resumption: config.resumption,
            elision,
        })
    }

    fn connection(
        &self,
        session: Option<&SessionDer>,
        offer: Option<(&Offer, EndEntity)>,
        retry: Option<&Retry>,
    ) -> Result<OpenSslConnection, ErrorStack> {
        let ssl = self.ssl(session, offer, retry)?;
        // At most once.
        let next_try = match (&self.elision, retry) {
            (Some(elision), None) => Some(elision.next_try()),
            _ => None,
        };
        OpenSslConnection::new(ssl, EarlyData::None, next_try)
    }

    fn ssl(
        &self,
        session: Option<&SessionDer>,
        offer: Option<(&Offer, EndEntity)>,
        retry: Option<&Retry>,
    ) -> Result<Ssl, ErrorStack> {
        let mut ssl = Ssl::new(&self.context)?;
        ssl.set_hostname(&self.server_name)?;
        ssl.param_mut().set_host(&self.server_name)?;
        if let Some(SessionDer { der, .. }) = session {
            ffi::set_session(&mut ssl, &SslSession::from_der(der)?)?;
        }
        if let Some((offer, end_entity)) = offer {
            pqtlsad::openssl::client::offer(&mut ssl, offer.clone(), end_entity)?;
        }
        if let Some(elision) = &self.elision {
            elision.begin(&mut ssl, retry)?;
        }
        if let Delivery::MerkleTree(_) = self.delivery {
            merkle_tree::begin(&mut ssl)?;
        }
        ssl.set_connect_state();
        Ok(ssl)
    }
}

/// What a session is, where there is one to resume.
fn session_der(session: Option<&Session>) -> Result<Option<&SessionDer>, TlsError> {
    match session {
        Some(session) => Ok(Some(session.get().ok_or(TlsError::NoSession)?)),
        None => Ok(None),
    }
}

impl ClientSide for OpenSslClient {
    fn connect(&self, session: Option<&Session>) -> Result<Box<dyn Connection>, TlsError> {
        let connection = self.connection(session_der(session)?, None, None);
        Ok(Box::new(connection.map_err(protocol)?))
    }

    fn connect_quic(
        &self,
        session: Option<&Session>,
        parameters: &[u8],
    ) -> Result<Box<dyn QuicTls>, TlsError> {
        let session = session_der(session)?;
        let early = match (self.resumption, session) {
            // Of a session without parameters nothing is known that early data could be sent by.
            (Resumption::EarlyData, Some(SessionDer { parameters, .. })) => parameters.clone(),
            _ => None,
        };
        let early = early.map_or(EarlyPackets::None, EarlyPackets::Sent);
        let connection = self.ssl(session, None, None).and_then(|mut ssl| {
            ssl.set_alpn_protos(&alpn())?;
            OpenSslQuic::new(ssl, parameters, early)
        });
        Ok(Box::new(connection.map_err(protocol)?))
    }

    fn connect_again(&self, retry: &Retry) -> Result<Box<dyn Connection>, TlsError> {
        if self.elision.is_none() {
            return Err(TlsError::NoRetry);
        }
        let connection = self.connection(None, None, Some(retry));
        Ok(Box::new(connection.map_err(protocol)?))
    }

    fn connect_offering(&self, offer: &Offer) -> Result<Box<dyn Connection>, TlsError> {
        let Delivery::PqtlsAd(end_entity) = self.delivery else {
            return Err(TlsError::NoOffers);
        };
        let connection = self.connection(None, Some((offer, end_entity)), None);
        Ok(Box::new(connection.map_err(protocol)?))
    }
}

/// A session as OpenSSL writes it.
#[derive(Clone)]
struct SessionDer {
    der: Vec<u8>,
    /// The server's transport parameters, of a session over QUIC.
    parameters: Option<Vec<u8>>,
}

impl SessionDer {
    /// That of a connection, once a ticket has come.
    fn of(ssl: &SslRef, parameters: Option<Vec<u8>>) -> Option<SessionDer> {
        let session = ssl.session()?;
        // A copy: OpenSSL forbids to resume the session of a connection that ends without closing.
        let der = ffi::is_resumable(session).then(|| session.to_der());
        let der = der?.ok()?;
        Some(SessionDer { der, parameters })
    }
}

impl OpenSslServer {
    pub(crate) fn new(config: &TlsConfig<'_>) -> Result<Self, TlsError> {
        check(&Ask::server(config))?;
        let (context, chosen) = offering(config, || server_context(config))?;
        Ok(Self {
            context: context.build(),
            resumption: config.resumption,
            chosen,
        })
    }

    fn ssl(&self, tickets: u8) -> Result<Ssl, ErrorStack> {
        let mut ssl = Ssl::new(&self.context)?;
        ssl.set_num_tickets(tickets.into())?;
        if let Some(chosen) = &self.chosen {
            chosen.give(&mut ssl)?;
        }
        ssl.set_accept_state();
        Ok(ssl)
    }

    fn connection(&self, tickets: u8) -> Result<OpenSslConnection, ErrorStack> {
        let ssl = self.ssl(tickets)?;
        let early_data = match self.resumption {
            Resumption::EarlyData => EarlyData::Expected(VecDeque::new()),
            Resumption::Full | Resumption::Ticket => EarlyData::None,
        };
        OpenSslConnection::new(ssl, early_data, None)
    }
}

impl ServerSide for OpenSslServer {
    fn accept(&self, tickets: u8) -> Result<Box<dyn Connection>, TlsError> {
        Ok(Box::new(self.connection(tickets).map_err(protocol)?))
    }

    fn accept_quic(&self, tickets: u8, parameters: &[u8]) -> Result<Box<dyn QuicTls>, TlsError> {
        let ssl = self.ssl(tickets);
        let early = match self.resumption {
            Resumption::EarlyData => EarlyPackets::Taken,
            Resumption::Full | Resumption::Ticket => EarlyPackets::None,
        };
        let connection = ssl.and_then(|ssl| OpenSslQuic::new(ssl, parameters, early));
        Ok(Box::new(connection.map_err(protocol)?))
    }
}

/// [`ALPN`], as a ClientHello has it.
fn alpn() -> Vec<u8> {
    let length = u8::try_from(ALPN.len()).unwrap_or(u8::MAX);
    [&[length], ALPN.as_bytes()].concat()
}

/// The version of the OpenSSL that is built in, such as `OpenSSL 3.6.3 …`.
pub fn openssl_version() -> &'static str {
    ::openssl::version::version()
}

/// The length field of a handshake message allows no more (RFC 8446, 4).
const MAX_CERTIFICATE_MESSAGE: c_long = (1 << 24) - 1;

/// Calls `make`, which makes a context: it knows the signatures of all chains.
fn offering<T>(
    config: &TlsConfig<'_>,
    make: impl FnOnce() -> Result<T, TlsError>,
) -> Result<T, TlsError> {
    let chains = [config.chain].into_iter().chain(config.client_chain);
    let signatures: Vec<_> = chains.flat_map(Chain::provided_signatures).collect();
    lastbyte_providers::offering(&signatures, make).map_err(protocol)?
}

fn client_context(
    config: &TlsConfig<'_>,
) -> Result<(SslContextBuilder, Option<elision::Client>), TlsError> {
    // An asterisk marks a group that a key share is sent for.
    let groups: Vec<_> = (config.client_groups().into_iter())
        .map(|group| {
            if config.key_shares.contains(&group) {
                format!("*{group}")
            } else {
                group.to_string()
            }
        })
        .collect();
    let mut context = context(SslMethod::tls_client(), &groups.join(":"))?;
    trust(&mut context, config.chain, config)?;
    context.set_verify(SslVerifyMode::PEER);
    if let Delivery::PqtlsAd(_) = config.delivery {
        pqtlsad::openssl::client::install(&mut context, ExtensionType::DEFAULT)
            .map_err(setup("the PQTLS-AD extension"))?;
    }
    let elision = match config.delivery {
        Delivery::Elided(elision) => {
            let client = elision::Client::install(&mut context, config.chain, elision);
            Some(client.map_err(setup("what leaves intermediates out"))?)
        }
        Delivery::MerkleTree(ref tree) => {
            let host = config.chain.server_name();
            merkle_tree::install_client(&mut context, host, tree)
                .map_err(setup("what verifies Merkle Tree Certificates"))?;
            let (named, trusted) = (tree.sides().named.clone(), tree.sides().trusted.clone());
            let client = named.map(|named| elision::Client::naming(&mut context, named, trusted));
            client
                .transpose()
                .map_err(setup("what names trust anchors"))?
        }
        _ => None,
    };
    if let Some(chain) = config.client_chain {
        prove(&mut context, chain)?;
    }
    Ok((context, elision))
}

fn server_context(
    config: &TlsConfig<'_>,
) -> Result<(SslContextBuilder, Option<Arc<Credentials>>), TlsError> {
    let mut context = context(SslMethod::tls_server(), config.group.name())?;
    let mut chosen = None;
    match config.delivery {
        // What compresses was refused before.
        Delivery::Full | Delivery::Compressed(_) | Delivery::Abridged { .. } => {
            prove(&mut context, config.chain)?;
        }
        Delivery::Elided(elision) => {
            let installed = elision::install_server(&mut context, config.chain, elision);
            chosen = Some(installed.map_err(setup("what leaves intermediates out"))?);
        }
        Delivery::MerkleTree(ref tree) => {
            let installed = merkle_tree::install_server(&mut context, config.chain, tree);
            chosen = Some(installed.map_err(setup("a Merkle Tree Certificate"))?);
        }
        Delivery::PqtlsAd(end_entity) => {
            let chain = config.chain;
            let unusable = |reason: ChainError| TlsError::Setup {
                stack: STACK.name(),
                what: "the chain".to_owned(),
                reason: reason.to_string(),
            };
            let chain =
                pqtlsad::server::Chain::new(chain.certificates().to_vec(), chain.key().clone());
            let chains = Chains::new(vec![chain.map_err(unusable)?]);
            pqtlsad::openssl::server::install(
                &mut context,
                Arc::new(SharedChains::new(chains)),
                ExtensionType::DEFAULT,
                end_entity,
            )
            .map_err(setup("the PQTLS-AD extension"))?;
        }
    }
    if let Some(chain) = config.client_chain {
        trust(&mut context, chain, config)?;
        context.set_verify(SslVerifyMode::PEER | SslVerifyMode::FAIL_IF_NO_PEER_CERT);
    }
    // Clients over QUIC alone offer any.
    context.set_alpn_select_callback(|_, offered| {
        openssl::ssl::select_next_proto(b"\x02h3", offered).ok_or(AlpnError::NOACK)
    });
    // Without one, a server that asks for certificates resumes nothing.
    context
        .set_session_id_context(b"lastbyte")
        .map_err(protocol)?;
    if config.resumption == Resumption::EarlyData {
        context
            .set_max_early_data(MAX_EARLY_DATA)
            .map_err(protocol)?;
        // The protection would need a store of sessions that each is used once of.
        ffi::set_no_anti_replay(&mut context);
    }
    Ok((context, chosen))
}

/// Sends `chain` and signs with its key.
fn prove(context: &mut SslContextBuilder, chain: &Chain) -> Result<(), TlsError> {
    // Otherwise OpenSSL completes the chain from what it trusts.
    context.set_mode(SslMode::NO_AUTO_CHAIN);
    if let Some((end_entity, issuers)) = chain.certificates().split_first() {
        context
            .set_certificate(end_entity)
            .map_err(setup("the end-entity certificate"))?;
        for issuer in issuers {
            context
                .add_extra_chain_cert(issuer.clone())
                .map_err(setup("a CA certificate"))?;
        }
    }
    context
        .set_private_key(chain.key())
        .map_err(setup("the private key"))
}

/// Takes from the peer what ends in the root of `chain`.
fn trust(
    context: &mut SslContextBuilder,
    chain: &Chain,
    config: &TlsConfig<'_>,
) -> Result<(), TlsError> {
    let mut roots = X509StoreBuilder::new().map_err(protocol)?;
    roots
        .add_cert(chain.root().clone())
        .map_err(setup("the root certificate"))?;
    if let Delivery::Elided(elision) = config.delivery
        && std::ptr::eq(chain, config.chain)
    {
        elision::hold(&mut roots, chain, elision).map_err(setup("an intermediate"))?;
    }
    context.set_cert_store(roots.build());
    let limit = (config.max_certificate_list)
        // OpenSSL counts without the message's header.
        .and_then(|bytes| c_long::try_from(bytes.saturating_sub(4)).ok())
        .unwrap_or(MAX_CERTIFICATE_MESSAGE);
    ffi::set_max_cert_list(context, limit.min(MAX_CERTIFICATE_MESSAGE));
    Ok(())
}

/// `groups` by their IANA names, which OpenSSL knows too.
fn context(method: SslMethod, groups: &str) -> Result<SslContextBuilder, TlsError> {
    let mut context = SslContext::builder(method).map_err(protocol)?;
    context
        .set_min_proto_version(Some(SslVersion::TLS1_3))
        .map_err(setup("TLS 1.3"))?;
    context
        .set_max_proto_version(Some(SslVersion::TLS1_3))
        .map_err(setup("TLS 1.3"))?;
    // OpenSSL's own default, whatever the host's openssl.cnf says.
    context.set_security_level(2);
    context.set_groups_list(groups).map_err(setup(groups))?;
    context.set_session_cache_mode(SslSessionCacheMode::OFF);
    key_log::install(&mut context).map_err(protocol)?;
    Ok(context)
}

struct OpenSslConnection {
    stream: SslStream<Memory>,
    progress: Progress,
    early_data: EarlyData,
    /// What a client tries if this handshake fails.
    next_try: Option<NextTry>,
}

/// What a server has of early data.
#[derive(Debug, PartialEq, Eq)]
enum EarlyData {
    /// None, and it will not get any.
    None,
    /// It may get some more.
    Expected(VecDeque<u8>),
    /// All of it.
    Received(VecDeque<u8>),
}

impl OpenSslConnection {
    fn new(
        mut ssl: Ssl,
        early_data: EarlyData,
        next_try: Option<NextTry>,
    ) -> Result<OpenSslConnection, ErrorStack> {
        key_log::start(&mut ssl)?;
        let stream = SslStream::new(ssl, Memory::default())?;
        Ok(OpenSslConnection {
            stream,
            progress: Progress::Handshaking,
            early_data,
            next_try,
        })
    }

    /// Takes what there is of early data, for whoever reads.
    fn take_early_data(&mut self) -> Result<(), TlsError> {
        let mut buffer = [0; MAX_PLAINTEXT];
        while let EarlyData::Expected(data) = &mut self.early_data {
            match self.stream.read_early_data(&mut buffer) {
                Ok(0) if data.is_empty() => self.early_data = EarlyData::None,
                Ok(0) => self.early_data = EarlyData::Received(std::mem::take(data)),
                Ok(length) => data.extend(&buffer[..length]),
                Err(error) if error.code() == ErrorCode::WANT_READ => return Ok(()),
                Err(error) => return Err(self.failure(&error)),
            }
        }
        Ok(())
    }

    fn failure(&self, error: &ssl::Error) -> TlsError {
        failure(self.stream.ssl(), error)
    }
}

impl Connection for OpenSslConnection {
    fn receive(&mut self, bytes: &[u8]) {
        self.stream.get_mut().incoming.extend(bytes);
    }

    fn advance(&mut self) -> Result<Progress, TlsError> {
        if self.progress == Progress::Established {
            return Ok(self.progress);
        }
        self.take_early_data()?;
        if !matches!(self.early_data, EarlyData::Expected(_)) {
            match self.stream.do_handshake() {
                Ok(()) => self.progress = Progress::Established,
                Err(error) if error.code() == ErrorCode::WANT_READ => {}
                Err(error) => return Err(self.failure(&error)),
            }
        }
        Ok(self.progress)
    }

    fn transmit(&mut self, out: &mut Vec<u8>) {
        self.stream.get_mut().outgoing.transmit(out);
    }

    fn transmit_write(&mut self, out: &mut Vec<u8>) -> bool {
        self.stream.get_mut().outgoing.transmit_write(out)
    }

    fn write_record(&mut self, plaintext: &[u8]) -> Result<(), TlsError> {
        if !(1..=MAX_PLAINTEXT).contains(&plaintext.len()) {
            return Err(TlsError::RecordLength(plaintext.len()));
        }
        let written = match (self.progress, &self.early_data) {
            (Progress::Established, _) => self.stream.ssl_write(plaintext),
            (Progress::Handshaking, EarlyData::None) => return Err(TlsError::NotEstablished),
            // To a client that has not proved itself yet.
            (Progress::Handshaking, _) => self.stream.write_early_data(plaintext),
        };
        match written {
            Ok(_) => Ok(()),
            Err(error) => Err(self.failure(&error)),
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, TlsError> {
        if let EarlyData::Expected(data) | EarlyData::Received(data) = &mut self.early_data
            && !data.is_empty()
        {
            return data.read(buffer).map_err(|_| TlsError::NoEarlyData);
        }
        if self.progress == Progress::Handshaking {
            return Ok(0);
        }
        match self.stream.ssl_read(buffer) {
            Ok(length) => Ok(length),
            Err(error) if error.code() == ErrorCode::WANT_READ => Ok(0),
            Err(error) => Err(self.failure(&error)),
        }
    }

    fn write_early_data(&mut self, plaintext: &[u8]) -> Result<(), TlsError> {
        let session = self.stream.ssl().session();
        if session.is_none_or(|session| session.max_early_data() == 0) {
            return Err(TlsError::NoEarlyData);
        }
        match self.stream.write_early_data(plaintext) {
            Ok(_) => Ok(()),
            Err(error) => Err(self.failure(&error)),
        }
    }

    fn is_early_data_accepted(&self) -> bool {
        ffi::is_early_data_accepted(self.stream.ssl())
    }

    fn session(&mut self) -> Option<Session> {
        SessionDer::of(self.stream.ssl(), None).map(Session::new)
    }

    fn delivery(&self) -> Option<Result<(), Fallback>> {
        pqtlsad::openssl::client::outcome(self.stream.ssl())
    }

    fn retry(&self) -> Option<Retry> {
        let next_try = self.next_try.as_ref();
        let next_try = next_try.filter(|_| self.progress == Progress::Handshaking);
        next_try?.after(self.stream.ssl())
    }

    fn key_log(&self) -> KeyLog {
        key_log::of(self.stream.ssl())
    }
}

/// The two ends of what would be a socket.
#[derive(Default)]
struct Memory {
    incoming: VecDeque<u8>,
    outgoing: Outgoing,
}

impl Read for Memory {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.incoming.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.incoming.read(buffer)
    }
}

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.outgoing.write(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn failure(ssl: &SslRef, error: &ssl::Error) -> TlsError {
    let Some(stack) = error.ssl_error() else {
        return match error.code() {
            ErrorCode::ZERO_RETURN => TlsError::Closed,
            _ => TlsError::Protocol {
                reason: error.to_string(),
            },
        };
    };
    failed(ssl, stack)
}

/// What OpenSSL's errors say.
fn failed(ssl: &SslRef, stack: &ErrorStack) -> TlsError {
    if let Some(alert) = received_alert(stack) {
        return TlsError::Refused(alert);
    }
    match ssl.verify_result() {
        X509VerifyResult::OK => TlsError::Protocol {
            reason: reason(stack),
        },
        result => TlsError::Certificate {
            reason: result.error_string().to_owned(),
        },
    }
}

/// The alert that the peer sent, if that is why OpenSSL failed: it reports one as the reason 1000 +
/// its number.
pub fn received_alert(stack: &ErrorStack) -> Option<Alert> {
    const ERR_LIB_SSL: i32 = 20;
    const SSL_AD_REASON_OFFSET: i32 = 1000;
    stack.errors().iter().find_map(|error| {
        (error.library_code() == ERR_LIB_SSL).then_some(())?;
        u8::try_from(error.reason_code() - SSL_AD_REASON_OFFSET)
            .ok()
            .map(Alert)
    })
}

fn setup(what: &str) -> impl FnOnce(ErrorStack) -> TlsError {
    let what = what.to_owned();
    move |stack| TlsError::Setup {
        stack: STACK.name(),
        what,
        reason: reason(&stack),
    }
}

fn protocol(stack: ErrorStack) -> TlsError {
    TlsError::Protocol {
        reason: reason(&stack),
    }
}

#[cfg(test)]
mod tests;
