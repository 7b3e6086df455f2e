#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs::File;

use super::*;
use crate::fixtures::{CLASSICAL, HYBRID, cell, experiment, samples};
use crate::rows::Origin;
use crate::{Environment, Exchange, Outcome, write_rows};
use lastbyte_exchange::HandshakeFlight;
use lastbyte_study::{Buffers, Cell, EngineName, RecordSize};

fn percentile(percent: u8) -> Percentile {
    Percentile::new(percent).unwrap()
}

fn margins(without_loss: &[&str], with_loss: &[&str]) -> Margins {
    let parse = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
    Margins {
        without_loss: parse(without_loss),
        with_loss: parse(with_loss),
    }
}

fn millis(time: f64) -> Option<Duration> {
    Some(Duration::from_secs_f64(time / 1e3))
}

/// A sample without data, whose connect time is half of the handshake time. A negative one failed.
fn sample(cell: Cell, handshakes: impl IntoIterator<Item = f64>) -> SampleTimes {
    let times = handshakes.into_iter().map(|time| {
        if time < 0.0 {
            [None; 4]
        } else {
            [millis(time / 2.0), millis(time), None, millis(time)]
        }
    });
    SampleTimes {
        key: Key {
            measure: String::new(),
            arm: CLASSICAL.to_owned(),
            cell,
        },
        nature: Nature::Measured,
        computing: Computing::TakesTime,
        cpu_costs: None,
        times: times.collect(),
        validity: Validity::Valid,
        wire: None,
        drawn: None,
        record_size: RecordSize::default(),
        buffers: Buffers::Linux,
        chain_digest: "ab".to_owned(),
    }
}

fn results(name: &str, samples: Vec<SampleTimes>) -> Results {
    Results {
        name: name.to_owned(),
        engine: "virtual",
        samples,
    }
}

fn compare(
    a: impl IntoIterator<Item = f64>,
    b: impl IntoIterator<Item = f64>,
    margins: Margins,
) -> Validation {
    let a = results("a", vec![sample(cell("1%", "0B"), a)]);
    let b = results("b", vec![sample(cell("1%", "0B"), b)]);
    validate(&a, &b, margins).unwrap()
}

/// Of the handshake.
fn judged(validation: &Validation) -> Judgement {
    let metric = &validation.samples[0].metrics[1];
    assert_eq!(metric.metric, Metric::Handshake);
    metric.percentiles[0].judgement.unwrap()
}

/// Times spread evenly over 1 % around 100 ms.
fn spread(connections: u32, slower: f64) -> Vec<f64> {
    let one = |index| slower * (99.5 + f64::from(index) / f64::from(connections - 1));
    (0..connections).map(one).collect()
}

fn evidence(difference: f64, low: f64, high: f64) -> Evidence {
    Evidence {
        difference,
        low,
        high,
        margin: 2.0,
        percentile: percentile(90),
        connections: 100,
        tail: 0.001,
    }
}

/// Where engines have buffers of their own, that is said.
#[test]
fn other_buffers_are_warned_of() {
    let warned = |of_b| {
        let side = |name, buffers| {
            let sample = sample(cell("0%", "0B"), [100.0; 3]);
            results(name, vec![SampleTimes { buffers, ..sample }])
        };
        let (a, b) = (side("a", Buffers::Large), side("b", of_b));
        let validation = validate(&a, &b, margins(&["p50=1%"], &[])).unwrap();
        let mut warnings = validation.warnings.iter();
        warnings.any(|warning| warning.contains("buffers"))
    };
    assert!(warned(Buffers::Linux));
    assert!(!warned(Buffers::Large));
}

#[test]
fn a_verdict_is_where_the_interval_is() {
    const NEVER: f64 = f64::INFINITY;
    let verdict = |(low, high)| judge(&evidence(0.0, low, high));
    for interval in [(-2.0, 2.0), (0.0, 0.0), (-1.0, -0.5), (2.0, 2.0)] {
        assert_eq!(verdict(interval), Verdict::Agrees, "{interval:?}");
    }
    for interval in [
        (2.1, 3.0),
        (-9.0, -2.1),
        (2.1, NEVER),
        (NEVER, NEVER),
        (-NEVER, -2.1),
    ] {
        assert_eq!(verdict(interval), Verdict::Differs, "{interval:?}");
    }
    for interval in [
        (-2.1, 2.0),
        (-2.0, 2.1),
        (2.0, 3.0),
        (-3.0, 3.0),
        (-NEVER, 1.0),
        (-1.0, NEVER),
        (-NEVER, NEVER),
    ] {
        let verdict = verdict(interval);
        assert!(matches!(verdict, Verdict::Undecided { .. }), "{interval:?}");
    }
}

