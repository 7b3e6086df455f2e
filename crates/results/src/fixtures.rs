//! Made-up results for tests, the same every time.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use lastbyte_exchange::{Handshake, HandshakeFlight, Negotiated, Tcp, Transport};
use lastbyte_link::{Bytes, Direction, Link};
use lastbyte_sizes::framing::{MSS, RECORD_HEADER};
use lastbyte_sizes::{Group, Message, MessageSizes};

use super::{
    Beside, Cause, Dns, EngineReport, Environment, Exchange, FailureKind, Folder, Lateness,
    Manifest, Measurement, Outcome, PartHeader, Row, Sample, Start, TcpStats, Times,
    TransportStats, Validity, write_part,
};
use lastbyte_study::{
    Arm, ArmChain, BlockId, Buffers, Cell, Connections, EngineName, Experiment, Study,
};

/// An arm without post-quantum algorithms.
pub const CLASSICAL: &str = "secp256r1/rsa-2048";
/// One with nothing else.
pub const HYBRID: &str = "SecP256r1MLKEM768/ml-dsa-65";
/// One whose chain alone has none.
pub const MIXED: &str = "X25519MLKEM768/ecdsa-p256";

/// A path of 35 ms and 1 Gbit/s with this loss each way.
pub fn cell(loss: &str, data: &str) -> Cell {
    let direction = Direction {
        loss: loss.parse().unwrap(),
        rate: Some("1gbit".parse().unwrap()),
        ..Direction::default()
    };
    Cell {
        link: Link::symmetric(Duration::from_millis(35), direction),
        data: data.parse().unwrap(),
        ..Cell::default()
    }
}

/// A connection whose client's socket failed, with this reason.
pub fn failed(reason: impl Into<String>) -> Outcome {
    Outcome::Failed {
        cause: Cause::Client(FailureKind::Socket),
        reason: reason.into(),
    }
}

/// An experiment of these arms, whose texts are right.
pub fn experiment(
    arms: &[&str],
    cells: Vec<Cell>,
    connections: impl Into<Connections>,
) -> Experiment {
    let arms = arms.iter().map(|arm| arm.parse().unwrap()).collect();
    Experiment::new(arms, cells, connections)
}

/// Every sample of an experiment in which nothing goes wrong.
pub fn samples(experiment: &Experiment) -> Vec<Sample> {
    let cells = 0..experiment.cells.len();
    let arms = 0..experiment.arms.len();
    cells
        .flat_map(|cell| arms.clone().map(move |arm| sample(experiment, cell, arm)))
        .collect()
}

/// One sample of an experiment in which nothing goes wrong.
pub fn sample(experiment: &Experiment, cell: usize, arm: usize) -> Sample {
    let (arm_of, cell_of) = (&experiment.arms[arm], &experiment.cells[cell]);
    Sample {
        arm,
        cell,
        rows: (0..experiment.connections.most())
            .map(|index| row(arm_of, cell_of, index))
            .collect(),
        chain_digest: format!("{arm:064x}"),
        engine: EngineReport {
            cpu_costs: None,
            beside: Beside::default(),
            computing: None,
            buffers: Buffers::Large,
            concurrency: 25,
            lowered: 0,
            link_lateness_p99: Duration::from_micros(112),
            endpoint_wait_p50: Duration::from_micros(9),
            packets: 1_000,
            emulator_cpu: Duration::from_millis(7),
            endpoint_cpu: Duration::from_millis(80),
            validity: Validity::Valid,
        },
    }
}

/// A handshake of one round trip, or of two if the chain is large, and data in doubling flights.
fn row(arm: &Arm, cell: &Cell, index: u32) -> Row {
    let rtt = cell.link.rtt();
    // Luck that arms share, and noise that they don't: up to 1 ms and 50 us.
    let hash = |salt: u32| (index + 1).wrapping_add(salt).wrapping_mul(2_654_435_761) >> 16;
    let luck = Duration::from_nanos(u64::from(hash(0)) * 15);
    let noise = Duration::from_nanos(u64::from(hash(arm.group.code_point().into())) * 760 / 1000);
    let exchange = exchange(arm, index);
    let segments = |bytes: u64| bytes.div_ceil(MSS as u64) as usize;
    let rounds = |bytes| lastbyte_flights::flights_needed(bytes as usize, MSS, cell.initcwnd);
    let connect = rtt + luck / 10 + noise / 10;
    let handshake = connect
        + rtt * rounds(exchange.sent(HandshakeFlight::Server))
        + Duration::from_micros(400)
        + noise;
    let ttfb = handshake + rtt + luck / 2;
    let data = u32::try_from(cell.data.0).unwrap();
    // A large handshake has opened the window.
    let ttlb = handshake
        + rtt
            * rounds(
                data.saturating_sub(exchange.sent(HandshakeFlight::Server) / 2)
                    .max(1),
            )
        + luck
        + noise * segments(cell.data.0) as u32 / 100;
    let with_data = |time| (cell.data != Bytes(0)).then_some(time);
    let tcp = TcpStats {
        retransmits: 0,
        lost: 0,
        rtt: rtt + luck,
        min_rtt: rtt,
        cwnd: 10 + segments(cell.data.0) as u32,
        mss: MSS as u32,
        segments_out: 9,
        segments_in: 11,
    };
    Row {
        index,
        block: index / 100,
        outcome: Outcome::Completed,
        times: Times {
            connect: Some(connect),
            handshake: Some(handshake),
            server_handshake: Some(handshake + rtt / 2),
            ttfb: with_data(ttfb),
            ttlb: Some(with_data(ttlb).unwrap_or(handshake)),
        },
        exchange,
        dns: Dns::default(),
        measurement: Measurement::Transfer,
        transport: TransportStats::Tcp {
            client: Some(TcpStats { cwnd: 10, ..tcp }),
            server: Some(tcp),
        },
        lateness: Lateness {
            link: Duration::from_micros(90),
            endpoint: Duration::from_micros(9),
        },
    }
}

