#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use lastbyte_link::{Direction, Link, Seed};

use super::fixtures::{CLASSICAL, HYBRID, MIXED, cell, experiment, failed, samples};
use super::*;
use lastbyte_page::Named;
use lastbyte_sizes::Message;
use lastbyte_study::Metric;
use lastbyte_study::{
    Buffers, Cell, Connections, Experiment, Hosts, PageSource, TransportName, Until,
};

fn results(arms: &[&str], cells: Vec<Cell>, connections: u32) -> (Experiment, Vec<Sample>) {
    let experiment = experiment(arms, cells, connections);
    let samples = samples(&experiment);
    (experiment, samples)
}

fn summary((experiment, samples): &(Experiment, Vec<Sample>)) -> Summary {
    Summary::new(experiment, samples, &Percentile::USUAL)
}

fn warnings(results: &(Experiment, Vec<Sample>)) -> Vec<String> {
    summary(results)
        .warnings
        .iter()
        .map(ToString::to_string)
        .collect()
}

/// Of the intervals of a table of 24 numbers, one in twenty misses; a mark is not put by them alone.
#[test]
fn a_table_of_equal_arms_rarely_marks_a_difference() {
    const TABLES: usize = 40;
    let cells = vec![cell("3%", "0B"); 8];
    let (mut marked, mut missed) = (0, 0);
    let mut drawn = (0..).map(|number| {
        let bits = Seed(1).part(&format!("time {number}")).0;
        (bits >> 11) as f64 / (1_u64 << 53) as f64
    });
    for _ in 0..TABLES {
        let (experiment, mut samples) = results(&[CLASSICAL, HYBRID], cells.clone(), 40);
        for row in samples.iter_mut().flat_map(|sample| &mut sample.rows) {
            let even = drawn.next().unwrap();
            row.times.handshake = Some(Duration::from_secs(1).mul_f64(1.0 - (1.0 - even).ln()));
        }
        let summary = summary(&(experiment, samples));
        let of_cells = summary
            .cells
            .iter()
            .map(|cell| cell.arms[1].metric(Metric::Handshake));
        let is_missed = |metric: &MetricSummary| {
            let mut increases = metric.increases.values().flatten();
            increases.any(|increase| !increase.interval.holds_zero())
        };
        let is_marked = |metric: &MetricSummary| {
            let mut percentiles = metric.increases.keys();
            percentiles.any(|percentile| metric.difference(*percentile, summary.critical).is_some())
        };
        missed += usize::from(of_cells.clone().any(is_missed));
        marked += usize::from(of_cells.clone().any(is_marked));
    }
    assert!(missed > TABLES / 5, "{missed} of {TABLES}");
    // Two are expected.
    assert!(marked <= 5, "{marked} of {TABLES}");
}

mod checking {
    use super::*;

    fn check_with(arm: &str, change: fn(&mut Row)) -> Result<(), String> {
        let (experiment, mut samples) = results(&[CLASSICAL, HYBRID], vec![cell("0%", "0B")], 3);
        let arm = match arm {
            "resumed/0rtt" => {
                for row in &mut samples[1].rows {
                    row.exchange.negotiated.resumption = Resumption::Resumed;
                }
                "SecP256r1MLKEM768/ml-dsa-65/resume=0rtt"
            }
            "mutual" => {
                for row in &mut samples[1].rows {
                    row.exchange
                        .handshake
                        .messages
                        .set(Message::ClientCertificate, Some(8000));
                    row.exchange.negotiated.client_signature = Some(0x0904);
                }
                "SecP256r1MLKEM768/ml-dsa-65/mutual=ml-dsa-44"
            }
            arm => arm,
        };
        change(&mut samples[1].rows[2]);
        let arm = arm.parse().unwrap_or_else(|_| experiment.arms[1].clone());
        check(&arm, &Cell::default(), &samples[1].rows).map_err(|unlike| unlike.to_string())
    }

