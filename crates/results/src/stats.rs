//! Percentiles, and how far they can be trusted.
//!
//! A percentile is interpolated linearly between the two nearest connections (type 7 of Hyndman
//! and Fan 1996, the default of numpy and R). A connection that failed is infinitely late, so a
//! percentile that leans on one is absent.
//!
//! The interval of a percentile of one arm lies between two of its connections (David and Nagaraja, "Order Statistics", 7.1):
//! how many are faster than the true percentile is binomial, so it misses with 5 % at most, however times are distributed. A
//! bootstrap of p90 misses with up to 14 %, as a hundred connections hardly say how late the next one may be.
//!
//! Intervals of increases, and of all else that is made of several series, are percentile bootstraps (Efron 1979). Connection
//! 17 meets the same luck in every arm, so what is resampled is connection indices, for all arms at once: what
//! luck does to both arms cancels in their increase.
//!
//! Their [`Level`] allows for several looks at a sample that grows.

use std::array;
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use lastbyte_link::{Seed, mix};

use self::resamples::{Drawn, LANES, Lanes};
use super::Percentile;
use lastbyte_study::Connections;

mod resamples;

/// How often connections are resampled. Fifty of them lie beyond each end of a 95 % interval, and
/// seven beyond each end of one for seven looks.
const RESAMPLES: u64 = 2000;

/// How sure an interval is to hold the truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// The 5 % with which intervals may miss are shared out among so many looks (Bonferroni): then
    /// those of all looks hold together with 95 %, whenever somebody stops looking.
    looks: u64,
}

/// A number and its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate<T> {
    /// What was measured.
    pub value: T,
    /// Where it could as well have been.
    pub interval: Interval<T>,
}

/// An interval. An end is absent where it leans on connections that failed, and where there are so few
/// connections that the truth may well lie beyond all of them: 36 have an upper end for p90, 368 for p99.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval<T> {
    /// The lower end.
    pub low: Option<T>,
    /// The upper end.
    pub high: Option<T>,
}

impl<T: Copy> Estimate<T> {
    /// The same number in another unit.
    pub fn map<U>(self, convert: impl Fn(T) -> U) -> Estimate<U> {
        Estimate {
            value: convert(self.value),
            interval: Interval {
                low: self.interval.low.map(&convert),
                high: self.interval.high.map(&convert),
            },
        }
    }
}

impl Estimate<f64> {
    /// A number that is known for sure.
    pub fn exact(value: f64) -> Self {
        Estimate {
            value,
            interval: Interval {
                low: Some(value),
                high: Some(value),
            },
        }
    }

    /// The same, where each end may be off by so much more.
    #[must_use]
    pub fn widened(self, by: f64) -> Self {
        Estimate {
            interval: Interval {
                low: self.interval.low.map(|low| low - by),
                high: self.interval.high.map(|high| high + by),
            },
            ..self
        }
    }

    /// The number and its interval with the other sign.
    #[must_use]
    pub fn negated(self) -> Self {
        // Zero has no other sign.
        let negative = |end: Option<f64>| end.map(|end| 0.0 - end);
        Estimate {
            value: 0.0 - self.value,
            interval: Interval {
                low: negative(self.interval.high),
                high: negative(self.interval.low),
            },
        }
    }
}

impl Interval<f64> {
    /// Whether what was measured may as well be nothing.
    pub fn holds_zero(&self) -> bool {
        self.low.is_none_or(|low| low <= 0.0) && self.high.is_none_or(|high| high >= 0.0)
    }
}

/// 100 x (arm - baseline) / baseline.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Percent(pub f64);

impl Level {
    /// 95 %, for one look.
    pub const USUAL: Level = Level { looks: 1 };

    /// That of all intervals of a sample with so many connections.
    pub fn of(connections: &Connections) -> Level {
        Level {
            looks: connections.looks().len() as u64,
        }
    }

    /// `95 %`, `99.29 %`
    pub fn percent(self) -> Percent {
        Percent(100.0 - 5.0 / self.looks as f64)
    }

