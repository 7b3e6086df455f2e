//! One connection over QUIC from a capture: its datagrams against time, and the server's credit beside its window.

mod drawing;
mod json;
mod text;

use std::time::Duration;

use lastbyte_capture::Fate;
use lastbyte_link::{Side, counted};

pub(super) use drawing::{for_page, svg};
pub use json::SCHEMA;
pub(super) use json::json;
pub(super) use text::text;

use lastbyte_results::number::milliseconds;

/// A connection, and what is known of it besides its datagrams. Times are since its first one was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagrams {
    /// Whose they are: an arm, a network and a connection, as the file says.
    pub name: String,
    /// Which connection it is.
    pub comment: String,
    /// All of them, in the order in which they were sent.
    pub datagrams: Vec<Datagram>,
    /// When the client sent its Finished.
    pub handshake: Option<Duration>,
    /// When it had come to its end: the last byte of the response was there, or without one the handshake was complete.
    pub end: Option<Duration>,
    /// Whether all of them are in the capture.
    pub is_whole: bool,
    /// What the server may send.
    pub ledger: Ledger,
}

/// A UDP datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Who sent it.
    pub sender: Side,
    /// When.
    pub sent: Duration,
    /// When it arrived, if it did.
    pub arrived: Option<Duration>,
    /// What became of it.
    pub fate: Fate,
    /// Its payload.
    pub bytes: usize,
    /// Whether there is something in it that is to be acknowledged.
    pub is_data: bool,
    /// What is in it: `ServerHello to Certificate`.
    pub what: String,
}

/// What a server may send: by its credit before it knows its client's address (RFC 9000, 8.1), and by its window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Bytes of the client's datagrams in all, at each one that came before it knew the address. Three times that is its credit.
    pub received: Vec<(Duration, u64)>,
    /// What it sent before it knew the address, in bytes.
    pub unvalidated: u64,
    /// When it knew the address.
    pub validated: Option<Duration>,
    /// When it had something to send and no credit.
    pub blocked: Vec<[Duration; 2]>,
    /// Bytes of its packets that it knew to have arrived, at each datagram that told of more.
    pub acknowledged: Vec<(Duration, u64)>,
    /// Its initial congestion window, in bytes; none where the file does not say it.
    pub window: Option<u64>,
}

/// Three times what came.
const FACTOR: u64 = 3;

impl Ledger {
    fn blocked(&self) -> Duration {
        self.blocked
            .iter()
            .map(|[begin, end]| end.saturating_sub(*begin))
            .sum()
    }

    /// The credit at a time; none once the address is known.
    fn credit(&self, at: Duration) -> Option<u64> {
        if self.validated.is_some_and(|validated| validated <= at) {
            return None;
        }
        let came = self.received.iter().rev().find(|(time, _)| *time <= at);
        Some(FACTOR * came.map_or(0, |(_, bytes)| *bytes))
    }
}

impl Datagrams {
    /// How long it took, for finding the slowest; none where that is not in the capture.
    #[must_use]
    pub fn slowness(&self) -> Option<Duration> {
        match (self.end, self.is_whole) {
            (Some(end), _) => Some(end),
            (None, true) => Some(Duration::MAX),
            (None, false) => None,
        }
    }

    /// How many datagrams the link dropped.
    #[must_use]
    pub fn lost(&self) -> usize {
        self.datagrams.iter().filter(|one| one.is_lost()).count()
    }

    /// What one side sent until this time, in bytes.
    fn sent(&self, sender: Side, until: Duration) -> u64 {
        let all = self.datagrams.iter();
        let sent = all.filter(|one| one.sender == sender && one.sent <= until);
        sent.map(|one| one.bytes as u64).sum()
    }

    /// The shortest way there and back.
    fn least_rtt(&self) -> Duration {
        let least = |sender| {
            let all = self
                .datagrams
                .iter()
                .filter(move |one| one.sender == sender);
            let transits = all.filter_map(|one| Some(one.arrived?.saturating_sub(one.sent)));
            transits.min().unwrap_or_default()
        };
        least(Side::Client) + least(Side::Server)
    }

