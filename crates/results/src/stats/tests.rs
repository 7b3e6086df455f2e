#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;

const MEDIAN: Percentile = Percentile::MEDIAN;

fn percentile(percent: u8) -> Percentile {
    Percentile::new(percent).unwrap()
}

fn millis(value: f64) -> Duration {
    Duration::from_secs_f64(value / 1e3)
}

/// Connections by their milliseconds; a negative one failed.
fn series(times: impl IntoIterator<Item = f64>) -> Series {
    let time = |millis_or_failed: f64| (millis_or_failed >= 0.0).then(|| millis(millis_or_failed));
    (0..).zip(times.into_iter().map(time)).collect()
}

fn known(series: &[Series]) -> Vec<Percentiles> {
    percentiles(series, &Percentile::USUAL, Seed(1))
}

fn values(times: impl IntoIterator<Item = f64>) -> [Option<Duration>; 3] {
    let known = known(&[series(times)]);
    Percentile::USUAL.map(|percentile| {
        known[0]
            .estimate(percentile, Level::USUAL)
            .map(|estimate| estimate.value)
    })
}

/// Even numbers in [0, 1), made by a counter.
fn uniform(key: u64) -> impl Iterator<Item = f64> {
    (0..).map(move |counter: u64| (mix(mix(key) ^ counter) >> 11) as f64 / (1_u64 << 53) as f64)
}

#[test]
fn percentiles_are_those_of_numpy() {
    // numpy.percentile([1, 2, 3, 4], [50, 75, 90])
    assert_eq!(
        values([4.0, 1.0, 3.0, 2.0]),
        [2.5, 3.25, 3.7].map(|value| Some(millis(value)))
    );
    // numpy.percentile([15, 20, 35, 40, 50], [50, 75, 90])
    let five = [15.0, 20.0, 35.0, 40.0, 50.0];
    assert_eq!(
        values(five),
        [35.0, 40.0, 46.0].map(|value| Some(millis(value)))
    );
    assert_eq!(values([7.0]), [Some(millis(7.0)); 3]);
    assert_eq!(values([]), [None; 3]);
}

#[test]
fn a_percentile_that_leans_on_a_failure_is_absent() {
    // Of five, p75 is the fourth itself, and p90 lies between the fourth and the fifth.
    let expected = [Some(millis(30.0)), Some(millis(40.0)), None];
    assert_eq!(values([30.0, 10.0, -1.0, 40.0, 20.0]), expected);
    assert_eq!(values([-1.0, -1.0]), [None; 3]);
}

#[test]
fn neighbours_are_the_connections_around_a_percentile() {
    let known = &known(&[series([10.0, 20.0, 30.0, 40.0, -1.0])])[0];
    assert_eq!(known.neighbours(MEDIAN), Some((millis(30.0), millis(40.0))));
    assert_eq!(known.neighbours(percentile(90)), None);
}

#[test]
fn an_increase_is_relative_to_the_baseline() {
    // Six are enough for both ends of a median's interval.
    let times = [100.0, 200.0, 300.0, 400.0, 500.0, 600.0];
    let known = known(&[series(times), series(times.map(|time| 1.2 * time))]);
    let increase = known[1].increase(&known[0], MEDIAN, Level::USUAL).unwrap();
    // Every resample of the pairs has the same increase.
    for value in [
        Some(increase.value),
        increase.interval.low,
        increase.interval.high,
    ] {
        assert!((value.unwrap().0 - 20.0).abs() < 1e-9, "{increase:?}");
    }
    assert!(!increase.interval.holds_zero());
    let none = known[0].increase(&known[0], MEDIAN, Level::USUAL).unwrap();
    assert_eq!(none.value, Percent(0.0));
    assert!(none.interval.holds_zero());
}

#[test]
fn there_is_no_increase_over_nothing() {
    let known = known(&[series([0.0]), series([-1.0]), series([1.0])]);
    for baseline in &known[..2] {
        assert_eq!(known[2].increase(baseline, MEDIAN, Level::USUAL), None);
    }
    assert_eq!(known[1].increase(&known[2], MEDIAN, Level::USUAL), None);
}

