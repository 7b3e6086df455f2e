//! The first byte by region, as text, as JSON, as a dot plot and on a map.

mod dots;
mod json;
mod map;
#[cfg(test)]
mod tests;

pub use dots::dots;
pub use json::{SCHEMA, json, table_json};
pub use map::map;

use std::time::Duration;

use lastbyte_link::format_duration;

use super::layout::{Field, Line, Role, Screen, set};
use lastbyte_explain::geography::{
    Aggregate, Geography, OriginConnection, RttSource, RttTable, Setting, Source, Way,
};
use lastbyte_results::number::{millisecond_digits, milliseconds};

/// The answer, for people.
pub fn text(geography: &Geography, table: &RttTable, screen: Screen) -> String {
    let mut parts = Vec::new();
    for setting in &geography.settings {
        let title = title(setting);
        if !title.is_empty() {
            parts.push(format!("{}\n", screen.paint(Role::Heading, &title)));
        }
        parts.push(set(&distances(geography, setting), screen));
        parts.push(set(&times(geography, setting), screen));
    }
    let notes = notes(geography, table);
    let notes = notes
        .iter()
        .map(|note| format!("{}\n", screen.wrap(note, 0)));
    parts.push(notes.collect());
    parts.join("\n")
}

/// What sets a setting apart.
fn title(setting: &Setting) -> String {
    setting.stated.map_or_else(String::new, |rtt| {
        format!("users {} from their edges, as stated", format_duration(rtt))
    })
}

fn row(label: &str, cells: impl IntoIterator<Item = String>) -> Line {
    let cells = cells.into_iter().map(|cell| Field::new(Role::Normal, cell));
    let label = Field::new(Role::Normal, format!("  {label}"));
    Line::Fields(label, cells.collect())
}

fn head<'a>(label: &str, cells: impl IntoIterator<Item = &'a str>) -> Line {
    let cells = cells.into_iter().map(|cell| Field::new(Role::Dim, cell));
    Line::Fields(Field::new(Role::Dim, label), cells.collect())
}

/// An RTT, and what it is where it was not measured.
fn rtt_text((rtt, known): (Duration, RttSource)) -> String {
    match known {
        RttSource::Users | RttSource::Table => milliseconds(rtt),
        RttSource::Stated | RttSource::Sum => format!("{known} {}", milliseconds(rtt)),
    }
}

/// How far it is in each region.
fn distances(geography: &Geography, setting: &Setting) -> Vec<Line> {
    let is_counted = !setting.population.is_empty();
    let users = is_counted.then_some("users");
    let columns = ["edge", "to edge", "edge to origin", "to origin"];
    let title = format!("RTT; origin {}", geography.question.origin);
    let mut lines = vec![head(&title, users.into_iter().chain(columns))];
    for region in &setting.regions {
        let far = &region.distances;
        let cells = [
            far.edge.clone(),
            rtt_text(far.user_edge),
            rtt_text(far.edge_origin),
            rtt_text(far.user_origin),
        ];
        let users = region.region.users.map(|users| users.to_string());
        lines.push(row(&region.region.name, users.into_iter().chain(cells)));
    }
    lines
}

/// The first byte: arms one below the other, in the same columns.
fn times(geography: &Geography, setting: &Setting) -> Vec<Line> {
    let mut lines = Vec::new();
    for (arm, name) in geography.question.arms.iter().enumerate() {
        if arm > 0 {
            lines.push(Line::Text(Role::Normal, String::new()));
        }
        lines.push(Line::Text(Role::Heading, name.name.clone()));
        lines.push(head(
            "first byte",
            geography.ways.iter().map(|way| way.name()),
        ));
        let line = |label: &str, of: &dyn Fn(usize, usize) -> Option<Duration>| {
            let cells = (0..geography.ways.len()).map(|way| {
                let base = (arm > 0).then(|| of(0, way)).flatten();
                of(arm, way).map_or_else(|| "-".to_owned(), |time| beside(time, base))
            });
            row(label, cells)
        };
        for region in &setting.regions {
            lines.push(line(&region.region.name, &|arm, way| {
                region.ttfb.get(arm)?.get(way).copied()
            }));
        }
        if !setting.population.is_empty() {
            for (label, of) in AGGREGATES {
                lines.push(line(label, &|arm, way| {
                    setting.population.get(arm)?.get(way).map(of)
                }));
            }
        }
    }
    lines
}

type Of = fn(&Aggregate) -> Duration;

const AGGREGATES: [(&str, Of); 3] = [
    ("mean of users", |all| all.mean),
    ("50 % of users, at most", |all| all.p50),
    ("95 % of users, at most", |all| all.p95),
];

