//! s2n-tls on AWS-LC behind [`ClientSide`] and [`ServerSide`].

use std::task::Poll;
use std::time::{Duration, SystemTime};

use ::s2n_tls::callbacks::{SessionTicket, SessionTicketCallback, VerifyHostNameCallback};
use ::s2n_tls::config::{Builder, Config};
use ::s2n_tls::connection::Connection as Library;
use ::s2n_tls::enums::{Blinding, ClientAuthType, Mode, Version};
use ::s2n_tls::error::{Error, ErrorType};
use ::s2n_tls::security;
use lastbyte_pki::Chain;
use openssl::error::ErrorStack;
use openssl::rand::rand_bytes;
use openssl::x509::X509;

use self::io::Memory;
use self::policies::Policy;
use crate::ask::Ask;
use crate::error::cannot;
use crate::observer::Side;
use crate::stack::{ClientSide, ServerSide};
use crate::stacks;
use crate::{
    Alert, Connection, KeyLog, MAX_PLAINTEXT, Progress, Resumption, Session, StackName, TlsConfig,
    TlsError,
};

mod io;
mod policies;

const STACK: StackName = StackName::S2nTls;

/// The most that s2n-tls takes of a Certificate message, header included.
const MAX_CERTIFICATE_MESSAGE: usize = (64 << 10) + 4;

#[derive(Debug)]
struct S2nClient {
    config: Config,
    server_name: String,
}

#[derive(Debug)]
struct S2nServer {
    /// Sends a ticket.
    sending: Config,
    /// Takes tickets, and sends none.
    taking: Config,
}

/// See [`stacks::Implementation`].
pub(crate) struct Implementation;

impl stacks::Implementation for Implementation {
    fn version(&self) -> String {
        let (own, cryptography) = (env!("S2N_TLS_VERSION"), env!("AWS_LC_RS_VERSION"));
        format!("s2n-tls {own}, aws-lc-rs {cryptography}")
    }

    fn check(&self, ask: &Ask) -> Result<(), TlsError> {
        check(ask)
    }

    fn client(&self, config: &TlsConfig<'_>) -> Result<Box<dyn ClientSide>, TlsError> {
        Ok(Box::new(S2nClient::new(config)?))
    }

    fn server(&self, config: &TlsConfig<'_>) -> Result<Box<dyn ServerSide>, TlsError> {
        Ok(Box::new(S2nServer::new(config)?))
    }
}

/// Whether s2n-tls can do that.
fn check(ask: &Ask) -> Result<(), TlsError> {
    ask.check_delivery(STACK)?;
    ask.check_compressions(STACK, "it has no compress_certificate extension")?;
    if ask.resumption == Resumption::EarlyData {
        let hint = "its Rust interface has none; choose another stack";
        return Err(cannot(STACK, "use early data", hint));
    }
    if ask.tickets > MAX_TICKETS && ask.side == Side::Server {
        return Err(cannot(STACK, "send more than one ticket", "ask for one"));
    }
    let mutual = ask.proves.is_some() && ask.verifies.is_some();
    if mutual && (ask.resumption != Resumption::Full || ask.tickets > 0) {
        let what = "resume sessions of clients that prove themselves";
        return Err(cannot(
            STACK,
            what,
            "ask for no tickets and full handshakes",
        ));
    }
    ask.check_certificate_list(STACK, MAX_CERTIFICATE_MESSAGE)?;
    Policy::of(ask).map(drop)
}

const MAX_TICKETS: u8 = 1;

impl S2nClient {
    pub(crate) fn new(config: &TlsConfig<'_>) -> Result<Self, TlsError> {
        let ask = Ask::client(config);
        check(&ask)?;
        let mut builder = builder(&ask)?;
        trust(&mut builder, config.chain)?;
        if let Some(chain) = config.client_chain {
            prove(&mut builder, chain)?;
            (builder.set_client_auth_type(ClientAuthType::Required))
                .map_err(setup("mutual TLS"))?;
        }
        if config.resumption != Resumption::Full || config.tickets > 0 {
            builder
                .enable_session_tickets(true)
                .and_then(|builder| builder.set_session_ticket_callback(KeepTicket))
                .map_err(setup("tickets"))?;
        }
        Ok(Self {
            config: builder.build().map_err(setup("the configuration"))?,
            server_name: config.chain.server_name().to_owned(),
        })
    }
}

