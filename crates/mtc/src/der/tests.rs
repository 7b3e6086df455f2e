#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;

use super::*;

fn bytes(hex: &str) -> Vec<u8> {
    hex::decode(hex.replace(' ', "")).unwrap()
}

#[test]
fn lengths_are_as_short_as_possible() {
    for length in [0, 1, 127, 128, 255, 256, 65_535, 65_536] {
        let mut out = Vec::new();
        put_bytes(&mut out, OCTET_STRING, &vec![7; length]);
        let mut elements = Elements::new(&out);
        assert_eq!(elements.content(OCTET_STRING).unwrap().len(), length);
        elements.finish().unwrap();
        for cut in [0, 1, 2, out.len() - 1] {
            if cut < out.len() {
                Elements::new(&out[..cut]).any().unwrap_err();
            }
        }
    }
    for wrong in [
        "048000",
        "048100",
        "04817f",
        "04820080",
        "0485 0000000001 00",
        "1f0100",
        "04ff",
    ] {
        Elements::new(&bytes(wrong)).any().unwrap_err();
    }
}

#[test]
fn numbers_flags_and_bits_are_strict() {
    for wrong in [
        "0200",
        "020180",
        "02020001",
        "0209 010000000000000000",
        "0400",
    ] {
        Elements::new(&bytes(wrong)).unsigned().unwrap_err();
    }
    for wrong in ["010100", "010101", "0100"] {
        Elements::new(&bytes(wrong)).flag().unwrap_err();
    }
    for wrong in ["0300", "030101", "03020100"] {
        Elements::new(&bytes(wrong)).bits().unwrap_err();
    }
    assert!(!Elements::new(&[]).flag().unwrap());
    assert!(Elements::new(&bytes("0101ff")).flag().unwrap());
}

#[test]
fn dates_are_those_of_certificates() {
    for (text, tag, time) in [
        ("700101000000Z", UTC_TIME, 0),
        ("200229235959Z", UTC_TIME, 1_583_020_799),
        ("491231235959Z", UTC_TIME, 2_524_607_999),
        ("20500101000000Z", GENERALIZED_TIME, 2_524_608_000),
        ("21000301000000Z", GENERALIZED_TIME, 4_107_542_400),
        ("99991231235959Z", GENERALIZED_TIME, 253_402_300_799),
    ] {
        let mut out = Vec::new();
        put_bytes(&mut out, tag, text.as_bytes());
        assert_eq!(Elements::new(&out).date(), Ok(time), "{text}");
        let mut written = Vec::new();
        put_date(&mut written, time);
        assert_eq!(written, out, "{text}");
    }
    for (text, tag) in [
        ("690101000000Z", UTC_TIME),
        ("200230000000Z", UTC_TIME),
        ("210229000000Z", UTC_TIME),
        ("200100000000Z", UTC_TIME),
        ("201301000000Z", UTC_TIME),
        ("200101240000Z", UTC_TIME),
        ("200101006000Z", UTC_TIME),
        ("200101000060Z", UTC_TIME),
        ("2001010000Z", UTC_TIME),
        ("200101000000", UTC_TIME),
        ("200101000000+0000", UTC_TIME),
        ("20490101000000Z", GENERALIZED_TIME),
        ("20500101000000.0Z", GENERALIZED_TIME),
        ("20500101000000Z", UTC_TIME),
        ("500101000000Z", GENERALIZED_TIME),
        ("", UTC_TIME),
        ("2O0101000000Z", UTC_TIME),
    ] {
        let mut out = Vec::new();
        put_bytes(&mut out, tag, text.as_bytes());
        Elements::new(&out).date().unwrap_err();
    }
    // What no certificate can say is the last that one can.
    let mut out = Vec::new();
    put_date(&mut out, u64::MAX);
    assert_eq!(Elements::new(&out).date(), Ok(253_402_300_799));
}

proptest! {
    #[test]
    fn numbers_and_dates_survive(number: u64, time in 0_u64..253_402_300_800) {
        let mut out = Vec::new();
        put_unsigned(&mut out, number);
        put_date(&mut out, time);
        let mut elements = Elements::new(&out);
        prop_assert_eq!(elements.unsigned(), Ok(number));
        prop_assert_eq!(elements.date(), Ok(time));
        prop_assert!(elements.is_empty());
    }

    #[test]
    fn any_bytes_are_judged(bytes: Vec<u8>) {
        let mut elements = Elements::new(&bytes);
        while let Ok(element) = elements.any() {
            let mut out = Vec::new();
            put_bytes(&mut out, element.tag, element.content);
            prop_assert_eq!(out.as_slice(), element.whole);
        }
        let _ = Elements::new(&bytes).unsigned();
        let _ = Elements::new(&bytes).date();
        let _ = Elements::new(&bytes).bits();
    }
}
