//! The controller of RFC 8033, as `net/sched/sch_pie.c` has it without its estimate of the rate: packets are told when they
//! came.

use std::collections::VecDeque;
use std::time::Duration;

use super::{Ecn, Held, Pie, Surroundings, Waiting, mark};
use crate::Time;

/// Times are in units of 64 ns, probabilities in 2^-56.
#[derive(Clone, Debug)]
pub(super) struct State {
    limit: u32,
    target: u64,
    tupdate: Duration,
    alpha: u64,
    beta: u64,
    ecn: Ecn,
    mtu: u64,
    packets: VecDeque<(Waiting, u64)>,
    pub(super) probability: u64,
    /// What it has added up to since the last drop.
    accumulated: u64,
    delay: u64,
    delay_before: u64,
    /// How long bursts pass without a drop.
    burst: u64,
    dequeued: Option<u64>,
    pub(super) next_update: Time,
}

const CERTAIN: u64 = u64::MAX >> 8;
const SHIFT: u32 = 6;
const SECOND: u64 = 1_000_000_000 >> SHIFT;
const BURST: u64 = 150_000_000 >> SHIFT;

fn ticks(time: Time) -> u64 {
    time.0 >> SHIFT
}

impl State {
    pub(super) fn new(pie: &Pie, around: Surroundings) -> State {
        let gain = |gain: u32| (u64::from(gain) * (CERTAIN / SECOND)) >> 4;
        State {
            limit: pie.limit,
            target: (pie.target.as_micros() as u64 * 1000) >> SHIFT,
            tupdate: pie.tupdate,
            alpha: gain(pie.alpha),
            beta: gain(pie.beta),
            ecn: pie.ecn,
            mtu: around.mtu.into(),
            packets: VecDeque::new(),
            probability: 0,
            accumulated: 0,
            delay: 0,
            delay_before: 0,
            burst: BURST,
            dequeued: None,
            next_update: around.begin + pie.tupdate,
        }
    }

    pub(super) fn enqueue(
        &mut self,
        now: Time,
        held: &mut Held,
        mut packet: Waiting,
        luck: impl FnOnce() -> u64,
        dropped: &mut Vec<u64>,
    ) {
        self.update(now, held);
        let passes = held.packets < self.limit
            && (!self.is_early(held, luck)
                || (self.probability <= CERTAIN / 10 && mark(&mut packet, self.ecn)));
        if passes {
            held.add(packet.length);
            self.packets.push_back((packet, ticks(now)));
        } else {
            self.accumulated = 0;
            dropped.push(packet.ticket);
        }
    }

    pub(super) fn dequeue(&mut self, now: Time, held: &mut Held) -> Option<Waiting> {
        self.update(now, held);
        let (packet, since) = self.packets.pop_front()?;
        held.remove(packet.length);
        let now = ticks(now);
        self.delay = if held.bytes == 0 { 0 } else { now - since };
        let passed = self.dequeued.map_or(0, |before| now - before);
        self.dequeued = Some(now);
        self.burst = self.burst.saturating_sub(passed);
        Some(packet)
    }

    /// Whether a packet that comes now is one too many.
    fn is_early(&mut self, held: &Held, luck: impl FnOnce() -> u64) -> bool {
        let is_short = self.delay < self.target / 2 && self.probability < CERTAIN / 5;
        if self.burst > 0 || is_short || held.bytes < 2 * self.mtu {
            return false;
        }
        self.accumulated = match self.probability {
            0 => 0,
            more => self.accumulated.wrapping_add(more),
        };
        // Not before 0.85 and not after 8.5 packets of those that are expected between two drops.
        if self.accumulated < CERTAIN / 100 * 85 {
            return false;
        }
        if self.accumulated >= CERTAIN / 2 * 17 {
            return true;
        }
        let strikes = luck() >> 8 < self.probability;
        if strikes {
            self.accumulated = 0;
        }
        strikes
    }

    /// All changes of the probability that are due.
    fn update(&mut self, now: Time, held: &Held) {
        while self.next_update <= now {
            self.next_update = self.next_update + self.tupdate.max(Duration::from_millis(1));
            self.calculate(held);
        }
    }

    fn calculate(&mut self, held: &Held) {
        let (delay, before) = (self.delay, self.delay_before);
        // So little waits that it says nothing.
        let mut changes = !(delay == 0 && held.bytes != 0);
        let (mut alpha, mut beta) = (self.alpha, self.beta);
        // Gently, where the probability is small.
        if self.probability < CERTAIN / 10 {
            (alpha, beta) = (alpha >> 1, beta >> 1);
            let mut power = 100;
            while self.probability < CERTAIN / power && power <= 1_000_000 {
                (alpha, beta) = (alpha >> 2, beta >> 2);
                power *= 10;
            }
        }
        let part = |gain: u64, from: u64| gain.wrapping_mul(delay.wrapping_sub(from)) as i64;
        let mut delta = part(alpha, self.target).wrapping_add(part(beta, before));
        if delta > (CERTAIN / 50) as i64 && self.probability >= CERTAIN / 10 {
            delta = (CERTAIN / 100 * 2) as i64;
        }
        if delay > SECOND / 4 {
            delta = delta.wrapping_add((CERTAIN / 50) as i64);
        }
        let old = self.probability;
        self.probability = old.wrapping_add(delta as u64);
        if delta > 0 {
            if self.probability < old {
                self.probability = CERTAIN;
                changes = false;
            }
        } else if self.probability > old {
            self.probability = 0;
        }
        if delay == 0 && before == 0 && changes {
            self.probability -= self.probability / 64;
        }
        let is_idle = delay < self.target / 2 && before < self.target / 2;
        if is_idle && self.probability == 0 {
            self.burst = BURST;
            self.dequeued = None;
            self.accumulated = 0;
        }
        self.delay_before = delay;
    }
}
