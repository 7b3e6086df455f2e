//! How long other people's programs compute.

use std::io;
use std::process::Command;
use std::time::Duration;

use crate::lab::luck::{link_seed, pace};
use crate::lab::sys::{self, Computes};
use crate::study::{Arm, Cell, Experiment, Profile};
use lastbyte_link::Seed;

/// How long a program's computing takes.
#[derive(Clone, Copy, Debug)]
pub(in crate::lab) enum Computing {
    /// As long as on this machine: in real time, what it takes; in a guest, none.
    OfMachine,
    /// In a guest, what a profile says, around which each navigation and connection is as quick as
    /// its luck by this seed has it.
    OfProfile(Profile, Seed),
}

/// How long a load may take, and what in it takes time.
#[derive(Clone, Copy, Debug)]
pub(in crate::lab) struct Timing {
    /// When it has failed.
    pub(in crate::lab) timeout: Duration,
    pub(in crate::lab) computing: Computing,
}

impl Computing {
    /// In a guest that measures this arm in this cell.
    pub(in crate::lab) fn in_guest(experiment: &Experiment, arm: &Arm, cell: &Cell) -> Computing {
        match experiment.cpu.profile(arm.server, cell.cpu_slowdown) {
            Some(profile) => Computing::OfProfile(profile, link_seed(experiment.seed, &cell.link)),
            None => Computing::OfMachine,
        }
    }

    /// Has what a command starts take its time.
    pub(in crate::lab) fn of(self, command: &mut Command, kind: Computes) {
        match self {
            Computing::OfMachine => {}
            Computing::OfProfile(..) => sys::compute(command, kind),
        }
    }

    /// Before the navigation, or the connection, of this index.
    ///
    /// # Errors
    ///
    /// That the kernel has no such time.
    pub(in crate::lab) fn begins(self, index: u32) -> io::Result<()> {
        match self {
            Computing::OfMachine => Ok(()),
            Computing::OfProfile(profile, seed) => sys::set_pace(pace(seed, index, profile.pace)),
        }
    }

    /// How many times longer the browser takes for what it is asked than a machine without a
    /// profile.
    pub(in crate::lab) fn times(self) -> u32 {
        match self {
            Computing::OfMachine => 1,
            Computing::OfProfile(profile, _) => profile.times,
        }
    }

    /// How many times slower the browser is asked to be, by its own throttling: a profile has that
    /// in its costs.
    pub(in crate::lab) fn throttling(self, slowdown: u32) -> u32 {
        match self {
            Computing::OfMachine => slowdown,
            Computing::OfProfile(..) => 1,
        }
    }
}
