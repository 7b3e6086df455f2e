#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use lastbyte_link::Bytes;
use lastbyte_pki::Store;
use proptest::prelude::*;

use super::*;
use crate::results::Picoseconds;
use crate::study::exchange::records;
use crate::study::{Cell, RecordSize};

fn prepared(arm: &str, cache: &Path) -> PreparedArm {
    PreparedArm::new(arm.parse().unwrap(), &Store::open(cache)).unwrap()
}

#[test]
fn every_step_takes_time() {
    let cache = tempfile::tempdir().unwrap();
    let arm = prepared("x25519/ecdsa-p256", cache.path());
    let calibration = Calibration::measure(&arm, Effort::Handshakes(30)).unwrap();
    assert_eq!(calibration.arm, "x25519/ecdsa-p256");
    assert_eq!(calibration.chain_sha256, arm.digest());
    assert_eq!(calibration.handshakes, 30);
    for spread in [
        calibration.client_setup,
        calibration.server_setup,
        calibration.client_hello,
        calibration.server_flight,
        calibration.client_finish,
        calibration.server_finish,
        calibration.encrypt_request,
        calibration.decrypt_request,
        calibration.encrypt_record,
        calibration.decrypt_record,
    ] {
        assert!(spread.p5_ns > 0, "{calibration:?}");
        assert!(spread.p5_ns <= spread.p50_ns, "{calibration:?}");
        assert!(spread.p50_ns <= spread.p95_ns, "{calibration:?}");
    }
    // The server signs, the client verifies a chain of two: no noise makes Finished dearer.
    assert!(calibration.server_flight.p50_ns > calibration.server_finish.p50_ns);
    assert!(calibration.client_finish.p50_ns > calibration.server_finish.p50_ns);
    assert!(calibration.costs().encrypt.byte > Picoseconds(0));
}

#[test]
fn a_calibration_is_kept_for_its_group_and_chain() {
    let cache = tempfile::tempdir().unwrap();
    let arm = prepared("x25519/ecdsa-p256", cache.path());
    let first = Calibration::load_or_measure(&arm, cache.path()).unwrap();
    assert!(first.handshakes >= 100, "{}", first.handshakes);
    assert_eq!(Calibration::load(&arm, cache.path()), Some(first.clone()));

    // Other records, the same handshake.
    let records = prepared("x25519/ecdsa-p256/record_size=1000", cache.path());
    let kept = Calibration::load(&records, cache.path()).unwrap();
    assert_eq!(kept.arm, "x25519/ecdsa-p256/record_size=1000");
    assert_eq!(kept.client_hello, first.client_hello);

    for other in ["secp256r1/ecdsa-p256", "x25519/ecdsa-p384"] {
        let other = prepared(other, cache.path());
        assert_eq!(Calibration::load(&other, cache.path()), None);
    }
}

#[test]
fn a_calibration_of_another_version_or_a_broken_one_is_as_good_as_none() {
    let cache = tempfile::tempdir().unwrap();
    let arm = prepared("x25519/ecdsa-p256", cache.path());
    let mut calibration = Calibration::measure(&arm, Effort::Handshakes(1)).unwrap();
    let path = calibration.store(cache.path()).unwrap();
    assert_eq!(
        Calibration::load(&arm, cache.path()),
        Some(calibration.clone())
    );
    fs::write(&path, "{\"arm\": ").unwrap();
    assert_eq!(Calibration::load(&arm, cache.path()), None);
    calibration
        .versions
        .insert("openssl".into(), "OpenSSL 1.0.2".into());
    calibration.store(cache.path()).unwrap();
    assert_eq!(Calibration::load(&arm, cache.path()), None);
}

#[test]
fn a_cache_that_can_not_be_written_is_told() {
    let cache = tempfile::tempdir().unwrap();
    let arm = prepared("x25519/ecdsa-p256", cache.path());
    fs::write(cache.path().join("calibration"), "").unwrap();
    let calibration = Calibration::measure(&arm, Effort::Handshakes(1)).unwrap();
    let problem = calibration.store(cache.path()).unwrap_err().to_string();
    assert!(problem.starts_with("can't write \""), "{problem}");
    assert!(problem.ends_with("set LASTBYTE_CACHE to a folder that can be written"));
}

