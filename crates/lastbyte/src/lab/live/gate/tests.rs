#![allow(clippy::unwrap_used)]

use lastbyte_link::Direction;
use proptest::prelude::*;

use super::*;
use crate::results::Lateness;
use crate::results::fixtures::{CLASSICAL, cell, experiment, samples};

const MS: Duration = Duration::from_millis(1);
const US: Duration = Duration::from_micros(1);
const NS: Duration = Duration::from_nanos(1);

fn link(rtt: Duration) -> Link {
    Link::symmetric(rtt, Direction::default())
}

/// Rows of a sample in which nothing goes wrong: some 70 ms each, nobody waits.
fn rows() -> Vec<Row> {
    let experiment = experiment(&[CLASSICAL], vec![cell("0%", "0B")], 100);
    let mut rows = samples(&experiment).remove(0).rows;
    for row in &mut rows {
        row.lateness = Lateness::default();
    }
    rows
}

/// 98 packets in time, and two that are this late.
fn two_late(late: Duration) -> Vec<u32> {
    let late = late.as_nanos() as u32;
    [vec![0; 98], vec![late, late]].concat()
}

#[test]
fn lateness_is_limited_by_the_delay_of_the_link() {
    for (rtt, limit) in [
        // 2 ms at most,
        (200 * MS, 2 * MS),
        (80 * MS, 2 * MS),
        // 5 % of the one-way delay,
        (40 * MS, MS),
        (10 * MS, 250 * US),
        // and what any machine may take to wake up.
        (4 * MS, 100 * US),
        (MS, 100 * US),
        (Duration::ZERO, 100 * US),
    ] {
        let link = link(rtt);
        assert_eq!(
            gate(&rows(), &mut two_late(limit), &link),
            Ok(()),
            "{rtt:?}"
        );
        let reason = gate(&rows(), &mut two_late(limit + NS), &link).unwrap_err();
        let limit = format!("late, against a limit of {limit:.0?}: close other programs");
        assert!(
            reason.starts_with("1 % of packets were more than "),
            "{reason}"
        );
        assert!(reason.contains(&limit), "{reason}");
    }
}

#[test]
fn the_shorter_delay_counts() {
    let mut link = link(200 * MS);
    link.backward.delay = 10 * MS;
    assert_eq!(gate(&rows(), &mut two_late(500 * US), &link), Ok(()));
    assert!(gate(&rows(), &mut two_late(501 * US), &link).is_err());
}

#[test]
fn one_late_packet_in_a_hundred_and_one_passes() {
    let link = link(200 * MS);
    let one_late = |count: usize| [vec![0; count - 1], vec![u32::MAX]].concat();
    assert!(gate(&rows(), &mut one_late(100), &link).is_err());
    assert_eq!(gate(&rows(), &mut one_late(101), &link), Ok(()));
}

#[test]
fn waiting_is_limited_by_the_time_to_the_last_byte() {
    let link = link(200 * MS);
    for (ttlb, limit) in [
        // 0.3 % of it, or what any machine may take to wake up.
        (1000 * MS, 3 * MS),
        (10 * MS, 100 * US),
    ] {
        let with_wait = |wait| {
            let mut rows = rows();
            for row in &mut rows {
                row.times.ttlb = Some(ttlb);
                row.lateness.endpoint = wait;
            }
            // A connection that failed tells nothing.
            for row in rows.iter_mut().take(10) {
                row.outcome = Outcome::TimedOut;
                row.times.ttlb = Some(Duration::ZERO);
                row.lateness.endpoint = Duration::MAX;
            }
            rows
        };
        assert_eq!(gate(&with_wait(limit), &mut [], &link), Ok(()), "{ttlb:?}");
        let reason = gate(&with_wait(limit + NS), &mut [], &link).unwrap_err();
        assert!(reason.starts_with("connections waited "), "{reason}");
        assert!(
            reason.ends_with("ask for a lower --concurrency"),
            "{reason}"
        );
    }
}

#[test]
fn nothing_at_all_passes() {
    assert_eq!(gate(&[], &mut [], &link(35 * MS)), Ok(()));
}

proptest! {
    #[test]
    fn the_median_is_in_the_middle(mut numbers in prop::collection::vec(0..1000_u64, 1..50)) {
        let middle = median(numbers.iter().copied().map(Duration::from_nanos));
        numbers.sort_unstable();
        prop_assert_eq!(middle, Duration::from_nanos(numbers[numbers.len() / 2]));
    }

    #[test]
    fn one_in_a_hundred_is_at_least_as_late(mut late in prop::collection::vec(0..1000_u32, 1..500)) {
        let p99 = lateness_p99(&mut late).as_nanos() as u32;
        let above = late.iter().filter(|late| **late > p99).count();
        let at_least = late.iter().filter(|late| **late >= p99).count();
        prop_assert!(above * 100 <= late.len());
        prop_assert!(at_least * 100 >= late.len());
    }
}

#[test]
fn nothing_has_no_median() {
    assert_eq!(median(std::iter::empty()), Duration::ZERO);
    assert_eq!(lateness_p99(&mut []), Duration::ZERO);
}