    /// The lower end of an interval.
    fn low(self) -> Share {
        Share {
            numerator: 25,
            denominator: 1000 * self.looks,
        }
    }

    /// The upper end.
    fn high(self) -> Share {
        let Share {
            numerator,
            denominator,
        } = self.low();
        Share {
            numerator: denominator - numerator,
            denominator,
        }
    }
}

impl<T: Copy> Interval<T> {
    /// The same, with `value` where an end is not known.
    pub(super) fn or(self, value: T) -> Interval<T> {
        Interval {
            low: self.low.or(Some(value)),
            high: self.high.or(Some(value)),
        }
    }
}

impl<T> Interval<T> {
    /// Whether connections are too few for either end.
    pub fn is_unknown(&self) -> bool {
        self.low.is_none() && self.high.is_none()
    }
}

impl Interval<Percent> {
    /// Whether no increase at all could explain what was measured.
    pub fn holds_zero(&self) -> bool {
        self.low.is_none_or(|low| low <= Percent(0.0))
            && self.high.is_none_or(|high| high >= Percent(0.0))
    }
}

/// The times of one metric in one sample.
#[derive(Clone, Debug, Default)]
pub struct Series(Vec<(u32, Option<Duration>)>);

impl FromIterator<(u32, Option<Duration>)> for Series {
    /// From connections' indices and times; a connection without a time is infinitely late.
    fn from_iter<I: IntoIterator<Item = (u32, Option<Duration>)>>(times: I) -> Series {
        Series(times.into_iter().collect())
    }
}

impl Series {
    /// So many quantiles, evenly spread from the first connection to the last that is not infinitely
    /// late, each with its share of all connections.
    pub fn quantiles(&self, count: usize) -> Vec<(Duration, f64)> {
        let mut times: Vec<Duration> = self.0.iter().filter_map(|(_, time)| *time).collect();
        times.sort_unstable();
        let last = times.len().saturating_sub(1);
        let mut ranks: Vec<usize> = (0..=count).map(|nth| nth * last / count.max(1)).collect();
        ranks.dedup();
        let all = self.0.len().saturating_sub(1).max(1) as f64;
        (ranks.into_iter())
            .filter_map(|rank| Some((*times.get(rank)?, rank as f64 / all)))
            .collect()
    }
}

/// Percentiles of one [`Series`] and of its resamples.
#[derive(Clone, Debug)]
pub struct Percentiles {
    known: Vec<Replicates>,
    /// All of the series in order, in nanoseconds; infinite where a connection failed.
    times: Vec<f64>,
}

/// One percentile, in nanoseconds; infinite where it leans on a connection that failed.
#[derive(Clone, Debug)]
struct Replicates {
    percentile: Percentile,
    /// Of how many connections.
    connections: usize,
    measured: Span,
    resampled: Vec<f64>,
}

impl Replicates {
    /// `None` where it leans on what is infinite.
    fn estimate(&self, level: Level) -> Option<Estimate<f64>> {
        let ends = [self.has_low(level), self.has_high(level)];
        let resampled = self.resampled.clone();
        estimate(self.measured.value(), resampled, level, ends)
    }

    /// Whether so many connections are unlikely to be all on the upper side of the true percentile.
    /// Else the lower end of an interval may lie below all that was seen, which no resample shows.
    fn has_low(&self, level: Level) -> bool {
        self.is_crossed(1000 - self.percentile.per_mille(), level)
    }

    /// The same of the lower side.
    fn has_high(&self, level: Level) -> bool {
        self.is_crossed(self.percentile.per_mille(), level)
    }

    /// Whether all connections are on a side of this share with no more probability than an interval may
    /// miss on that side.
    fn is_crossed(&self, per_mille: u16, level: Level) -> bool {
        let connections = i32::try_from(self.connections).unwrap_or(i32::MAX);
        let Share {
            numerator,
            denominator,
        } = level.low();
        (f64::from(per_mille) / 1000.0).powi(connections) <= numerator as f64 / denominator as f64
    }
}

