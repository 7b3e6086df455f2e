#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;

use super::*;

fn id(text: &str) -> TrustAnchorId {
    text.parse().unwrap()
}

#[test]
fn examples_are_of_the_number_for_examples() {
    let id = TrustAnchorId::of_example([1, 127]);
    assert_eq!(id, "32473.1.127".parse().unwrap());
}

#[test]
fn identifiers_have_the_bytes_of_relative_oids() {
    for (text, binary) in [
        ("32473.1", "81fd5901"),
        ("0", "00"),
        ("127.128", "7f8100"),
        ("32473.2.8.42", "81fd5902082a"),
        ("18446744073709551615", "81ffffffffffffffff7f"),
    ] {
        assert_eq!(hex::encode(id(text).as_bytes()), binary);
        let bytes = hex::decode(binary).unwrap();
        assert_eq!(TrustAnchorId::from_bytes(&bytes).unwrap().to_string(), text);
    }
    assert_eq!(id("32473.1").origin(), "oid/1.3.6.1.4.1.32473.1");
}

#[test]
fn what_is_no_identifier_is_refused() {
    for text in [
        "",
        ".",
        "1.",
        "01",
        "1..2",
        "-1",
        "+1",
        "1 ",
        "18446744073709551616",
        "x",
    ] {
        text.parse::<TrustAnchorId>().unwrap_err();
    }
    for binary in ["", "80", "8001", "81", "0181", "82808080808080808080 00"] {
        let bytes = hex::decode(binary.replace(' ', "")).unwrap();
        TrustAnchorId::from_bytes(&bytes).unwrap_err();
    }
    TrustAnchorId::from_bytes(&[1; 32]).unwrap();
    TrustAnchorId::from_bytes(&[1; 33]).unwrap_err();
    TrustAnchorId::from_numbers(vec![1; 33]).unwrap_err();
    let long = TrustAnchorId::from_bytes(&[1; 24]).unwrap();
    LogId::new(long, LogNumber::FIRST).unwrap_err();
}

#[test]
fn shorter_identifiers_come_first() {
    let mut ids = ["32473.1", "9", "300", "5", "32473.0"].map(id);
    ids.sort();
    assert_eq!(
        ids.map(|id| id.to_string()),
        ["5", "9", "300", "32473.0", "32473.1"]
    );
}

#[test]
fn a_log_names_itself_its_landmarks_and_groups() {
    let log = LogId::new(id("32473.1"), LogNumber::new(8).unwrap()).unwrap();
    assert_eq!(log.id().to_string(), "32473.1.0.8");
    assert_eq!(log.landmark(42).unwrap().to_string(), "32473.1.1.8.42");
    let group = log.landmark_group(42).unwrap();
    assert_eq!(group.to_string(), "32473.1.2.8.42");
    assert_eq!(group.as_bytes().len(), 7);
    let standalone = log.standalone_properties();
    assert_eq!(standalone.groups[0].to_string(), "32473.1.2.{0-}.{0-}");
    let landmark = log.landmark_properties(42).unwrap();
    assert_eq!(landmark.groups[0].to_string(), "32473.1.2.8.{42-}");
    assert_eq!(landmark.negotiation, Negotiation::Required);
    for (asked, of_standalone, of_landmark) in [
        ("32473.1", true, false),
        ("32473.1.2.8.41", true, false),
        ("32473.1.2.8.42", true, true),
        ("32473.1.2.8.43", true, true),
        ("32473.1.1.8.42", false, true),
        ("32473.1.2.9.42", true, false),
        ("32473.2", false, false),
    ] {
        assert_eq!(standalone.matches(&id(asked)), of_standalone, "{asked}");
        assert_eq!(landmark.matches(&id(asked)), of_landmark, "{asked}");
    }
}

