//! A stack's TLS as quinn wants it ([`Session`]).

use std::any::Any;
use std::io::Cursor;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::BytesMut;
use lastbyte_tls::{
    Alert, HeaderProtection, KeyLog, Level, PacketProtection, PacketSecret, Progress, QUIC_V1,
    QuicOutput, QuicTls, Session as TlsTicket, Stack, TAG_BYTES, Tickets, TlsError, retry_tag,
};
use quinn_proto::crypto::{
    self, CryptoError, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, Session,
    UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError, TransportErrorCode};

/// The TLS of an end: quinn drives it, and the end asks it what became of that.
#[derive(Clone)]
pub(crate) struct Tls(Arc<Inner>);

struct Inner {
    stack: Arc<dyn Stack>,
    /// What a client resumes, where its stack does not decide that.
    resumes: Option<TlsTicket>,
    /// What a server sends.
    tickets: Tickets,
    state: Mutex<State>,
}

/// Of the end's one connection.
#[derive(Default)]
struct State {
    connection: Option<Box<dyn QuicTls>>,
    error: Option<TlsError>,
}

impl Tls {
    pub(crate) fn client(stack: Arc<dyn Stack>, resumes: Option<TlsTicket>) -> Tls {
        Tls::new(stack, resumes, Tickets::Configured)
    }

    pub(crate) fn server(stack: Arc<dyn Stack>, tickets: Tickets) -> Tls {
        Tls::new(stack, None, tickets)
    }

    fn new(stack: Arc<dyn Stack>, resumes: Option<TlsTicket>, tickets: Tickets) -> Tls {
        Tls(Arc::new(Inner {
            stack,
            resumes,
            tickets,
            state: Mutex::default(),
        }))
    }

    /// The latest session that its client can resume.
    pub(crate) fn ticket(&self) -> Option<TlsTicket> {
        self.with(|state| state.connection.as_ref()?.session())
    }

    /// Why it could not go on.
    pub(crate) fn error(&self) -> Option<TlsError> {
        self.with(|state| state.error.clone())
    }

    /// The secrets so far.
    pub(crate) fn key_log(&self) -> KeyLog {
        let keys = self.with(|state| Some(state.connection.as_ref()?.key_log()));
        keys.unwrap_or_default()
    }

    fn with<R>(&self, f: impl FnOnce(&mut State) -> R) -> R {
        f(&mut (self.0.state.lock()).unwrap_or_else(PoisonError::into_inner))
    }

    /// Begins the connection.
    fn session(&self, side: Side, parameters: &TransportParameters) -> Box<dyn Session> {
        let mut encoded = Vec::new();
        parameters.write(&mut encoded);
        let connection = match side {
            Side::Client => match &self.0.resumes {
                Some(session) => self.0.stack.quic_resuming_client(session, &encoded),
                None => self.0.stack.quic_client(&encoded),
            },
            Side::Server => self.0.stack.quic_server(self.0.tickets, &encoded),
        };
        self.with(|state| match connection {
            Ok(connection) => state.connection = Some(connection),
            Err(error) => state.error = Some(error),
        });
        Box::new(TlsSession {
            tls: self.clone(),
            side,
            progress: Progress::Handshaking,
            has_announced: false,
            application: None,
            is_begun: side == Side::Server,
        })
    }

    /// Goes as far as it gets.
    fn advance(&self, crypto: &[u8]) -> Result<Progress, TransportError> {
        self.with(|state| {
            let failed = |error: &TlsError, alert: Option<Alert>| {
                // Where TLS has no word for it: internal_error.
                let alert = alert.unwrap_or(Alert(80));
                TransportError {
                    code: TransportErrorCode::crypto(alert.0),
                    frame: None,
                    reason: error.to_string(),
                }
            };
            if let Some(error) = &state.error {
                return Err(failed(error, None));
            }
            let Some(connection) = &mut state.connection else {
                return Ok(Progress::Handshaking);
            };
            connection.receive(crypto);
            connection.advance().map_err(|error| {
                let alert = connection.alert();
                failed(state.error.insert(error), alert)
            })
        })
    }
}

