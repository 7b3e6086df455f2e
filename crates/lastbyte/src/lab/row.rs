//! The row of a connection that has ended.

use std::time::Duration;

use lastbyte_sizes::framing::{CHANGE_CIPHER_SPEC, MESSAGE_HEADER, RECORD_HEADER, encrypted};
use lastbyte_tls::KeyLog;
use lastbyte_tls::observer::{self, Message, Observer, Side};

use super::connection::EndedConnection;
use crate::results::{
    ChainSignal, Compression, EarlyData, FailedAttempt, HelloDigest, Lateness, PageLoad,
    Resumption, Row, Wire,
};

/// The row of connection `index` of its sample. Its latest packet was `latest` behind its time.
pub(super) fn row(finished: EndedConnection, index: u32, block: u32, latest: Duration) -> Row {
    Row {
        index,
        block,
        wire: wire_of(&finished),
        outcome: finished.outcome,
        times: finished.times,
        dns: finished.dns,
        page: PageLoad::default(),
        client_tcp: finished.client_tcp,
        server_tcp: finished.server_tcp,
        lateness: Lateness {
            link: latest,
            endpoint: finished.waited,
        },
    }
}

/// What went over the wire of a connection that has ended.
pub(super) fn wire_of(finished: &EndedConnection) -> Wire {
    let mss = finished.client_tcp.map_or(0, |tcp| tcp.mss);
    let failed = finished.failed.as_ref();
    Wire {
        ticket_wire_bytes: finished.ticket_bytes as u32,
        failed: failed.map(|failed| failed_attempt(&failed.observer, &failed.keys)),
        ..wire(&finished.observer, &finished.keys, mss)
    }
}

/// What the observer read of a connection whose client gave up. Its server is OpenSSL, which begins a record for each
/// message.
pub(super) fn failed_attempt(observer: &Observer, keys: &KeyLog) -> FailedAttempt {
    let seen = observer.observe(keys);
    let sent_by = |sender: Side| {
        let flights = seen.flights.iter();
        flights.filter(move |flight| flight.sender == sender)
    };
    let hello = sent_by(Side::Client).next();
    let alert = sent_by(Side::Client).skip(1);
    let bytes = |message| seen.bytes(message).unwrap_or(0);
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

/// What the observer read of a connection's handshake. Without an MSS (0), segments are not known.
pub fn wire(observer: &Observer, keys: &KeyLog, mss: u32) -> Wire {
    let seen = observer.observe(keys);
    let mut flights = seen.flights.iter().peekable();
    let mut next = |sender| {
        let flight = flights.next_if(|flight| flight.sender == sender);
        flight.map_or(0, |flight| flight.wire_bytes as u32)
    };
    let client_hello_wire_bytes = next(Side::Client);
    let (hello_retry_request_wire_bytes, second_client_hello_wire_bytes) =
        match seen.bytes(Message::HelloRetryRequest) {
            Some(_) => (next(Side::Server), next(Side::Client)),
            None => (0, 0),
        };
    let rest = |sender| {
        let rest = flights.clone().filter(|flight| flight.sender == sender);
        rest.map(|flight| flight.wire_bytes as u32).sum()
    };
    Wire {
        messages: seen.messages,
        client_hello_segments: client_hello_wire_bytes
            .checked_div(mss)
            .map_or(0, |_| client_hello_wire_bytes.div_ceil(mss)),
        client_hello_wire_bytes,
        hello_retry_request_wire_bytes,
        second_client_hello_wire_bytes,
        server_flight_wire_bytes: rest(Side::Server),
        // Only who counts segments can tell.
        server_writes: [0; _],
        ticket_writes: [0; _],
        response_writes: [0; _],
        client_finish_wire_bytes: rest(Side::Client),
        ticket_wire_bytes: 0,
        group: seen.group,
        cipher_suite: seen.cipher_suite,
        signature: seen.signature,
        client_signature: seen.client_signature,
        certificates: seen.certificates.len() as u32,
        compression: compression(seen.certificate_compression, seen.uncompressed_certificate),
        client_compression: compression(
            seen.client_certificate_compression,
            seen.uncompressed_client_certificate,
        ),
        resumption: match seen.resumed {
            Some(true) => Resumption::Resumed,
            _ => Resumption::Full,
        },
        hello_digest: match (seen.offered_certificates, seen.answered_certificates) {
            (None, None) => HelloDigest::None,
            (Some(_), None) => HelloDigest::Offered,
            (offered, answered) if offered == answered => HelloDigest::Echoed,
            _ => HelloDigest::Contradicted,
        },
        signal: match (&seen.named_anchors, seen.is_anchored, seen.suppresses_cas) {
            (Some(_), true, _) => ChainSignal::Anchored,
            (Some(_), false, _) => ChainSignal::TrustAnchors,
            (None, _, true) => ChainSignal::TlsFlags,
            (None, _, false) => ChainSignal::None,
        },
        failed: None,
        early_data: match seen.early_data {
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
