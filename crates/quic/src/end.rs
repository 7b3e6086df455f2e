//! One end of one connection.

use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use lastbyte_link::{EcnCodepoint, Seed, Time, visible};
use lastbyte_tls::{Alert, KeyLog, Session, Stack, Tickets, TlsError};
use quinn_proto::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};
use quinn_proto::{
    AckFrequencyConfig, ClientConfig, Connection, ConnectionError, ConnectionHandle, DatagramEvent,
    Dir, Endpoint, EndpointConfig, Event, MtuDiscoveryConfig, ReadError, ServerConfig, StreamId,
    TransportConfig, TransportErrorCode, ValidationTokenConfig, VarInt,
};

use crate::seeded::{self, ConnectionIds, Key, NoTime};
use crate::session::Tls;
use crate::tokens::{Store, Used};
use crate::watched::{Watching, WindowQuery};

/// How an end is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The UDP payload of its datagrams, in bytes: 1200 at least (RFC 9000, 14).
    pub datagram: u16,
    /// What becomes of that size.
    pub mtu_discovery: MtuDiscovery,
    /// The largest UDP payload that it takes, in bytes (`max_udp_payload_size`; RFC 9000, 18.2).
    pub receives: u16,
    /// The initial congestion window, in bytes.
    pub window: u64,
    /// What moves it.
    pub congestion: Congestion,
    /// The round-trip time before one is measured, of which the pacer and the first timeouts come (RFC 9002, 6.2.2).
    pub initial_rtt: Duration,
    /// How long it asks the other end to wait before it acknowledges, once the handshake is complete (ACK_FREQUENCY of
    /// draft-ietf-quic-ack-frequency); none has it ask for nothing.
    pub ack_delay: Option<Duration>,
    /// How long nothing may come before the connection is given up.
    pub idle_timeout: Duration,
    /// What its datagrams have to say about congestion.
    pub ecn: Ecn,
}

impl Settings {
    /// The smallest datagrams that QUIC may have, as quinn's are at first.
    pub const DATAGRAM: u16 = 1200;
    /// Before one is measured (RFC 9002, 6.2.2).
    pub const INITIAL_RTT: Duration = Duration::from_millis(333);

    /// What quinn's ends take where nothing is said: what an Ethernet frame holds.
    pub const RECEIVES: u16 = 1472;

    /// Datagrams of so many bytes, and a window of so many of them.
    pub fn with_window(datagrams: u32, datagram: u16) -> Settings {
        Settings {
            datagram,
            mtu_discovery: MtuDiscovery::Off,
            receives: Settings::RECEIVES,
            window: u64::from(datagrams) * u64::from(datagram),
            congestion: Congestion::Cubic,
            initial_rtt: Settings::INITIAL_RTT,
            ack_delay: None,
            idle_timeout: Duration::from_secs(30),
            ecn: Ecn::Off,
        }
    }

    fn transport(&self, asked: &WindowQuery) -> TransportConfig {
        let controller: Arc<dyn ControllerFactory + Send + Sync> = match self.congestion {
            Congestion::Cubic => {
                let mut cubic = CubicConfig::default();
                cubic.initial_window(self.window);
                Arc::new(cubic)
            }
            Congestion::NewReno => {
                let mut reno = NewRenoConfig::default();
                reno.initial_window(self.window);
                Arc::new(reno)
            }
            Congestion::Bbr => {
                let mut bbr = BbrConfig::default();
                bbr.initial_window(self.window);
                Arc::new(bbr)
            }
        };
        let ack_frequency = self.ack_delay.map(|delay| {
            let mut asked = AckFrequencyConfig::default();
            // What is out of order is acknowledged at once, as without this.
            let at_once = VarInt::from_u32(1);
            asked
                .max_ack_delay(Some(delay))
                .reordering_threshold(at_once);
            asked
        });
        let (discovery, least) = match self.mtu_discovery {
            // Datagrams that are larger would be others' than those that were asked for.
            MtuDiscovery::Off => (None, self.datagram),
            MtuDiscovery::On => (Some(MtuDiscoveryConfig::default()), Settings::DATAGRAM),
        };
        let mut transport = TransportConfig::default();
        transport
            .congestion_controller_factory(Arc::new(Watching {
                inner: controller,
                asked: asked.clone(),
            }))
            .mtu_discovery_config(discovery)
            .initial_mtu(self.datagram)
            .min_mtu(least)
            .initial_rtt(self.initial_rtt)
            .ack_frequency_config(ack_frequency)
            .max_idle_timeout(self.idle_timeout.try_into().ok())
            // One datagram at a time, and no bit that is drawn.
            .enable_segmentation_offload(false)
            .allow_spin(false);
        transport
    }
}

