//! `lastbyte reduce`.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Args;
use lastbyte::lab::calibration::{Calibration, Effort, Spread};
use lastbyte::lab::{Ending, FailedBlock, PreparedArm, Run, RunError, Shortcuts};
use lastbyte::reduce::{By, Cpu, Reduce, Table};
use lastbyte::report::reduced::{self, Reduced};
use lastbyte::results::{Percentile, Summary};
use lastbyte::study::{Arm, Delivery, EngineChoice, Experiment};

use super::arguments::{self, Answer, Format};
use super::compare::{interrupt, prepare};
use super::draft::Draft;
use super::one_of::one_of;
use super::options::{Network, Sampling};
use super::progress::Bar;
use super::{Failure, detail, engine, own, screen};

#[derive(Debug, Args)]
pub(super) struct Command {
    /// The chain, as it is sent whole: an arm (GROUP/CHAIN[:BYTESB][/KEY=VALUE...]), a chain (ml-dsa-44), a PEM file,
    /// a server that is asked for its chain (example.com:443), or the size of a Certificate message (16KB)
    #[arg(value_name = "CHAIN")]
    chain: String,
    #[command(flatten)]
    chains: arguments::Chains,
    #[command(flatten, next_help_heading = "Network")]
    network: Network,
    #[command(flatten, next_help_heading = "Sampling")]
    sampling: Sampling,
    /// Handshakes in memory that CPU times are the median of, fewer where they take over 5 s; 0 leaves them out
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(0..=10_000), help_heading = "Results")]
    handshakes: u32,
    /// What ways are sorted by: the first byte, the last byte, or the lesser gain of both
    #[arg(long, value_name = "NAME", default_value_t, value_parser = one_of(By::ALL.map(By::name), By::from_str), help_heading = "Results")]
    by: By,
    /// Print all times, what computing takes, and what each way asks of clients
    #[arg(short, long, help_heading = "Results")]
    verbose: bool,
    /// How it is told
    #[arg(long, default_value = "text", help_heading = "Results")]
    format: Format,
    /// Write the page (FILE.html) or the JSON document (FILE.json)
    #[arg(short, long, value_name = "FILE", help_heading = "Results")]
    output: Option<PathBuf>,
}

/// What is told of each metric.
fn percentiles() -> Vec<Percentile> {
    let texts = ["p50", "p75", "p90"];
    texts.iter().filter_map(|text| text.parse().ok()).collect()
}

impl Command {
    pub(super) fn run(self, arguments: &[OsString]) -> Result<(), Failure> {
        let whole = arguments::arm(&self.chain, self.chains)?;
        if whole.delivery != Delivery::Full {
            return Err(Failure::Usage(format!(
                "{:?} has delivery={}: leave it out, as all of them are tried",
                self.chain,
                whole.delivery.name()
            )));
        }
        let supposed = own::notes_of(&whole)?;
        let page = self.output.as_deref().map(arguments::content).transpose()?;
        let inputs = [Path::new(&self.chain)];
        let output = self.output.as_deref();
        let draft = output
            .map(|path| Draft::beside(path, &inputs))
            .transpose()?;
        let bar = Bar::new();
        let mut reduce = Reduce::new(&whole);
        let ready = leave_out_unprepared(&mut reduce, &bar);
        let experiment = self
            .network
            .experiment(reduce.arms(), &self.sampling)
            .map_err(Failure::Usage)?;
        let prepared = prepare_others(&experiment.arms, ready, &bar)?;
        let interrupt = interrupt().map_err(Failure::run)?;
        let cpu = self.cpu(&prepared, &interrupt)?;
        let arms = experiment.arms.iter().map(|arm| (arm, experiment.quic_in));
        let engine = engine::choose(EngineChoice::Virtual, arms)?
            .engine
            .set_up(arguments, Shortcuts::default())?;
        let percentiles = percentiles();
        let run = engine::measure(
            engine.as_ref(),
            &experiment,
            &prepared,
            &percentiles,
            &interrupt,
            &bar,
            None,
        )?;
        leave_out_failed(&mut reduce, &whole, &experiment, &run)?;
        if run.ending == Ending::Interrupted {
            return Err(interrupted());
        }
        let summary = Summary::new(&experiment, &run.samples, &percentiles);
        let tables = summary
            .cells
            .iter()
            .map(|cell| Table::new(&reduce, cell, |arm| cpu.get(&arm.label).copied()));
        let warnings = summary.warnings.iter().map(ToString::to_string);
        let reduced = Reduced {
            reduce: &reduce,
            tables: &tables.collect::<Vec<_>>(),
            by: self.by,
            percentiles: &percentiles,
            warnings: &supposed.into_iter().chain(warnings).collect::<Vec<_>>(),
            environment: engine.environment(),
            command: &arguments::command(arguments),
        };
        let answer = Answer {
            text: &|| reduced::text(&reduced, screen(), detail(self.verbose)),
            page: &|| reduced::page(&reduced),
            document: &|| reduced::json(&reduced),
        };
        answer.tell(draft.zip(page), self.format)
    }

