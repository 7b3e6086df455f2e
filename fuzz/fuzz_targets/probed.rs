//! What a probe wrote, and what happens on its connections: documents that are read are written again as they were, and
//! whatever comes when, windows are ranges.
#![no_main]

use std::time::Duration;

use lastbyte_probe::{Answer, Arrival, Connection, Counters, Document, Event, Limits, Probe};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(text) = std::str::from_utf8(data)
        && let Ok(document) = Document::read(text)
    {
        let written = document.write();
        assert_eq!(Document::read(&written).unwrap().write(), written);
        for certificate in &document.chain {
            let _ = certificate.with(
                lastbyte_sizes::KeyAlgorithm::MlDsa65,
                lastbyte_sizes::KeyAlgorithm::MlDsa65,
            );
        }
    }
    let mut probe = Probe::new(Limits::default());
    for bytes in data.split(|byte| *byte == 0xff).take(6) {
        let connection = connection(bytes);
        written(&connection, bytes);
        probe.add(connection);
        if let Some(window) = probe.findings().window {
            assert!(window.least >= 1);
            assert!(window.most.is_none_or(|most| most >= window.least));
        }
        let _ = probe.next();
    }
});

/// In which writes a server's handshake, tickets and response left, with records of whatever sizes.
fn written(connection: &Connection, bytes: &[u8]) {
    let sizes: Vec<usize> = bytes.iter().map(|byte| usize::from(*byte) * 71).collect();
    let (begin, sizes) = sizes.split_at(sizes.len().min(1));
    let (tickets, sizes) = sizes.split_at(sizes.len().min(2));
    let (behind, records) = sizes.split_at(sizes.len().min(1));
    let begin = begin.iter().sum();
    let _ = lastbyte_probe::writes(connection, begin);
    let answer = Answer {
        begin,
        tickets,
        records,
        behind,
    };
    let found = lastbyte_probe::answer_writes(connection, answer);
    assert!(found.early_tickets <= tickets.iter().sum());
    assert!(found.tickets.len() <= tickets.len());
    let response = found.response.map(|writes| writes.first);
    assert!(response.is_none_or(|first| first.len() <= records.len()));
}

/// Eight bytes an event: what, when, how much, and what was counted.
fn connection(bytes: &[u8]) -> Connection {
    let (head, events) = bytes.split_at_checked(2).unwrap_or_default();
    let mut connection = Connection {
        segment: head.first().map_or(0, |byte| usize::from(*byte) * 8),
        headers: head.get(1).map_or(0, |byte| usize::from(*byte)),
        events: Vec::new(),
    };
    let mut at = Duration::ZERO;
    let mut counters = Counters::default();
    for event in events.chunks_exact(8) {
        let [kind, step, scale, low, high, segments, disorder, again] = event else {
            continue;
        };
        at = at.saturating_add(Duration::from_nanos(u64::from(*step) << (scale % 64)));
        let bytes = usize::from(*low) | usize::from(*high) << 8;
        counters.segments = counters.segments.saturating_add(u32::from(*segments));
        counters.out_of_order = counters
            .out_of_order
            .saturating_add(u32::from(disorder % 8 == 7));
        counters.retransmitted = counters
            .retransmitted
            .saturating_add(u32::from(again % 8 == 7));
        // Of milliseconds, as timestamps are.
        if segments % 4 == 3 {
            let sample = at.min(Duration::from_secs(60));
            let before = counters.receiver_rtt.unwrap_or(sample);
            counters.receiver_rtt = Some(before - before / 8 + sample / 8);
        }
        let event = match kind % 16 {
            0 => Event::Connected,
            1 => Event::Hello(bytes),
            2 => Event::Finished(bytes),
            3 => Event::Request(bytes),
            4 => Event::FirstByte,
            5 => Event::LastByte,
            _ => Event::Arrived(Arrival {
                bytes,
                counters: (again % 2 == 0).then_some(counters),
            }),
        };
        connection.events.push((at, event));
    }
    connection
}
