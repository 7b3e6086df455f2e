//! The server's initial window.

use std::fmt;
use std::time::Duration;

use lastbyte_exchange::{Exchange, HandshakeFlight, Transfer};
use lastbyte_flights::{Compute, Growth, Path, timeline};
use lastbyte_link::{Direction, Link, Side};
use serde::{Deserialize, Serialize};

use crate::rounds::{Ending, Piece, Round, of, pieces};
use crate::{Connection, MOST_WINDOW, Rtt, path};

/// What is known of the server's initial window, in segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The smallest that it can be.
    pub least: u32,
    /// The largest that it can be; none where nothing bounds it.
    pub most: Option<u32>,
    /// How sure that is.
    pub certainty: Certainty,
    /// How a flight comes.
    pub pacing: Pacing,
}

/// How sure a window is: documents have the names in lower case, with hyphens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Certainty {
    /// Two flights or more, of segments of different sizes or of different places, agree on it, and
    /// none objects.
    Exact,
    /// One flight says so.
    Likely,
    /// A range, because several windows look the same.
    Between,
    /// No flight was ended by the window.
    AtLeast,
    /// Flights disagree, or packets were lost that hide it.
    Uncertain,
}

/// How segments of a flight follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pacing {
    /// At once, or as fast as the path lets them.
    AtOnce,
    /// Spread over the round trip, with less than the path carries.
    Paced,
}

/// What one connection says of the window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// Of the server's first flight, which begins with the window itself, or with what an
    /// acknowledged HelloRetryRequest has made of it by slow start.
    pub handshake: Evidence,
    /// The same where BBR has made it of it, whose window also grows while it is not full.
    pub handshake_of_bbr: Evidence,
    /// Of the response, which begins with what slow start has made of it.
    pub response: Evidence,
    /// The same where BBR has made it of it, whose window also grows while it is not full.
    pub response_of_bbr: Evidence,
    /// Flights that were paced.
    pub paced: usize,
    /// Segments of the connection that came behind a gap, or that the client sent again.
    pub lost: u32,
}

/// What a flight shows of the initial window.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Evidence {
    /// Nothing: there was none, or packets were lost.
    #[default]
    Nothing,
    /// The window was not what ended it. These could have carried it; without an upper end if
    /// [`MOST_WINDOW`] is among them.
    Open(Vec<u32>),
    /// The path was full all the while, so the window was not seen to end. These could have filled
    /// it, likewise.
    Full(Vec<u32>),
    /// The window ended it, and these would have so.
    Closed(Vec<u32>),
}

impl fmt::Debug for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Evidence::Nothing => return f.write_str("Nothing"),
            Evidence::Open(_) => "Open",
            Evidence::Full(_) => "Full",
            Evidence::Closed(_) => "Closed",
        };
        let candidates = self.candidates().unwrap_or_default();
        match candidates {
            [least, .., most] => write!(f, "{name}({least}..={most}, {})", candidates.len()),
            few => write!(f, "{name}({few:?})"),
        }
    }
}

impl Evidence {
    /// Those that agree with it, if it says anything.
    #[must_use]
    pub fn candidates(&self) -> Option<&[u32]> {
        match self {
            Evidence::Nothing => None,
            Evidence::Open(candidates)
            | Evidence::Full(candidates)
            | Evidence::Closed(candidates) => Some(candidates),
        }
    }
}

/// A flight as it was observed: what came in its first rounds.
#[derive(Clone, Debug)]
struct ObservedFlight {
    rounds: Vec<Round>,
}

/// Within less, nobody can tell a round trip from the time that ends take to wake.
pub(crate) const LEAST_RTT: Duration = Duration::from_millis(1);

/// More than any segment has, in bytes, and than headers have.
const MOST_SEGMENT: usize = 65_535;
const LEAST_HEADERS: usize = 40;
const MOST_HEADERS: usize = 120;
/// The longest that a client waits before it acknowledges (`TCP_DELACK_MIN`, and a tick).
const DELAYED_ACK: Duration = Duration::from_millis(44);
/// What a server's retransmission timeout is above the round trip, and how long it has to be idle
/// to begin anew.
const TIMEOUT: Duration = Duration::from_millis(200);
/// No round trip and no server takes longer.
const LONGEST: Duration = Duration::from_secs(60);

/// A flight as arithmetic has it: segments of each round.
type Expected = Vec<u32>;

