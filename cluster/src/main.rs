//! Counts with SQL what `lastbyte zeek` counts, over the Parquet that it writes: with DataFusion in this process,
//! or on a Ballista cluster, whose scheduler and executors this program is too.

mod cluster;
mod count;
mod counts;
mod logger;
mod queries;

use std::error::Error;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// What is told and ends the program.
type Failure = Box<dyn Error + Send + Sync>;

/// Plans are trees that are walked by recursion, and not optimised this takes more than the usual 2 MiB.
const STACK_BYTES: usize = 32 << 20;

#[derive(Debug, Parser)]
#[command(about, version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Count what is in folders that `lastbyte zeek --parquet` wrote
    Count(count::Count),
    /// Give out the work of a cluster
    Scheduler(cluster::Scheduler),
    /// Do the work of a cluster
    Executor(cluster::Executor),
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Arguments) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_stack_size(STACK_BYTES)
        .build()?;
    // A future that is blocked on runs on the main thread, whose stack is as the machine has it.
    runtime.block_on(async {
        match arguments.command {
            Command::Count(count) => tokio::spawn(count.run()).await?,
            Command::Scheduler(scheduler) => tokio::spawn(scheduler.run()).await?,
            Command::Executor(executor) => tokio::spawn(executor.run()).await?,
        }
    })
}