    #[test]
    fn what_the_arm_says_is_negotiated() {
        assert_eq!(check_with(HYBRID, |_| ()), Ok(()));
        // Of a connection that failed, nothing is known.
        let failed = |row: &mut Row| {
            row.outcome = Outcome::TimedOut;
            row.exchange = Exchange::default();
        };
        assert_eq!(check_with(HYBRID, failed), Ok(()));
        assert_eq!(check_with("resumed/0rtt", |_| ()), Ok(()));
        assert_eq!(check_with("mutual", |_| ()), Ok(()));
    }

    /// A sample whose record became this, with what goes over the wire then.
    fn delivered(outcome: DeliveryOutcome, hellos: HelloDigest, sent: u32) -> Result<(), String> {
        let (_, mut samples) = results(&[CLASSICAL, HYBRID], vec![cell("0%", "0B")], 3);
        let arm = "SecP256r1MLKEM768/ml-dsa-65/delivery=pqtls-ad/from=intermediate";
        for row in &mut samples[1].rows {
            let whole = row.exchange.bytes(Message::Certificate);
            let used = outcome == DeliveryOutcome::Used;
            if used {
                row.exchange.negotiated.certificates = Some(1);
            }
            row.exchange
                .handshake
                .messages
                .set(Message::Certificate, Some(sent));
            row.exchange.negotiated.hello_digest = hellos;
            row.dns.outcome = Some(outcome);
            row.dns.certificate_bytes = Some(if used { 5477 } else { whole });
        }
        let checked = check(&arm.parse().unwrap(), &Cell::default(), &samples[1].rows);
        checked.map_err(|unlike| unlike.to_string())
    }

    #[test]
    fn what_dns_delivered_is_left_out_and_nothing_else() {
        use DeliveryOutcome::{Late, Mismatch, RefusedByServer, Used};
        use HelloDigest::{Contradicted, Echoed, None, Offered};
        assert_eq!(delivered(Used, Echoed, 5477), Ok(()));
        assert_eq!(delivered(Late, None, 10_929), Ok(()));
        assert_eq!(delivered(Mismatch, Contradicted, 10_929), Ok(()));
        assert_eq!(delivered(RefusedByServer, Offered, 10_929), Ok(()));
        let bytes = |got, wanted| {
            Err(format!(
                "connection 0 got a Certificate message of {got} bytes, not {wanted}"
            ))
        };
        assert_eq!(delivered(Used, Echoed, 5478), bytes(5478, 5477));
        assert_eq!(delivered(Used, Echoed, 10_929), bytes(10_929, 5477));
        assert_eq!(delivered(Late, None, 5477), bytes(5477, 10_929));
        for (outcome, hellos) in [
            (Used, Offered),
            (Used, None),
            (Late, Echoed),
            (Mismatch, Echoed),
        ] {
            let said = delivered(outcome, hellos, 5477).unwrap_err();
            assert!(said.contains("has hellos whose digests are"), "{said}");
        }
    }

    /// What an arm makes of a handshake whose server compressed its certificates like this.
    fn compressed(arm: &str, compression: Option<Compression>) -> Result<(), String> {
        let (_, mut samples) = results(&[CLASSICAL, HYBRID], vec![cell("0%", "0B")], 3);
        for row in &mut samples[1].rows {
            row.exchange.negotiated.compression = compression;
            if compression.is_some() {
                row.exchange
                    .handshake
                    .messages
                    .set(Message::Certificate, Some(7000));
            }
        }
        let checked = check(&arm.parse().unwrap(), &Cell::default(), &samples[1].rows);
        checked.map_err(|unlike| unlike.what.to_string())
    }

