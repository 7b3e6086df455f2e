//! What crossed the wire of a page load, connection by connection, as an observer at the client
//! sees it.

mod quic;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};

use lastbyte_capture::{Datagram, Fate, Point, Reassembly, Segment, Sighting};
use lastbyte_link::{Side, TcpPacket, Time};
use lastbyte_sizes::Message;
use lastbyte_tls::KeyLog;
use lastbyte_tls::observer::Observer;

use super::http::Http;
use crate::lab::row::exchange;
use crate::results::Exchange;
use crate::study::Cache;

/// The most bytes of a connection and direction that are looked at: a handshake with the largest
/// chain.
const MOST: u32 = 1 << 18;

/// A packet where it was seen.
#[derive(Clone, Copy)]
pub(in crate::lab) struct ObservedPacket<'a> {
    pub(in crate::lab) at: Time,
    pub(in crate::lab) point: Point,
    /// From the IP header on.
    pub(in crate::lab) bytes: &'a [u8],
}

/// Which connection of a browser.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ends {
    client: SocketAddrV4,
    /// Where it leads.
    server: SocketAddrV4,
}

impl Ends {
    fn of(tcp: &TcpPacket, sender: Side) -> Ends {
        let source = SocketAddrV4::new(tcp.source, tcp.source_port);
        let destination = SocketAddrV4::new(tcp.destination, tcp.destination_port);
        Ends::between(source, destination, sender)
    }

    fn between(source: SocketAddrV4, destination: SocketAddrV4, sender: Side) -> Ends {
        let (client, server) = match sender {
            Side::Client => (source, destination),
            Side::Server => (destination, source),
        };
        Ends { client, server }
    }
}

impl<'a> ObservedPacket<'a> {
    /// For who pairs packets: whether the link drops it is not known.
    pub(super) fn sighting(&self) -> Sighting<'a> {
        Sighting {
            at: self.at,
            point: self.point,
            fate: Fate::Carried,
            bytes: self.bytes,
        }
    }

    /// The connection that it is of.
    pub(super) fn ends(&self) -> Option<Ends> {
        let sender = self.point.sender();
        match TcpPacket::parse(self.bytes) {
            Some(tcp) => Some(Ends::of(&tcp, sender)),
            None => {
                let udp = Datagram::parse(self.bytes)?;
                Some(Ends::between(udp.source, udp.destination, sender))
            }
        }
    }

    /// The address that its connection begins at.
    pub(in crate::lab) fn client(&self) -> Option<Ipv4Addr> {
        Some(*self.ends()?.client.ip())
    }

    pub(super) fn is_at_client(&self) -> bool {
        matches!(self.point, Point::SentByClient | Point::DeliveredToClient)
    }
}

/// A connection of a browser.
#[derive(Debug)]
pub(super) struct Handshake {
    pub(super) ends: Ends,
    /// When its SYN left, or its first datagram.
    pub(super) began: Time,
    /// When the server's first bytes came.
    answered: Option<Time>,
    pub(super) exchange: Exchange,
    carried: Carried,
}

/// What of a connection goes on after its handshake.
#[derive(Debug)]
enum Carried {
    /// In records, which these keys open.
    Records(Box<Streams>, KeyLog),
    /// In datagrams, of which no more is read.
    Datagrams,
}

impl Handshake {
    /// Where it leads.
    pub(super) fn server(&self) -> Ipv4Addr {
        *self.ends.server.ip()
    }

    /// When the record was there with the first byte of a response. Not known over QUIC.
    pub(super) fn responded(&self) -> Option<Time> {
        let Carried::Records(streams, keys) = &self.carried else {
            return None;
        };
        let Streams { observer, came, .. } = &**streams;
        let mut http = Http::of(&observer.observe(keys));
        let mut records = observer.response_records(keys);
        let (end, _) = records.find(|(_, content)| http.responds(content))?;
        let there = came.iter().find(|(length, _)| *length >= end as u64);
        there.map(|(_, at)| *at)
    }

    /// Whether it came to its end.
    fn is_whole(&self) -> bool {
        self.exchange.bytes(Message::ClientFinished) > 0
    }
}

/// Those that came to their end, as they were answered. A browser makes several connections to an
/// origin of which it does not know that one is enough, or whose SYN is not answered, and gives up
/// all but the first.
pub(super) fn ended(found: &[Handshake]) -> Vec<&Handshake> {
    let mut whole: Vec<&Handshake> = found.iter().filter(|one| one.is_whole()).collect();
    whole.sort_by_key(|one| one.answered);
    whole
}

/// What the browser had of a server when that answered, having had so much of it when it began, and
/// these handshakes before.
pub(super) fn had(cache: Cache, before: &[&Handshake], server: Ipv4Addr) -> Cache {
    if before.iter().any(|one| one.server() == server) {
        Cache::Warm
    } else {
        cache
    }
}

/// Both directions of a connection, in order.
#[derive(Debug, Default)]
struct Streams {
    began: Option<Time>,
    mss: u32,
    client: Stream,
    server: Stream,
    /// How many of the server's bytes were there when.
    came: Vec<(u64, Time)>,
    observer: Observer,
}

