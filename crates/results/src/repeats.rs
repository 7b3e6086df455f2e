//! Whether connections that meet no luck repeat each other.
//!
//! Without luck, a connection can still differ from the next one in what it sends, as a signature of ECDSA is a byte or two
//! longer or shorter, which at an edge is a round trip, and in where between two ticks of the kernel it begins, which is drawn
//! for each. Where all take the same time anyway, a few show whether the rest can be otherwise.

use std::time::Duration;

use super::{Percentile, Row, Times};

/// The chance that all connections miss what befalls as many of them as lie beyond a percentile, at most.
const MISSED: f64 = 0.05;
/// What times differ by in which a tick of the kernel fell, at most.
const TICK: Duration = Duration::from_micros(1);

/// Whether all rows of each arm have the same times, and are so many that what lies beyond `percentiles` would have been seen.
pub(super) fn repeat_each_other(rows: &[&[Row]], percentiles: &[Percentile]) -> bool {
    rows.iter().all(|rows| {
        percentiles
            .iter()
            .all(|percentile| would_be_seen(*percentile, rows.len()))
            && repeat(rows)
    })
}

/// Whether so many connections show what befalls as many as lie beyond a percentile, on its nearer side.
fn would_be_seen(percentile: Percentile, connections: usize) -> bool {
    let per_mille = f64::from(percentile.per_mille());
    let beyond = per_mille.min(1000.0 - per_mille) / 1000.0;
    (1.0 - beyond).powf(connections as f64) <= MISSED
}

fn repeat(rows: &[Row]) -> bool {
    let first = rows.first();
    first.is_some_and(|first| rows.iter().all(|row| is_same(first, row)))
}

fn is_same(one: &Row, other: &Row) -> bool {
    let times = |row: &Row| {
        let Times {
            connect,
            handshake,
            server_handshake,
            ttfb,
            ttlb,
        } = row.times;
        [connect, handshake, server_handshake, ttfb, ttlb]
    };
    let mut pairs = times(one).into_iter().zip(times(other));
    one.outcome == other.outcome
        && pairs.all(|pair| match pair {
            (Some(one), Some(other)) => one.abs_diff(other) <= TICK,
            (one, other) => one == other,
        })
}

#[cfg(test)]
mod tests;
