//! Why a connection took so long, in sentences.

use std::time::Duration;

use lastbyte_capture::{Fate, Flag, Loss, Transmission, Trigger};
use lastbyte_link::{Side, counted};

use super::{Attempt, Extent, Inside, Last, Messages, Next, side};
use crate::thresholds::NOTHING_INSIDE;
use lastbyte_results::number::milliseconds;

/// The sentences, the answer first.
#[must_use]
pub fn story(inside: &Inside) -> Vec<String> {
    // Nobody waits for what leaves when all is over, nor for what closes a connection.
    let end = inside.end().unwrap_or(Duration::MAX);
    let mut losses = inside.connection.losses();
    losses.retain(|loss| {
        inside.lost(loss).is_some_and(|lost| {
            let closes = lost.payload.is_empty() && lost.has(Flag::Fin);
            lost.sent <= end && !closes && !lost.has(Flag::Reset)
        })
    });
    let (matter, others): (Vec<Loss>, Vec<Loss>) = losses
        .into_iter()
        .partition(|loss| inside.lost(loss).is_some_and(Transmission::takes_place));
    let others = others.len();
    let mut sentences = inside.attempt_story();
    sentences.extend(match inside.culprit(&matter) {
        Some(loss) => inside.lost_story(&matter, loss),
        None => vec![inside.quiet_story(others)],
    });
    if others > 0 {
        let (were, those) = match others {
            1 => ("was", "It carries"),
            _ => ("were", "They carry"),
        };
        sentences.push(format!(
            "{} {were} lost besides. {those} no data, and nobody sends one again: the next one says the same.",
            counted(others, "acknowledgement"),
        ));
    }
    sentences
}

impl Inside {
    fn lost(&self, loss: &Loss) -> Option<&Transmission> {
        self.connection.transmissions.get(loss.lost)
    }

    /// The transmissions that followed a loss, until one arrived.
    fn recoveries(&self, loss: &Loss) -> Vec<&Transmission> {
        let losses = self.connection.losses();
        let mut recoveries = Vec::new();
        let mut next = loss.recovery;
        while let Some(index) = next {
            let Some(sent) = self.connection.transmissions.get(index) else {
                break;
            };
            recoveries.push(sent);
            let again = losses.binary_search_by_key(&index, |loss| loss.lost);
            next = again.ok().and_then(|again| losses.get(again)?.recovery);
        }
        recoveries
    }

    /// How much later the first byte of a lost packet was sent so that it arrived; nothing if it was there already.
    fn delay(&self, loss: &Loss) -> Option<Duration> {
        let first = self.connection.transmissions.get(loss.came?)?;
        Some(first.sent.saturating_sub(self.lost(loss)?.sent))
    }

    /// How long a sender heard nothing before it sent its last packet again, and so learnt of a gap that it mended then.
    fn probe(&self, loss: &Loss) -> Option<Duration> {
        let all = self
            .connection
            .transmissions
            .get(loss.lost..loss.recovery?)?;
        let sender = all.first()?.sender;
        all.iter().rev().find_map(|sent| match sent.again {
            Some(Trigger::LossProbe(waited)) if sent.sender == sender => {
                sent.arrived.map(|_| waited)
            }
            _ => None,
        })
    }

