//! Times over sizes, which step at edges.

use super::axes::{BOTTOM, LEFT, Room, TOP, Texts, Ticks, along, text_width};
use super::scale::{Growth, Scale};
use super::{Drawing, Ink, Svg};
use crate::svg::Form;

/// A panel of lines over sizes.
pub(in super::super) struct Steps {
    pub(in super::super) x_title: &'static str,
    pub(in super::super) y_title: &'static str,
    pub(in super::super) lines: Vec<StepLine>,
    /// Sizes that readers know, with their names.
    pub(in super::super) marks: Vec<(f64, String)>,
    /// Numbers that the vertical axis reaches besides those of the lines.
    pub(in super::super) reach: Vec<f64>,
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

impl Drawing for Steps {
    fn titles(&self) -> [&str; 2] {
        [self.x_title, self.y_title]
    }

    fn left(&self, _: f64) -> f64 {
        LEFT
    }

    fn draw(&self, room: &Room) -> Svg {
        let (right, bottom) = (room.right(), room.height - BOTTOM);
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let all = points().filter_map(|(_, time)| *time);
        let y = Scale::from_zero(all.chain(self.reach.iter().copied()), bottom, TOP);
        let sizes = points().map(|(size, _)| *size);
        let x = Scale::around(sizes, Growth::Linear, room.left, right);
        let mut svg = room.frame(&y, bottom);
        along(&mut svg, &x.ticks(), Ticks::Level, Texts::Numbers, bottom);
        let mut free = 0.0;
        for (at, name) in self.marks.iter().filter(|(at, _)| x.holds(*at)) {
            let place = x.place(*at);
            let end = place + 4.0 + text_width(name);
            svg.line("level", [place, TOP], [place, bottom]);
            svg.form("theirs", Form::Diamond, [place, bottom], 5.0);
            if place > free && end < right {
                svg.text("mut", place + 4.0, TOP + 11.0, name);
                free = end;
            }
        }
        for line in &self.lines {
            let fill = format!("fill {}", line.ink.colour.class());
            for (low, high) in &line.edges {
                // As wide as it must be to be seen.
                let (low, high) = (x.place(*low), x.place(*high).max(x.place(*low) + 1.0));
                let around = [[low, TOP], [high, TOP], [high, bottom], [low, bottom]];
                svg.area(&format!("band {fill}"), around.into_iter());
            }
            for run in line.points.split(|(_, time)| time.is_none()) {
                let places = run.iter();
                let places =
                    places.filter_map(|(size, time)| Some([x.place(*size), y.place((*time)?)]));
                svg.polyline(&format!("line {}", line.ink.class()), places);
            }
            for at in &line.computed {
                let class = format!("mark {fill}");
                svg.form(&class, line.ink.colour.form(), [x.place(*at), bottom], 4.0);
            }
        }
        svg
    }
}
