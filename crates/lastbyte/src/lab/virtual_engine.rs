//! The virtual engine: blocks are measured in User-Mode Linux kernels in which time skips all
//! waiting. Their TCP and their netem are Linux's own, and their init is this very program (`guest`).

mod guests;

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use lastbyte_link::{Bytes, Distribution};
use lastbyte_pki::Store;
use lastbyte_sizes::Resumption;

pub use self::guests::GuestTerm;
use self::guests::{Boot, Counter, Fate, Guests, Order};
use super::calibration::CalibratedCosts;
use super::cores::processors;
use super::guest::{self, GuestJob, Instructions, Provenance};
use super::inspection::ObservedBlock;
use super::interception::Interception;
use super::runner::{BlockError, Engine, Job};
use super::scratch::Scratch;
use super::shortcuts::Shortcuts;
use super::surroundings::SINCE_VALID;
use super::trial::try_handshake;
use super::{Ending, Grants, LabError, PageError, boot, crowd, model, programs};
use crate::kernel::Kernel;
use crate::results::{Environment, KERNEL_SOURCE};
use crate::study::{
    Arm, ArmChain, Cell, Client, Congestion, CpuTime, Emulation, EngineName, Experiment, Gso,
    PageSource, Population, Preset, Study, Traffic, check_servers, is_modelled,
};

/// How long a guest may give no sign of life. A block gives some twenty-five in seconds.
const PATIENCE: Duration = Duration::from_secs(120);
/// The guest's memory. It takes no more of the host's than it uses.
const MEMORY: Bytes = Bytes(256 << 20);
/// That of a guest with a browser.
const PAGE_MEMORY: Bytes = Bytes(2 << 30);
/// That of one with a server that is not ours, but for what that serves.
const SERVER_MEMORY: Bytes = Bytes(512 << 20);
/// How often an object may be in memory: in a file, in a server, on its way.
const COPIES: u64 = 4;

/// What this machine grants guests, each of which may use 256 MB.
///
/// # Errors
///
/// What is missing for any to run, with the hint.
pub fn can_boot() -> Result<Grants, String> {
    boot::examine(MEMORY)
}

/// The virtual engine.
pub struct VirtualEngine {
    guests: Guests,
    chains: Store,
    /// The folder that calibrations are kept in.
    cache: PathBuf,
    environment: Environment,
    patience: Duration,
    memory: Bytes,
    shortcuts: Shortcuts,
    term: GuestTerm,
    costs: CalibratedCosts,
    /// Servers that are not ours, and browsers.
    programs: programs::Finder,
}

impl VirtualEngine {
    /// An engine with this kernel, which intercepts its processes so. `program` is `lastbyte` itself, `cache` the folder that arms'
    /// chains and calibrations are kept in, and `environment` that of the machine.
    pub fn new(
        kernel: Kernel,
        interception: Interception,
        program: PathBuf,
        cache: PathBuf,
        mut environment: Environment,
    ) -> Self {
        environment.engine = EngineName::Virtual;
        environment.kernel = format!("Linux {}", kernel.info.version);
        for (name, version) in [
            (KERNEL_SOURCE, kernel.source()),
            ("kernel sha256", kernel.info.sha256.clone()),
        ] {
            environment.versions.insert(name.to_owned(), version);
        }
        Self {
            guests: Guests::new(program, kernel, interception),
            chains: Store::open(cache.clone()),
            costs: CalibratedCosts::new(Store::open(cache.clone()), cache.clone()),
            cache,
            environment,
            patience: PATIENCE,
            memory: MEMORY,
            shortcuts: Shortcuts::default(),
            term: GuestTerm::Blocks,
            programs: programs::Finder::default(),
        }
    }

    /// Gives a guest up that has given no sign of life for so long.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Has endpoints take the ways round system calls that they have, or not.
    #[must_use]
    pub fn with_shortcuts(self, shortcuts: Shortcuts) -> Self {
        Self { shortcuts, ..self }
    }

    /// Has each guest measure so many blocks, if it can measure more than one.
    #[must_use]
    pub fn with_term(self, term: GuestTerm) -> Self {
        Self { term, ..self }
    }

    /// How many blocks the guest of an arm in a cell measures. What other people's programs leave
    /// behind is not known; and BBR begins at a phase that the kernel draws (`bbr_reset_probe_bw_mode`
    /// in net/ipv4/tcp_bbr.c), whose numbers go on from block to block.
    fn term_of(&self, arm: &Arm, cell: &Cell) -> GuestTerm {
        if cell.page.is_some() || arm.has_foreign_ends() || cell.congestion == Congestion::Bbr {
            GuestTerm::Block
        } else {
            self.term
        }
    }

