//! What crossed the wire of a page load, connection by connection, as an observer at the client sees it.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};

use lastbyte_capture::{Point, Segment};
use lastbyte_link::{Side, TcpPacket, Time};
use lastbyte_sizes::Message;
use lastbyte_tls::KeyLog;
use lastbyte_tls::observer::Observer;

use super::http::Http;
use crate::lab::row::wire;
use crate::results::Wire;
use crate::study::Cache;

/// The most bytes of a connection and direction that are looked at: a handshake with the largest chain.
const MOST: usize = 1 << 18;

/// A packet where it was seen.
#[derive(Clone, Copy)]
pub(in crate::lab) struct Seen<'a> {
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
        let (client, server) = match sender {
            Side::Client => (source, destination),
            Side::Server => (destination, source),
        };
        Ends { client, server }
    }
}

impl Seen<'_> {
    /// The connection that it is of.
    pub(super) fn ends(&self) -> Option<Ends> {
        let tcp = TcpPacket::parse(self.bytes)?;
        Some(Ends::of(&tcp, self.point.sender()))
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
    /// When its SYN left.
    pub(super) began: Time,
    pub(super) wire: Wire,
    streams: Streams,
    keys: KeyLog,
}

impl Handshake {
    /// Where it leads.
    pub(super) fn server(&self) -> Ipv4Addr {
        *self.ends.server.ip()
    }

    /// When the server's first bytes came.
    fn answered(&self) -> Option<Time> {
        self.streams.came.first().map(|(_, at)| *at)
    }

    /// When the record was there with the first byte of a response.
    pub(super) fn responded(&self) -> Option<Time> {
        let Streams { observer, came, .. } = &self.streams;
        let mut http = Http::of(&observer.observe(&self.keys));
        let mut records = observer.response_records(&self.keys);
        let (end, _) = records.find(|(_, content)| http.responds(content))?;
        let there = came.iter().find(|(length, _)| *length >= end);
        there.map(|(_, at)| *at)
    }

    /// Whether it came to its end.
    fn is_whole(&self) -> bool {
        self.wire.bytes(Message::ClientFinished) > 0
    }
}

/// Those that came to their end, as they were answered. A browser makes several connections to an origin of which it does not know
/// that one is enough, or whose SYN is not answered, and gives up all but the first.
pub(super) fn ended(found: &[Handshake]) -> Vec<&Handshake> {
    let mut whole: Vec<&Handshake> = found.iter().filter(|one| one.is_whole()).collect();
    whole.sort_by_key(|one| one.answered());
    whole
}

/// What the browser had of a server when that answered, having had so much of it when it began, and these handshakes before.
pub(super) fn had(cache: Cache, before: &[&Handshake], server: Ipv4Addr) -> Cache {
    match before.iter().any(|one| one.server() == server) {
        true => Cache::Warm,
        false => cache,
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
    came: Vec<(usize, Time)>,
    observer: Observer,
}

/// One direction: what came early waits.
#[derive(Debug, Default)]
struct Stream {
    /// The sequence number of the first byte.
    first: Option<u32>,
    /// Bytes that are known from there on.
    length: usize,
    early: BTreeMap<usize, Vec<u8>>,
}

impl Stream {
    /// Bytes that are known now, and were not before.
    fn take(&mut self, sequence: u32, bytes: &[u8]) -> Vec<u8> {
        let Some(first) = self.first else {
            return Vec::new();
        };
        let place = sequence.wrapping_sub(first) as usize;
        if bytes.is_empty() || place >= MOST {
            return Vec::new();
        }
        self.early.entry(place).or_insert_with(|| bytes.to_vec());
        let mut fresh = Vec::new();
        while let Some(entry) = self.early.first_entry() {
            if *entry.key() > self.length {
                break;
            }
            let (place, bytes) = entry.remove_entry();
            let new = bytes.get(self.length - place..).unwrap_or_default();
            self.length += new.len();
            fresh.extend_from_slice(new);
        }
        fresh
    }
}

/// All connections, in the order in which they began, read with the secrets in `keys`.
pub(super) fn handshakes(packets: &[Seen<'_>], keys: &KeyLog) -> Vec<Handshake> {
    let mut known: BTreeMap<Ends, Streams> = BTreeMap::new();
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
        let streams = known.entry(Ends::of(&tcp, sender)).or_default();
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
                let length = stream.length;
                streams.came.push((length, packet.at));
            }
            Side::Server => {}
        }
        streams.observer.sent(sender, &fresh);
    }
    let found = known.into_iter().filter_map(|(ends, streams)| {
        let keys = keys.of_client_random(streams.observer.client_random());
        Some(Handshake {
            ends,
            began: streams.began?,
            wire: wire(&streams.observer, &keys, streams.mss),
            streams,
            keys,
        })
    });
    let mut found: Vec<Handshake> = found.collect();
    found.sort_by_key(|one| one.began);
    found
}

#[cfg(test)]
#[allow(clippy::indexing_slicing)]
mod tests {
    use proptest::prelude::*;

    use std::net::{Ipv4Addr, SocketAddrV4};

    use lastbyte_link::Time;
    use lastbyte_sizes::Message;
    use lastbyte_tls::KeyLog;

    use super::{Ends, Handshake, MOST, Stream, Streams, ended, had};
    use crate::results::Wire;
    use crate::study::Cache;

    /// The SYN of a browser's first connection is lost, so it makes another one, and then has a session for the first.
    #[test]
    fn a_connection_can_resume_one_that_was_answered_before() {
        let server = |last| Ipv4Addr::new(192, 0, 2, last);
        let handshake = |to, began, answered, finished| {
            let mut wire = Wire::default();
            wire.messages.set(Message::ClientFinished, finished);
            Handshake {
                ends: Ends {
                    client: SocketAddrV4::new(Ipv4Addr::new(198, 51, 100, 1), 40_000),
                    server: SocketAddrV4::new(server(to), 443),
                },
                began: Time(began),
                wire,
                streams: Streams {
                    came: vec![(1, Time(answered))],
                    ..Streams::default()
                },
                keys: KeyLog::default(),
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

    fn stream(first: u32) -> Stream {
        Stream {
            first: Some(first),
            ..Stream::default()
        }
    }

    proptest! {
        #[test]
        fn segments_in_any_order_are_the_stream(
            first: u32,
            bytes in prop::collection::vec(any::<u8>(), 1..2000),
            cuts in prop::collection::vec((0_usize..2000, 1_usize..400), 0..40),
        ) {
            let mut stream = stream(first);
            let mut read = Vec::new();
            // Some of it, in any order and more than once; then all of it, in order.
            let ordered = (0..bytes.len()).step_by(100).map(|at| (at, 100));
            for (at, length) in cuts.into_iter().chain(ordered) {
                let end = (at + length).min(bytes.len());
                let Some(part) = bytes.get(at..end) else { continue };
                read.extend(stream.take(first.wrapping_add(at as u32), part));
            }
            prop_assert_eq!(read, bytes);
        }

        #[test]
        fn anything_is_taken_without_harm(
            segments in prop::collection::vec((any::<u32>(), 0_usize..3000), 0..50),
        ) {
            let mut stream = stream(7);
            let most: usize = segments.iter().map(|(_, length)| length).sum();
            for (sequence, length) in segments {
                stream.take(sequence, &vec![0; length]);
            }
            prop_assert!(stream.length <= most.min(MOST + 3000));
        }
    }
}
