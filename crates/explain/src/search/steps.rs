//! Where a function of sizes steps: halving the way between sizes that differ.

use std::collections::BTreeMap;
use std::time::Duration;

/// What is known of a function: sizes, each with its time, or none where there is none.
pub(super) type TimesBySize = BTreeMap<usize, Option<Duration>>;

/// A function that may step.
pub(super) struct Stepping<'a> {
    /// What two times differ by, if there is a step between them.
    pub(super) threshold: Duration,
    /// Which sizes there are.
    pub(super) is_possible: &'a dyn Fn(usize) -> bool,
    /// Sizes below which a like function stepped. They are looked at first, and decide nothing.
    pub(super) hints: &'a [usize],
}

impl Stepping<'_> {
    /// The sizes that must be looked at to come nearer to each step; none when all are known to the byte.
    pub(super) fn next(&self, times_by_size: &TimesBySize) -> Vec<usize> {
        let open = self.differing(times_by_size);
        let sizes = open.flat_map(|(low, high)| self.between(low, high));
        sizes.collect()
    }

    /// The steps, each between two sizes that have none between them, if [`Stepping::next`] has none for them.
    pub(super) fn steps(&self, times_by_size: &TimesBySize) -> Vec<(usize, usize)> {
        let closed = self.differing(times_by_size);
        closed
            .filter(|(low, high)| self.between(*low, *high).is_empty())
            .collect()
    }

    /// Walks to all steps of a function that can be asked.
    pub(super) fn walk(
        &self,
        first: impl IntoIterator<Item = usize>,
        mut time: impl FnMut(usize) -> Option<Duration>,
    ) -> Vec<(usize, usize)> {
        let mut times_by_size: TimesBySize =
            first.into_iter().map(|size| (size, time(size))).collect();
        loop {
            let next = self.next(&times_by_size);
            if next.is_empty() {
                return self.steps(&times_by_size);
            }
            times_by_size.extend(next.into_iter().map(|size| (size, time(size))));
        }
    }

    /// Neighbours between which there is a step.
    fn differing(&self, times_by_size: &TimesBySize) -> impl Iterator<Item = (usize, usize)> {
        let differ = |one: Option<Duration>, other: Option<Duration>| match (one, other) {
            (Some(one), Some(other)) => one.abs_diff(other) > self.threshold,
            (one, other) => one.is_some() != other.is_some(),
        };
        let pairs = times_by_size.iter().zip(times_by_size.iter().skip(1));
        let pairs = pairs.filter(move |((_, low), (_, high))| differ(**low, **high));
        pairs.map(|((low, _), (high, _))| (*low, *high))
    }

    /// What to look at between two neighbours: both sides of a hint, else the middle.
    fn between(&self, low: usize, high: usize) -> Vec<usize> {
        let is_new = |size: &usize| low < *size && *size < high && (self.is_possible)(*size);
        for hint in self.hints {
            let sides = [*hint, hint + 1];
            let new: Vec<usize> = sides.into_iter().filter(is_new).collect();
            if !new.is_empty() {
                return new;
            }
        }
        let middle = low.midpoint(high);
        let sides = (0..high - low).flat_map(|far| [middle.saturating_sub(far), middle + far]);
        sides.filter(is_new).take(1).collect()
    }
}
