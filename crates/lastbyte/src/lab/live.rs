//! The live engine: real time, the host's own TCP, a link emulator in user space.
//!
//! Every connection has a link of its own, so many can be under way at once and
//! each means what it would have meant alone, as long as the engine keeps up. So it
//! first measures what a connection costs in CPU time, chooses a concurrency that
//! leaves both its threads mostly idle, and gates every block on how late it was.

mod gate;
mod load;
mod pages;
mod rig;
#[cfg(test)]
mod tests;

pub(super) use rig::{Pace, Rig};

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::{self, File};
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use lastbyte_link::Bytes;

use self::gate::{gate, lateness_p99, median};
use self::rig::{Block, Cost};
use super::LabError;
use super::cores::LockedMemory;
use super::lock::lock;
use super::losing::Losing;
use super::peers::{Measured, PeersBlock};
use super::programs::{Finder, PageError};
use super::quic;
use super::runner::{BlockError, Ending, Engine, Job};
use super::starts::Starts;
use super::surroundings::MAX_CONNECTIONS;
use super::trial::try_handshake;
use crate::kernel;
use crate::results::{
    Beside, EngineReport, Environment, PartHeader, Row, SampleKey, Validity, expected_duration,
    write_part,
};
use crate::study::{Cell, ClientCpu, EngineName, Gso, Preset, Study, Work, check_servers};

/// Connections of one block: enough to fill the concurrency that the engine
/// chooses, few enough that arms alternate and a machine's drift meets all of them.
const BLOCK: u32 = 100;
/// Page loads of one block: what is seen of so many has room.
const PAGE_BLOCK: u32 = 5;
/// The share of its core that each thread may be busy, by the pilot's measure. Above
/// it, connections wait for each other: see docs/benchmarks/live-engine.md.
const ENDPOINT_LOAD: f64 = 0.15;
const EMULATOR_LOAD: f64 = 0.30;

/// The live engine. What it learns of a sample, its next block begins with.
pub struct LiveEngine {
    environment: Environment,
    /// By arm and transfer size: what pilots have measured,
    costs: Mutex<HashMap<(String, Work), Cost>>,
    /// and what is expected where there was none yet.
    guesses: Mutex<HashMap<(String, Work), Cost>>,
    paces: Mutex<HashMap<SampleKey, Pace>>,
    /// Servers that are not ours, and browsers.
    programs: Finder,
}

impl LiveEngine {
    /// An engine whose results come from `environment`.
    pub fn new(environment: Environment) -> Self {
        Self {
            environment,
            costs: Mutex::default(),
            guesses: Mutex::default(),
            paces: Mutex::default(),
            programs: Finder::default(),
        }
    }

    /// The pace that the block of a job begins with.
    fn pace(&self, job: &Job<'_>, rig: &Rig<'_>) -> Result<Pace, LabError> {
        if let Some(pace) = self.previous_pace(job) {
            return Ok(pace);
        }
        let key = (job.arm.arm.label.clone(), job.cell.work());
        let found = lock(&self.costs).get(&key).cloned();
        let cost = match found {
            Some(cost) => cost,
            None => rig.pilot()?,
        };
        lock(&self.costs).insert(key, cost.clone());
        Ok(pace(job, &cost))
    }

    /// The pace of the sample's block before.
    fn previous_pace(&self, job: &Job<'_>) -> Option<Pace> {
        lock(&self.paces).get(&job.sample()).copied()
    }

    /// As [`pace`](Self::pace), where nothing can be measured yet.
    fn expected_pace(&self, job: &Job<'_>) -> Option<Pace> {
        if let Some(pace) = self.previous_pace(job) {
            return Some(pace);
        }
        let mut guesses = lock(&self.guesses);
        let cost = match guesses.entry((job.arm.arm.label.clone(), job.cell.work())) {
            Entry::Occupied(found) => found.get().clone(),
            Entry::Vacant(unknown) => unknown.insert(guess(job)?).clone(),
        };
        Some(pace(job, &cost))
    }
}

impl Engine for LiveEngine {
    fn environment(&self) -> &Environment {
        &self.environment
    }

