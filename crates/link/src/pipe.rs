//! What becomes of a packet, as Linux's `sch_netem` decides it.
//!
//! The rules are those of `netem_enqueue`, `loss_event`, `tabledist` and `packet_time_ns` in
//! `net/sched/sch_netem.c` (Linux 6.12), in this order:
//!
//! 1. [`Loss`], before the queue.
//! 2. The queue. A packet overflows when as many are held as the queue allows. Those in the delay
//!    line are held, so `queue * 1514 bytes / delay` is the most that can pass.
//! 3. The delay, with jitter.
//! 4. The rate. Serialisation of the packet and its Ethernet header begins when the delay is over
//!    and the packet before, if it is still held, is out. So a pipe with a rate never reorders: one
//!    late packet holds all after it. Without a rate, jitter reorders.
//!
//! A draw of the delay may be negative where the jitter is large. As in netem, it then shortens
//! the serialisation of a packet that finds the pipe empty, and no packet comes out
//! before it went in.
//!
//! Besides what netem has, a direction may have a [`Trace`] in place of a rate, and [`Order::Kept`],
//! with which jitter reorders nothing.
//!
//! What differs from netem, by intent:
//!
//! - Luck is counter-based ([`Seed`](crate::Seed)), where netem draws from a stream.
//! - Each connection has a pipe of its own in each direction.
//! - The pipe stands in the middle of the network. An overflow is silent, where netem on the
//!   sender's own interface tells TCP of it (`NET_XMIT_DROP`).
//! - The 14 bytes of the Ethernet header always count, where netem counts what its device has.
//! - A rate is exact to the bit per second, where netem rounds to bytes per second.
//! - Jitter has no upper limit, where netem cuts it at 2.147 s.
//! - The table of the normal distribution is centred ([`Distribution::Normal`]).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use crate::bottleneck::{Bottleneck, Capacity};
use crate::distribution::SCALE;
use crate::fate::{ETHERNET_HEADER, Fate, Left, Packet};
use crate::loss::State;
use crate::luck::Draw;
use crate::qdisc::{Qdisc, Queue, Surroundings, Waiting};
use crate::trace::Cursor;
use crate::{Distribution, EcnCodepoint, Loss, Luck, PacketKey, Rate, Seed, Side, Time, Trace};

/// A packet of 1500 bytes with its Ethernet header.
const FULL_FRAME: u32 = 1514;

/// One network between a client and a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// From the client to the server.
    pub forward: Direction,
    /// From the server to the client.
    pub backward: Direction,
}

impl Link {
    /// The same at its best: without loss and jitter, which are luck, and with the mean rate of a trace, in
    /// which a connection begins anywhere.
    #[must_use]
    pub fn without_luck(&self) -> Link {
        let best = |direction: &Direction| Direction {
            loss: Loss::NONE,
            jitter: Duration::ZERO,
            order: Order::default(),
            qdisc: None,
            rate: direction.mean_rate(),
            trace: None,
            ..direction.clone()
        };
        Link {
            forward: best(&self.forward),
            backward: best(&self.backward),
        }
    }

    /// The same network both ways: `direction`, with its delay replaced by half of `rtt`.
    #[must_use]
    pub fn symmetric(rtt: Duration, direction: Direction) -> Link {
        let half = rtt / 2;
        Link {
            forward: Direction {
                delay: half,
                ..direction.clone()
            },
            backward: Direction {
                delay: rtt.saturating_sub(half),
                ..direction
            },
        }
    }

    /// Both directions, `forward` and `backward`, of connection `index`, which begins at `begin`.
    #[must_use]
    pub fn pipes(&self, seed: Seed, index: u32, begin: Time) -> [Pipe; 2] {
        let luck = [Side::Server, Side::Client].map(|toward| seed.luck(index, toward));
        let [forward, backward] = luck;
        let both = [(&self.forward, forward), (&self.backward, backward)];
        // Traces of both directions were recorded together, and stay so.
        let traces = both.iter().filter_map(|(way, _)| way.trace.as_ref());
        let period = traces.map(Trace::period).max().unwrap_or_default();
        let phase = below(
            period.as_nanos(),
            forward.draw(PacketKey(u64::MAX), Draw::Phase),
        );
        let phase = Duration::from_nanos(u64::try_from(phase).unwrap_or(u64::MAX));
        both.map(|(direction, luck)| Pipe::beginning(direction, luck, begin, phase))
    }

    /// Round-trip time of a packet of no length: the two delays, without jitter.
    #[must_use]
    pub fn rtt(&self) -> Duration {
        self.forward.delay.saturating_add(self.backward.delay)
    }
}

