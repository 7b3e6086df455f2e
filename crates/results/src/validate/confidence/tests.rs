#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;

const MEDIAN: Percentile = Percentile::MEDIAN;

fn percentile(percent: u8) -> Percentile {
    Percentile::new(percent).unwrap()
}

fn ordered(times: impl IntoIterator<Item = f64>) -> Ordered {
    times.into_iter().collect()
}

/// Even numbers in (0, 1), made by a counter (SplitMix64).
fn uniform(key: u64) -> impl Iterator<Item = f64> {
    (1_u64..).map(move |counter| {
        let mut z = (key << 32 ^ counter).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11).max(1) as f64 / (1_u64 << 53) as f64
    })
}

#[test]
fn weights_are_binomial() {
    let weights: Vec<f64> = binomial(4, 0.5).iter().map(|(_, weight)| *weight).collect();
    assert_eq!(weights, [1.0, 4.0, 6.0, 4.0, 1.0].map(|ways| ways / 16.0));
    // scipy.stats.binom.pmf([3, 4, 5], 5, 0.9)
    for ((successes, weight), expected) in
        (binomial(5, 0.9).into_iter().skip(3)).zip([0.0729, 0.32805, 0.59049])
    {
        assert!((weight - expected).abs() < 1e-12, "{successes}: {weight}");
    }
    assert_eq!(binomial(0, 0.9), [(0, 1.0)]);
}

#[test]
fn weights_of_many_connections_are_complete() {
    for (n, probability) in [(5000, 0.5), (1_000_000, 0.99)] {
        let weights = binomial(n, probability);
        let mean: f64 = weights.iter().map(|(j, weight)| *j as f64 * weight).sum();
        assert!((mean / (n as f64 * probability) - 1.0).abs() < 1e-9);
        // scipy.stats.binom.cdf(2358, 5000, 0.5)
        let far: f64 = (weights.iter().filter(|(j, _)| *j <= 2358))
            .map(|(_, weight)| weight)
            .sum();
        if n == 5000 {
            assert!((far / 3.124211019078568e-5 - 1.0).abs() < 1e-6, "{far:e}");
        }
        assert!(weights.len() < 50_000);
    }
}

#[test]
fn percentiles_are_those_of_numpy() {
    // numpy.percentile([15, 20, 35, 40, 50], [50, 75, 90])
    let five = ordered([50.0, 20.0, 35.0, 15.0, 40.0]);
    let percentiles = Percentile::USUAL.map(|percentile| five.percentile(percentile));
    assert_eq!(percentiles, [35.0, 40.0, 46.0]);
    assert_eq!(ordered([7.0]).percentile(percentile(99)), 7.0);
    assert_eq!(ordered([]).percentile(MEDIAN), f64::INFINITY);
    // A failure keeps out of what does not lean on it.
    let failed = ordered([10.0, 20.0, 30.0, 40.0, f64::INFINITY]);
    assert_eq!(failed.percentile(percentile(75)), 40.0);
    assert_eq!(failed.percentile(percentile(76)), f64::INFINITY);
}

#[test]
fn distances_are_exact() {
    const NEVER: f64 = f64::INFINITY;
    let distance = |a: &[f64], b: &[f64]| ordered(a.to_vec()).distance(&ordered(b.to_vec()));
    assert_eq!(distance(&[1.0, 2.0, 3.0], &[1.0, 2.0, 3.0]), 0.0);
    assert_eq!(distance(&[1.0, 2.0], &[3.0, 4.0]), 1.0);
    assert_eq!(distance(&[3.0, 4.0], &[1.0, 2.0]), 1.0);
    // scipy.stats.ks_2samp([1, 2, 3, 4], [2.5, 3.5, 4.5]).statistic
    assert_eq!(distance(&[1.0, 2.0, 3.0, 4.0], &[2.5, 3.5, 4.5]), 0.5);
    // Ties step together, and sizes may differ.
    assert_eq!(distance(&[1.0, 1.0, 2.0, 2.0], &[1.0, 2.0]), 0.0);
    assert_eq!(distance(&[1.0, 1.0, 1.0, 2.0], &[1.0, 2.0]), 0.25);
    // Half of one side never comes.
    assert_eq!(distance(&[1.0, NEVER], &[1.0, 1.0]), 0.5);
    assert_eq!(distance(&[NEVER, NEVER], &[NEVER]), 0.0);
    assert_eq!(distance(&[NEVER], &[1.0]), 1.0);
}

