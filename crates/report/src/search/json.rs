//! Edges for programs.

use std::time::Duration;

use serde_json::{Value, json as value};

use lastbyte_explain::search::{
    Change, Computed, Edge, Edges, Found, Searched, SizeOnWire, implied,
};
use lastbyte_study::PublishedEdges;

/// The JSON Schema of the document.
pub const SCHEMA: &str = include_str!("../../schemas/search-1.schema.json");

/// What a search found as one JSON document, as [`SCHEMA`] has it. Sizes are in bytes, times in nanoseconds.
pub fn json(searched: &Searched) -> String {
    let search = &searched.search;
    let found = searched.found();
    let document = value!({
        "schema": "lastbyte.search/1",
        "search": search.id,
        "metric": search.metric.to_string(),
        "connections": search.experiment.connections.most(),
        "rounds": searched.rounds,
        "complete": searched.is_complete(),
        "problems": searched.problems,
        "found": found.iter().map(|found| of(searched, found)).collect::<Vec<_>>(),
        "published": search.published.iter().map(|edges| published(searched, edges)).collect::<Vec<_>>(),
    });
    format!("{document:#}\n")
}

fn of(searched: &Searched, found: &Found) -> Value {
    let experiment = &searched.search.experiment;
    let (exact, told) = match &found.edges {
        Edges::Exact(edges) => (edges.iter().map(|e| edge(found, e)).collect(), None),
        Edges::Told(changes) => (
            Vec::new(),
            Some(changes.iter().map(change).collect::<Vec<_>>()),
        ),
    };
    let line = found.line.iter().map(|(certificate, median)| {
        value!({ "certificate_bytes": certificate, "median_ns": median.map(nanoseconds) })
    });
    value!({
        "cell": experiment.cells.get(found.cell).map(ToString::to_string),
        "initcwnd": experiment.cells.get(found.cell).map(|cell| cell.initcwnd),
        "rtt_ns": experiment.cells.get(found.cell).map(|cell| nanoseconds(cell.link.rtt())),
        "arm": experiment.arms.get(found.arm).map(|arm| &arm.name),
        "edges": if told.is_none() { Some::<Vec<Value>>(exact) } else { None },
        "change_points": told,
        "arithmetic": found.arithmetic.as_ref().ok().map(|edges| edges.iter().map(computed).collect::<Vec<_>>()),
        "no_arithmetic": found.arithmetic.as_ref().err().map(ToString::to_string),
        "sizes": line.collect::<Vec<_>>(),
    })
}

fn edge(found: &Found, edge: &Edge) -> Value {
    value!({
        "below": on_wire(edge.below),
        "above": on_wire(edge.above),
        "below_ns": edge.times.0.map(nanoseconds),
        "above_ns": edge.times.1.map(nanoseconds),
        "most_wire_bytes_below": edge.seen.0,
        "fewest_wire_bytes_above": edge.seen.1,
        "from_arithmetic_bytes": found.difference(edge),
    })
}

fn change(change: &Change) -> Value {
    let (height, low, high) = change.height;
    value!({
        "below_bytes": change.below,
        "above_bytes": change.above,
        "interval_bytes": [change.interval.0, change.interval.1],
        "height_ms": height,
        "height_interval_ms": [low, high],
    })
}

fn computed(computed: &Computed) -> Value {
    value!({
        "below": on_wire(computed.below),
        "flights_below": computed.flights.0,
        "flights_above": computed.flights.1,
        "below_ns": nanoseconds(computed.times.0),
        "above_ns": nanoseconds(computed.times.1),
    })
}

fn published(searched: &Searched, published: &PublishedEdges) -> Value {
    let implied = implied(&searched.search, published);
    let implied = implied.iter().map(|guess| {
        value!({
            "initcwnd": guess.initcwnd,
            "group": guess.group.to_string(),
            "signature": guess.leaf.to_string(),
            "certificate_bytes": guess.edges,
            "rest_wire_bytes": guess.rest,
            "off_percent": guess.off * 100.0,
        })
    });
    value!({
        "source": published.source,
        "certificate_bytes": published.edges,
        "note": published.note,
        "implied": implied.collect::<Vec<_>>(),
    })
}

fn on_wire(size: SizeOnWire) -> Value {
    value!({ "certificate_bytes": size.certificate, "server_flight_wire_bytes": size.server_flight })
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
