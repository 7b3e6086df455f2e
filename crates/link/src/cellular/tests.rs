#![allow(clippy::unwrap_used)]

use super::*;

const DOWN: Side = Side::Client;
const UP: Side = Side::Server;

/// A user of all of a cell.
fn radio(generation: Generation, signal: Signal, motion: Motion) -> Radio {
    let bandwidth = generation.bandwidths().last();
    Radio {
        generation,
        bandwidth: *bandwidth.unwrap(),
        signal,
        motion,
        share: share("100%"),
        begins: Begins::Connected,
    }
}

fn share(text: &str) -> Share {
    Share::new(text.parse().unwrap()).unwrap()
}

/// Of all kinds.
fn radios() -> impl Iterator<Item = Radio> {
    Generation::ALL.into_iter().flat_map(|generation| {
        Signal::ALL.into_iter().flat_map(move |signal| {
            Motion::ALL
                .into_iter()
                .map(move |motion| radio(generation, signal, motion))
        })
    })
}

#[test]
fn efficiencies_are_those_that_the_standards_print() {
    let printed = |schemes: &[Scheme]| -> Vec<String> {
        let of = |scheme: &Scheme| format!("{:.4}", scheme.efficiency() as f64 / 1024.0);
        schemes.iter().map(of).collect()
    };
    assert_eq!(
        printed(&LTE_CQI),
        [
            "0.1523", "0.2344", "0.3770", "0.6016", "0.8770", "1.1758", "1.4766", "1.9141",
            "2.4062", "2.7305", "3.3223", "3.9023", "4.5234", "5.1152", "5.5547"
        ]
    );
    assert_eq!(
        printed(&NR_CQI),
        [
            "0.1523", "0.3770", "0.8770", "1.4766", "1.9141", "2.4062", "2.7305", "3.3223",
            "3.9023", "4.5234", "5.1152", "5.5547", "6.2266", "6.9141", "7.4062"
        ]
    );
}

#[test]
fn a_scheme_is_used_from_its_sinr_on() {
    let decibels = |scheme: Scheme| 10.0 * scheme.sinr().log10();
    // By hand: a gap of 7.427 dB, and 2^0.15234 - 1 is -9.53 dB; 2^5.55469 - 1 is 16.63 dB.
    for (scheme, expected) in [(LTE_CQI[0], -2.101), (LTE_CQI[14], 24.055)] {
        assert!(
            (decibels(scheme) - expected).abs() < 0.005,
            "{}",
            decibels(scheme)
        );
    }
    for schemes in [LTE_CQI, NR_CQI] {
        assert!(schemes.is_sorted_by(|one, next| one.sinr() < next.sinr()));
        assert_eq!(tables::bits(&schemes, schemes[0].sinr() * 0.999), 0);
        for (scheme, next) in schemes.iter().zip(&schemes[1..]) {
            let least = scheme.efficiency();
            assert_eq!(tables::bits(&schemes, scheme.sinr()), least);
            assert_eq!(tables::bits(&schemes, next.sinr() * 0.999), least);
        }
        assert_eq!(tables::bits(&schemes, 1e9), schemes[14].efficiency());
    }
}