/// Which initial windows agree with what came on this connection.
#[must_use]
pub fn candidates(connection: &Connection, rtt: &Rtt) -> Look {
    if rtt.least < LEAST_RTT || path::is_late(connection, rtt) {
        return Look::default();
    }
    let Some(flights) = Flights::of(connection, rtt) else {
        return Look::default();
    };
    let handshake = |growth| {
        let begins = |window| flights.begins_with(window, growth);
        flights.evidence(&flights.handshake, begins)
    };
    let response = |goes_on: &dyn Fn(u32, &ObservedFlight) -> bool| {
        let observed = flights.response.as_ref();
        let evidence =
            observed.map(|observed| flights.evidence(observed, |window| goes_on(window, observed)));
        evidence.unwrap_or_default()
    };
    Look {
        paced: flights
            .observed()
            .filter(|observed| observed.is_paced(rtt))
            .count(),
        lost: flights.lost,
        handshake: handshake(Growth::Used),
        handshake_of_bbr: handshake(Growth::Always),
        response: response(&|window, observed| flights.goes_on_with(window, observed)),
        response_of_bbr: response(&|window, observed| flights.goes_on_with_bbr(window, observed)),
    }
}

/// Both flights of a connection, and the exchange that they were of.
struct Flights<'a> {
    connection: &'a Connection,
    rtt: Duration,
    /// Segments of a HelloRetryRequest, which was acknowledged before the server's flight.
    retry: u32,
    handshake: ObservedFlight,
    response: Option<ObservedFlight>,
    /// Segments that came before the response and after the handshake.
    tickets: u32,
    /// Whether the server knew before the response that all of them had come.
    is_acknowledged: bool,
    think: Duration,
    /// From the client's Finished to its request.
    pause: Duration,
    /// Segments of this connection that were lost, as far as we know.
    lost: u32,
}

