//! Inside the virtual kernel: what `lastbyte` does as its init. It measures one block and writes
//! its part.
//!
//! Where it is asked for more than one, each is measured by a process of its own (`fork_server`).
//!
//! The kernel's root is the host's file system, which it can only read. The job's folder is
//! mounted besides, for the part. Everything a guest says to the host is a line on its console.

pub(super) mod fork_server;
mod network;
mod pages;
mod serial;
mod tap;

use std::fs;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use lastbyte_link::{Direction, Link, Time};
use lastbyte_pki::Store;
use nix::mount::{MsFlags, mount};
use nix::sys::reboot::{RebootMode, reboot};
use nix::sys::resource::{Resource, setrlimit};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::connection::EndedConnection;
use super::endpoint::Transport;
use super::exchange::Exchange;
use super::inspection::{ObservedBlock, Retention};
use super::live::{Pace, Rig};
use super::losing::Losing;
use super::luck::link_seed;
use super::netem::{self, NetemError};
use super::peers::PeersBlock;
use super::programs::{Computing, ForeignServer, Programs};
use super::row::row;
use super::shortcuts::Shortcuts;
use super::starts::{self, Starts};
use super::surroundings::Sockets;
use super::sys;
use super::{LabError, PreparedArm};
use crate::results::{
    Beside, CpuCosts, EngineReport, Environment, PartHeader, Row, Validity, part_of,
};
use crate::study::{BlockId, Buffers, Cell, Emulation, EngineName, Experiment, Study};

/// The first argument that makes `lastbyte` a guest; the job's folder is the second.
pub(super) const COMMAND: &str = "__guest";
/// The file in the job's folder that says what is to be measured.
pub(super) const JOB: &str = "job.json";
/// The one with the [`Provenance`].
pub(super) const PROVENANCE: &str = "provenance.json";
/// The folder in the job's folder that chains are kept in: a link to the user's. The arm's is
/// there.
pub(super) const STORE: &str = "store";
/// What messages call the study.
const STUDY: &str = "study.toml";
/// What is asked besides: [`Instructions`], in as many bytes whatever that is.
pub(super) const INSTRUCTIONS: &str = "asked";
/// The same as the guest sees it.
const INSTRUCTIONS_IN_GUEST: &str = "/dev/lastbyte/asked";
/// What was observed, besides packets.
pub(super) const OBSERVED: &str = "seen.json";
/// What came of page loads, besides rows.
pub(super) const LOADS: &str = "loads.json";
/// The packets.
pub(super) const NOTES: &str = "notes";
/// The file in the job's folder that is the part, once the guest has reported [`DONE`].
pub(super) const PART: &str = "part.parquet";
/// What lines on the console begin with that are for the host.
pub(super) const PREFIX: &str = "lastbyte:";
/// The part is written.
pub(super) const DONE: &str = "done";
/// The block failed; the reason follows.
pub(super) const FAILED: &str = "failed";
/// What a reason begins with that is the disk's.
pub(super) const DISK: &str = "disk: ";
/// The guest could measure another block.
pub(super) const READY: &str = "ready";
/// The block goes on.
pub(super) const ALIVE: &str = "alive";
/// How many signs of life a block gives.
const SIGNS: u32 = 25;

/// When OpenSSL gets its randomness: after anything that may differ between two boots.
const RANDOMNESS_BEGINS: Time = Time(10_000_000_000);

/// Where the job's folder is mounted in the guest.
const JOB_MOUNT: &str = "/dev/lastbyte";
/// Where DNS servers have their files, in memory.
const DNS_MOUNT: &str = "/dev/dns";
/// Where a server that is not ours has them.
const SERVER_MOUNT: &str = "/dev/server";
/// Where a browser has memory that its processes share.
const SHARED_MOUNT: &str = "/dev/shm";