    #[test]
    fn a_compressed_certificate_is_the_chain_that_it_was() {
        const ARM: &str = "SecP256r1MLKEM768/ml-dsa-65:12000B/stack=rustls";
        let arm = |keys: &str| format!("{ARM}/delivery=compressed{keys}");
        let compression = |algorithm, uncompressed_bytes| {
            Some(Compression {
                algorithm,
                uncompressed_bytes,
            })
        };
        assert_eq!(compressed(&arm(""), compression(2, 12_000)), Ok(()));
        let both = "/compression=zlib+zstd/client_compression=brotli+zstd";
        assert_eq!(compressed(&arm(both), compression(3, 12_000)), Ok(()));
        for (keys, compression, expected) in [
            ("", None, "got its certificates uncompressed"),
            (
                "",
                compression(2, 11_999),
                "got a Certificate message of 11999 bytes, not 12000",
            ),
            (
                "",
                compression(1, 12_000),
                "got its certificates compressed with zlib, which the arm does not ask for",
            ),
            (
                both,
                compression(2, 12_000),
                "got its certificates compressed with brotli, which the arm does not ask for",
            ),
            (
                "",
                compression(4, 12_000),
                "got its certificates compressed with 4, which the arm does not ask for",
            ),
        ] {
            assert_eq!(
                compressed(&arm(keys), compression),
                Err(expected.to_owned())
            );
        }
        let unasked = "got certificates compressed, which the arm does not ask for";
        assert_eq!(
            compressed(ARM, compression(2, 12_000)),
            Err(unasked.to_owned())
        );
    }

    #[test]
    fn every_mismatch_is_told() {
        type Change = fn(&mut Row);
        let cases: [(&str, Change, &str); 20] = [
            (
                HYBRID,
                |row| row.exchange.negotiated.hello_digest = HelloDigest::Echoed,
                "connection 2 said in its hellos what DNS delivered, which the arm does not ask for",
            ),
            (
                HYBRID,
                |row| row.dns.outcome = Some(DeliveryOutcome::Used),
                "connection 2 asked DNS, which the arm does not ask for",
            ),
            (
                "SecP256r1MLKEM768/ml-dsa-65/delivery=pqtls-ad",
                |_| (),
                "connection 0 does not say what became of its DNS record",
            ),
            (
                HYBRID,
                |row| row.exchange.negotiated.group = Some(0x001d),
                "connection 2 negotiated x25519, not SecP256r1MLKEM768",
            ),
            (
                HYBRID,
                |row| row.exchange.negotiated.group = Some(0x1234),
                "connection 2 negotiated 0x1234, not SecP256r1MLKEM768",
            ),
            (
                HYBRID,
                |row| row.exchange.negotiated.group = None,
                "connection 2 negotiated no group, not SecP256r1MLKEM768",
            ),
            (
                HYBRID,
                |row| row.exchange.negotiated.signature = Some(0x0904),
                "connection 2 was signed with mldsa44, which is not of a key ml-dsa-65",
            ),
            (
                HYBRID,
                |row| row.exchange.negotiated.certificates = Some(1),
                "connection 2 got 1 certificates, not 2",
            ),
            (
                HYBRID,
                |row| row.exchange.negotiated.resumption = Resumption::Resumed,
                "connection 2 resumed an earlier session, which the arm does not ask for",
            ),
            (
                "SecP256r1MLKEM768/ml-dsa-65/intermediates=2/root=sent",
                |_| (),
                "connection 0 got 2 certificates, not 4",
            ),
            (
                "SecP256r1MLKEM768/ml-dsa-65:16000B",
                |_| (),
                "connection 0 got a Certificate message of 10929 bytes, not 16000",
            ),
            (
                HYBRID,
                |row| {
                    row.exchange
                        .handshake
                        .messages
                        .set(Message::HelloRetryRequest, Some(88))
                },
                "connection 2 needed a HelloRetryRequest, which the arm does not ask for",
            ),
            (
                "SecP256r1MLKEM768/ml-dsa-65/key_share=x25519",
                |_| (),
                "connection 0 needed no HelloRetryRequest: its client sent a key share for \
                 SecP256r1MLKEM768 after all",
            ),
            (
                HYBRID,
                |row| {
                    row.exchange
                        .handshake
                        .messages
                        .set(Message::ClientCertificate, Some(700))
                },
                "connection 2 sent a client's chain, which the arm does not ask for",
            ),
            (
                "SecP256r1MLKEM768/ml-dsa-65/mutual=rsa-2048",
                |_| (),
                "connection 0 sent no client's chain",
            ),
            (
                "SecP256r1MLKEM768/ml-dsa-65/resume=ticket",
                |_| (),
                "connection 0 did not resume its session: the server did not accept its ticket",
            ),
            (
                "resumed/0rtt",
                |row| {
                    row.exchange.negotiated.resumption = Resumption::Resumed;
                    row.exchange.negotiated.early_data = EarlyData::Refused;
                },
                "connection 2 sent early data that the server refused",
            ),
            (
                "resumed/0rtt",
                |row| {
                    row.exchange.negotiated.resumption = Resumption::Resumed;
                    row.times.ttlb = row.times.ttlb.map(|time| time * 2);
                },
                "connection 2 sent no early data: its session did not allow it",
            ),
            (
                "mutual",
                |row| row.exchange.negotiated.client_signature = Some(0x0403),
                "connection 2 was signed with ecdsa_secp256r1_sha256, which is not of a key ml-dsa-44, of the client",
            ),
            (
                "mutual",
                |row| row.exchange.negotiated.client_signature = None,
                "connection 2 was signed with nothing, which is not of a key ml-dsa-44, of the client",
            ),
        ];
        for (arm, change, expected) in cases {
            assert_eq!(check_with(arm, change), Err(expected.into()));
        }
    }

