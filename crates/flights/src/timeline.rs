//! When each message of a connection leaves and arrives.

use std::fmt;
use std::time::Duration;

use lastbyte_exchange::{Exchange, Framed, HandshakeFlight, Requests, Transfer};
use lastbyte_link::Side::{Client, Server};
use lastbyte_link::{Link, Side};
use lastbyte_sizes::framing;

use crate::tcp::{self, Begins, Flight, Follows, Memory, Message, Packet, SlowStart, Walk};

/// Times that differ by less than this part are the same: half of what measurements may differ from
/// arithmetic by.
const NEAR: u32 = 2000;

/// How long each part takes to make, once its sender has all that it needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compute {
    /// From the established TCP connection to the write of the ClientHello; with a
    /// HelloRetryRequest, for each of both.
    pub client_hello: Duration,
    /// From the ClientHello to the write of the server's flight; with a HelloRetryRequest, for each
    /// of both.
    pub server_flight: Duration,
    /// From the server's flight to the write of the client's Finished.
    pub client_finish: Duration,
    /// From the request to the write of the response.
    pub response: Duration,
}

/// The network and the TCP parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// Delays and rates. Loss, jitter and queue are left out of account.
    pub link: Link,
    /// Bytes of payload that fit one segment.
    pub mss: usize,
    /// Bytes of an IP header and a TCP header: 52 with timestamps, 40 without.
    pub headers: usize,
    /// The client's initial congestion window, in segments.
    pub client_initcwnd: u32,
    /// The server's initial congestion window, in segments.
    pub server_initcwnd: u32,
    /// How both ends' windows grow.
    pub growth: Growth,
    /// Of both ends.
    pub buffers: Buffers,
    /// What the client sets its receive buffer to once it is connected, in bytes (`SO_RCVBUF`).
    pub client_receive_buffer: Option<usize>,
    /// How long the ends compute.
    pub compute: Compute,
    /// What is QUIC's alone; windows are then in datagrams.
    pub quic: QuicPath,
}

/// When a congestion window grows by what is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Growth {
    /// Where it is used (`tcp_is_cwnd_limited`): slow start, as Reno and CUBIC have it.
    #[default]
    Used,
    /// Always, as with BBR (`bbr_set_cwnd`) where its gain leaves room; below four segments, it
    /// becomes four.
    Always,
    /// As with BBR where its gain leaves no more room: while fewer than ten segments were
    /// acknowledged, and then up to so many thousandths of what was within a round trip.
    ToGain(u32),
}

impl Growth {
    /// `bbr_high_gain`, in thousandths: 2/ln(2).
    pub const BBR_GAIN: u32 = 2885;
}

/// What of a path is QUIC's alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuicPath {
    /// UDP payload of the client's datagrams, in bytes.
    pub client_datagram: usize,
    /// Of the server's.
    pub server_datagram: usize,
    /// The round-trip time that an end begins with.
    pub initial_rtt: Duration,
    /// What moves both ends' windows.
    pub congestion: QuicCongestion,
}

/// What moves a congestion window of QUIC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QuicCongestion {
    /// What is lost and what is acknowledged: CUBIC, NewReno.
    #[default]
    ByLoss,
    /// Measured rates: quinn's BBR, whose window and pacer are others.
    Bbr,
}

impl Default for QuicPath {
    /// As quinn has it.
    fn default() -> QuicPath {
        QuicPath {
            client_datagram: 1200,
            server_datagram: 1200,
            initial_rtt: Duration::from_millis(333),
            congestion: QuicCongestion::default(),
        }
    }
}

impl Path {
    pub(crate) fn has_timestamps(&self) -> bool {
        self.headers > 40
    }
}

/// TCP's buffers, in bytes of memory: what they begin with, and what they may grow to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffers {
    /// The second number of `tcp_rmem`.
    pub receive: usize,
    /// The third one.
    pub receive_most: usize,
    /// The second number of `tcp_wmem`.
    pub send: usize,
    /// The third one.
    pub send_most: usize,
}

