//! What arithmetic says of arms, as text and as JSON.

use std::time::Duration;

use lastbyte_sizes::Message;
use serde_json::{Value, json};

use super::layout::{Field, Line, Role, Style, set, wrap};
use crate::explain::{Cut, Edge, Explanation, SERVER_MESSAGES, ServerFlight, Window};
use crate::results::number::milliseconds;
use crate::study::{Cell, distinctions};

/// The messages before and after the server's flight.
const OTHERS: [Message; 4] = [
    Message::ClientHello,
    Message::HelloRetryRequest,
    Message::SecondClientHello,
    Message::ClientFinished,
];

/// What arithmetic says, for people.
pub fn explanation(explained: &[Explanation], style: Style) -> String {
    let arms = explained.iter().map(|explained| arm(explained, style));
    let arms: Vec<String> = arms.collect();
    format!("{}\n{}\n", arms.join("\n"), wrap(NOTE, 0))
}

const NOTE: &str = "By arithmetic: TCP's slow start over a network that loses nothing, with ends that compute in no \
     time. Sizes are those of OpenSSL. `lastbyte compare` measures the same.";

fn arm(explained: &Explanation, style: Style) -> String {
    let name = style.paint(Role::Heading, &explained.arm.name);
    let mut parts = vec![format!("{name}\n{}", set(&messages(explained), style))];
    let names = window_names(explained);
    for (window, name) in explained.windows.iter().zip(&names) {
        parts.push(set(&flights(explained, window, name), style));
    }
    if !explained.cuts.is_empty() {
        parts.push(set(&cuts(explained, &names), style));
    }
    parts.push(set(&times(explained), style));
    parts.join("\n")
}

fn heading(texts: &[&str]) -> Vec<Field> {
    texts
        .iter()
        .map(|text| Field::new(Role::Dim, *text))
        .collect()
}

fn row(label: impl Into<String>, cells: impl IntoIterator<Item = String>) -> Line {
    let cells = cells.into_iter().map(|cell| Field::new(Role::Normal, cell));
    Line::Fields(
        Field::new(Role::Normal, format!("  {}", label.into())),
        cells.collect(),
    )
}

fn title(text: impl Into<String>, columns: &[&str]) -> Line {
    Line::Fields(Field::new(Role::Dim, text), heading(columns))
}

/// The sizes of all messages.
fn messages(explained: &Explanation) -> Vec<Line> {
    let wire = &explained.wire;
    let line = |message: Message| {
        let bytes = wire.messages.get(message)?;
        let span = match message {
            Message::CertificateVerify if varies(explained) => format!("{bytes} (±1)"),
            _ => bytes.to_string(),
        };
        Some(row(message.title(), [span]))
    };
    let before = OTHERS.into_iter().take(3).chain(SERVER_MESSAGES);
    let mut lines = vec![title("handshake messages", &["bytes"])];
    lines.extend(before.chain([Message::ClientFinished]).filter_map(line));
    lines.push(title("with their records", &[""]));
    for (what, bytes) in [
        ("ClientHello", wire.client_hello_wire_bytes),
        ("HelloRetryRequest", wire.hello_retry_request_wire_bytes),
        ("second ClientHello", wire.second_client_hello_wire_bytes),
        ("ServerHello to Finished", wire.server_flight_wire_bytes),
        ("client Finished", wire.client_finish_wire_bytes),
    ] {
        if bytes > 0 {
            lines.push(row(what, [bytes.to_string()]));
        }
    }
    lines
}

/// Whether the server's signature has not always the same length.
fn varies(explained: &Explanation) -> bool {
    let algorithm = explained.signature;
    algorithm.longest_signature_bytes() > algorithm.signature_bytes()
}

/// What tells the windows apart.
fn window_names(explained: &Explanation) -> Vec<String> {
    let cells: Vec<Cell> = (explained.windows.iter())
        .map(|window| window.cell.clone())
        .collect();
    let names = distinctions(&cells).into_iter().zip(&cells);
    let names = names.map(|(name, cell)| match name.contains("initcwnd") {
        true => name,
        false if name.is_empty() => format!("initcwnd {}", cell.initcwnd),
        false => format!("initcwnd {}, {name}", cell.initcwnd),
    });
    names.collect()
}

/// Where each message ends, and how far the edges are.
fn flights(explained: &Explanation, window: &Window, name: &str) -> Vec<Line> {
    let edges = &window.edges;
    let text = |text: String| Line::Text(Role::Normal, wrap(&format!("  {text}"), 4));
    let needed = match edges.flights {
        1 => "the server needs one flight".to_owned(),
        flights => format!("the server needs {flights} flights"),
    };
    let mut lines = vec![Line::Text(Role::Dim, format!("{name}: {needed}"))];
    for (number, flight) in window.flights.iter().enumerate() {
        lines.push(text(format!("flight {}: {}", number + 1, contents(flight))));
    }
    lines.push(text(match edges.above {
        Some(edge) => format!("room before one flight more: {}", distance(&edge)),
        None => "no Certificate message needs a flight more".to_owned(),
    }));
    if let Some(edge) = edges.below {
        lines.push(text(format!(
            "to cut for one flight less: {}",
            distance(&edge)
        )));
    } else if edges.flights > 1 {
        lines.push(text(
            "no smaller Certificate message needs a flight less".to_owned(),
        ));
    }
    if varies(explained) && window.most_flights != edges.flights {
        let most = window.most_flights;
        lines.push(text(format!(
            "where the ECDSA signature is a byte longer: {most} flights"
        )));
    }
    lines
}

