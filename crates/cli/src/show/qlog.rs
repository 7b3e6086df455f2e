//! Connections over QUIC as qlog (draft-ietf-quic-qlog-main-schema, draft-ietf-quic-qlog-quic-events), in JSON text sequences
//! (RFC 7464): what each end sent and received, as the observer reads it off the wire, and never as a stack says it.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use lastbyte_capture::Flow;
use lastbyte_link::{Side, Time};
use lastbyte_tls::observer::quic::{Frame, Layer, Packet, PacketKind};
use serde_json::{Value, json};

use super::quic::ReadFlow;
use crate::Failure;
use crate::draft::{Draft, cannot_write};

/// Writes a file for each end of each connection into a folder, which is made if it is not there. Of each connection, its name
/// in files and what the observer read.
pub(super) fn write_all(folder: &Path, connections: &[(String, ReadFlow)]) -> Result<(), Failure> {
    std::fs::create_dir_all(folder).map_err(|error| cannot_write(folder, error))?;
    for (name, read) in connections {
        for side in [Side::Client, Side::Server] {
            let path = folder.join(format!("{name}-{}.sqlog", end(side)));
            Draft::new(&path)?.write(|out| write(out, name, read, side))?;
        }
    }
    Ok(())
}

fn write(out: &mut impl Write, name: &str, read: &ReadFlow, side: Side) -> io::Result<()> {
    record(
        out,
        &json!({
            "file_schema": "urn:ietf:params:qlog:file:sequential",
            "serialization_format": "application/qlog+json-seq",
            "title": name,
            "description": read.name,
            "trace": {
                "common_fields": {
                    "time_format": "relative_to_epoch",
                    "reference_time": { "clock_type": "monotonic", "epoch": "unknown" },
                },
                "vantage_point": { "name": "lastbyte", "type": end(side) },
                "event_schemas": ["urn:ietf:params:qlog:events:quic-12"],
            },
        }),
    )?;
    for (at, name, data) in events(read, side) {
        record(
            out,
            &json!({ "time": milliseconds(at), "name": name, "data": data }),
        )?;
    }
    Ok(())
}

fn record(out: &mut impl Write, value: &Value) -> io::Result<()> {
    const RECORD_SEPARATOR: u8 = 0x1e;
    out.write_all(&[RECORD_SEPARATOR])?;
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")
}

