#![allow(clippy::unwrap_used)]

use std::time::Duration;

use super::*;
use crate::tests::environment;
use crate::tests::errors;
use crate::{Detail, Screen};
use lastbyte_results::reduce::Cpu;
use lastbyte_results::{Summary, fixtures};
use lastbyte_study::{Arm, Experiment};

/// A made-up table, told.
fn told(tell: impl Fn(&Reduced<'_>) -> String) -> String {
    let whole: Arm = "X25519MLKEM768/ml-dsa-65".parse().unwrap();
    let reduce = Reduce::new(&whole);
    let experiment = Experiment::new(reduce.arms(), vec![fixtures::cell("0%", "20KiB")], 40);
    let percentiles: Vec<Percentile> = ["p50", "p90"].map(|text| text.parse().unwrap()).into();
    let summary = Summary::new(&experiment, &fixtures::samples(&experiment), &percentiles);
    let cpu = |arm: &Arm| {
        Some(Cpu {
            client: Duration::from_micros(arm.label.len() as u64),
            server: Duration::from_micros(500),
        })
    };
    let tables = summary
        .cells
        .iter()
        .map(|cell| Table::new(&reduce, cell, cpu));
    tell(&Reduced {
        reduce: &reduce,
        tables: &tables.collect::<Vec<_>>(),
        by: By::default(),
        percentiles: &percentiles,
        warnings: &["few <connections>".to_owned()],
        environment: &environment(),
        command: "lastbyte reduce ml-dsa-65",
    })
}

#[test]
fn in_a_terminal() {
    let text = told(|reduced| super::text(reduced, Screen::PLAIN, Detail::Everything));
    assert!(
        text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
    insta::assert_snapshot!(text);
}

#[test]
fn a_document_that_has_its_schema() {
    let document = told(json);
    assert_eq!(errors(&document, SCHEMA), [""; 0]);
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    assert_eq!(document["cells"].as_array().unwrap().len(), 1);
    assert_eq!(document["chain"], "X25519MLKEM768/ml-dsa-65");
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
