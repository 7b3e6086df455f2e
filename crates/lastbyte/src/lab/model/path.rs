//! The network between two ends: datagrams on their way.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use lastbyte_capture as capture;
use lastbyte_link::{EcnCodepoint, Fate, Left, Packet, PacketKey, Pipe, Seed, Side, Time};

use super::tap::Tap;
use crate::study::{Cell, Quic};

/// A datagram that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Datagram {
    pub(super) sent: Time,
    pub(super) sender: Side,
    /// Its payload, in bytes.
    pub(super) bytes: usize,
}

/// Both directions of one connection's link.
pub(super) struct Network<'t> {
    /// Toward the server, and toward the client.
    pipes: [Pipe; 2],
    under_way: BinaryHeap<Reverse<Arrival>>,
    /// Those that wait by a queue discipline, by their tickets: the count of all datagrams before them.
    waiting: HashMap<u64, Waits>,
    left: Vec<Left>,
    /// How many were sent, by the client and by the server.
    sent: [u32; 2],
    /// The largest datagram that it carries, in bytes of payload.
    holds: usize,
    /// One that is lost whatever its luck, by its number among its sender's, from 0.
    lost: Option<(Side, u32)>,
    /// All of them, in the order in which they left.
    pub(super) datagrams: Vec<Datagram>,
    tap: Option<&'t mut Tap>,
}

/// A datagram of which nobody knows yet whether it arrives.
struct Waits {
    number: u64,
    sent: Time,
    sender: Side,
    ecn: EcnCodepoint,
    datagram: Vec<u8>,
}

/// A datagram that arrives. Of those of one moment, the one that was sent first comes first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Arrival {
    at: Time,
    number: u64,
    receiver: Side,
    ecn: EcnCodepoint,
    datagram: Vec<u8>,
}

impl<'t> Network<'t> {
    /// That of connection `index`, with its luck.
    pub(super) fn new(
        cell: &Cell,
        seed: Seed,
        index: u32,
        lost: Option<(Side, u32)>,
        tap: Option<&'t mut Tap>,
    ) -> Network<'t> {
        let link = &cell.link;
        let headers = usize::from(Quic::HEADERS);
        Network {
            holds: usize::from(cell.hosts.mtu.bytes()).saturating_sub(headers),
            pipes: link.pipes(seed, index, Time(0)),
            under_way: BinaryHeap::new(),
            waiting: HashMap::new(),
            left: Vec::new(),
            sent: [0; 2],
            lost,
            datagrams: Vec::new(),
            tap,
        }
    }

    /// Takes a datagram of an end.
    pub(super) fn send(&mut self, now: Time, sender: Side, ecn: EcnCodepoint, datagram: &[u8]) {
        let sent = &mut self.sent[sender as usize];
        let key = PacketKey::datagram(*sent);
        let is_lost = self.lost == Some((sender, *sent)) || datagram.len() > self.holds;
        *sent += 1;
        self.datagrams.push(Datagram {
            sent: now,
            sender,
            bytes: datagram.len(),
        });
        let [client, server] = self.sent;
        let number = u64::from(client) + u64::from(server);
        let pipe = &mut self.pipes[sender as usize];
        let packet = Packet {
            ticket: number,
            length: usize::from(Quic::HEADERS) + datagram.len(),
            key,
            flow: 0,
            ecn,
        };
        let fate = match pipe.accept(now, packet) {
            _ if is_lost => Fate::Lost,
            fate => fate,
        };
        let one = Waits {
            number,
            sent: now,
            sender,
            ecn,
            datagram: datagram.to_vec(),
        };
        self.settle(one, fate, ecn);
    }

    /// Notes what becomes of a datagram, and sees to it. `ecn` is what its packet says about congestion when it arrives.
    fn settle(&mut self, one: Waits, fate: Fate, ecn: EcnCodepoint) {
        let arrives = match fate {
            Fate::Arrives(at) => Ok(at),
            Fate::Lost => Err(capture::Fate::Lost),
            Fate::Overflows => Err(capture::Fate::QueueFull),
            Fate::Waits => {
                self.waiting.insert(one.number, one);
                return;
            }
        };
        if let Some(tap) = &mut self.tap {
            let arrives = arrives.map(|at| (at, ecn));
            tap.note(one.sender, (one.sent, one.ecn), &one.datagram, arrives);
        }
        if let Ok(at) = arrives {
            self.under_way.push(Reverse(Arrival {
                at,
                number: one.number,
                receiver: one.sender.other(),
                ecn,
                datagram: one.datagram,
            }));
        }
    }

    /// Has queues decide what is due by `now`.
    fn serve(&mut self, now: Time) {
        let mut left = std::mem::take(&mut self.left);
        for pipe in &mut self.pipes {
            pipe.serve(now, &mut left);
        }
        for one in left.drain(..) {
            // One that is lost whatever its luck is not there.
            if let Some(waits) = self.waiting.remove(&one.ticket) {
                let ecn = if one.marked {
                    EcnCodepoint::Ce
                } else {
                    waits.ecn
                };
                self.settle(waits, one.fate, ecn);
            }
        }
        self.left = left;
    }

    /// When the next datagram arrives, or a queue decides about one.
    pub(super) fn next_arrival(&self) -> Option<Time> {
        let arrives = self.under_way.peek().map(|Reverse(next)| next.at);
        let decides = self.pipes.iter().filter_map(Pipe::next);
        arrives.into_iter().chain(decides).min()
    }

    /// The next datagram that has arrived by `now`, at whom, and what its packet says about congestion.
    pub(super) fn arrived(&mut self, now: Time) -> Option<(Side, EcnCodepoint, Vec<u8>)> {
        self.serve(now);
        let Reverse(next) = self.under_way.peek()?;
        if next.at > now {
            return None;
        }
        let Reverse(next) = self.under_way.pop()?;
        Some((next.receiver, next.ecn, next.datagram))
    }
}
