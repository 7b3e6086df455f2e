//! The module that `scripts/explore` has made of this crate.

/// As browsers have it. `explore.sources`, beside it, says which files it was made of, with their digests: a test
/// compares them.
pub static WASM: &[u8] = include_bytes!("../explore.wasm");
