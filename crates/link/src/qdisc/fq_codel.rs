//! Flows in turns, each with controlled delay (RFC 8290), as `net/sched/sch_fq_codel.c` has it.

use std::collections::{BTreeMap, VecDeque};

use super::codel::{Clock, Control, Entry, Settings};
use super::{FqCodel, Held, Surroundings, Waiting};
use crate::Time;

#[derive(Clone, Debug)]
pub(super) struct State {
    limit: u32,
    quantum: i64,
    settings: Settings,
    flows: BTreeMap<u32, Flow>,
    /// Those that have come and not had a turn, and go first.
    new: VecDeque<u32>,
    old: VecDeque<u32>,
}

#[derive(Clone, Debug, Default)]
struct Flow {
    packets: VecDeque<Entry>,
    bytes: u64,
    /// Bytes that it has left in its turn.
    credit: i64,
    place: Place,
    control: Control,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Nowhere,
    Listed,
}

impl State {
    pub(super) fn new(fq: &FqCodel, around: Surroundings) -> State {
        State {
            limit: fq.codel.limit,
            quantum: fq.quantum.into(),
            settings: Settings::new(&fq.codel, around.mtu),
            flows: BTreeMap::new(),
            new: VecDeque::new(),
            old: VecDeque::new(),
        }
    }

    pub(super) fn enqueue(
        &mut self,
        now: Time,
        held: &mut Held,
        packet: Waiting,
        dropped: &mut Vec<u64>,
    ) {
        let flow = self.flows.entry(packet.flow).or_default();
        let since = Clock::at(now);
        flow.packets.push_back(Entry { packet, since });
        flow.bytes += u64::from(packet.length);
        held.add(packet.length);
        if flow.place == Place::Nowhere {
            flow.place = Place::Listed;
            flow.credit = self.quantum;
            self.new.push_back(packet.flow);
        }
        if held.packets > self.limit {
            self.make_room(held, dropped);
        }
    }

    /// Drops from the head of the flow that holds most, up to half of it.
    fn make_room(&mut self, held: &mut Held, dropped: &mut Vec<u64>) {
        /// Packets at most.
        const BATCH: u32 = 64;
        let largest = (self.flows.values_mut())
            .reduce(|one, other| if other.bytes > one.bytes { other } else { one });
        let Some(flow) = largest else {
            return;
        };
        let enough = flow.bytes / 2;
        let (mut packets, mut bytes) = (0, 0);
        while let Some(entry) = flow.packets.pop_front() {
            let length = entry.packet.length;
            packets += 1;
            bytes += u64::from(length);
            held.remove(length);
            dropped.push(entry.packet.ticket);
            if packets >= BATCH || bytes >= enough {
                break;
            }
        }
        flow.bytes -= bytes;
        flow.control.count = flow.control.count.wrapping_add(packets);
    }

    pub(super) fn dequeue(
        &mut self,
        now: Time,
        held: &mut Held,
        dropped: &mut Vec<u64>,
    ) -> Option<Waiting> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let id = list.pop_front()?;
            let flow = self.flows.get_mut(&id)?;
            if flow.credit <= 0 {
                flow.credit += self.quantum;
                self.old.push_back(id);
                continue;
            }
            let before = held.bytes;
            let next = flow.control.dequeue(
                &self.settings,
                Clock::at(now),
                &mut flow.packets,
                held,
                dropped,
            );
            flow.bytes -= before - held.bytes;
            match next {
                Some(packet) => {
                    flow.credit -= i64::from(packet.length);
                    let list = if is_new { &mut self.new } else { &mut self.old };
                    list.push_front(id);
                    return Some(packet);
                }
                // A new one has to wait for its turn among the old before it counts as new again.
                None if is_new && !self.old.is_empty() => self.old.push_back(id),
                None => flow.place = Place::Nowhere,
            }
        }
    }
}
