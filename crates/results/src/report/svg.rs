//! SVG by hand.

use super::escape::xml;

/// What a point looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Disc,
    Square,
    Diamond,
    Up,
    Ring,
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
        Form::Ring,
    ];

    /// Its corners for a radius of 1, around zero. Those of a ring are two squares.
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
            Form::Ring => &[
                [-1.1, -1.1],
                [1.1, -1.1],
                [1.1, 1.1],
                [-1.1, 1.1],
                [-1.1, -0.45],
                [-0.45, -0.45],
                [-0.45, 0.45],
                [0.45, 0.45],
                [0.45, -0.45],
                [-1.1, -0.45],
            ],
        }
    }
}

/// A picture that takes its ink from the text around it, so that it suits light and dark pages.
pub(super) struct Svg(String);

impl Svg {
    /// An empty picture of this size, in pixels. `label` is what it is called for those who don't
    /// see it.
    pub(super) fn new(width: f64, height: f64, label: &str) -> Svg {
        Svg(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             width=\"{width}\" height=\"{height}\" role=\"img\" aria-label=\"{}\">\n",
            xml(label)
        ))
    }

    /// Elements that belong into another picture.
    pub(super) fn fragment() -> Svg {
        Svg(String::new())
    }

    /// What the picture looks like where no page says it.
    pub(super) fn style(&mut self, style: &str) {
        self.0.push_str(&format!("<style>\n{style}</style>\n"));
    }

    /// Elements that were drawn already.
    pub(super) fn raw(&mut self, elements: &str) {
        self.0.push_str(elements);
    }

    /// Elements that were drawn elsewhere, moved and then as large as that.
    pub(super) fn moved(&mut self, [x, y]: [f64; 2], scale: f64, elements: &str) {
        let scaled = match scale {
            1.0 => String::new(),
            scale => format!(" scale({scale:.4})"),
        };
        self.0.push_str(&format!(
            "<g transform=\"translate({x:.1} {y:.1}){scaled}\">\n{elements}</g>\n"
        ));
    }

    /// A point.
    pub(super) fn form(&mut self, class: &str, form: Form, [x, y]: [f64; 2], radius: f64) {
        match form {
            Form::Disc => self.ring(class, [x, y], radius),
            _ => self.area(
                class,
                form.corners()
                    .iter()
                    .map(|[dx, dy]| [x + radius * dx, y + radius * dy]),
            ),
        }
    }

    pub(super) fn rect(&mut self, class: &str, [x, y]: [f64; 2], [width, height]: [f64; 2]) {
        self.0.push_str(&format!(
            "<path class=\"{class}\" d=\"M{x:.1} {y:.1}h{width:.1}v{height:.1}h{:.1}z\"/>\n",
            -width
        ));
    }

    pub(super) fn polyline(&mut self, class: &str, points: impl Iterator<Item = [f64; 2]>) {
        self.path(class, points, "");
    }

    /// What lies within a line that ends where it begins.
    pub(super) fn area(&mut self, class: &str, points: impl Iterator<Item = [f64; 2]>) {
        self.path(class, points, "z");
    }

    fn path(&mut self, class: &str, points: impl Iterator<Item = [f64; 2]>, end: &str) {
        let mut points: Vec<String> = points.map(|[x, y]| format!("{x:.1} {y:.1}")).collect();
        points.dedup();
        if points.len() > 1 {
            let points = points.join("L");
            self.0
                .push_str(&format!("<path class=\"{class}\" d=\"M{points}{end}\"/>\n"));
        }
    }

    pub(super) fn text(&mut self, class: &str, x: f64, y: f64, text: &str) {
        self.0.push_str(&format!(
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>\n",
            xml(text)
        ));
    }

    /// Text that reads from below.
    pub(super) fn upright(&mut self, class: &str, x: f64, y: f64, text: &str) {
        self.0.push_str(&format!(
            "<text class=\"{class}\" transform=\"translate({x:.1} {y:.1}) rotate(-90)\">{}</text>\n",
            xml(text)
        ));
    }

    pub(super) fn line(&mut self, class: &str, from: [f64; 2], to: [f64; 2]) {
        let ([x1, y1], [x2, y2]) = (from, to);
        self.0.push_str(&format!(
            "<path class=\"{class}\" d=\"M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}\"/>\n"
        ));
    }

    /// Points as lines of no length, which round caps make dots.
    pub(super) fn dots(&mut self, class: &str, points: impl Iterator<Item = [f64; 2]>) {
        let mut dots: Vec<String> = points.map(|[x, y]| format!("M{x:.1} {y:.1}h0")).collect();
        dots.dedup();
        self.0.push_str(&format!(
            "<path class=\"{class}\" d=\"{}\"/>\n",
            dots.concat()
        ));
    }

    pub(super) fn ring(&mut self, class: &str, [x, y]: [f64; 2], radius: f64) {
        self.0.push_str(&format!(
            "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\"/>\n"
        ));
    }

    /// A ring that tells its name to who points at it.
    pub(super) fn named_ring(&mut self, class: &str, [x, y]: [f64; 2], radius: f64, name: &str) {
        self.0.push_str(&format!(
            "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius:.1}\"><title>{}</title></circle>\n",
            xml(name)
        ));
    }

    /// The elements of a [`Svg::fragment`].
    pub(super) fn body(self) -> String {
        self.0
    }

    pub(super) fn finish(mut self) -> String {
        self.0.push_str("</svg>\n");
        self.0
    }
}
