#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::LazyLock;

use insta::assert_snapshot;
use proptest::prelude::*;
use roxmltree::{Document, Node};

use super::*;
use crate::tests::{environment, headline, troubled};
use lastbyte_study::Metric;

fn thresholds(texts: &[&str]) -> Vec<Threshold> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn children<'a>(node: Node<'a, 'a>, name: &'a str) -> impl Iterator<Item = Node<'a, 'a>> {
    node.children()
        .filter(move |child| child.has_tag_name(name))
}

/// What the schemas of JUnit's readers agree on: the order of elements, and counts that fit.
fn check(text: &str) {
    let document = Document::parse(text).unwrap();
    let root = document.root_element();
    assert_eq!(root.tag_name().name(), "testsuites");
    let counted =
        |node: Node, name: &str| node.descendants().filter(|n| n.has_tag_name(name)).count();
    let told = |node: Node, name: &str| node.attribute(name).unwrap().parse::<usize>().unwrap();
    let mut names = Vec::new();
    for node in [root].into_iter().chain(children(root, "testsuite")) {
        assert_eq!(told(node, "tests"), counted(node, "testcase"));
        assert_eq!(told(node, "failures"), counted(node, "failure"));
        assert_eq!(told(node, "errors"), counted(node, "error"));
        node.attribute("time").unwrap().parse::<f64>().unwrap();
    }
    for suite in children(root, "testsuite") {
        assert_eq!(told(suite, "skipped"), counted(suite, "skipped"));
        let elements: Vec<_> = suite.children().filter(Node::is_element).collect();
        assert!(elements[0].has_tag_name("properties"));
        for case in &elements[1..] {
            assert!(case.has_tag_name("testcase"));
            assert!(case.children().filter(Node::is_element).count() <= 1);
            names.push(["classname", "name"].map(|name| case.attribute(name).unwrap()));
            case.attribute("time").unwrap().parse::<f64>().unwrap();
        }
        for told in suite
            .descendants()
            .filter(|n| n.has_tag_name("failure") || n.has_tag_name("error"))
        {
            assert!(told.attribute("message").is_some() && told.attribute("type").is_some());
        }
    }
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all, "some readers keep one of each name");
}

#[test]
fn thresholds_of_all_kinds() {
    let thresholds = thresholds(&["ttlb.p50 > 1%", "ttlb.p90 > 300ms", "ttfb.p50 > 1s"]);
    let text = junit(
        &troubled(),
        &environment(),
        &thresholds,
        &[],
        Samples::MustBeValid,
    );
    check(&text);
    assert_snapshot!(text);
}

#[test]
fn nothing_is_lost_of_a_run_that_was_interrupted() {
    let mut summary = headline();
    summary.cells[1].arms.truncate(1);
    summary.cells[2].arms.clear();
    let text = junit(
        &summary,
        &environment(),
        &thresholds(&["ttlb.p50 > 1s"]),
        &[],
        Samples::AsTheyAre,
    );
    check(&text);
    let document = Document::parse(&text).unwrap();
    let root = document.root_element();
    assert_eq!(root.attribute("tests"), Some("6"));
    assert_eq!(root.attribute("errors"), Some("3"));
}

#[test]
fn what_can_not_be_told_passes_with_a_note() {
    use lastbyte_results::{Estimate, Interval, Percent, Percentile};
    let mut summary = headline();
    summary.cells.truncate(1);
    summary.cells[0].arms.truncate(1);
    summary.experiment.arms.truncate(1);
    let interval = Interval {
        low: Some(Percent(-1.0)),
        high: None,
    };
    let change = Ok(Estimate {
        value: Percent(3.0),
        interval,
    });
    summary.cells[0].arms[0]
        .metric_mut(Metric::Ttlb)
        .changes
        .insert(Percentile::MEDIAN, change);
    let thresholds = thresholds(&["ttlb.p50 > 1% since saved"]);
    let text = junit(
        &summary,
        &environment(),
        &thresholds,
        &[],
        Samples::AsTheyAre,
    );
    check(&text);
    let document = Document::parse(&text).unwrap();
    let note = document
        .descendants()
        .find(|node| node.has_tag_name("system-out"))
        .unwrap();
    assert_eq!(note.text(), Some("can't tell: changed by 3.0 % [-1.0, ∞]"));
}

