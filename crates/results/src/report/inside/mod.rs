//! One connection from a capture: why it took so long, and its packets against time.

mod drawing;
mod json;
mod story;
mod text;

use std::time::Duration;

use lastbyte_capture::{Connection, Flag, Transmission};
use lastbyte_link::Side;

pub(super) use drawing::for_page;
pub use drawing::svg;
pub use json::{SCHEMA, json};
pub use story::story;
pub use text::text;

/// A connection, and what is known of it besides its packets.
#[derive(Clone, Debug)]
pub struct Inside {
    /// The packets.
    pub connection: Connection,
    /// Whose they are: an arm and a network, as the file says.
    pub name: String,
    /// Which bytes are which message.
    pub spans: Vec<Span>,
    /// What is asked of it, and what arithmetic says; none where the file does not tell what was measured.
    pub asked: Option<Asked>,
}

/// Some of a side's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Who sends them.
    pub sender: Side,
    /// The first one, counted from the beginning of all that the side sends.
    pub start: u64,
    /// Behind the last one.
    pub end: u64,
    /// What they are.
    pub what: String,
}

/// What a connection is measured by.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// The server's initial window, in packets.
    pub window: u32,
    /// What comes last.
    pub last: Last,
    /// When that comes without loss, jitter and computing.
    pub arithmetic: Duration,
}

/// What ends a connection's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Last {
    /// The last byte of the response, at the client.
    Response,
    /// The last byte of the request, at the server.
    Request,
    /// The client's Finished is written.
    Handshake,
}

impl Inside {
    /// When it ended, since its first packet; none where it did not.
    #[must_use]
    pub fn end(&self) -> Option<Duration> {
        match self.asked.map_or(Last::Response, |asked| asked.last) {
            Last::Response => self.connection.last_byte(Side::Server),
            Last::Request => self.connection.last_byte(Side::Client),
            Last::Handshake => self.handshake(),
        }
    }

    /// When the client had sent its Finished.
    fn handshake(&self) -> Option<Duration> {
        let mut spans = self.spans.iter();
        let finished = spans.find(|span| span.sender == Side::Client && span.what == FINISHED)?;
        let mut sent = self.connection.transmissions.iter();
        let last = sent.find(|sent| {
            sent.sender == Side::Client && !sent.payload.is_empty() && sent.end() >= finished.end
        });
        Some(last?.sent)
    }

    /// What a packet is: `SYN`, `Certificate and Finished`, `ACK`.
    fn what(&self, sent: &Transmission) -> String {
        if sent.has(Flag::Syn) {
            return match sent.sender {
                Side::Client => "SYN",
                Side::Server => "SYN-ACK",
            }
            .to_owned();
        }
        if !sent.payload.is_empty() {
            return self.messages(sent.sender, sent.offset, sent.end());
        }
        match (sent.has(Flag::Reset), sent.has(Flag::Fin)) {
            (true, _) => "RST",
            (false, true) => "FIN",
            (false, false) => "ACK",
        }
        .to_owned()
    }

    /// What these bytes are: the first message and the last one.
    fn messages(&self, sender: Side, start: u64, end: u64) -> String {
        let spans = self.spans.iter().filter(|span| span.sender == sender);
        let mut spans = spans.filter(|span| span.start < end && span.end > start);
        match (spans.next(), spans.next_back()) {
            (None, _) => "data".to_owned(),
            (Some(first), None) => first.what.clone(),
            (Some(first), Some(last)) if first.what == last.what => first.what.clone(),
            (Some(first), Some(last)) => format!("{} to {}", first.what, last.what),
        }
    }
}

/// What the last message of a handshake is called.
pub(super) const FINISHED: &str = "Finished";

/// `client`, `server`
fn side(side: Side) -> &'static str {
    match side {
        Side::Client => "client",
        Side::Server => "server",
    }
}

#[cfg(test)]
mod tests;
