//! Loads as a HAR, which other tools open.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::cdp::{Load, Request, Source};
use crate::page::{Kind, Page, Priority, Resource};
use crate::site::cache_fields;

/// A load under the name that a HAR has for it.
#[derive(Clone, Copy, Debug)]
pub struct Titled<'a> {
    /// What it is of: an arm, a network, a number.
    pub title: &'a str,
    /// The load.
    pub load: &'a Load,
}

/// A HAR 1.2 with a page for each load, as JSON. Without cookies, and without content: bodies say
/// nothing.
///
/// What the browser says beyond HAR's own fields stands in fields that begin with `_`, under the
/// names that Chromium gives them.
#[must_use]
pub fn write(loads: &[Titled<'_>]) -> String {
    let pages: Vec<Value> = (loads.iter().enumerate())
        .map(|(nth, titled)| page(nth, titled))
        .collect();
    let entries: Vec<Value> = (loads.iter().enumerate())
        .flat_map(|(nth, titled)| {
            titled
                .load
                .requests
                .iter()
                .map(move |one| (nth, titled, one))
        })
        .map(|(nth, titled, request)| entry(nth, titled.load, request))
        .collect();
    let product = loads
        .first()
        .map_or("", |first| first.load.browser.as_str());
    let (browser, version) = product.split_once('/').unwrap_or((product, ""));
    let har = json!({
        "log": {
            "version": "1.2",
            "creator": { "name": "Lastbyte", "version": env!("CARGO_PKG_VERSION") },
            "browser": { "name": browser, "version": version },
            "pages": pages,
            "entries": entries,
        }
    });
    format!("{har:#}\n")
}

/// A HAR of which [`read`](super::read) makes this page, which was read from one, and nothing else:
/// no names, no cookies, no content. Its times only say what comes after what; `_loading` is what
/// those of the recorded one have shown.
#[must_use]
pub fn of_page(page: &Page) -> String {
    let resources = page.resources();
    let url = |place: usize| {
        let origin = resources.get(place).map_or(0, |resource| resource.origin);
        format!("https://o{origin}.page.example/{place}")
    };
    let entry = |(place, resource): (usize, &Resource)| {
        let mut targets = resources.iter();
        let target = targets.position(|one| one.found_in == Some(place));
        let (status, leads) = match resource.kind {
            Kind::Redirect => (302, target.map_or_else(String::new, url)),
            _ => (200, String::new()),
        };
        let observed = resource.observed.unwrap_or_default();
        let cors = observed.is_cors.then_some(("sec-fetch-mode", "cors"));
        let asked = observed.asked.map(|asked| ("priority", urgency(asked)));
        let asked: Vec<Value> = cors.into_iter().chain(asked).map(header).collect();
        let caching = observed.caching.map(cache_fields);
        let caching = caching.map(|fields| {
            let fields = fields.iter();
            let fields = fields.map(|(name, value)| header((name, value.as_str())));
            fields.collect::<Vec<Value>>()
        });
        json!({
            "startedDateTime": date(Duration::from_millis(place as u64)),
            "time": 0,
            "request": { "method": "GET", "url": url(place), "headers": asked },
            "response": {
                "status": status,
                "redirectURL": leads,
                "headers": caching,
                "content": { "size": resource.body.0, "mimeType": media_type(resource.kind) },
                "bodySize": resource.body.0,
                "_transferSize": observed.response.map_or(-1.0, |bytes| bytes.0 as f64),
            },
            "timings": { "send": 0, "wait": 0, "receive": 0 },
            "_initiator": {
                "type": "parser",
                "url": resource.found_in.map(url),
                "lineNumber": observed.line,
            },
            "_priority": observed.priority.map(Priority::name),
            "_loading": resource.loading.name(),
        })
    };
    let entries: Vec<Value> = resources.iter().enumerate().map(entry).collect();
    json!({
        "log": {
            "version": "1.2",
            "creator": { "name": "Lastbyte", "version": env!("CARGO_PKG_VERSION") },
            "entries": entries,
        }
    })
    .to_string()
}

fn header((name, value): (&str, &str)) -> Value {
    json!({ "name": name, "value": value })
}

/// As Chromium writes it (RFC 9218, 4.1).
fn urgency(priority: Priority) -> &'static str {
    match priority {
        Priority::VeryHigh => "u=0",
        Priority::High => "u=1",
        Priority::Medium => "u=2",
        Priority::Low => "u=3",
        Priority::VeryLow => "u=4",
    }
}

fn media_type(kind: Kind) -> &'static str {
    match kind {
        Kind::Document => "text/html",
        Kind::Style => "text/css",
        Kind::Script => "text/javascript",
        Kind::Image => "image/png",
        Kind::Font => "font/woff2",
        Kind::Fetch => "application/json",
        Kind::Redirect => "",
    }
}