/// Whether an end uses Explicit Congestion Notification (RFC 9000, 13.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ecn {
    /// As behind a socket that neither sets nor shows the field: quinn marks its datagrams and hears of none.
    Off,
    /// As quinn has it: ECT(0) on each datagram, for as long as the other end reports that it arrives.
    On,
}

/// Whether an end searches for the largest datagrams that a path holds (RFC 8899), as quinn has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MtuDiscovery {
    /// Datagrams have one size.
    Off,
    /// They begin with [`Settings::datagram`], are padded to [`Settings::DATAGRAM`] where they must be padded, and have no more
    /// where larger ones are lost.
    On,
}

/// What moves the congestion window, as quinn has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Congestion {
    /// RFC 9438.
    Cubic,
    /// RFC 9002, 7.
    NewReno,
    /// draft-ietf-ccwg-bbr.
    Bbr,
}

/// One end of one connection. It owns no socket and reads no clock.
///
/// Whoever moves its datagrams calls [`receive`](End::receive) or [`on_time`](End::on_time), lets the application say
/// what it has to, and takes datagrams by [`transmit`](End::transmit) until there are none; all of this at one `now`,
/// which never goes back.
pub struct End {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    tls: Tls,
    /// Where datagrams come from.
    peer: SocketAddr,
    ecn: Ecn,
    retries: Retries,
    /// A client's tokens for the connection after this one.
    tokens: Arc<Store>,
    is_established: bool,
    ended: Option<Ended>,
    waits: Waits,
}

/// What an end has waited for.
#[derive(Default)]
struct Waits {
    asked: WindowQuery,
    /// Since when it has something that it may not send, and why.
    blocked: Option<(Time, Blocked)>,
    /// When the pacer's timer is due.
    paced_until: Option<Time>,
    /// Whether what it sends now is by a timer that acknowledgements were to come before.
    is_probing: bool,
    by_window: Duration,
    by_pacer: Duration,
    probes: u64,
}

#[derive(Clone, Copy)]
enum Blocked {
    ByWindow,
    ByPacer,
}

impl Waits {
    /// Counts what it has waited for until now.
    fn until(&mut self, now: Time) {
        if let Some((since, why)) = self.blocked.take() {
            let waited = now.since(since);
            match why {
                Blocked::ByWindow => self.by_window += waited,
                Blocked::ByPacer => self.by_pacer += waited,
            }
        }
    }
}

/// A request and its response: a stream of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request(StreamId);

/// Why a connection is over.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Ended {
    /// This end's TLS could not go on.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The peer's transport said why, or this one's.
    #[error("{0}")]
    Transport(String),
    /// Nothing came for too long.
    #[error("nothing came any more")]
    Idle,
}

/// An end can't begin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndError {
    /// TLS can't.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The transport can't.
    #[error("QUIC can't begin: {0}")]
    Transport(String),
}

/// What a client keeps of a connection for the next one to the same server.
#[derive(Clone, Default)]
pub struct Kept {
    session: Option<Session>,
    token: Option<Bytes>,
}

impl Kept {
    /// The session alone.
    #[must_use]
    pub fn session(self) -> Kept {
        Kept {
            token: None,
            ..self
        }
    }

    /// The token alone (RFC 9000, 8.1.3).
    #[must_use]
    pub fn token(self) -> Kept {
        Kept {
            session: None,
            ..self
        }
    }
}

/// Whether a server answers the Initial of a client whose address it does not know with a Retry packet (RFC 9000, 8.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retries {
    /// It begins the handshake.
    Never,
    /// It does.
    Always,
}

/// What an end has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Packets that it deemed lost.
    pub lost: u64,
    /// The smoothed round-trip time.
    pub rtt: Duration,
    /// The congestion window, in bytes.
    pub window: u64,
    /// Datagrams that it sent because acknowledgements had not come in time (RFC 9002, 6.2).
    pub probes: u64,
    /// How long it had something to send, and no room in its congestion window.
    pub blocked_by_window: Duration,
    /// How long it had something to send, and room, and its pacer held that back.
    pub blocked_by_pacer: Duration,
}