#[test]
fn connections_needed_follow_the_square_of_the_interval() {
    let needed = |difference, low, high| needed(&evidence(difference, low, high));
    // Twice as narrow: four times as many.
    assert_eq!(needed(0.0, -4.0, 4.0), Some(400));
    assert_eq!(needed(1.0, -1.0, 3.0), Some(400));
    assert_eq!(needed(4.0, 0.0, 8.0), Some(400));
    // Rounded up to two digits.
    assert_eq!(needed(0.0, -4.1, 4.0), Some(430));
    // At the margin itself, no number would do.
    assert_eq!(needed(2.0, 1.0, 3.0), None);
}

#[test]
fn an_open_interval_needs_connections_on_both_sides() {
    let open = |connections| {
        needed(&Evidence {
            connections,
            ..evidence(0.0, -0.1, f64::INFINITY)
        })
    };
    // 0.9^66 < 0.001, and half as many again.
    assert_eq!(open(20), Some(99));
    // Failures are in the way.
    assert_eq!(open(1000), None);
}

#[test]
fn samples_that_agree_differ_or_are_too_small() {
    let tight = || margins(&[], &["p50=1%"]);
    let agrees = compare(spread(400, 1.0), spread(300, 1.001), tight());
    assert_eq!(agrees.comparisons, 2);
    assert_eq!(agrees.verdict(), Verdict::Agrees);
    let Comparison {
        times, difference, ..
    } = agrees.samples[0].metrics[1].percentiles[0];
    assert_eq!(times[0], millis(100.0));
    assert!((difference.unwrap().0 - 0.1).abs() < 1e-4);

    let differs = compare(spread(400, 1.0), spread(400, 1.03), tight());
    assert_eq!(differs.verdict(), Verdict::Differs);
    assert_eq!(differs.samples[0].metrics[1].distance, Some(1.0));
    // It is as large either way.
    let differs = compare(spread(400, 1.03), spread(400, 1.0), tight());
    assert_eq!(differs.verdict(), Verdict::Differs);

    let undecided = compare(spread(30, 1.0), spread(30, 1.009), tight());
    assert!(matches!(
        judged(&undecided).verdict,
        Verdict::Undecided { needed: Some(31..) }
    ));
}

#[test]
fn more_comparisons_make_wider_intervals() {
    let interval = |margins| {
        let validation = compare(spread(400, 1.0), spread(400, 1.0), margins);
        let Interval { low, high } = validation.samples[0].metrics[1].percentiles[0].interval;
        (validation.level(), high.unwrap().0 - low.unwrap().0)
    };
    let (level, one) = interval(margins(&[], &["p50=1%"]));
    assert!((level - 0.975).abs() < 1e-12);
    let (level, three) = interval(margins(&[], &["p50=1%", "p75=1%", "p90=1%"]));
    assert!((level - (1.0 - 0.05 / 6.0)).abs() < 1e-12);
    assert!(three > one, "{three} and {one}");
}

#[test]
fn margins_are_those_of_the_cells_loss() {
    let margins = margins(&["p50=0.5%"], &["p75=5%"]);
    assert_eq!(margins.of(&cell("0%", "0B"))[0].percentile, percentile(50));
    assert_eq!(margins.of(&cell("1%", "0B"))[0].percentile, percentile(75));
    let mut bursts = cell("0%", "0B");
    bursts.link.backward.loss = "gemodel:1%/10%".parse().unwrap();
    assert_eq!(margins.of(&bursts)[0].percentile, percentile(75));
    assert_eq!(margins.percentiles(), Percentile::USUAL);
}

#[test]
fn wrong_margins_are_refused() {
    for (text, problem) in [
        ("p50", "write PERCENTILE=PERCENT, such as \"p50=0.5%\""),
        ("p50=0.5", "missing unit in \"0.5\": did you mean \"0.5%\"?"),
        (
            "p50=0%",
            "\"0%\" is no percentage above zero: write one such as \"0.5%\"",
        ),
        (
            "p50=-1%",
            "\"-1%\" is no percentage above zero: write one such as \"0.5%\"",
        ),
        (
            "p50=inf%",
            "\"inf%\" is no percentage above zero: write one such as \"0.5%\"",
        ),
        (
            "p50=x",
            "\"x\" is no percentage above zero: write one such as \"0.5%\"",
        ),
        (
            "50=1%",
            "\"50\" is no percentile: use p0.1 to p99.9, such as p75",
        ),
    ] {
        let error = text.parse::<Margin>().unwrap_err().to_string();
        assert_eq!(error, format!("margin {text:?}: {problem}"));
    }
    let margin: Margin = " p75 = 2.5% ".parse().unwrap();
    assert_eq!(margin.to_string(), "p75=2.5%");
}

