//! The handshake of an arm, once for each of its datagrams, with that one lost.

use std::sync::atomic::{AtomicBool, Ordering};

use lastbyte_link::Side;
use lastbyte_sizes::{Message, MessageSizes};
use lastbyte_tls::observer::quic::{Datagram, PacketKind};

use super::ends::{Carried, connection_losing};
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
    for (sender, number, datagram, carries) in handshake(&whole) {
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
        cell,
        whole: whole.row,
        lost,
    })
}

/// The datagrams of a handshake, each with its number among its sender's and what is in it.
fn handshake(whole: &Carried) -> Vec<(Side, u32, &Datagram, String)> {
    let mut counts = [0; 2];
    let mut seen = [[0; 2]; 2];
    let messages = &whole.row.exchange.handshake.messages;
    let datagrams = whole.observed.datagrams.iter();
    datagrams
        .map(|datagram| {
            let number = &mut counts[datagram.sender as usize];
            *number += 1;
            let carries = carries(datagram, messages, &mut seen[datagram.sender as usize]);
            (datagram.sender, *number - 1, datagram, carries)
        })
        .collect()
}

/// What is in a datagram: `seen` is how many bytes of messages its sender sent before, in Initial and in Handshake packets.
fn carries(datagram: &Datagram, messages: &MessageSizes, seen: &mut [usize; 2]) -> String {
    let of = |flight: HandshakeFlight, hellos: &[Message]| -> [Vec<Message>; 2] {
        let all = flight.messages().iter().copied();
        all.partition::<Vec<_>, _>(|message| hellos.contains(message))
            .into()
    };
    let levels = match datagram.sender {
        Side::Client => {
            let [_, finish] = of(HandshakeFlight::ClientFinish, &[]);
            [vec![Message::ClientHello], finish]
        }
        Side::Server => of(HandshakeFlight::Server, &[Message::ServerHello]),
    };
    let mut parts = Vec::new();
    for packet in &datagram.packets {
        let level = match packet.kind {
            PacketKind::Initial => 0,
            PacketKind::Handshake => 1,
            PacketKind::Retry => {
                parts.push("Retry".to_owned());
                continue;
            }
            _ => continue,
        };
        let begin = seen[level];
        let end = begin + packet.crypto.unwrap_or(0);
        seen[level] = end;
        let mut offset = 0;
        for message in &levels[level] {
            let Some(bytes) = messages.get(*message) else {
                continue;
            };
            let own = offset..offset + bytes as usize;
            offset = own.end;
            parts.extend(part(*message, &own, &(begin..end)));
        }
    }
    in_words(&parts)
}
