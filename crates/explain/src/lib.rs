//! What an arm costs by arithmetic alone: which message ends in which flight, how far the next edge is, and what
//! to cut. Nothing is made, sent or measured, so it takes milliseconds.

pub mod chains;
mod cuts;
mod drawing;
mod edges;
pub mod geography;
pub mod load;
pub mod plan;
pub mod response;
pub mod search;
mod seen;
pub mod site;
mod suppose;
#[cfg(test)]
mod tests;
mod wire;

pub use cuts::Cut;
pub use drawing::Step;
pub use edges::{Edge, Edges};
pub use response::payload;
pub use seen::{
    SUPPOSED, USUAL_GROUP, group, initial_window, retried, supposed_rate, tickets, with_retry,
};
pub use suppose::{Supposition, handshake_flights, supposed, supposed_own, suppositions};
pub use wire::{ByChance, OwnChain, Signature, Unknown, wire, wire_of_own, wire_with};
pub(crate) use wire::{check_over, with_messages, without_certificates};

use std::fmt;
use std::time::Duration;

use lastbyte_exchange::{Exchange, HandshakeFlight, Transport};
use lastbyte_flights::quic::{Hold, initials};
use lastbyte_flights::{Compute, Flight, Timeline, around};
use lastbyte_link::{Bytes, Direction, Link, Side};
use lastbyte_sizes::{Message, framing};
use thiserror::Error;

use lastbyte_results::{buffers_change_no_packet, expected, quic_flights};
use lastbyte_study::{
    Arm, Cell, Congestion, IN_PIECES, Preset, ReceiveBuffer, TransportName, Work,
};
use wire::Sizes;

/// What arithmetic says of an arm over some networks.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The arm.
    pub arm: Arm,
    /// What it puts on the wire.
    pub exchange: Exchange,
    /// What the end-entity's key makes.
    pub signature: Signature,
    /// The handshake, for each way of hosts and windows, in the order of the cells.
    pub windows: Vec<Window>,
    /// What would make it smaller.
    pub cuts: Vec<Cut>,
    /// What could be otherwise around the chain, with the windows and hosts of [`windows`](Explanation::windows).
    pub supposed: Vec<Supposition>,
    /// When what happens, in each cell.
    pub times: Vec<(Cell, Timeline)>,
    /// Which chains of a table need how many flights in place of the arm's own, if that was asked.
    pub chain_shares: Option<chains::ChainShares>,
}

/// A handshake with the windows and hosts of some cells.
#[derive(Clone, Debug)]
pub struct Window {
    /// The windows and hosts, without data, over a link of its own.
    pub cell: Cell,
    /// The client's first flight.
    pub client_hello: HelloEdge,
    /// The server's flights.
    pub flights: Vec<ServerFlight>,
    /// How far it is to one flight more, and to one less.
    pub edges: Edges,
    /// The server's flights where all that varies by chance is as long as it can be: its signature, and what QUIC reserves.
    pub most_flights: usize,
    /// The smallest initial window with which there is a flight less, if any up to 1000 segments saves one.
    pub larger_window: Option<LargerWindow>,
    /// What that saves of the handshake over each link that was asked for, with the link's RTT, as far as it is modelled.
    pub saved: Vec<(Duration, Duration)>,
}

/// How far a ClientHello is from taking a segment more; a datagram, over QUIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HelloEdge {
    /// Segments that it takes.
    pub segments: usize,
    /// Bytes that still fit the last of them.
    pub room: usize,
    /// Bytes of which there would have to be fewer for one segment less; none if it takes one.
    pub excess: Option<usize>,
}

impl HelloEdge {
    fn new(bytes: usize, mss: usize) -> HelloEdge {
        let segments = bytes.div_ceil(mss.max(1));
        HelloEdge {
            segments,
            room: segments * mss - bytes,
            excess: (segments > 1).then(|| bytes - (segments - 1) * mss),
        }
    }

    /// Of one in Initials of datagrams of a size, each with a token of so many bytes.
    fn of_initials(bytes: usize, datagram: usize, token: usize) -> HelloEdge {
        let needed = |bytes| initials(bytes, datagram, token);
        let found = around(bytes, [0, framing::MAX_MESSAGE], datagram, needed);
        HelloEdge {
            segments: found.flights,
            room: found.above.map_or(0, |most| most - bytes),
            excess: (found.below)
                .filter(|_| found.flights > 1)
                .map(|most| bytes - most),
        }
    }
}