/// By hand: elements of a block, blocks, layers and bits of each.
#[test]
fn a_millisecond_carries_what_its_elements_do() {
    let lte = radio(Generation::Lte, Signal::Good, Motion::Standing);
    let best = LTE_CQI[14].efficiency();
    // 120 elements x 100 blocks x 2 layers x 6 bits x 948/1024: 133.3125 Mbit/s.
    assert_eq!(lte.capacity(2 * best, DOWN, 7), 133_312 * PARTS + PARTS / 2);
    // 144 of them, and one layer.
    assert_eq!(lte.capacity(best, UP, 7), 79_987 * PARTS + PARTS / 2);
    let third = Radio {
        share: share("33.3333%"),
        bandwidth: Generation::Lte.bandwidth("1.4mhz").unwrap(),
        ..lte
    };
    // 144 elements x 6 blocks x 2 bits x 78/1024 x 0.333333, to the part.
    let bits = LTE_CQI[0].efficiency();
    assert_eq!(third.capacity(bits, UP, 0), 144 * 100 * 6 * 156 * 333_333);

    let nr = radio(Generation::Nr, Signal::Good, Motion::Standing);
    let best = NR_CQI[14].efficiency();
    let of = |toward, bits| -> Vec<f64> {
        let capacities = (0..5).map(|at| nr.capacity(bits, toward, at) as f64 / PARTS as f64);
        capacities.collect()
    };
    // 12 x 28 x 0.86 elements x 273 blocks x 4 layers x 8 bits x 948/1024.
    let full = 12.0 * 28.0 * 0.86 * 273.0 * 4.0 * 7.40625;
    let shares = [1.0, 24.0 / 28.0, 0.5, 1.0, 10.0 / 28.0];
    for (found, share) in of(DOWN, 4 * best).into_iter().zip(shares) {
        assert!((found - full * share).abs() < 1e-6 * full, "{found}");
    }
    let full = 12.0 * 14.0 * 0.92 * 273.0 * 7.40625;
    for (found, expected) in of(UP, best).into_iter().zip([0.0, 0.0, full, 0.0, full]) {
        assert!((found - expected).abs() < 1e-6 * full, "{found}");
    }
}

#[test]
fn layers_divide_the_power_and_are_as_many_as_carry_most() {
    const STATE: usize = 4;
    let bits = |signal, shadow: usize| {
        radio(Generation::Nr, signal, Motion::Standing).bits(DOWN)[shadow][STATE]
    };
    let of = |decibels: f64, layers: u64| {
        let sinr = 10_f64.powf(decibels / 10.0) * Fading::gains()[STATE] / layers as f64;
        layers * tables::bits(&NR_CQI, sinr)
    };
    // 2 dB below the mean of a cell's edge one is worth most, near its middle all.
    assert_eq!(bits(Signal::Edge, 5), of(0.0, 1));
    assert!(of(0.0, 1) > of(0.0, 2));
    assert_eq!(bits(Signal::Good, 6), of(20.0, 4));
    assert!(of(20.0, 4) > of(20.0, 3));
}

/// How long a chain is in each state, and how often it leaves one, in a second.
fn watched(mut chain: Chain, states: usize, milliseconds: u32) -> (Vec<f64>, f64) {
    let mut there = vec![0.0; states];
    let mut left = 0.0;
    for _ in 0..milliseconds {
        let before = chain.state();
        there[before] += 1.0 / f64::from(milliseconds);
        chain.advance();
        left += f64::from(u8::from(chain.state() != before));
    }
    (there, left * 1000.0 / f64::from(milliseconds))
}

#[test]
fn fading_is_in_each_state_as_long_and_has_the_mean_of_the_signal() {
    let gains = Fading::gains();
    let mean = gains.iter().sum::<f64>() / gains.len() as f64;
    assert!((mean - 1.0).abs() < 1e-9, "{mean}");
    assert!(gains.is_sorted());
    // The median of Gamma(4), and its upper quartile.
    for (states, expected) in [(4, 3.67206), (6, 5.10943)] {
        let threshold = Fading::threshold(states);
        assert!((threshold - expected).abs() < 1e-5, "{threshold}");
    }
    for doppler in [5.0, 100.0] {
        let (there, left) = watched(Fading::chain(doppler, Seed(3)), 8, 2_000_000);
        for share in &there {
            assert!((share - 0.125).abs() < 0.01, "{doppler}: {there:?}");
        }
        // By hand, each of the seven levels is crossed downward as often as 0.590, 0.859, 0.987, 1.008, 0.932, 0.761 and 0.478 of
        // the Doppler frequency, and upward as well. A faster chain leaves and returns within a millisecond, too.
        if doppler < 10.0 {
            assert!((left / doppler - 11.23).abs() < 0.35, "{}", left / doppler);
        }
    }
}