/// A number with the interval of its resamples; `ends` tells which of the two, the lower and the upper, is known.
fn estimate(
    value: f64,
    mut resampled: Vec<f64>,
    level: Level,
    [has_low, has_high]: [bool; 2],
) -> Option<Estimate<f64>> {
    let mut end = |share| quantile(&mut resampled, share).and_then(finite);
    Some(Estimate {
        value: finite(value)?,
        interval: Interval {
            low: end(level.low()).filter(|_| has_low),
            high: end(level.high()).filter(|_| has_high),
        },
    })
}

/// Percentiles and the mean of some numbers.
pub(super) struct Resampled {
    /// Absent where they lean on what is infinite.
    pub(super) percentiles: BTreeMap<Percentile, Option<Estimate<f64>>>,
    /// Absent if one of them is infinite, or there is none.
    pub(super) mean: Option<Estimate<f64>>,
}

/// Percentiles and the mean of `numbers`, each of a unit, such as a user. What is resampled is units, so that
/// numbers of one unit may have as much in common as they like.
pub(super) fn resample(
    numbers: &[(u32, f64)],
    percentiles: &[Percentile],
    seed: Seed,
) -> Resampled {
    let level = Level::USUAL;
    let mut units: Vec<u32> = numbers.iter().map(|(unit, _)| *unit).collect();
    units.sort_unstable();
    units.dedup();
    let ranking = Ranking::of(numbers.iter().copied(), &units);
    let mut known = Percentiles::measured(&ranking, percentiles);
    let mut of_mean = Vec::new();
    let mut sums = Vec::new();
    resamples::each(seed, units.len(), |drawn| {
        known.push(&ranking, drawn, &mut sums);
        of_mean.extend(ranking.means(drawn));
    });
    let has_ends = units.len() > 1;
    Resampled {
        percentiles: (known.known.iter())
            .map(|replicates| (replicates.percentile, replicates.estimate(level)))
            .collect(),
        mean: estimate(ranking.mean(), of_mean, level, [has_ends; 2]),
    }
}

/// A share of some that know nothing of each other, with its interval of 95 %.
pub(super) fn share(of: usize, all: usize) -> Estimate<f64> {
    match all {
        0 => share_of(0.0, 0.0),
        _ => share_of(of as f64 / all as f64, all as f64),
    }
}

/// The normal distribution's 97.5th percentile: from the middle to an end of an interval of 95 %, in standard
/// deviations.
pub(super) const Z: f64 = 1.959_963_984_540_054;

/// A share of so many that know nothing of each other, with its interval of 95 % (Wilson 1927).
pub(super) fn share_of(share: f64, n: f64) -> Estimate<f64> {
    if n <= 0.0 {
        return Estimate {
            value: 0.0,
            interval: Interval {
                low: None,
                high: None,
            },
        };
    }
    let middle = (share + Z * Z / (2.0 * n)) / (1.0 + Z * Z / n);
    let half = Z * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt() / (1.0 + Z * Z / n);
    let (low, high) = ((middle - half).max(0.0), (middle + half).min(1.0));
    Estimate {
        value: share,
        interval: Interval {
            low: Some(if share <= 0.0 { 0.0 } else { low }),
            high: Some(if share >= 1.0 { 1.0 } else { high }),
        },
    }
}

/// Percentiles of all `series`, resampled together: series that are compared must share their
/// connection indices, and be passed at once.
pub fn percentiles(series: &[Series], percentiles: &[Percentile], seed: Seed) -> Vec<Percentiles> {
    let mut indices: Vec<u32> = series
        .iter()
        .flat_map(|series| &series.0)
        .map(|(index, _)| *index)
        .collect();
    indices.sort_unstable();
    indices.dedup();
    let rankings: Vec<Ranking> = series
        .iter()
        .map(|series| Ranking::new(series, &indices))
        .collect();

    let mut all: Vec<Percentiles> = (rankings.iter())
        .map(|ranking| Percentiles::measured(ranking, percentiles))
        .collect();
    let mut sums = Vec::new();
    resamples::each(seed, indices.len(), |drawn| {
        for (ranking, known) in rankings.iter().zip(&mut all) {
            known.push(ranking, drawn, &mut sums);
        }
    });
    all
}

