//! rustls behind [`QuicTls`].

use std::collections::VecDeque;
use std::sync::Arc;

use ::rustls::pki_types::ServerName;
use ::rustls::quic::{ClientConnection, Connection, KeyChange, ServerConnection, Version};
use ::rustls::{ClientConfig, ServerConfig};
use lastbyte_link::Side;

use super::{Log, Tickets, failure};
use crate::protection::PacketSecret;
use crate::quic::{ALPN, Level, QuicOutput, QuicTls};
use crate::{Alert, KeyLog, Progress, Session, TlsError};

/// One side on a QUIC transport.
pub(super) struct RustlsQuic {
    connection: Connection,
    side: Side,
    incoming: Vec<u8>,
    outgoing: VecDeque<QuicOutput>,
    key_log: Arc<Log>,
    /// A client's.
    tickets: Arc<Tickets>,
}

impl RustlsQuic {
    /// `config` logs to `key_log`, and keeps `tickets`.
    pub(super) fn client(
        mut config: ClientConfig,
        name: ServerName<'static>,
        parameters: &[u8],
        key_log: Arc<Log>,
        tickets: Arc<Tickets>,
    ) -> Result<RustlsQuic, TlsError> {
        config.alpn_protocols = vec![ALPN.into()];
        let connection =
            ClientConnection::new(Arc::new(config), Version::V1, name, parameters.to_vec());
        Ok(RustlsQuic::new(
            connection.map_err(failure)?.into(),
            Side::Client,
            key_log,
            tickets,
        ))
    }

    /// `config` logs to `key_log`.
    pub(super) fn server(
        mut config: ServerConfig,
        parameters: &[u8],
        key_log: Arc<Log>,
    ) -> Result<RustlsQuic, TlsError> {
        config.alpn_protocols = vec![ALPN.into()];
        if config.max_early_data_size > 0 {
            // QUIC's own limits hold (RFC 9001, 4.6.1).
            config.max_early_data_size = u32::MAX;
        }
        let connection = ServerConnection::new(Arc::new(config), Version::V1, parameters.to_vec());
        Ok(RustlsQuic::new(
            connection.map_err(failure)?.into(),
            Side::Server,
            key_log,
            Arc::default(),
        ))
    }

    fn new(
        connection: Connection,
        side: Side,
        key_log: Arc<Log>,
        tickets: Arc<Tickets>,
    ) -> RustlsQuic {
        RustlsQuic {
            connection,
            side,
            incoming: Vec::new(),
            outgoing: VecDeque::new(),
            key_log,
            tickets,
        }
    }

    /// Takes what rustls has to send, with the level that each part is followed by.
    fn flush(&mut self) {
        loop {
            let mut crypto = Vec::new();
            let change = self.connection.write_hs(&mut crypto);
            let is_done = change.is_none() && crypto.is_empty();
            if !crypto.is_empty() {
                self.outgoing.push_back(QuicOutput::Crypto(crypto));
            }
            let level = match change {
                Some(KeyChange::Handshake { .. }) => Some(Level::Handshake),
                Some(KeyChange::OneRtt { .. }) => Some(Level::Application),
                None => None,
            };
            // rustls has keys ready, but each transport of ours makes its own of the secret.
            let secret = level.and_then(|level| Some((level, self.secret(level, self.side)?)));
            self.outgoing
                .extend(secret.map(|(level, secret)| QuicOutput::Level(level, secret)));
            if is_done {
                return;
            }
        }
    }

    /// The secret of what a side sends at a level.
    fn secret(&self, level: Level, sender: Side) -> Option<PacketSecret> {
        let label = match (level, sender) {
            (Level::Handshake, Side::Client) => "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
            (Level::Handshake, Side::Server) => "SERVER_HANDSHAKE_TRAFFIC_SECRET",
            (Level::Application, Side::Client) => "CLIENT_TRAFFIC_SECRET_0",
            (Level::Application, Side::Server) => "SERVER_TRAFFIC_SECRET_0",
        };
        self.secret_of(label)
    }

    /// A secret by its name in logs (RFC 9850, 2.1).
    fn secret_of(&self, label: &str) -> Option<PacketSecret> {
        Some(PacketSecret {
            cipher_suite: self.connection.negotiated_cipher_suite()?.suite().into(),
            secret: self.key_log.secret(label)?,
        })
    }
}

impl QuicTls for RustlsQuic {
    fn receive(&mut self, crypto: &[u8]) {
        self.incoming.extend_from_slice(crypto);
    }

    fn advance(&mut self) -> Result<Progress, TlsError> {
        let incoming = std::mem::take(&mut self.incoming);
        let read = match incoming.as_slice() {
            [] => Ok(()),
            crypto => self.connection.read_hs(crypto),
        };
        self.flush();
        read.map_err(failure)?;
        Ok(if self.connection.is_handshaking() {
            Progress::Handshaking
        } else {
            Progress::Established
        })
    }

    fn next(&mut self) -> Option<QuicOutput> {
        self.outgoing.pop_front()
    }

    fn opening_secret(&self, level: Level) -> Option<PacketSecret> {
        self.secret(level, self.side.other())
    }

    fn early_secret(&self) -> Option<PacketSecret> {
        // A server logs it, too, where it does not take the data.
        self.connection.zero_rtt_keys()?;
        self.secret_of("CLIENT_EARLY_TRAFFIC_SECRET")
    }

    fn is_early_data_accepted(&self) -> bool {
        match &self.connection {
            Connection::Client(client) => client.is_early_data_accepted(),
            Connection::Server(_) => false,
        }
    }

    fn session(&self) -> Option<Session> {
        self.tickets.session()
    }

    fn peer_parameters(&self) -> Option<Vec<u8>> {
        let parameters = self.connection.quic_transport_parameters();
        parameters.map(<[u8]>::to_vec)
    }

    fn alert(&self) -> Option<Alert> {
        self.connection.alert().map(|alert| Alert(alert.into()))
    }

    fn key_log(&self) -> KeyLog {
        self.key_log.key_log()
    }
}
