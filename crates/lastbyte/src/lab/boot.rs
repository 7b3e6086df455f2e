//! The step between `lastbyte` and a guest kernel that it starts, and what this machine must allow
//! for it.
//!
//! The step exists because a process can only ask for three things itself: to die with its parent,
//! to have its memory at the same addresses each time, and to have fewer rights. Containers may
//! refuse the last two. Neither shows in a row, so a guest goes on without.
//!
//! A kernel may have been built by anybody: it can gain no rights, and sees no network. It keeps
//! its user, root too: the guest reads chains' keys, the study and programs in folders of this
//! user's alone, and writes its part there.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use nix::errno::Errno;
use nix::libc;
use nix::sched::{CloneFlags, unshare};
use nix::sys::personality::{self, Persona};
use nix::sys::prctl;
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::statvfs::fstatvfs;
use nix::unistd::{getgid, getppid, getuid};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_string, fsmount,
    fsopen,
};
use rustix::thread::{SecureComputingMode, secure_computing_mode};

use lastbyte_link::Bytes;

use super::shortcuts::Shortcuts;
use super::{cores, machine, sys};

/// The first argument that makes `lastbyte` this step. Its parent's process id, where it runs, whether
/// it takes shortcuts, and what to start follow.
pub(super) const COMMAND: &str = "__boot";
/// Where it runs, if that is not a CPU.
const ANYWHERE: &str = "anywhere";

/// A command that starts `kernel` by way of `program`, which is `lastbyte`, with the guest's memory
/// in `memory`, if nothing is faster, and on this CPU, if on one. Arguments that are added to it are
/// the kernel's.
pub(super) fn command(
    program: &Path,
    kernel: &Path,
    memory: &Path,
    cpu: Option<usize>,
    shortcuts: Shortcuts,
) -> Command {
    let mut command = Command::new(program);
    command
        .arg(COMMAND)
        .arg(std::process::id().to_string())
        .arg(cpu.map_or(ANYWHERE.to_owned(), |cpu| cpu.to_string()))
        .arg(shortcuts.name())
        .arg(kernel)
        .env_clear()
        // Where the kernel makes the file that is the guest's memory.
        .env("TMPDIR", memory);
    command
}

/// Becomes the kernel. Returns only if it can't.
pub(super) fn main(
    parent: &str,
    cpu: &str,
    shortcuts: &str,
    kernel: &OsString,
    arguments: &[OsString],
) -> io::Error {
    let mut command = Command::new(kernel);
    command.args(arguments);
    let ready = || -> io::Result<()> {
        prctl::set_no_new_privs()?;
        // A new user namespace forgets whose death was to be signalled.
        leave_network();
        prctl::set_pdeathsig(Signal::SIGKILL)?;
        // It may be gone already.
        if parent != getppid().to_string() {
            return Err(io::Error::other("its parent has ended"));
        }
        fix_addresses()?;
        if let Ok(cpu) = cpu.parse() {
            cores::stay_on(cpu);
        }
        Ok(())
    };
    if let Err(error) = ready() {
        return error;
    }
    // The kernel opens it by this name.
    let folder = large_pages(shortcuts).ok();
    if let Some(folder) = &folder {
        command.env("TMPDIR", path_of(folder));
    }
    command.exec()
}

/// A folder in memory whose files are made of large pages as far as there are such, where that is
/// allowed. A guest touches some 30 MB as it boots, each page of which is a fault, and a page to be
/// cleared, of 2 MB instead of 4 KiB.
fn large_pages(shortcuts: &str) -> io::Result<OwnedFd> {
    // A filter of system calls may kill who makes the calls below.
    let is_filtered = secure_computing_mode()? != SecureComputingMode::Disabled;
    if is_filtered || shortcuts.parse() != Ok(Shortcuts::Taken) {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let memory = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&memory, "huge", "within_size")?;
    // How much guests take together is what the machine has left.
    fsconfig_set_string(&memory, "size", "100%")?;
    fsconfig_create(&memory)?;
    let own = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    // It is mounted nowhere, and gone with the kernel.
    let folder = fsmount(&memory, FsMountFlags::empty(), own)?;
    let file = unnamed_file(&path_of(&folder))?;
    sys::try_execute_mapping(file.as_fd())?;
    Ok(folder)
}

/// The path of what this process, and what it becomes, has open.
fn path_of(folder: &OwnedFd) -> PathBuf {
    format!("/proc/self/fd/{}", folder.as_raw_fd()).into()
}

/// Leaves this process without a network, where that is allowed: guests have their own inside.
fn leave_network() {
    if getuid().is_root() {
        // In a user namespace, root could not read what other users own.
        let _ = unshare(CloneFlags::CLONE_NEWNET);
        return;
    }
    let (user, group) = (getuid(), getgid());
    // With mounts of its own, it may make one.
    let own = CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWNET;
    if unshare(own).is_ok() {
        // It stays who it was. Who can't say so is nobody, and reads what all may read.
        let _ = fs::write("/proc/self/setgroups", "deny");
        let _ = fs::write("/proc/self/uid_map", format!("{user} {user} 1"));
        let _ = fs::write("/proc/self/gid_map", format!("{group} {group} 1"));
    }
}

