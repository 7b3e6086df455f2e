//! What each packet of a connection was.
//!
//! Losses are seen, as both sides of the link are. How a sender learnt of one is not: it shows in
//! when the packet left again, and what had come just before, as Linux has it
//! (`net/ipv4/tcp_input.c`, `tcp_timer.c`, `tcp_recovery.c`). What follows an acknowledgement at
//! once was asked for by it; what leaves by itself was a timer's.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::net::Ipv4Addr;
use std::time::Duration;

use lastbyte_link::{Side, TcpPacket, Time};

use crate::coverage::Coverage;
use crate::packet::Segment;
use crate::reassembly::Reassembly;
use crate::settle::{Sighting, pair};
use crate::{Fate, Packet};

/// Who talks to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId {
    /// The client's address and port.
    pub client: (Ipv4Addr, u16),
    /// The server's.
    pub server: (Ipv4Addr, u16),
}

/// A TCP connection, as both sides of the link saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// Whose it is.
    pub id: ConnectionId,
    /// What comments say of it: those of its first packet but fates.
    pub comment: String,
    /// When its first packet was sent, since 1970.
    pub begin: Time,
    /// All packets, in the order in which they were sent.
    pub transmissions: Vec<Transmission>,
}

/// One packet's way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmission {
    /// Who sent it.
    pub sender: Side,
    /// When, since the connection's beginning.
    pub sent: Duration,
    /// When it arrived, if it did.
    pub arrived: Option<Duration>,
    /// What became of it.
    pub fate: Fate,
    /// The flags that say something.
    pub flags: Vec<Flag>,
    /// Where its data begins in all that the sender sends; a SYN is before that.
    pub offset: u64,
    /// Its data.
    pub payload: Vec<u8>,
    /// What its sender has of the other side, in bytes of that side's data.
    pub acknowledges: u64,
    /// Whether it tells of gaps before what came.
    pub is_selective: bool,
    /// Why it was sent again; none if it was sent for the first time.
    pub again: Option<Trigger>,
    /// What its sender has sent and not got acknowledged, in bytes, just after it.
    pub in_flight: u64,
}

/// A flag of TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flag {
    /// The first packet of a side.
    Syn,
    /// It has no more data.
    Fin,
    /// The connection is no more.
    Reset,
}

/// Why a packet was sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// Acknowledgements showed that later packets had arrived (RFC 6675, RFC 8985).
    FastRetransmit,
    /// Nothing came for that long, so the last packet was sent again to have something acknowledged
    /// (RFC 8985, 7).
    LossProbe(Duration),
    /// Nothing came for that long (RFC 6298).
    Timeout(Duration),
    /// It had to be sent again after a timeout, as the acknowledgements came.
    AfterTimeout,
}

/// A packet that did not arrive, and what brought its data instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Which of the connection's transmissions was dropped.
    pub lost: usize,
    /// The one that was sent next with the same first byte; none of what nobody sends again, such
    /// as an acknowledgement.
    pub recovery: Option<usize>,
    /// The one with its first byte that arrived first, before it or after; none if that never came.
    pub came: Option<usize>,
}

impl Connection {
    /// The packets that the link dropped, in the order in which they were sent.
    #[must_use]
    pub fn losses(&self) -> Vec<Loss> {
        let all = || self.transmissions.iter().enumerate();
        let mut arrivals: Vec<_> = all().filter(|(_, sent)| sent.arrived.is_some()).collect();
        arrivals.sort_by_key(|(index, sent)| (sent.arrived, *index));
        let mut came = Bringers::default();
        for (index, sent) in arrivals.into_iter().rev() {
            came.put(index, sent);
        }
        let mut losses = Vec::new();
        let mut later = Bringers::default();
        for (index, sent) in all().rev() {
            if matches!(sent.fate, Fate::Lost | Fate::QueueFull) {
                losses.push(Loss {
                    lost: index,
                    recovery: later.of(sent),
                    came: came.of(sent),
                });
            }
            later.put(index, sent);
        }
        losses.reverse();
        losses
    }