#[test]
fn shadowing_has_its_deviation_and_forgets_with_distance() {
    let levels = Shadowing::decibels();
    let mut chain = Shadowing::chain(10.0, Seed(5));
    let walk: Vec<f64> = (0..4_000_000)
        .map(|_| {
            chain.advance();
            levels[chain.state()]
        })
        .collect();
    let mean = |of: &mut dyn Iterator<Item = f64>| {
        let (sum, count) = of.fold((0.0, 0), |(sum, count), one| (sum + one, count + 1));
        sum / f64::from(count)
    };
    let centre = mean(&mut walk.iter().copied());
    let variance = mean(&mut walk.iter().map(|level| level.powi(2)));
    assert!(centre.abs() < 1.0, "{centre}");
    let all: f64 = shadows().iter().map(|(_, share)| share).sum();
    let squares = shadows().into_iter();
    let squares: f64 = squares.map(|(level, share)| level.powi(2) * share).sum();
    // 5.4 dB, without what lies beyond 12.
    let expected = (squares / all).sqrt();
    assert!(
        (variance.sqrt() - expected).abs() < 0.4,
        "{variance} {expected}"
    );
    // 50 m are 5 s.
    let pairs = walk.iter().zip(&walk[5000..]);
    let together = mean(&mut pairs.map(|(one, later)| one * later));
    let correlation = together / variance;
    assert!(
        (correlation - (-1.0_f64).exp()).abs() < 0.1,
        "{correlation}"
    );

    let (there, left) = watched(Shadowing::chain(0.0, Seed(5)), 13, 1000);
    assert_eq!((there[6].round(), left), (1.0, 0.0));
}

/// Nothing is lost or made between milliseconds.
#[test]
fn opportunities_are_the_bits_of_the_model() {
    const OPPORTUNITY: u128 = 1504 * 8 * PARTS as u128;
    const END: u32 = 3000;
    for radio in radios() {
        for toward in [DOWN, UP] {
            let trace = radio.trace("t", toward, Seed(9), Duration::from_millis(END.into()));
            let trace = trace.unwrap();
            let mut lines = trace.opportunities().iter().copied().peekable();
            let (mut sent, mut told) = (0_u128, 0_u128);
            for (at, capacity) in (1..=END).zip(radio.capacities(toward, Seed(9))) {
                told += u128::from(capacity);
                while lines.next_if_eq(&at).is_some() {
                    sent += OPPORTUNITY;
                }
                if at < END {
                    assert!(sent <= told && told - sent < OPPORTUNITY, "{radio:?} {at}");
                }
            }
            // What is left, and a line for its end.
            assert!(
                sent < told + OPPORTUNITY + 1 && told < sent + OPPORTUNITY,
                "{radio:?}"
            );
            assert_eq!(lines.next(), None);
            assert_eq!(trace.opportunities().last(), Some(&END));
        }
    }
}

/// By the normal distribution: decibels, and how often they are there in proportion.
fn shadows() -> Vec<(f64, f64)> {
    (-6..=6)
        .map(|step: i32| f64::from(step * 2))
        .map(|level| (level, (-level.powi(2) / 72.0).exp()))
        .collect()
}

/// In the long run, by the shares of time of all states.
fn expected_bits_per_second(radio: &Radio, toward: Side) -> f64 {
    let weights: Vec<f64> = match radio.motion {
        Motion::Standing => (-6..=6)
            .map(|step| f64::from(u8::from(step == 0)))
            .collect(),
        _ => shadows().into_iter().map(|(_, share)| share).collect(),
    };
    let all: f64 = weights.iter().sum();
    let rows = radio.bits(toward).into_iter().zip(&weights);
    let bits = rows.map(|(row, weight)| row.iter().sum::<u64>() as f64 / 8.0 * weight / all);
    let elements = (0..5).map(|at| radio.generation.elements(toward, at));
    let elements = elements.sum::<u64>() as f64 / 500.0;
    let blocks = f64::from(radio.bandwidth.resource_blocks);
    // 50 ms of each 500 m, and those between.
    let handover = 0.05 * radio.motion.metres_per_second() / 500.0;
    bits.sum::<f64>() / 1024.0 * elements * blocks * 1000.0 / (1.0 + handover)
}

