//! Several blocks in one guest: each is measured by a process that is forked from what the guest
//! was when it had booted and its arm was prepared. All have that arm.
//!
//! Nothing that a row depends on is left of the block before. The process has OpenSSL's randomness
//! as it began, the process id 1, mounts and networks of its own, and the time of day that the
//! first block had; all of them end with it. The kernel's clock goes on, and connections start at
//! their place of its wheel of timers, wherever that is (`starts`). A test compares the rows with
//! those of guests that measure one block.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use lastbyte_link::Time;
use nix::errno::Errno;
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::time::{ClockId, clock_gettime, clock_settime};
use nix::unistd::ForkResult;

use super::{Begun, RANDOMNESS_BEGINS, mount_job, outcome_of, say_outcome};
use crate::lab::{starts, sys};

/// The link beside the job's folder that says which turn it is, if guests measure more than one
/// block: the first is 0.
pub(crate) const TURN: &str = "turn";

/// In between, the kernel takes down what the last block had: in time, as RCU waits for ticks. All blocks begin at one
/// place of the wheel of timers: those of 32 s and more, which come at multiples of 4.1 and 33 s, end otherwise by that
/// (`calc_wheel_index` in kernel/time/timer.c); and OpenSSL draws new seeds by the time of day, so that may not be another one
/// by the same connection.
const REST: u64 = 64 * starts::WHEEL;

/// Whether more than the block in `job` may be to be measured.
pub(super) fn is_wanted(job: &Path) -> bool {
    fs::symlink_metadata(job.with_file_name(TURN)).is_ok()
}

/// Measures what is in `job` whenever its turn comes. The host ends it.
///
/// # Errors
///
/// What this kernel can't do, or how a block's process ended without a word.
pub(super) fn run(job: &Path, begun: &Begun) -> io::Result<std::convert::Infallible> {
    let turn = job.with_file_name(TURN);
    let own = File::open("/proc/self/ns/pid")?;
    let time_of_day = clock_gettime(ClockId::CLOCK_REALTIME)?;
    for number in 0_u32.. {
        await_turn(&turn, number);
        unshare(CloneFlags::CLONE_NEWPID)?;
        match sys::fork()? {
            ForkResult::Child => {
                let ready = clock_settime(ClockId::CLOCK_REALTIME, time_of_day)
                    .and_then(|()| unshare(CloneFlags::CLONE_NEWNS))
                    .map_err(io::Error::from)
                    .and_then(|()| mount_job(job));
                let outcome = ready
                    .map_err(super::to_line)
                    .and_then(|()| outcome_of(begun));
                say_outcome(&outcome);
                sys::exit_at_once();
            }
            ForkResult::Parent { child } => match waitpid(child, None)? {
                WaitStatus::Exited(_, 0) => {}
                ended => return Err(io::Error::other(format!("its process: {ended:?}"))),
            },
        }
        // Only who is in its own may have another one for the next.
        setns(own.as_fd(), CloneFlags::CLONE_NEWPID)?;
        starts::sleep_until(rested(sys::now()))?;
        super::say(super::READY);
    }
    Err(Errno::EOVERFLOW.into())
}

fn rested(now: Time) -> Time {
    let since = now.0.saturating_sub(RANDOMNESS_BEGINS.0);
    Time(RANDOMNESS_BEGINS.0 + since.saturating_add(1).next_multiple_of(REST))
}

/// Looks until the host has written this number. It stops the guest meanwhile, so this never takes
/// long; and no virtual time goes by.
fn await_turn(turn: &Path, number: u32) {
    let number = number.to_string();
    while !fs::read_link(turn).is_ok_and(|written| written.as_os_str() == number.as_str()) {}
}
