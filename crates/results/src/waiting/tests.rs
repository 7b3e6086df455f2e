#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use super::*;
use crate::fixtures::{self, CLASSICAL, HYBRID};
use lastbyte_study::{Population, PopulationDistribution as Distribution, Weighted};

const MS: Duration = Duration::from_millis(1);

/// A population that draws nothing but an RTT of 35 ms, with so many connections a user.
fn cell(connections_per_user: u32) -> Cell {
    let rtt = Weighted::new(vec!["35ms".into()], None).unwrap();
    let population = Population {
        connections_per_user: connections_per_user.try_into().unwrap(),
        parameters: vec![("rtt".parse().unwrap(), Distribution::Values(rtt))],
        ..Population::empty(Seed(1))
    };
    Cell {
        population: Some(Arc::new(population)),
        ..fixtures::cell("0%", "50KiB")
    }
}

/// Rows with these times to the first byte.
fn rows(times: &[Option<Duration>]) -> Vec<Row> {
    let experiment =
        fixtures::experiment(&[CLASSICAL, HYBRID], vec![fixtures::cell("0%", "1B")], 1);
    let row = fixtures::samples(&experiment).remove(0).rows.remove(0);
    let numbered = (0_u32..).zip(times);
    numbered
        .map(|(index, time)| {
            let mut row = row.clone();
            row.index = index;
            row.times.ttfb = *time;
            row
        })
        .collect()
}

fn told(cell: &Cell, before: &[Option<Duration>], after: &[Option<Duration>]) -> Waiting {
    let percentiles = [Percentile::MEDIAN];
    let (before, after) = (rows(before), rows(after));
    let side = |rows| Side { cell, rows };
    let told = waiting(
        Metric::Ttfb,
        side(&before),
        side(&after),
        &percentiles,
        Seed(1),
    );
    let mut told: Vec<Waiting> = told.collect();
    assert_eq!(told.len(), 1);
    told.remove(0)
}

fn shares(waiting: &Waiting) -> Vec<f64> {
    waiting
        .slower
        .iter()
        .map(|slower| slower.connections.value)
        .collect()
}

#[test]
fn a_connection_is_compared_with_itself() {
    let before = [100, 10, 50, 200].map(|ms| Some(ms * MS));
    let after = [105, 31, 85, 301].map(|ms| Some(ms * MS));
    let waiting = told(&cell(1), &before, &after);
    // Longer by 5, 21, 35 and 101 ms, of an RTT of 35 ms: more than a step, but at least round trips.
    assert_eq!(shares(&waiting), [0.75, 0.75, 0.25, 0.25, 0.75, 0.25]);
    assert_eq!(
        waiting.mean.unwrap().value,
        (5.0 + 21.0 + 35.0 + 101.0) / 4.0
    );
    assert_eq!(
        waiting.percentiles[&Percentile::MEDIAN].unwrap().value,
        28.0
    );
    assert_eq!(
        (waiting.connections, waiting.users, waiting.failed),
        (4, 4, 0)
    );
    assert_eq!(waiting.total().unwrap().value, 162.0);
}

#[test]
fn swapped_arms_gain_what_others_lose() {
    let one: Vec<_> = (0..200).map(|ms| Some(ms * MS)).collect();
    let other: Vec<_> = (0..200).map(|ms| Some(2 * ms * MS)).collect();
    let (there, back) = (told(&cell(1), &one, &other), told(&cell(1), &other, &one));
    assert_eq!(there.mean.unwrap().value, -back.mean.unwrap().value);
    assert_eq!(shares(&back), [0.0; 6]);
    let same = told(&cell(1), &one, &one);
    assert_eq!(same.mean.unwrap().value, 0.0);
    // Of 200 that all are as they were, a true share of 1.9 % would still leave none among 200 with 2.5 %.
    let high = same.slower[0].connections.interval.high.unwrap();
    assert!((0.015..0.02).contains(&high), "{high}");
}

#[test]
fn who_fails_waits_for_ever() {
    let before = [Some(10 * MS), Some(10 * MS), None, None];
    let after = [Some(10 * MS), None, Some(10 * MS), None];
    let waiting = told(&cell(1), &before, &after);
    assert_eq!((waiting.connections, waiting.failed), (3, 1));
    assert_eq!(waiting.mean, None);
    // One of three.
    assert_eq!(shares(&waiting), [1.0 / 3.0; 6]);
    assert_eq!(waiting.percentiles[&Percentile::MEDIAN].unwrap().value, 0.0);
}

#[test]
fn a_connection_that_one_side_lacks_is_left_out() {
    let population = cell(1);
    let (before, mut after) = (rows(&[Some(MS); 5]), rows(&[Some(11 * MS); 5]));
    after.remove(2);
    let side = |rows| Side {
        cell: &population,
        rows,
    };
    let told = waiting(Metric::Ttfb, side(&before), side(&after), &[], Seed(1));
    let told: Vec<Waiting> = told.collect();
    assert_eq!(told[0].connections, 4);
    assert_eq!(told[0].mean.unwrap().value, 10.0);
}

#[test]
fn users_are_judged_by_the_mean_of_their_connections() {
    // Two users of two connections each: longer by 0 and 12 ms, and by 0 and 8 ms.
    let before = [Some(100 * MS); 4];
    let after = [100, 112, 100, 108].map(|ms| Some(ms * MS));
    let waiting = told(&cell(2), &before, &after);
    assert_eq!((waiting.connections, waiting.users), (4, 2));
    let first = waiting.slower[0];
    assert_eq!(first.connections.value, 0.5);
    // Means of 6 and of 4 ms, and a step of 5 ms.
    assert_eq!(first.users.value, 0.5);
}

#[test]
fn connections_of_one_user_are_resampled_together() {
    // 40 users of 25 connections, all of which fare alike: there are 40 numbers, and not 1000.
    let before = vec![Some(100 * MS); 1000];
    let after: Vec<_> = (0..1000_u32)
        .map(|index| {
            Some(if (index / 25) % 2 == 0 {
                100 * MS
            } else {
                130 * MS
            })
        })
        .collect();
    let width = |waiting: &Waiting| {
        let interval = waiting.mean.unwrap().interval;
        interval.high.unwrap() - interval.low.unwrap()
    };
    let (alone, together) = (
        told(&cell(1), &before, &after),
        told(&cell(25), &before, &after),
    );
    // By the square root of 25.
    let ratio = width(&together) / width(&alone);
    assert!((4.0..6.0).contains(&ratio), "{ratio}");
}

#[test]
fn shares_hold_the_truth_as_often_as_they_say() {
    // Wilson's intervals for 10 of 100, and for none of 100 (Newcombe 1998, table I, method 3, has these).
    let ten = stats::share(10, 100).interval;
    assert_eq!(
        format!("{:.4} {:.4}", ten.low.unwrap(), ten.high.unwrap()),
        "0.0552 0.1744"
    );
    let none = stats::share(0, 100).interval;
    assert_eq!(
        format!("{:.4} {:.4}", none.low.unwrap(), none.high.unwrap()),
        "0.0000 0.0370"
    );
    assert_eq!(stats::share(0, 0).interval.low, None);
}