/// Its signature takes a third of a second or so: what needs hundreds of handshakes would take minutes.
#[test]
fn a_handshake_that_takes_long_is_measured_a_few_times() {
    let cache = tempfile::tempdir().unwrap();
    let arm = prepared("x25519/slh-dsa-sha2-128s/intermediates=0", cache.path());
    let calibration = Calibration::measure(&arm, Effort::Enough).unwrap();
    assert!(
        (1..100).contains(&calibration.handshakes),
        "{}",
        calibration.handshakes
    );
    assert!(calibration.server_flight.p50_ns > 100 * calibration.client_finish.p50_ns / 10);
}

#[test]
fn what_is_enough_goes_by_the_median_and_by_time() {
    let alike = vec![Duration::from_micros(100); 100];
    let mut spread: Vec<_> = (0..100).map(Duration::from_micros).collect();
    let soon = Duration::ZERO;
    assert!(Effort::Enough.is_enough(&alike, soon));
    assert!(!Effort::Enough.is_enough(&alike[..99], soon));
    assert!(!Effort::Enough.is_enough(&spread, soon));
    assert!(Effort::Enough.is_enough(&spread[..1], Effort::PATIENCE));
    // Half of a thousand within 4 %: the 469th to the 531st.
    spread = (0..1000)
        .map(|at| Duration::from_micros(1000 + at / 2))
        .collect();
    assert!(Effort::Enough.is_enough(&spread, soon));
    assert!(!Effort::UpTo(2).is_enough(&alike[..1], soon));
    assert!(Effort::UpTo(2).is_enough(&alike[..2], soon));
    assert!(Effort::UpTo(2).is_enough(&alike[..1], Effort::PATIENCE));
    assert!(Effort::Handshakes(0).is_enough(&alike[..1], soon));
    assert!(!Effort::Handshakes(2).is_enough(&alike[..1], soon));
}

#[test]
fn medians_and_spreads_are_ranks() {
    let times: Vec<_> = (0..=100).map(Duration::from_nanos).collect();
    let spread = Spread::of(&times);
    assert_eq!((spread.p5_ns, spread.p50_ns, spread.p95_ns), (5, 50, 95));
    let one = Spread::of(&[Duration::from_nanos(7)]);
    assert_eq!((one.p5_ns, one.p50_ns, one.p95_ns), (7, 7, 7));
}

#[test]
fn flights_are_spread_as_they_were_measured() {
    // From 1 us to 4 us, the median at 2.5 us.
    let times: Vec<_> = (1000..=4000).map(Duration::from_nanos).collect();
    let flights = flights(&times);
    assert_eq!((flights.0[0], flights.0[19]), (430, 1570));
    let costs = CpuCosts {
        server_flight: Duration::from_nanos(2500),
        flights,
        ..CpuCosts::default()
    };
    let order: Vec<_> = (40..60)
        .map(|index| costs.of_connection(index).server_flight)
        .collect();
    let mut times = order.clone();
    times.sort_unstable();
    assert_ne!(order, times);
    let spread = flights
        .0
        .map(|factor| Duration::from_nanos(u64::from(factor) * 5 / 2));
    assert_eq!(times, spread);
    assert_eq!(CpuCosts::default().of_connection(3), CpuCosts::default());
}

#[test]
fn costs_of_records_are_a_line() {
    let nanos = Duration::from_nanos;
    let cost = RecordCost::through((59, nanos(1_000)), (16_384, nanos(5_081)));
    // 4081.25 ns over 16325 bytes.
    assert_eq!(cost.byte, Picoseconds(249));
    assert_eq!(cost.record, nanos(986));
    assert_eq!(cost.of(16_384), nanos(986 + 4_079));
    // Noise must not make a byte gain time.
    let noisy = RecordCost::through((59, nanos(1_000)), (16_384, nanos(900)));
    assert_eq!(noisy.of(16_384), nanos(1_000));
}

