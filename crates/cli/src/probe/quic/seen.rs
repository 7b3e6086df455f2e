//! What the datagrams of a connection over QUIC show of its server, without socket and clock.

use std::time::Duration;

use lastbyte_link::Time;
use lastbyte_probe::{FirstAnswer, MOST_DATAGRAMS, QuicSeen, milliseconds};
use lastbyte_tls::KeyLog;
use lastbyte_tls::observer::quic::{
    Credit, Datagram, Frame, Packet, PacketKind, QuicObservation, read_all,
};
use lastbyte_tls::observer::{Message, Side};

/// A datagram that left or came at the client.
#[derive(Clone, Debug)]
pub(super) struct Passed {
    /// Since the client began.
    pub(super) at: Time,
    pub(super) sender: Side,
    pub(super) datagram: Vec<u8>,
}

/// Below that, flights are too near to each other (docs/probe.md).
const LEAST_RTT: Duration = Duration::from_millis(1);

/// A datagram as it was read, with its time.
type Read<'r> = (Time, &'r Datagram);

fn read(passed: &[Passed], key_log: &KeyLog) -> QuicObservation {
    let datagrams = passed.iter();
    let datagrams = datagrams.map(|passed| (passed.sender, passed.datagram.as_slice()));
    read_all(datagrams, key_log)
}

fn of_server(read: &QuicObservation) -> impl Iterator<Item = &Packet> {
    let sent = read.datagrams.iter();
    let sent = sent.filter(|datagram| datagram.sender == Side::Server);
    sent.flat_map(|datagram| &datagram.packets)
}

/// Whether the server has said that it has the client's Finished (RFC 9001, 4.1.2), so that all of the handshake has passed.
pub(super) fn is_confirmed(passed: &[Passed], key_log: &KeyLog) -> bool {
    let read = read(passed, key_log);
    let mut frames = of_server(&read).flat_map(|packet| &packet.frames);
    frames.any(|frame| *frame == Frame::HandshakeDone)
}

/// Whether anything of the server's could be read.
pub(super) fn is_quic(passed: &[Passed]) -> bool {
    let read = read(passed, &KeyLog::default());
    of_server(&read).any(|packet| packet.number.is_some() || packet.kind == PacketKind::Retry)
}

/// What all of them show, up to where the client's Finished left, if it did.
pub(super) fn seen(passed: &[Passed], key_log: &KeyLog, finished: Option<Time>) -> QuicSeen {
    let read = read(passed, key_log);
    let times = passed.iter().map(|passed| passed.at);
    let all: Vec<Read<'_>> = times.zip(&read.datagrams).collect();
    let of = |side| {
        let all = all.iter().copied();
        all.filter(move |(_, datagram)| datagram.sender == side)
    };
    let retry = of(Side::Server).find(|(_, datagram)| {
        let mut packets = datagram.packets.iter();
        packets.any(|packet| packet.kind == PacketKind::Retry)
    });
    // Behind a Retry packet, the client begins again.
    let begun = retry.map_or(Time(0), |(at, _)| at);
    let is_opened = |(_, datagram): &Read<'_>| {
        let mut packets = datagram.packets.iter();
        packets.any(|packet| packet.number.is_some())
    };
    let server: Vec<_> = of(Side::Server).filter(is_opened).collect();
    let client: Vec<_> = of(Side::Client).collect();
    let rtt = rtt(&all, begun);
    let messages = server.iter().copied();
    let messages: Vec<_> = messages
        .filter(|(_, datagram)| datagram.packets.iter().any(is_of_handshake))
        .collect();
    let flights = rtt
        .filter(|rtt| *rtt >= LEAST_RTT && finished.is_some())
        .map(|rtt| flights(messages.iter().map(|(at, _)| *at), rtt))
        .filter(|flights| *flights > 0);
    let tokens = client.iter().flat_map(|(_, datagram)| &datagram.packets);
    let token = tokens.map(|packet| packet.token).max().unwrap_or_default();
    let credit = credit(passed, rtt.unwrap_or_default());
    let (credited, unvalidated) = credit.most().unwrap_or_default();
    let (first_answer, thought) = first_answer(&all);
    let last = messages.last().map(|(at, _)| *at);
    let sizes = |side, until: Option<Time>| {
        let sent = of(side).filter(move |(at, _)| until.is_some_and(|until| *at <= until));
        let sizes = sent.map(|(_, datagram)| datagram.bytes);
        sizes.take(MOST_DATAGRAMS).collect::<Vec<_>>()
    };
    let handshake = &read.handshake;
    QuicSeen {
        rtt_ms: rtt.map(milliseconds),
        handshake_ms: finished.map(|at| milliseconds(at.since(Time(0)))),
        flights,
        hello_retry: handshake.bytes(Message::HelloRetryRequest).is_some(),
        retry_token_bytes: retry.map(|_| token),
        first_answer,
        thought_ms: thought.map(milliseconds),
        client_datagrams: sizes(Side::Client, finished),
        server_datagrams: sizes(Side::Server, last),
        credited_bytes: to_usize(credited),
        unvalidated_bytes: to_usize(unvalidated),
        credit_left_bytes: left(&client, &server, last)
            .filter(|_| flights == Some(1) && retry.is_none()),
        client_hello_bytes: handshake.bytes(Message::ClientHello),
        certificate_bytes: handshake.bytes(Message::Certificate),
        ..QuicSeen::default()
    }
}

