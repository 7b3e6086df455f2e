//! Lines over a number or over names, with their intervals.

use super::axes::{BOTTOM, LEFT, Room, TOP, Texts, along, stand};
use super::scale::{Growth, Scale};
use super::{Drawing, Ink, Mark, Svg};
use crate::svg::Form;

/// A panel of lines.
pub(in super::super) struct Lines {
    pub(in super::super) x_title: &'static str,
    pub(in super::super) y_title: &'static str,
    /// What stands along the horizontal axis: its text, and its number if all have one.
    pub(in super::super) x: Vec<(String, Option<f64>)>,
    pub(in super::super) lines: Vec<Line>,
    pub(in super::super) intervals: Intervals,
    pub(in super::super) marks: Vec<Mark>,
    /// Numbers that the vertical axis reaches besides those of the lines.
    pub(in super::super) reach: Vec<f64>,
}

/// How intervals are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Intervals {
    /// Around the line, where it is the only one.
    Bands,
    /// At each point, and the points of several lines beside each other: bands that cover each other can't be read.
    Whiskers,
}

/// One series.
pub(in super::super) struct Line {
    pub(in super::super) ink: Ink,
    pub(in super::super) shape: Shape,
    /// What it is, at its end.
    pub(in super::super) label: String,
    /// One for each place on the horizontal axis; `None` is a hole.
    pub(in super::super) points: Vec<Option<Point>>,
    /// What is published there.
    pub(in super::super) theirs: Vec<Option<f64>>,
}

/// What a line does between two of its points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Shape {
    /// It keeps to the nearer one: nobody has measured what is between them, and times step.
    Step,
    /// It goes from one to the other: what it draws is a formula.
    Slope,
}

/// A number with its interval; an end that is absent is open.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in super::super) struct Point {
    pub(in super::super) value: f64,
    pub(in super::super) interval: Option<(Option<f64>, Option<f64>)>,
}

impl Point {
    /// Both ends of its interval, if both are known.
    pub(in super::super) fn closed(&self) -> Option<[f64; 2]> {
        let (low, high) = self.interval?;
        Some([low?, high?])
    }
}

/// Of what a chart reaches, an interval may be so much: one that is wider leaves the chart.
const REACH: f64 = 1.6;

/// Numbers that an axis has to reach for these points: their values, and their intervals as far as those don't make
/// them small.
pub(in super::super) fn reached<'p>(points: impl Iterator<Item = &'p Point> + Clone) -> Vec<f64> {
    let most = points.clone().map(|point| point.value.abs());
    let most = REACH * most.fold(0.0, f64::max);
    let ends = points.clone().filter_map(Point::closed).flatten();
    let ends = ends.map(|end| end.clamp(-most, most));
    points.map(|point| point.value).chain(ends).collect()
}

impl Lines {
    fn texts(&self) -> Texts {
        if self.x.iter().all(|(_, number)| number.is_some()) {
            Texts::Numbers
        } else {
            Texts::Names
        }
    }

    /// Below the plot.
    fn foot(&self, width: f64) -> f64 {
        let step = width / self.x.len().max(1) as f64;
        stand(self.x.iter().map(|(text, _)| &**text), self.texts(), step).1
    }

    /// Where the places on the horizontal axis are.
    fn places(&self, [left, right]: [f64; 2]) -> Vec<f64> {
        /// Places that are nearer can't be told apart.
        const NEAREST: f64 = 22.0;
        let (first, last) = (left + 10.0, right - 6.0);
        let step = (last - first) / self.x.len().max(1) as f64;
        let numbers: Option<Vec<f64>> = self.x.iter().map(|(_, number)| *number).collect();
        if let Some(numbers) = numbers.filter(|numbers| numbers.len() > 1) {
            let least = numbers.iter().copied().fold(f64::INFINITY, f64::min);
            let most = numbers.iter().copied().fold(0.0, f64::max);
            let growth = if least > 0.0 && most / least >= 30.0 {
                Growth::Logarithmic
            } else {
                Growth::Linear
            };
            let scale = Scale::around(numbers.iter().copied(), growth, first, last);
            let places: Vec<f64> = numbers.iter().map(|number| scale.place(*number)).collect();
            if places
                .iter()
                .zip(places.iter().skip(1))
                .all(|(one, next)| next - one >= NEAREST.min(step / 2.0))
            {
                return places;
            }
        }
        (0..self.x.len())
            .map(|index| first + step * (index as f64 + 0.5))
            .collect()
    }

    /// How far to the right of its place each line's points stand, so that those of several can be read beside each other.
    fn beside(&self, step: f64) -> Vec<f64> {
        /// From one to the next, in pixels.
        const APART: f64 = 5.0;
        let is_apart =
            |line: &Line| self.intervals == Intervals::Whiskers && line.shape == Shape::Step;
        let count = self.lines.iter().filter(|line| is_apart(line)).count() as f64;
        let apart = APART.min(step / (count + 1.0));
        let mut places = (0..).map(|nth| apart * (f64::from(nth) - (count - 1.0) / 2.0));
        let beside = self.lines.iter().map(|line| {
            if is_apart(line) {
                places.next().unwrap_or_default()
            } else {
                0.0
            }
        });
        beside.collect()
    }

    /// What stands at the ends of lines, moved apart where they would cover each other.
    fn ends(&self, y: &Scale, bottom: f64) -> Vec<(f64, &Line)> {
        const APART: f64 = 17.0;
        let last = |line: &Line| line.points.iter().flatten().last().copied();
        let mut ends: Vec<(f64, &Line)> = (self.lines.iter())
            .filter(|line| !line.label.is_empty())
            .filter_map(|line| Some((y.place(last(line)?.value), line)))
            .collect();
        ends.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        let mut free = f64::NEG_INFINITY;
        for (place, _) in &mut ends {
            *place = place.max(free);
            free = *place + APART;
        }
        // The last ones may have been pushed out at the bottom.
        let mut lowest = bottom;
        for (place, _) in ends.iter_mut().rev() {
            *place = place.min(lowest);
            lowest = *place - APART;
        }
        ends
    }
}