#[test]
fn in_the_long_run_the_mean_is_the_model_s() {
    for radio in radios() {
        // What changes slowly has its mean late.
        let (seconds, deviation) = match radio.motion {
            Motion::Standing => (300, 0.03),
            Motion::Walking => (3600, 0.25),
            Motion::Driving => (3600, 0.1),
        };
        let share = share("5%");
        let radio = Radio { share, ..radio };
        let length = Duration::from_secs(seconds);
        let trace = radio.trace("t", DOWN, Seed(1), length).unwrap();
        let found = trace.mean_rate().bits_per_second() as f64;
        let expected = expected_bits_per_second(&radio, DOWN) * 0.05;
        assert!(
            (found / expected - 1.0).abs() < deviation,
            "{radio:?}: {found} {expected}"
        );
    }
}

#[test]
fn handovers_interrupt_both_directions_and_idle_radios_connect_first() {
    let driving = radio(Generation::Lte, Signal::Good, Motion::Driving);
    let silent = |radio: &Radio, toward| -> Vec<u32> {
        let capacities = (0..600_000).zip(radio.capacities(toward, Seed(4)));
        let silent = capacities.filter(|(_, capacity)| *capacity == 0);
        silent.map(|(at, _)| at).collect()
    };
    let down = silent(&driving, DOWN);
    // Ten minutes at a handover a minute: some of 50 ms each, and little by fading, with so good a signal.
    let handovers = {
        let mut handovers = Handovers::of(&driving, Seed(4));
        (0..600_000)
            .filter(|at| handovers.interrupt(*at))
            .collect::<Vec<u32>>()
    };
    assert_eq!(handovers.len() % 50, 0);
    assert!(
        (200..1200).contains(&handovers.len()),
        "{}",
        handovers.len()
    );
    let is_in = |of: &[u32]| handovers.iter().all(|at| of.binary_search(at).is_ok());
    assert!(is_in(&down) && is_in(&silent(&driving, UP)));

    let standing = radio(Generation::Lte, Signal::Good, Motion::Standing);
    assert_eq!(silent(&standing, DOWN), []);
    let idle = Radio {
        begins: Begins::Idle,
        ..standing
    };
    assert_eq!(silent(&idle, DOWN), (0..260).collect::<Vec<u32>>());
    // From then on, it is the same one.
    let rest = |radio: &Radio| {
        radio
            .capacities(UP, Seed(4))
            .skip(260)
            .take(1000)
            .collect::<Vec<_>>()
    };
    assert_eq!(rest(&idle), rest(&standing));
}

#[test]
fn carriers_have_widths_of_their_standard() {
    let of = |generation: Generation, name| {
        let bandwidth = generation.bandwidth(name);
        bandwidth
            .map(|bandwidth| bandwidth.resource_blocks)
            .map_err(|error| error.to_string())
    };
    assert_eq!(of(Generation::Lte, "20MHz"), Ok(100));
    assert_eq!(of(Generation::Nr, "20MHz"), Ok(51));
    assert_eq!(
        of(Generation::Lte, "100MHz"),
        Err(
            "unknown bandwidth \"100MHz\": LTE has 1.4MHz, 3MHz, 5MHz, 10MHz, 15MHz, 20MHz"
                .to_owned()
        )
    );
}

#[test]
fn a_trace_of_too_many_packets_is_none() {
    let nr = radio(Generation::Nr, Signal::Good, Motion::Standing);
    assert_eq!(
        nr.trace("t", DOWN, Seed(1), Duration::from_secs(3600)),
        None
    );
    assert_eq!(Share::new(Probability::ZERO), None);
    assert_eq!(Share::new("0.00001%".parse().unwrap()), None);
}
