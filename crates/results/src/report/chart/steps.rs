//! Times over sizes, which step at edges.

use super::scale::{Growth, Scale};
use super::{BOTTOM, Frame, HEIGHT, Ink, LEFT, Panel, RIGHT, TOP, WIDTH};

/// A panel of lines over sizes.
pub(in super::super) struct Steps<'a> {
    pub(in super::super) title: String,
    pub(in super::super) x_title: &'a str,
    pub(in super::super) y_title: &'a str,
    pub(in super::super) lines: Vec<StepLine>,
    /// Sizes that readers know, with their names.
    pub(in super::super) marks: Vec<(f64, String)>,
}

/// One series.
pub(in super::super) struct StepLine {
    pub(in super::super) ink: Ink,
    /// A size and its time each; a time that is absent is a hole.
    pub(in super::super) points: Vec<(f64, Option<f64>)>,
    /// Between which sizes each of its edges may be.
    pub(in super::super) edges: Vec<(f64, f64)>,
    /// Where arithmetic has edges.
    pub(in super::super) computed: Vec<f64>,
}

impl Steps<'_> {
    pub(in super::super) fn panel(&self) -> Panel {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let y = Scale::from_zero(points().filter_map(|(_, time)| *time), bottom, TOP);
        let x = Scale::around(points().map(|(size, _)| *size), Growth::Linear, LEFT, right);
        let frame = Frame {
            title: &self.title,
            x: self.x_title,
            y: self.y_title,
        };
        let mut svg = frame.draw(&x.ticks(), &y.ticks());
        svg.line("zero", [LEFT, y.place(0.0)], [right, y.place(0.0)]);
        for (at, name) in self.marks.iter().filter(|(at, _)| x.holds(*at)) {
            let place = x.place(*at);
            svg.line("mark", [place, TOP], [place, bottom]);
            svg.text("dim", place + 3.0, bottom - 6.0, name);
        }
        for line in &self.lines {
            let colour = format!("fill c{}", line.ink.colour);
            for (low, high) in &line.edges {
                // As wide as it must be to be seen.
                let (low, high) = (x.place(*low), x.place(*high).max(x.place(*low) + 1.0));
                let around = [[low, TOP], [high, TOP], [high, bottom], [low, bottom]];
                svg.area(&format!("band {colour}"), around.into_iter());
            }
            for run in line.points.split(|(_, time)| time.is_none()) {
                let places = run.iter();
                let places =
                    places.filter_map(|(size, time)| Some([x.place(*size), y.place((*time)?)]));
                svg.polyline(&format!("line {}", line.ink.class()), places);
            }
            for at in &line.computed {
                svg.ring(&format!("dot {colour}"), [x.place(*at), bottom], 2.6);
            }
        }
        Panel::usual(&self.title, svg)
    }
}
