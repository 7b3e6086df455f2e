//! What handshakes wait at a server that is busy: an exact queue, in virtual time.
//!
//! Handshakes begin when they begin, however long others wait: arrivals are a schedule, never a loop of clients
//! that send when they were answered, which would leave out the very waits that are asked for ("coordinated omission").
//! Each comes to the server twice, with its ClientHello and with its Finished; whoever is ready first is served first,
//! by the core that is free first, and nobody is interrupted.

mod arrivals;
mod queue;
#[cfg(test)]
mod tests;

use std::num::NonZero;
use std::time::Duration;

use lastbyte_link::{Probability, Seed, fraction, mix};

pub use arrivals::{Arrivals, PerSecond};
pub use queue::{Served, serve};

/// What one handshake computes, in CPU time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Computing {
    /// The server, from a ClientHello to the end of its flight.
    pub answer: Duration,
    /// The client, until its Finished leaves. It computes on its own.
    pub client: Duration,
    /// The server, with that Finished.
    pub finish: Duration,
}

impl Computing {
    /// What the server computes in all.
    #[must_use]
    pub fn server(&self) -> Duration {
        self.answer + self.finish
    }
}

/// Handshakes that were measured, of which those of a server are drawn: some of sessions that are resumed, the others full.
#[derive(Clone, Copy, Debug)]
pub struct Mix<'a> {
    /// Full handshakes.
    pub full: &'a [Computing],
    /// Those that resume a session.
    pub resumed: &'a [Computing],
    /// The share that resumes.
    pub resumes: Probability,
    /// How long a core that waits takes to begin with a Finished.
    pub wakes: Duration,
}

impl Mix<'_> {
    /// What handshake `index` of a seed computes. `None` where nothing was measured.
    pub fn draw(&self, seed: Seed, index: usize) -> Option<Computing> {
        let measured = if self.resumes_at(seed, index) {
            self.resumed
        } else {
            self.full
        };
        let hash = luck(seed, "computing", index) as usize;
        measured.get(hash.checked_rem(measured.len())?).copied()
    }

    /// Whether handshake `index` of a seed resumes a session.
    #[must_use]
    pub fn resumes_at(&self, seed: Seed, index: usize) -> bool {
        fraction(luck(seed, "resumption", index)) < self.resumes.fraction()
    }

    /// What the server computes for one in the mean. `None` where nothing was measured.
    pub fn mean(&self) -> Option<Duration> {
        let resumes = self.resumes.fraction();
        let part = |measured, share| match share {
            0.0 => Some(0.0),
            _ => Some(share * mean(measured)?),
        };
        let all = part(self.full, 1.0 - resumes)? + part(self.resumed, resumes)?;
        Some(Duration::from_secs_f64(all))
    }

    /// How many a second so many cores can serve at most. `None` where nothing was measured, or it took no time.
    pub fn saturation(&self, cores: NonZero<u32>) -> Option<PerSecond> {
        let mean = self.mean()?.as_secs_f64();
        PerSecond::new(f64::from(cores.get()) / mean)
    }
}

/// 64 even bits for one decision about one handshake.
fn luck(seed: Seed, decision: &str, index: usize) -> u64 {
    mix(mix(seed.part(decision).0) ^ index as u64)
}

/// In seconds. `None` of none.
fn mean(measured: &[Computing]) -> Option<f64> {
    let all: Duration = measured.iter().map(Computing::server).sum();
    (!measured.is_empty()).then(|| all.as_secs_f64() / measured.len() as f64)
}

/// What handshakes were served how, at one rate of arrivals or in one storm.
#[derive(Clone, Debug, PartialEq)]
pub struct Waits {
    /// How many of them are counted.
    pub handshakes: usize,
    /// The time that a handshake spent at the server, waiting and computed: by percentile.
    pub at_server: ByPercentile,
    /// What of it was waiting.
    pub waiting: ByPercentile,
    /// When the last one was done, after the first could begin.
    pub last: Duration,
}

/// Percentiles, each the least time that this share does not exceed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByPercentile {
    /// The median.
    pub p50: Duration,
    /// 99 of 100.
    pub p99: Duration,
    /// 999 of 1000.
    pub p999: Duration,
}

impl ByPercentile {
    /// Of times in any order.
    pub fn of(mut times: Vec<Duration>) -> ByPercentile {
        times.sort_unstable();
        let at = |per_mille: usize| {
            let rank = (times.len() * per_mille).div_ceil(1000);
            times.get(rank.saturating_sub(1)).copied()
        };
        let at = |per_mille| at(per_mille).unwrap_or_default();
        ByPercentile {
            p50: at(500),
            p99: at(990),
            p999: at(999),
        }
    }
}

impl Waits {
    /// Of all that were served; but for `begin`, the first of them, which found a server without a queue.
    pub fn of(served: &[Served], begin: usize) -> Waits {
        let counted = served.get(begin..).unwrap_or_default();
        let times =
            |time: fn(&Served) -> Duration| ByPercentile::of(counted.iter().map(time).collect());
        Waits {
            handshakes: counted.len(),
            at_server: times(Served::at_server),
            waiting: times(|served| served.waiting),
            last: (served.iter().map(|served| served.done).max()).unwrap_or_default(),
        }
    }
}

/// What becomes of a server at one rate of arrivals.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Handshakes that begin.
    pub rate: PerSecond,
    /// What share of its cores they take in the mean: 1 and more is too much.
    pub load: f64,
    /// What they wait; `None` where waits have no end.
    pub waits: Option<Waits>,
}

impl Point {
    /// How much longer the wait gets in each second, where more comes than can be served.
    #[must_use]
    pub fn grows(&self) -> Option<Duration> {
        let beyond = self.load - 1.0;
        (self.waits.is_none() && beyond.is_finite())
            .then(|| Duration::from_secs_f64(beyond.max(0.0)))
    }
}

/// One of so many handshakes of a rate is not counted: the first, as the queue has not got to where it stays.
pub const BEGIN: usize = 10;

/// What a server does at a rate of arrivals, by so many handshakes. `None` where nothing was measured.
pub fn at_rate(
    mix: &Mix<'_>,
    cores: NonZero<u32>,
    rate: PerSecond,
    handshakes: usize,
    seed: Seed,
) -> Option<Point> {
    let load = rate.get() / mix.saturation(cores)?.get();
    let mut waits = None;
    if load < 1.0 {
        let served = served(mix, cores, Arrivals::Steady(rate), handshakes, seed)?;
        waits = Some(Waits::of(&served, handshakes / BEGIN));
    }
    Some(Point { rate, load, waits })
}

/// What clients wait that all come again within some time. `None` where nothing was measured.
pub fn in_storm(
    mix: &Mix<'_>,
    cores: NonZero<u32>,
    handshakes: usize,
    within: Duration,
    seed: Seed,
) -> Option<Waits> {
    let served = served(mix, cores, Arrivals::Within(within), handshakes, seed)?;
    Some(Waits::of(&served, 0))
}

fn served(
    mix: &Mix<'_>,
    cores: NonZero<u32>,
    arrivals: Arrivals,
    handshakes: usize,
    seed: Seed,
) -> Option<Vec<Served>> {
    let computing = (0..handshakes).map(|index| mix.draw(seed, index));
    let computing: Vec<Computing> = computing.collect::<Option<_>>()?;
    let arrivals = arrivals.times(handshakes, seed);
    Some(serve(&arrivals, &computing, cores, mix.wakes))
}
