//! SVG by hand.

/// A picture that takes its ink from the text around it, so that it suits light and dark pages.
pub(super) struct Svg(String);

impl Svg {
    /// An empty picture of this size, in pixels. `label` is what it is called for those who don't
    /// see it.
    pub(super) fn new(width: f64, height: f64, label: &str) -> Svg {
        Svg(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             width=\"{width}\" height=\"{height}\" role=\"img\" aria-label=\"{}\">\n",
            escape(label)
        ))
    }

    pub(super) fn text(&mut self, class: &str, x: f64, y: f64, text: &str) {
        self.0.push_str(&format!(
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>\n",
            escape(text)
        ));
    }

    /// Text that reads from below.
    pub(super) fn upright(&mut self, class: &str, x: f64, y: f64, text: &str) {
        self.0.push_str(&format!(
            "<text class=\"{class}\" transform=\"translate({x:.1} {y:.1}) rotate(-90)\">{}</text>\n",
            escape(text)
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

    pub(super) fn finish(mut self) -> String {
        self.0.push_str("</svg>\n");
        self.0
    }
}

/// Keeps text from being markup.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
