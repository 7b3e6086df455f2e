//! Columns and lines of the terminal.

use anstyle::AnsiColor;

/// How wide a report may be, in columns.
pub(super) const WIDTH: usize = 100;
/// Spaces between columns.
const GAP: usize = 2;

/// Whether a report is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Text alone.
    Plain,
    /// With ANSI escape codes.
    Coloured,
}

/// What a piece of text is, which decides how it looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Normal,
    Heading,
    Dim,
    Warning,
}

impl Style {
    /// `text` with its escape codes.
    pub(super) fn paint(self, role: Role, text: &str) -> String {
        let plain = anstyle::Style::new();
        let style = match (self, role) {
            (Style::Plain, _) | (Style::Coloured, Role::Normal) => plain,
            (Style::Coloured, Role::Heading) => plain.bold(),
            (Style::Coloured, Role::Dim) => plain.dimmed(),
            (Style::Coloured, Role::Warning) => {
                plain.fg_color(Some(AnsiColor::Yellow.into())).bold()
            }
        };
        if text.is_empty() {
            String::new()
        } else {
            format!("{style}{text}{style:#}")
        }
    }
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

/// Sets `lines` in columns that they share. A label too long for [`WIDTH`] has a line of its own.
pub(super) fn set(lines: &[Line], style: Style) -> String {
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
    let label_width = needed.max().unwrap_or(0).min(WIDTH.saturating_sub(taken));

    let mut out = String::new();
    for line in lines {
        match line {
            Line::Text(role, text) => out.push_str(&style.paint(*role, text)),
            Line::Fields(label, fields) => {
                out.push_str(&style.paint(label.role, &label.text));
                let mut column = label.width();
                let mut end = label_width;
                for (field, width) in fields.iter().zip(&widths) {
                    end += GAP + width;
                    if column + GAP + field.width() > end {
                        out.push('\n');
                        column = 0;
                    }
                    out.push_str(&" ".repeat(end.saturating_sub(column + field.width())));
                    out.push_str(&style.paint(field.role, &field.text));
                    column = end;
                }
            }
        }
        out.push('\n');
    }
    out
}

/// Breaks `text` between words so that no line is wider than [`WIDTH`], and indents all lines but
/// the first.
pub(super) fn wrap(text: &str, indent: usize) -> String {
    let mut out = String::new();
    let mut column = 0;
    for word in text.split(' ') {
        let width = word.chars().count();
        if column > 0 && column + 1 + width > WIDTH {
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
    out
}
