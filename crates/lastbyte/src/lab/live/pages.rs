//! The live engine's page loads: one navigation after the other, each from an address and so over a
//! link of its own.

use std::collections::BTreeMap;
use std::env;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use lastbyte_capture::{Packet, Records};
use lastbyte_link::Time;
use lastbyte_page::cdp::Tasks;
use lastbyte_pki::Store;
use lastbyte_tls::KeyLog;

use super::as_set_up;
use crate::lab::browser::{Navigation, ObservedPacket, Reader, Stage};
use crate::lab::cores::{EMULATOR_PRIORITY, available_cpus, keep_awake, take_core};
use crate::lab::emulator::{Emulator, EmulatorReport};
use crate::lab::inspection::Tap;
use crate::lab::luck::link_seed;
use crate::lab::programs::{self, Computing, Finder, Origin, PageError, Programs, Timing};
use crate::lab::runner::Job;
use crate::lab::shared::Shared;
use crate::lab::surroundings::{Host, SERVERS, Sockets, Surroundings, client_address, client_slot};
use crate::lab::{LabError, sys};
use crate::results::{Loaded, Row};

/// What was measured of a block of page loads.
pub(super) struct PageBlock {
    pub(super) rows: Vec<Row>,
    pub(super) loads: Vec<Loaded>,
    pub(super) emulator: EmulatorReport,
    pub(super) cpu: Duration,
    /// Of the programs, by name.
    pub(super) versions: BTreeMap<String, String>,
}

/// The chains of further origins are kept where all chains are.
pub(super) fn store() -> Result<Store, LabError> {
    Ok(Store::open(Store::default_dir()?))
}

/// Measures the page loads of a job; none if it was interrupted.
pub(super) fn measure(job: &Job<'_>, programs: &Finder) -> Result<Option<PageBlock>, LabError> {
    let store = store()?;
    let found = programs.find(&job.arm.arm, job.cell, store.folder())?;
    let programs = found.ok_or(PageError::OURS)?;
    let origins = programs::origins(job.arm, job.cell, &store)?;
    let folder = tempfile::Builder::new()
        .prefix("lastbyte-pages-")
        .tempdir_in(env::temp_dir())
        .map_err(PageError::Write)?;
    let cell = as_set_up(job);
    let surroundings = Surroundings::new(&cell, Sockets::OfPrograms)?;
    let count = job.connections.len() as u32;
    let shared = Shared::new(count);
    let cpus = available_cpus();
    let emulator = Emulator::new(
        &surroundings.client.device,
        &surroundings.server.device,
        &job.cell.link,
        link_seed(job.experiment.seed, &job.cell.link),
        job.connections.start,
        &shared,
        Some(Tap::of_pages(count).map_err(LabError::Emulator)?),
    )
    .within(job.cell.hosts.mtu);
    let (loaded, mut emulator) = thread::scope(|scope| {
        scope.spawn(|| keep_awake(&cpus, 0, &shared));
        let emulator = scope.spawn(|| {
            take_core(&cpus, 0, EMULATOR_PRIORITY);
            emulator.run()
        });
        let loads = scope.spawn(|| {
            let _stop = shared.stop_on_drop();
            load_all(job, &programs, &origins, folder.path(), &surroundings)
        });
        let loaded = loads.join();
        let emulator = emulator
            .join()
            .map_err(|_| LabError::Crashed("the link emulator"))?
            .map_err(LabError::Emulator)?;
        let loaded = loaded.map_err(|_| LabError::Crashed("the thread of page loads"))?;
        Ok::<_, LabError>((loaded?, emulator))
    })?;
    let Some(Loads { reader, all, cpu }) = loaded else {
        return Ok(None);
    };
    let (notes, unseen) = (emulator.observed.take()).map_or((Vec::new(), 0), |observed| {
        (observed.notes, observed.unseen)
    });
    let packets: Vec<Packet> = Records(&notes).collect();
    let mut rows = Vec::new();
    let mut finished = Vec::new();
    for ((slot, index), load) in (0..).zip(job.connections.clone()).zip(all) {
        let observed = packets.iter().map(|packet| ObservedPacket {
            at: packet.at,
            point: packet.point,
            bytes: &packet.bytes,
        });
        let observed = observed.filter(|packet| {
            load.counts(packet.at) && packet.client().and_then(client_slot) == Some(slot)
        });
        let observed: Vec<ObservedPacket<'_>> = observed.collect();
        let (mut row, loaded) = reader.read(
            index,
            job.id.block,
            load.navigation,
            &observed,
            unseen,
            &load.keys,
        );
        row.lateness.link = emulator
            .latest
            .get(slot as usize)
            .copied()
            .unwrap_or_default();
        rows.push(row);
        finished.push(loaded);
    }
    Ok(Some(PageBlock {
        rows,
        loads: finished,
        emulator,
        cpu,
        versions: programs.versions.clone(),
    }))
}

/// What the loads of a job have left.
struct Loads<'a> {
    reader: Reader<'a>,
    all: Vec<OneLoad>,
    /// Processor time of the thread that had them made.
    cpu: Duration,
}

struct OneLoad {
    navigation: Navigation,
    keys: KeyLog,
    /// The times whose packets are of the visit that counts; none if that has not begun.
    counted: Option<RangeInclusive<Time>>,
}

impl OneLoad {
    fn counts(&self, at: Time) -> bool {
        self.counted
            .as_ref()
            .is_some_and(|times| times.contains(&at))
    }
}

/// Loads the page of a job as often as it says; none if it was interrupted.
fn load_all<'a>(
    job: &'a Job<'_>,
    programs: &'a Programs,
    origins: &'a [Origin],
    folder: &'a Path,
    surroundings: &Surroundings,
) -> Result<Option<Loads<'a>>, LabError> {
    let timing = Timing {
        timeout: job.experiment.timeout,
        computing: Computing::OfMachine,
    };
    let mut stage = Stage::set(
        &job.arm.arm,
        job.cell,
        programs,
        origins,
        folder,
        timing,
        surroundings,
    )?;
    let mut all = Vec::new();
    for (slot, _) in (0..).zip(job.connections.clone()) {
        if job.interrupt.load(Ordering::Relaxed) {
            return Ok(None);
        }
        stage.ready()?;
        // All that it does leaves from there, and counts once it begins.
        Host::leave_from(client_address(slot), SERVERS, job.cell).map_err(LabError::Configure)?;
        let mut began = None;
        let mut begins = || {
            began = Some(sys::now());
            Ok(())
        };
        let navigation = stage.load(Tasks::Traced, &mut begins, &mut || ())?;
        let counted = began.map(|began| began..=sys::now());
        all.push(OneLoad {
            navigation,
            keys: stage.fresh_keys(),
            counted,
        });
        (job.ended)();
    }
    Ok(Some(Loads {
        reader: stage.reader(),
        all,
        cpu: sys::thread_cpu_time(),
    }))
}
