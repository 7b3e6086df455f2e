//! Pages over HTTP/3, from the servers of `scripts/quic-peers`.

use std::collections::BTreeMap;
use std::fs;

use lastbyte::results::{EarlyData, Loaded, Outcome, PAGES, Resumption, Row};
use serde_json::json;

use super::{Place, har, refused, samples, told};
use crate::common::{need_live_engine, read_rows, run};

const HTTP2: &str = "X25519MLKEM768/ecdsa-p256/server=caddy";
const CADDY: &str = "X25519MLKEM768/ecdsa-p256/server=caddy/transport=quic";
/// As long as one of ML-DSA.
const LONG: &str = "X25519MLKEM768/ecdsa-p256:13000B/server=quic-go/transport=quic";

/// A study of these arms, each of which loads once a page with a picture and data of another origin.
fn place(arms: &[&str]) -> Place {
    let [first, others @ ..] = arms else {
        panic!("no arms");
    };
    let place = Place::new(first, "page = \"shop.har\"");
    let study = place.path("study.toml");
    let others: String = (others.iter().enumerate())
        .map(|(place, arm)| format!("[arm.b{place}]\ntls = \"{arm}\"\n"))
        .collect();
    let text = fs::read_to_string(&study).unwrap();
    let text = text.replace("connections = 2", "connections = 1");
    fs::write(
        study,
        text.replace("[link.l]", &format!("{others}[link.l]")),
    )
    .unwrap();
    let of_other = |kind: &str, path: &str| {
        json!({
            "/request/url": format!("https://b.example/{path}"),
            "/response/content/mimeType": kind,
            "/response/bodySize": 40_000,
        })
    };
    let page = [
        json!({}),
        of_other("image/png", "1"),
        of_other("application/json", "2"),
    ];
    fs::write(place.path("shop.har"), har(&page)).unwrap();
    place
}

/// What the browser reported of the load of an arm.
fn loaded(place: &Place, arm: &str) -> Loaded {
    let path = (place.path("one").join(PAGES)).join(format!("m-cell-0-arm-{arm}.json"));
    let mut all: Vec<Loaded> = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    all.remove(0)
}

/// The body of each resource, in bytes.
fn bodies(loaded: &Loaded) -> BTreeMap<String, u64> {
    let requests = &loaded.load.as_ref().unwrap().requests;
    let bodies = requests.iter().map(|one| (one.url.clone(), one.body.0));
    bodies.collect()
}

fn assert_loaded(row: &Row) {
    assert_eq!(row.outcome, Outcome::Completed);
    assert_eq!(row.load().unwrap().requests, Some(3));
    assert_eq!(row.exchange.negotiated.group, Some(0x11ec));
    assert_eq!(row.exchange.negotiated.signature, Some(0x0403));
}

