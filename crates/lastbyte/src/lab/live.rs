//! The live engine: real time, the host's own TCP, a link emulator in user space.
//!
//! Every connection has a link of its own, so many can be under way at once and
//! each means what it would have meant alone, as long as the engine keeps up. So it
//! first measures what a connection costs in CPU time, chooses a concurrency that
//! leaves both its threads mostly idle, and gates every block on how late it was.

mod blocks;
#[cfg(test)]
mod tests;

pub use blocks::LiveBlocks;
pub(super) use blocks::try_handshake;

use std::env;
use std::mem;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use lastbyte_link::{Direction, Link, Rate, Seed};
use lastbyte_tls::KeyLog;
use lastbyte_tls::observer::{self, Message, Observer, Side};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::mman::{MlockAllFlags, mlockall};
use nix::unistd::Pid;
use tempfile::TempDir;

use super::connection::{Exchange, Finished};
use super::dns::{self, PreparedDelivery, Resolver, Servers};
use super::emulator::{Emulator, EmulatorReport};
use super::endpoint::{self, EndpointReport, Load};
use super::prepare::PreparedArm;
use super::shared::Shared;
use super::shortcuts::{Shortcuts, Wakes};
use super::starts::Starts;
use super::surroundings::{MAX_CONNECTIONS, Surroundings, client_address};
use super::{DnsError, LabError, sys};
use crate::results::{
    CpuCosts, EarlyData, EngineReport, HelloDigest, Lateness, Look, Outcome, Percentile,
    Resumption, Row, Sample, Validity, Wire, expected_duration, look,
};
use crate::study::{Cell, Experiment, Work};

/// Connections of one block: enough to fill the concurrency that the engine
/// chooses, few enough that arms alternate and a machine's drift meets all of them.
const BLOCK: u32 = 100;
/// Connections of a pilot, one at a time; the first of them warm caches up.
const PILOT: u32 = 8;
/// The share of its core that each thread may be busy, by the pilot's measure. Above
/// it, connections wait for each other: see BENCHMARKS.md.
const ENDPOINT_LOAD: f64 = 0.15;
const EMULATOR_LOAD: f64 = 0.30;
/// A block passes the gate when the 99th percentile of packets' lateness is
/// below both of these...
const MAX_LATENESS: Duration = Duration::from_millis(2);
const MAX_LATENESS_SHARE: f64 = 0.05;
/// ...and when the median connection waited for others for less than this share of
/// the median time to the last byte.
const MAX_WAIT_SHARE: f64 = 0.003;
/// What no machine stays below: waking a sleeping thread.
const WAKE_UP: Duration = Duration::from_micros(100);

const EMULATOR_PRIORITY: i32 = 50;
const ENDPOINT_PRIORITY: i32 = 40;

/// Hears how a run goes.
pub trait Progress: Sync {
    /// All samples together will take about this long.
    fn expect(&self, total: Duration);
    /// A part of the work is done that was expected to take this long.
    fn advance(&self, part: Duration);
}

/// For whoever has another way to tell.
pub(super) struct Silent;

impl Progress for Silent {
    fn expect(&self, _: Duration) {}
    fn advance(&self, _: Duration) {}
}

/// Samples, and whether all were measured.
#[derive(Debug)]
pub struct Run {
    /// By cell, then by arm; those with no finished block are absent.
    pub samples: Vec<Sample>,
    /// Whether the run came to its end.
    pub ending: Ending,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Everything was measured.
    Complete,
    /// It was interrupted; finished blocks are kept.
    Interrupted,
}

/// The live engine.
pub struct LiveEngine<'a> {
    experiment: &'a Experiment,
    arms: &'a [PreparedArm],
    interrupt: &'a AtomicBool,
    progress: &'a dyn Progress,
    /// Those that are told, and so must be precise enough where that is asked for.
    percentiles: &'a [Percentile],
    time: InTime,
    cpu: CpuCosts,
    /// Where DNS servers may have files.
    scratch: PathBuf,
}

/// The clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InTime {
    Real,
    Virtual(Shortcuts),
}

