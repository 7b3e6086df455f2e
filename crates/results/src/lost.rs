//! What it costs that one datagram of a handshake is lost.

use std::time::Duration;

use lastbyte_link::Side;
use lastbyte_study::Cell;

use crate::{Outcome, Row};

/// The handshakes of one arm over one network, without loss and with each datagram lost once.
#[derive(Clone, Debug)]
pub struct Losses {
    /// The arm's name.
    pub arm: String,
    /// The network.
    pub cell: Cell,
    /// Without loss.
    pub whole: Row,
    /// With one datagram lost each, in the order in which they leave.
    pub lost: Vec<Lost>,
}

/// A handshake one of whose datagrams was lost.
#[derive(Clone, Debug)]
pub struct Lost {
    /// Whose datagram it is.
    pub sender: Side,
    /// Its number among that end's, from 1.
    pub number: u32,
    /// Its payload, in bytes.
    pub bytes: usize,
    /// What is in it, as in `the rest of ServerHello, EncryptedExtensions, a part of Certificate`.
    pub carries: String,
    /// What became of the connection.
    pub row: Row,
}

impl Losses {
    /// What a loss adds to the handshake; `None` where it never completes.
    pub fn added(&self, lost: &Lost) -> Option<Duration> {
        let whole = self.whole.times.handshake?;
        Some(lost.handshake()?.saturating_sub(whole))
    }
}

impl Lost {
    /// How long the handshake took; `None` where the connection did not complete.
    pub fn handshake(&self) -> Option<Duration> {
        let is_completed = self.row.outcome == Outcome::Completed;
        self.row.times.handshake.filter(|_| is_completed)
    }
}
