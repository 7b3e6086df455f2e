//! What every stack offers: connections that own no socket and read no clock.

use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use lastbyte_mtc::TrustAnchorId;
use pqtlsad::client::Fallback;
use pqtlsad::validate::Offer;

use crate::TlsError;
use crate::quic::QuicTls;

/// Both sides of connections, configured.
pub trait Stack: Send + Sync {
    /// A client that has sent nothing yet. If it is to resume a session, it has got one beforehand,
    /// in memory.
    fn client(&self) -> Result<Box<dyn Connection>, TlsError>;

    /// A client that has sent nothing yet, and offers to resume this `session`. An implementation
    /// that offers a ticket once gives [`TlsError::NoSession`] when there are no more.
    fn resuming_client(&self, session: &Session) -> Result<Box<dyn Connection>, TlsError> {
        let _ = session;
        Err(TlsError::NoSession)
    }

    /// A client that has sent nothing yet, and says in its ClientHello that it has what DNS
    /// delivered.
    ///
    /// # Errors
    /// [`TlsError::NoOffers`] unless [`Delivery::PqtlsAd`](crate::Delivery::PqtlsAd) was asked for.
    fn offering_client(&self, offer: &Offer) -> Result<Box<dyn Connection>, TlsError> {
        let _ = offer;
        Err(TlsError::NoOffers)
    }

    /// A client that has sent nothing yet, on a new connection after one that has failed, which said what to
    /// [`retry`](Connection::retry).
    ///
    /// # Errors
    /// [`TlsError::NoRetry`] unless the [`Delivery`](crate::Delivery) is one whose first connection may fail.
    fn retrying_client(&self, retry: &Retry) -> Result<Box<dyn Connection>, TlsError> {
        let _ = retry;
        Err(TlsError::NoRetry)
    }

    /// A server that waits for a ClientHello.
    fn server(&self) -> Result<Box<dyn Connection>, TlsError>;

    /// The TLS of a QUIC client with these transport parameters (RFC 9000, 18), which resumes a session where
    /// [`client`](Stack::client) does. Where that would send early data, it begins in full: of which connection the
    /// session is, [`quic_resuming_client`](Stack::quic_resuming_client) has to be told.
    ///
    /// # Errors
    /// [`TlsError::NoQuic`] of an implementation that has none without records.
    fn quic_client(&self, parameters: &[u8]) -> Result<Box<dyn QuicTls>, TlsError> {
        let _ = parameters;
        Err(TlsError::NoQuic)
    }

    /// That of a client that offers to resume the `session` of another [`QuicTls`], and may send early data if that is
    /// asked for and the session allows it.
    ///
    /// # Errors
    /// As [`quic_client`](Stack::quic_client).
    fn quic_resuming_client(
        &self,
        session: &Session,
        parameters: &[u8],
    ) -> Result<Box<dyn QuicTls>, TlsError> {
        let _ = (session, parameters);
        Err(TlsError::NoQuic)
    }

    /// That of a server, likewise.
    ///
    /// # Errors
    /// As [`quic_client`](Stack::quic_client).
    fn quic_server(
        &self,
        tickets: Tickets,
        parameters: &[u8],
    ) -> Result<Box<dyn QuicTls>, TlsError> {
        let _ = (tickets, parameters);
        Err(TlsError::NoQuic)
    }

    /// A session for [`resuming_client`](Stack::resuming_client), from a full handshake in memory
    /// after which the server sent a ticket.
    fn session(&self) -> Result<Session, TlsError> {
        Err(TlsError::NoSession)
    }
}

/// How many session tickets a server sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tickets {
    /// As many as it is configured for.
    Configured,
    /// As many as make a session that can be resumed.
    OfSession,
}

/// The client's side of one TLS implementation, configured.
pub(crate) trait ClientSide: Send + Sync {
    /// A client, which offers to resume the session. [`TlsError::NoSession`] says that it can't be
    /// offered any more.
    fn connect(&self, session: Option<&Session>) -> Result<Box<dyn Connection>, TlsError>;

    /// As [`Stack::offering_client`].
    fn connect_offering(&self, offer: &Offer) -> Result<Box<dyn Connection>, TlsError> {
        let _ = offer;
        Err(TlsError::NoOffers)
    }

    /// As [`Stack::retrying_client`].
    fn connect_again(&self, retry: &Retry) -> Result<Box<dyn Connection>, TlsError> {
        let _ = retry;
        Err(TlsError::NoRetry)
    }

    /// As [`Stack::quic_client`]; offers to resume the session.
    fn connect_quic(
        &self,
        session: Option<&Session>,
        parameters: &[u8],
    ) -> Result<Box<dyn QuicTls>, TlsError> {
        let _ = (session, parameters);
        Err(TlsError::NoQuic)
    }

    /// Tickets that make a session which can be offered again and again.
    fn tickets_per_session(&self) -> u8 {
        1
    }
}

/// The server's side of one TLS implementation, configured.
pub(crate) trait ServerSide: Send + Sync {
    /// A server that sends this many tickets after a handshake.
    fn accept(&self, tickets: u8) -> Result<Box<dyn Connection>, TlsError>;

    /// As [`Stack::quic_server`].
    fn accept_quic(&self, tickets: u8, parameters: &[u8]) -> Result<Box<dyn QuicTls>, TlsError> {
        let _ = (tickets, parameters);
        Err(TlsError::NoQuic)
    }

    /// The most that it can send.
    fn max_tickets(&self) -> u8 {
        u8::MAX
    }
}

/// What a client whose handshake has failed tries on a new connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Retry {
    /// The same without saying that it has intermediates (draft-kampanakis-tls-scas-latest-03, 3.1).
    Whole,
    /// Naming this one of the anchors that the server has a path for
    /// (draft-ietf-tls-trust-anchor-ids-06).
    Anchor(TrustAnchorId),
}

