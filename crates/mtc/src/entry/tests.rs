#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use super::*;
use crate::issue::made_up_key;

const NOW: UnixTime = UnixTime(1_800_000_000);

fn request<'a>(key: &'a [u8], names: &'a [&'a str]) -> Request<'a> {
    Request {
        names,
        key,
        validity: Validity::of(NOW, Duration::from_secs(86_400)),
    }
}

fn ca() -> TrustAnchorId {
    "32473.1".parse().unwrap()
}

#[test]
fn an_entry_says_what_was_asked() {
    let key = made_up_key(1, 2);
    let bytes = request(&key, &["example.com", "*.example.com"])
        .entry(&ca())
        .unwrap();
    let entry = Entry::parse(&bytes).unwrap().unwrap();
    assert_eq!(*entry.issuer(), ca());
    assert_eq!(entry.validity().from, NOW);
    assert_eq!(entry.validity().to, UnixTime(NOW.0 + 86_399));
    assert_eq!(entry.subject(), [0x30, 0]);
    assert_eq!(entry.key_hash(), HashValue::of(&key));
    assert_eq!(entry.leaf(), leaf(&bytes));
    // Appendix C.3's beginning, with the name of -07.
    let start = "00000001a003020102301431123010 06082b06010505071903 0d0481fd5901301e170d32";
    let start = hex::decode(start.replace(' ', "")).unwrap();
    assert_eq!(bytes[..start.len()], start);
    assert_eq!(Entry::parse(&NULL_ENTRY).unwrap().map(|_| ()), None);
    // Appendix C.3.
    assert_eq!(
        leaf(&NULL_ENTRY).to_string(),
        "8855508aade16ec573d21e6a485dfd0a7624085c1a14b5ecdd6485de0c6839a4"
    );
}

#[test]
fn what_can_be_in_no_certificate_is_refused() {
    let key = made_up_key(1, 2);
    for name in [
        "",
        ".",
        "*.",
        "a..b",
        "a.example.",
        "*",
        "a.*",
        "*a.example",
        "*.*.example",
        "é.example",
        "a b",
        &"a".repeat(64),
        &format!("{}{}", "a.".repeat(126), "bc"),
        "-a.example",
        "a-.example",
        "192.0.2.1",
        "a\0",
    ] {
        let error = request(&key, &[name]).entry(&ca()).unwrap_err();
        assert!(
            matches!(error, EntryError::Name { .. }),
            "{name:?}: {error}"
        );
    }
    for name in [
        "a",
        "*.a",
        "_a.1.xn--p1ai",
        &"a".repeat(63),
        &format!("{}b", "a.".repeat(126)),
    ] {
        let made = request(&key, &[name]).entry(&ca());
        assert!(made.is_ok(), "{name:?}: {}", made.unwrap_err());
    }
    let twice = request(&key, &["a.example", "b.example", "A.example"]).entry(&ca());
    let error = twice.unwrap_err().to_string();
    assert_eq!(
        error,
        "the host \"A.example\" is given twice: leave one out"
    );
    for cut in 0..key.len() {
        request(&key[..cut], &["a"]).entry(&ca()).unwrap_err();
    }
    let many: Vec<String> = (0..5000)
        .map(|host| format!("host-{host}.example"))
        .collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let error = request(&key, &many).entry(&ca()).unwrap_err();
    assert!(matches!(error, EntryError::Long(_)), "{error}");
}

#[test]
fn an_entry_that_is_cut_or_has_another_type_is_refused() {
    let key = made_up_key(1, 2);
    let bytes = request(&key, &["example.com"]).entry(&ca()).unwrap();
    let cut = |at: &usize| Entry::parse(&bytes[..*at]).is_ok();
    let whole = (0..bytes.len()).filter(cut).count();
    assert_eq!(whole, 1, "an entry without extensions is one");
    let [mut typed, mut longer, mut older] = [bytes.clone(), bytes.clone(), bytes.clone()];
    typed[3] = 2;
    longer.push(0);
    older[8] = 1;
    for wrong in [typed, longer, older] {
        Entry::parse(&wrong).map(|_| ()).unwrap_err();
    }
    let two = |one: &str| hex::decode(format!("0008{one}0000")).unwrap();
    assert!(Entry::parse(&two("0001000000020000")).is_ok());
    for wrong in ["0002000000010000", "0001000000010000", "0001000000020001"] {
        Entry::parse(&two(wrong)).map(|_| ()).unwrap_err();
    }
}

/// The name of -05's CAs, from its Appendix C.3, and -06's.
#[test]
fn names_of_other_drafts_are_refused_by_name() {
    let name = |hex: &str| hex::decode(hex).unwrap();
    let of_05 = name("31173015060a2b0601040182da4b2f010c0733323437332e31");
    assert_eq!(
        authority(&of_05).unwrap_err(),
        EntryError::Draft(Draft::UpTo05)
    );
    let of_06 = name("31143012060a2b0601040182da4b2f030d0481fd5901");
    assert_eq!(
        authority(&of_06).unwrap_err().to_string(),
        "the issuer is named as in draft-ietf-plants-merkle-tree-certs-06: only \
         draft-ietf-plants-merkle-tree-certs-07 is known"
    );
}