    #[test]
    fn of_a_users_own_chain_only_the_group_is_known() {
        let wild = |row: &mut Row| {
            row.exchange.negotiated.signature = None;
            row.exchange.negotiated.certificates = Some(5);
        };
        assert_eq!(check_with("SecP256r1MLKEM768/chain.pem", wild), Ok(()));
        assert!(check_with("x25519/chain.pem", wild).is_err());
    }

    #[test]
    fn a_sample_is_invalid_for_either_reason_or_both() {
        let (experiment, mut samples) = results(&[CLASSICAL], vec![cell("0%", "0B")], 3);
        let [sample] = &mut *samples else { panic!() };
        let validity = |sample: &Sample| sample.validity(&experiment);
        assert_eq!(validity(sample), Validity::Valid);
        sample.engine.validity = Validity::Invalid("too busy".into());
        assert_eq!(validity(sample), Validity::Invalid("too busy".into()));
        sample.rows[1].exchange.negotiated.certificates = Some(1);
        let both = "connection 1 got 1 certificates, not 2; too busy";
        assert_eq!(validity(sample), Validity::Invalid(both.into()));
        sample.engine.validity = Validity::Valid;
        let check = "connection 1 got 1 certificates, not 2";
        assert_eq!(validity(sample), Validity::Invalid(check.into()));
    }
}

mod summarising {
    use super::*;

    #[test]
    fn failures_are_counted_by_cause() {
        let mut results = results(&[CLASSICAL, MIXED], vec![cell("0%", "200KiB")], 10);
        let closed = |cause, missing: u32| Outcome::Failed {
            cause,
            reason: format!("the peer closed the connection {missing} bytes before the end"),
        };
        let cause = Cause::Client(FailureKind::ClosedInResponse);
        for (row, missing) in [(1, 20_000), (2, 300), (3, 300)] {
            results.1[1].rows[row].outcome = closed(cause, missing);
        }
        // Of an earlier version, reasons are all that is known.
        for (row, missing) in [(5, 100), (6, 20), (7, 20)] {
            results.1[1].rows[row].outcome = closed(Cause::Unknown, missing);
        }
        let summary = summary(&results);
        let counted: Vec<(String, u32)> = (summary.cells[0].arms[1].failures.iter())
            .map(|failures| (failures.to_string(), failures.connections))
            .collect();
        let closed = |missing: u32, or: &str| {
            format!("the peer closed the connection {missing} bytes before the end{or}")
        };
        assert_eq!(
            counted,
            [
                (closed(20_000, ", or the like"), 3),
                (closed(20, ""), 2),
                (closed(100, ""), 1),
            ]
        );
    }

