//! Columns and lines of the terminal.

use std::cmp::Reverse;

use anstyle::{AnsiColor, Style};
use lastbyte_link::{is_hidden, visible};

/// Spaces between columns.
const GAP: usize = 2;

/// What a report is shown on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Screen {
    /// Whether it shows colours.
    pub colours: Colours,
    /// How wide lines may be, in characters. A word that is wider stands alone.
    pub columns: usize,
}

/// Whether a report is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colours {
    /// Text alone.
    None,
    /// With ANSI escape codes.
    Ansi,
}

/// What a piece of text is, which decides how it looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Normal,
    Heading,
    Dim,
    Warning,
}

impl Role {
    const ALL: [Role; 4] = [Role::Normal, Role::Heading, Role::Dim, Role::Warning];

    /// In colours.
    fn style(self) -> Style {
        let plain = Style::new();
        match self {
            Role::Normal => plain,
            Role::Heading => plain.bold(),
            Role::Dim => plain.dimmed(),
            Role::Warning => plain.fg_color(Some(AnsiColor::Yellow.into())).bold(),
        }
    }
}

/// A text of several lines as a terminal may have it: what strangers have named in it shows whatever is
/// [hidden](lastbyte_link::is_hidden), and moves nothing. Only the colours of a [`Screen`] act.
pub fn for_terminal(text: &str) -> String {
    let mut codes: Vec<String> = (Role::ALL.iter())
        .flat_map(|role| [format!("{}", role.style()), format!("{:#}", role.style())])
        .filter(|code| !code.is_empty())
        .collect();
    codes.push("\n".to_owned());
    // One may begin as another one does.
    codes.sort_by_key(|code| Reverse(code.len()));
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(place) = rest.find(is_hidden) {
        let (shown, hidden) = rest.split_at(place);
        out += shown;
        let known = codes.iter().find(|code| hidden.starts_with(code.as_str()));
        let length = known.map_or_else(
            || hidden.chars().next().map_or(0, char::len_utf8),
            String::len,
        );
        let (hidden, behind) = hidden.split_at(length);
        match known {
            Some(code) => out += code,
            None => out += &visible(hidden),
        }
        rest = behind;
    }
    out + rest
}

impl Screen {
    /// What is no terminal: a file, or a pipe.
    pub const PLAIN: Screen = Screen {
        colours: Colours::None,
        columns: 100,
    };

    /// `text` with its escape codes.
    pub(super) fn paint(self, role: Role, text: &str) -> String {
        let style = match self.colours {
            Colours::None => Style::new(),
            Colours::Ansi => role.style(),
        };
        if text.is_empty() {
            String::new()
        } else {
            format!("{style}{text}{style:#}")
        }
    }

    /// Breaks `text` between words so that no line is too wide, and indents all lines but the first.
    pub(super) fn wrap(self, text: &str, indent: usize) -> String {
        // A number stays with its unit.
        let text = text.replace(" %", "\u{a0}%").replace(" ms", "\u{a0}ms");
        let mut out = String::new();
        let mut column = 0;
        for word in text.split(' ') {
            let width = word.chars().count();
            if column > 0 && column + 1 + width > self.columns {
                out.push('\n');
                out.push_str(&" ".repeat(indent));
                column = indent;
            } else if column > 0 {
                out.push(' ');
                column += 1;
            }
            out.push_str(word);
            column += width;
        }
        out.replace('\u{a0}', " ")
    }
}

/// A document in JSON as a terminal may have it, which reads as what it was: JSON itself escapes only some of what acts on
/// one.
pub fn json_for_terminal(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if c != '\n' && is_hidden(c) {
            // None needs more than 16 bits.
            out += &format!("\\u{:04x}", u32::from(c))
        } else {
            out.push(c)
        }
    }
    out
}

/// One line of a report.
pub(super) enum Line {
    /// Text that stands outside of the columns.
    Text(Role, String),
    /// A label on the left and fields in columns that end flush.
    Fields(Field, Vec<Field>),
}