impl ClientSide for S2nClient {
    fn connect(&self, session: Option<&Session>) -> Result<Box<dyn Connection>, TlsError> {
        let mut connection = S2nConnection::new(Mode::Client, &self.config).map_err(failure)?;
        let library = &mut connection.library;
        library
            .set_server_name(&self.server_name)
            .map_err(failure)?;
        if let Some(session) = session {
            let SessionBytes(bytes) = session.get().ok_or(TlsError::NoSession)?;
            library.set_session_ticket(bytes).map_err(failure)?;
        }
        Ok(Box::new(connection))
    }
}

/// A session as s2n-tls writes it.
struct SessionBytes(Vec<u8>);

struct KeepTicket;

impl SessionTicketCallback for KeepTicket {
    fn on_session_ticket(&self, _: &mut Library, ticket: &SessionTicket) {
        if let Ok(length) = ticket.len() {
            let mut bytes = vec![0; length];
            if ticket.data(&mut bytes).is_ok() {
                io::keep_session(bytes);
            }
        }
    }
}

impl S2nServer {
    pub(crate) fn new(config: &TlsConfig<'_>) -> Result<Self, TlsError> {
        let ask = Ask::server(config);
        check(&ask)?;
        let mut key = [0; 32];
        rand_bytes(&mut key).map_err(openssl("the tickets' key"))?;
        // A key encrypts tickets in the first span of its life, and only decrypts in the second.
        // One of 1970 is in its first or in its second, for all that matters.
        const ALWAYS: Duration = Duration::from_secs(200 * 365 * 86_400);
        const NEVER: Duration = Duration::from_secs(1);
        // To s2n-tls, 0 is now.
        let introduced = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
        let with_tickets = |encrypts: Duration| {
            let mut builder = builder(&ask)?;
            prove(&mut builder, config.chain)?;
            if let Some(chain) = config.client_chain {
                trust(&mut builder, chain)?;
                (builder.set_client_auth_type(ClientAuthType::Required))
                    .map_err(setup("mutual TLS"))?;
                (builder.set_verify_host_callback(AnyName)).map_err(setup("mutual TLS"))?;
            }
            let mut set_tickets = || {
                builder.set_ticket_key_encrypt_decrypt_lifetime(encrypts)?;
                builder.set_ticket_key_decrypt_lifetime(ALWAYS)?;
                builder.add_session_ticket_key(b"lastbyte", &key, introduced)?;
                Ok(())
            };
            set_tickets().map_err(setup("tickets"))?;
            builder.build().map_err(setup("the configuration"))
        };
        Ok(Self {
            sending: with_tickets(ALWAYS)?,
            taking: with_tickets(NEVER)?,
        })
    }
}

/// A client is of no host that could be named.
struct AnyName;

impl VerifyHostNameCallback for AnyName {
    fn verify_host_name(&self, _: &str) -> bool {
        true
    }
}

impl ServerSide for S2nServer {
    fn accept(&self, tickets: u8) -> Result<Box<dyn Connection>, TlsError> {
        let config = if tickets > 0 {
            &self.sending
        } else {
            &self.taking
        };
        Ok(Box::new(
            S2nConnection::new(Mode::Server, config).map_err(failure)?,
        ))
    }

    fn max_tickets(&self) -> u8 {
        MAX_TICKETS
    }
}

fn builder(ask: &Ask) -> Result<Builder, TlsError> {
    let version = Policy::of(ask)?.version;
    let mut builder = Builder::new();
    let mut set = || {
        builder.set_security_policy(&security::Policy::from_version(version)?)?;
        builder.with_system_certs(false)?;
        // A delay before an alert would be no more than a delay: nobody measures the time here.
        builder.set_max_blinding_delay(0)?;
        io::log_secrets(&mut builder)
    };
    set().map_err(setup(version))?;
    Ok(builder)
}

/// Sends `chain` and signs with its key.
fn prove(builder: &mut Builder, chain: &Chain) -> Result<(), TlsError> {
    let mut certificates = Vec::new();
    for certificate in chain.certificates() {
        certificates.extend(pem(certificate)?);
    }
    let key = lastbyte_pki::private_key_pem(chain.key());
    let key = key.map_err(openssl("the private key"))?;
    (builder.load_pem(&certificates, &key)).map_err(setup("the chain and its key"))?;
    Ok(())
}

/// Takes from the peer what ends in the root of `chain`.
fn trust(builder: &mut Builder, chain: &Chain) -> Result<(), TlsError> {
    (builder.trust_pem(&pem(chain.root())?)).map_err(setup("the root certificate"))?;
    Ok(())
}

