#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;

use super::*;
use crate::fixtures::{CLASSICAL, HYBRID, cell, experiment, samples};
use crate::{Interval, Outcome, Sample};
use lastbyte_study::Experiment;
use lastbyte_study::Metric;

fn threshold(text: &str) -> Threshold {
    text.parse().unwrap()
}

fn measured() -> (Experiment, Vec<Sample>) {
    let cells = vec![cell("0%", "0KiB"), cell("0%", "200KiB")];
    let experiment = experiment(&[CLASSICAL, HYBRID], cells, 20);
    let samples = samples(&experiment);
    (experiment, samples)
}

fn crossings(text: &str, (experiment, samples): &(Experiment, Vec<Sample>)) -> Vec<String> {
    threshold(text).crossings(&Summary::new(experiment, samples, &Percentile::USUAL))
}

#[test]
fn both_bounds_and_both_comparisons() {
    assert_eq!(
        threshold("ttlb.p75 > 10%"),
        Threshold {
            metric: Metric::Ttlb,
            percentile: Percentile::new(75).unwrap(),
            comparison: Comparison::Above,
            bound: Bound::Increase(Percent(10.0)),
        }
    );
    assert_eq!(
        threshold(" handshake.p90>=1.5s "),
        Threshold {
            metric: Metric::Handshake,
            percentile: Percentile::new(90).unwrap(),
            comparison: Comparison::AtLeast,
            bound: Bound::Time(Duration::from_millis(1500)),
        }
    );
    for text in ["ttlb.p75 > 2% since saved", "ttlb.p75>2 %since   saved "] {
        assert_eq!(threshold(text).bound, Bound::Change(Percent(2.0)));
    }
}

