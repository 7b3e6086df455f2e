//! Charts: panels of lines, bars or distribution functions, and what tells their series apart.
//!
//! A panel takes its colours from classes, so that one drawing suits a light page, a dark one and paper
//! ([`STYLE`]), and a file of its own ([`Chart::file`]).

mod bars;
mod cdf;
mod dots;
mod lines;
#[cfg(feature = "png")]
mod png;
#[cfg(not(feature = "png"))]
#[path = "no_png.rs"]
mod png;
pub(super) mod scale;
mod steps;
#[cfg(test)]
mod tests;

pub(super) use bars::{Bar, Bars};
pub(super) use cdf::{Cdf, Curve};
pub(super) use dots::{Dot, Dots};
pub(super) use lines::{Line, Lines, Point};
pub(super) use png::Painter;
pub(super) use steps::{StepLine, Steps};

use maud::{Markup, PreEscaped, html};

use super::svg::Svg;

/// The usual size of a panel, in pixels.
pub(super) const WIDTH: f64 = 340.0;
pub(super) const HEIGHT: f64 = 236.0;

const LEFT: f64 = 46.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 24.0;
const BOTTOM: f64 = 38.0;

/// Colours that can be told apart by everyone (Okabe and Ito 2008), without yellow and black.
const COLOURS: usize = 6;

/// What a chart looks like on a page; `--c0` to `--c5` are its colours.
pub(super) const STYLE: &str = include_str!("chart.css");

/// Several panels with one key.
pub(super) struct Chart {
    /// What is drawn.
    pub(super) title: String,
    pub(super) panels: Vec<Panel>,
    pub(super) key: Vec<KeyEntry>,
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
    pub(super) colour: usize,
    pub(super) stroke: Stroke,
}

/// How a line is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stroke {
    Solid,
    Dashed,
    Dotted,
    DashDotted,
}

/// A panel, drawn.
pub(super) struct Panel {
    /// What tells it from the others.
    pub(super) title: String,
    /// Its width and its height, in pixels.
    size: [f64; 2],
    /// Elements of SVG within that.
    body: String,
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

impl Ink {
    pub(super) fn new(colour: usize, stroke: Stroke) -> Ink {
        Ink {
            colour: colour % COLOURS,
            stroke,
        }
    }

    fn class(self) -> String {
        format!("c{} {}", self.colour, self.stroke.class())
    }
}

impl Chart {
    /// The panels and the key as elements of a page.
    pub(super) fn html(&self) -> Markup {
        html! {
            @if self.key.len() > 1 {
                ul.key {
                    @for entry in &self.key { (entry.html()) }
                }
            }
            div.panels {
                @for panel in &self.panels { (PreEscaped(panel.svg(&self.title))) }
            }
        }
    }