/// Percentiles of one series as it was measured, without intervals: `None` where one leans on a connection that
/// failed.
pub fn measured(series: &Series, percentiles: &[Percentile]) -> Vec<Option<Duration>> {
    let indices: Vec<u32> = series.0.iter().map(|(index, _)| *index).collect();
    let ranking = Ranking::new(series, &indices);
    let percentiles = Percentiles::measured(&ranking, percentiles);
    let value = |known: &Replicates| duration(known.measured.value());
    percentiles.known.iter().map(value).collect()
}

impl Percentiles {
    /// Those of all connections, not resampled yet.
    fn measured(ranking: &Ranking, percentiles: &[Percentile]) -> Percentiles {
        let spans = percentiles
            .iter()
            .map(|percentile| ranking.span(*percentile));
        let replicates = |(percentile, span): (&Percentile, Span)| Replicates {
            percentile: *percentile,
            connections: ranking.connections,
            measured: span,
            resampled: Vec::new(),
        };
        Percentiles {
            known: percentiles.iter().zip(spans).map(replicates).collect(),
            times: ranking.order.iter().map(|(time, _)| *time).collect(),
        }
    }

    /// Some resamples more; `sums` is room that may have been used before.
    fn push(&mut self, ranking: &Ranking, drawn: &Drawn, sums: &mut Vec<Lanes<u32>>) {
        if let Some(time) = ranking.constant {
            for replicates in &mut self.known {
                replicates.resampled.extend([time; LANES]);
            }
            return;
        }
        drawn.add_up(&ranking.order, &ranking.blocks, sums);
        let totals = sums.last().copied().unwrap_or([0; LANES]);
        for replicates in &mut self.known {
            let share = Share::of(replicates.percentile);
            let mut position = Position::new(0, share);
            let mut counted = 0;
            // A resample has its percentiles about where the one before has them.
            let mut block = 0;
            for (lane, total) in totals.into_iter().enumerate() {
                if total != counted {
                    position = Position::new(total.into(), share);
                    counted = total;
                }
                block = resamples::find(position.below, lane, sums, block);
                let span = ranking.drawn_span(position, drawn, lane, sums, block);
                replicates.resampled.push(span.value());
            }
        }
    }

    /// `None` when it leans on a connection that failed, or there is no connection.
    pub fn estimate(&self, percentile: Percentile, level: Level) -> Option<Estimate<Duration>> {
        let nanos = Estimate {
            value: finite(self.get(percentile)?.measured.value())?,
            interval: self.interval(percentile, level),
        };
        Some(nanos.map(|nanos| Duration::from_nanos(nanos.round() as u64)))
    }

    /// Between which connections the true percentile lies.
    fn interval(&self, percentile: Percentile, level: Level) -> Interval<f64> {
        let share = f64::from(percentile.per_mille()) / 1000.0;
        let all = self.times.len();
        let end = |place: Option<usize>| finite(*self.times.get(place?)?);
        Interval {
            low: end(beyond(all, share, level).checked_sub(1)),
            high: end(all
                .checked_sub(beyond(all, 1.0 - share, level))
                .filter(|_| all > 0)),
        }
    }

    /// Whether even the lower end of its interval leans on connections that failed.
    pub fn is_never(&self, percentile: Percentile, level: Level) -> bool {
        let replicates = self.get(percentile);
        let low = replicates
            .and_then(|replicates| quantile(&mut replicates.resampled.clone(), level.low()));
        low.is_some_and(f64::is_infinite)
    }

    /// The increase over `baseline`, which must come from the same call of [`percentiles`], or from one
    /// with another seed if the two share no luck. `None` when one of the two has no such percentile, or
    /// the baseline's is zero.
    pub fn increase(
        &self,
        baseline: &Percentiles,
        percentile: Percentile,
        level: Level,
    ) -> Option<Estimate<Percent>> {
        let of = |[arm, baseline]: [f64; 2]| increase(arm, baseline);
        Some(combine([self, baseline], percentile, level, of)?.map(Percent))
    }

