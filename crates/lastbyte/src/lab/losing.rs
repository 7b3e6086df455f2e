//! What a handshake loses on purpose, whichever transport it is carried in, and how that is named.

use std::ops::Range;

use lastbyte_link::{Bytes, Side};
use lastbyte_sizes::Message;

use crate::study::Cell;

/// Which segment each connection of a block loses, whatever its luck: the first connection none, those after it one of
/// the client's each, in their order, and those after them one of the server's. All others lose none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Losing {
    /// How many of the client's are lost, each once.
    pub(super) client: u32,
    /// How many of the server's.
    pub(super) server: u32,
}

impl Losing {
    /// As many as [`to_bytes`](Losing::to_bytes) makes.
    pub(super) const BYTES: usize = 8;

    /// What the connection in this slot loses: whose segment, and its number among that end's, from 0.
    pub(super) fn of_slot(self, slot: u32) -> Option<(Side, u32)> {
        let place = slot.checked_sub(1)?;
        match place.checked_sub(self.client) {
            None => Some((Side::Client, place)),
            Some(number) if number < self.server => Some((Side::Server, number)),
            Some(_) => None,
        }
    }

    /// The slot of the connection that loses this.
    pub(super) fn slot(self, sender: Side, number: u32) -> usize {
        let before = match sender {
            Side::Client => 1,
            Side::Server => 1 + self.client as usize,
        };
        before + number as usize
    }

    /// How many connections it takes.
    pub(super) fn connections(self) -> u32 {
        (self.client.saturating_add(self.server)).saturating_add(1)
    }

    /// For a guest, which reads as many bytes whatever is lost.
    pub(super) fn to_bytes(self) -> [u8; Losing::BYTES] {
        let [a, b, c, d] = self.client.to_le_bytes();
        let [e, f, g, h] = self.server.to_le_bytes();
        [a, b, c, d, e, f, g, h]
    }

    pub(super) fn from_bytes([a, b, c, d, e, f, g, h]: [u8; Losing::BYTES]) -> Losing {
        Losing {
            client: u32::from_le_bytes([a, b, c, d]),
            server: u32::from_le_bytes([e, f, g, h]),
        }
    }
}

/// A cell whose connections shake hands and nothing else, over its link at its best.
pub fn handshake_of(cell: &Cell) -> Cell {
    Cell {
        link: cell.link.without_luck(),
        data: Bytes(0),
        upload: Bytes(0),
        requests: 1,
        ..cell.clone()
    }
}

/// Which part of a message some bytes have, if any, both by their place among all that was sent.
pub(super) fn part(message: Message, own: &Range<usize>, bytes: &Range<usize>) -> Option<String> {
    let name = message.title();
    if bytes.end <= own.start || bytes.start >= own.end {
        return None;
    }
    Some(match (bytes.start <= own.start, bytes.end >= own.end) {
        (true, true) => name.to_owned(),
        (true, false) => format!("the beginning of {name}"),
        (false, true) => format!("the end of {name}"),
        (false, false) => format!("a part of {name}"),
    })
}

/// What is in a packet that has these parts of messages.
pub(super) fn in_words(parts: &[String]) -> String {
    match parts {
        [] => "an acknowledgement".to_owned(),
        parts => parts.join(", "),
    }
}

#[cfg(test)]
mod tests;
