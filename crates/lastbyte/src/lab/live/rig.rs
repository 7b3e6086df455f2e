//! What carries the connections of a block: two threads, in namespaces made for it alone.

use std::env;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use lastbyte_link::{Direction, Link, Rate, Seed};
use tempfile::TempDir;

use super::load::{self, EndpointReport, Load};
use crate::lab::connection::EndedConnection;
use crate::lab::cores::{EMULATOR_PRIORITY, LockedMemory, available_cpus, keep_awake, take_core};
use crate::lab::delivery::PreparedDelivery;
use crate::lab::dns::{self, Resolver, Servers};
use crate::lab::emulator::{Emulator, EmulatorReport};
use crate::lab::endpoint::Transport;
use crate::lab::exchange::Exchange;
use crate::lab::inspection::{ObservedBlock, Retention, Tap};
use crate::lab::losing::Losing;
use crate::lab::luck::link_seed;
use crate::lab::process::Process;
use crate::lab::programs::{Computing, ForeignServer, PageError, Programs};
use crate::lab::row::{exchange_of, row};
use crate::lab::shared::Shared;
use crate::lab::shortcuts::{Shortcuts, WakePolicy};
use crate::lab::starts::Starts;
use crate::lab::surroundings::{Sockets, Surroundings, client_address};
use crate::lab::{DnsError, LabError, PreparedArm};
use crate::results::{self, CpuCosts, Row};
use crate::study::{Cell, Experiment};

/// Connections of a pilot, one at a time; the first of them warm caches up.
const PILOT: u32 = 8;

const ENDPOINT_PRIORITY: i32 = 40;

/// Carries the blocks of one sample.
pub(in crate::lab) struct Rig<'a> {
    experiment: &'a Experiment,
    cell: &'a Cell,
    arm: &'a PreparedArm,
    interrupt: &'a AtomicBool,
    /// Hears of each connection of a block that has ended.
    ended: &'a (dyn Fn() + Sync),
    /// Hears that the transfers beside a connection go on.
    crossing: &'a (dyn Fn() + Sync),
    time: InTime,
    cpu: CpuCosts,
    /// What is kept of blocks besides rows.
    retention: Retention,
    /// What the connections of blocks lose besides what their luck has them lose.
    losing: Losing,
    /// The server's, if it is not ours.
    programs: Option<&'a Programs>,
    /// Where DNS servers, and servers that are not ours, may have files.
    scratch: PathBuf,
}

/// The clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InTime {
    Real,
    Virtual(Shortcuts),
}

/// How the connections of a block follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lab) struct Pace {
    /// Connections that are under way at once.
    pub(in crate::lab) concurrency: u32,
    /// About how long one takes: starts are spread over it.
    pub(in crate::lab) duration: Duration,
}

impl Pace {
    /// One connection after the other.
    pub(in crate::lab) const ALONE: Pace = Pace {
        concurrency: 1,
        duration: Duration::ZERO,
    };
}

/// What was measured of one block.
pub(in crate::lab) struct Block {
    pub(in crate::lab) rows: Vec<Row>,
    /// What was to be kept besides.
    pub(in crate::lab) observed: Option<ObservedBlock>,
    /// Of each packet, in nanoseconds.
    pub(super) lateness: Vec<u32>,
    pub(super) emulator_cpu: Duration,
    pub(super) endpoint_cpu: Duration,
}

/// What a connection of one arm with one transfer size costs.
#[derive(Clone, Debug)]
pub(super) struct Cost {
    pub(super) endpoint: Duration,
    pub(super) emulator: Duration,
    pub(super) exchange: results::Exchange,
}

impl<'a> Rig<'a> {
    /// A rig for one sample. `interrupt` ends a block early when set.
    pub(in crate::lab) fn new(
        experiment: &'a Experiment,
        cell: &'a Cell,
        arm: &'a PreparedArm,
        interrupt: &'a AtomicBool,
    ) -> Self {
        Self {
            experiment,
            cell,
            arm,
            interrupt,
            ended: &|| (),
            crossing: &|| (),
            time: InTime::Real,
            cpu: CpuCosts::default(),
            retention: Retention::default(),
            losing: Losing::default(),
            programs: None,
            scratch: env::temp_dir(),
        }
    }

    /// The same rig, which tells of each connection that has ended.
    pub(super) fn telling(self, ended: &'a (dyn Fn() + Sync)) -> Self {
        Self { ended, ..self }
    }

