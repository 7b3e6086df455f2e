//! Shares, and how sure one can be of them.

/// So many of so many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Those that are.
    pub part: u64,
    /// All that were looked at.
    pub of: u64,
}

/// The quantile of the normal distribution for 95 %.
const Z: f64 = 1.959_964;

impl Share {
    pub(crate) fn count(&mut self, is: bool) {
        self.of += 1;
        self.part += u64::from(is);
    }

    /// Between 0 and 1. `None` of nothing.
    pub fn value(self) -> Option<f64> {
        (self.of > 0).then(|| self.part as f64 / self.of as f64)
    }

    /// Wilson's score interval of 95 %, as if connections were independent of each other.
    pub fn interval(self) -> Option<[f64; 2]> {
        let (share, of) = (self.value()?, self.of as f64);
        let squared = Z * Z / of;
        let middle = share + squared / 2.0;
        let half = Z * (share * (1.0 - share) / of + squared / (4.0 * of)).sqrt();
        let bound = |at: f64| (at / (1.0 + squared)).clamp(0.0, 1.0);
        Some([bound(middle - half), bound(middle + half)])
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn wilson() {
        let close = |share: Share, low: f64, high: f64| {
            let [found_low, found_high] = share.interval().unwrap();
            assert!((found_low - low).abs() < 5e-4, "{found_low}");
            assert!((found_high - high).abs() < 5e-4, "{found_high}");
        };
        // By the formula, in other tools.
        close(Share { part: 46, of: 100 }, 0.3656, 0.5574);
        close(Share { part: 0, of: 10 }, 0.0, 0.2775);
        close(Share { part: 10, of: 10 }, 0.7225, 1.0);
        assert_eq!(Share::default().interval(), None);
    }
}
