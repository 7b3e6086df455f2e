#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

use super::draw::{signed, spaced};
use super::*;
use crate::study::tests::{MEASURED, findings};
use crate::text::{digits, grouped};

/// A cost of so many milliseconds and round trips.
pub(in crate::study) fn known(ms: f64, trips: f64) -> Increase {
    Increase {
        least: ms,
        most: ms,
        trips: [trips; 2],
        counted: None,
        rest: Vec::new(),
        computing: None,
        is_shown: true,
        interval: Some([-3.0, 3.0]),
    }
}

#[test]
fn numbers_are_as_long_as_they_need() {
    assert_eq!(
        [0.0, 0.04, 0.05, 1.0, 9.94, 9.95, 14_480.4].map(digits),
        ["0", "0", "0.1", "1", "9.9", "10", "14,480"]
    );
    assert_eq!(
        [0.0, -0.04, -0.06, 36.2, -590.0].map(signed),
        ["+0", "+0", "\u{2212}0.1", "+36", "\u{2212}590"]
    );
    assert_eq!(
        [0, 999, 1000, 1_234_567].map(grouped),
        ["0", "999", "1,000", "1,234,567"]
    );
    assert_eq!(
        ["50KiB", "KiB", "7"].map(spaced),
        ["50\u{a0}KiB", "KiB", "7"]
    );
}

#[test]
fn a_fifth_of_a_round_trip_is_felt() {
    let perception = |trips: f64| known(trips * 35.0, trips).perception();
    assert_eq!(perception(0.19), Perception::Same);
    assert_eq!(perception(0.21), Perception::Part);
    assert_eq!(perception(0.79), Perception::Part);
    assert_eq!(perception(0.81), Perception::Later);
    assert_eq!(perception(-0.19), Perception::Same);
    assert_eq!(perception(-0.21), Perception::Sooner);
    let unknown = Increase {
        is_shown: false,
        ..known(35.0, 1.0)
    };
    assert_eq!(unknown.perception(), Perception::Same);
    // One on some networks alone.
    assert_eq!(
        known(0.0, 0.0).with(&known(35.0, 1.0)).perception(),
        Perception::Part
    );
}

#[test]
fn costs_say_what_they_come_of() {
    let trip = Increase {
        counted: Some(1),
        computing: Some([4.0; 2]),
        ..known(37.0, 1.06)
    };
    assert_eq!(trip.time(), "+37\u{a0}ms");
    assert_eq!(
        trip.because().unwrap(),
        "+1\u{a0}round trip, +4\u{a0}ms computing"
    );
    // Another count elsewhere, and no more computing than nobody would look at.
    let both = trip.clone().with(&Increase {
        computing: Some([0.1; 2]),
        ..known(0.2, 0.0)
    });
    assert_eq!(both.time(), "+0.2 to\u{a0}+37\u{a0}ms");
    assert_eq!(both.because().unwrap(), "+0.1 to\u{a0}+4\u{a0}ms computing");
    // A slow link has the bytes besides, and a part of a round trip less to wait.
    let slow = |ms, rest| Increase {
        rest,
        counted: Some(0),
        ..known(ms, 0.2)
    };
    let hello = slow(68.0, vec![(Reason::Bytes, [68.0; 2])]);
    assert_eq!(hello.because().unwrap(), "+68\u{a0}ms bytes");
    let response = slow(
        -157.0,
        vec![(Reason::Bytes, [68.0; 2]), (Reason::Waiting, [-225.0; 2])],
    );
    assert_eq!(
        response.because().unwrap(),
        "+68\u{a0}ms bytes, \u{2212}225\u{a0}ms waiting"
    );
    assert_eq!(
        hello
            .clone()
            .with(&slow(70.0, vec![(Reason::Bytes, [70.0; 2])]))
            .because()
            .unwrap(),
        "+68 to\u{a0}+70\u{a0}ms bytes"
    );
    assert_eq!(hello.with(&response).because(), None);
    let none = Increase {
        is_shown: false,
        ..trip
    };
    assert_eq!(none.time(), "no difference");
    assert_eq!(none.because().unwrap(), "within 3\u{a0}ms");
}

#[test]
fn what_is_unknown_on_one_network_is_unknown_on_all() {
    let failed = Cost::Unknown("timed out");
    let all = Cost::Increase(known(1.0, 0.1)).with(failed.clone());
    assert_eq!(all, failed);
}

#[test]
fn rows_are_networks_and_columns_are_times() {
    let overview = Overview::new(&findings(MEASURED, &[])).unwrap();
    assert_eq!(overview.baselines, ["old"]);
    assert_eq!(overview.arms, ["new"]);
    let titles: Vec<_> = overview
        .columns
        .iter()
        .map(|column| column.title())
        .collect();
    assert_eq!(titles, ["Handshake", "Last byte of 50\u{a0}KiB"]);
    let rows: Vec<_> = overview
        .rows
        .iter()
        .map(|row| (&*row.name, row.networks))
        .collect();
    assert_eq!(rows, [("loss 0%", 1), ("loss 1%", 1)]);
    let html = overview.html().into_string();
    assert_eq!(html.matches("data-of=\"").count(), 4);
}

#[test]
fn a_study_of_one_arm_has_no_overview() {
    let text = MEASURED.replace("[arm.new]\ntls = \"SecP256r1MLKEM768/ml-dsa-65\"\n", "");
    assert!(Overview::new(&findings(&text, &[])).is_none());
}

#[test]
fn many_networks_are_told_together() {
    let text = MEASURED.replace(
        "loss = [\"0%\", \"1%\"]",
        "loss = [\"0%\", \"0.1%\", \"0.2%\", \"0.3%\", \"0.4%\", \"0.5%\", \"1%\", \"2%\", \"3%\", \"4%\", \"5%\"]",
    );
    let overview = Overview::new(&findings(&text, &[])).unwrap();
    assert!(
        overview.rows.len() == 11,
        "one parameter alone is never put together"
    );
    let text = MEASURED
        .replace("rtt = \"35ms\"", "rtt = [\"10ms\", \"35ms\", \"70ms\"]")
        .replace(
            "loss = [\"0%\", \"1%\"]",
            "loss = [\"0%\", \"0.1%\", \"0.2%\", \"0.5%\", \"1%\"]",
        );
    let overview = Overview::new(&findings(&text, &[])).unwrap();
    let rows: Vec<_> = overview
        .rows
        .iter()
        .map(|row| (&*row.name, row.networks))
        .collect();
    assert_eq!(rows, [("RTT 10ms", 5), ("RTT 35ms", 5), ("RTT 70ms", 5)]);
}

#[test]
fn a_network_is_called_what_all_of_it_is() {
    let text = MEASURED
        .replace(
            "[link.path]",
            "[link.far]\nrtt = \"70ms\"\nloss = [\"0%\", \"1%\"]\n[link.path]",
        )
        .replace(
            "rtt = \"35ms\"",
            "rtt = [\"10ms\", \"20ms\", \"30ms\", \"40ms\", \"50ms\", \"60ms\"]",
        );
    let overview = Overview::new(&findings(&text, &[])).unwrap();
    let rows: Vec<_> = (overview.rows.iter())
        .map(|row| (&*row.name, &*row.note, row.networks))
        .collect();
    assert_eq!(
        rows,
        [("far", "RTT 70ms, no rate limit", 2), ("path", "1gbit", 12)]
    );
}