    /// The same rig, which tells that what is beside a connection goes on.
    pub(in crate::lab) fn beside_crowds(self, crossing: &'a (dyn Fn() + Sync)) -> Self {
        Self { crossing, ..self }
    }

    /// The same rig, which keeps this of a block.
    pub(in crate::lab) fn keeping(self, retention: Retention) -> Self {
        Self { retention, ..self }
    }

    /// The same rig, with these segments of a block lost.
    pub(in crate::lab) fn losing(self, losing: Losing) -> Self {
        Self { losing, ..self }
    }

    /// The same rig, whose server is these programs, if there are any, and not ours.
    pub(super) fn answered_by(self, programs: Option<&'a Programs>) -> Self {
        Self { programs, ..self }
    }

    /// The same rig inside a kernel in which time stands still while it computes, and goes on
    /// by `cpu` instead. DNS servers may have files in `scratch`.
    pub(in crate::lab) fn in_virtual_time(
        self,
        cpu: CpuCosts,
        shortcuts: Shortcuts,
        scratch: &Path,
    ) -> Self {
        Self {
            time: InTime::Virtual(shortcuts),
            cpu,
            scratch: scratch.to_owned(),
            ..self
        }
    }

    /// Measures the connections of block `number`; none if it was interrupted.
    pub(in crate::lab) fn block(
        &self,
        number: u32,
        indices: Range<u32>,
        pace: Pace,
    ) -> Result<Option<Block>, LabError> {
        let first_index = indices.start;
        let seed = link_seed(self.experiment.seed, &self.cell.link);
        let load = Load {
            starts: match self.time {
                InTime::Real => Starts::Now,
                // What a loss costs is to be that of the loss alone.
                InTime::Virtual(_) if self.losing != Losing::default() => {
                    Starts::ByLuckOf(seed, first_index)
                }
                InTime::Virtual(_) => Starts::ByLuck(seed),
            },
            connections: indices.end - indices.start,
            first_index,
            concurrency: pace.concurrency,
            duration: pace.duration,
            ..self.load(self.cell, number)
        };
        let tap = Tap::new(self.cell, self.retention.captured).map_err(LabError::Emulator)?;
        let (endpoints, mut emulator) =
            self.carry(self.cell, &load, seed, tap, self.losing, self.ended)?;
        if endpoints.finished.iter().any(Option::is_none) {
            return Ok(None);
        }
        let observed = if self.retention.is_nothing() {
            None
        } else {
            let finished = endpoints.finished.iter().flatten();
            Some(ObservedBlock {
                secrets: self
                    .retention
                    .secrets_of(first_index, finished.map(EndedConnection::secrets)),
                ..(emulator.observed.take())
                    .unwrap_or_else(|| ObservedBlock::of_secrets(Vec::new()))
            })
        };
        let finished = endpoints.finished.into_iter().flatten();
        let rows = finished
            .zip(&emulator.latest)
            .zip(indices)
            .map(|((finished, latest), index)| row(finished, index, number, *latest));
        Ok(Some(Block {
            rows: rows.collect(),
            observed,
            lateness: emulator.lateness,
            emulator_cpu: emulator.cpu,
            endpoint_cpu: endpoints.cpu,
        }))
    }

    /// A few connections, one at a time, over a link that hardly delays.
    pub(super) fn pilot(&self) -> Result<Cost, LabError> {
        let direction = Direction {
            rate: Rate::from_bits_per_second(1_000_000_000),
            ..Direction::default()
        };
        let cell = Cell {
            link: Link::symmetric(Duration::from_millis(1), direction),
            ..self.cell.clone()
        };
        let load = Load {
            connections: PILOT,
            timeout: self.experiment.timeout.min(Duration::from_secs(2)),
            ..self.load(&cell, 0)
        };
        let (endpoints, emulator) =
            self.carry(&cell, &load, Seed(0), None, Losing::default(), &|| ())?;
        let last = endpoints.finished.into_iter().flatten().last();
        Ok(Cost {
            endpoint: endpoints.cpu / PILOT,
            emulator: emulator.cpu / PILOT,
            exchange: last.map_or_else(results::Exchange::default, |finished| {
                exchange_of(&finished)
            }),
        })
    }

