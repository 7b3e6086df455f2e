//! A client's side of one implementation with a server's side of another.

use std::sync::{Mutex, PoisonError};

use pqtlsad::validate::Offer;

use crate::quic::QuicTls;
use crate::stack::{ClientSide, Retry, ServerSide, Tickets};
use crate::stacks::implementation;
use crate::{Connection, Resumption, Session, Stack, TlsConfig, TlsError, handshake_between};

/// Sets up both sides, which any number of connections then share.
///
/// # Errors
/// [`TlsError::Unsupported`] when an implementation can't do what is asked, or is not built in, and
/// [`TlsError::Setup`] when it rejects the configuration.
pub fn stack(config: &TlsConfig<'_>) -> Result<Box<dyn Stack>, TlsError> {
    Ok(Box::new(Pairing::new(config)?))
}

pub(crate) struct Pairing {
    pub(crate) client: Box<dyn ClientSide>,
    pub(crate) server: Box<dyn ServerSide>,
    pub(crate) tickets: u8,
    pub(crate) resumption: Resumption,
    pub(crate) shared: Mutex<Option<SharedSession>>,
}

impl Pairing {
    pub(crate) fn new(config: &TlsConfig<'_>) -> Result<Pairing, TlsError> {
        Ok(Pairing {
            client: implementation(config.client)?.client(config)?,
            server: implementation(config.server)?.server(config)?,
            tickets: config.tickets,
            resumption: config.resumption,
            shared: Mutex::default(),
        })
    }

    fn tickets_of_session(&self) -> u8 {
        (self.client.tickets_per_session()).min(self.server.max_tickets())
    }

    /// A client of `connect`, which offers a session that others may have offered as well.
    fn sharing<T>(&self, connect: impl Fn(&Session) -> Result<T, TlsError>) -> Result<T, TlsError> {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shared) = shared.as_mut().filter(|shared| shared.uses < USES) {
            shared.uses += 1;
            match connect(&shared.session) {
                Err(TlsError::NoSession) => {}
                client => return client,
            }
        }
        let session = self.session()?;
        let client = connect(&session);
        *shared = Some(SharedSession { session, uses: 1 });
        client
    }
}

/// A session, and how many clients have offered it.
pub(crate) struct SharedSession {
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
                self.sharing(|session| self.client.connect(Some(session)))
            }
        }
    }

    fn resuming_client(&self, session: &Session) -> Result<Box<dyn Connection>, TlsError> {
        self.client.connect(Some(session))
    }

    fn offering_client(&self, offer: &Offer) -> Result<Box<dyn Connection>, TlsError> {
        self.client.connect_offering(offer)
    }

    fn retrying_client(&self, retry: &Retry) -> Result<Box<dyn Connection>, TlsError> {
        self.client.connect_again(retry)
    }

    fn server(&self) -> Result<Box<dyn Connection>, TlsError> {
        self.server.accept(self.tickets)
    }

    fn quic_client(&self, parameters: &[u8]) -> Result<Box<dyn QuicTls>, TlsError> {
        let connect = |session: Option<&Session>| self.client.connect_quic(session, parameters);
        match self.resumption {
            Resumption::Full | Resumption::EarlyData => connect(None),
            Resumption::Ticket => self.sharing(|session| connect(Some(session))),
        }
    }

    fn quic_resuming_client(
        &self,
        session: &Session,
        parameters: &[u8],
    ) -> Result<Box<dyn QuicTls>, TlsError> {
        self.client.connect_quic(Some(session), parameters)
    }

    fn quic_server(
        &self,
        tickets: Tickets,
        parameters: &[u8],
    ) -> Result<Box<dyn QuicTls>, TlsError> {
        let tickets = match tickets {
            Tickets::Configured => self.tickets,
            Tickets::OfSession => self.tickets_of_session(),
        };
        self.server.accept_quic(tickets, parameters)
    }

    fn session(&self) -> Result<Session, TlsError> {
        let server = self.server.accept(self.tickets_of_session())?;
        let mut client = handshake_between(self.client.connect(None)?, server)?.client;
        // Tickets are read with application data, of which there is none.
        client.read(&mut [0; 1])?;
        client.session().ok_or_else(|| TlsError::Protocol {
            reason: "the server sent no ticket".to_owned(),
        })
    }
}
