//! Lines over a number or over names, with the bands of their intervals.

use super::scale::{Growth, Scale};
use super::{
    BOTTOM, Frame, HEIGHT, Ink, LEFT, Mark, Panel, RIGHT, TOP, WIDTH, draw_levels, text_width,
};

/// A panel of lines.
pub(in super::super) struct Lines<'a> {
    pub(in super::super) title: String,
    pub(in super::super) x_title: &'a str,
    pub(in super::super) y_title: &'a str,
    /// What stands along the horizontal axis: its text, and its number if all have one.
    pub(in super::super) x: Vec<(String, Option<f64>)>,
    pub(in super::super) lines: Vec<Line>,
    pub(in super::super) marks: Vec<Mark>,
    /// Numbers that the vertical axis reaches besides those of the lines.
    pub(in super::super) reach: Vec<f64>,
}

/// One series.
pub(in super::super) struct Line {
    pub(in super::super) ink: Ink,
    /// What stands at its end.
    pub(in super::super) label: String,
    /// One for each place on the horizontal axis; `None` is a hole.
    pub(in super::super) points: Vec<Option<Point>>,
}

/// A number with its interval; an end that is absent is open.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in super::super) struct Point {
    pub(in super::super) value: f64,
    pub(in super::super) interval: Option<(Option<f64>, Option<f64>)>,
}

impl Lines<'_> {
    pub(in super::super) fn panel(&self) -> Panel {
        let bottom = HEIGHT - BOTTOM;
        let points = self
            .lines
            .iter()
            .flat_map(|line| line.points.iter().flatten());
        let values = points.map(|point| point.value);
        let y = Scale::from_zero(values.chain(self.reach.iter().copied()), bottom, TOP);
        let labels = self.labels(&y);
        let widths = labels.iter().map(|(label, _)| text_width(label));
        let right = WIDTH - RIGHT - widths.fold(0.0, f64::max);
        let x = self.places(right);
        let frame = Frame {
            title: &self.title,
            x: self.x_title,
            y: self.y_title,
        };
        let ticks: Vec<_> = (x.iter().copied())
            .zip(self.x.iter().map(|(text, _)| text.clone()))
            .collect();
        let mut svg = frame.draw(&ticks, &y.ticks());
        draw_levels(&mut svg, &self.marks, &y, right);
        let end = |end: Option<f64>, open: f64| end.map_or(open, |value| y.place(value));
        for line in &self.lines {
            let colour = format!("fill c{}", line.ink.colour);
            for run in runs(&line.points) {
                let band = |(index, point): &(usize, Point)| {
                    let (low, high) = point.interval?;
                    let x = *x.get(*index)?;
                    Some(([x, end(low, bottom)], [x, end(high, TOP)]))
                };
                let band: Vec<_> = run.iter().filter_map(band).collect();
                let around = (band.iter().map(|(_, high)| *high))
                    .chain(band.iter().rev().map(|(low, _)| *low));
                svg.area(&format!("band {colour}"), around);
                let at =
                    |(index, point): &(usize, Point)| Some([*x.get(*index)?, y.place(point.value)]);
                svg.polyline(
                    &format!("line {}", line.ink.class()),
                    run.iter().filter_map(at),
                );
                for [x, y] in run.iter().filter_map(at) {
                    svg.ring(&format!("dot {colour}"), [x, y], 2.4);
                }
            }
        }
        for (label, place) in labels {
            svg.text("", right + 6.0, place + 4.0, &label);
        }
        Panel::usual(&self.title, svg)
    }

    /// Where the places on the horizontal axis are.
    fn places(&self, right: f64) -> Vec<f64> {
        let numbers: Option<Vec<f64>> = self.x.iter().map(|(_, number)| *number).collect();
        let (first, last) = (LEFT + 14.0, right - 8.0);
        match numbers {
            Some(numbers) if numbers.len() > 1 => {
                let least = numbers.iter().copied().fold(f64::INFINITY, f64::min);
                let most = numbers.iter().copied().fold(0.0, f64::max);
                let growth = match least > 0.0 && most / least >= 30.0 {
                    true => Growth::Logarithmic,
                    false => Growth::Linear,
                };
                let scale = Scale::around(numbers.iter().copied(), growth, first, last);
                numbers.iter().map(|number| scale.place(*number)).collect()
            }
            _ => {
                let step = (last - first) / self.x.len().max(1) as f64;
                (0..self.x.len())
                    .map(|index| first + step * (index as f64 + 0.5))
                    .collect()
            }
        }
    }

    /// What stands at the ends of lines, moved apart where they would cover each other.
    fn labels(&self, y: &Scale) -> Vec<(String, f64)> {
        const APART: f64 = 12.0;
        let last = |line: &Line| line.points.iter().flatten().last().copied();
        let mut labels: Vec<(String, f64)> = (self.lines.iter())
            .filter_map(|line| Some((line.label.clone(), y.place(last(line)?.value))))
            .collect();
        labels.sort_by(|(_, one), (_, other)| one.total_cmp(other));
        let mut merged: Vec<(String, f64)> = Vec::new();
        for (label, place) in labels {
            match merged.last_mut() {
                // Those that are at one place are one.
                Some((text, other)) if (place - *other).abs() < 1.0 && *text != label => {
                    text.push(' ');
                    text.push_str(&label);
                }
                Some((_, other)) => {
                    let place = place.max(*other + APART);
                    merged.push((label, place));
                }
                None => merged.push((label, place)),
            }
        }
        // The last ones may have been pushed out at the bottom.
        let mut lowest = HEIGHT - BOTTOM;
        for (_, place) in merged.iter_mut().rev() {
            *place = place.min(lowest);
            lowest = *place - APART;
        }
        merged
    }
}

/// Points without a hole between them, with their places.
fn runs(points: &[Option<Point>]) -> Vec<Vec<(usize, Point)>> {
    let mut runs: Vec<Vec<(usize, Point)>> = vec![Vec::new()];
    for (index, point) in points.iter().enumerate() {
        match (point, runs.last_mut()) {
            (Some(point), Some(run)) => run.push((index, *point)),
            _ => runs.push(Vec::new()),
        }
    }
    runs.retain(|run| !run.is_empty());
    runs
}