fn exchange(arm: &Arm, index: u32) -> Exchange {
    let (client_hello_bytes, server_hello_bytes) = match arm.group {
        Group::Secp256r1 => (266, 155),
        Group::X25519MlKem768 => (1411, 1210),
        _ => (1444, 1243),
    };
    let chain = match &arm.chain {
        ArmChain::Made(spec) => spec.to_string(),
        ArmChain::Pem(_) => String::new(),
    };
    let (certificate_bytes, certificate_verify_bytes, signature) = match &*chain {
        "rsa-2048" => (1471, 264, 0x0804),
        "ml-dsa-65" => (10_929, 3317, 0x0905),
        // Signatures of ECDSA vary.
        _ => (677, 78 + index % 3, 0x0403),
    };
    let client_hello = client_hello_bytes + RECORD_HEADER as u32;
    let mut handshake = Handshake::of(MessageSizes::from_iter([
        (Message::ClientHello, client_hello_bytes),
        (Message::ServerHello, server_hello_bytes),
        (Message::EncryptedExtensions, 6),
        (Message::Certificate, certificate_bytes),
        (Message::CertificateVerify, certificate_verify_bytes),
        (Message::ServerFinished, 36),
        (Message::ClientFinished, 36),
    ]));
    let server = server_hello_bytes + certificate_bytes + certificate_verify_bytes + 141;
    handshake.see_all([
        (HandshakeFlight::ClientHello, Some(client_hello)),
        (HandshakeFlight::Server, Some(server)),
        (HandshakeFlight::ClientFinish, Some(64)),
    ]);
    Exchange {
        transport: Transport::Tcp(Tcp {
            client_hello_segments: Some(client_hello.div_ceil(MSS as u32)),
        }),
        handshake,
        negotiated: Negotiated {
            group: Some(arm.group.code_point()),
            cipher_suite: Some(0x1302),
            signature: Some(signature),
            certificates: Some(2),
            ..Negotiated::default()
        },
        ..Exchange::default()
    }
}

/// A folder with the run of a study, complete but for the blocks of these samples: measure, cell, arm.
pub fn run_folder(path: &Path, text: &str, missing: &[(usize, usize, usize)]) {
    let is_there = |id: BlockId| !missing.contains(&(id.measure, id.cell, id.arm));
    let (study, folder) = part_folder(path, text, &environment(), is_there, |_| {});
    if missing.is_empty() {
        folder.merge(&study).unwrap();
    }
}

/// Where made-up runs are measured.
pub fn environment() -> Environment {
    Environment {
        engine: EngineName::Virtual,
        command: vec!["lastbyte".to_owned(), "run".to_owned()],
        kernel: "Linux 6.12.0".to_owned(),
        ..Environment::default()
    }
}

/// A folder with those blocks of a run that are there, each sample changed before it is cut up.
pub fn part_folder(
    path: &Path,
    text: &str,
    environment: &Environment,
    is_there: impl Fn(BlockId) -> bool,
    change: impl Fn(&mut Sample),
) -> (Study, Folder) {
    const BLOCK: u32 = 50;
    let study = Study::parse(text, Path::new("studies/made-up.toml")).unwrap();
    let manifest = Manifest::new(&study, BLOCK, environment.clone());
    let folder = Folder::take(path, &study, manifest, Start::Afresh).unwrap();
    for id in study.blocks(BLOCK).filter(|id| is_there(*id)) {
        let experiment = &study.measures[id.measure].experiment;
        let block = study.block(id, BLOCK);
        let mut sample = sample(experiment, id.cell, id.arm);
        change(&mut sample);
        let rows: Vec<Row> = (sample.rows.into_iter())
            .filter(|row| block.contains(&row.index))
            .map(|row| Row {
                block: id.block,
                ..row
            })
            .collect();
        let digest = sample.chain_digest;
        let header = PartHeader::new(
            &study,
            id,
            block,
            digest,
            sample.engine,
            environment.clone(),
        )
        .unwrap();
        let file = File::create(folder.draft(&study, id)).unwrap();
        write_part(file, &header, &study, &rows).unwrap();
        folder.keep(&study, id).unwrap();
    }
    (study, folder)
}