impl Buffers {
    /// As Linux has them on a machine with enough memory.
    pub const LINUX: Buffers = Buffers {
        receive: 131_072,
        receive_most: 6_291_456,
        send: 16_384,
        send_most: 4_194_304,
    };
    /// The largest of Linux from the start.
    pub const LARGE: Buffers = Buffers {
        receive: Buffers::LINUX.receive_most,
        send: Buffers::LINUX.send_most,
        ..Buffers::LINUX
    };
}

impl Default for Path {
    /// A link without delay; segments that fill an Ethernet frame; windows of 10 segments
    /// (RFC 6928); large buffers.
    fn default() -> Path {
        Path {
            link: Link::default(),
            mss: framing::MSS,
            headers: 52,
            client_initcwnd: 10,
            server_initcwnd: 10,
            growth: Growth::Used,
            buffers: Buffers::LARGE,
            client_receive_buffer: None,
            compute: Compute::default(),
            quic: QuicPath::default(),
        }
    }
}

/// When things happen, counted from just before `connect()`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// TCP is established at the client; none over QUIC.
    pub connect: Option<Duration>,
    /// The client's Finished is written. Without TLS, the connect time.
    pub handshake: Duration,
    /// The first record of the response is there; without TLS, its first segment. Absent without a
    /// response.
    pub ttfb: Option<Duration>,
    /// All of the last response is there. Without a response, all of the request is; without
    /// either, the handshake time.
    pub ttlb: Duration,
    /// The flights of both ends, in the order in which they begin.
    pub flights: Vec<Flight>,
    /// How far this goes, if not all the way.
    pub limit: Option<Limit>,
}

/// Up to when a connection is what arithmetic makes of it, and why no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// What is not later than that holds.
    pub until: Duration,
    /// What happens then.
    pub reason: Reason,
}

/// What Linux does on some links that arithmetic does not follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The three-way handshake takes a second or more, so both ends send their SYN again
    /// (`TCP_TIMEOUT_INIT`).
    SynAgain,
    /// Nothing is acknowledged for two round trips, so a segment is sent again that is still under
    /// way (`tcp_send_loss_probe`).
    LossProbe,
    /// Acknowledgements come one closely behind the other for half of a round trip, or later than
    /// they did, and so CUBIC ends slow start before the window covers the path (`hystart_update`).
    SlowStartEnd,
    /// A flight has more packets than the link's queue holds.
    QueueOverflow,
    /// A flight has more segments than the receive buffer holds, and they come too fast for each to
    /// be read before the next: how wide the window is then depends on how many are read at once.
    ReadTogether,
    /// A client that has set its receive buffer has received several times as much.
    SmallBuffer,
    /// QUIC's pacer and window make of a longer transfer, a rate limit or a second ClientHello what arithmetic does not
    /// follow.
    Paced,
    /// A ClientHello over QUIC has as many datagrams as the client's window, and the last of them waits.
    ClientWindow,
    /// The window and the pacer of QUIC's ends are those of BBR.
    Bbr,
    /// QUIC's ends search for the largest datagrams, so that sizes are others than those they begin with.
    MtuDiscovery,
}

impl Reason {
    /// All of them.
    pub const ALL: [Reason; 10] = [
        Reason::SynAgain,
        Reason::LossProbe,
        Reason::SlowStartEnd,
        Reason::QueueOverflow,
        Reason::ReadTogether,
        Reason::SmallBuffer,
        Reason::Paced,
        Reason::ClientWindow,
        Reason::Bbr,
        Reason::MtuDiscovery,
    ];

    /// Whether packets are sent again for it.
    #[must_use]
    pub fn sends_again(self) -> bool {
        match self {
            Reason::SynAgain | Reason::LossProbe | Reason::QueueOverflow => true,
            Reason::SlowStartEnd
            | Reason::ReadTogether
            | Reason::SmallBuffer
            | Reason::Paced
            | Reason::ClientWindow
            | Reason::Bbr
            | Reason::MtuDiscovery => false,
        }
    }