/// What a connection of one arm with one transfer size costs, by a pilot.
#[derive(Clone, Copy, Debug)]
struct Cost {
    endpoint: Duration,
    emulator: Duration,
    wire: Wire,
}

/// What was measured of one block.
struct Block {
    rows: Vec<Row>,
    lateness: Vec<u32>,
    emulator_cpu: Duration,
    endpoint_cpu: Duration,
}

/// A sample that grows by blocks.
struct Growing {
    rows: Vec<Row>,
    /// How each block was measured, by its number.
    reports: Vec<(u32, EngineReport)>,
    concurrency: u32,
    /// How often the concurrency was lowered for the block under way.
    lowered: u32,
    duration: Duration,
}

impl<'a> LiveEngine<'a> {
    /// An engine for one experiment. `interrupt` ends it early when set.
    pub fn new(
        experiment: &'a Experiment,
        arms: &'a [PreparedArm],
        interrupt: &'a AtomicBool,
        progress: &'a dyn Progress,
    ) -> Self {
        Self {
            experiment,
            arms,
            interrupt,
            progress,
            percentiles: &Percentile::USUAL,
            time: InTime::Real,
            cpu: CpuCosts::default(),
            scratch: env::temp_dir(),
        }
    }

    /// The same engine for other percentiles than the usual ones.
    #[must_use]
    pub fn telling(self, percentiles: &'a [Percentile]) -> Self {
        Self {
            percentiles,
            ..self
        }
    }

