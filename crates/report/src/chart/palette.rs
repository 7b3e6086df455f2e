//! The colours of pages and of drawings, in light and in dark: one table.

/// A colour by name: on light ground, and on dark.
///
/// Texts stand out from the paper by 4.5 or more (WCAG 2.2, 1.4.3), marks by 3 (1.4.11), and any two colours of
/// series are apart for people with any kind of colour vision; tests have the arithmetic.
type Token = (&'static str, &'static str, &'static str);

const PAPER: Token = ("paper", "#fffefb", "#14171a");

/// What is read.
const TEXTS: [Token; 7] = [
    ("ink", "#1b1f24", "#e6e9ec"),
    ("mut", "#5a636d", "#a4adb7"),
    ("link", "#0b5c9e", "#79b8f3"),
    ("cost", "#b34700", "#ffa45c"),
    ("agrees", "#00694c", "#4fd3a5"),
    ("differs", "#b34700", "#ffa45c"),
    ("unknown", "#6d5400", "#e8c34a"),
];

/// What is seen: bars of messages, the line of zero, and series, the baseline's first.
const MARKS: [Token; 11] = [
    ("bar", "#1f6aa8", "#4a9df0"),
    ("zero", "#8a929b", "#7d8791"),
    ("base", "#7a838d", "#8b95a1"),
    ("c0", "#1f78c8", "#4a9df0"),
    ("c1", "#c2500a", "#f5893a"),
    ("c2", "#00705c", "#5fe0bd"),
    ("c3", "#5b1a78", "#e3b5f2"),
    ("c4", "#9d87b2", "#caf108"),
    ("c5", "#5a170b", "#e20a54"),
    ("c6", "#6b06ed", "#8526fc"),
    ("c7", "#262c43", "#a23995"),
];

/// Grounds: of cells of tables, each with the text that stands on it, and of lines between rows.
const GROUNDS: [Token; 8] = [
    ("on-bar", "#ffffff", "#14171a"),
    ("bar2", "#77a9d4", "#2d5f8f"),
    ("rule", "#dedfdd", "#2f3336"),
    ("later", "#fbe3c8", "#4d2f12"),
    ("on-later", "#8f3d00", "#ffbf87"),
    ("part", "#fdf2e3", "#33240f"),
    ("sooner", "#d9e8f5", "#16344f"),
    ("same", "#f5f4ef", "#1c2024"),
];

fn all() -> impl Iterator<Item = &'static Token> {
    std::iter::once(&PAPER)
        .chain(&TEXTS)
        .chain(&MARKS)
        .chain(&GROUNDS)
}

/// All colours as variables of a page: light, and dark where the reader's screen is.
pub(in super::super) fn variables() -> String {
    let light: String = all()
        .map(|(name, light, _)| format!("--{name}:{light};"))
        .collect();
    let dark: String = all()
        .map(|(name, _, dark)| format!("--{name}:{dark};"))
        .collect();
    format!(":root{{{light}}}\n@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}\n")
}

