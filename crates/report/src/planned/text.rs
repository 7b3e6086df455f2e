//! For a terminal.

use super::super::layout::{Field, Line, Role, Screen, set};
use super::super::text::NETWORK_ALONE;
use super::super::waiting::{Waits, WaitsRow};
use super::{NOTICEABLE, Origin, Planned, legend, marked, share, slower};
use lastbyte_explain::plan::Because;

/// What arithmetic says at once: who waits, and what would turn that, without the rest of the answer.
pub fn first(planned: &Planned<'_>, screen: Screen) -> String {
    let sentences = [
        planned.by_arithmetic(),
        planned.verdict(),
        planned.supposed(),
    ];
    let sentences = sentences.into_iter().flatten();
    let sentences = sentences.map(|sentence| screen.wrap(&sentence, 0) + "\n");
    sentences.collect::<String>() + "\n"
}

/// The answer, how many wait and how long, what would win it back, and what was taken for granted: text of at
/// most 100 columns. `printed` is what arithmetic said before, if it did: a verdict that is the same is not repeated.
pub fn text(planned: &Planned<'_>, printed: Option<&Planned<'_>>, screen: Screen) -> String {
    let mut out = String::new();
    let verdict = planned.verdict();
    let before = printed.and_then(|printed| printed.verdict());
    let supposed = printed.and_then(|printed| printed.supposed());
    for sentence in planned.answer() {
        if supposed.as_ref() == Some(&sentence) {
            continue;
        }
        let sentence = match (&before, verdict.as_ref() == Some(&sentence)) {
            (Some(before), true) if *before == sentence => "Measured, it is the same.".to_owned(),
            (Some(_), true) => format!("Measured: {sentence}"),
            _ => sentence,
        };
        out.push_str(&screen.wrap(&sentence, 0));
        out.push('\n');
    }
    out.push('\n');
    let causes = set(&causes(planned), screen);
    if !causes.is_empty() {
        out.push_str(&causes);
        out.push('\n');
    }
    for Waits {
        title,
        titles,
        rows,
    } in planned
        .waits()
        .into_iter()
        .chain(planned.waits_by_transport())
    {
        let mut lines = vec![Line::Text(Role::Heading, screen.wrap(&title, 2))];
        let titles = titles.into_iter().map(|title| Field::new(Role::Dim, title));
        lines.push(Line::Fields(Field::new(Role::Normal, ""), titles.collect()));
        for WaitsRow { arm, fields } in rows {
            let (values, intervals): (Vec<_>, Vec<_>) = fields.into_iter().unzip();
            let row = |name: String, role, texts: Vec<String>| {
                let fields = texts.into_iter().map(|text| Field::new(role, text));
                Line::Fields(Field::new(Role::Normal, name), fields.collect())
            };
            lines.push(row(format!("  {arm}"), Role::Normal, values));
            lines.push(row(String::new(), Role::Dim, intervals));
        }
        out.push_str(&set(&lines, screen));
        out.push('\n');
    }
    let gains = set(&gains(planned), screen);
    out.push_str(&gains);
    if let Some(legend) = legend(&gains) {
        out.push_str(&format!("  {}\n", screen.paint(Role::Dim, &legend)));
    }
    for line in planned.unavailable() {
        let line = format!("  {line}");
        out.push_str(&format!(
            "{}\n",
            screen.paint(Role::Dim, &screen.wrap(&line, 4))
        ));
    }
    out.push('\n');
    out.push_str(&assumptions(planned, screen));
    for warning in planned.warnings {
        let text = screen.wrap(&format!("warning: {warning}"), 2);
        let rest = text.strip_prefix("warning:").unwrap_or(&text);
        out.push_str(&format!(
            "{}{rest}\n",
            screen.paint(Role::Warning, "warning:")
        ));
    }
    out
}

/// Who waits in each class, and why.
fn causes(planned: &Planned<'_>) -> Vec<Line> {
    let causes = &planned.tale.causes;
    if causes.is_empty() {
        return Vec::new();
    }
    let reasons =
        Because::ALL.map(|because| Field::new(Role::Dim, format!("of those: {}", because.name())));
    let titles = [
        "connections".to_owned(),
        "that resume".to_owned(),
        format!("wait > {NOTICEABLE}"),
    ];
    let titles = titles
        .map(|title| Field::new(Role::Dim, title))
        .into_iter()
        .chain(reasons);
    let mut lines = vec![Line::Fields(
        Field::new(Role::Heading, "who waits, and why"),
        titles.collect(),
    )];
    for cause in causes {
        let name = cause.class.as_deref().unwrap_or("all");
        let counts = [cause.connections, cause.resumed, cause.all()];
        let reasons = Because::ALL.map(|because| cause.waiting.get(&because).copied().unwrap_or(0));
        let fields = counts.into_iter().chain(reasons);
        let fields = fields.map(|count| Field::new(Role::Normal, count.to_string()));
        lines.push(Line::Fields(
            Field::new(Role::Normal, format!("  {name}")),
            fields.collect(),
        ));
    }
    lines
}

fn gains(planned: &Planned<'_>) -> Vec<Line> {
    let titles = [
        "gains, mean ms".to_owned(),
        format!("still > {NOTICEABLE} longer than today"),
    ];
    let titles = titles.map(|title| Field::new(Role::Dim, title));
    let mut lines = vec![Line::Fields(
        Field::new(Role::Heading, "what would win it back"),
        titles.to_vec(),
    )];
    for (name, gain) in planned.gains() {
        let fields = [
            marked(gain.mean()),
            share(slower(&gain.than_today, NOTICEABLE).connections),
        ];
        lines.push(Line::Fields(
            Field::new(Role::Normal, format!("  {name}")),
            fields.map(|text| Field::new(Role::Normal, text)).to_vec(),
        ));
    }
    lines
}

fn assumptions(planned: &Planned<'_>, screen: Screen) -> String {
    let mut out = String::new();
    let mut tell = |line: String| {
        out.push_str(&screen.paint(Role::Dim, &screen.wrap(&line, 2)));
        out.push('\n');
    };
    for source in planned.sources {
        tell(format!("from {source}"));
    }
    for usual in planned.usual {
        tell(format!(
            "taken for granted: {} = {}: {}",
            usual.key, usual.value, usual.source
        ));
    }
    let arm = &planned.plan.planned.arm;
    tell(super::super::assumed::line(
        arm,
        std::slice::from_ref(&planned.plan.planned.cell),
    ));
    tell(format!(
        "{} connections each, in pairs, {}; intervals of 95 %",
        planned.tale.connections, planned.plan.today.cell
    ));
    if let Origin::Measured(_) = planned.origin {
        tell(NETWORK_ALONE.to_owned());
    }
    out
}
