//! When connections start that follow each other.

use std::io;
use std::time::Duration;

use lastbyte_link::{Seed, Time};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, ClockNanosleepFlags, clock_nanosleep};

use super::sys;

/// In nanoseconds: the 512 ticks of 1 ms of which the kernel's timers of 4 to 32 s come at a multiple, and
/// those of less at a divisor.
pub(super) const WHEEL: u64 = 512 * 1_000_000;

/// When a connection starts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Starts {
    /// As soon as it may.
    Now,
    /// In virtual time, where waiting costs nothing, as its luck by this seed has it: at the same place of
    /// the kernel's wheel of timers, whatever was measured before. A SYN that is lost comes again up to
    /// 64 ms sooner or later by that place (`calc_wheel_index` in kernel/time/timer.c), and timers of TCP
    /// end on a tick.
    ByLuck(Seed),
    /// Likewise, but each as the luck of the one with this index has it: nothing tells them apart.
    ByLuckOf(Seed, u32),
}

impl Starts {
    /// Sleeps until connection `index` may start.
    pub(crate) fn wait(self, index: u32) -> io::Result<()> {
        match self {
            Starts::Now => Ok(()),
            Starts::ByLuck(_) | Starts::ByLuckOf(..) => {
                sleep_until(self.after(Duration::ZERO, index))
            }
        }
    }

    /// A time below this that the luck of connection `index` draws.
    pub(crate) fn drawn(self, most: Duration, index: u32) -> Duration {
        let (seed, index) = match self {
            Starts::Now => return Duration::ZERO,
            Starts::ByLuck(seed) => (seed, index),
            Starts::ByLuckOf(seed, index) => (seed, index),
        };
        let most = u64::try_from(most.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(seed.part(&format!("lead {index}")).0 % most.max(1))
    }

    /// When connection `index` may start, if that is not to be sooner than in so long.
    pub(crate) fn after(self, wait: Duration, index: u32) -> Time {
        let earliest = sys::now() + wait;
        match self {
            Starts::Now => earliest,
            Starts::ByLuck(seed) => start_after(earliest, seed, index),
            Starts::ByLuckOf(seed, index) => start_after(earliest, seed, index),
        }
    }
}

fn start_after(earliest: Time, seed: Seed, index: u32) -> Time {
    let place = seed.part(&format!("phase {index}")).0 % WHEEL;
    Time(earliest.0.next_multiple_of(WHEEL).saturating_add(place))
}

/// Sleeps for so long.
pub(crate) fn sleep(time: Duration) -> io::Result<()> {
    sleep_until(sys::now() + time)
}

/// Sleeps until then, to the nanosecond where the clock is virtual.
pub(crate) fn sleep_until(time: Time) -> io::Result<()> {
    let until = TimeSpec::from_duration(Duration::from_nanos(time.0));
    let flags = ClockNanosleepFlags::TIMER_ABSTIME;
    clock_nanosleep(ClockId::CLOCK_MONOTONIC, flags, &until)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_starts_at_its_place_of_the_wheel() {
        let seed = Seed(1);
        for index in 0..100 {
            let places = [0, 1, WHEEL - 1, WHEEL, 123_456_789_012].map(|earliest| {
                let start = start_after(Time(earliest), seed, index).0;
                assert!((earliest..earliest + 2 * WHEEL).contains(&start));
                start % WHEEL
            });
            assert!(places.iter().all(|place| *place == places[0]));
        }
        let place = |index| start_after(Time(0), seed, index);
        assert_ne!(place(0), place(1));
    }

    #[test]
    fn luck_draws_below_the_most() {
        let starts = Starts::ByLuck(Seed(1));
        let most = Duration::from_secs(5);
        let drawn: Vec<Duration> = (0..1000).map(|index| starts.drawn(most, index)).collect();
        assert!(drawn.iter().all(|time| *time < most));
        let early = drawn.iter().filter(|time| **time < most / 2).count();
        assert!((450..550).contains(&early), "{early}");
        assert_eq!(Starts::ByLuckOf(Seed(1), 7).drawn(most, 3), drawn[7]);
        assert_eq!(Starts::Now.drawn(most, 3), Duration::ZERO);
        assert_eq!(starts.drawn(Duration::ZERO, 3), Duration::ZERO);
    }
}
