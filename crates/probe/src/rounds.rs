//! What came in each round trip of a flight.

use std::time::Duration;

use crate::Connection;

/// What came within one round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// When its first bytes came.
    pub start: Duration,
    /// When its last bytes came.
    pub end: Duration,
    /// Segments.
    pub segments: u32,
    /// Bytes of payload.
    pub bytes: usize,
    /// Why there were no more.
    pub ending: Ending,
}

/// Why a round has no more segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Silence, until a round trip after its first segment the next round began: the window was
    /// full.
    Window,
    /// Nothing came after it: the server had no more to send, or nobody looked.
    Data,
    /// No silence, as the path was full, but the server's timestamps show where the next round
    /// began: the window was full.
    Answered,
    /// No silence: the path was full all the while.
    Path,
    /// A packet was lost, or whatever came next came at a time that no acknowledgement explains.
    Unknown,
}

/// An arrival with what it brought.
#[derive(Clone, Copy)]
pub(crate) struct Piece {
    pub(crate) at: Duration,
    pub(crate) segments: u32,
    pub(crate) bytes: usize,
    /// Whether segments had come out of order since the piece before, or again.
    pub(crate) is_disordered: bool,
    /// Whether they had come out of order.
    pub(crate) is_behind_gap: bool,
    /// Whether its segments were as large as they may be.
    pub(crate) is_full: bool,
    /// The round trip that the server's echoes of our timestamps had shown by then.
    pub(crate) receiver_rtt: Duration,
}

/// What the arrivals of a connection brought.
pub(crate) fn pieces(connection: &Connection) -> Vec<Piece> {
    let mut before = (0, 0);
    let segment = connection.segment.max(1);
    let pieces = connection.arrivals().map(|(at, arrival)| {
        let counted = arrival.counters.map(|now| {
            let (segments, disordered) = before;
            before = (now.segments, now.out_of_order);
            let new = now.segments.saturating_sub(segments);
            (new, now.out_of_order > disordered)
        });
        let least = u32::try_from(arrival.bytes.div_ceil(segment)).unwrap_or(u32::MAX);
        let (segments, is_behind_gap) = counted.unwrap_or((least, false));
        // What brought nothing new was sent again.
        let is_again = arrival.bytes.is_multiple_of(segment) && segments > least;
        Piece {
            at,
            segments,
            bytes: arrival.bytes,
            is_disordered: is_behind_gap || is_again,
            is_behind_gap,
            is_full: segments > 0
                && arrival.bytes
                    >= segment.saturating_mul(usize::try_from(segments).unwrap_or(usize::MAX)),
            receiver_rtt: (arrival.counters)
                .and_then(|counters| counters.receiver_rtt)
                .unwrap_or_default(),
        }
    });
    pieces.collect()
}

/// How exactly times can be determined on a path with this round-trip time, whose connects differ
/// by so much.
pub(crate) fn tolerance(rtt: Duration, spread: Duration) -> Duration {
    (rtt / 20)
        .max(spread.saturating_mul(2))
        .max(Duration::from_micros(300))
        .min(rtt / 3)
}

/// Sorts pieces into rounds: each begins with the first one that can be an answer to an
/// acknowledgement of the round before.
#[must_use]
pub fn rounds(connection: &Connection, rtt: Duration, spread: Duration) -> Vec<Round> {
    of(&pieces(connection), rtt, spread)
}

pub(crate) fn of(pieces: &[Piece], rtt: Duration, spread: Duration) -> Vec<Round> {
    let tolerance = tolerance(rtt, spread);
    let mut rounds = Vec::new();
    let mut rest = pieces;
    while let Some(first) = rest.first() {
        let until = first.at.saturating_add(rtt.saturating_sub(tolerance));
        let here = rest.iter().take_while(|piece| piece.at < until).count();
        let (round, after) = rest.split_at_checked(here.max(1)).unwrap_or((rest, &[]));
        let timed = ending(round, after.first(), rtt, tolerance);
        let answered = match timed {
            // Where a round ends that the path stretches does not show in the time.
            Ending::Path | Ending::Unknown if rounds.is_empty() => answered(rest, here),
            _ => None,
        };
        let (round, after, ending) = match answered.and_then(|at| rest.split_at_checked(at)) {
            Some((round, after)) => (round, after, Ending::Answered),
            None => (round, after, timed),
        };
        rounds.push(Round {
            start: first.at,
            end: round.last().map_or(first.at, |piece| piece.at),
            segments: round
                .iter()
                .fold(0, |all, piece| all.saturating_add(piece.segments)),
            bytes: round
                .iter()
                .fold(0, |all, piece| all.saturating_add(piece.bytes)),
            ending,
        });
        rest = after;
    }
    doubt(&mut rounds);
    rounds
}