    /// How often packets were sent again, by one side: what `TCP_INFO` calls `tcpi_total_retrans`.
    #[must_use]
    pub fn retransmissions(&self, sender: Side) -> usize {
        let all = self.transmissions.iter();
        all.filter(|sent| sent.sender == sender && sent.again.is_some())
            .count()
    }

    /// Flights of one side's data: what is sent before the first byte of it is acknowledged. Each
    /// begins at its first transmission.
    #[must_use]
    pub fn flights(&self, sender: Side) -> Vec<usize> {
        let mut flights = Vec::new();
        let mut acknowledged = 0;
        let mut first = None;
        for (index, event) in self.events() {
            let Some(transmission) = self.transmissions.get(index) else {
                continue;
            };
            match event {
                Event::Arrives if transmission.sender != sender => {
                    acknowledged = acknowledged.max(transmission.acknowledges);
                }
                Event::Leaves
                    if transmission.sender == sender
                        && !transmission.payload.is_empty()
                        && transmission.again.is_none() =>
                {
                    if first.is_none_or(|first| acknowledged > first) {
                        first = Some(transmission.offset);
                        flights.push(index);
                    }
                }
                Event::Arrives | Event::Leaves => {}
            }
        }
        flights
    }

    /// When the last byte of one side's data first arrived, if all of it did.
    #[must_use]
    pub fn last_byte(&self, sender: Side) -> Option<Duration> {
        let all = self.transmissions.iter();
        let with_data = all.filter(|sent| sent.sender == sender && !sent.payload.is_empty());
        self.delivered(sender, with_data.map(Transmission::end).max()?)
    }

    /// When the first `end` bytes of one side's data were all there, if they ever were.
    #[must_use]
    pub fn delivered(&self, sender: Side, end: u64) -> Option<Duration> {
        let all = self.transmissions.iter();
        let of_sender = all.filter(|sent| sent.sender == sender && !sent.payload.is_empty());
        let mut there = Reassembly::default();
        let mut arrived: Vec<&Transmission> =
            of_sender.filter(|sent| sent.arrived.is_some()).collect();
        arrived.sort_by_key(|sent| sent.arrived);
        for transmission in arrived {
            there.take(transmission.offset, &transmission.payload);
            if there.length() >= end {
                return transmission.arrived;
            }
        }
        None
    }

    /// All bytes of one side's data as it sent them.
    #[must_use]
    pub fn stream(&self, sender: Side) -> Vec<u8> {
        let mut stream = Reassembly::default();
        let sent = self.transmissions.iter();
        sent.filter(|sent| sent.sender == sender)
            .flat_map(|sent| stream.take(sent.offset, &sent.payload))
            .collect()
    }

    /// What each side sent for the first time, in the order of time.
    #[must_use]
    pub fn turns(&self) -> Vec<(Side, Vec<u8>)> {
        let (mut client, mut server) = (Reassembly::default(), Reassembly::default());
        let mut turns = Vec::new();
        for sent in &self.transmissions {
            let stream = match sent.sender {
                Side::Client => &mut client,
                Side::Server => &mut server,
            };
            let new = stream.take(sent.offset, &sent.payload);
            if !new.is_empty() {
                turns.push((sent.sender, new));
            }
        }
        turns
    }

    /// The shortest way there and back of what arrived.
    #[must_use]
    pub fn least_rtt(&self) -> Duration {
        let least = |sender| {
            let all = self.transmissions.iter();
            let transits = all
                .filter(|sent| sent.sender == sender)
                .filter_map(|sent| Some(sent.arrived?.saturating_sub(sent.sent)));
            transits.min().unwrap_or_default()
        };
        least(Side::Client) + least(Side::Server)
    }

