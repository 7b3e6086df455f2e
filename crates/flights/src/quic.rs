//! The arithmetic of a handshake over QUIC, as quinn has it, without loss.
//!
//! Both ends are walked through datagram by datagram, by their sizes alone. What decides:
//!
//! - **Packets** (RFC 9000, 17.2). A client fills its Initials, and pads each datagram to its size. A server's Handshake
//!   packets join its last Initial in a datagram where there is room; each datagram with an Initial that has more than an
//!   acknowledgement is padded.
//! - **Credit** (RFC 9000, 8.1). A server may send three times what it has received until a Handshake packet of the client
//!   shows that its address is true. quinn, like others, begins another *whole* datagram while one byte of that is left.
//!   A token of a connection before shows that at once, and a Retry packet's a round trip later (8.1.2, 8.1.3): each Initial
//!   is answered with one, and the client takes the first and begins again. Each Initial then has the token.
//! - **A HelloRetryRequest** (RFC 8446, 4.1.4) is an Initial of the server's own. The client acknowledges it in the first of the
//!   Initials of its second hello, which is the rest of one stream of messages, and gives credit once more.
//! - **Early data** (RFC 9001, 4.6) joins the last Initial, and the response the server's first flight.
//! - **Acknowledgements.** Initial and Handshake packets are acknowledged at once, one by one.
//! - **The window.** quinn sends while what is in flight and one datagram are *less* than the window. It grows by what is
//!   acknowledged, but not where the end had nothing to send or no credit when it last tried.
//! - **The pacer**: a bucket of ten datagrams, or of what a window gives in 2 ms, filled at 1.25 windows a round trip,
//!   which is [`QuicPath::initial_rtt`](crate::QuicPath::initial_rtt) until one is measured.
//!
//! Times up to the first byte of the response are followed; what the pacer and the window make of a response or a request of
//! more than one datagram is not, nor what ends do that begin with a round-trip time as short as the path's
//! ([`Reason::Paced`]).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use lastbyte_exchange::{AddressValidation, Exchange, HandshakeFlight};
use lastbyte_link::Side::{self, Client, Server};
use lastbyte_link::{Direction, Fate, PacketKey, Pipe, Seed, Time};
use lastbyte_sizes::Message;
use lastbyte_sizes::quic::UNCREDITED;

use crate::{Flight, Limit, Path, QuicCongestion, Reason, Timeline, flights_needed};

/// What ends each packet.
const TAG: usize = 16;
/// The header of a long packet: connection IDs of 8 bytes, a length of 2 and a packet number of 1 (RFC 9000, 17.2).
const LONG_HEADER: usize = 1 + 4 + 1 + 8 + 1 + 8 + 2 + 1;
/// That of a short one (RFC 9000, 17.3).
const SHORT_HEADER: usize = 1 + 8 + 1;
/// An empty token, which an Initial has.
const NO_TOKEN: usize = 1;
/// A Retry packet without its token (RFC 9000, 17.2.5).
const RETRY: usize = 1 + 4 + 1 + 8 + 1 + 8 + TAG;
/// A packet joins a datagram with at least this much room (quinn's `MIN_PACKET_SPACE`, and a tag).
const LEAST_ROOM: usize = 1 + 4 + 1 + 20 + 1 + 20 + 4 + 4 + 32 + TAG;
/// The connection IDs that each end gives the other once it has 1-RTT keys.
const CONNECTION_IDS: usize = 4;
/// One of them, of 8 bytes, with a token of 16 (RFC 9000, 19.15).
const CONNECTION_ID: usize = 1 + 1 + 1 + 1 + 8 + 16;
/// What quinn wants to have room for before it adds one.
const CONNECTION_ID_BOUND: usize = 1 + 8 + 8 + 1 + 20 + 16;
/// What quinn wants to have room for before it adds a stream's frame.
const STREAM_BOUND: usize = 1 + 8 + 8 + 8;
/// What a server's first 1-RTT packet after the handshake has besides the response's frame: HANDSHAKE_DONE, and an
/// acknowledgement with its delay.
const DONE: usize = 1 + 7;
/// How many packets that ask for no acknowledgement have none (quinn's `LAZY_ACK_THRESHOLD`).
const LAZY_ACK: usize = 10;
/// How long an end may wait with an acknowledgement (`max_ack_delay`; RFC 9000, 18.2).
const ACK_DELAY: Duration = Duration::from_millis(25);
/// As finely as quinn has its timers.
const GRANULARITY: Duration = Duration::from_millis(1);
/// How long after its end a timer is noticed, as the ends of Lastbyte have it.
const TIMER: Duration = Duration::from_micros(1);
/// IPv4 and UDP.
const HEADERS: usize = 20 + 8;

/// Bytes of a variable-length integer (RFC 9000, 16).
fn varint(number: usize) -> usize {
    match number {
        0..64 => 1,
        64..16_384 => 2,
        _ => 4,
    }
}

/// An acknowledgement, without delay, of packets from the first on.
fn ack(largest: usize) -> usize {
    1 + varint(largest) + 1 + 1 + varint(largest)
}

/// What of `left` bytes of CRYPTO at an offset fits a room besides so much else: quinn keeps two bytes for the length.
fn fits(room: usize, besides: usize, offset: usize, left: usize) -> usize {
    room.saturating_sub(besides + 1 + varint(offset) + 2)
        .min(left)
}