    /// What a connection waited for longest: of one that did not end, the oldest that never arrived; else the first of
    /// those that were sent again last.
    fn culprit<'a>(&self, losses: &'a [Loss]) -> Option<&'a Loss> {
        if self.end().is_none()
            && let Some(oldest) = losses.iter().find(|loss| self.delay(loss).is_none())
        {
            return Some(oldest);
        }
        let known = losses.iter().rev();
        known.max_by_key(|loss| self.delay(loss).unwrap_or_default())
    }

    /// That a handshake failed, and what came after.
    fn attempt_story(&self) -> Vec<String> {
        match &self.attempt {
            Attempt::Only => Vec::new(),
            Attempt::Second => vec![
                "It is a second attempt: the handshake of the connection before it failed."
                    .to_owned(),
            ],
            Attempt::Failed { because, next } => {
                let because = match because {
                    Some(because) => format!(": {because}"),
                    None => String::new(),
                };
                let next = match next {
                    Next::Anew => " It was made anew, over the connection after this one.",
                    Next::Nothing => "",
                };
                vec![format!("The handshake failed{because}.{next}")]
            }
        }
    }

    fn lost_story(&self, losses: &[Loss], loss: &Loss) -> Vec<String> {
        let Some(lost) = self.lost(loss) else {
            return Vec::new();
        };
        let cause = match lost.fate {
            Fate::QueueFull => "found the link's queue full",
            _ => "was lost",
        };
        let carried = self.carried(lost);
        let sent = milliseconds(lost.sent);
        let of = side(lost.sender);
        let mut first = match losses.len() {
            1 => format!("One packet {cause}: {carried}, sent by the {of} at {sent}."),
            all => format!(
                "{} were lost. The one that {} {cause}: {carried}, first sent by the {of} at {sent}.",
                counted(all, "packet"),
                match self.end() {
                    Some(_) => "cost most",
                    None => "all waited for",
                }
            ),
        };
        let recoveries = self.recoveries(loss);
        match recoveries.split_first() {
            None => first += " It was not sent again before the capture ended.",
            Some((again, more)) if self.delay(loss).is_none() => {
                let last = more.last().unwrap_or(again);
                first += &format!(
                    " It never arrived: it was sent again {}, the last time at {}.",
                    counted(recoveries.len(), "time"),
                    milliseconds(last.sent)
                );
            }
            Some((again, more)) => {
                first += &format!(" {}", how(again, lost, self.probe(loss)));
                if let Some(last) = more.last() {
                    first += &format!(
                        " That was lost as well; {} more, and what arrived was sent {} after the first.",
                        counted(more.len(), "time"),
                        milliseconds(last.sent.saturating_sub(lost.sent)),
                    );
                }
            }
        }
        let mut sentences = vec![first];
        sentences.extend(self.compared());
        sentences
    }

    /// What the packet had in it.
    fn carried(&self, lost: &Transmission) -> String {
        let what = self.what(lost);
        if lost.payload.is_empty() {
            format!("the {what}")
        } else {
            format!(
                "bytes {} to {} of the {}'s ({what})",
                lost.offset + 1,
                lost.end(),
                side(lost.sender)
            )
        }
    }

    /// When it ended, and when it would have without loss.
    fn compared(&self) -> Option<String> {
        let what = match self.asked.map(|asked| asked.last) {
            None | Some(Last::Response) => "The last byte came",
            Some(Last::Request) => "The last byte reached the server",
            Some(Last::Handshake) => "The handshake was done",
        };
        let Some(end) = self.end() else {
            return self.endless();
        };
        if self.messages == Messages::Sealed {
            return Some(self.sealed(end));
        }
        let told = format!("{what} after {}", milliseconds(end));
        Some(match self.asked.map(|asked| asked.arithmetic) {
            None => format!("{told}."),
            Some(Err(reason)) => {
                format!("{told}. When it would without loss is not by arithmetic: {reason}.")
            }
            Some(Ok(arithmetic)) if end >= arithmetic + NOTHING_INSIDE => format!(
                "{told}: {} later than over a link that loses nothing ({}, by arithmetic).",
                milliseconds(end - arithmetic),
                milliseconds(arithmetic)
            ),
            Some(Ok(arithmetic)) => format!(
                "{told}, and not later than over a link that loses nothing ({}, by arithmetic).",
                milliseconds(arithmetic)
            ),
        })
    }

    /// What is known of the end where nobody knows which byte is the last of the response.
    fn sealed(&self, end: Duration) -> String {
        let bytes = self.connection.stream(Side::Server).len();
        format!(
            "The file has no TLS secrets of it, so which bytes are the response's is not known: the last of the {bytes} \
             bytes that the server sent came {} after connect().",
            milliseconds(end)
        )
    }

    /// That it did not end, or that nobody knows; none where its attempt says so already.
    fn endless(&self) -> Option<String> {
        if matches!(self.attempt, Attempt::Failed { .. }) {
            return None;
        }
        Some(match (self.extent, self.asked.map(|asked| asked.last)) {
            (Extent::OutOfRoom(missing), _) => format!(
                "Its end is not in the capture, which had no room for {}: capture fewer connections.",
                counted(missing, "packet")
            ),
            (Extent::Cut, _) => "Its end is not in the file, which is cut short.".to_owned(),
            (Extent::Whole, _) if self.messages == Messages::Sealed => {
                "The file has no TLS secrets of it, so which bytes are the response's is not known, and not all that the \
                 server sent came."
                    .to_owned()
            }
            (Extent::Whole, Some(Last::Handshake)) => match self.handshake() {
                Some(_) => "The client's Finished never reached the server in time.".to_owned(),
                None => "Its handshake was never done.".to_owned(),
            },
            (Extent::Whole, Some(Last::Request)) => {
                "Its last byte never reached the server in time.".to_owned()
            }
            (Extent::Whole, _) => "Its last byte never came in time.".to_owned(),
        })
    }

    /// How many packets with something new in them were sent again, until its end.
    fn needless(&self) -> usize {
        let end = self.end().unwrap_or(Duration::MAX);
        let all = self.connection.transmissions.iter();
        all.filter(|sent| sent.again.is_some() && sent.sent <= end)
            .count()
    }

    /// Of a connection that lost nothing but so many acknowledgements: its round trips.
    fn quiet_story(&self, acknowledgements: usize) -> String {
        let nothing = match acknowledgements {
            0 => "Nothing was lost",
            _ => "No data was lost",
        };
        let nothing = match self.needless() {
            0 => nothing.to_owned(),
            again => format!(
                "{nothing}, but {} sent again without need",
                match again {
                    1 => "one packet was".to_owned(),
                    again => format!("{again} packets were"),
                }
            ),
        };
        let Some(end) = self.end() else {
            return [Some(format!("{nothing}.")), self.endless()]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join(" ");
        };
        if self.messages == Messages::Sealed {
            return format!("{nothing}. {}", self.sealed(end));
        }
        let trips = self.trips();
        let rtt = match self.asked {
            Some(asked) => asked.rtt,
            None => self.connection.least_rtt(),
        };
        let all = trips.iter().map(|(count, _)| count).sum::<usize>();
        let because: Vec<String> = (trips.iter())
            .map(|(count, what)| format!("{count} for {what}"))
            .collect();
        let think = self.asked.map_or(Duration::ZERO, |asked| asked.think);
        let besides = end.saturating_sub(rtt * u32::try_from(all).unwrap_or(0) + think);
        let mut parts = Vec::new();
        if !think.is_zero() {
            parts.push(format!("{} of think time", milliseconds(think)));
        }
        if besides > rtt / 20 && besides >= Duration::from_micros(50) {
            // Arithmetic has no time but the round trips', the client's own and this.
            let is_known = self
                .asked
                .and_then(|asked| asked.arithmetic.ok())
                .is_some_and(|arithmetic| end.abs_diff(arithmetic) <= besides / 20);
            parts.push(if is_known {
                format!(
                    "{} in which the link sends what is before",
                    milliseconds(besides)
                )
            } else {
                format!("{} besides", milliseconds(besides))
            });
        }
        let besides = if parts.is_empty() {
            String::new()
        } else {
            format!(", and {}", joined(&parts))
        };
        format!(
            "{nothing}: {} after connect(), which is {} of {}: {}{besides}.",
            milliseconds(end),
            counted(all, "round trip"),
            milliseconds(rtt),
            joined(&because),
        )
    }

    /// Round trips, each with what it is for.
    fn trips(&self) -> Vec<(usize, String)> {
        let mut trips = vec![(1, "TCP".to_owned())];
        let handshake = self.handshake();
        let transmissions = &self.connection.transmissions;
        let flights = self.connection.flights(Side::Server);
        let (of_handshake, of_response): (Vec<&Transmission>, Vec<&Transmission>) = flights
            .into_iter()
            .filter_map(|index| transmissions.get(index))
            .partition(|sent| handshake.is_none_or(|end| sent.sent < end));
        let bytes = self.finished(Side::Server).unwrap_or(0);
        let retry = (self.spans.iter())
            .find(|span| span.sender == Side::Server && span.what == HELLO_RETRY_REQUEST);
        let mut retries = of_handshake.len();
        let of_handshake: Vec<&Transmission> = (of_handshake.into_iter())
            .filter(|sent| retry.is_none_or(|retry| sent.offset >= retry.end))
            .collect();
        retries -= of_handshake.len();
        if retries > 0 {
            trips.push((retries, "the HelloRetryRequest".to_owned()));
        }
        let bytes = bytes.saturating_sub(retry.map_or(0, |retry| retry.end));
        let room = |window: u32, mss: usize| u64::from(window).saturating_mul(mss as u64);
        let why = match (of_handshake.len(), self.asked) {
            (2.., Some(asked)) if bytes > room(asked.window, asked.mss) => format!(
                "the handshake (because the server's {bytes} bytes do not fit its window of {})",
                counted(asked.window, "packet")
            ),
            _ => format!("the handshake ({bytes} bytes of the server's)"),
        };
        if !of_handshake.is_empty() {
            trips.push((of_handshake.len(), why));
        }
        let has_response = self.asked.is_none_or(|asked| asked.last == Last::Response);
        if has_response && !of_response.is_empty() {
            trips.push((
                of_response.len(),
                format!("the response ({})", counted(of_response.len(), "flight")),
            ));
        }
        trips
    }
}