/// Everything that comes from outside, in attributes and between tags.
fn outside(text: &str) -> (Summary, Environment) {
    static TROUBLED: LazyLock<Summary> = LazyLock::new(troubled);
    let mut summary = TROUBLED.clone();
    for (cell, arms) in summary.cells.iter_mut().zip(0..) {
        cell.name = format!("{arms}{text}");
        for arm in &mut cell.arms {
            arm.label.push_str(text);
            arm.validity = Validity::Invalid(text.to_owned());
        }
    }
    for arm in &mut summary.experiment.arms {
        arm.name.push_str(text);
    }
    let mut environment = environment();
    environment.command.push(text.to_owned());
    environment
        .versions
        .insert(text.to_owned(), text.to_owned());
    (summary, environment)
}

#[test]
fn nothing_from_outside_breaks_the_document() {
    for text in [
        "<a b='c'>&amp;</a>]]>",
        "\"quoted\" & 'quoted'",
        "two\nlines\r\n\tand a tab",
        "\u{0}\u{1}\u{8}\u{b}\u{1b}[31m\u{7f}\u{85}\u{fffe}\u{ffff}",
        "größer ∞ \u{10ffff}",
    ] {
        let (summary, environment) = outside(text);
        let written = junit(
            &summary,
            &environment,
            &thresholds(&["ttlb.p50 > 1%"]),
            &[],
            Samples::MustBeValid,
        );
        check(&written);
        let document = Document::parse(&written).unwrap();
        let told = document
            .descendants()
            .filter_map(|node| node.attribute("message"));
        let told = told.filter_map(|message| message.strip_prefix("is invalid: "));
        let allowed = |c: char| match c {
            '\t' | '\n' | '\r' => c,
            '\u{fffe}' | '\u{ffff}' | '\0'..='\u{1f}' => '\u{fffd}',
            c => c,
        };
        let expected: String = text.chars().map(allowed).collect();
        assert_eq!(told.collect::<Vec<_>>(), vec![expected; 6]);
    }
}

proptest! {
    #[test]
    fn any_text_can_be_told(text in any::<String>()) {
        let (summary, environment) = outside(&text);
        let thresholds = thresholds(&["ttlb.p50 > 1%"]);
        check(&junit(&summary, &environment, &thresholds, &[], Samples::MustBeValid));
    }
}

/// Budgets are a suite of their own, and a command that measures nothing has no other.
#[test]
fn budgets_are_test_cases() {
    use std::collections::BTreeMap;

    use crate::budgets_junit;
    use lastbyte_results::{Facts, Need, Spending};

    let known = Facts {
        of: "ml-dsa-44 <\"today\">".to_owned(),
        place: String::new(),
        needs: BTreeMap::from([(Need::Flights, 2.0)]),
    };
    let budgets = ["flights > 1", "flights > 2", "left < 500B"].map(|text| text.parse().unwrap());
    let spending = Spending::all(&budgets, &[known]);
    let text = budgets_junit("lastbyte explain", &spending);
    let document = roxmltree::Document::parse(&text).unwrap();
    let cases = document
        .descendants()
        .filter(|node| node.has_tag_name("testcase"));
    let cases: Vec<_> = cases
        .map(|case| {
            let inside = case.children().find(|node| node.is_element());
            let inside = inside.map(|node| node.tag_name().name().to_owned());
            (
                case.attribute("name").unwrap(),
                case.attribute("classname").unwrap(),
                inside,
            )
        })
        .collect();
    let of = "ml-dsa-44 <\"today\">";
    assert_eq!(
        cases,
        [
            ("flights > 1", of, Some("failure".to_owned())),
            ("flights > 2", of, None),
            ("left < 500B", of, Some("system-out".to_owned())),
        ]
    );
}
