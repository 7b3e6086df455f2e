//! What a connection may take, before any was measured.

use std::time::Duration;

use lastbyte_exchange::HandshakeFlight;
use lastbyte_sizes::framing::MSS;

use super::runner::Job;
use crate::results::Exchange;

/// One handshake of a job in memory.
pub(super) struct HandshakeTrial {
    /// What it took both ends.
    pub(super) cpu: Duration,
    /// About how many packets a connection takes.
    pub(super) packets: u32,
    pub(super) exchange: Exchange,
}

/// None where the handshake fails. All jobs of an arm have one.
pub(super) fn try_handshake(job: &Job<'_>) -> Option<HandshakeTrial> {
    let tried = job.arm.trial().ok()?;
    let wire = &tried.exchange;
    let bytes = job
        .cell
        .of_connection(job.connections.start)
        .work()
        .payload()
        .0
        + u64::from(wire.sent(HandshakeFlight::ClientHello))
        + u64::from(wire.sent(HandshakeFlight::Server));
    Some(HandshakeTrial {
        cpu: tried.cpu,
        // Those of TCP itself, and an acknowledgement for every other one.
        packets: 6 + u32::try_from(bytes / MSS as u64 * 3 / 2).unwrap_or(u32::MAX),
        exchange: wire.clone(),
    })
}
