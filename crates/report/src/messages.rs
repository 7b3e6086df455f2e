//! The sizes of the handshakes' messages, as rows of a table.

use lastbyte_link::counted;
use lastbyte_sizes::Message;

use lastbyte_results::{Summary, Typical, WireSummary};
use lastbyte_study::TransportName;

/// The sizes of the handshakes' messages: bytes, with the 4-byte handshake header.
pub(super) struct Messages<'a> {
    pub(super) titles: Vec<&'static str>,
    /// The name and the sizes of each arm over all cells; arms of which no connection completed are
    /// left out.
    pub(super) rows: Vec<(&'a str, Vec<String>)>,
}

const ALWAYS: [Message; 4] = [
    Message::ClientHello,
    Message::ServerHello,
    Message::Certificate,
    Message::CertificateVerify,
];

/// Reported where an arm has them.
const SOMETIMES: [Message; 3] = [
    Message::HelloRetryRequest,
    Message::ClientCertificate,
    Message::ClientCertificateVerify,
];

const TICKETS: &str = "tickets";
const UNCOMPRESSED: &str = "Certificate uncompressed";
const FAILED: &str = "server, failed first";
const FLIGHTS: &str = "server flights";

pub(super) fn messages(summary: &Summary) -> Messages<'_> {
    let arms: Vec<(&str, Vec<&WireSummary>)> = (summary.experiment.arms.iter())
        .map(|arm| {
            let samples = summary.cells.iter().flat_map(|cell| &cell.arms);
            let wires = samples
                .filter(|sample| sample.label == arm.name)
                .filter_map(|sample| sample.wire.as_ref());
            (arm.name.as_str(), wires.collect())
        })
        .filter(|(_, wires): &(_, Vec<_>)| !wires.is_empty())
        .collect();
    let occurs = |size: &dyn Fn(&WireSummary) -> Typical| {
        let mut wires = arms.iter().flat_map(|(_, wires)| wires);
        wires.any(|wire| size(wire).most > 0)
    };
    let sometimes = SOMETIMES.into_iter();
    let sometimes = sometimes.filter(|message| occurs(&|wire| wire.bytes(*message)));
    let messages: Vec<Message> = ALWAYS.into_iter().chain(sometimes).collect();
    let tickets = occurs(&|wire| wire.size("ticket_wire_bytes")).then_some(TICKETS);
    let failed = occurs(&|wire| wire.failed_server_wire_bytes()).then_some(FAILED);
    let mut wires = arms.iter().flat_map(|(_, wires)| wires);
    let uncompressed = wires
        .any(|wire| wire.negotiated.compression.is_some())
        .then_some(UNCOMPRESSED);
    Messages {
        titles: (messages.iter().map(|message| message.title()))
            .chain(uncompressed)
            .chain(tickets)
            .chain(failed)
            .chain([FLIGHTS])
            .collect(),
        rows: (arms.iter())
            .map(|(arm, wires)| {
                let sizes = messages.iter();
                let sizes = sizes.map(|message| typical(wires, |wire| wire.bytes(*message)));
                let tickets =
                    tickets.map(|_| typical(wires, |wire| wire.size("ticket_wire_bytes")));
                let uncompressed = uncompressed.map(|_| compression(wires));
                let failed = failed.map(|_| typical(wires, |wire| wire.failed_server_wire_bytes()));
                let others = uncompressed.into_iter().chain(tickets).chain(failed);
                (*arm, sizes.chain(others).chain([flights(wires)]).collect())
            })
            .collect(),
    }
}

/// What a message takes over all cells; `-` where there is none.
fn typical(wires: &[&WireSummary], size: impl Fn(&WireSummary) -> Typical) -> String {
    match wires.iter().copied().map(size).reduce(Typical::merge) {
        Some(typical) if typical.most > 0 => typical.to_string(),
        _ => "-".to_owned(),
    }
}

/// `2162 (brotli)`, or `-` if it was sent as it is.
fn compression(wires: &[&WireSummary]) -> String {
    let found = wires.iter().find_map(|wire| wire.negotiated.compression);
    found.map_or("-".to_owned(), |compression| {
        let (bytes, name) = (compression.uncompressed_bytes, compression.algorithm_name());
        format!("{bytes} ({name})")
    })
}

/// `2 (12 segments)`, or `1-2 (12 segments)` if it depends on the cell.
fn flights(wires: &[&WireSummary]) -> String {
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
    let unit = known()
        .next()
        .map_or(TransportName::default(), |server| server.transport)
        .packet();
    match (
        flights.clone().min(),
        flights.max(),
        segments.clone().min(),
        segments.max(),
    ) {
        (Some(fewest), Some(most), Some(least), Some(greatest)) => format!(
            "{} ({})",
            span(fewest.to_string(), most.to_string()),
            counted(span(least.to_string(), greatest.to_string()), unit)
        ),
        _ => "-".into(),
    }
}