/// What a server sends of a handshake before it must wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerFlight {
    /// Segments; datagrams, over QUIC.
    pub segments: u32,
    /// Bytes of payload; of UDP, over QUIC.
    pub bytes: usize,
    /// The messages that end in it, each with its segment, counted from 1 in what the server sends at once; over QUIC with its
    /// datagram, counted from 1 in all that it sends.
    pub messages: Vec<(Message, usize)>,
    /// What ends it over QUIC; none of the last.
    pub held: Option<Hold>,
}

/// The server's messages in their order.
pub const SERVER_MESSAGES: [Message; 5] = Message::SERVER_FLIGHT;

/// Explains an arm over these cells, which must pass [`check`].
///
/// # Errors
///
/// [`Unknown`] where arithmetic does not know what the arm puts on the wire.
pub fn explain(arm: &Arm, cells: &[Cell]) -> Result<Explanation, Unknown> {
    explain_sizes(arm, Sizes::Made(wire::made(arm)?), cells)
}

/// The same where the arm's chain is the user's own, of these sizes.
///
/// # Errors
///
/// As [`explain`].
pub fn explain_own(arm: &Arm, own: &OwnChain, cells: &[Cell]) -> Result<Explanation, Unknown> {
    explain_sizes(arm, Sizes::Own(own), cells)
}

fn explain_sizes(arm: &Arm, chain: Sizes<'_>, cells: &[Cell]) -> Result<Explanation, Unknown> {
    for cell in cells {
        check_over(arm, cell)?;
    }
    let wire = wire::wire_of(arm, chain)?;
    if wire.failed.is_some() {
        return Err(wire::one_connection(arm));
    }
    let signature = chain.signature();
    let mut probes: Vec<Cell> = Vec::new();
    for cell in cells {
        let probe = probe(cell);
        if !probes.contains(&probe) {
            probes.push(probe);
        }
    }
    let times = cells
        .iter()
        .map(|cell| (cell.clone(), walk(arm, &wire, cell)));
    Ok(Explanation {
        times: times.collect(),
        cuts: cuts::cuts(arm, chain, &wire, &probes),
        supposed: suppositions(arm, &probes),
        windows: (probes.into_iter())
            .map(|cell| Window::new(arm, &wire, signature, cell, cells))
            .collect(),
        arm: arm.clone(),
        exchange: wire,
        signature,
        chain_shares: None,
    })
}

/// Arithmetic does not walk through a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{what}: leave it out, or measure with `lastbyte compare`")]
pub struct NotWalked {
    /// What it does not know.
    pub what: &'static str,
}

/// Whether arithmetic goes as far as this cell.
///
/// # Errors
///
/// What it does not know, with the hint.
pub fn check(cell: &Cell) -> Result<(), NotWalked> {
    let what = match cell {
        _ if cell.has_loss() => "loss is luck (--loss 0%)",
        _ if cell.has_trace() => "where a connection begins in a trace is luck (--trace none)",
        _ if cell.has_qdisc() => "queue disciplines are not walked through (--qdisc none)",
        _ if !cell.crowd.is_alone() => {
            "what else is on the link is not walked through (--cross-traffic none, --at-once 1)"
        }
        _ if cell.has_jitter() => "jitter is luck (--jitter 0ms)",
        _ if cell.congestion == Congestion::Bbr => "BBR is no slow start",
        _ if cell.has_super_packets() => "super-packets are not walked through",
        _ if !cell.hosts.receive_buffer.is_walked() => {
            "acknowledgements that wait ever longer are not walked through (--receive-buffer 48KiB or more)"
        }
        _ => return Ok(()),
    };
    Err(NotWalked { what })
}

/// Whether an arm's connections in a cell are the same to the packet and the nanosecond, whether hosts have Linux's own
/// buffers or large ones: of one download at most, without loss and jitter, as far as arithmetic goes. Where it does
/// not, nobody knows. Where the arm's chain is the user's own, `own` has its sizes.
pub fn buffers_change_nothing(arm: &Arm, own: Option<&OwnChain>, cell: &Cell) -> bool {
    let Work {
        upload, requests, ..
    } = cell.work();
    let is_walked = arm.transport == TransportName::Tcp
        && cell.preset == Preset::Network
        && cell.population.is_none()
        && cell.page.is_none()
        && requests <= 1
        && upload == Bytes(0)
        && cell.hosts.receive_buffer == ReceiveBuffer::Unset
        && check(cell).is_ok();
    let sizes = match (own, wire::made(arm)) {
        (Some(own), _) => Sizes::Own(own),
        (None, Ok(spec)) => Sizes::Made(spec),
        (None, Err(_)) => return false,
    };
    let (true, Ok(wire)) = (is_walked, wire::wire_of(arm, sizes)) else {
        return false;
    };
    let Signature { bytes, longest, .. } = sizes.signature();
    // Each byte less than that is rarer by two orders of magnitude.
    let shortest = bytes.saturating_sub(4 * (longest - bytes));
    let certificate = wire.bytes(Message::Certificate) as usize;
    (shortest..=longest).all(|signature| {
        let verify = framing::certificate_verify(signature);
        let wire = self::wire::with(&wire, certificate, verify);
        buffers_change_no_packet(&wire, cell, arm.record_size)
    })
}