    #[test]
    fn a_sample_in_numbers() {
        let mut results = results(&[CLASSICAL, MIXED], vec![cell("0%", "200KiB")], 10);
        results.1[1].rows[3].outcome = Outcome::TimedOut;
        results.1[1].rows[4].outcome = failed("reset");
        results.1[1].rows[5].outcome = Outcome::TimedOut;
        let summary = summary(&results);
        let [baseline, arm] = &*summary.cells[0].arms else {
            panic!()
        };

        assert_eq!((baseline.role, arm.role), (Role::Baseline, Role::Compared));
        assert!(baseline.metric(Metric::Ttlb).increases.is_empty());
        assert_eq!((arm.connections, arm.failed()), (10, 3));
        let failures: Vec<(String, u32)> = (arm.failures.iter())
            .map(|failures| (failures.to_string(), failures.connections))
            .collect();
        assert_eq!(failures, [("timed out".into(), 2), ("reset".into(), 1)]);
        let p90 = arm.metric(Metric::Ttlb).percentiles[&Percentile::USUAL[2]];
        assert_eq!(
            p90,
            Err(Absent::Failures {
                failed: 3,
                connections: 10
            })
        );
        assert!(arm.metric(Metric::Ttlb).increases[&Percentile::MEDIAN].is_ok());

        let wire = arm.wire.as_ref().unwrap();
        assert_eq!(
            wire.bytes(Message::CertificateVerify),
            Typical {
                median: 79,
                least: 78,
                most: 80
            }
        );
        assert_eq!(wire.bytes(Message::Certificate).to_string(), "677");
        assert_eq!(
            wire.server_flights,
            Some(ServerFlights {
                segments: 2,
                flights: 1,
                held: None,
                transport: TransportName::Tcp,
            })
        );
        assert_eq!(
            (wire.negotiated.group, wire.negotiated.signature),
            (Some(0x11ec), Some(0x0403))
        );
    }

    /// It has the credit that RFC 9000 gives.
    #[test]
    fn of_another_credit_arithmetic_has_no_flights() {
        const QUICHE: &str = "x25519/ecdsa-p256/transport=quic/server=quiche";
        let arms = [QUICHE, &format!("{QUICHE}/amplification=5")];
        let (experiment, mut samples) = results(&arms, vec![cell("0%", "0B")], 5);
        for row in samples.iter_mut().flat_map(|sample| &mut sample.rows) {
            row.exchange.transport = lastbyte_exchange::Transport::Quic(Default::default());
        }
        let summary = summary(&(experiment, samples));
        let has_flights = summary.cells[0].arms.iter().map(|arm| {
            let wire = arm.wire.as_ref().unwrap();
            wire.server_flights.is_some()
        });
        assert_eq!(has_flights.collect::<Vec<_>>(), [true, false]);
    }

    #[test]
    fn without_data_there_is_no_first_byte() {
        let summary = summary(&results(&[CLASSICAL], vec![cell("0%", "0B")], 5));
        let ttfb = summary.cells[0].arms[0].metric(Metric::Ttfb);
        assert!(
            ttfb.percentiles
                .values()
                .all(|time| *time == Err(Absent::NoData))
        );
    }

    #[test]
    fn what_was_not_measured_is_left_out() {
        let (experiment, mut samples) = results(
            &[CLASSICAL, HYBRID],
            vec![cell("0%", "0B"), cell("0%", "1KiB")],
            5,
        );
        samples.remove(0);
        samples.truncate(2);
        samples.reverse();
        let summary = Summary::new(
            &experiment,
            &samples,
            &[Percentile::MEDIAN, Percentile::MEDIAN],
        );
        assert_eq!(summary.percentiles, [Percentile::MEDIAN]);
        let [first, second] = &*summary.cells else {
            panic!()
        };
        assert_eq!(first.arms[0].label, HYBRID);
        assert_eq!(
            first.arms[0].metric(Metric::Ttlb).increases[&Percentile::MEDIAN],
            Err(Absent::NoBaseline)
        );
        assert!(first.baseline().is_none());
        assert_eq!(second.baseline().unwrap().label, CLASSICAL);
        assert_eq!(second.arms.len(), 1);
    }
}

