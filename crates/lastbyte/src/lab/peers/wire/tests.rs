#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::path::Path;

use lastbyte_link::{EcnCodepoint, Seed};
use lastbyte_pki::Store;
use lastbyte_quic::Kept;

use super::*;
use crate::lab::PreparedArm;
use crate::lab::quic::{QuicPair, QuicSettings, UnderWay};
use crate::lab::row::row_of;
use crate::lab::surroundings::{SERVER, client_address};
use crate::study::Cell;

const DELAY: Duration = Duration::from_millis(50);
const SLOT: u32 = 3;

/// A datagram in an IPv4 packet, of which nobody checks the sums.
fn packet(sender: Side, client_port: u16, datagram: &[u8]) -> Vec<u8> {
    let client = (client_address(SLOT), client_port);
    let server = (SERVER, SERVER_PORT);
    let ((source, from), (destination, to)): ((Ipv4Addr, u16), (Ipv4Addr, u16)) = match sender {
        Side::Client => (client, server),
        Side::Server => (server, client),
    };
    let length = (28 + datagram.len()) as u16;
    let mut packet = vec![0x45, 0];
    packet.extend(length.to_be_bytes());
    packet.extend([0, 0, 0x40, 0, 64, 17, 0, 0]);
    packet.extend(source.octets());
    packet.extend(destination.octets());
    packet.extend(from.to_be_bytes());
    packet.extend(to.to_be_bytes());
    packet.extend((length - 20).to_be_bytes());
    packet.extend([0, 0]);
    packet.extend(datagram);
    packet
}

/// The packets of a connection of our own ends, whose client's datagrams from `lost` on are lost, and the row that its ends make.
fn carried(arm: &str, lost: u32) -> (Vec<Packet>, KeyLog, Row, Option<f64>) {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let store = Store::open(target.join("test-chains"));
    let arm = PreparedArm::new(arm.parse().unwrap(), &store).unwrap();
    let settings = QuicSettings::new(&arm, &Cell::default(), Seed(1));
    let mut pair = QuicPair::new(&settings, 0, Kept::default()).unwrap();
    let mut notes = Vec::new();
    let mut under_way: VecDeque<(Time, Side, Vec<u8>)> = VecDeque::new();
    let mut now = Time(1_000_000);
    let begin = now;
    let mut of_client = 0;
    let outcome = loop {
        let since = Time(0) + now.since(begin);
        let mut step: Option<Option<(Side, Vec<u8>)>> = Some(None);
        while let Some(datagram) = step {
            let mut sent = Vec::new();
            let mut send =
                |sender: Side, _, datagram: &[u8]| sent.push((sender, datagram.to_vec()));
            match datagram {
                None => pair.on_time(since, &mut send),
                Some((receiver, datagram)) => {
                    pair.receive(since, receiver, EcnCodepoint::NotEct, &datagram, &mut send)
                }
            }
            for (sender, datagram) in sent {
                let is_lost = sender == Side::Client && of_client >= lost;
                of_client += u32::from(sender == Side::Client);
                let fate = if is_lost { Fate::Lost } else { Fate::Carried };
                let bytes = packet(sender, 20_000, &datagram);
                notes.push(Packet::whole(now, Point::sent(sender.other()), fate, bytes));
                if !is_lost {
                    under_way.push_back((now + DELAY, sender.other(), datagram));
                }
            }
            step = under_way
                .pop_front_if(|next| next.0 <= now)
                .map(|(_, receiver, datagram)| {
                    let bytes = packet(receiver.other(), 20_000, &datagram);
                    notes.push(Packet::whole(
                        now,
                        Point::delivered(receiver),
                        Fate::Carried,
                        bytes,
                    ));
                    Some((receiver, datagram))
                });
        }
        if let Some(outcome) = pair.outcome(UnderWay::Something) {
            break outcome;
        }
        let due = pair.due().map(|due| begin + due.since(Time(0)));
        let next = under_way.front().map(|next| next.0).into_iter().chain(due);
        now = next.min().unwrap().max(now);
    };
    // What is under way when the ends are done arrives as well.
    for (at, receiver, datagram) in under_way {
        let bytes = packet(receiver.other(), 20_000, &datagram);
        notes.push(Packet::whole(
            at,
            Point::delivered(receiver),
            Fate::Carried,
            bytes,
        ));
    }
    let ended = pair.finish(outcome);
    let keys = ended.keys.clone();
    let exchange = quic::exchange(&ended.observed_datagrams().unwrap());
    let factor = ended.amplification;
    (
        notes,
        keys,
        row_of(ended, exchange, 0, 0, Duration::ZERO),
        factor,
    )
}

