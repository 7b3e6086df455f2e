//! Groups of bars, from zero.

use super::axes::{BOTTOM, LEFT, Room, TOP, Texts, along, stand, text_width};
use super::lines::{Point, reached};
use super::scale::Scale;
use super::{Colour, Drawing, Mark, Svg};
use crate::svg::Form;

/// A panel of bars.
pub(in super::super) struct Bars {
    pub(in super::super) x_title: &'static str,
    pub(in super::super) y_title: &'static str,
    /// The groups along the horizontal axis: a name, and a bar for each series.
    pub(in super::super) groups: Vec<(String, Vec<Bar>)>,
    pub(in super::super) marks: Vec<Mark>,
    /// Numbers that the vertical axis reaches besides those of the bars.
    pub(in super::super) reach: Vec<f64>,
}

/// A bar: the least percentile is its darkest part.
pub(in super::super) struct Bar {
    pub(in super::super) colour: Colour,
    /// In ascending order; `None` is a hole.
    pub(in super::super) parts: Vec<Option<Point>>,
    /// What is published of each.
    pub(in super::super) theirs: Vec<Option<f64>>,
}

/// A bar that is nothing is as high as that, so that it is seen to be there.
const NOTHING: f64 = 2.0;
/// Percentiles that a bar may have.
const PARTS: usize = 8;
/// Bars that are narrower can't be told apart.
const NARROWEST: f64 = 4.0;

impl Bars {
    /// Below the plot.
    fn foot(&self, width: f64) -> f64 {
        let step = width / self.groups.len().max(1) as f64;
        stand(
            self.groups.iter().map(|(name, _)| &**name),
            Texts::Names,
            step,
        )
        .1
    }

    /// The bars of a series, each with its left side.
    fn at<'b>(
        &'b self,
        place: usize,
        wide: f64,
        middle: &'b impl Fn(usize) -> f64,
    ) -> impl Iterator<Item = (f64, &'b Bar)> {
        self.groups
            .iter()
            .enumerate()
            .filter_map(move |(index, (_, bars))| {
                let first = middle(index) - wide * bars.len() as f64 / 2.0;
                Some((first + wide * place as f64, bars.get(place)?))
            })
    }

    fn parts(&self) -> impl Iterator<Item = &Point> + Clone {
        let bars = self.groups.iter().flat_map(|(_, bars)| bars);
        bars.flat_map(|bar| bar.parts.iter().flatten())
    }
}

impl Drawing for Bars {
    fn titles(&self) -> [&str; 2] {
        [self.x_title, self.y_title]
    }

    fn left(&self, _: f64) -> f64 {
        LEFT
    }

    fn least_width(&self) -> f64 {
        let bars: usize = self.groups.iter().map(|(_, bars)| bars.len()).sum();
        (LEFT + NARROWEST / 0.8 * bars as f64).max(140.0)
    }

    fn height(&self, room: &Room) -> f64 {
        room.usual_height() + self.foot(room.right() - room.left) - BOTTOM
    }

