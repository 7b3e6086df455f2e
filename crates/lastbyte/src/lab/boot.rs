//! The step between `lastbyte` and a guest kernel that it starts.
//!
//! It exists because a process can only ask for two things itself: to die with its parent, and to
//! have its memory at the same addresses each time, without which no two guests are alike.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use nix::sys::personality::{self, Persona};
use nix::sys::prctl;
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::unistd::getppid;

/// The first argument that makes `lastbyte` this step. Its parent's process id and what to start
/// follow.
pub(crate) const COMMAND: &str = "__boot";

/// A command that starts `kernel` by way of `program`, which is `lastbyte`. Arguments that are
/// added to it are the kernel's.
pub(super) fn command(program: &Path, kernel: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .arg(COMMAND)
        .arg(std::process::id().to_string())
        .arg(kernel);
    command
}

/// Whether this machine lets a kernel run as a process: it traces processes of its own.
///
/// # Errors
///
/// What forbids it, with the mend.
pub fn can_boot() -> Result<(), String> {
    runs_on(std::env::consts::ARCH)?;
    let tried = std::env::current_exe()
        .and_then(|program| Command::new(program).arg(TRACE_COMMAND).output());
    match tried {
        Ok(tried) if tried.status.success() => Ok(()),
        Ok(tried) => Err(format!(
            "{}: allow ptrace (kernel.yama.ptrace_scope below 3; in a container, its seccomp profile)",
            String::from_utf8_lossy(&tried.stderr).trim()
        )),
        Err(error) => Err(format!("this program can't start itself: {error}")),
    }
}

fn runs_on(architecture: &str) -> Result<(), String> {
    match architecture {
        "x86_64" => Ok(()),
        other => Err(format!(
            "its kernel runs on x86-64 only, and this is {other}"
        )),
    }
}

/// The first argument that makes `lastbyte` try to be traced.
pub(crate) const TRACE_COMMAND: &str = "__trace";

/// Asks to be traced, as the processes of a guest do.
pub(crate) fn try_trace() -> io::Result<()> {
    ptrace::traceme().map_err(|error| io::Error::other(format!("ptrace: {error}")))
}

/// Becomes the kernel. Returns only if it can't.
pub(crate) fn main(parent: &str, kernel: &OsString, arguments: &[OsString]) -> io::Error {
    let ready = || -> io::Result<()> {
        prctl::set_pdeathsig(Signal::SIGKILL)?;
        // It may be gone already.
        if parent != getppid().to_string() {
            return Err(io::Error::other("its parent has ended"));
        }
        personality::set(personality::get()? | Persona::ADDR_NO_RANDOMIZE)?;
        Ok(())
    };
    match ready() {
        Ok(()) => Command::new(kernel).args(arguments).exec(),
        Err(error) => error,
    }
}

#[cfg(test)]
mod tests {
    use super::runs_on;

    #[test]
    fn other_machines_are_refused() {
        assert_eq!(runs_on("x86_64"), Ok(()));
        assert_eq!(
            runs_on("aarch64"),
            Err("its kernel runs on x86-64 only, and this is aarch64".to_owned())
        );
    }
}
