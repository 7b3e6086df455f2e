//! What a row says of a handshake over QUIC.

use lastbyte_exchange::{AddressValidation, Handshake, Quic, Transport};
use lastbyte_link::Side;
use lastbyte_tls::observer::Message;
use lastbyte_tls::observer::quic::{Packet, PacketKind, QuicObservation};

use super::negotiated;
use crate::results::{Exchange, HandshakeFlight};

/// What was seen of a handshake on its datagrams.
pub(in crate::lab) fn exchange(observed: &QuicObservation) -> Exchange {
    // Payload of the datagrams that have handshake messages for the first time, or early data, in packets of one kind: what
    // TCP sends again is no part of its flights either.
    let carrying = |sender: Side, kinds: &[PacketKind]| -> Vec<u32> {
        let is_one = |packet: &Packet| {
            let is_early = packet.kind == PacketKind::ZeroRtt;
            kinds.contains(&packet.kind) && (is_early || packet.has_new_crypto())
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
                sum(Side::Client, &[PacketKind::Initial, PacketKind::ZeroRtt]),
            ),
            (HandshakeFlight::Server, sum(Side::Server, &both)),
            (
                HandshakeFlight::ClientFinish,
                sum(Side::Client, &[PacketKind::Handshake]),
            ),
        ]);
    }
    let hellos = u32::try_from(hellos).unwrap_or(u32::MAX);
    let packets = |sender: Side| {
        let sent = observed.datagrams.iter();
        let sent = sent.filter(move |datagram| datagram.sender == sender);
        sent.flat_map(|datagram| &datagram.packets)
    };
    let is_retry = |packet: &Packet| packet.kind == PacketKind::Retry;
    let token = packets(Side::Client).map(|packet| packet.token).max();
    let token = token.filter(|bytes| *bytes > 0);
    Exchange {
        transport: Transport::Quic(Quic {
            client_hello_datagrams: Some(hellos).filter(|count| *count > 0 && !has_retry),
            address_validation: token.map(|_| {
                if packets(Side::Server).any(is_retry) {
                    AddressValidation::Retry
                } else {
                    AddressValidation::Token
                }
            }),
            token_bytes: token.and_then(|bytes| u32::try_from(bytes).ok()),
        }),
        handshake,
        negotiated: negotiated(&observed.handshake),
        ..Exchange::default()
    }
}
