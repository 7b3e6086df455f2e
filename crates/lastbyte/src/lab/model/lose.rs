//! The handshake of an arm, once for each of its datagrams, with that one lost.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use lastbyte_link::Side;
use lastbyte_sizes::{Message, MessageSizes};
use lastbyte_tls::observer::quic::{Crypto, Datagram, PacketKind, QuicObservation};

use super::ends::connection_losing;
use crate::lab::PreparedArm;
use crate::lab::losing::{handshake_of, in_words, part};
use crate::results::{HandshakeFlight, Losses, Lost};
use crate::study::{Cell, Experiment};

/// Loses each datagram of the handshake of an arm once, over the network of a cell, which loses none by itself. It takes no
/// luck: the connection is the first of its sample. None where it was interrupted.
pub fn lose(
    arm: &PreparedArm,
    cell: &Cell,
    experiment: &Experiment,
    interrupt: &AtomicBool,
) -> Option<Losses> {
    let cell = handshake_of(cell);
    let carry = |lost| connection_losing(arm, &cell, experiment, 0, lost, None);
    let whole = carry(None);
    let mut lost = Vec::new();
    let messages = &whole.row.exchange.handshake.messages;
    for (sender, number, datagram, carries) in datagrams_of(&whole.observed, messages) {
        if interrupt.load(Ordering::Relaxed) {
            return None;
        }
        lost.push(Lost {
            sender,
            number: number + 1,
            bytes: datagram.bytes,
            carries,
            row: carry(Some((sender, number))).row,
        });
    }
    Some(Losses {
        arm: arm.arm.name.clone(),
        transport: arm.arm.transport,
        programs: BTreeMap::new(),
        amplification: whole.amplification,
        cell,
        whole: whole.row,
        lost,
    })
}

/// The datagrams of a handshake with these messages, each with its number among its sender's and what is in it.
pub(in crate::lab) fn datagrams_of<'o>(
    observed: &'o QuicObservation,
    messages: &MessageSizes,
) -> Vec<(Side, u32, &'o Datagram, String)> {
    let mut counts = [0; 2];
    let datagrams = observed.datagrams.iter();
    datagrams
        .map(|datagram| {
            let number = &mut counts[datagram.sender as usize];
            *number += 1;
            let carries = carries(datagram, messages);
            (datagram.sender, *number - 1, datagram, carries)
        })
        .collect()
}

/// What an end says in Initial and in Handshake packets, in this order.
fn levels(sender: Side) -> [Vec<Message>; 2] {
    let hellos = match sender {
        Side::Client => [Message::ClientHello, Message::SecondClientHello],
        Side::Server => [Message::HelloRetryRequest, Message::ServerHello],
    };
    let flight = match sender {
        Side::Client => HandshakeFlight::ClientFinish,
        Side::Server => HandshakeFlight::Server,
    };
    let rest = flight.messages().iter().copied();
    let rest = rest.filter(|message| !hellos.contains(message)).collect();
    [hellos.to_vec(), rest]
}

/// What is in a datagram, by the places of its CRYPTO frames among all that its sender says.
fn carries(datagram: &Datagram, messages: &MessageSizes) -> String {
    let levels = levels(datagram.sender);
    let mut parts: Vec<String> = Vec::new();
    for packet in &datagram.packets {
        let level = match packet.kind {
            PacketKind::Initial => 0,
            PacketKind::Handshake => 1,
            PacketKind::Retry => {
                parts.push("Retry".to_owned());
                continue;
            }
            PacketKind::ZeroRtt => {
                parts.push("early data".to_owned());
                continue;
            }
            PacketKind::VersionNegotiation | PacketKind::OneRtt => continue,
        };
        let frames = packet.crypto.as_deref().unwrap_or_default();
        if frames.is_empty() && packet.is_ping() {
            parts.push("a probe".to_owned());
        }
        for Crypto { bytes, new } in frames {
            let again = if *new == 0 { " again" } else { "" };
            let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
            let bytes = place(bytes.start)..place(bytes.end);
            let mut offset = 0;
            for message in &levels[level] {
                let Some(length) = messages.get(*message) else {
                    continue;
                };
                let own = offset..offset + length as usize;
                offset = own.end;
                parts.extend(part(*message, &own, &bytes).map(|part| part + again));
            }
        }
    }
    let is_opaque = |kind| matches!(kind, PacketKind::OneRtt | PacketKind::VersionNegotiation);
    if datagram.packets.iter().all(|packet| is_opaque(packet.kind)) {
        return "1-RTT packets alone".to_owned();
    }
    parts.dedup();
    in_words(&parts)
}

#[cfg(test)]
mod tests;