    /// A file of its own, on a light ground.
    pub(super) fn file(&self) -> String {
        const HEAD: f64 = 30.0;
        const KEY: f64 = 20.0;
        let columns = match self.panels.len() {
            4 => 2,
            panels => panels.clamp(1, 3),
        };
        let rows = self.panels.len().div_ceil(columns);
        let sizes = self.panels.iter().map(|panel| panel.size);
        let [panel_width, panel_height] = sizes.fold([0.0_f64; 2], |most, size| {
            [most[0].max(size[0]), most[1].max(size[1])]
        });
        let width = panel_width * columns as f64;
        let height = panel_height * rows as f64;
        let entries = key_places(&self.key, width);
        let lines = entries
            .iter()
            .map(|(_, line, _)| line + 1)
            .max()
            .unwrap_or(0);
        let top = HEAD + KEY * lines as f64;
        let mut svg = Svg::new(width, top + height, &self.title);
        svg.style(&format!("{LIGHT}{STYLE}"));
        svg.rect("ground", [0.0, 0.0], [width, top + height]);
        svg.text("title", 12.0, 20.0, &self.title);
        for (x, line, entry) in entries {
            let y = HEAD + KEY * line as f64 + 8.0;
            svg.line(
                &format!("line {}", entry.ink.class()),
                [x, y],
                [x + 22.0, y],
            );
            svg.text("", x + 28.0, y + 4.0, &entry.name);
        }
        for (place, panel) in self.panels.iter().enumerate() {
            let (x, y) = ((place % columns) as f64, (place / columns) as f64);
            svg.raw(&format!(
                "<g transform=\"translate({} {})\">\n{}</g>\n",
                x * panel_width,
                top + y * panel_height,
                panel.body
            ));
        }
        svg.finish()
    }
}

/// Where the entries of a key stand: from the left, and in which line.
fn key_places(key: &[KeyEntry], width: f64) -> Vec<(f64, usize, &KeyEntry)> {
    let (mut x, mut line) = (12.0, 0);
    let entries = if key.len() < 2 { &[] } else { key };
    entries
        .iter()
        .map(|entry| {
            let needed = 44.0 + text_width(&entry.name);
            if x > 12.0 && x + needed > width {
                (x, line) = (12.0, line + 1);
            }
            let place = (x, line, entry);
            x += needed;
            place
        })
        .collect()
}

impl Panel {
    fn new(title: &str, size: [f64; 2], body: Svg) -> Panel {
        Panel {
            title: title.to_owned(),
            size,
            body: body.body(),
        }
    }

    /// One of the usual size.
    fn usual(title: &str, body: Svg) -> Panel {
        Panel::new(title, [WIDTH, HEIGHT], body)
    }

    fn svg(&self, title: &str) -> String {
        let label = match &*self.title {
            "" => title.to_owned(),
            panel => format!("{title}: {panel}"),
        };
        let [width, height] = self.size;
        let mut svg = Svg::new(width, height, &label);
        svg.raw(&self.body);
        svg.finish()
    }
}

impl KeyEntry {
    fn html(&self) -> Markup {
        html! {
            li {
                svg width="22" height="8" aria-hidden="true" {
                    path class={ "line " (self.ink.class()) } d="M0 4H22" {}
                }
                (self.name)
            }
        }
    }
}

/// The ground of a panel: its title, and both axes with their names.
struct Frame<'a> {
    title: &'a str,
    x: &'a str,
    y: &'a str,
}

impl Frame<'_> {
    /// A panel with ticks, each with its place in pixels.
    fn draw(&self, x: &[(f64, String)], y: &[(f64, String)]) -> Svg {
        let mut svg = Svg::fragment();
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        svg.text("title", LEFT, TOP - 10.0, self.title);
        for (place, text) in y {
            svg.line("grid", [LEFT, *place], [right, *place]);
            svg.text("end", LEFT - 6.0, place + 4.0, text);
        }
        for (place, text) in x {
            svg.text("middle", *place, bottom + 15.0, text);
        }
        svg.text("middle dim", (LEFT + right) / 2.0, HEIGHT - 7.0, self.x);
        svg.upright("middle dim", 10.0, (TOP + bottom) / 2.0, self.y);
        svg
    }
}

/// Draws zero, and marks across a panel as far as `right`, on a vertical axis.
fn draw_levels(svg: &mut Svg, marks: &[Mark], y: &scale::Scale, right: f64) {
    svg.line("zero", [LEFT, y.place(0.0)], [right, y.place(0.0)]);
    for mark in marks.iter().filter(|mark| y.holds(mark.at)) {
        let place = y.place(mark.at);
        svg.line("mark", [LEFT, place], [right, place]);
        svg.text("dim", LEFT + 4.0, place - 3.0, &mark.name);
    }
}

/// About how wide a text is, in pixels.
fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * 6.2
}

/// Colours for light ground, where there are no variables.
pub(super) const LIGHT: &str = "\
text { font-family: system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif; fill: #1a1a1a }
.ground { fill: #ffffff }
";