/// One direction of a [`Link`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Direction {
    /// One-way delay.
    pub delay: Duration,
    /// How far the delay varies; the distribution says in what sense.
    pub jitter: Duration,
    /// How the jitter is distributed.
    pub distribution: Distribution,
    /// What jitter does to the order of packets where nothing limits the rate.
    pub order: Order,
    /// How packets are lost.
    pub loss: Loss,
    /// What the direction carries; `None` is without limit.
    pub rate: Option<Rate>,
    /// When it carries how much, in place of a rate.
    pub trace: Option<Trace>,
    /// How packets wait for the rate or the trace, in place of `queue`; those in the delay line do not wait.
    pub qdisc: Option<Qdisc>,
    /// How many packets it holds, those in the delay line included. This bounds the rate:
    /// 1000 full packets of 1514 bytes over 50 ms are 242 Mbit/s.
    pub queue: u32,
}

impl Direction {
    /// How long a packet is delayed in the mean, before the rate: longer than [`delay`](Direction::delay) where some are drawn below
    /// zero, which are not delayed at all.
    #[must_use]
    pub fn mean_delay(&self) -> Duration {
        let (delay, jitter) = (self.delay.as_secs_f64(), self.jitter.as_secs_f64());
        let mean = match self.distribution.table() {
            _ if jitter == 0.0 => return self.delay,
            None if jitter <= delay => delay,
            None => (delay + jitter).powi(2) / (4.0 * jitter),
            Some(table) => {
                let draws = table.iter().map(|draw| f64::from(*draw) / SCALE as f64);
                let delays = draws.map(|draw| (delay + jitter * draw).max(0.0));
                delays.sum::<f64>() / table.len().max(1) as f64
            }
        };
        Duration::try_from_secs_f64(mean).unwrap_or(self.delay)
    }

    /// What it carries in the long run; `None` is without limit.
    #[must_use]
    pub fn mean_rate(&self) -> Option<Rate> {
        match &self.trace {
            Some(trace) => Some(trace.mean_rate()),
            None => self.rate,
        }
    }

    /// Whether jitter has packets overtake each other.
    #[must_use]
    pub fn is_reordering(&self) -> bool {
        let has_limit = self.rate.is_some() || self.trace.is_some() || self.qdisc.is_some();
        !self.jitter.is_zero() && self.order == Order::Free && !has_limit
    }

    /// The share of packets whose delay is drawn below zero, so that they are not delayed at all: the mean delay is longer than
    /// [`delay`](Direction::delay) then.
    #[must_use]
    pub fn share_below_zero(&self) -> f64 {
        let (delay, jitter) = (self.delay.as_secs_f64(), self.jitter.as_secs_f64());
        if jitter == 0.0 {
            return 0.0;
        }
        match self.distribution.table() {
            None => ((jitter - delay) / (2.0 * jitter)).max(0.0),
            Some(table) => {
                let early = -delay / jitter * SCALE as f64;
                let below = table.iter().filter(|draw| f64::from(**draw) < early);
                below.count() as f64 / table.len().max(1) as f64
            }
        }
    }
}

/// What becomes of the order of packets whose delays differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Order {
    /// A packet overtakes those that are delayed for longer, as in netem, unless a rate or a trace holds it up.
    #[default]
    Free,
    /// None overtakes another: one that is late holds up those after it.
    Kept,
}

crate::named!(Order, "order", { Free => "free", Kept => "kept" });

impl Default for Direction {
    /// Neither delay, jitter, loss nor rate limit; netem's queue of 1000 packets.
    fn default() -> Direction {
        Direction {
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            distribution: Distribution::Uniform,
            order: Order::Free,
            loss: Loss::NONE,
            rate: None,
            trace: None,
            qdisc: None,
            queue: 1000,
        }
    }
}

/// One direction of one connection's private link.
#[derive(Clone, Debug)]
pub struct Pipe {
    direction: Direction,
    /// Where it is in its trace.
    cursor: Option<Cursor>,
    bottleneck: Option<Box<Bottleneck>>,
    luck: Luck,
    state: State,
    held: BinaryHeap<Reverse<Time>>,
    last: Time,
}

impl Pipe {
    /// An empty pipe, whose trace begins at 0.
    #[must_use]
    pub fn new(direction: &Direction, luck: Luck) -> Pipe {
        Pipe::beginning(direction, luck, Time(0), Duration::ZERO)
    }