#[test]
fn errors_name_the_hint() {
    for (text, expected) in [
        ("", "write METRIC.PERCENTILE > BOUND"),
        ("ttlb > 10%", "write METRIC.PERCENTILE > BOUND"),
        ("ttlb.p75 < 10%", "use > or >="),
        ("ttlb.p75 => 10%", "use > or >="),
        (
            "tltb.p75 > 10%",
            r#"unknown metric "tltb": did you mean "ttlb"?"#,
        ),
        (
            "ttlb.75 > 10%",
            r#""75" is no percentile: use p0.1 to p99.9"#,
        ),
        ("ttlb.p100 > 10%", r#""p100" is no percentile"#),
        ("ttlb.p75 > ten%", r#""ten%" is no percentage"#),
        ("ttlb.p75 > nan%", r#""nan%" is no percentage"#),
        (
            "ttlb.p75 > 10",
            r#"missing unit in "10": did you mean "10%" or "10ms"?"#,
        ),
        ("ttlb.p75 > 10mss", "unknown unit \"mss\""),
        ("ttlb.p75 >", "empty duration"),
        (
            "ttlb.p75 > 2% since yesterday",
            r#"a change is written "2% since saved""#,
        ),
        (
            "ttlb.p75 > 2ms since saved",
            r#"a change is written "2% since saved", with a percentage"#,
        ),
        (
            "ttlb.p75 > 2 since saved",
            r#"a change is written "2% since saved", with a percentage"#,
        ),
        ("ttlb.p75 > x% since saved", r#""x%" is no percentage"#),
    ] {
        let error = text.parse::<Threshold>().unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("threshold {text:?}: ")),
            "{error}"
        );
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn an_increase_is_of_arms_over_the_baseline() {
    let results = measured();
    assert_eq!(
        crossings("handshake.p50 > 40%", &results),
        [
            "handshake.p50 > 40%: SecP256r1MLKEM768/ml-dsa-65 at 0B increases by 49.6 % [49.6, 49.7]",
            "handshake.p50 > 40%: SecP256r1MLKEM768/ml-dsa-65 at 200KiB increases by 49.6 % [49.6, 49.7]",
        ]
    );
    assert_eq!(crossings("handshake.p50 > 60%", &results), [""; 0]);
}

#[test]
fn a_time_is_of_every_arm() {
    let mut results = measured();
    assert_eq!(
        crossings("handshake.p50 > 100ms", &results),
        [
            "handshake.p50 > 100ms: SecP256r1MLKEM768/ml-dsa-65 at 0B is 105.5 ms [105.4, 105.5]",
            "handshake.p50 > 100ms: SecP256r1MLKEM768/ml-dsa-65 at 200KiB is 105.5 ms [105.4, 105.5]",
        ]
    );
    assert_eq!(crossings("handshake.p50 > 1ms", &results).len(), 4);

    // With a single cell there is no need to tell which.
    results.0.cells.truncate(1);
    results.1.truncate(1);
    assert_eq!(
        crossings("handshake.p50 >= 1ms", &results),
        ["handshake.p50 >= 1ms: secp256r1/rsa-2048 is 70.5 ms [70.5, 70.5]"]
    );
}

#[test]
fn the_bound_itself_is_crossed_only_by_at_least() {
    let mut results = measured();
    for sample in &mut results.1 {
        for row in &mut sample.rows {
            row.times.connect = Some(Duration::from_millis(35));
        }
    }
    assert_eq!(crossings("connect.p50 > 35ms", &results).len(), 0);
    assert_eq!(crossings("connect.p50 >= 35ms", &results).len(), 4);
    assert_eq!(crossings("connect.p50 > 0%", &results).len(), 0);
    assert_eq!(crossings("connect.p50 >= 0%", &results).len(), 2);
}

#[test]
fn failures_are_infinitely_late() {
    let mut results = measured();
    for row in &mut results.1[3].rows[..9] {
        row.outcome = Outcome::TimedOut;
    }
    let at = "SecP256r1MLKEM768/ml-dsa-65 at 200KiB is absent: 9 of 20 connections failed";
    assert_eq!(
        crossings("ttlb.p90 > 10s", &results),
        [format!("ttlb.p90 > 10s: {at}")]
    );
    assert_eq!(
        crossings("ttlb.p90 > 1000%", &results),
        [format!("ttlb.p90 > 1000%: {at}")]
    );
    // Without data there is no first byte, and nothing that could be late.
    assert_eq!(crossings("ttfb.p50 > 10s", &results), [""; 0]);
}

#[test]
fn a_percentile_that_was_not_asked_for_is_told() {
    let crossings = crossings("ttlb.p99 > 10s", &measured());
    assert_eq!(crossings.len(), 4);
    assert!(
        crossings[0].ends_with("secp256r1/rsa-2048 at 0B was not summarised"),
        "{}",
        crossings[0]
    );
}

/// What a threshold says of a change of the first arm's TTLB, which the second does not have.
fn verdict(text: &str, change: Measured<Percent>) -> Verdict {
    let results = measured();
    let mut summary = Summary::new(&results.0, &results.1, &Percentile::USUAL);
    let arm = &mut summary.cells[0].arms[0];
    arm.metric_mut(Metric::Ttlb)
        .changes
        .insert(Percentile::MEDIAN, change);
    threshold(text).verdict(arm).unwrap()
}

#[test]
fn a_change_fails_only_if_noise_can_not_explain_it() {
    let change = |value, low: f64, high: f64| {
        Ok(Estimate {
            value: Percent(value),
            interval: Interval {
                low: low.is_finite().then_some(Percent(low)),
                high: high.is_finite().then_some(Percent(high)),
            },
        })
    };
    let kept = |text: &str| Verdict::Kept(format!("changed by {text}"));
    let crossed = |text: &str| Verdict::Crossed(format!("changed by {text}"));
    let unclear = |text: &str| Verdict::Unclear(format!("changed by {text}"));
    for (bound, change, expected) in [
        (">2%", change(1.0, 0.5, 1.5), kept("1.0 % [0.5, 1.5]")),
        (">2%", change(1.0, -1.5, 1.5), kept("1.0 % [-1.5, 1.5]")),
        (">2%", change(-9.0, -9.5, -8.0), kept("-9.0 % [-9.5, -8.0]")),
        (">2%", change(1.0, -1.0, 3.0), unclear("1.0 % [-1.0, 3.0]")),
        (">2%", change(3.0, -1.0, 7.0), unclear("3.0 % [-1.0, 7.0]")),
        (">2%", change(3.0, 0.0, 7.0), unclear("3.0 % [0.0, 7.0]")),
        (">2%", change(3.0, 0.5, 5.5), crossed("3.0 % [0.5, 5.5]")),
        (">2%", change(3.0, 2.5, 3.5), crossed("3.0 % [2.5, 3.5]")),
        (
            ">2%",
            change(3.0, 0.5, f64::INFINITY),
            crossed("3.0 % [0.5, ∞]"),
        ),
        (
            ">2%",
            change(3.0, f64::NEG_INFINITY, 9.0),
            unclear("3.0 % [-∞, 9.0]"),
        ),
        (
            ">2%",
            change(1.0, 0.5, f64::INFINITY),
            unclear("1.0 % [0.5, ∞]"),
        ),
        // Without noise, the bound itself is where the comparison says.
        (">2%", change(2.0, 2.0, 2.0), kept("2.0 % [2.0, 2.0]")),
        (">=2%", change(2.0, 2.0, 2.0), crossed("2.0 % [2.0, 2.0]")),
        (">0%", change(0.0, 0.0, 0.0), kept("0.0 % [0.0, 0.0]")),
        (">0%", change(0.5, -0.5, 1.5), unclear("0.5 % [-0.5, 1.5]")),
        // An improvement is asked for.
        (
            ">-5%",
            change(-1.0, -2.0, 0.5),
            crossed("-1.0 % [-2.0, 0.5]"),
        ),
        (
            ">-5%",
            change(-4.0, -9.0, 0.5),
            unclear("-4.0 % [-9.0, 0.5]"),
        ),
        (
            ">-5%",
            change(-7.0, -8.0, -6.0),
            kept("-7.0 % [-8.0, -6.0]"),
        ),
        (
            ">2%",
            Err(Absent::Failures {
                failed: 9,
                connections: 20,
            }),
            Verdict::Crossed("is absent: 9 of 20 connections failed".to_owned()),
        ),
        (
            ">2%",
            Err(Absent::NoSaved),
            Verdict::Unclear("has no change: the saved results have none".to_owned()),
        ),
        (">2%", Err(Absent::NoData), Verdict::Idle(Absent::NoData)),
    ] {
        let text = format!("ttlb.p50 {bound} since saved");
        assert_eq!(verdict(&text, change), expected, "{text}: {change:?}");
    }
}

/// One connection says nothing of an increase, whatever number it has.
#[test]
fn an_increase_of_too_few_connections_crosses_nothing() {
    let mut results = measured();
    for sample in &mut results.1 {
        sample.rows.truncate(1);
    }
    let summary = Summary::new(&results.0, &results.1, &Percentile::USUAL);
    let threshold = threshold("handshake.p50 > 10%");
    assert_eq!(threshold.crossings(&summary), [""; 0]);
    let doubts = threshold.doubts(&summary);
    assert_eq!(doubts.len(), 2, "{doubts:?}");
    assert!(doubts[0].ends_with("% [too few]"), "{doubts:?}");
}

#[test]
fn a_change_is_of_every_arm() {
    let results = measured();
    let mut summary = Summary::new(&results.0, &results.1, &Percentile::USUAL);
    let change = |value: f64| {
        let end = |by: f64| Some(Percent(value + by));
        Ok(Estimate {
            value: Percent(value),
            interval: Interval {
                low: end(-1.0),
                high: end(1.0),
            },
        })
    };
    for arm in summary.cells.iter_mut().flat_map(|cell| &mut cell.arms) {
        let value = if arm.role == Role::Baseline { 3.0 } else { 0.5 };
        arm.metric_mut(Metric::Ttlb)
            .changes
            .insert(Percentile::MEDIAN, change(value));
    }
    let threshold = threshold("ttlb.p50 > 1% since saved");
    let line = |arm, cell, change| format!("{threshold}: {arm} at {cell} changed by {change}");
    assert_eq!(
        threshold.crossings(&summary),
        ["0B", "200KiB"].map(|cell| line(CLASSICAL, cell, "3.0 % [2.0, 4.0]"))
    );
    assert_eq!(
        threshold.doubts(&summary),
        ["0B", "200KiB"].map(|cell| line(HYBRID, cell, "0.5 % [-0.5, 1.5]"))
    );
}

proptest! {
    #[test]
    fn what_is_written_is_what_is_read(
        metric in prop::sample::select(&Metric::ALL[..]),
        percentile in 1..=99_u8,
        comparison in prop::sample::select(vec![Comparison::Above, Comparison::AtLeast]),
        bound in prop_oneof![
            (-1e6..1e6).prop_map(|percent| Bound::Increase(Percent(percent))),
            any::<u64>().prop_map(|nanos| Bound::Time(Duration::from_nanos(nanos))),
            (-1e6..1e6).prop_map(|percent| Bound::Change(Percent(percent))),
        ],
    ) {
        let percentile = Percentile::new(percentile).unwrap();
        let threshold = Threshold { metric, percentile, comparison, bound };
        prop_assert_eq!(threshold.to_string().parse(), Ok(threshold));
    }

    #[test]
    fn any_text_is_a_threshold_or_one_line(text in "\\PC*|ttlb.p[0-9]{1,3} ?[<>=]{1,2} ?[0-9a-z.%-]{0,6}( since( saved)?)?") {
        if let Err(error) = text.parse::<Threshold>() {
            prop_assert!(!error.to_string().contains('\n'), "{}", error);
        }
    }
}
