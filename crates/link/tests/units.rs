//! Units: what is read, what is shown, and what the errors say.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use lastbyte_link::{Bytes, Probability, Rate, UnitError, format_duration, parse_duration};
use proptest::prelude::*;

fn rate(text: &str) -> Result<u64, UnitError> {
    text.parse().map(Rate::bits_per_second)
}

fn probability(text: &str) -> Result<f64, UnitError> {
    text.parse().map(Probability::fraction)
}

fn message<T: std::fmt::Debug>(result: Result<T, UnitError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn rates() {
    for (text, bits, shown) in [
        ("1gbit", 1_000_000_000, "1gbit"),
        ("10mbit", 10_000_000, "10mbit"),
        ("1.5mbit", 1_500_000, "1.5mbit"),
        ("1500kbit", 1_500_000, "1.5mbit"),
        ("500kbit", 500_000, "500kbit"),
        ("100bit", 100, "100bit"),
        ("0.1gbit", 100_000_000, "100mbit"),
        (".5kbit", 500, "500bit"),
        ("5.kbit", 5000, "5kbit"),
        (
            "1.50000000000000000000000000000000000000000mbit",
            1_500_000,
            "1.5mbit",
        ),
        ("10Mbit", 10_000_000, "10mbit"),
        ("1.234567gbit", 1_234_567_000, "1.234567gbit"),
        ("1.001kbit", 1001, "1.001kbit"),
        (
            "18446744073709551615bit",
            u64::MAX,
            "18446744.073709551615tbit",
        ),
    ] {
        assert_eq!(rate(text), Ok(bits), "{text}");
        assert_eq!(text.parse::<Rate>().unwrap().to_string(), shown);
    }
}

/// As ping and spreadsheets write it.
#[test]
fn a_space_before_the_unit_is_taken() {
    for text in ["5 mbit", "5\u{a0}mbit"] {
        assert_eq!(text.parse::<Rate>(), "5mbit".parse());
    }
}

#[test]
fn rates_that_are_none() {
    for (text, expected) in [
        ("", r#"empty rate: write one such as "10mbit""#),
        (
            "5mbits",
            r#"unknown unit "mbits" in "5mbits": did you mean "mbit"?"#,
        ),
        (
            "5mbps",
            r#"unknown unit "mbps" in "5mbps": did you mean "mbit"?"#,
        ),
        (
            "5parsecs",
            r#"unknown unit "parsecs" in "5parsecs": use one of tbit, gbit, mbit, kbit, bit"#,
        ),
        (
            "1e3mbit",
            r#"unknown unit "e3mbit" in "1e3mbit": did you mean "mbit"?"#,
        ),
        (
            "1,5\nmbit",
            r#"unknown unit ",5\nmbit" in "1,5\nmbit": decimals take a point, as in "1.5\nmbit""#,
        ),
        ("10", r#"missing unit in rate "10": did you mean "10mbit"?"#),
        (
            "-1mbit",
            r#"negative rate "-1mbit": write one such as "10mbit""#,
        ),
        ("NaN", r#""NaN" is no rate: write one such as "10mbit""#),
        ("inf", r#""inf" is no rate: write one such as "10mbit""#),
        ("mbit", r#""mbit" is no rate: write one such as "10mbit""#),
        (".mbit", r#"".mbit" is no rate: write one such as "10mbit""#),
        (
            "1.2.3mbit",
            r#""1.2.3mbit" is no rate: write one such as "10mbit""#,
        ),
        (
            "0mbit",
            r#"rate "0mbit" is zero: leave it out for a link without limit"#,
        ),
        (
            "0.5bit",
            r#"rate "0.5bit" is not a whole number of bits per second"#,
        ),
        (
            "1.2345kbit",
            r#"rate "1.2345kbit" is not a whole number of bits per second"#,
        ),
        (
            "1.0000000000000000000000000000000000000001gbit",
            r#"rate "1.0000000000000000000000000000000000000001gbit" is not a whole number of bits per second"#,
        ),
        (
            "18446744073709551616bit",
            r#"rate "18446744073709551616bit" is too large"#,
        ),
        (
            "999999999999999999999999999999999999999999bit",
            r#"rate "999999999999999999999999999999999999999999bit" is too large"#,
        ),
    ] {
        assert_eq!(message(rate(text)), expected);
    }
    assert_eq!(Rate::from_bits_per_second(0), None);
}

#[test]
fn serialisation_rounds_down_as_netem_does() {
    let nanos = |rate: &str, bytes| {
        rate.parse::<Rate>()
            .unwrap()
            .serialisation(bytes)
            .as_nanos()
    };
    assert_eq!(nanos("1gbit", 1514), 12_112);
    assert_eq!(nanos("1mbit", 1514), 12_112_000);
    assert_eq!(nanos("7bit", 1), 1_142_857_142);
    assert_eq!(nanos("1gbit", 0), 0);
    assert_eq!(nanos("1bit", usize::MAX), u128::from(u64::MAX));
}

#[test]
fn probabilities() {
    for (text, fraction, shown) in [
        ("0%", 0.0, "0%"),
        ("1%", 0.01, "1%"),
        ("0.5%", 0.005, "0.5%"),
        ("7%", 0.07, "7%"),
        ("29%", 0.29, "29%"),
        ("12.5%", 0.125, "12.5%"),
        ("100%", 1.0, "100%"),
        ("100.0%", 1.0, "100%"),
        ("10%", 0.1, "10%"),
        ("0.00001%", 1e-7, "0.00001%"),
        ("99.999%", 0.99999, "99.999%"),
    ] {
        assert_eq!(probability(text), Ok(fraction), "{text}");
        assert_eq!(text.parse::<Probability>().unwrap().to_string(), shown);
    }
    assert_eq!(Probability::default(), Probability::ZERO);
    assert_eq!(Probability::ONE.complement(), Probability::ZERO);
    let netem = |text: &str| text.parse::<Probability>().unwrap().to_netem();
    assert_eq!(
        (netem("0%"), netem("1%"), netem("100%")),
        (0, 42_949_673, u32::MAX)
    );
    assert!(
        Probability::from_fraction(-0.0)
            .unwrap()
            .fraction()
            .is_sign_positive()
    );
    for fraction in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
        assert_eq!(Probability::from_fraction(fraction), None);
    }
}

#[test]
fn probabilities_that_are_none() {
    for (text, expected) in [
        ("", r#"empty probability: write one such as "1%""#),
        (
            "0.01",
            r#"missing unit in probability "0.01": did you mean "1%" or "0.01%"?"#,
        ),
        (
            "1",
            r#"missing unit in probability "1": did you mean "1%"?"#,
        ),
        ("101%", r#"probability "101%" is above 100%"#),
        ("100.00001%", r#"probability "100.00001%" is above 100%"#),
        (
            "-1%",
            r#"negative probability "-1%": write one such as "1%""#,
        ),
        (
            "NaN%",
            r#""NaN%" is no probability: write one such as "1%""#,
        ),
        ("1%%", r#"unknown unit "%%" in "1%%": did you mean "%"?"#),
        (
            "1percent",
            r#"unknown unit "percent" in "1percent": use "%""#,
        ),
    ] {
        assert_eq!(message(probability(text)), expected);
    }
    assert!(probability(&format!("{}%", "9".repeat(400))).is_err());
}

#[test]
fn durations() {
    for (text, nanos, shown) in [
        ("35ms", 35_000_000, "35ms"),
        ("1.5s", 1_500_000_000, "1.5s"),
        ("250us", 250_000, "250us"),
        ("100ns", 100, "100ns"),
        ("0.25ms", 250_000, "250us"),
        ("17.5ms", 17_500_000, "17.5ms"),
        ("300s", 300_000_000_000, "300s"),
        ("0ms", 0, "0s"),
    ] {
        let duration = parse_duration(text).unwrap();
        assert_eq!(duration, Duration::from_nanos(nanos), "{text}");
        assert_eq!(format_duration(duration), shown);
    }
}

#[test]
fn durations_that_are_none() {
    for (text, expected) in [
        ("", r#"empty duration: write one such as "35ms""#),
        (
            "35",
            r#"missing unit in duration "35": did you mean "35ms"?"#,
        ),
        ("35MS", r#"unknown unit "MS" in "35MS": did you mean "ms"?"#),
        (
            "35msec",
            r#"unknown unit "msec" in "35msec": did you mean "ms"?"#,
        ),
        (
            "2min",
            r#"unknown unit "min" in "2min": use one of s, ms, us, ns"#,
        ),
        (
            "-1s",
            r#"negative duration "-1s": write one such as "35ms""#,
        ),
        ("inf", r#""inf" is no duration: write one such as "35ms""#),
        (
            "0.5ns",
            r#"duration "0.5ns" is not a whole number of nanoseconds"#,
        ),
        ("18446744074s", r#"duration "18446744074s" is too large"#),
    ] {
        assert_eq!(message(parse_duration(text)), expected);
    }
}

#[test]
fn sizes() {
    for (text, bytes, shown) in [
        ("0KiB", 0, "0B"),
        ("200KiB", 204_800, "200KiB"),
        ("200KB", 200_000, "200000B"),
        ("1MiB", 1 << 20, "1MiB"),
        ("1.5MiB", 1_572_864, "1536KiB"),
        ("1GiB", 1 << 30, "1GiB"),
        ("2GB", 2_000_000_000, "1953125KiB"),
        ("3MB", 3_000_000, "3000000B"),
        ("16000B", 16_000, "16000B"),
        ("0.5KiB", 512, "512B"),
        ("0.000000000931322574615478515625GiB", 1, "1B"),
    ] {
        assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
        assert_eq!(Bytes(bytes).to_string(), shown);
    }
    for (text, expected) in [
        (
            "200kib",
            r#"unknown unit "kib" in "200kib": did you mean "KiB"?"#,
        ),
        (
            "200kb",
            r#"unknown unit "kb" in "200kb": did you mean "KB"?"#,
        ),
        (
            "200",
            r#"missing unit in size "200": did you mean "200KiB"?"#,
        ),
        ("0.3B", r#"size "0.3B" is not a whole number of bytes"#),
        ("0.3KiB", r#"size "0.3KiB" is not a whole number of bytes"#),
        ("99999999999GiB", r#"size "99999999999GiB" is too large"#),
    ] {
        assert_eq!(message(text.parse::<Bytes>()), expected);
    }
}

#[test]
fn shown_with_width() {
    let rate: Rate = "1gbit".parse().unwrap();
    assert_eq!(
        format!("{rate:>7}|{:<5}|{:>5}", Bytes(3), Probability::ZERO),
        "  1gbit|3B   |   0%"
    );
}

proptest! {
    #[test]
    fn rate_round_trips(bits in 1..=u64::MAX) {
        let rate = Rate::from_bits_per_second(bits).unwrap();
        prop_assert_eq!(rate.to_string().parse(), Ok(rate));
    }

    #[test]
    fn probability_round_trips(fraction in 0.0..=1.0) {
        let probability = Probability::from_fraction(fraction).unwrap();
        prop_assert_eq!(probability.to_string().parse(), Ok(probability));
    }

    #[test]
    fn tiny_probability_round_trips(exponent in 0_i32..1074) {
        let probability = Probability::from_fraction(2_f64.powi(-exponent)).unwrap();
        prop_assert_eq!(probability.to_string().parse(), Ok(probability));
    }

    #[test]
    fn duration_round_trips(nanos: u64) {
        let duration = Duration::from_nanos(nanos);
        prop_assert_eq!(parse_duration(&format_duration(duration)), Ok(duration));
    }

    #[test]
    fn bytes_round_trip(bytes: u64, shift in 0_u32..40) {
        let bytes = Bytes(bytes << shift);
        prop_assert_eq!(bytes.to_string().parse(), Ok(bytes));
    }

    #[test]
    fn any_text_is_read_or_refused(text in r"\PC*|-?[0-9.]{0,60}[a-zA-Z%]{0,5}") {
        for error in [
            text.parse::<Rate>().err(),
            text.parse::<Probability>().err(),
            text.parse::<Bytes>().err(),
            parse_duration(&text).err(),
        ].into_iter().flatten() {
            prop_assert_eq!(error.to_string().lines().count(), 1);
        }
    }
}

#[test]
fn one_of_a_thing_is_no_plural() {
    let cells = [0, 1, 2].map(|count| lastbyte_link::counted(count, "cell"));
    assert_eq!(cells, ["0 cells", "1 cell", "2 cells"]);
    assert_eq!(lastbyte_link::counted("1 to 3", "block"), "1 to 3 blocks");
}
