//! What the explorer's page asks of the arithmetic, and what that answers, in numbers alone.
//!
//! A question is a [`Question`], flattened; an [`answer`] begins with what its `HEAD` names, and
//! rows follow. Times are in milliseconds, rates in Mbit/s, sizes in bytes and windows in segments.
//! So the same code answers natively, in tests, and in browsers as [`WASM`], which needs nothing of
//! its host; `scripts/explore` makes it, and holds both to the bit. [`layout`] has the names of all
//! numbers, so that nobody has to count them.

mod layout;
#[cfg(not(target_arch = "wasm32"))]
mod made;
mod quic;
mod sent;
mod sweep;
#[cfg(test)]
mod tests;
mod value;
#[cfg(target_arch = "wasm32")]
mod web;

use std::time::Duration;

use lastbyte_exchange::{Exchange, HandshakeFlight, Requests, Then, Transfer, Transport};
use lastbyte_flights::{
    Around, Buffers, Flight, Packet, PacketKind, Path, Reason, Timeline, around, segments,
    timeline, trace,
};
use lastbyte_link::{Direction, Link, Rate, Side};
use lastbyte_sizes::{Message, framing};

pub use layout::{Arm, Network, Question, layout};
#[cfg(not(target_arch = "wasm32"))]
pub use made::WASM;
pub use sent::Sent;
pub use value::Sizes;

/// What can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// [`CONNECTION`], then so many flights as [`FLIGHT`] has them, then so many packets as [`PACKET`].
    Connection,
    /// For Certificate messages of growing size, [`STEP`]s.
    Staircase,
    /// For responses of growing size, both arms: [`DIFFERENCE`]s.
    Difference,
}

impl What {
    /// All that can be asked. A question's first number counts them, from 1.
    pub const ALL: [What; 3] = [What::Connection, What::Staircase, What::Difference];
}

/// Bytes of a record or a write that repeats until the response ends: of shorter ones there would
/// be too many to draw.
const LEAST_REPEATED: usize = 100;

/// What an answer about a connection begins with. What there is none of is -1. The ends of messages
/// count from ServerHello on; before it, the server has sent `retry` bytes, and `before` bytes
/// before its response. Where arithmetic does not go as far as the last byte, it goes `until`, for
/// the `reason` that has this place in [`Reason::ALL`].
/// Over QUIC, bytes are those of messages, whatever packets they are in; `connect` is -1, and `last` where the stack's pacer decides.
/// `hello` is what carries the ClientHello: segments, or Initials. `held` is what ends the server's first flight: 0 nothing, 1 the
/// window, 2 credit; `atOnce` is how many packets of it leave before.
pub const CONNECTION: [&str; 29] = [
    "connect",
    "handshake",
    "first",
    "last",
    "sent",
    "segments",
    "serverFlights",
    "below",
    "above",
    "window",
    "response",
    "responseFlights",
    "opened",
    "responds",
    "budget",
    "helloEnds",
    "extensionsEnd",
    "certificateEnds",
    "verifyEnds",
    "finishedEnds",
    "retry",
    "before",
    "until",
    "reason",
    "hello",
    "held",
    "atOnce",
    "flights",
    "packets",
];

/// A flight of an answer. The sender is 0 for the client, 1 for the server.
pub const FLIGHT: [&str; 5] = ["sender", "start", "segments", "bytes", "cwnd"];

/// A packet of an answer. Its kind is 0 where it opens the connection, 1 with payload, 2 where it
/// acknowledges alone.
pub const PACKET: [&str; 7] = [
    "sender", "kind", "sent", "arrives", "offset", "payload", "cwnd",
];

/// A step of a staircase: Certificate message, flights of the server's handshake, first byte.
pub const STEP: [&str; 3] = ["certificate", "flights", "first"];

/// A point of a difference: payload of the response, last byte of both arms.
pub const DIFFERENCE: [&str; 3] = ["payload", "one", "other"];

