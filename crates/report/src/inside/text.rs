//! A connection for terminals: the client on the left, the server on the right, time going down.

use std::time::Duration;

use lastbyte_capture::{Fate, Flag, Transmission, Trigger};
use lastbyte_link::Side;

use super::story::story;
use super::{Inside, side};
use crate::layout::Screen;
use lastbyte_results::number::millisecond_digits;

/// Columns of the times on both sides, and of what is under way.
const TIME: usize = 9;
const UNDER_WAY: usize = 10;
/// An arrow is at least so long.
const SHORTEST: usize = 24;

/// A row of the drawing: packets that are alike and leave together.
pub(super) struct Row<'a> {
    pub(super) packets: Vec<&'a Transmission>,
}

impl Row<'_> {
    fn bytes(&self) -> usize {
        self.packets.iter().map(|sent| sent.payload.len()).sum()
    }
}

/// The sentences and the drawing, as wide as the screen.
#[must_use]
pub fn text(inside: &Inside, screen: Screen) -> String {
    let columns = screen.columns.max(2 * TIME + UNDER_WAY + SHORTEST + 4);
    let mut text = format!(
        "{}\n\n",
        screen.wrap(&story(inside).join(" "), 0).trim_end()
    );
    if !inside.name.is_empty() {
        text += &format!("{}\n", inside.name);
    }
    let arrow = columns - 2 * TIME - UNDER_WAY - 4;
    text += &format!(
        "{:>TIME$} {:<half$}{:>rest$} {:<TIME$}{:>UNDER_WAY$}\n",
        "ms",
        "client",
        "server",
        "ms",
        "under way",
        half = (arrow + 2) / 2,
        rest = arrow + 2 - (arrow + 2) / 2,
    );
    for row in rows(inside) {
        text += &line(inside, &row, arrow);
    }
    let note = "Times are those at the client (left) and at the server (right), in the order in which packets leave: what \
                arrives late stands above what leaves before that. Under way is what the sender has sent and not got \
                acknowledged, in bytes.";
    format!("{text}\n{}\n", screen.wrap(note, 0).trim_end())
}

/// Packets in rows, in the order in which they are sent.
pub(super) fn rows(inside: &Inside) -> Vec<Row<'_>> {
    let mut rows: Vec<Row<'_>> = Vec::new();
    let together = inside.connection.least_rtt() / 4;
    for sent in &inside.connection.transmissions {
        let last = rows.last_mut().filter(|row| {
            let (first, last) = (row.packets.first(), row.packets.last());
            first.zip(last).is_some_and(|(first, last)| {
                is_plain(last)
                    && is_plain(sent)
                    && last.flags == sent.flags
                    && last.sender == sent.sender
                    && last.payload.is_empty() == sent.payload.is_empty()
                    && sent.sent.saturating_sub(first.sent) <= together
            })
        });
        match last {
            Some(row) => row.packets.push(sent),
            None => rows.push(Row {
                packets: vec![sent],
            }),
        }
    }
    rows
}

/// Whether nothing is to be said of it but its data.
fn is_plain(sent: &Transmission) -> bool {
    let is_other = sent.has(Flag::Syn) || sent.has(Flag::Fin);
    sent.fate == Fate::Carried && sent.again.is_none() && !is_other
}

fn line(inside: &Inside, row: &Row<'_>, arrow: usize) -> String {
    let (Some(first), Some(last)) = (row.packets.first(), row.packets.last()) else {
        return String::new();
    };
    let label = label(inside, row);
    let is_lost = matches!(first.fate, Fate::Lost | Fate::QueueFull);
    let drawn = drawn(first.sender, &label, is_lost, arrow);
    let sent = millisecond_digits(first.sent);
    let arrived = last.arrived.map(millisecond_digits).unwrap_or_default();
    let (left, right) = match first.sender {
        Side::Client => (sent, arrived),
        Side::Server => (arrived, sent),
    };
    let under_way = match row.bytes() {
        0 => String::new(),
        _ => last.in_flight.to_string(),
    };
    let line = format!("{left:>TIME$} |{drawn}| {right:<TIME$}{under_way:>UNDER_WAY$}");
    format!("{}\n", line.trim_end())
}

/// `--- 10 packets, 14480 B: ServerHello to Certificate --->`
pub(super) fn drawn(sender: Side, label: &str, is_lost: bool, arrow: usize) -> String {
    let room = arrow.saturating_sub(8);
    let label: String = if label.chars().count() > room {
        label
            .chars()
            .take(room.saturating_sub(1))
            .chain(['…'])
            .collect()
    } else {
        label.to_owned()
    };
    let lines = arrow.saturating_sub(label.chars().count() + 3);
    let (before, after) = (lines / 2, lines - lines / 2);
    let (line, none) = ("─", " ");
    match (sender, is_lost) {
        (Side::Client, false) => format!("{} {label} {}>", line.repeat(before), line.repeat(after)),
        (Side::Server, false) => format!("<{} {label} {}", line.repeat(before), line.repeat(after)),
        (Side::Client, true) => format!("{} {label} ✕{}", line.repeat(before), none.repeat(after)),
        (Side::Server, true) => format!("{}✕ {label} {}", none.repeat(before), line.repeat(after)),
    }
}

/// What a row is, with how many packets and why they are sent again.
fn label(inside: &Inside, row: &Row<'_>) -> String {
    let (Some(first), Some(last)) = (row.packets.first(), row.packets.last()) else {
        return String::new();
    };
    let what = if first.payload.is_empty() {
        inside.what(first)
    } else {
        inside.messages(first.sender, first.offset, last.end())
    };
    let mut label = match (row.packets.len(), row.bytes()) {
        (1, 0) => what,
        (packets, 0) => format!("{packets} {what}s"),
        (1, bytes) => format!("{what}, {bytes} B"),
        (packets, bytes) => format!("{what}, {packets} packets, {bytes} B"),
    };
    if let Some(again) = first.again {
        label = format!("{label}, {}", again_word(again));
    }
    match first.fate {
        Fate::Lost => label + ", lost",
        Fate::QueueFull => label + ", queue full",
        Fate::Carried | Fate::UnderWay => label,
    }
}

/// Why a packet was sent again, in a word or two.
pub(super) fn again_word(again: Trigger) -> &'static str {
    match again {
        Trigger::FastRetransmit => "fast retransmit",
        Trigger::LossProbe(_) => "loss probe",
        Trigger::Timeout(_) => "timeout",
        Trigger::AfterTimeout => "after timeout",
    }
}

/// Whose packets a row has, for who can't see arrows.
pub(super) fn sender(row: &Row<'_>) -> &'static str {
    row.packets.first().map_or("", |sent| side(sent.sender))
}

/// When a row begins.
pub(super) fn begins(row: &Row<'_>) -> Duration {
    row.packets.first().map_or(Duration::ZERO, |sent| sent.sent)
}
