//! Rows within what is read, of which nothing fits the rest, for property tests.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use lastbyte_exchange::{Handshake, Negotiated, Tcp, Transfer, Transport};
use lastbyte_sizes::{ABRIDGED, Message, names};
use proptest::option;
use proptest::prelude::*;

use super::{
    Cause, ChainSignal, Compression, DeliveryOutcome, Dns, EarlyData, Exchange, FailedAttempt,
    HandshakeFlight, HelloDigest, Lateness, Measurement, Outcome, PageLoad, Resumption, Row,
    TcpStats, Times, TransportStats,
};

/// Any row that a file can hold.
pub(crate) fn row() -> impl Strategy<Value = Row> {
    let outcome = prop_oneof![
        Just(Outcome::Completed),
        Just(Outcome::TimedOut),
        (0..Cause::all().count(), text()).prop_map(|(cause, reason)| Outcome::Failed {
            cause: Cause::all().nth(cause).unwrap(),
            reason,
        }),
    ];
    let tcp = || option::of(tcp());
    (
        outcome,
        times(),
        exchange(),
        (dns(), measured()),
        tcp(),
        tcp(),
        duration(),
        duration(),
    )
        .prop_map(
            |(outcome, times, exchange, (dns, measurement), client, server, link, endpoint)| Row {
                index: 0,
                block: 0,
                outcome,
                times,
                exchange,
                dns,
                measurement,
                transport: TransportStats::Tcp { client, server },
                lateness: Lateness { link, endpoint },
            },
        )
}

/// Of any characters, and such as mean something to whoever shows them.
pub(crate) fn text() -> impl Strategy<Value = String> {
    let meant = [
        "<script>boo</script>",
        "]]><b>",
        "\"'><img src=x onerror=boo>",
        "\u{1b}[2J\u{1b}]0;boo\u{7}\u{9b}31m",
        "boo\r\nboo\0\u{8}",
        "| `boo` | [boo](javascript:boo) ![](http://boo.example)",
        "=1+boo()",
        "$(boo) `boo`; boo",
        "\u{202e}boo\u{2066}\u{200b}\u{feff}",
        "",
    ];
    prop_oneof![
        ".*".boxed(),
        prop::sample::select(meant.to_vec())
            .prop_map(str::to_owned)
            .boxed(),
    ]
}

/// A load of which something was seen, or a transfer.
fn measured() -> impl Strategy<Value = Measurement> {
    page().prop_map(|load| match load == PageLoad::default() {
        true => Measurement::Transfer,
        false => Measurement::Load(load),
    })
}

fn page() -> impl Strategy<Value = PageLoad> {
    let time = || option::of(duration());
    let count = || option::of(count());
    let times = (time(), time(), time(), time());
    let cpu = (time(), time(), time(), time(), time());
    (times, cpu, (count(), count(), count())).prop_map(
        |(
            (fcp, lcp, load, speed_index),
            (ttfb_computing, fcp_cpu, lcp_cpu, load_cpu, programs_cpu),
            (bytes, connections, requests),
        )| PageLoad {
            ttfb_computing,
            fcp,
            lcp,
            load,
            speed_index,
            fcp_cpu,
            lcp_cpu,
            load_cpu,
            programs_cpu,
            bytes,
            connections,
            requests,
        },
    )
}

fn dns() -> impl Strategy<Value = Dns> {
    let outcome = prop::sample::select(DeliveryOutcome::ALL.to_vec());
    (
        option::of(duration()),
        option::of(duration()),
        option::of(outcome),
        option::of(text()),
        option::of(count()),
    )
        .prop_map(
            |(address, record, outcome, reason, certificate_bytes)| Dns {
                address,
                record,
                outcome,
                reason,
                certificate_bytes,
            },
        )
}

fn message_bytes() -> impl Strategy<Value = u32> {
    prop_oneof![Just(0), Just(1), Just((1 << 24) + 3), 0..=1_u32 << 24]
}

