#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;

const MEAN: Duration = Duration::from_millis(10);
const DRAWS: u32 = 100_000;

fn draws(draw: fn(&mut Gaps, Duration) -> Duration) -> Vec<Duration> {
    let mut gaps = Gaps(1);
    (0..DRAWS).map(|_| draw(&mut gaps, MEAN)).collect()
}

fn mean(gaps: &[Duration]) -> Duration {
    gaps.iter().sum::<Duration>() / DRAWS
}

/// The share of gaps that are shorter.
fn below(gaps: &[Duration], limit: Duration) -> f64 {
    gaps.iter().filter(|gap| **gap < limit).count() as f64 / f64::from(DRAWS)
}

// The tolerances are five standard errors of a hundred thousand draws, or more.

#[test]
fn first_starts_are_spread_evenly() {
    let gaps = draws(Gaps::uniform);
    assert!(gaps.iter().all(|gap| *gap < MEAN));
    assert!(mean(&gaps).abs_diff(MEAN / 2) < MEAN / 200);
    for tenth in 1..10 {
        let share = below(&gaps, MEAN * tenth / 10);
        assert!(
            (share - f64::from(tenth) / 10.0).abs() < 0.01,
            "{tenth}: {share}"
        );
    }
}

#[test]
fn later_starts_follow_after_gaps_without_memory() {
    let gaps = draws(Gaps::exponential);
    assert!(mean(&gaps).abs_diff(MEAN) < MEAN / 50);
    for means in [0.1, 0.5, 1.0, 2.0, 4.0] {
        let share = below(&gaps, MEAN.mul_f64(means));
        assert!(
            (share - (1.0 - f64::exp(-means))).abs() < 0.01,
            "{means}: {share}"
        );
    }
}

#[test]
fn gaps_depend_on_the_seed_alone() {
    let gaps = |seed| {
        let mut gaps = Gaps(seed);
        [(); 4].map(|()| gaps.exponential(MEAN))
    };
    assert_eq!(gaps(1), gaps(1));
    assert_ne!(gaps(1), gaps(2));
}