impl<'a> Flights<'a> {
    fn of(connection: &'a Connection, rtt: &Rtt) -> Option<Flights<'a>> {
        connection.hello()?;
        let counted = |pieces: &[Piece]| {
            let segments = pieces.iter().map(|piece| piece.segments);
            segments.fold(0, u32::saturating_add)
        };
        let spread = rtt.spread().min(rtt.least / 8);
        let of = |pieces: &[Piece]| ObservedFlight {
            rounds: of(pieces, rtt.least, spread),
        };
        let pieces = pieces(connection);
        let (retry, all) = pieces.split_at_checked(connection.arrivals_before_hello())?;
        let finished = connection.finished();
        // What answers the client's Finished can't be there before.
        let answer = finished.map_or(Duration::MAX, |at| {
            (at.saturating_add(rtt.least))
                .saturating_sub(crate::rounds::tolerance(rtt.least, spread))
        });
        let split = all.partition_point(|piece| piece.at < answer);
        let (before, after) = all.split_at_checked(split)?;
        let first_byte = connection.first_byte().unwrap_or(Duration::MAX);
        let early = after.partition_point(|piece| piece.at < first_byte);
        let (tickets, response) = after.split_at_checked(early)?;
        let begins = response.first().map(|piece| piece.at);
        let requested = connection.requested();
        let lead = tickets
            .first()
            .zip(begins)
            .map_or(Duration::ZERO, |(first, begins)| {
                begins.saturating_sub(first.at)
            });
        let tolerance = crate::rounds::tolerance(rtt.least, spread);
        // Nothing was waited for where the path still had tickets to carry.
        let gap = |pair: &[Piece]| match pair {
            [one, other] => other.at.saturating_sub(one.at),
            _ => Duration::ZERO,
        };
        let between = tickets.windows(2).map(gap).max().unwrap_or_default();
        let last = (tickets.last().zip(begins)).map_or(Duration::ZERO, |(last, begins)| {
            begins.saturating_sub(last.at)
        });
        let early = counted(tickets);
        let is_apart = lead > tolerance && last > between.saturating_mul(3) / 2;
        let (tickets, response) = if is_apart {
            (tickets, response)
        } else {
            (&after[..0], after)
        };
        let think = begins
            .zip(finished)
            .map_or(Duration::ZERO, |(begins, finished)| {
                begins.saturating_sub(finished.saturating_add(rtt.least))
            });
        let pause = requested
            .zip(finished)
            .map_or(Duration::ZERO, |(requested, finished)| {
                requested.saturating_sub(finished)
            });
        let has_lost = retry
            .iter()
            .chain(before)
            .chain(tickets)
            .any(|piece| piece.is_disordered);
        let handshake = of(before);
        Some(Flights {
            connection,
            rtt: rtt.least,
            retry: counted(retry),
            // What is lost changes the window for good. While tickets are on their way, their
            // acknowledgement opens the window in the midst of the flight.
            response: (!response.is_empty()
                && !has_lost
                && (!is_apart || lead > rtt.least.saturating_add(rtt.least / 4)))
            .then(|| of(response))
            .filter(|response| is_apart || !response.is_answered_within(early)),
            tickets: counted(tickets),
            is_acknowledged: last > rtt.least.saturating_add(DELAYED_ACK),
            think,
            pause,
            lost: (connection.counters()).map_or(0, |counters| {
                counters.out_of_order.saturating_add(counters.retransmitted)
            }),
            handshake,
        })
    }

    /// Whether the first round of a flight, behind so many segments, came so fast that BBR did not
    /// send it with such an initial window: it leaves with 2.885 times what a round trip holds at
    /// most (`bbr_high_gain`), but for the first ten segments of a connection
    /// (`tcp_update_skb_after_send`) and what leaves together, a millisecond's (`sk_pacing_shift`).
    fn is_faster_than_bbr(&self, window: u32, before: u32, first: &Round) -> bool {
        const AT_ONCE: u32 = 10;
        let within = f64::from(window.max(before));
        let trip = self.rtt.as_secs_f64();
        let rate = f64::from(Growth::BBR_GAIN) / 1e3 * within / trip;
        let together = (rate / 1e3).ceil().max(2.0);
        let paced = f64::from(
            first
                .segments
                .saturating_sub(AT_ONCE.saturating_sub(before)),
        );
        let least = (paced - together) / rate;
        // Times of arrival are no clockwork.
        first.end.saturating_sub(first.start).as_secs_f64() < 0.7 * least
    }

    fn observed(&self) -> impl Iterator<Item = &ObservedFlight> {
        [Some(&self.handshake), self.response.as_ref()]
            .into_iter()
            .flatten()
            .filter(|observed| !observed.rounds.is_empty())
    }

    /// Those that are worth a walk: slow start only adds to a window, and not more than what it
    /// sent.
    fn possible(&self, observed: &ObservedFlight) -> impl Iterator<Item = u32> + use<> {
        let round = observed.rounds.first();
        let (segments, ending) =
            round.map_or((0, Ending::Unknown), |round| (round.segments, round.ending));
        let before = if std::ptr::eq(observed, &raw const self.handshake) {
            0
        } else {
            self.handshake.segments().saturating_add(self.tickets)
        };
        let hellos = u32::try_from(self.connection.hellos()).unwrap_or(u32::MAX);
        let least = segments.saturating_sub(before.saturating_add(hellos).saturating_add(4));
        let most = match ending {
            Ending::Window | Ending::Answered => {
                segments.saturating_add(self.tickets).saturating_add(4)
            }
            _ => MOST_WINDOW,
        };
        least.clamp(1, MOST_WINDOW)..=most.min(MOST_WINDOW)
    }

    fn evidence(&self, observed: &ObservedFlight, agrees: impl Fn(u32) -> bool) -> Evidence {
        let candidates = || {
            self.possible(observed)
                .filter(|window| agrees(*window))
                .collect()
        };
        match observed.ending() {
            Ending::Unknown => Evidence::Nothing,
            Ending::Data => Evidence::Open(candidates()),
            Ending::Path => Evidence::Full(candidates()),
            Ending::Window | Ending::Answered => Evidence::Closed(candidates()),
        }
    }

    fn begins_with(&self, window: u32, growth: Growth) -> bool {
        let [handshake, _] = self.expected(window, 0, Duration::ZERO, growth);
        let first = self.handshake.rounds.first();
        // Without a HelloRetryRequest both ways of growing begin alike, and the flight has nothing
        // to tell them apart by.
        let is_too_fast = growth != Growth::Used
            && self.retry > 0
            && first.is_some_and(|first| self.is_faster_than_bbr(window, self.retry, first));
        !is_too_fast && self.handshake.agrees_with(&handshake, 0)
    }

    /// Segments that came before the response.
    fn before_response(&self) -> u32 {
        let handshake = self.retry.saturating_add(self.handshake.segments());
        handshake.saturating_add(self.tickets)
    }

    fn goes_on_with(&self, window: u32, observed: &ObservedFlight) -> bool {
        let agrees = |more| {
            let [_, response] = self.expected(window, more, Duration::ZERO, Growth::Used);
            // How a window opens depends on how acknowledgements came, a segment or two; and some
            // that were lost were not seen.
            let has_opened = response.first().is_some_and(|first| *first > window);
            let slack = match () {
                () if has_opened || self.lost > 0 => 2,
                // The last of the tickets may not be acknowledged yet, and have a place in the
                // window.
                () if self.tickets > 0 && !self.is_acknowledged => 1,
                () => 0,
            };
            observed.agrees_with(&response, slack)
        };
        // Tickets are acknowledged, and may have opened the window.
        agrees(0)
            || self.tickets > 0 && agrees(self.tickets)
            || self.begins_anew_with(window, observed)
    }

    /// Whether a response of BBR's goes on so. How much its gain leaves room for depends on how it
    /// counts, so anything between all and as little as may be will do.
    fn goes_on_with_bbr(&self, window: u32, observed: &ObservedFlight) -> bool {
        let Some(first) = observed.rounds.first() else {
            return true;
        };
        // What of it was within a round trip: the longer the path took to carry it, the less.
        let trip = self.rtt.as_secs_f64();
        let within = trip / (trip + self.handshake.span().as_secs_f64());
        let gain = (f64::from(Growth::BBR_GAIN) * within) as u32;
        // Tickets came before, and may not be acknowledged yet.
        let acknowledged = if self.is_acknowledged {
            self.tickets
        } else {
            0
        };
        let ways = [
            (Growth::ToGain(gain), acknowledged),
            (Growth::Always, self.tickets),
        ];
        let [least, most] = ways.map(|(growth, more)| {
            let [_, response] = self.expected(window, more, Duration::ZERO, growth);
            response.first().copied()
        });
        let (Some(least), Some(most)) = (least, most) else {
            return true;
        };
        if self.is_faster_than_bbr(window, self.before_response(), first) {
            return false;
        }
        // Where the gain has a say, that depends on how many were acknowledged at once.
        let slack = match () {
            () if self.lost > 0 => 2,
            () if least < most => 1,
            () => 0,
        };
        let segments = first.segments.min(MOST_WINDOW);
        let reaches = most.min(MOST_WINDOW).saturating_add(slack) >= segments;
        match first.ending {
            Ending::Unknown => true,
            Ending::Path | Ending::Data => reaches,
            Ending::Window | Ending::Answered => {
                reaches && least.min(MOST_WINDOW).saturating_sub(slack) <= segments
            }
        }
    }

    /// Whether the server, having had nothing to send for so long, begins again with its initial
    /// window (`tcp_slow_start_after_idle`), which not every server does.
    fn begins_anew_with(&self, window: u32, observed: &ObservedFlight) -> bool {
        // It has been idle since it sent its flight, of which the last came after the first.
        let idle = self.think.saturating_add(self.handshake.span());
        if idle.max(self.pause) < TIMEOUT {
            return false;
        }
        // Tickets may have opened it, or not.
        [0, self.tickets].into_iter().any(|more| {
            let [_, anew] = self.expected(window, more, idle, Growth::Used);
            observed.agrees_with(&anew, if self.lost > 0 { 2 } else { 0 })
        })
    }

    /// What would come with this window, in segments. `more` are segments before the response, as
    /// if they were of the handshake; `rest` is how long the server has had nothing to send.
    fn expected(&self, window: u32, more: u32, rest: Duration, growth: Growth) -> [Expected; 2] {
        let segment = self.connection.segment.clamp(1, MOST_SEGMENT);
        let in_handshake = self.handshake.segments().saturating_add(more);
        let segments = |count: u32| {
            usize::try_from(count)
                .unwrap_or(usize::MAX)
                .saturating_mul(segment)
        };
        let first = self
            .response
            .as_ref()
            .and_then(|observed| observed.rounds.first())
            .map_or(0, |round| round.segments);
        let all = self.response.as_ref().map_or(0, ObservedFlight::segments);
        let hello = self.connection.written(true).clamp(1, 8 * segment);
        let retry = segments(self.retry.min(MOST_WINDOW));
        let flights = [
            (HandshakeFlight::ClientHello, hello),
            (HandshakeFlight::HelloRetryRequest, retry),
            (
                HandshakeFlight::SecondClientHello,
                if self.retry > 0 { hello } else { 0 },
            ),
            (
                HandshakeFlight::Server,
                segments(in_handshake.min(8 * MOST_WINDOW)),
            ),
            (
                HandshakeFlight::ClientFinish,
                self.connection.written(false).clamp(1, segment),
            ),
        ];
        let mut exchange = Exchange::default();
        let flights = flights.map(|(flight, bytes)| (flight, u32::try_from(bytes).ok()));
        exchange.handshake.see_all(flights);
        // With what is left of both, no flight is cut short.
        let response = (first.saturating_mul(3).saturating_add(8)).min(8 * MOST_WINDOW);
        exchange.response = Some(Transfer::seen(segments(all.min(response))));
        let path = Path {
            link: Link::symmetric(self.rtt.min(LONGEST), Direction::default()),
            mss: segment,
            headers: (self.connection.headers).clamp(LEAST_HEADERS, MOST_HEADERS),
            server_initcwnd: window,
            growth,
            compute: Compute {
                response: rest.min(LONGEST),
                ..Compute::default()
            },
            ..Path::default()
        };
        let timeline = timeline(&exchange, &path);
        let mut flights: [Expected; 2] = Default::default();
        let [handshake, response] = &mut flights;
        let of_server = timeline.flights.iter();
        let of_server = of_server.filter(|flight| flight.sender == Side::Server);
        let mut retried = self.retry;
        for flight in of_server {
            if flight.start >= timeline.handshake {
                response.push(flight.segments);
            } else if retried > 0 {
                // The HelloRetryRequest is acknowledged as a whole, and no part of what was
                // observed.
                retried = retried.saturating_sub(flight.segments);
            } else {
                handshake.push(flight.segments);
            }
        }
        flights
    }
}

impl ObservedFlight {
    fn ending(&self) -> Ending {
        self.rounds
            .first()
            .map_or(Ending::Unknown, |round| round.ending)
    }

