#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::num::NonZero;
use std::time::Duration;

use insta::assert_snapshot;
use lastbyte_explain::load::{Computing, Mix, at_rate, in_storm};
use lastbyte_link::{Probability, Seed};

use super::*;

fn arm(name: &str, microseconds: u64, rates: &[&str]) -> LoadedArm {
    let computing = [Computing {
        answer: Duration::from_micros(microseconds),
        client: Duration::from_millis(1),
        finish: Duration::from_micros(20),
    }];
    let mix = Mix {
        full: &computing,
        resumed: &[],
        resumes: Probability::ZERO,
        wakes: Duration::ZERO,
    };
    let cores = NonZero::new(2).unwrap();
    let points = rates.iter().map(|rate| {
        let rate = rate.parse().unwrap();
        at_rate(&mix, cores, rate, 2000, Seed(1)).unwrap()
    });
    LoadedArm {
        name: name.to_owned(),
        measured: 1,
        mean: mix.mean().unwrap(),
        saturation: mix.saturation(cores).unwrap(),
        points: points.collect(),
        live: Vec::new(),
        storm: None,
    }
}

fn loaded(arms: Vec<LoadedArm>) -> Loaded {
    Loaded {
        cores: NonZero::new(2).unwrap(),
        resumes: Probability::ZERO,
        processor: "A Processor".to_owned(),
        arms,
    }
}

#[test]
fn rates() {
    let rates = ["100/s", "1000/s", "3000/s"];
    let arms = vec![arm("today", 400, &rates), arm("next", 1000, &rates)];
    assert_snapshot!(text(&loaded(arms), Screen::PLAIN));
}

#[test]
fn real_cores_beside_the_queue() {
    let mut one = arm("today", 400, &["1000/s"]);
    let waits = one.points[0].waits.clone().unwrap();
    one.live.push(LivePoint {
        rate: one.points[0].rate,
        waits: waits.clone(),
        queue: Some(waits),
        taken: 0.25,
    });
    let text = text(&loaded(vec![one]), Screen::PLAIN);
    assert!(text.contains("cores") && text.contains("queue"), "{text}");
    assert!(text.contains("Something else ran"), "{text}");
}

#[test]
fn a_storm() {
    let within = Duration::from_secs(1);
    let arms = [("today", 400), ("next", 1000)].map(|(name, microseconds)| {
        let mut arm = arm(name, microseconds, &[]);
        let computing = [Computing {
            answer: Duration::from_micros(microseconds),
            ..Computing::default()
        }];
        let mix = Mix {
            full: &computing,
            resumed: &[],
            resumes: Probability::ZERO,
            wakes: Duration::ZERO,
        };
        let cores = NonZero::new(2).unwrap();
        arm.storm = Some(Storm {
            handshakes: 10_000,
            within,
            waits: in_storm(&mix, cores, 10_000, within, Seed(1)).unwrap(),
        });
        arm
    });
    assert_snapshot!(text(&loaded(arms.into()), Screen::PLAIN));
}

/// What grows without end has no percentiles, in JSON neither.
#[test]
fn json_has_no_percentile_of_what_has_none() {
    let document = json(&loaded(vec![arm("next", 1000, &["1000/s", "3000/s"])]));
    let points = &document["arms"][0]["points"];
    assert!(
        points[0]["waits"]["at_server_ns"]["p99.9"].is_u64(),
        "{document}"
    );
    assert_eq!(points[0]["grows_ns_per_s"], Value::Null);
    assert_eq!(points[1]["waits"], Value::Null);
    assert_eq!(points[1]["grows_ns_per_s"], 530_000_000);
}
