//! Random numbers of a seed, so that what is measured can be had again to the byte.

use std::marker::PhantomData;

use lastbyte_link::mix;

use super::ffi::random::set_state;

/// Has all that OpenSSL draws at random on this thread come from a seed, as long as it lives: keys and signatures
/// are **no secrets** then. Other threads have the system's random numbers as before.
#[must_use = "random numbers are the system's again once it is dropped"]
pub struct Randomness {
    before: Option<u64>,
    /// Of this thread alone.
    _thread: PhantomData<*const ()>,
}

impl Randomness {
    /// Begins with this seed.
    pub fn of_seed(seed: u64) -> Randomness {
        Randomness {
            before: set_state(Some(mix(seed))),
            _thread: PhantomData,
        }
    }
}

impl Drop for Randomness {
    fn drop(&mut self) {
        set_state(self.before);
    }
}

/// The random numbers of a seed, as [`Randomness`] has them, for one of several connections that take turns on a
/// thread: each goes on where its own have come to.
#[derive(Debug)]
pub struct RandomSequence {
    state: u64,
}

impl RandomSequence {
    /// Begins with this seed.
    pub fn of_seed(seed: u64) -> RandomSequence {
        RandomSequence { state: mix(seed) }
    }

    /// Has all that OpenSSL draws on this thread while `action` lasts come from it.
    pub fn within<T>(&mut self, action: impl FnOnce() -> T) -> T {
        let turn = Turn {
            before: set_state(Some(self.state)),
            sequence: self,
        };
        let done = action();
        drop(turn);
        done
    }
}

/// Ends a turn when dropped, whatever ends that.
struct Turn<'s> {
    before: Option<u64>,
    sequence: &'s mut RandomSequence,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if let Some(state) = set_state(self.before) {
            self.sequence.state = state;
        }
    }
}