/// With one side known, what is left is the interval of the order statistics of the other.
#[test]
fn an_interval_is_that_of_the_order_statistics() {
    let ten = ordered((1..=10).map(f64::from));
    let known = Confidence::certain(1.0);
    let interval = |tail| Confidence::of(&ten, MEDIAN).ratio_to(&known, tail);
    // P(the median is below the 2nd of 10) = (1 + 10) / 1024, and below the 3rd (1 + 10 + 45) / 1024.
    assert_eq!(interval(11.5 / 1024.0), [2.0, 9.0]);
    assert_eq!(interval(10.5 / 1024.0), [1.0, 10.0]);
    assert_eq!(interval(55.5 / 1024.0), [2.0, 9.0]);
    assert_eq!(interval(56.5 / 1024.0), [3.0, 8.0]);
    // Ten connections can't say more than this.
    assert_eq!(interval(0.5 / 1024.0), [0.0, f64::INFINITY]);
}

#[test]
fn what_is_known_has_an_interval_of_no_width() {
    let [a, b] = [40.0, 50.0].map(Confidence::certain);
    assert_eq!(b.ratio_to(&a, 1e-6), [1.25, 1.25]);
    let same = Confidence::of(&ordered([35.0; 200]), percentile(75));
    assert_eq!(same.ratio_to(&same, 1e-6), [1.0, 1.0]);
}

#[test]
fn connections_that_failed_open_the_interval() {
    let failing = |failed: usize| {
        ordered((0..100).map(move |index| {
            if index < failed {
                f64::INFINITY
            } else {
                10.0 + index as f64 / 100.0
            }
        }))
    };
    let p90 = |sample: &Ordered| Confidence::of(sample, percentile(90));
    let all = p90(&failing(0));
    let [low, high] = p90(&failing(9)).ratio_to(&all, 0.025);
    assert!(low > 0.9 && low.is_finite(), "{low}");
    assert_eq!(high, f64::INFINITY);
    // What never comes in either is the same in both.
    let never = p90(&failing(60));
    assert_eq!(never.ratio_to(&never, 0.025), [1.0, 1.0]);
    assert_eq!(never.ratio_to(&all, 0.025), [f64::INFINITY; 2]);
    assert_eq!(all.ratio_to(&never, 0.025), [0.0; 2]);
}

/// Intervals of 95 % hold the true ratio in 95 of 100 samples, and in a few more where samples are
/// small, whatever the distribution: smooth and skewed, or with jumps as retransmission timeouts
/// make them.
#[test]
fn intervals_cover_the_truth_as_often_as_they_say() {
    const ROUNDS: u64 = 1000;
    const SLOWER: f64 = 1.02;
    let smooth = |u: f64| 100.0 - 20.0 * u.ln();
    let jumping = |u: f64| {
        if u < 0.12 {
            1000.0 + 100.0 * u
        } else {
            100.0 + u
        }
    };
    let shapes: [fn(f64) -> f64; 2] = [smooth, jumping];
    for (shape, time) in shapes.into_iter().enumerate() {
        for (a_size, b_size, most) in [(60, 60, 1.0), (300, 100, 0.99), (1000, 1000, 0.975)] {
            for percent in [50, 75, 90] {
                let percentile = percentile(percent);
                let sample = |key, size| ordered(uniform(key).take(size).map(time));
                let held = (0..ROUNDS).filter(|round| {
                    let a = sample(4 * round, a_size);
                    let slower = sample(4 * round + 1, b_size);
                    let b = ordered(slower.times().iter().map(|time| SLOWER * time));
                    let [low, high] = Confidence::of(&b, percentile)
                        .ratio_to(&Confidence::of(&a, percentile), 0.025);
                    (low..=high).contains(&SLOWER)
                });
                let held = held.count() as f64 / ROUNDS as f64;
                assert!(
                    (0.94..=most).contains(&held),
                    "shape {shape}, {a_size} and {b_size} connections, p{percent}: {held}"
                );
            }
        }
    }
}

/// They tell the same as a bootstrap where it has resamples enough.
#[test]
fn intervals_agree_with_the_bootstrap() {
    use crate::stats::{Level, Series, percentiles};
    use lastbyte_link::Seed;
    use std::time::Duration;

    let times: Vec<f64> = uniform(7).take(400).map(|u| 1e8 - 2e7 * u.ln()).collect();
    let series: Series = (0..)
        .zip(
            times
                .iter()
                .map(|time| Some(Duration::from_nanos(*time as u64))),
        )
        .collect();
    let known = percentiles(&[series], &[MEDIAN], Seed(1));
    let bootstrap = known[0].estimate(MEDIAN, Level::USUAL).unwrap().interval;
    let [low, high] =
        Confidence::of(&ordered(times), MEDIAN).ratio_to(&Confidence::certain(1e9), 0.025);
    for (end, other) in [(low, bootstrap.low), (high, bootstrap.high)] {
        let other = other.unwrap().as_secs_f64();
        assert!((end / other - 1.0).abs() < 0.005, "{end} and {other}");
    }
}
