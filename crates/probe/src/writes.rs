//! In which writes a server's handshake left it, its tickets and its response.

use std::time::Duration;

use lastbyte_exchange::Writes as ExchangeWrites;
use serde::{Deserialize, Serialize};

use crate::Connection;
use crate::rounds::{LATE, Piece, pieces};

/// The writes of a server's handshake and of its tickets that are reported, at most: more than any
/// server has.
const MOST_WRITES: usize = 6;

/// The writes of the server's messages, from ServerHello to Finished. Each ends with a segment that
/// need not be full, which takes a place in the window all the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Writes {
    /// Bytes of each but the last; none if all is one.
    pub first: Vec<usize>,
    /// Whether that is how it has to be. Where several segments were read at once, those of them
    /// that were not full can't be distinguished.
    pub is_certain: bool,
}

/// Of the last `bytes` that came before the client's Finished; none where segments were not
/// counted, or came out of order.
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

/// What a server sends in answer to the client's Finished and its request, in bytes on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer<'a> {
    /// All that it sent up to its Finished.
    pub begin: usize,
    /// Each of its session tickets.
    pub tickets: &'a [usize],
    /// The records of the response, as far as they have begun to come.
    pub records: &'a [usize],
    /// Those behind it.
    pub behind: &'a [usize],
}

/// In which writes an answer left its server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnswerWrites {
    /// Bytes of tickets that left with the server's handshake, and answer nothing.
    pub early_tickets: usize,
    /// Of the other tickets; none where they left with the response, or nobody can tell.
    pub tickets: Vec<usize>,
    /// Of the response; none where nothing that servers do fits.
    pub response: Option<ResponseWrites>,
}

/// The writes of a response.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResponseWrites {
    /// Bytes of the first ones, of which the last repeats; none if all is one.
    pub first: Vec<usize>,
    /// Whether that is how it has to be. What other servers do fits too where the window was full
    /// before the end of a write could be seen.
    pub is_certain: bool,
}

/// In which writes an answer left, by what came of it in its first round trip. In each segment but
/// the last of a write is as much as fits, and a write ends where a record does. Once the window is
/// full, writes wait and share segments.
#[must_use]
pub fn answer_writes(connection: &Connection, answer: Answer<'_>) -> AnswerWrites {
    let rtt = (connection.counters().and_then(|counters| counters.min_rtt))
        .or(connection.connected())
        .unwrap_or_default();
    // A write takes its time, too.
    let trip = rtt.saturating_sub((rtt / 20).max(LATE));
    let finished = connection.finished().unwrap_or(Duration::MAX);
    let (before, behind): (Vec<Piece>, Vec<Piece>) = pieces(connection)
        .into_iter()
        .partition(|piece| piece.at < finished.saturating_add(trip));
    let sent = sum(before.iter().map(|piece| piece.bytes));
    let (mut early_tickets, mut tickets) = (0, answer.tickets);
    while let [ticket, others @ ..] = tickets
        && answer.begin.saturating_add(early_tickets) < sent
    {
        early_tickets = early_tickets.saturating_add(*ticket);
        tickets = others;
    }
    if answer.begin.saturating_add(early_tickets) != sent {
        return AnswerWrites::default();
    }
    let mut found = AnswerWrites {
        early_tickets,
        ..AnswerWrites::default()
    };
    let mut arrivals = connection.arrivals();
    if !arrivals.all(|(_, arrival)| arrival.counters.is_some()) {
        return found;
    }
    let of_tickets = sum(tickets.iter().copied());
    let (mut came, mut of_window) = (Vec::new(), 0);
    let (mut end, mut until) = (End::default(), None);
    for piece in behind.iter().take_while(|piece| !piece.is_behind_gap) {
        end = end.after(piece.bytes, piece.segments as usize);
        came.push(end);
        if end.bytes > of_tickets {
            until.get_or_insert(piece.at.saturating_add(trip));
        }
        of_window += usize::from(until.is_none_or(|until| piece.at < until));
    }
    let answer = Answer { tickets, ..answer };
    let segment = connection.segment.max(1);
    (found.tickets, found.response) = writes_of(&answer, &came, of_window, segment);
    found
}

