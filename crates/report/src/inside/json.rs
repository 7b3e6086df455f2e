//! The JSON document.

use std::time::Duration;

use lastbyte_capture::{Fate, Trigger};
use lastbyte_link::Side;
use serde::Serialize;

use super::text::again_word;
use super::{Inside, side, story};
use crate::json::milliseconds;

/// The JSON Schema of the document.
pub const SCHEMA: &str = include_str!("../../schemas/show-1.schema.json");

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    answer: Vec<String>,
    sample: &'a str,
    connection: &'a str,
    end_ms: Option<f64>,
    arithmetic_ms: Option<f64>,
    least_rtt_ms: f64,
    client_retransmissions: usize,
    server_retransmissions: usize,
    messages: Vec<SpanDocument<'a>>,
    packets: Vec<PacketDocument>,
}

#[derive(Serialize)]
struct SpanDocument<'a> {
    sender: &'static str,
    start: u64,
    end: u64,
    what: &'a str,
}

#[derive(Serialize)]
struct PacketDocument {
    sender: &'static str,
    sent_ms: f64,
    arrived_ms: Option<f64>,
    fate: &'static str,
    what: String,
    offset: u64,
    bytes: usize,
    acknowledges: u64,
    again: Option<&'static str>,
    waited_ms: Option<f64>,
    in_flight: u64,
}

/// What became of a packet, in documents of either transport.
pub(super) fn fate_name(fate: Fate) -> &'static str {
    match fate {
        Fate::Carried => "carried",
        Fate::Lost => "lost",
        Fate::QueueFull => "queue full",
        Fate::UnderWay => "under way",
    }
}

/// All that is known of a connection, packet by packet.
#[must_use]
pub fn json(inside: &Inside) -> String {
    let connection = &inside.connection;
    let packets = connection.transmissions.iter().map(|sent| PacketDocument {
        sender: side(sent.sender),
        sent_ms: milliseconds(sent.sent),
        arrived_ms: sent.arrived.map(milliseconds),
        fate: fate_name(sent.fate),
        what: inside.what(sent),
        offset: sent.offset,
        bytes: sent.payload.len(),
        acknowledges: sent.acknowledges,
        again: sent.again.map(again_word),
        waited_ms: sent.again.and_then(waited).map(milliseconds),
        in_flight: sent.in_flight,
    });
    let spans = inside.spans.iter().map(|span| SpanDocument {
        sender: side(span.sender),
        start: span.start,
        end: span.end,
        what: &span.what,
    });
    let document = Document {
        schema: "lastbyte.show/1",
        answer: story(inside),
        sample: &inside.name,
        connection: &connection.comment,
        end_ms: inside.end().map(milliseconds),
        arithmetic_ms: inside
            .asked
            .and_then(|asked| asked.arithmetic.ok())
            .map(milliseconds),
        least_rtt_ms: milliseconds(connection.least_rtt()),
        client_retransmissions: connection.retransmissions(Side::Client),
        server_retransmissions: connection.retransmissions(Side::Server),
        messages: spans.collect(),
        packets: packets.collect(),
    };
    serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
}

fn waited(again: Trigger) -> Option<Duration> {
    match again {
        Trigger::LossProbe(waited) | Trigger::Timeout(waited) => Some(waited),
        Trigger::FastRetransmit | Trigger::AfterTimeout => None,
    }
}