/// A handshake alone, with the windows and hosts of a cell. How far flights are apart decides nothing, as long as they
/// are.
fn probe(cell: &Cell) -> Cell {
    const RTT: Duration = Duration::from_millis(100);
    let usual = Cell::default();
    Cell {
        link: Link::symmetric(RTT, Direction::default()),
        link_name: None,
        data: Bytes(0),
        upload: Bytes(0),
        requests: usual.requests,
        think: usual.think,
        ..cell.clone()
    }
}

/// A message of the server with its records, and the change_cipher_spec that follows its first hello. Over QUIC, which has
/// neither, the message alone.
pub fn message_on_wire(wire: &Exchange, message: Message) -> u32 {
    if wire.transport.quic().is_some() {
        return wire.bytes(message);
    }
    let own = message.wire_bytes(wire.bytes(message) as usize);
    let has_retried = wire.sent(HandshakeFlight::HelloRetryRequest) > 0;
    match message {
        Message::ServerHello if !has_retried => (own + framing::CHANGE_CIPHER_SPEC) as u32,
        _ => own as u32,
    }
}

fn walk(arm: &Arm, wire: &Exchange, cell: &Cell) -> Timeline {
    expected(wire, cell, arm.record_size, Compute::default())
}

/// How many flights the server needs for a handshake.
fn flights(arm: &Arm, wire: &Exchange, cell: &Cell) -> usize {
    walk(arm, wire, cell).handshake_flights()
}

impl Window {
    fn new(arm: &Arm, wire: &Exchange, signature: Signature, cell: Cell, cells: &[Cell]) -> Window {
        let longest = self::wire::longest(wire, signature);
        let hello = wire.carried(HandshakeFlight::ClientHello) as usize;
        let larger_window = LargerWindow::new(arm, wire, &cell);
        let at_once = larger_window.map(|window| window.at_once);
        let saved = at_once.into_iter().flat_map(|initcwnd| {
            let over = cells.iter().filter(|over| probe(over) == cell);
            over.filter_map(move |over| {
                let larger = Cell {
                    initcwnd,
                    ..over.clone()
                };
                let [now, then] = [over, &larger].map(|cell| {
                    let walked = walk(arm, wire, cell);
                    walked.modelled(walked.handshake)
                });
                Some((now?.saturating_sub(then?), over.link.rtt()))
            })
        });
        Window {
            saved: saved.collect(),
            client_hello: match &wire.transport {
                Transport::Tcp(_) => HelloEdge::new(hello, cell.hosts.mss()),
                Transport::Quic(quic) => {
                    let token = quic.token_bytes.unwrap_or(0) as usize;
                    HelloEdge::of_initials(hello, cell.quic.client_datagram.into(), token)
                }
            },
            flights: server_flights(wire, &walk(arm, wire, &cell), &cell),
            edges: Edges::new(arm, wire, &cell),
            most_flights: flights(arm, &longest, &cell),
            larger_window,
            cell,
        }
    }
}

/// The smallest initial window with which the server of this arm needs a flight less than with this cell's; none where it needs one
/// as it is, or where arithmetic does not know what is on the wire.
pub fn window_that_saves(arm: &Arm, cell: &Cell) -> Option<LargerWindow> {
    window_that_saves_of(arm, &wire(arm).ok()?, cell)
}

/// The same of what is known to be on the wire.
pub fn window_that_saves_of(arm: &Arm, wire: &Exchange, cell: &Cell) -> Option<LargerWindow> {
    LargerWindow::new(arm, wire, &probe(cell))
}

/// The smallest initial windows with which a server needs a flight less, in segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LargerWindow {
    /// Of one that writes its handshake at once.
    pub at_once: u32,
    /// Of one that writes it in pieces, as nginx does ([`IN_PIECES`]).
    pub in_pieces: u32,
}