fn id(nth: usize) -> String {
    format!("page_{}", nth + 1)
}

/// Milliseconds, as HAR has times.
fn millis(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e6
}

/// A date, as HAR has it (ISO 8601).
fn date(since_1970: Duration) -> String {
    let nanos = i128::try_from(since_1970.as_nanos()).unwrap_or(0);
    // Browsers have no finer ones, and some tools no finer fields.
    let time = Timestamp::from_nanosecond(nanos - nanos % 1_000).unwrap_or_default();
    format!("{time:.6}")
}

fn page(nth: usize, titled: &Titled<'_>) -> Value {
    let load = titled.load;
    json!({
        "id": id(nth),
        "title": titled.title,
        "startedDateTime": date(load.began),
        "pageTimings": {
            "onContentLoad": load.dom_content_loaded.map_or(-1.0, millis),
            "onLoad": millis(load.load),
            "_firstContentfulPaint": millis(load.fcp),
            "_largestContentfulPaint": load.lcp.map(millis),
            "_speedIndex": load.speed_index.map(millis),
        },
    })
}

fn entry(nth: usize, load: &Load, request: &Request) -> Value {
    let end = request.end.unwrap_or(request.start);
    let fields: Vec<Value> = (request.fields.iter())
        .map(|(name, value)| json!({ "name": name, "value": value }))
        .collect();
    let location = request.fields.iter();
    let location = location
        .clone()
        .find(|(name, _)| name.eq_ignore_ascii_case("location"));
    let location = location.filter(|_| request.kind == Some(Kind::Redirect));
    let version = match request.protocol.as_str() {
        "h2" => "HTTP/2",
        "h3" => "HTTP/3",
        other => other,
    };
    let mut entry = json!({
        "pageref": id(nth),
        "startedDateTime": date(load.began + request.start),
        "time": millis(end.saturating_sub(request.start)),
        "request": {
            "method": "GET",
            "url": request.url,
            "httpVersion": version,
            "cookies": [],
            "headers": [],
            "queryString": [],
            "headersSize": -1,
            "bodySize": 0,
        },
        "response": {
            "status": request.status.unwrap_or(0),
            "statusText": "",
            "httpVersion": version,
            "cookies": [],
            "headers": fields,
            "content": { "size": request.body.0, "mimeType": request.media_type },
            "redirectURL": location.map_or("", |(_, value)| value),
            "headersSize": -1,
            // The browser counts fields and body as one.
            "bodySize": match request.source {
                Source::Network => request.wire.0.min(request.body.0),
                Source::Cache => 0,
            },
            "_transferSize": request.wire.0,
            "_error": request.failure,
        },
        "cache": {},
        "timings": timings(request, end),
        "_priority": request.priority,
        "_resourceType": request.kind.map_or("other", resource_type),
    });
    if let Some(connection) = request.connection {
        entry["connection"] = connection.to_string().into();
    }
    if let Some(url) = &request.found_in {
        let mut scripts = load
            .requests
            .iter()
            .filter(|one| one.kind == Some(Kind::Script));
        let by = if scripts.any(|script| script.url == *url) {
            "script"
        } else {
            "parser"
        };
        entry["_initiator"] = json!({ "type": by, "url": url });
    }
    if request.source == Source::Cache {
        entry["_fromCache"] = "memory".into();
    }
    entry
}

/// Chromium's words.
fn resource_type(kind: Kind) -> &'static str {
    match kind {
        Kind::Document => "document",
        Kind::Style => "stylesheet",
        Kind::Script => "script",
        Kind::Image => "image",
        Kind::Font => "font",
        Kind::Fetch => "fetch",
        Kind::Redirect => "other",
    }
}

/// What a request's time consists of. All but `ssl`, which is a part of `connect`, and what did not
/// happen, -1, add up to it.
fn timings(request: &Request, end: Duration) -> Value {
    let span = |(from, to): (Duration, Duration)| millis(to.saturating_sub(from));
    let connecting = request.connecting;
    let dns = connecting.and_then(|connecting| connecting.dns).map(span);
    let ssl = connecting.and_then(|connecting| connecting.tls).map(span);
    let connect = connecting.and_then(|connecting| connecting.whole());
    let connect = connect.map(span);
    let wait = request.sent.zip(request.first_byte).map_or(0.0, span);
    let receive = span((request.first_byte.unwrap_or(request.start), end));
    let whole = span((request.start, end));
    let stated = dns.unwrap_or(0.0) + connect.unwrap_or(0.0) + wait + receive;
    // What is left was spent waiting for a connection, or for the browser.
    let blocked = (whole - stated).max(0.0);
    json!({
        "blocked": blocked,
        "dns": dns.unwrap_or(-1.0),
        "connect": connect.unwrap_or(-1.0),
        "ssl": ssl.unwrap_or(-1.0),
        "send": 0,
        "wait": wait,
        "receive": receive,
    })
}
