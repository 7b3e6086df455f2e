//! Distributions of jitter: their tables, and the files that tables come from.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use lastbyte_link::{
    Direction, Distribution, Fate, PacketKey, Pipe, Seed, Side, Table, TableError, Time,
};
use proptest::prelude::*;

/// The mean and the standard deviation, in standard deviations.
fn moments(table: &[i16]) -> (f64, f64) {
    let n = table.len() as f64;
    let values = || table.iter().map(|value| f64::from(*value) / 8192.0);
    let mean = values().sum::<f64>() / n;
    let variance = values().map(|value| (value - mean).powi(2)).sum::<f64>() / n;
    (mean, variance.sqrt())
}

fn assert_near(found: f64, expected: f64, tolerance: f64) {
    assert!(
        (found - expected).abs() < tolerance,
        "{found}, not {expected}"
    );
}

/// Sums over the table that no two different ones are likely to have in common.
fn sums(table: &[i16]) -> [i64; 3] {
    let sum = |term: fn((i64, i64)) -> i64| {
        (0..)
            .zip(table)
            .map(|(i, value)| term((i, i64::from(*value))))
            .sum()
    };
    [
        sum(|(_, value)| value),
        sum(|(i, value)| i * value),
        sum(|(_, value)| value * value),
    ]
}

/// The numbers are those of `pareto.dist` in iproute2 6.1.
#[test]
fn the_pareto_table_is_the_one_of_iproute2() {
    let distribution = Distribution::Pareto;
    let table = distribution.table().unwrap();
    assert_eq!(table.len(), 4096);
    assert!(table.is_sorted());
    for (index, quantile) in [
        (0, -5461),
        (1, -5460),
        (40, -5426),
        (1024, -4362),
        (2047, -2625),
        (2048, -2622),
        (3072, 955),
        (3993, 20898),
        (4052, 32767),
        (4095, 32767),
    ] {
        assert_eq!(table[index], quantile, "{index}");
    }
    assert!(table[4051] < 32767);
    assert_eq!(sums(table), [-1_123_786, 22_905_823_651, 184_990_749_388]);
    let (mean, deviation) = moments(table);
    assert_near(mean, -0.033_491, 1e-6);
    assert_near(deviation, 0.819_677, 1e-6);
}

/// The numbers are those of `paretonormal.dist` in iproute2 6.1.
#[test]
fn the_paretonormal_table_is_the_one_of_iproute2() {
    let distribution = Distribution::ParetoNormal;
    let table = distribution.table().unwrap();
    assert_eq!(table.len(), 4096);
    assert!(table.is_sorted());
    for (index, quantile) in [
        (0, -12305),
        (1, -11171),
        (2, -10812),
        (40, -8849),
        (1024, -4652),
        (2047, -1970),
        (2048, -1966),
        (3072, 2097),
        (3993, 19683),
        (4055, 29341),
        (4094, 31365),
        (4095, 31789),
    ] {
        assert_eq!(table[index], quantile, "{index}");
    }
    assert_eq!(sums(table), [-848_968, 26_858_358_858, 191_343_507_090]);
    let (mean, deviation) = moments(table);
    assert_near(mean, -0.025_301, 1e-6);
    assert_near(deviation, 0.833_945, 1e-6);
}

/// The delays of `packets` packets, in standard deviations from the mean delay.
fn delays(distribution: Distribution, packets: u32) -> Vec<f64> {
    let direction = Direction {
        delay: Duration::from_millis(100),
        jitter: Duration::from_millis(10),
        distribution,
        queue: u32::MAX,
        ..Direction::default()
    };
    let mut pipe = Pipe::new(&direction, Seed(1).luck(0, Side::Client));
    let mut delay = |i| match pipe.send(Time(0), 100, PacketKey::segment(0, i, 0)) {
        Fate::Arrives(Time(at)) => (at as f64 - 1e8) / 1e7,
        fate => panic!("{fate:?}"),
    };
    (0..packets).map(&mut delay).collect()
}

