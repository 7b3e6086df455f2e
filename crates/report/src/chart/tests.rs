#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

use std::collections::BTreeSet;

use super::lines::Intervals;
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

/// A room as a page has it.
fn room() -> Room {
    Room {
        width: 400.0,
        height: 240.0,
        left: 44.0,
        first_left: 44.0,
        is_told: true,
        labels: 0.0,
    }
}

fn point(value: f64, interval: Option<(Option<f64>, Option<f64>)>) -> Option<Point> {
    Some(Point { value, interval })
}

fn lines(points: Vec<Option<Point>>, shape: Shape) -> Lines {
    Lines {
        x_title: "data, KiB",
        y_title: "increase, %",
        x: [0.0, 50.0, 100.0, 200.0, 300.0]
            .map(|x| (x.to_string(), Some(x)))
            .to_vec(),
        lines: vec![Line {
            ink: Ink::nth(0),
            shape,
            label: "pq".to_owned(),
            points,
            theirs: vec![Some(30.0), None],
        }],
        intervals: Intervals::Bands,
        marks: Vec::new(),
        reach: Vec::new(),
    }
}

/// How many lines or areas of a class are drawn, which may be in one path.
fn count(svg: &str, class: &str) -> usize {
    let of_class = svg
        .lines()
        .filter(|line| line.starts_with(&format!("<path class=\"{class}")));
    of_class.map(|line| line.matches('M').count()).sum()
}

#[test]
fn a_hole_parts_a_line_and_its_band() {
    let point = |value| point(value, Some((Some(value - 1.0), Some(value + 1.0))));
    let points = || vec![point(30.0), point(20.0), None, point(9.0), point(8.0)];
    let drawn = || lines(points(), Shape::Step).draw(&room()).body();
    assert_eq!(count(&drawn(), "line c0 s0"), 2);
    assert_eq!(count(&drawn(), "band fill c0"), 2);
    assert_eq!(count(&drawn(), "mark fill c0"), 4);
    assert_eq!(count(&drawn(), "theirs"), 1);
}

#[test]
fn several_lines_have_whiskers_beside_each_other() {
    let points = || {
        vec![
            point(30.0, Some((Some(29.0), Some(31.0)))),
            point(20.0, None),
        ]
    };
    let mut drawing = lines(points(), Shape::Step);
    drawing.intervals = Intervals::Whiskers;
    let one = drawing.draw(&room()).body();
    assert_eq!(
        [count(&one, "band"), count(&one, "line whisker c0")],
        [0, 1]
    );
    drawing.lines.extend(lines(points(), Shape::Step).lines);
    let both = drawing.draw(&room()).body();
    let whiskers = both.lines().filter(|line| line.contains("whisker"));
    let places = whiskers.filter_map(|line| line.split("d=\"M").nth(1)?.split(' ').next());
    let places: BTreeSet<&str> = places.collect();
    assert_eq!(places.len(), 2, "{both}");
}

