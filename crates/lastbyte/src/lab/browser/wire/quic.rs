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
