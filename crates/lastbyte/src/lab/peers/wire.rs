//! What the datagrams of a connection tell of it: nothing is asked of its ends.

use std::time::Duration;

use lastbyte_capture::{Fate, Packet, Point, Records};
use lastbyte_link::{Side, Time, UdpPacket};
use lastbyte_tls::KeyLog;
use lastbyte_tls::observer::quic::{
    Datagram, PacketKind, QuicObservation, QuicObserver, has_packet,
};

use crate::lab::quic::Ledger;
use crate::lab::row::quic;
use crate::lab::socket::SERVER_PORT;
use crate::lab::surroundings::client_slot;
use crate::results::{
    Cause, Dns, FailureKind, Lateness, Measurement, Outcome, QuicStats, Row, Times, TransportStats,
};

/// What was seen of a connection.
pub(in crate::lab) struct Seen {
    /// The datagrams that both ends sent until the client's Finished had come, and what is in them.
    pub(in crate::lab) handshake: QuicObservation,
    times: Times,
    ledger: Ledger,
    outcome: Seemingly,
}

/// What a connection has come to, by its datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seemingly {
    Completed,
    /// The client sent no Finished, or none came.
    Incomplete,
}

/// What an end sent, or the link delivered.
#[derive(Clone, Copy)]
struct Sighting<'p> {
    at: Time,
    point: Point,
    fate: Fate,
    client_port: u16,
    datagram: &'p [u8],
}

impl Seen {
    /// Of the connection in this slot of a block, by what the emulator has noted.
    pub(in crate::lab) fn of(packets: &[Packet], slot: u32, keys: &KeyLog) -> Seen {
        let mut sightings: Vec<Sighting<'_>> = (packets.iter())
            .filter_map(|packet| sighting(packet, slot))
            .collect();
        // A browser may connect again, from another socket.
        let first = sightings.first().map(|first| first.client_port);
        sightings.retain(|one| Some(one.client_port) == first);
        let mut whole = QuicObserver::default();
        let sent = || {
            let sightings = sightings.iter();
            sightings.filter_map(|one| Some((sender_at(one.point)?, one)))
        };
        for (sender, sighting) in sent() {
            whole.sent(sender, sighting.datagram);
        }
        let observed = whole.observe(keys);
        let begin = sightings.first().map_or(Time(0), |first| first.at);
        let since = |at: Time| at.since(begin);
        let finished: Vec<&Sighting<'_>> = (sent().zip(&observed.datagrams))
            .filter(|(_, datagram)| has_finished(datagram))
            .map(|((_, sighting), _)| sighting)
            .collect();
        let arrived = sightings.iter().filter(|one| {
            let is_one =
                |sent: &&Sighting<'_>| sent.fate == Fate::Carried && sent.datagram == one.datagram;
            one.point == Point::DeliveredToServer
                && finished.iter().copied().any(|sent| is_one(&sent))
        });
        let arrived = arrived.map(|one| one.at).next();
        // Once a server has a client's Finished, it says so in a packet of the application's (RFC 9001, 4.1.2).
        let confirmed = arrived.and_then(|arrived| {
            let mut after = sightings.iter();
            after.find(|one| {
                one.point == Point::DeliveredToClient
                    && one.at > arrived
                    && has_packet(one.datagram, PacketKind::OneRtt)
            })
        });
        let mut ledger = Ledger::default();
        for one in &sightings {
            match one.point {
                Point::SentByClient => ledger.send(one.at, Side::Client, one.datagram),
                Point::SentByServer => ledger.send(one.at, Side::Server, one.datagram),
                Point::DeliveredToServer => ledger.receive(one.at, Side::Server, one.datagram),
                Point::DeliveredToClient => ledger.receive(one.at, Side::Client, one.datagram),
            }
        }
        let mut until = QuicObserver::default();
        let end = arrived.unwrap_or(Time(u64::MAX));
        for (sender, sighting) in sent().filter(|(_, sighting)| sighting.at <= end) {
            until.sent(sender, sighting.datagram);
        }
        Seen {
            handshake: until.observe(keys),
            times: Times {
                handshake: finished.first().map(|first| since(first.at)),
                server_handshake: arrived.map(since),
                ttlb: finished.first().map(|first| since(first.at)),
                ..Times::default()
            },
            ledger,
            outcome: match confirmed {
                Some(_) => Seemingly::Completed,
                None => Seemingly::Incomplete,
            },
        }
    }

