#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs::File;
use std::time::Duration;

use tempfile::TempDir;

use super::*;
use crate::fixtures::{CLASSICAL, HYBRID, cell, experiment, samples};
use crate::rows::Origin;
use crate::{ArmSummary, Estimate, Interval, Outcome, Percent, write_rows};
use lastbyte_study::Metric;
use lastbyte_study::{Connections, Emulation, EngineName, Experiment, QuicIn};

const PEM: &str = "x25519/./chain.pem";

/// What one run measured.
struct Measured {
    experiment: Experiment,
    samples: Vec<Sample>,
    environment: Environment,
}

fn measured() -> Measured {
    let cells = vec![cell("0%", "0KiB"), cell("0%", "50KiB")];
    let experiment = experiment(&[CLASSICAL, HYBRID], cells, 60);
    Measured {
        samples: samples(&experiment),
        experiment,
        environment: Environment {
            engine: EngineName::Virtual,
            kernel: "Linux 6.12.0".to_owned(),
            versions: [("openssl".to_owned(), "3.6.3".to_owned())].into(),
            ..Environment::default()
        },
    }
}

impl Measured {
    fn saved(&self) -> Saved {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("main.parquet");
        let origin = Origin {
            study: "compare",
            measure: "compare",
            engine: self.environment.engine,
        };
        let (file, environment) = (File::create(&path).unwrap(), &self.environment);
        write_rows(
            file,
            origin,
            &self.experiment,
            &self.samples,
            environment,
            None,
        )
        .unwrap();
        Saved::open(&path, "main").unwrap()
    }

    fn since(&self, then: &Measured) -> Summary {
        let mut summary = Summary::new(&self.experiment, &self.samples, &Percentile::USUAL);
        summary.compare_with(&then.saved(), &self.samples, &self.environment);
        summary
    }

    /// Makes an arm's last bytes later.
    fn delay(&mut self, arm: usize, late: impl Fn(u32) -> Duration) {
        for sample in self.samples.iter_mut().filter(|sample| sample.arm == arm) {
            for row in &mut sample.rows {
                row.times.ttlb = row.times.ttlb.map(|time| time + late(row.index));
            }
        }
    }
}

fn median(arm: &ArmSummary, metric: Metric) -> Estimate<Percent> {
    arm.metric(metric).changes[&Percentile::MEDIAN].unwrap()
}

fn warnings(summary: &Summary) -> Vec<String> {
    let known = ["change", "since", "main"];
    let texts = summary.warnings.iter().map(ToString::to_string);
    texts
        .filter(|text| known.iter().any(|word| text.contains(word)))
        .collect()
}

#[test]
fn nothing_has_changed_since_the_same_results() {
    let summary = measured().since(&measured());
    assert_eq!(
        summary.since.as_ref().unwrap().to_string(),
        "main, paired by connection"
    );
    let zero = Some(Percent(0.0));
    for arm in summary.cells.iter().flat_map(|cell| &cell.arms) {
        for metric in Metric::ALL {
            for change in arm.metric(metric).changes.values() {
                let expected = Estimate {
                    value: Percent(0.0),
                    interval: Interval {
                        low: zero,
                        high: zero,
                    },
                };
                match change {
                    Ok(change) => assert_eq!(*change, expected),
                    Err(absent) => assert_eq!(*absent, Absent::NoData),
                }
            }
        }
        assert_eq!(
            arm.metric(Metric::Ttlb).changes.len(),
            Percentile::USUAL.len()
        );
    }
    assert_eq!(warnings(&summary), [""; 0]);
}

/// What each connection of an arm has in common stands out from luck, if luck is shared.
#[test]
fn pairing_narrows_the_interval() {
    let then = measured();
    let mut now = measured();
    now.delay(1, |_| Duration::from_micros(500));
    let paired = now.since(&then);
    now.experiment.seed = Seed(2);
    let apart = now.since(&then);
    assert_eq!(apart.since.as_ref().unwrap().pairing, Pairing::Apart);
    let [paired, apart] =
        [&paired, &apart].map(|summary| median(&summary.cells[1].arms[1], Metric::Ttlb));
    assert_eq!(paired.value, apart.value);
    assert!(!paired.interval.holds_zero(), "{paired:?}");
    let width = |of: Estimate<Percent>| of.interval.high.unwrap().0 - of.interval.low.unwrap().0;
    assert!(width(apart) > 2.0 * width(paired), "{apart:?} {paired:?}");
}

#[test]
fn a_change_is_of_its_arm_and_metric_alone() {
    let mut now = measured();
    now.delay(1, |_| Duration::from_millis(20));
    let summary = now.since(&measured());
    for cell in &summary.cells {
        let [baseline, other] = &*cell.arms else {
            panic!()
        };
        assert_eq!(median(baseline, Metric::Ttlb).value, Percent(0.0));
        assert_eq!(median(other, Metric::Handshake).value, Percent(0.0));
        assert!(median(other, Metric::Ttlb).value > Percent(5.0));
    }
}

