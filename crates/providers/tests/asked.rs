//! A process of its own: what is installed stays.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use lastbyte_providers::{FN_DSA, SLH_DSA, offering};
use openssl::pkey::PKey;
use openssl::ssl::{SslContext, SslMethod};

/// A public key of FN-DSA-512, of zeros.
fn fn_dsa_512() -> Vec<u8> {
    const KEY: usize = 897;
    let identifier = [0x2b, 0x06, 0x01, 0x04, 0x01, 0x81, 0xfd, 0x59, 0x02];
    let mut key = vec![0x30, 0x82, 0x03, 0x93, 0x30, 0x0b, 0x06, 0x09];
    key.extend(identifier);
    key.extend([0x03, 0x82, 0x03, 0x82, 0x00, 0x09]);
    key.resize(key.len() + KEY - 1, 0);
    key
}

#[test]
fn keys_of_fn_dsa_are_read_only_by_whoever_asks_for_it() {
    let make = || SslContext::builder(SslMethod::tls()).map(drop);
    let signatures: Vec<_> = SLH_DSA.iter().collect();
    offering(&signatures, make).unwrap().unwrap();
    PKey::public_key_from_der(&fn_dsa_512()).unwrap_err();
    offering(&[&FN_DSA[0]], make).unwrap().unwrap();
    PKey::public_key_from_der(&fn_dsa_512()).unwrap();
}
