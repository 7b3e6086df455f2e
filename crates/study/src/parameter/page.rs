//! The parameters of page loads.

use lastbyte_link::counted;

use super::spec::{
    Access, Caption, Choice, Column, CommandLine, Lists, Measures, Place, Reading, Scope, Spec,
    Value, read,
};
use crate::{Cache, PageSource};

/// What stands where there is no page.
const NONE: &str = "none";
/// Each has a server of its own.
const MOST_ORIGINS: u32 = 6;
/// No machine with a browser is slower.
const MOST_SLOWDOWN: u32 = 20;

pub(super) static PAGE: Spec = Spec {
    name: "page",
    scope: Scope::Cell,
    measures: Measures::Pages,
    transport: None,
    title: "page",
    caption: Caption::Unusual(|cell| {
        let page = cell.page.as_ref();
        page.map_or(NONE.to_owned(), |page| format!("page {page}"))
    }),
    // A HAR is read where it is: that takes the study's folder.
    reading: Reading::Name,
    place: Place::Cell(Access {
        get: |cell| {
            Value::Text(
                cell.page
                    .as_ref()
                    .map_or(NONE.to_owned(), PageSource::to_string),
            )
        },
        set: |cell, text, folder| {
            cell.page = match text {
                NONE => None,
                text => Some(PageSource::read(text, folder)?),
            };
            Ok(())
        },
    }),
    command_line: Some(CommandLine {
        value_name: "NAME|FILE.har",
        help: "Pages that a browser loads, in place of a transfer: median-2024, a model, or what a browser has recorded. docs/page-loads.md says what that needs",
        choice: Choice::Usual(NONE),
        lists: Lists::Taken,
    }),
    column: Some(Column {
        name: "page",
        doc: "the page that a browser loaded: a model, the file of a HAR, or `none`",
    }),
};

pub(super) static ORIGINS: Spec = Spec {
    name: "origins",
    scope: Scope::Cell,
    measures: Measures::Pages,
    transport: None,
    title: "origins",
    caption: Caption::Unusual(|cell| counted(cell.origins, "origin")),
    reading: Reading::Whole(1..=MOST_ORIGINS),
    place: Place::Cell(Access {
        get: |cell| Value::Count(cell.origins),
        set: |cell, text, _| read(&mut cell.origins, text),
    }),
    command_line: Some(CommandLine {
        value_name: "N",
        help: "Origins that the page of a model is spread over, each with a chain of its own",
        choice: Choice::Usual("1"),
        lists: Lists::Taken,
    }),
    column: Some(Column {
        name: "origins",
        doc: "origins that the page of a model is spread over, each with a chain of its own",
    }),
};

pub(super) static CACHE: Spec = Spec {
    name: "cache",
    scope: Scope::Cell,
    measures: Measures::Pages,
    transport: None,
    title: "cache",
    caption: Caption::Unusual(|cell| format!("cache {}", cell.cache)),
    reading: Reading::Text,
    place: Place::Cell(Access {
        get: |cell| Value::Text(cell.cache.to_string()),
        set: |cell, text, _| read::<Cache>(&mut cell.cache, text),
    }),
    command_line: Some(CommandLine {
        value_name: "NAME",
        help: "What the browser has of the page from before: cold, nothing, or warm, its HTTP cache and TLS sessions",
        choice: Choice::Usual("cold"),
        lists: Lists::Taken,
    }),
    column: Some(Column {
        name: "cache",
        doc: "what the browser has of the page from before: `cold`, nothing, or `warm`, its HTTP cache and TLS sessions",
    }),
};

pub(super) static CPU_SLOWDOWN: Spec = Spec {
    name: "cpu_slowdown",
    scope: Scope::Cell,
    measures: Measures::Pages,
    transport: None,
    title: "CPU slowdown",
    caption: Caption::Unusual(|cell| match cell.cpu_slowdown {
        1 => "computing as usual".to_owned(),
        times => format!("computing {times} times as long"),
    }),
    reading: Reading::Whole(1..=MOST_SLOWDOWN),
    place: Place::Cell(Access {
        get: |cell| Value::Count(cell.cpu_slowdown),
        set: |cell, text, _| read(&mut cell.cpu_slowdown, text),
    }),
    command_line: Some(CommandLine {
        value_name: "N",
        help: "How many times longer computing takes in the browser: in virtual time, than its profile says; in real time (--engine live), each task of the page's main thread, by the browser's own throttling",
        choice: Choice::Usual("1"),
        lists: Lists::Taken,
    }),
    column: Some(Column {
        name: "cpu_slowdown",
        doc: "how many times longer computing took in the browser: in virtual time, than its profile says; in real time, each task of the page's main thread, by the browser's own throttling",
    }),
};
