use std::time::Duration;

use lastbyte_link::Link;

use crate::tcp::{self, Flight, Message, Sender};

/// The bytes of one TLS 1.3 connection on the wire, record headers included, and its compute times.
///
/// Each part is one write of its sender. A part of no bytes is left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exchange {
    /// ClientHello.
    pub client_hello: usize,
    /// ServerHello to Finished.
    pub server_flight: usize,
    /// The client's Finished, after its certificate if it sends one, and the request.
    pub client_finish: usize,
    /// The response; none is asked for when it is 0.
    pub response: usize,
    /// The first record of the response: it can't be read before its last byte.
    pub first_record: usize,
    /// How long the ends compute.
    pub compute: Compute,
}

/// How long each part takes to make, once its sender has all that it needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compute {
    /// From the established TCP connection to the write of the ClientHello.
    pub client_hello: Duration,
    /// From the ClientHello to the write of the server's flight.
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
    /// The client's initial congestion window, in segments.
    pub client_initcwnd: u32,
    /// The server's initial congestion window, in segments.
    pub server_initcwnd: u32,
}

impl Default for Path {
    /// A link without delay; 1448 bytes, which fill an Ethernet frame; windows of 10 segments
    /// (RFC 6928).
    fn default() -> Path {
        Path {
            link: Link::default(),
            mss: 1448,
            client_initcwnd: 10,
            server_initcwnd: 10,
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
    /// What a TLS 1.3 record adds to its payload: header, content type and tag (RFC 8446,
    /// section 5.2).
    pub const OVERHEAD: usize = 5 + 1 + 16;

    /// The bytes on the wire of `payload` bytes.
    #[must_use]
    pub fn wire_bytes(&self, payload: usize) -> usize {
        let first = payload.min(self.first.max(1));
        let later = (payload - first).div_ceil(self.later.max(1));
        payload + Self::OVERHEAD * (later + usize::from(first > 0))
    }

    /// The bytes on the wire of the first record of `payload` bytes.
    #[must_use]
    pub fn first_wire_bytes(&self, payload: usize) -> usize {
        self.wire_bytes(payload.min(self.first.max(1)))
    }
}

impl Default for Records {
    /// As large sites do: the first record fills one segment of 1448 bytes, the others hold 16 KiB.
    fn default() -> Records {
        Records {
            first: 1448 - Self::OVERHEAD,
            later: 16 * 1024,
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
    /// All of the response is there. Without a response, the handshake time.
    pub ttlb: Duration,
    /// The flights of both ends, in the order in which they begin.
    pub flights: Vec<Flight>,
}

impl Timeline {
    /// How many flights `sender` needs.
    #[must_use]
    pub fn flights_of(&self, sender: Sender) -> usize {
        self.flights
            .iter()
            .filter(|flight| flight.sender == sender)
            .count()
    }

    /// How many flights the server needs until the handshake is done.
    #[must_use]
    pub fn handshake_flights(&self) -> usize {
        self.flights
            .iter()
            .filter(|flight| flight.sender == Sender::Server && flight.start < self.handshake)
            .count()
    }
}

/// Walks through a TLS 1.3 connection.
///
/// It takes time in proportion to the number of segments.
#[must_use]
pub fn timeline(exchange: &Exchange, path: &Path) -> Timeline {
    let Exchange {
        client_hello,
        server_flight,
        client_finish,
        response,
        first_record,
        compute,
    } = *exchange;
    let message = |sender, bytes, compute| Message {
        sender,
        bytes,
        compute,
    };
    let walk = tcp::walk(
        [
            message(Sender::Client, client_hello, compute.client_hello),
            message(Sender::Server, server_flight, compute.server_flight),
            message(Sender::Client, client_finish, compute.client_finish),
            message(Sender::Server, response, compute.response),
        ],
        path,
    );
    let [_, _, finish, delivery] = walk.deliveries;
    let arrived = |bytes| (response > 0).then(|| delivery.arrived(bytes));
    Timeline {
        connect: walk.connect,
        handshake: finish.written,
        ttfb: arrived(first_record.min(response)),
        ttlb: arrived(response).unwrap_or(finish.written),
        flights: walk.flights,
    }
}

/// Walks through a plain TCP connection: a request of the client and a response of the server, in
/// bytes.
#[must_use]
pub fn transfer(request: usize, response: usize, path: &Path) -> Timeline {
    let message = |sender, bytes| Message {
        sender,
        bytes,
        compute: Duration::ZERO,
    };
    let walk = tcp::walk(
        [
            message(Sender::Client, request),
            message(Sender::Server, response),
        ],
        path,
    );
    let [_, delivery] = walk.deliveries;
    Timeline {
        connect: walk.connect,
        handshake: walk.connect,
        ttfb: (response > 0).then(|| delivery.arrived(1)),
        ttlb: delivery.arrived(response),
        flights: walk.flights,
    }
}
