//! What becomes of a packet, as Linux's `sch_netem` decides it.
//!
//! The rules are those of `netem_enqueue`, `loss_event`, `tabledist` and `packet_time_ns` in
//! `net/sched/sch_netem.c` (Linux 6.12), in this order:
//!
//! 1. Loss, before the queue. A 32-bit draw is compared with the probability: 0 % never loses,
//!    100 % always, and a packet that is lost at 1 % is lost at 3 % too.
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
//! What differs from netem, by intent:
//!
//! - Luck is counter-based ([`Seed`](crate::Seed)), where netem draws from a stream.
//! - Each connection has a pipe of its own in each direction.
//! - The pipe stands in the middle of the network. An overflow is silent, where netem on the
//!   sender's own interface tells TCP of it (`NET_XMIT_DROP`).
//! - The 14 bytes of the Ethernet header always count, where netem counts what its device has.
//! - A rate is exact to the bit per second, where netem rounds to bytes per second.
//! - Jitter has no upper limit, where netem cuts it at 2.147 s.
//! - The table of the normal distribution is centred ([`Distribution::table`]).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;
use std::time::Duration;

use crate::luck::Draw;
use crate::units::nearest;
use crate::{Luck, PacketKey, Probability, Rate, Time, UnitError};

/// Bytes that a rate counts for each packet besides the IP packet itself.
pub const ETHERNET_HEADER: usize = 14;

/// One network between a client and a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// From the client to the server.
    pub forward: Direction,
    /// From the server to the client.
    pub backward: Direction,
}

impl Link {
    /// The same network both ways: `direction`, with its delay replaced by half of `rtt`.
    #[must_use]
    pub fn symmetric(rtt: Duration, direction: Direction) -> Link {
        let half = rtt / 2;
        Link {
            forward: Direction {
                delay: half,
                ..direction
            },
            backward: Direction {
                delay: rtt.saturating_sub(half),
                ..direction
            },
        }
    }

    /// Round-trip time of a packet of no length: the two delays, without jitter.
    #[must_use]
    pub fn rtt(&self) -> Duration {
        self.forward.delay.saturating_add(self.backward.delay)
    }
}

/// One direction of a [`Link`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Direction {
    /// One-way delay.
    pub delay: Duration,
    /// How far the delay varies; the distribution says in what sense.
    pub jitter: Duration,
    /// How the jitter is distributed.
    pub distribution: Distribution,
    /// The share of packets lost.
    pub loss: Probability,
    /// What the direction carries; `None` is without limit.
    pub rate: Option<Rate>,
    /// How many packets it holds, those in the delay line included. This bounds the rate:
    /// 1000 full packets of 1514 bytes over 50 ms are 242 Mbit/s.
    pub queue: u32,
}

impl Default for Direction {
    /// Neither delay, jitter, loss nor rate limit; netem's queue of 1000 packets.
    fn default() -> Direction {
        Direction {
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            distribution: Distribution::Uniform,
            loss: Probability::ZERO,
            rate: None,
            queue: 1000,
        }
    }
}

/// How jitter is distributed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Distribution {
    /// Even, from `delay - jitter` to just below `delay + jitter`. netem's default.
    #[default]
    Uniform,
    /// Normal, with the jitter as its standard deviation.
    Normal,
}

impl Distribution {
    /// The table that delays are drawn from, for those that have one: quantiles in
    /// 1/8192 of the jitter, as `TCA_NETEM_DELAY_DIST` takes them.
    ///
    /// For the normal distribution these are the 4096 quantiles at `(i + 1/2) / 4096`, so its mean
    /// is 0 and its ends are ±3.67. The table that comes with iproute2 has the quantiles at
    /// `(i + 1/8) / 4096`, a mean of -0.0008 and ends of -4 and 3.52.
    #[must_use]
    pub fn table(self) -> Option<&'static [i16; TABLE_SIZE]> {
        match self {
            Distribution::Uniform => None,
            Distribution::Normal => Some(&NORMAL),
        }
    }
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It comes out at this time. Packets of one time come out in the order in which they went in.
    Arrives(Time),
    /// The link loses it.
    Lost,
    /// The queue is full.
    Overflows,
}

/// One direction of one connection's private link.
#[derive(Clone, Debug)]
pub struct Pipe {
    direction: Direction,
    luck: Luck,
    held: BinaryHeap<Reverse<Time>>,
    last: Time,
}

impl Pipe {
    /// An empty pipe.
    #[must_use]
    pub fn new(direction: &Direction, luck: Luck) -> Pipe {
        Pipe {
            direction: *direction,
            luck,
            held: BinaryHeap::new(),
            last: Time(0),
        }
    }