/// quinn's clock is the system's type, of which no time can be made but from another.
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

fn instant(time: Time) -> Instant {
    // Room for what quinn subtracts.
    *START + Duration::from_secs(3600) + Duration::from_nanos(time.0)
}

fn time(instant: Instant) -> Time {
    let since = instant.saturating_duration_since(*START + Duration::from_secs(3600));
    Time(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

/// Where the ends are: nothing is sent there.
const SERVER: ([u8; 4], u16) = ([10, 0, 0, 2], 443);
const CLIENT: ([u8; 4], u16) = ([10, 0, 0, 1], 50_000);

impl End {
    /// How long after a timer's end it is noticed. quinn's pacer waits for as long as a burst takes to fill its bucket,
    /// rounded down: who comes to the very nanosecond finds a byte less, and sends a datagram less. No kernel is so early.
    pub const TIMER: Duration = Duration::from_micros(1);

    /// A client that connects at `now`, with what it has kept of the connection before, if there was one. Its name for
    /// the server is its stack's. What is drawn of a seed is a client's own: a server with the same one has another part of it.
    ///
    /// # Errors
    /// When nothing can be sent at all.
    pub fn client(
        stack: Arc<dyn Stack>,
        settings: &Settings,
        kept: Kept,
        seed: u64,
        now: Time,
    ) -> Result<End, EndError> {
        let seed = Seed(seed).part("client").0;
        let tls = Tls::client(stack, kept.session);
        let tokens = Arc::new(Store::of(kept.token));
        let mut config = ClientConfig::new(Arc::new(tls.clone()));
        let asked = WindowQuery::default();
        config.transport_config(Arc::new(settings.transport(&asked)));
        config.token_store(tokens.clone());
        let first = ConnectionIds::of_seed(Seed(seed).part("first").0);
        config.initial_dst_cid_provider(Arc::new(move || first.next()));
        let mut end = End::new(SERVER.into(), tls, asked, seed, settings, None);
        end.tokens = tokens;
        let connected = end
            .endpoint
            .connect(instant(now), config, SERVER.into(), "localhost");
        let connected = connected.map_err(|error| EndError::Transport(error.to_string()))?;
        end.connection = Some(connected);
        match end.tls.error() {
            Some(error) => Err(error.into()),
            None => Ok(end),
        }
    }

    /// A server that waits for a connection.
    pub fn server(stack: Arc<dyn Stack>, settings: &Settings, retries: Retries, seed: u64) -> End {
        let tls = Tls::server(stack, Tickets::Configured);
        let mut end = End::listening(tls, settings, 0, Arc::default(), seed);
        end.retries = retries;
        end
    }

    /// One for the connection of which a client has something to [keep](End::kept): it sends a session's tickets and a token
    /// when its handshake is complete.
    pub fn issuing_server(stack: Arc<dyn Stack>, settings: &Settings, seed: u64) -> End {
        let tls = Tls::server(stack, Tickets::OfSession);
        End::listening(tls, settings, 1, Arc::default(), seed)
    }

    /// One that sends so many tokens, and knows those that were used.
    fn listening(tls: Tls, settings: &Settings, tokens: u32, used: Arc<Used>, seed: u64) -> End {
        let seed = Seed(seed).part("server").0;
        let mut config = ServerConfig::new(Arc::new(tls.clone()), Arc::new(Key));
        let asked = WindowQuery::default();
        config.transport_config(Arc::new(settings.transport(&asked)));
        config.time_source(Arc::new(NoTime));
        let mut validation = ValidationTokenConfig::default();
        validation.sent(tokens).log(used);
        config.validation_token_config(validation);
        End::new(
            CLIENT.into(),
            tls,
            asked,
            seed,
            settings,
            Some(Arc::new(config)),
        )
    }

    fn new(
        peer: SocketAddr,
        tls: Tls,
        asked: WindowQuery,
        seed: u64,
        settings: &Settings,
        server: Option<Arc<ServerConfig>>,
    ) -> End {
        // A client may have the seed of another connection's server: by their connection IDs, whoever reads both shall tell
        // them apart.
        let ids = match server {
            Some(_) => seed.rotate_left(u64::BITS / 2),
            None => seed,
        };
        let mut config = EndpointConfig::new(Arc::new(Key));
        config
            .rng_seed(Some(seeded::bytes(seed)))
            .cid_generator(move || Box::new(ConnectionIds::of_seed(ids)))
            // No version but the one, and no bit that is drawn.
            .grease_quic_bit(false);
        // Less than a datagram must have is refused, and stays as it is.
        let _in_range = config.max_udp_payload_size(settings.receives);
        End {
            endpoint: Endpoint::new(Arc::new(config), server, true, None),
            connection: None,
            tls,
            peer,
            ecn: settings.ecn,
            retries: Retries::Never,
            tokens: Arc::new(Store::of(None)),
            is_established: false,
            ended: None,
            waits: Waits {
                asked,
                ..Waits::default()
            },
        }
    }

    /// Takes a datagram. Gives one that answers it outside of any connection, if there is such.
    pub fn receive(&mut self, now: Time, ecn: EcnCodepoint, datagram: &[u8]) -> Option<Vec<u8>> {
        let ecn = match self.ecn {
            Ecn::Off => None,
            Ecn::On => quinn_proto::EcnCodepoint::from_bits(ecn.class()),
        };
        let peer = self.peer;
        let mut answer = Vec::new();
        let now = instant(now);
        // quinn's NewReno takes no acknowledgement of what was sent at the very instant of its making, which is the
        // whole first flight where time stands still: the connection began just before.
        let just_before = now - Duration::from_nanos(1);
        let first = self.connection.is_none();
        let at = if first { just_before } else { now };
        let datagram = BytesMut::from(datagram);
        let event = (self.endpoint).handle(at, peer, None, ecn, datagram, &mut answer);
        match (event?, &mut self.connection) {
            (DatagramEvent::ConnectionEvent(_, event), Some((_, connection))) => {
                connection.handle_event(event);
                self.settle();
                None
            }
            (DatagramEvent::NewConnection(incoming), None)
                if self.retries == Retries::Always && !incoming.remote_address_validated() =>
            {
                // One whose token is a Retry's already is accepted or refused.
                let _sent = self.endpoint.retry(incoming, &mut answer);
                Some(answer).filter(|answer| !answer.is_empty())
            }
            (DatagramEvent::NewConnection(incoming), None) => {
                let accepted = (self.endpoint).accept(incoming, just_before, &mut answer, None);
                match accepted {
                    Ok(connection) => {
                        self.connection = Some(connection);
                        self.settle();
                    }
                    Err(error) => self.end(&error.cause),
                }
                Some(answer).filter(|answer| !answer.is_empty())
            }
            (DatagramEvent::NewConnection(incoming), Some(_)) => {
                let _sent = self.endpoint.refuse(incoming, &mut answer);
                Some(answer).filter(|answer| !answer.is_empty())
            }
            (DatagramEvent::Response(_), _) => Some(answer),
            (DatagramEvent::ConnectionEvent(..), None) => None,
        }
    }

    /// When [`on_time`](End::on_time) is due: [`TIMER`](End::TIMER) after a timer of quinn's ends.
    pub fn deadline(&mut self) -> Option<Time> {
        let (_, connection) = self.connection.as_mut()?;
        (connection.poll_timeout()).map(|timer| time(timer) + End::TIMER)
    }

    /// Does what is due by `now`. False where nothing was, so that it has nothing to send either.
    pub fn on_time(&mut self, now: Time) -> bool {
        let Some((_, connection)) = &mut self.connection else {
            return false;
        };
        let due = connection.poll_timeout();
        let is_due = due.is_some_and(|due| due <= instant(now));
        if is_due {
            let lost = |connection: &Connection| connection.stats().path.lost_packets;
            let before = lost(connection);
            connection.handle_timeout(instant(now));
            // Of the timers under which something leaves that is to be acknowledged, the others are the pacer's and that of a
            // packet that is deemed lost.
            let is_pacers = self.waits.paced_until.is_some_and(|paced| paced <= now);
            self.waits.is_probing = !is_pacers && lost(connection) == before;
            self.settle();
        }
        is_due
    }

    /// The next datagram that leaves now, in `out`, and what its packet has to say about congestion. `None` when there is no
    /// datagram.
    pub fn transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<EcnCodepoint> {
        out.clear();
        let (_, connection) = self.connection.as_mut()?;
        let waits = &mut self.waits;
        waits.until(now);
        waits.asked.take();
        let before = waits.is_probing.then(|| to_acknowledge(connection));
        let deadline = connection.poll_timeout();
        let sent = connection.poll_transmit(instant(now), 1, out);
        if sent.is_some() {
            let is_probe = before.is_some_and(|before| to_acknowledge(connection) > before);
            waits.probes += u64::from(is_probe);
        } else {
            waits.is_probing = false;
            // Of the timers, this sets none but the pacer's where nothing leaves.
            let next = connection.poll_timeout();
            let is_set =
                next.is_some() && (next != deadline || next.map(time) == waits.paced_until);
            let paced_until = next.map(time).filter(|_| is_set);
            waits.blocked = waits.asked.take().then_some(match paced_until {
                Some(_) => (now, Blocked::ByPacer),
                None => (now, Blocked::ByWindow),
            });
            waits.paced_until = paced_until.filter(|_| waits.blocked.is_some());
        }
        self.settle();
        let ecn = self.ecn;
        sent.map(|sent| match (ecn, sent.ecn) {
            (Ecn::On, Some(ecn)) => EcnCodepoint::of_class(ecn as u8),
            (Ecn::Off, _) | (Ecn::On, None) => EcnCodepoint::NotEct,
        })
    }

    /// Passes on what connection and endpoint have for each other, and notes what became of them.
    fn settle(&mut self) {
        let Some((handle, connection)) = &mut self.connection else {
            return;
        };
        let mut lost = None;
        loop {
            if let Some(event) = connection.poll_endpoint_events() {
                if let Some(event) = self.endpoint.handle_event(*handle, event) {
                    connection.handle_event(event);
                }
            } else if let Some(event) = connection.poll() {
                match event {
                    Event::Connected => self.is_established = true,
                    Event::ConnectionLost { reason } => lost = Some(reason),
                    Event::HandshakeDataReady
                    | Event::Stream(_)
                    | Event::DatagramReceived
                    | Event::DatagramsUnblocked => {}
                }
            } else {
                break;
            }
        }
        if let Some(reason) = lost {
            self.end(&reason);
        }
    }

    fn end(&mut self, reason: &ConnectionError) {
        // The peer has words in it.
        let why = || visible(&reason.to_string());
        let ended = match (self.tls.error(), reason) {
            (Some(error), _) => Ended::Tls(error),
            (None, ConnectionError::ConnectionClosed(close)) => match alert(close.error_code) {
                Some(alert) => Ended::Tls(TlsError::Refused(alert)),
                None => Ended::Transport(why()),
            },
            (None, ConnectionError::TimedOut) => Ended::Idle,
            (None, _) => Ended::Transport(why()),
        };
        self.ended.get_or_insert(ended);
    }

    /// Whether its handshake is complete: a client's Finished is made, a server has verified it.
    pub fn is_established(&self) -> bool {
        self.is_established
    }

    /// Whether this client may send requests in 0-RTT packets, before its handshake is complete.
    pub fn has_early_data(&self) -> bool {
        let connection = self.connection.as_ref();
        !self.is_established && connection.is_some_and(|(_, connection)| connection.has_0rtt())
    }

    /// Whether the server took what this client sent so. Where it did not, those requests are no more. Known once
    /// established.
    pub fn is_early_data_accepted(&self) -> bool {
        let connection = self.connection.as_ref();
        connection.is_some_and(|(_, connection)| connection.accepted_0rtt())
    }

    /// What this client has for the connection after this one.
    pub fn kept(&self) -> Kept {
        Kept {
            session: self.tls.ticket(),
            token: self.tokens.latest(),
        }
    }

    /// Why the connection is over, if it is.
    pub fn ended(&self) -> Option<&Ended> {
        self.ended.as_ref()
    }

    /// The secrets so far.
    pub fn key_log(&self) -> KeyLog {
        self.tls.key_log()
    }

    /// A request of this client. None while the server allows no more.
    pub fn open(&mut self) -> Option<Request> {
        let (_, connection) = self.connection.as_mut()?;
        connection.streams().open(Dir::Bi).map(Request)
    }

    /// The next request of the client that has come to this server.
    pub fn accept(&mut self) -> Option<Request> {
        let (_, connection) = self.connection.as_mut()?;
        connection.streams().accept(Dir::Bi).map(Request)
    }

    /// Takes as much of `payload` as there is room for, and gives how much that is. The peer may have closed; then it
    /// takes nothing.
    pub fn write(&mut self, request: Request, payload: &[u8]) -> usize {
        let Some((_, connection)) = &mut self.connection else {
            return 0;
        };
        (connection.send_stream(request.0).write(payload)).unwrap_or_default()
    }

    /// Nothing more follows of this end.
    pub fn finish(&mut self, request: Request) {
        if let Some((_, connection)) = &mut self.connection {
            // One that is closed is finished.
            let _ = connection.send_stream(request.0).finish();
        }
    }

    /// Ends the connection with an error of the application's, or none of its errors: [`transmit`](End::transmit) has what says so,
    /// and nothing else any more.
    pub fn close(&mut self, now: Time, code: u32) {
        if let Some((_, connection)) = &mut self.connection {
            connection.close(instant(now), VarInt::from_u32(code), Bytes::new());
        }
    }

    /// Bytes of the peer's payload that have come in order since the last call, and whether that was all.
    pub fn read(&mut self, request: Request) -> (u64, bool) {
        let Some((_, connection)) = &mut self.connection else {
            return (0, false);
        };
        let mut stream = connection.recv_stream(request.0);
        let Ok(mut chunks) = stream.read(true) else {
            return (0, false);
        };
        let mut bytes = 0;
        let is_all = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => bytes += chunk.bytes.len() as u64,
                Ok(None) => break true,
                Err(ReadError::Blocked | ReadError::Reset(_)) => break false,
            }
        };
        // What it lets the peer send now leaves with the next datagrams.
        let _ = chunks.finalize();
        (bytes, is_all)
    }

    /// What it has counted; none of an end that had no connection.
    pub fn stats(&self) -> Option<Stats> {
        let (_, connection) = self.connection.as_ref()?;
        let path = connection.stats().path;
        Some(Stats {
            lost: path.lost_packets,
            rtt: path.rtt,
            window: path.cwnd,
            probes: self.waits.probes,
            blocked_by_window: self.waits.by_window,
            blocked_by_pacer: self.waits.by_pacer,
        })
    }
}

