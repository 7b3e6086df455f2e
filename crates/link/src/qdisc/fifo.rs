//! One queue that drops who finds it full.

use std::collections::VecDeque;

use super::{Held, Limit, Surroundings, Waiting};
use crate::Rate;

#[derive(Clone, Debug)]
pub(super) struct Fifo {
    limit: Limit,
    rate: Option<Rate>,
    packets: VecDeque<Waiting>,
}

impl Fifo {
    pub(super) fn new(limit: Limit, around: Surroundings) -> Fifo {
        Fifo {
            limit,
            rate: around.rate,
            packets: VecDeque::new(),
        }
    }

    pub(super) fn enqueue(&mut self, held: &mut Held, packet: Waiting, dropped: &mut Vec<u64>) {
        let with = held.bytes.saturating_add(packet.length.into());
        let has_room = match (self.limit, self.rate) {
            (Limit::Packets(most), _) => held.packets < most,
            (Limit::Bytes(most), _) => with <= most.0,
            (Limit::Time(most), Some(rate)) => {
                let bytes = usize::try_from(held.bytes).unwrap_or(usize::MAX);
                rate.serialisation(bytes) <= most
            }
            // Nobody waits.
            (Limit::Time(_), None) => true,
        };
        if has_room {
            held.add(packet.length);
            self.packets.push_back(packet);
        } else {
            dropped.push(packet.ticket);
        }
    }

    pub(super) fn dequeue(&mut self, held: &mut Held) -> Option<Waiting> {
        let packet = self.packets.pop_front()?;
        held.remove(packet.length);
        Some(packet)
    }
}