    /// How probable it is to see such a difference from `baseline`, or a larger one, where there is
    /// none: twice the share of resamples on the other side of zero (Efron and Tibshirani 1993, section
    /// 16.4, with the measurement as one resample more, so that it is never zero). 1 if nothing is known.
    /// Whoever looks several times has as many chances.
    pub fn p_value(&self, baseline: &Percentiles, percentile: Percentile, level: Level) -> f64 {
        let (Some(arm), Some(baseline)) = (self.get(percentile), baseline.get(percentile)) else {
            return 1.0;
        };
        let pairs = || arm.resampled.iter().zip(&baseline.resampled);
        // Where both are infinite, neither is the later one.
        let not_above = pairs().filter(|(arm, baseline)| arm <= baseline).count();
        let not_below = pairs().filter(|(arm, baseline)| arm >= baseline).count();
        let beyond = 1 + not_above.min(not_below);
        let sides = 2 * level.looks;
        (sides as f64 * beyond as f64 / (1 + arm.resampled.len()) as f64).min(1.0)
    }

    /// The times of the connections just below and just above the percentile.
    pub fn neighbours(&self, percentile: Percentile) -> Option<(Duration, Duration)> {
        let Span { below, above, .. } = self.get(percentile)?.measured;
        Some((duration(below)?, duration(above)?))
    }

    fn get(&self, percentile: Percentile) -> Option<&Replicates> {
        let mut known = self.known.iter();
        known.find(|replicates| replicates.percentile == percentile)
    }
}

/// How many of the fastest of `all` connections the end of an interval may be the last of, if each is faster than the truth
/// with the probability `share`: so many that fewer are faster with no more probability than the interval may miss on that
/// side. None if that is not even so of the first.
fn beyond(all: usize, share: f64, level: Level) -> usize {
    let Share {
        numerator,
        denominator,
    } = level.low();
    let missing = numerator as f64 / denominator as f64;
    let odds = (share / (1.0 - share)).ln();
    // Of the binomial distribution, whose ends are too small for a number.
    let mut logarithm = all as f64 * (1.0 - share).ln();
    let mut fewer = 0.0;
    for faster in 0..all {
        fewer += logarithm.exp();
        // What adding up rounds is no more.
        if fewer > missing * (1.0 + 1e-9) {
            return faster;
        }
        logarithm += ((all - faster) as f64 / (faster + 1) as f64).ln() + odds;
    }
    all
}

/// A number made of one percentile of several series, in nanoseconds, which must come from the same call
/// of [`percentiles`]. `None` where `number` gives none for what was measured.
pub fn combine<const N: usize>(
    of: [&Percentiles; N],
    percentile: Percentile,
    level: Level,
    number: impl Fn([f64; N]) -> Option<f64>,
) -> Option<Estimate<f64>> {
    let mut known = Vec::with_capacity(N);
    for percentiles in of {
        known.push(percentiles.get(percentile)?);
    }
    let known: [&Replicates; N] = known.try_into().ok()?;
    let value = number(known.map(|replicates| replicates.measured.value())).and_then(finite)?;
    let resamples = known.iter().map(|replicates| replicates.resampled.len());
    let resamples = resamples.min().unwrap_or_default();
    let resampled: Vec<Option<f64>> = (0..resamples)
        .map(|resample| {
            let nth = |replicates: &Replicates| replicates.resampled.get(resample).copied();
            number(known.map(|replicates| nth(replicates).unwrap_or(f64::INFINITY)))
        })
        .collect();
    // Who is not known far enough on one side may be on either side of who is.
    let has_ends = (known.iter()).all(|known| known.has_low(level) && known.has_high(level));
    // Where there is no number, nothing is known: the interval is as wide as can be.
    let end = |unknown, share| {
        let mut values: Vec<f64> = (resampled.iter())
            .map(|number| number.unwrap_or(unknown))
            .collect();
        quantile(&mut values, share).and_then(finite)
    };
    Some(Estimate {
        value,
        interval: Interval {
            low: end(f64::NEG_INFINITY, level.low()).filter(|_| has_ends),
            high: end(f64::INFINITY, level.high()).filter(|_| has_ends),
        },
    })
}

