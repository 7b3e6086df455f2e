//! The module that `scripts/explore` has made of this crate.

/// As browsers have it, packed by gzip. `explore.sources`, beside it, says which files it was made of, with their digests: `scripts/explore`
/// compares them where it can't make the module again.
pub static WASM: &[u8] = include_bytes!("../explore.wasm.gz");
