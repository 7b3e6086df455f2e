//! Controlled delay (RFC 8289), as `include/net/codel_impl.h` and `net/sched/sch_codel.c` have it.

use std::collections::VecDeque;
use std::time::Duration;

use super::{Codel, Ecn, Held, Surroundings, Waiting, mark};
use crate::Time;

#[derive(Clone, Debug)]
pub(super) struct State {
    limit: u32,
    settings: Settings,
    control: Control,
    packets: VecDeque<Entry>,
}

/// A packet and when it came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) packet: Waiting,
    pub(super) since: Clock,
}

/// A point in time or a duration in units of 1024 ns, which begins again after 73 minutes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Clock(u32);

impl Clock {
    const SHIFT: u32 = 10;

    pub(super) fn at(time: Time) -> Clock {
        Clock((time.0 >> Self::SHIFT) as u32)
    }

    /// Of a duration in whole microseconds, as `tc` gives it.
    fn of(duration: Duration) -> Clock {
        Clock(((duration.as_micros() as u64 * 1000) >> Self::SHIFT) as u32)
    }

    fn since(self, earlier: Clock) -> Clock {
        Clock(self.0.wrapping_sub(earlier.0))
    }

    fn plus(self, duration: u32) -> Clock {
        Clock(self.0.wrapping_add(duration))
    }

    /// By serial number arithmetic (RFC 1982).
    fn is_after(self, other: Clock) -> bool {
        (self.0.wrapping_sub(other.0) as i32) > 0
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    target: Clock,
    interval: Clock,
    mtu: u32,
    ecn: Ecn,
}

impl Settings {
    pub(super) fn new(codel: &Codel, mtu: u32) -> Settings {
        Settings {
            target: Clock::of(codel.target),
            interval: Clock::of(codel.interval),
            mtu,
            ecn: codel.ecn,
        }
    }
}

impl State {
    pub(super) fn new(codel: &Codel, around: Surroundings) -> State {
        State {
            limit: codel.limit,
            settings: Settings::new(codel, around.mtu),
            control: Control::default(),
            packets: VecDeque::new(),
        }
    }

    pub(super) fn enqueue(
        &mut self,
        now: Time,
        held: &mut Held,
        packet: Waiting,
        dropped: &mut Vec<u64>,
    ) {
        if held.packets >= self.limit {
            dropped.push(packet.ticket);
            return;
        }
        held.add(packet.length);
        let since = Clock::at(now);
        self.packets.push_back(Entry { packet, since });
    }

    pub(super) fn dequeue(
        &mut self,
        now: Time,
        held: &mut Held,
        dropped: &mut Vec<u64>,
    ) -> Option<Waiting> {
        let (control, settings) = (&mut self.control, &self.settings);
        control.dequeue(settings, Clock::at(now), &mut self.packets, held, dropped)
    }
}

/// What a queue knows of how long its packets have waited.
#[derive(Clone, Debug, Default)]
pub(super) struct Control {
    state: Dropping,
    /// Drops since they began; what is dropped for lack of room counts, too.
    pub(super) count: u32,
    /// The same when they began.
    last_count: u32,
    /// 1 / sqrt(count), in 1/65536.
    inverse_root: u16,
    /// When packets will have waited too long for an interval, if they do now.
    above_until: Option<Clock>,
    /// When the next one is dropped, or the last was.
    drop_next: Clock,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Dropping {
    #[default]
    No,
    Yes,
}

impl Control {
    /// The next packet of a queue that goes.
    pub(super) fn dequeue(
        &mut self,
        settings: &Settings,
        now: Clock,
        packets: &mut VecDeque<Entry>,
        held: &mut Held,
        dropped: &mut Vec<u64>,
    ) -> Option<Waiting> {
        let mut next = pop(packets, held);
        if next.is_none() {
            self.above_until = None;
            self.state = Dropping::No;
            return None;
        }
        let is_due = self.is_due(settings, now, next.as_ref(), held);
        match (self.state, is_due) {
            (Dropping::Yes, false) => self.state = Dropping::No,
            (Dropping::Yes, true) => {
                while self.state == Dropping::Yes && !self.drop_next.is_after(now) {
                    self.count = self.count.wrapping_add(1);
                    self.approach_root();
                    let Some(entry) = &mut next else {
                        break;
                    };
                    if mark(&mut entry.packet, settings.ecn) {
                        self.drop_next = self.after(self.drop_next, settings);
                        break;
                    }
                    dropped.push(entry.packet.ticket);
                    next = pop(packets, held);
                    if self.is_due(settings, now, next.as_ref(), held) {
                        self.drop_next = self.after(self.drop_next, settings);
                    } else {
                        self.state = Dropping::No;
                    }
                }
            }
            (Dropping::No, false) => {}
            (Dropping::No, true) => {
                if let Some(entry) = &mut next
                    && !mark(&mut entry.packet, settings.ecn)
                {
                    dropped.push(entry.packet.ticket);
                    next = pop(packets, held);
                    // For since when packets have waited too long.
                    self.is_due(settings, now, next.as_ref(), held);
                }
                self.state = Dropping::Yes;
                self.begin(settings, now);
            }
        }
        next.map(|entry| entry.packet)
    }

    /// Where drops begin: as often as they were at the end, if that was a short time ago.
    fn begin(&mut self, settings: &Settings, now: Clock) {
        /// Intervals.
        const RECENT: u32 = 16;
        let last = self.count.wrapping_sub(self.last_count);
        let recent = Clock(settings.interval.0.wrapping_mul(RECENT));
        if last > 1 && recent.is_after(now.since(self.drop_next)) {
            self.count = last;
            self.approach_root();
        } else {
            self.count = 1;
            self.inverse_root = u16::MAX;
        }
        self.last_count = self.count;
        self.drop_next = self.after(now, settings);
    }

    /// Whether packets have waited too long for an interval. `held` is without the packet.
    fn is_due(
        &mut self,
        settings: &Settings,
        now: Clock,
        entry: Option<&Entry>,
        held: &Held,
    ) -> bool {
        let is_below = entry.is_none_or(|entry| {
            let waited = now.since(entry.since);
            settings.target.is_after(waited) || held.bytes <= settings.mtu.into()
        });
        if is_below {
            self.above_until = None;
            return false;
        }
        match self.above_until {
            None => {
                self.above_until = Some(now.plus(settings.interval.0));
                false
            }
            Some(until) => now.is_after(until),
        }
    }

    /// The control law: an interval by the root of the count later.
    fn after(&self, time: Clock, settings: &Settings) -> Clock {
        let root = u64::from(self.inverse_root) << 16;
        time.plus(((u64::from(settings.interval.0) * root) >> 32) as u32)
    }

    /// A step of Newton's method: x becomes x (3 - count x²) / 2.
    fn approach_root(&mut self) {
        let x = u64::from(self.inverse_root) << 16;
        let square = (x * x) >> 32;
        let three = 3_u64 << 32;
        let rest = three.wrapping_sub(u64::from(self.count).wrapping_mul(square));
        // By 4 before and by 2^31 after, as the product has no more than 64 bits.
        let next = (rest >> 2).wrapping_mul(x) >> 31;
        self.inverse_root = (next >> 16) as u16;
    }
}

fn pop(packets: &mut VecDeque<Entry>, held: &mut Held) -> Option<Entry> {
    let entry = packets.pop_front()?;
    held.remove(entry.packet.length);
    Some(entry)
}