    /// What programs call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Reason::SynAgain => "syn-again",
            Reason::LossProbe => "loss-probe",
            Reason::SlowStartEnd => "slow-start-end",
            Reason::QueueOverflow => "queue-overflow",
            Reason::ReadTogether => "read-together",
            Reason::SmallBuffer => "small-buffer",
            Reason::Paced => "paced",
            Reason::ClientWindow => "client-window",
            Reason::Bbr => "bbr",
            Reason::MtuDiscovery => "mtu-discovery",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::SynAgain => "TCP's handshake takes a second or more, so Linux sends a SYN twice",
            Reason::LossProbe => {
                "the link is so slow for its RTT that Linux sends a segment twice, as if it were lost (tail loss probe)"
            }
            Reason::SlowStartEnd => {
                "CUBIC ends slow start before the window covers the path, as acknowledgements come late or close behind each other (HyStart)"
            }
            Reason::QueueOverflow => {
                "a flight has more packets than the link's queue holds, so some may be lost"
            }
            Reason::ReadTogether => {
                "the link is so fast that segments are read many at once, and the receive buffer's window depends on how many"
            }
            Reason::Paced => {
                "QUIC's pacer and window make of a longer transfer, or of a rate limit, what arithmetic does not follow"
            }
            Reason::ClientWindow => {
                "the client's initial window does not hold all datagrams of its ClientHello, which arithmetic does not follow"
            }
            Reason::Bbr => {
                "the window and the pacer of quinn's BBR are others than those that arithmetic follows"
            }
            Reason::MtuDiscovery => {
                "QUIC's ends search for the largest datagrams, whose sizes arithmetic does not follow"
            }
            Reason::SmallBuffer => {
                "the client has received more than five times what it set its receive buffer to, whose window moves otherwise by then"
            }
        })
    }
}

impl Timeline {
    /// How many flights `sender` needs.
    #[must_use]
    pub fn flights_of(&self, sender: Side) -> usize {
        self.flights
            .iter()
            .filter(|flight| flight.sender == sender)
            .count()
    }

    /// Why arithmetic has nothing to say of a time as late as this, if it has not.
    #[must_use]
    pub fn beyond(&self, time: Duration) -> Option<Reason> {
        let limit = self.limit.filter(|limit| time > limit.until);
        limit.map(|limit| limit.reason)
    }

    /// A time of this connection, unless it lies beyond the limit.
    #[must_use]
    pub fn modelled(&self, time: Duration) -> Option<Duration> {
        self.beyond(time).is_none().then_some(time)
    }

    /// How many flights the server needs until the handshake is done.
    #[must_use]
    pub fn handshake_flights(&self) -> usize {
        self.flights
            .iter()
            .filter(|flight| flight.sender == Server && flight.start < self.handshake)
            .count()
    }
}

/// Walks through a TLS 1.3 connection over TCP. One over QUIC is [`quic::timeline`](crate::quic::timeline)'s.
///
/// It takes time in proportion to the number of segments.
#[must_use]
pub fn timeline(exchange: &Exchange, path: &Path) -> Timeline {
    walked(exchange, path, Memory::Flights).0
}

/// The same, with every packet in the order in which they leave: what [`timeline`] does not
/// remember, so that those who walk a thousand times need not pay for it. Acknowledgements that
/// would leave after the last byte is there are not among them.
#[must_use]
pub fn trace(exchange: &Exchange, path: &Path) -> (Timeline, Vec<Packet>) {
    walked(exchange, path, Memory::Packets)
}

fn walked(exchange: &Exchange, path: &Path, memory: Memory) -> (Timeline, Vec<Packet>) {
    let sent = Sent::of(exchange);
    let (messages, places) = sent.messages(&path.compute);
    let walk = tcp::walk(messages.clone(), path, memory, SlowStart::Endless);
    let other = walk
        .endless
        .iter()
        .any(Option::is_some)
        .then(|| tcp::walk(messages, path, Memory::Flights, SlowStart::Ends));
    let (handshake, ttfb, ttlb) = sent.times(places, &walk);
    // Windows of CUBIC lie between those of both walks.
    let is_apart = other.is_some_and(|other| {
        let (_, _, other) = sent.times(places, &other);
        ttlb.abs_diff(other) > ttlb / NEAR
    });
    let [mut client, mut server] = [walk.client_limit, walk.server_limit];
    if is_apart {
        let [of_client, of_server] = walk.endless;
        (client, server) = (sooner(client, of_client), sooner(server, of_server));
    }
    let timeline = Timeline {
        connect: Some(walk.connect),
        handshake,
        ttfb,
        ttlb,
        limit: match (sent.response.bytes, sent.requests.body) {
            (0, 1..) => sooner(client, server),
            _ => client,
        },
        flights: walk.flights,
    };
    (timeline, walk.packets)
}

