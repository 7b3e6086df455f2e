//! A table of RTTs, a file of regions, and one of chains. What can be read is whole; what can't is told in one line.
#![no_main]

use lastbyte::explain::chains::ChainSizes;
use lastbyte::geography::{RttTable, Users};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|content: &[u8]| {
    match RttTable::parse("table.csv", content) {
        Ok(table) => check_table(&table),
        Err(error) => check_error(&error),
    }
    match Users::parse("users.csv", content) {
        Ok(users) => assert!(!users.regions.is_empty()),
        Err(error) => check_error(&error),
    }
    if let Err(error) = ChainSizes::parse("chains.csv", content) {
        check_error(&error);
    }
});

fn check_table(table: &RttTable) {
    for (from, to, rtt) in table.pairs() {
        assert!(!rtt.is_zero());
        assert_eq!(table.need(from, to), Ok(rtt));
    }
    for (from, to) in table.holes().into_iter().take(100) {
        check_error(&table.need(from, to).unwrap_err());
    }
    check_error(&table.need("nowhere\n", "nowhere else").unwrap_err());
}

fn check_error(error: &impl std::error::Error) {
    let error = error.to_string();
    assert!(!error.contains('\n'), "{error}");
}
