//! What two ends sent each other in UDP datagrams.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::net::SocketAddrV4;
use std::time::Duration;

use lastbyte_link::{Side, Time};

use crate::connection::own_comments;
use crate::packet::Datagram;
use crate::settle::{Sighting, pair};
use crate::{ConnectionId, DNS_PORT, Fate, Packet};

/// The datagrams of two ends, as both sides of the link saw them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Whose it is.
    pub id: ConnectionId,
    /// What comments say of it: those of its first packet but fates.
    pub comment: String,
    /// When its first datagram was sent, since 1970.
    pub begin: Time,
    /// All of them, in the order in which they were sent.
    pub datagrams: Vec<Passage>,
}

/// One datagram's way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    /// Who sent it.
    pub sender: Side,
    /// When, since the first datagram of its flow.
    pub sent: Duration,
    /// When it arrived, if it did.
    pub arrived: Option<Duration>,
    /// What became of it.
    pub fate: Fate,
    /// What it carries.
    pub payload: Vec<u8>,
}

impl Flow {
    /// Who sent what, in the order in which it was sent.
    pub fn payloads(&self) -> impl Iterator<Item = (Side, &[u8])> + Clone {
        let all = self.datagrams.iter();
        all.map(|passage| (passage.sender, passage.payload.as_slice()))
    }
}

/// The flows of a capture, in the order in which they begin: those that begin with a client's datagram, and no questions to
/// resolvers.
#[must_use]
pub fn flows(packets: &[(Packet, Vec<String>)]) -> Vec<Flow> {
    let mut ordered: Vec<&(Packet, Vec<String>)> = packets.iter().collect();
    ordered.sort_by_key(|(packet, _)| packet.at);
    let sightings = ordered.iter().map(|(packet, _)| Sighting::of(packet));
    let pairs = pair(&sightings.collect::<Vec<_>>());

    let mut found: BTreeMap<ConnectionId, Flow> = BTreeMap::new();
    for ((packet, comments), delivered) in ordered.iter().zip(pairs) {
        if !packet.point.is_before_link() {
            continue;
        }
        let Some(datagram) = Datagram::parse(&packet.bytes) else {
            continue;
        };
        let sender = packet.point.sender();
        let id = id_of(sender, &datagram);
        let flow = match found.entry(id) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(_) if sender == Side::Server || id.server.1 == DNS_PORT => continue,
            Entry::Vacant(unknown) => unknown.insert(Flow {
                id,
                comment: own_comments(comments),
                begin: packet.at,
                datagrams: Vec::new(),
            }),
        };
        let arrived = delivered.and_then(|delivered| ordered.get(delivered));
        flow.datagrams.push(Passage {
            sender,
            sent: packet.at.since(flow.begin),
            arrived: arrived.map(|(packet, _)| packet.at.since(flow.begin)),
            fate: packet.fate,
            payload: datagram.payload.to_vec(),
        });
    }
    let mut flows: Vec<Flow> = found.into_values().collect();
    flows.sort_by_key(|flow| flow.begin);
    flows
}

fn id_of(sender: Side, datagram: &Datagram<'_>) -> ConnectionId {
    let end = |end: SocketAddrV4| (*end.ip(), end.port());
    let (source, destination) = (end(datagram.source), end(datagram.destination));
    match sender {
        Side::Client => ConnectionId {
            client: source,
            server: destination,
        },
        Side::Server => ConnectionId {
            client: destination,
            server: source,
        },
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use lastbyte_link::EcnCodepoint;

    use super::*;
    use crate::Point;

    const CLIENT: &str = "198.18.0.1:20000";
    const SERVER: &str = "198.19.0.1:443";

    fn packet(at: u64, point: Point, ends: [&str; 2], payload: &[u8]) -> (Packet, Vec<String>) {
        let [source, destination] = match point.sender() {
            Side::Client => ends,
            Side::Server => [ends[1], ends[0]],
        };
        let datagram = Datagram {
            source: source.parse().unwrap(),
            destination: destination.parse().unwrap(),
            ecn: EcnCodepoint::NotEct,
            payload,
        };
        let mut bytes = datagram.packet().unwrap();
        if !point.is_before_link() {
            // A router in between counts down the time to live.
            bytes[8] -= 1;
            bytes[10..12].fill(9);
        }
        (
            Packet::whole(Time(at), point, Fate::Carried, bytes),
            Vec::new(),
        )
    }

    #[test]
    fn a_flow_has_what_both_ends_sent_and_what_of_it_arrived() {
        use Point::{DeliveredToServer, SentByClient, SentByServer};
        let ends = [CLIENT, SERVER];
        let mut packets = [
            // Of a connection that began before the capture.
            packet(1, SentByServer, ["198.18.0.9:20000", SERVER], b"late"),
            packet(5, SentByClient, ["198.18.0.1:30000", "198.19.0.1:53"], b"?"),
            packet(10, SentByClient, ends, b"hello"),
            packet(11, SentByClient, ends, b"again"),
            packet(60, DeliveredToServer, ends, b"again"),
            packet(60, SentByServer, ends, b"hi"),
        ];
        packets[2].1 = vec!["connection 7".to_owned(), "lost by the link".to_owned()];
        packets[2].0.fate = Fate::Lost;
        let [flow] = &flows(&packets)[..] else {
            unreachable!("one is a flow's");
        };
        assert_eq!((flow.begin, &*flow.comment), (Time(10), "connection 7"));
        let seen = flow.datagrams.iter();
        let seen: Vec<_> = seen
            .map(|one| (one.sender, one.sent.as_nanos(), one.arrived, one.fate))
            .collect();
        let arrived = Some(Duration::from_nanos(50));
        assert_eq!(
            seen,
            [
                (Side::Client, 0, None, Fate::Lost),
                (Side::Client, 1, arrived, Fate::Carried),
                (Side::Server, 50, None, Fate::Carried),
            ]
        );
    }
}