/// What a guest is to measure. It is the same wherever that is asked: OpenSSL's randomness depends
/// on where its objects are in memory, and that on the length of every text before.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct GuestJob {
    /// A study of one arm in one cell, as [`Study::to_toml`] writes it.
    pub(super) study: String,
    /// The number of the block.
    pub(super) block: u32,
    /// Indices of the connections.
    pub(super) connections: Range<u32>,
    /// [`CpuCosts`], if computing is to take time.
    pub(super) costs: Option<CpuCosts>,
    pub(super) shortcuts: Shortcuts,
    /// The programs of page loads, and of servers that are not ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) programs: Option<Programs>,
}

/// In place of a [`GuestJob`]: what a guest is to measure that is only to boot.
pub(super) const NOTHING: Option<GuestJob> = None;

/// What is asked of a guest that no row of its connections may tell, but of those that lose something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Instructions {
    /// What is to be kept besides rows.
    pub(super) retention: Retention,
    /// What connections lose besides what their luck has them lose, where the emulator is in user space.
    pub(super) losing: Losing,
}

impl Instructions {
    const BYTES: usize = Retention::BYTES + Losing::BYTES;

    pub(super) fn to_bytes(self) -> [u8; Instructions::BYTES] {
        let mut bytes = [0; Instructions::BYTES];
        let (retention, losing) = bytes.split_at_mut(Retention::BYTES);
        retention.copy_from_slice(&self.retention.to_bytes());
        losing.copy_from_slice(&self.losing.to_bytes());
        bytes
    }

    fn read(mut from: impl Read) -> io::Result<Instructions> {
        let (mut retention, mut losing) = ([0; Retention::BYTES], [0; Losing::BYTES]);
        from.read_exact(&mut retention)?;
        from.read_exact(&mut losing)?;
        Ok(Instructions {
            retention: Retention::from_bytes(retention),
            losing: Losing::from_bytes(losing),
        })
    }
}

/// What the part says besides. It is read when everything is measured.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Provenance {
    /// What computing takes on the host, beside the guest's times.
    pub(super) beside: Beside,
    /// The study of the block's cell alone, with all the names that it has, as [`Study::to_toml`] writes it.
    pub(super) study: String,
    /// The file of the whole study as it was read.
    pub(super) text: String,
    /// Which block of it.
    pub(super) id: BlockId,
    pub(super) engine: EngineName,
    pub(super) environment: Environment,
}

/// Whether netem can be the link of a cell.
///
/// # Errors
///
/// What it can't do, with the hint.
pub(super) fn check(cell: &Cell) -> Result<(), NetemError> {
    for direction in [&cell.link.forward, &cell.link.backward] {
        // A table of delays can be whatever it is.
        netem::options(direction, 0, netem::Table::Keep)?;
    }
    Ok(())
}

/// Measures the block of the job in `folder`, or one after the other, says so, and ends the kernel.
pub(super) fn main(folder: &Path) -> ! {
    let begun = begin(folder);
    if let Ok(begun) = &begun
        && fork_server::is_wanted(folder)
    {
        let Err(error) = fork_server::run(folder, begun);
        // No report of a block: the host finds the reason among what the console has, this if nothing else.
        let _ = writeln!(io::stdout(), "{}", to_line(error));
    } else {
        say_outcome(&begun.and_then(|begun| outcome_of(&begun)));
    }
    let _ = reboot(RebootMode::RB_POWER_OFF);
    // Only root can; whoever calls this by hand gets the exit code.
    std::process::exit(1);
}

/// What all blocks of a guest have in common.
struct Begun {
    store: Store,
    /// Their arm, as it begins in each way that it may; none if there is nothing to measure.
    arms: Vec<PreparedArm>,
}

