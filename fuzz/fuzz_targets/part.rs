//! A part file of which some bytes were written over, and the end may be missing: it is read as it was written, or
//! refused. Sealed anew, it is read or refused.
#![no_main]

use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use lastbyte::results::{
    Cause, CpuCosts, Dns, EngineReport, Environment, Exchange, FailureKind, Lateness, Measurement,
    Negotiated, Outcome, Part, PartHeader, Resumption, Row, TcpStats, Times, TransportStats,
    Validity, write_part,
};
use lastbyte::study::{BlockId, Study};
use lastbyte_fuzz::pieces;
use lastbyte_results::parse_part;
use lastbyte_results::rows::reseal;
use libfuzzer_sys::fuzz_target;

const STUDY: &str = r#"
connections = 3
[arm.a]
tls = "x25519/ecdsa-p256"
[link.near]
rtt = "1ms"
[[measure]]
id = "m"
"#;

/// A part, and its bytes.
static PART: LazyLock<(Part, Vec<u8>)> = LazyLock::new(|| {
    let study = Study::parse(STUDY, Path::new("study.toml")).unwrap();
    let id = BlockId {
        measure: 0,
        cell: 0,
        block: 0,
        arm: 0,
    };
    let report = EngineReport {
        buffers: Default::default(),
        computing: None,
        cpu_costs: Some(CpuCosts::default()),
        beside: Default::default(),
        concurrency: 1,
        lowered: 0,
        link_lateness_p99: Duration::ZERO,
        endpoint_wait_p50: Duration::ZERO,
        packets: 0,
        emulator_cpu: Duration::ZERO,
        endpoint_cpu: Duration::ZERO,
        validity: Validity::Valid,
    };
    let environment = Environment::default();
    let chain = "00".repeat(32);
    let header = PartHeader::new(&study, id, 0..3, chain, report, environment).unwrap();
    let row = |index| Row {
        index,
        block: 0,
        outcome: Outcome::Failed {
            cause: Cause::Client(FailureKind::Socket),
            reason: "reset".to_owned(),
        },
        times: Times {
            connect: Some(Duration::from_millis(index.into())),
            ..Times::default()
        },
        exchange: Exchange {
            negotiated: Negotiated {
                group: Some(0x001d),
                resumption: Resumption::Full,
                ..Negotiated::default()
            },
            ..Exchange::default()
        },
        dns: Dns::default(),
        measurement: Measurement::Transfer,
        transport: TransportStats::Tcp {
            client: Some(TcpStats::default()),
            server: None,
        },
        lateness: Lateness::default(),
    };
    let rows: Vec<Row> = (0..3).map(row).collect();
    let mut bytes = Vec::new();
    write_part(&mut bytes, &header, &study, &rows).unwrap();
    (Part { header, rows }, bytes)
});

fuzz_target!(|data: &[u8]| {
    let (part, whole) = &*PART;
    let mut bytes = whole.clone();
    for (tag, piece) in pieces(data) {
        match piece.split_first_chunk() {
            Some((&[low], piece)) => {
                let place = (usize::from(tag) << 8 | usize::from(low)) % whole.len();
                let end = bytes.len();
                for (byte, other) in bytes[place.min(end)..].iter_mut().zip(piece) {
                    *byte = *other;
                }
            }
            None => bytes.truncate(whole.len() * usize::from(tag) / 256),
        }
    }
    let is_whole = bytes == *whole;
    // Anybody can make a seal: what is behind it counts.
    let mut resealed = bytes.clone();
    reseal(&mut resealed);
    match parse_part(bytes) {
        Ok(read) => {
            assert!(is_whole);
            assert_eq!(&read, part);
        }
        Err(error) => {
            assert!(!is_whole);
            assert!(!error.to_string().contains('\n'), "{error}");
        }
    }
    match parse_part(resealed) {
        Ok(read) => assert_eq!(read.rows.len(), read.header.connections as usize),
        Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
    }
});
