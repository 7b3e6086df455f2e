//! Charts: panels of lines, bars or distribution functions, and what tells their series apart.
//!
//! A chart lays itself out for a width ([`Chart::html`] does so twice: for a page and for a phone), so that its text
//! is never scaled. It takes its colours from classes, so that one drawing suits a light page, a dark one and paper
//! ([`STYLE`]), a file of its own ([`Chart::file`]) and a slide ([`Chart::slide`]).

mod axes;
mod bars;
mod cdf;
mod dots;
mod layout;
mod lines;
pub(super) mod palette;
#[cfg(feature = "png")]
mod png;
#[cfg(not(feature = "png"))]
#[path = "no_png.rs"]
mod png;
pub(super) mod scale;
mod steps;
#[cfg(test)]
mod tests;

pub(super) use axes::{Room, text_width, wrapped};
pub(super) use bars::{Bar, Bars};
pub(super) use cdf::{Cdf, Curve};
pub(super) use dots::{Dot, Dots};
pub(super) use lines::{Intervals, Line, Lines, Point, Shape, reached};
pub use png::DrawError;
pub(super) use png::Painter;
pub(super) use steps::{StepLine, Steps};

use maud::{Markup, PreEscaped, html};

use super::svg::{Form, Svg};

/// Series that have a colour of their own.
pub(super) const COLOURS: usize = 8;

/// What a chart looks like on a page; [`palette`] has its colours.
pub(super) const STYLE: &str = include_str!("chart.css");

/// Several panels with one key.
pub(super) struct Chart {
    /// What is drawn.
    pub(super) title: String,
    pub(super) panels: Vec<Panel>,
    pub(super) key: Vec<KeyEntry>,
    pub(super) axes: Axes,
    /// What published numbers look like stands in the key.
    pub(super) has_theirs: bool,
}

/// Whether panels can be compared by eye.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Axes {
    /// All have the same ones.
    Shared,
    /// Each has its own: on those of another it would be flat.
    Own,
}

/// What a colour or a dash means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyEntry {
    pub(super) name: String,
    pub(super) ink: Ink,
}

/// How a series looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ink {
    pub(super) colour: Colour,
    pub(super) stroke: Stroke,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Colour {
    /// What others are compared with.
    Baseline,
    /// The nth of the others.
    Nth(usize),
}

/// How a line is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stroke {
    Solid,
    Dashed,
    Dotted,
    DashDotted,
}

/// A drawing with what tells it from the others.
pub(super) struct Panel {
    pub(super) title: String,
    pub(super) drawing: Box<dyn Drawing>,
}

/// What fills a panel.
pub(super) trait Drawing {
    /// The titles of the horizontal and of the vertical axis.
    fn titles(&self) -> [&str; 2];

    /// How much of a chart's width is left of the first plot, where ticks or names stand there.
    fn left(&self, width: f64) -> f64;

    /// How high a panel of this width is, in pixels.
    fn height(&self, room: &Room) -> f64 {
        room.usual_height()
    }

    /// A panel that is narrower can't be read.
    fn least_width(&self) -> f64 {
        140.0
    }

    /// What can stand at the right ends of its series, instead of a key.
    fn labels(&self) -> Vec<String> {
        Vec::new()
    }

    fn draw(&self, room: &Room) -> Svg;
}

/// A line that readers know.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Mark {
    pub(super) at: f64,
    pub(super) name: String,
}

impl Stroke {
    /// The nth of as many as there are.
    pub(super) fn nth(index: usize) -> Stroke {
        [
            Stroke::Solid,
            Stroke::Dashed,
            Stroke::Dotted,
            Stroke::DashDotted,
        ][index % 4]
    }

    fn class(self) -> &'static str {
        match self {
            Stroke::Solid => "s0",
            Stroke::Dashed => "s1",
            Stroke::Dotted => "s2",
            Stroke::DashDotted => "s3",
        }
    }
}