/// What a guest does before it measures its first block, whose job is in `folder`.
fn begin(folder: &Path) -> Result<Begun, String> {
    mount_all(folder).map_err(|error| format!("can't mount: {error}"))?;
    // Sleeps end to the nanosecond.
    nix::sys::prctl::set_timerslack(1).map_err(to_line)?;
    // OpenSSL's randomness begins with the time, among others. What the guest has done so far, and
    // how often it has read the clock, depends on how long its paths are.
    starts::sleep_until(RANDOMNESS_BEGINS).map_err(to_line)?;
    openssl::rand::rand_bytes(&mut [0]).map_err(to_line)?;
    openssl::rand::rand_priv_bytes(&mut [0]).map_err(to_line)?;
    let store = Store::open(Path::new(JOB_MOUNT).join(STORE));
    let arms = match read_job()? {
        Some((_, study)) => prepare(&study, &store)?,
        None => Vec::new(),
    };
    Ok(Begun { store, arms })
}

/// The job that is mounted, with its study of one arm in one cell.
fn read_job() -> Result<Option<(GuestJob, Study)>, String> {
    let Some(job) = read::<Option<GuestJob>>(JOB)? else {
        return Ok(None);
    };
    let study = Study::parse(&job.study, Path::new(STUDY)).map_err(to_line)?;
    Ok(Some((job, study)))
}

/// The arm of a study, as it begins in each way that it may in its cell.
fn prepare(study: &Study, store: &Store) -> Result<Vec<PreparedArm>, String> {
    let (experiment, cell) = only(study)?;
    let arm = experiment.arms.first().ok_or(NO_BLOCK)?;
    let prepare = |session| PreparedArm::new(arm.beginning(session).into_owned(), store);
    (arm.possible_sessions(cell).into_iter())
        .map(prepare)
        .collect::<Result<_, _>>()
        .map_err(to_line)
}

const NO_BLOCK: &str = "the study has no such block";

/// The experiment of a study that has one, and its cell.
fn only(study: &Study) -> Result<(&Experiment, &Cell), &'static str> {
    let measure = study.measures.first().ok_or(NO_BLOCK)?;
    let cell = measure.experiment.cells.first().ok_or(NO_BLOCK)?;
    Ok((&measure.experiment, cell))
}

/// Measures the block of the job that is mounted.
fn outcome_of(begun: &Begun) -> Result<(), String> {
    // OpenSSL, whose seeds it has drawn, takes new ones after an hour.
    sys::begin_randomness_again().map_err(to_line)?;
    let Some((job, study)) = read_job()? else {
        return Ok(());
    };
    let instructions = read_instructions().map_err(to_line)?;
    let part = measure(&job, &study, begun, instructions)?;
    fs::write(Path::new(JOB_MOUNT).join(PART), part).map_err(|error| format!("{DISK}{error}"))
}

fn say_outcome(outcome: &Result<(), String>) {
    match outcome {
        Ok(()) => say(DONE),
        Err(reason) => say(&format!("{FAILED} {reason}")),
    }
}

fn mount_all(folder: &Path) -> io::Result<()> {
    let plain =
        |kind: &str, at: &str| mount(Some(kind), at, Some(kind), MsFlags::empty(), None::<&str>);
    plain("proc", "/proc")?;
    plain("devtmpfs", "/dev")?;
    // The host's tells how many processors that has, and programs ask.
    if Path::new("/sys").exists() {
        plain("tmpfs", "/sys")?;
    }
    mount_job(folder)
}

/// Mounts the job's folder, over that of another if there is one.
fn mount_job(folder: &Path) -> io::Result<()> {
    make_mount_point(JOB_MOUNT)?;
    mount(
        None::<&str>,
        JOB_MOUNT,
        Some("hostfs"),
        MsFlags::empty(),
        Some(folder),
    )?;
    Ok(())
}