/// What this machine grants a kernel that runs as a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grants {
    /// Where its memory is mapped.
    pub addresses: Addresses,
    /// The file that is its memory.
    pub memory: MemoryFolder,
    /// Whether it can trace its processes, or why not.
    pub ptrace: Result<(), String>,
}

/// Where the memory of a guest's process is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addresses {
    /// At the same addresses each time.
    Fixed,
    /// Anywhere: personality(2) is refused, as by the seccomp profiles of Docker, Podman and
    /// Kubernetes (moby/moby#43011).
    Random,
}

/// The folder for the files that are guests' memory. They have no names there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryFolder {
    /// The folder.
    pub path: PathBuf,
    /// What is wrong with the folders that are better.
    pub instead: Option<String>,
}

/// Where guests' memory is best: in memory.
pub const SHARED_MEMORY: &str = "/dev/shm";

/// Tries all that a kernel needs to run as a process: to intercept the calls of others, and a folder for its memory
/// that programs may run from. `memory` is how much a guest may use.
///
/// # Errors
///
/// What is missing, with the hint.
pub(super) fn examine(memory: Bytes) -> Result<Grants, String> {
    runs_on(std::env::consts::ARCH)?;
    let (addresses, ptrace) = try_step()?;
    // Which kernel there is decides whether it can do without.
    if let Err(problem) = &ptrace {
        try_seccomp().map_err(|_| problem.clone())?;
    }
    Ok(Grants {
        addresses,
        memory: memory_folder(memory)?,
        ptrace,
    })
}

fn runs_on(architecture: &str) -> Result<(), String> {
    match architecture {
        "x86_64" => Ok(()),
        other => Err(format!(
            "its kernel runs on x86-64 only, and this is {other}"
        )),
    }
}

/// The first argument that makes `lastbyte` try what [`COMMAND`] and the kernel ask for.
pub(super) const TRY_COMMAND: &str = "__try";
/// The first argument that makes it try what a kernel asks for that does not trace.
pub(super) const TRY_SECCOMP_COMMAND: &str = "__try-seccomp";
const ALLOW: &str =
    "allow ptrace (kernel.yama.ptrace_scope below 3; in a container, its seccomp profile)";
/// What it says where addresses can't be fixed.
const RANDOM: &str = "random addresses";

/// Starts this program once more, which asks for what a guest asks for: a process that is traced,
/// or that has other addresses, stays so.
fn try_step() -> Result<(Addresses, Result<(), String>), String> {
    let tried = try_in_process(TRY_COMMAND)?;
    let addresses = if tried.stdout.trim_ascii() == RANDOM.as_bytes() {
        Addresses::Random
    } else {
        Addresses::Fixed
    };
    let message = String::from_utf8_lossy(&tried.stderr);
    let ptrace = match (message.trim(), tried.status) {
        (_, status) if status.success() => Ok(()),
        // A filter that kills.
        ("", status) => Err(format!("{status} when asking to be traced: {ALLOW}")),
        (message, _) => Err(message.to_owned()),
    };
    Ok((addresses, ptrace))
}

/// The same for a filter of system calls, which a process has for good, too.
pub(super) fn try_seccomp() -> Result<(), String> {
    let tried = try_in_process(TRY_SECCOMP_COMMAND)?;
    let message = String::from_utf8_lossy(&tried.stderr);
    match (message.trim(), tried.status) {
        (_, status) if status.success() => Ok(()),
        ("", status) => Err(format!("{status}: a filter kills whoever makes some calls")),
        (message, _) => Err(message.to_owned()),
    }
}

fn try_in_process(command: &str) -> Result<Output, String> {
    let tried =
        std::env::current_exe().and_then(|program| Command::new(program).arg(command).output());
    tried.map_err(|error| format!("this program can't start itself: {error}"))
}

/// Asks for what a guest asks for, and says what came of it.
pub(super) fn try_all() -> io::Result<&'static str> {
    // Who is traced by whoever comes after its parent would be stopped for good.
    prctl::set_pdeathsig(Signal::SIGKILL)?;
    let addresses = fix_addresses()?;
    ptrace::traceme().map_err(|error| io::Error::other(format!("ptrace: {error}: {ALLOW}")))?;
    Ok(match addresses {
        Addresses::Fixed => "",
        Addresses::Random => RANDOM,
    })
}

/// Has whatever this process becomes at the same addresses each time, where that is allowed.
fn fix_addresses() -> io::Result<Addresses> {
    let set = |error: Errno| io::Error::other(format!("personality: {error}"));
    let fixed =
        personality::get().and_then(|now| personality::set(now | Persona::ADDR_NO_RANDOMIZE));
    match fixed {
        Ok(_) => Ok(Addresses::Fixed),
        // A filter may refuse with either.
        Err(Errno::EPERM | Errno::ENOSYS) => Ok(Addresses::Random),
        Err(error) => Err(set(error)),
    }
}

