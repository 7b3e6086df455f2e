//! When each message of a connection leaves and arrives.

use std::fmt;
use std::time::Duration;

use lastbyte_link::{Link, Side};
use lastbyte_sizes::framing;

use crate::tcp::{self, Begins, Flight, Follows, Memory, Message, Packet, SlowStart, Walk};

/// Times that differ by less than this part are the same: half of what measurements may differ from arithmetic by.
const NEAR: u32 = 2000;

/// The writes of a server's handshake that are told besides its last one, at most: more than any server has.
pub const MOST_WRITES: usize = 6;

/// The writes of a response that are told besides those that are as the last of them, at most: until records of net/http, which
/// grow, fill sixty segments.
pub const MOST_RESPONSE_WRITES: usize = 12;

/// The bytes of one TLS 1.3 connection on the wire, record headers included, and its compute times.
///
/// Each part is one write of its sender. A part of no bytes is left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exchange {
    /// ClientHello, and early data.
    pub client_hello: usize,
    /// How much of that is early data.
    pub early_data: usize,
    /// HelloRetryRequest.
    pub hello_retry_request: usize,
    /// The second ClientHello.
    pub second_client_hello: usize,
    /// ServerHello to Finished.
    pub server_flight: usize,
    /// The writes that it leaves in, but for the last: each ends with a segment that need not be full. All of it is one write
    /// if there are none.
    pub flight_writes: [usize; MOST_WRITES],
    /// The client's Finished, after its certificate if it sends one.
    pub client_finish: usize,
    /// What of the first request leaves with that: all that is no early data.
    pub first_request: usize,
    /// The body of a request.
    pub upload: usize,
    /// Session tickets, which answer the client's Finished.
    pub tickets: usize,
    /// The writes that they leave in, each ending with a segment that need not be full. They leave with what follows them as one
    /// write if there are none.
    pub ticket_writes: [usize; MOST_WRITES],
    /// The response; none is asked for when it is 0.
    pub response: usize,
    /// The writes that a response leaves in: the first ones, of which the last that is not 0 repeats. All of it
    /// is one write if there are none.
    pub writes: [usize; MOST_RESPONSE_WRITES],
    /// The first record of the response: it can't be read before its last byte.
    pub first_record: usize,
    /// When the server has the first request.
    pub request: Request,
    /// Requests after the first one, each answered like that.
    pub later_requests: u32,
    /// Each of them, with its body.
    pub later_request: usize,
    /// From the end of a response to the next request.
    pub think: Duration,
    /// How long the ends compute.
    pub compute: Compute,
}

/// Where the first request goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Request {
    /// With the client's Finished, or its end does: what comes before is early data.
    #[default]
    AfterHandshake,
    /// With the ClientHello, all of it (RFC 8446, section 2.3). The server answers it before it has the
    /// client's Finished.
    EarlyData,
}

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
}

/// When a congestion window grows by what is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Growth {
    /// Where it is used (`tcp_is_cwnd_limited`): slow start, as Reno and CUBIC have it.
    #[default]
    Used,
    /// Always, as with BBR (`bbr_set_cwnd`) where its gain leaves room; below four segments, it becomes four.
    Always,
    /// As with BBR where its gain leaves no more room: while fewer than ten segments were acknowledged, and then up to so many
    /// thousandths of what was within a round trip.
    ToGain(u32),
}

impl Growth {
    /// `bbr_high_gain`, in thousandths: 2/ln(2).
    pub const BBR_GAIN: u32 = 2885;
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
        }
    }
}

/// How a response is cut into TLS records, in bytes of payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Records {
    /// What the first record holds.
    pub first: usize,
    /// What each later record holds.
    pub later: usize,
}

impl Records {
    /// The bytes on the wire of `payload` bytes.
    #[must_use]
    pub fn wire_bytes(&self, payload: usize) -> usize {
        let first = payload.min(self.first.max(1));
        let later = (payload - first).div_ceil(self.later.max(1));
        payload + framing::RECORD_OVERHEAD * (later + usize::from(first > 0))
    }

    /// The bytes on the wire of the first record of `payload` bytes.
    #[must_use]
    pub fn first_wire_bytes(&self, payload: usize) -> usize {
        self.wire_bytes(payload.min(self.first.max(1)))
    }
}

impl Default for Records {
    /// As large sites do: the first record fills one segment, the others hold as much as records can.
    fn default() -> Records {
        Records {
            first: framing::MSS - framing::RECORD_OVERHEAD,
            later: framing::MAX_PLAINTEXT,
        }
    }
}

