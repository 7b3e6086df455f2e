//! The laboratory: engines that carry connections over an emulated link.

mod boot;
pub mod calibration;
mod channel;
mod connection;
mod cores;
mod delivery;
mod dns;
mod emulator;
mod endpoint;
mod exchange;
mod failure;
mod guest;
mod inspection;
mod live;
mod lock;
mod luck;
mod machine;
mod netem;
mod netlink;
mod pages;
mod passing;
mod prepare;
mod privilege;
mod process;
mod row;
mod runner;
mod scratch;
mod shared;
mod shortcuts;
mod socket;
mod starts;
mod surroundings;
mod sys;
mod trial;
mod virtual_engine;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use lastbyte_tls::TlsError;

pub use boot::{Addresses, Grants, MemoryFolder, SHARED_MEMORY};
pub use delivery::{PreparedDelivery, delivers};
pub use dns::DnsError;
pub use dns::find_programs as find_dns_programs;
pub use inspection::{
    CAPTURES, Captures, Inspection, InspectionReport, capture_name, captured_sample,
};
pub use live::LiveEngine;
pub use machine::{Finding, State, environment, examine};
pub use netem::NetemError;
pub use pages::PageError;
pub use passing::{Run, run_in_passing};
pub use prepare::PreparedArm;
pub use privilege::{Privilege, acquire};
pub use row::exchange as observed_exchange;
pub use runner::{
    AssignedShard, BlockError, Ending, Engine, FailedBlock, Finished, Job, NoShard, RunError,
    Runner, Shard, Watcher,
};
pub use shortcuts::Shortcuts;
pub use virtual_engine::{VirtualEngine, can_boot as can_boot_kernels};

/// What `lastbyte` does for itself when it starts virtual kernels, if these arguments ask for it. They
/// are no part of its command line, and looked at before it.
pub fn inner_command(arguments: &[OsString]) -> Option<ExitCode> {
    let (_, command) = arguments.split_first()?;
    match command {
        // The kernel gives its init some parameters of its own besides.
        [word, folder, ..] if word == guest::COMMAND && std::process::id() == 1 => {
            guest::main(Path::new(folder))
        }
        [word, parent, cpu, kernel, rest @ ..] if word == boot::COMMAND => {
            let [parent, cpu] = [parent, cpu].map(|word| word.to_string_lossy());
            let error = boot::main(&parent, &cpu, kernel, rest);
            let _ = writeln!(io::stderr(), "lastbyte: {}: {error}", kernel.display());
            Some(ExitCode::FAILURE)
        }
        [word] if word == boot::TRY_COMMAND => match boot::try_all() {
            Ok(found) => {
                let _ = writeln!(io::stdout(), "{found}");
                Some(ExitCode::SUCCESS)
            }
            Err(error) => {
                let _ = writeln!(io::stderr(), "{error}");
                Some(ExitCode::FAILURE)
            }
        },
        _ => None,
    }
}

/// Why the laboratory can't run.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// No network namespace can be made.
    #[error(
        "can't make a network namespace: {0}; run as root, or measure without it in virtual time, which takes {get}; \
         `lastbyte doctor` tells more",
        get = crate::kernel::GET
    )]
    Namespace(#[source] io::Error),
    /// No TUN device can be made.
    #[error(
        "can't make a TUN device: /dev/net/tun: {0}; run as root, or measure without it in virtual time, which takes {get}; \
         `lastbyte doctor` tells more",
        get = crate::kernel::GET
    )]
    Tun(#[source] io::Error),
    /// A namespace can't be configured.
    #[error("can't configure a network namespace: {0}; see `lastbyte doctor`")]
    Configure(#[source] io::Error),
    /// A socket failed in a way that is no connection's own failure.
    #[error("a socket failed: {0}")]
    Socket(#[source] io::Error),
    /// A thread of the engine ended too early.
    #[error("{0} ended unexpectedly: this is a bug in Lastbyte, please report it")]
    Crashed(&'static str),
    /// The emulator failed.
    #[error("the link emulator failed: {0}")]
    Emulator(#[source] io::Error),
    /// netem can't do what a link says.
    #[error(transparent)]
    Netem(#[from] NetemError),
    /// A TLS stack refuses an arm's configuration.
    #[error(transparent)]
    Stack(#[from] TlsError),
    /// An arm can't be had as it is written.
    #[error("arm {arm:?}: {problem}")]
    Arm {
        /// The arm.
        arm: String,
        /// What is wrong with it.
        problem: String,
    },
    /// DNS servers can't deliver what an arm has them deliver.
    #[error(transparent)]
    Dns(#[from] DnsError),
    /// Pages can't be loaded.
    #[error(transparent)]
    Page(#[from] PageError),
    /// An arm's chain can't be had.
    #[error(transparent)]
    Chain(#[from] lastbyte_pki::PkiError),
}