    /// What happens, in the order of time; what arrives comes before what is sent for it.
    fn events(&self) -> impl Iterator<Item = (usize, Event)> {
        let mut events: Vec<(Duration, Event, usize)> = Vec::new();
        for (index, transmission) in self.transmissions.iter().enumerate() {
            events.push((transmission.sent, Event::Leaves, index));
            if let Some(arrived) = transmission.arrived {
                events.push((arrived, Event::Arrives, index));
            }
        }
        events.sort();
        events.into_iter().map(|(_, event, index)| (index, event))
    }

    /// Says of each packet that was sent again why, and how much was under way after each.
    fn tell_triggers(&mut self) {
        let least_rtt = self.least_rtt();
        let mut senders = [Sender::default(), Sender::default()];
        let events: Vec<(usize, Event)> = self.events().collect();
        for (index, event) in events {
            let Some(transmission) = self.transmissions.get_mut(index) else {
                continue;
            };
            match event {
                Event::Arrives => {
                    let at = transmission.arrived.unwrap_or(transmission.sent);
                    let [client, server] = &mut senders;
                    match transmission.sender {
                        Side::Client => server.hears(at, transmission),
                        Side::Server => client.hears(at, transmission),
                    }
                }
                Event::Leaves => {
                    let [client, server] = &mut senders;
                    let sender = match transmission.sender {
                        Side::Client => client,
                        Side::Server => server,
                    };
                    transmission.again = sender.sends(transmission, least_rtt);
                    transmission.in_flight = sender.highest.saturating_sub(sender.acknowledged);
                }
            }
        }
    }
}

/// Of each place of both streams, the transmission that was put last with it.
#[derive(Debug, Default)]
struct Bringers([OfSide; 2]);

#[derive(Debug, Default)]
struct OfSide {
    data: Coverage,
    syn: Option<usize>,
    fin: Option<usize>,
}

impl Bringers {
    fn put(&mut self, index: usize, sent: &Transmission) {
        let [client, server] = &mut self.0;
        let side = match sent.sender {
            Side::Client => client,
            Side::Server => server,
        };
        side.data.put(sent.offset, sent.end(), index);
        if sent.has(Flag::Syn) {
            side.syn = Some(index);
        }
        if sent.has(Flag::Fin) {
            side.fin = Some(index);
        }
    }

    /// The one that brings the first byte of this, which its sender has sent, too.
    fn of(&self, lost: &Transmission) -> Option<usize> {
        let [client, server] = &self.0;
        let side = match lost.sender {
            Side::Client => client,
            Side::Server => server,
        };
        match (lost.has(Flag::Syn), lost.payload.is_empty()) {
            (true, _) => side.syn,
            (false, true) => side.fin.filter(|_| lost.has(Flag::Fin)),
            (false, false) => side.data.at(lost.offset),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrives,
    Leaves,
}

impl Transmission {
    /// Behind its last byte.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.offset + self.payload.len() as u64
    }

    /// Whether it has this flag.
    #[must_use]
    pub fn has(&self, flag: Flag) -> bool {
        self.flags.contains(&flag)
    }

    /// Whether it takes a place in the stream, so that it is sent until it is acknowledged.
    #[must_use]
    pub fn takes_place(&self) -> bool {
        !self.payload.is_empty() || self.has(Flag::Syn) || self.has(Flag::Fin)
    }
}

/// One side's TCP, as far as packets show it.
#[derive(Clone, Debug, Default)]
struct Sender {
    /// Behind the last byte that was sent.
    highest: u64,
    /// Where the last segment of new data began.
    latest: u64,
    acknowledged: u64,
    sent_syn: bool,
    sent_fin: bool,
    is_established: bool,
    /// When something last came, and whether that showed a gap.
    heard: Option<Duration>,
    knows_gap: bool,
    /// Since when the timer runs.
    timer: Duration,
    has_probed: bool,
    /// A timeout is over when all is acknowledged that had been sent.
    timed_out: Option<u64>,
}

impl Sender {
    /// What leaves so soon after something came was asked for by that.
    const AT_ONCE: Duration = Duration::from_micros(300);
    /// `TCP_RTO_MIN`
    const LEAST_TIMEOUT: Duration = Duration::from_millis(200);

