//! From numbers to places on an axis.

use super::super::ticks::{self, round_step};

/// An axis from `low` to `high`, `from` one pixel `to` another.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    growth: Growth,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Growth {
    Linear,
    Logarithmic,
}

impl Scale {
    /// One that reaches round numbers and holds zero.
    pub(in super::super) fn from_zero(
        values: impl Iterator<Item = f64>,
        from: f64,
        to: f64,
    ) -> Scale {
        let (low, high) = values
            .filter(|value| value.is_finite())
            .fold((0.0_f64, 0.0_f64), |(low, high), value| {
                (low.min(value), high.max(value))
            });
        let span = if high > low { high - low } else { 1.0 };
        let step = round_step(span / 3.0);
        Scale {
            low: (low / step + 1e-9).floor() * step,
            high: (high.max(low + span) / step - 1e-9).ceil() * step,
            from,
            to,
            growth: Growth::Linear,
        }
    }

    /// One that just holds all values, with a little room.
    pub(super) fn around(
        values: impl Iterator<Item = f64>,
        growth: Growth,
        from: f64,
        to: f64,
    ) -> Scale {
        let values = values.filter(|value| value.is_finite());
        let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        let (low, high) = match (low <= high, growth) {
            (false, _) => (1.0, 2.0),
            (true, Growth::Linear) => {
                let room = ((high - low) * 0.04).max(high.abs() * 0.004).max(1e-9);
                (low - room, high + room)
            }
            (true, Growth::Logarithmic) => {
                let room = (high / low).powf(0.04).max(1.004);
                (low / room, high * room)
            }
        };
        Scale {
            low,
            high,
            from,
            to,
            growth,
        }
    }

    /// Where a value is; one beyond the ends is at the end.
    pub(in super::super) fn place(&self, value: f64) -> f64 {
        let share = match self.growth {
            Growth::Linear => (value - self.low) / (self.high - self.low),
            Growth::Logarithmic => (value / self.low).ln() / (self.high / self.low).ln(),
        };
        self.from + (self.to - self.from) * share.clamp(0.0, 1.0)
    }

    /// Whether a value is between the ends.
    pub(super) fn holds(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Round numbers with their places.
    pub(in super::super) fn ticks(&self) -> Vec<(f64, String)> {
        let values = match self.growth {
            Growth::Linear => ticks::linear(self.low, self.high),
            Growth::Logarithmic => ticks::logarithmic(self.low, self.high),
        };
        (values.into_iter())
            .map(|(value, text)| (self.place(value), text))
            .collect()
    }
}
