#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::time::Duration;

use lastbyte_link::Bytes;
use lastbyte_page::Kind;
use lastbyte_page::cdp::{Connecting, Frame, Load, Request, Source};

use super::*;
use crate::chart::text_width;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A document of a connection that was there after `rtts` round trips of 50 ms, and what it asks for.
fn load(rtts: u64) -> Load {
    let there = 50 * rtts;
    let request = |kind, start: u64, first_byte: u64, end: u64| Request {
        url: "https://o0.page.example/".to_owned(),
        kind,
        found_in: None,
        start: ms(start),
        connecting: None,
        sent: Some(ms(start)),
        first_byte: Some(ms(first_byte)),
        end: Some(ms(end)),
        connection: Some(1),
        status: Some(200),
        fields: Vec::new(),
        protocol: "h2".to_owned(),
        media_type: String::new(),
        source: Source::Network,
        wire: Bytes(1_500),
        body: Bytes(1_400),
        priority: "High".to_owned(),
        failure: None,
    };
    let document = Request {
        connecting: Some(Connecting {
            dns: None,
            tcp: Some((ms(0), ms(50))),
            tls: Some((ms(50), ms(there))),
        }),
        sent: Some(ms(there)),
        ..request(Some(Kind::Document), 0, there + 50, there + 60)
    };
    let cached = Request {
        source: Source::Cache,
        sent: None,
        first_byte: None,
        ..request(Some(Kind::Image), there + 70, 0, there + 71)
    };
    Load {
        browser: "Chrome/156.0".to_owned(),
        url: "https://o0.page.example/".to_owned(),
        began: Duration::ZERO,
        connect: Some(ms(50)),
        handshake: Some(ms(there)),
        ttfb: ms(there + 50),
        dom_content_loaded: None,
        fcp: ms(there + 160),
        lcp: Some(ms(there + 200)),
        // What waits for the network has caught up.
        load: ms(400),
        speed_index: Some(ms(there + 170)),
        computing: None,
        frames: [(20, 0.0), (there + 160, 0.75), (there + 200, 1.0)]
            .map(|(at, progress)| Frame {
                at: ms(at),
                progress,
            })
            .to_vec(),
        requests: vec![
            document,
            request(Some(Kind::Style), there + 60, there + 110, there + 115),
            request(Some(Kind::Style), there + 60, there + 110, there + 118),
            request(Some(Kind::Style), there + 60, there + 110, there + 120),
            cached,
            request(None, there + 62, there + 112, there + 130),
        ],
        connections: Vec::new(),
    }
}

fn titled<'a>(loads: &'a [Loaded]) -> Vec<Titled<'a>> {
    loads.iter().map(Loaded::titled).collect()
}

/// One whose chain takes a round trip more than the other's.
pub(crate) fn two() -> [Loaded; 2] {
    [("x25519/ecdsa-p256", 2), ("X25519MLKEM768/<ml-dsa-65>", 3)].map(|(name, rtts)| Loaded {
        name: name.to_owned(),
        load: load(rtts),
    })
}

#[test]
fn loads_are_compared_with_the_first() {
    let loads = two();
    assert_eq!(
        story(&titled(&loads)),
        [
            "In these loads, with X25519MLKEM768/<ml-dsa-65>, the first byte comes 50.0 ms later, the first paint 50.0 ms later, the largest paint 50.0 ms later, the load event at the same time."
        ]
    );
    let swapped = [loads[1].titled(), loads[0].titled()];
    assert!(story(&swapped)[0].contains("the first byte comes 50.0 ms sooner"));
    assert!(story(&titled(&loads[..1])).is_empty() && story(&[]).is_empty());
}

#[test]
fn the_drawing_of_two_loads() {
    insta::assert_snapshot!(svg(&titled(&two())));
}

/// Of each drawing: it can be read as XML, stays within its size, and has times at the same places in all loads.
#[test]
fn drawings_are_of_one_axis_and_within_their_size() {
    let loads = two();
    let loads = titled(&loads);
    for drawing in for_page(&loads)
        .map(|(_, drawing)| drawing)
        .into_iter()
        .chain([svg(&loads)])
    {
        let document = roxmltree::Document::parse(&drawing).unwrap();
        let width: f64 = document
            .root_element()
            .attribute("width")
            .unwrap()
            .parse()
            .unwrap();
        let texts: Vec<_> = document
            .descendants()
            .filter(|one| one.has_tag_name("text"))
            .collect();
        for text in &texts {
            let x: f64 = text.attribute("x").unwrap().parse().unwrap();
            let needed = text_width(text.text().unwrap());
            let [from, to] = match text.attribute("class").unwrap() {
                class if class.contains("end") => [x - needed, x],
                class if class.contains("middle") => [x - needed / 2.0, x + needed / 2.0],
                _ => [x, x + needed],
            };
            // Within what has a margin of its own.
            assert!(
                from >= -1.0 && to <= width + 1.0,
                "{text:?} from {from} to {to}"
            );
        }
        // Both have the load event at the same time, so in the same place.
        let of = |what: &str| -> Vec<&str> {
            let told = texts
                .iter()
                .filter(|one| one.text().unwrap_or_default().starts_with(what));
            told.map(|one| one.attribute("x").unwrap()).collect()
        };
        let load = of("load ");
        assert!(load.len() == 2 && load[0] == load[1], "{load:?}");
        let first_byte = of("first byte ");
        assert!(
            first_byte.len() == 2 && first_byte[0] != first_byte[1],
            "{first_byte:?}"
        );
    }
    assert!(svg(&loads).contains("&lt;ml-dsa-65&gt;"));
}

#[test]
fn no_load_is_no_drawing_and_no_panic() {
    assert!(svg(&[]).starts_with("<svg"));
    let mut empty = load(1);
    empty.requests.clear();
    empty.frames.clear();
    let loaded = Loaded {
        name: String::new(),
        load: empty,
    };
    assert!(svg(&[loaded.titled()]).contains("first byte 100.0 ms"));
}
