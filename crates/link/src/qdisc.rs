//! What a bottleneck does with packets that wait for it: queues by packets, bytes and time, and active queue management.
//!
//! Each is a state machine that is told of what comes and when the link is free, after what Linux's `net/sched` does
//! (6.12, and 7.3 for the last): [`Codel`] (RFC 8289), [`FqCodel`] (RFC 8290), [`Pie`] (RFC 8033), [`Red`] (Floyd and
//! Jacobson, 1993) and [`DualPi2`] (RFC 9332), with its units, constants and rounding. A packet that is on its way out counts as held until it is out, as it does where
//! Linux's own shaper (`sch_tbf`) is the bottleneck.

mod codel;
mod dualpi2;
mod fifo;
mod fq_codel;
mod pie;
mod red;
mod text;

use std::time::Duration;

use crate::{Bytes, EcnCodepoint, Probability, Rate, Time};

/// How packets wait for a bottleneck.
///
/// Written as `tc` has it: a name, and settings behind it that are not as usual, such as `codel target 10ms ecn`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Qdisc {
    /// In one queue, and who finds it full is dropped.
    Fifo(Limit),
    /// In one queue, whose head is dropped where packets wait too long.
    Codel(Codel),
    /// In a queue for each flow, each with [`Codel`].
    FqCodel(FqCodel),
    /// In one queue, and who comes is dropped with a probability that keeps waiting near a target.
    Pie(Pie),
    /// In one queue, and who comes is dropped with a probability that grows with the queue's mean length.
    Red(Red),
    /// In two queues, one of which is for L4S.
    DualPi2(DualPi2),
}

/// How much a queue holds at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// So many packets.
    Packets(u32),
    /// So many bytes, Ethernet headers included.
    Bytes(Bytes),
    /// What the link carries in this time, at its rate or a trace's mean one.
    Time(Duration),
}

/// What is done to a packet whose sender understands ECN (RFC 3168) in place of dropping it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// It is dropped like others.
    #[default]
    Off,
    /// It is marked.
    On,
}

/// Controlled delay (RFC 8289).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Codel {
    /// Packets that it holds at most.
    pub limit: u32,
    /// How long packets may wait for good.
    pub target: Duration,
    /// How long they may wait for longer.
    pub interval: Duration,
    /// Whether it marks.
    pub ecn: Ecn,
}

/// [`Codel`] for each flow, in turns (RFC 8290). No two flows share a queue, as none share a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FqCodel {
    /// For each flow; the limit is that of all together.
    pub codel: Codel,
    /// Bytes that a flow sends in its turn.
    pub quantum: u32,
}

/// Proportional integral controller, enhanced (RFC 8033).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pie {
    /// Packets that it holds at most.
    pub limit: u32,
    /// How long packets shall wait.
    pub target: Duration,
    /// How often the probability changes.
    pub tupdate: Duration,
    /// How much it changes by how far waiting is from the target, in 1/16 per second.
    pub alpha: u32,
    /// How much it changes by how waiting has changed, in 1/16 per second.
    pub beta: u32,
    /// Whether it marks, where the probability is 10 % or less.
    pub ecn: Ecn,
}

/// Random early detection (Floyd and Jacobson, 1993).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Red {
    /// Bytes that it holds at most.
    pub limit: Bytes,
    /// The mean length from which on it drops.
    pub min: Bytes,
    /// The mean length from which on it drops all.
    pub max: Bytes,
    /// That it drops one at `max`.
    pub probability: Probability,
    /// The usual size of a packet, by which idle times count.
    pub avpkt: Bytes,
    /// Whether it marks.
    pub ecn: Ecn,
}

/// Two queues whose probabilities are coupled (RFC 9332): one for who sends ECT(1), in which nobody waits for long and packets
/// are marked, and one for all others, of whom those who send ECT(0) are marked and the rest dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DualPi2 {
    /// Packets that both hold at most.
    pub limit: u32,
    /// How long packets of the classic queue shall wait.
    pub target: Duration,
    /// How often the probability changes.
    pub tupdate: Duration,
    /// How long packets of the other queue may wait before each is marked.
    pub step_thresh: Duration,
    /// How many times as likely a mark is there.
    pub coupling_factor: u8,
}

impl Default for DualPi2 {
    fn default() -> DualPi2 {
        DualPi2 {
            limit: 10_000,
            target: Duration::from_millis(15),
            tupdate: Duration::from_millis(16),
            step_thresh: Duration::from_millis(1),
            coupling_factor: 2,
        }
    }
}

impl Default for Codel {
    fn default() -> Codel {
        Codel {
            limit: 1000,
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            ecn: Ecn::Off,
        }
    }
}

impl Default for FqCodel {
    fn default() -> FqCodel {
        FqCodel {
            codel: Codel {
                limit: 10_240,
                ecn: Ecn::On,
                ..Codel::default()
            },
            quantum: FULL_FRAME,
        }
    }
}

impl Default for Pie {
    fn default() -> Pie {
        Pie {
            limit: 1000,
            target: Duration::from_millis(15),
            tupdate: Duration::from_millis(15),
            alpha: 2,
            beta: 20,
            ecn: Ecn::Off,
        }
    }
}