    /// One connection after the other, of which there are none yet.
    fn load<'b>(&self, cell: &'b Cell, block: u32) -> Load<'b>
    where
        'a: 'b,
    {
        let (wakes, shortcuts) = match self.time {
            InTime::Real => (WakePolicy::Arrival, Shortcuts::Taken),
            InTime::Virtual(shortcuts) => (shortcuts.wakes(&self.arm.arm, cell), shortcuts),
        };
        Load {
            stack: self.arm.stack.as_ref(),
            delivery: self.arm.delivery.as_ref(),
            first_index: 0,
            exchange: Exchange::new(&self.arm.arm, cell, wakes, self.cpu),
            transport: Transport::of(self.arm, cell, self.experiment.seed),
            congestion: cell.congestion,
            preset: cell.preset,
            connections: 0,
            concurrency: Pace::ALONE.concurrency,
            duration: Pace::ALONE.duration,
            timeout: self.experiment.timeout,
            starts: Starts::Now,
            shortcuts,
            seed: self.experiment.seed.0 ^ u64::from(block),
            crowd: &cell.crowd,
            crossing: self.crossing,
        }
    }

    /// Carries a load in surroundings of its own.
    fn carry(
        &self,
        cell: &Cell,
        load: &Load<'_>,
        seed: Seed,
        tap: Option<Tap>,
        losing: Losing,
        ended: &(dyn Fn() + Sync),
    ) -> Result<(EndpointReport, EmulatorReport), LabError> {
        // A guest's memory is nobody else's.
        let _locked = (self.time == InTime::Real).then(LockedMemory::lock);
        let surroundings = Surroundings::new(cell, Sockets::of(self.arm.arm.server))?;
        // The resolver has a link like those of connections.
        let slots = load.connections + u32::from(load.delivery.is_some());
        let shared = Shared::new(slots);
        let cpus = available_cpus();
        let emulator = Emulator::new(
            &surroundings.client.device,
            &surroundings.server.device,
            &cell.link,
            seed,
            load.first_index,
            &shared,
            tap,
        )
        .within(cell.hosts.mtu)
        .together(cell.crowd.at_once)
        .losing(losing);
        thread::scope(|scope| {
            for thread in 0..2 {
                scope.spawn({
                    let (cpus, shared) = (&cpus, &shared);
                    move || keep_awake(cpus, thread, shared)
                });
            }
            let emulator = scope.spawn(|| {
                take_core(&cpus, 0, EMULATOR_PRIORITY);
                emulator.run()
            });
            // A thread of its own: it changes namespaces and scheduling for good.
            let endpoints = scope.spawn(|| {
                let _stop = shared.stop_on_drop();
                // Before this thread has a core and a priority, which they would have as well.
                let dns = (load.delivery)
                    .map(|delivery| self.start_dns(delivery, &surroundings, load.connections))
                    .transpose()?;
                let (_dns, resolver) = dns.unzip();
                let _server = (self.programs)
                    .map(|programs| self.start_server(programs, cell, &surroundings))
                    .transpose()?;
                take_core(&cpus, 1, ENDPOINT_PRIORITY);
                load::run(
                    &surroundings,
                    load,
                    resolver,
                    &shared,
                    self.interrupt,
                    ended,
                )
            });
            let endpoints = endpoints.join();
            let emulator = emulator
                .join()
                .map_err(|_| LabError::Crashed("the link emulator"))?
                .map_err(LabError::Emulator)?;
            let endpoints = endpoints.map_err(|_| LabError::Crashed("the endpoints' thread"))??;
            match emulator.dropped {
                0 => Ok((endpoints, emulator)),
                dropped => Err(LabError::Dropped(dropped)),
            }
        })
    }

    /// Starts the arm's server with a folder of its own.
    fn start_server(
        &self,
        programs: &Programs,
        cell: &Cell,
        surroundings: &Surroundings,
    ) -> Result<(Process, TempDir), LabError> {
        let folder = tempfile::Builder::new()
            .prefix("lastbyte-server-")
            .tempdir_in(&self.scratch)
            .map_err(PageError::Write)?;
        let server = ForeignServer {
            arm: self.arm,
            programs,
            folder: folder.path(),
            computing: Computing::OfMachine,
        };
        Ok((server.start(cell, surroundings)?, folder))
    }

    /// Starts DNS servers with a folder of their own. The resolver asks from the address of `slot`.
    fn start_dns(
        &self,
        delivery: &PreparedDelivery,
        surroundings: &Surroundings,
        slot: u32,
    ) -> Result<((Servers, TempDir), Resolver), LabError> {
        let folder = tempfile::Builder::new()
            .prefix("lastbyte-dns-")
            .tempdir_in(&self.scratch)
            .map_err(DnsError::Write)?;
        let address = client_address(slot);
        let published = &delivery.published;
        let (servers, resolver) = dns::start(published, address, folder.path(), surroundings)?;
        Ok(((servers, folder), resolver))
    }
}
