#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use lastbyte_link::Seed;

use super::*;
use crate::Interval;
use crate::fixtures::{self, CLASSICAL, HYBRID, cell};
use crate::{Outcome, Sample, Summary};
use lastbyte_study::Metric;

/// Two arms in a cell without data, until everything is this precise.
fn experiment(precision: &str) -> Experiment {
    let until = Until {
        least: 50,
        most: 800,
        ..Until::new(precision.parse().unwrap())
    };
    let cells = vec![cell("0%", "0B")];
    fixtures::experiment(&[CLASSICAL, HYBRID], cells, Connections::Until(until))
}

/// Connections by the milliseconds of their handshake; a negative one failed.
fn rows(times: impl IntoIterator<Item = f64>) -> Vec<Row> {
    let any = fixtures::samples(&fixtures::experiment(
        &[CLASSICAL],
        vec![cell("0%", "0B")],
        1,
    ));
    let row = |(index, millis): (u32, f64)| {
        let mut row = any[0].rows[0].clone();
        row.index = index;
        if millis < 0.0 {
            row.outcome = Outcome::TimedOut;
        } else {
            let time = Duration::from_secs_f64(millis / 1e3);
            row.times.handshake = Some(time);
            row.times.ttlb = Some(time);
        }
        row
    };
    (0..).zip(times).map(row).collect()
}

fn look_at(precision: &str, rows: &[&[Row]]) -> Look {
    let experiment = experiment(precision);
    look(&experiment, &experiment.cells[0], rows, &Percentile::USUAL)
}

fn imprecision(look: Look) -> Imprecision {
    match look {
        Look::Imprecise(imprecision) => imprecision,
        look => panic!("it is {look:?}"),
    }
}