    fn hears(&mut self, at: Duration, packet: &Transmission) {
        self.heard = Some(at);
        self.is_established = true;
        if packet.acknowledges > self.acknowledged {
            self.acknowledged = packet.acknowledges;
            self.timer = at;
            self.has_probed = false;
            self.knows_gap = false;
            if self
                .timed_out
                .is_some_and(|until| self.acknowledged >= until)
            {
                self.timed_out = None;
            }
        }
        self.knows_gap |= packet.is_selective;
    }

    /// Whether what leaves at this time was asked for by what has just come.
    fn answers(&self, at: Duration) -> bool {
        (self.heard).is_some_and(|heard| at.saturating_sub(heard) <= Self::AT_ONCE)
    }

    /// Why it sends this again; none of what is new, or takes no place.
    fn sends(&mut self, packet: &Transmission, least_rtt: Duration) -> Option<Trigger> {
        let at = packet.sent;
        let waited = at.saturating_sub(self.timer);
        if packet.has(Flag::Syn) {
            let again = self.sent_syn.then_some(if self.answers(at) {
                // Its other side has timed out, and asks once more.
                Trigger::AfterTimeout
            } else {
                Trigger::Timeout(waited)
            });
            (self.sent_syn, self.timer) = (true, at);
            return again;
        }
        if packet.payload.is_empty() && !packet.has(Flag::Fin) {
            return None;
        }
        let is_new = if packet.payload.is_empty() {
            !self.sent_fin
        } else {
            packet.end() > self.highest
        };
        self.sent_fin |= packet.has(Flag::Fin);
        if is_new {
            (self.latest, self.highest) = (packet.offset, packet.end().max(self.highest));
            self.timer = at;
            self.has_probed = false;
            return None;
        }
        let follows = self.answers(at);
        let is_last = packet.end() >= self.highest;
        let is_timeout = waited >= least_rtt + Self::LEAST_TIMEOUT.mul_f64(0.9);
        let trigger = match (self.timed_out, self.knows_gap) {
            (Some(_), _) if follows => Trigger::AfterTimeout,
            (None, true) if follows || !is_timeout => Trigger::FastRetransmit,
            (None, false) if follows => Trigger::FastRetransmit,
            (None, false) if is_last && !self.has_probed && self.is_established => {
                Trigger::LossProbe(waited)
            }
            _ => Trigger::Timeout(waited),
        };
        match trigger {
            Trigger::LossProbe(_) => (self.has_probed, self.timer) = (true, at),
            Trigger::Timeout(_) => (self.timed_out, self.timer) = (Some(self.highest), at),
            Trigger::FastRetransmit | Trigger::AfterTimeout => self.timer = at,
        }
        Some(trigger)
    }
}

/// Where resolvers answer, over TCP what is too large for UDP: that is in captures, and none of
/// their connections.
pub const DNS_PORT: u16 = 53;

/// The connections of a capture, in the order in which they begin: those of which a SYN was sent.
#[must_use]
pub fn connections(packets: &[(Packet, Vec<String>)]) -> Vec<Connection> {
    let mut ordered: Vec<&(Packet, Vec<String>)> = packets.iter().collect();
    ordered.sort_by_key(|(packet, _)| packet.at);
    let bare: Vec<Packet> = ordered.iter().map(|(packet, _)| packet.clone()).collect();
    let sightings: Vec<Sighting<'_>> = bare.iter().map(Sighting::of).collect();
    let pairs = pair(&sightings);

    let mut found: BTreeMap<ConnectionId, Building> = BTreeMap::new();
    for ((packet, comments), delivered) in ordered.iter().zip(pairs) {
        if !packet.point.is_before_link() {
            continue;
        }
        let Some(segment) = Segment::parse(&packet.bytes) else {
            continue;
        };
        let sender = packet.point.sender();
        let id = id_of(sender, &segment.header);
        let is_syn = segment.header.flags & TcpPacket::SYN != 0;
        if let Entry::Vacant(unknown) = found.entry(id) {
            let is_query = segment.header.destination_port == DNS_PORT;
            if !is_syn || sender == Side::Server || is_query {
                continue;
            }
            unknown.insert(Building::new(id, packet.at, own_comments(comments)));
        }
        let arrived = delivered.and_then(|delivered| bare.get(delivered));
        if let Some(building) = found.get_mut(&id) {
            building.take(sender, packet, &segment, arrived.map(|packet| packet.at));
        }
    }
    let mut connections: Vec<Connection> = found.into_values().map(Building::finish).collect();
    connections.sort_by_key(|connection| connection.begin);
    connections
}

/// What a packet's comments say besides its fate.
pub(crate) fn own_comments(comments: &[String]) -> String {
    let own = comments
        .iter()
        .filter(|comment| Fate::of_comment(comment).is_none());
    let own: Vec<&str> = own.map(String::as_str).collect();
    own.join("; ")
}

fn id_of(sender: Side, header: &TcpPacket) -> ConnectionId {
    let source = (header.source, header.source_port);
    let destination = (header.destination, header.destination_port);
    match sender {
        Side::Client => ConnectionId {
            client: source,
            server: destination,
        },
        Side::Server => ConnectionId {
            client: destination,
            server: source,
        },
    }
}

/// A connection that is being put together.
struct Building {
    connection: Connection,
    /// The sequence number of each side's first byte of data.
    first: [Option<u32>; 2],
}

impl Building {
    fn new(id: ConnectionId, begin: Time, comment: String) -> Building {
        Building {
            connection: Connection {
                id,
                comment,
                begin,
                transmissions: Vec::new(),
            },
            first: [None; 2],
        }
    }

