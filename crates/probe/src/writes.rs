//! In which writes a server's handshake left it.

use std::time::Duration;

use lastbyte_flights::MOST_WRITES;
use serde::{Deserialize, Serialize};

use crate::Connection;
use crate::rounds::pieces;

/// The writes of the server's messages, from ServerHello to Finished. Each ends with a segment that need not be full, which
/// takes a place in the window all the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Writes {
    /// Bytes of each but the last; none if all is one.
    pub first: Vec<usize>,
    /// Whether that is how it has to be. Where several segments were read at once, those of them that were not full can't be
    /// told apart.
    pub is_certain: bool,
}

/// Of the last `bytes` that came before the client's Finished; none where segments were not counted, or came out of order.
#[must_use]
pub fn writes(connection: &Connection, bytes: usize) -> Option<Writes> {
    let hello = connection.hello()?;
    let finished = connection.finished().unwrap_or(Duration::MAX);
    let segment = connection.segment.max(1);
    let are_counted = connection
        .arrivals()
        .all(|(_, arrival)| arrival.counters.is_some());
    let pieces = pieces(connection);
    // Sent again, or behind a gap: what was one segment need not be.
    let is_ordered = !pieces.iter().any(|piece| piece.is_disordered);
    let came: Vec<(usize, usize)> = pieces
        .iter()
        .filter(|piece| (hello..=finished).contains(&piece.at))
        .map(|piece| {
            let segments = usize::try_from(piece.segments).unwrap_or(usize::MAX);
            (piece.bytes, segments)
        })
        .collect();
    let all = came
        .iter()
        .fold(0_usize, |all, (bytes, _)| all.saturating_add(*bytes));
    if !are_counted || !is_ordered || bytes == 0 || all != bytes {
        return None;
    }
    Some(of(&came, segment))
}

/// The writes of tickets of so many bytes each, that came before a response; none where they left with it, or nobody can tell.
#[must_use]
pub fn ticket_writes(connection: &Connection, tickets: &[usize]) -> Vec<usize> {
    let finished = connection.finished().unwrap_or(Duration::MAX);
    let behind = pieces(connection).into_iter();
    let behind = behind
        .skip_while(|piece| piece.at <= finished)
        .take_while(|piece| !piece.is_disordered);
    let behind = behind.map(|piece| (piece.bytes, piece.segments as usize));
    tickets_of(tickets, behind, connection.segment.max(1))
}

/// The same of pieces of so many bytes in so many segments.
fn tickets_of(
    tickets: &[usize],
    came: impl Iterator<Item = (usize, usize)>,
    segment: usize,
) -> Vec<usize> {
    let all: usize = tickets.iter().sum();
    if all == 0 || tickets.len() > MOST_WRITES {
        return Vec::new();
    }
    // Up to the end of each piece. One more than the first that is not of tickets alone, as a segment can be counted early.
    let mut ends = Vec::new();
    let mut end = (0_usize, 0_usize);
    for (bytes, segments) in came {
        end = (end.0.saturating_add(bytes), end.1.saturating_add(segments));
        ends.push(end);
        if ends.iter().filter(|(bytes, _)| *bytes > all).count() == 2 {
            break;
        }
    }
    let Some(last) = ends.last() else {
        return Vec::new();
    };
    // Within a write, segments are full; where the last piece ends, the response may end.
    let fits = |writes: &&[usize]| {
        let is_last = |bytes| bytes == last.0;
        let needed = |bytes| {
            let (segments, is_whole) = segments_to(bytes, writes, segment);
            (is_whole || is_last(bytes)).then_some(segments)
        };
        ends.iter()
            .all(|(bytes, segments)| needed(*bytes).is_some_and(|least| least <= *segments))
            && needed(last.0) == Some(last.1)
    };
    let with_response: &[usize] = &[];
    [with_response, &[all], tickets]
        .into_iter()
        .find(fits)
        .map_or_else(Vec::new, <[usize]>::to_vec)
}

/// How many segments so many bytes take that begin with these writes, and whether a segment ends there.
fn segments_to(bytes: usize, writes: &[usize], segment: usize) -> (usize, bool) {
    let (mut left, mut segments) = (bytes, 0);
    for write in writes {
        if left <= *write {
            let is_end = left == *write || left.is_multiple_of(segment);
            return (segments + left.div_ceil(segment), is_end);
        }
        left -= write;
        segments += write.div_ceil(segment);
    }
    (
        segments + left.div_ceil(segment),
        left.is_multiple_of(segment),
    )
}

