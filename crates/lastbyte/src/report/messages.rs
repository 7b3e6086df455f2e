//! The sizes of the handshakes' messages, as rows of a table.

use crate::results::{Summary, Typical, WireSummary};

/// What [`messages`] tells of each arm. Sizes are bytes, with the 4-byte handshake header.
pub(super) const COLUMNS: [&str; 5] = [
    "ClientHello",
    "ServerHello",
    "Certificate",
    "CertVerify",
    "server flights",
];

/// The name and the sizes of each arm over all cells; arms of which no connection completed are
/// left out.
pub(super) fn messages(summary: &Summary) -> Vec<(&str, [String; COLUMNS.len()])> {
    summary
        .experiment
        .arms
        .iter()
        .filter_map(|arm| {
            let samples = summary.cells.iter().flat_map(|cell| &cell.arms);
            let wires: Vec<WireSummary> = samples
                .filter(|sample| sample.label == arm.name)
                .filter_map(|sample| sample.wire)
                .collect();
            let typical = |number: fn(&WireSummary) -> Typical| {
                wires
                    .iter()
                    .map(number)
                    .reduce(Typical::merge)
                    .map(|typical| typical.to_string())
            };
            Some((
                arm.name.as_str(),
                [
                    typical(|wire| wire.client_hello_bytes)?,
                    typical(|wire| wire.server_hello_bytes)?,
                    typical(|wire| wire.certificate_bytes)?,
                    typical(|wire| wire.certificate_verify_bytes)?,
                    flights(&wires),
                ],
            ))
        })
        .collect()
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
