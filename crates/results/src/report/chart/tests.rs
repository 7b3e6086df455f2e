#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::scale::{Growth, Scale};
use super::*;

fn texts(scale: Scale) -> Vec<String> {
    scale.ticks().into_iter().map(|(_, text)| text).collect()
}

#[test]
fn axes_of_bars_begin_at_zero_and_end_at_round_numbers() {
    let scale = Scale::from_zero([71.9, 107.6].into_iter(), 200.0, 0.0);
    assert_eq!(texts(scale), ["0", "20", "40", "60", "80", "100", "120"]);
    assert_eq!(scale.place(0.0), 200.0);
    let scale = Scale::from_zero([-8.0, 14.0].into_iter(), 200.0, 0.0);
    assert_eq!(texts(scale), ["-10", "-5", "0", "5", "10", "15"]);
    let scale = Scale::from_zero(std::iter::empty(), 200.0, 0.0);
    assert_eq!(texts(scale), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
}

#[test]
fn long_tails_are_on_a_logarithmic_axis() {
    let scale = Scale::around([70.0, 9000.0].into_iter(), Growth::Logarithmic, 0.0, 100.0);
    assert_eq!(texts(scale), ["100", "1000", "10000"]);
}

#[test]
fn a_hole_parts_a_line() {
    let point = |value| {
        Some(Point {
            value,
            interval: Some((Some(value - 1.0), None)),
        })
    };
    let lines = Lines {
        title: "loss 1%".to_owned(),
        x_title: "data, KiB",
        y_title: "increase, %",
        x: [0.0, 50.0, 100.0, 200.0, 300.0]
            .map(|x| (x.to_string(), Some(x)))
            .to_vec(),
        lines: vec![Line {
            ink: Ink::new(0, Stroke::Solid),
            label: "p50".to_owned(),
            points: vec![point(30.0), point(20.0), None, point(9.0), point(8.0)],
        }],
        marks: Vec::new(),
        reach: Vec::new(),
    };
    let body = lines.panel().body;
    assert_eq!(body.matches("class=\"line c0 s0\"").count(), 2);
    assert_eq!(body.matches("class=\"band fill c0\"").count(), 2);
    assert_eq!(body.matches("<circle").count(), 4);
}

#[test]
fn bars_that_were_not_measured_have_a_question_mark() {
    let bar = |value: Option<f64>| Bar {
        ink: Ink::new(0, Stroke::Solid),
        parts: vec![value.map(|value| Point {
            value,
            interval: None,
        })],
    };
    let bars = Bars {
        title: String::new(),
        x_title: "",
        y_title: "ms",
        groups: vec![("p50".to_owned(), vec![bar(Some(70.0)), bar(None)])],
        marks: Vec::new(),
        reach: Vec::new(),
    };
    let body = bars.panel().body;
    assert_eq!(body.matches("class=\"fill").count(), 1);
    assert_eq!(body.matches(">?<").count(), 1);
}

#[test]
fn rows_of_dots_are_as_high_as_they_need_and_say_what_is_missing() {
    let dot = |value: Option<f64>| Dot {
        ink: Ink::new(0, Stroke::Solid),
        points: vec![value.map(|value| Point {
            value,
            interval: Some((None, Some(value))),
        })],
    };
    let panel = |rows: &[(&str, &[Option<f64>])]| {
        let row = |(name, values): &(&str, &[Option<f64>])| {
            (name.to_string(), values.iter().copied().map(dot).collect())
        };
        Dots {
            title: "loss 0%".to_owned(),
            x_title: "ms",
            rows: rows.iter().map(row).collect(),
            reach: Vec::new(),
        }
        .panel()
    };
    let one = panel(&[("whole", &[Some(105.0)])]);
    let many = panel(&[
        ("whole", &[Some(105.0), Some(105.0)]),
        ("without an intermediate", &[Some(70.0), None]),
        ("nothing", &[None, None]),
    ]);
    assert_eq!(many.body.matches("<circle").count(), 3);
    assert_eq!(many.body.matches("class=\"whisker\"").count(), 3);
    assert_eq!(many.body.matches(">?<").count(), 1);
    assert!(many.size[0] > one.size[0], "longer names have more room");
    assert!(many.size[1] > 2.0 * (one.size[1] - TOP - BOTTOM) + TOP + BOTTOM);
    // Dots of one value do not hide each other.
    let heights: Vec<&str> = (many.body.split("cy=\"").skip(1))
        .filter_map(|rest| rest.split('"').next())
        .collect();
    assert_ne!(heights[0], heights[1]);
}

#[test]
fn a_key_breaks_into_lines() {
    let entry = |name: &str| KeyEntry {
        name: name.to_owned(),
        ink: Ink::new(0, Stroke::Solid),
    };
    let key = ["one".repeat(9), "two".repeat(9), "three".repeat(9)].map(|name| entry(&name));
    let lines: Vec<_> = key_places(&key, 340.0)
        .iter()
        .map(|(_, line, _)| *line)
        .collect();
    assert_eq!(lines, [0, 1, 2]);
}
