//! What the datagrams of a connection tell of its credit.

use lastbyte_link::{Side, Time};
use lastbyte_tls::observer::quic::Credit;

/// The datagrams that both ends sent, and the server's credit.
#[derive(Default)]
pub(crate) struct Ledger {
    /// By the client and by the server.
    sent: [Sent; 2],
    pub(crate) credit: Credit,
}

/// What an end has sent.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sent {
    pub(crate) datagrams: u32,
    pub(crate) bytes: u64,
}

impl Ledger {
    /// An end sends this.
    pub(crate) fn send(&mut self, now: Time, sender: Side, datagram: &[u8]) {
        let bytes = datagram.len() as u64;
        let sent = &mut self.sent[sender as usize];
        sent.datagrams += 1;
        sent.bytes += bytes;
        if sender == Side::Server {
            self.credit.spend(now, bytes);
        }
    }

    /// An end has received this.
    pub(crate) fn receive(&mut self, now: Time, receiver: Side, datagram: &[u8]) {
        if receiver == Side::Server {
            self.credit.receive(now, datagram);
        }
    }

    pub(crate) fn sent(&self, side: Side) -> Sent {
        self.sent[side as usize]
    }
}