    /// The same engine inside a kernel in which time stands still while it computes, and goes on
    /// by `cpu` instead. DNS servers may have files in `scratch`.
    pub(super) fn in_virtual_time(
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

    /// Measures one block, one connection at a time.
    pub(super) fn block_alone(
        &self,
        cell: &Cell,
        prepared: &PreparedArm,
        block: u32,
        indices: Range<u32>,
    ) -> Result<Vec<Row>, LabError> {
        let sample = Growing::new(1, Duration::ZERO);
        let measured = self.block(cell, prepared, block, indices, &sample)?;
        Ok(measured.map_or_else(Vec::new, |measured| measured.rows))
    }

    /// Measures every arm in every cell.
    pub fn run(&self) -> Result<Run, LabError> {
        lock_memory();
        let plan = self.plan()?;
        let total = plan.iter().flatten().map(|sample| self.expected(sample));
        self.progress.expect(total.sum());
        let mut run = Run {
            samples: Vec::new(),
            ending: Ending::Complete,
        };
        for (cell, mut samples) in plan.into_iter().enumerate() {
            let ending = self.run_cell(&self.experiment.cells[cell], &mut samples)?;
            for (arm, sample) in samples.into_iter().enumerate() {
                run.samples
                    .extend(sample.finish(arm, cell, &self.arms[arm]));
            }
            if ending == Ending::Interrupted {
                run.ending = ending;
                break;
            }
        }
        Ok(run)
    }

    /// Measures the costs and chooses each sample's concurrency.
    fn plan(&self) -> Result<Vec<Vec<Growing>>, LabError> {
        let mut costs: Vec<(usize, Work, Cost)> = Vec::new();
        let mut plan = Vec::new();
        for cell in &self.experiment.cells {
            let mut samples = Vec::new();
            for (arm, prepared) in self.arms.iter().enumerate() {
                let known = costs
                    .iter()
                    .find(|(known, work, _)| *known == arm && *work == cell.work());
                let cost = match known {
                    Some((_, _, cost)) => *cost,
                    None => {
                        let cost = self.pilot(prepared, cell)?;
                        costs.push((arm, cell.work(), cost));
                        cost
                    }
                };
                samples.push(self.begin(prepared, cell, &cost));
            }
            plan.push(samples);
        }
        Ok(plan)
    }

    /// A sample of which nothing is measured yet.
    fn begin(&self, prepared: &PreparedArm, cell: &Cell, cost: &Cost) -> Growing {
        let duration = expected_duration(&cost.wire, cell, prepared.arm.record_size)
            .min(self.experiment.timeout);
        let concurrency = self.concurrency(duration, cost);
        Growing::new(concurrency, duration + cost.endpoint)
    }

    fn concurrency(&self, duration: Duration, cost: &Cost) -> u32 {
        let fits = |load: f64, cpu: Duration| {
            load * (duration + cost.endpoint).as_secs_f64() / cpu.as_secs_f64().max(1e-9)
        };
        match self.experiment.concurrency {
            Some(asked) => asked.max(1),
            None => {
                let most =
                    fits(ENDPOINT_LOAD, cost.endpoint).min(fits(EMULATOR_LOAD, cost.emulator));
                (most as u32).clamp(1, BLOCK)
            }
        }
    }

    fn expected(&self, sample: &Growing) -> Duration {
        sample.expected(self.experiment.connections.most())
    }

    /// What one connection adds to that.
    fn each(&self, sample: &Growing) -> Duration {
        self.expected(sample) / self.experiment.connections.most()
    }

    /// A few connections, one at a time, over a link that hardly delays.
    fn pilot(&self, prepared: &PreparedArm, cell: &Cell) -> Result<Cost, LabError> {
        let pilot = Cell {
            link: Link::symmetric(
                Duration::from_millis(1),
                Direction {
                    rate: Rate::from_bits_per_second(1_000_000_000),
                    ..Direction::default()
                },
            ),
            ..cell.clone()
        };
        let load = Load {
            connections: PILOT,
            concurrency: 1,
            duration: Duration::ZERO,
            timeout: self.experiment.timeout.min(Duration::from_secs(2)),
            ..self.load(prepared, &pilot, 0)
        };
        let (endpoints, emulator) = self.surround(&pilot, &load, Seed(0), 0, &|| {})?;
        let wire = endpoints
            .finished
            .into_iter()
            .flatten()
            .last()
            .map_or(Wire::default(), |finished| wire_of(&finished));
        Ok(Cost {
            endpoint: endpoints.cpu / PILOT,
            emulator: emulator.cpu / PILOT,
            wire,
        })
    }

    /// Measures all arms in one cell, block by block in turn.
    fn run_cell(&self, cell: &Cell, samples: &mut [Growing]) -> Result<Ending, LabError> {
        let size = block_size(self.experiment.concurrency);
        let connections = self.experiment.connections.most();
        let stages = self.experiment.stages(size);
        for block in 0..connections.div_ceil(size) {
            // Where a stage has ended.
            if stages.contains(&block) && self.look(cell, samples) == Look::Precise {
                let rest = connections - block * size;
                for sample in samples.iter() {
                    self.progress.advance(self.each(sample) * rest);
                }
                break;
            }
            let first = block * size;
            let indices = first..connections.min(first + size);
            for (sample, prepared) in samples.iter_mut().zip(self.arms) {
                match self.undisturbed_block(cell, prepared, block, indices.clone(), sample)? {
                    Some(measured) => sample.add(block, measured, &cell.link),
                    None => return Ok(Ending::Interrupted),
                }
            }
        }
        Ok(Ending::Complete)
    }

    /// What the samples of a cell show so far.
    fn look(&self, cell: &Cell, samples: &[Growing]) -> Look {
        let rows = samples.iter().map(|sample| sample.rows.as_slice());
        let rows: Vec<_> = rows.collect();
        look(self.experiment, cell, &rows, self.percentiles)
    }

    /// Measures one block, at a lower and lower concurrency until the engine does not disturb it;
    /// none if it was interrupted.
    fn undisturbed_block(
        &self,
        cell: &Cell,
        prepared: &PreparedArm,
        block: u32,
        indices: Range<u32>,
        sample: &mut Growing,
    ) -> Result<Option<Block>, LabError> {
        loop {
            let Some(mut measured) = self.block(cell, prepared, block, indices.clone(), sample)?
            else {
                return Ok(None);
            };
            let disturbed = gate(&measured.rows, &mut measured.lateness, &cell.link);
            let lower = self.experiment.concurrency.is_none() && sample.concurrency > 1;
            if disturbed.is_ok() || !lower {
                return Ok(Some(measured));
            }
            sample.concurrency /= 2;
            sample.lowered += 1;
        }
    }

    /// Measures one block; none if it was interrupted.
    fn block(
        &self,
        cell: &Cell,
        prepared: &PreparedArm,
        block: u32,
        indices: Range<u32>,
        sample: &Growing,
    ) -> Result<Option<Block>, LabError> {
        let first_index = indices.start;
        let seed = link_seed(self.experiment.seed, &cell.link);
        let load = Load {
            starts: match self.time {
                InTime::Real => Starts::Now,
                InTime::Virtual(_) => Starts::ByLuck(seed),
            },
            connections: indices.end - indices.start,
            first_index,
            concurrency: sample.concurrency,
            duration: sample.duration,
            ..self.load(prepared, cell, block)
        };
        let part = self.each(sample);
        let (endpoints, emulator) = self.surround(cell, &load, seed, first_index, &|| {
            self.progress.advance(part);
        })?;
        if endpoints.finished.iter().any(Option::is_none) {
            return Ok(None);
        }
        let rows = endpoints
            .finished
            .into_iter()
            .flatten()
            .zip(&emulator.latest)
            .enumerate()
            .map(|(slot, (finished, latest))| {
                row(finished, first_index + slot as u32, block, *latest)
            })
            .collect();
        Ok(Some(Block {
            rows,
            lateness: emulator.lateness,
            emulator_cpu: emulator.cpu,
            endpoint_cpu: endpoints.cpu,
        }))
    }

    fn load<'l>(&self, prepared: &'l PreparedArm, cell: &Cell, block: u32) -> Load<'l> {
        let (wakes, shortcuts) = match self.time {
            InTime::Real => (Wakes::Arrival, Shortcuts::Taken),
            InTime::Virtual(shortcuts) => (shortcuts.wakes(&prepared.arm, cell), shortcuts),
        };
        Load {
            stack: prepared.stack.as_ref(),
            delivery: prepared.delivery.as_ref(),
            first_index: 0,
            exchange: Exchange::new(&prepared.arm, cell, wakes, self.cpu),
            congestion: cell.congestion,
            connections: 0,
            concurrency: 1,
            duration: Duration::ZERO,
            timeout: self.experiment.timeout,
            starts: Starts::Now,
            shortcuts,
            seed: self.experiment.seed.0 ^ u64::from(block),
        }
    }

    /// Runs a load in surroundings of its own.
    fn surround(
        &self,
        cell: &Cell,
        load: &Load<'_>,
        seed: Seed,
        first_index: u32,
        progress: &(dyn Fn() + Sync),
    ) -> Result<(EndpointReport, EmulatorReport), LabError> {
        let surroundings = Surroundings::new(cell)?;
        // The resolver has a link like those of connections.
        let slots = load.connections + u32::from(load.delivery.is_some());
        let shared = Shared::new(slots);
        let cpus = available_cpus();
        let emulator = Emulator::new(
            &surroundings.client.device,
            &surroundings.server.device,
            &cell.link,
            seed,
            first_index,
            &shared,
        );
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
                take_core(&cpus, 1, ENDPOINT_PRIORITY);
                let interrupt = self.interrupt;
                endpoint::run(&surroundings, load, resolver, &shared, interrupt, progress)
            });
            let endpoints = endpoints.join();
            let emulator = emulator
                .join()
                .map_err(|_| LabError::Crashed("the link emulator"))?
                .map_err(LabError::Emulator)?;
            let endpoints = endpoints.map_err(|_| LabError::Crashed("the endpoints' thread"))??;
            Ok((endpoints, emulator))
        })
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

