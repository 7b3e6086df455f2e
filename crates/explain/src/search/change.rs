//! Change points: where the median of a time steps, told from samples in which luck decides.
//!
//! Binary segmentation (Scott and Knott 1974; Vostrikova 1981) of the medians of sizes by the cumulative sum that
//! is largest (Page 1954), and a bootstrap over connections for the place and the height of each step. Connection 17
//! meets the same luck at every size, so indices are resampled, all sizes at once.

use std::ops::Range;

use lastbyte_link::Seed;

use lastbyte_results::stats::draw;

/// How many times connections are resampled.
const RESAMPLES: u64 = 400;
/// On each side of a step, this many sizes tell its height.
const BESIDE: usize = 4;
/// Sizes on either side of a step, at least.
const LEAST: usize = 2;

/// A step of the median.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// The last size before it.
    pub below: usize,
    /// The first size after it.
    pub above: usize,
    /// The sizes between which it is with 95 %: in 95 of 100 resamples.
    pub interval: (usize, usize),
    /// How much larger the median is behind it, in milliseconds, with its 95 % interval.
    pub height: (f64, f64, f64),
}

/// Times of a size in milliseconds, by the index of the connection; infinite for one that failed.
pub(super) struct Size {
    pub(super) bytes: usize,
    pub(super) times: Vec<f64>,
}

/// The steps of the median by more than `threshold` milliseconds, the first one first. All sizes must have as many
/// connections, of the same indices; `sizes` grow.
pub(super) fn changes(sizes: &[Size], threshold: f64, seed: Seed) -> Vec<Change> {
    let connections = sizes.iter().map(|size| size.times.len()).min().unwrap_or(0);
    if connections == 0 {
        return Vec::new();
    }
    let measured = medians(sizes, &(0..connections).collect::<Vec<_>>());
    let seed = seed.part("change points");
    let mut counts = vec![0; connections];
    let resampled = (0..RESAMPLES).map(|resample| {
        draw(seed, resample, &mut counts);
        let drawn = counts.iter().enumerate();
        let drawn = drawn.flat_map(|(index, times)| std::iter::repeat_n(index, *times as usize));
        medians(sizes, &drawn.collect::<Vec<_>>())
    });
    let resampled: Vec<Vec<f64>> = resampled.collect();
    let is_step = |split: usize, (from, to): (usize, usize)| {
        let (low, _) = interval(
            resampled
                .iter()
                .map(|medians| height(medians, split, from, to)),
        );
        low > threshold
    };
    let mut splits = Vec::new();
    let all = (0, sizes.len());
    divide(&measured, all, threshold, &is_step, &mut splits);
    splits.sort_unstable();
    let bounds = |index: usize| {
        let before = index.checked_sub(1).and_then(|before| splits.get(before));
        let from = before.copied().unwrap_or(0);
        (from, splits.get(index + 1).copied().unwrap_or(sizes.len()))
    };
    let change = |(index, split): (usize, &usize)| {
        let (from, to) = bounds(index);
        let places = resampled
            .iter()
            .filter_map(|medians| best(medians, from, to));
        let (first, last) = interval(places.map(|split| split as f64));
        let heights = resampled
            .iter()
            .map(|medians| height(medians, *split, from, to));
        let (low, high) = interval(heights);
        let bytes = |place: usize| sizes.get(place).map(|size| size.bytes);
        Some(Change {
            below: bytes(split.checked_sub(1)?)?,
            above: bytes(*split)?,
            interval: (
                bytes((first.min(*split as f64) as usize).checked_sub(1)?)?,
                bytes(last.max(*split as f64) as usize)?,
            ),
            height: (height(&measured, *split, from, to), low, high),
        })
    };
    splits.iter().enumerate().filter_map(change).collect()
}

/// Divides what lies between two places where it steps, and each part again.
fn divide(
    medians: &[f64],
    (from, to): (usize, usize),
    threshold: f64,
    is_step: &dyn Fn(usize, (usize, usize)) -> bool,
    splits: &mut Vec<usize>,
) {
    let Some(split) = best(medians, from, to) else {
        return;
    };
    if is_step(split, (from, to)) {
        splits.push(split);
    } else if spread(medians, from, to) <= threshold {
        return;
    }
    for part in [(from, split), (split, to)] {
        divide(medians, part, threshold, is_step, splits);
    }
}

/// From the least to the largest.
fn spread(medians: &[f64], from: usize, to: usize) -> f64 {
    let part = medians.get(from..to).unwrap_or_default();
    let least = part.iter().copied().fold(f64::INFINITY, f64::min);
    part.iter().copied().fold(0.0, f64::max) - least
}

/// Where a cumulative sum says that the mean of medians changes most: the first place behind the step.
fn best(medians: &[f64], from: usize, to: usize) -> Option<usize> {
    let part = medians.get(from..to)?;
    if part.len() < 2 * LEAST {
        return None;
    }
    // A median of which half has failed counts as the largest that has not, and a step more.
    let most = part
        .iter()
        .copied()
        .filter(|m| m.is_finite())
        .fold(0.0, f64::max);
    let value = |median: &f64| {
        if median.is_finite() {
            *median
        } else {
            2.0 * most + 1.0
        }
    };
    let total: f64 = part.iter().map(value).sum();
    let count = part.len() as f64;
    let mut left = 0.0;
    let mut found: Option<(f64, usize)> = None;
    for (index, median) in part.iter().enumerate() {
        if index >= LEAST && index + LEAST <= part.len() {
            let before = index as f64;
            let apart = left / before - (total - left) / (count - before);
            let gain = apart * apart * before * (count - before);
            if found.is_none_or(|(most, _)| gain > most) {
                found = Some((gain, from + index));
            }
        }
        left += value(median);
    }
    found.map(|(_, split)| split)
}

/// How much larger medians are just behind a split than just before it.
fn height(medians: &[f64], split: usize, from: usize, to: usize) -> f64 {
    let before = split.saturating_sub(BESIDE).max(from)..split;
    let after = split..(split + BESIDE).min(to);
    let middle = |range: Range<usize>| median(medians.get(range).unwrap_or_default().to_vec());
    middle(after) - middle(before)
}

fn medians(sizes: &[Size], drawn: &[usize]) -> Vec<f64> {
    let of = |size: &Size| {
        let times = drawn.iter().filter_map(|index| size.times.get(*index));
        median(times.copied().collect())
    };
    sizes.iter().map(of).collect()
}

/// The one in the middle, or the mean of the two there.
fn median(mut values: Vec<f64>) -> f64 {
    let is_even = values.len().is_multiple_of(2);
    let middle = values.len() / 2;
    if values.is_empty() {
        return f64::NAN;
    }
    let (below, upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    match below.iter().copied().max_by(f64::total_cmp) {
        Some(lower) if is_even && lower < *upper => f64::midpoint(lower, *upper),
        _ => *upper,
    }
}

/// What holds the middle 95 of 100.
fn interval(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    let at = |share: f64, round: fn(f64) -> f64| {
        let place = round(share * last as f64) as usize;
        values.get(place).copied().unwrap_or(f64::NAN)
    };
    (at(0.025, f64::floor), at(0.975, f64::ceil))
}
