#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use lastbyte_sizes::Message;
use lastbyte_study::Connections;

use super::*;
use crate::fixtures::{self, CLASSICAL, HYBRID, cell};
use crate::look::{Look, look};
use crate::{Measurements, Metric, SampleKey, Validity};

/// So many connections that take the same time.
fn same(connections: u32) -> Vec<Row> {
    let experiment = fixtures::experiment(&[CLASSICAL], vec![cell("0%", "0B")], 1);
    let row = fixtures::samples(&experiment)[0].rows[0].clone();
    let of = |index| Row {
        index,
        block: index / 7,
        ..row.clone()
    };
    (0..connections).map(of).collect()
}

/// Has a row send a byte more.
fn longer(row: &mut Row) {
    let bytes = row.exchange.bytes(Message::CertificateVerify);
    let messages = &mut row.exchange.handshake.messages;
    messages.set(Message::CertificateVerify, Some(bytes + 1));
}

fn later(row: &mut Row) {
    *row.times.handshake.as_mut().unwrap() += TICK + Duration::from_nanos(1);
}

fn usual(rows: &[Row]) -> bool {
    repeat_each_other(&[rows], &Percentile::USUAL)
}

#[test]
fn rows_repeat_each_other_if_they_take_the_same_whatever_they_send() {
    let mut rows = same(40);
    assert!(usual(&rows));
    // Signatures of two lengths, on a link so fast that nobody is later by that.
    rows.iter_mut().step_by(3).for_each(longer);
    assert!(usual(&rows));
    // A byte takes longer elsewhere, and at an edge a round trip: how many are longer is by chance.
    rows.iter_mut().step_by(3).for_each(later);
    assert!(!usual(&rows));
    assert!(!repeat_each_other(&[&same(40), &rows], &Percentile::USUAL));
    assert!(!usual(&[]));
}

#[test]
fn a_tick_of_the_kernel_makes_no_difference() {
    let mut rows = same(40);
    *rows[3].times.ttlb.as_mut().unwrap() += TICK;
    rows[4].block = 7;
    assert!(usual(&rows));
    *rows[3].times.ttlb.as_mut().unwrap() += Duration::from_nanos(1);
    assert!(!usual(&rows));
    rows[3].times.ttlb = None;
    assert!(!usual(&rows));
}

#[test]
fn a_failure_repeats_too() {
    let mut rows = same(40);
    rows[20].outcome = crate::Outcome::TimedOut;
    assert!(!usual(&rows));
    for row in &mut rows {
        row.outcome = crate::Outcome::TimedOut;
    }
    assert!(usual(&rows));
}

#[test]
fn what_lies_beyond_a_percentile_would_be_seen() {
    let percentile = |text: &str| text.parse::<Percentile>().unwrap();
    // (9/10)^n and so on come to 5 %.
    for (text, least) in [
        ("p50", 5),
        ("p90", 29),
        ("p10", 29),
        ("p95", 59),
        ("p99", 299),
    ] {
        assert!(would_be_seen(percentile(text), least), "{text}");
        assert!(!would_be_seen(percentile(text), least - 1), "{text}");
    }
    assert!(usual(&same(29)) && !usual(&same(28)));
}

#[test]
fn what_computing_adds_has_come_round_by_then() {
    let cells = vec![cell("0%", "0B")];
    let experiment = fixtures::experiment(&[CLASSICAL], cells, Connections::UpTo(1000));
    for end in experiment.stages(&experiment.cells[0], 20) {
        // Blocks of as many as there are factors are whole up to each look.
        let study = lastbyte_study::Study::single("study", experiment.clone());
        let id = study.blocks(20).find(|id| id.block == end - 1).unwrap();
        let connections = study.block(id, 20).end as usize;
        assert_eq!(connections % crate::Flights::COUNT, 0);
    }
}

#[test]
fn cells_with_luck_are_not_looked_at() {
    let rows = same(40);
    let look_at = |loss: &str, connections: Connections, rows: &[&[Row]]| {
        let cells = vec![cell(loss, "0B")];
        let experiment = fixtures::experiment(&[CLASSICAL, HYBRID], cells, connections);
        look(&experiment, &experiment.cells[0], rows, &Percentile::USUAL)
    };
    let up_to = Connections::UpTo(200);
    let mut other = rows.clone();
    later(&mut other[7]);
    assert_eq!(look_at("0%", up_to, &[&rows, &rows]), Look::Repeating);
    assert_eq!(look_at("0%", up_to, &[&rows, &other]), Look::Differing);
    assert_eq!(look_at("1%", up_to, &[&rows, &other]), Look::Precise);
    let fixed = Connections::Fixed(200);
    assert_eq!(look_at("0%", fixed, &[&rows, &other]), Look::Precise);
}

#[test]
fn cells_that_ended_early_weigh_as_much_as_the_others_they_are_put_together_with() {
    let cells = vec![cell("0%", "0B"), cell("1%", "0B")];
    let experiment = fixtures::experiment(&[CLASSICAL], cells, Connections::UpTo(200));
    let mut samples = fixtures::samples(&experiment);
    samples[0].rows.truncate(40);
    let mut measurements = Measurements::default();
    for (cell, sample) in samples.iter().enumerate() {
        let key = SampleKey {
            measure: 0,
            cell,
            arm: 0,
        };
        measurements.add(key, sample, Validity::Valid, |index| index, &experiment);
    }
    let early = measurements.sample(0, 0, 0).unwrap();
    assert_eq!(early.connections(), 40);
    let times: Vec<_> = early.times(Metric::Handshake).collect();
    assert_eq!(times.len(), 200);
    assert!((0..).zip(&times).all(|(index, (own, _))| index == *own));
    assert_eq!((times[40].1, times[199].1), (times[0].1, times[39].1));
    let whole = measurements.sample(0, 1, 0).unwrap();
    assert_eq!(whole.times(Metric::Handshake).count(), 200);
}