#[test]
fn a_response_costs_what_its_records_cost() {
    let record = |record, byte| RecordCost {
        record: Duration::from_nanos(record),
        byte: Picoseconds(byte),
    };
    let costs = CpuCosts {
        client_finish: Duration::from_nanos(10),
        server_finish: Duration::from_nanos(20),
        encrypt: record(1_000, 1_000),
        decrypt: record(0, 2_000),
        ..CpuCosts::default()
    };
    let cell = |data| Cell {
        data: Bytes(data),
        ..Cell::default()
    };
    let cut = |size| records(size, &Cell::default());
    // Records of 1426, 16384 and 2190 bytes.
    let response = costs.response(20_000, cut(RecordSize::FirstSegment));
    assert_eq!(response, Duration::from_nanos(3 * 1_000 + 20_000));
    assert_eq!(
        costs.response(20_000, cut(RecordSize::Fixed(1_000))),
        Duration::from_nanos(20 * 1_000 + 20_000)
    );
    let compute = costs.compute(&cell(20_000), RecordSize::FirstSegment);
    let request = REQUEST.len() as u64;
    assert_eq!(
        compute.client_finish,
        Duration::from_nanos(10 + 1_000 + request)
    );
    assert_eq!(
        compute.response,
        response + Duration::from_nanos(20 + 2 * request)
    );
    let none = costs.compute(&cell(0), RecordSize::FirstSegment);
    assert_eq!(none.client_finish, Duration::from_nanos(10));
    assert_eq!(none.response, Duration::from_nanos(20));
}

#[test]
fn costs_in_a_wrong_form_are_refused() {
    for (text, problem) in [
        ("", r#""" stands where server_setup= should"#),
        (
            "client_hello=1ns",
            r#""client_hello=1ns" stands where server_setup= should"#,
        ),
        ("server_setup=1us", r#""1us" is no number of ns"#),
        ("server_setup=-1ns", r#""-1ns" is no number of ns"#),
    ] {
        let error = text.parse::<CpuCosts>().unwrap_err().to_string();
        assert_eq!(error, format!("CPU costs {text:?}: {problem}"));
    }
    let whole = CpuCosts::default().to_string();
    let error = format!("{whole},x=1ns").parse::<CpuCosts>().unwrap_err();
    assert!(error.to_string().ends_with(r#""x=1ns" is too much"#));
    let (short, _) = whole.split_once(",decrypt").unwrap();
    let error = format!("{short},decrypt=0ns").parse::<CpuCosts>();
    let error = error.unwrap_err().to_string();
    assert!(error.ends_with(r#""0ns" is not of the form 900ns+310ps"#));
    let (short, _) = whole.rsplit_once('/').unwrap();
    let error = short.parse::<CpuCosts>().unwrap_err().to_string();
    assert!(error.ends_with("is not of the form 1000/1000/…, with 20 numbers"));
}

proptest! {
    #[test]
    fn costs_come_back_from_their_text(
        steps in prop::array::uniform7(0..=CpuCosts::MOST),
        bytes in prop::array::uniform2(0..=CpuCosts::MOST),
        flights: [u16; 20],
    ) {
        let nanos = |index: usize| Duration::from_nanos(steps[index]);
        let costs = CpuCosts {
            server_setup: nanos(0),
            client_hello: nanos(1),
            server_flight: nanos(2),
            client_finish: nanos(3),
            server_finish: nanos(4),
            encrypt: RecordCost { record: nanos(5), byte: Picoseconds(bytes[0]) },
            decrypt: RecordCost { record: nanos(6), byte: Picoseconds(bytes[1]) },
            flights: Flights(flights),
        };
        let text = costs.to_string();
        prop_assert!(!text.contains(char::is_whitespace));
        prop_assert_eq!(text.parse::<CpuCosts>().unwrap(), costs);
        let more = format!("server_setup={}ns", CpuCosts::MOST + 1);
        let (_, others) = text.split_once(',').unwrap_or_default();
        let more = [&more, others].join(",");
        prop_assert!(more.parse::<CpuCosts>().is_err());
    }

    #[test]
    fn any_text_is_costs_or_an_error(text in "\\PC*") {
        let _ = text.parse::<CpuCosts>();
    }
}

#[test]
fn arms_whose_handshakes_differ_do_not_share_one() {
    let options = ["", "/resume=ticket", "/key_share=secp256r1", "/tickets=2"].map(|option| {
        let arm: Arm = format!("x25519/ecdsa-p256{option}").parse().unwrap();
        super::options(&arm)
    });
    let different: std::collections::BTreeSet<_> = options.iter().collect();
    assert_eq!(different.len(), options.len(), "{options:?}");
    let same: Arm = "x25519/ecdsa-p256/record_size=1000".parse().unwrap();
    assert_eq!(super::options(&same), options[0]);
}
