//! Which connection to make next.

use std::time::Duration;

use crate::window::{Certainty, Window};
use crate::{Connection, Evidence, Look, MOST_WINDOW};

/// What a probe may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections.
    pub connections: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { connections: 6 }
    }
}

/// A connection to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The largest segment to ask the server for, as TCP's option has it: with what timestamps take
    /// of it. None for the path's own.
    pub segment: Option<u16>,
    /// Bytes on the wire of the response after which nothing more is to be learnt, and the
    /// connection can be ended.
    pub most: usize,
    /// How long to wait between the handshake and the request: a server that has nothing to send
    /// for that long begins with its initial window again, unless it is configured not to
    /// (`tcp_slow_start_after_idle`).
    pub pause: Duration,
}

/// Bytes that are read where segments are as large as the path has them: some round trips of any
/// window.
const MOST: usize = 2_000_000;
/// Segments that are read where they are small.
const MOST_SEGMENTS: usize = 5 * MOST_WINDOW as usize;

/// What every host has to take (RFC 9293, section 3.7.1).
const SMALL: u16 = 536;
/// The least that Linux lets a socket ask for (`TCP_MIN_MSS`).
const LEAST: u16 = 88;
/// What timestamps take of a segment.
const TIMESTAMPS: usize = 12;
/// Segments that the server's flight shall have: more than any usual window.
const SEGMENTS: usize = 80;

pub(crate) fn next(
    limits: Limits,
    connections: &[Connection],
    rtt: Duration,
    looks: &[Look],
    window: Option<&Window>,
) -> Option<Ask> {
    let made = connections.len();
    if made >= limits.connections {
        return None;
    }
    let asks = |segment: Option<u16>, pause| {
        let most = segment.map_or(MOST, |segment| MOST_SEGMENTS * usize::from(segment));
        Some(Ask {
            segment,
            most,
            pause,
        })
    };
    let at_once = Duration::ZERO;
    match made {
        0 => return asks(None, at_once),
        1 => return asks(Some(SMALL), at_once),
        _ => {}
    }
    if window.is_some_and(|window| window.certainty == Certainty::Exact) {
        return None;
    }
    if window.is_some_and(|window| has_two_ways(window, looks, connections)) {
        return asks(None, pause(rtt));
    }
    if let Some(segment) = window.and_then(|window| narrowing(window, connections)) {
        // Where tickets are on their way with it, a response tells more once they are acknowledged.
        let pause = if connections
            .first()
            .is_some_and(|first| has_tickets(first, rtt))
        {
            pause(rtt)
        } else {
            at_once
        };
        return asks(Some(segment), pause);
    }
    // Of the server's flight, so that the window ends it.
    let flight = connections.first().map_or(0, flight_bytes);
    let small = u16::try_from(flight / SEGMENTS + TIMESTAMPS).unwrap_or(SMALL);
    let small = small.clamp(LEAST, SMALL);
    let last = looks.last();
    let has_candidates = last.is_some_and(|look| look.handshake.candidates().is_some());
    let ends_flights = looks
        .iter()
        .any(|look| matches!(look.handshake, Evidence::Closed(_)));
    // Smaller segments leave room on a path that others fill.
    let is_full = looks
        .iter()
        .any(|look| matches!(look.handshake, Evidence::Full(_)));
    match made {
        _ if is_full && !ends_flights => asks(Some(LEAST), at_once),
        2 => asks(Some(small), at_once),
        // What was lost before may not be lost again.
        _ if ends_flights || !has_candidates => {
            asks(Some(small.max(small.midpoint(LEAST))), at_once)
        }
        // The flight is too short: the response has to tell.
        3 | 5 => asks(Some(small), pause(rtt)),
        _ => asks(Some(small.midpoint(SMALL)), pause(rtt)),
    }
}

