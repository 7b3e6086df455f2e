//! The queue itself.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::num::NonZero;
use std::time::Duration;

use super::Computing;

/// How one handshake was served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// What the server computed.
    pub computing: Duration,
    /// How long it waited for a core, with its ClientHello and with its Finished.
    pub waiting: Duration,
    /// When all was done, from where arrivals are counted.
    pub done: Duration,
}

impl Served {
    /// The time that it spent at the server.
    #[must_use]
    pub fn at_server(&self) -> Duration {
        self.computing + self.waiting
    }
}

/// What a handshake comes with.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Visit {
    Finished,
    ClientHello,
}

/// Serves handshakes in the order in which they are ready, each by the core that is free first: who is ready at the same
/// time goes by what is left to do for it, and then by its place in `computing`. Who has nothing to compute with a Finished
/// waits for no core with it. A core that is free when a Finished comes begins only when it is awake, after `wakes`.
/// `arrivals` are in ascending order.
pub fn serve(
    arrivals: &[Duration],
    computing: &[Computing],
    cores: NonZero<u32>,
    wakes: Duration,
) -> Vec<Served> {
    let mut served = vec![Served::default(); arrivals.len().min(computing.len())];
    let mut hellos = (0..served.len()).peekable();
    // Handshakes that come for the second time.
    let mut again: BinaryHeap<Reverse<(Duration, usize)>> = BinaryHeap::new();
    let all = usize::try_from(cores.get()).unwrap_or(usize::MAX);
    // More cores than handshakes are free all the time.
    let all = all.min(served.len());
    let mut free: BinaryHeap<Reverse<Duration>> = vec![Reverse(Duration::ZERO); all].into();
    loop {
        let hello = hellos.peek().and_then(|index| {
            let ready = arrivals.get(*index)?;
            Some((*ready, Visit::ClientHello, *index))
        });
        let finished = again
            .peek()
            .map(|Reverse((ready, index))| (*ready, Visit::Finished, *index));
        // Whatever is ready later than what is served now can't come before it.
        let Some((ready, visit, index)) = hello.into_iter().chain(finished).min() else {
            return served;
        };
        match visit {
            Visit::ClientHello => drop(hellos.next()),
            Visit::Finished => drop(again.pop()),
        }
        let (Some(of), Some(handshake), Some(mut core)) =
            (computing.get(index), served.get_mut(index), free.peek_mut())
        else {
            return served;
        };
        let (begins, takes) = match visit {
            Visit::ClientHello => (ready, of.answer),
            Visit::Finished if core.0 < ready => (ready.saturating_add(wakes), of.finish),
            Visit::Finished => (ready, of.finish),
        };
        let start = begins.max(core.0);
        let end = start.saturating_add(takes);
        core.0 = end;
        handshake.computing += takes;
        handshake.waiting += start - ready;
        match visit {
            Visit::ClientHello if of.finish > Duration::ZERO => {
                again.push(Reverse((end.saturating_add(of.client), index)));
            }
            Visit::ClientHello | Visit::Finished => handshake.done = end,
        }
    }
}
