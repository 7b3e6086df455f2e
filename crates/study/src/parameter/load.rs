//! The parameters of what connections carry.

use lastbyte_link::{Bytes, counted, format_duration, parse_duration};

use super::spec::{
    Access, Caption, Choice, Column, CommandLine, Lists, Measures, Place, Reading, Scope, Spec,
    Value, read,
};
use crate::Traffic;

/// Flight arithmetic goes through a response segment by segment.
const MOST_DATA: Bytes = Bytes(1 << 30);
/// Requests on one connection, at most.
const MOST_REQUESTS: u32 = 1000;

pub(super) static CLIENT_CPU: Spec = Spec {
    name: "client_cpu",
    scope: Scope::Cell,
    measures: Measures::Transfers,
    transport: None,
    title: "client's CPU",
    caption: Caption::Unusual(|cell| match cell.client_cpu.times() {
        1 => "client's CPU as here".to_owned(),
        times => format!("client's CPU {times} times as slow"),
    }),
    reading: Reading::Text,
    place: Place::Cell(Access {
        get: |cell| Value::Text(cell.client_cpu.to_string()),
        set: |cell, text, _| read(&mut cell.client_cpu, text),
    }),
    command_line: Some(CommandLine {
        value_name: "CPU",
        help: "What the client computes on: this machine's CPU, a phone (4 times as slow), a microcontroller (iot, 50 times), or a factor such as 8x",
        choice: Choice::Usual("this"),
        lists: Lists::Taken,
    }),
    column: Some(Column {
        name: "client_cpu",
        doc: "what the client's computing takes, where it is counted: `this`, as on the machine that measured it, `phone`, `iot`, or so many times as long",
    }),
};

/// What stands where nothing is drawn of a kind of traffic.
const NONE: &str = "none";

pub(super) static TRAFFIC: Spec = Spec {
    name: "traffic",
    scope: Scope::Cell,
    measures: Measures::Transfers,
    transport: None,
    title: "traffic",
    caption: Caption::Unusual(|cell| {
        let traffic = cell.traffic.as_ref();
        traffic.map_or(NONE.to_owned(), |traffic| format!("traffic {traffic}"))
    }),
    // A file is read where it is: that takes the study's folder.
    reading: Reading::Name,
    place: Place::Cell(Access {
        get: |cell| {
            let traffic = cell.traffic.as_ref();
            Value::Text(traffic.map_or(NONE.to_owned(), Traffic::to_string))
        },
        set: |cell, text, folder| {
            cell.traffic = match text {
                NONE => None,
                text => Some(Traffic::read(text, folder)?),
            };
            Ok(())
        },
    }),
    command_line: Some(CommandLine {
        value_name: "NAME|FILE.toml",
        help: "What connections carry, drawn for each: web, mobile-web, social, cloud-api, video, updates, iot or mesh \
               (docs/traffic.md has what they draw, and who says so), or your own as of `lastbyte zeek -o`. What is said besides \
               has the last word",
        choice: Choice::Usual(NONE),
        lists: Lists::Taken,
    }),
    column: Some(Column {
        name: "traffic",
        doc: "the kind of traffic that the connection is of: its name, the file that says what is drawn, or `none`",
    }),
};

pub(super) static REQUESTS: Spec = Spec {
    name: "requests",
    scope: Scope::Connection,
    measures: Measures::Transfers,
    transport: None,
    title: "requests",
    caption: Caption::Unusual(|cell| counted(cell.requests, "request")),
    reading: Reading::Whole(1..=MOST_REQUESTS),
    place: Place::Cell(Access {
        get: |cell| Value::Count(cell.requests),
        set: |cell, text, _| read(&mut cell.requests, text),
    }),
    command_line: Some(CommandLine {
        value_name: "N",
        help: "Requests on each connection, one after the other",
        choice: Choice::Usual("1"),
        lists: Lists::Taken,
    }),
    column: Some(Column {
        name: "requests",
        doc: "requests on the connection",
    }),
};

pub(super) static THINK: Spec = Spec {
    name: "think",
    scope: Scope::Connection,
    measures: Measures::Transfers,
    transport: None,
    title: "time to think, ms",
    caption: Caption::Unusual(|cell| format!("think {}", format_duration(cell.think))),
    reading: Reading::Text,
    place: Place::Cell(Access {
        get: |cell| Value::Time(cell.think),
        set: |cell, text, _| {
            cell.think = parse_duration(text)?;
            Ok(())
        },
    }),
    command_line: Some(CommandLine {
        value_name: "TIME",
        help: "How long the client thinks between a response and its next request",
        choice: Choice::Usual("0ms"),
        lists: Lists::Taken,
    }),
    column: Some(Column {
        name: "think_ns",
        doc: "from the end of a response to the next request",
    }),
};

pub(super) static UPLOAD: Spec = Spec {
    name: "upload",
    scope: Scope::Connection,
    measures: Measures::Transfers,
    transport: None,
    title: "upload, KiB",
    caption: Caption::Unusual(|cell| format!("upload {}", cell.upload)),
    reading: Reading::Bytes(MOST_DATA),
    place: Place::Cell(Access {
        get: |cell| Value::Bytes(cell.upload),
        set: |cell, text, _| read(&mut cell.upload, text),
    }),
    command_line: Some(CommandLine {
        value_name: "SIZE",
        help: "Bytes that the client sends after the head of its request",
        choice: Choice::Usual("0KiB"),
        lists: Lists::Taken,
    }),
    column: Some(Column {
        name: "upload_bytes",
        doc: "body of each request",
    }),
};

pub(super) static DATA: Spec = Spec {
    name: "data",
    scope: Scope::Connection,
    measures: Measures::Transfers,
    transport: None,
    title: "data, KiB",
    caption: Caption::Always(|cell| cell.data.to_string()),
    reading: Reading::Bytes(MOST_DATA),
    place: Place::Cell(Access {
        get: |cell| Value::Bytes(cell.data),
        set: |cell, text, _| read(&mut cell.data, text),
    }),
    command_line: Some(CommandLine {
        value_name: "SIZE",
        help: "Bytes that the server answers",
        choice: Choice::Usual("0KiB,50KiB,200KiB"),
        lists: Lists::Taken,
    }),
    column: Some(Column {
        name: "data_bytes",
        doc: "payload of each response",
    }),
};
