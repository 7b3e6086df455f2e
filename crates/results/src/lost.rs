//! What it costs that one packet of a handshake is lost: a datagram of QUIC, a segment of TCP.

use std::collections::BTreeMap;
use std::time::Duration;

use lastbyte_link::Side;
use lastbyte_study::{Cell, TransportName};

use crate::{Outcome, Row};

/// The handshakes of one arm over one network, without loss and with each packet lost once.
#[derive(Clone, Debug)]
pub struct Losses {
    /// The arm's name.
    pub arm: String,
    /// What it is carried in.
    pub transport: TransportName,
    /// What programs at its ends say that they are, by name; none of our own.
    pub programs: BTreeMap<String, String>,
    /// The most that its server had sent by what it had received, at any time until it knew the client's address (RFC 9000,
    /// 8.1), without loss; `None` where nothing has that.
    pub amplification: Option<f64>,
    /// The network.
    pub cell: Cell,
    /// Without loss.
    pub whole: Row,
    /// With one packet lost each, in the order in which they leave.
    pub lost: Vec<Lost>,
}

/// A handshake one of whose packets was lost.
#[derive(Clone, Debug)]
pub struct Lost {
    /// Whose packet it is.
    pub sender: Side,
    /// Its number among that end's, from 1.
    pub number: u32,
    /// Its payload, in bytes: that of UDP or of TCP.
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

    /// What all losses add that the handshake completes after, in their order.
    pub fn all_added(&self) -> impl Iterator<Item = Duration> {
        self.lost.iter().filter_map(|lost| self.added(lost))
    }

    /// What such a loss adds on average; `None` if there is none.
    pub fn mean_added(&self) -> Option<Duration> {
        let count = u32::try_from(self.all_added().count()).ok()?;
        let sum: Duration = self.all_added().sum();
        sum.checked_div(count)
    }

    /// Those after which the handshake never completes.
    pub fn never(&self) -> impl Iterator<Item = &Lost> {
        self.lost.iter().filter(|lost| lost.handshake().is_none())
    }
}

impl Lost {
    /// How long the handshake took; `None` where the connection did not complete.
    pub fn handshake(&self) -> Option<Duration> {
        let is_completed = self.row.outcome == Outcome::Completed;
        self.row.times.handshake.filter(|_| is_completed)
    }
}
