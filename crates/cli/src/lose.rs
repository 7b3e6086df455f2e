//! `lastbyte lose`.

use std::ffi::OsString;

use clap::Args;
use lastbyte::kernel::Kernel;
use lastbyte::lab::{self, BlockError, Engine, Interception, Watcher};
use lastbyte::report;
use lastbyte::results::Outcome;
use lastbyte::study::{
    Arm, Cell, CpuTime, Emulation, EngineChoice, Experiment, QuicIn, Study, TransportName,
    check_transports,
};
use lastbyte_link::Seed;

use super::arguments::{self, Format};
use super::compare::{interrupt, prepare};
use super::engine::{self, Carrier};
use super::options::{self, Network};
use super::progress::Bar;
use super::{Failure, own, print, print_json, screen};

#[derive(Debug, Args)]
pub(super) struct Lose {
    /// Whose handshake, over TCP or QUIC: [NAME=]GROUP/CHAIN[:BYTESB][/KEY=VALUE...], as `compare` takes it, or a chain alone:
    /// ml-dsa-65 or ml-dsa-65/transport=quic
    #[arg(value_name = "ARM", required = true, value_parser = arguments::named)]
    arms: Vec<Arm>,
    #[command(flatten)]
    chains: arguments::Chains,
    #[command(flatten, next_help_heading = "Network")]
    network: Network,
    /// Where all randomness comes from
    #[arg(long, value_name = "N", default_value = "1", value_parser = options::seed())]
    seed: u64,
    /// How it is told
    #[arg(long, value_name = "NAME", default_value = "text")]
    format: Format,
}

impl Lose {
    pub(super) fn run(self, arguments: &[OsString]) -> Result<(), Failure> {
        let chains = self.chains;
        let arms: Vec<Arm> = self.arms.iter().map(|arm| chains.of(arm)).collect();
        arguments::check_once(&arms)?;
        let asked = self.network.cells().map_err(Failure::Usage)?;
        check_transports(&arms, &asked).map_err(Failure::usage)?;
        options::check_shares(&arms, &asked).map_err(Failure::Usage)?;
        let has_luck = (asked.iter()).any(|cell| cell.link != cell.link.without_luck());
        let mut cells: Vec<Cell> = Vec::new();
        for cell in asked.iter().map(lab::handshake_of) {
            if !cells.contains(&cell) {
                cells.push(cell);
            }
        }
        let experiment = Experiment {
            seed: Seed(self.seed),
            // Losing one packet takes an emulator that can be told which.
            emulation: Emulation::Link,
            cpu: CpuTime::None,
            ..Experiment::new(arms, cells, 1)
        };
        lab::check_losing(&experiment).map_err(Failure::Usage)?;
        let study = Study::single("lose", experiment.clone());
        let virtual_engine = kernel(&experiment.arms)?
            .map(|(kernel, way)| {
                engine::virtual_engine_with(kernel, way, arguments, &own::store()?)
            })
            .transpose()?;
        match &virtual_engine {
            Some(engine) => engine.check(&study),
            None => lab::check_quic(&study),
        }
        .map_err(Failure::Usage)?;
        own::fetch(&experiment.arms)?;
        let interrupt = interrupt().map_err(Failure::run)?;
        let bar = Bar::new();
        if has_luck {
            bar.warn("loss and jitter change nothing: one packet is lost at a time, and no other");
        }
        let prepared = prepare(&experiment.arms, &bar)?;
        bar.finish();
        let mut all = Vec::new();
        for cell in &experiment.cells {
            for arm in &prepared {
                let losses = match &virtual_engine {
                    Some(engine) if takes_a_guest(&arm.arm) => {
                        engine.lose(arm, cell, &experiment, &interrupt)
                    }
                    _ => Ok(lab::lose(arm, cell, &experiment, &interrupt)),
                };
                let losses = losses.map_err(|error| cannot(error, &arm.arm.name))?;
                all.push(losses.ok_or_else(|| Failure::Interrupted("interrupted".to_owned()))?);
            }
        }
        match self.format {
            Format::Text => print(&report::lost::text(&all, screen())),
            Format::Json => print_json(&format!("{:#}", report::lost::json(&all))),
        }?;
        match (all.iter()).find(|losses| losses.whole.outcome != Outcome::Completed) {
            None => Ok(()),
            Some(losses) => Err(Failure::Run(format!(
                "{}: its handshake does not complete, whatever is lost: give it more time or a wider network",
                losses.arm
            ))),
        }
    }
}

/// Whether an arm shakes hands in a guest: over TCP, or with a program that people run.
fn takes_a_guest(arm: &Arm) -> bool {
    arm.transport == TransportName::Tcp || arm.has_foreign_ends()
}

/// The kernel in whose guests arms shake hands that take one, if there are any.
fn kernel(arms: &[Arm]) -> Result<Option<(Box<Kernel>, Interception)>, Failure> {
    let mut of_guests = arms.iter().filter(|arm| takes_a_guest(arm));
    let Some(first) = of_guests.next() else {
        return Ok(None);
    };
    match engine::choose(EngineChoice::Virtual, [(first, QuicIn::default())])?.engine {
        Carrier::Virtual(kernel, way) => Ok(Some((kernel, way))),
        Carrier::Live | Carrier::Model => Ok(None),
    }
}

/// Why the segments of an arm could not be lost.
fn cannot(error: BlockError, arm: &str) -> Failure {
    match error {
        BlockError::Lab(error) => error.into(),
        BlockError::Write(_) => Failure::usage(error),
        BlockError::Failed(reason) => Failure::Run(format!("{arm}: {reason}")),
    }
}
