//! The JSON document.

use std::collections::BTreeMap;

use lastbyte_sizes::Message;
use serde::Serialize;

use super::Reduced;
use lastbyte_results::Environment;
use lastbyte_results::reduce::{Clients, Ranked, Way};

/// The JSON Schema of the document.
pub const SCHEMA: &str = include_str!("../../schemas/reduce-1.schema.json");

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    answer: Vec<String>,
    chain: &'a str,
    cells: Vec<CellDocument<'a>>,
    ways: Vec<WayDocument<'a>>,
    unavailable: BTreeMap<&'static str, &'a str>,
    warnings: &'a [String],
    command: &'a str,
    environment: &'a Environment,
}

#[derive(Serialize)]
struct CellDocument<'a> {
    cell: String,
    metric: &'static str,
    /// The quickest first.
    ranked: Vec<RankedDocument<'a>>,
}

#[derive(Serialize)]
struct RankedDocument<'a> {
    way: Option<&'static str>,
    clients: &'static str,
    arm: &'a str,
    certificate_bytes: Option<u32>,
    server_bytes: Option<u32>,
    failed_server_bytes: Option<u32>,
    flights: Option<u32>,
    /// By metric and percentile.
    ms: BTreeMap<&'static str, BTreeMap<String, Option<f64>>>,
    client_cpu_us: Option<f64>,
    server_cpu_us: Option<f64>,
    fits_bytes: Option<u32>,
    multiple: Option<f64>,
}

#[derive(Serialize)]
struct WayDocument<'a> {
    name: &'static str,
    doc: &'static str,
    arm: &'a str,
    compared_with: &'a str,
    clients_hold: Option<&'static str>,
    clients_hold_bytes: Option<u64>,
    age: Option<&'static str>,
    stale: &'static str,
    support: &'static str,
}

/// All that was measured as one JSON document, as [`SCHEMA`] has it. A number that can't be had is null.
pub fn json(reduced: &Reduced<'_>) -> String {
    let whole = &reduced.reduce.whole;
    let label = |place: usize| whole.get(place).map_or("", |arm| arm.label.as_str());
    let document = Document {
        schema: "lastbyte.reduce/1",
        answer: reduced.answer(),
        chain: label(0),
        cells: (reduced.tables.iter())
            .map(|table| CellDocument {
                cell: table.cell.to_string(),
                metric: table.metric.name(),
                ranked: table
                    .ranked
                    .iter()
                    .map(|ranked| row(reduced, ranked))
                    .collect(),
            })
            .collect(),
        ways: (reduced.reduce.ways.iter())
            .map(|one| way(one, label(one.whole)))
            .collect(),
        unavailable: (reduced.reduce.unavailable.iter())
            .map(|(way, reason)| (way.name, reason.as_str()))
            .collect(),
        warnings: reduced.warnings,
        command: reduced.command,
        environment: reduced.environment,
    };
    // Serialising plain structures to memory cannot fail.
    serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
}

fn row<'a>(reduced: &Reduced<'_>, ranked: &Ranked<'a>) -> RankedDocument<'a> {
    let wire = ranked.summary.wire.as_ref();
    let metrics = reduced.tables.iter().flat_map(|table| table.cell.metrics());
    let ms = metrics.map(|metric| {
        let known = &ranked.summary.metric(*metric).percentiles;
        let of = |percentile: &lastbyte_results::Percentile| {
            let time = known.get(percentile).and_then(|measured| measured.ok());
            (
                percentile.to_string(),
                time.map(|time| time.value.as_secs_f64() * 1e3),
            )
        };
        (metric.name(), reduced.percentiles.iter().map(of).collect())
    });
    let micros = |time: std::time::Duration| time.as_secs_f64() * 1e6;
    RankedDocument {
        way: ranked.way.map(|way| way.reduction.name),
        clients: match ranked.clients {
            Clients::Ready => "ready",
            Clients::Stale => "stale",
        },
        arm: &ranked.arm.label,
        certificate_bytes: wire.map(|wire| wire.bytes(Message::Certificate).median),
        server_bytes: wire.map(|wire| wire.server_wire_bytes().median),
        failed_server_bytes: wire.map(|wire| wire.failed_server_wire_bytes().median),
        flights: wire.and_then(|wire| Some(wire.server_flights?.flights)),
        ms: ms.collect(),
        client_cpu_us: ranked.cpu.map(|cpu| micros(cpu.client)),
        server_cpu_us: ranked.cpu.map(|cpu| micros(cpu.server)),
        fits_bytes: ranked.supportable,
        multiple: ranked.multiple,
    }
}

fn way<'a>(way: &'a Way, whole: &'a str) -> WayDocument<'a> {
    let holds = way.reduction.holds;
    WayDocument {
        name: way.reduction.name,
        doc: way.reduction.doc,
        arm: &way.arm.label,
        compared_with: whole,
        clients_hold: holds.map(|holds| holds.what),
        clients_hold_bytes: holds.and_then(|holds| (holds.bytes)(&way.arm)),
        age: holds.map(|holds| holds.age),
        stale: way.reduction.stale,
        support: way.reduction.support,
    }
}