/// The limit that comes first.
fn sooner(one: Option<Limit>, other: Option<Limit>) -> Option<Limit> {
    let limits = one.into_iter().chain(other);
    limits.min_by_key(|limit| limit.until)
}

/// What each end sends in turn, in bytes on the wire; nothing of what an exchange does not have.
struct Sent {
    /// ClientHello, and early data.
    client_hello: usize,
    /// How much of that is early data.
    early: usize,
    /// HelloRetryRequest and second ClientHello.
    hello_retry: Option<[usize; 2]>,
    server: Framed,
    client_finish: usize,
    tickets: Framed,
    /// What of the first request leaves with the client's Finished.
    first: usize,
    /// Each later one.
    each: usize,
    response: Framed,
    requests: Requests,
}

impl Sent {
    fn of(exchange: &Exchange) -> Sent {
        let transport = exchange.transport;
        let flight = |flight| {
            exchange
                .handshake
                .wire_bytes(flight)
                .map(|bytes| bytes as usize)
        };
        let bytes = |which| flight(which).unwrap_or(0);
        let framed = |transfer: &Option<Transfer>| {
            let transfer = transfer.as_ref();
            transfer.map_or_else(Framed::default, |transfer| transport.framed(transfer))
        };
        let requests = exchange.requests.as_deref().cloned().unwrap_or_default();
        let retry = flight(HandshakeFlight::HelloRetryRequest).filter(|bytes| *bytes > 0);
        let server = Transfer::seen(bytes(HandshakeFlight::Server))
            .in_writes(exchange.handshake.server_writes.clone());
        let early = framed(&requests.early).bytes;
        Sent {
            client_hello: bytes(HandshakeFlight::ClientHello) + early,
            early,
            hello_retry: retry.map(|retry| [retry, bytes(HandshakeFlight::SecondClientHello)]),
            server: transport.framed(&server),
            client_finish: bytes(HandshakeFlight::ClientFinish),
            tickets: framed(&exchange.tickets),
            first: framed(&requests.first).bytes,
            each: framed(&requests.each).bytes,
            response: framed(&exchange.response),
            requests,
        }
    }

    /// What the ends write, in turn.
    fn messages(&self, compute: &Compute) -> (Vec<Message>, Places) {
        let mut messages = vec![message(Client, self.client_hello, compute.client_hello)];
        if let Some([request, second]) = self.hello_retry {
            messages.extend([
                message(Server, request, compute.server_flight),
                message(Client, second, compute.client_hello),
            ]);
        }
        let hello = messages.len() - 1;
        let (flight, finish) = (hello + 1, hello + 2);
        messages.extend([
            Message {
                follows: match self.early {
                    0 => Follows::All,
                    // The server does not wait for the rest.
                    early => after(hello, self.client_hello.saturating_sub(early)),
                },
                writes: match &*self.server.writes {
                    [] | [_] => Vec::new(),
                    writes => writes.to_vec(),
                },
                ..message(Server, self.server.bytes, compute.server_flight)
            },
            Message {
                // The client may not have sent all early data.
                follows: after(flight, self.server.bytes),
                ..message(Client, self.finish_with_request(), compute.client_finish)
            },
        ]);
        self.add_first_response(hello, compute, &mut messages);
        let first_response = if self.is_early() {
            finish + 1
        } else {
            finish + 2
        };
        let last_response = self.add_later_requests(first_response, &mut messages);
        let places = Places {
            hello,
            finish,
            first_response,
            last_response,
        };
        (messages, places)
    }