impl Growing {
    fn new(concurrency: u32, duration: Duration) -> Self {
        Self {
            rows: Vec::new(),
            reports: Vec::new(),
            concurrency,
            lowered: 0,
            duration,
        }
    }

    /// About how long so many connections take.
    fn expected(&self, connections: u32) -> Duration {
        let rounds = f64::from(connections) / f64::from(self.concurrency);
        self.duration.mul_f64(rounds * 1.125 + 1.0)
    }

    /// Takes the block that was under way, and judges it.
    fn add(&mut self, number: u32, mut block: Block, link: &Link) {
        let validity = match gate(&block.rows, &mut block.lateness, link) {
            Ok(()) => Validity::Valid,
            Err(reason) => Validity::Invalid(reason),
        };
        let report = EngineReport {
            cpu_costs: None,
            concurrency: self.concurrency,
            lowered: mem::take(&mut self.lowered),
            link_lateness_p99: lateness_p99(&mut block.lateness),
            endpoint_wait_p50: median(block.rows.iter().map(|row| row.lateness.endpoint)),
            packets: block.lateness.len() as u64,
            emulator_cpu: block.emulator_cpu,
            endpoint_cpu: block.endpoint_cpu,
            validity,
        };
        self.reports.push((number, report));
        self.rows.extend(block.rows);
    }