impl crypto::ClientConfig for Tls {
    fn start_session(
        self: Arc<Self>,
        _: u32,
        _: &str,
        parameters: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Ok(self.session(Side::Client, parameters))
    }
}

impl crypto::ServerConfig for Tls {
    fn initial_keys(
        &self,
        version: u32,
        connection_id: &ConnectionId,
    ) -> Result<Keys, UnsupportedVersion> {
        if version != QUIC_V1 {
            return Err(UnsupportedVersion);
        }
        Ok(initial_keys(connection_id, Side::Server))
    }

    fn retry_tag(&self, _: u32, original: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        retry_tag(original, packet).unwrap_or_default()
    }

    fn start_session(
        self: Arc<Self>,
        _: u32,
        parameters: &TransportParameters,
    ) -> Box<dyn Session> {
        self.session(Side::Server, parameters)
    }
}

struct TlsSession {
    tls: Tls,
    side: Side,
    progress: Progress,
    has_announced: bool,
    /// What 1-RTT packets are protected with, this side's and the peer's, and how often that was updated.
    application: Option<(PacketSecret, u32)>,
    /// Whether the client has made its ClientHello.
    is_begun: bool,
}

impl Session for TlsSession {
    fn initial_keys(&self, connection_id: &ConnectionId, side: Side) -> Keys {
        initial_keys(connection_id, side)
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        (self.progress == Progress::Established).then(|| Box::new(()) as Box<dyn Any>)
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        let secret = (self.tls).with(|state| state.connection.as_ref()?.early_secret())?;
        let header = Box::new(Header::now(secret.header()?));
        let packet: Box<dyn PacketKey> = match self.side {
            Side::Client => Box::new(Sealing(secret.sealing()?)),
            Side::Server => Box::new(Opening::now(secret.opening()?)),
        };
        Some((header, packet))
    }

    fn early_data_accepted(&self) -> Option<bool> {
        (self.tls).with(|state| Some(state.connection.as_ref()?.is_early_data_accepted()))
    }

    fn is_handshaking(&self) -> bool {
        self.progress == Progress::Handshaking
    }

    fn read_handshake(&mut self, crypto: &[u8]) -> Result<bool, TransportError> {
        self.progress = self.tls.advance(crypto)?;
        if let (Progress::Established, false) = (self.progress, self.has_announced) {
            self.has_announced = true;
            return Ok(true);
        }
        Ok(false)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let encoded = (self.tls).with(|state| state.connection.as_ref()?.peer_parameters());
        let Some(encoded) = encoded else {
            return Ok(None);
        };
        // Those of the peer, as this side reads them.
        let parameters = TransportParameters::read(self.side, &mut Cursor::new(encoded))?;
        Ok(Some(parameters))
    }

    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<Keys> {
        if !self.is_begun {
            self.is_begun = true;
            // What is wrong is said once something comes, as quinn asks for no error here.
            self.progress = self.tls.advance(&[]).ok()?;
        }
        loop {
            let next = (self.tls).with(|state| state.connection.as_mut()?.next());
            match next? {
                QuicOutput::Crypto(crypto) => out.extend(crypto),
                QuicOutput::Level(level, secret) => {
                    if level == Level::Application {
                        self.application = Some((secret.clone(), 0));
                    }
                    return keys(&secret, &PeerSecret::of(self.tls.clone(), level));
                }
            }
        }
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let (secret, updates) = self.application.as_mut()?;
        *secret = secret.updated()?;
        *updates += 1;
        let remote = PeerSecret {
            updates: *updates,
            ..PeerSecret::of(self.tls.clone(), Level::Application)
        };
        Some(KeyPair {
            local: Box::new(Sealing(secret.sealing()?)),
            remote: Box::new(Opening::later(remote)),
        })
    }