fn count() -> impl Strategy<Value = u32> {
    prop_oneof![Just(0), Just(1), Just(1 << 28), 0..=1_u32 << 28]
}

/// Up to what is read.
fn duration() -> impl Strategy<Value = Duration> {
    prop_oneof![Just(0), Just(1 << 53), 0..=1_u64 << 53].prop_map(Duration::from_nanos)
}

fn times() -> impl Strategy<Value = Times> {
    let time = || option::of(duration());
    (time(), time(), time(), time(), time()).prop_map(
        |(connect, handshake, server_handshake, ttfb, ttlb)| Times {
            connect,
            handshake,
            server_handshake,
            ttfb,
            ttlb,
        },
    )
}

fn exchange() -> impl Strategy<Value = Exchange> {
    let code_point = |name: fn(u16) -> Option<&'static str>| {
        let named: Vec<u16> = (0..=u16::MAX)
            .filter(|code| name(*code).is_some())
            .collect();
        option::of(prop_oneof![prop::sample::select(named), any::<u16>()])
    };
    let resumption = prop_oneof![Just(Resumption::Full), Just(Resumption::Resumed)];
    (
        prop::collection::vec(message_bytes(), 27),
        code_point(names::group),
        code_point(names::cipher_suite),
        [0, 1].map(|_| code_point(names::signature_scheme)),
        resumption,
        prop::sample::select(vec![
            EarlyData::None,
            EarlyData::Accepted,
            EarlyData::Refused,
        ]),
        prop::sample::select(vec![
            HelloDigest::None,
            HelloDigest::Offered,
            HelloDigest::Echoed,
            HelloDigest::Contradicted,
        ]),
    )
        .prop_map(
            |(sizes, group, cipher_suite, signatures, resumption, early_data, hello_digest)| {
                let messages = Message::all().zip(sizes.iter().copied());
                let mut handshake = Handshake::of(messages.collect());
                let wire_bytes = sizes[13..].iter().copied().map(Some);
                handshake.see_all(HandshakeFlight::ALL.into_iter().zip(wire_bytes));
                Exchange {
                    transport: Transport::Tcp(Tcp {
                        client_hello_segments: Some(sizes[12]),
                    }),
                    handshake,
                    negotiated: Negotiated {
                        group,
                        cipher_suite,
                        signature: signatures[0],
                        client_signature: signatures[1],
                        certificates: Some(sizes[18] % 3),
                        compression: compression(sizes[20]),
                        client_compression: compression(sizes[21]),
                        resumption,
                        early_data,
                        hello_digest,
                        signal: ChainSignal::ALL[sizes[22] as usize % ChainSignal::ALL.len()],
                    },
                    tickets: Some(Transfer::seen(sizes[19] as usize)),
                    failed: sizes[22].is_multiple_of(2).then_some(FailedAttempt {
                        client_hello_wire_bytes: sizes[23],
                        server_flight_wire_bytes: sizes[24],
                        through_certificate_wire_bytes: sizes[25],
                        alert_wire_bytes: sizes[26],
                    }),
                    ..Exchange::default()
                }
            },
        )
}

/// None, an algorithm with a name or one without.
fn compression(number: u32) -> Option<Compression> {
    (!number.is_multiple_of(3)).then_some(Compression {
        algorithm: match number % 6 {
            5 => ABRIDGED,
            small => small as u16,
        },
        uncompressed_bytes: number,
    })
}

fn tcp() -> impl Strategy<Value = TcpStats> {
    (prop::collection::vec(count(), 6), duration(), duration()).prop_map(
        |(numbers, rtt, min_rtt)| TcpStats {
            retransmits: numbers[0],
            lost: numbers[1],
            rtt,
            min_rtt,
            cwnd: numbers[2],
            mss: numbers[3],
            segments_out: numbers[4],
            segments_in: numbers[5],
        },
    )
}