    /// That of a connection which begins at `begin`, when its trace is at `phase`.
    fn beginning(direction: &Direction, luck: Luck, begin: Time, phase: Duration) -> Pipe {
        let trace = direction.trace.clone();
        let cursor = trace.map(|trace| Cursor::new(trace, begin, phase));
        let around = Surroundings {
            mtu: FULL_FRAME,
            rate: direction.mean_rate(),
            begin,
        };
        let bottleneck = direction.qdisc.map(|qdisc| {
            let capacity = match (&cursor, direction.rate) {
                (Some(cursor), _) => Capacity::Trace(cursor.clone()),
                (None, Some(rate)) => Capacity::Rate(rate),
                (None, None) => Capacity::Unlimited,
            };
            Box::new(Bottleneck::new(Queue::new(&qdisc, around), capacity))
        });
        Pipe {
            direction: direction.clone(),
            cursor,
            bottleneck,
            luck,
            state: State::default(),
            held: BinaryHeap::new(),
            last: Time(0),
        }
    }

    /// Takes an IP packet of `length` bytes at `now`, which is not before the `now` of any call
    /// before, and says what becomes of it.
    pub fn send(&mut self, now: Time, length: usize, key: PacketKey) -> Fate {
        self.accept(
            now,
            Packet {
                ticket: 0,
                length,
                key,
                flow: 0,
                ecn: EcnCodepoint::NotEct,
            },
        )
    }

    /// The same of a packet that may wait.
    pub fn accept(&mut self, now: Time, packet: Packet) -> Fate {
        let Packet { length, key, .. } = packet;
        let draw = |draw| (self.luck.draw(key, draw) >> 32) as u32;
        if self.direction.loss.strikes(&mut self.state, draw) {
            return Fate::Lost;
        }
        let delay = self.delay(key);
        if let Some(bottleneck) = &mut self.bottleneck {
            let released = (i128::from(now.0) + delay).max(i128::from(now.0));
            let released = Time(u64::try_from(released).unwrap_or(u64::MAX));
            let length = length.saturating_add(ETHERNET_HEADER);
            let waiting = Waiting {
                ticket: packet.ticket,
                length: u32::try_from(length).unwrap_or(u32::MAX),
                flow: packet.flow,
                ecn: packet.ecn,
                marked: false,
            };
            return bottleneck.accept(released, waiting, self.luck.draw(key, Draw::Early));
        }
        while self
            .held
            .peek()
            .is_some_and(|Reverse(departure)| *departure <= now)
        {
            self.held.pop();
        }
        if self.held.len() >= self.direction.queue as usize {
            return Fate::Overflows;
        }
        let Some(departure) = self.departure(now, length, delay) else {
            return Fate::Lost;
        };
        self.held.push(Reverse(departure));
        self.last = departure;
        Fate::Arrives(departure)
    }

    /// When something happens to those that wait; `None` if nobody does.
    #[must_use]
    pub fn next(&self) -> Option<Time> {
        self.bottleneck.as_ref()?.next()
    }

    /// Adds those that have waited and of which it is known by `now` when they arrive, which may be later, or that they do not.
    /// One call for each [`next`](Pipe::next) is enough.
    pub fn serve(&mut self, now: Time, left: &mut Vec<Left>) {
        if let Some(bottleneck) = &mut self.bottleneck {
            bottleneck.serve(now, left);
        }
    }

    /// When a packet comes out; `None` if a trace ends before.
    fn departure(&mut self, now: Time, length: usize, delay: i128) -> Option<Time> {
        let last = i128::from(self.last.0);
        let delayed = i128::from(now.0) + delay;
        let now = i128::from(now.0);
        let time = |time: i128| Time(u64::try_from(time.max(now)).unwrap_or(u64::MAX));
        let begin = if last > now {
            delayed.max(last)
        } else {
            delayed
        };
        if let Some(cursor) = &mut self.cursor {
            return cursor.carry(time(begin), length);
        }
        Some(time(match (self.direction.rate, self.direction.order) {
            (None, Order::Free) => delayed,
            (None, Order::Kept) => begin,
            (Some(rate), _) => {
                let length = length.saturating_add(ETHERNET_HEADER);
                begin + i128::from(nanos(rate.serialisation(length)))
            }
        }))
    }

    /// The delay drawn, in nanoseconds.
    fn delay(&self, key: PacketKey) -> i128 {
        let mean = i128::from(nanos(self.direction.delay));
        let jitter = i128::from(nanos(self.direction.jitter));
        if jitter == 0 {
            return mean;
        }
        let draw = self.luck.draw(key, Draw::Delay);
        match self.direction.distribution.table() {
            None => mean - jitter + below(2 * jitter.unsigned_abs(), draw) as i128,
            Some(table) => {
                let index = below(table.len() as u128, draw) as usize;
                let scaled = jitter * table.get(index).copied().map_or(0, i128::from);
                mean + (scaled + SCALE / 2 * scaled.signum()) / SCALE
            }
        }
    }
}

/// An even draw, scaled to less than `bound`.
fn below(bound: u128, draw: u64) -> u128 {
    (u128::from(draw) * bound) >> u64::BITS
}

/// In nanoseconds, saturating at 292 years.
fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}
