//! Random early detection, as `include/net/red.h` and `net/sched/sch_red.c` have it, with what `tc` makes of its settings.

use std::collections::VecDeque;
use std::time::Duration;

use super::{Ecn, Held, Red, Surroundings, Waiting, mark};
use crate::{Rate, Time};

#[derive(Clone, Debug)]
pub(super) struct State {
    limit: u64,
    ecn: Ecn,
    /// Of the mean, in 2^-weight bytes.
    pub(super) min: u64,
    max: u64,
    /// The mean keeps all but 2^-weight of itself.
    pub(super) weight: u32,
    /// What a draw is divided by: how much the probability grows with a byte, in 2^-32.
    pub(super) slope: u32,
    damping: Damping,
    pub(super) mean: u64,
    /// Packets since the last draw; none while the mean is outside of the thresholds.
    pub(super) count: Option<u64>,
    pub(super) draw: u64,
    idle_since: Option<Time>,
    packets: VecDeque<Waiting>,
}

impl State {
    pub(super) fn new(red: &Red, around: Surroundings) -> State {
        let weight = weight(red);
        let range = red.max.0.saturating_sub(red.min.0).max(1);
        let most = (red.probability.fraction() * 4_294_967_296.0).min(f64::from(u32::MAX)) as u64;
        State {
            limit: red.limit.0,
            ecn: red.ecn,
            min: red.min.0 << weight,
            max: red.max.0 << weight,
            weight,
            slope: u32::try_from(most / range).unwrap_or(u32::MAX).max(1),
            damping: Damping::new(red, weight, around.rate),
            mean: 0,
            count: None,
            draw: 0,
            idle_since: None,
            packets: VecDeque::new(),
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
        self.mean = match self.idle_since.take() {
            Some(since) => self.damping.damped(self.mean, now.since(since)),
            None => (self.mean).wrapping_add(held.bytes.wrapping_sub(self.mean >> self.weight)),
        };
        let is_struck = self.strikes(luck) && !mark(&mut packet, self.ecn);
        let is_full = held.bytes.saturating_add(packet.length.into()) > self.limit;
        if is_struck || is_full {
            dropped.push(packet.ticket);
            return;
        }
        held.add(packet.length);
        self.packets.push_back(packet);
    }

    pub(super) fn dequeue(&mut self, held: &mut Held) -> Option<Waiting> {
        let packet = self.packets.pop_front()?;
        held.remove(packet.length);
        Some(packet)
    }

    /// Nothing is left to send.
    pub(super) fn idles(&mut self, now: Time) {
        self.idle_since.get_or_insert(now);
    }

    fn strikes(&mut self, luck: impl FnOnce() -> u64) -> bool {
        if self.mean < self.min || self.mean >= self.max {
            self.count = None;
            return self.mean >= self.max;
        }
        let draw = || (luck() >> 32) / u64::from(self.slope);
        match self.count {
            None => {
                self.count = Some(0);
                self.draw = draw();
                false
            }
            Some(before) => {
                let count = before + 1;
                let above = (self.mean - self.min) >> self.weight;
                let strikes = above.wrapping_mul(count) >= self.draw;
                self.count = Some(count);
                if strikes {
                    self.count = Some(0);
                    self.draw = draw();
                }
                strikes
            }
        }
    }
}

/// How slow the mean is, so that a burst of as many packets passes as `tc` takes for usual (`tc_red_eval_ewma`).
fn weight(red: &Red) -> u32 {
    const MOST: u32 = 31;
    let packet = red.avpkt.0.max(1) as f64;
    let burst = ((2 * red.min.0 + red.max.0) / (3 * red.avpkt.0.max(1))) as f64;
    let wanted = burst + 1.0 - red.min.0 as f64 / packet;
    let fits = |weight: u32| {
        let w = 0.5_f64.powi(weight as i32);
        wanted <= (1.0 - (1.0 - w).powf(burst)) / w
    };
    (1..MOST).find(|weight| fits(*weight)).unwrap_or(MOST)
}

/// How the mean shrinks while nothing comes (`tc_red_eval_idle_damping`).
#[derive(Clone, Debug)]
struct Damping {
    /// Microseconds of a step, as a power of 2.
    step: u32,
    /// By how many halves it shrinks in so many steps.
    halves: [u8; 256],
}

impl Damping {
    fn new(red: &Red, weight: u32, rate: Option<Rate>) -> Damping {
        const MOST: f64 = 31.0;
        // Of a packet of usual size, in µs.
        let packet = rate.map_or(Duration::ZERO, |rate| {
            rate.serialisation(red.avpkt.0 as usize)
        });
        let packet = (packet.as_nanos() as f64 / 1e3).max(1e-3);
        let loss = -(1.0 - 0.5_f64.powi(weight as i32)).ln() / packet;
        let longest = MOST / loss;
        let step = (0..31)
            .find(|step| longest / f64::from(1_u32 << step) < 512.0)
            .unwrap_or(31);
        let halves = std::array::from_fn(|index| match index {
            255 => MOST as u8,
            _ => (((index as u64) << step) as f64 * loss).min(MOST) as u8,
        });
        Damping { step, halves }
    }

    fn damped(&self, mean: u64, idle: Duration) -> u64 {
        let most = 255_u64 << self.step;
        let idle = u64::try_from(idle.as_micros()).unwrap_or(most).min(most);
        let steps = (idle >> self.step) as usize & 255;
        match self.halves.get(steps).copied().unwrap_or_default() {
            0 => mean - (mean.wrapping_mul(idle) >> self.step).min(mean / 2),
            halves => mean >> halves,
        }
    }
}
