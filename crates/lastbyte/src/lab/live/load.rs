//! What the live engine's endpoints do in a block: connections at once, in a closed loop with
//! random gaps.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lastbyte_link::{Time, fraction, mix};
use lastbyte_tls::Stack;

use crate::lab::connection::EndedConnection;
use crate::lab::crowd::{Crossing, groups};
use crate::lab::delivery::PreparedDelivery;
use crate::lab::dns::Resolver;
use crate::lab::endpoint::{Endpoints, Listener, Plan, Settings, Transport, Waking};
use crate::lab::exchange::Exchange;
use crate::lab::shared::Shared;
use crate::lab::shortcuts::Shortcuts;
use crate::lab::starts::Starts;
use crate::lab::surroundings::{Surroundings, client_address};
use crate::lab::{LabError, sys};
use crate::study::{Congestion, Crowd, Preset};

/// What the endpoints do in one block.
pub(super) struct Load<'a> {
    pub(super) stack: &'a dyn Stack,
    /// What DNS delivers.
    pub(super) delivery: Option<&'a PreparedDelivery>,
    /// Index of the first connection.
    pub(super) first_index: u32,
    pub(super) exchange: Exchange,
    pub(super) transport: Transport<'a>,
    pub(super) congestion: Congestion,
    pub(super) preset: Preset,
    /// Connections in all.
    pub(super) connections: u32,
    /// Connections at once.
    pub(super) concurrency: u32,
    /// About how long one connection takes: starts are spread over it.
    pub(super) duration: Duration,
    pub(super) timeout: Duration,
    pub(super) starts: Starts,
    pub(super) shortcuts: Shortcuts,
    /// For the gaps between connections only.
    pub(super) seed: u64,
    /// What else is on their links, in virtual time.
    pub(super) crowd: &'a Crowd,
    /// Hears that those go on.
    pub(super) crossing: &'a (dyn Fn() + Sync),
}

impl<'a> Load<'a> {
    /// Starts the connection of a slot.
    fn start(&self, endpoints: &mut Endpoints<'a>, slot: u32) -> Result<(), LabError> {
        let index = self.first_index + slot;
        let plan = Plan {
            stack: self.stack,
            exchange: self.exchange.of_connection(index),
            transport: self.transport,
        };
        endpoints.start(slot, index, plan)
    }
}

/// How the endpoints fared in a block.
pub(super) struct EndpointReport {
    /// By slot; those that an interrupt cut off are absent.
    pub(super) finished: Vec<Option<EndedConnection>>,
    /// CPU time of the endpoints, the kernel's work in their system calls included.
    pub(super) cpu: Duration,
}

/// Runs all connections of a block. A server that is not ours runs already. `ended` hears of each
/// one that has. `resolver` is there if DNS delivers something.
pub(super) fn run(
    surroundings: &Surroundings,
    load: &Load<'_>,
    resolver: Option<Resolver>,
    shared: &Shared,
    interrupt: &AtomicBool,
    ended: &dyn Fn(),
) -> Result<EndpointReport, LabError> {
    let listener = if load.exchange.server.is_foreign() {
        None
    } else {
        surroundings.server.enter()?;
        let listener = Listener::open(load.transport.name(), load.congestion);
        Some(listener.map_err(LabError::Socket)?)
    };
    surroundings.client.enter()?;
    let settings = Settings {
        delivery: load.delivery,
        congestion: load.congestion,
        preset: load.preset,
        timeout: load.timeout,
        shortcuts: load.shortcuts,
        shared,
    };
    let waking = Waking::timeout(load.transport.name()).map_err(LabError::Socket)?;
    let mut endpoints =
        Endpoints::new(settings, waking, listener, resolver).map_err(LabError::Socket)?;
    // Before anything is measured: it takes a handshake each.
    for slot in 0..load.connections {
        if interrupt.load(Ordering::Relaxed) {
            break;
        }
        endpoints.bring(slot, load.first_index + slot, &load.transport);
    }
    let before = sys::thread_cpu_time();
    if load.crowd.is_alone() {
        carry(&mut endpoints, load, shared, interrupt, ended)?;
    } else {
        carry_crowds(&mut endpoints, load, surroundings, shared, ended)?;
    }
    endpoints.check_sockets()?;
    Ok(EndpointReport {
        finished: (0..load.connections)
            .map(|slot| endpoints.take(slot))
            .collect(),
        cpu: sys::thread_cpu_time() - before,
    })
}