/// Where something ends that came: after so many bytes, in so many segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct End {
    bytes: usize,
    segments: usize,
}

impl End {
    fn after(self, bytes: usize, segments: usize) -> End {
        End {
            bytes: self.bytes.saturating_add(bytes),
            segments: self.segments.saturating_add(segments),
        }
    }
}

/// How tickets leave a server: first what supposes least.
#[derive(Clone, Copy, Debug)]
enum TicketsLeave {
    WithResponse,
    Together,
    Each,
}

impl TicketsLeave {
    const ALL: [TicketsLeave; 3] = [
        TicketsLeave::WithResponse,
        TicketsLeave::Together,
        TicketsLeave::Each,
    ];

    fn of(self, tickets: &[usize]) -> Vec<usize> {
        match self {
            TicketsLeave::WithResponse => Vec::new(),
            TicketsLeave::Together => vec![sum(tickets.iter().copied())],
            TicketsLeave::Each => tickets.to_vec(),
        }
    }
}

/// How a response does.
#[derive(Clone, Copy, Debug)]
enum ResponseLeaves {
    InOneWrite,
    /// So many records in a write.
    Records(usize),
    /// The head of HTTP in the first record, and a body in all others.
    HeadFirst,
}

impl ResponseLeaves {
    const ALL: [ResponseLeaves; 6] = [
        ResponseLeaves::InOneWrite,
        ResponseLeaves::Records(1),
        ResponseLeaves::HeadFirst,
        ResponseLeaves::Records(2),
        ResponseLeaves::Records(3),
        ResponseLeaves::Records(4),
    ];

    fn of(self, records: &[usize]) -> Vec<usize> {
        let together = |records: &[usize]| sum(records.iter().copied());
        match (self, records) {
            (ResponseLeaves::HeadFirst, [head, body @ ..]) => vec![*head, together(body)],
            (ResponseLeaves::Records(count), records) => {
                records.chunks(count.max(1)).map(together).collect()
            }
            (_, records) => vec![together(records)],
        }
    }
}

/// The writes of tickets and of a response of which pieces came that end there, so many of them of
/// one window.
fn writes_of(
    answer: &Answer<'_>,
    came: &[End],
    of_window: usize,
    segment: usize,
) -> (Vec<usize>, Option<ResponseWrites>) {
    let of_tickets = sum(answer.tickets.iter().copied());
    let is_of_tickets = |end: &&End| end.bytes <= of_tickets;
    let tickets_alone = came.iter().take_while(is_of_tickets).count();
    if came.len() == tickets_alone {
        return (Vec::new(), None);
    }
    let writes = |leaves: ResponseLeaves| first_ones(leaves.of(answer.records));
    // Several records in a write that take as many segments as apart come as late.
    let segments = |leaves: ResponseLeaves| {
        let writes = leaves.of(answer.records);
        sum(writes.iter().map(|write| write.div_ceil(segment)))
    };
    let at_once = came.get(..of_window).unwrap_or(came);
    let mut ways = fitting(answer, at_once, segment);
    if let (true, Some((tickets, response))) = (of_window > tickets_alone, ways.next()) {
        let first = writes(response);
        let is_as_long = |other: ResponseLeaves| {
            matches!(other, ResponseLeaves::Records(2..)) && segments(other) == segments(response)
        };
        let response = ResponseWrites {
            // Of what does not fit, the last one stands for the rest.
            is_certain: first.len() < ExchangeWrites::MOST
                && ways.all(|(_, other)| writes(other) == first || is_as_long(other)),
            first,
        };
        return (tickets.of(answer.tickets), Some(response));
    }
    // The first segments behind them show tickets: of two pieces, as a segment can be counted
    // early.
    let begun = came.get(..tickets_alone + 2).unwrap_or(came);
    let tickets = fitting(answer, begun, segment).next();
    let tickets = tickets.map_or_else(Vec::new, |(tickets, _)| tickets.of(answer.tickets));
    (tickets, None)
}