    /// The most that its server had sent by what it had received, until it knew the client's address.
    pub(in crate::lab) fn amplification(&self) -> Option<f64> {
        self.ledger.credit.amplification()
    }

    /// The row of it, which is connection `index` of its sample. Its client gave this reason, if it did not get its response.
    pub(in crate::lab) fn row(
        &self,
        index: u32,
        block: u32,
        latest: Duration,
        reason: Option<&str>,
    ) -> Row {
        let is_completed = self.outcome == Seemingly::Completed;
        let outcome = match (is_completed, reason) {
            (true, _) => Outcome::Completed,
            (false, reason) => Outcome::Failed {
                cause: Cause::Client(FailureKind::Transport),
                reason: format!(
                    "client: {}",
                    reason.unwrap_or("its handshake was not confirmed")
                ),
            },
        };
        let credit = &self.ledger.credit;
        let number = |bytes: u64| Some(u32::try_from(bytes).unwrap_or(u32::MAX));
        let stats = |side: Side| {
            let sent = self.ledger.sent(side);
            let is_server = side == Side::Server;
            (sent.datagrams > 0).then(|| QuicStats {
                datagrams: sent.datagrams,
                udp_bytes: sent.bytes,
                counted: None,
                unvalidated_bytes: number(credit.sent()).filter(|_| is_server),
                credited_bytes: number(credit.received()).filter(|_| is_server),
                blocked_by_credit: Some(credit.blocked()).filter(|_| is_server),
            })
        };
        Row {
            index,
            block,
            exchange: quic::exchange(&self.handshake),
            outcome,
            times: if is_completed {
                self.times
            } else {
                Times::default()
            },
            dns: Dns::default(),
            measurement: Measurement::Transfer,
            transport: TransportStats::Quic {
                client: stats(Side::Client),
                server: stats(Side::Server),
            },
            lateness: Lateness {
                link: latest,
                endpoint: Duration::ZERO,
            },
        }
    }
}

/// The packets of a tap's notes, in their order.
pub(in crate::lab) fn packets(notes: &[u8]) -> Vec<Packet> {
    let mut packets: Vec<Packet> = Records(notes).collect();
    packets.sort_by_key(|packet| packet.at);
    packets
}

/// A datagram of QUIC of the connection in this slot.
fn sighting(packet: &Packet, slot: u32) -> Option<Sighting<'_>> {
    let udp = UdpPacket::parse(&packet.bytes)?;
    let (client, client_port, port) = match packet.point {
        Point::SentByClient | Point::DeliveredToServer => {
            (udp.source, udp.source_port, udp.destination_port)
        }
        Point::SentByServer | Point::DeliveredToClient => {
            (udp.destination, udp.destination_port, udp.source_port)
        }
    };
    (port == SERVER_PORT && client_slot(client) == Some(slot)).then_some(Sighting {
        at: packet.at,
        point: packet.point,
        fate: packet.fate,
        client_port,
        datagram: udp.payload,
    })
}

fn sender_at(point: Point) -> Option<Side> {
    match point {
        Point::SentByClient => Some(Side::Client),
        Point::SentByServer => Some(Side::Server),
        Point::DeliveredToClient | Point::DeliveredToServer => None,
    }
}

/// Whether it has the client's Finished: without a chain of its own, a client has no other message in Handshake packets.
fn has_finished(datagram: &Datagram) -> bool {
    let mut packets = datagram.packets.iter();
    datagram.sender == Side::Client
        && packets.any(|packet| {
            packet.kind == PacketKind::Handshake
                && packet
                    .crypto
                    .as_ref()
                    .is_some_and(|crypto| !crypto.is_empty())
        })
}

#[cfg(test)]
mod tests;