/// What spans call it.
const HELLO_RETRY_REQUEST: &str = "HelloRetryRequest";

/// How a lost packet was sent again, perhaps after a probe.
fn how(again: &Transmission, lost: &Transmission, probe: Option<Duration>) -> String {
    let after = milliseconds(again.sent.saturating_sub(lost.sent));
    match again.again {
        Some(Trigger::FastRetransmit) if let Some(waited) = probe => format!(
            "Nothing came for {}, so TCP sent its last packet again (tail loss probe); what acknowledged that told of the gap, \
             and it was sent again {after} after the first time (fast retransmit).",
            milliseconds(waited)
        ),
        Some(Trigger::FastRetransmit) => format!(
            "Acknowledgements told of the gap, and it was sent again {after} later (fast retransmit)."
        ),
        Some(Trigger::LossProbe(waited)) => format!(
            "Nothing came for {}, so TCP sent its last packet again (tail loss probe), {after} after the first time.",
            milliseconds(waited)
        ),
        Some(Trigger::Timeout(waited)) => {
            let what = if lost.has(Flag::Syn) {
                "nothing answered it"
            } else {
                "nothing came"
            };
            format!(
                "Since {what} for {}, it was sent again (retransmission timeout), {after} after the first time.",
                milliseconds(waited)
            )
        }
        Some(Trigger::AfterTimeout) => {
            format!("It was sent again {after} later, in the wake of a retransmission timeout.")
        }
        None => format!("Its data was sent again {after} later, with more."),
    }
}

/// `a`, `a and b`, `a, b and c`
fn joined(parts: &[String]) -> String {
    match parts.split_last() {
        None => String::new(),
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
    }
}