mod warning {
    use super::*;

    #[test]
    fn nothing_to_mind() {
        assert_eq!(
            warnings(&results(&[CLASSICAL, HYBRID], vec![cell("1%", "0B")], 100)),
            [""; 0]
        );
    }

    #[test]
    fn too_few_connections() {
        let few =
            |connections| warnings(&results(&[CLASSICAL], vec![cell("0%", "0B")], connections));
        assert_eq!(few(100), [""; 0]);
        assert_eq!(
            few(99),
            ["fewer than 10 of 99 connections lie beyond p90: measure 100 or more"]
        );
        assert_eq!(
            few(39),
            ["fewer than 10 of 39 connections lie beyond p75 and p90: measure 100 or more"]
        );
    }

    #[test]
    fn too_few_for_several_percentiles() {
        assert_eq!(
            warnings(&results(&[CLASSICAL], vec![cell("0%", "0B")], 1)),
            ["fewer than 10 of 1 connections lie beyond p50, p75 and p90: measure 100 or more"]
        );
    }

    /// Without loss, jitter and computing, virtual time gives each connection the same: one says all.
    #[test]
    fn nothing_is_too_few_where_nothing_is_by_chance() {
        let told = |loss, spread| {
            let mut results = results(&[CLASSICAL, HYBRID], vec![cell(loss, "0B")], 3);
            for sample in &mut results.1 {
                sample.engine.emulator_cpu = Duration::ZERO;
                sample.engine.endpoint_cpu = Duration::ZERO;
                for row in &mut sample.rows {
                    let time = Duration::from_millis(70 + 35 * sample.arm as u64);
                    row.times.connect = Some(Duration::from_millis(35));
                    row.times.handshake = Some(time + spread * row.index);
                }
            }
            let summary = summary(&results);
            let arm = summary.cells[0].arms[1].metric(Metric::Handshake);
            let increase = arm.increases[&Percentile::new(90).unwrap()].unwrap();
            let is_shown = arm
                .difference(Percentile::new(90).unwrap(), summary.critical)
                .is_some();
            (
                warnings(&results)
                    .iter()
                    .any(|one| one.starts_with("fewer than")),
                increase.interval.is_unknown(),
                is_shown,
            )
        };
        assert_eq!(told("0%", Duration::ZERO), (false, false, true));
        let chance = (true, true, false);
        assert_eq!(told("0%", Duration::from_millis(1)), chance);
        assert_eq!(told("1%", Duration::ZERO), chance);
    }

    /// Of samples that were to be known to `precision`, after `connections` of at most 1000.
    fn imprecise(precision: &str, connections: usize, change: fn(&mut Row)) -> Vec<String> {
        let until = Until {
            most: 1000,
            ..Until::new(precision.parse().unwrap())
        };
        let cells = vec![cell("0%", "50KiB")];
        let experiment = experiment(&[CLASSICAL, HYBRID], cells, Connections::Until(until));
        let mut samples = samples(&experiment);
        for sample in &mut samples {
            sample.rows.truncate(connections);
        }
        samples[1].rows.iter_mut().for_each(change);
        warnings(&(experiment, samples))
    }