type Event = (Duration, &'static str, Value);

/// What an end does, in the order of time; what arrives comes before what is sent for it.
fn events(read: &ReadFlow, side: Side) -> Vec<Event> {
    let Flow { id, datagrams, .. } = &read.flow;
    let (local, remote) = match side {
        Side::Client => (id.client, id.server),
        Side::Server => (id.server, id.client),
    };
    let endpoint =
        |(address, port): (std::net::Ipv4Addr, u16)| json!({ "ip_v4": address, "port_v4": port });
    let started = json!({ "local": endpoint(local), "remote": endpoint(remote) });
    // Of each moment: what arrives, what that changes, and what is sent.
    let mut passed: Vec<(Duration, u8, usize)> = Vec::new();
    for (index, passage) in datagrams.iter().enumerate() {
        match (passage.sender == side, passage.arrived) {
            (true, _) => passed.push((passage.sent, 1, index)),
            (false, Some(arrived)) => passed.push((arrived, 0, index)),
            (false, None) => {}
        }
    }
    passed.sort();
    let mut events: Vec<Event> = Vec::new();
    let first = passed.first().map_or(Duration::ZERO, |(at, ..)| *at);
    events.push((first, "quic:connection_started", started));
    let mut recovery = Recovery::default();
    for (at, _, index) in passed {
        let (Some(passage), Some(datagram)) =
            (datagrams.get(index), read.seen.datagrams.get(index))
        else {
            continue;
        };
        for packet in &datagram.packets {
            let name = if passage.sender == side {
                recovery.sends(at, packet);
                "quic:packet_sent"
            } else {
                "quic:packet_received"
            };
            events.push((at, name, packet_event(packet)));
            if passage.sender != side {
                events.extend(recovery.hears(at, packet));
            }
        }
    }
    if side == Side::Server {
        events.extend(credit_events(read));
        // Those of one moment stay as they are.
        events.sort_by_key(|(at, ..)| *at);
    }
    events
}

/// When the server knew its client's address, and when it had no credit.
fn credit_events(read: &ReadFlow) -> Vec<Event> {
    const BLOCKED: &str = "quic:connection_data_blocked_updated";
    let since = |time: Time| time.since(Time(0));
    let waits = read.credit.waits().iter();
    let mut events: Vec<Event> = waits
        .flat_map(|[begin, end]| {
            let why = "amplification_protection";
            [
                (
                    since(*begin),
                    BLOCKED,
                    json!({ "old": "unblocked", "new": "blocked", "reason": why }),
                ),
                (
                    since(*end),
                    BLOCKED,
                    json!({ "old": "blocked", "new": "unblocked", "reason": why }),
                ),
            ]
        })
        .collect();
    events.extend(read.credit.validated().map(|at| {
        let state = json!({ "new": "peer_validated" });
        (since(at), "quic:connection_state_updated", state)
    }));
    events
}

/// What the wire tells of recovery: which packets were acknowledged, and the round-trip times that their sender saw (RFC 9002, 5).
/// What it made of that, its smoothed time and its window, is its own.
#[derive(Default)]
struct Recovery {
    /// Packets that are to be acknowledged and are not, by space and number, and when they were sent.
    sent: BTreeMap<(usize, u64), (Duration, bool)>,
    least: Option<Duration>,
}

/// As packets are numbered (RFC 9000, 12.3).
const SPACES: [&str; 3] = ["initial", "handshake", "application_data"];

fn space(kind: PacketKind) -> usize {
    match kind {
        PacketKind::Initial => 0,
        PacketKind::Handshake => 1,
        _ => 2,
    }
}

impl Recovery {
    fn sends(&mut self, at: Duration, packet: &Packet) {
        if let Some(number) = packet.number {
            let elicits = packet.frames.iter().any(Frame::is_ack_eliciting);
            (self.sent).insert((space(packet.kind), number), (at, elicits));
        }
    }

    fn hears(&mut self, at: Duration, packet: &Packet) -> Vec<Event> {
        let space = space(packet.kind);
        let mut events = Vec::new();
        for frame in &packet.frames {
            let Frame::Ack { ranges, .. } = frame else {
                continue;
            };
            let mut numbers = Vec::new();
            let mut latest = None;
            for range in ranges.iter().rev() {
                let own = (space, *range.start())..=(space, *range.end());
                let own: Vec<_> = self
                    .sent
                    .range(own)
                    .map(|(key, sent)| (*key, *sent))
                    .collect();
                for (key, (sent, elicits)) in own {
                    self.sent.remove(&key);
                    numbers.push(key.1);
                    latest = Some((key.1, sent, elicits));
                }
            }
            if numbers.is_empty() {
                continue;
            }
            let is_largest = |number| ranges.first().is_some_and(|range| *range.end() == number);
            let name = SPACES.get(space).copied().unwrap_or_default();
            let acked = json!({ "packet_number_space": name, "packet_numbers": numbers });
            events.push((at, "quic:packets_acked", acked));
            if let Some((number, sent, true)) = latest
                && is_largest(number)
            {
                let rtt = at.saturating_sub(sent);
                let least = self.least.map_or(rtt, |least| least.min(rtt));
                self.least = Some(least);
                let metrics =
                    json!({ "latest_rtt": milliseconds(rtt), "min_rtt": milliseconds(least) });
                events.push((at, "quic:recovery_metrics_updated", metrics));
            }
        }
        events
    }
}

fn packet_event(packet: &Packet) -> Value {
    let kind = match packet.kind {
        PacketKind::Initial => "initial",
        PacketKind::ZeroRtt => "0RTT",
        PacketKind::Handshake => "handshake",
        PacketKind::Retry => "retry",
        PacketKind::VersionNegotiation => "version_negotiation",
        PacketKind::OneRtt => "1RTT",
    };
    let mut header = json!({ "packet_type": kind, "dcid": hexadecimal(&packet.destination) });
    let mut set = |key: &str, value: Value| {
        if let Some(fields) = header.as_object_mut() {
            fields.insert(key.to_owned(), value);
        }
    };
    if let Some(number) = packet.number {
        set("packet_number", number.into());
    }
    if let Some(source) = &packet.source {
        set("scid", hexadecimal(source).into());
    }
    if packet.token > 0 {
        set("token", json!({ "raw": { "length": packet.token } }));
    }
    let frames: Vec<Value> = packet.frames.iter().map(frame).collect();
    let mut event = json!({ "header": header, "raw": { "length": packet.bytes } });
    // Of a packet that nobody could open, none are known.
    if let (Some(_), Some(fields)) = (packet.number, event.as_object_mut()) {
        fields.insert("frames".to_owned(), frames.into());
    }
    event
}

fn frame(frame: &Frame) -> Value {
    let raw = |length: u64| json!({ "payload_length": length });
    let stream_type = |is_bidirectional: bool| {
        if is_bidirectional {
            "bidirectional"
        } else {
            "unidirectional"
        }
    };
    match frame {
        Frame::Padding(bytes) => json!({ "frame_type": "padding", "raw": { "length": bytes } }),
        Frame::Ping => json!({ "frame_type": "ping" }),
        Frame::Ack { ranges, .. } => {
            let ranges = ranges.iter().rev();
            let ranges = ranges.map(|range| [*range.start(), *range.end()]);
            json!({ "frame_type": "ack", "acked_ranges": ranges.collect::<Vec<_>>() })
        }
        Frame::ResetStream { id, code, size } => json!({
            "frame_type": "reset_stream", "stream_id": id, "error": "unknown", "error_code": code,
            "final_size": size,
        }),
        Frame::StopSending { id, code } => json!({
            "frame_type": "stop_sending", "stream_id": id, "error": "unknown", "error_code": code,
        }),
        Frame::Crypto { offset, length } => {
            json!({ "frame_type": "crypto", "offset": offset, "raw": raw(*length) })
        }
        Frame::NewToken(length) => {
            json!({ "frame_type": "new_token", "token": { "raw": { "length": length } } })
        }
        Frame::Stream {
            id,
            offset,
            length,
            is_last,
        } => json!({
            "frame_type": "stream", "stream_id": id, "offset": offset, "fin": is_last,
            "raw": raw(*length),
        }),
        Frame::MaxData(most) => json!({ "frame_type": "max_data", "maximum": most }),
        Frame::MaxStreamData { id, most } => {
            json!({ "frame_type": "max_stream_data", "stream_id": id, "maximum": most })
        }
        Frame::MaxStreams {
            is_bidirectional,
            most,
        } => json!({
            "frame_type": "max_streams", "stream_type": stream_type(*is_bidirectional),
            "maximum": most,
        }),
        Frame::DataBlocked(limit) => json!({ "frame_type": "data_blocked", "limit": limit }),
        Frame::StreamDataBlocked { id, limit } => {
            json!({ "frame_type": "stream_data_blocked", "stream_id": id, "limit": limit })
        }
        Frame::StreamsBlocked {
            is_bidirectional,
            limit,
        } => json!({
            "frame_type": "streams_blocked", "stream_type": stream_type(*is_bidirectional),
            "limit": limit,
        }),
        Frame::NewConnectionId {
            sequence,
            retire_prior_to,
            id,
        } => json!({
            "frame_type": "new_connection_id", "sequence_number": sequence,
            "retire_prior_to": retire_prior_to, "connection_id": hexadecimal(id),
        }),
        Frame::RetireConnectionId(sequence) => {
            json!({ "frame_type": "retire_connection_id", "sequence_number": sequence })
        }
        Frame::PathChallenge => json!({ "frame_type": "path_challenge" }),
        Frame::PathResponse => json!({ "frame_type": "path_response" }),
        Frame::ConnectionClose { by, code } => close(*by, *code),
        Frame::HandshakeDone => json!({ "frame_type": "handshake_done" }),
        Frame::Other(0x30 | 0x31) => json!({ "frame_type": "datagram" }),
        Frame::Other(kind) => json!({ "frame_type": "unknown", "frame_type_bytes": kind }),
    }
}

/// Errors as the draft names them (RFC 9000, 20.1).
fn close(by: Layer, code: u64) -> Value {
    const ERRORS: [&str; 17] = [
        "no_error",
        "internal_error",
        "connection_refused",
        "flow_control_error",
        "stream_limit_error",
        "stream_state_error",
        "final_size_error",
        "frame_encoding_error",
        "transport_parameter_error",
        "connection_id_limit_error",
        "protocol_violation",
        "invalid_token",
        "application_error",
        "crypto_buffer_exceeded",
        "key_update_error",
        "aead_limit_reached",
        "no_viable_path",
    ];
    let (space, error) = match by {
        Layer::Application => ("application", "unknown".to_owned()),
        Layer::Transport => {
            let known = usize::try_from(code).ok().and_then(|code| ERRORS.get(code));
            let error = match (known, code) {
                (Some(error), _) => (*error).to_owned(),
                (None, 0x100..=0x1ff) => format!("crypto_error_{code:#x}"),
                (None, _) => "unknown".to_owned(),
            };
            ("transport", error)
        }
    };
    let mut close =
        json!({ "frame_type": "connection_close", "error_space": space, "error": error });
    if let ("unknown", Some(fields)) = (error.as_str(), close.as_object_mut()) {
        fields.insert("error_code".to_owned(), code.into());
    }
    close
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn end(side: Side) -> &'static str {
    match side {
        Side::Client => "client",
        Side::Server => "server",
    }
}

/// To the nanosecond.
fn milliseconds(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e6
}
