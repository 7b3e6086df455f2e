//! What browsers and servers compute, in virtual time.

use std::fs;
use std::time::Duration;

use lastbyte::results::{Contents, Outcome, Row, Validity};
use serde_json::json;

use super::{CLASSICAL, Place, har, run, samples};

/// A document with ten images, so that requests meet at the server.
fn place(options: &str) -> Place {
    let place = Place::new(CLASSICAL, &format!("page = \"shop.har\"\n{options}"));
    let images = (1..=10).map(|number| {
        json!({
            "/request/url": format!("https://a.example/{number}"),
            "/response/content/mimeType": "image/png",
            "/response/bodySize": 20_000,
        })
    });
    let entries: Vec<_> = [json!({})].into_iter().chain(images).collect();
    fs::write(place.path("shop.har"), har(&entries)).unwrap();
    place
}

fn rows(options: &str) -> Vec<Row> {
    let place = place(options);
    let ended = run(&mut place.run("results"));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let samples = samples(&place.path("results"));
    let [sample] = samples.as_slice() else {
        panic!("{samples:?}");
    };
    assert_eq!(sample.engine.validity, Validity::Valid);
    let contents = if options.contains("none") {
        Contents::Network
    } else {
        Contents::Profile
    };
    assert_eq!(sample.engine.contents(), contents);
    // Whoever computes nothing is warned, and nobody else.
    let warned = ended.stdout.contains("computed in no time");
    assert_eq!(warned, contents == Contents::Network, "{}", ended.stdout);
    sample.rows.clone()
}

#[test]
fn computing_takes_the_time_of_a_profile_on_each_run() {
    let [none, laptop, phone] = ["cpu = \"none\"", "", "cpu = \"phone\""].map(rows);
    let load = |rows: &[Row]| rows[0].load().unwrap().load.unwrap();
    // What the browser computes costs four times as much on a phone, and what the network takes is the same.
    let [computed, on_phone] = [&laptop, &phone].map(|rows| load(rows) - load(&none));
    assert!(computed > Duration::from_millis(20), "{computed:?}");
    assert!(on_phone > 2 * computed, "{computed:?}, {on_phone:?}");
    // Navigations are of devices that are faster and slower.
    assert_ne!(load(&laptop), laptop[1].load().unwrap().load.unwrap());
}

#[test]
fn computing_longer_than_a_timeout_is_a_failure_with_its_reason() {
    let place = place("cpu = \"phone\"\ncpu_slowdown = 20\ntimeout = \"1s\"");
    let ended = run(&mut place.run("results"));
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    for row in &samples(&place.path("results"))[0].rows {
        let Outcome::Failed { reason, .. } = &row.outcome else {
            panic!("{:?}", row.outcome);
        };
        assert!(reason.contains("within 1s"), "{reason}");
    }
}
