//! A study file. Whatever can be read is written as what measures the same.
#![no_main]

use std::path::Path;

use lastbyte::study::Study;
use libfuzzer_sys::fuzz_target;

/// More than these take longer to write than they teach.
const MOST_CELLS: u64 = 100;

fuzz_target!(|text: &str| {
    let path = Path::new("/studies/study.toml");
    match Study::parse(text, path) {
        Ok(study) if study.size(1).cells > MOST_CELLS => {}
        Ok(study) => {
            let text = study.to_toml();
            let again = Study::parse(&text, path).unwrap();
            // What is drawn, claimed and searched is no part of it.
            let measured = Study {
                text,
                figures: Vec::new(),
                published: Vec::new(),
                claims: Vec::new(),
                searches: Vec::new(),
                ..study
            };
            assert_eq!(again, measured);
        }
        Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
    }
});
