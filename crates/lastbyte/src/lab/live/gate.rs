//! The gate: whether the engine has kept out of a block's way.

use std::time::Duration;

use lastbyte_link::Link;

use crate::results::{Outcome, Row};

/// A block passes the gate when the 99th percentile of packets' lateness is
/// below both of these...
const MAX_LATENESS: Duration = Duration::from_millis(2);
const MAX_LATENESS_SHARE: f64 = 0.05;
/// ...and when the median connection waited for others for less than this share of
/// the median time to the last byte.
const MAX_WAIT_SHARE: f64 = 0.003;
/// What no machine stays below: waking a sleeping thread.
const WAKE_UP: Duration = Duration::from_micros(100);

/// Whether the engine has kept out of these connections' way, or how it did not.
pub(super) fn gate(rows: &[Row], lateness: &mut [u32], link: &Link) -> Result<(), String> {
    let one_way = link.forward.delay.min(link.backward.delay);
    let limit = MAX_LATENESS
        .min(one_way.mul_f64(MAX_LATENESS_SHARE))
        .max(WAKE_UP);
    let late = lateness_p99(lateness);
    if late > limit {
        return Err(format!(
            "1 % of packets were more than {late:.0?} late, against a limit of {limit:.0?}: \
             close other programs or use a machine with more cores"
        ));
    }
    let completed = || rows.iter().filter(|row| row.outcome == Outcome::Completed);
    let wait = median(completed().map(|row| row.lateness.endpoint));
    let limit = median(completed().filter_map(|row| row.times.ttlb))
        .mul_f64(MAX_WAIT_SHARE)
        .max(WAKE_UP);
    if wait > limit {
        return Err(format!(
            "connections waited {wait:.0?} for each other, against a limit of {limit:.0?}: \
             ask for a lower --concurrency"
        ));
    }
    Ok(())
}

/// What 1 % of packets were later than.
pub(super) fn lateness_p99(lateness: &mut [u32]) -> Duration {
    let rank = lateness.len() * 99 / 100;
    if rank >= lateness.len() {
        return Duration::ZERO;
    }
    let (_, p99, _) = lateness.select_nth_unstable(rank);
    Duration::from_nanos(u64::from(*p99))
}

/// The middle one; zero of none.
pub(super) fn median(durations: impl Iterator<Item = Duration>) -> Duration {
    let mut durations: Vec<_> = durations.collect();
    let middle = durations.len() / 2;
    if middle >= durations.len() {
        return Duration::ZERO;
    }
    *durations.select_nth_unstable(middle).1
}

#[cfg(test)]
mod tests;
