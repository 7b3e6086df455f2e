//! Groups of bars, from zero.

use super::lines::Point;
use super::scale::Scale;
use super::{BOTTOM, Frame, HEIGHT, Ink, LEFT, Mark, Panel, RIGHT, TOP, WIDTH, draw_levels};

/// A panel of bars.
pub(in super::super) struct Bars<'a> {
    pub(in super::super) title: String,
    pub(in super::super) x_title: &'a str,
    pub(in super::super) y_title: &'a str,
    /// The groups along the horizontal axis: a name, and a bar for each series.
    pub(in super::super) groups: Vec<(String, Vec<Bar>)>,
    pub(in super::super) marks: Vec<Mark>,
    /// Numbers that the vertical axis reaches besides those of the bars.
    pub(in super::super) reach: Vec<f64>,
}

/// A bar: the least percentile is its darkest part.
pub(in super::super) struct Bar {
    pub(in super::super) ink: Ink,
    /// In ascending order; `None` is a hole.
    pub(in super::super) parts: Vec<Option<Point>>,
}

impl Bars<'_> {
    pub(in super::super) fn panel(&self) -> Panel {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        let bars = self.groups.iter().flat_map(|(_, bars)| bars);
        let parts = bars.flat_map(|bar| bar.parts.iter().flatten());
        let ends = parts.flat_map(|part| {
            let (low, high) = part.interval.unwrap_or_default();
            [Some(part.value), low, high]
        });
        let y = Scale::from_zero(
            ends.flatten().chain(self.reach.iter().copied()),
            bottom,
            TOP,
        );
        let step = (right - LEFT) / self.groups.len().max(1) as f64;
        let middle = |index: usize| LEFT + step * (index as f64 + 0.5);
        let ticks: Vec<_> = (self.groups.iter().enumerate())
            .map(|(index, (name, _))| (middle(index), name.clone()))
            .collect();
        let frame = Frame {
            title: &self.title,
            x: self.x_title,
            y: self.y_title,
        };
        let mut svg = frame.draw(&ticks, &y.ticks());
        for (index, (_, bars)) in self.groups.iter().enumerate() {
            let width = (step * 0.8 / bars.len().max(1) as f64).min(26.0);
            let first = middle(index) - width * bars.len() as f64 / 2.0;
            for (place, bar) in bars.iter().enumerate() {
                let x = first + width * place as f64;
                let mut base = 0.0;
                for (nth, part) in bar.parts.iter().enumerate() {
                    let Some(part) = part else { continue };
                    let [from, to] = [y.place(base), y.place(part.value)];
                    let class = format!("fill c{} p{}", bar.ink.colour, nth.min(2));
                    svg.rect(
                        &class,
                        [x + 0.5, from.min(to)],
                        [width - 1.0, (from - to).abs()],
                    );
                    base = part.value;
                    if let Some((low, high)) = part.interval {
                        let x = x + width * (nth as f64 + 1.0) / (bar.parts.len() as f64 + 1.0);
                        let place = |end: Option<f64>, open| end.map_or(open, |end| y.place(end));
                        svg.line("whisker", [x, place(low, bottom)], [x, place(high, TOP)]);
                    }
                }
                if bar.parts.iter().all(Option::is_none) {
                    svg.text("middle dim", x + width / 2.0, y.place(0.0) - 4.0, "?");
                }
            }
        }
        draw_levels(&mut svg, &self.marks, &y, right);
        Panel::usual(&self.title, svg)
    }
}
