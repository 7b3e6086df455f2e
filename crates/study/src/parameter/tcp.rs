//! The parameters of TCP, and what goes with a name.

use super::spec::{
    Access, Caption, Choice, Column, CommandLine, Lists, Measures, Place, Reading, Scope, Spec,
    Value, read,
};
use crate::{Hosts, TransportName};

/// An initial window in segments, at most.
const MOST_INITCWND: u32 = 1000;

/// It comes before what goes with it.
pub(super) static PRESET: Spec = Spec {
    name: "preset",
    scope: Scope::Cell,
    measures: Measures::Both,
    transport: Some(TransportName::Tcp),
    title: "preset",
    caption: Caption::Unusual(|cell| format!("preset {}", cell.preset)),
    reading: Reading::Text,
    place: Place::Cell(Access {
        get: |cell| Value::Text(cell.preset.to_string()),
        set: |cell, text, _| {
            read(&mut cell.preset, text)?;
            cell.gso = cell.preset.gso();
            cell.hosts = Hosts::of(cell.preset);
            Ok(())
        },
    }),
    command_line: Some(CommandLine {
        value_name: "NAME",
        help: "A named set of link, socket and TCP settings: network or published-2024",
        choice: Choice::Usual("network"),
        lists: Lists::Taken,
    }),
    column: Some(Column {
        name: "preset",
        doc: "all other settings: `network` or `published-2024`",
    }),
};

pub(super) static GSO: Spec = Spec {
    name: "gso",
    scope: Scope::Cell,
    measures: Measures::Both,
    transport: Some(TransportName::Tcp),
    title: "GSO",
    caption: Caption::Unusual(|cell| format!("gso {}", cell.gso)),
    reading: Reading::Text,
    place: Place::Cell(Access {
        get: |cell| Value::Text(cell.gso.to_string()),
        set: |cell, text, _| read(&mut cell.gso, text),
    }),
    command_line: Some(CommandLine {
        value_name: "OFF|ON",
        help: "Whether the link sees TCP's super-packets: off or on [default: off, or the preset's]",
        choice: Choice::Presets,
        lists: Lists::Taken,
    }),
    column: Some(Column {
        name: "gso",
        doc: "whether the link sees super-packets: `off` or `on`",
    }),
};

pub(super) static CONGESTION: Spec = Spec {
    name: "congestion",
    scope: Scope::Cell,
    measures: Measures::Both,
    transport: None,
    title: "congestion control",
    caption: Caption::Unusual(|cell| cell.congestion.to_string()),
    reading: Reading::Text,
    place: Place::Cell(Access {
        get: |cell| Value::Text(cell.congestion.to_string()),
        set: |cell, text, _| read(&mut cell.congestion, text),
    }),
    command_line: Some(CommandLine {
        value_name: "NAME",
        help: "Congestion control of both ends: cubic, reno or bbr",
        choice: Choice::Usual("cubic"),
        lists: Lists::Taken,
    }),
    column: Some(Column {
        name: "congestion",
        doc: "congestion control of both ends",
    }),
};

pub(super) static CLIENT_INITCWND: Spec = Spec {
    name: "client_initcwnd",
    scope: Scope::Cell,
    measures: Measures::Both,
    transport: None,
    title: "client's initial window, segments",
    caption: Caption::Unusual(|cell| format!("client initcwnd {}", cell.client_initcwnd)),
    reading: Reading::Whole(1..=MOST_INITCWND),
    place: Place::Cell(Access {
        get: |cell| Value::Count(cell.client_initcwnd),
        set: |cell, text, _| read(&mut cell.client_initcwnd, text),
    }),
    command_line: Some(CommandLine {
        value_name: "SEGMENTS",
        help: "The client's initial congestion window, in segments",
        choice: Choice::Usual("10"),
        lists: Lists::Taken,
    }),
    column: Some(Column {
        name: "client_initcwnd",
        doc: "the client's initial congestion window, in segments",
    }),
};

pub(super) static INITCWND: Spec = Spec {
    name: "initcwnd",
    scope: Scope::Cell,
    measures: Measures::Both,
    transport: None,
    title: "initial window, segments",
    caption: Caption::Always(|cell| format!("initcwnd {}", cell.initcwnd)),
    reading: Reading::Whole(1..=MOST_INITCWND),
    place: Place::Cell(Access {
        get: |cell| Value::Count(cell.initcwnd),
        set: |cell, text, _| read(&mut cell.initcwnd, text),
    }),
    command_line: Some(CommandLine {
        value_name: "SEGMENTS",
        help: "The server's initial congestion window, in segments",
        choice: Choice::Usual("10"),
        lists: Lists::Taken,
    }),
    column: Some(Column {
        name: "initcwnd",
        doc: "the server's initial congestion window, in segments",
    }),
};
