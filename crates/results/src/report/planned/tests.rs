#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use lastbyte_link::Seed;

use super::*;
use crate::plan::{Amounts, Measured, Setting, usual_population};
use crate::report::Screen;
use crate::report::tests::environment;
use crate::report::tests::errors;
use crate::results::{Metric, fixtures};
use crate::study::Cell;

/// A made-up plan, told.
fn told(tell: impl Fn(&Planned<'_>) -> String) -> String {
    let own =
        "rtt = \"40ms\"\nconnections_per_user = 2\nclass = { values = [\"near\", \"far\"] }\n";
    let (population, usual) = usual_population(own, Path::new("/nowhere")).unwrap();
    let cell = Cell {
        population: Some(Arc::new(population)),
        ..Cell::default()
    };
    let arm = |text: &str| text.parse().unwrap();
    let plan = Plan::new(
        arm("X25519MLKEM768/ecdsa-p256"),
        arm("X25519MLKEM768/ml-dsa-65:16000B"),
        cell,
        Amounts::default(),
    );
    let measured = |settings: &[Setting]| -> Vec<Measured> {
        let experiment =
            fixtures::experiment(&[fixtures::CLASSICAL], vec![fixtures::cell("0%", "1B")], 1);
        let row = fixtures::samples(&experiment).remove(0).rows.remove(0);
        let of = |setting: &Setting| {
            let rows = (0..200).map(|index| {
                let mut row = row.clone();
                row.index = index;
                let ms = match setting.name.as_str() {
                    "today" => 120,
                    "planned" if index % 4 > 0 => 160,
                    "resumption" if index % 3 == 0 => 160,
                    _ => 120,
                };
                row.times.ttfb = Some(Duration::from_millis(ms + u64::from(index % 7)));
                row
            });
            Measured {
                setting: setting.clone(),
                rows: rows.collect(),
            }
        };
        settings.iter().map(of).collect()
    };
    let percentiles: Vec<Percentile> = ["p50", "p90"].map(|text| text.parse().unwrap()).into();
    let alone = measured(&plan.alone());
    let mut tale = Tale::new(&plan, Metric::Ttfb, &percentiles, Seed(1), &alone).unwrap();
    let together = measured(&plan.together(&tale.order()));
    tale.add_together(&percentiles, Seed(1), &alone, &together);
    tell(&Planned {
        plan: &plan,
        tale: &tale,
        percentiles: &percentiles,
        usual: &usual,
        sources: &["the profile profile.toml".to_owned()],
        warnings: &["few <connections>".to_owned()],
        environment: &environment(),
        command: "lastbyte plan 16000B",
    })
}

#[test]
fn in_a_terminal() {
    let text = told(|planned| super::text(planned, Screen::PLAIN));
    assert!(
        text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
    insta::assert_snapshot!(text);
}

/// With loss, a lever that gains can have others wait: what it "leaves" is never more than there were.
#[test]
fn a_lever_does_not_leave_more_than_there_were() {
    let answer = |more: f64| {
        told(|planned| {
            let mut tale = planned.tale.clone();
            let gain = &mut tale.levers[0].1;
            let left = &mut gain.than_today.slower;
            for slower in left.iter_mut().filter(|slower| slower.step == FELT) {
                slower.connections.value = more;
            }
            let planned = Planned {
                tale: &tale,
                ..planned.clone()
            };
            planned.answer().pop().unwrap()
        })
    };
    let (less, more) = (answer(0.01), answer(0.99));
    assert!(
        less.contains("for each connection, which leaves 1.0 %"),
        "{less}"
    );
    assert!(
        more.contains("for each connection. With it, 99.0 %"),
        "{more}"
    );
    assert!(
        more.ends_with(
            "wait more than 20 ms longer than today, others than without it: where packets are lost, another connection \
             is hit."
        ),
        "{more}"
    );
}

#[test]
fn a_document_that_has_its_schema() {
    let document = told(json);
    assert_eq!(errors(&document, SCHEMA), [""; 0]);
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    assert_eq!(document["waiting"].as_array().unwrap().len(), 3);
    assert_eq!(document["waiting"][0]["users"], 100);
}

#[test]
fn a_page_that_needs_nothing_else() {
    let page = told(super::page);
    assert!(page.contains("few &lt;connections&gt;"));
    assert!(
        !page.contains("src=") && !page.contains("href="),
        "it refers to elsewhere"
    );
    // What all pages look like is not this one's.
    let (head, rest) = page.split_once("<style>").unwrap();
    let (_, body) = rest.split_once("</style>").unwrap();
    insta::assert_snapshot!(format!("{head}{body}"));
}
