//! A client's side of one implementation with a server's side of another.

use std::sync::{Mutex, PoisonError};

use pqtlsad::validate::Offer;

use crate::ask::Ask;
use crate::openssl::{self, OpenSslClient, OpenSslServer};
#[cfg(feature = "rustls")]
use crate::rustls::{self, RustlsClient, RustlsServer};
#[cfg(feature = "s2n-tls")]
use crate::s2n::{self, S2nClient, S2nServer};
use crate::stack::{ClientSide, ServerSide};
use crate::{
    Connection, Resumption, Session, Stack, StackName, TlsConfig, TlsError, handshake_between,
};

/// Sets up both sides, which any number of connections then share.
///
/// # Errors
/// [`TlsError::Unsupported`] when an implementation can't do what is asked, or is not built in, and
/// [`TlsError::Setup`] when it rejects the configuration.
pub fn stack(config: &TlsConfig<'_>) -> Result<Box<dyn Stack>, TlsError> {
    Ok(Box::new(Pairing::new(config)?))
}

fn client(config: &TlsConfig<'_>) -> Result<Box<dyn ClientSide>, TlsError> {
    match config.client {
        StackName::OpenSsl => Ok(Box::new(OpenSslClient::new(config)?)),
        #[cfg(feature = "s2n-tls")]
        StackName::S2nTls => Ok(Box::new(S2nClient::new(config)?)),
        #[cfg(feature = "rustls")]
        StackName::Rustls => Ok(Box::new(RustlsClient::new(config)?)),
        #[allow(unreachable_patterns, reason = "all may be built in")]
        absent => Err(not_built_in(absent)),
    }
}

fn server(config: &TlsConfig<'_>) -> Result<Box<dyn ServerSide>, TlsError> {
    match config.server {
        StackName::OpenSsl => Ok(Box::new(OpenSslServer::new(config)?)),
        #[cfg(feature = "s2n-tls")]
        StackName::S2nTls => Ok(Box::new(S2nServer::new(config)?)),
        #[cfg(feature = "rustls")]
        StackName::Rustls => Ok(Box::new(RustlsServer::new(config)?)),
        #[allow(unreachable_patterns, reason = "all may be built in")]
        absent => Err(not_built_in(absent)),
    }
}

/// Whether one side of `stack` can do that.
pub(crate) fn check(stack: StackName, ask: &Ask) -> Result<(), TlsError> {
    match stack {
        StackName::OpenSsl => openssl::check(ask),
        #[cfg(feature = "s2n-tls")]
        StackName::S2nTls => s2n::check(ask),
        #[cfg(feature = "rustls")]
        StackName::Rustls => rustls::check(ask),
        #[allow(unreachable_patterns, reason = "all may be built in")]
        absent => Err(not_built_in(absent)),
    }
}

fn not_built_in(stack: StackName) -> TlsError {
    stack.cannot(
        "be used: it is not built in",
        format!("build lastbyte with --features {stack}"),
    )
}

pub(crate) struct Pairing {
    pub(crate) client: Box<dyn ClientSide>,
    pub(crate) server: Box<dyn ServerSide>,
    pub(crate) tickets: u8,
    pub(crate) resumption: Resumption,
    pub(crate) kept: Mutex<Option<Kept>>,
}

impl Pairing {
    pub(crate) fn new(config: &TlsConfig<'_>) -> Result<Pairing, TlsError> {
        Ok(Pairing {
            client: client(config)?,
            server: server(config)?,
            tickets: config.tickets,
            resumption: config.resumption,
            kept: Mutex::default(),
        })
    }

    /// A client that offers a session which others may have offered as well.
    fn connect_with_kept(&self) -> Result<Box<dyn Connection>, TlsError> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = kept.as_mut().filter(|kept| kept.uses < USES) {
            kept.uses += 1;
            match self.client.connect(Some(&kept.session)) {
                Err(TlsError::NoSession) => {}
                client => return client,
            }
        }
        let session = self.session()?;
        let client = self.client.connect(Some(&session));
        *kept = Some(Kept { session, uses: 1 });
        client
    }
}

/// A session, and how many clients have offered it.
pub(crate) struct Kept {
    session: Session,
    uses: u32,
}

/// Clients that offer one session. Tickets are good for two hours, which is longer than so many
/// connections of five minutes take, and nobody has to read a clock.
const USES: u32 = 16;

impl Stack for Pairing {
    fn client(&self) -> Result<Box<dyn Connection>, TlsError> {
        match self.resumption {
            Resumption::Full => self.client.connect(None),
            Resumption::Ticket | Resumption::EarlyData => self.connect_with_kept(),
        }
    }

    fn resuming_client(&self, session: &Session) -> Result<Box<dyn Connection>, TlsError> {
        self.client.connect(Some(session))
    }

    fn offering_client(&self, offer: &Offer) -> Result<Box<dyn Connection>, TlsError> {
        self.client.connect_offering(offer)
    }

    fn server(&self) -> Result<Box<dyn Connection>, TlsError> {
        self.server.accept(self.tickets)
    }

    fn session(&self) -> Result<Session, TlsError> {
        let tickets = (self.client.tickets_per_session()).min(self.server.max_tickets());
        let server = self.server.accept(tickets)?;
        let mut client = handshake_between(self.client.connect(None)?, server)?.client;
        // Tickets are read with application data, of which there is none.
        client.read(&mut [0; 1])?;
        client.session().ok_or_else(|| TlsError::Protocol {
            reason: "the server sent no ticket".to_owned(),
        })
    }
}
