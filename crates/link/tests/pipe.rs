//! What becomes of a packet, against the rules of netem.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use lastbyte_link::{
    Direction, Distribution, Fate, Link, Loss, Order, PacketKey, Pipe, Probability, Seed, Side,
    Time,
};
use proptest::prelude::*;

const MS: u64 = 1_000_000;

fn pipe(direction: &Direction) -> Pipe {
    Pipe::new(direction, Seed(1).luck(0, Side::Client))
}

fn key(i: u32) -> PacketKey {
    PacketKey::segment(0, i, 0)
}

fn arrival(fate: Fate) -> u64 {
    match fate {
        Fate::Arrives(Time(at)) => at,
        fate => panic!("{fate:?}"),
    }
}

#[test]
fn delay_alone() {
    let mut pipe = pipe(&Direction {
        delay: Duration::from_millis(20),
        ..Direction::default()
    });
    assert_eq!(
        pipe.send(Time(5), 1500, key(0)),
        Fate::Arrives(Time(20 * MS + 5))
    );
    assert_eq!(
        pipe.send(Time(5), 40, key(1)),
        Fate::Arrives(Time(20 * MS + 5))
    );
}

#[test]
fn a_rate_serialises_after_the_delay_and_counts_the_ethernet_header() {
    // 1236 + 14 bytes take 10 ms at 1 Mbit/s.
    let mut pipe = pipe(&Direction {
        delay: Duration::from_millis(20),
        rate: "1mbit".parse().ok(),
        ..Direction::default()
    });
    let mut send = |now, length| arrival(pipe.send(Time(now), length, key(0)));
    assert_eq!(send(0, 1236), 30 * MS);
    // Back to back: behind the one before.
    assert_eq!(send(0, 1236), 40 * MS);
    // Its delay is over in the middle of that.
    assert_eq!(send(15 * MS, 1236), 50 * MS);
    // Its delay is over when that is out.
    assert_eq!(send(35 * MS, 1236), 65 * MS);
    // At that moment nothing is held any more.
    assert_eq!(send(65 * MS, 1236), 95 * MS);
    assert_eq!(send(200 * MS, 111), 221 * MS);
}

#[test]
fn the_queue_holds_what_is_in_the_delay_line() {
    let mut pipe = pipe(&Direction {
        delay: Duration::from_millis(20),
        queue: 2,
        ..Direction::default()
    });
    assert_eq!(
        pipe.send(Time(0), 100, key(0)),
        Fate::Arrives(Time(20 * MS))
    );
    assert_eq!(
        pipe.send(Time(MS), 100, key(1)),
        Fate::Arrives(Time(21 * MS))
    );
    assert_eq!(pipe.send(Time(2 * MS), 100, key(2)), Fate::Overflows);
    assert_eq!(pipe.send(Time(20 * MS - 1), 100, key(3)), Fate::Overflows);
    assert_eq!(
        pipe.send(Time(20 * MS), 100, key(4)),
        Fate::Arrives(Time(40 * MS))
    );
    assert_eq!(pipe.send(Time(20 * MS), 100, key(5)), Fate::Overflows);
}

#[test]
fn the_queue_bounds_the_rate() {
    let mut pipe = pipe(&Direction {
        delay: Duration::from_millis(50),
        ..Direction::default()
    });
    // 1 Gbit/s for one second: a packet of 1514 bytes each 12,112 ns.
    let passed = (0..82_562)
        .filter(|i| pipe.send(Time(i * 12_112), 1500, key(*i as u32)) != Fate::Overflows)
        .count();
    // Twenty times 1000 packets: 242 Mbit/s.
    assert_eq!(passed, 20_000);
}

#[test]
fn a_queue_of_none_drops_all() {
    let mut pipe = pipe(&Direction {
        queue: 0,
        ..Direction::default()
    });
    assert_eq!(pipe.send(Time(0), 100, key(0)), Fate::Overflows);
}

