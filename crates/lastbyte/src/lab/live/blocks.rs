//! The live engine for the blocks of a study.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::File;
use std::path::Path;
use std::slice;
use std::sync::Mutex;
use std::time::Duration;

use super::super::runner::{BlockError, Engine, Job, lock};
use super::{
    Cost, Ending, Growing, LabError, LiveEngine, Silent, Wire, block_size, lock_memory, sys, wire,
};
use crate::results::{Environment, PartHeader, SampleKey, write_part};
use crate::study::{Gso, Preset, Study, Work};

/// The live engine, block by block. What it learns of a sample, its next block begins with.
pub struct LiveBlocks {
    environment: Environment,
    /// By arm and transfer size: what pilots have measured,
    costs: Mutex<HashMap<(String, Work), Cost>>,
    /// and what is expected where there was none yet.
    guesses: Mutex<HashMap<(String, Work), Cost>>,
    plans: Mutex<HashMap<SampleKey, Plan>>,
}

/// How a sample is measured.
#[derive(Clone, Copy)]
struct Plan {
    concurrency: u32,
    duration: Duration,
}

impl LiveBlocks {
    /// An engine whose results come from `environment`.
    pub fn new(environment: Environment) -> Self {
        Self {
            environment,
            costs: Mutex::default(),
            guesses: Mutex::default(),
            plans: Mutex::default(),
        }
    }

    /// A sample to which this block belongs.
    fn begin(&self, engine: &LiveEngine<'_>, job: &Job<'_>) -> Result<Growing, LabError> {
        if let Some(plan) = self.plan(job) {
            return Ok(plan);
        }
        let key = (job.arm.arm.label.clone(), job.cell.work());
        let known = lock(&self.costs).get(&key).copied();
        let cost = match known {
            Some(cost) => cost,
            None => engine.pilot(job.arm, job.cell)?,
        };
        lock(&self.costs).insert(key, cost);
        Ok(engine.begin(job.arm, job.cell, &cost))
    }

    fn plan(&self, job: &Job<'_>) -> Option<Growing> {
        let plan = *lock(&self.plans).get(&job.sample())?;
        Some(Growing::new(plan.concurrency, plan.duration))
    }
}

impl Engine for LiveBlocks {
    fn environment(&self) -> &Environment {
        &self.environment
    }

    fn check(&self, study: &Study) -> Result<(), String> {
        for measure in &study.measures {
            for cell in &measure.experiment.cells {
                let what = match (cell.gso, cell.preset) {
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

    fn block_size(&self, study: &Study) -> u32 {
        let sizes = study.measures.iter();
        let sizes = sizes.map(|measure| block_size(measure.experiment.concurrency));
        sizes.max().unwrap_or_else(|| block_size(None))
    }

    /// One block has the machine to itself.
    fn workers(&self) -> usize {
        1
    }

    fn expected_block(&self, job: &Job<'_>) -> Duration {
        let engine = LiveEngine::new(job.experiment, &[], job.interrupt, &Silent);
        let sample = self.plan(job).or_else(|| {
            let mut guesses = lock(&self.guesses);
            let cost = match guesses.entry((job.arm.arm.label.clone(), job.cell.work())) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(unknown) => *unknown.insert(guess(job)?),
            };
            Some(engine.begin(job.arm, job.cell, &cost))
        });
        sample.map_or(Duration::ZERO, |sample| {
            sample.expected(job.connections.len() as u32)
        })
    }

    fn measure(&self, job: &Job<'_>, draft: &Path) -> Result<Ending, BlockError> {
        lock_memory();
        let arms = slice::from_ref(job.arm);
        let engine = LiveEngine::new(job.experiment, arms, job.interrupt, &Silent);
        let mut sample = self.begin(&engine, job)?;
        let measured = engine.undisturbed_block(
            job.cell,
            job.arm,
            job.id.block,
            job.connections.clone(),
            &mut sample,
        )?;
        let plan = Plan {
            concurrency: sample.concurrency,
            duration: sample.duration,
        };
        lock(&self.plans).insert(job.sample(), plan);
        let Some(measured) = measured else {
            return Ok(Ending::Interrupted);
        };
        sample.add(job.id.block, measured, &job.cell.link);
        let sample = sample.finish(job.id.arm, job.id.cell, job.arm);
        let sample = sample.ok_or_else(|| BlockError::Failed("the block is empty".to_owned()))?;
        let header = PartHeader::new(
            job.study,
            job.id,
            job.connections.clone(),
            sample.chain_digest,
            sample.engine,
            self.environment.clone(),
        )
        .ok_or_else(|| BlockError::Failed("the study has no such block".to_owned()))?;
        File::create(draft)
            .and_then(|file| write_part(file, &header, job.study, &sample.rows))
            .map_err(BlockError::Write)?;
        Ok(Ending::Complete)
    }
}

/// What a connection may cost, before a pilot tells: of its handshake in memory, and of its packets.
fn guess(job: &Job<'_>) -> Option<Cost> {
    /// Both ends, with TCP and the observer.
    const HANDSHAKE_FACTOR: u32 = 2;
    const PACKET: Duration = Duration::from_micros(10);

    let handshake = try_handshake(job)?;
    Some(Cost {
        endpoint: handshake.cpu * HANDSHAKE_FACTOR + PACKET * handshake.packets,
        emulator: PACKET * handshake.packets,
        wire: handshake.wire,
    })
}

/// One handshake of a job in memory.
pub(in crate::lab) struct HandshakeTrial {
    /// What it took both ends.
    pub(in crate::lab) cpu: Duration,
    /// About how many packets a connection takes.
    pub(in crate::lab) packets: u32,
    wire: Wire,
}

pub(in crate::lab) fn try_handshake(job: &Job<'_>) -> Option<HandshakeTrial> {
    const MSS: u64 = 1448;

    let start = sys::thread_cpu_time();
    let handshake = job.arm.handshake().ok()?;
    let cpu = sys::thread_cpu_time().saturating_sub(start);
    let wire = wire(&handshake.observer, &handshake.client.key_log(), 0);
    let bytes = job.cell.work().payload().0
        + u64::from(wire.client_hello_wire_bytes)
        + u64::from(wire.server_flight_wire_bytes);
    Some(HandshakeTrial {
        cpu,
        // Those of TCP itself, and an acknowledgement for every other one.
        packets: 6 + u32::try_from(bytes / MSS * 3 / 2).unwrap_or(u32::MAX),
        wire,
    })
}