/// One direction.
#[derive(Debug, Default)]
struct Stream {
    /// The sequence number of the first byte.
    first: Option<u32>,
    bytes: Reassembly,
}

impl Stream {
    /// Bytes that are known now, and were not before.
    fn take(&mut self, sequence: u32, bytes: &[u8]) -> Vec<u8> {
        let Some(first) = self.first else {
            return Vec::new();
        };
        let place = sequence.wrapping_sub(first);
        if place >= MOST {
            return Vec::new();
        }
        self.bytes.take(place.into(), bytes)
    }
}

/// All connections, in the order in which they began, read with the secrets in `keys`.
pub(super) fn handshakes(packets: &[ObservedPacket<'_>], keys: &KeyLog) -> Vec<Handshake> {
    let mut found = of_tcp(packets, keys);
    found.extend(quic::handshakes(packets, keys));
    found.sort_by_key(|one| one.began);
    found
}

fn of_tcp(packets: &[ObservedPacket<'_>], keys: &KeyLog) -> Vec<Handshake> {
    let mut connections: BTreeMap<Ends, Streams> = BTreeMap::new();
    for packet in packets.iter().filter(|packet| packet.is_at_client()) {
        let Some(Segment {
            header: tcp,
            payload,
            ..
        }) = Segment::parse(packet.bytes)
        else {
            continue;
        };
        let sender = packet.point.sender();
        let streams = connections.entry(Ends::of(&tcp, sender)).or_default();
        let stream = match sender {
            Side::Client => &mut streams.client,
            Side::Server => &mut streams.server,
        };
        if tcp.flags & TcpPacket::SYN != 0 {
            stream.first = Some(tcp.sequence.wrapping_add(1));
            if sender == Side::Client {
                streams.began.get_or_insert(packet.at);
            }
            continue;
        }
        let fresh = stream.take(tcp.sequence, payload);
        match sender {
            Side::Client => streams.mss = streams.mss.max(payload.len() as u32),
            Side::Server if !fresh.is_empty() => {
                let length = stream.bytes.length();
                streams.came.push((length, packet.at));
            }
            Side::Server => {}
        }
        streams.observer.sent(sender, &fresh);
    }
    let found = connections.into_iter().filter_map(|(ends, streams)| {
        let keys = keys.of_client_random(streams.observer.client_random());
        Some(Handshake {
            ends,
            began: streams.began?,
            answered: streams.came.first().map(|(_, at)| *at),
            exchange: exchange(&streams.observer, &keys, Some(streams.mss)),
            carried: Carried::Records(Box::new(streams), keys),
        })
    });
    found.collect()
}

#[cfg(test)]
#[allow(clippy::indexing_slicing)]
mod tests {
    use proptest::prelude::*;

    use std::net::{Ipv4Addr, SocketAddrV4};

    use super::{Carried, Ends, Handshake, MOST, Stream, ended, had};
    use crate::results::Exchange;
    use crate::study::Cache;
    use lastbyte_link::Time;
    use lastbyte_sizes::Message;

    /// The SYN of a browser's first connection is lost, so it makes another one, and then has a
    /// session for the first.
    #[test]
    fn a_connection_can_resume_one_that_was_answered_before() {
        let server = |last| Ipv4Addr::new(192, 0, 2, last);
        let handshake = |to, began, answered, finished| {
            let mut exchange = Exchange::default();
            (exchange.handshake.messages).set(Message::ClientFinished, finished);
            Handshake {
                ends: Ends {
                    client: SocketAddrV4::new(Ipv4Addr::new(198, 51, 100, 1), 40_000),
                    server: SocketAddrV4::new(server(to), 443),
                },
                began: Time(began),
                answered: Some(Time(answered)),
                exchange,
                carried: Carried::Datagrams,
            }
        };
        let found = [
            handshake(1, 0, 1100, Some(36)),
            handshake(1, 250, 350, Some(36)),
            handshake(1, 260, 300, None),
            handshake(2, 400, 500, Some(36)),
        ];
        let ended = ended(&found);
        let began: Vec<u64> = ended.iter().map(|one| one.began.0).collect();
        assert_eq!(began, [250, 400, 0]);
        let had = |cache, before: usize, to| had(cache, &ended[..before], server(to));
        assert_eq!(had(Cache::Cold, 0, 1), Cache::Cold);
        assert_eq!(had(Cache::Cold, 1, 2), Cache::Cold);
        assert_eq!(had(Cache::Cold, 2, 1), Cache::Warm);
        assert_eq!(had(Cache::Warm, 0, 1), Cache::Warm);
    }

    proptest! {
        #[test]
        fn anything_is_taken_without_harm(
            segments in prop::collection::vec((any::<u32>(), 0_usize..3000), 0..50),
        ) {
            let mut stream = Stream {
                first: Some(7),
                ..Stream::default()
            };
            let most: usize = segments.iter().map(|(_, length)| length).sum();
            for (sequence, length) in segments {
                stream.take(sequence, &vec![0; length]);
            }
            let most = (most as u64).min(u64::from(MOST) + 3000);
            prop_assert!(stream.bytes.length() <= most);
        }
    }
}