/// Bytes of a CRYPTO frame.
fn crypto(offset: usize, length: usize) -> usize {
    1 + varint(offset) + varint(length) + length
}

/// A stream's frame from its beginning on, with its end (RFC 9000, 19.8).
fn stream(length: usize) -> usize {
    2 + varint(length) + length
}

/// How many Initials a ClientHello takes, in datagrams of a size, each with a token of so many bytes.
#[must_use]
pub fn initials(hello: usize, datagram: usize, token: usize) -> usize {
    of_hello(Hello::of(hello), datagram, token).count()
}

/// A ClientHello that is to be sent.
#[derive(Clone, Copy)]
struct Hello {
    bytes: usize,
    /// Where it begins in the messages of its level.
    offset: usize,
    /// What the first of its Initials has besides.
    besides: usize,
}

impl Hello {
    /// One with which a client begins.
    fn of(bytes: usize) -> Hello {
        Hello {
            bytes,
            offset: 0,
            besides: 0,
        }
    }
}

/// What of a ClientHello is in each of its Initials, and what room its datagram has besides.
fn of_hello(hello: Hello, datagram: usize, token: usize) -> impl Iterator<Item = (usize, usize)> {
    let header = LONG_HEADER + varint(token) + token + TAG;
    let (mut offset, mut left, mut besides) = (hello.offset, hello.bytes, hello.besides);
    std::iter::from_fn(move || {
        let besides = header + std::mem::take(&mut besides);
        let taken = fits(datagram, besides, offset, left);
        let room = datagram.saturating_sub(besides + crypto(offset, taken));
        offset += taken;
        left -= taken;
        (taken > 0).then_some((taken, room))
    })
}

/// A datagram of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Who sends it.
    pub sender: Side,
    /// When it leaves, since the client began.
    pub sent: Duration,
    /// When it is there.
    pub arrives: Duration,
    /// Its UDP payload, in bytes.
    pub bytes: usize,
    /// Bytes of TLS's messages in it.
    pub crypto: usize,
    /// What the server's next one waits for, although there is more to send.
    pub held: Option<Hold>,
}

/// Why a server does not send what it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// It has sent three times what it has received, and does not know yet that the client's address is true (RFC 9000,
    /// 8.1).
    Credit,
    /// As much is in flight as its congestion window holds.
    Window,
    /// The pacer spreads what is to leave.
    Pacer,
}

impl Hold {
    /// What programs and people call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Hold::Credit => "credit",
            Hold::Window => "window",
            Hold::Pacer => "pacer",
        }
    }
}

/// What a server sends of a handshake before it waits for the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerFlight {
    /// Its datagrams that have something of TLS's messages, each with its number among all of the server's, from 1.
    pub datagrams: Vec<(usize, Datagram)>,
}

impl ServerFlight {
    /// What ended it; none of the last.
    #[must_use]
    pub fn held(&self) -> Option<Hold> {
        let (_, last) = self.datagrams.last()?;
        last.held
    }

    /// Its UDP payload, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.datagrams.iter().map(|(_, sent)| sent.bytes).sum()
    }

    fn goes_on(&self, with: &Datagram, path: &Path) -> bool {
        let ends = [self.datagrams.first(), self.datagrams.last()];
        let [Some((_, first)), Some((_, last))] = ends else {
            return false;
        };
        !with.begins_flight(first.sent, last, path)
    }
}

/// Bytes of the messages that a handshake consists of, and what the server knows before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Messages {
    /// The ClientHello.
    pub client_hello: usize,
    /// The HelloRetryRequest, and the ClientHello that follows it; 0 where the first one will do.
    pub hello_retry_request: usize,
    /// As above.
    pub second_client_hello: usize,
    /// The ServerHello.
    pub server_hello: usize,
    /// All of the server's after that.
    pub rest: usize,
    /// The client's last ones.
    pub finish: usize,
    /// How the server knows the client's address beforehand, if it does.
    pub address_validation: Option<AddressValidation>,
    /// The token by which it does; 0 without.
    pub token: usize,
    /// The response to early data, which leaves behind the server's messages; 0 without.
    pub early_response: usize,
}

impl Messages {
    /// Those of an exchange.
    #[must_use]
    pub fn of(exchange: &Exchange) -> Messages {
        let bytes = |message| exchange.bytes(message) as usize;
        let payload = |flight| exchange.handshake.payload(flight) as usize;
        let quic = exchange.transport.quic().unwrap_or_default();
        let server_hello = bytes(Message::ServerHello);
        let is_early = (exchange.requests.as_ref()).is_some_and(|asked| asked.early.is_some());
        let response = exchange.response.as_ref().filter(|_| is_early);
        Messages {
            client_hello: bytes(Message::ClientHello),
            hello_retry_request: bytes(Message::HelloRetryRequest),
            second_client_hello: bytes(Message::SecondClientHello),
            server_hello,
            rest: payload(HandshakeFlight::Server).saturating_sub(server_hello),
            finish: payload(HandshakeFlight::ClientFinish),
            address_validation: quic.address_validation,
            token: quic.token_bytes.unwrap_or(0) as usize,
            early_response: response.map_or(0, |response| response.payload),
        }
    }
}

