//! What measured samples tell of ways to send less: one table for each cell, ranked.

use std::time::Duration;

use lastbyte_sizes::Message;

use super::{Reduce, Way};
use crate::{ArmSummary, CellSummary, Cut, Metric, Percentile, Sent};
use lastbyte_study::{Arm, Cell};

/// CPU time of a handshake, of each side, the request and the response left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cpu {
    /// The client's.
    pub client: Duration,
    /// The server's.
    pub server: Duration,
}

/// All ways in one cell.
#[derive(Clone, Debug)]
pub struct Table<'a> {
    /// The cell.
    pub cell: &'a Cell,
    /// What ways are ranked by: the first byte, or the handshake where nothing is asked for.
    pub metric: Metric,
    /// The whole chain and all ways, the quickest first.
    pub ranked: Vec<Ranked<'a>>,
}

/// One way, or the whole chain, as it was measured.
#[derive(Clone, Debug)]
pub struct Ranked<'a> {
    /// Which way; none for a whole chain.
    pub way: Option<&'a Way>,
    /// Whose clients it is of.
    pub clients: Clients,
    /// The arm.
    pub arm: &'a Arm,
    /// What was measured.
    pub summary: &'a ArmSummary,
    /// The whole chain's, over the same stacks.
    pub whole: &'a ArmSummary,
    /// CPU time of a handshake, if it was measured.
    pub cpu: Option<Cpu>,
    /// The largest Certificate message of a whole chain that would still fit the server's first flight if it
    /// were sent so, in bytes.
    pub supportable: Option<u32>,
    /// That, as a multiple of the largest that fits as a whole.
    pub multiple: Option<f64>,
}

/// Whose clients a sample is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clients {
    /// They have what they should have.
    Ready,
    /// They lack it.
    Stale,
}

impl<'a> Table<'a> {
    /// What is told of one cell. Of an arm that was not measured, nothing is.
    pub fn new(
        reduce: &'a Reduce,
        cell: &'a CellSummary,
        cpu: impl Fn(&Arm) -> Option<Cpu>,
    ) -> Table<'a> {
        let ranked = |way: Option<&'a Way>, clients, arm: &'a Arm| -> Option<Ranked<'a>> {
            let whole = way.map_or(Some(arm), |way| reduce.whole.get(way.whole))?;
            let (summary, whole) = (sample(cell, arm)?, sample(cell, whole)?);
            let cut = sent(summary).zip(sent(whole));
            let cut = cut.map(|(sent, whole)| Cut::new(&cell.cell, sent, whole));
            Some(Ranked {
                way,
                clients,
                arm,
                summary,
                whole,
                cpu: cpu(arm),
                supportable: cut.and_then(Cut::supportable),
                multiple: cut.and_then(Cut::multiple),
            })
        };
        // Those of other stacks, too, which some ways are compared with.
        let whole = reduce.whole.iter();
        let whole = whole.filter_map(|arm| ranked(None, Clients::Ready, arm));
        let ways = reduce.ways.iter().flat_map(|way| {
            let stale = way.stale.as_ref();
            [
                ranked(Some(way), Clients::Ready, &way.arm),
                stale.and_then(|arm| ranked(Some(way), Clients::Stale, arm)),
            ]
        });
        let metric = if cell.cell.metrics().contains(&Metric::Ttfb) {
            Metric::Ttfb
        } else {
            Metric::Handshake
        };
        let mut ranked: Vec<Ranked<'a>> = whole.chain(ways.flatten()).collect();
        ranked.sort_by_key(|ranked| (ranked.median(metric), ranked.server_bytes()));
        Table {
            cell: &cell.cell,
            metric,
            ranked,
        }
    }
}

impl Ranked<'_> {
    /// The median of a metric; the longest of all if there is none.
    fn median(&self, metric: Metric) -> Duration {
        let percentiles = &self.summary.metric(metric).percentiles;
        let median = percentiles
            .iter()
            .find(|(percentile, _)| **percentile == Percentile::MEDIAN);
        let median = median.and_then(|(_, measured)| measured.ok());
        median.map_or(Duration::MAX, |median| median.value)
    }

    /// The server's handshake messages on the wire; the most of all if there are none.
    fn server_bytes(&self) -> u32 {
        let wire = self.summary.wire.as_ref();
        wire.map_or(u32::MAX, |wire| wire.server_wire_bytes().median)
    }
}

fn sent(arm: &ArmSummary) -> Option<Sent> {
    let wire = arm.wire.as_ref()?;
    Some(Sent {
        certificate_bytes: wire.bytes(Message::Certificate).median,
        server_wire_bytes: wire.server_wire_bytes().median,
    })
}

fn sample<'a>(cell: &'a CellSummary, arm: &Arm) -> Option<&'a ArmSummary> {
    // A summary has what the arm is called.
    cell.arms.iter().find(|summary| summary.label == arm.name)
}