/// The first folder that programs may run from and that has room for a guest's memory; where none
/// has, the first that they may run from.
pub(super) fn memory_folder(memory: Bytes) -> Result<MemoryFolder, String> {
    best_folder(memory).map(|(folder, _)| folder)
}

/// The same, with the room that it has; none where that is too little.
fn best_folder(memory: Bytes) -> Result<(MemoryFolder, Option<Space>), String> {
    let temporary = std::env::temp_dir();
    let folders = [Path::new(SHARED_MEMORY), &temporary, Path::new("/tmp")];
    let mut small = None;
    let mut problems: Vec<String> = Vec::new();
    let mut fit = None;
    for folder in folders {
        let problem = match try_memory(folder, memory) {
            Ok(space) => {
                fit = Some((folder, Some(space)));
                break;
            }
            Err(Unfit::Small(free)) => {
                small = small.or(Some((folder, None)));
                format!("{} has {} MB left", folder.display(), free.0 >> 20)
            }
            Err(Unfit::Refused(problem)) => format!("{} {problem}", folder.display()),
        };
        if !problems.contains(&problem) {
            problems.push(problem);
        }
    }
    let problems = problems.join(", ");
    match fit.or(small) {
        Some((folder, space)) => {
            let folder = MemoryFolder {
                path: folder.to_owned(),
                instead: (!problems.is_empty()).then_some(problems),
            };
            Ok((folder, space))
        }
        None => Err(format!(
            "no folder for its memory: {problems}: mount {SHARED_MEMORY} with exec \
             (docker run --tmpfs {SHARED_MEMORY}:exec)"
        )),
    }
}

/// How much guests may use together of which each takes this: what the machine has left, and the
/// folder for their memory.
///
/// # Errors
///
/// How much is left, where that is too little for one.
pub(super) fn room(memory: Bytes) -> Result<Bytes, String> {
    let (folder, space) = best_folder(memory)?;
    let Some(Space(space)) = space else {
        return Err(folder.instead.unwrap_or_default());
    };
    match machine::available_memory() {
        Some(left) if left < memory => Err(format!("the machine has {} MB left", left.0 >> 20)),
        left => Ok(left.map_or(space, |left| left.min(space))),
    }
}

/// How many guests run at once that take `each` of what there is `room` for; one has it in any
/// case.
pub(super) fn at_once(processors: usize, room: Bytes, each: Bytes) -> usize {
    let fit = room.0 / each.0.max(1);
    usize::try_from(fit)
        .unwrap_or(usize::MAX)
        .clamp(1, processors.max(1))
}

/// What a folder has room for: without a limit, for anything.
struct Space(Bytes);

/// Why a folder can't have a guest's memory.
enum Unfit {
    /// It would fit until the guest uses more than this.
    Small(Bytes),
    Refused(String),
}

/// Maps a file of a folder as a guest maps its memory.
fn try_memory(folder: &Path, memory: Bytes) -> Result<Space, Unfit> {
    let refused = |error: io::Error| {
        Unfit::Refused(match error.raw_os_error() {
            // So mmap(2) says of a noexec mount; a policy says EACCES.
            Some(libc::EPERM) => "may hold no programs (it is mounted noexec)".to_owned(),
            _ => format!("can't be used ({error})"),
        })
    };
    let file = unnamed_file(folder)
        .map_err(|error| Unfit::Refused(format!("can't be written to ({})", brief(&error))))?;
    sys::try_execute_mapping(file.as_fd()).map_err(refused)?;
    let space = fstatvfs(&file).map_err(|error| refused(error.into()))?;
    let free = Bytes(
        space
            .blocks_available()
            .saturating_mul(space.fragment_size()),
    );
    // A tmpfs without a limit has no blocks at all.
    match space.blocks() {
        0 => Ok(Space(Bytes(u64::MAX))),
        _ if free < memory => Err(Unfit::Small(free)),
        _ => Ok(Space(free)),
    }
}

fn unnamed_file(folder: &Path) -> io::Result<File> {
    let file = tempfile::tempfile_in(folder)?;
    file.set_len(sys::PAGE.get() as u64)?;
    Ok(file)
}

fn brief(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" at path").next().unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use lastbyte_link::Bytes;

    use super::{at_once, runs_on};

    #[test]
    fn as_many_guests_run_as_have_memory() {
        const EACH: Bytes = Bytes(2 << 30);
        let told = |processors, gib: u64| at_once(processors, Bytes(gib << 30), EACH);
        assert_eq!([told(2, 23), told(8, 23), told(16, 23)], [2, 8, 11]);
        assert_eq!([told(2, 4), told(2, 3), told(2, 2)], [2, 1, 1]);
        // Whoever has too little for one gets an error before.
        assert_eq!([told(2, 0), told(0, 8)], [1, 1]);
        assert_eq!(at_once(4, Bytes(u64::MAX), EACH), 4);
        assert_eq!(at_once(4, Bytes(1), Bytes(0)), 1);
    }

    #[test]
    fn other_machines_are_refused() {
        assert_eq!(runs_on("x86_64"), Ok(()));
        assert_eq!(
            runs_on("aarch64"),
            Err("its kernel runs on x86-64 only, and this is aarch64".to_owned())
        );
    }
}
