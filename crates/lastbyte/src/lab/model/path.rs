//! The network between two ends: datagrams on their way, and what they tell of credit.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use lastbyte_link::{Fate, Link, PacketKey, Pipe, Seed, Side, Time};
use lastbyte_tls::observer::quic::{PacketKind, has_packet};

/// Headers of IPv4 and of UDP, in bytes.
const HEADERS: usize = 20 + 8;
/// The IP packet of a datagram, in bytes.
pub(super) fn packet(datagram: u16) -> u16 {
    datagram + HEADERS as u16
}

/// A datagram that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Datagram {
    pub(super) sent: Time,
    pub(super) sender: Side,
    /// Its payload, in bytes.
    pub(super) bytes: usize,
}

/// Both directions of one connection's link.
pub(super) struct Network {
    /// Toward the server, and toward the client.
    pipes: [Pipe; 2],
    under_way: BinaryHeap<Reverse<Arrival>>,
    /// Datagrams that were sent, by the client and by the server.
    sent: [Sent; 2],
    credit: Credit,
    /// One that is lost whatever its luck, by its number among its sender's, from 0.
    lost: Option<(Side, u32)>,
    /// All of them, in the order in which they left.
    pub(super) datagrams: Vec<Datagram>,
}

/// A datagram that arrives. Of those of one moment, the one that was sent first comes first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Arrival {
    at: Time,
    number: u64,
    receiver: Side,
    datagram: Vec<u8>,
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

impl Network {
    /// That of connection `index`, with its luck.
    pub(super) fn new(link: &Link, seed: Seed, index: u32, lost: Option<(Side, u32)>) -> Network {
        Network {
            pipes: [
                Pipe::new(&link.forward, seed.luck(index, Side::Server)),
                Pipe::new(&link.backward, seed.luck(index, Side::Client)),
            ],
            under_way: BinaryHeap::new(),
            sent: [Sent::default(); 2],
            credit: Credit::default(),
            lost,
            datagrams: Vec::new(),
        }
    }

    /// Takes a datagram of an end.
    pub(super) fn send(&mut self, now: Time, sender: Side, datagram: Vec<u8>) {
        let sent = &mut self.sent[sender as usize];
        let key = PacketKey::datagram(sent.datagrams);
        let is_lost = self.lost == Some((sender, sent.datagrams));
        sent.datagrams += 1;
        sent.bytes += datagram.len() as u64;
        self.datagrams.push(Datagram {
            sent: now,
            sender,
            bytes: datagram.len(),
        });
        if sender == Side::Server {
            self.credit.spend(now, datagram.len() as u64);
        }
        let pipe = &mut self.pipes[sender as usize];
        let fate = pipe.send(now, HEADERS + datagram.len(), key);
        if let (Fate::Arrives(at), false) = (fate, is_lost) {
            let [client, server] = self.sent;
            self.under_way.push(Reverse(Arrival {
                at,
                number: u64::from(client.datagrams) + u64::from(server.datagrams),
                receiver: sender.other(),
                datagram,
            }));
        }
    }

    /// When the next datagram arrives.
    pub(super) fn next_arrival(&self) -> Option<Time> {
        let Reverse(next) = self.under_way.peek()?;
        Some(next.at)
    }

    /// The next datagram that has arrived by `now`, and at whom.
    pub(super) fn arrived(&mut self, now: Time) -> Option<(Side, Vec<u8>)> {
        let Reverse(next) = self.under_way.peek()?;
        if next.at > now {
            return None;
        }
        let Reverse(next) = self.under_way.pop()?;
        if next.receiver == Side::Server {
            self.credit.receive(now, &next.datagram);
        }
        Some((next.receiver, next.datagram))
    }

    pub(super) fn sent(&self, side: Side) -> Sent {
        self.sent[side as usize]
    }

    pub(super) fn credit(&self) -> &Credit {
        &self.credit
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
        if has_packet(datagram, PacketKind::Handshake) {
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
        if self.sent >= Self::FACTOR * self.received {
            self.exhausted = Some(now);
        }
    }
}
