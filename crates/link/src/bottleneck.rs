//! A direction whose packets wait by a [queue discipline](crate::qdisc): the delay first, in which none overtakes another,
//! then the queue, then the rate or the trace.
//!
//! Where nobody is dropped and nobody changes turns, packets come out when they do without a discipline.

use std::collections::VecDeque;

use crate::fate::{ETHERNET_HEADER, Fate, Left};
use crate::qdisc::{Queue, Waiting};
use crate::trace::Cursor;
use crate::{Rate, Time};

#[derive(Clone, Debug)]
pub(crate) struct Bottleneck {
    /// Those that are delayed, with 64 even bits for what chance decides.
    line: VecDeque<(Time, Waiting, u64)>,
    queue: Queue,
    capacity: Capacity,
    service: Service,
    /// When something has happened last, or will have.
    now: Time,
    dropped: Vec<u64>,
    /// What is decided of packets, and nobody has asked for yet.
    decided: Vec<Left>,
}

#[derive(Clone, Debug)]
pub(crate) enum Capacity {
    Unlimited,
    Rate(Rate),
    Trace(Cursor),
}

/// What the link does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Service {
    Idle,
    /// It takes the next one then.
    Takes(Time),
    /// It has one that is out then.
    Sends(Time),
    /// It carries nothing more.
    Ended,
}

impl Bottleneck {
    pub(crate) fn new(queue: Queue, capacity: Capacity) -> Bottleneck {
        Bottleneck {
            line: VecDeque::new(),
            queue,
            capacity,
            service: Service::Idle,
            now: Time(0),
            dropped: Vec::new(),
            decided: Vec::new(),
        }
    }

    /// Takes a packet that comes to the queue at this time, or after those before it, and says what becomes of it, if that is
    /// known: nobody comes before it any more, so that all can happen that does until then.
    pub(crate) fn accept(&mut self, at: Time, packet: Waiting, luck: u64) -> Fate {
        let before = self.line.back().map_or(self.now, |(before, ..)| *before);
        let at = at.max(before);
        self.line.push_back((at, packet, luck));
        let had_none = self.decided.is_empty();
        self.go_on(at);
        let is_its = |left: &Left| left.ticket == packet.ticket && !left.marked;
        match &self.decided[..] {
            [only] if had_none && is_its(only) => {
                let fate = only.fate;
                self.decided.clear();
                fate
            }
            _ => Fate::Waits,
        }
    }

    /// When it has to be [served](Bottleneck::serve) at the latest.
    pub(crate) fn next(&self) -> Option<Time> {
        let decided = self.decided.iter().find_map(|left| match left.fate {
            Fate::Arrives(at) => Some(at),
            _ => None,
        });
        decided.into_iter().chain(self.event()).min()
    }

    /// When something happens next.
    fn event(&self) -> Option<Time> {
        let released = self.line.front().map(|(at, ..)| *at);
        match self.service {
            Service::Takes(at) | Service::Sends(at) => {
                Some(released.map_or(at, |released| released.min(at)))
            }
            Service::Idle | Service::Ended => released,
        }
    }

    /// Does all that happens up to `now`, and adds those packets of which it is known when they come out, or that they do
    /// not.
    pub(crate) fn serve(&mut self, now: Time, left: &mut Vec<Left>) {
        self.go_on(now);
        left.append(&mut self.decided);
    }

    fn go_on(&mut self, until: Time) {
        while let Some(at) = self.event().filter(|at| *at <= until) {
            self.now = at;
            match self.service {
                Service::Sends(until) if until <= at => {
                    self.queue.finish(at);
                    self.service = Service::Idle;
                    if !self.queue.is_waiting() {
                        // Linux asks for the next one even so, by which CoDel stops dropping and flows end.
                        let none = self.queue.dequeue(at, &mut self.dropped);
                        debug_assert_eq!(none, None);
                    }
                }
                Service::Takes(from) if from <= at => self.take(at),
                _ => {
                    if let Some((_, packet, luck)) = self.line.pop_front() {
                        let dropped = &mut self.dropped;
                        self.queue.enqueue(at, packet, || luck, dropped);
                        self.note_dropped();
                    }
                }
            }
            if matches!(self.service, Service::Idle | Service::Ended) && self.queue.is_waiting() {
                let takes = match &mut self.capacity {
                    Capacity::Unlimited | Capacity::Rate(_) => Some(at),
                    Capacity::Trace(cursor) => cursor.starts(at),
                };
                match takes {
                    Some(takes) => self.service = Service::Takes(takes),
                    None => self.end(at),
                }
            }
        }
    }

    fn take(&mut self, at: Time) {
        let next = self.queue.dequeue(at, &mut self.dropped);
        self.note_dropped();
        let Some(packet) = next else {
            self.service = Service::Idle;
            return;
        };
        let length = packet.length as usize;
        let out = match &mut self.capacity {
            Capacity::Unlimited => Some(at),
            Capacity::Rate(rate) => Some(at + rate.serialisation(length)),
            Capacity::Trace(cursor) => cursor.carry(at, length.saturating_sub(ETHERNET_HEADER)),
        };
        let fate = out.map_or(Fate::Lost, Fate::Arrives);
        self.decided.push(Left {
            ticket: packet.ticket,
            fate,
            marked: packet.marked,
        });
        match out {
            Some(out) => self.service = Service::Sends(out),
            None => self.end(at),
        }
    }

    /// The trace has ended: whoever waits does so for ever.
    fn end(&mut self, at: Time) {
        self.service = Service::Ended;
        loop {
            self.queue.finish(at);
            let Some(packet) = self.queue.dequeue(at, &mut self.dropped) else {
                break;
            };
            self.decided.push(Left {
                ticket: packet.ticket,
                fate: Fate::Lost,
                marked: false,
            });
        }
        self.note_dropped();
    }

    fn note_dropped(&mut self) {
        self.decided
            .extend(self.dropped.drain(..).map(|ticket| Left {
                ticket,
                fate: Fate::Overflows,
                marked: false,
            }));
    }
}
