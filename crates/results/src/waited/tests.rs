#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::time::Duration;

use super::*;
use crate::fixtures::{experiment, samples};
use crate::{Flights, Summary};
use lastbyte_study::Metric;
use lastbyte_study::Percentile;

const ARM: &str = "x25519/ecdsa-p256";

/// Steps that nobody could take for each other.
fn costs() -> CpuCosts {
    let micros = Duration::from_micros;
    CpuCosts {
        server_setup: micros(0),
        client_hello: micros(100),
        server_flight: micros(2_000),
        client_finish: micros(40_000),
        server_finish: micros(300_000),
        flights: Flights::default(),
        ..CpuCosts::default()
    }
}

fn beside(sample: &Sample, experiment: &Experiment) -> Sample {
    let mut sample = sample.clone();
    let session = experiment.arms[sample.arm].resumption;
    sample.engine.beside = [(session, costs())].into_iter().collect();
    sample
}

#[test]
fn each_step_adds_what_it_takes() {
    let experiment = experiment(&[ARM], vec![crate::fixtures::cell("0%", "50KiB")], 20);
    let network = samples(&experiment).remove(0);
    let network = beside(&network, &experiment);
    let waited = network.waited(&experiment);
    for (row, waited) in network.rows.iter().zip(&waited.rows) {
        let more = |of: fn(&Times) -> Option<Duration>| {
            of(&waited.times).unwrap() - of(&row.times).unwrap()
        };
        assert_eq!(waited.times.connect, row.times.connect);
        // Twice an acknowledgement of 66 bytes is on its way meanwhile, at 1 Gbit/s.
        let added = more(|times| times.handshake);
        let steps = Duration::from_micros(100 + 2_000 + 40_000);
        assert_eq!(added, steps - Duration::from_nanos(2 * 66 * 8));
        // The server verifies before it responds, and acknowledges meanwhile.
        let response = added + Duration::from_millis(300) - Duration::from_nanos(66 * 8);
        assert_eq!(more(|times| times.ttfb), response);
        // Some of the last packets of a flight are on their way while the next ones are made.
        let last = more(|times| times.ttlb);
        assert!((response - Duration::from_micros(50)..=response).contains(&last));
        assert_eq!(waited.exchange, row.exchange);
    }
    assert_eq!(waited.engine.cpu_costs, Some(costs()));
    assert!(waited.engine.beside.is_empty());
}

/// A slower client has its own steps take longer, and none of the server's.
#[test]
fn a_slower_client_takes_longer_for_its_steps() {
    let handshake = |cpu: &str| {
        let mut cell = crate::fixtures::cell("0%", "50KiB");
        cell.client_cpu = cpu.parse().unwrap();
        let experiment = experiment(&[ARM], vec![cell], 20);
        let network = beside(&samples(&experiment).remove(0), &experiment);
        let waited = network.waited(&experiment);
        let handshake = waited.rows[0].times.handshake.unwrap();
        (handshake, waited.rows[0].times.ttfb.unwrap())
    };
    let (this, first) = handshake("this");
    let (iot, first_of_iot) = handshake("iot");
    let more = Duration::from_micros(49 * (100 + 40_000));
    assert_eq!(iot - this, more);
    assert_eq!(first_of_iot - first, more);
}

#[test]
fn flights_take_their_turns() {
    let experiment = experiment(&[ARM], vec![crate::fixtures::cell("0%", "0B")], 40);
    let mut network = samples(&experiment).remove(0);
    let mut factors = [1000; Flights::COUNT];
    factors[3] = 2500;
    let costs = CpuCosts {
        flights: Flights(factors),
        ..costs()
    };
    network.engine.beside = [(experiment.arms[0].resumption, costs)]
        .into_iter()
        .collect();
    let waited = network.waited(&experiment);
    let added = (network.rows.iter().zip(&waited.rows))
        .map(|(row, waited)| waited.times.handshake.unwrap() - row.times.handshake.unwrap());
    let added: Vec<_> = added.collect();
    let slow = added
        .iter()
        .filter(|added| **added > Duration::from_millis(45));
    assert_eq!(slow.count(), 2);
}

#[test]
fn what_nobody_knows_adds_nothing() {
    let experiment = experiment(&[ARM], vec![crate::fixtures::cell("0%", "0B")], 3);
    let sample = samples(&experiment).remove(0);
    assert!(matches!(sample.waited(&experiment), Cow::Borrowed(_)));
    // Nor does a connection that failed take any longer.
    let mut failed = beside(&sample, &experiment);
    failed.rows[1].outcome = Outcome::TimedOut;
    let waited = failed.waited(&experiment);
    assert_eq!(waited.rows[1], failed.rows[1]);
    assert_ne!(waited.rows[2], failed.rows[2]);
}