#[test]
fn what_is_always_the_same_is_known() {
    let agree = |loss, a: f64, b: f64| {
        let side = |name, time| results(name, vec![sample(cell(loss, "0B"), [time; 5])]);
        let margins = margins(&["p90=0.1%"], &["p90=0.1%"]);
        validate(&side("a", a), &side("b", b), margins).unwrap()
    };
    let same = agree("0%", 70.0, 70.0);
    assert_eq!(same.verdict(), Verdict::Agrees);
    let none = Some(Percent(0.0));
    let interval = same.samples[0].metrics[1].percentiles[2].interval;
    assert_eq!(
        interval,
        Interval {
            low: none,
            high: none
        }
    );
    assert_eq!(agree("0%", 70.0, 70.1).verdict(), Verdict::Differs);
    // Where packets are lost, five connections can all have been lucky.
    assert!(matches!(
        agree("1%", 70.0, 70.0).verdict(),
        Verdict::Undecided { needed: Some(_) }
    ));
}

#[test]
fn connections_that_fail_are_infinitely_late() {
    let failing = |share: usize| {
        let times = spread(200, 1.0).into_iter().enumerate();
        times.map(move |(index, time)| if index % 100 < share { -1.0 } else { time })
    };
    let p50 = || margins(&[], &["p50=1%"]);
    // Half never come: the median is absent, and it is known to differ.
    let some = compare(failing(0), failing(80), p50());
    assert_eq!(judged(&some).verdict, Verdict::Differs);
    let comparison = some.samples[0].metrics[1].percentiles[0];
    assert_eq!(comparison.times[1], None);
    assert_eq!(comparison.difference, None);
    assert_eq!(
        some.samples[0].connections[1],
        Some(Connections {
            all: 200,
            failed: 160
        })
    );
    // Nearly half: it may or may not.
    let near = compare(failing(0), failing(49), p50());
    assert_eq!(judged(&near).verdict, Verdict::Undecided { needed: None });
    // What never comes in either is no difference.
    let never = compare(failing(80), failing(80), p50());
    assert_eq!(judged(&never).verdict, Verdict::Agrees);
    assert_eq!(never.samples[0].metrics[1].quantiles(0.5), None);
    assert!(never.samples[0].metrics[1].quantiles(0.1).is_some());
}

#[test]
fn samples_are_paired_by_arm_cell_and_measure() {
    let mut other_measure = sample(cell("0%", "0B"), [70.0; 3]);
    other_measure.key.measure = "growth".to_owned();
    let mut other_arm = sample(cell("0%", "0B"), [70.0; 3]);
    other_arm.key.arm = HYBRID.to_owned();
    let a = sample(cell("0%", "0B"), [70.0; 3]);
    let b = sample(cell("1%", "0B"), [70.0; 3]);
    let none = validate(
        &results("left", vec![a.clone()]),
        &results("right", vec![b.clone(), other_measure, other_arm.clone()]),
        margins(&["p50=1%"], &[]),
    );
    assert_eq!(
        none.unwrap_err().to_string(),
        "\"left\" and \"right\" have no sample in common: measure the same arms in the same cells"
    );
    let some = validate(
        &results("left", vec![a.clone(), b.clone()]),
        &results("right", vec![other_arm, b, a]),
        margins(&["p50=1%"], &[]),
    );
    let some = some.unwrap();
    let losses = some.samples.iter().map(|sample| sample.key.has_chance());
    assert_eq!(losses.collect::<Vec<_>>(), [false, true]);
    assert_eq!(some.warnings, ["1 sample is only in \"right\""]);
    // Nothing was asked where packets are lost.
    assert_eq!(some.samples[1].verdict(), None);
    assert_eq!(some.comparisons, 2);
}

#[test]
fn what_to_mind_is_told() {
    let mut odd = sample(cell("0%", "0B"), [70.0; 3]);
    odd.validity = Validity::Invalid("late".to_owned());
    odd.chain_digest = "cd".to_owned();
    let mut live = results("b", vec![odd]);
    live.engine = "live";
    let a = results("a", vec![sample(cell("0%", "0B"), [70.0; 3])]);
    let validation = validate(&a, &live, margins(&["p50=1%"], &[])).unwrap();
    assert_eq!(
        validation.warnings,
        [
            "1 sample is marked invalid in \"b\"",
            "secp256r1/rsa-2048: A and B sent different chains, whose sizes may differ by some bytes"
        ]
    );
}