    fn take(
        &mut self,
        sender: Side,
        packet: &Packet,
        segment: &Segment<'_>,
        arrived: Option<Time>,
    ) {
        let header = &segment.header;
        let (own, other) = match sender {
            Side::Client => (0, 1),
            Side::Server => (1, 0),
        };
        let has = |flag| header.flags & flag != 0;
        let is_syn = has(TcpPacket::SYN);
        let sequence = header.sequence.wrapping_add(u32::from(is_syn));
        let first = match self.first.get_mut(own) {
            // Only what a SYN says: a stray packet before it belongs to another connection.
            Some(first) if is_syn => *first.insert(sequence),
            Some(first) => first.unwrap_or(sequence),
            None => sequence,
        };
        let begins = |side: usize| self.first.get(side).copied().flatten();
        // 4 GB are more than a connection here has; what is before its beginning is none of its
        // data.
        let place = |sequence: u32, first: u32| match sequence.wrapping_sub(first) {
            place if place > u32::MAX / 2 => 0,
            place => u64::from(place),
        };
        let acknowledges = match begins(other) {
            Some(first) if has(TcpPacket::ACK) => place(header.acknowledgement, first),
            _ => 0,
        };
        let flags = [
            (TcpPacket::SYN, Flag::Syn),
            (TcpPacket::FIN, Flag::Fin),
            (TcpPacket::RST, Flag::Reset),
        ];
        let since = |time: Time| time.since(self.connection.begin);
        let transmission = Transmission {
            sender,
            sent: since(packet.at),
            arrived: arrived.map(since),
            fate: packet.fate,
            flags: flags
                .into_iter()
                .filter_map(|(bit, flag)| has(bit).then_some(flag))
                .collect(),
            offset: place(sequence, first),
            payload: segment.payload.to_vec(),
            acknowledges,
            is_selective: !segment.blocks.is_empty(),
            again: None,
            in_flight: 0,
        };
        self.connection.transmissions.push(transmission);
    }

    fn finish(self) -> Connection {
        let mut connection = self.connection;
        connection.tell_triggers();
        connection
    }
}

#[cfg(test)]
mod tests;
