//! A table that a population is drawn from, as CSV or Parquet. Whatever can be read can be drawn, and is one line
//! otherwise.
#![no_main]

use std::sync::Arc;

use lastbyte::study::{Cell, Joint, Population};
use lastbyte_link::Seed;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|content: &[u8]| {
    match Joint::load("users.csv", content) {
        Ok(joint) => {
            let population = Population {
                joint: vec![joint],
                ..Population::empty(Seed(1))
            };
            let cell = Cell {
                population: Some(Arc::new(population)),
                ..Cell::default()
            };
            for index in 0..3 {
                assert!(cell.of_connection(index).population.is_none());
            }
        }
        Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
    }
});