/// The connections of a series in order of time, each as a time in nanoseconds and a place in the
/// counts of a resample.
struct Ranking {
    order: Vec<(f64, usize)>,
    /// How many connections there are.
    connections: usize,
    /// Places in the order that are counted together: see [`resamples`].
    blocks: Vec<Range<usize>>,
    /// The one time of all, if no resample can have another one.
    constant: Option<f64>,
}

impl Ranking {
    fn new(series: &Series, indices: &[u32]) -> Ranking {
        let nanos =
            |time: Option<Duration>| time.map_or(f64::INFINITY, |time| time.as_nanos() as f64);
        let times = series.0.iter().map(|(index, time)| (*index, nanos(*time)));
        Ranking::of(times, indices)
    }

    /// Of numbers, each with its index; several may have one.
    fn of(numbers: impl Iterator<Item = (u32, f64)>, indices: &[u32]) -> Ranking {
        let mut order: Vec<(f64, usize)> = numbers
            .filter_map(|(index, number)| Some((number, indices.binary_search(&index).ok()?)))
            .collect();
        order.sort_unstable_by(|(a, _), (b, _)| a.total_cmp(b));
        let [first, last] = [order.first(), order.last()].map(|end| end.map(|(time, _)| *time));
        // Without a connection in the series, a resample may have none of it.
        let is_whole = || {
            let mut seen = vec![false; indices.len()];
            for (_, place) in &order {
                seen[*place] = true;
            }
            seen.into_iter().all(|seen| seen)
        };
        Ranking {
            constant: first.filter(|_| first == last && is_whole()),
            blocks: resamples::blocks(&order),
            order,
            connections: indices.len(),
        }
    }

    /// A percentile of all connections.
    fn span(&self, percentile: Percentile) -> Span {
        let position = Position::new(self.order.len() as u64, Share::of(percentile));
        let at = |rank: u64| {
            let rank = usize::try_from(rank).ok();
            let time = rank.and_then(|rank| self.order.get(rank));
            time.map_or(f64::INFINITY, |(time, _)| *time)
        };
        Span {
            below: at(position.below),
            above: at(position.above),
            fraction: position.fraction,
        }
    }

    /// What is at a position, which is in `block`, of the resample in a lane, whose numbers of connections add up to `sums`.
    fn drawn_span(
        &self,
        position: Position,
        drawn: &Drawn,
        lane: usize,
        sums: &[Lanes<u32>],
        block: usize,
    ) -> Span {
        let Position {
            below,
            above,
            fraction,
        } = position;
        let place = self.blocks.get(block).cloned();
        let of_block = place.clone().and_then(|place| self.order.get(place));
        let of_block = of_block.unwrap_or_default();
        if let (Some((first, _)), Some((last, _))) = (of_block.first(), of_block.last())
            && first == last
            && sums
                .get(block)
                .is_some_and(|sums| u64::from(sums[lane]) > above)
        {
            return Span {
                below: *first,
                above: *first,
                fraction,
            };
        }
        let before = block.checked_sub(1).and_then(|before| sums.get(before));
        let mut passed = before.map_or(0, |sums| u64::from(sums[lane]));
        let from = place.map_or(self.order.len(), |place| place.start);
        let mut walk = self.order.get(from..).unwrap_or_default().iter();
        let mut last = f64::INFINITY;
        let [below, above] = [below, above].map(|rank| {
            while passed <= rank {
                let Some((time, place)) = walk.next() else {
                    return f64::INFINITY;
                };
                passed += u64::from(drawn.counts(*place)[lane]);
                last = *time;
            }
            last
        });
        Span {
            below,
            above,
            fraction,
        }
    }