impl Colour {
    pub(super) fn class(self) -> String {
        match self {
            Colour::Baseline => "base".to_owned(),
            Colour::Nth(index) => format!("c{}", index % COLOURS),
        }
    }

    /// What points look like, so that series are told apart without colours; those of which colours come again have
    /// another one.
    pub(super) fn form(self) -> Form {
        match self {
            Colour::Baseline => Form::Bar,
            Colour::Nth(index) => Form::ALL[(index + index / COLOURS) % Form::ALL.len()],
        }
    }
}

impl Ink {
    pub(super) fn new(colour: Colour, stroke: Stroke) -> Ink {
        Ink { colour, stroke }
    }

    /// The nth series.
    pub(super) fn nth(index: usize) -> Ink {
        Ink::new(Colour::Nth(index), Stroke::nth(index / COLOURS))
    }

    /// The nth of several lines of a series.
    pub(super) fn of_several(self, nth: usize) -> Ink {
        Ink::new(self.colour, Stroke::nth(self.stroke as usize + nth))
    }

    fn class(self) -> String {
        format!("{} {}", self.colour.class(), self.stroke.class())
    }
}

/// The widths of a page and of a phone, in pixels, with their classes.
const WIDTHS: [(&str, f64); 2] = [("wide", 960.0), ("narrow", 328.0)];

impl Chart {
    /// The chart as an element of a page, drawn for each width.
    pub(super) fn html(&self) -> Markup {
        html! {
            @for (class, width) in WIDTHS {
                div class=(class) {
                    @let (body, height) = self.laid_out(width);
                    @let mut svg = Svg::new(width, height, &self.title);
                    (PreEscaped({ svg.raw(&body); svg.finish() }))
                }
            }
        }
    }

    /// A file of its own, on a light ground.
    pub(super) fn file(&self) -> String {
        const EDGE: f64 = 20.0;
        const HEAD: f64 = 34.0;
        let (_, width) = WIDTHS[0];
        let (body, height) = self.laid_out(width);
        let size = [width + 2.0 * EDGE, height + HEAD + 2.0 * EDGE];
        let mut svg = Svg::new(size[0], size[1], &self.title);
        svg.style(&file_style());
        svg.rect("ground", [0.0, 0.0], size);
        svg.text("title", EDGE, EDGE + 14.0, &self.title);
        svg.moved([EDGE, EDGE + HEAD], 1.0, &body);
        svg.finish()
    }

    /// A slide of 16:9: what the figure shows, the figure, and where it comes from.
    pub(super) fn slide(&self, heading: &str, foot: &str) -> String {
        const SIZE: [f64; 2] = [1280.0, 720.0];
        const EDGE: f64 = 48.0;
        const LINE: f64 = 42.0;
        const FOOT: f64 = 60.0;
        let mut svg = Svg::new(SIZE[0], SIZE[1], heading);
        svg.style(&file_style());
        svg.rect("ground", [0.0, 0.0], SIZE);
        let mut y = EDGE + 24.0;
        for line in wrapped(heading, (SIZE[0] - 2.0 * EDGE) / 3.05)
            .iter()
            .take(2)
        {
            svg.text("heading", EDGE, y, line);
            y += LINE;
        }
        let room = [SIZE[0] - 2.0 * EDGE, SIZE[1] - y - FOOT];
        let (body, height) = self.laid_out(WIDTHS[0].1);
        let scale = (room[0] / WIDTHS[0].1).min(room[1] / height);
        let left = EDGE + (room[0] - WIDTHS[0].1 * scale) / 2.0;
        svg.moved([left, y], scale, &body);
        for line in wrapped(foot, (SIZE[0] - 2.0 * EDGE) / 1.3).iter().take(1) {
            svg.text("foot", EDGE, SIZE[1] - 24.0, line);
        }
        svg.finish()
    }
}

/// What a drawing looks like that has no page around it.
pub(super) fn file_style() -> String {
    const FONT: &str = "text { font-family: system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif }\n";
    format!("{FONT}{}", palette::resolved(STYLE))
}
