#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use super::*;
use crate::id::LogNumber;

const NOW: UnixTime = UnixTime(1_800_000_000);
const WEEK: Duration = Duration::from_secs(7 * 86_400);

fn log() -> LogId {
    LogId::new("32473.1".parse().unwrap(), LogNumber::FIRST).unwrap()
}

/// The figures of section 6.5 of the draft, from 4.4 million entries an hour.
#[test]
fn a_sample_is_as_large_as_in_a_real_log() {
    let key = made_up_key(1, 1);
    let request = Request {
        names: &["example.com"],
        key: &key,
        validity: Validity::of(NOW, WEEK),
    };
    let hour = 4_400_000;
    let mut longest = 0;
    for place in [0, 1, 2_000_000, hour - 1] {
        let index = 10 * hour + place;
        let mut sample = Sample::new(log(), &request, index, 20 * hour, 7).unwrap();
        for number in 1..=20 {
            sample
                .make_landmark(number * hour, NOW.after(WEEK))
                .unwrap();
        }
        let certificate = sample.landmark_relative().unwrap();
        let read = Certificate::parse(&certificate).unwrap();
        longest = longest.max(read.proof.path.len());
        assert_eq!(read.index, index);
        assert!(read.proof.cosignatures.is_empty());
        let (landmark, subtree) = sample.landmark().unwrap();
        assert_eq!(landmark.number, 11);
        let hash = subtree
            .evaluate(index, read.leaf(), &read.proof.path)
            .unwrap();
        let held = sample.landmark_subtrees(11).unwrap();
        assert!(held.contains(&(subtree, hash)));
    }
    assert!((21..=23).contains(&longest), "{longest} hashes");
}

#[test]
fn a_log_in_memory_issues_what_it_has() {
    let validity = Validity::of(NOW, WEEK);
    let mut log = MemoryLog::filled(log(), 100, 3, validity).unwrap();
    let key = made_up_key(3, 42);
    log.landmark_relative(42, &key).unwrap_err();
    log.make_landmark(NOW.after(WEEK)).unwrap();
    let certificate = log.landmark_relative(42, &key).unwrap();
    let certificate = Certificate::parse(&certificate).unwrap();
    assert_eq!(
        certificate.hosts(),
        ["host-3-2a.example", "www.host-3-2a.example"]
    );
    assert_eq!(certificate.key(), key);
    assert_eq!(certificate.leaf(), entry::leaf(log.entry(42).unwrap()));
    let error = log.landmark_relative(43, &key).unwrap_err();
    assert_eq!(error.to_string(), "entry 43 is of another public key");
    log.landmark_relative(100, &key).unwrap_err();
}
