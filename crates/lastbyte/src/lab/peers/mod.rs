//! QUIC with programs that people run, at one end or at both, over the emulator in user space: in a guest, and on this
//! machine. Their handshakes are read off the datagrams that the emulator carries, and nothing is asked of them.

mod own;
mod programs;
mod wire;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use lastbyte_tls::KeyLog;

use self::programs::Files;
pub(super) use self::wire::{Seen, packets};
use super::cores::{EMULATOR_PRIORITY, available_cpus, keep_awake, take_core};
use super::emulator::{Emulator, EmulatorReport};
use super::inspection::{ObservedBlock, Tap};
use super::losing::Losing;
use super::luck::link_seed;
use super::programs::{PageError, Programs};
use super::quic::QuicSettings;
use super::shared::Shared;
use super::starts::{self, Starts};
use super::surroundings::{Host, SERVERS, Sides, Sockets, Surroundings, client_address};
use super::sys;
use super::{LabError, PreparedArm};
use crate::results::Row;
use crate::study::{Cell, Experiment};

/// How long a connection may take at most: longer than any of these ends waits for the other.
const TIMEOUT: Duration = Duration::from_secs(90);
/// How often is looked whether a client has ended.
const LOOK: Duration = Duration::from_millis(1);

/// The connections of a block.
pub(super) struct PeersBlock<'a> {
    pub(super) experiment: &'a Experiment,
    pub(super) cell: &'a Cell,
    pub(super) arm: &'a PreparedArm,
    pub(super) programs: &'a Programs,
    /// For files of the block's own.
    pub(super) folder: &'a Path,
    pub(super) number: u32,
    pub(super) connections: Range<u32>,
    /// Which datagram each of them loses, whatever its luck.
    pub(super) losing: Losing,
    pub(super) interrupt: &'a AtomicBool,
}

/// What was measured of them.
pub(super) struct Measured {
    pub(super) rows: Vec<Row>,
    /// All of their packets, and their secrets.
    pub(super) observed: ObservedBlock,
    pub(super) emulator: EmulatorReport,
}

/// How the client of a connection ended.
struct ClientOutcome {
    keys: KeyLog,
    reason: Option<String>,
}

