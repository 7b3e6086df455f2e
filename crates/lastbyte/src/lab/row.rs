//! The row of a connection that has ended.

pub(super) mod quic;

use std::time::Duration;

use lastbyte_exchange::{Handshake, Negotiated, Tcp, Transfer, Transport};
use lastbyte_sizes::framing::{CHANGE_CIPHER_SPEC, MESSAGE_HEADER, RECORD_HEADER, encrypted};
use lastbyte_tls::KeyLog;
use lastbyte_tls::observer::{self, Message, Observation, Observer, Side};

use super::connection::{EndedConnection, Seen};
use crate::results::{
    ChainSignal, Compression, EarlyData, Exchange, FailedAttempt, HandshakeFlight, HelloDigest,
    Lateness, Measurement, Resumption, Row,
};

/// The row of connection `index` of its sample. Its latest packet was `latest` behind its time.
pub(super) fn row(finished: EndedConnection, index: u32, block: u32, latest: Duration) -> Row {
    let exchange = exchange_of(&finished);
    row_of(finished, exchange, index, block, latest)
}

/// The same of one that is read already.
pub(super) fn row_of(
    finished: EndedConnection,
    exchange: Exchange,
    index: u32,
    block: u32,
    latest: Duration,
) -> Row {
    Row {
        index,
        block,
        exchange,
        outcome: finished.outcome,
        times: finished.times,
        dns: finished.dns,
        measurement: Measurement::Transfer,
        transport: finished.transport,
        lateness: Lateness {
            link: latest,
            endpoint: finished.waited,
        },
    }
}

/// What was seen on the wire of a connection that has ended.
pub(super) fn exchange_of(finished: &EndedConnection) -> Exchange {
    match &finished.seen {
        Seen::Records {
            observer,
            ticket_bytes,
            failed,
        } => {
            let mss = finished.transport.client_tcp().map(|tcp| tcp.mss);
            let failed = failed.as_ref();
            let tickets = Some(*ticket_bytes).filter(|bytes| *bytes > 0);
            Exchange {
                tickets: tickets.map(Transfer::seen),
                failed: failed.map(|failed| failed_attempt(&failed.observer, &failed.keys)),
                ..exchange(observer, &finished.keys, mss)
            }
        }
        Seen::Datagrams(observer) => quic::exchange(&observer.observe(&finished.keys)),
    }
}

/// What the observer read of a connection whose client gave up. Its server is OpenSSL, which begins
/// a record for each message.
pub(super) fn failed_attempt(observer: &Observer, keys: &KeyLog) -> FailedAttempt {
    let observation = observer.observe(keys);
    let sent_by = |sender: Side| {
        let flights = observation.flights.iter();
        flights.filter(move |flight| flight.sender == sender)
    };
    let hello = sent_by(Side::Client).next();
    let alert = sent_by(Side::Client).skip(1);
    let bytes = |message| observation.bytes(message).unwrap_or(0);
    let records = [
        RECORD_HEADER + bytes(Message::ServerHello),
        CHANGE_CIPHER_SPEC,
        encrypted(bytes(Message::EncryptedExtensions)),
        encrypted(bytes(Message::Certificate)),
    ];
    FailedAttempt {
        client_hello_wire_bytes: hello.map_or(0, |flight| flight.wire_bytes as u32),
        server_flight_wire_bytes: sent_by(Side::Server)
            .map(|flight| flight.wire_bytes as u32)
            .sum(),
        through_certificate_wire_bytes: records.iter().sum::<usize>() as u32,
        alert_wire_bytes: alert.map(|flight| flight.wire_bytes as u32).sum(),
    }
}

/// What the observer read of a connection's handshake. Without an MSS, segments are not counted.
pub fn exchange(observer: &Observer, keys: &KeyLog, mss: Option<u32>) -> Exchange {
    let observation = observer.observe(keys);
    let mut flights = observation.flights.iter().peekable();
    let mut next = |sender| {
        let flight = flights.next_if(|flight| flight.sender == sender);
        flight.map(|flight| flight.wire_bytes as u32)
    };
    let client_hello = next(Side::Client);
    let [hello_retry, second_hello] = match observation.bytes(Message::HelloRetryRequest) {
        Some(_) => [next(Side::Server), next(Side::Client)],
        None => [None, None],
    };
    let rest = |sender| {
        let rest = flights.clone().filter(|flight| flight.sender == sender);
        rest.map(|flight| flight.wire_bytes as u32)
            .reduce(|one, other| one + other)
    };
    let mut handshake = Handshake::of(observation.messages);
    handshake.see_all([
        (HandshakeFlight::ClientHello, client_hello),
        (HandshakeFlight::HelloRetryRequest, hello_retry),
        (HandshakeFlight::SecondClientHello, second_hello),
        (HandshakeFlight::Server, rest(Side::Server)),
        (HandshakeFlight::ClientFinish, rest(Side::Client)),
    ]);
    let mss = mss.filter(|mss| *mss > 0);
    Exchange {
        transport: Transport::Tcp(Tcp {
            client_hello_segments: mss
                .zip(client_hello)
                .map(|(mss, bytes)| bytes.div_ceil(mss)),
        }),
        handshake,
        negotiated: negotiated(&observation),
        ..Exchange::default()
    }
}

pub(super) fn negotiated(observation: &Observation) -> Negotiated {
    let certificates = u32::try_from(observation.certificates.len()).unwrap_or(u32::MAX);
    Negotiated {
        group: observation.group,
        cipher_suite: observation.cipher_suite,
        signature: observation.signature,
        client_signature: observation.client_signature,
        certificates: Some(certificates).filter(|count| *count > 0),
        compression: compression(
            observation.certificate_compression,
            observation.uncompressed_certificate,
        ),
        client_compression: compression(
            observation.client_certificate_compression,
            observation.uncompressed_client_certificate,
        ),
        resumption: match observation.resumed {
            Some(true) => Resumption::Resumed,
            _ => Resumption::Full,
        },
        hello_digest: match (
            observation.offered_certificates,
            observation.answered_certificates,
        ) {
            (None, None) => HelloDigest::None,
            (Some(_), None) => HelloDigest::Offered,
            (offered, answered) if offered == answered => HelloDigest::Echoed,
            _ => HelloDigest::Contradicted,
        },
        signal: match (
            &observation.named_anchors,
            observation.is_anchored,
            observation.suppresses_cas,
        ) {
            (Some(_), true, _) => ChainSignal::Anchored,
            (Some(_), false, _) => ChainSignal::TrustAnchors,
            (None, _, true) => ChainSignal::TlsFlags,
            (None, _, false) => ChainSignal::None,
        },
        early_data: match observation.early_data {
            observer::EarlyData::NotOffered => EarlyData::None,
            observer::EarlyData::Offered => EarlyData::Refused,
            observer::EarlyData::Accepted => EarlyData::Accepted,
        },
    }
}

/// The length that is declared is that of the message without its header.
fn compression(algorithm: Option<u16>, declared: Option<usize>) -> Option<Compression> {
    Some(Compression {
        algorithm: algorithm?,
        uncompressed_bytes: declared.map_or(0, |bytes| (bytes + MESSAGE_HEADER) as u32),
    })
}

#[cfg(test)]
mod tests;
