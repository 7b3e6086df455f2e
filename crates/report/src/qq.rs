//! Quantile-quantile plots.

use super::svg::Svg;
use super::ticks;

/// The quantiles of A against those of B. Where both are distributed alike, all are on the
/// diagonal; a percentage off is a distance from it, since the axes are logarithmic.
pub(super) struct QqPlot<'a> {
    /// What the times are.
    pub(super) title: &'a str,
    /// Quantiles of the same share in A and in B, in milliseconds.
    pub(super) points: Vec<[f64; 2]>,
    /// Those that are told apart.
    pub(super) marks: Vec<Mark>,
}

/// A quantile with a ring around it.
pub(super) struct Mark {
    pub(super) name: String,
    pub(super) at: [f64; 2],
    /// Its class in [`STYLE`].
    pub(super) class: &'static str,
}

/// What the plots look like; once on a page.
pub(super) const STYLE: &str = "\
svg .diagonal { stroke: currentColor; stroke-opacity: .6; stroke-dasharray: 4 3 }
svg .points { stroke: currentColor; stroke-opacity: .7; stroke-width: 3.5; stroke-linecap: round }
svg .ring { fill: none; stroke-width: 2 }
.undecided { color: var(--unknown) }
svg .ring.agrees, svg .ring.undecided, svg .ring.differs, svg .ring.told { stroke: currentColor }
";

const SIZE: f64 = 176.0;
const LEFT: f64 = 62.0;
const TOP: f64 = 24.0;
const RIGHT: f64 = 14.0;
const BOTTOM: f64 = 40.0;
/// The radius of a mark.
const RING: f64 = 5.0;

impl QqPlot<'_> {
    /// The plot as an element of a page.
    pub(super) fn svg(&self) -> String {
        let (width, height) = (LEFT + SIZE + RIGHT, TOP + SIZE + BOTTOM);
        let mut svg = Svg::new(width, height, &format!("Q-Q plot, {}", self.title));
        svg.text("title middle", LEFT + SIZE / 2.0, TOP - 9.0, self.title);
        let Some(axis) = Axis::over(self.points.iter().flatten().copied()) else {
            let middle = LEFT + SIZE / 2.0;
            svg.text("middle", middle, TOP + SIZE / 2.0, "never, in A or in B");
            return svg.finish();
        };
        for (time, text) in axis.ticks() {
            let offset = axis.offset(time);
            let (x, y) = (LEFT + offset, TOP + SIZE - offset);
            svg.line("grid", [x, TOP], [x, TOP + SIZE]);
            svg.line("grid", [LEFT, y], [LEFT + SIZE, y]);
            svg.text("middle", x, TOP + SIZE + 14.0, &text);
            svg.text("end", LEFT - 5.0, y + 4.0, &text);
        }
        svg.text("middle", LEFT + SIZE / 2.0, height - 8.0, "A, ms");
        svg.upright("middle", 12.0, TOP + SIZE / 2.0, "B, ms");
        svg.line("diagonal", [LEFT, TOP + SIZE], [LEFT + SIZE, TOP]);
        let place = |[a, b]: [f64; 2]| [LEFT + axis.offset(a), TOP + SIZE - axis.offset(b)];
        svg.dots("points", self.points.iter().map(|point| place(*point)));
        for mark in &self.marks {
            svg.ring(&format!("ring {}", mark.class), place(mark.at), RING);
        }
        for (name, [x, y]) in labels(&self.marks, place) {
            // Below the diagonal, where it is free.
            if x < LEFT + SIZE - 40.0 {
                svg.text("", x + RING + 4.0, y + 4.0, &name);
            } else {
                svg.text("end", x - RING - 4.0, y + 4.0, &name);
            }
        }
        svg.finish()
    }
}

/// The names of marks with their places; those that would cover each other have one together.
fn labels(marks: &[Mark], place: impl Fn([f64; 2]) -> [f64; 2]) -> Vec<(String, [f64; 2])> {
    let mut labels: Vec<(String, [f64; 2])> = Vec::new();
    for mark in marks {
        let [x, y] = place(mark.at);
        match labels.last_mut() {
            Some((names, [_, other])) if (y - *other).abs() < 11.0 => {
                names.push_str(&format!(", {}", mark.name));
            }
            _ => labels.push((mark.name.clone(), [x, y])),
        }
    }
    labels
}

/// Both axes of a plot: the logarithms of times in milliseconds.
struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    /// `None` if there is no time above zero.
    fn over(times: impl Iterator<Item = f64>) -> Option<Axis> {
        /// A plot in which nothing varies is 1 % wide.
        const LEAST: f64 = 1.01;
        const MARGIN: f64 = 0.06;

        let positive = times.filter(|time| *time > 0.0);
        let (low, high) = positive.fold((f64::INFINITY, 0.0_f64), |(low, high), time| {
            (low.min(time), high.max(time))
        });
        if low > high {
            return None;
        }
        let wider = (LEAST * low / high).max(1.0).sqrt();
        let (low, high) = (low / wider, high * wider);
        let margin = (high / low).powf(MARGIN);
        Some(Axis {
            low: low / margin,
            high: high * margin,
        })
    }

    /// From the beginning of the axis, in pixels.
    fn offset(&self, time: f64) -> f64 {
        let share = (time / self.low).ln() / (self.high / self.low).ln();
        SIZE * share.clamp(0.0, 1.0)
    }

    /// Round times, three or more, with their texts.
    fn ticks(&self) -> Vec<(f64, String)> {
        ticks::logarithmic(self.low, self.high)
    }
}

#[cfg(test)]
mod tests;
