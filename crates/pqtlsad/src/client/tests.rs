#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use lastbyte_pki::KeyAlgorithm;

use super::*;
use crate::fixtures::{chain, checked, delivered, spec};

const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

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
    assert!(matches!(race.decide(ms(0)), Decision::Connecting));
    race.looked_up(Ok(offer()));
    assert!(matches!(race.decide(ms(5)), Decision::Connecting));
    race.connected(ms(35));
    assert!(matches!(race.decide(ms(35)), Decision::Offer(_)));
}

#[test]
fn without_grace_a_late_record_delays_nothing() {
    let mut race = Race::new(Duration::ZERO);
    race.connected(ms(35));
    let late = fallback(race.decide(ms(35)));
    assert_eq!(late.outcome, Outcome::Late);
    assert_eq!(late.reason, "not there when TCP was established");
}

#[test]
fn grace_waits_for_so_long_and_no_longer() {
    let mut race = Race::new(ms(10));
    race.connected(ms(35));
    // The first end of a handshake counts.
    race.connected(ms(90));
    assert!(matches!(race.decide(ms(35)), Decision::Wait(until) if until == ms(45)));
    let late = fallback(race.decide(ms(45)));
    assert_eq!(late.reason, "not there 10ms after TCP was established");
    race.looked_up(Ok(offer()));
    assert!(matches!(race.decide(ms(44)), Decision::Offer(_)));
}

#[test]
fn an_answer_without_a_record_ends_the_wait() {
    let none = Fallback::new(Outcome::NoRecord, "NXDOMAIN");
    let mut race = Race::new(ms(10));
    race.connected(ms(35));
    race.looked_up(Err(none.clone()));
    race.looked_up(Ok(offer()));
    assert_eq!(fallback(race.decide(ms(36))), none);
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
    cache.insert("a", 1, ms(300), ms(0));
    assert_eq!(cache.get(&"a", ms(299)), Some(&1));
    assert_eq!(cache.get(&"a", ms(300)), None);
    cache.insert("b", 2, ms(0), ms(0));
    assert_eq!(cache.get(&"b", ms(0)), None);
    // A third goes in the place of what would end first.
    cache.insert("b", 2, ms(500), ms(0));
    cache.insert("c", 3, ms(400), ms(0));
    assert_eq!(cache.get(&"a", ms(1)), None);
    assert_eq!(cache.get(&"b", ms(1)), Some(&2));
    cache.insert("b", 4, ms(500), ms(1));
    assert_eq!(cache.get(&"b", ms(500)), Some(&4));
    assert_eq!(cache.get(&"c", ms(1)), Some(&3));
}

#[test]
fn an_offer_is_kept_for_its_ttl_a_day_and_its_validity_at_most() {
    let offer = offer();
    let end = offer.valid_until();
    let seconds = Duration::from_secs;
    let before = |left| end - left;
    let month = seconds(30 * 86_400);
    for (ttl, now, expected) in [
        (seconds(300), before(month), seconds(300)),
        (seconds((1 << 31) - 1), before(month), LONGEST),
        (seconds(300), before(seconds(20)), seconds(20)),
        (seconds(300), end, Duration::ZERO),
        (seconds(300), end + month, Duration::ZERO),
    ] {
        assert_eq!(cacheable_for(&offer, ttl, now), expected, "{ttl:?}");
    }
}

#[test]
fn what_is_forgotten_is_asked_for_again() {
    let mut cache = Cache::new(2);
    cache.insert("a", 1, ms(300), ms(0));
    cache.remove(&"a");
    assert_eq!(cache.get(&"a", ms(1)), None);
}
