//! The time of day, and whether the chain that is served is good for it.

use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use lastbyte_pki::Chain;
use nix::sys::reboot::{RebootMode, reboot};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_settime};

/// Sets the clock forward or back.
pub(crate) fn step(by: Step) {
    let now = SystemTime::now();
    let then = match by {
        Step::Ahead(by) => now + by,
        Step::Behind(by) => now - by,
    };
    let since_1970 = then.duration_since(UNIX_EPOCH).unwrap();
    clock_settime(ClockId::CLOCK_REALTIME, TimeSpec::from_duration(since_1970)).unwrap();
}

/// Which way, and how far.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Ahead(Duration),
    Behind(Duration),
}

impl Step {
    /// What undoes it.
    pub(crate) fn back(self) -> Step {
        match self {
            Step::Ahead(by) => Step::Behind(by),
            Step::Behind(by) => Step::Ahead(by),
        }
    }
}

/// Ends the kernel that this runs in.
pub(crate) fn end_kernel() -> ! {
    let error = reboot(RebootMode::RB_POWER_OFF);
    panic!("can't end this kernel: {error:?}");
}

/// For which times of day the chain that is served is good, and when that or the clock changed.
#[derive(Debug, Default)]
pub(crate) struct Goodness(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// Each chain's first and last moment.
    chains: Vec<(SystemTime, SystemTime)>,
    /// When either changed, from its beginning to when all know of it.
    changes: Vec<(Instant, Option<Instant>)>,
}

/// A moment, by both clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) at: Instant,
    time: SystemTime,
}

impl Moment {
    pub(crate) fn now() -> Moment {
        Moment {
            at: Instant::now(),
            time: SystemTime::now(),
        }
    }
}

/// Which chain may be meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// What is sent to who knows nothing.
    Last,
    /// One before it, too, whose record is held: a server whose clock was ahead has replaced a chain that is good once the
    /// clock is right.
    Any,
}

/// Whether a chain was good while something was under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Was {
    Good,
    Bad,
    /// It, or the time of day, has changed meanwhile.
    Either,
}

impl Goodness {
    /// Another chain is written.
    pub(crate) fn is_of(&self, chain: &Chain) {
        let end_entity = &chain.certificates()[0];
        let epoch = openssl::asn1::Asn1Time::from_unix(0).unwrap();
        let until = epoch.diff(end_entity.not_after()).unwrap();
        let until = i64::from(until.days) * 86_400 + i64::from(until.secs);
        let until = UNIX_EPOCH + Duration::from_secs(u64::try_from(until).unwrap());
        let good = (UNIX_EPOCH + chain.valid_from(), until);
        self.0.lock().unwrap().chains.push(good);
    }

    pub(crate) fn begins_to_change(&self) {
        self.0.lock().unwrap().changes.push((Instant::now(), None));
    }

    pub(crate) fn has_changed(&self) {
        if let Some((_, end)) = self.0.lock().unwrap().changes.last_mut() {
            *end = Some(Instant::now());
        }
    }

    /// Whether the chain is good from now on for so long.
    pub(crate) fn lasts(&self, time: Duration) -> bool {
        let now = SystemTime::now();
        let inner = self.0.lock().unwrap();
        let last = inner.chains.last();
        last.is_some_and(|&(from, until)| from <= now && now + time <= until)
    }

    pub(crate) fn between(&self, since: Moment, now: Moment, which: Which) -> Was {
        let inner = self.0.lock().unwrap();
        let meanwhile = |(from, to): &(Instant, Option<Instant>)| {
            *from <= now.at && to.is_none_or(|to| since.at <= to)
        };
        let chains = match which {
            Which::Last => &inner.chains[inner.chains.len().saturating_sub(1)..],
            Which::Any => &inner.chains[..],
        };
        // To the second, as certificates have it.
        let is_good = |moment: Moment| {
            let mut chains = chains.iter();
            chains.any(|&(from, until)| from <= moment.time && moment.time <= until)
        };
        match [is_good(since), is_good(now)] {
            _ if inner.changes.iter().any(meanwhile) => Was::Either,
            [true, true] => Was::Good,
            [false, false] => Was::Bad,
            _ => Was::Either,
        }
    }
}
