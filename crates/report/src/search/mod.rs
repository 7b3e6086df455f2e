//! What searches found: edges, with the arithmetic's and the published ones beside them.

mod json;
mod page;
mod table;

pub use json::{SCHEMA, json};
pub(super) use page::{answer, chart, numbers, section};
pub use table::table;

use lastbyte_link::counted;

use crate::text;
use lastbyte_explain::search::{Change, Computed, Edge, Edges, Found, Searched};
use lastbyte_study::{Arm, Cell, TransportName, distinctions};

/// A table of edges, as words.
struct Row {
    /// Names the arm, on its first edge.
    arm: String,
    /// Bytes of the Certificate message.
    certificate: String,
    /// From ServerHello to Finished on the wire.
    server_flight: String,
    /// The arithmetic's, as the first.
    arithmetic: String,
    /// Bytes from there to ours.
    difference: String,
    /// The times on either side.
    times: String,
    /// What there is to mind.
    note: Option<String>,
}

/// What tells the cells of a search apart.
fn cell_names(searched: &Searched) -> Vec<String> {
    let cells = &searched.search.experiment.cells;
    let names = distinctions(cells).into_iter().zip(cells);
    names
        .map(|(name, cell)| match &*name {
            "" => cell.to_string(),
            _ => name,
        })
        .collect()
}

/// What the server's messages are counted as: over QUIC they are no stream on the wire.
fn on_wire(searched: &Searched) -> &'static str {
    let mut arms = searched.search.experiment.arms.iter();
    if arms.all(|arm| arm.transport == TransportName::Quic) {
        "all messages"
    } else {
        "on the wire"
    }
}

/// What was searched, in one line.
fn headline(searched: &Searched) -> String {
    let search = &searched.search;
    format!(
        "{} against the size of chains, {} to {} bytes of the Certificate message; {} of each size; {}",
        text::metric(search.metric),
        search.from,
        search.to,
        counted(search.experiment.connections.most(), "connection"),
        counted(search.experiment.cells.len(), "cell"),
    )
}

/// How it came out, in one line.
fn verdict(searched: &Searched, found: &[Found]) -> String {
    let mut edges = Vec::new();
    let mut told = 0;
    for found in found {
        match &found.edges {
            Edges::Exact(of) => edges.extend(of.iter().map(|edge| found.difference(edge))),
            Edges::Told(of) => told += of.len(),
        }
    }
    let mut words = Vec::new();
    if !edges.is_empty() {
        let alike = edges.iter().filter(|apart| **apart == Some(0)).count();
        let missed: usize = found.iter().map(|found| missed(found).len()).sum();
        words.push(format!(
            "{} without loss, {alike} of them exactly where arithmetic has one; {missed} that arithmetic has were not found",
            counted(edges.len(), "edge")
        ));
    }
    if told > 0 {
        let told = counted(told, "change point");
        words.push(format!("{told} where there is loss or jitter"));
    }
    if words.is_empty() {
        words.push("no edge can be told".to_owned());
    }
    if !searched.is_complete() {
        words.push("the search has not come to its end".to_owned());
    }
    words.join("; ")
}

/// Edges of arithmetic that none of ours is near to: beyond a segment.
fn missed(found: &Found) -> Vec<Computed> {
    const NEAR: usize = lastbyte_sizes::framing::MSS;
    let ours: Vec<(usize, usize)> = match &found.edges {
        Edges::Exact(edges) => (edges.iter())
            .map(|edge| (edge.below.certificate, edge.below.certificate + NEAR))
            .collect(),
        Edges::Told(changes) => changes.iter().map(|change| change.interval).collect(),
    };
    let computed = found.arithmetic.iter().flatten().copied();
    let is_missed = |computed: &Computed| {
        let at = computed.below.certificate;
        !ours
            .iter()
            .any(|(low, high)| low.saturating_sub(NEAR) <= at && at <= *high)
    };
    computed.filter(is_missed).collect()
}

