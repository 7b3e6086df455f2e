//! Where the parts of a chart stand for a width: the key or labels, titles, panels on a grid, axes.

use super::axes::{Room, text_width, wrapped};
use super::{Axes, Chart, Ink, KeyEntry, Panel};
use crate::svg::{Form, Svg};

/// Between panels beside each other: on a page and on a phone.
const GAPS: [f64; 2] = [28.0, 14.0];
/// Between panels below each other.
const BELOW: f64 = 20.0;
/// A line of a title, and one of the key.
const LINE: f64 = 17.0;
const KEY_LINE: f64 = 22.0;
/// Wider than that is a page, and no phone.
const PAGE: f64 = 600.0;
/// Labels need no more of a page than that.
const WIDEST_LABEL: f64 = 230.0;
/// What a panel has left of its plot where nothing stands there.
const NARROW: f64 = 8.0;

/// An entry of the key.
enum Entry<'a> {
    Series(&'a KeyEntry),
    /// What published numbers look like.
    Theirs,
}

impl Chart {
    /// Elements of SVG, and how high they are together.
    pub(super) fn laid_out(&self, width: f64) -> (String, f64) {
        let mut svg = Svg::fragment();
        let labels = self.labels(width);
        let mut y = 0.0;
        y += self.draw_key(&mut svg, width, labels.is_some());
        let Some(first) = self.panels.first() else {
            return (svg.body(), y.max(1.0));
        };
        let [x_title, y_title] = first.drawing.titles();
        if !y_title.is_empty() {
            svg.text("mut", 0.0, y + 13.0, y_title);
            y += 22.0;
        }
        let least = self.panels.iter().map(|panel| panel.drawing.least_width());
        let most = (width / least.fold(1.0, f64::max)).floor().max(1.0);
        let columns = columns(self.panels.len(), width).min(most as usize);
        let gap = if width > PAGE { GAPS[0] } else { GAPS[1] };
        for row in self.panels.chunks(columns) {
            let rooms = self.rooms(columns, width - gap * (columns as f64 - 1.0), labels);
            let lines = |(panel, room): (&Panel, &Room)| {
                wrapped(&panel.title, room.width - room.left).len()
            };
            let titles = row.iter().zip(&rooms).map(lines).max().unwrap_or_default();
            let head = titles as f64 * LINE + if titles > 0 { 8.0 } else { 0.0 };
            let mut x = 0.0;
            let mut below = 0.0_f64;
            for (panel, mut room) in row.iter().zip(rooms) {
                let left = if room.is_told { room.left } else { NARROW };
                for (nth, line) in wrapped(&panel.title, room.width - left).iter().enumerate() {
                    svg.text("title", x + left, y + LINE * (nth as f64 + 1.0) - 4.0, line);
                }
                room.height = panel.drawing.height(&room);
                svg.moved([x, y + head], 1.0, &panel.drawing.draw(&room).body());
                below = below.max(room.height);
                x += room.width + gap;
            }
            y += head + below + BELOW;
        }
        y -= BELOW;
        if !x_title.is_empty() {
            let left = first.drawing.left(width);
            svg.text("mut", left, y + 15.0, x_title);
            y += 24.0;
        }
        (svg.body(), y)
    }

    /// Room for each column: plots are equally wide, and the first has ticks for all, where axes are shared.
    fn rooms(&self, columns: usize, width: f64, labels: Option<f64>) -> Vec<Room> {
        let left = |column: usize| {
            let first = self.panels.get(column).or(self.panels.first());
            let left = first.map_or(0.0, |panel| match self.axes {
                Axes::Shared => panel.drawing.left(width),
                Axes::Own => panel.drawing.left(width / columns as f64),
            });
            if column == 0 || self.axes == Axes::Own {
                left
            } else {
                NARROW
            }
        };
        let lefts: Vec<f64> = (0..columns).map(left).collect();
        let first_left = lefts.first().copied().unwrap_or_default();
        let plot = (width - lefts.iter().sum::<f64>()) / columns as f64;
        let room = |(column, left): (usize, f64)| Room {
            width: left + plot,
            height: 0.0,
            left,
            first_left: match self.axes {
                Axes::Shared => first_left,
                Axes::Own => left,
            },
            is_told: column == 0 || self.axes == Axes::Own,
            labels: labels.unwrap_or_default(),
        };
        lefts.into_iter().enumerate().map(room).collect()
    }