    fn check(&self, study: &Study) -> Result<(), String> {
        quic::check(study)?;
        for measure in &study.measures {
            check_servers(&measure.experiment)
                .map_err(|problem| format!("measure {:?}: {problem}", measure.id))?;
            for cell in &measure.experiment.cells {
                if cell.page.is_some() && (cell.has_loss() || cell.has_jitter()) {
                    return Err(format!(
                        "measure {:?}: the live engine has luck for one connection, and a page takes several: leave loss \
                         and jitter out, or use --engine virtual",
                        measure.id
                    ));
                }
                if let Some(requested) = cell.hosts.receive_buffer.bytes()
                    && let Some(most) = most_receive_buffer().filter(|most| *most < requested)
                {
                    return Err(format!(
                        "measure {:?} asks for a receive buffer of {requested}, and this host grants {most} (net.core.rmem_max): \
                         ask for less, or use --engine virtual",
                        measure.id
                    ));
                }
                if cell.population.is_some() {
                    return Err(format!(
                        "the live engine measures one network at a time, and no population ({}): that takes the virtual \
                         engine and its kernel: {}",
                        cell.link_name.as_deref().unwrap_or(&measure.id),
                        kernel::GET
                    ));
                }
                let what = match (cell.gso, cell.preset) {
                    _ if cell.client_cpu != ClientCpu::THIS => {
                        format!(
                            "client that computes on another CPU (client_cpu = \"{}\")",
                            cell.client_cpu
                        )
                    }
                    _ if !cell.crowd.is_alone() => {
                        "room for others on a connection's link (cross_traffic, at_once)".to_owned()
                    }
                    (Gso::On, _) => "super-packets (gso = \"on\")".to_owned(),
                    (_, Preset::Published2024) => format!("the preset {}", cell.preset),
                    (Gso::Off, Preset::Network) => continue,
                };
                return Err(format!(
                    "the live engine has no {what}, which measure {:?} asks for: use --engine virtual",
                    measure.id
                ));
            }
        }
        Ok(())
    }

    fn equip(&self, study: &Study) -> Result<(), LabError> {
        if study.has_foreign_servers() {
            self.programs.find_all(study, pages::store()?.folder())?;
        }
        Ok(())
    }

    fn block_size(&self, study: &Study) -> u32 {
        if study.has_pages() {
            return PAGE_BLOCK;
        }
        let sizes = study.measures.iter();
        let sizes = sizes.map(|measure| block_size(measure.experiment.concurrency));
        sizes.max().unwrap_or_else(|| block_size(None))
    }

    /// One block has the machine to itself.
    fn workers(&self, _: &Study) -> usize {
        1
    }

    fn expected_block(&self, job: &Job<'_>) -> Duration {
        if job.cell.page.is_some() {
            return Duration::from_secs(3) * (1 + job.connections.len() as u32);
        }
        let pace = self.expected_pace(job);
        pace.map_or(Duration::ZERO, |pace| {
            pace.expected(job.connections.len() as u32)
        })
    }

    fn measure(&self, job: &Job<'_>, draft: &Path) -> Result<Ending, BlockError> {
        if job.cell.page.is_some() {
            let _locked = LockedMemory::lock();
            return self.measure_pages(job, draft);
        }
        if job.arm.arm.is_of_programs_over_quic() {
            let _locked = LockedMemory::lock();
            return self.measure_peers(job, draft);
        }
        let retention = job.retention();
        let mut environment = self.environment.clone();
        let programs = if job.arm.arm.server.is_foreign() {
            let store = pages::store()?;
            let found = self.programs.find(&job.arm.arm, job.cell, store.folder());
            found.map_err(LabError::from)?
        } else {
            None
        };
        if let Some(programs) = &programs {
            environment.versions.extend(programs.versions.clone());
        }
        let cell = as_set_up(job);
        let rig = Rig::new(job.experiment, &cell, job.arm, job.interrupt)
            .telling(job.ended)
            .keeping(retention)
            .answered_by(programs.as_ref());
        let pace = self.pace(job, &rig)?;
        let Some(Undisturbed {
            block,
            pace,
            report,
        }) = undisturbed(job, &rig, pace)?
        else {
            return Ok(Ending::Interrupted);
        };
        lock(&self.paces).insert(job.sample(), pace);
        write(job, draft, report, environment, &block.rows)?;
        if let Some(observed) = block.observed {
            job.keep(observed);
        }
        Ok(Ending::Complete)
    }
}