/// How many frames it has sent that are to be acknowledged.
fn to_acknowledge(connection: &Connection) -> u64 {
    let sent = connection.stats().frame_tx;
    let handshake = sent.crypto + u64::from(sent.handshake_done) + sent.new_token;
    let streams = sent.stream + sent.max_data + sent.max_stream_data + sent.reset_stream;
    handshake + streams + sent.ping + sent.new_connection_id + sent.retire_connection_id
}

/// Carries the handshake of a connection before the one that counts, and gives what its client keeps: a session and a token.
/// Its ends are a millisecond apart, and nothing is lost.
///
/// # Errors
/// When it can't begin, or does not get that far.
pub fn connection_before(
    stack: &Arc<dyn Stack>,
    client: &Settings,
    server: &Settings,
    seed: u64,
) -> Result<Kept, EndError> {
    const DELAY: Duration = Duration::from_millis(1);
    /// Round trips that the largest chain takes, and many more.
    const MOST: u32 = 10_000;

    let mut now = Time(0);
    let none = Kept::default();
    let mut ends = [
        End::client(stack.clone(), client, none, seed, now)?,
        End::issuing_server(stack.clone(), server, seed),
    ];
    let mut under_way: [Vec<Vec<u8>>; 2] = Default::default();
    for _ in 0..MOST {
        let mut sent: [Vec<Vec<u8>>; 2] = Default::default();
        for (end, (arrived, sent)) in ends.iter_mut().zip(under_way.iter().zip(&mut sent)) {
            end.on_time(now);
            for datagram in arrived {
                sent.extend(end.receive(now, EcnCodepoint::NotEct, datagram));
            }
            let mut datagram = Vec::new();
            while end.transmit(now, &mut datagram).is_some() {
                sent.push(datagram.clone());
            }
        }
        sent.swap(0, 1);
        under_way = sent;
        let [client, _] = &ends;
        let kept = client.kept();
        if kept.session.is_some() && kept.token.is_some() {
            return Ok(kept);
        }
        if let Some(ended) = ends.iter().find_map(End::ended) {
            return Err(match ended {
                Ended::Tls(error) => EndError::Tls(error.clone()),
                ended => EndError::Transport(ended.to_string()),
            });
        }
        now = now + DELAY;
    }
    Err(EndError::Transport(
        "the server gave neither a session nor a token".to_owned(),
    ))
}

/// The alert of TLS that a CONNECTION_CLOSE stands for (RFC 9001, 4.8).
fn alert(code: TransportErrorCode) -> Option<Alert> {
    let code = u64::from(code);
    u8::try_from(code.checked_sub(0x100)?).ok().map(Alert)
}

#[cfg(test)]
mod tests;
