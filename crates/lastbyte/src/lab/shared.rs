//! What the emulator and the endpoints of a block tell each other.

use std::hint;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

use lastbyte_link::{Side, Time};

use super::sys;

/// How long one thread waits at most for the other to leave a socket. Longer than any
/// system call on it takes, and short enough where both share one core.
const PATIENCE: Duration = Duration::from_micros(50);

/// State that both threads see, by slot.
pub(crate) struct Shared {
    stop: AtomicBool,
    ends: Vec<[End; 2]>,
}

#[derive(Default)]
struct End {
    delivered: AtomicU64,
    held: AtomicBool,
}

impl Shared {
    pub(crate) fn new(slots: u32) -> Self {
        Self {
            stop: AtomicBool::new(false),
            ends: (0..slots).map(|_| Default::default()).collect(),
        }
    }

    pub(crate) fn slots(&self) -> usize {
        self.ends.len()
    }

    /// Ends the emulator.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Relaxed);
    }

    /// Tells the others that this thread has ended, however it ends.
    pub(crate) fn stop_on_drop(&self) -> StopOnDrop<'_> {
        StopOnDrop(self)
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }

    /// When the last packet was delivered to that end of the connection in `slot`.
    pub(crate) fn delivered(&self, slot: u32, end: Side) -> Time {
        self.end(slot, end)
            .map_or(Time(0), |end| Time(end.delivered.load(Relaxed)))
    }

    pub(crate) fn set_delivered(&self, slot: u32, end: Side, at: Time) {
        if let Some(end) = self.end(slot, end) {
            end.delivered.store(at.0, Relaxed);
        }
    }

    /// Keeps the other thread out of one socket. A packet that arrives while a process
    /// is inside its socket goes to the socket's backlog, where Linux merges it with
    /// others and acknowledges them as one (`tcp_add_backlog`): how many depends on the
    /// machine, and costs a sender at the edge of its window a round trip.
    pub(crate) fn hold(&self, slot: u32, end: Side) -> Hold<'_> {
        let end = self.end(slot, end);
        if let Some(end) = end
            && end.held.swap(true, Acquire)
        {
            let deadline = sys::now() + PATIENCE;
            while end.held.swap(true, Acquire) && sys::now() < deadline {
                hint::spin_loop();
            }
        }
        Hold(end)
    }

    fn end(&self, slot: u32, toward: Side) -> Option<&End> {
        self.ends.get(slot as usize).map(|ends| &ends[end(toward)])
    }
}

/// Calls [`Shared::stop`] when dropped.
pub(crate) struct StopOnDrop<'a>(&'a Shared);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Lets the other thread into the socket when dropped.
pub(crate) struct Hold<'a>(Option<&'a End>);

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        if let Some(end) = self.0 {
            end.held.store(false, Release);
        }
    }
}

/// Index of the end that packets in this direction reach.
pub(crate) fn end(toward: Side) -> usize {
    match toward {
        Side::Client => 0,
        Side::Server => 1,
    }
}

#[cfg(test)]
mod tests;