/// What is read off the packets is what the ends know.
#[test]
fn packets_tell_what_ends_know() {
    for arm in [
        "x25519/ecdsa-p256/transport=quic",
        "X25519MLKEM768/ml-dsa-65/transport=quic",
    ] {
        let (packets, keys, ours, factor) = carried(arm, u32::MAX);
        let seen = Seen::of(&packets, SLOT, &keys);
        let row = seen.row(0, 0, Duration::ZERO, None);
        assert_eq!(row.outcome, Outcome::Completed, "{arm}");
        assert_eq!(row.exchange, ours.exchange, "{arm}");
        assert_eq!(row.times.handshake, ours.times.handshake, "{arm}");
        assert_eq!(
            row.times.server_handshake, ours.times.server_handshake,
            "{arm}"
        );
        let ([client, server], [_, of_server]) = (row.transport.quic(), ours.transport.quic());
        let (client, server, of_server) = (client.unwrap(), server.unwrap(), of_server.unwrap());
        assert_eq!(server.unvalidated_bytes, of_server.unvalidated_bytes);
        assert_eq!(server.credited_bytes, of_server.credited_bytes);
        assert_eq!(
            (server.datagrams, server.udp_bytes),
            (of_server.datagrams, of_server.udp_bytes)
        );
        assert_eq!((client.unvalidated_bytes, client.counted), (None, None));
        assert_eq!(seen.amplification(), factor, "{arm}");
    }
}

/// Nobody is believed that a handshake is complete whose end never came.
#[test]
fn a_finished_that_is_lost_completes_nothing() {
    // The two Initials come, and nothing after them.
    let (packets, keys, ours, _) = carried("X25519MLKEM768/ecdsa-p256/transport=quic", 2);
    assert_ne!(ours.outcome, Outcome::Completed);
    let row =
        Seen::of(&packets, SLOT, &keys).row(0, 0, Duration::ZERO, Some("it had no more time"));
    let Outcome::Failed { reason, .. } = &row.outcome else {
        panic!("{:?}", row.outcome);
    };
    assert_eq!(reason, "client: it had no more time");
    assert_eq!(row.times, Times::default());
}

/// A browser that connects again does so from another socket, and other slots are other connections.
#[test]
fn a_row_is_of_the_first_connection_of_its_slot() {
    let (mut packets, keys, _, _) = carried("x25519/ecdsa-p256/transport=quic", u32::MAX);
    let seen =
        |packets: &[Packet], slot| Seen::of(packets, slot, &keys).row(0, 0, Duration::ZERO, None);
    let alone = seen(&packets, SLOT);
    let again: Vec<Packet> = (packets.iter())
        .filter(|packet| packet.point == Point::SentByClient)
        .map(|sent| {
            let udp = UdpPacket::parse(&sent.bytes).unwrap();
            Packet {
                bytes: packet(Side::Client, 20_001, udp.payload),
                ..sent.clone()
            }
        })
        .collect();
    packets.extend(again);
    assert_eq!(seen(&packets, SLOT), alone);
    assert_ne!(seen(&packets, SLOT + 1).outcome, Outcome::Completed);
}
