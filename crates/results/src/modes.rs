//! The times that loads of a page end at, where a race decides between several.

use std::time::Duration;

use super::{Metric, Outcome, Row};
use lastbyte_study::Cell;

/// Loads whose times are near each other, and far from those of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode {
    /// How many.
    pub loads: u32,
    /// The time in their middle.
    pub middle: Duration,
}

/// Fewer are no mode, but luck.
const LEAST: usize = 2;
/// How many times wider a gap between two modes is than one between two loads, in the middle of all of them.
const WIDER: u32 = 5;

/// The modes of a page's paints and its load, of those that have several: which responses share a flight is decided by who is
/// ready first, and another flight is a round trip. Where packets are lost or delayed by chance, that is what times differ by.
pub(super) fn modes(rows: &[Row], cell: &Cell) -> Vec<(Metric, Vec<Mode>)> {
    if cell.page.is_none() || cell.has_loss() || cell.has_jitter() {
        return Vec::new();
    }
    let of = |metric: Metric| {
        let completed = rows.iter().filter(|row| row.outcome == Outcome::Completed);
        let times = completed.filter_map(|row| metric.of(row)).collect();
        let modes = split(times, cell.link.rtt() / 2);
        (modes.len() > 1).then_some((metric, modes))
    };
    [Metric::Fcp, Metric::Lcp, Metric::Load]
        .into_iter()
        .filter_map(of)
        .collect()
}

/// Cuts times where two neighbours are further apart than `least`, and than neighbours are.
fn split(mut times: Vec<Duration>, least: Duration) -> Vec<Mode> {
    times.sort_unstable();
    let mut gaps: Vec<Duration> = (times.windows(2))
        .filter_map(|pair| Some(*pair.last()? - *pair.first()?))
        .collect();
    gaps.sort_unstable();
    let typical = gaps.get(gaps.len() / 2).copied().unwrap_or_default();
    let wide = least.max(typical * WIDER);
    let groups = times.chunk_by(|before, after| *after - *before <= wide);
    let groups = groups.filter(|group| group.len() >= LEAST);
    groups
        .filter_map(|group| {
            Some(Mode {
                loads: u32::try_from(group.len()).unwrap_or(u32::MAX),
                middle: *group.get(group.len() / 2)?,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(milliseconds: &[u64], rtt: u64) -> Vec<(u32, u64)> {
        let times = milliseconds.iter().map(|ms| Duration::from_millis(*ms));
        let modes = split(times.collect(), Duration::from_millis(rtt / 2));
        let told = modes.iter();
        told.map(|mode| (mode.loads, mode.middle.as_millis() as u64))
            .collect()
    }

    #[test]
    fn a_round_trip_apart_is_another_mode() {
        let loads = [3168, 3780, 3172, 3790, 3181, 3767, 3838, 3801];
        assert_eq!(of(&loads, 600), [(3, 3172), (5, 3790)]);
        // The same times are none where a round trip is longer.
        assert_eq!(of(&loads, 1300), [(8, 3780)]);
    }

    #[test]
    fn one_load_is_no_mode() {
        assert_eq!(of(&[100, 101, 102, 700], 100), [(3, 101)]);
        assert_eq!(of(&[], 100), []);
        assert_eq!(of(&[5], 100), []);
    }

    #[test]
    fn what_is_spread_has_no_modes() {
        // Further apart than half a round trip, and all of them as far.
        assert_eq!(of(&[100, 120, 141, 160, 181, 200], 20), [(6, 160)]);
    }
}