/// A piece of text in a column.
#[derive(Clone)]
pub(super) struct Field {
    pub(super) role: Role,
    pub(super) text: String,
}

impl Field {
    pub(super) fn new(role: Role, text: impl Into<String>) -> Field {
        Field {
            role,
            text: text.into(),
        }
    }

    fn width(&self) -> usize {
        self.text.chars().count()
    }
}

/// How wide lines are in columns that they share.
pub(super) fn width(lines: &[Line]) -> usize {
    let Columns { label, widths } = Columns::of(lines, usize::MAX);
    label + widths.iter().map(|width| GAP + width).sum::<usize>()
}

/// How wide columns are.
struct Columns {
    label: usize,
    widths: Vec<usize>,
}

impl Columns {
    /// Those of lines that may be so wide.
    fn of(lines: &[Line], most: usize) -> Columns {
        let rows = || {
            lines.iter().filter_map(|line| match line {
                Line::Fields(label, fields) => Some((label, fields)),
                Line::Text(..) => None,
            })
        };
        let columns = rows().map(|(_, fields)| fields.len()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns)
            .map(|column| {
                rows()
                    .filter_map(|(_, fields)| fields.get(column))
                    .map(Field::width)
                    .max()
                    .unwrap_or(0)
            })
            .collect();
        let taken: usize = widths.iter().map(|width| width + GAP).sum();
        // A label may reach into the first column as far as that is free.
        let needed = rows().map(|(label, fields)| {
            let free = widths
                .first()
                .zip(fields.first())
                .map_or(0, |(width, field)| width - field.width());
            label.width().saturating_sub(free)
        });
        let label = needed.max().unwrap_or(0).min(most.saturating_sub(taken));
        Columns { label, widths }
    }
}

/// Sets `lines` in columns that they share. A label that is too long has a line of its own, and so has
/// a field that does not fit besides.
pub(super) fn set(lines: &[Line], screen: Screen) -> String {
    let Columns {
        label: label_width,
        widths,
    } = Columns::of(lines, screen.columns);
    let mut out = String::new();
    for line in lines {
        match line {
            Line::Text(role, text) => out.push_str(&screen.paint(*role, text)),
            Line::Fields(label, fields) => {
                out.push_str(&screen.paint(label.role, &label.text));
                let mut column = label.width();
                let mut end = label_width;
                for (field, width) in fields.iter().zip(&widths) {
                    end += GAP + width;
                    if field.text.is_empty() {
                        continue;
                    }
                    if column + GAP + field.width() > end {
                        out.push('\n');
                        column = 0;
                    }
                    out.push_str(&" ".repeat(end.saturating_sub(column + field.width())));
                    out.push_str(&screen.paint(field.role, &field.text));
                    column = end;
                }
            }
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_terminal_gets_our_colours_and_nobody_elses_codes() {
        let screen = Screen {
            colours: Colours::Ansi,
            columns: 80,
        };
        let ours = Role::ALL.map(|role| screen.paint(role, "text")).join("\n");
        assert_eq!(for_terminal(&ours), ours);
        assert_eq!(for_terminal("a\nb\n"), "a\nb\n");
        let theirs =
            "\u{1b}[2Jarm\r\u{9b}31m\u{202e}gnp.exe\u{1b}[1A\u{1b}]0;title\u{7}\u{1b}[8mhidden";
        let shown = for_terminal(theirs);
        assert!(!shown.contains(is_hidden), "{shown}");
        assert_eq!(shown, visible(theirs));
    }

    #[test]
    fn nothing_in_json_acts_on_a_terminal_and_it_reads_as_what_it_was() {
        let words = "a \u{1b}[31m b \u{9b}0m \u{7f} \u{202e} \u{2028} ü \n";
        let text = json_for_terminal(&format!("{:#}\n", serde_json::json!([words])));
        assert!(!text.contains(|c| c != '\n' && is_hidden(c)), "{text}");
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read[0], words);
    }
}