    #[test]
    fn what_ends_without_being_precise_enough() {
        let whole = |precision| imprecise(precision, 1000, |_| ());
        assert_eq!(whole("1%"), [""; 0]);
        let [line] = &*whole("0.01%") else { panic!() };
        let told = "SecP256r1MLKEM768/ml-dsa-65: after 1000 connections, p50 of TTLB is known to ±0.03 %, not \
                    to ±0.01 %: about 7000 would do: set `most` in a study, or ask for less precision";
        assert_eq!(line, told);
        let [line] = &*whole("0.001%") else { panic!() };
        assert_eq!(
            line.split_once("±0.001 %: ").unwrap().1,
            "about 700000 would do: set `most` in a study, or ask for less precision"
        );
        assert_eq!(
            imprecise("1%", 99, |_| ()),
            [
                "secp256r1/rsa-2048: after 99 connections, fewer than 10 lie beyond p90 of the handshake time: \
              about 100 would do: set `most` in a study, or ask for less precision"
            ]
        );
        let failing = imprecise("1%", 1000, |row| {
            if row.index % 10 == 0 {
                row.outcome = Outcome::TimedOut;
            }
        });
        assert_eq!(
            failing[1],
            "SecP256r1MLKEM768/ml-dsa-65: after 1000 connections, p90 of the handshake time is not known to \
             ±1 %, since it leans on connections that failed: mend what fails, or tell other percentiles"
        );
        let luckless = imprecise("0.4%", 1000, |row| {
            let late = Duration::from_micros(u64::from(row.index * 7919 % 1000) * 20);
            row.times.handshake = row.times.handshake.map(|time| time + late);
        });
        let told = "SecP256r1MLKEM768/ml-dsa-65: after 1000 connections, the increase of p50 of the handshake \
                    time is known to ±";
        assert!(luckless[0].starts_with(told), "{luckless:?}");
    }

    #[test]
    fn a_cliff_where_as_many_syns_are_lost_as_lie_beyond_a_percentile() {
        let cliffs_of = |cell, connections| -> Vec<(u16, f64)> {
            let warnings = summary(&results(&[CLASSICAL], vec![cell], connections)).warnings;
            let cliff = |warning: &Warning| match warning.problem {
                Problem::Cliff { percentile, share } => Some((percentile.per_mille(), share)),
                _ => None,
            };
            warnings.iter().filter_map(cliff).collect()
        };
        let cliffs = |loss, connections| cliffs_of(cell(loss, "0B"), connections);
        assert_eq!(cliffs("0%", 1000), []);
        assert_eq!(cliffs("1%", 1000), []);
        // 1 - 0.95^2
        let [(900, share)] = *cliffs("5%", 5000) else {
            panic!()
        };
        assert!((share - 0.0975).abs() < 1e-12);
        // A browser makes another connection before that.
        let mut page = cell("5%", "0B");
        page.page = Some(PageSource::Model(Named::Median2024));
        assert_eq!(cliffs_of(page, 5000), []);
        // 1 - 0.97^2 is 5.9 %: 200 connections can't tell it from 10 %, 5000 can.
        assert_eq!(cliffs("3%", 200).len(), 1);
        assert_eq!(cliffs("3%", 5000).len(), 0);
        // 1 - 0.86^2 is 26 %.
        assert!(matches!(*cliffs("14%", 1000), [(750, _)]));
        assert_eq!(cliffs("100%", 1000), []);
    }

    #[test]
    fn buffers_that_would_bind() {
        // Made-up results are of the live engine.
        let told = |initcwnd, buffers| {
            let cell = Cell {
                link: Link::symmetric(Duration::from_millis(35), Direction::default()),
                initcwnd,
                hosts: Hosts {
                    buffers,
                    ..Hosts::default()
                },
                ..cell("0%", "200KiB")
            };
            let warnings = summary(&results(&[CLASSICAL], vec![cell], 100)).warnings;
            warnings
                .iter()
                .any(|warning| warning.problem == Problem::Buffers)
        };
        assert!(!told(10, Buffers::Large));
        assert!(told(48, Buffers::Large));
        assert!(!told(48, Buffers::Linux));
        assert!(!told(10, Buffers::Auto));
        assert!(told(48, Buffers::Auto));
    }

    #[test]
    fn a_gap_at_a_percentile() {
        let mut results = results(&[CLASSICAL, HYBRID], vec![cell("0%", "200KiB")], 200);
        // p75 of 200 connections lies between the 150th and the 151st.
        for row in &mut results.1[1].rows {
            let late = if row.index < 150 {
                Duration::ZERO
            } else {
                Duration::from_millis(950)
            };
            row.times.ttlb = Some(Duration::from_millis(100) + late);
        }
        assert_eq!(
            warnings(&results),
            [
                "SecP256r1MLKEM768/ml-dsa-65: p75 of TTLB lies in a gap between 100.0 ms and 1050.0 ms: a few \
              connections decide where: compare other percentiles, or measure more connections"
            ]
        );
    }