    /// Tickets, and the response to the first request.
    fn add_first_response(&self, hello: usize, compute: &Compute, messages: &mut Vec<Message>) {
        let finish = hello + 2;
        let tickets = |compute| Message {
            follows: after(finish, self.client_finish),
            writes: self.tickets.writes.clone(),
            ..message(Server, self.tickets.bytes, compute)
        };
        if self.is_early() {
            // Nobody waits for the client's Finished, nor for the tickets.
            messages.push(self.answer(hello, self.client_hello, compute.response));
            messages.push(tickets(Duration::ZERO));
            return;
        }
        let tickets = tickets(compute.response);
        let mut answer = self.answer(finish, self.finish_with_request(), Duration::ZERO);
        if !tickets.writes.is_empty() && answer.writes.is_empty() {
            // It does not go on with their last segment.
            answer.writes.push(self.response.bytes);
        }
        if tickets.writes.is_empty() && tickets.bytes > 0 {
            answer.begins = Begins::WithWhatWaits;
        }
        messages.extend([tickets, answer]);
    }

    /// The requests after the first one, each with its response. Returns the place of the last
    /// response.
    fn add_later_requests(&self, first_response: usize, messages: &mut Vec<Message>) -> usize {
        let mut last_response = first_response;
        for _ in 0..self.requests.later {
            let request = messages.len();
            messages.extend([
                Message {
                    follows: after(last_response, self.response.bytes),
                    ..message(Client, self.each, self.requests.think)
                },
                self.answer(request, self.each, Duration::ZERO),
            ]);
            last_response = request + 1;
        }
        last_response
    }

    fn answer(&self, request: usize, request_bytes: usize, compute: Duration) -> Message {
        Message {
            follows: after(request, request_bytes),
            writes: self.response.writes.clone(),
            ..message(Server, self.response.bytes, compute)
        }
    }

    /// Whether the server answers before it has the client's Finished: the request is early as a
    /// whole.
    fn is_early(&self) -> bool {
        self.early > 0 && self.first == 0
    }

    /// The client's Finished, and what of the first request leaves with it.
    fn finish_with_request(&self) -> usize {
        self.client_finish + self.first
    }

    /// When the handshake is done, and when the response's first and last byte are there. The
    /// client reads a response after its own Finished. Without a response, the request comes last.
    fn times(&self, places: Places, walk: &Walk) -> (Duration, Option<Duration>, Duration) {
        let handshake = walk.written(places.finish);
        let ttfb = (self.response.bytes > 0).then(|| {
            let first = walk.arrived(places.first_response, self.response.first);
            first.max(handshake)
        });
        let ttlb = match (self.response.bytes, self.requests.body) {
            (0, 0) => handshake,
            (0, _) if self.is_early() => walk.arrived(places.hello, self.client_hello),
            (0, _) => walk.arrived(places.finish, self.finish_with_request()),
            _ => walk
                .arrived(places.last_response, usize::MAX)
                .max(handshake),
        };
        (handshake, ttfb, ttlb)
    }
}

/// Places of messages among all of a connection.
#[derive(Clone, Copy)]
struct Places {
    /// The ClientHello that the server answers with its flight.
    hello: usize,
    finish: usize,
    first_response: usize,
    last_response: usize,
}

/// A message that follows all before it, in one write of its own.
fn message(sender: Side, bytes: usize, compute: Duration) -> Message {
    Message {
        sender,
        bytes,
        compute,
        follows: Follows::All,
        writes: Vec::new(),
        begins: Begins::Apart,
    }
}

fn after(message: usize, bytes: usize) -> Follows {
    Follows::Part { message, bytes }
}

/// Walks through a plain TCP connection: a request of the client and a response of the server, in
/// bytes.
#[must_use]
pub fn transfer(request: usize, response: usize, path: &Path) -> Timeline {
    let walk = tcp::walk(
        vec![
            message(Client, request, Duration::ZERO),
            message(Server, response, Duration::ZERO),
        ],
        path,
        Memory::Flights,
        SlowStart::Endless,
    );
    Timeline {
        connect: Some(walk.connect),
        handshake: walk.connect,
        ttfb: (response > 0).then(|| walk.arrived(1, 1)),
        ttlb: walk.arrived(1, response),
        limit: walk.client_limit,
        flights: walk.flights,
    }
}
