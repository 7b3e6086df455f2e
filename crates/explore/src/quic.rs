//! An arm over QUIC: its messages, and a connection of them.

use lastbyte_exchange::{Cut, Exchange, Quic, Requests, Transfer, Transport};
use lastbyte_flights::quic::{self, Hold, Messages, Walk, initials};
use lastbyte_flights::{Flight, Packet, PacketKind, Path, Reason};
use lastbyte_link::{ETHERNET_HEADER, Side};
use lastbyte_sizes::{Message, framing, quic as sizes};

use super::{Arm, Handshake, Network, ms, whole};
use crate::{Around, rows};

/// Bytes of IPv4's and UDP's headers.
const HEADERS: usize = 20 + 8;

/// The same messages without records and without what TCP's hellos have, and with what QUIC's have.
pub(crate) fn handshake(arm: &Arm) -> Handshake {
    let most = |bytes: f64| whole(bytes, 1 << 20);
    let hello = |on_wire: f64, besides: usize| {
        let message = most(on_wire).saturating_sub(framing::RECORD_HEADER + besides);
        (message > 0).then(|| message.saturating_sub(sizes::SESSION_ID))
    };
    let client_hello = |on_wire, besides| {
        hello(on_wire, besides).map(|message| message + sizes::CLIENT_EXTENSIONS)
    };
    let mut handshake = lastbyte_exchange::Handshake::default();
    let retries = arm.hello_retry_request > 0.0;
    let change = framing::CHANGE_CIPHER_SPEC;
    for (message, bytes) in [
        (Message::ClientHello, client_hello(arm.client_hello, 0)),
        (
            Message::HelloRetryRequest,
            hello(arm.hello_retry_request, change).filter(|_| retries),
        ),
        (
            Message::SecondClientHello,
            client_hello(arm.second_client_hello, change).filter(|_| retries),
        ),
        (
            Message::ServerHello,
            Some(most(arm.server_hello).saturating_sub(sizes::SESSION_ID)),
        ),
        (
            Message::EncryptedExtensions,
            Some(most(arm.encrypted_extensions) + sizes::SERVER_EXTENSIONS),
        ),
        (Message::Certificate, Some(most(arm.certificate))),
        (
            Message::CertificateVerify,
            Some(most(arm.certificate_verify)),
        ),
        (Message::ServerFinished, Some(most(arm.server_finished))),
        // Both have as many.
        (Message::ClientFinished, Some(most(arm.server_finished))),
    ] {
        (handshake.messages).set(message, bytes.map(|bytes| bytes as u32));
    }
    Handshake(handshake, Transport::Quic(Quic::default()))
}

/// With a request of as many bytes, and a response.
pub(crate) fn exchange(alone: Exchange, network: &Network, payload: usize) -> Exchange {
    let request = whole(network.request, 1 << 20).saturating_sub(framing::RECORD_OVERHEAD);
    let transfer = |payload| Transfer {
        payload,
        cut: Cut::Around(0),
        writes: None,
    };
    Exchange {
        requests: (payload > 0).then(|| {
            Box::new(Requests {
                first: Some(transfer(request)),
                ..Requests::default()
            })
        }),
        response: (payload > 0).then(|| transfer(payload)),
        ..alone
    }
}

