//! The parameters of what else is on a link.

use std::time::Duration;

use lastbyte_link::format_duration;

use super::spec::{
    Access, Caption, Choice, Column, CommandLine, Lists, Measures, Place, Reading, Scope, Spec,
    Value, read, read_time,
};
use crate::crowd::CrossTraffic;

/// Connections that begin together, at most: each has sockets at both ends.
const MOST_AT_ONCE: u32 = 10_000;
const LEAST_LEAD: Duration = Duration::ZERO;
const MOST_LEAD: Duration = Duration::from_mins(10);

pub(super) static CROSS_TRAFFIC: Spec = Spec {
    name: "cross_traffic",
    scope: Scope::Cell,
    measures: Measures::Transfers,
    transport: None,
    title: "cross traffic",
    caption: Caption::Unusual(|cell| match cell.crowd.cross_traffic.flows() {
        [] => "no cross traffic".to_owned(),
        _ => format!("cross traffic {}", cell.crowd.cross_traffic),
    }),
    reading: Reading::Text,
    place: Place::Cell(Access {
        get: |cell| Value::Text(cell.crowd.cross_traffic.to_string()),
        set: |cell, text, _| {
            cell.crowd.cross_traffic = text.parse()?;
            Ok(())
        },
    }),
    command_line: Some(CommandLine {
        value_name: "FLOWS",
        help: "Bulk transfers on the same link, by the congestion control of each: cubic, bbr, \"2 cubic+bbr\", \"cubic up\" (to the server), or none",
        choice: Choice::Usual(CrossTraffic::NONE),
        lists: Lists::Taken,
    }),
    column: Some(Column {
        name: "cross_traffic",
        doc: "bulk transfers on the same link, by the congestion control of each, or `none`",
    }),
};

pub(super) static CROSS_LEAD: Spec = Spec {
    name: "cross_lead",
    scope: Scope::Cell,
    measures: Measures::Transfers,
    transport: None,
    title: "lead of cross traffic, ms",
    caption: Caption::Unusual(|cell| {
        format!(
            "begun {} before at least",
            format_duration(cell.crowd.cross_lead)
        )
    }),
    reading: Reading::Text,
    place: Place::Cell(Access {
        get: |cell| Value::Time(cell.crowd.cross_lead),
        set: |cell, text, _| {
            cell.crowd.cross_lead = read_time("cross_lead", text, LEAST_LEAD, MOST_LEAD)?;
            Ok(())
        },
    }),
    command_line: Some(CommandLine {
        value_name: "TIME",
        help: "How long --cross-traffic has been under way at least when a connection begins; each draws up to twice as long",
        choice: Choice::Usual("5s"),
        lists: Lists::Taken,
    }),
    column: Some(Column {
        name: "cross_lead_ns",
        doc: "how long the cross traffic had been under way at least when the connection began, which draws up to twice as long",
    }),
};

pub(super) static AT_ONCE: Spec = Spec {
    name: "at_once",
    scope: Scope::Cell,
    measures: Measures::Transfers,
    transport: None,
    title: "connections at once",
    caption: Caption::Unusual(|cell| format!("{} at once", cell.crowd.at_once)),
    reading: Reading::Whole(1..=MOST_AT_ONCE),
    place: Place::Cell(Access {
        get: |cell| Value::Count(cell.crowd.at_once),
        set: |cell, text, _| read(&mut cell.crowd.at_once, text),
    }),
    command_line: Some(CommandLine {
        value_name: "N",
        help: "Connections of one user that begin together over one link; each is measured",
        choice: Choice::Usual("1"),
        lists: Lists::Taken,
    }),
    column: Some(Column {
        name: "at_once",
        doc: "connections that began together over one link, this one included",
    }),
};
