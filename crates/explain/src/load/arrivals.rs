//! When handshakes begin.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use lastbyte_link::{Seed, fraction};

/// Handshakes a second, from [`LEAST`](PerSecond::LEAST) to [`MOST`](PerSecond::MOST).
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct PerSecond(f64);

impl PerSecond {
    /// The least, which is one in a hundred seconds.
    pub const LEAST: f64 = 0.01;
    /// The most, which is one a nanosecond.
    pub const MOST: f64 = 1e9;

    /// `None` for what is no rate.
    pub fn new(rate: f64) -> Option<PerSecond> {
        (PerSecond::LEAST..=PerSecond::MOST)
            .contains(&rate)
            .then_some(PerSecond(rate))
    }

    /// As a number.
    #[must_use]
    pub fn get(self) -> f64 {
        self.0
    }
}

/// `5230`, `523`, `52.3`, `5.23`, `0.05`: to three digits below 1000.
impl fmt::Display for PerSecond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimals = match self.0 {
            100.0.. => 0,
            10.0.. => 1,
            _ => 2,
        };
        write!(f, "{:.decimals$}", self.0)
    }
}

impl FromStr for PerSecond {
    type Err = String;

    /// `500`, `500/s`, `2.5/s`.
    fn from_str(text: &str) -> Result<PerSecond, String> {
        let number = text.strip_suffix("/s").unwrap_or(text).trim();
        // Digits alone: `inf` and `1e99` are numbers, too.
        let is_plain = number.chars().all(|c| c.is_ascii_digit() || c == '.');
        let rate = number.parse().ok().filter(|_| is_plain);
        rate.and_then(PerSecond::new).ok_or_else(|| {
            format!(
                "{text:?} is no rate: write handshakes a second, such as 500/s, from {} to {}",
                PerSecond::LEAST,
                PerSecond::MOST
            )
        })
    }
}

/// A schedule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// Each by itself, so many a second in the mean: a Poisson process.
    Steady(PerSecond),
    /// All within this time, each at any moment of it.
    Within(Duration),
}

impl Arrivals {
    /// When each begins, in ascending order. The same seed has the same luck at each rate: a schedule for twice as many a
    /// second is the same one in half the time.
    pub fn times(self, handshakes: usize, seed: Seed) -> Vec<Duration> {
        let luck = |index: usize| fraction(super::luck(seed, "arrivals", index));
        match self {
            Arrivals::Steady(rate) => {
                let mut now = 0.0;
                let times = (0..handshakes).map(|index| {
                    // From 1 down to above 0, so that there is a logarithm.
                    now -= (1.0 - luck(index)).ln() / rate.get();
                    seconds(now)
                });
                times.collect()
            }
            Arrivals::Within(within) => {
                let times = (0..handshakes).map(|index| within.mul_f64(luck(index)));
                let mut times: Vec<Duration> = times.collect();
                times.sort_unstable();
                times
            }
        }
    }
}

/// So long, or as long as there is.
fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}