/// The ways to leave that these pieces fit, the simplest first.
fn fitting<'a>(
    answer: &'a Answer<'_>,
    came: &'a [End],
    segment: usize,
) -> impl Iterator<Item = (TicketsLeave, ResponseLeaves)> + 'a {
    let ways = ResponseLeaves::ALL
        .into_iter()
        .flat_map(|response| TicketsLeave::ALL.map(|tickets| (tickets, response)));
    ways.filter(move |(tickets, response)| {
        let mut writes = tickets.of(answer.tickets);
        // More are not reported.
        let is_reported = writes.len() <= MOST_WRITES;
        let mut response = response.of(answer.records);
        if let (TicketsLeave::WithResponse, Some(first)) = (tickets, response.first_mut()) {
            *first = first.saturating_add(sum(answer.tickets.iter().copied()));
        }
        writes.append(&mut response);
        writes.extend(answer.behind);
        is_reported && fits(&writes, came, segment)
    })
}

/// Whether pieces that end there are of these writes. More segments can have been counted than were
/// read, but not for long.
fn fits(writes: &[usize], came: &[End], segment: usize) -> bool {
    let mut writes = writes.iter();
    let (mut before, mut write) = (End::default(), 0_usize);
    came.iter().enumerate().all(|(number, end)| {
        while end.bytes > before.bytes.saturating_add(write) {
            before = before.after(write, write.div_ceil(segment));
            match writes.next() {
                Some(next) => write = *next,
                // More came than is known.
                None => return false,
            }
        }
        let within = end.bytes.saturating_sub(before.bytes);
        let is_end = within == write || within.is_multiple_of(segment);
        let least = before.segments.saturating_add(within.div_ceil(segment));
        let is_last = number + 1 == came.len();
        is_end && least <= end.segments && (!is_last || least == end.segments)
    })
}

/// The first of these writes, of which the last repeats until there is no more; empty if it is one.
fn first_ones(mut writes: Vec<usize>) -> Vec<usize> {
    if writes.len() == 1 {
        return Vec::new();
    }
    // What is left for it is no size of its own.
    if let [.., before, last] = writes.as_slice()
        && last <= before
    {
        writes.pop();
    }
    while let [.., before, last] = writes.as_slice()
        && last == before
    {
        writes.pop();
    }
    writes.truncate(ExchangeWrites::MOST);
    writes
}

fn sum(bytes: impl Iterator<Item = usize>) -> usize {
    bytes.fold(0, usize::saturating_add)
}