    #[test]
    fn one_warning_for_all_cells_that_have_it() {
        let cells = ["0B", "1KiB", "2KiB"].map(|data| cell("0%", data)).into();
        let mut results = results(&[CLASSICAL, HYBRID], cells, 100);
        for sample in [1, 5] {
            results.1[sample].engine.validity = Validity::Invalid("too busy".into());
        }
        assert_eq!(
            warnings(&results),
            ["in 2 cells (0B; 2KiB): SecP256r1MLKEM768/ml-dsa-65: not to be trusted: too busy"]
        );
        results.1[3].engine.validity = Validity::Invalid("too busy".into());
        assert_eq!(
            warnings(&results),
            ["SecP256r1MLKEM768/ml-dsa-65: not to be trusted: too busy"]
        );
    }
}

mod numbers {
    use super::number::{milliseconds, percent, percent_digits};
    use super::*;

    #[test]
    fn milliseconds_have_as_many_digits_as_are_of_use() {
        for (nanos, expected) in [
            (0, "0.000 ms"),
            (1499, "0.001 ms"),
            (412_345, "0.412 ms"),
            (7_041_000, "7.04 ms"),
            (70_449_000, "70.4 ms"),
            (2_208_257_000, "2208.3 ms"),
        ] {
            assert_eq!(milliseconds(Duration::from_nanos(nanos)), expected);
        }
    }

    #[test]
    fn percents_have_as_many_digits_as_are_of_use() {
        for (value, expected, in_a_column) in [
            (0.0, "0.00 %", "0.0"),
            (-0.001, "0.00 %", "0.00"),
            (0.04, "0.04 %", "0.04"),
            (-1.94, "-1.9 %", "-1.9"),
            (14.26, "14 %", "14.3"),
            (-128.4, "-128 %", "-128"),
        ] {
            assert_eq!(percent(Percent(value)), expected);
            assert_eq!(percent_digits(Percent(value)), in_a_column);
        }
    }
}

mod cuts {
    use super::*;
    use crate::{Cut, Sent};

    const WHOLE: Sent = Sent {
        certificate_bytes: 8562,
        server_wire_bytes: 12_357,
    };

    fn cut(server_wire_bytes: u32, initcwnd: u32) -> Cut {
        let cell = Cell {
            initcwnd,
            ..cell("0%", "0KiB")
        };
        let sent = Sent {
            certificate_bytes: 0,
            server_wire_bytes,
        };
        Cut::new(&cell, sent, WHOLE)
    }

    /// A Certificate message of 8562 bytes has 8584 in one record, so 3773 are others' of 12 357.
    #[test]
    fn a_chain_may_grow_as_what_is_sent_of_it_shrinks() {
        let landmark = cut(6087, 10);
        let multiple = landmark.multiple().unwrap();
        assert!((multiple - 8584.0 / 2314.0).abs() < 1e-12, "{multiple}");
        // 10 segments of 1448 bytes, less 3773, 3.7 times: 39 718 bytes in three records of 22 bytes more.
        assert_eq!(landmark.supportable(), Some(39_718 - 3 * 22));
    }

    #[test]
    fn a_whole_chain_fits_up_to_the_byte() {
        let whole = cut(12_357, 10);
        assert_eq!(whole.multiple(), Some(1.0));
        assert_eq!(whole.supportable(), Some(14_480 - 3773 - 22));
    }

    #[test]
    fn without_room_or_without_anything_sent_there_is_no_multiple() {
        assert_eq!(cut(12_357, 2).multiple(), None);
        assert_eq!(cut(12_357, 2).supportable(), None);
        assert_eq!(cut(3773, 10).multiple(), None);
        assert!(cut(3774, 10).multiple().is_some());
    }
}