    /// Takes an IP packet of `length` bytes at `now`, which is not before the `now` of any call
    /// before, and says what becomes of it.
    pub fn send(&mut self, now: Time, length: usize, key: PacketKey) -> Fate {
        if is_lost(self.direction.loss, self.luck.draw(key, Draw::Loss)) {
            return Fate::Lost;
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
        let departure = self.departure(now, length, key);
        self.held.push(Reverse(departure));
        self.last = departure;
        Fate::Arrives(departure)
    }

    fn departure(&self, now: Time, length: usize, key: PacketKey) -> Time {
        let now = i128::from(now.0);
        let last = i128::from(self.last.0);
        let delayed = now + self.delay(key);
        let departure = match self.direction.rate {
            None => delayed,
            Some(rate) => {
                let begin = if last > now {
                    delayed.max(last)
                } else {
                    delayed
                };
                let length = length.saturating_add(ETHERNET_HEADER);
                begin + i128::from(nanos(rate.serialisation(length)))
            }
        };
        Time(u64::try_from(departure.max(now)).unwrap_or(u64::MAX))
    }

    /// The delay drawn, in nanoseconds.
    fn delay(&self, key: PacketKey) -> i128 {
        let mean = i128::from(nanos(self.direction.delay));
        let jitter = i128::from(nanos(self.direction.jitter));
        if jitter == 0 {
            return mean;
        }
        let draw = self.luck.draw(key, Draw::Delay);
        match self.direction.distribution {
            Distribution::Uniform => {
                let steps = (u128::from(draw) * (2 * jitter.unsigned_abs())) >> 64;
                mean - jitter + steps as i128
            }
            Distribution::Normal => {
                let quantile = NORMAL[(draw >> (u64::BITS - TABLE_BITS)) as usize];
                let scaled = jitter * i128::from(quantile);
                mean + (scaled + TABLE_SCALE / 2 * scaled.signum()) / TABLE_SCALE
            }
        }
    }
}

impl FromStr for Distribution {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Distribution, UnitError> {
        let known = [Distribution::Uniform, Distribution::Normal];
        known
            .into_iter()
            .find(|distribution| distribution.name() == text)
            .ok_or_else(|| UnitError::UnknownName {
                kind: "jitter distribution",
                text: text.into(),
                mend: nearest(text, known.iter().map(|distribution| distribution.name())),
            })
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Distribution {
    fn name(self) -> &'static str {
        match self {
            Distribution::Uniform => "uniform",
            Distribution::Normal => "normal",
        }
    }
}

/// netem's `loss_event`: compares the upper 32 bits of a draw with the probability.
fn is_lost(loss: Probability, draw: u64) -> bool {
    let threshold = (loss.fraction() * f64::from(u32::MAX)).round() as u32;
    threshold != 0 && threshold >= (draw >> 32) as u32
}

/// In nanoseconds, saturating at 292 years.
fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

const TABLE_BITS: u32 = 12;
const TABLE_SIZE: usize = 1 << TABLE_BITS;
/// `NETEM_DIST_SCALE`: what one standard deviation is in a table.
const TABLE_SCALE: i128 = 8192;

static NORMAL: LazyLock<[i16; TABLE_SIZE]> = LazyLock::new(|| {
    const HALF: usize = TABLE_SIZE / 2;

    let mut table = [0; TABLE_SIZE];
    let (lower, upper) = table.split_at_mut(HALF);
    let mut quantile = 0.0;
    for (i, (below, above)) in lower.iter_mut().rev().zip(upper).enumerate() {
        quantile = normal_quantile(0.5 + (i as f64 + 0.5) / TABLE_SIZE as f64, quantile);
        *above = (quantile * TABLE_SCALE as f64).round() as i16;
        *below = -*above;
    }
    table
});

/// The quantile of the standard normal distribution at `probability`, from one half up, to 1e-12.
///
/// Newton's method on the distribution function, from a quantile `below`: the function is concave
/// here, so that no step goes too far.
fn normal_quantile(probability: f64, below: f64) -> f64 {
    let mut x = below;
    loop {
        let (distribution, density) = normal(x);
        let step = (probability - distribution) / density;
        x += step;
        if step < 1e-9 {
            return x;
        }
    }
}

/// The distribution function and the density of the standard normal distribution at `x`.
///
/// The series is that of Marsaglia, "Evaluating the normal distribution", Journal of Statistical
/// Software 11(4), 2004.
fn normal(x: f64) -> (f64, f64) {
    let density = (-x * x / 2.0).exp() / std::f64::consts::TAU.sqrt();
    let (mut sum, mut term, mut divisor) = (0.0, x, 1.0);
    while sum + term != sum {
        sum += term;
        divisor += 2.0;
        term *= x * x / divisor;
    }
    (0.5 + sum * density, density)
}

#[cfg(test)]
mod tests;