    /// Has arms' chains there instead. The path of its folder is absolute: guests are given a link
    /// to it.
    #[must_use]
    pub fn with_chains(self, chains: Store) -> Self {
        let costs = CalibratedCosts::new(chains.clone(), self.cache.clone());
        Self {
            chains,
            costs,
            ..self
        }
    }

    /// Keeps calibrations in this folder instead.
    #[must_use]
    pub fn with_cache(self, cache: PathBuf) -> Self {
        let costs = CalibratedCosts::new(self.chains.clone(), cache.clone());
        Self {
            cache,
            costs,
            ..self
        }
    }

    /// Gives each guest so much memory.
    #[must_use]
    pub fn with_memory(self, memory: Bytes) -> Self {
        Self { memory, ..self }
    }

    /// What the programs of an arm say that they are.
    pub(super) fn versions(
        &self,
        arm: &Arm,
        cell: &Cell,
    ) -> Result<BTreeMap<String, String>, PageError> {
        let found = self.programs.find(arm, cell, &self.cache)?;
        Ok(found.map(|programs| programs.versions).unwrap_or_default())
    }

    /// What the guest of an arm in a cell may use.
    fn memory_of(&self, arm: &Arm, cell: &Cell) -> Bytes {
        let least = match (&cell.page, arm.has_foreign_ends()) {
            (Some(_), _) => PAGE_MEMORY,
            (None, _) if arm.client == Client::Chromium => PAGE_MEMORY,
            (None, true) => Bytes(SERVER_MEMORY.0 + COPIES * cell.data.0),
            (None, false) => Bytes(0),
        };
        /// Of both ends, with what is under way.
        const CONNECTION: u64 = 256 << 10;
        let together = Bytes(u64::from(cell.crowd.at_once) * CONNECTION);
        self.memory.max(least).max(together)
    }

    /// What the largest guest of a study may use.
    fn memory_for(&self, study: &Study) -> Bytes {
        let experiments = study.measures.iter().map(|measure| &measure.experiment);
        let memories = experiments.flat_map(|experiment| {
            let arms = experiment.arms.iter();
            arms.flat_map(|arm| {
                experiment
                    .cells
                    .iter()
                    .map(|cell| self.memory_of(arm, cell))
            })
        });
        memories.max().unwrap_or(self.memory)
    }

    fn guest_job(&self, job: &Job<'_>, sample: &Study) -> Result<GuestJob, BlockError> {
        let costs = match job.experiment.cpu {
            CpuTime::None | CpuTime::Beside | CpuTime::Laptop | CpuTime::Phone => None,
            CpuTime::Calibrated => Some(self.costs.of(job.arm)?),
        };
        Ok(GuestJob {
            study: sample.to_toml(),
            block: job.id.block,
            connections: job.connections.clone(),
            costs,
            shortcuts: self.shortcuts,
            programs: None,
        })
    }

    /// Writes all that a guest reads into the job's folder.
    fn prepare(
        &self,
        job: &Job<'_>,
        sample: &Study,
        instructions: Instructions,
        folder: &Path,
    ) -> Result<(), BlockError> {
        let mut provenance = Provenance {
            beside: self.costs.beside(job)?,
            study: listing(job, named(job)).to_toml(),
            text: job.study.text.clone(),
            id: job.id,
            engine: self.environment.engine,
            environment: self.environment.clone(),
        };
        let mut guest_job = self.guest_job(job, sample)?;
        guest_job.programs = (self.programs)
            .find(&job.arm.arm, job.cell, &self.cache)
            .map_err(LabError::from)?;
        if let Some(programs) = &guest_job.programs {
            let versions = &mut provenance.environment.versions;
            versions.extend(programs.versions.clone());
        }
        let write = || -> io::Result<()> {
            fs::write(folder.join(guest::JOB), serde_json::to_vec(&guest_job)?)?;
            fs::write(folder.join(guest::INSTRUCTIONS), instructions.to_bytes())?;
            fs::write(
                folder.join(guest::PROVENANCE),
                serde_json::to_vec(&provenance)?,
            )?;
            symlink(self.chains.folder(), folder.join(guest::STORE))
        };
        write().map_err(BlockError::Write)
    }

