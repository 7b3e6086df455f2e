//! HARs in the shapes that recorders give them; what is in them is made up.

use lastbyte_link::Bytes;
use serde_json::{Value, json};

use crate::har::{self, HarError};

/// A document of 2000 B and a script of 30000 B that it names, as HAR 1.2 requires it and nothing else.
fn plain() -> Value {
    let entry = |at: u32, path: &str, media: &str, bytes: u32| {
        json!({
            "startedDateTime": format!("2026-11-01T10:00:00.{at:03}Z"),
            "time": 50,
            "request": {
                "method": "GET", "url": format!("https://shop.example/{path}"), "httpVersion": "HTTP/2",
                "cookies": [], "headers": [{ "name": "Referer", "value": "https://shop.example/" }],
                "queryString": [], "headersSize": -1, "bodySize": 0
            },
            "response": {
                "status": 200, "statusText": "OK", "httpVersion": "HTTP/2", "cookies": [],
                "headers": [{ "name": "Content-Type", "value": media }],
                "content": { "size": bytes, "mimeType": media }, "redirectURL": "", "headersSize": -1, "bodySize": bytes
            },
            "cache": {},
            "timings": { "send": 0, "wait": 40, "receive": 10 }
        })
    };
    json!({ "log": {
        "version": "1.2",
        "creator": { "name": "recorder", "version": "1" },
        "pages": [{ "startedDateTime": "2026-11-01T10:00:00.000Z", "id": "page_1", "title": "shop", "pageTimings": {} }],
        "entries": [entry(0, "", "text/html; charset=utf-8", 2000), entry(60, "app.js", "text/javascript", 30000)]
    } })
}

/// Says something of each entry; an empty path, of the log.
type Change<'a> = (&'a str, Value);

fn changed(of_log: &[Change<'_>], of_entries: &[Change<'_>]) -> Vec<u8> {
    let mut har = plain();
    let put = |place: &mut Value, (pointer, value): &Change<'_>| {
        let (folder, name) = pointer.rsplit_once('/').unwrap();
        place.pointer_mut(folder).unwrap()[name] = value.clone();
    };
    of_log
        .iter()
        .for_each(|change| put(&mut har["log"], change));
    for entry in har["log"]["entries"].as_array_mut().unwrap() {
        of_entries.iter().for_each(|change| put(entry, change));
    }
    har.to_string().into_bytes()
}

#[test]
fn each_recorder_is_read() {
    let nothing = || json!(-1);
    let recorders: [(&str, Vec<Change<'_>>, Vec<Change<'_>>); 10] = [
        (
            "Chrome",
            vec![],
            vec![
                (
                    "/_initiator",
                    json!({ "type": "parser", "url": "https://shop.example/", "lineNumber": 4 }),
                ),
                ("/_priority", json!("High")),
                ("/_connectionId", json!("41")),
                ("/connection", json!("443")),
                ("/response/_transferSize", nothing()),
                ("/response/_error", Value::Null),
                ("/response/_fetchedViaServiceWorker", json!(false)),
                ("/timings/_blocked_queueing", json!(1.25)),
                ("/timings/blocked", json!(2.5)),
                ("/timings/ssl", nothing()),
            ],
        ),
        (
            "Firefox",
            vec![
                ("/browser", json!({ "name": "Firefox", "version": "59" })),
                ("/comment", Value::Null),
            ],
            vec![
                ("/time", Value::Null),
                ("/_securityState", json!("secure")),
                ("/response/content/text", Value::Null),
                ("/response/redirectURL", Value::Null),
                ("/timings/blocked", Value::Null),
                ("/timings/dns", nothing()),
            ],
        ),
        (
            "Safari",
            vec![("/pages/0/pageTimings/onLoad", json!(120.5))],
            vec![
                ("/cache", json!({})),
                ("/_fetchType", json!("Network Load")),
                ("/response/_transferSize", json!(30500)),
                ("/serverIPAddress", json!("198.51.100.1")),
            ],
        ),
        (
            "WebPageTest",
            vec![
                ("/pages/0/_URL", json!("https://shop.example/")),
                ("/pages/0/_run", json!(1)),
            ],
            vec![
                ("/_initiator", json!("")),
                ("/_initiator_line", json!("12")),
                ("/_priority", json!(3)),
                ("/_resourceType", json!(7)),
                ("/_bytesIn", json!("30100")),
                (
                    "/timings",
                    json!({ "blocked": -1, "dns": -1, "connect": -1, "ssl": -1, "send": -1, "wait": 40, "receive": 10 }),
                ),
            ],
        ),
        (
            "browsertime",
            vec![("/pages/0/_meta", json!({ "connectivity": "native" }))],
            vec![
                ("/_initiator", json!("https://shop.example/")),
                ("/_initiator_detail", json!("{\"type\":\"parser\"}")),
                ("/_priority", Value::Null),
                ("/_requestId", json!("1.2")),
            ],
        ),
        (
            "Charles",
            vec![("/pages", Value::Null), ("/comment", json!("exported"))],
            vec![
                ("/comment", json!("")),
                ("/timings/comment", json!("from the proxy")),
                ("/response/comment", json!("")),
                ("/response/content/comment", json!("")),
                ("/response/_charlesStatus", json!("COMPLETE")),
            ],
        ),
        (
            "Fiddler",
            vec![("/pages", json!([]))],
            vec![
                ("/pageref", Value::Null),
                ("/connection", json!("ClientPort:50000")),
                ("/request/headers", Value::Null),
                ("/response/content/compression", json!(0)),
                ("/timings/ssl", json!(0)),
            ],
        ),
        (
            "mitmproxy",
            vec![("/pages", json!([]))],
            vec![
                (
                    "/request/postData",
                    json!({ "mimeType": "", "text": null, "params": [] }),
                ),
                ("/response/content/compression", json!(-12)),
                ("/timings/connect", nothing()),
                ("/timings/ssl", nothing()),
            ],
        ),
        (
            "browsermob-proxy",
            vec![],
            vec![
                ("/pageref", json!("page_1")),
                ("/comment", json!("")),
                (
                    "/timings",
                    json!({ "comment": "", "dns": 0, "connect": 0, "blocked": 0, "ssl": 0, "send": 0, "wait": 40, "receive": 10 }),
                ),
                ("/response/headers", Value::Null),
            ],
        ),
        (
            "Playwright",
            vec![(
                "/pages/0/pageTimings",
                json!({ "onContentLoad": -1, "onLoad": -1 }),
            )],
            vec![
                ("/time", nothing()),
                ("/_securityDetails", json!({})),
                ("/_serverPort", json!(443)),
                ("/timings", json!({ "send": -1, "wait": -1, "receive": -1 })),
                ("/response/_failureText", Value::Null),
            ],
        ),
    ];
    let known = har::read(&changed(&[], &[])).unwrap();
    for (name, of_log, of_entries) in recorders {
        let read = har::read(&changed(&of_log, &of_entries));
        let read = read.unwrap_or_else(|error| panic!("{name}: {error}"));
        let bodies: Vec<_> = read
            .page
            .resources()
            .iter()
            .map(|one| (one.kind, one.body, one.found_in))
            .collect();
        let expected: Vec<_> = known
            .page
            .resources()
            .iter()
            .map(|one| (one.kind, one.body, one.found_in))
            .collect();
        assert_eq!(bodies, expected, "{name}");
        assert_eq!(bodies[1].1, Bytes(30_000), "{name}");
    }
}

