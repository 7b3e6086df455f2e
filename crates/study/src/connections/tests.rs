#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;

use super::*;

fn until(least: u32, most: u32) -> Connections {
    Connections::Until(Until {
        least,
        most,
        ..Until::new("±2%".parse().unwrap())
    })
}

#[test]
fn looks_double_from_the_least_to_the_most() {
    let looks = |least, most| until(least, most).looks();
    assert_eq!(
        looks(200, 10_000),
        [200, 400, 800, 1600, 3200, 6400, 10_000]
    );
    assert_eq!(looks(100, 800), [100, 200, 400, 800]);
    assert_eq!(looks(100, 801), [100, 200, 400, 800, 801]);
    assert_eq!(looks(7, 7), [7]);
    assert_eq!(looks(1, 1), [1]);
    assert_eq!(Connections::Fixed(1000).looks(), [1000]);
    assert_eq!(Connections::UpTo(1000).looks(), [1000]);
}

#[test]
fn how_connections_are_written() {
    let read = |text: &str| text.parse::<Connections>().unwrap();
    assert_eq!(read("200"), Connections::Fixed(200));
    assert_eq!(read("up to 200"), Connections::UpTo(200));
    assert_eq!(read("up to 200").to_string(), "up to 200");
    for (text, percent, shown) in [
        ("until ±2%", 2.0, "until ±2%"),
        ("until 2%", 2.0, "until ±2%"),
        ("until ±0.5%", 0.5, "until ±0.5%"),
        ("until  ±12.250 %", 12.25, "until ±12.25%"),
        ("until ±0.001%", 0.001, "until ±0.001%"),
        ("until 100%", 100.0, "until ±100%"),
    ] {
        let Connections::Until(until) = read(text) else {
            panic!("{text}");
        };
        assert_eq!(until.precision.percent(), percent);
        assert_eq!((until.least, until.most), (200, 10_000));
        assert_eq!(read(text).to_string(), shown);
        assert_eq!(read(shown), read(text));
    }
}

#[test]
fn what_is_no_number_of_connections_is_told_with_the_hint() {
    let no_number =
        "is no number of connections: write one such as 1000, \"up to 1000\" or \"until ±2%\"";
    for (text, told) in [
        ("", format!("\"\" {no_number}")),
        ("up to", format!("\"up to\" {no_number}")),
        ("up to many", format!("\"up to many\" {no_number}")),
        (
            "up to 0",
            "0 connections can't be had: use 1 to 1000000".to_owned(),
        ),
        ("many", format!("\"many\" {no_number}")),
        ("-1", format!("\"-1\" {no_number}")),
        ("1.5", format!("\"1.5\" {no_number}")),
        ("±2%", format!("\"±2%\" {no_number}")),
        ("untill ±2%", format!("\"untill ±2%\" {no_number}")),
        ("0", "0 connections can't be had: use 1 to 1000000".into()),
        (
            "1000001",
            "1000001 connections can't be had: use 1 to 1000000".into(),
        ),
        (
            "99999999999",
            "99999999999 connections can't be had: use 1 to 1000000".into(),
        ),
        (
            "until ",
            "\"until \" says no precision: write one such as \"until ±2%\"".into(),
        ),
        (
            "until dawn",
            "\"dawn\" is no precision: write one such as \"±2%\"".into(),
        ),
        (
            "until ±%",
            "\"±%\" is no precision: write one such as \"±2%\"".into(),
        ),
        (
            "until 1.%",
            "\"1.%\" is no precision: write one such as \"±2%\"".into(),
        ),
        (
            "until 2",
            "missing unit in precision \"2\": did you mean \"±2%\"?".into(),
        ),
        (
            "until ±0%",
            "precision \"±0%\" can't be had: use ±0.001% to ±100%".into(),
        ),
        (
            "until 0.0001%",
            "precision \"0.0001%\" can't be had: use ±0.001% to ±100%".into(),
        ),
        (
            "until 100.1%",
            "precision \"100.1%\" can't be had: use ±0.001% to ±100%".into(),
        ),
    ] {
        let error = text.parse::<Connections>().unwrap_err();
        assert_eq!(error.to_string(), told, "{text:?}");
    }
}

proptest! {
    #[test]
    fn any_precision_reads_as_it_is_written(thousandths in 1..=100_000_u32) {
        let precision = Precision { thousandths };
        prop_assert_eq!(precision.to_string().parse(), Ok(precision));
    }

    #[test]
    fn any_text_is_a_number_of_connections_or_one_line(text in ".{0,12}|until [±0-9.% ]{0,9}") {
        if let Err(error) = text.parse::<Connections>() {
            prop_assert!(!error.to_string().contains('\n'), "{}", error);
        }
    }

    #[test]
    fn looks_ascend_within_the_bounds(least in 1..=1_000_000_u32, more in 0..=1_000_000_u32) {
        let looks = until(least, least + more).looks();
        prop_assert!(looks.is_sorted_by(|a, b| a < b));
        prop_assert_eq!(looks.first(), Some(&least));
        prop_assert_eq!(looks.last(), Some(&(least + more)));
    }
}