    fn draw(&self, room: &Room) -> Svg {
        let width = room.right() - room.left;
        let bottom = room.height - self.foot(width);
        let bars = || self.groups.iter().flat_map(|(_, bars)| bars);
        let theirs = bars().flat_map(|bar| bar.theirs.iter().flatten());
        let all = reached(self.parts()).into_iter();
        let all = all.chain(theirs.copied()).chain(self.reach.iter().copied());
        let y = Scale::from_zero(all, bottom, TOP + 12.0);
        let step = width / self.groups.len().max(1) as f64;
        let middle = |index: usize| room.left + step * (index as f64 + 0.5);
        let names: Vec<_> = (self.groups.iter().enumerate())
            .map(|(index, (name, _))| (middle(index), name.clone()))
            .collect();
        let mut svg = room.frame(&y, bottom);
        let (ticks, _) = stand(names.iter().map(|(_, name)| &**name), Texts::Names, step);
        along(&mut svg, &names, ticks, Texts::Names, bottom);
        let most = self.groups.iter().map(|(_, bars)| bars.len()).max();
        let wide = (step * 0.8 / most.unwrap_or(1).max(1) as f64).min(44.0);
        let has_room = self
            .parts()
            .all(|part| text_width(&label_of(part.value)) <= wide - 2.0);
        let is_alone =
            bars().all(|bar| bar.parts.len() == 1 && bar.theirs.iter().all(Option::is_none));
        // What looks alike one after the other, which makes it one path.
        for place in 0..most.unwrap_or_default() {
            for nth in 0..PARTS {
                for (left, bar) in self.at(place, wide, &middle) {
                    draw_part(&mut svg, bar, nth, [left, wide], &y);
                }
            }
        }
        for place in 0..most.unwrap_or_default() {
            for (left, bar) in self.at(place, wide, &middle) {
                draw_intervals(&mut svg, bar, [left, wide], &y);
            }
        }
        for place in 0..most.unwrap_or_default() {
            for (left, bar) in self.at(place, wide, &middle) {
                draw_theirs(&mut svg, bar, [left, wide], &y);
                let only = bar.parts.first().copied().flatten();
                if let Some(part) = only.filter(|_| has_room && is_alone) {
                    let top = part
                        .closed()
                        .map_or(part.value, |[_, high]| high.max(part.value));
                    let text = y.place(top.max(0.0)) - 5.0;
                    svg.text("mut middle", left + wide / 2.0, text, &label_of(part.value));
                }
            }
        }
        room.levels(&mut svg, &self.marks, &y);
        svg
    }
}

fn draw_part(svg: &mut Svg, bar: &Bar, nth: usize, [left, wide]: [f64; 2], y: &Scale) {
    let Some(Some(part)) = bar.parts.get(nth) else {
        return;
    };
    let before = bar.parts.iter().take(nth).flatten().last();
    let base = before.map_or(0.0, |part| part.value);
    let [from, to] = [y.place(base), y.place(part.value)];
    let class = format!("fill {} p{}", bar.colour.class(), nth.min(2));
    let (top, height) = (from.min(to), (from - to).abs());
    match before.is_none() && height < NOTHING {
        true => svg.rect(
            &class,
            [left + 0.5, y.place(0.0) - NOTHING / 2.0],
            [wide - 1.0, NOTHING],
        ),
        // Percentiles that are equal are one.
        false if height < 0.05 => {}
        false => svg.rect(&class, [left + 0.5, top], [wide - 1.0, height]),
    }
}

/// Where the nth of a bar's percentiles stands.
fn part_place(bar: &Bar, nth: usize, [left, wide]: [f64; 2]) -> f64 {
    left + wide * (nth as f64 + 1.0) / (bar.parts.len() as f64 + 1.0)
}

fn draw_intervals(svg: &mut Svg, bar: &Bar, [left, wide]: [f64; 2], y: &Scale) {
    for (nth, part) in bar.parts.iter().enumerate() {
        if let Some([low, high]) = part.as_ref().and_then(Point::closed) {
            let [low, high] = [low, high].map(|end| y.place(end));
            // One that is no larger than its line says nothing.
            if low - high > 0.5 {
                let x = part_place(bar, nth, [left, wide]);
                svg.line("whisker", [x, low], [x, high]);
            }
        }
    }
    if bar.parts.iter().all(Option::is_none) {
        svg.text("mut middle", left + wide / 2.0, y.place(0.0) - 4.0, "?");
    }
}

fn draw_theirs(svg: &mut Svg, bar: &Bar, [left, wide]: [f64; 2], y: &Scale) {
    for (nth, theirs) in bar.theirs.iter().enumerate() {
        if let Some(value) = theirs {
            let size = (wide / (bar.parts.len() as f64 + 1.0)).clamp(2.5, 5.0);
            svg.form(
                "theirs",
                Form::Diamond,
                [part_place(bar, nth, [left, wide]), y.place(*value)],
                size,
            );
        }
    }
}

/// `0.4`, `36`, `1204`
fn label_of(value: f64) -> String {
    let text = match value.abs() {
        9.95.. => format!("{value:.0}"),
        _ => format!("{value:.1}"),
    };
    match &*text {
        "-0.0" | "0.0" => "0".to_owned(),
        _ => text.replace('-', "\u{2212}"),
    }
}
