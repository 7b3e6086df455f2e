//! What a server may send before it knows its client's address.

use std::time::Duration;

use lastbyte_link::Time;
use lastbyte_sizes::quic::UNCREDITED;

use super::{PacketKind, has_packet, has_token};

/// What a server may send before it knows its client's address, by what it has received (RFC 9000, 8.1), and what it sends.
/// Each call has its time, which never goes back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Credit {
    received: u64,
    sent: u64,
    /// Both when the one was the most of the other.
    most: Option<(u64, u64)>,
    validated: Option<Time>,
    /// Since when there is none left.
    exhausted: Option<Time>,
    /// The time without any, until the datagram came that was taken last.
    refilled: Option<[Time; 2]>,
    waits: Vec<[Time; 2]>,
}

impl Credit {
    /// Three times what was received.
    pub const FACTOR: u64 = 3;

    /// The server has received this.
    pub fn receive(&mut self, now: Time, datagram: &[u8]) {
        self.refilled = self.exhausted.take().map(|since| [since, now]);
        if self.validated.is_some() {
            return;
        }
        // A token here is one that the server gave.
        if has_packet(datagram, PacketKind::Handshake) || has_token(datagram) {
            self.validated = Some(now);
        } else {
            self.received += datagram.len() as u64;
        }
    }

    /// It sends so many bytes.
    pub fn spend(&mut self, now: Time, bytes: u64) {
        // It had something to send, and had waited for this.
        self.waits.extend(self.refilled.take());
        if self.validated.is_some() {
            return;
        }
        self.sent += bytes;
        self.most = [self.most, Some((self.sent, self.received))]
            .into_iter()
            .flatten()
            .filter(|(_, received)| *received > 0)
            .max_by_key(|(sent, received)| (u128::from(*sent) << 64) / u128::from(*received));
        let counted = self.received.saturating_sub(UNCREDITED as u64);
        if self.sent >= Self::FACTOR * counted {
            self.exhausted = Some(now);
        }
    }

    /// Bytes that came before it knew the address.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Bytes that it sent until then.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// What it had received and sent when that was the most by that, at any time until then.
    #[must_use]
    pub fn most(&self) -> Option<(u64, u64)> {
        self.most.map(|(sent, received)| (received, sent))
    }

    /// The most that it had sent by what it had received, at any time until then.
    #[must_use]
    pub fn amplification(&self) -> Option<f64> {
        self.most
            .map(|(sent, received)| sent as f64 / received as f64)
    }

    /// When it knew the address, by a Handshake packet or a token.
    #[must_use]
    pub fn validated(&self) -> Option<Time> {
        self.validated
    }

    /// When it had something to send and no credit, from the datagram that spent the last of it to the one that brought some.
    #[must_use]
    pub fn waits(&self) -> &[[Time; 2]] {
        &self.waits
    }

    /// How long that was in all.
    #[must_use]
    pub fn blocked(&self) -> Duration {
        let all = self.waits.iter();
        all.map(|[since, until]| until.since(*since)).sum()
    }
}
