//! Edges as text.

use super::{cell_names, headline, on_wire, place, rows, verdict};
use crate::layout::{Field, Line, Role, Screen, set};
use lastbyte_explain::search::{Searched, implied};

/// What a search found, for people.
pub fn table(searched: &Searched, screen: Screen) -> String {
    let found = searched.found();
    let names = cell_names(searched);
    let fields = |texts: [&str; 5], role| texts.map(|text| Field::new(role, text)).to_vec();
    let titles = [
        "Certificate",
        on_wire(searched),
        "arithmetic",
        "difference",
        "time",
    ];
    let mut lines = vec![Line::Fields(
        Field::new(Role::Dim, "largest before each edge, in bytes"),
        fields(titles, Role::Dim),
    )];
    let mut last = None;
    for found in &found {
        let Some((arm, _)) = place(searched, found) else {
            continue;
        };
        if last != Some(found.cell) {
            let name = names.get(found.cell).cloned().unwrap_or_default();
            lines.push(Line::Text(Role::Normal, name));
            last = Some(found.cell);
        }
        for row in rows(found, arm) {
            let label = Field::new(Role::Normal, format!("  {}", row.arm));
            let texts = [
                &*row.certificate,
                &row.server_flight,
                &row.arithmetic,
                &row.difference,
                &row.times,
            ];
            lines.push(Line::Fields(label, fields(texts, Role::Normal)));
            if let Some(note) = row.note {
                lines.push(Line::Text(Role::Dim, format!("    {note}")));
            }
        }
    }
    let mut text = format!(
        "{}\n{}\n{}\n",
        screen.paint(Role::Heading, &searched.search.id),
        screen.wrap(&format!("{}.", headline(searched)), 0),
        set(&lines, screen).trim_end(),
    );
    for problem in &searched.problems {
        text += &format!(
            "{}\n",
            screen.paint(Role::Warning, &format!("not to be trusted: {problem}"))
        );
    }
    text += &format!(
        "{}\n",
        screen.wrap(&format!("{}.", verdict(searched, &found)), 0)
    );
    text + &published(searched, screen)
}

/// What published edges imply.
fn published(searched: &Searched, screen: Screen) -> String {
    const LISTED: usize = 5;
    let mut text = String::new();
    for published in &searched.search.published {
        let edges: Vec<String> = published
            .edges
            .iter()
            .map(|edge| format!("{edge}B"))
            .collect();
        text += &format!(
            "\n{}\n",
            screen.wrap(
                &format!("Published: {} ({})", edges.join(", "), published.source),
                0
            )
        );
        let guesses = implied(&searched.search, published);
        let mut lines = vec![Line::Fields(
            Field::new(Role::Dim, "by arithmetic, these have them about there"),
            ["edges", "else on the wire", "off by"]
                .map(|text| Field::new(Role::Dim, text))
                .to_vec(),
        )];
        for guess in guesses.iter().take(LISTED) {
            let edges: Vec<String> = guess.edges.iter().map(usize::to_string).collect();
            let label = format!(
                "  initcwnd {}, {}/{}",
                guess.initcwnd, guess.group, guess.leaf
            );
            let fields = [
                edges.join(", "),
                guess.rest.to_string(),
                format!("{:.1} %", guess.off * 100.0),
            ];
            lines.push(Line::Fields(
                Field::new(Role::Normal, label),
                fields.map(|text| Field::new(Role::Normal, text)).to_vec(),
            ));
        }
        if guesses.is_empty() {
            text += "By arithmetic, no window, group and signature of this search has them there.\n"
        } else {
            text += &set(&lines, screen)
        }
    }
    text
}
