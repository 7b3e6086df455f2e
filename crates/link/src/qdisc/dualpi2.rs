//! The coupled queues of L4S (RFC 9332), as `net/sched/sch_dualpi2.c` of Linux 7.3 has them where nothing else is said.

use std::collections::VecDeque;
use std::time::Duration;

use super::{DualPi2, Held, Surroundings, Waiting};
use crate::{EcnCodepoint, Time};

#[derive(Clone, Debug)]
pub(super) struct State {
    limit: u32,
    target: i64,
    tupdate: Duration,
    step: Duration,
    coupling: u64,
    mtu: u64,
    /// Bytes that the classic queue may send before the other has its turn.
    credit: i64,
    classic: VecDeque<Entry>,
    scalable: VecDeque<Entry>,
    /// In 2^-32.
    pub(super) probability: u32,
    delay_before: i64,
    next_update: Time,
}

/// A packet, when it came, and its luck.
#[derive(Clone, Copy, Debug)]
struct Entry {
    packet: Waiting,
    since: Time,
    luck: u64,
}

impl Entry {
    fn is_capable(&self) -> bool {
        self.packet.ecn.is_capable()
    }

    /// Whether both draws strike, as the classic probability is the square of the other.
    fn strikes_twice(&self, probability: u32) -> bool {
        (self.luck as u32) <= probability && self.strikes(probability)
    }

    fn strikes(&self, probability: u32) -> bool {
        (self.luck >> 32) as u32 <= probability
    }
}

/// Whether a packet goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Passes,
    Marked,
    Dropped,
}

/// The gains of the controller, in 2^-32 per 64 ns: 41/256 and 819/256 per second.
const ALPHA: i64 = gain(41);
const BETA: i64 = gain(819);
const GRANULARITY: u32 = 6;
/// Out of 100 bytes, what the classic queue has for sure where both wait.
const CLASSIC_SHARE: i64 = 10;
const SCALABLE_SHARE: i64 = 100 - CLASSIC_SHARE;

const fn gain(of_256: u64) -> i64 {
    (((of_256 * u32::MAX as u64) >> 2) / 1_000_000_000) as i64
}

impl State {
    pub(super) fn new(settings: &DualPi2, around: Surroundings) -> State {
        let mut state = State {
            limit: settings.limit,
            target: settings.target.as_nanos() as i64,
            tupdate: settings.tupdate,
            step: settings.step_thresh,
            coupling: settings.coupling_factor.into(),
            mtu: around.mtu.into(),
            credit: 0,
            classic: VecDeque::new(),
            scalable: VecDeque::new(),
            probability: 0,
            delay_before: 0,
            next_update: around.begin + settings.tupdate,
        };
        state.idles();
        state
    }

    pub(super) fn enqueue(
        &mut self,
        now: Time,
        held: &mut Held,
        packet: Waiting,
        luck: impl FnOnce() -> u64,
        dropped: &mut Vec<u64>,
    ) {
        self.update(now);
        if held.packets >= self.limit {
            dropped.push(packet.ticket);
            return;
        }
        held.add(packet.length);
        let entry = Entry {
            packet,
            since: now,
            luck: luck(),
        };
        match packet.ecn {
            EcnCodepoint::Ect1 | EcnCodepoint::Ce => self.scalable.push_back(entry),
            EcnCodepoint::NotEct | EcnCodepoint::Ect0 => self.classic.push_back(entry),
        }
    }

    pub(super) fn dequeue(
        &mut self,
        now: Time,
        held: &mut Held,
        dropped: &mut Vec<u64>,
    ) -> Option<Waiting> {
        self.update(now);
        loop {
            let Some((mut entry, is_scalable, change)) = self.next() else {
                self.idles();
                return None;
            };
            held.remove(entry.packet.length);
            let mut verdict = if held.bytes < 2 * self.mtu {
                Verdict::Passes
            } else if is_scalable {
                self.scalable(&entry)
            } else {
                self.classic(&entry)
            };
            let is_late = is_scalable && now.since(entry.since) > self.step;
            if is_late && verdict == Verdict::Passes {
                verdict = Verdict::Marked;
            }
            if verdict == Verdict::Dropped {
                dropped.push(entry.packet.ticket);
                continue;
            }
            entry.packet.marked |= verdict == Verdict::Marked;
            self.credit += change;
            return Some(entry.packet);
        }
    }

    /// Nothing is left to send.
    pub(super) fn idles(&mut self) {
        self.credit = self.mtu as i64 * (CLASSIC_SHARE - SCALABLE_SHARE);
    }

    /// The first of the queue whose turn it is, whether that is the scalable one, and what its turn changes.
    fn next(&mut self) -> Option<(Entry, bool, i64)> {
        let [has_classic, has_scalable] =
            [&self.classic, &self.scalable].map(|queue| !queue.is_empty());
        let is_scalable = has_scalable && (!has_classic || self.credit <= 0);
        let (entry, share) = if is_scalable {
            let share = if has_classic { CLASSIC_SHARE } else { 0 };
            (self.scalable.pop_front()?, share)
        } else {
            let share = if has_scalable { -SCALABLE_SHARE } else { 0 };
            (self.classic.pop_front()?, share)
        };
        let change = share * i64::from(entry.packet.length);
        Some((entry, is_scalable, change))
    }

    /// The probability of the scalable queue, and whether it is more than certain.
    fn coupled(&self) -> Result<u32, Overload> {
        u32::try_from(u64::from(self.probability) * self.coupling).map_err(|_| Overload)
    }

    fn classic(&self, entry: &Entry) -> Verdict {
        if !entry.strikes_twice(self.probability) {
            Verdict::Passes
        } else if self.coupled().is_err() || !entry.is_capable() {
            Verdict::Dropped
        } else {
            Verdict::Marked
        }
    }

    fn scalable(&self, entry: &Entry) -> Verdict {
        match self.coupled() {
            Err(Overload) if entry.strikes_twice(self.probability) => Verdict::Dropped,
            Err(Overload) => Verdict::Marked,
            Ok(probability) if entry.strikes(probability) => Verdict::Marked,
            Ok(_) => Verdict::Passes,
        }
    }

    /// All changes of the probability that are due.
    fn update(&mut self, now: Time) {
        while self.next_update <= now {
            let at = self.next_update;
            self.next_update = at + self.tupdate.max(Duration::from_millis(1));
            self.calculate(at);
        }
    }

    fn calculate(&mut self, now: Time) {
        let waits = |queue: &VecDeque<Entry>| {
            let first = queue.front();
            first.map_or(0, |first| now.since(first.since).as_nanos() as i64)
        };
        let delay = waits(&self.classic).max(waits(&self.scalable));
        let away = (delay - self.target).saturating_mul(ALPHA);
        let grows = (delay - self.delay_before).saturating_mul(BETA);
        self.delay_before = delay;
        let delta = away.saturating_add(grows);
        // Linux keeps the lowest 32 bits of what it adds.
        let step = (delta.unsigned_abs() >> GRANULARITY) as u32;
        self.probability = if delta > 0 {
            self.probability.saturating_add(step)
        } else {
            self.probability.saturating_sub(step)
        };
    }
}

/// More comes than marks can hold back.
#[derive(Clone, Copy, Debug)]
struct Overload;