    fn is_valid_retry(&self, original: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        let Some((rest, tag)) = payload.split_last_chunk::<TAG_BYTES>() else {
            return false;
        };
        retry_tag(original, &[header, rest].concat()).as_ref() == Some(tag)
    }

    fn export_keying_material(
        &self,
        _: &mut [u8],
        _: &[u8],
        _: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        // Nobody here asks for any.
        Err(ExportKeyingMaterialError)
    }
}

/// The secret of the peer's packets of a level. A server has it after its own (RFC 9001, 5.7: it reads no 1-RTT packet
/// before the client's Finished), and quinn wants both at once.
struct PeerSecret {
    tls: Tls,
    level: Level,
    updates: u32,
}

impl PeerSecret {
    fn of(tls: Tls, level: Level) -> PeerSecret {
        PeerSecret {
            tls,
            level,
            updates: 0,
        }
    }

    fn get(&self) -> Option<PacketSecret> {
        let secret = self.tls.with(|state| {
            let connection = state.connection.as_ref()?;
            connection.opening_secret(self.level)
        });
        (0..self.updates).try_fold(secret?, |secret, _| secret.updated())
    }
}

fn keys(own: &PacketSecret, peer: &PeerSecret) -> Option<Keys> {
    let peer = || PeerSecret::of(peer.tls.clone(), peer.level);
    Some(Keys {
        header: KeyPair {
            local: Box::new(Header::now(own.header()?)),
            remote: Box::new(Header::later(peer())),
        },
        packet: KeyPair {
            local: Box::new(Sealing(own.sealing()?)),
            remote: Box::new(Opening::later(peer())),
        },
    })
}

fn initial_keys(connection_id: &ConnectionId, side: Side) -> Keys {
    let secrets = PacketSecret::initial(connection_id);
    let [client, server] = secrets.map_or([None, None], |secrets| secrets.map(Some));
    let (local, remote) = match side {
        Side::Client => (client, server),
        Side::Server => (server, client),
    };
    let header = |secret: &Option<PacketSecret>| -> Box<dyn HeaderKey> {
        Box::new(Header {
            key: OnceLock::from(secret.as_ref().and_then(PacketSecret::header)),
            later: None,
        })
    };
    Keys {
        header: KeyPair {
            local: header(&local),
            remote: header(&remote),
        },
        packet: KeyPair {
            local: match local.as_ref().and_then(PacketSecret::sealing) {
                Some(sealing) => Box::new(Sealing(sealing)),
                None => Box::new(Opening::never()),
            },
            remote: Box::new(Opening {
                key: OnceLock::from(remote.as_ref().and_then(PacketSecret::opening)),
                later: None,
            }),
        },
    }
}

/// Hides headers, or shows them once the peer's secret is there.
struct Header {
    key: OnceLock<Option<HeaderProtection>>,
    later: Option<PeerSecret>,
}

impl Header {
    fn now(key: HeaderProtection) -> Header {
        Header {
            key: OnceLock::from(Some(key)),
            later: None,
        }
    }

    fn later(secret: PeerSecret) -> Header {
        Header {
            key: OnceLock::new(),
            later: Some(secret),
        }
    }

    /// The mask of a packet whose number begins there.
    fn mask(&self, number_at: usize, packet: &[u8]) -> Option<[u8; 5]> {
        let key = match (self.key.get(), &self.later) {
            (Some(key), _) => key,
            (None, Some(later)) => {
                let key = later.get()?.header();
                self.key.get_or_init(|| key)
            }
            (None, None) => return None,
        };
        let sample = packet.get(number_at + 4..)?.first_chunk()?;
        key.as_ref()?.mask(*sample)
    }

