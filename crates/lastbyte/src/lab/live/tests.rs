#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use lastbyte_link::{Fate, PacketKey, Pipe, Side, TcpPacket, Time};
use lastbyte_pki::Store;
use proptest::prelude::*;

use super::*;
use crate::results::fixtures::{CLASSICAL, cell, experiment, samples};

const MS: Duration = Duration::from_millis(1);
const US: Duration = Duration::from_micros(1);
const NS: Duration = Duration::from_nanos(1);

mod gating {
    use super::*;

    fn link(rtt: Duration) -> Link {
        Link::symmetric(rtt, Direction::default())
    }

    /// Rows of a sample in which nothing goes wrong: some 70 ms each, nobody waits.
    fn rows() -> Vec<Row> {
        let experiment = experiment(&[CLASSICAL], vec![cell("0%", "0B")], 100);
        let mut rows = samples(&experiment).remove(0).rows;
        for row in &mut rows {
            row.lateness = Lateness::default();
        }
        rows
    }

    /// 98 packets in time, and two that are this late.
    fn two_late(late: Duration) -> Vec<u32> {
        let late = late.as_nanos() as u32;
        [vec![0; 98], vec![late, late]].concat()
    }

    #[test]
    fn lateness_is_limited_by_the_delay_of_the_link() {
        for (rtt, limit) in [
            // 2 ms at most,
            (200 * MS, 2 * MS),
            (80 * MS, 2 * MS),
            // 5 % of the one-way delay,
            (40 * MS, MS),
            (10 * MS, 250 * US),
            // and what any machine may take to wake up.
            (4 * MS, 100 * US),
            (MS, 100 * US),
            (Duration::ZERO, 100 * US),
        ] {
            let link = link(rtt);
            assert_eq!(
                gate(&rows(), &mut two_late(limit), &link),
                Ok(()),
                "{rtt:?}"
            );
            let reason = gate(&rows(), &mut two_late(limit + NS), &link).unwrap_err();
            let limit = format!("late, against a limit of {limit:.0?}: close other programs");
            assert!(
                reason.starts_with("1 % of packets were more than "),
                "{reason}"
            );
            assert!(reason.contains(&limit), "{reason}");
        }
    }

    #[test]
    fn the_shorter_delay_counts() {
        let mut link = link(200 * MS);
        link.backward.delay = 10 * MS;
        assert_eq!(gate(&rows(), &mut two_late(500 * US), &link), Ok(()));
        assert!(gate(&rows(), &mut two_late(501 * US), &link).is_err());
    }

    #[test]
    fn one_late_packet_in_a_hundred_and_one_passes() {
        let link = link(200 * MS);
        let one_late = |count: usize| [vec![0; count - 1], vec![u32::MAX]].concat();
        assert!(gate(&rows(), &mut one_late(100), &link).is_err());
        assert_eq!(gate(&rows(), &mut one_late(101), &link), Ok(()));
    }

    #[test]
    fn waiting_is_limited_by_the_time_to_the_last_byte() {
        let link = link(200 * MS);
        for (ttlb, limit) in [
            // 0.3 % of it, or what any machine may take to wake up.
            (1000 * MS, 3 * MS),
            (10 * MS, 100 * US),
        ] {
            let with_wait = |wait| {
                let mut rows = rows();
                for row in &mut rows {
                    row.times.ttlb = Some(ttlb);
                    row.lateness.endpoint = wait;
                }
                // A connection that failed tells nothing.
                for row in rows.iter_mut().take(10) {
                    row.outcome = Outcome::TimedOut;
                    row.times.ttlb = Some(Duration::ZERO);
                    row.lateness.endpoint = Duration::MAX;
                }
                rows
            };
            assert_eq!(gate(&with_wait(limit), &mut [], &link), Ok(()), "{ttlb:?}");
            let reason = gate(&with_wait(limit + NS), &mut [], &link).unwrap_err();
            assert!(reason.starts_with("connections waited "), "{reason}");
            assert!(
                reason.ends_with("ask for a lower --concurrency"),
                "{reason}"
            );
        }
    }

    /// As `run` judges them, whose blocks are read from a folder.
    #[test]
    fn a_sample_is_as_disturbed_as_the_worst_of_its_blocks() {
        let block = |late: Duration| Block {
            rows: rows(),
            lateness: two_late(late),
            emulator_cpu: MS,
            endpoint_cpu: 2 * MS,
        };
        let mut sample = Growing::new(4, Duration::ZERO);
        sample.lowered = 1;
        sample.add(0, block(MS), &link(200 * MS));
        // Of all 400 packets together, 1 % are not late.
        sample.add(1, block(3 * MS), &link(200 * MS));
        for number in 2..4 {
            sample.add(number, block(Duration::ZERO), &link(200 * MS));
        }
        let report = EngineReport::of_blocks(&sample.reports).unwrap();
        let Validity::Invalid(reason) = &report.validity else {
            panic!("valid");
        };
        assert!(
            reason.starts_with("1 of 4 blocks were disturbed, such as block 1: 1 % of packets"),
            "{reason}"
        );
        assert_eq!((report.link_lateness_p99, report.lowered), (3 * MS, 1));
        assert_eq!((report.packets, sample.rows.len()), (400, 400));
    }

