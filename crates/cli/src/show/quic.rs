//! Connections over QUIC: what the observer reads of a flow, and what that tells.

use std::ops::Range;
use std::time::Duration;

use lastbyte::lab::captured_sample;
use lastbyte::report::inside::quic::{Datagram, Datagrams, Ledger};
use lastbyte::results::HandshakeFlight;
use lastbyte_capture::{Capture, Flow, Taken};
use lastbyte_link::{Side, Time};
use lastbyte_tls::KeyLog;
use lastbyte_tls::observer::Message;
use lastbyte_tls::observer::quic::{Credit, Frame, Packet, PacketKind, QuicObservation, read_all};

/// A flow, and what the observer reads of it.
pub(super) struct ReadFlow {
    pub(super) flow: Flow,
    /// Its arm and network, and which connection it is, as far as the file says.
    pub(super) name: String,
    pub(super) seen: QuicObservation,
    pub(super) credit: Credit,
    /// How many bytes the server had received, each time that it knew no address yet.
    received: Vec<(Duration, u64)>,
}

impl ReadFlow {
    pub(super) fn new(capture: &Capture, flow: Flow) -> ReadFlow {
        let mut keys = KeyLog::default();
        let lines = capture.secrets.lines();
        lines.for_each(|line| keys.push_line(line));
        let random = read_all(flow.payloads(), &KeyLog::default()).client_random;
        let seen = read_all(flow.payloads(), &keys.of_client_random(&random));
        let first_line = capture.comment.lines().next().unwrap_or_default();
        let name = match flow.comment.as_str() {
            "" => first_line.to_owned(),
            comment => format!("{first_line}, {comment}"),
        };
        let (credit, received) = credit(&flow);
        ReadFlow {
            flow,
            name,
            seen,
            credit,
            received,
        }
    }

    /// The connection with what its file says of it.
    pub(super) fn inside(&self, capture: &Capture) -> Datagrams {
        let sample = captured_sample(&capture.comment);
        let experiment = sample
            .as_ref()
            .and_then(|sample| Some(&sample.measures.first()?.experiment));
        let cell = experiment.and_then(|experiment| experiment.cells.first());
        let window =
            cell.map(|cell| u64::from(cell.initcwnd) * u64::from(cell.quic.server_datagram));
        let work = cell.map(|cell| cell.work());
        let timeout = experiment.map_or(Duration::MAX, |experiment| experiment.timeout);
        let handshake = self.finished().filter(|at| *at <= timeout);
        let end = match work {
            Some(work) if work.data.0 == 0 && work.upload.0 == 0 => handshake,
            _ => self.last_byte(work.map(|work| (work.requests, work.data.0))),
        };
        let since = |time: Time| time.since(Time(0));
        Datagrams {
            name: self.name.clone(),
            comment: self.flow.comment.clone(),
            datagrams: self.datagrams(),
            handshake,
            end: end.filter(|at| *at <= timeout),
            is_whole: capture.unseen == 0 && capture.taken == Taken::Whole,
            ledger: Ledger {
                received: self.received.clone(),
                unvalidated: self.credit.sent(),
                validated: self.credit.validated().map(since),
                blocked: (self.credit.waits().iter())
                    .map(|[begin, end]| [since(*begin), since(*end)])
                    .collect(),
                acknowledged: self.acknowledged(),
                window,
            },
        }
    }

    fn datagrams(&self) -> Vec<Datagram> {
        let all = self.flow.datagrams.iter().zip(&self.seen.datagrams);
        all.map(|(passage, seen)| Datagram {
            sender: passage.sender,
            sent: passage.sent,
            arrived: passage.arrived,
            fate: passage.fate,
            bytes: passage.payload.len(),
            is_data: seen.packets.iter().any(|packet| {
                packet.number.is_none() || packet.frames.iter().any(Frame::is_ack_eliciting)
            }),
            what: self.what(passage.sender, &seen.packets),
        })
        .collect()
    }