    /// CPU time of a handshake of each arm, by its label.
    fn cpu(
        &self,
        arms: &[PreparedArm],
        interrupt: &AtomicBool,
    ) -> Result<HashMap<String, Cpu>, Failure> {
        if self.handshakes == 0 {
            return Ok(HashMap::new());
        }
        let measured = arms.iter().map(|arm| {
            if interrupt.load(Ordering::Relaxed) {
                return Err(interrupted());
            }
            let measured = Calibration::measure(arm, Effort::UpTo(self.handshakes))?;
            let sum = |steps: &[Spread]| {
                steps
                    .iter()
                    .map(|step| Duration::from_nanos(step.p50_ns))
                    .sum()
            };
            let cpu = Cpu {
                client: sum(&[
                    measured.client_setup,
                    measured.client_hello,
                    measured.client_finish,
                ]),
                server: sum(&[
                    measured.server_setup,
                    measured.server_flight,
                    measured.server_finish,
                ]),
            };
            Ok((arm.arm.label.clone(), cpu))
        });
        measured.collect()
    }
}

/// Leaves out ways that can't be prepared; returns the arms that are, by their labels.
fn leave_out_unprepared(reduce: &mut Reduce, bar: &Bar) -> HashMap<String, PreparedArm> {
    let mut ready = HashMap::new();
    reduce.leave_out(|arm| {
        if ready.contains_key(&arm.label) {
            return None;
        }
        match prepare([arm], bar) {
            Ok(prepared) => {
                ready.extend(prepared.into_iter().map(|one| (one.arm.label.clone(), one)));
                None
            }
            Err(failure) => failure.message().map(str::to_owned),
        }
    });
    ready
}

/// All arms in their order: those that are ready, and the others.
fn prepare_others(
    arms: &[Arm],
    mut ready: HashMap<String, PreparedArm>,
    bar: &Bar,
) -> Result<Vec<PreparedArm>, Failure> {
    let mut prepared = Vec::new();
    for arm in arms {
        match ready.remove(&arm.label) {
            Some(one) => prepared.push(one),
            None => prepared.extend(prepare([arm], bar)?),
        }
    }
    Ok(prepared)
}

/// Leaves out ways that failed: each takes nothing but itself away, unless it is the whole chain.
fn leave_out_failed(
    reduce: &mut Reduce,
    whole: &Arm,
    experiment: &Experiment,
    run: &Run,
) -> Result<(), Failure> {
    let failed = |arm: &Arm| {
        let is_of = |block: &&FailedBlock| {
            let failed = experiment.arms.get(block.id.arm);
            failed.is_some_and(|failed| failed.label == arm.label)
        };
        run.failed.iter().find(is_of)
    };
    if let Some(block) = failed(whole) {
        return Err(RunError::Block(block.clone()).into());
    }
    reduce.leave_out(|arm| failed(arm).map(|block| block.reason.clone()));
    Ok(())
}

fn interrupted() -> Failure {
    Failure::Interrupted("interrupted; nothing that was measured is kept".to_owned())
}
