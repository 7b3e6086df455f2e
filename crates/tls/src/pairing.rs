//! A client's side of one implementation with a server's side of another.

use std::sync::{Mutex, PoisonError};

use crate::openssl::{OpenSslClient, OpenSslServer};
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
        absent => Err(not_built_in(absent)),
    }
}

fn server(config: &TlsConfig<'_>) -> Result<Box<dyn ServerSide>, TlsError> {
    match config.server {
        StackName::OpenSsl => Ok(Box::new(OpenSslServer::new(config)?)),
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

    fn kept_session(&self) -> Result<Session, TlsError> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let mut current = match kept.take() {
            Some(current) if current.uses < USES => current,
            _ => Kept {
                session: self.session()?,
                uses: 0,
            },
        };
        current.uses += 1;
        let session = current.session.clone();
        *kept = Some(current);
        Ok(session)
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
            Resumption::Ticket | Resumption::EarlyData => {
                self.client.connect(Some(&self.kept_session()?))
            }
        }
    }

    fn resuming_client(&self, session: &Session) -> Result<Box<dyn Connection>, TlsError> {
        self.client.connect(Some(session))
    }

    fn server(&self) -> Result<Box<dyn Connection>, TlsError> {
        self.server.accept(self.tickets)
    }

    fn session(&self) -> Result<Session, TlsError> {
        let mut client =
            handshake_between(self.client.connect(None)?, self.server.accept(1)?)?.client;
        // Tickets are read with application data, of which there is none.
        client.read(&mut [0; 1])?;
        client.session().ok_or_else(|| TlsError::Protocol {
            reason: "the server sent no ticket".to_owned(),
        })
    }
}