/// The answer to a question; none to what is no question.
pub fn answer(question: &[f64]) -> Vec<f64> {
    let question = Question::of(question);
    match question.what() {
        Some(What::Connection) => connection(&question),
        Some(What::Staircase) => sweep::staircase(&question),
        Some(What::Difference) => sweep::difference(&question),
        None => Vec::new(),
    }
}

fn connection(question: &Question) -> Vec<f64> {
    let handshake = Handshake::of(&question.arms[0]);
    let path = question.network.path();
    let payload = question.network.payload();
    if handshake.is_over_quic() {
        return quic::connection(&handshake, &question.network, &path);
    }
    let (timeline, packets) = trace(&handshake.exchange(&question.network, payload), &path);
    let sent = handshake.server_flight();
    let before = handshake.before_response(&question.network);
    let Around {
        flights,
        below,
        above,
    } = handshake.around(&path);
    let data = packets
        .iter()
        .filter(|packet| packet.sender == Side::Server && packet.kind == PacketKind::Data);
    // Tickets can have a part of its first segment.
    let mut of_response = data
        .clone()
        .filter(|packet| packet.offset + packet.payload > before);
    let opening = of_response.next();
    let response = response_flights(&timeline, before);
    let first = data
        .clone()
        .find(|packet| packet.offset >= handshake.hello_retry_request());
    let window = first.map_or(path.server_initcwnd, |packet| packet.cwnd);
    let number = |bytes: Option<usize>| bytes.map_or(-1.0, |bytes| bytes as f64);
    let mut answer = vec![
        timeline.connect.map_or(-1.0, ms),
        ms(timeline.handshake),
        timeline.ttfb.map_or(-1.0, ms),
        ms(timeline.ttlb),
        sent as f64,
        segments(sent, path.mss) as f64,
        flights as f64,
        number(below),
        number(above),
        handshake.larger_window(&path).map_or(-1.0, f64::from),
        (question.network.response)
            .records(question.network.mss())
            .wire_bytes(payload) as f64,
        response as f64,
        opening.map_or(-1.0, |packet| f64::from(packet.cwnd)),
        opening.map_or(-1.0, |packet| ms(packet.sent)),
        handshake.budget(window, path.mss) as f64,
    ];
    answer.extend(handshake.ends().map(|end| end as f64));
    let limit = (timeline.limit).filter(|_| timeline.beyond(timeline.ttlb).is_some());
    let reason = limit.and_then(|limit| {
        let mut all = Reason::ALL.iter();
        all.position(|reason| *reason == limit.reason)
    });
    answer.extend([
        handshake.hello_retry_request() as f64,
        before as f64,
        limit.map_or(-1.0, |limit| ms(limit.until)),
        reason.map_or(-1.0, |reason| reason as f64),
        segments(handshake.client_hello(), path.mss) as f64,
        if flights > 1 { 1.0 } else { 0.0 },
        f64::from(window),
        timeline.flights.len() as f64,
        packets.len() as f64,
    ]);
    rows(&mut answer, &timeline.flights, &packets);
    answer
}

/// Adds flights and packets.
fn rows(answer: &mut Vec<f64>, flights: &[Flight], packets: &[Packet]) {
    for flight in flights {
        answer.extend([
            side(flight.sender),
            ms(flight.start),
            f64::from(flight.segments),
            flight.bytes as f64,
            f64::from(flight.cwnd),
        ]);
    }
    for packet in packets {
        answer.extend([
            side(packet.sender),
            match packet.kind {
                PacketKind::Open => 0.0,
                PacketKind::Data => 1.0,
                PacketKind::Acknowledgement => 2.0,
            },
            ms(packet.sent),
            ms(packet.arrives),
            packet.offset as f64,
            packet.payload as f64,
            f64::from(packet.cwnd),
        ]);
    }
}

/// How many of the server's flights have something of its response, which begins after so many
/// bytes.
fn response_flights(timeline: &Timeline, before: usize) -> usize {
    let of_server = timeline
        .flights
        .iter()
        .filter(|flight| flight.sender == Side::Server);
    let ends = of_server.scan(0, |sent, flight| {
        *sent += flight.bytes;
        Some(*sent)
    });
    ends.filter(|end| *end > before).count()
}