impl Red {
    /// With the thresholds that `tc` takes for a limit: a quarter of it, and a third of that.
    #[must_use]
    pub fn of(limit: Bytes) -> Red {
        let max = Bytes(limit.0 / 4);
        Red {
            limit,
            min: Bytes(max.0 / 3),
            max,
            probability: Probability::from_fraction(0.02).unwrap_or_default(),
            avpkt: Bytes(1000),
            ecn: Ecn::Off,
        }
    }
}

/// An Ethernet frame with a full packet.
const FULL_FRAME: u32 = 1514;

/// A packet that comes to a bottleneck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// By which whoever sends it knows it.
    pub ticket: u64,
    /// Its bytes, with the header that the link counts.
    pub length: u32,
    /// What tells its flow from others.
    pub flow: u32,
    /// What it says about congestion.
    pub ecn: EcnCodepoint,
    /// Whether it is marked.
    pub marked: bool,
}

/// What a queue is told of its link.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings {
    /// The longest packet with its header.
    pub mtu: u32,
    /// What the link carries, in the mean.
    pub rate: Option<Rate>,
    /// When it begins.
    pub begin: Time,
}

/// What waits for a bottleneck.
#[derive(Clone, Debug)]
pub struct Queue {
    held: Held,
    serving: Option<u32>,
    machine: Machine,
}

#[derive(Clone, Debug)]
enum Machine {
    Fifo(fifo::Fifo),
    Codel(codel::State),
    FqCodel(fq_codel::State),
    Pie(pie::State),
    Red(Box<red::State>),
    DualPi2(dualpi2::State),
}

/// How much a queue holds, with the packet that is on its way out.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    packets: u32,
    bytes: u64,
}

impl Held {
    fn add(&mut self, length: u32) {
        self.packets += 1;
        self.bytes += u64::from(length);
    }

    fn remove(&mut self, length: u32) {
        self.packets = self.packets.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(length.into());
    }
}

impl Queue {
    /// An empty one.
    #[must_use]
    pub fn new(qdisc: &Qdisc, around: Surroundings) -> Queue {
        let machine = match qdisc {
            Qdisc::Fifo(limit) => Machine::Fifo(fifo::Fifo::new(*limit, around)),
            Qdisc::Codel(codel) => Machine::Codel(codel::State::new(codel, around)),
            Qdisc::FqCodel(fq) => Machine::FqCodel(fq_codel::State::new(fq, around)),
            Qdisc::Pie(pie) => Machine::Pie(pie::State::new(pie, around)),
            Qdisc::Red(red) => Machine::Red(Box::new(red::State::new(red, around))),
            Qdisc::DualPi2(dual) => Machine::DualPi2(dualpi2::State::new(dual, around)),
        };
        Queue {
            held: Held::default(),
            serving: None,
            machine,
        }
    }

    /// Takes a packet; who is dropped for it, which may be itself, is added to `dropped`. `luck` gives 64 even bits for
    /// what chance decides.
    pub fn enqueue(
        &mut self,
        now: Time,
        packet: Waiting,
        luck: impl FnOnce() -> u64,
        dropped: &mut Vec<u64>,
    ) {
        let held = &mut self.held;
        match &mut self.machine {
            Machine::Fifo(fifo) => fifo.enqueue(held, packet, dropped),
            Machine::Codel(codel) => codel.enqueue(now, held, packet, dropped),
            Machine::FqCodel(fq) => fq.enqueue(now, held, packet, dropped),
            Machine::Pie(pie) => pie.enqueue(now, held, packet, luck, dropped),
            Machine::Red(red) => red.enqueue(now, held, packet, luck, dropped),
            Machine::DualPi2(dual) => dual.enqueue(now, held, packet, luck, dropped),
        }
    }

    /// The next one that goes, as the link is free; who is dropped before it is added to `dropped`. It is held until it
    /// [is out](Queue::finish).
    pub fn dequeue(&mut self, now: Time, dropped: &mut Vec<u64>) -> Option<Waiting> {
        let held = &mut self.held;
        let next = match &mut self.machine {
            Machine::Fifo(fifo) => fifo.dequeue(held),
            Machine::Codel(codel) => codel.dequeue(now, held, dropped),
            Machine::FqCodel(fq) => fq.dequeue(now, held, dropped),
            Machine::Pie(pie) => pie.dequeue(now, held),
            Machine::Red(red) => red.dequeue(held),
            Machine::DualPi2(dual) => dual.dequeue(now, held, dropped),
        };
        if let Some(packet) = next {
            self.held.add(packet.length);
            self.serving = Some(packet.length);
        }
        next
    }

    /// The packet that was [taken](Queue::dequeue) is out.
    pub fn finish(&mut self, now: Time) {
        if let Some(length) = self.serving.take() {
            self.held.remove(length);
        }
        match (&mut self.machine, self.held.packets) {
            (Machine::Red(red), 0) => red.idles(now),
            (Machine::DualPi2(dual), 0) => dual.idles(),
            _ => {}
        }
    }

    /// Packets that it holds, with the one that is on its way out.
    #[must_use]
    pub fn packets(&self) -> u32 {
        self.held.packets
    }

    /// Whether anyone waits besides the one that is on its way out.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.held.packets > u32::from(self.serving.is_some())
    }
}

/// Marks a packet, if that can be.
fn mark(packet: &mut Waiting, ecn: Ecn) -> bool {
    let marks = ecn == Ecn::On && packet.ecn.is_capable();
    packet.marked |= marks;
    marks
}

#[cfg(test)]
mod tests;
