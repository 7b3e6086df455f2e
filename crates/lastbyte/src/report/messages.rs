//! The sizes of the handshakes' messages, as rows of a table.

use crate::results::{Summary, Typical, WireSummary};

/// The sizes of the handshakes' messages: bytes, with the 4-byte handshake header.
pub(super) struct Messages<'a> {
    pub(super) titles: Vec<&'static str>,
    /// The name and the sizes of each arm over all cells; arms of which no connection completed are
    /// left out.
    pub(super) rows: Vec<(&'a str, Vec<String>)>,
}

/// A message, and where its size is.
type Message = (&'static str, fn(&WireSummary) -> Typical);

const ALWAYS: [Message; 4] = [
    ("ClientHello", |wire| wire.client_hello_bytes),
    ("ServerHello", |wire| wire.server_hello_bytes),
    ("Certificate", |wire| wire.certificate_bytes),
    ("CertVerify", |wire| wire.certificate_verify_bytes),
];

/// Told where an arm has them.
const SOMETIMES: [Message; 4] = [
    ("HelloRetryRequest", |wire| wire.hello_retry_request_bytes),
    ("client Certificate", |wire| wire.client_certificate_bytes),
    ("client CertVerify", |wire| {
        wire.client_certificate_verify_bytes
    }),
    ("tickets", |wire| wire.ticket_wire_bytes),
];

const FLIGHTS: &str = "server flights";

pub(super) fn messages(summary: &Summary) -> Messages<'_> {
    let arms: Vec<(&str, Vec<WireSummary>)> = (summary.experiment.arms.iter())
        .map(|arm| {
            let samples = summary.cells.iter().flat_map(|cell| &cell.arms);
            let wires = samples
                .filter(|sample| sample.label == arm.name)
                .filter_map(|sample| sample.wire);
            (arm.name.as_str(), wires.collect())
        })
        .filter(|(_, wires): &(_, Vec<_>)| !wires.is_empty())
        .collect();
    let occurs = |(_, size): &&Message| {
        let mut wires = arms.iter().flat_map(|(_, wires)| wires);
        wires.any(|wire| size(wire).most > 0)
    };
    let sometimes: Vec<_> = SOMETIMES.iter().filter(occurs).collect();
    let messages = || ALWAYS.iter().chain(sometimes.iter().copied());
    Messages {
        titles: messages()
            .map(|(title, _)| *title)
            .chain([FLIGHTS])
            .collect(),
        rows: (arms.iter())
            .map(|(arm, wires)| {
                let sizes = messages().map(|(_, size)| typical(wires, *size));
                (*arm, sizes.chain([flights(wires)]).collect())
            })
            .collect(),
    }
}

/// What a message takes over all cells; `-` where there is none.
fn typical(wires: &[WireSummary], size: fn(&WireSummary) -> Typical) -> String {
    match wires.iter().map(size).reduce(Typical::merge) {
        Some(typical) if typical.most > 0 => typical.to_string(),
        _ => "-".to_owned(),
    }
}

/// `2 (12 segments)`, or `1-2 (12 segments)` if it depends on the cell.
fn flights(wires: &[WireSummary]) -> String {
    let known = || wires.iter().filter_map(|wire| wire.server_flights);
    let span = |least: String, most: String| {
        if least == most {
            least
        } else {
            format!("{least}-{most}")
        }
    };
    let flights = known().map(|server| server.flights);
    let segments = known().map(|server| server.segments);
    match (
        flights.clone().min(),
        flights.max(),
        segments.clone().min(),
        segments.max(),
    ) {
        (Some(fewest), Some(most), Some(least), Some(greatest)) => format!(
            "{} ({} segments)",
            span(fewest.to_string(), most.to_string()),
            span(least.to_string(), greatest.to_string())
        ),
        _ => "-".into(),
    }
}
