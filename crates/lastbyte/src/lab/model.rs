//! QUIC's connections: both ends and the network between them in this process, on a clock of their own.
//!
//! Nothing here is a kernel's, so it takes no root and no guest. The ends are quinn's ([`lastbyte_quic`]), the network
//! is [`lastbyte_link`]'s, and the clock goes on to whatever happens next: computing takes no time. All that is random
//! comes from the seed and the index of the connection, so arms share luck and two runs have the same rows.

mod ends;
mod lose;
mod path;
mod tap;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use lastbyte_pki::Store;

use self::ends::connection;
pub(in crate::lab) use self::lose::datagrams_of;
pub use self::lose::lose;
use self::tap::Tap;
use super::calibration::CalibratedCosts;
use super::cores::processors;
use super::crowd;
use super::quic;
use super::runner::{BlockError, Ending, Engine, Job};
use super::surroundings::SINCE_VALID;
use super::trial::try_handshake;
use crate::results::{
    Beside, CpuCosts, EngineReport, Environment, PartHeader, Row, Validity, write_part,
};
use crate::study::{Buffers, ClientCpu, CpuTime, EngineName, Study, TransportName};

/// The engine of studies all of whose arms are QUIC's: it needs neither root nor a kernel.
pub struct Model {
    environment: Environment,
    costs: CalibratedCosts,
}

impl Model {
    /// An engine of this machine's `environment`. `chains` has the arms' chains, and calibrations are kept in `cache`.
    pub fn new(mut environment: Environment, chains: Store, cache: PathBuf) -> Self {
        environment.engine = EngineName::Virtual;
        Environment::NO_KERNEL.clone_into(&mut environment.kernel);
        Self {
            environment,
            costs: CalibratedCosts::new(chains, cache),
        }
    }
}

impl Engine for Model {
    fn environment(&self) -> &Environment {
        &self.environment
    }

    fn check(&self, study: &Study) -> Result<(), String> {
        check(study)
    }

    fn block_size(&self, study: &Study) -> u32 {
        block_size(study)
    }

    fn workers(&self, _: &Study) -> usize {
        processors()
    }

    fn expected_block(&self, job: &Job<'_>) -> Duration {
        expected_block(job)
    }

    fn measure(&self, job: &Job<'_>, draft: &Path) -> Result<Ending, BlockError> {
        measure(job, draft, &self.environment, self.costs.beside(job)?)
    }
}

/// Connections of one block of whatever is measured in virtual time: a folder may have parts of the model and of guests.
pub(super) fn block_size(study: &Study) -> u32 {
    /// A guest's boot takes as long as some twenty of them.
    const BLOCK: u32 = 250;
    /// Navigations: a browser takes as long to start as some of them.
    const PAGE_BLOCK: u32 = 20;
    if study.has_pages() {
        return PAGE_BLOCK;
    }
    match crowd::together(study) {
        together @ ..=BLOCK => BLOCK - BLOCK % together,
        together => together,
    }
}

/// About how long a block takes.
pub(super) fn expected_block(job: &Job<'_>) -> Duration {
    const DATAGRAM: Duration = Duration::from_micros(6);
    let Some(handshake) = try_handshake(job) else {
        return Duration::ZERO;
    };
    let connection = handshake.cpu.mul_f64(1.5) + DATAGRAM * handshake.packets;
    connection * job.connections.len() as u32
}

/// Whether all arms of a study over QUIC can be had in its cells in virtual time.
///
/// # Errors
///
/// What can't, with the hint.
pub fn check(study: &Study) -> Result<(), String> {
    crowd::check(study)?;
    for measure in &study.measures {
        let experiment = &measure.experiment;
        let mut cells = experiment.cells.iter();
        let slower = cells.find(|cell| cell.client_cpu != ClientCpu::THIS);
        if let Some(cell) = slower.filter(|_| experiment.cpu == CpuTime::None) {
            return Err(format!(
                "measure {:?}: with cpu = \"none\" computing takes no time, on a client_cpu of {} either: leave one of both out",
                measure.id, cell.client_cpu
            ));
        }
        let mut arms = experiment.arms.iter();
        let Some(arm) = arms.find(|arm| arm.transport == TransportName::Quic) else {
            continue;
        };
        let refuse =
            |problem: String| format!("measure {:?}, arm {:?}: {problem}", measure.id, arm.name);
        match experiment.cpu {
            CpuTime::None | CpuTime::Beside => {}
            // What browsers and their servers compute is in the clock of a guest.
            CpuTime::Laptop | CpuTime::Phone if experiment.has_pages() => {}
            CpuTime::Calibrated | CpuTime::Laptop | CpuTime::Phone => {
                return Err(refuse(format!(
                    "with transport=quic computing takes no time in the clock: leave cpu = \"{}\" out",
                    experiment.cpu
                )));
            }
        }
    }
    quic::check(study)
}

/// Measures a block and writes its part.
pub(super) fn measure(
    job: &Job<'_>,
    draft: &Path,
    environment: &Environment,
    beside: Beside,
) -> Result<Ending, BlockError> {
    let mut rows = Vec::with_capacity(job.connections.len());
    let mut packets = 0;
    let retention = job.retention();
    let first = job.connections.start;
    let mut tap = Tap::new(job.arm.valid_from().saturating_add(SINCE_VALID));
    let mut secrets = Vec::new();
    for index in job.connections.clone() {
        if job.interrupt.load(Ordering::Relaxed) {
            return Ok(Ending::Interrupted);
        }
        let cell = job.cell.of_connection(index);
        let slot = index - first;
        tap.begins(slot);
        let seen = (slot < retention.captured).then_some(&mut tap);
        let carried = connection(job.arm, &cell, job.experiment, index, seen);
        if !retention.is_nothing() {
            secrets.push(carried.secrets);
        }
        let row = carried.row;
        packets += datagrams(&row);
        rows.push(Row {
            block: job.id.block,
            ..row
        });
        (job.ended)();
    }
    if !retention.is_nothing() {
        job.keep(tap.close(retention.secrets_of(first, secrets.into_iter())));
    }
    let report = EngineReport {
        cpu_costs: None::<CpuCosts>,
        beside,
        computing: None,
        buffers: Buffers::default(),
        concurrency: 1,
        lowered: 0,
        link_lateness_p99: Duration::ZERO,
        endpoint_wait_p50: Duration::ZERO,
        packets,
        emulator_cpu: Duration::ZERO,
        endpoint_cpu: Duration::ZERO,
        validity: Validity::Valid,
    };
    let header = PartHeader::new(
        job.study,
        job.id,
        job.connections.clone(),
        job.arm.digest(),
        report,
        environment.clone(),
    )
    .ok_or_else(|| BlockError::Failed("the study has no such block".to_owned()))?;
    File::create(draft)
        .and_then(|file| write_part(file, &header, job.study, &rows))
        .map_err(BlockError::Write)?;
    Ok(Ending::Complete)
}

fn datagrams(row: &Row) -> u64 {
    let ends = row.transport.quic().into_iter().flatten();
    ends.map(|end| u64::from(end.datagrams)).sum()
}