#[test]
fn jitter_is_drawn_from_the_table() {
    const N: u32 = 200_000;
    let table = Table::from_quantiles("three.dist", "-8192 0 24576").unwrap();
    for distribution in [
        Distribution::Normal,
        Distribution::Pareto,
        Distribution::ParetoNormal,
        table.into(),
    ] {
        let table = distribution.table().unwrap();
        let delays = delays(distribution.clone(), N);
        let (mean, deviation) = moments(table);
        let found = delays.iter().sum::<f64>() / f64::from(N);
        assert_near(found, mean, 5.0 * deviation / f64::from(N).sqrt());
        // Each quantile stands for an equal share.
        for place in [0.1, 0.4, 0.5, 0.75, 0.99] {
            let limit = f64::from(table[(place * table.len() as f64) as usize]) / 8192.0;
            let below = |delay: f64| f64::from(u8::from(delay < limit - 1e-6));
            let share = table
                .iter()
                .map(|value| below(f64::from(*value) / 8192.0))
                .sum::<f64>()
                / table.len() as f64;
            let found = delays.iter().map(|delay| below(*delay)).sum::<f64>() / f64::from(N);
            let error = (share * (1.0 - share) / f64::from(N)).sqrt();
            assert!(
                (found - share).abs() <= 5.0 * error,
                "{distribution}: {found}, not {share}"
            );
        }
    }
}

#[test]
fn distributions_by_name() {
    for (name, distribution) in [
        ("uniform", Distribution::Uniform),
        ("normal", Distribution::Normal),
        ("pareto", Distribution::Pareto),
        ("paretonormal", Distribution::ParetoNormal),
    ] {
        assert_eq!(distribution.to_string(), name);
        assert_eq!(name.parse(), Ok(distribution));
    }
    let error = |text: &str| text.parse::<Distribution>().unwrap_err().to_string();
    assert_eq!(
        error("gaussian"),
        r#"unknown jitter distribution "gaussian": use one of uniform, normal, pareto, paretonormal"#
    );
    assert_eq!(
        error("Normal"),
        r#"unknown jitter distribution "Normal": did you mean "normal"?"#
    );
}

fn quantiles(text: &str) -> Result<Vec<i16>, TableError> {
    Table::from_quantiles("a.dist", text).map(|table| table.quantiles().to_vec())
}

fn of_delays(text: &str) -> Result<Table, TableError> {
    Table::from_delays("a.csv", text)
}

#[test]
fn tables_as_tc_has_them() {
    assert_eq!(
        quantiles("# A comment: 7\n -32768 -1\t0\r\n\n  # another\n1 +2 32767"),
        Ok(vec![-32768, -1, 0, 1, 2, 32767])
    );
    assert_eq!(quantiles(&"5 ".repeat(16384)).unwrap().len(), 16384);
    let table = Table::from_quantiles("my/own.dist", "1").unwrap();
    assert_eq!(Distribution::from(table).to_string(), "my/own.dist");
}