#[test]
fn an_interval_is_open_where_resamples_meet_failures() {
    // p50 of seven with two failures: two more in a resample, and it is gone.
    let times = |failed: u32| {
        series((0..7).map(move |index| {
            if index < failed {
                -1.0
            } else {
                100.0 + f64::from(index)
            }
        }))
    };
    let known = percentiles(&[times(2), times(0)], &[MEDIAN], Seed(1));
    let time = known[0].estimate(MEDIAN, Level::USUAL).unwrap().interval;
    assert!(time.low.is_some() && time.high.is_none(), "{time:?}");
    let slower = known[0]
        .increase(&known[1], MEDIAN, Level::USUAL)
        .unwrap()
        .interval;
    assert!(slower.low.is_some() && slower.high.is_none(), "{slower:?}");
    // Where the baseline has no percentile, nothing is known of either end.
    let faster = known[1]
        .increase(&known[0], MEDIAN, Level::USUAL)
        .unwrap()
        .interval;
    assert!(
        faster.low.is_none() && faster.high.is_none() && faster.holds_zero(),
        "{faster:?}"
    );
}

#[test]
fn the_same_seed_gives_the_same_intervals() {
    let arms = [1, 2].map(|key| series(uniform(key).take(50)));
    let interval = |seed| {
        let known = percentiles(&arms, &[MEDIAN], seed);
        let increase = known[1].increase(&known[0], MEDIAN, Level::USUAL);
        increase.unwrap().interval
    };
    assert_eq!(interval(Seed(1)), interval(Seed(1)));
    assert_ne!(interval(Seed(1)), interval(Seed(2)));
}

#[test]
fn the_order_of_connections_does_not_matter() {
    let times: Vec<_> = (0..)
        .zip(uniform(1).take(50).map(|time| Some(millis(time))))
        .collect();
    let forward: Series = times.iter().copied().collect();
    let backward: Series = times.iter().rev().copied().collect();
    let known = known(&[forward, backward]);
    assert_eq!(
        known[0].estimate(MEDIAN, Level::USUAL),
        known[1].estimate(MEDIAN, Level::USUAL)
    );
}

#[test]
fn connections_that_one_series_lacks_do_not_shift_the_other() {
    let whole = series(uniform(1).take(50));
    let half: Series = (25..)
        .zip(uniform(1).skip(25).take(25).map(|time| Some(millis(time))))
        .collect();
    let together = known(&[whole.clone(), half]);
    let alone = known(&[whole]);
    assert_eq!(
        together[0].estimate(MEDIAN, Level::USUAL),
        alone[0].estimate(MEDIAN, Level::USUAL)
    );
    assert!(
        together[1]
            .estimate(MEDIAN, Level::USUAL)
            .unwrap()
            .interval
            .high
            .is_some()
    );
}

/// How times are distributed: from an even number in [0, 1) to milliseconds, never falling.
const DISTRIBUTIONS: [fn(f64) -> f64; 4] = [
    |u| 100.0 + 100.0 * u,
    // A long tail: p99 is four times the median.
    |u| (4.0 + 1.5 * (u / (1.0 - u)).ln() / 1.7).exp(),
    |u| -100.0 * (1.0 - u).ln(),
    // Round trips and timeouts, and nearly nothing between them.
    |u| match u {
        ..0.7 => 100.0 + u,
        ..0.88 => 135.0 + u,
        _ => 335.0 + u,
    },
];