/// The same page over both transports. Over QUIC nothing connects before TLS; what was negotiated is read off the datagrams, of each
/// connection. And twice, to the nanosecond.
#[test]
fn a_page_comes_over_http_3() {
    let place = place(&[HTTP2, LONG]);
    let ended = run(&mut place.run("one"));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let all = samples(&place.path("one"));
    let rows: Vec<&Row> = all.iter().flat_map(|sample| &sample.rows).collect();
    let [over_tcp, row] = rows.as_slice() else {
        panic!("{} rows", rows.len());
    };
    rows.iter().for_each(|row| assert_loaded(row));
    assert!(over_tcp.times.connect.is_some());
    let quic = row.exchange.transport.quic().unwrap();
    // The hello of Chromium's, with ML-KEM.
    assert_eq!(quic.client_hello_datagrams, Some(2));
    assert_eq!(row.exchange.certificate_bytes(), 13_000);
    assert_eq!(row.times.connect, None);
    let load = row.load().unwrap();
    let times = [row.times.handshake, row.times.ttfb, load.fcp, load.load];
    let times = times.map(Option::unwrap);
    assert!(times.is_sorted(), "{times:?}");
    let loaded = ["0-a", "1-b0"].map(|arm| loaded(&place, arm));
    assert_eq!(bodies(&loaded[0]), bodies(&loaded[1]));
    let [_, loaded] = loaded;
    let load = loaded.load.as_ref().unwrap();
    assert!(load.requests.iter().all(|one| one.protocol == "h3"));
    let mut connecting = load.connections.iter().filter_map(|one| one.connecting);
    assert!(connecting.all(|way| way.tcp.is_none() && way.tls.is_some()));
    // Those of both origins in full, and another one to the second, for what takes no cookies.
    let seen = loaded.connections.iter();
    let seen: Vec<_> = (seen.map(|one| (one.name.as_str(), one.certificate_bytes))).collect();
    let [server, asset] = ["server.example", "asset1.example"];
    assert_eq!(seen, [(server, 13_000), (asset, 13_000), (asset, 13_000)]);
    let reported = run(place.lastbyte().args(["report", "one", "-o", "page.html"]));
    assert_eq!(reported.code, Some(0), "{}", reported.stderr);
    let page = fs::read_to_string(place.path("page.html")).unwrap();
    assert!(page.contains("and the QUIC of chromium and quic-go, in virtual time"));
    // Alone it has the same row.
    let alone = self::place(&[LONG]);
    let ended = run(&mut alone.run("one"));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(samples(&alone.path("one"))[0].rows, all[1].rows);
}

/// What the visit before has left is a session, with which the request leaves at once.
#[test]
fn a_warm_page_resumes_over_http_3() {
    let place = Place::new(CADDY, "page = \"shop.har\"\ncache = \"warm\"");
    fs::write(place.path("shop.har"), har(&[json!({}), json!({})])).unwrap();
    let ended = run(&mut place.run("results"));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let rows = &samples(&place.path("results"))[0].rows;
    assert_eq!(rows.len(), 2);
    for row in rows {
        assert_eq!(row.outcome, Outcome::Completed);
        let negotiated = &row.exchange.negotiated;
        assert_eq!(negotiated.resumption, Resumption::Resumed);
        assert_eq!(negotiated.early_data, EarlyData::Accepted);
        assert_eq!(row.exchange.certificate_bytes(), 0);
    }
}

#[test]
fn a_page_comes_over_http_3_in_real_time() {
    need_live_engine();
    let place = Place::new(CADDY, "page = \"shop.har\"");
    fs::write(place.path("shop.har"), har(&[json!({})])).unwrap();
    let asked =
        "compare --engine live --page shop.har --connections 1 --rtt 20ms -o rows.csv --baseline";
    let ended = run(place.lastbyte().args(asked.split(' ')).arg(CADDY));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let rows = read_rows(&place.path("rows.csv"));
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].text("outcome"), "completed");
    assert_eq!(rows[0].text("connect_ns"), "");
    // QUIC's handshake and the document, a round trip each.
    assert!(rows[0].number("ttfb_ns") >= 40_000_000);
    assert_eq!(rows[0].number("page_connections"), 1);
}

/// Neither what is not there, nor what was built before it served sites.
#[test]
fn a_server_that_can_not_is_refused_with_the_remedy() {
    for (arm, variable, program, expected) in [
        (
            CADDY,
            "LASTBYTE_CADDY",
            "/nowhere",
            "server=caddy needs caddy: scripts/quic-peers builds it",
        ),
        (
            CADDY,
            "LASTBYTE_CADDY",
            "/usr/bin/true",
            "a page over QUIC needs Caddy with http.handlers.headers: scripts/quic-peers builds it",
        ),
        (
            LONG,
            "LASTBYTE_QUIC_GO",
            "/usr/bin/true",
            "a page over QUIC needs a quic-go that serves sites: scripts/quic-peers builds it",
        ),
    ] {
        let place = Place::new(arm, "page = \"median-2024\"");
        let ended = run(place.run("results").env(variable, program));
        refused(&ended, 3, expected);
        assert_eq!(told(&ended).len(), 1);
        assert!(!place.path("results").exists());
    }
}
