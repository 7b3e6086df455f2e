//! Sees the guest's packets at the router: before netem as they come in, behind it as they go out.
//!
//! The kernel notes the time of each without its clock going on: in an interrupt's work, reading it
//! takes none.

use std::io;

use lastbyte_capture::{Fate, Point, encode};
use lastbyte_link::Side;

use super::network::Network;
use crate::lab::LabError;
use crate::lab::inspection::{Fates, ObservedBlock, expected_packets};
use crate::lab::sys::memory::PLACES;
use crate::lab::sys::ring::{Direction, PacketRing};
use crate::study::{Cell, Gso};

/// Of the router's ends of both cables.
pub(super) struct Tap {
    rings: [(Side, PacketRing); 2],
    /// Connections that it sees: the first ones of a block.
    connections: u32,
}

impl Tap {
    /// The most memory of both rings, in bytes: a guest has 256 MB.
    const MOST: usize = 64 << 20;

    /// For so many connections of a block; none if there are none.
    pub(super) fn open(
        network: &Network,
        cell: &Cell,
        connections: u32,
    ) -> Result<Option<Tap>, LabError> {
        /// The longest packet of IPv4.
        const LONGEST: usize = 65_535;
        /// As many packets fit, with what the kernel writes before each, as frames of that size.
        const FRAME: usize = 2048;
        if connections == 0 {
            return Ok(None);
        }
        let longest = match cell.gso {
            Gso::On => LONGEST,
            Gso::Off => usize::from(cell.hosts.mtu.bytes()),
        };
        let (packets, _) = expected_packets(cell, connections);
        let frame = longest.max(FRAME).next_power_of_two();
        let count = packets.min(Self::MOST / 2 / frame);
        let [first, second] = PLACES;
        let open = |side, place| {
            let ring = network.at_router(side, |interface| {
                PacketRing::open(interface, longest, count, place)
            });
            ring.map(|ring| (side, ring)).map_err(LabError::Configure)
        };
        Ok(Some(Tap {
            rings: [open(Side::Client, first)?, open(Side::Server, second)?],
            connections,
        }))
    }

    /// Says that the connection in this slot is about to begin, and whoever begins with it.
    pub(super) fn begins(&self, slot: u32) -> io::Result<()> {
        if slot >= self.connections {
            self.stop()
        } else {
            Ok(())
        }
    }

    fn stop(&self) -> io::Result<()> {
        self.rings.iter().try_for_each(|(_, ring)| ring.stop())
    }

    /// What it has seen.
    pub(super) fn close(self) -> io::Result<ObservedBlock> {
        self.stop()?;
        let closed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let mut notes = Vec::new();
        for (side, ring) in &self.rings {
            for packet in ring.packets() {
                // What comes in from a side was sent by it.
                let point = match packet.direction {
                    Direction::Received => Point::sent(side.other()),
                    Direction::Sent => Point::delivered(*side),
                };
                let length = notes.len();
                notes.resize(length + packet.bytes.len() + 64, 0);
                let noted = encode(
                    &mut notes,
                    length,
                    packet.at,
                    point,
                    Fate::Carried,
                    packet.bytes,
                    packet.length,
                );
                notes.truncate(noted.unwrap_or(length));
            }
        }
        Ok(ObservedBlock {
            notes,
            since: 0,
            closed: closed.map_or(0, |closed| closed.as_nanos() as u64),
            unseen: self.rings.iter().map(|(_, ring)| ring.unseen()).sum(),
            fates: Fates::Absence,
            secrets: Vec::new(),
        })
    }
}
