//! Small tables as text: as wide as what is in them.

/// Where a column's texts stand.
#[derive(Clone, Copy)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Rows, each indented and as wide as it is.
pub(crate) fn aligned<const N: usize>(rows: &[[String; N]], columns: [Align; N]) -> String {
    let count = |text: &String| text.chars().count();
    let wide: [usize; N] = std::array::from_fn(|column| {
        let texts = rows.iter().filter_map(|row| row.get(column));
        texts.map(count).max().unwrap_or(0)
    });
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for ((field, align), wide) in row.iter().zip(columns).zip(wide) {
            line += &match align {
                Align::Left => format!("  {field:<wide$}"),
                Align::Right => format!("  {field:>wide$}"),
            };
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}