/// Even numbers in [0, 1), made by a counter.
fn uniform(key: u64) -> impl Iterator<Item = f64> {
    let mix = |value: u64| {
        let z = value.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let z = (z ^ (z >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        let z = (z ^ (z >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        z ^ (z >> 32)
    };
    (1..).map(move |counter: u64| (mix(mix(key + 1) ^ counter) >> 11) as f64 / (1_u64 << 53) as f64)
}

#[test]
fn what_never_varies_is_precise_once_enough_lies_beyond_each_percentile() {
    let same = |count| rows(std::iter::repeat_n(70.0, count));
    assert_eq!(look_at("0.001%", &[&same(100), &same(100)]), Look::Precise);
    // Ten of a hundred lie beyond p90.
    let imprecision = imprecision(look_at("0.001%", &[&same(99), &same(99)]));
    assert_eq!(imprecision.percentile.to_string(), "p90");
    assert_eq!(
        (imprecision.fault, imprecision.enough),
        (Fault::Sparse, Some(100))
    );
}

#[test]
fn a_fixed_number_of_connections_is_enough() {
    let experiment = fixtures::experiment(&[CLASSICAL], vec![cell("0%", "0B")], 2);
    let rows = rows([1.0, 100.0]);
    let look = look(
        &experiment,
        &experiment.cells[0],
        &[&rows],
        &Percentile::USUAL,
    );
    assert_eq!(look, Look::Precise);
}

/// The interval of a sample alone that reaches furthest is that of p90, of which the precision is asked for a
/// thousandth of a percent too fine, and just so.
#[test]
fn the_widest_interval_decides() {
    let rows = rows(uniform(1).take(400).map(|u| 100.0 / (1.0 - u).sqrt()));
    let times = series(Metric::Handshake, &Cell::default(), &rows);
    let known = stats::percentiles(&[times], &Percentile::USUAL, Seed(1));
    let level = Level::of(&experiment("1%").connections);
    assert!((level.percent().0 - (100.0 - 5.0 / 5.0)).abs() < 1e-9);
    let reaches = Percentile::USUAL.map(|percentile| {
        let estimate = known[0].estimate(percentile, level).unwrap();
        let (low, high) = (
            estimate.interval.low.unwrap(),
            estimate.interval.high.unwrap(),
        );
        let reach = (high - estimate.value).max(estimate.value - low);
        // Not half of its width: one side is the farther one.
        assert!(reach > (high - low) / 2);
        100.0 * reach.as_secs_f64() / estimate.value.as_secs_f64()
    });
    let widest = reaches[2];
    assert!(reaches[0] < reaches[1] && reaches[1] < widest);
    let thousandths = (widest * 1e3).floor();
    let percent = |thousandths: f64| format!("{:.3}%", thousandths / 1e3);
    assert_eq!(
        look_at(&percent(thousandths + 1.0), &[&rows]),
        Look::Precise
    );
    let imprecision = imprecision(look_at(&percent(thousandths), &[&rows]));
    assert_eq!(
        (
            imprecision.arm,
            imprecision.metric,
            imprecision.percentile.to_string()
        ),
        (0, Metric::Handshake, "p90".to_owned())
    );
    let Fault::Wide(Percent(reached)) = imprecision.fault else {
        panic!("{imprecision:?}");
    };
    assert!((reached - widest).abs() < 1e-9, "{reached} {widest}");
    // Four times the connections for half the width.
    let half = format!("{:.3}%", widest / 2.0);
    let enough = self::imprecision(look_at(&half, &[&rows])).enough.unwrap();
    assert!((1600..=1700).contains(&enough), "{enough}");
}

#[test]
fn an_increase_can_be_vague_where_times_are_not() {
    let time = |u: f64| 100.0 + 20.0 * u;
    let one = rows(uniform(1).take(400).map(time));
    let other = rows(uniform(2).take(400).map(time));
    let alone = [&one, &other].map(|rows| look_at("1.6%", &[rows]));
    assert_eq!(alone, [Look::Precise; 2]);
    let imprecision = imprecision(look_at("1.6%", &[&one, &other]));
    assert_eq!(imprecision.arm, 1);
    assert!(
        matches!(imprecision.fault, Fault::WideIncrease(_)),
        "{imprecision:?}"
    );
    // The same luck cancels.
    assert_eq!(look_at("1.5%", &[&one, &one]), Look::Precise);
}

#[test]
fn failures_that_leave_doubt_are_vague_and_those_beyond_doubt_are_not() {
    let failing = |failed: usize| {
        let times = std::iter::repeat_n(-1.0, failed);
        rows(times.chain(std::iter::repeat(70.0)).take(400))
    };
    let look = |failed| look_at("2%", &[&failing(0), &failing(failed)]);
    for clear in [0, 10, 70, 150, 300, 400] {
        assert_eq!(look(clear), Look::Precise, "{clear}");
    }
    for doubt in [35, 100, 200] {
        let Imprecision { arm, fault, .. } = imprecision(look(doubt));
        assert_eq!((arm, fault), (1, Fault::Open), "{doubt}");
    }
    let imprecision = imprecision(look(35));
    assert_eq!(
        (imprecision.percentile.to_string(), imprecision.enough),
        ("p90".to_owned(), None)
    );
    // Without a baseline, there is nothing to be imprecision about but the arm itself.
    assert_eq!(look_at("2%", &[&failing(400), &failing(0)]), Look::Precise);
}

#[test]
fn only_what_says_something_of_the_arms_counts() {
    let metrics = |data| reported(&cell("0%", data)).collect::<Vec<_>>();
    assert_eq!(metrics("0B"), [Metric::Handshake]);
    assert_eq!(
        metrics("1B"),
        [Metric::Handshake, Metric::Ttfb, Metric::Ttlb]
    );
}

#[test]
fn connections_are_told_with_two_digits() {
    for (needed, told) in [
        (7.2, Some(8)),
        (99.0, Some(99)),
        (100.5, Some(110)),
        (23_456.0, Some(24_000)),
        (995_000.0, Some(1_000_000)),
        (1_000_001.0, None),
        (f64::INFINITY, None),
    ] {
        assert_eq!(enough(needed), told, "{needed}");
    }
}

#[test]
fn a_summary_has_the_intervals_that_were_looked_at() {
    let experiment = experiment("1%");
    let times = |key| rows(uniform(key).take(200).map(|u| 100.0 + 20.0 * u));
    let samples: Vec<_> = [0, 1]
        .map(|arm| Sample {
            arm,
            rows: times(arm as u64),
            ..fixtures::samples(&experiment)[arm].clone()
        })
        .into();
    let summary = Summary::new(&experiment, &samples, &Percentile::USUAL);
    let all: Vec<_> = (samples.iter())
        .map(|sample| series(Metric::Handshake, &Cell::default(), &sample.rows))
        .collect();
    let known = stats::percentiles(&all, &Percentile::USUAL, experiment.seed);
    let level = Level::of(&experiment.connections);
    for percentile in Percentile::USUAL {
        let arm = summary.cells[0].arms[1].metric(Metric::Handshake);
        assert_eq!(
            arm.percentiles[&percentile].ok(),
            known[1].estimate(percentile, level)
        );
        assert_eq!(
            arm.increases[&percentile].ok(),
            known[1].increase(&known[0], percentile, level)
        );
    }
    let rows: Vec<_> = samples
        .iter()
        .map(|sample| sample.rows.as_slice())
        .collect();
    assert_eq!(
        summary.cells[0].look,
        look(&experiment, &experiment.cells[0], &rows, &Percentile::USUAL)
    );
}

/// Cells that end when their intervals are narrow enough must not have intervals that are narrow by
/// chance. Times have an infinite variance; arms share half of their luck, and the second one takes a
/// quarter longer at every percentile.
#[test]
fn intervals_hold_the_truth_wherever_a_cell_ends() {
    const TRIALS: u32 = 200;
    let experiment = experiment("30%");
    let time = |scale: f64, u: f64| scale / (1.0 - u).sqrt();
    let mut held = [[0_u32; 3]; 3];
    let mut ends = Vec::new();
    for trial in 0..TRIALS {
        let [shared, own, chance] = [0, 1, 2].map(|part| uniform(u64::from(3 * trial + part)));
        let luck: Vec<f64> = shared.take(800).collect();
        let other = luck.iter().zip(own).zip(chance);
        let baseline = rows(luck.iter().map(|u| time(100.0, *u)));
        let arm =
            rows(other.map(|((shared, own), chance)| {
                time(125.0, if chance < 0.5 { *shared } else { own })
            }));
        let experiment = Experiment {
            seed: Seed(trial.into()),
            ..experiment.clone()
        };
        let looks = experiment.connections.looks();
        let end = looks.into_iter().map(|n| n as usize).find(|n| {
            let rows: [&[Row]; 2] = [&baseline[..*n], &arm[..*n]];
            *n == 800
                || look(&experiment, &experiment.cells[0], &rows, &Percentile::USUAL)
                    == Look::Precise
        });
        let end = end.unwrap();
        ends.push(end);

        let all = [&baseline[..end], &arm[..end]]
            .map(|rows| series(Metric::Handshake, &Cell::default(), rows));
        let known = stats::percentiles(&all, &Percentile::USUAL, experiment.seed);
        let level = Level::of(&experiment.connections);
        for (at, percentile) in Percentile::USUAL.into_iter().enumerate() {
            let u = f64::from(percentile.per_mille()) / 1e3;
            for (arm, scale) in [(0, 100.0), (1, 125.0)] {
                let Interval { low, high } =
                    known[arm].estimate(percentile, level).unwrap().interval;
                let truth = Duration::from_secs_f64(time(scale, u) / 1e3);
                held[arm][at] += u32::from((low.unwrap()..=high.unwrap()).contains(&truth));
            }
            let increase = known[1].increase(&known[0], percentile, level).unwrap();
            let Interval { low, high } = increase.interval;
            let holds = (low.unwrap()..=high.unwrap()).contains(&Percent(25.0));
            held[2][at] += u32::from(holds);
        }
    }
    ends.sort_unstable();
    ends.dedup();
    assert!(ends.len() > 2, "{ends:?}");
    let least = held.as_flattened().iter().min().unwrap();
    assert!(*least >= TRIALS * 95 / 100, "{held:?} of {TRIALS}");
}