/// A style with the light colours in it, for what has no page around it.
pub(in super::super) fn resolved(style: &str) -> String {
    all().fold(style.to_owned(), |style, (name, light, _)| {
        style.replace(&format!("var(--{name})"), light)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use super::*;

    /// Linear light of red, green and blue, each from 0 to 1.
    fn linear(hex: &str) -> [f64; 3] {
        [1, 3, 5].map(|at| {
            let part = f64::from(u8::from_str_radix(&hex[at..at + 2], 16).unwrap()) / 255.0;
            if part <= 0.04045 {
                part / 12.92
            } else {
                ((part + 0.055) / 1.055).powf(2.4)
            }
        })
    }

    /// WCAG 2.2's relative luminance and contrast ratio.
    fn contrast(one: &str, other: &str) -> f64 {
        let luminance = |hex| {
            let [r, g, b] = linear(hex);
            0.2126 * r + 0.7152 * g + 0.0722 * b
        };
        let [one, other] = [luminance(one), luminance(other)];
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    /// Colour vision: of most people, and without one kind of cone (Machado et al. 2009, severity 1).
    const VISIONS: [(&str, [[f64; 3]; 3]); 4] = [
        (
            "all cones",
            [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        ),
        (
            "protanopia",
            [
                [0.152286, 1.052583, -0.204868],
                [0.114503, 0.786281, 0.099216],
                [-0.003882, -0.048116, 1.051998],
            ],
        ),
        (
            "deuteranopia",
            [
                [0.367322, 0.860646, -0.227968],
                [0.280085, 0.672501, 0.047413],
                [-0.011820, 0.042940, 0.968881],
            ],
        ),
        (
            "tritanopia",
            [
                [1.255528, -0.076749, -0.178779],
                [-0.078411, 0.930809, 0.147602],
                [0.004733, 0.691367, 0.303900],
            ],
        ),
    ];

    /// CIE 1976 L*a*b* of linear light, as a white point of D65 has it.
    fn lab([r, g, b]: [f64; 3]) -> [f64; 3] {
        let f = |t: f64| {
            if t > 216.0 / 24389.0 {
                t.cbrt()
            } else {
                (24389.0 / 27.0 * t + 16.0) / 116.0
            }
        };
        let x = f((0.4124564 * r + 0.3575761 * g + 0.1804375 * b) / 0.95047);
        let y = f(0.2126729 * r + 0.7151522 * g + 0.0721750 * b);
        let z = f((0.0193339 * r + 0.1191920 * g + 0.9503041 * b) / 1.08883);
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    fn seen(hex: &str, vision: &[[f64; 3]; 3]) -> [f64; 3] {
        let light = linear(hex);
        lab(vision.map(|row| {
            let sum: f64 = row
                .iter()
                .zip(light)
                .map(|(share, part)| share * part)
                .sum();
            sum.clamp(0.0, 1.0)
        }))
    }

    #[test]
    fn texts_and_marks_stand_out_from_the_paper() {
        for (tokens, least) in [(&TEXTS[..], 4.5), (&MARKS[..], 3.0)] {
            for (name, light, dark) in tokens {
                for (colour, paper) in [(light, PAPER.1), (dark, PAPER.2)] {
                    let contrast = contrast(colour, paper);
                    assert!(contrast >= least, "{name}: {colour} has {contrast:.2}");
                }
            }
        }
    }

    #[test]
    fn texts_stand_out_from_the_grounds_of_cells() {
        let of = |wanted: &str| all().find(|(name, ..)| *name == wanted).unwrap();
        let pairs = [
            ("on-later", "later"),
            ("on-bar", "bar"),
            ("ink", "part"),
            ("ink", "sooner"),
            ("ink", "same"),
            ("mut", "part"),
            ("mut", "sooner"),
            ("mut", "same"),
        ];
        for (text, ground) in pairs {
            let (text, ground) = (of(text), of(ground));
            for (one, other) in [(text.1, ground.1), (text.2, ground.2)] {
                let contrast = contrast(one, other);
                assert!(contrast >= 4.5, "{} on {}: {contrast:.2}", text.0, ground.0);
            }
        }
    }

    #[test]
    fn series_are_apart_for_the_colour_blind() {
        /// A distance that is plain to see.
        const PLAIN: f64 = 10.0;
        let series: Vec<&Token> = MARKS
            .iter()
            .filter(|(name, ..)| name.starts_with('c'))
            .collect();
        assert_eq!(series.len(), super::super::COLOURS);
        for (vision, matrix) in &VISIONS {
            for (index, one) in series.iter().enumerate() {
                for other in &series[index + 1..] {
                    for (a, b) in [(one.1, other.1), (one.2, other.2)] {
                        let [a, b] = [seen(a, matrix), seen(b, matrix)];
                        let apart = a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
                        let apart = apart.sqrt();
                        assert!(
                            apart > PLAIN,
                            "{} and {}, {vision}: {apart:.1}",
                            one.0,
                            other.0
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn nothing_is_left_to_resolve() {
        let css = include_str!("chart.css");
        assert!(css.contains("var(--c7)"));
        assert!(!resolved(css).contains("var("), "{}", resolved(css));
    }
}
