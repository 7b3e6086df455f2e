//! Which of many ranges a place is in.

use std::collections::BTreeMap;

/// Ranges of a stream, each with what it belongs to. Where they overlap, the one that was put last counts.
///
/// Put and asked in logarithmic time, so that a capture of strangers can't make a question of each packet cost a look at
/// all others.
#[derive(Debug, Default)]
pub(crate) struct Coverage {
    /// By its first place: behind its last one, and whose it is. None overlaps another.
    ranges: BTreeMap<u64, (u64, usize)>,
}

impl Coverage {
    /// Has all places from `start` to before `end` belong to `owner`.
    pub(crate) fn put(&mut self, start: u64, end: u64, owner: usize) {
        if start >= end {
            return;
        }
        if let Some((&before, &(until, whose))) = self.ranges.range(..start).next_back() {
            if until > start {
                self.ranges.insert(before, (start, whose));
            }
            if until > end {
                self.ranges.insert(end, (until, whose));
            }
        }
        while let Some((&within, &(until, whose))) = self.ranges.range(start..end).next() {
            self.ranges.remove(&within);
            if until > end {
                self.ranges.insert(end, (until, whose));
            }
        }
        self.ranges.insert(start, (end, owner));
    }

    /// Whose a place is.
    pub(crate) fn at(&self, place: u64) -> Option<usize> {
        let (_, &(end, owner)) = self.ranges.range(..=place).next_back()?;
        (end > place).then_some(owner)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Coverage;

    proptest! {
        #[test]
        fn what_was_put_last_counts(ranges in prop::collection::vec((0..40_u64, 0..12_u64), 0..30)) {
            let mut coverage = Coverage::default();
            for (owner, (start, length)) in ranges.iter().enumerate() {
                coverage.put(*start, start + length, owner);
            }
            for place in 0..60 {
                let has = |(start, length): &(u64, u64)| *start <= place && place < start + length;
                prop_assert_eq!(coverage.at(place), ranges.iter().rposition(has), "{}", place);
            }
        }
    }
}
