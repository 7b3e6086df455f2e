//! A connection of a capture, whichever transport carries it.

use std::time::Duration;

use lastbyte_link::Side;

use super::quic::{self, Datagrams};
use super::{Inside, drawing, json, story, text};
use crate::layout::Screen;

/// A connection from a capture.
#[derive(Clone, Debug)]
pub enum Seen {
    /// Over TCP.
    Tcp(Box<Inside>),
    /// Over QUIC.
    Quic(Box<Datagrams>),
}

impl Seen {
    /// Whose it is: an arm and a network, as the file says.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Seen::Tcp(inside) => &inside.name,
            Seen::Quic(inside) => &inside.name,
        }
    }

    /// How long it took, for finding the slowest; none where that is not the connection's own, or not in the capture.
    #[must_use]
    pub fn slowness(&self) -> Option<Duration> {
        match self {
            Seen::Tcp(inside) => inside.slowness(),
            Seen::Quic(inside) => inside.slowness(),
        }
    }

    /// Why it took so long, in sentences.
    #[must_use]
    pub fn story(&self) -> Vec<String> {
        match self {
            Seen::Tcp(inside) => story(inside),
            Seen::Quic(inside) => inside.story(),
        }
    }

    /// The sentences and the drawing, as wide as the screen.
    #[must_use]
    pub fn text(&self, screen: Screen) -> String {
        match self {
            Seen::Tcp(inside) => text(inside, screen),
            Seen::Quic(inside) => quic::text(inside, screen),
        }
    }

    /// The drawing with the answer above it, as a file of its own.
    #[must_use]
    pub fn svg(&self) -> String {
        match self {
            Seen::Tcp(inside) => drawing::svg(inside),
            Seen::Quic(inside) => quic::svg(inside),
        }
    }

    /// All that is known of it, as a JSON document.
    #[must_use]
    pub fn json(&self) -> String {
        match self {
            Seen::Tcp(inside) => json(inside),
            Seen::Quic(inside) => quic::json(inside),
        }
    }

    /// The drawing for pages, twice: for screens and for phones, each with its class.
    pub(crate) fn for_page(&self) -> [(&'static str, String); 2] {
        match self {
            Seen::Tcp(inside) => drawing::for_page(inside),
            Seen::Quic(inside) => quic::for_page(inside),
        }
    }

    /// Packets that the link dropped, and that were sent again: QUIC sends no packet twice.
    pub(super) fn troubles(&self) -> [usize; 2] {
        match self {
            Seen::Tcp(inside) => {
                let connection = &inside.connection;
                let again =
                    [Side::Client, Side::Server].map(|side| connection.retransmissions(side));
                [connection.losses().len(), again.iter().sum()]
            }
            Seen::Quic(inside) => [inside.lost(), 0],
        }
    }
}