/// The answer of a connection.
pub(crate) fn connection(handshake: &Handshake, network: &Network, path: &Path) -> Vec<f64> {
    let payload = network.payload();
    let exchange = handshake.exchange(network, payload);
    let timeline = quic::timeline(&exchange, path);
    let messages = Messages::of(&exchange);
    let walked = quic::walk(messages, path);
    let server = walked.server_flights(path);
    let sent = messages.server_hello + messages.rest;
    let retry = messages.hello_retry_request;
    let own = handshake.certificate();
    let Around {
        flights,
        below,
        above,
    } = handshake.around(path);
    let held = server
        .iter()
        .rev()
        .nth(1)
        .and_then(quic::ServerFlight::held);
    // The first that has any of the ServerHello.
    let first = server.get(usize::from(retry > 0));
    let crypto = |flight: &quic::ServerFlight| -> usize {
        flight.datagrams.iter().map(|(_, sent)| sent.crypto).sum()
    };
    let at_once = first.map_or(0, |flight| flight.datagrams.len());
    let budget = match (server.len() > 1 + usize::from(retry > 0), above) {
        (false, Some(above)) => sent + above - own,
        (false, None) => sent,
        (true, _) => first.map_or(0, crypto),
    };
    let number = |bytes: Option<usize>| bytes.map_or(-1.0, |bytes| bytes as f64);
    let is_known = |time| timeline.beyond(time).is_none();
    let last = Some(timeline.ttlb).filter(|last| is_known(*last));
    let datagrams = server
        .iter()
        .map(|flight| flight.datagrams.len())
        .sum::<usize>();
    let packets = packets(&walked, &timeline.flights, path, sent + retry);
    let mut sent_flights = server.iter();
    let flights_sent: Vec<Flight> = (timeline.flights.iter())
        .map(|flight| Flight {
            bytes: match flight.sender {
                Side::Server if flight.start < timeline.handshake => {
                    sent_flights.next().map_or(0, crypto)
                }
                Side::Server => payload,
                Side::Client => flight.bytes,
            },
            ..*flight
        })
        .collect();
    let mut ends = 0;
    let limit = timeline.limit.filter(|_| last.is_none());
    let reason = limit.and_then(|limit| {
        let mut all = Reason::ALL.iter();
        all.position(|reason| *reason == limit.reason)
    });
    let mut answer = vec![
        -1.0,
        ms(timeline.handshake),
        timeline.ttfb.map_or(-1.0, ms),
        last.map_or(-1.0, ms),
        sent as f64,
        datagrams as f64,
        flights as f64,
        number(below),
        number(above),
        handshake.larger_window(path).map_or(-1.0, f64::from),
        payload as f64,
        if payload > 0 { 1.0 } else { 0.0 },
        -1.0,
        -1.0,
        budget as f64,
    ];
    answer.extend(Message::SERVER_FLIGHT.iter().map(|message| {
        ends += handshake.0.bytes(*message);
        f64::from(ends)
    }));
    answer.extend([
        retry as f64,
        (sent + retry) as f64,
        limit.map_or(-1.0, |limit| ms(limit.until)),
        reason.map_or(-1.0, |reason| reason as f64),
        initials(messages.client_hello, path.quic.client_datagram, 0) as f64,
        match held {
            None => 0.0,
            Some(Hold::Window | Hold::Pacer) => 1.0,
            Some(Hold::Credit) => 2.0,
        },
        at_once as f64,
        flights_sent.len() as f64,
        packets.len() as f64,
    ]);
    rows(&mut answer, &flights_sent, &packets);
    answer
}

/// Those of the handshake, and the request and the response as the one datagram that each is if it is followed.
fn packets(walked: &Walk, flights: &[Flight], path: &Path, before: usize) -> Vec<Packet> {
    let mut offsets = [0; 2];
    let mut packets: Vec<Packet> = (walked.datagrams.iter())
        .map(|datagram| {
            let offset = &mut offsets[datagram.sender as usize];
            let packet = Packet {
                sender: datagram.sender,
                kind: match datagram.crypto {
                    0 => PacketKind::Acknowledgement,
                    _ => PacketKind::Data,
                },
                sent: datagram.sent,
                arrives: datagram.arrives,
                offset: *offset,
                payload: datagram.crypto,
                cwnd: path.server_initcwnd,
                acknowledged: 0,
            };
            *offset += datagram.crypto;
            packet
        })
        .collect();
    let after = (flights.iter()).filter(|flight| flight.start >= walked.handshake);
    for flight in after.filter(|flight| flight.bytes > 0) {
        let (way, offset) = match flight.sender {
            Side::Client => (&path.link.forward, offsets[0]),
            Side::Server => (&path.link.backward, before),
        };
        let frame = ETHERNET_HEADER + HEADERS + flight.bytes;
        let takes = way.rate.map(|rate| rate.serialisation(frame));
        packets.push(Packet {
            sender: flight.sender,
            kind: PacketKind::Data,
            sent: flight.start,
            arrives: flight.start + way.delay + takes.unwrap_or_default(),
            offset,
            payload: flight.bytes,
            cwnd: path.server_initcwnd,
            acknowledged: 0,
        });
    }
    packets
}
