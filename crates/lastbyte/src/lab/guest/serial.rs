//! The guest's connections: one after the other, each over a link that is idle.
//!
//! Time stands still while the guest computes, so what it does costs nothing but wall time, and
//! system calls are what costs most of that.

use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use lastbyte_link::Seed;
use lastbyte_tls::Stack;

use super::network::Network;
use super::tap::Tap;
use crate::lab::LabError;
use crate::lab::connection::EndedConnection;
use crate::lab::crowd::{Crossing, groups};
use crate::lab::delivery::PreparedDelivery;
use crate::lab::dns;
use crate::lab::endpoint::{self, Endpoints, Listener, Settings, Transport, Waking};
use crate::lab::exchange::Exchange;
use crate::lab::programs::ForeignServer;
use crate::lab::shared::Shared;
use crate::lab::shortcuts::Shortcuts;
use crate::lab::starts::{self, Starts};
use crate::lab::surroundings::{Sides, client_address};
use crate::study::{Cell, Preset, TransportName};

/// What the endpoints do in one block.
pub(super) struct Load<'a> {
    /// What DNS delivers, and where its servers keep their files.
    pub(super) dns: Option<(&'a PreparedDelivery, &'a Path)>,
    /// What answers, if our own server does not.
    pub(super) server: Option<ForeignServer<'a>>,
    /// What all connections have in common.
    pub(super) cell: &'a Cell,
    pub(super) transport: TransportName,
    /// What one connection has, by its index.
    pub(super) plan: &'a dyn Fn(u32) -> Plan<'a>,
    /// Indices of the connections in their sample.
    pub(super) connections: Range<u32>,
    pub(super) timeout: Duration,
    pub(super) shortcuts: Shortcuts,
    /// What sees the packets of the first ones.
    pub(super) tap: Option<&'a Tap>,
}

/// What one connection does, and where.
pub(super) struct Plan<'a> {
    pub(super) stack: &'a dyn Stack,
    pub(super) exchange: Exchange,
    pub(super) transport: Transport<'a>,
    pub(super) cell: Cow<'a, Cell>,
    /// Where its link's luck comes from.
    pub(super) seed: Seed,
    /// How long the link may still hold packets of a connection that has ended.
    pub(super) drain: Duration,
}

/// Connections before those that count, with the preset that has them.
const WARM_UPS: u32 = 3;

/// Runs all connections of a block. `progress` hears of each one that ends.
pub(super) fn run(
    network: &mut Network,
    load: &Load<'_>,
    progress: &mut dyn FnMut(),
) -> Result<Vec<EndedConnection>, LabError> {
    let (listener, _server) = match &load.server {
        Some(server) => (None, Some(server.start(load.cell, network)?)),
        None => {
            network.enter_server()?;
            let listener = Listener::open(load.transport, load.cell.congestion);
            let listener = listener.map_err(LabError::Socket)?;
            network.enter_client()?;
            (Some(listener), None)
        }
    };
    let servers = match load.dns {
        Some((delivery, folder)) => {
            // Of its own, as connections have theirs.
            let address = client_address(load.connections.len() as u32);
            Some(dns::start(&delivery.published, address, folder, network)?)
        }
        None => None,
    };
    let (_servers, resolver) = servers.unzip();
    let alone = Shared::new(0);
    let settings = Settings {
        delivery: load.dns.map(|(delivery, _)| delivery),
        congestion: load.cell.congestion,
        preset: load.cell.preset,
        timeout: load.timeout,
        shortcuts: load.shortcuts,
        // Nobody else is at the sockets.
        shared: &alone,
    };
    let waking = Waking::timer().map_err(LabError::Socket)?;
    let mut endpoints =
        Endpoints::new(settings, waking, listener, resolver).map_err(LabError::Socket)?;
    // Its authors' harness has three connections before the first that counts.
    let warm_ups = match load.cell.preset {
        Preset::Network => 0,
        Preset::Published2024 => WARM_UPS,
    };
    let mut drain = Duration::ZERO;
    if warm_ups > 0 {
        let plan = (load.plan)(load.connections.start);
        network.set(0, &plan.cell, plan.seed)?;
        drain = plan.drain;
        for _ in 0..warm_ups {
            starts::sleep(drain).map_err(LabError::Socket)?;
            start(&mut endpoints, 0, load.connections.start, &plan)?;
            end(&mut endpoints, 0)?;
        }
    }
    let mut finished = Vec::with_capacity(load.connections.len());
    let at_once = load.cell.crowd.at_once;
    for together in groups(&load.connections, at_once) {
        let first = together.start;
        let plan = (load.plan)(first);
        // What the last connection has left must not meet the luck of this one.
        starts::sleep(drain.max(plan.drain)).map_err(LabError::Socket)?;
        drain = plan.drain;
        let slot = |index: u32| index - load.connections.start;
        if let Some(tap) = load.tap {
            tap.begins(slot(first)).map_err(LabError::Socket)?;
        }
        network.set(first, &plan.cell, plan.seed)?;
        if let Some(server) = &load.server {
            server.computing.begins(first).map_err(LabError::Socket)?;
        }
        let starts = Starts::ByLuck(plan.seed);
        let address = client_address(slot(first));
        let crowd = &plan.cell.crowd;
        let _crossing = Crossing::begin(crowd, network, address, starts, first, &super::say_alive)?;
        start(&mut endpoints, slot(first), first, &plan)?;
        for index in together.clone().skip(1) {
            start(&mut endpoints, slot(index), index, &(load.plan)(index))?;
        }
        for index in together {
            finished.push(end(&mut endpoints, slot(index))?);
            progress();
        }
    }
    endpoints.check_sockets()?;
    Ok(finished)
}

fn start<'a>(
    endpoints: &mut Endpoints<'a>,
    slot: u32,
    index: u32,
    plan: &Plan<'a>,
) -> Result<(), LabError> {
    let plan = endpoint::Plan {
        stack: plan.stack,
        exchange: plan.exchange.of_connection(index),
        transport: plan.transport,
    };
    endpoints.start(slot, index, plan)
}

/// Carries a connection that has started to its end.
fn end(endpoints: &mut Endpoints<'_>, slot: u32) -> Result<EndedConnection, LabError> {
    loop {
        if let Some(ended) = endpoints.take(slot) {
            return Ok(ended);
        }
        endpoints.step(None)?;
    }
}