    fn span(&self) -> Duration {
        let ends = self.rounds.first().zip(self.rounds.last());
        ends.map_or(Duration::ZERO, |(first, last)| {
            last.end.saturating_sub(first.start)
        })
    }

    fn segments(&self) -> u32 {
        let segments = self.rounds.iter().map(|round| round.segments);
        segments.fold(0, u32::saturating_add)
    }

    /// Whether its first round shows no more than that so many came before, and were acknowledged.
    fn is_answered_within(&self, segments: u32) -> bool {
        let first = self.rounds.first();
        first.is_some_and(|round| round.ending == Ending::Answered && round.segments <= segments)
    }

    /// Whether arithmetic has the same, but for so many segments.
    fn agrees_with(&self, expected: &Expected, slack: u32) -> bool {
        let (Some(observed), Some(first)) = (self.rounds.first(), expected.first()) else {
            return true;
        };
        // Larger windows are not distinguished.
        let (first, segments) = (
            (*first).min(MOST_WINDOW),
            observed.segments.min(MOST_WINDOW),
        );
        match observed.ending {
            Ending::Unknown => true,
            Ending::Path | Ending::Data => first.saturating_add(slack) >= segments,
            Ending::Window | Ending::Answered => {
                let second = self.rounds.get(1).zip(expected.get(1));
                let follows = second.is_none_or(|(round, expected)| match round.ending {
                    Ending::Unknown => true,
                    Ending::Window => {
                        // An odd segment is acknowledged late, or not, and opens the window then.
                        let slack = (round.segments / 8).max(2) + 2 * slack;
                        round.segments.abs_diff(*expected) <= slack
                    }
                    Ending::Data | Ending::Answered | Ending::Path => {
                        round.segments <= expected.saturating_add(2 + 2 * slack)
                    }
                });
                first.abs_diff(segments) <= slack && follows
            }
        }
    }

