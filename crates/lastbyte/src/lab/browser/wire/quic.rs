//! A browser's connections over QUIC, by their datagrams.

use std::collections::BTreeMap;

use lastbyte_capture::Datagram;
use lastbyte_link::{Side, Time};
use lastbyte_tls::KeyLog;
use lastbyte_tls::observer::quic::{PacketKind, QuicObserver, has_packet};

use super::{Carried, Ends, Handshake, ObservedPacket};
use crate::lab::row::quic::exchange;

/// What of a connection was seen.
struct Seen {
    began: Time,
    answered: Option<Time>,
    observer: QuicObserver,
}

/// All connections over QUIC that the client began, read with the secrets in `keys`. A browser has a socket for each.
pub(super) fn handshakes(packets: &[ObservedPacket<'_>], keys: &KeyLog) -> Vec<Handshake> {
    let mut connections: BTreeMap<Ends, Seen> = BTreeMap::new();
    for packet in packets.iter().filter(|packet| packet.is_at_client()) {
        let Some(udp) = Datagram::parse(packet.bytes) else {
            continue;
        };
        let sender = packet.point.sender();
        let ends = Ends::between(udp.source, udp.destination, sender);
        if sender == Side::Client && has_packet(udp.payload, PacketKind::Initial) {
            connections.entry(ends).or_insert_with(|| Seen {
                began: packet.at,
                answered: None,
                observer: QuicObserver::default(),
            });
        }
        let Some(seen) = connections.get_mut(&ends) else {
            continue;
        };
        if sender == Side::Server {
            seen.answered.get_or_insert(packet.at);
        }
        if is_of_handshake(udp.payload) {
            seen.observer.sent(sender, udp.payload);
        }
    }
    let found = connections.into_iter().map(|(ends, seen)| {
        let random = seen.observer.observe(&KeyLog::default()).client_random;
        let observed = seen.observer.observe(&keys.of_client_random(&random));
        Handshake {
            ends,
            began: seen.began,
            answered: seen.answered,
            exchange: exchange(&observed),
            carried: Carried::Datagrams,
        }
    });
    found.collect()
}

/// Whether a datagram has anything else than what follows a handshake.
fn is_of_handshake(datagram: &[u8]) -> bool {
    let kinds = [
        PacketKind::Initial,
        PacketKind::ZeroRtt,
        PacketKind::Handshake,
        PacketKind::Retry,
    ];
    kinds.into_iter().any(|kind| has_packet(datagram, kind))
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddrV4};

    use lastbyte_capture::{Datagram, Point};
    use lastbyte_link::{EcnCodepoint, Time};
    use lastbyte_tls::KeyLog;
    use proptest::prelude::*;

    use super::{ObservedPacket, handshakes};

    /// What a browser and its server send, from 25 ms on, each 25 ms later.
    fn seen(sent: &[(Point, u16, Vec<u8>)]) -> Vec<(u64, Point, Vec<u8>)> {
        let server = SocketAddrV4::new(Ipv4Addr::new(198, 19, 0, 1), 443);
        let packet = |(at, (point, port, payload)): (u64, &(Point, u16, Vec<u8>))| {
            let client = SocketAddrV4::new(Ipv4Addr::new(198, 18, 0, 1), *port);
            let (source, destination) = match point {
                Point::SentByClient | Point::DeliveredToServer => (client, server),
                Point::SentByServer | Point::DeliveredToClient => (server, client),
            };
            let datagram = Datagram {
                source,
                destination,
                ecn: EcnCodepoint::NotEct,
                payload,
            };
            Some((at * 25, *point, datagram.packet()?))
        };
        (1..).zip(sent).filter_map(packet).collect()
    }

    fn found(packets: &[(u64, Point, Vec<u8>)]) -> Vec<(u64, Option<u64>, u16)> {
        let packets = packets.iter().map(|(at, point, bytes)| ObservedPacket {
            at: Time(*at),
            point: *point,
            bytes,
        });
        let packets: Vec<ObservedPacket<'_>> = packets.collect();
        let found = handshakes(&packets, &KeyLog::default());
        let told = found.iter().map(|one| {
            let answered = one.answered.map(|at| at.0);
            (one.began.0, answered, one.ends.client.port())
        });
        told.collect()
    }

    /// An Initial packet begins a connection, and a datagram from somebody without one does not. What the link delivers at the
    /// server is not the client's.
    #[test]
    fn a_connection_begins_with_an_initial_packet() {
        // A long header of version 1, connection IDs of 8 and 0 bytes, no token, and 4 bytes that nobody can open.
        let initial = [&[0xc0, 0, 0, 0, 1, 8][..], &[7; 8], &[0, 0, 4], &[0; 4]].concat();
        let data = [&[0x40][..], &[7; 30]].concat();
        let (sent, came) = (Point::SentByClient, Point::DeliveredToClient);
        let packets = seen(&[
            (came, 1000, data.clone()),
            (sent, 1000, initial.clone()),
            (sent, 2000, initial.clone()),
            (Point::DeliveredToServer, 3000, initial.clone()),
            (came, 1000, data.clone()),
            (came, 1000, data.clone()),
            (sent, 4000, data),
        ]);
        assert_eq!(found(&packets), [(50, Some(125), 1000), (75, None, 2000)]);
    }

    proptest! {
        #[test]
        fn anything_is_read(
            sent in prop::collection::vec(
                (any::<bool>(), 0_u16..3, prop::collection::vec(any::<u8>(), 0..200)), 0..30
            ),
        ) {
            let point = |is_client| if is_client { Point::SentByClient } else { Point::DeliveredToClient };
            let sent = sent.into_iter().map(|(is_client, port, bytes)| (point(is_client), port, bytes));
            found(&seen(&sent.collect::<Vec<_>>()));
        }
    }
}
