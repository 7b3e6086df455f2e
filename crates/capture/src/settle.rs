//! Which sent packet is which delivered one, and what became of those that are none.

use std::collections::HashMap;
use std::time::Duration;

use lastbyte_link::{Side, Time};

use crate::packet::constant_part;
use crate::{Fate, Packet, Point};

/// What tells a packet that the link lost from others that were not delivered, where the link
/// itself does not.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How many packets toward the client the link holds at most.
    pub toward_client: u32,
    /// How many toward the server.
    pub toward_server: u32,
    /// When the tap was closed.
    pub closed: Time,
}

impl Limits {
    fn queue(&self, toward: Side) -> usize {
        let queue = match toward {
            Side::Client => self.toward_client,
            Side::Server => self.toward_server,
        };
        queue as usize
    }
}

/// Has packets, which are in the order of their times, say what became of them.
///
/// A link that tells the fates of what it drops needs no limits: what else was not delivered is
/// under way. With limits, a packet that was sent and not delivered was dropped: for lack of room,
/// if there was none.
pub fn settle(packets: &mut [Packet], limits: Option<&Limits>) {
    let sightings: Vec<Sighting<'_>> = packets.iter().map(Sighting::of).collect();
    let delivered = pair(&sightings);
    for toward in [Side::Client, Side::Server] {
        let points = packets.iter().map(|packet| packet.point);
        let sent: Vec<usize> = indices(points, Point::sent(toward)).collect();
        let arrival = |index: usize| {
            let delivered = delivered.get(index).copied().flatten()?;
            Some(packets.get(delivered)?.at)
        };
        let transits = sent.iter().filter_map(|index| {
            let packet = packets.get(*index)?;
            Some(arrival(*index)?.since(packet.at))
        });
        let longest = transits.max();
        let mut fates = Vec::new();
        // When those arrive that are on the link.
        let mut holds: Vec<Time> = Vec::new();
        for &index in &sent {
            let Some(packet) = packets.get(index) else {
                continue;
            };
            holds.retain(|arrives| *arrives > packet.at);
            match (arrival(index), packet.fate, limits) {
                (Some(arrives), _, _) => holds.push(arrives),
                (None, Fate::Carried, None) => fates.push((index, Fate::UnderWay)),
                (None, Fate::Carried, Some(limits)) => {
                    let left = limits.closed.since(packet.at);
                    let fate = match longest {
                        Some(longest) if left <= longest => Fate::UnderWay,
                        _ if holds.len() >= limits.queue(toward) => Fate::QueueFull,
                        // Of a link that has carried nothing, nobody knows how long it takes.
                        _ => Fate::Lost,
                    };
                    fates.push((index, fate));
                }
                (None, _, _) => {}
            }
        }
        for (index, fate) in fates {
            if let Some(packet) = packets.get_mut(index) {
                packet.fate = fate;
            }
        }
    }
}

/// A packet as it was seen at one point.
#[derive(Clone, Copy, Debug)]
pub struct Sighting<'a> {
    /// When.
    pub at: Time,
    /// Where.
    pub point: Point,
    /// What is known of what became of it.
    pub fate: Fate,
    /// From its IP header on.
    pub bytes: &'a [u8],
}

impl<'a> Sighting<'a> {
    pub(crate) fn of(packet: &'a Packet) -> Self {
        Self {
            at: packet.at,
            point: packet.point,
            fate: packet.fate,
            bytes: &packet.bytes,
        }
    }
}