/// Has connections follow each other until all have ended, or an interrupt comes.
fn carry<'a>(
    endpoints: &mut Endpoints<'a>,
    load: &Load<'a>,
    shared: &Shared,
    interrupt: &AtomicBool,
    ended: &dyn Fn(),
) -> Result<(), LabError> {
    let mut gaps = Gaps(load.seed);
    let begin = sys::now();
    // When the next connections start.
    let mut starts = BinaryHeap::new();
    for _ in 0..load.concurrency.min(load.connections) {
        let gap = match load.concurrency {
            1 => Duration::ZERO,
            _ => gaps.uniform(load.duration),
        };
        starts.push(Reverse(begin + gap));
    }
    let mut slots = 0..load.connections;
    while endpoints.ended() < load.connections {
        if interrupt.load(Ordering::Relaxed) {
            return Ok(());
        }
        if shared.is_stopped() {
            return Err(LabError::Crashed("the emulator"));
        }
        let before = endpoints.ended();
        while let Some(&Reverse(at)) = starts.peek()
            && at <= sys::now()
        {
            starts.pop();
            if let Some(slot) = slots.next() {
                let index = load.first_index + slot;
                load.starts.wait(index).map_err(LabError::Socket)?;
                load.start(endpoints, slot)?;
            }
        }
        let next: Option<Time> = starts.peek().map(|Reverse(at)| *at);
        endpoints.step(next)?;
        for _ in before..endpoints.ended() {
            let gap = match load.concurrency {
                1 => Duration::ZERO,
                _ => gaps.exponential(load.duration / 8),
            };
            starts.push(Reverse(sys::now() + gap));
            ended();
        }
    }
    Ok(())
}

/// Has those that begin together follow each other, each with what else is on its link.
fn carry_crowds<'a>(
    endpoints: &mut Endpoints<'a>,
    load: &Load<'a>,
    surroundings: &Surroundings,
    shared: &Shared,
    ended: &dyn Fn(),
) -> Result<(), LabError> {
    for together in groups(&(0..load.connections), load.crowd.at_once) {
        let first = together.start;
        let _crossing = Crossing::begin(
            load.crowd,
            surroundings,
            client_address(first),
            load.starts,
            load.first_index + first,
            load.crossing,
        )?;
        let end = together.end;
        for slot in together {
            load.start(endpoints, slot)?;
        }
        while endpoints.ended() < end {
            if shared.is_stopped() {
                return Err(LabError::Crashed("the emulator"));
            }
            let before = endpoints.ended();
            endpoints.step(None)?;
            (before..endpoints.ended()).for_each(|_| ended());
        }
    }
    Ok(())
}

/// Random gaps between connections, so that closed loops don't fall into step.
struct Gaps(u64);

impl Gaps {
    fn uniform(&mut self, limit: Duration) -> Duration {
        limit.mul_f64(self.fraction())
    }

    fn exponential(&mut self, mean: Duration) -> Duration {
        mean.mul_f64(-(1.0 - self.fraction()).ln())
    }

    /// The next number in [0, 1), by SplitMix64.
    fn fraction(&mut self) -> f64 {
        /// From one state to the next (its "golden gamma").
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let drawn = mix(self.0);
        self.0 = self.0.wrapping_add(STEP);
        fraction(drawn)
    }
}

#[cfg(test)]
mod tests;
