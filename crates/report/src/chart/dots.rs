//! Rows of dots, each row with its name: for more series than there are colours.

use super::axes::{BOTTOM, Room, TOP, Texts, Ticks, along, text_width, wrapped};
use super::lines::{Point, reached};
use super::scale::Scale;
use super::{Colour, Drawing, Form, Svg};

/// A panel of rows.
pub(in super::super) struct Dots {
    pub(in super::super) x_title: &'static str,
    /// From top to bottom: what a row is of, and its dots.
    pub(in super::super) rows: Vec<(String, Vec<Dot>)>,
    /// Numbers that the axis reaches besides those of the dots.
    pub(in super::super) reach: Vec<f64>,
}

/// What stands at one place of a row, each at a height of its own.
pub(in super::super) struct Dot {
    pub(in super::super) colour: Colour,
    /// From dark to light; `None` is a hole.
    pub(in super::super) points: Vec<Option<Point>>,
    /// What others have published.
    pub(in super::super) theirs: Vec<f64>,
}

/// Between the dots of a row, and between rows, in pixels.
const APART: f64 = 10.0;
const GAP: f64 = 12.0;
/// A name that stands above its row.
const NAME: f64 = 18.0;
/// Names beside rows have no more than this share of the width.
const SHARE: f64 = 0.32;

impl Dots {
    fn names(&self) -> f64 {
        let names = self.rows.iter().map(|(name, _)| text_width(name));
        names.fold(0.0, f64::max) + 14.0
    }

    /// Whether names stand above rows, here and in the panels beside.
    fn is_above(&self, room: &Room) -> bool {
        room.first_left < self.names()
    }
}

impl Drawing for Dots {
    fn titles(&self) -> [&str; 2] {
        [self.x_title, ""]
    }

    fn left(&self, width: f64) -> f64 {
        if self.names() > SHARE * width {
            8.0
        } else {
            self.names()
        }
    }

    fn least_width(&self) -> f64 {
        280.0
    }

    fn height(&self, room: &Room) -> f64 {
        let name = if self.is_above(room) { NAME } else { 0.0 };
        let rows = self.rows.iter().map(|(_, dots)| height(dots) + name);
        TOP + rows.sum::<f64>() + BOTTOM
    }

    fn draw(&self, room: &Room) -> Svg {
        let (left, right) = (room.left, room.right());
        let is_stacked = self.is_above(room);
        let name_height = if is_stacked { NAME } else { 0.0 };
        let heights = self.rows.iter().map(|(_, dots)| height(dots) + name_height);
        let bottom = TOP + heights.sum::<f64>();
        let dots = self.rows.iter().flat_map(|(_, dots)| dots);
        let points = dots.clone().flat_map(|dot| dot.points.iter().flatten());
        let all = reached(points)
            .into_iter()
            .chain(dots.flat_map(|dot| dot.theirs.iter().copied()))
            .chain(self.reach.iter().copied());
        let x = Scale::from_zero(all, left, right);

        let mut svg = Svg::fragment();
        for (place, _) in x.ticks() {
            svg.line("grid", [place, TOP], [place, bottom]);
        }
        along(&mut svg, &x.ticks(), Ticks::Level, Texts::Numbers, bottom);
        svg.line("zero", [x.place(0.0), TOP], [x.place(0.0), bottom]);
        let mut top = TOP;
        for (name, dots) in &self.rows {
            svg.line("grid", [left, top], [right, top]);
            let middle = top + name_height + height(dots) / 2.0;
            if is_stacked && room.is_told {
                let line = wrapped(name, right - left).into_iter().next();
                svg.text("", left, top + 14.0, &line.unwrap_or_default());
            } else if room.is_told {
                svg.text("end", left - 10.0, middle + 4.5, name);
            }
            for (place, dot) in dots.iter().enumerate() {
                let y = middle + APART * (place as f64 - (dots.len() as f64 - 1.0) / 2.0);
                for (nth, point) in dot.points.iter().enumerate() {
                    let Some(point) = point else { continue };
                    if let Some([low, high]) = point.closed() {
                        svg.line("whisker", [x.place(low), y], [x.place(high), y]);
                    }
                    let class = format!("mark fill {} p{}", dot.colour.class(), nth.min(2));
                    svg.form(&class, dot.colour.form(), [x.place(point.value), y], 4.5);
                }
                for value in &dot.theirs {
                    svg.form("theirs", Form::Diamond, [x.place(*value), y], 5.0);
                }
            }
            let all = || dots.iter().flat_map(|dot| &dot.points);
            if all().all(Option::is_none) {
                svg.text("mut", left + 6.0, middle + 4.0, "?");
            }
            top += height(dots) + name_height;
        }
        svg
    }
}

fn height(dots: &[Dot]) -> f64 {
    APART * dots.len().max(1) as f64 + GAP
}