/// A handshake over QUIC.
#[derive(Clone, Debug)]
pub struct Walk {
    /// Every datagram up to the client's Finished, in the order in which they leave.
    pub datagrams: Vec<Datagram>,
    /// When the client has all of the server's messages.
    pub handshake: Duration,
    /// How much of the response to early data the first datagram has that has any of it, and when that left and comes.
    joined: usize,
    answered: Option<(Duration, Duration)>,
    /// When the client began: behind a Retry packet or a HelloRetryRequest, for the second time.
    begun: Duration,
    /// Whether a HelloRetryRequest had it do so.
    asked_again: bool,
    /// Its link from then on: what leaves now arrives behind what has left.
    pipes: [Pipe; 2],
}

/// Walks through a handshake, whose ends compute in no time.
#[must_use]
pub fn walk(messages: Messages, path: &Path) -> Walk {
    Ends::new(messages, path).walk()
}

/// A datagram on its way, and what its receiver makes of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Arrival {
    at: Time,
    number: usize,
    carries: Carried,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Carried {
    /// An Initial that is answered with a Retry packet.
    Unknown,
    /// A Retry packet.
    Retry,
    /// A part of the ClientHello; whether it is the last, and whether it acknowledges a HelloRetryRequest.
    Hello { is_last: bool, acknowledges: bool },
    /// A HelloRetryRequest.
    HelloRetry,
    /// What a server's datagram has: bytes of the ServerHello, the number of its Handshake packet, bytes of the rest. None of
    /// the first is an acknowledgement alone.
    Server {
        hello: usize,
        handshake: Option<usize>,
        rest: usize,
    },
    /// What a client acknowledges: an Initial packet, a Handshake packet.
    Acks {
        bytes: usize,
        initial: bool,
        handshake: Option<usize>,
    },
}

/// A packet of the server's that wants to be acknowledged.
#[derive(Clone, Copy)]
struct Packet {
    bytes: usize,
    sent: Time,
    is_there: bool,
}

/// Both ends, and the link between them.
struct Ends<'p> {
    path: &'p Path,
    messages: Messages,
    pipes: [Pipe; 2],
    under_way: BinaryHeap<Reverse<Arrival>>,
    datagrams: Vec<Datagram>,
    now: Time,
    // The server.
    received: usize,
    sent: usize,
    is_validated: bool,
    window: usize,
    in_flight: usize,
    /// Whether it had nothing to send, or no credit, when it last tried.
    is_limited: bool,
    has_hello: bool,
    /// Whether it has a HelloRetryRequest to send, and whether it has sent it.
    has_retry: bool,
    has_retried: bool,
    has_to_acknowledge: bool,
    hello_sent: usize,
    rest_sent: usize,
    /// Connection IDs that it has yet to give.
    ids_left: usize,
    /// How much of an early response the first datagram has that has any of it, and when that left and comes.
    joined: usize,
    answered: Option<(Time, Time)>,
    initial_packets: Vec<Packet>,
    handshake_packets: Vec<Packet>,
    pacer: Pacer,
    rtt: Option<Duration>,
    /// From when on a packet with room has an acknowledgement that nobody waits for.
    bundles_from: Option<Time>,
    /// Handshake packets of the client, when the latest came, and those of them since an acknowledgement.
    from_client: usize,
    latest_from_client: Time,
    unacknowledged: usize,
    /// When the pacer lets the next datagram go, or would have: a timer that is set is not taken back.
    paced_until: Option<Time>,
    // The client.
    begun: Time,
    is_retried: bool,
    client_hello: usize,
    client_rest: usize,
    has_initial_keys: bool,
    largest: usize,
}