/// When things happen, counted from just before `connect()`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// TCP is established at the client.
    pub connect: Duration,
    /// The client's Finished is written. Without TLS, the connect time.
    pub handshake: Duration,
    /// The first record of the response is there; without TLS, its first segment. Absent without a
    /// response.
    pub ttfb: Option<Duration>,
    /// All of the last response is there. Without a response, all of the request is; without either,
    /// the handshake time.
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
    /// The three-way handshake takes a second or more, so both ends send their SYN again (`TCP_TIMEOUT_INIT`).
    SynAgain,
    /// Nothing is acknowledged for two round trips, so a segment is sent again that is still under way
    /// (`tcp_send_loss_probe`).
    LossProbe,
    /// Acknowledgements come one closely behind the other for half of a round trip, or later than they did, and so CUBIC ends slow
    /// start before the window covers the path (`hystart_update`).
    SlowStartEnd,
    /// A flight has more segments than the link's queue holds.
    QueueOverflow,
    /// A flight has more segments than the receive buffer holds, and they come too fast for each to be read before the next: how wide the
    /// window is then depends on how many are read at once.
    ReadTogether,
    /// A client that has set its receive buffer has received several times as much.
    SmallBuffer,
}

impl Reason {
    /// All of them.
    pub const ALL: [Reason; 6] = [
        Reason::SynAgain,
        Reason::LossProbe,
        Reason::SlowStartEnd,
        Reason::QueueOverflow,
        Reason::ReadTogether,
        Reason::SmallBuffer,
    ];

