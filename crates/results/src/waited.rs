//! Times as a user waits for them: the network's, and what computing adds.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::time::Duration;

use jiff::SignedDuration;
use lastbyte_flights::{Compute, Timeline};

use super::{Beside, CpuCosts, EngineReport, Outcome, Row, Sample, Times, expected};
use lastbyte_study::{Arm, Cell, Experiment};

impl Sample {
    /// The sample with what computing adds to each of its times, where that is known beside them: as if it had been
    /// calibrated.
    ///
    /// Each step of a connection takes what it took in memory on that machine, at its place in flight arithmetic: what
    /// a loss or jitter would hide of it is not taken off.
    pub fn waited(&self, experiment: &Experiment) -> Cow<'_, Sample> {
        let place = experiment
            .arms
            .get(self.arm)
            .zip(experiment.cells.get(self.cell));
        let Some((arm, cell)) = place.filter(|_| !self.engine.beside.is_empty()) else {
            return Cow::Borrowed(self);
        };
        let row = |row: &Row| Row {
            times: self.computed(row, arm, cell),
            ..row.clone()
        };
        Cow::Owned(Sample {
            arm: self.arm,
            cell: self.cell,
            rows: self.rows.iter().map(row).collect(),
            chain_digest: self.chain_digest.clone(),
            engine: EngineReport {
                cpu_costs: self.engine.beside.of(arm.resumption),
                beside: Beside::default(),
                ..self.engine.clone()
            },
        })
    }

    fn computed(&self, row: &Row, arm: &Arm, cell: &Cell) -> Times {
        let costs = self.engine.beside.of(arm.session(cell, row.index));
        match (costs, &row.outcome) {
            (Some(costs), Outcome::Completed) => {
                let cell = cell.with_buffers(self.engine.buffers);
                let (cell, costs) = (
                    cell.of_connection(row.index),
                    costs.of_connection(row.index),
                );
                Added::of(row, arm, &cell, costs).to(row.times)
            }
            _ => row.times,
        }
    }
}

/// What computing adds to the times of a connection, or takes off them.
#[derive(Clone, Copy)]
struct Added {
    handshake: SignedDuration,
    ttfb: SignedDuration,
    ttlb: SignedDuration,
}

impl Added {
    fn of(row: &Row, arm: &Arm, cell: &Cell, costs: CpuCosts) -> Added {
        let timeline = |compute| expected(&row.exchange, cell, arm.record_size, compute);
        let (slow, free) = (
            timeline(costs.compute(cell, arm.record_size)),
            timeline(Compute::default()),
        );
        let more = |of: fn(&Timeline) -> Duration| apart(of(&slow), of(&free));
        Added {
            handshake: more(|timeline| timeline.handshake),
            ttfb: more(|timeline| timeline.ttfb.unwrap_or_default()),
            ttlb: more(|timeline| timeline.ttlb),
        }
    }

    fn to(self, times: Times) -> Times {
        let handshake = times.handshake.map(|time| later(time, self.handshake));
        let ttfb = times.ttfb.map(|time| later(time, self.ttfb));
        // The response to early data comes right behind the handshake.
        let is_behind = times.ttfb >= times.handshake;
        let server_handshake = times.server_handshake;
        Times {
            connect: times.connect,
            handshake,
            server_handshake: server_handshake.map(|time| later(time, self.handshake)),
            ttfb: if is_behind { ttfb.max(handshake) } else { ttfb },
            ttlb: times.ttlb.map(|time| later(time, self.ttlb)),
        }
    }
}

fn later(time: Duration, by: SignedDuration) -> Duration {
    if by.is_negative() {
        time.saturating_sub(by.unsigned_abs())
    } else {
        time + by.unsigned_abs()
    }
}

/// How much later the first is than the second.
pub(super) fn apart(one: Duration, other: Duration) -> SignedDuration {
    let signed = |time| SignedDuration::try_from(time).unwrap_or(SignedDuration::MAX);
    if one >= other {
        signed(one - other)
    } else {
        -signed(other - one)
    }
}
