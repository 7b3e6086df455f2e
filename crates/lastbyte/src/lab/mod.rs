//! The laboratory: engines that carry connections over an emulated link.

mod boot;
mod browser;
pub mod calibration;
mod channel;
mod connection;
mod cores;
mod crowd;
mod delivery;
mod dns;
mod emulator;
mod endpoint;
mod error;
mod exchange;
mod failure;
mod guest;
mod inspection;
mod interception;
mod live;
pub mod load;
mod lock;
mod lose;
mod losing;
mod luck;
mod machine;
mod model;
mod netem;
mod netlink;
mod passing;
mod peers;
mod prepare;
mod privilege;
mod process;
mod programs;
mod quic;
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

pub use boot::{Addresses, Grants, MemoryFolder, SHARED_MEMORY};
pub use delivery::{PreparedDelivery, delivers};
pub use dns::DnsError;
pub use dns::find_programs as find_dns_programs;
pub use error::LabError;
pub use inspection::{
    CAPTURES, Captures, Inspection, InspectionReport, capture_name, captured_sample,
};
pub use interception::{Chosen as ChosenInterception, Interception};
pub use live::LiveEngine;
pub use lose::check as check_losing;
pub use losing::handshake_of;
pub use machine::{Finding, State, environment, examine};
pub use model::{Model, check as check_quic, lose};
pub use netem::NetemError;
pub use passing::{Run, run_in_passing};
pub use prepare::{PreparedArm, sizes_of_own};
pub use privilege::{Privilege, acquire};
pub use programs::PageError;
pub use row::exchange as observed_exchange;
pub use runner::{
    AssignedShard, BlockError, Ending, Engine, FailedBlock, Finished, Job, NoShard, RunError,
    Runner, Shard, Watcher,
};
pub use shortcuts::Shortcuts;
pub use virtual_engine::{GuestTerm, VirtualEngine, can_boot as can_boot_kernels};

/// What `lastbyte` does for itself when it starts virtual kernels, if these arguments ask for it.
/// They are no part of its command line, and looked at before it.
pub fn inner_command(arguments: &[OsString]) -> Option<ExitCode> {
    let (_, command) = arguments.split_first()?;
    match command {
        // The kernel gives its init some parameters of its own besides.
        [word, folder, ..] if word == guest::COMMAND && std::process::id() == 1 => {
            guest::main(Path::new(folder))
        }
        [word, parent, cpu, shortcuts, kernel, rest @ ..] if word == boot::COMMAND => {
            let [parent, cpu, shortcuts] =
                [parent, cpu, shortcuts].map(|word| word.to_string_lossy());
            let error = boot::main(&parent, &cpu, &shortcuts, kernel, rest);
            let _ = writeln!(io::stderr(), "lastbyte: {}: {error}", kernel.display());
            Some(ExitCode::FAILURE)
        }
        [word] if word == boot::TRY_COMMAND => Some(reported(boot::try_all())),
        [word] if word == boot::TRY_SECCOMP_COMMAND => {
            Some(reported(sys::trap::try_trapping_calls().map(|()| "")))
        }
        _ => None,
    }
}

/// Reports to whoever has started this process what came of it.
fn reported(found: io::Result<&str>) -> ExitCode {
    match found {
        Ok(found) => {
            let _ = writeln!(io::stdout(), "{found}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            let _ = writeln!(io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}
