#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use lastbyte_pki::Store;

use super::*;

fn prepared(arm: &str, store: &Store) -> PreparedArm {
    PreparedArm::new(arm.parse().unwrap(), store).unwrap()
}

fn core() -> NonZero<u32> {
    NonZero::new(1).unwrap()
}

/// Of all kinds: with one visit more for a HelloRetryRequest, and with a client's certificate.
#[test]
fn every_handshake_is_served_once() {
    if available_cpus().len() < 2 {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path());
    let arms = [
        "x25519/ecdsa-p256",
        "x25519/ecdsa-p256/key_share=secp256r1",
        "x25519/ecdsa-p256/resume=ticket",
        "x25519/ecdsa-p256/mutual=ecdsa-p256",
    ];
    let arms = arms.map(|arm| prepared(arm, &store));
    let schedule = arms.iter().cycle().take(40).enumerate();
    let schedule: Vec<_> = schedule
        .map(|(index, arm)| (Duration::from_micros(100 * index as u64), arm))
        .collect();
    let live = serve(&schedule, core(), &AtomicBool::new(false));
    let live = live.unwrap().unwrap();
    assert_eq!(live.served.len(), schedule.len());
    for ((served, computing), (arrives, _)) in live.served.iter().zip(&live.cpu).zip(&schedule) {
        assert!(computing.answer > Duration::ZERO && computing.finish > Duration::ZERO);
        assert!(computing.client > Duration::ZERO);
        // Nothing is done before it came, and no part of its time is longer than all of it.
        assert!(served.done >= *arrives + served.at_server(), "{served:?}");
    }
    assert!((0.0..1.0).contains(&live.taken()), "{}", live.taken());
}

/// Each is alone, and none takes longer than the clock says.
#[test]
fn some_are_measured_alone() {
    if available_cpus().len() < 2 {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let arm = prepared("x25519/ecdsa-p256", &Store::open(folder.path()));
    let measure = |most, within| {
        let live = alone(&arm, most, within, &AtomicBool::new(false));
        live.unwrap().unwrap()
    };
    let live = measure(30, Duration::from_secs(60));
    assert_eq!(live.served.len(), 30);
    for (cpu, clock) in live.cpu.iter().zip(&live.clock) {
        assert!(cpu.answer > Duration::ZERO && cpu.finish > Duration::ZERO);
        assert!(cpu.server() <= clock.server() && cpu.client == clock.client);
    }
    assert!(
        live.served
            .iter()
            .any(|served| served.waiting <= live.wakes())
    );
    // By the clock, each is its CPU time and the same for all; and one that took a second is nobody's.
    let [cpu, clock] = live.own();
    let more = |at: usize| clock[at].answer - cpu[at].answer;
    assert!(!cpu.is_empty() && (1..cpu.len()).all(|at| more(at) == more(0)));
    let mut disturbed = live.clone();
    let shortest = cpu.iter().map(Computing::server).min().unwrap();
    let place = live.cpu.iter().position(|one| one.server() == shortest);
    disturbed.cpu[place.unwrap()].answer += Duration::from_secs(1);
    assert_eq!(disturbed.own()[0].len(), cpu.len() - 1);
    // However little time there is, one is.
    assert_eq!(measure(30, Duration::ZERO).served.len(), 1);
}

#[test]
fn what_can_not_be_served() {
    let folder = tempfile::tempdir().unwrap();
    let arm = prepared("x25519/ecdsa-p256", &Store::open(folder.path()));
    let schedule = [(Duration::ZERO, &arm)];
    let there = available_cpus().len() as u32;
    let all = NonZero::new(there).unwrap();
    let error = serve(&schedule, all, &AtomicBool::new(false)).unwrap_err();
    let said = error.to_string();
    assert!(said.contains("--cores") && !said.contains('\n'), "{said}");
    if there > 1 {
        let interrupted = serve(&schedule, core(), &AtomicBool::new(true)).unwrap();
        assert!(interrupted.is_none());
        // Nothing is asked, nothing is served.
        let nothing = serve(&[], core(), &AtomicBool::new(false)).unwrap();
        assert!(nothing.unwrap().served.is_empty());
    }
}
