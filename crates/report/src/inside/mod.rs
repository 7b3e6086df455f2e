//! One connection from a capture: why it took so long, and its packets against time.

mod drawing;
mod json;
mod list;
pub mod quic;
mod seen;
mod story;
mod text;

use std::time::Duration;

use lastbyte_capture::{Connection, Flag, Transmission};
use lastbyte_flights::Reason;
use lastbyte_link::Side;

pub use drawing::svg;
pub use json::{SCHEMA, json};
pub use list::{Listed, list};
pub use seen::Seen;
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
    /// Whether what is encrypted was read.
    pub messages: Messages,
    /// What is asked of it, and what arithmetic says; none where the file does not tell what was measured.
    pub asked: Option<Conditions>,
    /// What became of its handshake.
    pub attempt: Attempt,
    /// Whether all of its packets are there.
    pub extent: Extent,
}

/// A client whose handshake fails may make it anew, over a connection of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// It is the only one, or has no other that is known.
    Only,
    /// It failed.
    Failed {
        /// What its end said, and who: `the client said alert unknown_ca (48)`.
        because: Option<String>,
        /// Whether there was another one after it.
        next: Next,
    },
    /// It is the one after one that failed.
    Second,
}

/// What came after a handshake that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Another connection.
    Anew,
    /// Nothing.
    Nothing,
}

/// What is known of encrypted messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Messages {
    /// Which of them are where.
    Read,
    /// Nothing but their bytes, as the file has no secrets of the connection.
    Sealed,
}

/// What of the packets is in a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All of them.
    Whole,
    /// So many of all its connections had no room.
    OutOfRoom(u64),
    /// The file ends early.
    Cut,
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
pub struct Conditions {
    /// The server's initial window, in packets.
    pub window: u32,
    /// The bytes of TCP's that a packet has at most.
    pub mss: usize,
    /// The link's round trip.
    pub rtt: Duration,
    /// How long the client does nothing between requests, in all.
    pub think: Duration,
    /// When a connection counts as failed.
    pub timeout: Duration,
    /// What comes last.
    pub last: Last,
    /// Behind the byte of its sender's that is the last one of what comes last; none if that was never sent, or if a
    /// handshake is what comes last.
    pub end: Option<u64>,
    /// When that comes without loss, jitter and computing, or why arithmetic does not go so far.
    pub arithmetic: Result<Duration, Reason>,
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
        if matches!(self.attempt, Attempt::Failed { .. }) {
            return None;
        }
        let Some(asked) = self.asked else {
            return self.connection.last_byte(Side::Server);
        };
        let end = match asked.last {
            Last::Response => self.connection.delivered(Side::Server, asked.end?),
            Last::Request => self.connection.delivered(Side::Client, asked.end?),
            // What is sent to nobody is no handshake.
            Last::Handshake => self.handshake().filter(|_| {
                let came = self
                    .finished(Side::Client)
                    .and_then(|end| self.connection.delivered(Side::Client, end));
                came.is_some_and(|came| came <= asked.timeout)
            }),
        };
        end.filter(|end| *end <= asked.timeout)
    }

    /// How long it took, for finding the slowest; none where that is not the connection's own, or not in the capture.
    #[must_use]
    pub fn slowness(&self) -> Option<Duration> {
        match (&self.attempt, self.extent, self.end()) {
            (
                Attempt::Failed {
                    next: Next::Anew, ..
                },
                _,
                _,
            ) => None,
            (_, _, Some(end)) => Some(end),
            (_, Extent::Whole, None) => Some(Duration::MAX),
            (_, Extent::OutOfRoom(_) | Extent::Cut, None) => None,
        }
    }

    /// When the client had sent its Finished.
    fn handshake(&self) -> Option<Duration> {
        let finished = self.finished(Side::Client)?;
        let mut sent = self.connection.transmissions.iter();
        let last = sent.find(|sent| {
            sent.sender == Side::Client && !sent.payload.is_empty() && sent.end() >= finished
        });
        Some(last?.sent)
    }

    /// Behind the last byte of a side's Finished.
    fn finished(&self, sender: Side) -> Option<u64> {
        let mut spans = self.spans.iter();
        let finished = spans.find(|span| span.sender == sender && span.what == FINISHED);
        finished.map(|span| span.end)
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
pub const FINISHED: &str = "Finished";

/// `client`, `server`
fn side(side: Side) -> &'static str {
    match side {
        Side::Client => "client",
        Side::Server => "server",
    }
}

#[cfg(test)]
mod tests;