    /// The mean of all.
    fn mean(&self) -> f64 {
        let times = self.order.iter().map(|(time, _)| time);
        times.fold(0.0, |sum, time| sum + time) / self.order.len() as f64
    }

    /// The mean of each resample.
    fn means(&self, drawn: &Drawn) -> Lanes<f64> {
        let (mut sums, mut totals) = ([0.0; LANES], [0_u32; LANES]);
        for (number, place) in &self.order {
            let counts = drawn.counts(*place);
            for ((sum, total), drawn) in sums.iter_mut().zip(&mut totals).zip(counts) {
                // What was not drawn is not there, infinite or not.
                *sum += match drawn {
                    0 => 0.0,
                    drawn => number * f64::from(*drawn),
                };
                *total = total.wrapping_add(u32::from(*drawn));
            }
        }
        array::from_fn(|lane| sums[lane] / f64::from(totals[lane]))
    }
}

/// Where a quantile lies among ranks that count from zero.
#[derive(Clone, Copy)]
struct Position {
    below: u64,
    above: u64,
    /// How far it is from `below` to `above`.
    fraction: f64,
}

impl Position {
    /// The quantile with this share of `total` connections below it.
    fn new(total: u64, share: Share) -> Position {
        let last = total.saturating_sub(1);
        let scaled = last * share.numerator;
        let below = scaled / share.denominator;
        Position {
            below,
            above: (below + 1).min(last),
            fraction: (scaled % share.denominator) as f64 / share.denominator as f64,
        }
    }
}

/// An exact share, up to one.
#[derive(Clone, Copy)]
struct Share {
    numerator: u64,
    denominator: u64,
}

impl Share {
    /// What lies below a percentile.
    fn of(percentile: Percentile) -> Share {
        Share {
            numerator: u64::from(percentile.per_mille()),
            denominator: 1000,
        }
    }
}

/// What a quantile lies between.
#[derive(Clone, Copy, Debug)]
struct Span {
    below: f64,
    above: f64,
    fraction: f64,
}

impl Span {
    fn value(self) -> f64 {
        // Also what keeps an infinite neighbour out of a number that does not lean on it.
        if self.fraction == 0.0 || self.below == self.above {
            return self.below;
        }
        self.below + (self.above - self.below) * self.fraction
    }
}

/// Draws as many connections as there are, with replacement, into how often each was drawn. A
/// function of the seed, the resample and a counter alone.
pub fn draw(seed: Seed, resample: u64, counts: &mut [u32]) {
    counts.fill(0);
    draw_each(seed, resample, counts.len(), |place| counts[place] += 1);
}

/// Gives `see` the place of each that is drawn.
fn draw_each(seed: Seed, resample: u64, connections: usize, mut see: impl FnMut(usize)) {
    let key = mix(seed.0 ^ mix(resample));
    let connections = connections as u64;
    for counter in 0..connections {
        let high_bits = mix(key.wrapping_add(counter)) >> 32;
        see(((high_bits * connections) >> 32) as usize);
    }
}

/// In percent; `None` unless the baseline is a positive number.
pub fn increase(arm: f64, baseline: f64) -> Option<f64> {
    (baseline > 0.0 && baseline.is_finite()).then(|| 100.0 * (arm - baseline) / baseline)
}

/// A quantile, by the same rule as percentiles.
fn quantile(values: &mut [f64], share: Share) -> Option<f64> {
    let position = Position::new(values.len() as u64, share);
    let rank = usize::try_from(position.below).ok()?;
    if rank >= values.len() {
        return None;
    }
    let (_, below, others) = values.select_nth_unstable_by(rank, f64::total_cmp);
    let next = others.iter().copied().min_by(f64::total_cmp);
    let span = Span {
        below: *below,
        // Behind the last one there is none, nor asked for.
        above: next.unwrap_or(*below),
        fraction: position.fraction,
    };
    Some(span.value())
}

/// As many as that.
pub(super) fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

fn duration(nanos: f64) -> Option<Duration> {
    finite(nanos).map(|nanos| Duration::from_nanos(nanos.round() as u64))
}

#[cfg(test)]
mod tests;
