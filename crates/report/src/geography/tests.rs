#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use lastbyte_link::Bytes;
use roxmltree::Document;
use serde_json::Value;

use super::*;
use crate::tests::errors;
use lastbyte_explain::geography::{Question, Users};
use lastbyte_study::Cell;

const USERS: &str = "\
region,users,edge,edge_rtt,origin_rtt,lat,lon
Germany,84,Germany West Central,12ms,104ms,51,10
Brazil,212,Brazil South,,,-14,-52
<Nowhere> & more,1,East US,80ms,,,
";

fn table() -> RttTable {
    RttTable::azure().unwrap()
}

fn geography(arms: &[&str]) -> Geography {
    let mut cell = Cell {
        data: Bytes(50 * 1024),
        ..Cell::default()
    };
    for way in [&mut cell.link.forward, &mut cell.link.backward] {
        way.rate = Some("1gbit".parse().unwrap());
    }
    let question = Question {
        arms: arms.iter().map(|arm| arm.parse().unwrap()).collect(),
        origin_arm: None,
        front: cell.clone(),
        back: cell,
        connections: vec![OriginConnection::Cold, OriginConnection::Warm],
        origin: "East US".to_owned(),
        edges: Vec::new(),
        stated: vec![Duration::from_millis(15), Duration::from_millis(60)],
        within: Some(Duration::from_millis(1)),
    };
    let users = Users::parse("users.csv", USERS.as_bytes()).unwrap();
    Geography::new(question, &users, &table()).unwrap()
}

const ARMS: [&str; 2] = ["x25519/ecdsa-p256", "SecP256r1MLKEM768/ml-dsa-65"];

#[test]
fn regions_in_a_terminal() {
    let text = text(&geography(&ARMS), &table(), Screen::PLAIN);
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
    insta::assert_snapshot!(text);
}

#[test]
fn the_table_in_a_terminal() {
    let text = super::table(&table(), Screen::PLAIN);
    for line in text.lines() {
        assert!(line.chars().count() <= 120, "{line}");
    }
    insta::assert_snapshot!(text);
    let holes = "x,A,B,C\nA,1,2,3\nB,,,\nC,5,,\n";
    let holes = RttTable::parse("own.csv", holes.as_bytes()).unwrap();
    let text = super::table(&holes, Screen::PLAIN);
    for part in [
        "Holes, 3 of them: B to A; B to C; C to B.",
        "There and back differ, and are kept as given, for 1 of them: A to C 3.00 ms, back 5.00 ms.",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn regions_in_json() {
    let document = json(&geography(&ARMS), &table());
    let mut document: Value = serde_json::from_str(&document).unwrap();
    assert_eq!(errors(&document.to_string(), SCHEMA), [""; 0]);
    assert_eq!(
        document["ways"],
        serde_json::json!(["direct", "cold", "warm"])
    );
    let [at_15, at_60] = [0, 1].map(|setting| &document["settings"][setting]);
    assert_eq!(at_15["regions"][1]["user_edge"]["from"], "stated");
    assert_eq!(at_60["regions"][1]["user_edge"]["rtt_ns"], 60_000_000);
    let mean = |setting: &Value| setting["population"][1]["warm"]["mean_ns"].as_u64();
    assert!(mean(at_15) < mean(at_60));
    let alone: Value = serde_json::from_str(&table_json(&table())).unwrap();
    assert_eq!(errors(&alone.to_string(), SCHEMA), [""; 0]);

    *document
        .pointer_mut("/settings/0/regions/0/user_edge/from")
        .unwrap() = "guessed".into();
    assert_ne!(errors(&document.to_string(), SCHEMA), [""; 0]);
}

#[test]
fn every_region_has_its_dots() {
    for arms in [&ARMS[..1], &ARMS] {
        let geography = geography(arms);
        let svg = dots(&geography);
        let document = Document::parse(&svg).unwrap();
        let circles = document
            .descendants()
            .filter(|node| node.has_tag_name("circle"));
        // Direct and cold, in three regions of two settings; one of each way in the key, and one for each arm.
        assert_eq!(circles.count(), 2 * 3 * 2 * arms.len() + 2 + arms.len());
        assert!(svg.contains("&lt;Nowhere&gt; &amp; more"));
    }
}

#[test]
fn regions_with_a_place_are_on_the_map() {
    for (arms, panels) in [(&ARMS[..1], 2), (&ARMS, 3)] {
        let geography = geography(arms);
        let svg = map(&geography, &geography.settings[0]).unwrap();
        let document = Document::parse(&svg).unwrap();
        let titles = document
            .descendants()
            .filter(|node| node.has_tag_name("title"));
        assert_eq!(titles.count(), 2 * panels);
        assert!(svg.contains("Natural Earth"));
    }
    let mut nowhere = geography(&ARMS);
    for region in &mut nowhere.settings[0].regions {
        region.region.place = None;
    }
    assert_eq!(map(&nowhere, &nowhere.settings[0]), None);
}

#[test]
fn the_outline_is_whole_and_crosses_no_map() {
    let rings: Vec<_> = map::rings().collect();
    let seas = rings.iter().filter(|(kind, _)| *kind == "sea").count();
    assert_eq!((rings.len(), seas), (85, 1));
    let rings = rings.into_iter().map(|(_, ring)| ring.collect());
    let rings: Vec<Vec<_>> = rings.collect();
    for ring in &rings {
        let next = ring.iter().cycle().skip(1);
        for ([east, north], [next, _]) in ring.iter().zip(next) {
            assert!((-180.0..=180.0).contains(east) && (-60.0..=90.0).contains(north));
            assert!((east - next).abs() < 20.0, "{east} to {next}");
        }
    }
}

#[test]
fn places_are_projected_as_robinson_has_them() {
    assert_eq!(map::project(0.0, 0.0), [380.0, 0.0]);
    let near = |[x, y]: [f64; 2], [right, down]: [f64; 2]| {
        (x - right).abs() < 1e-9 && (y - down).abs() < 1e-9
    };
    assert!(near(map::project(0.0, 180.0), [760.0, 0.0]));
    // Half as high as wide, or nearly so, and poles about half as long as the equator.
    let [x, y] = map::project(90.0, 180.0);
    assert!(((x - 380.0) / 380.0 - 0.5322).abs() < 1e-9);
    assert!((-2.0 * y / 760.0 - 0.507).abs() < 1e-3, "{y}");
    let between = map::project(-2.5, 90.0);
    assert!(near(
        between,
        [380.0 + 190.0 * 0.9993, -map::project(2.5, 0.0)[1]]
    ));
}
