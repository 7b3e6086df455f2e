//! The path: round-trip time, rate, losses.

use std::time::Duration;

use crate::Connection;
use crate::rounds::pieces;

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

pub(crate) fn rtt(connections: &[Connection]) -> Option<Rtt> {
    let mut connects: Vec<Duration> = connections
        .iter()
        .filter_map(Connection::connected)
        .filter(|at| *at > Duration::ZERO)
        .collect();
    connects.sort_unstable();
    let first = *connects.first()?;
    // One whose SYN was lost.
    connects.retain(|connect| *connect < first.saturating_add(SYN_AGAIN * 9 / 10));
    let median = *connects.get((connects.len() - 1) / 2)?;
    let counted = connections.iter().filter_map(Connection::counters);
    let least = counted
        .filter_map(|counters| counters.min_rtt)
        .filter(|rtt| *rtt > Duration::ZERO)
        .fold(first, Duration::min);
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

/// Segments over which a rate is told: fewer tell of the timing of interrupts.
const SPAN: u32 = 8;
/// The least time over which it is told.
const SPAN_TIME: Duration = Duration::from_millis(2);

pub(crate) fn rate(connections: &[Connection], rtt: Duration) -> Option<RateSeen> {
    let mut best: Option<f64> = None;
    let mut is_even = false;
    for connection in connections {
        let pieces = pieces(connection);
        let overhead = connection.headers + lastbyte_link::ETHERNET_HEADER;
        let total = |piece: &crate::rounds::Piece| {
            piece.bytes as f64 + f64::from(piece.segments) * overhead as f64
        };
        let mut from = 0;
        let (mut bytes, mut segments) = (0.0, 0_u32);
        let mut longest_run = Duration::ZERO;
        for (at, piece) in pieces.iter().enumerate() {
            let Some(first) = pieces.get(from) else { break };
            let before = at.checked_sub(1).and_then(|before| pieces.get(before));
            let gap = before.map_or(Duration::ZERO, |before| piece.at.saturating_sub(before.at));
            // Silence of a window, or of a server that computes.
            if gap > rtt / 4 || piece.is_disordered {
                (from, bytes, segments) = (at, 0.0, 0);
                continue;
            }
            if at > from {
                bytes += total(piece);
                segments = segments.saturating_add(piece.segments);
            }
            let time = piece.at.saturating_sub(first.at);
            if segments >= SPAN && time >= SPAN_TIME.min(rtt / 4) && time > Duration::ZERO {
                let rate = 8.0 * bytes / time.as_secs_f64();
                if best.is_none_or(|best| rate > best * 1.02) {
                    best = Some(rate.max(best.unwrap_or_default()));
                    longest_run = Duration::ZERO;
                } else if best.is_some_and(|best| rate > best * 0.93) {
                    longest_run = longest_run.max(time);
                }
            }
        }
        is_even |= longest_run > rtt.min(Duration::from_millis(20));
    }
    best.map(|bits| match is_even {
        true => RateSeen::About(bits),
        false => RateSeen::AtLeast(bits),
    })
}