/// Section 5.3.1 of draft-ietf-tls-trust-anchor-ids-06.
#[test]
fn patterns_have_two_numbers_for_each() {
    let text = "32473.{123-456}.{789-}";
    let pattern: Pattern = text.parse().unwrap();
    let bytes = pattern.to_bytes();
    assert_eq!(hex::encode(&bytes), "81fd5981fd597b8348861580");
    assert_eq!(Pattern::from_bytes(&bytes).unwrap(), pattern);
    assert_eq!(pattern.to_string(), text);
    for (at, matched) in [
        ("32473.123.789", true),
        ("32473.456.99999", true),
        ("32473.122.789", false),
        ("32473.457.789", false),
        ("32473.123.788", false),
        ("32473.123", false),
        ("32473.123.789.1", false),
        ("32474.123.789", false),
    ] {
        assert_eq!(pattern.matches(&id(at)), matched, "{at}");
    }
    for wrong in ["", "{1-2", "1-2", "{2-1}", "{-1}", "{1-}2", "{}", "{01-2}"] {
        wrong.parse::<Pattern>().unwrap_err();
    }
    for wrong in ["", "01", "0201", "018001", "8001"] {
        Pattern::from_bytes(&hex::decode(wrong).unwrap()).unwrap_err();
    }
}

/// Section 7.4 of draft-ietf-tls-trust-anchor-ids-06.
#[test]
fn the_drafts_property_list_is_read_and_written() {
    let bytes = hex::decode(concat!(
        "002a",
        "0000",
        "0004",
        "81fd5901",
        "0001",
        "001a",
        "0018",
        "09",
        "910b910b0202648148",
        "0d",
        "81fd5981fd5903032a80648148",
        "0002",
        "0000"
    ))
    .unwrap();
    let properties = Properties::from_bytes(&bytes).unwrap();
    assert_eq!(properties.id, Some(id("32473.1")));
    assert_eq!(properties.negotiation, Negotiation::Required);
    let groups: Vec<String> = properties.groups.iter().map(Pattern::to_string).collect();
    assert_eq!(groups, ["2187.2.{100-200}", "32473.3.{42-}.{100-200}"]);
    assert_eq!(properties.to_bytes().unwrap(), bytes);
    for cut in 0..bytes.len() {
        Properties::from_bytes(&bytes[..cut]).unwrap_err();
    }
    Properties::from_bytes(&[&bytes[..], &[0]].concat()).unwrap_err();
    let unknown = hex::decode("000900070001ff00080000").unwrap();
    assert_eq!(
        Properties::from_bytes(&unknown).unwrap(),
        Properties::default()
    );
    for twice in ["00080002000000020000", "00080002000000010000"] {
        Properties::from_bytes(&hex::decode(twice).unwrap()).unwrap_err();
    }
}

proptest! {
    #[test]
    fn identifiers_and_patterns_survive(numbers in prop::collection::vec(any::<u64>(), 1..4)) {
        let id = TrustAnchorId::from_numbers(numbers.iter().copied()).unwrap();
        prop_assert_eq!(TrustAnchorId::from_bytes(id.as_bytes()).unwrap(), id.clone());
        prop_assert_eq!(id.to_string().parse::<TrustAnchorId>().unwrap(), id.clone());
        let pattern = Pattern::of(&id);
        prop_assert!(pattern.matches(&id));
        prop_assert_eq!(Pattern::from_bytes(&pattern.to_bytes()).unwrap(), pattern.clone());
        prop_assert_eq!(pattern.to_string().parse::<Pattern>().unwrap(), pattern);
    }

    #[test]
    fn any_bytes_are_judged(bytes: Vec<u8>) {
        if let Ok(id) = TrustAnchorId::from_bytes(&bytes) {
            let again: TrustAnchorId = id.to_string().parse().unwrap();
            prop_assert_eq!(again.as_bytes(), bytes.as_slice());
        }
        if let Ok(pattern) = Pattern::from_bytes(&bytes) {
            prop_assert_eq!(pattern.to_bytes(), bytes.clone());
        }
        let _ = Properties::from_bytes(&bytes);
    }
}
