//! The path: round-trip time, rate, losses.

use std::time::Duration;

use crate::Connection;
use crate::rounds::{self, Ending, pieces};

/// What is known of the path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathSeen {
    /// There and back.
    pub rtt: Rtt,
    /// From the server.
    pub rate: Option<RateSeen>,
    /// What was lost.
    pub loss: Loss,
}

/// The round-trip time of small packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rtt {
    /// The least: what distance alone takes, or nearly.
    pub least: Duration,
    /// The median of `connect()`.
    pub median: Duration,
    /// The longest `connect()` that no packet was lost in.
    pub most: Duration,
    /// How often it was measured.
    pub count: usize,
}

/// How much a path carries, in bits per second, headers included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RateSeen {
    /// Segments came as evenly as a full path lets them.
    About(f64),
    /// As fast as anything came: nothing was seen to limit it.
    AtLeast(f64),
}

impl RateSeen {
    /// Bits per second.
    #[must_use]
    pub fn bits(self) -> f64 {
        match self {
            RateSeen::About(bits) | RateSeen::AtLeast(bits) => bits,
        }
    }
}

/// What was lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loss {
    /// Segments that came.
    pub segments: u64,
    /// Of those, the ones that came behind a gap.
    pub out_of_order: u64,
    /// Segments that the client sent again.
    pub retransmitted: u64,
}

impl Rtt {
    /// How far connects differ.
    #[must_use]
    pub fn spread(&self) -> Duration {
        self.most.saturating_sub(self.least)
    }
}

/// What a SYN waits before it is sent again.
const SYN_AGAIN: Duration = Duration::from_secs(1);

/// Whether a SYN was sent again, or what answers it: `connect()` took so long, and the path a round
/// trip of `least`.
fn is_again(connect: Duration, least: Duration) -> bool {
    connect >= least.saturating_add(SYN_AGAIN * 9 / 10)
}

/// Whether a connection began with a SYN that was sent again. A server whose SYN-ACK was lost
/// begins with a window of one segment (`tcp_init_transfer`), whatever its usual one.
pub(crate) fn is_late(connection: &Connection, rtt: &Rtt) -> bool {
    let connect = connection.connected();
    connect.is_some_and(|connect| is_again(connect, rtt.least))
}

pub(crate) fn rtt(connections: &[Connection]) -> Option<Rtt> {
    let mut connects: Vec<Duration> = connections
        .iter()
        .filter_map(Connection::connected)
        .filter(|at| *at > Duration::ZERO)
        .collect();
    connects.sort_unstable();
    let first = *connects.first()?;
    let counted = connections.iter().filter_map(Connection::counters);
    let least = counted
        .filter_map(|counters| counters.min_rtt)
        .chain(connections.iter().filter_map(Connection::answered))
        .filter(|rtt| *rtt > Duration::ZERO)
        .fold(first, Duration::min);
    connects.retain(|connect| !is_again(*connect, least));
    if connects.is_empty() {
        connects.push(least);
    }
    let median = *connects.get((connects.len() - 1) / 2)?;
    Some(Rtt {
        least,
        median,
        // Of two or more, the longest can be an accident.
        most: *connects.last()?,
        count: connects.len(),
    })
}

pub(crate) fn loss(connections: &[Connection]) -> Loss {
    let mut loss = Loss::default();
    for counters in connections.iter().filter_map(Connection::counters) {
        loss.segments += u64::from(counters.segments);
        loss.out_of_order += u64::from(counters.out_of_order);
        loss.retransmitted += u64::from(counters.retransmitted);
    }
    loss
}

/// Segments over which a rate is determined: fewer show the timing of interrupts.
const SPAN: u32 = 8;
/// The least time over which it is determined.
const SPAN_TIME: Duration = Duration::from_millis(1);
/// How equal rates of two rounds are that the path limits.
const EQUAL: f64 = 0.03;

/// How fast a round came.
struct Pace {
    start: Duration,
    bits: f64,
    segments: u32,
    ending: Ending,
}

/// A path that limits a sender does so in each round, while a sender that paces itself goes twice
/// as fast in the next.
pub(crate) fn rate(connections: &[Connection], rtt: &Rtt) -> Option<RateSeen> {
    let mut fastest: Option<f64> = None;
    let mut limit: Option<f64> = None;
    for connection in connections {
        let paces: Vec<Option<Pace>> = paces(connection, rtt);
        for pace in paces.iter().flatten() {
            fastest = Some(fastest.map_or(pace.bits, |fastest| fastest.max(pace.bits)));
        }
        let finished = connection.finished().unwrap_or(Duration::MAX);
        let mut full = |bits: f64| limit = Some(limit.map_or(bits, |limit: f64| limit.max(bits)));
        let is_equal = |one: &Pace, other: &Pace| (other.bits / one.bits - 1.0).abs() < EQUAL;
        for pair in paces.windows(2) {
            if let [Some(one), Some(other)] = pair
                && is_equal(one, other)
                // Of one flight: what answers the client's Finished finds the window as it was.
                && !(one.start..other.start).contains(&finished)
                // Of more segments: whoever paces itself would be faster.
                && 3 * u64::from(other.segments) >= 4 * u64::from(one.segments)
            {
                full(other.bits);
            }
        }
        for three in paces.windows(3) {
            if let [Some(one), Some(other), Some(third)] = three
                && is_equal(one, other)
                && is_equal(other, third)
                && [one, other].iter().all(|pace| pace.ending == Ending::Path)
            {
                full(third.bits);
            }
        }
    }
    match (limit, fastest) {
        // Something came faster: what was full was a sender.
        (Some(limit), Some(fastest)) if fastest < limit * (1.0 + 2.0 * EQUAL) => {
            Some(RateSeen::About(limit))
        }
        (_, Some(fastest)) => Some(RateSeen::AtLeast(fastest)),
        (_, None) => None,
    }
}

/// Of each round: none where too little came, or something was lost.
fn paces(connection: &Connection, rtt: &Rtt) -> Vec<Option<Pace>> {
    let pieces = pieces(connection);
    let overhead = connection.headers.min(120) + lastbyte_link::ETHERNET_HEADER;
    let spread = rtt.spread().min(rtt.least / 8);
    let rounds = rounds::of(&pieces, rtt.least, spread);
    // Whoever has lost something goes on as acknowledgements come, which looks like a path.
    let lost = pieces.iter().find(|piece| piece.is_disordered);
    let lost = lost.map_or(Duration::MAX, |piece| piece.at);
    let of_round = rounds.iter().map(|round| {
        if round.end >= lost {
            return None;
        }
        let inside = |piece: &&rounds::Piece| (round.start..=round.end).contains(&piece.at);
        // When the first began to come is not known.
        let rest = pieces.iter().filter(inside).skip(1);
        let (mut bytes, mut segments) = (0.0, 0_u32);
        for piece in rest {
            // What waited behind a gap comes at once when that is filled.
            let waited = piece.bytes > (piece.segments as usize).saturating_mul(connection.segment);
            if piece.is_disordered || waited {
                return None;
            }
            bytes += piece.bytes as f64 + f64::from(piece.segments) * overhead as f64;
            segments = segments.saturating_add(piece.segments);
        }
        let time = round.end.saturating_sub(round.start);
        let is_enough = segments >= SPAN && time >= SPAN_TIME && round.ending != Ending::Unknown;
        is_enough.then(|| Pace {
            start: round.start,
            bits: 8.0 * bytes / time.as_secs_f64(),
            segments: round.segments,
            ending: round.ending,
        })
    });
    of_round.collect()
}
