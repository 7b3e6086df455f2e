//! Luck: its frequencies, its independence and its permanence.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use lastbyte_link::{
    Direction, Distribution, Fate, Loss, Luck, PacketKey, Pipe, Probability, Seed, Side, Time,
};

const DELAY: Duration = Duration::from_secs(1);

fn is_lost(luck: Luck, loss: f64, key: PacketKey) -> bool {
    let direction = Direction {
        loss: Loss::Random(Probability::from_fraction(loss).unwrap()),
        ..Direction::default()
    };
    Pipe::new(&direction, luck).send(Time(0), 1500, key) == Fate::Lost
}

/// A draw of the delay, scaled to between 0 and 1.
fn jitter(luck: Luck, key: PacketKey) -> f64 {
    let direction = Direction {
        delay: DELAY,
        jitter: DELAY,
        distribution: Distribution::Uniform,
        ..Direction::default()
    };
    match Pipe::new(&direction, luck).send(Time(0), 1500, key) {
        Fate::Arrives(at) => at.since(Time(0)).as_secs_f64() / 2.0,
        fate => panic!("{fate:?}"),
    }
}

fn luck(index: u32) -> Luck {
    Seed(1).luck(index, Side::Client)
}

/// Real keys: a transfer in segments of 1448 bytes.
fn key(i: u32) -> PacketKey {
    PacketKey::segment(0x10, 1 + 1448 * i, 0)
}

/// How many standard deviations `count` of `n` lies from its mean.
fn sigmas(count: u32, n: u32, probability: f64) -> f64 {
    let (n, count) = (f64::from(n), f64::from(count));
    (count - n * probability).abs() / (n * probability * (1.0 - probability)).sqrt()
}

#[test]
fn packets_are_lost_as_often_as_asked() {
    const N: u32 = 1_000_000;
    for loss in [0.0001, 0.001, 0.01, 0.03, 0.05, 0.1, 0.5, 0.9] {
        // Over the packets of a connection, and over connections for one packet.
        let packets = (0..N).filter(|&i| is_lost(luck(7), loss, key(i))).count() as u32;
        assert!(
            sigmas(packets, N, loss) < 5.0,
            "{packets} packets at {loss}"
        );
        let connections = (0..N).filter(|&i| is_lost(luck(i), loss, key(0))).count() as u32;
        assert!(
            sigmas(connections, N, loss) < 5.0,
            "{connections} connections at {loss}"
        );
    }
}

#[test]
fn certainties() {
    assert!((0..100_000).all(|i| is_lost(luck(i), 1.0, key(i))));
    assert!(!(0..100_000).any(|i| is_lost(luck(i), 0.0, key(i))));
}

#[test]
fn what_is_lost_at_a_low_rate_is_lost_at_a_higher_one() {
    for i in 0..100_000 {
        assert!(!is_lost(luck(i), 0.03, key(i)) || is_lost(luck(i), 0.1, key(i)));
    }
}

/// Chi-square of 16 x 16 cells of two uniform draws; 255 degrees of freedom, within 5 sigma.
fn assert_independent(name: &str, pair: impl Fn(u32) -> (f64, f64)) {
    const N: u32 = 500_000;
    let mut cells = [[0_u32; 16]; 16];
    for i in 0..N {
        let (a, b) = pair(i);
        cells[(a * 16.0) as usize][(b * 16.0) as usize] += 1;
    }
    let expected = f64::from(N) / 256.0;
    let chi_square: f64 = cells
        .iter()
        .flatten()
        .map(|&count| (f64::from(count) - expected).powi(2) / expected)
        .sum();
    let sigma = (2.0 * 255.0_f64).sqrt();
    assert!(
        (chi_square - 255.0).abs() < 5.0 * sigma,
        "{name}: chi-square {chi_square}"
    );
}

#[test]
fn draws_are_independent() {
    assert_independent("neighbouring packets", |i| {
        (jitter(luck(3), key(2 * i)), jitter(luck(3), key(2 * i + 1)))
    });
    assert_independent("neighbouring sequence numbers", |i| {
        let key = |i| PacketKey::segment(0, i, 0);
        (jitter(luck(3), key(2 * i)), jitter(luck(3), key(2 * i + 1)))
    });
    assert_independent("attempts", |i| {
        let key = |attempt| PacketKey::segment(0, i, attempt);
        (jitter(luck(3), key(0)), jitter(luck(3), key(1)))
    });
    assert_independent("data and acknowledgement", |i| {
        (
            jitter(luck(3), PacketKey::segment(0, i, 0)),
            jitter(luck(3), PacketKey::acknowledgement(i, 0)),
        )
    });
    assert_independent("neighbouring connections", |i| {
        (jitter(luck(2 * i), key(0)), jitter(luck(2 * i + 1), key(0)))
    });
    assert_independent("directions", |i| {
        let toward = |toward| jitter(Seed(1).luck(i, toward), key(0));
        (toward(Side::Server), toward(Side::Client))
    });
    assert_independent("neighbouring seeds", |i| {
        let seed = |seed| jitter(Seed(seed).luck(0, Side::Server), key(0));
        (seed(2 * u64::from(i)), seed(2 * u64::from(i) + 1))
    });
    assert_independent("parts", |i| {
        let part = |name| jitter(Seed(1).part(name).luck(i, Side::Server), key(0));
        (part("lte-m"), part("lte-n"))
    });
}

#[test]
fn delay_is_independent_of_loss() {
    let (mut lost, mut late) = (0, 0);
    for i in 0..1_000_000 {
        if is_lost(luck(5), 0.1, key(i)) {
            lost += 1;
            late += u32::from(jitter(luck(5), key(i)) > 0.5);
        }
    }
    assert!(sigmas(late, lost, 0.5) < 5.0, "{late} of {lost}");
}

#[test]
fn luck_is_a_function_of_what_it_belongs_to() {
    let all = [
        Seed(1).luck(0, Side::Server),
        Seed(1).luck(0, Side::Client),
        Seed(1).luck(1, Side::Server),
        Seed(2).luck(0, Side::Server),
        Seed(1).part("").luck(0, Side::Server),
        Seed(1).part("a").luck(0, Side::Server),
        Seed(1).part("\0").luck(0, Side::Server),
        Seed(1).part("\0\0").luck(0, Side::Server),
        Seed(1).part("a").part("b").luck(0, Side::Server),
        Seed(1).part("ab").luck(0, Side::Server),
    ];
    for (i, a) in all.iter().enumerate() {
        assert!(all[i + 1..].iter().all(|b| a != b), "{i}");
    }
    assert_eq!(Seed(1).luck(3, Side::Server), Seed(1).luck(3, Side::Server));
}

/// Results that were measured once must stay what they are. The numbers were computed in
/// another language.
#[test]
fn luck_never_changes() {
    let drawn = |seed: Seed, i| {
        let fraction = jitter(seed.luck(i, Side::Server), PacketKey::segment(2, 0, i));
        (fraction * 2e9).round() as u64
    };
    assert_eq!(drawn(Seed(1), 0), 1_296_402_074);
    assert_eq!(drawn(Seed(1), 1), 1_714_942_418);
    assert_eq!(drawn(Seed(u64::MAX), 17), 167_646_661);
    assert_eq!(drawn(Seed(1).part("a"), 0), 345_409_399);
}