fn pem(certificate: &X509) -> Result<Vec<u8>, TlsError> {
    certificate.to_pem().map_err(openssl("a certificate"))
}

struct S2nConnection {
    library: Library,
    memory: Memory,
    progress: Progress,
}

impl S2nConnection {
    fn new(mode: Mode, config: &Config) -> Result<Self, Error> {
        let mut library = Library::new(mode);
        library.set_config(config.clone())?;
        library.set_blinding(Blinding::SelfService)?;
        io::connect(&mut library)?;
        Ok(Self {
            library,
            memory: Memory::default(),
            progress: Progress::Handshaking,
        })
    }

    /// What s2n-tls says of a call; `None` when it needs more from the peer.
    fn call<T>(
        &mut self,
        call: impl FnOnce(&mut Library) -> Poll<Result<T, Error>>,
    ) -> Result<Option<T>, TlsError> {
        let Self {
            library, memory, ..
        } = self;
        memory.with(|| match call(library) {
            Poll::Ready(Ok(value)) => Ok(Some(value)),
            Poll::Pending => Ok(None),
            Poll::Ready(Err(error)) => {
                // It sends its alert only now.
                let _ = library.poll_shutdown_send();
                match library.alert() {
                    Some(alert) if error.kind() == ErrorType::Alert => {
                        Err(TlsError::Refused(Alert(alert)))
                    }
                    _ => Err(failure(error)),
                }
            }
        })
    }
}

impl Connection for S2nConnection {
    fn receive(&mut self, bytes: &[u8]) {
        self.memory.incoming.extend(bytes);
    }

    fn advance(&mut self) -> Result<Progress, TlsError> {
        if self.progress == Progress::Handshaking
            && (self.call(|library| library.poll_negotiate().map_ok(drop))?).is_some()
        {
            // Some policies know TLS 1.2.
            if self.library.actual_protocol_version().map_err(failure)? != Version::TLS13 {
                return Err(TlsError::Protocol {
                    reason: "the peer chose another version than TLS 1.3".to_owned(),
                });
            }
            self.progress = Progress::Established;
        }
        Ok(self.progress)
    }

    fn transmit(&mut self, out: &mut Vec<u8>) {
        self.memory.outgoing.transmit(out);
    }

    fn transmit_write(&mut self, out: &mut Vec<u8>) -> bool {
        self.memory.outgoing.transmit_write(out)
    }

    fn write_record(&mut self, plaintext: &[u8]) -> Result<(), TlsError> {
        if !(1..=MAX_PLAINTEXT).contains(&plaintext.len()) {
            return Err(TlsError::RecordLength(plaintext.len()));
        }
        if self.progress == Progress::Handshaking {
            return Err(TlsError::NotEstablished);
        }
        self.call(|library| library.poll_send(plaintext)).map(drop)
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, TlsError> {
        if self.progress == Progress::Handshaking {
            return Ok(0);
        }
        match self.call(|library| library.poll_recv(buffer))? {
            Some(0) if !buffer.is_empty() => Err(TlsError::Closed),
            Some(length) => Ok(length),
            None => Ok(0),
        }
    }

    fn session(&mut self) -> Option<Session> {
        let bytes = self.memory.session.clone()?;
        Some(Session::new(SessionBytes(bytes)))
    }

    fn key_log(&self) -> KeyLog {
        self.memory.key_log.clone()
    }
}

fn failure(error: Error) -> TlsError {
    match error.kind() {
        ErrorType::ConnectionClosed => TlsError::Closed,
        _ if error.name().starts_with("S2N_ERR_CERT_") => TlsError::Certificate {
            reason: error.message().to_owned(),
        },
        _ => TlsError::Protocol {
            reason: error.message().to_owned(),
        },
    }
}

fn setup(what: &str) -> impl FnOnce(Error) -> TlsError {
    rejected(what, |error: &Error| error.message().to_owned())
}

fn openssl(what: &str) -> impl FnOnce(ErrorStack) -> TlsError {
    rejected(what, lastbyte_providers::reason)
}

fn rejected<E>(what: &str, reason: impl FnOnce(&E) -> String) -> impl FnOnce(E) -> TlsError {
    let what = what.to_owned();
    move |error| TlsError::Setup {
        stack: STACK.name(),
        what,
        reason: reason(&error),
    }
}