    /// The sample, as reading its blocks from a folder of results would give it; none without a block.
    fn finish(self, arm: usize, cell: usize, prepared: &PreparedArm) -> Option<Sample> {
        Some(Sample {
            arm,
            cell,
            chain_digest: prepared.digest(),
            engine: EngineReport::of_blocks(&self.reports)?,
            rows: self.rows,
        })
    }
}

/// Connections of a block, when so many are asked to be under way at once: they are so for most of
/// it.
fn block_size(asked: Option<u32>) -> u32 {
    let asked = asked.unwrap_or(1);
    BLOCK.max(asked.saturating_mul(5)).min(MAX_CONNECTIONS)
}

/// Where the randomness of one link comes from: each link of a grid has luck of its own.
pub(super) fn link_seed(seed: Seed, link: &Link) -> Seed {
    let direction = |direction: &Direction| {
        format!(
            "{} {} {} {} {} {}",
            direction.delay.as_nanos(),
            direction.jitter.as_nanos(),
            direction.distribution,
            direction.loss,
            direction.rate.map_or(0, Rate::bits_per_second),
            direction.queue
        )
    };
    seed.part(&format!(
        "{}; {}",
        direction(&link.forward),
        direction(&link.backward)
    ))
}

/// Whether the engine has kept out of these connections' way, or how it did not.
fn gate(rows: &[Row], lateness: &mut [u32], link: &Link) -> Result<(), String> {
    let one_way = link.forward.delay.min(link.backward.delay);
    let limit = MAX_LATENESS
        .min(one_way.mul_f64(MAX_LATENESS_SHARE))
        .max(WAKE_UP);
    let late = lateness_p99(lateness);
    if late > limit {
        return Err(format!(
            "1 % of packets were more than {late:.0?} late, against a limit of {limit:.0?}: \
             close other programs or use a machine with more cores"
        ));
    }
    let completed = || rows.iter().filter(|row| row.outcome == Outcome::Completed);
    let wait = median(completed().map(|row| row.lateness.endpoint));
    let limit = median(completed().filter_map(|row| row.times.ttlb))
        .mul_f64(MAX_WAIT_SHARE)
        .max(WAKE_UP);
    if wait > limit {
        return Err(format!(
            "connections waited {wait:.0?} for each other, against a limit of {limit:.0?}: \
             ask for a lower --concurrency"
        ));
    }
    Ok(())
}

fn lateness_p99(lateness: &mut [u32]) -> Duration {
    let rank = lateness.len() * 99 / 100;
    if rank >= lateness.len() {
        return Duration::ZERO;
    }
    let (_, p99, _) = lateness.select_nth_unstable(rank);
    Duration::from_nanos(u64::from(*p99))
}

fn median(durations: impl Iterator<Item = Duration>) -> Duration {
    let mut durations: Vec<_> = durations.collect();
    let middle = durations.len() / 2;
    if middle >= durations.len() {
        return Duration::ZERO;
    }
    *durations.select_nth_unstable(middle).1
}

pub(super) fn row(finished: Finished, index: u32, block: u32, latest: Duration) -> Row {
    Row {
        index,
        block,
        wire: wire_of(&finished),
        outcome: finished.outcome,
        times: finished.times,
        dns: finished.dns,
        client_tcp: finished.client_tcp,
        server_tcp: finished.server_tcp,
        lateness: Lateness {
            link: latest,
            endpoint: finished.waited,
        },
    }
}

