//! Distribution functions.

use super::axes::{BOTTOM, LEFT, Room, TOP, Texts, Ticks, along};
use super::scale::{Growth, Scale};
use super::{Drawing, Ink, Mark, Svg};

/// A panel of distribution functions.
pub(in super::super) struct Cdf {
    pub(in super::super) x_title: &'static str,
    pub(in super::super) curves: Vec<Curve>,
    pub(in super::super) marks: Vec<Mark>,
    /// Numbers that the horizontal axis reaches besides those of the curves.
    pub(in super::super) reach: Vec<f64>,
}

/// One distribution.
pub(in super::super) struct Curve {
    pub(in super::super) ink: Ink,
    /// Quantiles in ascending order, each with its share from 0 to 1.
    pub(in super::super) quantiles: Vec<(f64, f64)>,
}

/// How many times the median the latest may be before an axis is logarithmic.
const TAIL: f64 = 5.0;

impl Drawing for Cdf {
    fn titles(&self) -> [&str; 2] {
        [self.x_title, "connections, %"]
    }

    fn left(&self, _: f64) -> f64 {
        LEFT
    }

    fn draw(&self, room: &Room) -> Svg {
        let bottom = room.height - BOTTOM;
        let points = self.curves.iter().flat_map(|curve| &curve.quantiles);
        let times: Vec<f64> = (points.map(|(time, _)| *time))
            .chain(self.reach.iter().copied())
            .collect();
        let least = times.iter().copied().fold(f64::INFINITY, f64::min);
        let most = times.iter().copied().fold(0.0, f64::max);
        let growth = if least > 0.0 && most / least > TAIL {
            Growth::Logarithmic
        } else {
            Growth::Linear
        };
        let x = Scale::around(times.into_iter(), growth, room.left, room.right());
        let y = Scale::from_zero([100.0].into_iter(), bottom, TOP);
        let mut svg = room.frame(&y, bottom);
        along(&mut svg, &x.ticks(), Ticks::Level, Texts::Numbers, bottom);
        for mark in self.marks.iter().filter(|mark| x.holds(mark.at)) {
            let place = x.place(mark.at);
            svg.line("level", [place, TOP], [place, bottom]);
            svg.text("mut", place + 4.0, TOP + 11.0, &mark.name);
        }
        for curve in &self.curves {
            let quantiles = curve.quantiles.iter();
            let points = quantiles.map(|(time, share)| [x.place(*time), y.place(100.0 * share)]);
            let points = thinned(points.collect()).into_iter();
            svg.polyline(&format!("line {}", curve.ink.class()), points);
            // Where lines run together, marks tell whose they are.
            for wanted in [0.25, 0.5, 0.75, 0.95] {
                let nearest = (curve.quantiles.iter()).min_by(|(_, one), (_, other)| {
                    (one - wanted).abs().total_cmp(&(other - wanted).abs())
                });
                if let Some((time, share)) = nearest {
                    let place = [x.place(*time), y.place(100.0 * share)];
                    let class = format!("mark fill {}", curve.ink.colour.class());
                    svg.form(&class, curve.ink.colour.form(), place, 4.0);
                }
            }
        }
        svg
    }
}

/// Without what is so near to the point before that nobody could see it.
fn thinned(points: Vec<[f64; 2]>) -> Vec<[f64; 2]> {
    const NEAR: f64 = 1.0;
    let last = points.last().copied();
    let mut kept: Vec<[f64; 2]> = Vec::new();
    for point in points {
        let is_near = kept
            .last()
            .is_some_and(|[x, y]| (point[0] - x).abs() < NEAR && (point[1] - y).abs() < 3.0 * NEAR);
        if !is_near {
            kept.push(point);
        }
    }
    if kept.last().copied() != last {
        kept.extend(last);
    }
    kept
}
