//! Distribution functions.

use super::scale::{Growth, Scale};
use super::{BOTTOM, Frame, HEIGHT, Ink, LEFT, Mark, Panel, RIGHT, TOP, WIDTH};

/// A panel of distribution functions.
pub(in super::super) struct Cdf<'a> {
    pub(in super::super) title: String,
    pub(in super::super) x_title: &'a str,
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

impl Cdf<'_> {
    pub(in super::super) fn panel(&self) -> Panel {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        let points = self.curves.iter().flat_map(|curve| &curve.quantiles);
        let times: Vec<f64> = (points.map(|(time, _)| *time))
            .chain(self.reach.iter().copied())
            .collect();
        let least = times.iter().copied().fold(f64::INFINITY, f64::min);
        let most = times.iter().copied().fold(0.0, f64::max);
        let growth = match least > 0.0 && most / least > TAIL {
            true => Growth::Logarithmic,
            false => Growth::Linear,
        };
        let x = Scale::around(times.into_iter(), growth, LEFT, right);
        let y = |share: f64| bottom + (TOP - bottom) * share;
        let shares = [0.0, 0.25, 0.5, 0.75, 1.0];
        let ticks = shares.map(|share| (y(share), format!("{:.0}", share * 100.0)));
        let frame = Frame {
            title: &self.title,
            x: self.x_title,
            y: "connections, %",
        };
        let mut svg = frame.draw(&x.ticks(), &ticks);
        for mark in self.marks.iter().filter(|mark| x.holds(mark.at)) {
            let place = x.place(mark.at);
            svg.line("mark", [place, TOP], [place, bottom]);
            svg.text("dim", place + 3.0, TOP + 10.0, &mark.name);
        }
        for curve in &self.curves {
            let quantiles = curve.quantiles.iter();
            let points = quantiles.map(|(time, share)| [x.place(*time), y(*share)]);
            svg.polyline(&format!("line {}", curve.ink.class()), points);
        }
        Panel::usual(&self.title, svg)
    }
}
