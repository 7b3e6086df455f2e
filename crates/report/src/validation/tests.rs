#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use serde_json::Value;

use super::*;
use crate::Screen;
use crate::tests::errors;
use lastbyte_results::Validity;
use lastbyte_results::fixtures::{CLASSICAL, HYBRID, cell};
use lastbyte_results::validate::{Computing, Key, Margins, Nature, Results, SampleTimes, validate};
use lastbyte_study::{Buffers, RecordSize};

/// A hundred connections from 100 ms on, this much later in B, of which so many fail.
fn sample(arm: &str, loss: &str, data: &str, slower: f64, failed: usize) -> SampleTimes {
    let one = |index: usize| {
        let time = |base: f64| {
            let spread = 1.0 + (index * 37 % 100) as f64 / 2000.0;
            Some(Duration::from_secs_f64(base * spread * slower / 1e3))
        };
        match index {
            _ if index < failed => [None; 4],
            _ => [time(35.0), time(70.0), time(105.0), time(140.0)],
        }
    };
    SampleTimes {
        key: Key {
            measure: String::new(),
            arm: arm.to_owned(),
            cell: cell(loss, data),
        },
        nature: Nature::Measured,
        computing: Computing::TakesTime,
        cpu_costs: None,
        times: (0..100).map(one).collect(),
        validity: Validity::Valid,
        wire: None,
        drawn: None,
        record_size: RecordSize::default(),
        buffers: Buffers::Linux,
        chain_digest: String::new(),
    }
}

fn results(name: &str, engine: &'static str, samples: Vec<SampleTimes>) -> Results {
    Results {
        name: name.to_owned(),
        engine,
        samples,
    }
}

/// Agreement, a difference, something undecided and failures.
fn trouble() -> Validation {
    let margins = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
    let a = vec![
        sample(CLASSICAL, "0%", "50KiB", 1.0, 0),
        sample(HYBRID, "0%", "50KiB", 1.0, 0),
        sample(CLASSICAL, "3%", "0B", 1.0, 0),
        sample(HYBRID, "3%", "0B", 1.0, 2),
    ];
    let b = vec![
        sample(CLASSICAL, "0%", "50KiB", 1.001, 0),
        sample(HYBRID, "0%", "50KiB", 1.09, 0),
        sample(CLASSICAL, "3%", "0B", 1.028, 0),
        sample(HYBRID, "3%", "0B", 1.0, 80),
        sample(CLASSICAL, "5%", "0B", 1.0, 0),
    ];
    let margins = Margins {
        without_loss: margins(&["p50=5%", "p90=5%"]),
        with_loss: margins(&["p50=3%"]),
    };
    let b = results("runs/<virtual> & co", "virtual", b);
    validate(&results("runs/live", "live", a), &b, margins).unwrap()
}

#[test]
fn trouble_in_a_terminal() {
    let text = table(&trouble(), Screen::PLAIN);
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
    insta::assert_snapshot!(text);
}

#[test]
fn trouble_in_markdown() {
    insta::assert_snapshot!(markdown(&trouble()));
}

#[test]
fn trouble_in_json() {
    let document = json(&trouble());
    assert_eq!(errors(&document, SCHEMA), [""; 0]);
    let document: Value = serde_json::from_str(&document).unwrap();

    assert_eq!(document["verdict"], "differs");
    assert_eq!(document["comparisons"], 4 * 2 * 2 + 2 * 2);
    let arms = |cell: usize| &document["cells"][cell]["arms"];
    let [agrees, differs] = [0, 1].map(|arm| &arms(0)[arm]);
    assert_eq!(agrees["verdict"], "agrees");
    assert_eq!(agrees["metrics"][3]["p75"]["verdict"], Value::Null);
    assert_eq!(differs["metrics"][3]["metric"], "ttlb");
    assert_eq!(differs["metrics"][3]["verdict"], "differs");
    let [undecided, failing] = [0, 1].map(|arm| &arms(1)[arm]);
    assert_eq!(undecided["verdict"], "undecided");
    assert!(undecided["metrics"][0]["p50"]["connections_needed"].as_u64() > Some(100));
    assert_eq!(failing["b"]["failed"], 80);
    assert_eq!(failing["metrics"][1]["p50"]["b_ms"], Value::Null);
    assert_eq!(failing["metrics"][1]["p50"]["verdict"], "differs");
}

/// The schema can tell a wrong document from a right one.
#[test]
fn a_wrong_document_is_refused() {
    let right: Value = serde_json::from_str(&json(&trouble())).unwrap();
    for (path, wrong) in [
        ("/verdict", Value::from("maybe")),
        ("/cells/0/arms/0/metrics/0/p50/a_ms", Value::from("70")),
        ("/cells/0/arms/0/metrics/0/ks_distance", Value::from(2)),
        ("/margin_percent/without_loss/p50", Value::from(0)),
    ] {
        let mut document = right.clone();
        *document.pointer_mut(path).unwrap() = wrong;
        assert_ne!(errors(&document.to_string(), SCHEMA), [""; 0], "{path}");
    }
}

#[test]
fn trouble_on_a_page() {
    let page = page(&trouble());
    assert_eq!(page.matches("<svg").count(), 2 * 4 + 2 * 2);
    assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
    assert!(page.contains("runs/&lt;virtual&gt; &amp; co"));
    assert!(!page.contains("<virtual>"));
    // It needs nothing from anywhere else.
    assert!(!page.contains("<script") && !page.contains("<link") && !page.contains("url("));
    assert!(!page.contains("NaN") && !page.contains("inf"));
}

#[test]
fn levels_are_told_with_the_digits_that_count() {
    for (level, text) in [
        (0.95, "95"),
        (0.975, "97.5"),
        (1.0 - 0.05 / 6.0, "99.17"),
        (1.0 - 0.05 / 960.0, "99.9948"),
    ] {
        assert_eq!(percentage(level), text);
    }
}