#[test]
fn no_band_reaches_to_infinity() {
    let points = vec![
        point(30.0, Some((Some(29.0), None))),
        point(20.0, Some((None, Some(21.0)))),
        point(10.0, None),
        point(9.0, Some((Some(8.0), Some(f64::MAX)))),
        point(9.0, Some((Some(8.0), Some(10.0)))),
    ];
    let body = lines(points, Shape::Step).draw(&room()).body();
    assert_eq!(count(&body, "band"), 1);
    let numbers = body.split(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-'));
    let largest = numbers.filter_map(|number| number.parse::<f64>().ok());
    assert!(largest.fold(0.0, f64::max) <= 400.0);
}

#[test]
fn measured_lines_step_and_formulas_slope() {
    let points = || vec![point(30.0, None), point(20.0, None)];
    let corners = |shape| {
        let body = lines(points(), shape).draw(&room()).body();
        let line = body.lines().find(|line| line.contains("class=\"line c0"));
        line.unwrap()
            .split("d=\"")
            .nth(1)
            .unwrap()
            .matches(['l', 'h', 'v'])
            .count()
            + 1
    };
    assert_eq!(corners(Shape::Slope), 2);
    assert_eq!(corners(Shape::Step), 4);
}

#[test]
fn places_too_near_to_each_other_are_evenly_apart() {
    let drawn = |x: [f64; 3]| {
        let mut lines = lines(
            vec![point(3.0, None), point(2.0, None), point(1.0, None)],
            Shape::Slope,
        );
        lines.x = x.map(|x| (x.to_string(), Some(x))).to_vec();
        let body = lines.draw(&room()).body();
        let line = body
            .lines()
            .find(|line| line.contains("class=\"line c0"))
            .unwrap()
            .to_owned();
        let steps = line.split("d=\"").nth(1).unwrap().split('l').skip(1);
        let steps: Vec<f64> = steps
            .filter_map(|step| step.split(' ').next()?.parse().ok())
            .collect();
        (steps[0], steps[1])
    };
    let (first, second) = drawn([0.0, 100.0, 300.0]);
    assert!((second / first - 2.0).abs() < 0.01, "{first} {second}");
    let (first, second) = drawn([0.0, 10.0, 1024.0]);
    assert!((second - first).abs() < 0.2, "{first} {second}");
}

fn bars(values: &[Option<f64>]) -> Bars {
    let bar = |value: &Option<f64>| Bar {
        colour: Colour::Nth(0),
        parts: vec![value.map(|value| Point {
            value,
            interval: None,
        })],
        theirs: vec![Some(71.0)],
    };
    Bars {
        x_title: "",
        y_title: "ms",
        groups: vec![("p50".to_owned(), values.iter().map(bar).collect())],
        marks: Vec::new(),
        reach: Vec::new(),
    }
}

#[test]
fn bars_that_were_not_measured_have_a_question_mark() {
    let body = bars(&[Some(70.0), None]).draw(&room()).body();
    assert_eq!(count(&body, "fill"), 1);
    assert_eq!(body.matches(">?<").count(), 1);
    assert_eq!(count(&body, "theirs"), 2);
}

#[test]
fn a_bar_of_nothing_is_seen() {
    let body = bars(&[Some(70.0), Some(0.0)]).draw(&room()).body();
    let bars = body.lines().filter(|line| line.contains("class=\"fill"));
    let heights: Vec<f64> = (bars.flat_map(|line| line.split('v').skip(1)))
        .filter_map(|rest| rest.split('h').next()?.parse().ok())
        .collect();
    assert_eq!(heights.len(), 2);
    assert_eq!(heights[1], 2.0);
}

#[test]
fn rows_of_dots_are_as_high_as_they_need_and_say_what_is_missing() {
    let dot = |value: Option<f64>| Dot {
        colour: Colour::Nth(0),
        points: vec![value.map(|value| Point {
            value,
            interval: Some((Some(value - 1.0), Some(value + 1.0))),
        })],
        theirs: value.map(|value| value + 5.0).into_iter().collect(),
    };
    let rows = |rows: &[(&str, &[Option<f64>])]| {
        let row = |(name, values): &(&str, &[Option<f64>])| {
            (name.to_string(), values.iter().copied().map(dot).collect())
        };
        Dots {
            x_title: "ms",
            rows: rows.iter().map(row).collect(),
            reach: Vec::new(),
        }
    };
    let one = rows(&[("whole", &[Some(105.0)])]);
    let many = rows(&[
        ("whole", &[Some(105.0), Some(105.0)]),
        ("without an intermediate", &[Some(70.0), None]),
        ("nothing", &[None, None]),
    ]);
    let body = many.draw(&room()).body();
    assert_eq!(count(&body, "mark"), 3);
    assert_eq!(count(&body, "whisker"), 3);
    assert_eq!(count(&body, "theirs"), 3);
    assert_eq!(body.matches(">?<").count(), 1);
    assert!(
        many.left(900.0) > one.left(900.0),
        "longer names have more room"
    );
    assert!(
        many.left(328.0) < many.left(900.0),
        "which a phone has not: they stand above"
    );
    assert!(many.height(&room()) > 2.0 * one.height(&room()));
}

fn chart(panels: usize, series: usize) -> Chart {
    let panel = |nth: usize| Panel {
        title: format!("loss {nth}%"),
        drawing: Box::new(lines(
            vec![point(30.0, None), point(20.0, None)],
            Shape::Step,
        )),
    };
    let entry = |nth: usize| KeyEntry {
        name: format!("arm {nth}"),
        ink: Ink::nth(nth),
    };
    Chart {
        title: "Increase".to_owned(),
        panels: (0..panels).map(panel).collect(),
        key: (0..series).map(entry).collect(),
        axes: Axes::Shared,
        has_theirs: false,
    }
}

#[test]
fn a_chart_is_drawn_for_pages_and_for_phones() {
    let html = chart(3, 2).html().into_string();
    assert!(html.contains("class=\"wide\"") && html.contains("class=\"narrow\""));
    assert!(html.contains("width=\"960\"") && html.contains("width=\"328\""));
    // Panels share the first one's ticks: on a page there are three beside each other, on a phone two.
    let ticks = html.matches(">30</text>").count();
    assert_eq!(ticks, 1 + 2, "{html}");
}

#[test]
fn rows_of_dots_are_at_one_height_in_all_panels() {
    let panel = |_| Panel {
        title: "loss".to_owned(),
        drawing: Box::new(Dots {
            x_title: "ms",
            rows: ["a name that has no room beside its row", "another"]
                .map(|name| {
                    (
                        name.to_owned(),
                        vec![Dot {
                            colour: Colour::Nth(0),
                            points: vec![point(3.0, None)],
                            theirs: Vec::new(),
                        }],
                    )
                })
                .into_iter()
                .collect(),
            reach: Vec::new(),
        }),
    };
    let chart = Chart {
        title: "Times".to_owned(),
        panels: (0..3).map(panel).collect(),
        key: Vec::new(),
        axes: Axes::Shared,
        has_theirs: false,
    };
    let (body, _) = chart.laid_out(960.0);
    let marks = body.lines().filter(|line| line.contains("class=\"mark"));
    let places = marks.flat_map(|line| line.split('M').skip(1));
    let heights: Vec<&str> = places
        .filter_map(|place| place.split([' ', 'a']).nth(1))
        .collect();
    assert_eq!(heights.len(), 6);
    assert_eq!(heights[..2], heights[2..4]);
    assert_eq!(heights[..2], heights[4..]);
}

#[test]
fn one_panel_has_labels_and_several_have_a_key() {
    let names = |panels: usize| {
        let (body, _) = chart(panels, 1).laid_out(960.0);
        (
            body.matches(">arm 0<").count(),
            body.matches(">pq<").count(),
        )
    };
    assert_eq!(names(1), (0, 1));
    assert_eq!(names(2), (1, 0));
}

#[test]
fn a_slide_is_16_by_9_and_says_what_it_shows() {
    let svg = chart(1, 1).slide("A < B", "35 ms");
    assert!(svg.contains("viewBox=\"0 0 1280 720\""));
    assert!(svg.contains(">A &lt; B<") && svg.contains(">35 ms<"));
    assert!(!svg.contains("var("));
}

#[test]
fn more_series_than_colours_have_other_forms_and_strokes() {
    let looks: Vec<_> = (0..20)
        .map(|nth| (Ink::nth(nth).class(), Ink::nth(nth).colour.form()))
        .collect();
    for (index, one) in looks.iter().enumerate() {
        assert!(!looks[index + 1..].contains(one), "{one:?}");
    }
}

#[test]
fn texts_are_broken_into_lines() {
    assert_eq!(wrapped("one two three", 45.0), ["one", "two", "three"]);
    assert_eq!(wrapped("one two three", 500.0), ["one two three"]);
    assert_eq!(wrapped("  ", 50.0), Vec::<String>::new());
    let long = wrapped(&"x".repeat(100), 80.0);
    assert_eq!(long.concat(), "x".repeat(100));
    assert!(long.iter().all(|line| text_width(line) <= 80.0));
    // Nothing fits: a letter each.
    assert_eq!(wrapped("ab", 1.0), ["a", "b"]);
}
