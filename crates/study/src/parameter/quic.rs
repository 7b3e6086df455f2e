//! The parameters of QUIC's ends. Windows and congestion control are TCP's, in datagrams.

use std::ops::RangeInclusive;
use std::time::Duration;

use lastbyte_link::format_duration;

use super::spec::{
    Access, Caption, Choice, Column, CommandLine, Lists, Measures, Place, Reading, Scope, Spec,
    Value, read, read_time,
};
use crate::TransportName;
use crate::quic::Quic;

/// Datagrams that QUIC may have (RFC 9000, 14), and that fit a jumbo frame.
const SIZES: RangeInclusive<u32> = Quic::LEAST_DATAGRAM as u32..=Quic::MOST_DATAGRAM as u32;

/// What an end may begin with.
const LEAST_RTT: Duration = Duration::from_millis(1);
const MOST_RTT: Duration = Duration::from_secs(10);

/// quinn's timers have a granularity of a millisecond, and a `max_ack_delay` is less than 2^14 (RFC 9000, 18.2).
const LEAST_ACK_DELAY: Duration = Duration::from_millis(1);
const MOST_ACK_DELAY: Duration = Duration::from_secs(10);

pub(super) static DATAGRAM: Spec = Spec {
    name: "quic_datagram",
    scope: Scope::Cell,
    measures: Measures::Transfers,
    transport: Some(TransportName::Quic),
    title: "server's QUIC datagrams, bytes",
    caption: Caption::Unusual(|cell| format!("QUIC datagrams {}", cell.quic.server_datagram)),
    reading: Reading::Whole(SIZES),
    place: Place::Cell(Access {
        get: |cell| Value::Count(cell.quic.server_datagram.into()),
        set: |cell, text, _| read(&mut cell.quic.server_datagram, text),
    }),
    command_line: Some(CommandLine {
        value_name: "BYTES",
        help: "The UDP payload of the server's datagrams over QUIC, 1200 bytes or more: 1472 fit an Ethernet frame",
        choice: Choice::Usual("1200"),
        lists: Lists::Taken,
    }),
    column: Some(Column {
        name: "quic_datagram",
        doc: "UDP payload of the server's datagrams over QUIC, in bytes",
    }),
};

pub(super) static CLIENT_DATAGRAM: Spec = Spec {
    name: "quic_client_datagram",
    scope: Scope::Cell,
    measures: Measures::Transfers,
    transport: Some(TransportName::Quic),
    title: "client's QUIC datagrams, bytes",
    caption: Caption::Unusual(|cell| {
        format!("client's QUIC datagrams {}", cell.quic.client_datagram)
    }),
    reading: Reading::Whole(SIZES),
    place: Place::Cell(Access {
        get: |cell| Value::Count(cell.quic.client_datagram.into()),
        set: |cell, text, _| read(&mut cell.quic.client_datagram, text),
    }),
    command_line: Some(CommandLine {
        value_name: "BYTES",
        help: "The UDP payload of the client's datagrams over QUIC, of which the server has its credit: 1250 in Chromium",
        choice: Choice::Usual("1200"),
        lists: Lists::Taken,
    }),
    column: Some(Column {
        name: "quic_client_datagram",
        doc: "UDP payload of the client's datagrams over QUIC, in bytes",
    }),
};

pub(super) static INITIAL_RTT: Spec = Spec {
    name: "quic_initial_rtt",
    scope: Scope::Cell,
    measures: Measures::Transfers,
    transport: Some(TransportName::Quic),
    title: "QUIC's initial RTT, ms",
    caption: Caption::Unusual(|cell| {
        let rtt = format_duration(cell.quic.initial_rtt);
        format!("QUIC's initial RTT {rtt}")
    }),
    reading: Reading::Text,
    place: Place::Cell(Access {
        get: |cell| Value::Time(cell.quic.initial_rtt),
        set: |cell, text, _| {
            cell.quic.initial_rtt = read_time("quic_initial_rtt", text, LEAST_RTT, MOST_RTT)?;
            Ok(())
        },
    }),
    command_line: Some(CommandLine {
        value_name: "TIME",
        help: "The round-trip time that both ends of QUIC begin with, of which the first timeouts come (RFC 9002)",
        choice: Choice::Usual("333ms"),
        lists: Lists::Taken,
    }),
    column: Some(Column {
        name: "quic_initial_rtt_ns",
        doc: "round-trip time that both ends of QUIC begin with",
    }),
};

pub(super) static ACK_DELAY: Spec = Spec {
    name: "quic_ack_delay",
    scope: Scope::Cell,
    measures: Measures::Transfers,
    transport: Some(TransportName::Quic),
    title: "QUIC's max_ack_delay, ms",
    caption: Caption::Unusual(|cell| {
        let delay = format_duration(cell.quic.ack_delay);
        format!("QUIC's max_ack_delay {delay}")
    }),
    reading: Reading::Text,
    place: Place::Cell(Access {
        get: |cell| Value::Time(cell.quic.ack_delay),
        set: |cell, text, _| {
            cell.quic.ack_delay =
                read_time("quic_ack_delay", text, LEAST_ACK_DELAY, MOST_ACK_DELAY)?;
            Ok(())
        },
    }),
    command_line: Some(CommandLine {
        value_name: "TIME",
        help: "How long each end of QUIC waits before it acknowledges (max_ack_delay), once the handshake is complete: if that is not 25ms, each asks the other for it (ACK_FREQUENCY), and quinn asks for no more than a round trip",
        choice: Choice::Usual("25ms"),
        lists: Lists::Taken,
    }),
    column: Some(Column {
        name: "quic_ack_delay_ns",
        doc: "how long each end of QUIC waits before it acknowledges (max_ack_delay)",
    }),
};

pub(super) static MTU_DISCOVERY: Spec = Spec {
    name: "quic_mtu_discovery",
    scope: Scope::Cell,
    measures: Measures::Transfers,
    title: "QUIC's MTU discovery",
    caption: Caption::Unusual(|cell| format!("QUIC's MTU discovery {}", cell.quic.mtu_discovery)),
    reading: Reading::Text,
    transport: Some(TransportName::Quic),
    place: Place::Cell(Access {
        get: |cell| Value::Text(cell.quic.mtu_discovery.to_string()),
        set: |cell, text, _| read(&mut cell.quic.mtu_discovery, text),
    }),
    command_line: Some(CommandLine {
        value_name: "OFF|ON",
        help: "Whether QUIC's datagrams have the sizes above at first alone: both ends pad to 1200 bytes, fall back to 1200 where what is larger is lost, and search for more once the handshake is complete",
        choice: Choice::Usual("off"),
        lists: Lists::Taken,
    }),
    column: Some(Column {
        name: "quic_mtu_discovery",
        doc: "whether both ends of QUIC search for the largest datagrams, and fall back to 1200 bytes: `off` or `on`",
    }),
};