#[test]
fn a_summary_tells_the_sum_and_its_shares() {
    let arms = [ARM, "x25519/rsa-2048"];
    let experiment = experiment(&arms, vec![crate::fixtures::cell("0%", "0B")], 20);
    let network = samples(&experiment);
    let both: Vec<_> = network
        .iter()
        .map(|sample| beside(sample, &experiment))
        .collect();
    let [alone, summed] =
        [&network, &both].map(|samples| Summary::new(&experiment, samples, &[Percentile::MEDIAN]));
    assert!(
        alone.cells[0].arms[0]
            .metric(Metric::Handshake)
            .network
            .is_empty()
    );
    for (alone, summed) in alone.cells[0].arms.iter().zip(&summed.cells[0].arms) {
        let time = |arm: &crate::ArmSummary| {
            arm.metric(Metric::Handshake).percentiles[&Percentile::MEDIAN]
                .unwrap()
                .value
        };
        let shares = summed
            .metric(Metric::Handshake)
            .shares(Percentile::MEDIAN)
            .unwrap();
        assert_eq!(shares.network, time(alone));
        assert_eq!(shares.network + shares.cpu.unsigned_abs(), time(summed));
        assert!(shares.cpu > SignedDuration::from_micros(42_000));
    }
}

/// Another calibration of the same would be a little off: only where both sides have one and the same is nothing of it
/// in what they differ by.
#[test]
fn increases_are_as_sure_as_calibrations() {
    let arms = [ARM, "x25519/rsa-2048"];
    let experiment = experiment(&arms, vec![crate::fixtures::cell("0%", "0B")], 40);
    let alike: Vec<_> = (samples(&experiment).iter())
        .map(|sample| beside(sample, &experiment))
        .collect();
    let mut apart = alike.clone();
    // A nanosecond makes it another calibration.
    let other = CpuCosts {
        server_flight: Duration::from_nanos(2_000_001),
        ..costs()
    };
    apart[1].engine.beside = [(experiment.arms[1].resumption, other)]
        .into_iter()
        .collect();
    let [alike, apart] = [alike, apart]
        .map(|samples| Summary::new(&experiment, &samples, &[Percentile::MEDIAN]))
        .map(|summary| {
            let [baseline, arm] = &*summary.cells[0].arms else {
                panic!()
            };
            let time = baseline.metric(Metric::Handshake).percentiles[&Percentile::MEDIAN];
            let increase = arm.metric(Metric::Handshake).increases[&Percentile::MEDIAN];
            (
                time.unwrap().value.as_secs_f64(),
                increase.unwrap().interval,
            )
        });
    let more =
        |of: fn(&crate::Interval<crate::Percent>) -> f64| (of(&apart.1) - of(&alike.1)).abs();
    // Both compute 42.1 ms, and either may be 10 % off.
    let expected = 100.0 * 2_f64.sqrt() * 0.0421 * 0.1 / alike.0;
    for more in [more(|of| of.low.unwrap().0), more(|of| of.high.unwrap().0)] {
        assert!(
            (more - expected).abs() < expected * 0.01,
            "{more} {expected}"
        );
    }
}

/// Where packets are lost, the percentile with computing is another connection's than that without.
#[test]
fn luck_on_the_network_is_no_computing() {
    let experiment = experiment(&[ARM], vec![crate::fixtures::cell("3%", "0B")], 21);
    let mut network = samples(&experiment).remove(0);
    for (place, row) in network.rows.iter_mut().enumerate() {
        // Far apart, so that what one connection computes more makes it pass others.
        let late = Duration::from_millis(70 + 20 * place as u64);
        row.times.handshake = Some(late);
    }
    let mut factors = [1000; Flights::COUNT];
    factors[3] = 40_000;
    let costs = CpuCosts {
        flights: Flights(factors),
        ..costs()
    };
    network.engine.beside = [(experiment.arms[0].resumption, costs)]
        .into_iter()
        .collect();
    let summary = Summary::new(&experiment, &[network], &[Percentile::MEDIAN]);
    let handshake = summary.cells[0].arms[0].metric(Metric::Handshake);
    let shares = handshake.shares(Percentile::MEDIAN).unwrap();
    let usual = SignedDuration::from_micros(42_100);
    assert!(
        (shares.cpu - usual).unsigned_abs() < Duration::from_micros(10),
        "{shares:?}"
    );
}

/// What is sent later can meet a window that has opened meanwhile, so that all of it is there sooner.
#[test]
fn computing_can_take_time_off() {
    let millis = Duration::from_millis;
    let added = Added {
        handshake: SignedDuration::from_millis(1),
        ttfb: SignedDuration::ZERO,
        ttlb: SignedDuration::from_millis(-34),
    };
    let times = Times {
        handshake: Some(millis(70)),
        ttlb: Some(millis(210)),
        ..Times::default()
    };
    let waited = added.to(times);
    assert_eq!(waited.handshake, Some(millis(71)));
    assert_eq!(waited.ttlb, Some(millis(176)));
    assert_eq!(
        apart(millis(176), millis(210)),
        SignedDuration::from_millis(-34)
    );
    assert_eq!(
        apart(millis(210), millis(176)),
        SignedDuration::from_millis(34)
    );
}