    /// Boots a guest that has nothing to measure.
    ///
    /// # Errors
    ///
    /// Why it can't be started, or how it ended instead.
    pub fn try_boot(&self) -> Result<(), String> {
        let ended = || -> io::Result<Fate> {
            let folder = Scratch::new_in(&std::env::temp_dir())?;
            fs::write(
                folder.path().join(guest::JOB),
                serde_json::to_vec(&guest::NOTHING)?,
            )?;
            self.guests.measure(&Order {
                boot: Boot {
                    arm: None,
                    wall_clock: Duration::ZERO,
                    seed: 0,
                    memory: self.memory,
                    counter: Counter::Host,
                    computing: None,
                },
                term: GuestTerm::Block,
                cpu: None,
                shortcuts: self.shortcuts,
                folder: folder.path(),
                interrupt: &AtomicBool::new(false),
                patience: self.patience,
            })
        };
        match ended() {
            Ok(Fate::Done) => Ok(()),
            Ok(Fate::Failed(reason)) => Err(reason),
            Ok(Fate::Interrupted) => Err("interrupted".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Engine for VirtualEngine {
    fn environment(&self) -> &Environment {
        &self.environment
    }

    fn check(&self, study: &Study) -> Result<(), String> {
        model::check(study)?;
        for measure in &study.measures {
            let experiment = &measure.experiment;
            (check_draws(experiment).and_then(|()| check_servers(experiment)))
                .map_err(|problem| format!("measure {:?}: {problem}", measure.id))?;
            for cell in &experiment.cells {
                if cell.cpu_slowdown > 1 && experiment.cpu == CpuTime::None {
                    return Err(format!(
                        "measure {:?}: with cpu = \"none\" computing takes no time, however slow it is: leave cpu or \
                         cpu_slowdown out",
                        measure.id
                    ));
                }
                let checked = match experiment.emulation {
                    Emulation::Netem => guest::check(cell).map_err(|error| error.to_string()),
                    Emulation::Link if cell.preset == Preset::Published2024 => {
                        Err(format!("the preset {} is made of netem", cell.preset))
                    }
                    Emulation::Link if cell.gso == Gso::On => {
                        Err("emulation = \"link\" has no super-packets: leave gso off".to_owned())
                    }
                    Emulation::Link => Ok(()),
                };
                checked
                    .map_err(|problem| format!("measure {:?}, {cell}: {problem}", measure.id))?;
            }
        }
        Ok(())
    }

    fn equip(&self, study: &Study) -> Result<(), LabError> {
        if study.has_foreign_servers() {
            self.programs.find_all(study, &self.cache)?;
            let memory = self.memory_for(study);
            boot::room(memory).map_err(|left| PageError::Memory { memory, left })?;
        }
        Ok(())
    }

    fn block_size(&self, study: &Study) -> u32 {
        model::block_size(study)
    }

    /// Guests have one processor each, of those that this process may use and, in a container, has
    /// its share of; those with other people's programs only as far as there is memory for them.
    fn workers(&self, study: &Study) -> usize {
        let processors = processors();
        if study.has_foreign_servers() {
            let each = self.memory_for(study);
            // Where there is too little for one, that was reported.
            let room = boot::room(each).unwrap_or(each);
            boot::at_once(processors, room, each)
        } else {
            processors
        }
    }

    fn expected_block(&self, job: &Job<'_>) -> Duration {
        const BOOT: Duration = Duration::from_millis(250);
        const CONNECTION: Duration = Duration::from_micros(1500);
        const PACKET: Duration = Duration::from_micros(12);
        const BROWSER: Duration = Duration::from_secs(5);
        const NAVIGATION: Duration = Duration::from_secs(2);
        if is_modelled(&job.arm.arm, job.experiment.quic_in) {
            return model::expected_block(job);
        }
        if job.cell.page.is_some() {
            return BROWSER + NAVIGATION * job.connections.len() as u32;
        }
        let Some(handshake) = try_handshake(job) else {
            return BOOT;
        };
        let connection = CONNECTION + handshake.cpu.mul_f64(1.5) + PACKET * handshake.packets;
        let connections = job.connections.len() as u32;
        let beside = crowd::packets(job.cell).saturating_mul(connections / job.cell.crowd.at_once);
        BOOT + connection * connections + PACKET * beside
    }

    fn measure(&self, job: &Job<'_>, draft: &Path) -> Result<Ending, BlockError> {
        if is_modelled(&job.arm.arm, job.experiment.quic_in) {
            return model::measure(job, draft, &self.environment, self.costs.beside(job)?);
        }
        // Beside the draft, so that the part can take its name.
        let folder = absolute(&draft.with_extension("guest"));
        // Whatever an earlier process that was killed has left.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).map_err(BlockError::Write)?;
        let _removed = Removed(&folder);
        let instructions = Instructions {
            retention: job.retention(),
            ..Instructions::default()
        };
        if self.carry(job, instructions, &folder)? == Ending::Interrupted {
            return Ok(Ending::Interrupted);
        }
        if !instructions.retention.is_nothing() {
            job.keep(read_observed(&folder).map_err(BlockError::Write)?);
        }
        if job.cell.page.is_some() {
            (job.keep_loads(&folder.join(guest::LOADS))).map_err(BlockError::Write)?;
        }
        fs::rename(folder.join(guest::PART), draft).map_err(BlockError::Write)?;
        Ok(Ending::Complete)
    }
}

impl VirtualEngine {
    /// Has a guest measure a block, and leave in `folder`, whose path is absolute, what came of it.
    pub(super) fn carry(
        &self,
        job: &Job<'_>,
        instructions: Instructions,
        folder: &Path,
    ) -> Result<Ending, BlockError> {
        let sample = listing(job, alone(job));
        self.prepare(job, &sample, instructions, folder)?;
        let mut valid_from = job.arm.valid_from();
        if job.cell.page.is_some() {
            // A guest can only read chains: they are made here.
            let origins = programs::origins(job.arm, job.cell, &self.chains)?;
            valid_from = valid_from.max(programs::valid_from(&origins));
        }
        let wall_clock = valid_from.saturating_add(SINCE_VALID);
        let seed = job.experiment.seed.part("guest").0 ^ u64::from(job.connections.start);
        let core = self.shortcuts.core();
        let fate = self.guests.measure(&Order {
            boot: Boot {
                arm: prepared(&sample),
                wall_clock,
                seed,
                memory: self.memory_of(&job.arm.arm, job.cell),
                counter: Counter::of(&job.arm.arm, job.cell.page.as_ref()),
                computing: (job.experiment.cpu).profile(job.arm.arm.server, job.cell.cpu_slowdown),
            },
            term: self.term_of(&job.arm.arm, job.cell),
            cpu: core.as_ref().map(|core| core.cpu),
            shortcuts: self.shortcuts,
            folder,
            interrupt: job.interrupt,
            patience: self.patience,
        });
        let fate = fate
            .map_err(|error| BlockError::Failed(format!("its guest can't be started: {error}")))?;
        match fate {
            Fate::Interrupted => Ok(Ending::Interrupted),
            Fate::Failed(reason) => match reason.strip_prefix(guest::DISK) {
                Some(reason) => Err(BlockError::Write(io::Error::other(reason.to_owned()))),
                None => Err(BlockError::Failed(reason)),
            },
            Fate::Done => Ok(Ending::Complete),
        }
    }
}

/// Whether the engine can do all that the connections of an experiment draw.
fn check_draws(experiment: &Experiment) -> Result<(), String> {
    let mut known: Vec<&Option<Traffic>> = Vec::new();
    for cell in &experiment.cells {
        let Some(population) = &cell.population else {
            continue;
        };
        // Cells of one kind of traffic draw the same.
        if !known.contains(&&cell.traffic) {
            check_draws_of(experiment, cell, population)?;
            known.push(&cell.traffic);
        }
    }
    Ok(())
}

fn check_draws_of(
    experiment: &Experiment,
    cell: &Cell,
    population: &Population,
) -> Result<(), String> {
    if experiment.emulation == Emulation::Link {
        return Err("a population needs netem: leave emulation = \"link\" out".to_owned());
    }
    let mut arms = experiment.arms.iter();
    if experiment.cpu == CpuTime::Calibrated
        && let Some(arm) = arms.find(|arm| arm.possible_sessions(cell).len() > 1)
    {
        return Err(format!(
            "arm {:?} begins in several ways, which cpu = \"calibrated\" has no costs for: \
             leave cpu out, or give the arm resume=",
            arm.name
        ));
    }
    let mut arms = experiment.arms.iter();
    let asking = arms
        .find(|arm| arm.delivery.asks_dns() && arm.possible_sessions(cell) != [Resumption::Full]);
    if let Some(arm) = asking {
        return Err(format!(
            "arm {:?} has certificates from DNS, of which a resumed session has none: give it resume=no",
            arm.name
        ));
    }
    // Many draw the same link.
    let mut checked = HashSet::new();
    for index in 0..experiment.connections.most() {
        let draw = population.draw(index);
        let drawn = draw.values.iter();
        let of_link = drawn.filter(|(parameter, _)| parameter.is_of_link());
        let of_link = of_link.map(|(parameter, value)| (parameter.name(), value.clone()));
        if checked.insert(of_link.collect::<Vec<_>>()) {
            guest::check(&cell.with(&draw))
                .map_err(|error| format!("connection {index} of the population: {error}"))?;
        }
    }
    Ok(())
}

/// A study of nothing but the sample of a job, with the names that its arm and its link have by
/// themselves.
fn alone(job: &Job<'_>) -> Study {
    let mut arm = job.arm.arm.clone();
    arm.name.clone_from(&arm.label);
    // Whether they were asked for is none of the guest's business either.
    let cell = job.cell.with_buffers(job.cell.buffers(EngineName::Virtual));
    let cell = Cell {
        link_name: None,
        // Its draws are listed.
        traffic: None,
        ..cell.of_transport(arm.transport)
    };
    let experiment = Experiment {
        arms: vec![arm],
        cells: vec![cell],
        // What is reported beside is none of the guest's business, and our own ends have no
        // profile: its texts must be as long without them.
        cpu: job.experiment.cpu.in_clock_of(job.arm.arm.server),
        ..job.experiment.clone()
    };
    let folder = if names_files(&experiment) {
        job.study.folder.clone()
    } else {
        PathBuf::from("/")
    };
    Study {
        folder,
        ..Study::single("sample", experiment)
    }
}

/// The arm that a guest prepares, and how its connections may begin.
fn prepared(sample: &Study) -> Option<(Arm, Vec<Resumption>)> {
    let experiment = &sample.measures.first()?.experiment;
    let (arm, cell) = (experiment.arms.first()?, experiment.cells.first()?);
    Some((arm.clone(), arm.possible_sessions(cell)))
}

/// A study of nothing but the measure and the cell of a job, with the names that the study gives.
fn named(job: &Job<'_>) -> Study {
    let experiment = Experiment {
        cells: vec![job.cell.clone()],
        ..job.experiment.clone()
    };
    let measure = (job.study.measures.get(job.id.measure)).map(|measure| measure.id.clone());
    let mut study = Study {
        name: job.study.name.clone(),
        folder: job.study.folder.clone(),
        ..Study::single("sample", experiment)
    };
    for only in &mut study.measures {
        only.id = measure.clone().unwrap_or_default();
    }
    study
}

/// A study with the draws of a job's connections in place of what they are drawn from: a guest
/// needs no more.
fn listing(job: &Job<'_>, mut study: Study) -> Study {
    let Some(population) = &job.cell.population else {
        return study;
    };
    let listed = Arc::new(population.listed(&job.arm.arm, job.connections.clone()));
    let cells = study.measures.iter_mut();
    for cell in cells.flat_map(|measure| &mut measure.experiment.cells) {
        cell.population = Some(listed.clone());
    }
    study
}

/// Whether anything of it is in a file of the user's.
fn names_files(experiment: &Experiment) -> bool {
    let chains =
        (experiment.arms.iter()).flat_map(|arm| [Some(&arm.chain), arm.client_chain.as_ref()]);
    let mut directions =
        (experiment.cells.iter()).flat_map(|cell| [&cell.link.forward, &cell.link.backward]);
    chains
        .flatten()
        .any(|chain| matches!(chain, ArmChain::Pem(_)))
        || (experiment.arms.iter()).any(|arm| arm.delivery.names_files())
        || (experiment.cells.iter()).any(|cell| matches!(cell.page, Some(PageSource::Har(_))))
        || directions.any(|direction| {
            let name = direction.distribution.to_string();
            name.parse::<Distribution>().is_err() || direction.trace.is_some()
        })
}

/// What a guest has left besides its part.
pub(super) fn read_observed(folder: &Path) -> io::Result<ObservedBlock> {
    let observed = fs::read(folder.join(guest::OBSERVED))?;
    Ok(ObservedBlock {
        notes: fs::read(folder.join(guest::NOTES))?,
        ..serde_json::from_slice(&observed)?
    })
}

/// Removes a folder when dropped.
struct Removed<'a>(&'a Path);

impl Drop for Removed<'_> {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(self.0);
    }
}

pub(super) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests;
