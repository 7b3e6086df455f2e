//! Refuses an OpenSSL that lacks what Lastbyte measures: one that is not vendored may be old.
#![allow(missing_docs)]

use std::env;

/// ML-KEM, ML-DSA and SLH-DSA are in OpenSSL since then, and the OpenSSL_VERSION_NUMBER of that.
const OLDEST: (&str, u64) = ("3.5", 0x3050_0000);

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // openssl-sys tells it, in hexadecimal.
    let number = env::var("DEP_OPENSSL_VERSION_NUMBER").unwrap_or_default();
    let Ok(number) = u64::from_str_radix(&number, 16) else {
        return;
    };
    let (oldest, least) = OLDEST;
    if number < least {
        let (major, minor, patch) = (number >> 28, number >> 20 & 0xff, number >> 4 & 0xffff);
        println!(
            "cargo::error=this machine's OpenSSL {major}.{minor}.{patch} has no post-quantum cryptography: \
             {oldest} or newer is needed; build without OPENSSL_NO_VENDOR to compile one"
        );
    }
}