/// Whatever stands in a field with `_`, in a comment or where there is no time.
#[test]
fn what_is_nobodys_standard_is_ignored() {
    let anything = [
        Value::Null,
        json!(true),
        json!(-3.5),
        json!("x"),
        json!([]),
        json!([1, "x"]),
        json!({}),
        json!({ "url": 7, "stack": [] }),
    ];
    for value in anything {
        for field in [
            "/_initiator",
            "/_priority",
            "/_resourceType",
            "/_loading",
            "/_any",
            "/comment",
            "/timings/_any",
            "/timings/comment",
            "/request/_any",
            "/response/_any",
            "/response/content/_any",
            "/pageref",
        ] {
            if field == "/pageref" && value.is_string() {
                continue;
            }
            let read = har::read(&changed(&[], &[(field, value.clone())]));
            let read = read.unwrap_or_else(|error| panic!("{field} of {value}: {error}"));
            assert_eq!(read.page.resources().len(), 2, "{field} of {value}");
        }
        har::read(&changed(
            &[("/_any", value.clone()), ("/comment", value)],
            &[],
        ))
        .unwrap();
    }
}

#[test]
fn a_time_that_is_not_there_is_the_sum_of_its_parts() {
    let timings = json!({ "blocked": -1, "connect": 30, "ssl": 20, "send": null, "wait": 15, "receive": 5, "comment": "" });
    let stated = |time: Value| {
        har::read(&changed(
            &[],
            &[("/time", time), ("/timings", timings.clone())],
        ))
        .unwrap()
    };
    assert_eq!(stated(Value::Null), stated(json!(50)));
    assert_eq!(stated(json!(-1)), stated(json!(50)));
    let mut missing: Value =
        serde_json::from_slice(&changed(&[], &[("/timings", timings.clone())])).unwrap();
    for entry in missing["log"]["entries"].as_array_mut().unwrap() {
        entry.as_object_mut().unwrap().remove("time");
    }
    assert_eq!(
        har::read(missing.to_string().as_bytes()).unwrap(),
        stated(json!(50))
    );
}

#[test]
fn what_can_not_be_loaded_is_refused_in_a_line() {
    let sizes = [
        ("/response/bodySize", json!(-1)),
        ("/response/_transferSize", json!(-1)),
        ("/response/content/size", json!(-1)),
    ];
    assert_eq!(har::read(&changed(&[], &sizes)), Err(HarError::NoSizes));
    let text = String::from_utf8(changed(&[], &[])).unwrap();
    let wide: Vec<u8> = format!("\u{feff}{text}")
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    assert_eq!(
        har::read(&wide).unwrap_err().to_string(),
        "it is no HAR: it is UTF-16: save it as UTF-8"
    );
    for (begin, problem) in [
        (
            &b"\x1f\x8b\x08"[..],
            "compressed (gzip): unpack it with gunzip",
        ),
        (b"PK\x03\x04", "compressed (ZIP): unpack it with unzip"),
    ] {
        let packed = [begin, text.as_bytes()].concat();
        let told = har::read(&packed).unwrap_err().to_string();
        assert_eq!(told, format!("it is no HAR: it is {problem}"));
    }
    // Of a proxy that has recorded how it was asked for a way.
    let mut har: Value = serde_json::from_str(&text).unwrap();
    let mut tunnel = har["log"]["entries"][0].clone();
    tunnel["request"]["method"] = json!("CONNECT");
    tunnel["startedDateTime"] = json!("2026-11-01T09:59:59.000Z");
    har["log"]["entries"]
        .as_array_mut()
        .unwrap()
        .insert(0, tunnel);
    let read = har::read(har.to_string().as_bytes()).unwrap();
    assert_eq!(read.notes, ["left out: 1 CONNECT to a proxy that recorded"]);
}