fn wire_of(finished: &Finished) -> Wire {
    let mss = finished.client_tcp.map_or(0, |tcp| tcp.mss);
    Wire {
        ticket_wire_bytes: finished.ticket_bytes as u32,
        ..wire(&finished.observer, &finished.keys, mss)
    }
}

/// What the observer read of a connection's handshake. Without an MSS (0), segments are not known.
pub(super) fn wire(observer: &Observer, keys: &KeyLog, mss: u32) -> Wire {
    let seen = observer.observe(keys);
    let mut flights = seen.flights.iter().peekable();
    let mut next = |sender| {
        let flight = flights.next_if(|flight| flight.sender == sender);
        flight.map_or(0, |flight| flight.wire_bytes as u32)
    };
    let client_hello_wire_bytes = next(Side::Client);
    let (hello_retry_request_wire_bytes, second_client_hello_wire_bytes) =
        match seen.bytes(Message::HelloRetryRequest) {
            Some(_) => (next(Side::Server), next(Side::Client)),
            None => (0, 0),
        };
    let rest = |sender| {
        let rest = flights.clone().filter(|flight| flight.sender == sender);
        rest.map(|flight| flight.wire_bytes as u32).sum()
    };
    Wire {
        messages: seen.messages,
        client_hello_segments: client_hello_wire_bytes
            .checked_div(mss)
            .map_or(0, |_| client_hello_wire_bytes.div_ceil(mss)),
        client_hello_wire_bytes,
        hello_retry_request_wire_bytes,
        second_client_hello_wire_bytes,
        server_flight_wire_bytes: rest(Side::Server),
        client_finish_wire_bytes: rest(Side::Client),
        ticket_wire_bytes: 0,
        group: seen.group,
        cipher_suite: seen.cipher_suite,
        signature: seen.signature,
        client_signature: seen.client_signature,
        certificates: seen.certificates.len() as u32,
        resumption: match seen.resumed {
            Some(true) => Resumption::Resumed,
            _ => Resumption::Full,
        },
        hello_digest: match (seen.offered_certificates, seen.answered_certificates) {
            (None, None) => HelloDigest::None,
            (Some(_), None) => HelloDigest::Offered,
            (offered, answered) if offered == answered => HelloDigest::Echoed,
            _ => HelloDigest::Contradicted,
        },
        early_data: match seen.early_data {
            observer::EarlyData::NotOffered => EarlyData::None,
            observer::EarlyData::Offered => EarlyData::Refused,
            observer::EarlyData::Accepted => EarlyData::Accepted,
        },
    }
}

/// Pages must not be fetched while a packet waits. Where the limit on locked memory is too low,
/// lateness shows it.
fn lock_memory() {
    let _ = mlockall(MlockAllFlags::MCL_CURRENT | MlockAllFlags::MCL_FUTURE);
}

/// The CPUs that this process may use.
pub(crate) fn available_cpus() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(Pid::from_raw(0)) else {
        return Vec::new();
    };
    (0..CpuSet::count())
        .filter(|cpu| set.is_set(*cpu).unwrap_or(false))
        .collect()
}

/// Gives the calling thread a core and real-time scheduling, as far as the machine
/// allows: where it does not, lateness shows it.
fn take_core(cpus: &[usize], thread: usize, priority: i32) {
    pin(cpus, thread);
    let _ = nix::sys::prctl::set_timerslack(1);
    let _ = sys::schedule_fifo(priority);
}

/// Spins on a core while nothing else runs there. A core that sleeps between packets wakes
/// up late and works slowly at first, a virtual one above all; a server's core under load
/// does neither.
fn keep_awake(cpus: &[usize], thread: usize, shared: &Shared) {
    if cpus.len() < 2 || sys::schedule_idle().is_err() {
        return;
    }
    pin(cpus, thread);
    while !shared.is_stopped() {
        std::hint::spin_loop();
    }
}

fn pin(cpus: &[usize], thread: usize) {
    if cpus.len() > 1
        && let Some(cpu) = cpus.iter().rev().nth(thread)
    {
        let mut set = CpuSet::new();
        if set.set(*cpu).is_ok() {
            let _ = sched_setaffinity(Pid::from_raw(0), &set);
        }
    }
}