    /// Why it took so long, in sentences.
    #[must_use]
    pub fn story(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        sentences.push(match (self.handshake, self.end) {
            (Some(handshake), Some(end)) if end > handshake => format!(
                "The handshake took {}, and the last byte came after {}.",
                milliseconds(handshake),
                milliseconds(end)
            ),
            (Some(handshake), Some(_)) => {
                format!("The handshake took {}.", milliseconds(handshake))
            }
            (Some(handshake), None) if self.is_whole => format!(
                "The handshake took {}; the last byte never came.",
                milliseconds(handshake)
            ),
            (None, _) if self.is_whole => "The client never sent its Finished.".to_owned(),
            (_, Some(end)) => format!("The last byte came after {}.", milliseconds(end)),
            (_, None) => "The capture does not have all of it.".to_owned(),
        });
        sentences.push(self.credit_story());
        let until = self.end.unwrap_or(Duration::MAX);
        let lost = self
            .datagrams
            .iter()
            .filter(|one| one.is_lost() && one.sent <= until);
        let lost: Vec<&Datagram> = lost.collect();
        sentences.push(match lost.as_slice() {
            [] => "Nothing was lost.".to_owned(),
            [one] => format!(
                "One datagram was lost: the {}'s {} of {}.",
                super::side(one.sender),
                one.what,
                milliseconds(one.sent)
            ),
            [first, ..] => format!(
                "{} were lost, first the {}'s {} of {}.",
                counted(lost.len(), "datagram"),
                super::side(first.sender),
                first.what,
                milliseconds(first.sent)
            ),
        });
        sentences
    }

    fn credit_story(&self) -> String {
        let received = self.ledger.received.last().map_or(0, |(_, bytes)| *bytes);
        let sent = self.ledger.unvalidated;
        if received == 0 {
            return "The server knew its client's address from the first datagram that it took."
                .to_owned();
        }
        let factor = sent as f64 / received as f64;
        let blocked = match self.ledger.blocked() {
            Duration::ZERO => "never waited for more".to_owned(),
            blocked => format!("waited {} for more", milliseconds(blocked)),
        };
        format!(
            "Before the server knew its client's address, it sent {sent} bytes for {received} that it had received, {factor:.2} \
             times as much, and {blocked}."
        )
    }
}

impl Datagram {
    fn is_lost(&self) -> bool {
        matches!(self.fate, Fate::Lost | Fate::QueueFull)
    }
}

/// Datagrams of one side that leave together.
struct Row<'a> {
    datagrams: Vec<&'a Datagram>,
}

impl Row<'_> {
    fn bytes(&self) -> usize {
        self.datagrams.iter().map(|one| one.bytes).sum()
    }

    /// `ServerHello to Finished, 6 datagrams, 7238 B`
    fn label(&self) -> String {
        let (Some(first), Some(last)) = (self.datagrams.first(), self.datagrams.last()) else {
            return String::new();
        };
        let begin = first.what.split(" to ").next().unwrap_or_default();
        let end = last.what.rsplit(" to ").next().unwrap_or_default();
        let what = if begin == end {
            begin.to_owned()
        } else {
            format!("{begin} to {end}")
        };
        let mut label = match self.datagrams.len() {
            1 => format!("{what}, {} B", self.bytes()),
            many => format!("{what}, {many} datagrams, {} B", self.bytes()),
        };
        match first.fate {
            Fate::Lost => label += ", lost",
            Fate::QueueFull => label += ", queue full",
            Fate::Carried | Fate::UnderWay => {}
        }
        label
    }
}

/// Datagrams in rows, in the order in which they are sent.
fn rows(inside: &Datagrams) -> Vec<Row<'_>> {
    let together = inside.least_rtt() / 4;
    let mut rows: Vec<Row<'_>> = Vec::new();
    for sent in &inside.datagrams {
        let last = rows.last_mut().filter(|row| {
            row.datagrams.first().is_some_and(|first| {
                let is_plain = first.fate == Fate::Carried && sent.fate == Fate::Carried;
                let is_alike = first.sender == sent.sender && first.is_data == sent.is_data;
                is_plain && is_alike && sent.sent.saturating_sub(first.sent) <= together
            })
        });
        match last {
            Some(row) => row.datagrams.push(sent),
            None => rows.push(Row {
                datagrams: vec![sent],
            }),
        }
    }
    rows
}

#[cfg(test)]
mod tests;