    /// Hides or shows so many bytes of the number, by what the first byte says.
    fn combine(
        &self,
        number_at: usize,
        packet: &mut [u8],
        number_bytes: impl FnOnce(u8, u8) -> u8,
    ) {
        let Some([first_mask, rest @ ..]) = self.mask(number_at, packet) else {
            return;
        };
        let Some(first) = packet.first_mut() else {
            return;
        };
        // The four low bits of a long header, five of a short one (RFC 9001, 5.4.1).
        let bits = if *first & 0x80 == 0 { 0x1f } else { 0x0f };
        let before = *first;
        *first ^= first_mask & bits;
        let count = usize::from(number_bytes(before, *first) & 3) + 1;
        let number = packet.iter_mut().skip(number_at).take(count);
        for (byte, mask) in number.zip(rest) {
            *byte ^= mask;
        }
    }
}

impl HeaderKey for Header {
    fn decrypt(&self, number_at: usize, packet: &mut [u8]) {
        self.combine(number_at, packet, |_, shown| shown);
    }

    fn encrypt(&self, number_at: usize, packet: &mut [u8]) {
        self.combine(number_at, packet, |shown, _| shown);
    }

    fn sample_size(&self) -> usize {
        HeaderProtection::SAMPLE_BYTES
    }
}

struct Sealing(PacketProtection);

impl PacketKey for Sealing {
    fn encrypt(&self, number: u64, packet: &mut [u8], header_bytes: usize) {
        let Some(end) = packet.len().checked_sub(TAG_BYTES) else {
            return;
        };
        let (content, tag) = packet.split_at_mut(end);
        let Some((header, payload)) = content.split_at_mut_checked(header_bytes) else {
            return;
        };
        if let Some(own) = self.0.seal(number, header, payload) {
            tag.copy_from_slice(&own);
        }
    }

    fn decrypt(&self, _: u64, _: &[u8], _: &mut BytesMut) -> Result<(), CryptoError> {
        Err(CryptoError)
    }

    fn tag_len(&self) -> usize {
        TAG_BYTES
    }

    fn confidentiality_limit(&self) -> u64 {
        CONFIDENTIALITY_LIMIT
    }

    fn integrity_limit(&self) -> u64 {
        INTEGRITY_LIMIT
    }
}

/// Packets of one key (RFC 9001, 6.6), of AES-GCM, which has the lower one.
const CONFIDENTIALITY_LIMIT: u64 = 1 << 23;
/// Forged packets, of ChaCha20-Poly1305, which has the lower one.
const INTEGRITY_LIMIT: u64 = 1 << 36;

struct Opening {
    key: OnceLock<Option<PacketProtection>>,
    later: Option<PeerSecret>,
}

impl Opening {
    fn now(key: PacketProtection) -> Opening {
        Opening {
            key: OnceLock::from(Some(key)),
            later: None,
        }
    }

    fn later(secret: PeerSecret) -> Opening {
        Opening {
            key: OnceLock::new(),
            later: Some(secret),
        }
    }

    fn never() -> Opening {
        Opening {
            key: OnceLock::new(),
            later: None,
        }
    }

    fn key(&self) -> Option<&PacketProtection> {
        if let (None, Some(later)) = (self.key.get(), &self.later) {
            let key = later.get()?.opening();
            let _ = self.key.set(key);
        }
        self.key.get()?.as_ref()
    }
}

impl PacketKey for Opening {
    fn encrypt(&self, _: u64, _: &mut [u8], _: usize) {}

    fn decrypt(
        &self,
        number: u64,
        header: &[u8],
        payload: &mut BytesMut,
    ) -> Result<(), CryptoError> {
        let key = self.key().ok_or(CryptoError)?;
        let length = key.open(number, header, payload).ok_or(CryptoError)?;
        payload.truncate(length);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        TAG_BYTES
    }

    fn confidentiality_limit(&self) -> u64 {
        CONFIDENTIALITY_LIMIT
    }

    fn integrity_limit(&self) -> u64 {
        INTEGRITY_LIMIT
    }
}