impl<'p> Ends<'p> {
    fn new(messages: Messages, path: &'p Path) -> Ends<'p> {
        let link = path.link.without_luck();
        let luck = |side| Seed(0).luck(0, side);
        let window = path.server_initcwnd as usize * path.quic.server_datagram;
        Ends {
            path,
            messages,
            pipes: [
                Pipe::new(&link.forward, luck(Server)),
                Pipe::new(&link.backward, luck(Client)),
            ],
            under_way: BinaryHeap::new(),
            datagrams: Vec::new(),
            now: Time(0),
            received: 0,
            sent: 0,
            is_validated: messages.address_validation.is_some(),
            is_retried: false,
            window,
            in_flight: 0,
            is_limited: false,
            has_hello: false,
            has_retry: false,
            has_retried: false,
            has_to_acknowledge: false,
            hello_sent: 0,
            rest_sent: 0,
            ids_left: CONNECTION_IDS,
            joined: 0,
            begun: Time(0),
            answered: None,
            initial_packets: Vec::new(),
            handshake_packets: Vec::new(),
            pacer: Pacer::new(path.quic.server_datagram, window, path.quic.initial_rtt),
            rtt: None,
            bundles_from: None,
            from_client: 0,
            latest_from_client: Time(0),
            unacknowledged: 0,
            paced_until: None,
            client_hello: 0,
            client_rest: 0,
            has_initial_keys: true,
            largest: 0,
        }
    }

    fn walk(mut self) -> Walk {
        match self.messages.address_validation {
            Some(AddressValidation::Retry) => {
                let hello = Hello::of(self.messages.client_hello);
                self.client_begins(hello, 0, |_, _| Carried::Unknown);
            }
            Some(AddressValidation::Token) | None => self.client_says_hello(),
        }
        while self.client_rest < self.messages.rest {
            let arrival = self.under_way.peek().map(|Reverse(next)| next.at);
            match (arrival, self.paced_until) {
                (Some(at), paced) if paced.is_none_or(|paced| at < paced + TIMER) => {
                    let Some(Reverse(next)) = self.under_way.pop() else {
                        break;
                    };
                    self.now = next.at;
                    self.arrives(next.carries);
                }
                (_, Some(paced)) => {
                    self.now = paced + TIMER;
                    self.paced_until = None;
                    self.transmit();
                }
                (_, None) => break,
            }
        }
        Walk {
            handshake: self.now.since(Time(0)),
            joined: self.joined,
            begun: self.begun.since(Time(0)),
            asked_again: self.messages.hello_retry_request > 0,
            answered: self
                .answered
                .map(|(left, comes)| (left.since(Time(0)), comes.since(Time(0)))),
            datagrams: self.datagrams,
            pipes: self.pipes,
        }
    }

    /// Has the client send its Initials, with a token of so many bytes, each as what it is if it is the last or not and
    /// acknowledges or not.
    fn client_begins(&mut self, hello: Hello, token: usize, carries: fn(bool, bool) -> Carried) {
        let size = self.path.quic.client_datagram;
        let mut left = hello.bytes;
        let mut acknowledges = hello.besides > 0;
        self.begun = self.now;
        for (crypto, _) in of_hello(hello, size, token) {
            left -= crypto;
            let carried = carries(left == 0, std::mem::take(&mut acknowledges));
            self.send(Client, size, crypto, carried);
        }
    }

    fn client_says(&mut self, hello: Hello) {
        self.client_begins(hello, self.messages.token, |is_last, acknowledges| {
            Carried::Hello {
                is_last,
                acknowledges,
            }
        });
    }

    fn client_says_hello(&mut self) {
        self.client_says(Hello::of(self.messages.client_hello));
    }

    /// Gives when it comes.
    fn send(
        &mut self,
        sender: Side,
        bytes: usize,
        crypto: usize,
        carries: Carried,
    ) -> Option<Time> {
        let number = self.datagrams.len();
        let fate = send(&mut self.pipes, self.now, sender, bytes);
        let at = match fate {
            Fate::Arrives(at) => Some(at),
            _ => None,
        };
        self.datagrams.push(Datagram {
            sender,
            sent: self.now.since(Time(0)),
            arrives: at.unwrap_or(self.now).since(Time(0)),
            bytes,
            crypto,
            held: None,
        });
        let at = at?;
        self.under_way.push(Reverse(Arrival {
            at,
            number,
            carries,
        }));
        Some(at)
    }

    fn arrives(&mut self, carries: Carried) {
        match carries {
            Carried::Unknown => {
                self.send(Server, RETRY + self.messages.token, 0, Carried::Retry);
            }
            // Later ones are dropped.
            Carried::Retry => {
                if !std::mem::replace(&mut self.is_retried, true) {
                    self.client_says_hello();
                }
            }
            // It has no keys for anything but Initials yet.
            Carried::HelloRetry => self.client_says(Hello {
                bytes: self.messages.second_client_hello,
                offset: self.messages.client_hello,
                besides: ack(0),
            }),
            Carried::Hello {
                is_last,
                acknowledges,
            } => {
                if self.received == 0 {
                    // The connection begins.
                    self.pacer.filled = self.now;
                }
                self.received += self.path.quic.client_datagram;
                let asks_again = self.messages.hello_retry_request > 0 && !self.has_retried;
                match (is_last, asks_again) {
                    (true, true) => self.has_retry = true,
                    (is_last, _) => self.has_hello |= is_last,
                }
                if acknowledges {
                    self.acknowledged(Level::Initial, 0);
                }
                self.has_to_acknowledge = true;
                self.transmit();
            }
            Carried::Server {
                hello,
                handshake,
                rest,
            } => self.client_takes(hello, handshake, rest),
            Carried::Acks {
                bytes,
                initial,
                handshake,
            } => {
                if handshake.is_some() {
                    self.is_validated = true;
                } else if !self.is_validated {
                    self.received += bytes;
                }
                if initial {
                    self.acknowledged(Level::Initial, 0);
                }
                if let Some(number) = handshake {
                    self.from_client += 1;
                    self.latest_from_client = self.now;
                    self.unacknowledged += 1;
                    // The client has no Initial keys any more, and neither has the server (RFC 9001, 4.9.1).
                    for packet in std::mem::take(&mut self.initial_packets) {
                        self.in_flight -= if packet.is_there { packet.bytes } else { 0 };
                    }
                    self.acknowledged(Level::Handshake, number);
                }
                self.transmit();
            }
        }
    }

    /// The client has a datagram, and acknowledges what is in it.
    fn client_takes(&mut self, hello: usize, handshake: Option<usize>, rest: usize) {
        self.client_hello += hello;
        self.client_rest += rest;
        if self.client_rest >= self.messages.rest {
            return;
        }
        // Without the whole ServerHello there are no keys for what joins it.
        let handshake = handshake.filter(|_| self.client_hello >= self.messages.server_hello);
        let initial = hello > 0 && self.has_initial_keys;
        if let Some(number) = handshake {
            self.has_initial_keys = false;
            self.largest = self.largest.max(number);
        }
        let bytes = match (initial, handshake) {
            (true, _) => self.path.quic.client_datagram,
            (false, Some(_)) => LONG_HEADER + ack(self.largest) + TAG,
            (false, None) => return,
        };
        self.send(
            Client,
            bytes,
            0,
            Carried::Acks {
                bytes,
                initial,
                handshake,
            },
        );
    }

    /// The server learns that packets of a level have come, up to one of them. Initial packets are acknowledged all together.
    fn acknowledged(&mut self, level: Level, number: usize) {
        let (packets, range) = match level {
            Level::Initial => {
                let first = self
                    .initial_packets
                    .iter()
                    .position(|packet| packet.is_there);
                (&mut self.initial_packets, first)
            }
            Level::Handshake => (&mut self.handshake_packets, Some(number)),
        };
        let Some(packet) = range.and_then(|number| packets.get_mut(number)) else {
            return;
        };
        if !std::mem::take(&mut packet.is_there) {
            return;
        }
        let sample = self.now.since(packet.sent);
        self.in_flight -= packet.bytes;
        if !self.is_limited {
            self.window += packet.bytes;
        }
        // RFC 9002, 5.3.
        self.rtt = Some(
            self.rtt
                .map_or(sample, |smoothed| (smoothed * 7 + sample) / 8),
        );
    }

    /// Notes why the server sends no more after its last datagram: what came first, but for the pacer, which ends no flight.
    fn hold(&mut self, hold: Hold) {
        let mut sent = self.datagrams.iter_mut().rev();
        let last = sent.find(|datagram| datagram.sender == Server);
        if let Some(last) = last.filter(|last| !last.waits()) {
            last.held = Some(hold);
        }
    }

    /// Has the server send what it may.
    fn transmit(&mut self) {
        let size = self.path.quic.server_datagram;
        loop {
            let has_initial =
                self.has_retry || self.has_hello && self.hello_sent < self.messages.server_hello;
            let has_rest = self.has_hello && self.rest_sent < self.messages.rest;
            let has_ids = self.has_hello && !has_rest && !has_initial && self.ids_left > 0;
            if !(has_initial || has_rest || has_ids || self.has_to_acknowledge) {
                self.is_limited = true;
                return;
            }
            if !self.is_validated && self.sent >= 3 * self.received.saturating_sub(UNCREDITED) {
                self.is_limited = true;
                if has_initial || has_rest {
                    self.hold(Hold::Credit);
                }
                return;
            }
            if has_initial || has_rest || has_ids {
                if self.in_flight + size >= self.window {
                    self.is_limited = false;
                    // An acknowledgement alone may leave.
                    if !self.has_to_acknowledge {
                        if has_initial || has_rest {
                            self.hold(Hold::Window);
                        }
                        return;
                    }
                } else {
                    let rtt = self.rtt.unwrap_or(self.path.quic.initial_rtt);
                    if let Some(until) = self.pacer.hold(self.now, size, self.window, rtt) {
                        self.is_limited = false;
                        self.paced_until = Some(until);
                        if has_initial || has_rest {
                            self.hold(Hold::Pacer);
                        }
                        return;
                    }
                }
            }
            self.transmit_one(size);
        }
    }

    /// A datagram of the server's, which has something to say.
    fn transmit_one(&mut self, size: usize) {
        let (mut bytes, mut hello, mut rest, mut handshake) = (0, 0, 0, None);
        let acknowledges = std::mem::take(&mut self.has_to_acknowledge);
        let besides = LONG_HEADER + NO_TOKEN + TAG + if acknowledges { ack(0) } else { 0 };
        let left = self.messages.server_hello - self.hello_sent;
        let before = self.messages.hello_retry_request;
        let is_retry = std::mem::take(&mut self.has_retry);
        if is_retry {
            self.has_retried = true;
            hello = before;
            bytes = besides + crypto(0, hello);
        } else if self.has_hello && left > 0 {
            let offset = before + self.hello_sent;
            hello = fits(size, besides, offset, left);
            bytes = besides + crypto(offset, hello);
            self.hello_sent += hello;
        } else if acknowledges {
            bytes = besides;
        }
        let is_padded = hello > 0;
        let left = self.messages.rest - self.rest_sent;
        let is_next = self.has_hello && self.hello_sent == self.messages.server_hello;
        let mut initial = bytes;
        let mut last = 0;
        let mut acknowledges_handshake = false;
        if is_next && left > 0 && (bytes == 0 || size - bytes >= LEAST_ROOM) {
            let mut besides = LONG_HEADER + TAG;
            // With its delay in units of 8 µs (RFC 9000, 18.2 and 19.3).
            let delay = self.now.since(self.latest_from_client).as_micros() / 8;
            let largest = self.from_client.saturating_sub(1);
            let acks = ack(largest) - 1 + varint(usize::try_from(delay).unwrap_or(usize::MAX));
            // Of what asks for none, when there is more of it than this.
            let is_due = self.unacknowledged > LAZY_ACK;
            besides += if is_due { acks } else { 0 };
            rest = fits(size - bytes, besides, self.rest_sent, left);
            last = besides + crypto(self.rest_sent, rest);
            let bundles = self.bundles_from.is_some_and(|from| from <= self.now);
            let has_room = size - bytes - last >= acks;
            let is_bundled = !is_due && bundles && self.from_client > 0 && has_room;
            last += if is_bundled { acks } else { 0 };
            acknowledges_handshake = is_due || is_bundled;
            bytes += last;
            self.rest_sent += rest;
            handshake = Some(self.handshake_packets.len());
        }
        let is_whole = is_next && self.rest_sent == self.messages.rest && self.ids_left > 0;
        let mut ids = 0;
        if is_whole && (bytes == 0 || size - bytes >= LEAST_ROOM) {
            let room = (size - bytes).saturating_sub(SHORT_HEADER + TAG);
            let given = (0..self.ids_left)
                .take_while(|given| given * CONNECTION_ID + CONNECTION_ID_BOUND < room)
                .count();
            self.ids_left -= given;
            ids = SHORT_HEADER + given * CONNECTION_ID + TAG;
            bytes += ids;
        }
        // It joins the connection IDs. What acknowledges the early data comes later.
        let response = self.messages.early_response;
        let mut is_joined = false;
        if ids > 0 && response > 0 && self.joined == 0 && size - bytes > STREAM_BOUND {
            self.joined = (size - bytes - 2 - varint(response)).min(response);
            bytes += stream(self.joined);
            ids += stream(self.joined);
            is_joined = true;
        }
        // The last packet has the padding.
        if is_padded && bytes < size {
            let padding = size - bytes;
            match (ids, handshake) {
                (1.., _) => ids += padding,
                (0, Some(_)) => last += padding,
                (0, None) => initial += padding,
            }
            bytes = size;
        }
        if acknowledges_handshake {
            self.unacknowledged = 0;
        }
        if acknowledges || acknowledges_handshake {
            // Longer than the other end takes to answer one.
            let rtt = self.rtt.unwrap_or(self.path.quic.initial_rtt);
            self.bundles_from = Some(self.now + rtt + ACK_DELAY + GRANULARITY);
        }
        let packet = |bytes| Packet {
            bytes,
            sent: self.now,
            is_there: true,
        };
        // What acknowledges alone is neither in flight nor paced.
        let initial = if hello > 0 { initial } else { 0 };
        if hello > 0 {
            self.initial_packets.push(packet(initial));
            self.in_flight += initial;
        }
        if handshake.is_some() {
            self.handshake_packets.push(packet(last));
            self.in_flight += last;
        }
        self.in_flight += ids;
        self.sent += bytes;
        self.pacer.spend(initial + last + ids);
        let comes = self.send(
            Server,
            bytes,
            hello + rest,
            if is_retry {
                Carried::HelloRetry
            } else {
                Carried::Server {
                    hello,
                    handshake,
                    rest,
                }
            },
        );
        if is_joined {
            self.answered = comes.map(|comes| (self.now, comes));
        }
    }
}

#[derive(Clone, Copy)]
enum Level {
    Initial,
    Handshake,
}

fn send(pipes: &mut [Pipe; 2], now: Time, sender: Side, bytes: usize) -> Fate {
    pipes[sender as usize].send(now, HEADERS + bytes, PacketKey::datagram(0))
}

/// What holds datagrams back so that a window leaves in 0.8 round trips, in bytes (quinn's `pacing.rs`).
struct Pacer {
    size: u64,
    capacity: u64,
    tokens: u64,
    window: u64,
    filled: Time,
}

impl Pacer {
    fn new(size: usize, window: usize, rtt: Duration) -> Pacer {
        let (size, window) = (size as u64, window as u64);
        let capacity = capacity(size, window, rtt);
        Pacer {
            size,
            capacity,
            tokens: capacity,
            window,
            filled: Time(0),
        }
    }

