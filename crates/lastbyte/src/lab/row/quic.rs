//! What a row says of a handshake over QUIC.

use lastbyte_exchange::{Handshake, Quic, Transport};
use lastbyte_link::Side;
use lastbyte_tls::observer::Message;
use lastbyte_tls::observer::quic::{Packet, PacketKind, QuicObservation};

use super::negotiated;
use crate::results::{Exchange, HandshakeFlight};

/// What was seen of a handshake on its datagrams.
pub(in crate::lab) fn exchange(observed: &QuicObservation) -> Exchange {
    // Payload of the datagrams that have handshake messages in packets of one kind.
    let carrying = |sender: Side, kinds: &[PacketKind]| -> Vec<u32> {
        let is_one = |packet: &Packet| {
            kinds.contains(&packet.kind) && packet.crypto.is_some_and(|bytes| bytes > 0)
        };
        let sent = observed.datagrams.iter();
        let datagrams =
            sent.filter(|sent| sent.sender == sender && sent.packets.iter().any(is_one));
        datagrams.map(|datagram| datagram.bytes as u32).collect()
    };
    let sum = |sender, kinds: &[PacketKind]| {
        let datagrams = carrying(sender, kinds).into_iter();
        datagrams.reduce(|one, other| one.saturating_add(other))
    };
    let both = [PacketKind::Initial, PacketKind::Handshake];
    let hellos = carrying(Side::Client, &[PacketKind::Initial]).len();
    let mut handshake = Handshake::of(observed.handshake.messages);
    let has_retry = observed
        .handshake
        .bytes(Message::HelloRetryRequest)
        .is_some();
    if !has_retry {
        handshake.see_all([
            (
                HandshakeFlight::ClientHello,
                sum(Side::Client, &[PacketKind::Initial]),
            ),
            (HandshakeFlight::Server, sum(Side::Server, &both)),
            (
                HandshakeFlight::ClientFinish,
                sum(Side::Client, &[PacketKind::Handshake]),
            ),
        ]);
    }
    let hellos = u32::try_from(hellos).unwrap_or(u32::MAX);
    Exchange {
        transport: Transport::Quic(Quic {
            client_hello_datagrams: Some(hellos).filter(|count| *count > 0 && !has_retry),
        }),
        handshake,
        negotiated: negotiated(&observed.handshake),
        ..Exchange::default()
    }
}