impl PeersBlock<'_> {
    /// Measures them, one after the other; none if it was interrupted. `starts` says when each begins, and `ended` hears of each
    /// one that has.
    pub(super) fn measure(
        &self,
        starts: Starts,
        ended: &mut (dyn FnMut() + Send),
    ) -> Result<Option<Measured>, LabError> {
        let files = Files::write(self.arm, self.cell, self.folder)?;
        let surroundings = Surroundings::new(self.cell, Sockets::OfPrograms)?;
        let count = self.connections.len() as u32;
        let shared = Shared::new(count);
        let cpus = available_cpus();
        let emulator = Emulator::new(
            &surroundings.client.device,
            &surroundings.server.device,
            &self.cell.link,
            link_seed(self.experiment.seed, &self.cell.link),
            self.connections.start,
            &shared,
            Some(Tap::of_pages(count).map_err(LabError::Emulator)?),
        )
        .within(self.cell.hosts.mtu)
        .losing(self.losing);
        let (carried, mut emulator) = thread::scope(|scope| {
            scope.spawn(|| keep_awake(&cpus, 0, &shared));
            let emulator = scope.spawn(|| {
                take_core(&cpus, 0, EMULATOR_PRIORITY);
                emulator.run()
            });
            // A thread of its own: it changes namespaces for good.
            let ends = scope.spawn(|| {
                let _stop = shared.stop_on_drop();
                self.carry(&files, &surroundings, starts, ended)
            });
            let carried = ends.join();
            let emulator = emulator
                .join()
                .map_err(|_| LabError::Crashed("the link emulator"))?
                .map_err(LabError::Emulator)?;
            let carried = carried.map_err(|_| LabError::Crashed("the thread of the ends"))?;
            Ok::<_, LabError>((carried?, emulator))
        })?;
        let Some(asked) = carried else {
            return Ok(None);
        };
        let observed =
            (emulator.observed.take()).unwrap_or_else(|| ObservedBlock::of_secrets(Vec::new()));
        if observed.unseen > 0 {
            return Err(PageError::Page(format!(
                "{} packets had no room in memory: measure fewer connections",
                observed.unseen
            ))
            .into());
        }
        let all = packets(&observed.notes);
        let mut rows = Vec::new();
        let mut secrets = Vec::new();
        for ((slot, index), asked) in (0..).zip(self.connections.clone()).zip(asked) {
            let latest = emulator.latest.get(slot as usize).copied();
            let seen = Seen::of(&all, slot, &asked.keys);
            let reason = asked.reason.as_deref();
            rows.push(seen.row(index, self.number, latest.unwrap_or_default(), reason));
            secrets.push((index, asked.keys.as_str().to_owned()));
        }
        Ok(Some(Measured {
            rows,
            observed: ObservedBlock {
                secrets,
                ..observed
            },
            emulator,
        }))
    }

    /// Has the ends talk; none if it was interrupted.
    fn carry(
        &self,
        files: &Files<'_>,
        surroundings: &Surroundings,
        starts: Starts,
        ended: &mut (dyn FnMut() + Send),
    ) -> Result<Option<Vec<ClientOutcome>>, LabError> {
        let settings = QuicSettings::new(self.arm, self.cell, self.experiment.seed);
        let first = self.connections.start;
        surroundings.enter_server()?;
        if self.arm.arm.server.is_foreign() {
            let program = self.programs.server.as_deref().ok_or(PageError::OURS)?;
            let _server = files.serve(program)?;
            surroundings.enter_client()?;
            return self.ask_all(files, &settings, starts, ended);
        }
        let socket = own::listen().map_err(LabError::Socket)?;
        let is_over = AtomicBool::new(false);
        let (asked, answered) = thread::scope(|scope| {
            let server = scope.spawn(|| {
                own::answer(&socket, &settings, first, || {
                    is_over.load(Ordering::Relaxed)
                })
            });
            let asked = surroundings
                .enter_client()
                .and_then(|()| self.ask_all(files, &settings, starts, ended));
            is_over.store(true, Ordering::Relaxed);
            (asked, server.join())
        });
        let answered = answered.map_err(|_| LabError::Crashed("a server of QUIC"))?;
        let answered: BTreeMap<u32, KeyLog> = answered.map_err(LabError::Socket)?;
        let Some(mut asked) = asked? else {
            return Ok(None);
        };
        for (slot, keys) in answered {
            // A client may have none.
            if let Some(asked) = asked.get_mut(slot as usize) {
                keys.as_str()
                    .lines()
                    .for_each(|line| asked.keys.push_line(line));
            }
        }
        Ok(Some(asked))
    }

    fn ask_all(
        &self,
        files: &Files<'_>,
        settings: &QuicSettings<'_>,
        starts: Starts,
        ended: &mut (dyn FnMut() + Send),
    ) -> Result<Option<Vec<ClientOutcome>>, LabError> {
        // What one has left must not meet the next.
        let drain = self.cell.link.rtt() + Duration::from_secs(1);
        let mut all = Vec::new();
        let mut known = 0;
        for (slot, index) in (0..).zip(self.connections.clone()) {
            if self.interrupt.load(Ordering::Relaxed) {
                return Ok(None);
            }
            Host::leave_from(client_address(slot), SERVERS, self.cell)
                .map_err(LabError::Configure)?;
            starts.wait(index).map_err(LabError::Socket)?;
            let mut asked = self.ask(files, settings, slot, index)?;
            starts::sleep(drain).map_err(LabError::Socket)?;
            let (keys, length) = files.secrets(known);
            known = length;
            keys.as_str()
                .lines()
                .for_each(|line| asked.keys.push_line(line));
            all.push(asked);
            ended();
        }
        Ok(Some(all))
    }

    fn ask(
        &self,
        files: &Files<'_>,
        settings: &QuicSettings<'_>,
        slot: u32,
        index: u32,
    ) -> Result<ClientOutcome, LabError> {
        let timeout = self.experiment.timeout.min(TIMEOUT);
        let Some(program) = &self.programs.client else {
            let name = self.arm.chain.server_name();
            let ended = own::ask(settings, index, slot, name, timeout, self.interrupt);
            let own::Ended { keys, reason } = ended.map_err(LabError::Socket)?;
            return Ok(ClientOutcome { keys, reason });
        };
        let begun = sys::now();
        let mut process = files.ask(program, timeout)?;
        let reason = loop {
            if let Some(succeeded) = process.succeeded() {
                break (!succeeded).then(|| process.last_line());
            }
            // It has the same time, and ends by itself before.
            if sys::now().since(begun) > timeout + Duration::from_secs(5)
                || self.interrupt.load(Ordering::Relaxed)
            {
                break Some("it had no more time".to_owned());
            }
            starts::sleep(LOOK).map_err(LabError::Socket)?;
        };
        Ok(ClientOutcome {
            keys: KeyLog::default(),
            reason,
        })
    }
}