    /// What is in a datagram: the first and the last of what its packets carry.
    fn what(&self, sender: Side, packets: &[Packet]) -> String {
        let mut names: Vec<&'static str> = Vec::new();
        for packet in packets {
            match (packet.kind, packet.number) {
                (PacketKind::Retry, _) => names.push("Retry"),
                (PacketKind::VersionNegotiation, _) => names.push("Version Negotiation"),
                (_, None) => names.push("sealed packets"),
                (..) => {}
            }
            for frame in &packet.frames {
                match frame {
                    Frame::Crypto { offset, length } => {
                        names.extend(self.messages(sender, packet.kind, *offset, *length));
                    }
                    Frame::Stream { .. } => names.push(match sender {
                        Side::Client => "request",
                        Side::Server => "response",
                    }),
                    Frame::ConnectionClose { .. } => names.push("CONNECTION_CLOSE"),
                    Frame::HandshakeDone => names.push("HANDSHAKE_DONE"),
                    Frame::NewToken(_) => names.push("NEW_TOKEN"),
                    _ => {}
                }
            }
        }
        // What goes along with something else needs no name.
        let frames = || packets.iter().flat_map(|packet| &packet.frames);
        match (names.first(), names.last()) {
            (Some(first), Some(last)) if first == last => (*first).to_owned(),
            (Some(first), Some(last)) => format!("{first} to {last}"),
            _ if frames().any(|frame| matches!(frame, Frame::NewConnectionId { .. })) => {
                "connection IDs".to_owned()
            }
            _ if frames().any(|frame| *frame == Frame::Ping) => "PING".to_owned(),
            _ if frames().any(Frame::is_ack_eliciting) => "limits".to_owned(),
            _ => "ACK".to_owned(),
        }
    }

