//! SVG by hand.

use super::escape::xml;

/// What a point looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Disc,
    Square,
    Diamond,
    Up,
    Hourglass,
    Cross,
    Down,
    Plus,
    /// Lying.
    Bar,
}

impl Form {
    /// Those of series, in the order in which they are given to them.
    pub(super) const ALL: [Form; 8] = [
        Form::Disc,
        Form::Square,
        Form::Up,
        Form::Diamond,
        Form::Cross,
        Form::Down,
        Form::Plus,
        Form::Hourglass,
    ];

    /// Its corners for a radius of 1, around zero; a disc has none.
    fn corners(self) -> &'static [[f64; 2]] {
        match self {
            Form::Disc => &[],
            Form::Square => &[[-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]],
            Form::Diamond => &[[0.0, -1.25], [1.25, 0.0], [0.0, 1.25], [-1.25, 0.0]],
            Form::Up => &[[0.0, -1.2], [1.15, 0.9], [-1.15, 0.9]],
            Form::Down => &[[0.0, 1.2], [1.15, -0.9], [-1.15, -0.9]],
            Form::Bar => &[[-1.3, -0.45], [1.3, -0.45], [1.3, 0.45], [-1.3, 0.45]],
            Form::Plus => &[
                [-0.42, -1.25],
                [0.42, -1.25],
                [0.42, -0.42],
                [1.25, -0.42],
                [1.25, 0.42],
                [0.42, 0.42],
                [0.42, 1.25],
                [-0.42, 1.25],
                [-0.42, 0.42],
                [-1.25, 0.42],
                [-1.25, -0.42],
                [-0.42, -0.42],
            ],
            Form::Cross => &[
                [-1.15, -0.6],
                [-0.6, -1.15],
                [0.0, -0.55],
                [0.6, -1.15],
                [1.15, -0.6],
                [0.55, 0.0],
                [1.15, 0.6],
                [0.6, 1.15],
                [0.0, 0.55],
                [-0.6, 1.15],
                [-1.15, 0.6],
                [-0.55, 0.0],
            ],
            Form::Hourglass => &[[-1.1, -1.1], [1.1, -1.1], [-1.1, 1.1], [1.1, 1.1]],
        }
    }
}

/// A picture that takes its ink from the text around it, so that it suits light and dark pages.
pub(super) struct Svg {
    elements: String,
    /// The class of the path that was drawn last: what follows it and looks alike is drawn in one.
    last: Option<String>,
}

/// What ends a path.
const END: &str = "\"/>\n";

