//! Why a connection took so long, in sentences.

use std::time::Duration;

use lastbyte_capture::{Fate, Flag, Loss, Transmission, Trigger};
use lastbyte_link::{Side, counted};

use super::{Inside, Last, side};
use crate::results::number::milliseconds;

/// The sentences, the answer first.
#[must_use]
pub fn story(inside: &Inside) -> Vec<String> {
    let losses = inside.connection.losses();
    let (matter, others): (Vec<Loss>, Vec<Loss>) = losses
        .into_iter()
        .partition(|loss| inside.lost(loss).is_some_and(Transmission::takes_place));
    // Nor does anybody wait for what leaves when all is over.
    let end = inside.end().unwrap_or(Duration::MAX);
    let counts = |loss: &&Loss| {
        let lost = inside.lost(loss);
        lost.is_some_and(|lost| lost.sent <= end && !lost.has(Flag::Reset))
    };
    let others = others.iter().filter(counts).count();
    let mut sentences = match inside.costliest(&matter) {
        Some(loss) => inside.lost_story(&matter, loss),
        None => vec![inside.quiet_story()],
    };
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
            let again = losses.iter().find(|loss| loss.lost == index);
            next = again.and_then(|loss| loss.recovery);
        }
        recoveries
    }

    /// How much later the first byte of a lost packet was sent so that it arrived.
    fn delay(&self, loss: &Loss) -> Option<Duration> {
        let arrived = self.recoveries(loss).pop()?;
        Some(arrived.sent.saturating_sub(self.lost(loss)?.sent))
    }

    /// The first of those that were sent again last.
    fn costliest<'a>(&self, losses: &'a [Loss]) -> Option<&'a Loss> {
        let known = losses.iter().rev();
        known.max_by_key(|loss| self.delay(loss).unwrap_or(Duration::MAX))
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
                "{} were lost. The one that cost most {cause}: {carried}, sent by the {of} at {sent}.",
                counted(all, "packet")
            ),
        };
        let recoveries = self.recoveries(loss);
        match recoveries.split_first() {
            None => first += " Nobody sent it again before the capture ended.",
            Some((again, more)) => {
                first += &format!(" {}", how(again, lost));
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
        match lost.payload.is_empty() {
            true => format!("the {what}"),
            false => format!(
                "bytes {} to {} of the {}'s ({what})",
                lost.offset + 1,
                lost.end(),
                side(lost.sender)
            ),
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
            return Some("Its last byte never came.".to_owned());
        };
        let told = format!("{what} after {}", milliseconds(end));
        Some(match self.asked {
            None => format!("{told}."),
            Some(asked) if end >= asked.arithmetic => format!(
                "{told}: {} later than over a link that loses nothing ({}, by arithmetic).",
                milliseconds(end - asked.arithmetic),
                milliseconds(asked.arithmetic)
            ),
            Some(asked) => format!(
                "{told}, and not later than over a link that loses nothing ({}, by arithmetic).",
                milliseconds(asked.arithmetic)
            ),
        })
    }

    /// Of a connection that lost nothing: its round trips.
    fn quiet_story(&self) -> String {
        let Some(end) = self.end() else {
            return "Nothing was lost, and its last byte never came.".to_owned();
        };
        let trips = self.trips();
        let rtt = self.connection.least_rtt();
        let all = trips.iter().map(|(count, _)| count).sum::<usize>();
        let because: Vec<String> = (trips.iter())
            .map(|(count, what)| format!("{count} for {what}"))
            .collect();
        let besides = end.saturating_sub(rtt * u32::try_from(all).unwrap_or(0));
        let besides = match besides > rtt / 20 {
            true => format!(
                ", and {} in which the link sends what is before",
                milliseconds(besides)
            ),
            false => String::new(),
        };
        format!(
            "Nothing was lost: {} after connect(), which is {} of {}: {}{besides}.",
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
        let bytes = self.handshake_bytes();
        let why = match (of_handshake.len(), self.asked) {
            (2.., Some(asked)) => format!(
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

    /// Up to the server's Finished.
    fn handshake_bytes(&self) -> u64 {
        let spans = self.spans.iter();
        let spans =
            spans.filter(|span| span.sender == Side::Server && span.what == super::FINISHED);
        spans.map(|span| span.end).max().unwrap_or(0)
    }
}

/// How a lost packet was sent again.
fn how(again: &Transmission, lost: &Transmission) -> String {
    let after = milliseconds(again.sent.saturating_sub(lost.sent));
    match again.again {
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