    /// How wide labels of series are, where they stand at their ends instead of in a key: on a page, of one panel.
    fn labels(&self, width: f64) -> Option<f64> {
        let [only] = &*self.panels else { return None };
        let labels = only.drawing.labels();
        let widths = labels.iter().map(|label| text_width(label));
        let widest = widths.fold(0.0, f64::max);
        (width > PAGE && !labels.is_empty() && widest <= WIDEST_LABEL).then_some(widest + 14.0)
    }

    /// How high the key is.
    fn draw_key(&self, svg: &mut Svg, width: f64, is_labelled: bool) -> f64 {
        let entries: Vec<Entry<'_>> = (self.key.iter())
            .filter(|entry| !is_labelled && !entry.name.is_empty())
            .map(Entry::Series)
            .chain(self.has_theirs.then_some(Entry::Theirs))
            .collect();
        let places = key_places(&entries, width);
        for (entry, [x, y]) in entries.iter().zip(&places) {
            let middle = y + 9.0;
            match entry {
                Entry::Series(KeyEntry { ink, .. }) => sample(svg, *ink, [*x, middle]),
                Entry::Theirs => svg.form("theirs", Form::Diamond, [x + 8.0, middle], 5.0),
            }
            svg.text("", x + 28.0, middle + 4.5, entry.name());
        }
        places.last().map_or(0.0, |[_, y]| y + KEY_LINE + 10.0)
    }
}

impl Entry<'_> {
    fn name(&self) -> &str {
        match self {
            Entry::Series(entry) => &entry.name,
            Entry::Theirs => "published",
        }
    }
}

/// A line with its mark.
fn sample(svg: &mut Svg, ink: Ink, [x, y]: [f64; 2]) {
    svg.line(&format!("line {}", ink.class()), [x, y], [x + 22.0, y]);
    let class = format!("mark fill {}", ink.colour.class());
    svg.form(&class, ink.colour.form(), [x + 11.0, y], 4.5);
}

/// Where entries of a key stand.
fn key_places(entries: &[Entry<'_>], width: f64) -> Vec<[f64; 2]> {
    let (mut x, mut y) = (0.0, 0.0);
    let mut places = Vec::new();
    for entry in entries {
        let needed = 28.0 + text_width(entry.name());
        if x > 0.0 && x + needed > width {
            (x, y) = (0.0, y + KEY_LINE);
        }
        places.push([x, y]);
        x += needed + 22.0;
    }
    places
}

/// Panels beside each other.
fn columns(panels: usize, width: f64) -> usize {
    match (panels, width > PAGE) {
        (0 | 1, _) => 1,
        (2 | 4, true) => 2,
        (_, true) => 3,
        (2, false) => 1,
        (_, false) => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::{Colour, Stroke};

    #[test]
    fn a_key_breaks_into_lines() {
        let entry = |name: &str| KeyEntry {
            name: name.to_owned(),
            ink: Ink::new(Colour::Nth(0), Stroke::Solid),
        };
        let key = ["one".repeat(9), "two".repeat(9), "three".repeat(9)].map(|name| entry(&name));
        let entries: Vec<_> = key.iter().map(Entry::Series).collect();
        let lines: Vec<_> = key_places(&entries, 340.0)
            .iter()
            .map(|[_, y]| *y)
            .collect();
        assert_eq!(lines, [0.0, KEY_LINE, 2.0 * KEY_LINE]);
    }

    #[test]
    fn phones_have_as_many_panels_beside_each_other_as_can_be_read() {
        assert_eq!(
            [1, 2, 3, 4, 9].map(|panels| columns(panels, 960.0)),
            [1, 2, 3, 2, 3]
        );
        assert_eq!(
            [1, 2, 3, 4, 9].map(|panels| columns(panels, 328.0)),
            [1, 1, 2, 2, 2]
        );
    }
}