#[test]
fn luck_is_shared_where_seed_engine_and_emulation_are() {
    let pairing = |change: fn(&mut Measured)| {
        let mut now = measured();
        change(&mut now);
        now.since(&measured()).since.unwrap().pairing
    };
    assert_eq!(pairing(|_| ()), Pairing::ByConnection);
    let kernel = |now: &mut Measured| now.environment.kernel = "Linux 6.18".into();
    assert_eq!(pairing(kernel), Pairing::ByConnection);
    assert_eq!(pairing(|now| now.experiment.seed = Seed(9)), Pairing::Apart);
    assert_eq!(
        pairing(|now| now.environment.engine = EngineName::Live),
        Pairing::Apart
    );
    assert_eq!(
        pairing(|now| now.experiment.emulation = Emulation::Link),
        Pairing::Apart
    );
    assert_eq!(
        pairing(|now| now.experiment.quic_in = QuicIn::Guest),
        Pairing::Apart
    );
    // There is but one in the live engine.
    let live = |emulation| {
        let mut live = measured();
        live.environment.engine = EngineName::Live;
        live.experiment.emulation = emulation;
        live
    };
    let since = live(Emulation::Link).since(&live(Emulation::Netem)).since;
    assert_eq!(since.unwrap().pairing, Pairing::ByConnection);
}

#[test]
fn what_else_has_changed_is_told() {
    let told = |change: fn(&mut Measured)| {
        let mut now = measured();
        change(&mut now);
        warnings(&now.since(&measured()))
    };
    let effect = "its effect is in the changes, too";
    assert_eq!(
        told(|now| now.environment.kernel = "Linux 6.12.9".into()),
        [format!(
            "since main, the kernel has changed from Linux 6.12.0 to Linux 6.12.9: {effect}"
        )]
    );
    assert_eq!(
        told(|now| {
            now.environment
                .versions
                .insert("openssl".into(), "3.6.4".into());
            // Of a stack that was not there then, nothing was measured.
            now.environment
                .versions
                .insert("rustls".into(), "0.23".into());
        }),
        [format!(
            "since main, the version of openssl has changed from 3.6.3 to 3.6.4: {effect}"
        )]
    );
    assert_eq!(
        told(|now| now.experiment.seed = Seed(2)),
        [format!(
            "since main, the seed has changed from 1 to 2: {effect}"
        )]
    );
    assert_eq!(
        told(|now| now.environment.engine = EngineName::Live),
        [format!(
            "since main, the engine has changed from virtual to live: {effect}"
        )]
    );
    // In virtual time, the processor does not matter.
    assert_eq!(
        told(|now| now.environment.host.cpu = "Another".into()),
        [""; 0]
    );
    assert_eq!(
        told(|now| for sample in &mut now.samples[2..] {
            sample.chain_digest = "other".into();
        }),
        [CLASSICAL, HYBRID].map(|arm| format!(
            "{arm}: its chain was made anew since main: to compare like with like, keep the folder \
             that LASTBYTE_CACHE names"
        ))
    );
    // Another chain, as of another profile, is no chain that was made anew.
    const LONGER: &str = "/intermediates=2";
    assert_eq!(
        told(|now| {
            now.experiment.arms[1] = Arm {
                name: HYBRID.to_owned(),
                ..format!("{HYBRID}{LONGER}").parse().unwrap()
            };
            now.samples[1].chain_digest = "other".into();
        })
        .last(),
        Some(&format!(
            "since main, the chain of {HYBRID} has changed from {HYBRID} to {HYBRID}{LONGER}: {effect}"
        ))
    );
}

#[test]
fn another_chain_of_ones_own_is_told_as_such() {
    let of_pem = || {
        let mut measured = measured();
        measured.experiment.arms[1] = PEM.parse().unwrap();
        measured
    };
    let mut now = of_pem();
    now.samples[1].chain_digest = "other".into();
    assert_eq!(
        warnings(&now.since(&of_pem())),
        [format!("{PEM}: its certificates are not those of main")]
    );
}

#[test]
fn what_failed_has_no_change() {
    let failing = || {
        let mut failing = measured();
        for row in &mut failing.samples[3].rows[..9] {
            row.outcome = Outcome::TimedOut;
        }
        failing
    };
    let p90 = Percentile::new(90).unwrap();
    let change = |summary: Summary| summary.cells[1].arms[1].metric(Metric::Ttlb).changes[&p90];
    let failures = Err(Absent::Failures {
        failed: 9,
        connections: 60,
    });
    assert_eq!(change(failing().since(&measured())), failures);
    assert_eq!(change(failing().since(&failing())), failures);
    assert_eq!(change(measured().since(&failing())), Err(Absent::NoSaved));
}

/// A longer run is compared by the connections that both have, and by all others.
#[test]
fn the_number_of_connections_may_differ() {
    let mut now = measured();
    now.experiment.connections = Connections::Fixed(90);
    now.samples = samples(&now.experiment);
    let change = median(&now.since(&measured()).cells[1].arms[0], Metric::Ttlb);
    assert!(change.interval.holds_zero(), "{change:?}");
}