impl Drawing for Lines {
    fn titles(&self) -> [&str; 2] {
        [self.x_title, self.y_title]
    }

    fn left(&self, _: f64) -> f64 {
        LEFT
    }

    fn labels(&self) -> Vec<String> {
        /// More stand in a key.
        const MOST: usize = 10;
        let labels = self.lines.iter().map(|line| line.label.clone());
        let labels: Vec<String> = labels.filter(|label| !label.is_empty()).collect();
        if labels.len() > MOST {
            Vec::new()
        } else {
            labels
        }
    }

    fn draw(&self, room: &Room) -> Svg {
        let bottom = room.height - self.foot(room.right() - room.left);
        let points = self.lines.iter().flat_map(|line| &line.points).flatten();
        let theirs = self.lines.iter().flat_map(|line| &line.theirs).flatten();
        let all = reached(points).into_iter();
        let all = all.chain(theirs.copied()).chain(self.reach.iter().copied());
        let y = Scale::from_zero(all, bottom, TOP);
        let x = self.places([room.left, room.right()]);
        let mut svg = room.frame(&y, bottom);
        let texts: Vec<(f64, String)> = (x.iter().copied())
            .zip(self.x.iter().map(|(text, _)| text.clone()))
            .collect();
        let step = (room.right() - room.left) / self.x.len().max(1) as f64;
        let (ticks, _) = stand(self.x.iter().map(|(text, _)| &**text), self.texts(), step);
        along(&mut svg, &texts, ticks, self.texts(), bottom);
        room.levels(&mut svg, &self.marks, &y);
        let at = |index: usize, value: f64| Some([*x.get(index)?, y.place(value)]);
        let nearest = x.iter().zip(x.iter().skip(1)).map(|(one, next)| next - one);
        let nearest = nearest.fold(step, f64::min);
        for (line, beside) in self.lines.iter().zip(self.beside(nearest)) {
            let at = |index: usize, value: f64| at(index, value).map(|[x, y]| [x + beside, y]);
            let fill = format!("fill {}", line.ink.colour.class());
            let closed = |point: &Option<Point>| point.as_ref().and_then(Point::closed);
            let intervals = runs(line.points.iter().map(closed));
            if self.intervals == Intervals::Whiskers {
                let whisker = format!("line whisker {}", line.ink.colour.class());
                for (index, [low, high]) in intervals.iter().flatten() {
                    if let (Some(low), Some(high)) = (at(*index, *low), at(*index, *high)) {
                        svg.line(&whisker, low, high);
                    }
                }
            }
            let bands = (intervals.into_iter()).filter(|_| self.intervals == Intervals::Bands);
            for run in bands {
                let edge = |end: usize| {
                    let ends = run
                        .iter()
                        .filter_map(move |(index, ends)| at(*index, ends[end]));
                    path(ends.collect(), line.shape)
                };
                let around = edge(1).into_iter().chain(edge(0).into_iter().rev());
                svg.area(&format!("band {fill}"), around);
            }
            for run in runs(
                line.points
                    .iter()
                    .map(|point| point.map(|point| point.value)),
            ) {
                let places = run.iter().filter_map(|(index, value)| at(*index, *value));
                let path = path(places.collect(), line.shape);
                svg.polyline(&format!("line {}", line.ink.class()), path.into_iter());
                if line.shape == Shape::Slope {
                    continue;
                }
                for place in run.iter().filter_map(|(index, value)| at(*index, *value)) {
                    svg.form(&format!("mark {fill}"), line.ink.colour.form(), place, 4.0);
                }
            }
        }
        for line in &self.lines {
            for (index, value) in line.theirs.iter().enumerate() {
                if let Some(place) = value.and_then(|value| at(index, value)) {
                    svg.form("theirs", Form::Diamond, place, 5.0);
                }
            }
        }
        if room.labels > 0.0 {
            for (place, line) in self.ends(&y, bottom) {
                let class = format!("mark fill {}", line.ink.colour.class());
                svg.form(
                    &class,
                    line.ink.colour.form(),
                    [room.right() + 8.0, place],
                    4.0,
                );
                svg.text("name", room.right() + 16.0, place + 4.5, &line.label);
            }
        }
        svg
    }

    fn height(&self, room: &Room) -> f64 {
        room.usual_height() + self.foot(room.right() - room.left) - BOTTOM
    }
}

/// The corners of a line through these places.
fn path(places: Vec<[f64; 2]>, shape: Shape) -> Vec<[f64; 2]> {
    if shape == Shape::Slope {
        return places;
    }
    let mut corners: Vec<[f64; 2]> = Vec::new();
    for place in places {
        if let Some([x, y]) = corners.last().copied() {
            let middle = (x + place[0]) / 2.0;
            corners.push([middle, y]);
            corners.push([middle, place[1]]);
        }
        corners.push(place);
    }
    corners
}

/// What stands without a hole between, with its places.
fn runs<T>(values: impl Iterator<Item = Option<T>>) -> Vec<Vec<(usize, T)>> {
    let mut runs: Vec<Vec<(usize, T)>> = vec![Vec::new()];
    for (index, value) in values.enumerate() {
        match (value, runs.last_mut()) {
            (Some(value), Some(run)) => run.push((index, value)),
            _ => runs.push(Vec::new()),
        }
    }
    runs.retain(|run| !run.is_empty());
    runs
}