/// The rows of an arm in a cell.
fn rows(found: &Found, arm: &Arm) -> Vec<Row> {
    let mut rows: Vec<Row> = match &found.edges {
        Edges::Exact(edges) => edges.iter().map(|edge| exact(found, edge)).collect(),
        Edges::Told(changes) => changes.iter().map(|change| row_of(found, change)).collect(),
    };
    let without = |what: String, arithmetic: &Computed| Row {
        arm: String::new(),
        certificate: "-".to_owned(),
        server_flight: "-".to_owned(),
        arithmetic: arithmetic.below.certificate.to_string(),
        difference: String::new(),
        times: String::new(),
        note: Some(what),
    };
    for arithmetic in missed(found) {
        let what = match found.edges {
            Edges::Exact(_) => "arithmetic alone has this one",
            Edges::Told(_) => "luck hides it, if it is there",
        };
        rows.push(without(what.to_owned(), &arithmetic));
    }
    if rows.is_empty() {
        rows.push(Row {
            arm: String::new(),
            certificate: "none".to_owned(),
            server_flight: String::new(),
            arithmetic: String::new(),
            difference: String::new(),
            times: String::new(),
            note: None,
        });
    }
    if let (Some(row), Err(problem)) = (rows.first_mut(), &found.arithmetic) {
        row.note = Some(problem.to_string());
    }
    if let Some(row) = rows.first_mut() {
        row.arm.clone_from(&arm.name);
    }
    rows
}

fn exact(found: &Found, edge: &Edge) -> Row {
    let time = |time: Option<std::time::Duration>| {
        time.map_or_else(
            || "never".to_owned(),
            lastbyte_results::number::milliseconds,
        )
    };
    let difference = found.difference(edge);
    let mut notes = Vec::new();
    let (most, fewest) = edge.seen;
    if most + 1 != fewest && most != 0 {
        notes.push(if most < fewest {
            format!("on the wire between {most} and {fewest}")
        } else {
            "on the wire, connections on both sides overlap".to_owned()
        });
    }
    if edge.above.certificate > edge.below.certificate + 1 {
        notes.push(format!(
            "no chain has a size up to {}",
            edge.above.certificate
        ));
    }
    let nearest = difference.map(|apart| edge.below.certificate as i64 - apart);
    Row {
        arm: String::new(),
        certificate: edge.below.certificate.to_string(),
        server_flight: edge.below.server_flight.to_string(),
        arithmetic: nearest.map_or_else(|| "-".to_owned(), |at| at.to_string()),
        difference: match difference {
            Some(0) => "±0".to_owned(),
            Some(apart) => format!("{apart:+}"),
            None => String::new(),
        },
        times: format!("{} → {}", time(edge.times.0), time(edge.times.1)),
        note: (!notes.is_empty()).then(|| notes.join("; ")),
    }
}

fn row_of(found: &Found, change: &Change) -> Row {
    let (low, high) = change.interval;
    let within = found
        .arithmetic
        .iter()
        .flatten()
        .find(|computed| (low..=high).contains(&computed.below.certificate));
    let (height, least, most) = change.height;
    Row {
        arm: String::new(),
        certificate: format!("{} to {} [{low}, {high}]", change.below, change.above),
        server_flight: String::new(),
        arithmetic: within.map_or_else(
            || "-".to_owned(),
            |computed| computed.below.certificate.to_string(),
        ),
        difference: match within {
            Some(_) => "within".to_owned(),
            None => "no".to_owned(),
        },
        times: format!("{height:+.1} ms [{least:.1}, {most:.1}]"),
        note: None,
    }
}

/// The arm and the cell of what was found.
fn place<'a>(searched: &'a Searched, found: &Found) -> Option<(&'a Arm, &'a Cell)> {
    let experiment = &searched.search.experiment;
    experiment
        .arms
        .get(found.arm)
        .zip(experiment.cells.get(found.cell))
}