/// Twice what a server's retransmission timeout is after a first round trip.
fn pause(rtt: Duration) -> Duration {
    (rtt.saturating_mul(3)
        .saturating_add(Duration::from_millis(200)))
    .saturating_mul(2)
}

/// What came before the client's Finished.
fn flight_bytes(connection: &Connection) -> usize {
    let finished = connection.finished().unwrap_or(Duration::MAX);
    let before = connection.arrivals().filter(|(at, _)| *at <= finished);
    before.fold(0, |all, (_, arrival)| all.saturating_add(arrival.bytes))
}

/// Whether anything came between the handshake and the response.
fn has_tickets(connection: &Connection, rtt: Duration) -> bool {
    let finished = connection.finished().unwrap_or(Duration::MAX);
    let answer = finished.saturating_add(rtt - rtt / 10);
    let first_byte = connection.first_byte().unwrap_or(Duration::MAX);
    let mut between = connection.arrivals();
    between.any(|(at, _)| (answer..first_byte).contains(&at))
}

/// Whether what a HelloRetryRequest has made of the window is another one by each way of growing,
/// and a response could tell them apart that was not asked for yet: in segments as large as the
/// path has them, of which the handshake has too few to open a window of slow start, while it opens
/// BBR's.
fn has_two_ways(window: &Window, looks: &[Look], connections: &[Connection]) -> bool {
    let differs = looks.iter().any(|look| {
        matches!(look.handshake, Evidence::Closed(_)) && look.handshake != look.handshake_of_bbr
    });
    let (Some(first), Some(most)) = (connections.first(), window.most) else {
        return false;
    };
    let count = |bytes: usize| bytes / first.segment.max(1);
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let flight = flight_bytes(first);
    let came = first.arrivals().map(|(_, arrival)| arrival.bytes);
    let response = came.fold(0, usize::saturating_add).saturating_sub(flight);
    let is_tried = connections.iter().skip(1).any(|connection| {
        connection.segment == first.segment && connection.requested() > connection.finished()
    });
    differs && !is_tried && 2 * count(flight) < most && count(response) > most.saturating_add(4)
}

/// The segment that halves a range at least, if one is left to try.
///
/// Slow start raises a window to twice the segments of the server's flight where it was not above
/// that, and then many windows look the same in the response. With larger segments the flight has
/// fewer of them, so more windows stay as they are; but the response still has to fill them. Where
/// it can't, the middle is tried, from both sides.
fn narrowing(window: &Window, connections: &[Connection]) -> Option<u16> {
    let most = window
        .most
        .filter(|_| window.certainty == Certainty::Between)?;
    let first = connections.first()?;
    let flight = flight_bytes(first);
    let came = first.arrivals().map(|(_, arrival)| arrival.bytes);
    let response = came.fold(0, usize::saturating_add).saturating_sub(flight);
    let count = |segments: u32| usize::try_from(segments).unwrap_or(usize::MAX).max(1);
    let stays = flight / (count(window.least.saturating_sub(1)) / 2).max(1) + 1;
    let fills = response / count(most.saturating_add(1));
    let middle = response.saturating_add(flight.saturating_mul(2))
        / count(window.least.saturating_add(most));
    let fills = fills.min(usize::from(SMALL));
    let sizes = if stays <= fills {
        // The more the flights of two connections differ, the less can a window of one way of
        // growing look like another's of the other; but the larger the segments, the longer they
        // take on the path.
        let halfway = stays.midpoint(fills);
        vec![halfway, halfway.midpoint(fills), fills, stays]
    } else {
        vec![middle]
    };
    let mut sizes = sizes.into_iter().map(|bytes| {
        let segment = bytes.saturating_add(TIMESTAMPS);
        u16::try_from(segment).unwrap_or(SMALL).clamp(LEAST, SMALL)
    });
    sizes.find(|segment| {
        !connections.iter().any(|connection| {
            connection.segment.saturating_add(TIMESTAMPS) == usize::from(*segment)
        })
    })
}
