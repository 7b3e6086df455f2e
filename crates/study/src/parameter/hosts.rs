//! The parameters of both ends' hosts.

use super::spec::{
    Access, Caption, Choice, Column, CommandLine, Lists, Measures, Place, Reading, Scope, Spec,
    Value, read,
};
use crate::TransportName;

pub(super) static MTU: Spec = Spec {
    name: "mtu",
    scope: Scope::Cell,
    measures: Measures::Both,
    transport: None,
    title: "MTU, bytes",
    caption: Caption::Unusual(|cell| format!("mtu {}", cell.hosts.mtu)),
    reading: Reading::Text,
    place: Place::Cell(Access {
        get: |cell| Value::Text(cell.hosts.mtu.to_string()),
        set: |cell, text, _| read(&mut cell.hosts.mtu, text),
    }),
    command_line: Some(CommandLine {
        value_name: "BYTES",
        help: "The longest IP packet of both ends, 576 to 9000 bytes [default: 1500]",
        choice: Choice::Presets,
        lists: Lists::Taken,
    }),
    column: Some(Column {
        name: "mtu",
        doc: "the longest IP packet of both ends, in bytes",
    }),
};

pub(super) static TIMESTAMPS: Spec = Spec {
    name: "timestamps",
    scope: Scope::Cell,
    measures: Measures::Both,
    transport: Some(TransportName::Tcp),
    title: "TCP timestamps",
    caption: Caption::Unusual(|cell| format!("timestamps {}", cell.hosts.timestamps)),
    reading: Reading::Text,
    place: Place::Cell(Access {
        get: |cell| Value::Text(cell.hosts.timestamps.to_string()),
        set: |cell, text, _| read(&mut cell.hosts.timestamps, text),
    }),
    command_line: Some(CommandLine {
        value_name: "OFF|ON",
        help: "TCP timestamps, 12 bytes of each segment [default: on]",
        choice: Choice::Presets,
        lists: Lists::Taken,
    }),
    column: Some(Column {
        name: "timestamps",
        doc: "TCP timestamps: `off` or `on`",
    }),
};

pub(super) static ECN: Spec = Spec {
    name: "ecn",
    scope: Scope::Cell,
    measures: Measures::Both,
    transport: None,
    title: "ECN",
    caption: Caption::Unusual(|cell| format!("ecn {}", cell.hosts.ecn)),
    reading: Reading::Text,
    place: Place::Cell(Access {
        get: |cell| Value::Text(cell.hosts.ecn.to_string()),
        set: |cell, text, _| read(&mut cell.hosts.ecn, text),
    }),
    command_line: Some(CommandLine {
        value_name: "OFF|ON",
        help: "Whether connections use ECN, so that a --qdisc with ecn marks its packets in place of dropping them",
        choice: Choice::Usual("off"),
        lists: Lists::Taken,
    }),
    column: Some(Column {
        name: "ecn",
        doc: "whether connections use ECN: `off` or `on`",
    }),
};

pub(super) static BUFFERS: Spec = Spec {
    name: "buffers",
    scope: Scope::Cell,
    measures: Measures::Both,
    transport: Some(TransportName::Tcp),
    title: "buffers",
    caption: Caption::Unusual(|cell| format!("buffers {}", cell.hosts.buffers)),
    reading: Reading::Text,
    place: Place::Cell(Access {
        get: |cell| Value::Text(cell.hosts.buffers.to_string()),
        set: |cell, text, _| read(&mut cell.hosts.buffers, text),
    }),
    command_line: Some(CommandLine {
        value_name: "NAME",
        help: "TCP's buffers: linux (as Linux 6.12 has them, which grow, on whatever kernel), large (which never bind), or auto: linux, but large for transfers in real time [default: auto, or the preset's]",
        choice: Choice::Presets,
        lists: Lists::Taken,
    }),
    column: Some(Column {
        name: "buffers",
        doc: "TCP's buffers as they were: `linux` or `large`",
    }),
};

pub(super) static RECEIVE_BUFFER: Spec = Spec {
    name: "receive_buffer",
    scope: Scope::Cell,
    measures: Measures::Transfers,
    transport: Some(TransportName::Tcp),
    title: "client's receive buffer",
    caption: Caption::Unusual(|cell| format!("receive buffer {}", cell.hosts.receive_buffer)),
    reading: Reading::Text,
    place: Place::Cell(Access {
        get: |cell| Value::Text(cell.hosts.receive_buffer.to_string()),
        set: |cell, text, _| read(&mut cell.hosts.receive_buffer, text),
    }),
    command_line: Some(CommandLine {
        value_name: "SIZE",
        help: "What the client sets its receive buffer to once it is connected (SO_RCVBUF, which Linux doubles, and which then no longer grows), 4KiB to 208KiB (arithmetic: 48KiB or more), or unset",
        choice: Choice::Usual("unset"),
        lists: Lists::Taken,
    }),
    column: Some(Column {
        name: "receive_buffer",
        doc: "what the client set its receive buffer to (SO_RCVBUF) once it was connected, or `unset`",
    }),
};

pub(super) static TSO: Spec = Spec {
    name: "tso",
    scope: Scope::Cell,
    measures: Measures::Both,
    transport: Some(TransportName::Tcp),
    title: "TSO",
    caption: Caption::Unusual(|cell| format!("tso {}", cell.hosts.tso)),
    reading: Reading::Text,
    place: Place::Cell(Access {
        get: |cell| Value::Text(cell.hosts.tso.to_string()),
        set: |cell, text, _| read(&mut cell.hosts.tso, text),
    }),
    command_line: Some(CommandLine {
        value_name: "OFF|ON",
        help: "Whether super-packets arrive whole (on), or are cut up behind the link's queue; without --gso on there are none [default: on, or the preset's]",
        choice: Choice::Presets,
        lists: Lists::Taken,
    }),
    column: Some(Column {
        name: "tso",
        doc: "whether super-packets arrive whole: `off` or `on`",
    }),
};

pub(super) static WRITES: Spec = Spec {
    name: "writes",
    scope: Scope::Cell,
    measures: Measures::Both,
    transport: Some(TransportName::Tcp),
    title: "writes",
    caption: Caption::Unusual(|cell| format!("writes {}", cell.hosts.writes)),
    reading: Reading::Text,
    place: Place::Cell(Access {
        get: |cell| Value::Text(cell.hosts.writes.to_string()),
        set: |cell, text, _| read(&mut cell.hosts.writes, text),
    }),
    command_line: Some(CommandLine {
        value_name: "SIZES",
        help: "How the server writes a response: whole, or in writes of a record each, of which the last size repeats: 17B+8087B [default: whole, or the preset's]",
        choice: Choice::Presets,
        lists: Lists::Taken,
    }),
    column: Some(Column {
        name: "writes",
        doc: "how the server writes a response: `whole`, or the payload of each write",
    }),
};