impl LiveEngine {
    /// One handshake after the other with programs over QUIC.
    fn measure_peers(&self, job: &Job<'_>, draft: &Path) -> Result<Ending, BlockError> {
        let store = pages::store()?;
        let programs = (self.programs)
            .find(&job.arm.arm, job.cell, store.folder())
            .map_err(LabError::from)?
            .ok_or(LabError::Page(PageError::OURS))?;
        let folder = tempfile::Builder::new()
            .prefix("lastbyte-peers-")
            .tempdir_in(std::env::temp_dir())
            .map_err(|error| LabError::Page(PageError::Write(error)))?;
        let cell = as_set_up(job);
        let block = PeersBlock {
            experiment: job.experiment,
            cell: &cell,
            arm: job.arm,
            programs: &programs,
            folder: folder.path(),
            number: job.id.block,
            connections: job.connections.clone(),
            losing: Losing::default(),
            interrupt: job.interrupt,
        };
        let measured = block.measure(Starts::Now, &mut || (job.ended)())?;
        let Some(Measured {
            rows, mut emulator, ..
        }) = measured
        else {
            return Ok(Ending::Interrupted);
        };
        let gated = gate(&rows, &mut emulator.lateness, &job.cell.link);
        let mut measured = Block {
            rows,
            observed: None,
            lateness: emulator.lateness,
            emulator_cpu: emulator.cpu,
            endpoint_cpu: Duration::ZERO,
        };
        let report = report(job.cell, &mut measured, Pace::ALONE, 0, gated);
        let mut environment = self.environment.clone();
        environment.versions.extend(programs.versions.clone());
        write(job, draft, report, environment, &measured.rows)?;
        Ok(Ending::Complete)
    }

    /// One page after the other.
    fn measure_pages(&self, job: &Job<'_>, draft: &Path) -> Result<Ending, BlockError> {
        let Some(mut block) = pages::measure(job, &self.programs)? else {
            return Ok(Ending::Interrupted);
        };
        let gated = gate(&block.rows, &mut block.emulator.lateness, &job.cell.link);
        let mut measured = Block {
            rows: block.rows,
            observed: None,
            lateness: block.emulator.lateness,
            emulator_cpu: block.emulator.cpu,
            endpoint_cpu: block.cpu,
        };
        let report = report(job.cell, &mut measured, Pace::ALONE, 0, gated);
        let mut environment = self.environment.clone();
        environment.versions.extend(block.versions);
        write(job, draft, report, environment, &measured.rows)?;
        (job.write_loads(&block.loads)).map_err(BlockError::Write)?;
        Ok(Ending::Complete)
    }
}

/// The cell of a job, with the buffers that its hosts get.
fn as_set_up<'j>(job: &Job<'j>) -> Cow<'j, Cell> {
    job.cell.with_buffers(job.cell.buffers(EngineName::Live))
}

/// How large a receive buffer this host grants, if it says so.
fn most_receive_buffer() -> Option<Bytes> {
    let most = fs::read_to_string("/proc/sys/net/core/rmem_max").ok()?;
    most.trim().parse().ok().map(Bytes)
}

/// Writes the part of a job.
fn write(
    job: &Job<'_>,
    draft: &Path,
    report: EngineReport,
    environment: Environment,
    rows: &[Row],
) -> Result<(), BlockError> {
    let header = PartHeader::new(
        job.study,
        job.id,
        job.connections.clone(),
        job.arm.digest(),
        report,
        environment,
    )
    .ok_or_else(|| BlockError::Failed("the study has no such block".to_owned()))?;
    File::create(draft)
        .and_then(|file| write_part(file, &header, job.study, rows))
        .map_err(BlockError::Write)
}

/// A block that the engine kept out of as well as it can.
struct Undisturbed {
    block: Block,
    pace: Pace,
    report: EngineReport,
}