/// Of pieces of so many bytes in so many segments.
fn of(came: &[(usize, usize)], segment: usize) -> Writes {
    let mut found = Writes {
        first: Vec::new(),
        is_certain: true,
    };
    // What segments are not full, up to each piece. One that comes between reading and counting counts with the piece before,
    // which then seems to have had more room than is left in the end.
    let mut room = Vec::new();
    let mut sum = 0_usize;
    for (bytes, segments) in came {
        let full = segments.saturating_mul(segment);
        sum = sum.saturating_add(full).saturating_sub(*bytes);
        room.push(sum);
    }
    let mut least = usize::MAX;
    for sum in room.iter_mut().rev() {
        least = least.min(*sum);
        *sum = least;
    }
    let (mut begin, mut end, mut before) = (0, 0_usize, 0);
    for (number, ((bytes, segments), room)) in (1..).zip(came.iter().zip(room)) {
        let start = end;
        end = end.saturating_add(*bytes);
        let (is_last, here) = (number == came.len(), room - before);
        before = room;
        if here == 0 {
            continue;
        }
        // So many of its segments are not full, at least; where exactly is known of one alone.
        let short = here / segment + 1;
        found.is_certain &= *segments == 1;
        let part = segment - here / short;
        for ahead in (0..short).rev() {
            let at = end.saturating_sub(ahead.saturating_mul(part)).max(start);
            let is_end = is_last && ahead == 0;
            if at > begin && !is_end {
                found.first.push(at - begin);
                begin = at;
            }
        }
    }
    if found.first.len() > MOST_WRITES {
        found.first.truncate(MOST_WRITES);
        found.is_certain = false;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn certain(first: &[usize]) -> Writes {
        Writes {
            first: first.to_vec(),
            is_certain: true,
        }
    }

    #[test]
    fn one_write_has_a_shorter_segment_at_its_end_alone() {
        assert_eq!(of(&[(100, 1), (100, 1), (40, 1)], 100), certain(&[]));
        assert_eq!(of(&[(100, 1), (100, 1)], 100), certain(&[]));
        assert_eq!(of(&[(200, 2), (100, 1), (7, 1)], 100), certain(&[]));
    }

    #[test]
    fn a_shorter_segment_within_ends_a_write() {
        let came = [(100, 1), (100, 1), (30, 1), (100, 1), (60, 1)];
        assert_eq!(of(&came, 100), certain(&[230]));
        assert_eq!(of(&[(30, 1), (20, 1), (60, 1)], 100), certain(&[30, 20]));
    }

    #[test]
    fn what_is_read_at_once_is_not_certain() {
        // The shorter one of three can be any.
        let writes = of(&[(230, 3), (100, 1), (60, 1)], 100);
        assert_eq!((&*writes.first, writes.is_certain), (&[230][..], false));
        // So many segments can't all have been full: the number is right.
        let writes = of(&[(400, 7), (60, 1)], 100);
        let mut segments: usize = writes.first.iter().map(|write| write.div_ceil(100)).sum();
        segments += (460 - writes.first.iter().sum::<usize>()).div_ceil(100);
        assert_eq!((segments, writes.is_certain), (8, false));
        let writes = of(&[(250, 3)], 100);
        assert_eq!((&*writes.first, writes.is_certain), (&[][..], false));
    }

    #[test]
    fn tickets_leave_with_the_response_or_before_it() {
        let of = |came: &[(usize, usize)]| tickets_of(&[287, 287], came.iter().copied(), 1448);
        // nginx: each in a segment of its own, however they are read.
        for came in [
            &[(287, 1), (287, 1), (1448, 1), (1448, 1)][..],
            &[(574, 2), (2896, 2)],
            &[(3470, 4)],
            &[(3470, 4), (11_584, 8)],
            // Counted early.
            &[(287, 2), (287, 0), (2896, 3), (1448, 0)],
        ] {
            assert_eq!(of(came), [287, 287], "{came:?}");
        }
        for came in [
            &[(574, 1), (1448, 1), (1448, 1)][..],
            &[(574 + 1448, 2), (1448, 1)],
            &[(574 + 2896, 3), (1448, 1)],
        ] {
            assert_eq!(of(came), [574], "{came:?}");
        }
        for came in [
            &[(1448, 1), (1448, 1)][..],
            &[(4 * 1448, 4), (8 * 1448, 8)],
            // The response ends here.
            &[(874, 1)],
            // Nobody knows.
            &[(287, 3), (3000, 9)],
            &[(574, 1)][..0],
        ] {
            assert_eq!(of(came), [] as [usize; 0], "{came:?}");
        }
        assert!(tickets_of(&[], [(1448, 1)].into_iter(), 1448).is_empty());
    }

    /// The kernel counts what has come when it is asked, a moment after the bytes were read.
    #[test]
    fn segments_that_are_counted_too_early_end_no_write() {
        assert_eq!(of(&[(100, 2), (100, 0), (40, 1)], 100), certain(&[]));
    }
}
