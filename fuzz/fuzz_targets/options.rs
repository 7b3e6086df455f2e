//! What users write on the command line. Whatever can be read is written as what reads the same.
#![no_main]

use std::fmt::{Debug, Display};
use std::str::FromStr;

use lastbyte::results::Threshold;
use lastbyte::study::{Arm, Congestion};
use lastbyte_link::{
    Bytes, Distribution, Loss, Probability, Rate, Table, format_duration, parse_duration,
};
use lastbyte_pki::KeyAlgorithm;
use lastbyte_tls::Group;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    read_again::<Arm>(text);
    read_again::<Bytes>(text);
    read_again::<Congestion>(text);
    read_again::<Distribution>(text);
    read_again::<Group>(text);
    read_again::<KeyAlgorithm>(text);
    read_again::<Loss>(text);
    read_again::<Probability>(text);
    read_again::<Rate>(text);
    read_again::<Threshold>(text);
    if let Ok(duration) = parse_duration(text) {
        assert_eq!(parse_duration(&format_duration(duration)), Ok(duration));
    }
    for read in [Table::from_quantiles, Table::from_delays] {
        match read(text, text) {
            Ok(table) => assert!((1..=16384).contains(&table.quantiles().len())),
            Err(error) => assert_one_line(&error),
        }
    }
});

fn read_again<T>(text: &str)
where
    T: FromStr<Err: Debug + Display> + Display + PartialEq + Debug,
{
    match text.parse::<T>() {
        Ok(value) => {
            let again = value.to_string().parse::<T>();
            assert_eq!(again.as_ref().ok(), Some(&value), "{again:?}");
        }
        Err(error) => assert_one_line(&error),
    }
}

fn assert_one_line(error: &impl Display) {
    assert!(!error.to_string().contains('\n'), "{error}");
}