impl LargerWindow {
    fn new(arm: &Arm, wire: &Exchange, cell: &Cell) -> Option<LargerWindow> {
        const MOST: u32 = 1000;
        let now = flights(arm, wire, cell);
        let with = |initcwnd| Cell {
            initcwnd,
            ..cell.clone()
        };
        let saves = |wire: &Exchange, window: &u32| flights(arm, wire, &with(*window)) < now;
        let mut larger = cell.initcwnd + 1..=MOST;
        // One flight is the least, whatever the window.
        let at_once = larger.find(|window| now > 1 && saves(wire, window))?;
        let verify = wire.bytes(Message::CertificateVerify) as usize;
        let certificate = wire.bytes(Message::Certificate) as usize + IN_PIECES;
        let longer = self::wire::with(wire, certificate.min(framing::MAX_MESSAGE), verify);
        let in_pieces = if arm.server.is_foreign() || arm.transport == TransportName::Quic {
            None
        } else {
            (at_once..=MOST).find(|window| saves(&longer, window))
        };
        Some(LargerWindow {
            at_once,
            in_pieces: in_pieces.unwrap_or(at_once),
        })
    }

    /// `the first window is 12 segments (nginx: 13)`, as what is supposed of an arm over a transport.
    pub fn supposed(self, transport: TransportName) -> String {
        let nginx = self.of_nginx();
        let packet = transport.packet();
        format!("the first window is {} {packet}s{nginx}", self.at_once)
    }

    /// ` (nginx: 13)`, where that is another.
    fn of_nginx(self) -> String {
        if self.in_pieces == self.at_once {
            String::new()
        } else {
            format!(" (nginx: {})", self.in_pieces)
        }
    }
}

/// `12`, or `12 (nginx: 13)`.
impl fmt::Display for LargerWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.at_once, self.of_nginx())
    }
}

/// Where each message of the server ends.
fn server_flights(wire: &Exchange, timeline: &Timeline, cell: &Cell) -> Vec<ServerFlight> {
    match wire.transport {
        Transport::Tcp(_) => segment_flights(wire, timeline, cell.hosts.mss()),
        Transport::Quic(_) => datagram_flights(wire, cell),
    }
}

fn datagram_flights(wire: &Exchange, cell: &Cell) -> Vec<ServerFlight> {
    let mut end = 0;
    let messages = [Message::HelloRetryRequest]
        .into_iter()
        .chain(SERVER_MESSAGES);
    let sent = messages.filter(|message| wire.bytes(*message) > 0);
    let ends: Vec<(Message, usize)> = sent
        .map(|message| {
            end += wire.bytes(message) as usize;
            (message, end)
        })
        .collect();
    let mut sent = 0;
    let flights = quic_flights(wire, cell).into_iter();
    let flights = flights.map(|flight| {
        let mut messages = Vec::new();
        for (number, datagram) in &flight.datagrams {
            let before = sent;
            sent += datagram.crypto;
            let here = ends.iter();
            let here = here.filter(|(_, end)| (before + 1..=sent).contains(end));
            messages.extend(here.map(|(message, _)| (*message, *number)));
        }
        ServerFlight {
            segments: u32::try_from(flight.datagrams.len()).unwrap_or(u32::MAX),
            bytes: flight.bytes(),
            messages,
            held: flight.held(),
        }
    });
    flights.collect()
}

fn segment_flights(wire: &Exchange, timeline: &Timeline, mss: usize) -> Vec<ServerFlight> {
    let mut ends = Vec::new();
    let retry = wire.sent(HandshakeFlight::HelloRetryRequest) as usize;
    if retry > 0 {
        ends.push((Message::HelloRetryRequest, retry, 1));
    }
    let mut end = 0;
    for message in SERVER_MESSAGES {
        end += message_on_wire(wire, message) as usize;
        ends.push((message, retry + end, end.div_ceil(mss)));
    }
    let mut sent = 0;
    let is_handshake =
        |flight: &&Flight| flight.sender == Side::Server && flight.start < timeline.handshake;
    let server = timeline.flights.iter().filter(is_handshake);
    let flights = server.map(|flight| {
        let before = sent;
        sent += flight.bytes;
        let here = ends
            .iter()
            .filter(|(_, end, _)| (before + 1..=sent).contains(end));
        ServerFlight {
            segments: flight.segments,
            bytes: flight.bytes,
            messages: here
                .map(|(message, _, segment)| (*message, *segment))
                .collect(),
            held: None,
        }
    });
    flights.collect()
}
