//! What the datagrams of a connection tell of its credit.

use std::time::Duration;

use lastbyte_link::{Side, Time};
use lastbyte_sizes::quic::UNCREDITED;
use lastbyte_tls::observer::quic::{PacketKind, has_packet, has_token};

/// The datagrams that both ends sent, and the server's credit.
#[derive(Default)]
pub(super) struct Ledger {
    /// By the client and by the server.
    sent: [Sent; 2],
    pub(super) credit: Credit,
}

/// What an end has sent.
#[derive(Clone, Copy, Default)]
pub(super) struct Sent {
    pub(super) datagrams: u32,
    pub(super) bytes: u64,
}

/// What a server may send before it knows its client's address, by what it has received (RFC 9000, 8.1).
#[derive(Default)]
pub(super) struct Credit {
    is_validated: bool,
    pub(super) received: u64,
    pub(super) sent: u64,
    /// Since when there is none left.
    exhausted: Option<Time>,
    /// Since when there was none left until the datagram came that was taken last.
    refilled: Option<Duration>,
    pub(super) blocked: Duration,
}

impl Ledger {
    /// An end sends this.
    pub(super) fn send(&mut self, now: Time, sender: Side, datagram: &[u8]) {
        let bytes = datagram.len() as u64;
        let sent = &mut self.sent[sender as usize];
        sent.datagrams += 1;
        sent.bytes += bytes;
        if sender == Side::Server {
            self.credit.spend(now, bytes);
        }
    }

    /// An end has received this.
    pub(super) fn receive(&mut self, now: Time, receiver: Side, datagram: &[u8]) {
        if receiver == Side::Server {
            self.credit.receive(now, datagram);
        }
    }

    pub(super) fn sent(&self, side: Side) -> Sent {
        self.sent[side as usize]
    }
}

impl Credit {
    /// Three times what was received.
    const FACTOR: u64 = 3;

    fn receive(&mut self, now: Time, datagram: &[u8]) {
        self.refilled = self.exhausted.take().map(|since| now.since(since));
        if self.is_validated {
            return;
        }
        // A token here is one that the server gave.
        if has_packet(datagram, PacketKind::Handshake) || has_token(datagram) {
            self.is_validated = true;
        } else {
            self.received += datagram.len() as u64;
        }
    }

    fn spend(&mut self, now: Time, bytes: u64) {
        // It had something to send, and had waited for this.
        if let Some(waited) = self.refilled.take() {
            self.blocked += waited;
        }
        if self.is_validated {
            return;
        }
        self.sent += bytes;
        let counted = self.received.saturating_sub(UNCREDITED as u64);
        if self.sent >= Self::FACTOR * counted {
            self.exhausted = Some(now);
        }
    }
}