#[test]
fn files_that_are_no_tables() {
    let error = |text: &str| quantiles(text).unwrap_err().to_string();
    assert_eq!(
        error("# x\n1 2\n3 four 5"),
        r#""a.dist", line 3: "four" is no whole number from -32768 to 32767: a .dist file holds quantiles in 1/8192 of the jitter"#
    );
    assert!(error("32768").starts_with(r#""a.dist", line 1: "32768" is no whole number"#));
    assert!(error("1.5").starts_with(r#""a.dist", line 1: "1.5" is no whole number"#));
    // No more of it than is needed to find it.
    assert!(error(&"x".repeat(1 << 20)).len() < 200);
    assert_eq!(
        error("# nothing\n"),
        r#""a.dist" holds no numbers: put quantiles into a .dist file, or delays such as 35.2ms into a .csv or .txt file"#
    );
    assert_eq!(
        error(&"5 ".repeat(16385)),
        r#""a.dist" holds more than 16384 quantiles: leave out all but every second or third"#
    );
}

#[test]
fn files_that_are_no_delays() {
    let error = |text: &str| of_delays(text).unwrap_err().to_string();
    assert_eq!(
        error("35ms\n\n36\n"),
        r#""a.csv", line 3: missing unit in duration "36": did you mean "36ms"?"#
    );
    assert_eq!(
        error("delay\n36ms\n"),
        r#""a.csv", line 1: "delay" is no duration: write one such as "35ms""#
    );
    assert_eq!(
        error("35ms\n0.035s\n"),
        r#"all delays in "a.csv" are the same: leave out the jitter, or measure again"#
    );
    assert!(error("").starts_with(r#""a.csv" holds no numbers"#));
}

/// Half of the delays on each side: one standard deviation.
#[test]
fn two_delays_make_two_sides() {
    let table = of_delays("# one way\n40ms\n30ms\n").unwrap();
    let table = table.quantiles();
    assert_eq!(table.len(), 4096);
    assert_eq!((table[0], table[1023]), (-8192, -8192));
    assert_eq!((table[3072], table[4095]), (8192, 8192));
    // A straight line between the middles of the halves.
    assert_eq!((table[2047], table[2048]), (-4, 4));
    assert_eq!((table[1536], table[2560]), (-4092, 4100));
}

#[test]
fn the_order_of_delays_and_their_scale_do_not_count() {
    let table = of_delays("1ms\n2ms\n4ms\n").unwrap();
    assert_eq!(of_delays("4s\n2s\n1s\n").unwrap(), table);
    let shifted = of_delays("101ms\n102ms\n104ms\n").unwrap();
    for (a, b) in table.quantiles().iter().zip(shifted.quantiles()) {
        assert!(a.abs_diff(*b) <= 1);
    }
    // A third of each: (1 - 7/3) / sqrt(14/9) and so on.
    assert_eq!(
        table.quantiles()[0],
        (-1.069_045_f64 * 8192.0).round() as i16
    );
    assert_eq!(
        table.quantiles()[4095],
        (1.336_306_f64 * 8192.0).round() as i16
    );
    // At the share (2048 + 1/2) / 4096, which is 3/8192 of the way from the second to the third.
    let place = 2.0 + 2.0 * 3.0 / 8192.0;
    let quantile = (place - 7.0 / 3.0) / (14.0_f64 / 9.0).sqrt();
    assert_eq!(table.quantiles()[2048], (quantile * 8192.0).round() as i16);
}

#[test]
fn a_delay_out_of_all_proportion_is_held_at_four_deviations() {
    let mut text = "10ms\n".repeat(9999);
    text.push_str("100s\n");
    let table = of_delays(&text).unwrap();
    assert_eq!(table.quantiles()[4095], 32767);
}

proptest! {
    #[test]
    fn delays_give_back_their_shape(delays in proptest::collection::vec(1_u32..1_000_000, 300..600)) {
        let text: String = delays.iter().map(|delay| format!("{delay}us\n")).collect();
        let table = of_delays(&text).unwrap();
        let (mean, deviation) = moments(table.quantiles());
        prop_assert!(table.quantiles().is_sorted());
        prop_assert!(mean.abs() < 0.01, "{}", mean);
        prop_assert!((deviation - 1.0).abs() < 0.01, "{}", deviation);
    }

    #[test]
    fn tables_round_trip(quantiles in proptest::collection::vec(any::<i16>(), 1..100)) {
        let text: Vec<String> = quantiles.iter().map(i16::to_string).collect();
        prop_assert_eq!(self::quantiles(&text.join(" ")), Ok(quantiles));
    }

    #[test]
    fn any_text_is_read_or_refused(text in r"\PC*|([-0-9.# \n]|ms\n|us\n){0,60}") {
        for error in [
            Table::from_quantiles("f\n", &text).err(),
            Table::from_delays("f\n", &text).err(),
        ].into_iter().flatten() {
            prop_assert_eq!(error.to_string().lines().count(), 1);
        }
    }
}