    #[test]
    fn nothing_at_all_passes() {
        assert_eq!(gate(&[], &mut [], &link(35 * MS)), Ok(()));
    }
}

proptest! {
    #[test]
    fn the_median_is_in_the_middle(mut numbers in prop::collection::vec(0..1000_u64, 1..50)) {
        let middle = median(numbers.iter().copied().map(Duration::from_nanos));
        numbers.sort_unstable();
        prop_assert_eq!(middle, Duration::from_nanos(numbers[numbers.len() / 2]));
    }

    #[test]
    fn one_in_a_hundred_is_at_least_as_late(mut late in prop::collection::vec(0..1000_u32, 1..500)) {
        let p99 = lateness_p99(&mut late).as_nanos() as u32;
        let above = late.iter().filter(|late| **late > p99).count();
        let at_least = late.iter().filter(|late| **late >= p99).count();
        prop_assert!(above * 100 <= late.len());
        prop_assert!(at_least * 100 >= late.len());
    }
}

#[test]
fn nothing_has_no_median() {
    assert_eq!(median(std::iter::empty()), Duration::ZERO);
    assert_eq!(lateness_p99(&mut []), Duration::ZERO);
}

/// What an engine for one cheap sample makes of a wish for this many connections at once.
fn with_concurrency<T>(asked: Option<u32>, ask: impl FnOnce(&LiveEngine<'_>) -> T) -> T {
    let mut experiment = experiment(&[CLASSICAL], vec![cell("0%", "0B")], 200);
    experiment.concurrency = asked;
    let interrupt = AtomicBool::new(false);
    ask(&LiveEngine::new(&experiment, &[], &interrupt, &Silent))
}

#[test]
fn concurrency_leaves_both_threads_mostly_idle() {
    let concurrency = |asked, duration, endpoint, emulator| {
        let cost = Cost {
            endpoint,
            emulator,
            wire: Wire::default(),
        };
        with_concurrency(asked, |engine| engine.concurrency(duration, &cost))
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

#[test]
fn each_link_of_a_grid_has_luck_of_its_own() {
    let direction = Direction::default();
    let link = Link::symmetric(35 * MS, direction.clone());
    let rate = Rate::from_bits_per_second(1);
    let mut links = vec![link.clone(), Link::symmetric(36 * MS, direction)];
    for changed in [
        Direction {
            jitter: MS,
            ..link.forward.clone()
        },
        Direction {
            loss: "1%".parse().unwrap(),
            ..link.forward.clone()
        },
        Direction {
            rate,
            ..link.forward.clone()
        },
        Direction {
            queue: 999,
            ..link.forward.clone()
        },
        Direction {
            delay: MS,
            ..link.forward.clone()
        },
    ] {
        links.push(Link {
            forward: changed.clone(),
            ..link.clone()
        });
        links.push(Link {
            backward: changed,
            ..link.clone()
        });
    }
    let seeds: Vec<_> = links.iter().map(|link| link_seed(Seed(1), link)).collect();
    for (index, seed) in seeds.iter().enumerate() {
        assert!(!seeds[..index].contains(seed), "{:?}", links[index]);
    }
    assert_eq!(seeds[0], link_seed(Seed(1), &links[0].clone()));
    assert_ne!(seeds[0], link_seed(Seed(2), &links[0]));
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
    let arms = [PreparedArm::new(experiment.arms[0].clone(), &store).unwrap()];
    let interrupt = AtomicBool::new(false);
    let run = LiveEngine::new(&experiment, &arms, &interrupt, &Silent)
        .run()
        .unwrap_or_else(|error| panic!("this test needs root and /dev/net/tun: {error}"));

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
    let arms = [PreparedArm::new(experiment.arms[0].clone(), &store).unwrap()];
    let interrupt = AtomicBool::new(true);
    let run = LiveEngine::new(&experiment, &arms, &interrupt, &Silent)
        .run()
        .unwrap_or_else(|error| panic!("this test needs root and /dev/net/tun: {error}"));
    assert_eq!(run.ending, Ending::Interrupted);
    assert!(run.samples.is_empty());
}
