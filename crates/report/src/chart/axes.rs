//! The ground of panels: where there is room, ticks, grid lines and texts that don't cover each other.

use super::scale::Scale;
use super::{Mark, Svg};

/// Above a plot, for what reaches beyond it.
pub(super) const TOP: f64 = 8.0;
/// Below a plot, for its ticks.
pub(super) const BOTTOM: f64 = 24.0;
/// What ticks of a vertical axis need.
pub(super) const LEFT: f64 = 44.0;
/// What the last tick of a horizontal axis needs.
const RIGHT: f64 = 14.0;

/// What a panel has, in pixels.
pub(in super::super) struct Room {
    pub(super) width: f64,
    pub(super) height: f64,
    /// Left of the plot.
    pub(super) left: f64,
    /// The same of the panel whose ticks or names are those of this one, too.
    pub(super) first_left: f64,
    /// Whether ticks of the vertical axis, or names of rows, stand there.
    pub(super) is_told: bool,
    /// Right of the plot, for labels of series.
    pub(super) labels: f64,
}

impl Room {
    /// Where the plot ends.
    pub(super) fn right(&self) -> f64 {
        self.width - RIGHT - self.labels
    }

    /// How high most panels are: a wide one is flatter than a narrow one.
    pub(super) fn usual_height(&self) -> f64 {
        (90.0 + 0.44 * (self.width - self.left)).clamp(170.0, 390.0)
    }

    /// A plot whose vertical axis has ticks.
    pub(super) fn frame(&self, y: &Scale, bottom: f64) -> Svg {
        let mut svg = Svg::fragment();
        for (place, text) in y.ticks() {
            svg.line("grid", [self.left, place], [self.right(), place]);
            if self.is_told {
                svg.text("mut end", self.left - 8.0, place + 4.0, &text);
            }
        }
        svg.line(
            "zero",
            [self.left, y.place(0.0)],
            [self.right(), y.place(0.0)],
        );
        svg.line("grid", [self.left, bottom], [self.right(), bottom]);
        svg
    }

    /// Levels across a plot.
    pub(super) fn levels(&self, svg: &mut Svg, marks: &[Mark], y: &Scale) {
        for mark in marks.iter().filter(|mark| y.holds(mark.at)) {
            let place = y.place(mark.at);
            svg.line("level", [self.left, place], [self.right(), place]);
            if self.is_told {
                svg.text("mut", self.left + 4.0, place - 4.0, &mark.name);
            }
        }
    }
}

/// How texts stand along a horizontal axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ticks {
    /// Beside each other, numbers without those that would touch.
    Level,
    /// Names of which none can be left out, from below.
    Upright,
}

/// What may stand along a horizontal axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Texts {
    /// Some tell the others.
    Numbers,
    /// All are needed.
    Names,
}

/// How these texts stand where each has so many pixels, and how high they are.
pub(super) fn stand<'t>(
    texts: impl Iterator<Item = &'t str> + Clone,
    what: Texts,
    step: f64,
) -> (Ticks, f64) {
    let widest = texts.map(text_width).fold(0.0, f64::max);
    if what == Texts::Names && widest + 6.0 > step {
        (Ticks::Upright, widest + 16.0)
    } else {
        (Ticks::Level, BOTTOM)
    }
}

/// Texts below a plot.
pub(super) fn along(
    svg: &mut Svg,
    texts: &[(f64, String)],
    ticks: Ticks,
    what: Texts,
    bottom: f64,
) {
    if ticks == Ticks::Upright {
        for (place, text) in texts {
            svg.upright("mut end", place + 4.0, bottom + 8.0, text);
        }
        return;
    }
    let mut free = f64::NEG_INFINITY;
    for (place, text) in texts {
        let half = text_width(text) / 2.0;
        if what == Texts::Numbers && place - half < free {
            continue;
        }
        svg.text("mut middle", *place, bottom + 17.0, text);
        free = place + half + 8.0;
    }
}

/// About how wide a text of drawings is, in pixels.
pub(in super::super) fn text_width(text: &str) -> f64 {
    let wide = |c: char| match c {
        'i' | 'j' | 'l' | 't' | 'f' | 'r' | '.' | ',' | ':' | ';' | '|' | '\'' | ' ' | '('
        | ')' => 4.6,
        'm' | 'w' | 'M' | 'W' | '%' => 11.6,
        'A'..='Z' => 8.8,
        // Scripts whose letters are squares.
        '\u{1100}'.. => 13.0,
        _ => 7.7,
    };
    text.chars().map(wide).sum()
}

/// A text in lines that are no wider, broken at spaces, and within what has none.
pub(in super::super) fn wrapped(text: &str, width: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let mut word = word.to_owned();
        while !word.is_empty() {
            let joined = match lines.last() {
                Some(line) if !line.is_empty() => format!("{line} {word}"),
                _ => word.clone(),
            };
            if text_width(&joined) <= width {
                match lines.last_mut() {
                    Some(line) => *line = joined,
                    None => lines.push(joined),
                }
                break;
            }
            if text_width(&word) <= width {
                lines.push(word);
                break;
            }
            // As much of it as there is room for, at least a letter.
            let mut head = String::new();
            for letter in word.chars() {
                head.push(letter);
                if text_width(&head) > width && head.chars().count() > 1 {
                    head.pop();
                    break;
                }
            }
            word = word.chars().skip(head.chars().count()).collect();
            lines.push(head);
            if !word.is_empty() {
                lines.push(String::new());
            }
        }
    }
    lines.retain(|line| !line.is_empty());
    lines
}
