//! Rows of dots, each row with its name: for more series than there are colours.

use super::lines::Point;
use super::scale::Scale;
use super::{BOTTOM, Ink, Panel, Svg, TOP, text_width};

/// A panel of rows.
pub(in super::super) struct Dots<'a> {
    pub(in super::super) title: String,
    pub(in super::super) x_title: &'a str,
    /// From top to bottom: what a row is of, and its dots.
    pub(in super::super) rows: Vec<(String, Vec<Dot>)>,
    /// Numbers that the axis reaches besides those of the dots.
    pub(in super::super) reach: Vec<f64>,
}

/// What stands at one place of a row, each at a height of its own.
pub(in super::super) struct Dot {
    pub(in super::super) ink: Ink,
    /// From dark to light; `None` is a hole.
    pub(in super::super) points: Vec<Option<Point>>,
}

/// What the axis has, in pixels.
const AXIS: f64 = 240.0;
/// Between the dots of a row, and between rows, in pixels.
const APART: f64 = 7.0;
const GAP: f64 = 8.0;
/// What the last number of the axis needs.
const RIGHT: f64 = 18.0;

impl Dots<'_> {
    pub(in super::super) fn panel(&self) -> Panel {
        let names = self.rows.iter().map(|(name, _)| text_width(name));
        let left = names.fold(0.0, f64::max) + 12.0;
        let right = left + AXIS;
        let heights = self.rows.iter().map(|(_, dots)| height(dots));
        let bottom = TOP + heights.sum::<f64>();
        let dots = self.rows.iter().flat_map(|(_, dots)| dots);
        let points = dots.flat_map(|dot| dot.points.iter().flatten());
        let ends = points.flat_map(|point| {
            let (low, high) = point.interval.unwrap_or_default();
            [Some(point.value), low, high]
        });
        let ends = ends.flatten().chain(self.reach.iter().copied());
        let x = Scale::from_zero(ends, left, right);

        let mut svg = Svg::fragment();
        svg.text("title", 8.0, TOP - 10.0, &self.title);
        for (place, text) in x.ticks() {
            svg.line("grid", [place, TOP], [place, bottom]);
            svg.text("middle", place, bottom + 15.0, &text);
        }
        svg.line("zero", [x.place(0.0), TOP], [x.place(0.0), bottom]);
        svg.text(
            "middle dim",
            (left + right) / 2.0,
            bottom + 31.0,
            self.x_title,
        );
        let mut top = TOP;
        for (name, dots) in &self.rows {
            let middle = top + height(dots) / 2.0;
            svg.text("end", left - 6.0, middle + 4.0, name);
            svg.line("grid", [left, top], [right, top]);
            for (place, dot) in dots.iter().enumerate() {
                let y = middle + APART * (place as f64 - (dots.len() as f64 - 1.0) / 2.0);
                for (nth, point) in dot.points.iter().enumerate() {
                    let Some(point) = point else { continue };
                    if let Some((low, high)) = point.interval {
                        let end = |end: Option<f64>, open| end.map_or(open, |end| x.place(end));
                        svg.line("whisker", [end(low, left), y], [end(high, right), y]);
                    }
                    let class = format!("dot fill c{} p{}", dot.ink.colour, nth.min(2));
                    svg.ring(&class, [x.place(point.value), y], 3.0);
                }
            }
            if dots
                .iter()
                .all(|dot| dot.points.iter().all(Option::is_none))
            {
                svg.text("dim", left + 6.0, middle + 4.0, "?");
            }
            top += height(dots);
        }
        Panel::new(&self.title, [right + RIGHT, bottom + BOTTOM], svg)
    }
}

fn height(dots: &[Dot]) -> f64 {
    APART * dots.len().max(1) as f64 + GAP
}