fn side(side: Side) -> f64 {
    match side {
        Side::Client => 0.0,
        Side::Server => 1.0,
    }
}

/// Nanoseconds are whole, so this is the nearest number that there is, wherever it is calculated.
fn ms(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e6
}

/// The handshake of an arm.
#[derive(Clone, Debug)]
struct Handshake(lastbyte_exchange::Handshake, Transport);

impl Handshake {
    fn of(arm: &Arm) -> Handshake {
        if arm.transport >= 0.5 {
            return quic::handshake(arm);
        }
        let most = |bytes| whole(bytes, 1 << 20) as u32;
        let mut handshake = lastbyte_exchange::Handshake::default();
        for (message, bytes) in Message::SERVER_FLIGHT.into_iter().zip([
            arm.server_hello,
            arm.encrypted_extensions,
            arm.certificate,
            arm.certificate_verify,
            arm.server_finished,
        ]) {
            handshake.messages.set(message, Some(most(bytes)));
        }
        let retry = Some(most(arm.hello_retry_request)).filter(|bytes| *bytes > 0);
        handshake.see_all([
            (HandshakeFlight::ClientHello, Some(most(arm.client_hello))),
            (HandshakeFlight::HelloRetryRequest, retry),
            (
                HandshakeFlight::SecondClientHello,
                Some(most(arm.second_client_hello)),
            ),
            (HandshakeFlight::ClientFinish, Some(most(arm.client_finish))),
        ]);
        handshake.server_writes = sent::writes(arm.server_writes, Then::Rest, 1 << 20);
        Handshake(handshake, Transport::default()).in_records()
    }

    fn is_over_quic(&self) -> bool {
        self.1.quic().is_some()
    }

    /// Bytes on the wire.
    fn client_hello(&self) -> usize {
        let bytes = self.0.wire_bytes(HandshakeFlight::ClientHello);
        bytes.unwrap_or(0) as usize
    }

    /// When what happens on it.
    fn timeline(&self, exchange: &Exchange, path: &Path) -> Timeline {
        if self.is_over_quic() {
            lastbyte_flights::quic::timeline(exchange, path)
        } else {
            timeline(exchange, path)
        }
    }

    /// The same with the server's messages in records of their own.
    fn in_records(mut self) -> Handshake {
        if self.is_over_quic() {
            return self;
        }
        let bytes = self.ends().last().unwrap_or_default() as u32;
        self.0.see(HandshakeFlight::Server, Some(bytes));
        self
    }

    fn certificate(&self) -> usize {
        self.0.bytes(Message::Certificate) as usize
    }

    fn with_certificate(&self, bytes: usize) -> Handshake {
        let mut handshake = self.clone();
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        (handshake.0.messages).set(Message::Certificate, Some(bytes));
        handshake.in_records()
    }

    /// Bytes on the wire up to where each of the server's messages ends, from ServerHello on. The
    /// change_cipher_spec follows its first hello.
    fn ends(&self) -> impl Iterator<Item = usize> {
        let change = match self.hello_retry_request() {
            0 => framing::CHANGE_CIPHER_SPEC,
            _ => 0,
        };
        Message::SERVER_FLIGHT.iter().scan(change, |end, message| {
            *end += message.wire_bytes(self.0.bytes(*message) as usize);
            Some(*end)
        })
    }

    /// Bytes on the wire.
    fn hello_retry_request(&self) -> usize {
        let bytes = self.0.wire_bytes(HandshakeFlight::HelloRetryRequest);
        bytes.unwrap_or(0) as usize
    }

    /// Bytes on the wire, ServerHello to Finished.
    fn server_flight(&self) -> usize {
        self.0.wire_bytes(HandshakeFlight::Server).unwrap_or(0) as usize
    }

    /// What the server has sent before its response, in bytes on the wire.
    fn before_response(&self, network: &Network) -> usize {
        self.hello_retry_request() + self.server_flight() + network.tickets.ticket_bytes()
    }