#[test]
fn what_is_lost_takes_no_place_and_no_time() {
    let direction = Direction {
        loss: "50%".parse().unwrap(),
        rate: "1mbit".parse().ok(),
        queue: 5,
        ..Direction::default()
    };
    let mut pipe = pipe(&direction);
    let fates: Vec<Fate> = (0..100).map(|i| pipe.send(Time(0), 1236, key(i))).collect();
    let arrivals: Vec<Fate> = fates
        .iter()
        .copied()
        .filter(|fate| matches!(fate, Fate::Arrives(_)))
        .collect();
    assert_eq!(
        arrivals,
        [10, 20, 30, 40, 50].map(|ms| Fate::Arrives(Time(ms * MS)))
    );
    // Loss is drawn first: with the queue full, packets are still lost.
    let position = fates
        .iter()
        .position(|fate| *fate == Fate::Overflows)
        .unwrap();
    assert!(fates[position..].contains(&Fate::Lost));
}

#[test]
fn uniform_jitter_fills_its_range() {
    let mut pipe = pipe(&Direction {
        delay: Duration::from_nanos(100),
        jitter: Duration::from_nanos(4),
        queue: u32::MAX,
        ..Direction::default()
    });
    let mut counts = std::collections::BTreeMap::new();
    for i in 0..80_000 {
        *counts
            .entry(arrival(pipe.send(Time(0), 100, key(i))))
            .or_insert(0_u32) += 1;
    }
    assert_eq!(
        counts.keys().copied().collect::<Vec<_>>(),
        (96..104).collect::<Vec<_>>()
    );
    // 10,000 each, with a standard deviation of 94.
    assert!(
        counts.values().all(|count| count.abs_diff(10_000) < 5 * 94),
        "{counts:?}"
    );
}

#[test]
fn normal_jitter_has_its_mean_and_deviation() {
    const N: u32 = 200_000;
    let mut pipe = pipe(&Direction {
        delay: Duration::from_millis(100),
        jitter: Duration::from_millis(10),
        distribution: Distribution::Normal,
        queue: u32::MAX,
        ..Direction::default()
    });
    let delays: Vec<f64> = (0..N)
        .map(|i| arrival(pipe.send(Time(0), 100, key(i))) as f64 / MS as f64)
        .collect();
    let mean = delays.iter().sum::<f64>() / f64::from(N);
    let variance = delays
        .iter()
        .map(|delay| (delay - mean).powi(2))
        .sum::<f64>()
        / f64::from(N);
    // Five standard errors: 10 / sqrt(N), and 10 / sqrt(2 N).
    assert!((mean - 100.0).abs() < 0.112, "{mean}");
    assert!((variance.sqrt() - 10.0).abs() < 0.079, "{variance}");
    let within = |sigmas: f64| {
        delays
            .iter()
            .filter(|delay| (**delay - 100.0).abs() < 10.0 * sigmas)
            .count() as f64
            / f64::from(N)
    };
    assert!((within(1.0) - 0.6827).abs() < 0.006);
    assert!((within(2.0) - 0.9545).abs() < 0.003);
}

/// Half of a nanosecond is half of a standard deviation here: 38 % of all draws are below it.
#[test]
fn normal_jitter_is_rounded_to_the_nearest() {
    const N: u32 = 100_000;
    let mut pipe = pipe(&Direction {
        delay: Duration::from_nanos(10),
        jitter: Duration::from_nanos(1),
        distribution: Distribution::Normal,
        queue: u32::MAX,
        ..Direction::default()
    });
    let delays: Vec<u64> = (0..N)
        .map(|i| arrival(pipe.send(Time(0), 100, key(i))))
        .collect();
    let share =
        |delay: u64| delays.iter().filter(|found| **found == delay).count() as f64 / f64::from(N);
    assert!((share(10) - 0.3829).abs() < 0.008);
    assert!((share(9) - 0.2417).abs() < 0.007);
    assert!((share(11) - 0.2417).abs() < 0.007);
}