/// What a client keeps of a connection in order to resume it, as its implementation keeps it.
#[derive(Clone)]
pub struct Session(Arc<dyn Any + Send + Sync>);

impl Session {
    pub(crate) fn new(session: impl Any + Send + Sync) -> Session {
        Session(Arc::new(session))
    }

    /// What was kept, if it is of that type.
    pub(crate) fn get<T: Any>(&self) -> Option<&T> {
        self.0.downcast_ref()
    }
}

/// One side of one connection. It owns no socket and reads no clock.
///
/// After any error the connection is of no more use, except that
/// [`transmit`](Connection::transmit) may still give an alert for the peer.
pub trait Connection: Send {
    /// Takes bytes that the peer sent; nothing is done with them yet.
    fn receive(&mut self, bytes: &[u8]);

    /// Carries the handshake as far as it goes with what was received.
    ///
    /// When a client becomes [`Progress::Established`], its last flight waits
    /// to be transmitted. Once established, this does nothing.
    fn advance(&mut self) -> Result<Progress, TlsError>;

    /// Moves the bytes that are to be sent to the end of `out`.
    fn transmit(&mut self, out: &mut Vec<u8>);

    /// As [`transmit`](Connection::transmit), but only what the implementation gave to its socket
    /// in one call, the oldest first. False when nothing is left.
    fn transmit_write(&mut self, out: &mut Vec<u8>) -> bool {
        let before = out.len();
        self.transmit(out);
        out.len() > before
    }

    /// Encrypts `plaintext`, 1 to [`MAX_PLAINTEXT`](crate::MAX_PLAINTEXT) bytes, as one record for
    /// [`transmit`](Connection::transmit) to take.
    ///
    /// A server that accepted early data can answer before it is established.
    fn write_record(&mut self, plaintext: &[u8]) -> Result<(), TlsError>;

    /// Decrypts application data into `buffer` and returns its length in bytes:
    /// of one record at most, 0 when no whole record is there. Early data comes out of a server
    /// that is not established yet.
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, TlsError>;

    /// Encrypts `plaintext` as early data (0-RTT), before the client's first
    /// [`advance`](Connection::advance).
    fn write_early_data(&mut self, plaintext: &[u8]) -> Result<(), TlsError> {
        let _ = plaintext;
        Err(TlsError::NoEarlyData)
    }

    /// Whether the server accepted this side's early data. Known once established.
    fn is_early_data_accepted(&self) -> bool {
        false
    }

    /// The latest session that can be resumed, when a client has got a ticket.
    fn session(&mut self) -> Option<Session> {
        None
    }

    /// What became of the offer of an [`offering_client`](Stack::offering_client), once
    /// established.
    fn delivery(&self) -> Option<Result<(), Fallback>> {
        None
    }

    /// What a client whose handshake has failed tries next, on a new connection, if there is
    /// something that it has not tried.
    fn retry(&self) -> Option<Retry> {
        None
    }

    /// The secrets so far.
    fn key_log(&self) -> KeyLog;
}

/// How far a handshake is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Nothing more can be done before the peer sends more.
    Handshaking,
    /// Application data can be written and read.
    Established,
}

/// What a stack has written, and where each of its writes ends.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    bytes: Vec<u8>,
    /// The lengths of the writes.
    writes: VecDeque<usize>,
}

impl Outgoing {
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.bytes.extend_from_slice(bytes);
            self.writes.push_back(bytes.len());
        }
    }

    /// As [`Connection::transmit_write`].
    pub(crate) fn transmit_write(&mut self, out: &mut Vec<u8>) -> bool {
        let Some(length) = self.writes.pop_front() else {
            return false;
        };
        out.extend(self.bytes.drain(..length));
        true
    }

    /// As [`Connection::transmit`].
    pub(crate) fn transmit(&mut self, out: &mut Vec<u8>) {
        self.writes.clear();
        out.append(&mut self.bytes);
    }
}

/// The secrets of one connection as an `SSLKEYLOGFILE` holds them (RFC 9850).
#[derive(Clone, Default, PartialEq, Eq)]
pub struct KeyLog(String);

impl KeyLog {
    /// Adds a line, without its line break: a label, the ClientHello's random
    /// and the secret, the last two in hexadecimal.
    pub fn push_line(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }

    /// All lines, as Wireshark reads them.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Adds the lines of the other end of the connection that this one does not have.
    pub fn complete(&mut self, other: &KeyLog) {
        let lines: Vec<&str> = self.0.lines().collect();
        let missing = other.0.lines().filter(|line| !lines.contains(line));
        let missing: Vec<&str> = missing.collect();
        missing.into_iter().for_each(|line| self.push_line(line));
    }

    /// The lines of the connection whose ClientHello has this random.
    #[must_use]
    pub fn of_client_random(&self, random: &[u8]) -> KeyLog {
        let random = hex::encode(random);
        let lines = self.0.lines();
        let own = lines.filter(|line| line.split(' ').nth(1) == Some(&random));
        let mut keys = KeyLog::default();
        own.for_each(|line| keys.push_line(line));
        keys
    }

    pub(crate) fn secret(&self, label: &str) -> Option<Vec<u8>> {
        self.0.lines().find_map(|line| {
            let mut words = line.split(' ');
            (words.next() == Some(label)).then_some(())?;
            hex::decode(words.nth(1)?).ok()
        })
    }
}

impl fmt::Debug for KeyLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let labels = self.0.lines().filter_map(|line| line.split(' ').next());
        f.debug_list().entries(labels).finish()
    }
}