/// A window that was full opens: where the next round is no larger, segments take longer on the
/// path than a round trip.
fn doubt(rounds: &mut [Round]) {
    for at in 1..rounds.len() {
        let (before, after) = rounds.split_at_mut(at);
        if let (Some(round), Some(next)) = (before.last_mut(), after.first())
            && round.ending == Ending::Window
            && next.segments <= round.segments
        {
            round.ending = match next.ending {
                // There was no more to send, or of what was sent some is lost.
                Ending::Data | Ending::Unknown if round.segments > 1 => Ending::Window,
                Ending::Data | Ending::Unknown => Ending::Unknown,
                Ending::Window | Ending::Answered | Ending::Path => Ending::Path,
            };
        }
    }
}

/// Timestamps are of whole milliseconds (RFC 7323, section 5.4; Linux has no others unless a route
/// asks for it).
const TIMESTAMP: Duration = Duration::from_millis(1);
/// What else times of arrival may be wrong by.
pub(crate) const LATE: Duration = Duration::from_micros(200);
/// What a change of [`Piece::receiver_rtt`] can hide behind: so many pieces, or so much time.
const HIDING: usize = 8;
const HIDING_TIME: Duration = Duration::from_millis(5);

/// The first piece that answers an acknowledgement of this flight, where the server's timestamps
/// tell.
///
/// A server echoes the latest timestamp that it has seen (RFC 7323, section 4.3). All that its
/// window held echoes that of the request. What it sends once the flight's first acknowledgement is
/// there echoes that one's, which is new, so the kernel takes another sample of how long echoes
/// take (`tcp_rcv_rtt_measure_ts`): from that acknowledgement to this very segment. That shows
/// however long segments wait before the path.
fn answered(flight: &[Piece], not_before: usize) -> Option<usize> {
    let is_after = |index: usize| index >= not_before.max(1);
    let changes = (flight.windows(2).zip(1..)).find_map(|(pair, index)| match pair {
        [before, piece] if is_after(index) && piece.receiver_rtt != before.receiver_rtt => {
            Some((index, before.receiver_rtt))
        }
        _ => None,
    });
    let (at, before) = changes?;
    let piece = flight.get(at)?;
    let is_whole = |piece: &Piece| piece.segments == 1 && piece.is_full && !piece.is_disordered;
    // An acknowledgement leaves with the first segment, or with the second.
    let since: Vec<Duration> = flight.iter().take(2).map(|first| first.at).collect();
    let is_near = |piece: &Piece, sample: Duration, margin: Duration| {
        let mut waits = since.iter().map(|since| piece.at.saturating_sub(*since));
        waits.any(|wait| wait.abs_diff(sample) <= margin)
    };
    // It is smoothed by eighths; recent kernels take what is less as it is.
    let (now, eighths) = (piece.receiver_rtt, |change: Duration| {
        change.saturating_mul(8)
    });
    let samples = match () {
        () if before.is_zero() => [now, now],
        () if now > before => [before.saturating_add(eighths(now - before)); 2],
        () => [before.saturating_sub(eighths(before - now)), now],
    };
    let is_explained = (samples.iter()).any(|sample| is_near(piece, *sample, TIMESTAMP + LATE));
    let hides = flight
        .iter()
        .take(at)
        .skip(not_before.max(1))
        .rev()
        .enumerate();
    let is_hidden = hides
        .take_while(|(places, other)| {
            *places < HIDING || piece.at.saturating_sub(other.at) < HIDING_TIME
        })
        .any(|(_, other)| {
            !is_whole(other) || !before.is_zero() && is_near(other, before, 3 * TIMESTAMP / 2)
        });
    let is_ordered = !flight.iter().take(at).any(|piece| piece.is_disordered);
    (is_whole(piece) && is_explained && is_ordered && !is_hidden).then_some(at)
}

fn ending(round: &[Piece], next: Option<&Piece>, rtt: Duration, tolerance: Duration) -> Ending {
    let (Some(first), Some(last)) = (round.first(), round.last()) else {
        return Ending::Unknown;
    };
    // What is lost at the end of a round shows with the next one.
    let is_disordered = round.iter().chain(next).any(|piece| piece.is_disordered);
    let Some(next) = next else {
        return if is_disordered {
            Ending::Unknown
        } else {
            Ending::Data
        };
    };
    let silence = next.at.saturating_sub(last.at);
    let since_first = next.at.saturating_sub(first.at);
    let gaps = round.windows(2).filter_map(|pair| match pair {
        [one, other] => Some(other.at.saturating_sub(one.at)),
        _ => None,
    });
    let longest = gaps.max().unwrap_or_default();
    match () {
        () if is_disordered => Ending::Unknown,
        // A probe for lost packets comes after two round trips.
        () if since_first
            > (rtt.saturating_add(rtt / 3)).saturating_add(tolerance.saturating_mul(2)) =>
        {
            Ending::Unknown
        }
        // One segment says nothing of how far the path stretches them.
        () if round.len() == 1 && since_first > rtt.saturating_add(tolerance) => Ending::Unknown,
        () if silence > longest.saturating_mul(5) / 2 && silence > tolerance => Ending::Window,
        // A round of two halves: something other than the window had a say.
        () if silence <= longest && longest > rtt / 3 => Ending::Unknown,
        () => Ending::Path,
    }
}
