//! What the virtual engine and its endpoints do for speed alone.

use std::borrow::Cow;

use lastbyte_link::{Bytes, named};
use serde::{Deserialize, Serialize};

use super::PreparedArm;
use super::channel::Input;
use super::cores::{self, Core};
use crate::explain::buffers_change_nothing;
use crate::study::{
    Arm, Buffers, Cell, CpuTime, Emulation, EngineName, Experiment, Flush, ReceiveBuffer, Writes,
};

/// Whether guests and endpoints in virtual time take the ways round system calls that they have. No
/// row may tell which.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Shortcuts {
    /// As fast as it goes.
    #[default]
    #[serde(rename = "taken")]
    Taken,
    /// As any program would do it.
    // As long as the other name: see `GuestJob`.
    #[serde(rename = "avoid")]
    Avoided,
}

named!(Shortcuts, "way with shortcuts", { Taken => "taken", Avoided => "avoid" });

/// When a client hears that data has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WakePolicy {
    /// Whenever some has, as usual.
    Arrival,
    /// When there is enough of it to go on (`SO_RCVLOWAT`).
    Progress,
}

/// How much is read when an event says that there is something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadPolicy {
    /// What one read takes: what comes later is another event.
    Event,
    /// Until there is no more, as any program would do it.
    Everything,
}

impl ReadPolicy {
    /// That of a cell's connections, once it is [set up](Shortcuts::set_up). Where a link has no rate, all
    /// of a window arrives in one moment, and how much of it one read takes decides how far Linux grows a
    /// receive buffer whose size it chooses: a round trip of a later response.
    pub(crate) fn of(cell: &Cell) -> ReadPolicy {
        let link = &cell.link;
        let all_at_once = link.forward.rate.is_none() || link.backward.rate.is_none();
        match cell.hosts.buffers {
            Buffers::Linux if all_at_once => ReadPolicy::Everything,
            _ => ReadPolicy::Event,
        }
    }
}

/// What a client may receive on a connection, besides its handshake, and be woken by low-water
/// marks.
const SHORT: Bytes = Bytes(208 << 10);

impl Shortcuts {
    /// The cell of an experiment as a guest sets it up. Where arithmetic has each packet leave and
    /// arrive in the same nanosecond with large buffers as with Linux's own, hosts have large ones,
    /// with which clients can be woken by low-water marks. It walks neither through what computing
    /// takes in the clock, nor through the emulator in user space, whose own time depends on how
    /// often a client runs.
    pub(crate) fn set_up<'c>(
        self,
        arm: &PreparedArm,
        cell: &'c Cell,
        experiment: &Experiment,
    ) -> Cow<'c, Cell> {
        let had = cell.buffers(EngineName::Virtual);
        let cell = cell.with_buffers(had);
        let may_be_large = self == Shortcuts::Taken
            && had == Buffers::Linux
            && experiment.emulation == Emulation::Netem
            && experiment.cpu.in_clock() == CpuTime::None;
        if !may_be_large {
            return cell;
        }
        let mut large = cell.as_ref().clone();
        large.hosts.buffers = Buffers::Large;
        let gains = self.wakes(&arm.arm, &large) == WakePolicy::Progress;
        if gains && buffers_change_nothing(&arm.arm, arm.own.as_ref(), &cell) {
            Cow::Owned(large)
        } else {
            cell
        }
    }

    /// When clients are woken. With low-water marks, a connection must be as it is without:
    ///
    /// - A mark above what the receive buffer begins with enlarges that, and the window: buffers must be large
    ///   from the start.
    /// - What another's server writes when, nobody knows.
    /// - A short segment after another one is acknowledged when it is read (`ICSK_ACK_PUSHED2`): each message
    ///   must be one write, which ends in one short segment.
    /// - While the window grows, and outside of ping-pong mode, each segment is acknowledged. It grows by two
    ///   bytes for each that arrives, from 3.1 MB to 3.7 MB (with large buffers), less what was not read: with
    ///   at most 64 KiB (`LOW_WATER` of the channel) of that, until more than 270 KB have come.
    pub(crate) fn wakes(self, arm: &Arm, cell: &Cell) -> WakePolicy {
        let work = cell.work();
        let received = work.data.0.saturating_mul(u64::from(work.requests));
        let is_exact = !arm.server.is_foreign()
            && cell.hosts.buffers == Buffers::Large
            && cell.hosts.receive_buffer == ReceiveBuffer::Unset
            && cell.hosts.writes == Writes::WHOLE
            && arm.flush == Flush::Whole
            && received <= SHORT.0;
        match self {
            Shortcuts::Taken if is_exact => WakePolicy::Progress,
            _ => WakePolicy::Arrival,
        }
    }

    /// What a socket is expected to have, where an event says this: read is until there is no more,
    /// or until it must be so.
    pub(crate) fn input(self, input: Input, reads: ReadPolicy) -> Input {
        match (self, reads) {
            (Shortcuts::Taken, ReadPolicy::Event) => input,
            (Shortcuts::Avoided, _) | (_, ReadPolicy::Everything) => Input::Closed,
        }
    }

    /// Where a guest runs, if that is one CPU. Its kernel and its processes take turns, one of them
    /// at a time: to wake one on another CPU, at each of their system calls, takes longer than to
    /// go on with it on the same.
    pub(super) fn core(self) -> Option<Core> {
        match self {
            Shortcuts::Taken => cores::take_free_core(),
            Shortcuts::Avoided => None,
        }
    }

    /// What was set last, a timer or a queueing discipline, if the kernel need not be asked for it.
    pub(crate) fn remembered<T>(self, set: Option<T>) -> Option<T> {
        set.filter(|_| self == Shortcuts::Taken)
    }
}
