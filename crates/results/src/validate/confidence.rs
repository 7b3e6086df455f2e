//! What a sample tells of a percentile, and two samples of the ratio of theirs.
//!
//! Nothing is assumed of how times are distributed. Of `n` connections, the number that are
//! faster than the true percentile `p` is binomial, so with a confidence of
//! `C(n, j) p^j (1-p)^(n-j)` the percentile lies between the `j`-th time and the next. That is the
//! order-statistics interval (David and Nagaraja, "Order Statistics", 7.1), for every level at
//! once: a confidence distribution (Xie and Singh 2013). The ratio of two independent ones has a
//! distribution of its own, whose tails are the interval.
//!
//! A bootstrap of a percentile tends to the same, but its tails come from resamples: at the levels
//! that a thousand comparisons need, it would take a hundred thousand of them. This takes none, is
//! exact in the tails, and says so when a sample is too small to have an interval at all.

use crate::Percentile;

/// Weights below this part of the largest are left out. All that is left out is far below any tail.
const NEGLIGIBLE: f64 = 1e-30;

/// Times of one metric of a sample in nanoseconds, in order; a connection that failed is
/// infinitely late.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ordered(Vec<f64>);

impl FromIterator<f64> for Ordered {
    fn from_iter<I: IntoIterator<Item = f64>>(times: I) -> Ordered {
        let mut times: Vec<f64> = times.into_iter().collect();
        times.sort_unstable_by(f64::total_cmp);
        Ordered(times)
    }
}

impl Ordered {
    pub(super) fn times(&self) -> &[f64] {
        &self.0
    }

    /// Whether all times are one: of a single connection, too.
    pub(super) fn is_one(&self) -> bool {
        self.0.first() == self.0.last()
    }

    /// Whether all connections took one and the same time.
    pub(super) fn is_constant(&self) -> bool {
        match (self.0.first(), self.0.last()) {
            (Some(first), Some(last)) => self.0.len() > 1 && last.is_finite() && first == last,
            _ => false,
        }
    }

    /// The percentile as reports have it: interpolated linearly (type 7 of Hyndman and Fan 1996),
    /// infinite where it leans on a failure or there is nothing.
    pub(super) fn percentile(&self, percentile: Percentile) -> f64 {
        let scaled = self.0.len().saturating_sub(1) * usize::from(percentile.per_mille());
        let (rank, thousandths) = (scaled / 1000, scaled % 1000);
        let time = |rank: usize| self.0.get(rank).copied().unwrap_or(f64::INFINITY);
        if thousandths == 0 || time(rank) == time(rank + 1) {
            return time(rank);
        }
        time(rank) + (time(rank + 1) - time(rank)) * thousandths as f64 / 1000.0
    }

    /// The largest distance between the distribution functions of two samples (Kolmogorov and
    /// Smirnov).
    pub(super) fn distance(&self, other: &Ordered) -> f64 {
        let (mut a, mut b) = (self.0.as_slice(), other.0.as_slice());
        let share = |left: &[f64], all: &[f64]| 1.0 - left.len() as f64 / all.len().max(1) as f64;
        let mut most: f64 = 0.0;
        while let Some(time) = match (a.first(), b.first()) {
            (Some(a), Some(b)) => Some(a.min(*b)),
            (a, b) => a.or(b).copied(),
        } {
            // From where the fast ends no connection that failed comes: they never arrive.
            if time.is_infinite() {
                break;
            }
            a = &a[a.partition_point(|other| *other <= time)..];
            b = &b[b.partition_point(|other| *other <= time)..];
            most = most.max((share(a, &self.0) - share(b, &other.0)).abs());
        }
        most
    }
}

/// Where the true percentile is, and how surely.
#[derive(Clone, Debug)]
pub(super) struct Confidence(Vec<Gap>);

/// The percentile lies from `low` to `high`, with a confidence of `weight`.
#[derive(Clone, Copy, Debug)]
struct Gap {
    low: f64,
    high: f64,
    weight: f64,
}

impl Confidence {
    /// Of a percentile that is known.
    pub(super) fn certain(time: f64) -> Confidence {
        Confidence(vec![Gap {
            low: time,
            high: time,
            weight: 1.0,
        }])
    }

    /// Of a percentile of connections that are independent of each other.
    pub(super) fn of(sample: &Ordered, percentile: Percentile) -> Confidence {
        let times = sample.times();
        let gaps = binomial(times.len(), f64::from(percentile.per_mille()) / 1000.0);
        let gaps = gaps.into_iter().map(|(faster, weight)| Gap {
            low: faster
                .checked_sub(1)
                .and_then(|last| times.get(last))
                .copied()
                .unwrap_or(0.0),
            high: times.get(faster).copied().unwrap_or(f64::INFINITY),
            weight,
        });
        Confidence(gaps.collect())
    }

    /// The interval of this percentile divided by `other`, with a confidence of `tail` left out on
    /// either side. Zero and infinity are its open ends.
    pub(super) fn ratio_to(&self, other: &Confidence, tail: f64) -> [f64; 2] {
        [
            quantile(&self.lows(), &other.highs(), tail),
            quantile(&self.highs(), &other.lows(), 1.0 - tail),
        ]
    }

    fn lows(&self) -> Vec<(f64, f64)> {
        self.0.iter().map(|gap| (gap.low, gap.weight)).collect()
    }

    fn highs(&self) -> Vec<(f64, f64)> {
        self.0.iter().map(|gap| (gap.high, gap.weight)).collect()
    }
}

/// `number / base`; what never comes is as late as what never comes.
pub(super) fn ratio(number: f64, base: f64) -> f64 {
    if number == base { 1.0 } else { number / base }
}

/// The smallest ratio that, with a confidence of at least `level`, is not exceeded. Both `numbers`
/// and `bases` are in order, each with its weight.
fn quantile(numbers: &[(f64, f64)], bases: &[(f64, f64)], level: f64) -> f64 {
    let reached = |bound: f64| {
        let (mut below, mut passed, mut confidence) = (0.0, 0, 0.0);
        for (base, weight) in bases {
            while let Some((number, weight)) = numbers.get(passed)
                && ratio(*number, *base) <= bound
            {
                below += weight;
                passed += 1;
            }
            confidence += weight * below;
        }
        confidence >= level
    };
    // Numbers that are not negative are in the order of their bits.
    let (mut low, mut high) = (0, f64::INFINITY.to_bits());
    while low < high {
        let middle = low + (high - low) / 2;
        if reached(f64::from_bits(middle)) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    f64::from_bits(high)
}

/// How probable each number of successes is in `n` tries, without the negligible ones.
fn binomial(n: usize, probability: f64) -> Vec<(usize, f64)> {
    let odds = probability / (1.0 - probability);
    let mode = (((n + 1) as f64 * probability) as usize).min(n);
    let mut weights = vec![(mode, 1.0)];
    let mut weight = 1.0;
    for successes in (0..mode).rev() {
        weight *= (successes + 1) as f64 / ((n - successes) as f64 * odds);
        if weight < NEGLIGIBLE {
            break;
        }
        weights.push((successes, weight));
    }
    weights.reverse();
    weight = 1.0;
    for successes in mode + 1..=n {
        weight *= (n + 1 - successes) as f64 * odds / successes as f64;
        if weight < NEGLIGIBLE {
            break;
        }
        weights.push((successes, weight));
    }
    let total: f64 = weights.iter().map(|(_, weight)| weight).sum();
    for (_, weight) in &mut weights {
        *weight /= total;
    }
    weights
}

#[cfg(test)]
mod tests;