    /// Until when a datagram has to wait, if it has to.
    fn hold(&mut self, now: Time, bytes: usize, window: usize, rtt: Duration) -> Option<Time> {
        let (bytes, window) = (bytes as u64, window as u64);
        if window != self.window {
            self.capacity = capacity(self.size, window, rtt);
            self.tokens = self.tokens.min(self.capacity);
            self.window = window;
        }
        if self.tokens >= bytes || rtt.is_zero() {
            return None;
        }
        let rounds = now.since(self.filled).as_secs_f64() / rtt.as_secs_f64();
        let new = (window as f64 * 1.25 * rounds) as u64;
        self.tokens = self.tokens.saturating_add(new).min(self.capacity);
        self.filled = now;
        if self.tokens >= bytes {
            return None;
        }
        let missing = bytes.max(self.capacity) - self.tokens;
        let unscaled = u32::try_from(missing)
            .ok()
            .and_then(|missing| rtt.checked_mul(missing));
        let unscaled = unscaled.unwrap_or(Duration::MAX) / u32::try_from(window).ok()?.max(1);
        Some(now + (unscaled / 5) * 4)
    }

    fn spend(&mut self, bytes: usize) {
        self.tokens = self.tokens.saturating_sub(bytes as u64);
    }
}

/// What may leave at once: what a window gives in 2 ms, but ten datagrams at least and 256 at most.
fn capacity(size: u64, window: u64, rtt: Duration) -> u64 {
    const BURST: u128 = 2_000_000;
    let burst = u128::from(window) * BURST / rtt.as_nanos().max(1);
    let burst = u64::try_from(burst).unwrap_or(u64::MAX);
    burst.clamp(10 * size, 256 * size)
}

/// Why arithmetic does not follow the handshake of a connection over QUIC, if it does not.
#[must_use]
pub fn unfollowed(exchange: &Exchange, path: &Path) -> Option<Reason> {
    unfollowed_walk(exchange, &walk(Messages::of(exchange), path), path)
}

fn unfollowed_walk(exchange: &Exchange, walked: &Walk, path: &Path) -> Option<Reason> {
    let messages = Messages::of(exchange);
    let token = messages.token;
    let hello = initials(messages.client_hello, path.quic.client_datagram, token);
    let by = |side| {
        walked
            .datagrams
            .iter()
            .filter(move |sent| sent.sender == side)
    };
    let overflows = |side, pipe: &Direction| by(side).count() > pipe.queue as usize;
    match path.quic.congestion {
        QuicCongestion::Bbr => Some(Reason::Bbr),
        QuicCongestion::ByLoss
            if overflows(Client, &path.link.forward) || overflows(Server, &path.link.backward) =>
        {
            Some(Reason::QueueOverflow)
        }
        // quinn sends while less than all of it is under way.
        QuicCongestion::ByLoss if path.client_initcwnd as usize <= hello => {
            Some(Reason::ClientWindow)
        }
        // Timers that are as short as a round trip have ends send again what is under way.
        QuicCongestion::ByLoss if path.quic.initial_rtt <= path.link.rtt() => Some(Reason::Paced),
        QuicCongestion::ByLoss => None,
    }
}

/// When what happens on a connection over QUIC: as [`timeline`](crate::timeline) of one over TCP.
#[must_use]
pub fn timeline(exchange: &Exchange, path: &Path) -> Timeline {
    let messages = Messages::of(exchange);
    let mut walked = walk(messages, path);
    let compute = &path.compute;
    let answered = compute.client_hello + compute.server_flight;
    let requests = exchange.requests.as_deref();
    let response = exchange
        .response
        .as_ref()
        .map_or(0, |response| response.payload);
    let first = requests.and_then(|requests| requests.first.as_ref());
    let request = first.map_or(0, |request| request.payload);
    let early = requests.and_then(|requests| requests.early.as_ref());
    let early = early.map(|early| early.payload);
    let (of_request, request_bytes, asked) = walked.request(messages, request, path);
    let (of_response, response_bytes, answer) = walked.response(asked, response, path);
    let (of_request, asked, of_response, answer) = match (early, walked.answered) {
        (Some(early), Some((asked, answer))) if joins_hello(messages, early, path) => (
            1,
            asked,
            1 + (response - walked.joined).div_ceil(path.quic.server_datagram),
            answer,
        ),
        // What does not join it comes while the server answers.
        (Some(_), _) => (2, walked.handshake, 1, walked.handshake),
        (None, _) => (of_request, asked, of_response, answer),
    };
    let handshake = walked.handshake + answered + compute.client_finish;
    let besides = answered + compute.client_finish;
    let ttfb = (response > 0).then(|| answer + besides + compute.response);
    let rounds = requests.map_or(0, |requests| requests.later);
    let think = requests.map_or(Duration::ZERO, |requests| requests.think);
    // At least as many round trips as a window that doubles would take.
    let more = flights_needed(response, path.quic.server_datagram, path.server_initcwnd);
    let more =
        path.link.rtt() * more.saturating_sub(1) + Duration::from_nanos(u64::from(of_response > 1));
    let ttlb = match (response, requests.map_or(0, |requests| requests.body)) {
        (0, 0) => handshake,
        (0, _) => asked + besides,
        _ => answer + besides + compute.response + more + (path.link.rtt() + think) * rounds,
    };
    let is_short = of_request <= 1 && of_response <= 1 && rounds == 0;
    let unfollowed = unfollowed_walk(exchange, &walked, path);
    // A request that doesn't join the hello comes while the server answers, and one before a second hello is sent for nothing.
    let is_apart = early.is_some() && (walked.asked_again || of_request > 1 || request > 0);
    let until = if unfollowed.is_some() || is_apart {
        Some(Duration::ZERO)
    } else if is_short {
        None
    } else if of_request > 1 {
        Some(handshake)
    } else {
        Some(ttfb.unwrap_or(handshake))
    };
    let mut flights = flights(&walked, path, answered);
    let later = |sender, start, segments: usize, bytes| Flight {
        sender,
        start,
        segments: u32::try_from(segments).unwrap_or(u32::MAX),
        bytes,
        cwnd: path.server_initcwnd,
    };
    flights.push(later(Client, handshake, of_request, request_bytes));
    if response > 0 && of_response <= 1 {
        let start = asked + besides + compute.response;
        flights.push(later(Server, start, of_response, response_bytes));
    }
    Timeline {
        connect: None,
        handshake,
        ttfb,
        ttlb,
        flights,
        limit: until.map(|until| Limit {
            until,
            reason: unfollowed.unwrap_or(Reason::Paced),
        }),
    }
}

impl Walk {
    /// What the server sends before it waits for the client, flight by flight: those of [`timeline`].
    #[must_use]
    pub fn server_flights(&self, path: &Path) -> Vec<ServerFlight> {
        let mut flights: Vec<ServerFlight> = Vec::new();
        let sent = self.datagrams.iter();
        let numbered = (1..).zip(sent.filter(|datagram| datagram.sender == Server));
        for (number, datagram) in numbered.filter(|(_, datagram)| datagram.crypto > 0) {
            match flights.last_mut() {
                Some(flight)
                    if flight.goes_on(datagram, path) && !self.is_anew(flight, datagram) =>
                {
                    flight.datagrams.push((number, *datagram));
                }
                _ => flights.push(ServerFlight {
                    datagrams: vec![(number, *datagram)],
                }),
            }
        }
        flights
    }

