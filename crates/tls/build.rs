//! Tells the versions of the stacks that are crates, which say nothing of them themselves.
#![allow(missing_docs)]

use std::path::Path;
use std::{env, fs};

fn main() {
    let lock =
        Path::new(&env::var("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../../Cargo.lock");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={}", lock.display());
    // A crate that is not built from its repository has no lock file: then they are unknown.
    let lock = fs::read_to_string(lock).unwrap_or_default();
    for (name, variable) in [
        ("aws-lc-rs", "AWS_LC_RS_VERSION"),
        ("rustls", "RUSTLS_VERSION"),
        ("rustls-openssl", "RUSTLS_OPENSSL_VERSION"),
        ("s2n-tls", "S2N_TLS_VERSION"),
    ] {
        let version = locked_version(&lock, name).unwrap_or("of an unknown version");
        println!("cargo::rustc-env={variable}={version}");
    }
}

fn locked_version<'a>(lock: &'a str, name: &str) -> Option<&'a str> {
    let (_, package) = lock.split_once(&format!("name = \"{name}\"\nversion = \""))?;
    Some(package.split_once('"')?.0)
}