/// Of pieces of so many bytes in so many segments.
fn of(came: &[(usize, usize)], segment: usize) -> Writes {
    let mut found = Writes {
        first: Vec::new(),
        is_certain: true,
    };
    // What segments are not full, up to each piece. One that comes between reading and counting
    // counts with the piece before, which then seems to have had more room than is left in the end.
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
#[allow(clippy::indexing_slicing, clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Arrival, Counters, Event};

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

    /// What pieces of so many bytes in so many segments tell of tickets and a response.
    fn answered(
        tickets: &[usize],
        records: &[usize],
        came: &[(usize, usize)],
    ) -> (Vec<usize>, Option<ResponseWrites>) {
        let came = came.iter().scan(End::default(), |end, (bytes, segments)| {
            *end = end.after(*bytes, *segments);
            Some(*end)
        });
        let answer = Answer {
            tickets,
            records,
            ..Answer::default()
        };
        writes_of(&answer, &came.collect::<Vec<_>>(), usize::MAX, 1448)
    }

    fn seen(first: &[usize]) -> Option<ResponseWrites> {
        Some(ResponseWrites {
            first: first.to_vec(),
            is_certain: true,
        })
    }

    /// The same where something else fits too.
    fn supposed(first: &[usize]) -> Option<ResponseWrites> {
        Some(ResponseWrites {
            first: first.to_vec(),
            is_certain: false,
        })
    }

    #[test]
    fn tickets_leave_with_the_response_or_before_it() {
        let of = |came: &[(usize, usize)]| answered(&[287, 287], &[16_406; 4], came);
        let one = supposed(&[]);
        // nginx: each in a segment of its own, however they are read.
        for came in [
            &[(287, 1), (287, 1), (1448, 1), (1448, 1)][..],
            &[(574, 2), (2896, 2)],
            &[(3470, 4)],
            &[(3470, 4), (11_584, 8)],
            // Counted early.
            &[(287, 2), (287, 0), (2896, 3), (1448, 0)],
        ] {
            assert_eq!(of(came), (vec![287, 287], one.clone()), "{came:?}");
        }
        for came in [
            &[(574, 1), (1448, 1), (1448, 1)][..],
            &[(574 + 1448, 2), (1448, 1)],
            &[(574 + 2896, 3), (1448, 1)],
        ] {
            assert_eq!(of(came), (vec![574], one.clone()), "{came:?}");
        }
        let alone = &[(1448, 1), (1448, 1)];
        assert_eq!(of(alone), (Vec::new(), one.clone()));
        // Up to here, a record's end would have shown.
        let beyond = &[(4 * 1448, 4), (8 * 1448, 8)];
        assert_eq!(of(beyond), (Vec::new(), seen(&[])));
        // Nobody knows.
        for came in [&[(287, 3), (3000, 9)][..], &[(574, 1)], &[]] {
            assert_eq!(of(came), (Vec::new(), None), "{came:?}");
        }
        // The response ends here.
        assert_eq!(
            answered(&[287, 287], &[300], &[(874, 1)]),
            (Vec::new(), one)
        );
    }

    /// nginx with `ssl_buffer_size 4k`: neither tickets nor records fill their segments.
    #[test]
    fn tickets_are_told_among_short_segments() {
        let records = [4118, 4118, 2500];
        let of = |came: &[(usize, usize)]| answered(&[287, 287], &records, came);
        for came in [
            &[
                (287, 1),
                (287, 1),
                (1448, 1),
                (1448, 1),
                (1222, 1),
                (1448, 1),
                (1448, 1),
                (1222, 1),
            ][..],
            &[(574, 2), (4118, 3), (4118, 3)],
            &[(574 + 4118 + 1448, 6), (1448, 1), (1222, 1)],
            &[(574 + 2 * 4118, 8)],
            &[(574 + 4118, 5), (4118, 3)],
        ] {
            assert_eq!(of(came), (vec![287, 287], seen(&[4118])), "{came:?}");
        }
        // As many segments as in one write.
        let whole = (574 + 2 * 4118 + 2500, 10);
        assert_eq!(of(&[whole]), (vec![287, 287], supposed(&[])));
        // As BoringSSL has it: with the first record.
        let came = [(1448, 1), (1448, 1), (574 + 4118 - 2896, 2), (4118, 3)];
        assert_eq!(of(&came), (Vec::new(), seen(&[4118])));
        assert_eq!(
            of(&[(574, 1), (4118, 3), (4118, 3)]),
            (vec![574], seen(&[4118]))
        );
        // What follows fits nothing, and its beginning shows tickets all the same.
        let came = [
            (287, 1),
            (287, 1),
            (1448, 1),
            (1448, 1),
            (900, 1),
            (1448, 1),
        ];
        assert_eq!(of(&came), (vec![287, 287], None));
    }

    /// Go's net/http: what its buffer held, and then all else, each in records that grow.
    #[test]
    fn records_that_grow_are_a_write_each() {
        let records = [1208, 2394, 560, 4766, 3244];
        let came = [
            (1208, 1),
            (1448, 1),
            (946, 1),
            (560, 1),
            (4766, 4),
            (1448, 1),
            (1448, 1),
        ];
        let writes = seen(&[1208, 2394, 560, 4766]);
        assert_eq!(answered(&[], &records, &came), (Vec::new(), writes.clone()));
        assert_eq!(answered(&[], &records, &[(8928, 8)]), (Vec::new(), writes));
        // One that has more to send does not repeat its last record, but what that is was not seen.
        let growing: Vec<usize> = (1..=20).map(|times| 1000 * times).collect();
        assert_eq!(first_ones(growing.clone()), growing[..ExchangeWrites::MOST]);
    }

    #[test]
    fn a_head_can_leave_apart() {
        let records = [221, 16_406, 3000];
        let came = [(221, 1), (1448, 1), (11 * 1448, 11), (1448, 1)];
        assert_eq!(
            answered(&[], &records, &came),
            (Vec::new(), seen(&[221, 19_406]))
        );
        let each = [(221, 1), (16_406, 12), (1448, 1)];
        assert_eq!(answered(&[], &records, &each).1, seen(&[221, 16_406]));
        assert_eq!(answered(&[], &records, &[(1448, 1)]).1, supposed(&[]));
    }

    /// Two records of 1222 bytes take two segments together, and two of 522 bytes one.
    #[test]
    fn several_records_can_leave_in_a_write() {
        let records = [[1222; 10].as_slice(), &[522; 12]].concat();
        let first = [(10 * 1222, 10)];
        let told = answered(&[], &records, &first).1.unwrap();
        assert_eq!((told.first.len(), told.is_certain), (11, false));
        let alike = [1222; 22];
        assert_eq!(answered(&[], &alike, &first).1, seen(&[1222]));
        // Where it shows, it is told.
        let shown = [(10 * 1222, 10), (1044, 1), (1044, 1)];
        let pairs = answered(&[], &records, &shown).1.unwrap();
        assert_eq!(pairs.first, [2444, 2444, 2444, 2444, 2444, 1044]);
        // More than are told are not certain.
        let many: Vec<usize> = (0..30).map(|number| 300 + number % 2 * 900).collect();
        let came: Vec<(usize, usize)> = many.iter().map(|bytes| (*bytes, 1)).collect();
        let told = answered(&[], &many, &came).1.unwrap();
        assert_eq!(
            (told.first.len(), told.is_certain),
            (ExchangeWrites::MOST, false)
        );
    }

    #[test]
    fn what_repeats_is_said_once() {
        assert!(first_ones(vec![9000]).is_empty());
        assert_eq!(first_ones(vec![4118, 4118, 4118, 77]), [4118]);
        assert_eq!(first_ones(vec![4118, 77]), [4118]);
        assert_eq!(first_ones(vec![77, 4118]), [77, 4118]);
        assert_eq!(first_ones(vec![77, 4118, 4118]), [77, 4118]);
        assert!(first_ones(Vec::new()).is_empty());
    }

    /// A connection of so many bytes in so many segments at these milliseconds, whose client is
    /// done with the handshake at 100.
    fn connection(came: &[(u64, usize, u32)]) -> Connection {
        let ms = Duration::from_millis;
        let mut events = vec![(ms(50), Event::Connected), (ms(50), Event::Hello(300))];
        let mut counted = Counters {
            min_rtt: Some(ms(50)),
            ..Counters::default()
        };
        for (at, bytes, segments) in came {
            if *at > 100 && !events.contains(&(ms(100), Event::Finished(150))) {
                events.push((ms(100), Event::Finished(150)));
            }
            counted.segments += segments;
            let arrival = Arrival {
                bytes: *bytes,
                counters: Some(counted),
            };
            events.push((ms(*at), Event::Arrived(arrival)));
        }
        Connection {
            segment: 1448,
            headers: 52,
            events,
        }
    }

    /// What came a round trip later was cut by the window, and says nothing of writes.
    #[test]
    fn only_the_first_flight_tells() {
        let answer = Answer {
            begin: 1700,
            tickets: &[287, 287],
            records: &[4118; 9],
            behind: &[],
        };
        let first = [
            (100, 1700, 2),
            (150, 574, 2),
            (150, 8236, 6),
            (151, 2896, 2),
        ];
        let later = [(200, 14_480, 10), (201, 1222 + 7 * 1448, 8)];
        for came in [&first[..], &[&first[..], &later].concat()] {
            let found = answer_writes(&connection(came), answer);
            assert_eq!((found.early_tickets, found.tickets), (0, vec![287, 287]));
            assert_eq!(found.response, seen(&[4118]), "{came:?}");
        }
        // Nobody counted, or more came before than was read.
        let mut uncounted = connection(&first);
        for (_, event) in &mut uncounted.events {
            if let Event::Arrived(arrival) = event {
                arrival.counters = None;
            }
        }
        for (connection, begin) in [(uncounted, 1700), (connection(&first), 1600)] {
            let found = answer_writes(&connection, Answer { begin, ..answer });
            assert_eq!(
                (found.tickets, found.response),
                (Vec::new(), None),
                "{begin}"
            );
        }
        assert_eq!(
            answer_writes(&Connection::default(), answer),
            AnswerWrites::default()
        );
    }

    /// Go has its tickets behind its Finished, before it knows the client's.
    #[test]
    fn tickets_can_leave_with_the_handshake() {
        let answer = Answer {
            begin: 1700,
            tickets: &[130],
            records: &[1208, 2394, 560],
            behind: &[24],
        };
        let came = [
            (100, 1448, 1),
            (101, 382, 1),
            (150, 1208, 1),
            (150, 2978, 4),
        ];
        let found = answer_writes(&connection(&came), answer);
        assert_eq!((found.early_tickets, found.tickets), (130, Vec::new()));
        assert_eq!(found.response, supposed(&[1208, 2394]));
    }

    proptest! {
        /// What a server wrote in some way is found, or what would look the same: in as many
        /// segments, and none the less certain.
        #[test]
        fn what_was_written_is_found(
            tickets in prop::collection::vec(60_usize..2000, 0..4),
            records in prop::collection::vec(23_usize..16_407, 1..12),
            ways in (0_usize..3, 0_usize..3),
            window in 1_usize..40,
            read in prop::collection::vec(1_usize..6, 1..40),
        ) {
            let (leaves, manner) = (TicketsLeave::ALL[ways.0], ResponseLeaves::ALL[ways.1]);
            let mut writes = leaves.of(&tickets);
            let mut response = manner.of(&records);
            if writes.is_empty() {
                response[0] += tickets.iter().sum::<usize>();
            }
            writes.append(&mut response);
            let segments = writes.iter().flat_map(|write| {
                let full = std::iter::repeat_n(1448, write / 1448);
                full.chain(Some(write % 1448).filter(|rest| *rest > 0))
            });
            let segments: Vec<usize> = segments.take(window).collect();
            // As many of them are read at once.
            let (mut came, mut rest) = (Vec::new(), segments.as_slice());
            for count in read.iter().cycle() {
                let (now, later) = rest.split_at(rest.len().min(*count));
                came.push((now.iter().sum(), now.len()));
                rest = later;
                if rest.is_empty() {
                    break;
                }
            }
            let (_, found) = answered(&tickets, &records, &came);
            let came: usize = segments.iter().sum();
            match found {
                None => prop_assert!(came <= tickets.iter().sum::<usize>()),
                Some(found) if found.is_certain => {
                    prop_assert_eq!(found.first, first_ones(manner.of(&records)));
                }
                Some(_) => {}
            }
        }

        /// Whatever was counted.
        #[test]
        fn any_answer_is_told_or_not(
            tickets in prop::collection::vec(any::<usize>(), 0..9),
            records in prop::collection::vec(any::<usize>(), 0..30),
            came in prop::collection::vec((0_usize..20_000, 0_usize..20), 0..20),
        ) {
            let (_, found) = answered(&tickets, &records, &came);
            prop_assert!(found.is_none_or(|found| found.first.len() <= ExchangeWrites::MOST));
        }
    }

    /// The kernel counts what has come when it is asked, a moment after the bytes were read.
    #[test]
    fn segments_that_are_counted_too_early_end_no_write() {
        assert_eq!(of(&[(100, 2), (100, 0), (40, 1)], 100), certain(&[]));
    }
}
