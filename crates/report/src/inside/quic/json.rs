//! The JSON document of a connection over QUIC.

use lastbyte_link::Side;
use serde::Serialize;

use super::Datagrams;
use crate::inside::json::fate_name;
use crate::inside::side;
use crate::json::milliseconds;

/// The JSON Schema of the document.
pub const SCHEMA: &str = include_str!("../../../schemas/show-quic-1.schema.json");

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    answer: Vec<String>,
    sample: &'a str,
    connection: &'a str,
    handshake_ms: Option<f64>,
    end_ms: Option<f64>,
    least_rtt_ms: f64,
    credit: Credit,
    initial_window_bytes: Option<u64>,
    datagrams: Vec<DatagramDocument<'a>>,
}

#[derive(Serialize)]
struct Credit {
    received: Vec<Step>,
    unvalidated_bytes: u64,
    validated_ms: Option<f64>,
    blocked: Vec<[f64; 2]>,
}

#[derive(Serialize)]
struct Step {
    at_ms: f64,
    bytes: u64,
}

#[derive(Serialize)]
struct DatagramDocument<'a> {
    sender: &'static str,
    sent_ms: f64,
    arrived_ms: Option<f64>,
    fate: &'static str,
    what: &'a str,
    bytes: usize,
    server_sent_bytes: Option<u64>,
}

/// All that is known of a connection, datagram by datagram.
#[must_use]
pub(in crate::inside) fn json(inside: &Datagrams) -> String {
    let ledger = &inside.ledger;
    let mut of_server = 0;
    let datagrams = inside.datagrams.iter().map(|sent| DatagramDocument {
        sender: side(sent.sender),
        sent_ms: milliseconds(sent.sent),
        arrived_ms: sent.arrived.map(milliseconds),
        fate: fate_name(sent.fate),
        what: &sent.what,
        bytes: sent.bytes,
        server_sent_bytes: (sent.sender == Side::Server).then(|| {
            of_server += sent.bytes as u64;
            of_server
        }),
    });
    let document = Document {
        schema: "lastbyte.show-quic/1",
        answer: inside.story(),
        sample: &inside.name,
        connection: &inside.comment,
        handshake_ms: inside.handshake.map(milliseconds),
        end_ms: inside.end.map(milliseconds),
        least_rtt_ms: milliseconds(inside.least_rtt()),
        datagrams: datagrams.collect(),
        credit: Credit {
            received: (ledger.received.iter())
                .map(|(at, bytes)| Step {
                    at_ms: milliseconds(*at),
                    bytes: *bytes,
                })
                .collect(),
            unvalidated_bytes: ledger.unvalidated,
            validated_ms: ledger.validated.map(milliseconds),
            blocked: (ledger.blocked.iter())
                .map(|wait| wait.map(milliseconds))
                .collect(),
        },
        initial_window_bytes: ledger.window,
    };
    serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
}