fn to_usize(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Whether a packet has something of the server's handshake that was not sent before.
fn is_of_handshake(packet: &Packet) -> bool {
    matches!(packet.kind, PacketKind::Initial | PacketKind::Handshake) && packet.has_new_crypto()
}

/// The largest number that a packet acknowledges.
fn acknowledged(packet: &Packet) -> Option<u64> {
    let ranges = packet.frames.iter().filter_map(|frame| match frame {
        Frame::Ack { ranges, .. } => ranges.first(),
        _ => None,
    });
    ranges.map(|range| *range.end()).max()
}

/// The least time in which anything was answered: an Initial or Handshake packet acknowledged, which is at once (RFC 9000, 13.2.1),
/// the hello with a Retry packet, or with a handshake that acknowledges nothing.
fn rtt(all: &[Read<'_>], begun: Time) -> Option<Duration> {
    let sent = |kind, number| {
        let mut of_client = (all.iter()).filter(|(_, sent)| sent.sender == Side::Client);
        let is_it = |packet: &Packet| packet.kind == kind && packet.number == Some(number);
        let sent = of_client.find(|(_, sent)| sent.packets.iter().any(is_it));
        sent.map(|(at, _)| *at)
    };
    let of_server = all.iter().filter(|(_, came)| came.sender == Side::Server);
    let samples = of_server.flat_map(|(at, datagram)| {
        datagram.packets.iter().filter_map(move |packet| {
            let since = match (packet.kind, acknowledged(packet)) {
                (PacketKind::Retry, _) => Some(Time(0)),
                (kind @ (PacketKind::Initial | PacketKind::Handshake), Some(number)) => {
                    sent(kind, number)
                }
                (PacketKind::Initial, None) => is_of_handshake(packet).then_some(begun),
                _ => None,
            };
            Some(at.since(since?))
        })
    });
    samples.min()
}

/// Flights of datagrams that came then: whoever answers what the client said to the first of them needs a round trip, and nothing
/// comes meanwhile.
fn flights(came: impl Iterator<Item = Time>, rtt: Duration) -> usize {
    let mut flights = 0;
    let mut latest: Option<[Time; 2]> = None;
    for at in came {
        match &mut latest {
            Some([first, last]) if at.since(*first) < rtt * 3 / 4 || at.since(*last) < rtt / 4 => {
                *last = at;
            }
            _ => {
                flights += 1;
                latest = Some([at, at]);
            }
        }
    }
    flights
}

/// What the server had received and sent, by what can have reached it a round trip before something of its own came: jitter makes
/// that a tenth less.
fn credit(passed: &[Passed], rtt: Duration) -> Credit {
    let at_server = passed.iter().map(|passed| {
        let later = match passed.sender {
            Side::Client => rtt * 9 / 10,
            Side::Server => Duration::ZERO,
        };
        (passed.at + later, passed)
    });
    let mut at_server: Vec<(Time, &Passed)> = at_server.collect();
    at_server.sort_by_key(|(at, passed)| (*at, passed.sender == Side::Server));
    let mut credit = Credit::default();
    for (
        at,
        Passed {
            sender, datagram, ..
        },
    ) in at_server
    {
        match sender {
            Side::Client => credit.receive(at, datagram),
            Side::Server => credit.spend(at, datagram.len() as u64),
        }
    }
    credit
}

/// What of three times the client's first flight the server's left, up to this time.
fn left(client: &[Read<'_>], server: &[Read<'_>], last: Option<Time>) -> Option<usize> {
    let (first, _) = server.first()?;
    let sum = |all: &[Read<'_>], until: Time| -> usize {
        let all = all.iter().filter(|(at, _)| *at <= until);
        all.map(|(_, datagram)| datagram.bytes).sum()
    };
    let before = Time(first.0.saturating_sub(1));
    let allowed = sum(client, before).saturating_mul(to_usize(Credit::FACTOR));
    Some(allowed.saturating_sub(sum(server, last?)))
}

/// What the hello was answered with, and how much later the handshake came, where all of the hello was acknowledged before.
fn first_answer(all: &[Read<'_>]) -> (Option<FirstAnswer>, Option<Duration>) {
    let is_handshake = |(_, datagram): &Read<'_>| {
        datagram.sender == Side::Server && datagram.packets.iter().any(is_of_handshake)
    };
    let Some(place) = all.iter().position(is_handshake) else {
        return (None, None);
    };
    let (before, rest) = all.split_at(place);
    let handshake = rest.first().map_or(Time(0), |(at, _)| *at);
    let initials = |side| {
        let before = before.iter();
        let before = before.filter(move |(_, datagram)| datagram.sender == side);
        let packets = before.flat_map(|(at, datagram)| {
            let packets = datagram.packets.iter();
            packets.map(|packet| (*at, packet))
        });
        packets.filter(|(_, packet)| packet.kind == PacketKind::Initial)
    };
    let hello = initials(Side::Client).filter(|(_, packet)| packet.has_new_crypto());
    let last = hello.filter_map(|(_, packet)| packet.number).max();
    let acks = initials(Side::Server);
    let acks: Vec<(Time, u64)> = acks
        .filter_map(|(at, packet)| Some((at, acknowledged(packet)?)))
        .collect();
    let whole = acks.iter().find(|(_, number)| Some(*number) >= last);
    match whole {
        Some((at, _)) => (Some(FirstAnswer::InstantAck), Some(handshake.since(*at))),
        None if acks.is_empty() => (Some(FirstAnswer::Handshake), None),
        None => (Some(FirstAnswer::AckOfPart), None),
    }
}
