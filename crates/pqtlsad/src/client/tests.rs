#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use lastbyte_pki::KeyAlgorithm;

use super::*;
use crate::fixtures::{chain, checked, delivered, spec};

const MS: Duration = Duration::from_millis(1);

fn offer() -> Offer {
    let (chain, root) = chain(&spec(KeyAlgorithm::EcdsaP256));
    checked(delivered(&chain, 2), &root).unwrap()
}

fn fallback(decision: Decision) -> Fallback {
    match decision {
        Decision::Plain(fallback) => fallback,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_record_that_is_there_with_tcp_is_offered() {
    let mut race = Race::new(Duration::ZERO);
    assert!(matches!(race.decide(0 * MS), Decision::Connecting));
    race.looked_up(Ok(offer()));
    assert!(matches!(race.decide(5 * MS), Decision::Connecting));
    race.connected(35 * MS);
    assert!(matches!(race.decide(35 * MS), Decision::Offer(_)));
}

#[test]
fn without_grace_a_late_record_delays_nothing() {
    let mut race = Race::new(Duration::ZERO);
    race.connected(35 * MS);
    let late = fallback(race.decide(35 * MS));
    assert_eq!(late.outcome, Outcome::Late);
    assert_eq!(late.reason, "not there when TCP was established");
}

#[test]
fn grace_waits_for_so_long_and_no_longer() {
    let mut race = Race::new(10 * MS);
    race.connected(35 * MS);
    // The first end of a handshake counts.
    race.connected(90 * MS);
    assert!(matches!(race.decide(35 * MS), Decision::Wait(until) if until == 45 * MS));
    let late = fallback(race.decide(45 * MS));
    assert_eq!(late.reason, "not there 10ms after TCP was established");
    race.looked_up(Ok(offer()));
    assert!(matches!(race.decide(44 * MS), Decision::Offer(_)));
}

#[test]
fn an_answer_without_a_record_ends_the_wait() {
    let none = Fallback::new(Outcome::NoRecord, "NXDOMAIN");
    let mut race = Race::new(10 * MS);
    race.connected(35 * MS);
    race.looked_up(Err(none.clone()));
    race.looked_up(Ok(offer()));
    assert_eq!(fallback(race.decide(36 * MS)), none);
}

#[test]
fn only_the_exact_echo_is_used() {
    let digest = *offer().digest();
    let mut other = *digest.as_bytes();
    other[31] ^= 1;
    let other = Digest::from_bytes(&other).unwrap();
    assert_eq!(Answer::Digest(digest).outcome(&digest), Ok(()));
    let mismatch = Answer::Digest(other).outcome(&digest).unwrap_err();
    assert_eq!(mismatch.outcome, Outcome::Mismatch);
    assert!(mismatch.reason.ends_with(&other.to_string()));
    let refused = Answer::None.outcome(&digest).unwrap_err();
    assert_eq!(refused.outcome, Outcome::RefusedByServer);
}

#[test]
fn a_cache_keeps_each_for_its_ttl() {
    let mut cache = Cache::new(2);
    cache.insert("a", 1, 300 * MS, 0 * MS);
    assert_eq!(cache.get(&"a", 299 * MS), Some(&1));
    assert_eq!(cache.get(&"a", 300 * MS), None);
    cache.insert("b", 2, 0 * MS, 0 * MS);
    assert_eq!(cache.get(&"b", 0 * MS), None);
    // A third goes in the place of what would end first.
    cache.insert("b", 2, 500 * MS, 0 * MS);
    cache.insert("c", 3, 400 * MS, 0 * MS);
    assert_eq!(cache.get(&"a", 1 * MS), None);
    assert_eq!(cache.get(&"b", 1 * MS), Some(&2));
    cache.insert("b", 4, 500 * MS, 1 * MS);
    assert_eq!(cache.get(&"b", 500 * MS), Some(&4));
    assert_eq!(cache.get(&"c", 1 * MS), Some(&3));
}