/// For each packet that was sent, its place where it is delivered.
///
/// Bytes distinguish packets. Of several that are alike, the latest is taken that can have come so
/// early: a SYN that is sent again, because the first one was lost, is the one that arrives.
pub fn pair(packets: &[Sighting<'_>]) -> Vec<Option<usize>> {
    let mut pairs = vec![None; packets.len()];
    for toward in [Side::Client, Side::Server] {
        let points = || packets.iter().map(|packet| packet.point);
        let mut alike: HashMap<Vec<u8>, (Vec<usize>, Vec<usize>)> = HashMap::new();
        for index in indices(points(), Point::sent(toward)) {
            let Some(packet) = packets.get(index) else {
                continue;
            };
            if !matches!(packet.fate, Fate::Lost | Fate::QueueFull) {
                let (sent, _) = alike.entry(constant_part(packet.bytes)).or_default();
                sent.push(index);
            }
        }
        for index in indices(points(), Point::delivered(toward)) {
            let bytes = packets.get(index).map(|packet| constant_part(packet.bytes));
            if let Some((_, delivered)) = bytes.and_then(|bytes| alike.get_mut(&bytes)) {
                delivered.push(index);
            }
        }
        let at = |index: usize| packets.get(index).map_or(Time(0), |packet| packet.at);
        let transit = |sent: usize, delivered: usize| at(delivered).since(at(sent));
        let least = alike.values().filter_map(|places| match places {
            (sent, delivered) if sent.len() == 1 => {
                let (sent, delivered) = (*sent.first()?, *delivered.first()?);
                (at(delivered) >= at(sent)).then(|| transit(sent, delivered))
            }
            _ => None,
        });
        let least = least.min().unwrap_or(Duration::ZERO);
        for (mut sent, delivered) in alike.into_values() {
            for delivered in delivered {
                let can_be = |sent: &usize| at(*sent) + least <= at(delivered);
                if let Some(place) = sent.iter().rposition(can_be) {
                    let sent = sent.remove(place);
                    if let Some(pair) = pairs.get_mut(sent) {
                        *pair = Some(delivered);
                    }
                }
            }
        }
    }
    pairs
}

fn indices(points: impl Iterator<Item = Point>, point: Point) -> impl Iterator<Item = usize> {
    let places = points.enumerate();
    places.filter_map(move |(index, at)| (at == point).then_some(index))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use lastbyte_link::TcpPacket;

    use super::*;
    use crate::packet::fixtures::segment;

    const SYN: u8 = TcpPacket::SYN;

    fn packet(at: u64, point: Point, number: u32) -> Packet {
        let from = point.sender();
        let mut bytes = segment(from, SYN, number, 0, &[], &[]);
        if !point.is_before_link() {
            // A router in between counts down the time to live, and devices fill in checksums.
            bytes[8] -= 1;
            bytes[10..12].fill(9);
            bytes[36..38].fill(9);
        }
        Packet::whole(Time(at), point, Fate::Carried, bytes)
    }

    const LIMITS: Limits = Limits {
        toward_client: 1000,
        toward_server: 3,
        closed: Time(1_000_000),
    };

    fn fates(packets: &[Packet]) -> Vec<Fate> {
        let sent = packets
            .iter()
            .filter(|packet| packet.point.is_before_link());
        sent.map(|packet| packet.fate).collect()
    }

    #[test]
    fn what_never_arrives_was_lost_and_what_is_late_is_under_way() {
        use Point::{DeliveredToServer, SentByClient};
        let mut packets = [
            packet(0, SentByClient, 1),
            packet(5, SentByClient, 2),
            packet(100, DeliveredToServer, 1),
            packet(999_950, SentByClient, 3),
        ];
        settle(&mut packets, Some(&LIMITS));
        assert_eq!(fates(&packets), [Fate::Carried, Fate::Lost, Fate::UnderWay]);
        // A link that tells what it drops has dropped none of them.
        for packet in &mut packets {
            packet.fate = Fate::Carried;
        }
        settle(&mut packets, None);
        assert_eq!(
            fates(&packets),
            [Fate::Carried, Fate::UnderWay, Fate::UnderWay]
        );
    }

    #[test]
    fn what_finds_as_many_packets_as_the_link_holds_found_its_queue_full() {
        use Point::{DeliveredToServer, SentByClient};
        let mut packets: Vec<Packet> = (0..5).map(|n| packet(n, SentByClient, n as u32)).collect();
        packets.extend((0..3).map(|n| packet(100 + n, DeliveredToServer, n as u32)));
        // There is room again, so this one was lost.
        packets.push(packet(200, SentByClient, 9));
        settle(&mut packets, Some(&LIMITS));
        assert_eq!(
            fates(&packets)[3..],
            [Fate::QueueFull, Fate::QueueFull, Fate::Lost]
        );
    }

    #[test]
    fn of_packets_that_are_alike_the_latest_is_delivered_that_can_be() {
        use Point::{DeliveredToServer, SentByClient};
        let mut packets = [
            packet(0, SentByClient, 1),
            packet(0, SentByClient, 7),
            packet(100, DeliveredToServer, 7),
            packet(1000, SentByClient, 1),
            // Too late to be this one.
            packet(1050, SentByClient, 1),
            packet(1100, DeliveredToServer, 1),
        ];
        settle(&mut packets, Some(&LIMITS));
        assert_eq!(
            fates(&packets),
            [Fate::Lost, Fate::Carried, Fate::Carried, Fate::Lost]
        );
    }

    #[test]
    fn both_directions_are_settled_by_themselves() {
        use Point::{DeliveredToClient, SentByClient, SentByServer};
        let mut packets = [
            packet(0, SentByClient, 1),
            packet(0, SentByServer, 1),
            packet(100, DeliveredToClient, 1),
        ];
        settle(&mut packets, Some(&LIMITS));
        assert_eq!(fates(&packets), [Fate::Lost, Fate::Carried]);
    }
}