#[test]
fn intervals_of_a_percentile_hold_the_truth_at_least_as_often_as_they_say() {
    const TRIALS: u32 = 1000;
    let percentiles = [50, 75, 90, 99].map(percentile);
    for (number, time) in (0..).zip(DISTRIBUTIONS) {
        for connections in [20, 50, 100, 200, 400] {
            let mut missed = [[0_u32; 2]; 4];
            for trial in 0..TRIALS {
                let key = u64::from(trial) + (number << 32) + (connections << 40);
                let times = series(uniform(key).take(connections as usize).map(time));
                let indices: Vec<u32> = (0..connections as u32).collect();
                let ranking = Ranking::new(&times, &indices);
                let known = Percentiles::measured(&ranking, &percentiles);
                for (percentile, missed) in percentiles.into_iter().zip(&mut missed) {
                    let truth = millis(time(f64::from(percentile.per_mille()) / 1000.0));
                    let Interval { low, high } =
                        known.estimate(percentile, Level::USUAL).unwrap().interval;
                    missed[0] += u32::from(low.is_some_and(|low| low > truth));
                    missed[1] += u32::from(high.is_some_and(|high| high < truth));
                }
            }
            // 2.5 % on each side, and three standard errors.
            for (percentile, missed) in percentiles.iter().zip(missed) {
                let most = (0.025 + 0.015) * f64::from(TRIALS);
                assert!(
                    missed.iter().all(|missed| f64::from(*missed) <= most),
                    "{percentile} of {connections}, distribution {number}: {missed:?}"
                );
            }
        }
    }
}

/// What is reported of two arms. They have half of their luck in common.
#[test]
fn intervals_of_an_increase_hold_the_truth_as_often_as_they_say() {
    const TRIALS: u32 = 200;
    for (number, time) in (0..).zip(DISTRIBUTIONS) {
        let mut covered = [0; 3];
        for trial in 0..TRIALS {
            let key = u64::from(trial) + (number << 32);
            let luck: Vec<f64> = uniform(key).take(100).collect();
            let other = uniform(key + (1 << 60)).take(100);
            let pairs = luck.iter().zip(other).enumerate();
            let arm = pairs.map(|(index, (luck, other))| match index % 2 {
                0 => 1.2 * time(*luck),
                _ => 1.2 * time(other),
            });
            let arms = [series(luck.iter().copied().map(time)), series(arm)];
            let known = percentiles(&arms, &Percentile::USUAL, Seed(trial.into()));
            for (percentile, covered) in Percentile::USUAL.into_iter().zip(&mut covered) {
                let increase = known[1].increase(&known[0], percentile, Level::USUAL);
                let Interval { low, high } = increase.unwrap().interval;
                let (low, high) = (low.unwrap().0, high.unwrap().0);
                *covered += u32::from(low <= 20.0 + 1e-9 && high >= 20.0 - 1e-9);
            }
        }
        for covered in covered {
            let coverage = f64::from(covered) / f64::from(TRIALS);
            // The standard error of the coverage is 1.5 %.
            assert!(coverage >= 0.91, "{coverage}, distribution {number}");
        }
    }
}

#[test]
fn an_interval_that_holds_zero_is_rarely_wrong_about_equal_arms() {
    const TRIALS: u32 = 400;
    let time = |u: f64| 100.0 - 100.0 * (1.0 - u).ln();
    let holds = (0..TRIALS).filter(|trial| {
        let arm = |offset| series(uniform(u64::from(*trial) + offset).take(100).map(time));
        let known = percentiles(&[arm(0), arm(1 << 32)], &[MEDIAN], Seed((*trial).into()));
        known[1]
            .increase(&known[0], MEDIAN, Level::USUAL)
            .unwrap()
            .interval
            .holds_zero()
    });
    let share = holds.count() as f64 / f64::from(TRIALS);
    assert!((0.917..=0.983).contains(&share), "{share}");
}

#[test]
fn pairing_narrows_the_interval() {
    let luck: Vec<f64> = uniform(1)
        .take(200)
        .map(|u| 100.0 - 100.0 * (1.0 - u).ln())
        .collect();
    let noise = uniform(2).map(|u| 1.0 + u / 100.0);
    let slower: Vec<f64> = luck
        .iter()
        .zip(noise)
        .map(|(time, noise)| 1.02 * time * noise)
        .collect();
    let width = |arm: Series| {
        let known = percentiles(&[series(luck.clone()), arm], &[MEDIAN], Seed(1));
        let Interval { low, high } = known[1]
            .increase(&known[0], MEDIAN, Level::USUAL)
            .unwrap()
            .interval;
        high.unwrap().0 - low.unwrap().0
    };
    let paired = width(series(slower.clone()));
    let unpaired = width(series(
        slower
            .iter()
            .copied()
            .skip(100)
            .chain(slower.iter().copied().take(100)),
    ));
    assert!(10.0 * paired < unpaired, "{paired} {unpaired}");
}

