//! Percentiles of a stream in bounded memory: a histogram whose bins are at most 1 % wide.

/// Bins of an octave, as a power of two.
const BITS: u32 = 7;
const PER_OCTAVE: usize = 1 << BITS;

/// Whole numbers, of which each is known to 0.4 %: those below 256 exactly.
#[derive(Clone, Debug, Default)]
pub struct Sketch {
    /// As far as there are numbers: of most classes there are none.
    bins: Vec<u64>,
    count: u64,
}

impl Sketch {
    /// The largest error of a percentile, as a fraction of it.
    pub const ERROR: f64 = 0.5 / PER_OCTAVE as f64;

    pub(crate) fn add(&mut self, value: u64) {
        let place = bin(value);
        if self.bins.len() <= place {
            self.bins.resize(place + 1, 0);
        }
        if let Some(bin) = self.bins.get_mut(place) {
            *bin += 1;
            self.count += 1;
        }
    }

    /// How many numbers there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The percentile `percent` (nearest rank), in the middle of its bin. `None` of nothing.
    pub fn percentile(&self, percent: u64) -> Option<u64> {
        let rank = (self.count.checked_mul(percent)?).div_ceil(100).max(1);
        let mut seen = 0;
        let found = self.bins.iter().position(|count| {
            seen += count;
            seen >= rank
        });
        found.map(middle)
    }
}

fn bin(value: u64) -> usize {
    match value.checked_ilog2() {
        Some(octave) if octave > BITS => {
            let shift = octave - BITS;
            shift as usize * PER_OCTAVE + (value >> shift) as usize
        }
        _ => value as usize,
    }
}

fn middle(bin: usize) -> u64 {
    match (bin / PER_OCTAVE).checked_sub(1) {
        None | Some(0) => bin as u64,
        Some(shift) => {
            let top = (bin - shift * PER_OCTAVE) as u64;
            (top << shift) + (1 << (shift - 1))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn percentiles_are_near(mut values in prop::collection::vec(any::<u64>().prop_flat_map(|top| 0..=top), 1..200), percent in 1u64..=100) {
            let mut sketch = Sketch::default();
            values.iter().for_each(|value| sketch.add(*value));
            values.sort_unstable();
            let rank = (values.len() * percent as usize).div_ceil(100);
            let exact = values[rank - 1] as f64;
            let found = sketch.percentile(percent).unwrap() as f64;
            prop_assert!((found - exact).abs() <= exact * Sketch::ERROR + 1e-9, "{found} {exact}");
        }
    }

    #[test]
    fn small_numbers_are_exact() {
        for value in 0..256 {
            let mut sketch = Sketch::default();
            sketch.add(value);
            assert_eq!(sketch.percentile(50), Some(value));
        }
        assert_eq!(Sketch::default().percentile(50), None);
    }
}