    /// Messages of which these bytes of one level are a part.
    fn messages(
        &self,
        sender: Side,
        kind: PacketKind,
        offset: u64,
        length: u64,
    ) -> Vec<&'static str> {
        let flight = match sender {
            Side::Client => HandshakeFlight::ClientFinish,
            Side::Server => HandshakeFlight::Server,
        };
        let of_flight = flight.messages().iter().copied();
        let messages: Vec<Message> = match (kind, sender) {
            (PacketKind::Initial, Side::Client) => vec![Message::ClientHello],
            (PacketKind::Initial, Side::Server) => vec![Message::ServerHello],
            (PacketKind::Handshake, _) => of_flight
                .filter(|message| *message != Message::ServerHello)
                .collect(),
            _ => return vec!["ticket"],
        };
        let own = offset..offset + length.max(1);
        let mut begin = 0;
        let mut found = Vec::new();
        for message in messages {
            let Some(bytes) = self.seen.handshake.messages.get(message) else {
                continue;
            };
            let place: Range<u64> = begin..begin + u64::from(bytes);
            begin = place.end;
            if place.start < own.end && own.start < place.end {
                found.push(message.title());
            }
        }
        match found.as_slice() {
            [] => vec!["handshake"],
            _ => found,
        }
    }

    /// When the client first sent its Finished.
    fn finished(&self) -> Option<Duration> {
        let all = self.flow.datagrams.iter().zip(&self.seen.datagrams);
        let finished = Message::ClientFinished.title();
        let mut sent = all.filter(|(passage, seen)| {
            let crypto = |packet: &Packet| {
                packet.frames.iter().any(|frame| match frame {
                    Frame::Crypto { offset, length } => {
                        (self.messages(Side::Client, packet.kind, *offset, *length))
                            .contains(&finished)
                    }
                    _ => false,
                })
            };
            passage.sender == Side::Client && seen.packets.iter().any(crypto)
        });
        sent.next().map(|(passage, _)| passage.sent)
    }

    /// When all of so many responses of so many bytes had come; of what the server sent, where that is not known.
    fn last_byte(&self, asked: Option<(u32, u64)>) -> Option<Duration> {
        let mut arrived: Vec<(Duration, u64, Range<u64>)> = Vec::new();
        for (passage, seen) in self.flow.datagrams.iter().zip(&self.seen.datagrams) {
            let (Side::Server, Some(at)) = (passage.sender, passage.arrived) else {
                continue;
            };
            for frame in seen.packets.iter().flat_map(|packet| &packet.frames) {
                if let Frame::Stream {
                    id, offset, length, ..
                } = frame
                {
                    arrived.push((at, *id, *offset..offset + length));
                }
            }
        }
        arrived.sort_by_key(|(at, ..)| *at);
        let last = arrived.last()?.0;
        let Some((requests, data)) = asked else {
            return Some(last);
        };
        let all = data.saturating_mul(requests.into());
        let mut there: std::collections::BTreeMap<u64, Vec<Range<u64>>> = Default::default();
        for (at, id, range) in arrived {
            there.entry(id).or_default().push(range);
            let bytes: u64 = there.values_mut().map(covered).sum();
            if bytes >= all {
                return Some(at);
            }
        }
        None
    }

    /// How many bytes of the server's datagrams were acknowledged, each time that one told more.
    fn acknowledged(&self) -> Vec<(Duration, u64)> {
        let all = self.flow.datagrams.iter().zip(&self.seen.datagrams);
        // Packets that the server sent, by space and number, with their bytes.
        let mut sent = std::collections::BTreeMap::new();
        let space = |kind: PacketKind| match kind {
            PacketKind::Initial => 0,
            PacketKind::Handshake => 1,
            _ => 2,
        };
        for (_, seen) in all
            .clone()
            .filter(|(passage, _)| passage.sender == Side::Server)
        {
            for packet in &seen.packets {
                if let Some(number) = packet.number {
                    sent.insert((space(packet.kind), number), packet.bytes as u64);
                }
            }
        }
        let mut heard: Vec<_> = all
            .filter(|(passage, _)| passage.sender == Side::Client)
            .filter_map(|(passage, seen)| Some((passage.arrived?, seen)))
            .collect();
        heard.sort_by_key(|(at, _)| *at);
        let mut acknowledged = 0;
        let mut steps = Vec::new();
        for (at, seen) in heard {
            let before = acknowledged;
            for packet in &seen.packets {
                let ranges = packet.frames.iter().filter_map(|frame| match frame {
                    Frame::Ack { ranges, .. } => Some(ranges),
                    _ => None,
                });
                for range in ranges.flatten() {
                    let space = space(packet.kind);
                    let own = (space, *range.start())..=(space, *range.end());
                    let own: Vec<_> = sent.range(own).map(|(key, _)| *key).collect();
                    acknowledged += own.iter().filter_map(|key| sent.remove(key)).sum::<u64>();
                }
            }
            if acknowledged > before {
                steps.push((at, acknowledged));
            }
        }
        steps
    }
}

/// How many bytes some ranges have, which are put together.
fn covered(ranges: &mut Vec<Range<u64>>) -> u64 {
    ranges.sort_by_key(|range| range.start);
    let mut whole: Vec<Range<u64>> = Vec::new();
    for range in ranges.drain(..) {
        match whole.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => whole.push(range),
        }
    }
    *ranges = whole;
    ranges.iter().map(|range| range.end - range.start).sum()
}

/// The server's credit by what it received and sent, and how much it had received, each time that it knew no address yet.
fn credit(flow: &Flow) -> (Credit, Vec<(Duration, u64)>) {
    let mut events: Vec<(Duration, u8, &[u8])> = Vec::new();
    for passage in &flow.datagrams {
        match (passage.sender, passage.arrived) {
            (Side::Client, Some(arrived)) => events.push((arrived, 0, &passage.payload)),
            (Side::Client, None) => {}
            (Side::Server, _) => events.push((passage.sent, 1, &passage.payload)),
        }
    }
    // As they were sent, if of one moment.
    events.sort_by_key(|(at, order, _)| (*at, *order));
    let mut credit = Credit::default();
    let mut received = Vec::new();
    for (at, order, payload) in events {
        let now = Time(0) + at;
        if order == 0 {
            credit.receive(now, payload);
            if credit.validated().is_none() {
                received.push((at, credit.received()));
            }
        } else {
            credit.spend(now, payload.len() as u64);
        }
    }
    (credit, received)
}