/// All of n connections are below the 90th percentile with a probability of 0.9^n.
#[test]
fn an_interval_is_open_where_there_are_too_few_connections() {
    let p90: Percentile = "p90".parse().unwrap();
    let ends = |connections: u32| {
        let series = (0..connections).map(|index| {
            (
                index,
                Some(Duration::from_millis(100 + u64::from(index % 7))),
            )
        });
        let known = percentiles(&[series.collect()], &[p90], Seed(1));
        let Interval { low, high } = known[0].estimate(p90, Level::USUAL).unwrap().interval;
        (low.is_some(), high.is_some())
    };
    assert_eq!(ends(1), (false, false));
    assert_eq!(ends(2), (true, false));
    assert_eq!(ends(35), (true, false));
    assert_eq!(ends(36), (true, true));
}

/// What is drawn one after the other, and counted by hand: how often a resample has each of the connections at `places`, some of
/// which are infinitely late, and as which unit each is drawn.
fn resampled_alone(series: &[(u32, f64)], units: usize, resample: u64) -> Vec<f64> {
    let mut counts = vec![0; units];
    draw(Seed(1), resample, &mut counts);
    let times = series.iter().flat_map(|(unit, time)| {
        let drawn = counts[*unit as usize] as usize;
        std::iter::repeat_n(*time, drawn)
    });
    times.collect()
}

#[test]
fn resamples_side_by_side_are_those_one_after_the_other() {
    let asked = [50, 75, 90, 1].map(percentile);
    for (units, all) in [
        (1, true),
        (2, true),
        (15, true),
        (16, true),
        (33, true),
        (500, true),
        (4097, false),
    ] {
        let drawn: Vec<f64> = uniform(units as u64).take(2 * units).collect();
        let whole = (0..units as u32).zip(&drawn);
        let whole: Vec<(u32, f64)> = whole
            .map(|(unit, time)| (unit, (time * 1e9).round()))
            .collect();
        // Some fail, some are missing, and some users have two.
        let failing = whole.iter().map(|(unit, time)| match unit % 5 {
            0 => (*unit, f64::INFINITY),
            _ => (*unit, *time),
        });
        let missing = whole.iter().filter(|(unit, _)| unit % 3 > 0).copied();
        let twice = whole.iter().chain(&whole).copied();
        let all_series: [Vec<(u32, f64)>; 4] = [
            whole.clone(),
            failing.collect(),
            missing.collect(),
            twice.collect(),
        ];
        let given = all_series.clone().map(|series| {
            let time = |time: f64| time.is_finite().then(|| Duration::from_nanos(time as u64));
            let times = series.into_iter().map(|(unit, nanos)| (unit, time(nanos)));
            times.collect::<Series>()
        });
        let known = percentiles(&given, &asked, Seed(1));
        let resamples = if all {
            (0..RESAMPLES).collect()
        } else {
            vec![0, 79, 80, 1999]
        };
        for (series, known) in all_series.iter().zip(&known) {
            for resample in &resamples {
                let mut times = resampled_alone(series, units, *resample);
                for replicates in &known.known {
                    let expected = quantile(&mut times, Share::of(replicates.percentile));
                    let got = replicates.resampled[*resample as usize];
                    assert_eq!(got, expected.unwrap_or(f64::INFINITY), "{units} {resample}");
                }
            }
        }
    }
}

#[test]
fn means_side_by_side_are_those_one_after_the_other() {
    let numbers: Vec<(u32, f64)> = (0..40).zip(uniform(3)).collect();
    let ranking = Ranking::of(numbers.iter().copied(), &(0..40).collect::<Vec<_>>());
    let mut means = Vec::new();
    resamples::each(Seed(1), 40, |drawn| means.extend(ranking.means(drawn)));
    assert_eq!(means.len() as u64, RESAMPLES);
    for (resample, mean) in (0..).zip(means) {
        let drawn = resampled_alone(&numbers, 40, resample);
        let expected = drawn.iter().sum::<f64>() / drawn.len() as f64;
        assert!((mean - expected).abs() < 1e-12, "{resample}");
    }
}