    /// Whether the client has been asked for another hello between both.
    fn is_anew(&self, flight: &ServerFlight, datagram: &Datagram) -> bool {
        let begun = flight.datagrams.first().map(|(_, first)| first.sent);
        self.asked_again
            && begun.is_some_and(|begun| begun <= self.begun && datagram.sent > self.begun)
    }

    /// How many datagrams a request takes with the client's last messages, their bytes, and when the last of them is there.
    fn request(
        &mut self,
        messages: Messages,
        request: usize,
        path: &Path,
    ) -> (usize, usize, Duration) {
        let size = path.quic.client_datagram;
        let finish = LONG_HEADER + ack(0) + crypto(0, messages.finish) + TAG;
        let request = if request > 0 { stream(request) } else { 0 };
        let ids = CONNECTION_IDS * CONNECTION_ID;
        let all = finish + SHORT_HEADER + ids + request + TAG;
        (
            all.div_ceil(size),
            all,
            self.arrive(Client, self.handshake, all, size),
        )
    }

    /// The same of a response that leaves at that moment.
    fn response(
        &mut self,
        start: Duration,
        response: usize,
        path: &Path,
    ) -> (usize, usize, Duration) {
        let size = path.quic.server_datagram;
        let all = SHORT_HEADER + DONE + stream(response) + TAG;
        (
            all.div_ceil(size),
            all,
            self.arrive(Server, start, all.min(size), size),
        )
    }