    /// How many bytes of the server's flight a window of so many segments holds, or of one that
    /// were longer: the ends of its writes can be segments that are not full.
    fn budget(&self, window: u32, mss: usize) -> usize {
        let (mut segments_left, mut held) = (window as usize, 0);
        let writes = self.0.server_writes.as_ref();
        let writes = writes.map_or_else(Vec::new, |writes| writes.of(self.server_flight()));
        // The last one of the writes has all that is left.
        for write in writes.iter().take(writes.len().saturating_sub(1)) {
            let segments = segments(*write, mss);
            if segments > segments_left {
                break;
            }
            segments_left -= segments;
            held += write;
        }
        held + segments_left * mss
    }

    /// Without a response, and what goes with it.
    fn alone(&self) -> Exchange {
        Exchange {
            handshake: self.0.clone(),
            transport: self.1,
            ..Exchange::default()
        }
    }

    fn exchange(&self, network: &Network, payload: usize) -> Exchange {
        if self.is_over_quic() {
            return quic::exchange(self.alone(), network, payload);
        }
        let requests = (payload > 0).then(|| {
            Box::new(Requests {
                first: Some(Transfer::seen(whole(network.request, 1 << 20))),
                ..Requests::default()
            })
        });
        Exchange {
            tickets: network.tickets.tickets(),
            requests,
            response: (payload > 0).then(|| network.response.response(payload, network.mss())),
            ..self.alone()
        }
    }

    /// How many flights the server needs with a window. How far they are apart decides nothing, as
    /// long as they are: so they are counted where they are, as `lastbyte explain` does.
    fn flights(&self, path: &Path, initcwnd: u32) -> usize {
        const RTT: Duration = Duration::from_millis(100);
        let apart = Path {
            link: Link::symmetric(RTT, Direction::default()),
            server_initcwnd: initcwnd,
            ..path.clone()
        };
        self.timeline(&self.alone(), &apart).handshake_flights()
    }

    fn around(&self, path: &Path) -> Around {
        around(
            self.certificate(),
            [framing::NO_CERTIFICATES, 1 << 20],
            path.mss,
            |bytes| {
                self.with_certificate(bytes)
                    .flights(path, path.server_initcwnd)
            },
        )
    }

    /// The smallest initial window with which the server needs a flight less, if any does.
    fn larger_window(&self, path: &Path) -> Option<u32> {
        const MOST: u32 = 1000;
        let now = self.flights(path, path.server_initcwnd);
        // No window moves an edge of credit.
        if self.is_over_quic() && self.flights(path, MOST) >= now {
            return None;
        }
        let mut larger = path.server_initcwnd + 1..=MOST;
        larger.find(|window| now > 1 && self.flights(path, *window) < now)
    }

    fn walk(&self, network: &Network, payload: usize, path: &Path) -> Timeline {
        self.timeline(&self.exchange(network, payload), path)
    }
}

impl Network {
    fn path(&self) -> Path {
        // What a page can ask is far within; what is no number is none.
        let rtt = Duration::from_nanos(within(self.rtt * 1e6, 60e9));
        let bits = within(self.rate * 1e6, 1e12);
        let rate = (bits > 0).then(|| bits.max(1000));
        let direction = Direction {
            rate: rate.and_then(Rate::from_bits_per_second),
            ..Direction::default()
        };
        let usual = Path::default();
        Path {
            link: Link::symmetric(rtt, direction),
            mss: self.mss(),
            server_initcwnd: whole(self.initcwnd, 1000).max(1) as u32,
            // As the commands of the page ask for them.
            buffers: Buffers::LARGE,
            ..usual
        }
    }

    fn payload(&self) -> usize {
        whole(self.payload, 1 << 26)
    }

    fn mss(&self) -> usize {
        whole(self.mss, 60_000).max(100)
    }
}

/// A whole number that is not below zero, and at most this one.
fn whole(number: f64, most: u32) -> usize {
    within(number, f64::from(most)) as usize
}

/// The same, where it may have more than the 32 bits of a browser's `usize`.
fn within(number: f64, most: f64) -> u64 {
    if number.is_finite() {
        number.round().clamp(0.0, most) as u64
    } else {
        0
    }
}