#[test]
fn the_normal_table_holds_the_quantiles() {
    let table = Distribution::Normal.table().unwrap();
    assert_eq!(Distribution::Uniform.table(), None);
    assert!(table.is_sorted());
    for i in 0..2048 {
        assert_eq!(table[2047 - i], -table[2048 + i]);
    }
    // Quantiles at (i + 1/2) / 4096, from an independent implementation (Python's
    // statistics.NormalDist), in 1/8192.
    for (index, quantile) in QUANTILES {
        assert_eq!(table[index], quantile, "{index}");
    }
    let squares: f64 = table
        .iter()
        .map(|&value| (f64::from(value) / 8192.0).powi(2))
        .sum();
    assert!(((squares / 4096.0).sqrt() - 0.999_839).abs() < 1e-6);
}

#[test]
fn jitter_reorders_only_without_a_rate() {
    let direction = Direction {
        delay: Duration::from_millis(20),
        jitter: Duration::from_millis(9),
        distribution: Distribution::Normal,
        ..Direction::default()
    };
    let arrivals = |direction: &Direction| {
        let mut pipe = pipe(direction);
        (0..200)
            .map(|i| arrival(pipe.send(Time(i * 10_000), 1500, key(i as u32))))
            .collect::<Vec<_>>()
    };
    let limited = Direction {
        rate: "1gbit".parse().ok(),
        ..direction.clone()
    };
    assert!(!arrivals(&direction).is_sorted());
    assert!(arrivals(&limited).is_sorted());
}

/// netem: `time_to_send = now + delay + serialisation` when it holds nothing.
#[test]
fn jitter_that_keeps_the_order_holds_up_those_after_a_late_one() {
    let kept = Direction {
        delay: Duration::from_millis(10),
        jitter: Duration::from_millis(9),
        order: Order::Kept,
        ..Direction::default()
    };
    let free = Direction {
        order: Order::Free,
        ..kept.clone()
    };
    let [mut kept, mut free] = [&kept, &free].map(pipe);
    let (mut before, mut latest, mut reordered) = (0, 0, 0);
    for i in 0..1000 {
        let now = Time(u64::from(i) * 1_000_000);
        let [at, alone] = [&mut kept, &mut free].map(|pipe| arrival(pipe.send(now, 100, key(i))));
        reordered += u32::from(alone < latest);
        latest = latest.max(alone);
        // As late as it would be by itself, or as who was late before.
        assert_eq!(at, latest);
        assert!(at >= before);
        before = at;
    }
    assert!(reordered > 300, "{reordered}");
}

#[test]
fn a_negative_delay_eats_into_the_serialisation() {
    let direction = Direction {
        jitter: Duration::from_millis(11),
        rate: "1mbit".parse().ok(),
        ..Direction::default()
    };
    let unlimited = Direction {
        rate: None,
        delay: Duration::from_millis(11),
        ..direction.clone()
    };
    let (mut clamped, mut shortened) = (0, 0);
    for i in 0..1000 {
        let drawn = arrival(pipe(&unlimited).send(Time(0), 1236, key(i))) as i64 - 11 * MS as i64;
        // The packet before is out at this very moment: nothing is held.
        let mut pipe = pipe(&direction);
        let now = arrival(pipe.send(Time(1000 * MS), 1236, key(i + 1000)));
        let passed = arrival(pipe.send(Time(now), 1236, key(i))) - now;
        assert_eq!(passed as i64, (10 * MS as i64 + drawn).max(0));
        shortened += u32::from(drawn < 0);
        clamped += u32::from(passed == 0);
    }
    assert!(shortened > 400 && clamped > 20, "{shortened} {clamped}");
}