    /// Whether packets are sent again for it.
    #[must_use]
    pub fn sends_again(self) -> bool {
        match self {
            Reason::SynAgain | Reason::LossProbe | Reason::QueueOverflow => true,
            Reason::SlowStartEnd | Reason::ReadTogether | Reason::SmallBuffer => false,
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
                "a flight has more segments than the link's queue holds, so some may be lost"
            }
            Reason::ReadTogether => {
                "the link is so fast that segments are read many at once, and the receive buffer's window depends on how many"
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
            .filter(|flight| flight.sender == Side::Server && flight.start < self.handshake)
            .count()
    }
}

/// Walks through a TLS 1.3 connection.
///
/// It takes time in proportion to the number of segments.
#[must_use]
pub fn timeline(exchange: &Exchange, path: &Path) -> Timeline {
    walked(exchange, path, Memory::Flights).0
}

/// The same, with every packet in the order in which they leave: what [`timeline`] does not remember, so that those
/// who walk a thousand times need not pay for it. Acknowledgements that would leave after the last byte is there are
/// not among them.
#[must_use]
pub fn trace(exchange: &Exchange, path: &Path) -> (Timeline, Vec<Packet>) {
    walked(exchange, path, Memory::Packets)
}

fn walked(exchange: &Exchange, path: &Path, memory: Memory) -> (Timeline, Vec<Packet>) {
    let compute = &exchange.compute;
    let message = |sender, bytes, compute| Message {
        sender,
        bytes,
        compute,
        follows: Follows::All,
        writes: Vec::new(),
        begins: Begins::Apart,
    };
    let after = |message, bytes| Follows::Part { message, bytes };
    use Side::{Client, Server};
    let mut messages = vec![message(Client, exchange.client_hello, compute.client_hello)];
    if exchange.hello_retry_request > 0 {
        messages.extend([
            message(Server, exchange.hello_retry_request, compute.server_flight),
            message(Client, exchange.second_client_hello, compute.client_hello),
        ]);
    }
    let hello = messages.len() - 1;
    let (flight, finish) = (hello + 1, hello + 2);
    let request = exchange.client_finish + exchange.first_request;
    messages.extend([
        Message {
            follows: match exchange.early_data {
                0 => Follows::All,
                // The server does not wait for the rest.
                early => after(hello, exchange.client_hello.saturating_sub(early)),
            },
            writes: flight_writes(exchange),
            ..message(Server, exchange.server_flight, compute.server_flight)
        },
        Message {
            // The client may not have sent all early data.
            follows: after(flight, exchange.server_flight),
            ..message(Client, request, compute.client_finish)
        },
    ]);
    let tickets = |compute| Message {
        follows: after(finish, exchange.client_finish),
        writes: ticket_writes(exchange),
        ..message(Server, exchange.tickets, compute)
    };
    let response = |request, request_bytes, compute| Message {
        follows: after(request, request_bytes),
        writes: writes(exchange),
        ..message(Server, exchange.response, compute)
    };
    let first_response = match exchange.request {
        Request::AfterHandshake => {
            let tickets = tickets(compute.response);
            let mut response = response(finish, request, Duration::ZERO);
            if !tickets.writes.is_empty() && response.writes.is_empty() {
                // It does not go on with their last segment.
                response.writes.push(exchange.response);
            }
            if tickets.writes.is_empty() && tickets.bytes > 0 {
                response.begins = Begins::WithWhatWaits;
            }
            messages.extend([tickets, response]);
            finish + 2
        }
        // Nobody waits for the client's Finished, nor for the tickets.
        Request::EarlyData => {
            messages.push(response(hello, exchange.client_hello, compute.response));
            messages.push(tickets(Duration::ZERO));
            finish + 1
        }
    };
    let mut last_response = first_response;
    for _ in 0..exchange.later_requests {
        let request = messages.len();
        messages.extend([
            Message {
                follows: after(last_response, exchange.response),
                ..message(Client, exchange.later_request, exchange.think)
            },
            response(request, exchange.later_request, Duration::ZERO),
        ]);
        last_response = request + 1;
    }
    let walk = tcp::walk(messages.clone(), path, memory, SlowStart::Endless);
    let other = walk
        .endless
        .iter()
        .any(Option::is_some)
        .then(|| tcp::walk(messages, path, Memory::Flights, SlowStart::Ends));
    // No record ends behind the write that it begins in.
    let [first_write, ..] = exchange.writes;
    let first_record = match first_write {
        0 => exchange.first_record,
        bytes => exchange.first_record.min(bytes),
    };
    let first_record = first_record.min(exchange.response);
    // The client reads a response after its own Finished. Without a response, the request comes last.
    let times = |walk: &Walk| {
        let handshake = walk.written(finish);
        let ttfb = (exchange.response > 0).then(|| {
            let first = walk.arrived(first_response, first_record);
            first.max(handshake)
        });
        let ttlb = match (exchange.response, exchange.upload) {
            (0, 0) => handshake,
            (0, _) => match exchange.request {
                Request::AfterHandshake => walk.arrived(finish, request),
                Request::EarlyData => walk.arrived(hello, exchange.client_hello),
            },
            _ => walk.arrived(last_response, usize::MAX).max(handshake),
        };
        (handshake, ttfb, ttlb)
    };
    let (handshake, ttfb, ttlb) = times(&walk);
    // Windows of CUBIC lie between those of both walks.
    let is_apart = other.is_some_and(|other| {
        let (_, _, other) = times(&other);
        ttlb.abs_diff(other) > ttlb / NEAR
    });
    let [mut client, mut server] = [walk.client_limit, walk.server_limit];
    if is_apart {
        let [of_client, of_server] = walk.endless;
        (client, server) = (sooner(client, of_client), sooner(server, of_server));
    }
    let timeline = Timeline {
        connect: walk.connect,
        handshake,
        ttfb,
        ttlb,
        limit: match (exchange.response, exchange.upload) {
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

/// The writes of the server's flight; empty if it is one.
fn flight_writes(exchange: &Exchange) -> Vec<usize> {
    match parts(exchange.server_flight, &exchange.flight_writes) {
        writes if writes.len() > 1 => writes,
        _ => Vec::new(),
    }
}

/// The writes of the tickets; empty if they leave with what follows them.
fn ticket_writes(exchange: &Exchange) -> Vec<usize> {
    match exchange.ticket_writes {
        [0, ..] => Vec::new(),
        writes => parts(exchange.tickets, &writes),
    }
}

/// So many bytes in writes of these sizes, as far as there are some, and one of all that is left.
fn parts(bytes: usize, sizes: &[usize]) -> Vec<usize> {
    let mut left = bytes;
    let mut writes = Vec::new();
    for size in sizes.iter().take_while(|size| **size > 0) {
        if *size >= left {
            break;
        }
        writes.push(*size);
        left -= size;
    }
    if left > 0 {
        writes.push(left);
    }
    writes
}

/// The writes of a response; empty if it is one.
fn writes(exchange: &Exchange) -> Vec<usize> {
    let sizes = exchange.writes.iter().copied().take_while(|size| *size > 0);
    let Some(last) = sizes.clone().last() else {
        return Vec::new();
    };
    let mut writes = Vec::new();
    let mut left = exchange.response;
    let mut sizes = sizes.chain(std::iter::repeat(last));
    while let Some(size) = sizes.next().filter(|_| left > 0) {
        writes.push(size.min(left));
        left = left.saturating_sub(size);
    }
    writes
}

/// Walks through a plain TCP connection: a request of the client and a response of the server, in
/// bytes.
#[must_use]
pub fn transfer(request: usize, response: usize, path: &Path) -> Timeline {
    let message = |sender, bytes| Message {
        sender,
        bytes,
        compute: Duration::ZERO,
        follows: Follows::All,
        writes: Vec::new(),
        begins: Begins::Apart,
    };
    let walk = tcp::walk(
        vec![
            message(Side::Client, request),
            message(Side::Server, response),
        ],
        path,
        Memory::Flights,
        SlowStart::Endless,
    );
    Timeline {
        connect: walk.connect,
        handshake: walk.connect,
        ttfb: (response > 0).then(|| walk.arrived(1, 1)),
        ttlb: walk.arrived(1, response),
        limit: walk.client_limit,
        flights: walk.flights,
    }
}
