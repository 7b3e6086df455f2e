#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::atomic::AtomicBool;

use lastbyte_link::{Direction, Fate, Link, PacketKey, Pipe, Seed, Side, TcpPacket, Time};
use lastbyte_pki::Store;

use super::*;
use crate::lab::luck::link_seed;
use crate::lab::{PreparedArm, Run, Runner, Watcher, run_in_passing};
use crate::results::fixtures::{cell, experiment};
use crate::results::{Exchange, Row};
use crate::study::Experiment;

const MS: Duration = Duration::from_millis(1);

/// As results are read, whose blocks are in a folder.
#[test]
fn a_sample_is_as_disturbed_as_the_worst_of_its_blocks() {
    let link = Link::symmetric(200 * MS, Direction::default());
    let pace = Pace {
        concurrency: 4,
        duration: Duration::ZERO,
    };
    let report = |late: Duration, lowered| {
        let late = late.as_nanos() as u32;
        let mut block = Block {
            observed: None,
            rows: Vec::<Row>::new(),
            lateness: [vec![0; 98], vec![late, late]].concat(),
            emulator_cpu: MS,
            endpoint_cpu: 2 * MS,
        };
        let gated = gate(&block.rows, &mut block.lateness, &link);
        report(&Cell::default(), &mut block, pace, lowered, gated)
    };
    // Of all 400 packets together, 1 % are not late.
    let reports = [
        (0, report(MS, 1)),
        (1, report(3 * MS, 0)),
        (2, report(Duration::ZERO, 0)),
        (3, report(Duration::ZERO, 0)),
    ];
    let report = EngineReport::of_blocks(&reports).unwrap();
    let Validity::Invalid(reason) = &report.validity else {
        panic!("valid");
    };
    assert!(
        reason.starts_with("1 of 4 blocks were disturbed, such as block 1: 1 % of packets"),
        "{reason}"
    );
    assert_eq!((report.link_lateness_p99, report.lowered), (3 * MS, 1));
    assert_eq!(report.packets, 400);
}

#[test]
fn concurrency_leaves_both_threads_mostly_idle() {
    let concurrency = |asked, duration, endpoint, emulator| {
        let cost = Cost {
            endpoint,
            emulator,
            exchange: Exchange::default(),
        };
        concurrency(asked, duration, &cost)
    };
    let nothing = Duration::ZERO;
    // 15 % of 100 ms, of which one connection works for 1 ms.
    assert_eq!(concurrency(None, 99 * MS, MS, nothing), 15);
    // 30 % of it.
    assert_eq!(concurrency(None, 100 * MS, nothing, MS), 30);
    assert_eq!(concurrency(None, 99 * MS, MS, 3 * MS), 10);
    // No more than a block has, and at least one.
    assert_eq!(concurrency(None, 100 * MS, nothing, nothing), BLOCK);
    assert_eq!(concurrency(None, nothing, 100 * MS, 100 * MS), 1);
    assert_eq!(concurrency(None, nothing, nothing, nothing), 1);
    // Who asks gets what they ask for.
    assert_eq!(concurrency(Some(4), 99 * MS, MS, nothing), 4);
    assert_eq!(concurrency(Some(1000), 99 * MS, MS, nothing), 1000);
    assert_eq!(concurrency(Some(0), 99 * MS, MS, nothing), 1);
}

#[test]
fn blocks_are_larger_than_the_concurrency_that_is_asked_for() {
    assert_eq!(block_size(None), BLOCK);
    assert_eq!(block_size(Some(1)), BLOCK);
    assert_eq!(block_size(Some(20)), BLOCK);
    assert_eq!(block_size(Some(200)), 1000);
    // Each connection of a block has an address of its own.
    assert_eq!(block_size(Some(u32::MAX)), MAX_CONNECTIONS);
}

/// The engine asks each connection's own link, with the luck of its index: no SYN and no SYN-ACK is
/// earlier than that says.
#[test]
fn connections_have_the_luck_of_their_index() {
    let direction = Direction {
        jitter: 8 * MS,
        ..Direction::default()
    };
    let mut cell = cell("0%", "0B");
    cell.link = Link::symmetric(40 * MS, direction);
    let mut experiment = experiment(&["x25519/ecdsa-p256"], vec![cell], 110);
    experiment.seed = Seed(11);
    experiment.timeout = Duration::from_secs(60);
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path());
    let run = measure(&experiment, &store, &AtomicBool::new(false));

    assert_eq!(run.ending, Ending::Complete);
    let rows = &run.samples[0].rows;
    let indices: Vec<_> = rows.iter().map(|row| row.index).collect();
    assert_eq!(indices, Vec::from_iter(0..110));
    let link = &experiment.cells[0].link;
    let seed = link_seed(experiment.seed, link);
    for row in rows {
        assert_eq!(row.block, row.index / BLOCK);
        let arrives = |direction, toward, at| {
            const LENGTH: usize = 60;
            let syn = PacketKey::segment(TcpPacket::SYN, 0, 0);
            match Pipe::new(direction, seed.luck(row.index, toward)).send(at, LENGTH, syn) {
                Fate::Arrives(at) => at,
                fate => panic!("{fate:?}"),
            }
        };
        let at_server = arrives(&link.forward, Side::Server, Time(0));
        let at_client = arrives(&link.backward, Side::Client, at_server);
        let connect = row.times.connect.unwrap();
        assert!(
            connect >= at_client.since(Time(0)),
            "{}: {connect:?}",
            row.index
        );
    }
}

#[test]
fn a_flag_ends_a_run_early() {
    let experiment = experiment(&["x25519/ecdsa-p256"], vec![cell("0%", "0B")], 1_000_000);
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path());
    let run = measure(&experiment, &store, &AtomicBool::new(true));
    assert_eq!(run.ending, Ending::Interrupted);
    assert!(run.samples.is_empty());
}

struct Silent;

impl Watcher for Silent {
    fn expect(&self, _: Duration) {}
    fn advance(&self, _: Duration) {}
    fn warn(&self, _: &str) {}
}

/// Measures an experiment with one arm.
fn measure(experiment: &Experiment, store: &Store, interrupt: &AtomicBool) -> Run {
    let mut study = Study::single("test", experiment.clone());
    study.text = study.to_toml();
    let arm = PreparedArm::new(experiment.arms[0].clone(), store).unwrap();
    let run = run_in_passing(&Runner {
        inspection: None,
        study: &study,
        engine: &LiveEngine::new(Environment::default()),
        arms: &[arm],
        interrupt,
        watcher: &Silent,
    });
    run.unwrap_or_else(|error| panic!("this test needs root and /dev/net/tun: {error}"))
}