#[test]
fn arithmetic_says_what_it_can() {
    let mut jitters = cell("0%", "200KiB");
    jitters.link.backward.jitter = Duration::from_millis(1);
    let exchange = Exchange::of_flights([
        (HandshakeFlight::ClientHello, 271),
        (HandshakeFlight::Server, 2000),
        (HandshakeFlight::ClientFinish, 64),
    ]);
    let of = |cell, wire| SampleTimes {
        wire,
        ..sample(cell, [80.0; 3])
    };
    let measured = results(
        "a",
        vec![
            of(cell("0%", "200KiB"), Some(exchange.clone())),
            of(cell("1%", "200KiB"), Some(exchange.clone())),
            of(jitters, Some(exchange.clone())),
            of(cell("0%", "50KiB"), None),
        ],
    );
    let arithmetic = measured.arithmetic();
    assert_eq!(arithmetic.name, "arithmetic");
    let [computed] = &arithmetic.samples[..] else {
        panic!("{arithmetic:?}");
    };
    assert_eq!(computed.key, measured.samples[0].key);
    // A round trip of 35 ms and what 54 and 66 bytes take at 1 Gbit/s.
    let [connect, handshake, ttfb, ttlb] = computed.times[0].map(Option::unwrap);
    assert!(connect >= Duration::from_millis(35) && connect < Duration::from_micros(35_010));
    assert!(connect < handshake && handshake < ttfb && ttfb < ttlb);
    let validation = validate(&measured, &arithmetic, margins(&["p50=0.1%"], &[])).unwrap();
    assert_eq!(validation.comparisons, 4);
    assert_eq!(validation.samples[0].connections[1], None);
    assert_eq!(
        validation.warnings,
        [
            "3 samples are only in \"a\"",
            "arithmetic leaves out the CPU time that was measured"
        ]
    );
}

/// Rows of the fixtures: what `compare -o rows.parquet` writes is what is read.
#[test]
fn rows_come_back_from_a_file() {
    let experiment = experiment(
        &[CLASSICAL, HYBRID],
        vec![cell("0%", "50KiB"), cell("3%", "0B")],
        4,
    );
    let mut measured = samples(&experiment);
    measured[1].rows[2].outcome = Outcome::TimedOut;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.parquet");
    let origin = Origin {
        study: "fixture",
        measure: "grid",
        engine: EngineName::Virtual,
    };
    let (file, environment) = (File::create(&path).unwrap(), Environment::default());
    write_rows(file, origin, &experiment, &measured, &environment, None).unwrap();

    let read = Results::open(&path).unwrap();
    assert_eq!(read.engine, "virtual");
    assert_eq!(read.samples.len(), 4);
    assert_eq!(read.samples[0].computing, Computing::Free);
    for (read, sample) in read.samples.iter().zip(&measured) {
        assert_eq!(read.key.measure, "");
        assert_eq!(read.key.cell, experiment.cells[sample.cell]);
        assert_eq!(read.key.arm, experiment.arms[sample.arm].label);
        let times: Vec<_> = (sample.rows.iter())
            .map(|row| Metric::FROM_CONNECT.map(|metric| metric.of(row)))
            .collect();
        assert_eq!(read.times, times);
        let exchange = &sample.rows[0].exchange;
        let of_file = read.wire.clone().unwrap();
        assert_eq!(
            of_file.sent(HandshakeFlight::ClientHello),
            exchange.sent(HandshakeFlight::ClientHello)
        );
        assert_eq!(
            of_file.sent(HandshakeFlight::Server),
            exchange.sent(HandshakeFlight::Server)
        );
        assert_eq!(
            of_file.sent(HandshakeFlight::ClientFinish),
            exchange.sent(HandshakeFlight::ClientFinish)
        );
    }
    assert_eq!(read.samples[1].times[2], [None; 4]);
    let itself = validate(&read, &read, margins(&["p50=90%"], &["p50=90%"])).unwrap();
    assert_eq!(itself.warnings, [""; 0]);
    for metric in itself.samples.iter().flat_map(|sample| &sample.metrics) {
        assert!(matches!(metric.distance, None | Some(0.0)));
        assert_eq!(metric.percentiles[0].difference, Some(Percent(0.0)));
    }
}
