//! The manifest of a folder of results. Whatever can be read names an engine that there is, and a command of words.
#![no_main]

use lastbyte::results::Manifest;
use lastbyte_link::is_hidden;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match Manifest::parse(text) {
        Ok(manifest) => {
            assert_eq!(manifest.environment.engine, manifest.engine);
            assert!((1..=1_000_000).contains(&manifest.block_size));
            assert!(!manifest.environment.command_line().contains(is_hidden));
        }
        Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
    }
});
