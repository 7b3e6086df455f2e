//! Processors: which there are, and threads that have one to themselves.

use std::fs;
use std::num::NonZero;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::thread;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::mman::{MlockAllFlags, mlockall, munlockall};
use nix::unistd::Pid;

use super::shared::Shared;
use super::sys;

/// Memory whose pages stay where they are from when they are first used: none must be fetched again while a packet waits.
/// Where the limit on locked memory is too low, lateness shows it.
pub(super) struct LockedMemory(());

impl LockedMemory {
    /// Locks what this process has, and what it will have.
    pub(super) fn lock() -> LockedMemory {
        let on_fault = MlockAllFlags::from_bits_retain(libc::MCL_ONFAULT);
        let _ = mlockall(MlockAllFlags::MCL_CURRENT | MlockAllFlags::MCL_FUTURE | on_fault);
        LockedMemory(())
    }
}

impl Drop for LockedMemory {
    /// What is free goes back: each thread has had memory of its own, and those of the next block will have it elsewhere.
    fn drop(&mut self) {
        if munlockall().is_ok() {
            sys::trim_memory();
        }
    }
}

/// The CPUs that this process may use.
pub(super) fn available_cpus() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(Pid::from_raw(0)) else {
        return Vec::new();
    };
    (0..CpuSet::count())
        .filter(|cpu| set.is_set(*cpu).unwrap_or(false))
        .collect()
}

/// How many of them this process has for itself: in a container, its share.
pub(super) fn processors() -> usize {
    let share = thread::available_parallelism().map_or(1, NonZero::get);
    available_cpus().len().clamp(1, share)
}

/// Of the emulator's thread, which goes before those of the ends.
pub(super) const EMULATOR_PRIORITY: i32 = 50;

/// Gives the calling thread a core and real-time scheduling, as far as the machine
/// allows: where it does not, lateness shows it.
pub(super) fn take_core(cpus: &[usize], thread: usize, priority: i32) {
    pin(cpus, thread);
    go_first(priority);
}

/// Gives the calling thread real-time scheduling and timers to the nanosecond, as far as the machine allows.
pub(super) fn go_first(priority: i32) {
    let _ = nix::sys::prctl::set_timerslack(1);
    let _ = sys::schedule_fifo(priority);
}

/// Spins on a core of those of [`take_core`], while nothing else runs there.
pub(super) fn keep_awake(cpus: &[usize], thread: usize, shared: &Shared) {
    if cpus.len() > 1
        && let Some(cpu) = nth_from_last(cpus, thread)
    {
        spin_on(cpu, || !shared.is_stopped());
    }
}

/// Spins on a CPU while nothing else runs there, where the machine allows it. A core that sleeps between packets wakes
/// up late and works slowly at first, a virtual one above all; a server's core under load does neither.
pub(super) fn spin_on(cpu: usize, goes_on: impl Fn() -> bool) {
    if sys::schedule_idle().is_err() {
        return;
    }
    stay_on(cpu);
    while goes_on() {
        std::hint::spin_loop();
    }
}

fn nth_from_last(cpus: &[usize], thread: usize) -> Option<usize> {
    cpus.iter().rev().nth(thread).copied()
}

fn pin(cpus: &[usize], thread: usize) {
    if cpus.len() > 1
        && let Some(cpu) = nth_from_last(cpus, thread)
    {
        stay_on(cpu);
    }
}

/// Keeps the calling thread, and what it starts, on this CPU, where the machine allows it.
pub(super) fn stay_on(cpu: usize) {
    let mut set = CpuSet::new();
    if set.set(cpu).is_ok() {
        let _ = sched_setaffinity(Pid::from_raw(0), &set);
    }
}

/// Keeps a process with all that it has started on this CPU, where the machine allows it.
pub(super) fn keep_on(process: Pid, cpu: usize) {
    let mut set = CpuSet::new();
    if set.set(cpu).is_err() {
        return;
    }
    for thread in threads(process) {
        let _ = sched_setaffinity(thread, &set);
        let started = format!("/proc/{process}/task/{thread}/children");
        let started = fs::read_to_string(started).unwrap_or_default();
        for process in started.split_ascii_whitespace() {
            if let Ok(process) = process.parse() {
                keep_on(Pid::from_raw(process), cpu);
            }
        }
    }
}

/// The threads of a process, as far as it is still there.
fn threads(process: Pid) -> Vec<Pid> {
    let entries = fs::read_dir(format!("/proc/{process}/task"));
    let entries = entries.into_iter().flatten().map_while(Result::ok);
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.map(Pid::from_raw).collect()
}

/// A CPU that no other guest of this machine is given, until this is dropped.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) cpu: usize,
    /// Bound to a name that there is once, and that the system gives back however a process ends.
    _name: UnixDatagram,
}

/// A CPU that this process may use and no guest has; none where there is none, or the system has no such names.
pub(super) fn take_free_core() -> Option<Core> {
    let take = |cpu: usize| {
        let name = SocketAddr::from_abstract_name(format!("lastbyte guest on CPU {cpu}"));
        let bound = name.and_then(|name| UnixDatagram::bind_addr(&name)).ok();
        bound.map(|_name| Core { cpu, _name })
    };
    available_cpus().into_iter().find_map(take)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::{LockedMemory, available_cpus, take_free_core};

    /// A line of this process's status, in KiB.
    fn status(what: &str) -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let mut lines = status.lines();
        let line = lines.find_map(|line| line.strip_prefix(what)).unwrap();
        let number = line.split_ascii_whitespace().nth(1).unwrap();
        number.parse().unwrap()
    }

    #[test]
    fn what_nobody_has_used_is_not_in_locked_memory() {
        const LARGE: usize = 256 << 20;
        let locked = LockedMemory::lock();
        let before = status("VmRSS");
        let unused = vec![0_u8; LARGE];
        assert!(status("VmRSS") - before < LARGE as u64 / 2048);
        assert_eq!(unused.len(), LARGE);
        drop(locked);
        assert_eq!(status("VmLck"), 0);
    }

    /// Others may have some, as tests run side by side.
    #[test]
    fn each_core_is_given_once() {
        let taken: Vec<_> = std::iter::from_fn(take_free_core).collect();
        let mut cpus: Vec<_> = taken.iter().map(|core| core.cpu).collect();
        cpus.sort_unstable();
        cpus.dedup();
        assert_eq!(cpus.len(), taken.len());
        assert!(cpus.iter().all(|cpu| available_cpus().contains(cpu)));
    }
}
