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

    /// The kernel counts what has come when it is asked, a moment after the bytes were read.
    #[test]
    fn segments_that_are_counted_too_early_end_no_write() {
        assert_eq!(of(&[(100, 2), (100, 0), (40, 1)], 100), certain(&[]));
    }
}