/// A time, and how much longer it is than the baseline's.
fn beside(time: Duration, base: Option<Duration>) -> String {
    let Some(base) = base else {
        return milliseconds(time);
    };
    let difference = match time.checked_sub(base) {
        Some(longer) => format!("+{}", millisecond_digits(longer)),
        None => format!("-{}", millisecond_digits(base - time)),
    };
    format!("{} ({difference})", milliseconds(time))
}

fn notes(geography: &Geography, table: &RttTable) -> Vec<String> {
    let mut notes = vec![
        "By arithmetic, over networks that lose nothing, with ends and edges that compute in no time: from \
         connect() to the first byte decrypted."
            .to_owned(),
    ];
    let question = &geography.question;
    for way in &geography.ways {
        let back = match &question.origin_arm {
            None => "the same arm".to_owned(),
            Some(arm) => arm.name.clone(),
        };
        notes.push(match way {
            Way::Direct => "direct: from the origin, without an edge.".to_owned(),
            Way::Edge(OriginConnection::Cold) => format!(
                "cold: the edge has the request, then connects to the origin with {back}, and asks it."
            ),
            Way::Edge(OriginConnection::Warm) => {
                "warm: the edge has a connection to the origin, and asks over that.".to_owned()
            }
            Way::Edge(OriginConnection::Cached) => "cached: the edge has the answer.".to_owned(),
        });
    }
    let regions = || geography.settings.iter().flat_map(|one| &one.regions);
    let known = |known: RttSource| {
        regions().any(|region| {
            let far = &region.distances;
            [far.user_edge.1, far.edge_origin.1, far.user_origin.1].contains(&known)
        })
    };
    if known(RttSource::Stated) {
        notes.push("stated: not measured.".to_owned());
    }
    if known(RttSource::Sum) {
        notes.push("sum: not measured; to the edge and from there to the origin.".to_owned());
    }
    if table.source == Source::Azure {
        notes.push(
            "Edge to origin: Azure's regions, 95th percentile of July 2026, datacentre to datacentre (Microsoft, \
             CC BY 4.0; `lastbyte rtt`)."
                .to_owned(),
        );
    }
    notes
}

/// What a table of RTTs holds, for people.
pub fn table(table: &RttTable, screen: Screen) -> String {
    let mut out = format!("{}\n", screen.paint(Role::Heading, &table.file));
    for line in table.head() {
        out.push_str(&format!("{line}\n"));
    }
    out.push_str(&format!("\n{}\n", screen.wrap(&held(table), 0)));
    let holes = table.holes();
    let examples = holes.iter().map(|(from, to)| format!("{from} to {to}"));
    if let Some(examples) = few(examples) {
        let line = format!("Holes, {} of them: {examples}.", holes.len());
        out.push_str(&format!("{}\n", screen.wrap(&line, 0)));
    }
    let pairs = table.asymmetries();
    let examples = pairs.iter().map(|pair| {
        let [there, back] = [pair.there, pair.back].map(milliseconds);
        format!("{} to {} {there}, back {back}", pair.one, pair.other)
    });
    if let Some(examples) = few(examples) {
        let line = format!(
            "There and back differ, and are kept as given, for {} of them: {examples}.",
            pairs.len()
        );
        out.push_str(&format!("{}\n", screen.wrap(&line, 0)));
    }
    let places: Vec<&str> = table.places().collect();
    out.push_str(&format!("\n{}\n", screen.wrap(&places.join(", "), 0)));
    out
}

/// The first of some examples, and how many more there are; `None` without any.
fn few(mut examples: impl ExactSizeIterator<Item = String>) -> Option<String> {
    const FEW: usize = 3;
    let first: Vec<String> = examples.by_ref().take(FEW).collect();
    let rtt_text = first.join("; ");
    match (examples.len(), &first[..]) {
        (_, []) => None,
        (0, _) => Some(rtt_text),
        (more, _) => Some(format!("{rtt_text}; and {more} more")),
    }
}

fn held(table: &RttTable) -> String {
    let mut rtts: Vec<Duration> = table.pairs().map(|(_, _, rtt)| rtt).collect();
    rtts.sort_unstable();
    let middle = rtts.get(rtts.len() / 2).copied().unwrap_or_default();
    let [least, most] = [rtts.first(), rtts.last()].map(|end| end.copied().unwrap_or_default());
    format!(
        "{} places, {} RTTs from {} to {}, half of them below {}.",
        table.places().count(),
        rtts.len(),
        milliseconds(least),
        milliseconds(most),
        milliseconds(middle)
    )
}