#[test]
fn luck_does_not_depend_on_order_or_time() {
    let direction = Direction {
        delay: Duration::from_millis(20),
        jitter: Duration::from_millis(9),
        loss: "10%".parse().unwrap(),
        ..Direction::default()
    };
    let mut forward = pipe(&direction);
    let mut reverse = pipe(&direction);
    let at = |now: u64, fate: Fate| match fate {
        Fate::Arrives(Time(at)) => Some(at - now),
        _ => None,
    };
    let ahead: Vec<_> = (0..100)
        .map(|i| at(0, forward.send(Time(0), 1500, key(i))))
        .collect();
    let mut back: Vec<_> = (0..100)
        .rev()
        .map(|i| at(9 * MS, reverse.send(Time(9 * MS), 40, key(i))))
        .collect();
    back.reverse();
    assert_eq!(ahead, back);
}

#[test]
fn symmetric_links_share_the_round_trip() {
    let rest = Direction {
        rate: "1gbit".parse().ok(),
        queue: 7,
        ..Direction::default()
    };
    let link = Link::symmetric(Duration::from_nanos(35_000_001), rest.clone());
    assert_eq!(link.forward.delay, Duration::from_nanos(17_500_000));
    assert_eq!(link.backward.delay, Duration::from_nanos(17_500_001));
    assert_eq!(link.rtt(), Duration::from_nanos(35_000_001));
    assert_eq!((link.forward.queue, link.backward.rate), (7, rest.rate));
}

#[test]
fn times_saturate() {
    assert_eq!(Time(5) + Duration::MAX, Time(u64::MAX));
    assert_eq!(Time(5).since(Time(9)), Duration::ZERO);
    let mut pipe = pipe(&Direction {
        delay: Duration::MAX,
        jitter: Duration::MAX,
        rate: "1bit".parse().ok(),
        ..Direction::default()
    });
    for i in 0..9 {
        let fate = pipe.send(Time(u64::MAX), usize::MAX, key(i));
        assert_eq!(fate, Fate::Arrives(Time(u64::MAX)));
    }
}

proptest! {
    #[test]
    fn nothing_arrives_before_it_was_sent(
        delay in 0_u64..50_000,
        jitter in 0_u64..100_000,
        normal: bool,
        rate in 0_u64..1 << 40,
        loss in 0.0..=1.0,
        queue in 0_u32..20,
        sends in proptest::collection::vec((0_u64..30_000, 0_usize..2000), 1..100),
    ) {
        let direction = Direction {
            delay: Duration::from_nanos(delay),
            jitter: Duration::from_nanos(jitter),
            distribution: if normal { Distribution::Normal } else { Distribution::Uniform },
            loss: Loss::Random(Probability::from_fraction(loss).unwrap()),
            rate: lastbyte_link::Rate::from_bits_per_second(rate),
            queue,
            ..Direction::default()
        };
        let mut pipe = pipe(&direction);
        let mut now = Time(0);
        let mut held: Vec<Time> = Vec::new();
        let mut last = Time(0);
        for (i, (gap, length)) in sends.into_iter().enumerate() {
            now = now + Duration::from_nanos(gap);
            held.retain(|departure| *departure > now);
            match pipe.send(now, length, key(i as u32)) {
                Fate::Arrives(at) => {
                    prop_assert!(at >= now);
                    prop_assert!(held.len() < queue as usize);
                    if direction.rate.is_some() {
                        prop_assert!(at >= last || last <= now);
                    }
                    held.push(at);
                    last = at;
                }
                Fate::Waits => unreachable!(),
                Fate::Overflows => prop_assert_eq!(held.len(), queue as usize),
                Fate::Lost => prop_assert!(loss > 0.0),
            }
        }
    }
}

const QUANTILES: [(usize, i16); 16] = [
    (0, -30051),
    (1, -27666),
    (2, -26493),
    (40, -19092),
    (102, -16053),
    (410, -10488),
    (1024, -5522),
    (2000, -238),
    (2047, -3),
    (2048, 3),
    (2500, 2298),
    (3072, 5529),
    (3993, 16053),
    (4055, 19092),
    (4094, 27666),
    (4095, 30051),
];