    /// Whether the first round is spread, and what comes later shows that the path could have
    /// carried it faster.
    fn is_paced(&self, rtt: &Rtt) -> bool {
        let Some(first) = self.rounds.first() else {
            return false;
        };
        let pace = |round: &Round| {
            let time = round.end.saturating_sub(round.start).as_secs_f64();
            f64::from(round.segments.saturating_sub(1)) / time.max(1e-6)
        };
        let spread = first.end.saturating_sub(first.start);
        first.segments > 3
            && spread > rtt.least / 5
            && (self.rounds.iter().skip(1))
                .any(|later| later.segments > 3 && pace(later) > 1.6 * pace(first))
    }
}

/// What several looks come to.
pub(crate) fn window(looks: &[Look]) -> Option<Window> {
    let pacing = if looks.iter().any(|look| look.paced > 0) {
        Pacing::Paced
    } else {
        Pacing::AtOnce
    };
    let usual = verdict(looks, |look| [&look.handshake, &look.response])?;
    let of_bbr = verdict(looks, |look| {
        [&look.handshake_of_bbr, &look.response_of_bbr]
    })
    .filter(|of_bbr| of_bbr.certainty != Certainty::Uncertain);
    // What is lost changes what a window has become, so that responses disagree is no sign of BBR.
    let is_lossy = looks.iter().any(|look| look.lost > 0);
    let Verdict {
        least,
        most,
        certainty,
        ..
    } = match of_bbr {
        // Who paces its flights, and grows as BBR alone does, is that.
        Some(of_bbr)
            if !is_lossy
                && pacing == Pacing::Paced
                && of_bbr.is_undisputed
                && !usual.is_undisputed =>
        {
            of_bbr
        }
        // And who grows as slow start alone does is not.
        Some(of_bbr) if !is_lossy && usual.is_undisputed && !of_bbr.is_undisputed => usual,
        Some(of_bbr) => usual.or(of_bbr),
        None => usual,
    };
    Some(Window {
        least,
        most,
        certainty,
        pacing,
    })
}

/// A [`Window`] by one way in which windows grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Verdict {
    least: u32,
    most: Option<u32>,
    certainty: Certainty,
    /// Whether no flight objects: neither those that begin with the window, nor responses.
    is_undisputed: bool,
}

