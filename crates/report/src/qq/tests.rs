#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;

fn ticks(times: &[f64]) -> Vec<String> {
    let axis = Axis::over(times.iter().copied()).unwrap();
    axis.ticks().into_iter().map(|(_, text)| text).collect()
}

#[test]
fn ticks_are_round() {
    assert_eq!(ticks(&[70.0, 9000.0]), ["100", "1000", "10000"]);
    assert_eq!(ticks(&[0.08, 2.0]), ["0.1", "0.3", "1"]);
    assert_eq!(ticks(&[100.0, 130.0]), ["100", "110", "120", "130"]);
    assert_eq!(ticks(&[70.0]), ["69.8", "70.0", "70.2"]);
    assert_eq!(ticks(&[1.0, 6.0]), ["1", "2", "5"]);
}

#[test]
fn every_axis_has_ticks() {
    for low in 1..200 {
        for ratio in [1.0, 1.001, 1.02, 1.3, 2.0, 3.0, 5.0, 9.0, 40.0, 1e4] {
            let low = f64::from(low) * 0.37;
            let count = ticks(&[low, low * ratio]).len();
            assert!((3..=9).contains(&count), "{low} x {ratio}: {count}");
        }
    }
}

#[test]
fn the_same_quantiles_are_on_the_diagonal() {
    let axis = Axis::over([10.0, 40.0].into_iter()).unwrap();
    let [low, middle, high] = [10.0, 20.0, 40.0].map(|time| axis.offset(time));
    assert!((middle - SIZE / 2.0).abs() < 1e-9);
    assert!((low + high - SIZE).abs() < 1e-9);
    assert!(low > 0.0);
}

#[test]
fn a_plot_without_times_says_so() {
    let plot = QqPlot {
        title: "a <b>",
        points: Vec::new(),
        marks: Vec::new(),
    };
    let svg = plot.svg();
    assert!(svg.contains("never, in A or in B"), "{svg}");
    assert!(svg.contains("a &lt;b&gt;"), "{svg}");
}

#[test]
fn marks_that_are_near_share_a_label() {
    let mark = |name: &str, at| Mark {
        name: name.to_owned(),
        at: [at, at],
        class: "told",
    };
    let marks = [mark("p50", 10.0), mark("p75", 15.0), mark("p90", 40.0)];
    let names: Vec<_> = labels(&marks, |at| at)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names, ["p50, p75", "p90"]);
}