/// Measures a block, at a lower and lower concurrency until the engine does not disturb it;
/// none if it was interrupted.
fn undisturbed(
    job: &Job<'_>,
    rig: &Rig<'_>,
    mut pace: Pace,
) -> Result<Option<Undisturbed>, LabError> {
    let mut lowered = 0;
    loop {
        let Some(mut block) = rig.block(job.id.block, job.connections.clone(), pace)? else {
            return Ok(None);
        };
        let gated = gate(&block.rows, &mut block.lateness, &job.cell.link);
        if gated.is_err() && job.experiment.concurrency.is_none() && pace.concurrency > 1 {
            pace.concurrency /= 2;
            lowered += 1;
            continue;
        }
        let report = report(job.cell, &mut block, pace, lowered, gated);
        return Ok(Some(Undisturbed {
            block,
            pace,
            report,
        }));
    }
}

fn report(
    cell: &Cell,
    block: &mut Block,
    pace: Pace,
    lowered: u32,
    gated: Result<(), String>,
) -> EngineReport {
    EngineReport {
        cpu_costs: None,
        beside: Beside::default(),
        computing: None,
        buffers: cell.buffers(EngineName::Live),
        concurrency: pace.concurrency,
        lowered,
        link_lateness_p99: lateness_p99(&mut block.lateness),
        endpoint_wait_p50: median(block.rows.iter().map(|row| row.lateness.endpoint)),
        packets: block.lateness.len() as u64,
        emulator_cpu: block.emulator_cpu,
        endpoint_cpu: block.endpoint_cpu,
        validity: match gated {
            Ok(()) => Validity::Valid,
            Err(reason) => Validity::Invalid(reason),
        },
    }
}

/// The pace of connections that cost so much.
fn pace(job: &Job<'_>, cost: &Cost) -> Pace {
    let duration = expected_duration(&cost.exchange, &as_set_up(job), job.arm.arm.record_size)
        .min(job.experiment.timeout);
    // What another's server computes, no pilot tells.
    let requested = if job.arm.arm.server.is_foreign() {
        Some(job.experiment.concurrency.unwrap_or(1))
    } else {
        job.experiment.concurrency
    };
    Pace {
        concurrency: concurrency(requested, duration, cost),
        duration: duration + cost.endpoint,
    }
}

/// Connections at once that leave both threads mostly idle, unless so many are asked for.
fn concurrency(requested: Option<u32>, duration: Duration, cost: &Cost) -> u32 {
    let fits = |load: f64, cpu: Duration| {
        load * (duration + cost.endpoint).as_secs_f64() / cpu.as_secs_f64().max(1e-9)
    };
    match requested {
        Some(requested) => requested.max(1),
        None => {
            let most = fits(ENDPOINT_LOAD, cost.endpoint).min(fits(EMULATOR_LOAD, cost.emulator));
            (most as u32).clamp(1, BLOCK)
        }
    }
}

impl Pace {
    /// About how long so many connections take.
    fn expected(self, connections: u32) -> Duration {
        let rounds = f64::from(connections) / f64::from(self.concurrency);
        self.duration.mul_f64(rounds * 1.125 + 1.0)
    }
}

/// Connections of a block, when so many are asked to be under way at once: they are so for most of
/// it.
fn block_size(requested: Option<u32>) -> u32 {
    let requested = requested.unwrap_or(1);
    BLOCK.max(requested.saturating_mul(5)).min(MAX_CONNECTIONS)
}

/// What a connection may cost, before a pilot tells: of its handshake in memory, and of its
/// packets.
fn guess(job: &Job<'_>) -> Option<Cost> {
    /// Both ends, with TCP and the observer.
    const HANDSHAKE_FACTOR: u32 = 2;
    const PACKET: Duration = Duration::from_micros(10);

    let handshake = try_handshake(job)?;
    Some(Cost {
        endpoint: handshake.cpu * HANDSHAKE_FACTOR + PACKET * handshake.packets,
        emulator: PACKET * handshake.packets,
        exchange: handshake.exchange,
    })
}
