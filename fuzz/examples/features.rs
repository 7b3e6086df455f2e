//! Does nothing: see scripts/fuzz, which compiles it.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = bytes;
});