    /// When the last of so many bytes is there, in datagrams of a size.
    fn arrive(&mut self, sender: Side, start: Duration, bytes: usize, size: usize) -> Duration {
        let now = Time(u64::try_from(start.as_nanos()).unwrap_or(u64::MAX));
        let mut last = start;
        let mut left = bytes;
        while left > 0 {
            let datagram = left.min(size);
            left -= datagram;
            if let Fate::Arrives(at) = send(&mut self.pipes, now, sender, datagram) {
                last = at.since(Time(0));
            }
        }
        last
    }
}

/// Whether early data of so many bytes joins the ClientHello's last datagram.
fn joins_hello(messages: Messages, early: usize, path: &Path) -> bool {
    let size = path.quic.client_datagram;
    let last = of_hello(Hello::of(messages.client_hello), size, messages.token).last();
    let room = last.map_or(0, |(_, room)| room);
    room >= LEAST_ROOM && LONG_HEADER + stream(early) + TAG <= room
}

impl Datagram {
    /// Whether the next one waits for the client.
    fn waits(&self) -> bool {
        matches!(self.held, Some(Hold::Credit | Hold::Window))
    }

    /// Whether the server waited for the client before it, by half of a round trip at least: acknowledgements that come one by
    /// one let one datagram go each. `last` is the one before.
    fn begins_flight(&self, start: Duration, last: &Datagram, path: &Path) -> bool {
        last.waits() && self.sent - start >= path.link.rtt() / 2
    }
}

/// What each end sends before it waits for the other, acknowledgements and Retry packets aside. Behind those the client says hello
/// a second time.
fn flights(walked: &Walk, path: &Path, answered: Duration) -> Vec<Flight> {
    let flight = |sender, sent: Duration, late, datagrams: usize, bytes| Flight {
        sender,
        start: sent + late,
        segments: u32::try_from(datagrams).unwrap_or(u32::MAX),
        bytes,
        cwnd: path.server_initcwnd,
    };
    let hello = |begun: Duration| {
        let sent = walked.datagrams.iter();
        let sent = sent.filter(|sent| sent.sender == Client && sent.crypto > 0);
        let (count, bytes) = sent
            .filter(|sent| sent.sent == begun)
            .fold((0, 0), |(count, bytes), hello| {
                (count + 1, bytes + hello.bytes)
            });
        flight(Client, begun, path.compute.client_hello, count, bytes)
    };
    let again = (!walked.begun.is_zero()).then(|| hello(walked.begun));
    let server = walked.server_flights(path).into_iter();
    let server = server.filter_map(|sent| {
        let (_, first) = sent.datagrams.first()?;
        let (count, bytes) = (sent.datagrams.len(), sent.bytes());
        Some(flight(Server, first.sent, answered, count, bytes))
    });
    let mut flights: Vec<Flight> = std::iter::once(hello(Duration::ZERO))
        .chain(again)
        .chain(server)
        .collect();
    // The server's HelloRetryRequest comes before the second hello.
    flights.sort_by_key(|flight| flight.start);
    flights
}

#[cfg(test)]
mod tests;