impl Verdict {
    /// What is known where either can be.
    fn or(self, other: Verdict) -> Verdict {
        let least = self.least.min(other.least);
        let most = (self.most.zip(other.most)).map(|(one, other)| one.max(other));
        let is_same = (self.least, self.most) == (other.least, other.most);
        Verdict {
            least,
            most,
            is_undisputed: self.is_undisputed && other.is_undisputed,
            certainty: match (self.certainty, most) {
                (Certainty::Uncertain, _) => Certainty::Uncertain,
                (certainty, _) if is_same => certainty,
                (_, None) => Certainty::AtLeast,
                (_, Some(_)) => Certainty::Between,
            },
        }
    }
}

fn verdict(looks: &[Look], flights: impl Fn(&Look) -> [&Evidence; 2]) -> Option<Verdict> {
    let of_looks = || looks.iter().map(&flights);
    let begun: Vec<&Evidence> = of_looks().map(|[handshake, _]| handshake).collect();
    let all: Vec<&Evidence> = of_looks().flatten().collect();
    if all.iter().all(|evidence| evidence.candidates().is_none()) {
        return None;
    }
    let agreed = [agreed(&all), agreed(&begun)];
    let [of_all, of_begun] = &agreed;
    let (evidence, agreed, is_disputed) = match (of_all.is_empty(), of_begun.as_slice()) {
        (false, _) => (&all, of_all, false),
        // What slow start makes of a window is the server's affair: where two flights show it as it
        // is, they have the last word.
        (true, [_]) if closed(&begun) > 1 => (&begun, of_begun, false),
        _ => (&all, of_all, true),
    };
    let range = |least: Option<u32>, most: Option<u32>| {
        (least.unwrap_or(1), most.filter(|most| *most < MOST_WINDOW))
    };
    if is_disputed {
        let candidates = all
            .iter()
            .filter_map(|evidence| evidence.candidates())
            .flatten();
        let (least, most) = range(candidates.clone().min().copied(), candidates.max().copied());
        return Some(Verdict {
            least,
            most,
            certainty: Certainty::Uncertain,
            is_undisputed: false,
        });
    }
    let (least, most) = range(agreed.first().copied(), agreed.last().copied());
    let certainty = match (most, closed(evidence)) {
        (None, _) => Certainty::AtLeast,
        (Some(most), 2..) if most == least => Certainty::Exact,
        (Some(most), _) if most == least => Certainty::Likely,
        (Some(_), _) => Certainty::Between,
    };
    Some(Verdict {
        least,
        most,
        certainty,
        is_undisputed: !of_all.is_empty(),
    })
}

/// The windows that all who say anything agree on.
fn agreed(evidence: &[&Evidence]) -> Vec<u32> {
    let mut candidates = evidence.iter().filter_map(|evidence| evidence.candidates());
    let first = candidates.next().unwrap_or_default().to_vec();
    candidates.fold(first, |mut agreed, others| {
        agreed.retain(|window| others.contains(window));
        agreed
    })
}

fn closed(evidence: &[&Evidence]) -> usize {
    let closed = evidence
        .iter()
        .filter(|evidence| matches!(evidence, Evidence::Closed(_)));
    closed.count()
}
