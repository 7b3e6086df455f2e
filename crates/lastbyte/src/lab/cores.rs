//! Processors: which there are, and threads that have one to themselves.

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::mman::{MlockAllFlags, mlockall};
use nix::unistd::Pid;

use super::shared::Shared;
use super::sys;

/// Pages must not be fetched while a packet waits. Where the limit on locked memory is too low,
/// lateness shows it.
pub(super) fn lock_memory() {
    let _ = mlockall(MlockAllFlags::MCL_CURRENT | MlockAllFlags::MCL_FUTURE);
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

/// Gives the calling thread a core and real-time scheduling, as far as the machine
/// allows: where it does not, lateness shows it.
pub(super) fn take_core(cpus: &[usize], thread: usize, priority: i32) {
    pin(cpus, thread);
    let _ = nix::sys::prctl::set_timerslack(1);
    let _ = sys::schedule_fifo(priority);
}

/// Spins on a core while nothing else runs there. A core that sleeps between packets wakes
/// up late and works slowly at first, a virtual one above all; a server's core under load
/// does neither.
pub(super) fn keep_awake(cpus: &[usize], thread: usize, shared: &Shared) {
    if cpus.len() < 2 || sys::schedule_idle().is_err() {
        return;
    }
    pin(cpus, thread);
    while !shared.is_stopped() {
        std::hint::spin_loop();
    }
}

fn pin(cpus: &[usize], thread: usize) {
    if cpus.len() > 1
        && let Some(cpu) = cpus.iter().rev().nth(thread)
    {
        let mut set = CpuSet::new();
        if set.set(*cpu).is_ok() {
            let _ = sched_setaffinity(Pid::from_raw(0), &set);
        }
    }
}