fn contents(flight: &ServerFlight) -> String {
    let segments = match flight.segments {
        1 => "1 segment".to_owned(),
        segments => format!("{segments} segments"),
    };
    let ends = flight.messages.iter();
    let ends: Vec<String> = ends
        .map(|(message, segment)| format!("{} ends in segment {segment}", message.title()))
        .collect();
    let ends = match ends.is_empty() {
        true => "no message ends".to_owned(),
        false => ends.join(", "),
    };
    format!("{segments}, {} bytes: {ends}", flight.bytes)
}

fn distance(edge: &Edge) -> String {
    let Edge {
        certificate,
        certificate_distance,
        server_flight,
        server_flight_distance,
    } = edge;
    format!(
        "{certificate_distance} bytes of the Certificate (until {certificate}), {server_flight_distance} on the \
         wire (until {server_flight})"
    )
}

/// What each cut buys.
fn cuts(explained: &Explanation, windows: &[String]) -> Vec<Line> {
    let mut columns = vec!["Certificate", "on the wire"];
    let flights: Vec<String> = windows
        .iter()
        .map(|name| format!("flights, {name}"))
        .collect();
    columns.extend(flights.iter().map(String::as_str));
    let mut lines = vec![title("to cut", &columns)];
    for Cut {
        what,
        certificate,
        server_flight,
        flights,
    } in &explained.cuts
    {
        let flights = flights
            .iter()
            .zip(&explained.windows)
            .map(|(left, window)| match (window.edges.flights, *left) {
                (now, left) if left < now => format!("{now} → {left}"),
                (now, _) => now.to_string(),
            });
        let less = |bytes: usize| match bytes {
            0 => "0".to_owned(),
            bytes => format!("-{bytes}"),
        };
        lines.push(row(
            what,
            [less(*certificate), less(*server_flight)]
                .into_iter()
                .chain(flights),
        ));
    }
    lines
}

/// When what happens in each cell.
fn times(explained: &Explanation) -> Vec<Line> {
    let mut lines = vec![title("times", &["handshake", "first byte", "last byte"])];
    for (cell, times) in &explained.times {
        let first = times.ttfb.map_or_else(|| "-".to_owned(), milliseconds);
        let cells = [
            milliseconds(times.handshake),
            first,
            milliseconds(times.ttlb),
        ];
        lines.push(row(cell.to_string(), cells));
    }
    lines
}

/// What arithmetic says, for programs. Times are in nanoseconds, all else in bytes, segments and flights.
pub fn explanation_json(explained: &[Explanation]) -> String {
    let arms: Vec<Value> = explained.iter().map(document).collect();
    format!("{:#}\n", json!({ "arms": arms }))
}

fn document(explained: &Explanation) -> Value {
    let wire = &explained.wire;
    let sizes = Message::all().filter_map(|message| {
        Some((
            message.column().to_owned(),
            json!(wire.messages.get(message)?),
        ))
    });
    let windows = explained.windows.iter().map(|window| {
        json!({
            "cell": window.cell.to_string(),
            "initcwnd": window.cell.initcwnd,
            "server_flights": window.edges.flights,
            "server_flights_most": window.most_flights,
            "flights": window.flights.iter().map(|flight| json!({
                "segments": flight.segments,
                "bytes": flight.bytes,
                "messages": flight.messages.iter().map(|(message, segment)| json!({
                    "message": message.name(),
                    "segment": segment,
                })).collect::<Vec<_>>(),
            })).collect::<Vec<_>>(),
            "room": window.edges.above.map(edge),
            "excess": window.edges.below.map(edge),
        })
    });
    let cuts = explained.cuts.iter().map(|cut| {
        json!({
            "what": cut.what,
            "certificate_bytes": cut.certificate,
            "server_flight_wire_bytes": cut.server_flight,
            "server_flights": cut.flights,
        })
    });
    let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let times = explained.times.iter().map(|(cell, times)| {
        json!({
            "cell": cell.to_string(),
            "connect_ns": nanoseconds(times.connect),
            "handshake_ns": nanoseconds(times.handshake),
            "ttfb_ns": times.ttfb.map(nanoseconds),
            "ttlb_ns": nanoseconds(times.ttlb),
        })
    });
    json!({
        "arm": explained.arm.label,
        "messages": sizes.collect::<serde_json::Map<_, _>>(),
        "client_hello_wire_bytes": wire.client_hello_wire_bytes,
        "hello_retry_request_wire_bytes": wire.hello_retry_request_wire_bytes,
        "second_client_hello_wire_bytes": wire.second_client_hello_wire_bytes,
        "server_flight_wire_bytes": wire.server_flight_wire_bytes,
        "client_finish_wire_bytes": wire.client_finish_wire_bytes,
        "windows": windows.collect::<Vec<_>>(),
        "cuts": cuts.collect::<Vec<_>>(),
        "times": times.collect::<Vec<_>>(),
    })
}

fn edge(edge: Edge) -> Value {
    json!({
        "certificate_bytes": edge.certificate,
        "certificate_distance": edge.certificate_distance,
        "server_flight_wire_bytes": edge.server_flight,
        "server_flight_distance": edge.server_flight_distance,
    })
}
