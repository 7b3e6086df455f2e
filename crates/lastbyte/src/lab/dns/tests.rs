#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use pqtlsad::record::split;
use pqtlsad::{CertificateList, Part};
use proptest::prelude::*;

use super::resolver::{Question, in_dns, query};
use super::zone::zone;
use super::*;
use lastbyte_ad::dns::take_message;

/// Certificates of so many bytes each, in DNS.
fn published(lengths: &[usize], cache: DnsCache) -> Published {
    let certificates = lengths.iter().map(|length| vec![7; *length]).collect();
    let list = CertificateList::new(certificates).unwrap();
    Published {
        name: "server.example".to_owned(),
        fragments: split(Part::Root, &list).unwrap(),
        cache,
        resolver_rtt: Duration::ZERO,
    }
}

fn owners(zone: &str, kind: &str) -> Vec<String> {
    let lines = zone.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let of_kind = lines.filter(|words| words.get(1) == Some(&kind));
    of_kind.map(|words| words[0].to_owned()).collect()
}

#[test]
fn a_zone_has_an_address_and_each_fragment() {
    let whole = zone(&published(&[5000], DnsCache::Cached));
    assert_eq!(
        owners(&whole, "A"),
        ["ns.server.example.", "server.example."]
    );
    assert_eq!(owners(&whole, "TYPE65280"), ["server.example."]);
    let split = zone(&published(&[40_000, 40_000], DnsCache::Cached));
    assert_eq!(
        owners(&split, "TYPE65280"),
        ["server.example.", "_1._pqtlsad.server.example."]
    );
}

#[test]
fn names_that_no_resolver_has_seen_are_a_wildcards() {
    let cold = published(&[5000], DnsCache::Cold);
    assert_eq!(
        owners(&zone(&cold), "TYPE65280"),
        ["server.example.", "*.server.example."]
    );
    assert_eq!(cold.name_of(17), "c17.server.example");
    assert_eq!(
        published(&[5000], DnsCache::Cached).name_of(17),
        "server.example"
    );
}

#[test]
fn a_query_is_one_that_others_read() {
    let question = in_dns("server.example", Question::Fragment(1)).unwrap();
    let bytes = query(&question, 0x1234).unwrap();
    let message = domain::base::Message::from_octets(&bytes[2..]).unwrap();
    assert_eq!(
        usize::from(u16::from_be_bytes([bytes[0], bytes[1]])),
        bytes.len() - 2
    );
    assert_eq!(message.header().id(), 0x1234);
    assert!(message.header().rd());
    let question = message.sole_question().unwrap();
    assert_eq!(question.qname().to_string(), "_1._pqtlsad.server.example");
    assert_eq!(question.qtype().to_int(), 65_280);
    assert_eq!(message.opt().unwrap().udp_payload_size(), 1232);
}

proptest! {
    #[test]
    fn messages_are_taken_whole_however_they_come(
        messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..5),
        step in 1_usize..50,
    ) {
        let mut stream = Vec::new();
        for message in &messages {
            stream.extend((message.len() as u16).to_be_bytes());
            stream.extend(message);
        }
        let (mut received, mut taken) = (Vec::new(), Vec::new());
        for piece in stream.chunks(step) {
            received.extend_from_slice(piece);
            taken.extend(std::iter::from_fn(|| take_message(&mut received)));
        }
        prop_assert_eq!(taken, messages);
        prop_assert!(received.is_empty());
    }
}