/// The folder, which a block before may have made.
fn make_mount_point(at: &str) -> io::Result<()> {
    match fs::create_dir(at) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

fn mount_memory(at: &str) -> io::Result<()> {
    const TMPFS: &str = "tmpfs";
    make_mount_point(at)?;
    Ok(mount(
        Some(TMPFS),
        at,
        Some(TMPFS),
        MsFlags::empty(),
        None::<&str>,
    )?)
}

fn read<T: DeserializeOwned>(name: &str) -> Result<T, String> {
    let content = fs::read(Path::new(JOB_MOUNT).join(name)).map_err(to_line)?;
    serde_json::from_slice(&content).map_err(to_line)
}

/// The part file of the job's block.
fn measure(
    job: &GuestJob,
    study: &Study,
    begun: &Begun,
    instructions: Instructions,
) -> Result<Vec<u8>, String> {
    let (experiment, cell) = only(study)?;
    let Begun { store, arms } = begun;
    let arm = arms.first().ok_or(NO_BLOCK)?;
    if arm.delivery.is_some() {
        mount_memory(DNS_MOUNT).map_err(|error| format!("can't mount {DNS_MOUNT}: {error}"))?;
    }
    allow_sockets(cell.crowd.at_once).map_err(to_line)?;
    let costs = job.costs.unwrap_or_default();
    let set_up = job.shortcuts.set_up(arm, cell, experiment);

    let (rows, observed) = match (&job.programs, &cell.page, experiment.emulation) {
        (Some(programs), Some(_), _) => {
            let mut signs = Signs::of(&(0..1));
            let loaded = pages::run(job, experiment, &set_up, arm, programs, store, &mut || {
                signs.advance();
            });
            let (rows, loads) = loaded.map_err(to_line)?;
            let loads = serde_json::to_vec(&loads).map_err(to_line)?;
            fs::write(Path::new(JOB_MOUNT).join(LOADS), loads)
                .map_err(|error| format!("{DISK}{error}"))?;
            Ok((rows, None))
        }
        (Some(programs), None, _) if arm.arm.is_of_programs_over_quic() => {
            between_programs(job, experiment, cell, arm, programs, instructions)
        }
        (_, _, Emulation::Netem) => over_netem(
            job,
            experiment,
            &set_up,
            arms,
            costs,
            instructions.retention,
        ),
        (_, _, Emulation::Link) => {
            over_emulator(job, experiment, &set_up, arm, costs, instructions)
        }
    }
    .map_err(to_line)?;
    if let Some(observed) = observed {
        tell(&observed).map_err(|error| format!("{DISK}{error}"))?;
    }

    let chain = arm.digest();
    let provenance: Provenance = read(PROVENANCE)?;
    let study = Study {
        text: provenance.text,
        ..Study::parse(&provenance.study, Path::new(STUDY)).map_err(to_line)?
    };
    let environment = Environment {
        engine: provenance.engine,
        kernel: super::machine::kernel(),
        ..provenance.environment
    };
    let within = BlockId {
        measure: 0,
        cell: 0,
        ..provenance.id
    };
    let header = PartHeader::new(
        &study,
        within,
        job.connections.clone(),
        chain,
        EngineReport {
            beside: provenance.beside,
            computing: experiment.cpu.profile(arm.arm.server, cell.cpu_slowdown),
            buffers: cell.buffers(EngineName::Virtual),
            concurrency: cell.crowd.at_once,
            ..report(&rows, job.costs)
        },
        environment,
    )
    .ok_or(NO_BLOCK)?;
    let header = PartHeader {
        id: provenance.id,
        ..header
    };
    part_of(&header, &study, within, &rows).map_err(to_line)
}

/// Both ends of so many connections at once have a socket each.
fn allow_sockets(at_once: u32) -> io::Result<()> {
    /// What a process may open anyway, and what a guest opens besides sockets.
    const USUAL: u64 = 1024;
    const OTHERS: u64 = 100;
    let needed = 2 * u64::from(at_once) + OTHERS;
    if needed > USUAL {
        setrlimit(Resource::RLIMIT_NOFILE, needed, needed)?;
    }
    Ok(())
}

/// One connection after the other, over the kernel's own link emulator.
fn over_netem(
    job: &GuestJob,
    experiment: &Experiment,
    cell: &Cell,
    arms: &[PreparedArm],
    cpu: CpuCosts,
    retention: Retention,
) -> Result<(Vec<Row>, Option<ObservedBlock>), LabError> {
    let [usual, ..] = arms else {
        return Ok((Vec::new(), None));
    };
    let mut network = network::Network::new(cell, Sockets::of(usual.arm.server), job.shortcuts)?;
    let tap = tap::Tap::open(&network, cell, retention.captured)?;
    let plan = |index: u32| {
        let session = experiment.arms.first().map(|arm| arm.session(cell, index));
        let mut arms = arms.iter();
        let arm = arms.find(|arm| Some(arm.arm.resumption) == session);
        let arm = arm.unwrap_or(usual);
        let cell = cell.of_connection(index);
        serial::Plan {
            stack: arm.stack.as_ref(),
            exchange: Exchange::new(&arm.arm, &cell, job.shortcuts.wakes(&arm.arm, &cell), cpu),
            transport: Transport::of(arm, &cell, experiment.seed),
            seed: link_seed(experiment.seed, &cell.link),
            drain: drain(&cell.link),
            cell,
        }
    };
    let server = match &job.programs {
        Some(programs) => {
            mount_memory(SERVER_MOUNT).map_err(LabError::Configure)?;
            Some(ForeignServer {
                arm: usual,
                programs,
                folder: Path::new(SERVER_MOUNT),
                computing: Computing::in_guest(experiment, &usual.arm, cell),
            })
        }
        None => None,
    };
    let load = serial::Load {
        server,
        dns: (usual.delivery.as_ref()).map(|delivery| (delivery, Path::new(DNS_MOUNT))),
        cell,
        transport: usual.arm.transport,
        plan: &plan,
        connections: job.connections.clone(),
        timeout: experiment.timeout,
        shortcuts: job.shortcuts,
        tap: tap.as_ref(),
    };
    let mut signs = Signs::of(&job.connections);
    let finished = serial::run(&mut network, &load, &mut || signs.advance())?;
    let observed = match (tap, retention.is_nothing()) {
        (_, true) => None,
        (tap, false) => Some(ObservedBlock {
            secrets: retention.secrets_of(
                job.connections.start,
                finished.iter().map(EndedConnection::secrets),
            ),
            ..match tap {
                Some(tap) => tap.close().map_err(LabError::Socket)?,
                None => ObservedBlock::of_secrets(Vec::new()),
            }
        }),
    };
    let rows = finished
        .into_iter()
        .zip(job.connections.clone())
        .map(|(finished, index)| row(finished, index, job.block, Duration::ZERO));
    Ok((rows.collect(), observed))
}

/// One connection after the other, over the live engine's link emulator.
fn over_emulator(
    job: &GuestJob,
    experiment: &Experiment,
    cell: &Cell,
    arm: &PreparedArm,
    cpu: CpuCosts,
    instructions: Instructions,
) -> Result<(Vec<Row>, Option<ObservedBlock>), LabError> {
    let interrupt = AtomicBool::new(false);
    let rig = Rig::new(experiment, cell, arm, &interrupt)
        .in_virtual_time(cpu, job.shortcuts, Path::new(DNS_MOUNT))
        .beside_crowds(&say_alive)
        .keeping(instructions.retention)
        .losing(instructions.losing);
    let block = rig.block(job.block, job.connections.clone(), Pace::ALONE)?;
    Ok(block.map_or_else(|| (Vec::new(), None), |block| (block.rows, block.observed)))
}

/// One handshake after the other with programs over QUIC, over the live engine's link emulator.
fn between_programs(
    job: &GuestJob,
    experiment: &Experiment,
    cell: &Cell,
    arm: &PreparedArm,
    programs: &Programs,
    instructions: Instructions,
) -> Result<(Vec<Row>, Option<ObservedBlock>), LabError> {
    for place in [SERVER_MOUNT, SHARED_MOUNT] {
        mount_memory(place).map_err(LabError::Configure)?;
    }
    let interrupt = AtomicBool::new(false);
    let block = PeersBlock {
        experiment,
        cell,
        arm,
        programs,
        folder: Path::new(SERVER_MOUNT),
        number: job.block,
        connections: job.connections.clone(),
        losing: instructions.losing,
        interrupt: &interrupt,
    };
    let starts = Starts::ByLuck(link_seed(experiment.seed, &cell.link));
    let mut signs = Signs::of(&job.connections);
    let measured = block.measure(starts, &mut || signs.advance())?;
    Ok(measured.map_or_else(
        || (Vec::new(), None),
        |measured| {
            let observed = Some(measured.observed).filter(|_| !instructions.retention.is_nothing());
            (measured.rows, observed)
        },
    ))
}

/// Reads what is asked besides, without asking the allocator for anything: see [`GuestJob`].
fn read_instructions() -> io::Result<Instructions> {
    Instructions::read(fs::File::open(INSTRUCTIONS_IN_GUEST)?)
}

/// Leaves what was seen in the job's folder.
fn tell(observed: &ObservedBlock) -> io::Result<()> {
    let folder = Path::new(JOB_MOUNT);
    fs::write(folder.join(NOTES), &observed.notes)?;
    fs::write(folder.join(OBSERVED), serde_json::to_vec(observed)?)
}

/// How long a link may hold packets at most: the longest delay, and a full queue before it.
fn drain(link: &Link) -> Duration {
    const FULL_PACKET: usize = 1514;
    const LEAST: Duration = Duration::from_secs(1);
    /// Deviations that no table goes beyond.
    const FARTHEST: u32 = 5;
    let longest = |direction: &Direction| {
        let packet = direction
            .rate
            .map_or(Duration::ZERO, |rate| rate.serialisation(FULL_PACKET));
        direction.delay + direction.jitter * FARTHEST + packet * direction.queue
    };
    LEAST.max(longest(&link.forward) + longest(&link.backward))
}

fn report(rows: &[Row], cpu_costs: Option<CpuCosts>) -> EngineReport {
    let segments = (rows.iter()).flat_map(|row| row.transport.tcp().into_iter().flatten());
    let segments = segments.map(|tcp| u64::from(tcp.segments_out));
    let datagrams = (rows.iter()).flat_map(|row| row.transport.quic().into_iter().flatten());
    let packets = segments.chain(datagrams.map(|quic| u64::from(quic.datagrams)));
    EngineReport {
        cpu_costs,
        beside: Beside::default(),
        computing: None,
        buffers: Buffers::default(),
        concurrency: 1,
        lowered: 0,
        link_lateness_p99: Duration::ZERO,
        endpoint_wait_p50: Duration::ZERO,
        packets: packets.sum(),
        emulator_cpu: Duration::ZERO,
        endpoint_cpu: Duration::ZERO,
        validity: Validity::Valid,
    }
}

/// Tells the host now and then that the block goes on.
struct Signs {
    every: u32,
    since: u32,
}

impl Signs {
    fn of(connections: &Range<u32>) -> Self {
        Self {
            every: (connections.len() as u32 / SIGNS).max(1),
            since: 0,
        }
    }

    fn advance(&mut self) {
        self.since += 1;
        if self.since == self.every {
            say_alive();
            self.since = 0;
        }
    }
}

fn say_alive() {
    say(ALIVE);
}

fn say(what: &str) {
    // Nobody else can be known when the console is gone.
    let _ = writeln!(io::stdout(), "{PREFIX} {what}");
}

fn to_line(error: impl ToString) -> String {
    error.to_string().replace('\n', " ")
}