impl Svg {
    /// An empty picture of this size, in pixels. `label` is what it is called for those who don't
    /// see it.
    pub(super) fn new(width: f64, height: f64, label: &str) -> Svg {
        let mut svg = Svg::fragment();
        svg.push(&format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             width=\"{width}\" height=\"{height}\" role=\"img\" aria-label=\"{}\">\n",
            xml(label)
        ));
        svg
    }

    /// Elements that belong into another picture.
    pub(super) fn fragment() -> Svg {
        Svg {
            elements: String::new(),
            last: None,
        }
    }

    fn push(&mut self, element: &str) {
        self.elements.push_str(element);
        self.last = None;
    }

    /// A path, or more of the one before.
    fn push_path(&mut self, class: &str, path: &str) {
        if self.last.as_deref() == Some(class) && self.elements.ends_with(END) {
            self.elements.truncate(self.elements.len() - END.len());
        } else {
            self.push(&format!("<path class=\"{class}\" d=\""));
            self.last = Some(class.to_owned());
        }
        self.elements.push_str(path);
        self.elements.push_str(END);
    }

    /// What the picture looks like where no page says it.
    pub(super) fn style(&mut self, style: &str) {
        self.push(&format!("<style>\n{style}</style>\n"));
    }

    /// Elements that were drawn already.
    pub(super) fn raw(&mut self, elements: &str) {
        self.push(elements);
    }

    /// Elements that were drawn elsewhere, moved and then as large as that.
    pub(super) fn moved(&mut self, [x, y]: [f64; 2], scale: f64, elements: &str) {
        let scaled = match scale {
            1.0 => String::new(),
            scale => format!(" scale({scale:.4})"),
        };
        let (x, y) = (pixels(x), pixels(y));
        self.push(&format!(
            "<g transform=\"translate({x} {y}){scaled}\">\n{elements}</g>\n"
        ));
    }

    /// A point.
    pub(super) fn form(&mut self, class: &str, form: Form, [x, y]: [f64; 2], radius: f64) {
        let corner = |[dx, dy]: &[f64; 2]| [x + radius * dx, y + radius * dy];
        match form {
            Form::Disc => {
                let (left, y, across) = (pixels(x - radius), pixels(y), pixels(2.0 * radius));
                let half = format!("a{radius} {radius} 0 1 0");
                self.push_path(
                    class,
                    &format!("M{left} {y}{half} {across} 0{half}-{across} 0z"),
                );
            }
            _ => self.area(class, form.corners().iter().map(corner)),
        }
    }

    pub(super) fn rect(&mut self, class: &str, [x, y]: [f64; 2], [width, height]: [f64; 2]) {
        let [x, y, back] = [x, y, -width].map(pixels);
        let [width, height] = [width, height].map(pixels);
        self.push_path(class, &format!("M{x} {y}h{width}v{height}h{back}z"));
    }

    pub(super) fn polyline(&mut self, class: &str, points: impl Iterator<Item = [f64; 2]>) {
        self.path(class, points, "");
    }

    /// What lies within a line that ends where it begins.
    pub(super) fn area(&mut self, class: &str, points: impl Iterator<Item = [f64; 2]>) {
        self.path(class, points, "z");
    }

    fn path(&mut self, class: &str, points: impl Iterator<Item = [f64; 2]>, end: &str) {
        // Steps from place to place are shorter than places; of rounded ones, so that nothing adds up.
        let mut places: Vec<[i64; 2]> = points.map(|place| place.map(tenths)).collect();
        places.dedup();
        let Some(([x, y], others)) = places
            .split_first()
            .filter(|(_, others)| !others.is_empty())
        else {
            return;
        };
        let mut path = format!("M{} {}", decimal(*x), decimal(*y));
        let (mut x, mut y) = (*x, *y);
        for [next_x, next_y] in others {
            let (dx, dy) = (next_x - x, next_y - y);
            path += &match (dx, dy) {
                (dx, 0) => format!("h{}", decimal(dx)),
                (0, dy) => format!("v{}", decimal(dy)),
                (dx, dy) => format!("l{} {}", decimal(dx), decimal(dy)),
            };
            (x, y) = (*next_x, *next_y);
        }
        self.push_path(class, &(path + end));
    }

    pub(super) fn text(&mut self, class: &str, x: f64, y: f64, text: &str) {
        let (x, y) = (pixels(x), pixels(y));
        self.push(&format!(
            "<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{}</text>\n",
            xml(text)
        ));
    }

    /// Text that reads from below.
    pub(super) fn upright(&mut self, class: &str, x: f64, y: f64, text: &str) {
        let (x, y) = (pixels(x), pixels(y));
        self.push(&format!(
            "<text class=\"{class}\" transform=\"translate({x} {y}) rotate(-90)\">{}</text>\n",
            xml(text)
        ));
    }

    pub(super) fn line(&mut self, class: &str, from: [f64; 2], to: [f64; 2]) {
        let ([x1, y1], [x2, y2]) = (from.map(pixels), to.map(pixels));
        self.push_path(class, &format!("M{x1} {y1}L{x2} {y2}"));
    }

    /// Points as lines of no length, which round caps make dots.
    pub(super) fn dots(&mut self, class: &str, points: impl Iterator<Item = [f64; 2]>) {
        let dot = |[x, y]: [f64; 2]| format!("M{} {}h0", pixels(x), pixels(y));
        let mut dots: Vec<String> = points.map(dot).collect();
        dots.dedup();
        self.push_path(class, &dots.concat());
    }

    pub(super) fn ring(&mut self, class: &str, [x, y]: [f64; 2], radius: f64) {
        let (x, y) = (pixels(x), pixels(y));
        self.push(&format!(
            "<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"/>\n"
        ));
    }

    /// A ring that tells its name to who points at it.
    pub(super) fn named_ring(&mut self, class: &str, [x, y]: [f64; 2], radius: f64, name: &str) {
        let (x, y) = (pixels(x), pixels(y));
        self.push(&format!(
            "<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"{radius:.1}\"><title>{}</title></circle>\n",
            xml(name)
        ));
    }

    /// The elements of a [`Svg::fragment`].
    pub(super) fn body(self) -> String {
        self.elements
    }

    pub(super) fn finish(mut self) -> String {
        self.push("</svg>\n");
        self.elements
    }
}

/// A place or a length, to a tenth of a pixel.
fn pixels(number: f64) -> String {
    decimal(tenths(number))
}

fn tenths(number: f64) -> i64 {
    (number * 10.0).round() as i64
}

/// `12`, `-0.5`
fn decimal(tenths: i64) -> String {
    let sign = if tenths < 0 { "-" } else { "" };
    match (tenths.abs() / 10, tenths.abs() % 10) {
        (whole, 0) => format!("{sign}{whole}"),
        (whole, tenth) => format!("{sign}{whole}.{tenth}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_told_to_a_tenth() {
        let decimal = [0.0, -0.04, 0.05, -0.5, 12.0, -12.34, 1e9, f64::NAN].map(pixels);
        assert_eq!(
            decimal,
            ["0", "0", "0.1", "-0.5", "12", "-12.3", "1000000000", "0"]
        );
    }

    #[test]
    fn paths_that_look_alike_are_one_and_come_back_to_where_they_are() {
        let mut svg = Svg::fragment();
        svg.line("a", [1.0, 2.0], [1.0, 4.04]);
        svg.polyline(
            "a",
            [[0.0, 0.0], [0.04, 0.0], [10.06, 0.0], [3.0, -1.0]].into_iter(),
        );
        svg.line("b", [0.0, 0.0], [5.0, 5.0]);
        svg.text("a", 1.0, 1.0, "<");
        svg.line("b", [0.0, 0.0], [5.0, 5.0]);
        // What has one place is no line.
        svg.polyline("b", [[1.0, 1.0], [1.01, 1.0]].into_iter());
        assert_eq!(
            svg.body(),
            "<path class=\"a\" d=\"M1 2L1 4M0 0h10.1l-7.1 -1\"/>\n\
             <path class=\"b\" d=\"M0 0L5 5\"/>\n\
             <text class=\"a\" x=\"1\" y=\"1\">&lt;</text>\n\
             <path class=\"b\" d=\"M0 0L5 5\"/>\n"
        );
    }
}
