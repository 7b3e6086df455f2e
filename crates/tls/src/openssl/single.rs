//! A client of one connection that somebody else has configured.

use std::sync::{Mutex, PoisonError};

use openssl::ssl::Ssl;

use super::quic::{EarlyPackets, OpenSslQuic};
use super::{EarlyData, OpenSslConnection, STACK, protocol};
use crate::error::cannot;
use crate::quic::QuicTls;
use crate::{Connection, Stack, TlsError};

/// A [`Stack`] of one client and no server: of a connection to a server that is not the laboratory's, with whatever its context
/// trusts and offers.
pub struct SingleClient(Mutex<Option<Ssl>>);

impl SingleClient {
    /// Of what has not begun. Its secrets are kept where its context has [`key_log::install`](crate::key_log::install).
    pub fn new(mut ssl: Ssl) -> SingleClient {
        ssl.set_connect_state();
        SingleClient(Mutex::new(Some(ssl)))
    }

    fn take(&self) -> Result<Ssl, TlsError> {
        let taken = (self.0.lock())
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        taken.ok_or_else(|| cannot(STACK, "begin the same connection twice", "make another one"))
    }
}

impl Stack for SingleClient {
    fn client(&self) -> Result<Box<dyn Connection>, TlsError> {
        let connection = OpenSslConnection::new(self.take()?, EarlyData::None, None);
        Ok(Box::new(connection.map_err(protocol)?))
    }

    fn server(&self) -> Result<Box<dyn Connection>, TlsError> {
        Err(cannot(STACK, "be a server as a client", "make a stack"))
    }

    fn quic_client(&self, parameters: &[u8]) -> Result<Box<dyn QuicTls>, TlsError> {
        let connection = OpenSslQuic::new(self.take()?, parameters, EarlyPackets::None);
        Ok(Box::new(connection.map_err(protocol)?))
    }
}
