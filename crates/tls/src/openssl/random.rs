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
