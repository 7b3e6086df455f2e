//! The guest's page loads: one navigation after the other, each over a link that is idle.

use std::path::Path;

use lastbyte_capture::Point;
use lastbyte_pki::Store;

use super::network::Network;
use super::{GuestJob, SHARED_MOUNT, drain, mount_memory};
use crate::lab::browser::{self, ObservedPacket, Stage};
use crate::lab::luck::link_seed;
use crate::lab::programs::{self, Computing, Programs, Timing};
use crate::lab::starts::{self, Starts};
use crate::lab::surroundings::{Sides, Sockets};
use crate::lab::sys::memory::PLACES;
use crate::lab::sys::ring::{Direction, PacketRing};
use crate::lab::{LabError, PreparedArm};
use crate::results::{Loaded, Row};
use crate::study::{Cell, Experiment};
use lastbyte_link::Side;
use lastbyte_page::cdp::Tasks;

/// Where server and browser have their files, in memory.
const MOUNT: &str = "/dev/pages";
/// The most memory of a ring, in bytes.
const MOST: usize = 128 << 20;
/// The longest packet, with what the kernel writes before it.
const FRAME: usize = 2048;

/// Loads the page of a cell as often as the job says. `progress` hears of each navigation that
/// ends, and now and then of one that takes long.
pub(super) fn run(
    job: &GuestJob,
    experiment: &Experiment,
    cell: &Cell,
    arm: &PreparedArm,
    programs: &Programs,
    store: &Store,
    progress: &mut dyn FnMut(),
) -> Result<(Vec<Row>, Vec<Loaded>), LabError> {
    for place in [MOUNT, SHARED_MOUNT] {
        mount_memory(place).map_err(LabError::Configure)?;
    }
    let origins = programs::origins(arm, cell, store)?;
    let mut network = Network::new(cell, Sockets::OfPrograms, job.shortcuts)?;
    let seed = link_seed(experiment.seed, &cell.link);
    let computing = Computing::in_guest(experiment, &arm.arm, cell);
    let mut stage = Stage::set(
        &arm.arm,
        cell,
        programs,
        &origins,
        Path::new(MOUNT),
        Timing {
            timeout: experiment.timeout,
            computing,
        },
        &network,
    )?;
    progress();
    let drain = drain(&cell.link);
    let packets = browser::expected_packets(cell)?.min(MOST / FRAME);
    let [place, _] = PLACES;
    let mut rows = Vec::new();
    let mut loads = Vec::new();
    for index in job.connections.clone() {
        stage.ready()?;
        computing.begins(index).map_err(LabError::Configure)?;
        let mut ring = None;
        let mut begins = || -> Result<(), LabError> {
            // What came before must not meet the luck of this one.
            starts::sleep(drain).map_err(LabError::Socket)?;
            let opened = network.at_router(Side::Client, |interface| {
                PacketRing::open(
                    interface,
                    usize::from(cell.hosts.mtu.bytes()),
                    packets,
                    place,
                )
            });
            ring = Some(opened.map_err(LabError::Configure)?);
            network.set(index, cell, seed)?;
            // The namespaces that it has entered are not the browser's, which has its own.
            network.enter_client()?;
            Starts::ByLuck(seed).wait(index).map_err(LabError::Socket)
        };
        // Tasks take no time here.
        let load = stage.load(Tasks::Untraced, &mut begins, progress)?;
        let (observed, unseen) = match &ring {
            Some(ring) => {
                ring.stop().map_err(LabError::Configure)?;
                (Some(ring.packets()), ring.unseen())
            }
            None => (None, 0),
        };
        let observed = observed.into_iter().flatten().map(|packet| ObservedPacket {
            at: packet.at,
            point: match packet.direction {
                // What comes in from the client was sent by it.
                Direction::Received => Point::SentByClient,
                Direction::Sent => Point::DeliveredToClient,
            },
            bytes: packet.bytes,
        });
        let observed: Vec<ObservedPacket<'_>> = observed.collect();
        let keys = stage.fresh_keys();
        let (row, loaded) = stage
            .reader()
            .read(index, job.block, load, &observed, unseen, &keys);
        rows.push(row);
        loads.push(loaded);
        progress();
    }
    Ok((rows, loads))
}
