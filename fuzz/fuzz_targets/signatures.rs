//! Keys and signatures of FN-DSA and SLH-DSA as OpenSSL reads them of others. What was changed verifies nothing.
#![no_main]

use std::ffi::CStr;
use std::sync::LazyLock;

use lastbyte_fuzz::change;
use lastbyte_providers::generate;
use libfuzzer_sys::fuzz_target;
use openssl::pkey::{HasPublic, PKey, PKeyRef, Private};
use openssl::sign::{Signer, Verifier};

const MESSAGE: &[u8] = b"what is signed";
const ALGORITHMS: [&CStr; 4] = [
    c"fn-dsa-512",
    c"fn-dsa-1024",
    c"SLH-DSA-SHA2-128s",
    c"SLH-DSA-SHA2-128f",
];

struct Signed {
    key: PKey<Private>,
    public: Vec<u8>,
    private: Vec<u8>,
    signature: Vec<u8>,
}

static SIGNED: LazyLock<Vec<Signed>> = LazyLock::new(|| {
    let signed = ALGORITHMS.iter().map(|algorithm| {
        let key = generate(algorithm).unwrap();
        let mut signer = Signer::new_without_digest(&key).unwrap();
        Signed {
            public: key.public_key_to_der().unwrap(),
            private: key.private_key_to_pkcs8().unwrap(),
            signature: signer.sign_oneshot_to_vec(MESSAGE).unwrap(),
            key,
        }
    });
    signed.collect()
});

fn verifies(key: &PKeyRef<impl HasPublic>, signature: &[u8], message: &[u8]) -> bool {
    let Ok(mut verifier) = Verifier::new_without_digest(key) else {
        return false;
    };
    verifier.verify_oneshot(signature, message).unwrap_or(false)
}

fuzz_target!(|data: &[u8]| {
    let Some((kind, data)) = data.split_first() else {
        return;
    };
    // Those that are quick come more often.
    let index = [0, 1, 0, 1, 0, 1, 2, 3][usize::from(kind & 7)];
    let signed = &SIGNED[index];
    let changed = |bytes: &[u8]| {
        let mut changed = bytes.to_vec();
        change(&mut changed, data);
        changed
    };
    match kind >> 3 & 7 {
        0 => {
            if let Ok(key) = PKey::public_key_from_der(&changed(&signed.public)) {
                let is_same = key.public_eq(&signed.key);
                assert_eq!(verifies(&key, &signed.signature, MESSAGE), is_same);
                assert!(key.public_key_to_der().is_ok());
            }
        }
        1 => {
            let signature = changed(&signed.signature);
            let is_same = signature == signed.signature;
            assert_eq!(verifies(&signed.key, &signature, MESSAGE), is_same);
        }
        2 => {
            let is_same = data == MESSAGE;
            assert_eq!(verifies(&signed.key, &signed.signature, data), is_same);
        }
        3 => {
            if let Ok(key) = PKey::private_key_from_pkcs8(&changed(&signed.private)) {
                assert!(key.public_key_to_der().is_ok());
            }
        }
        4 => assert!(!verifies(&signed.key, data, MESSAGE) || data == signed.signature),
        5 => {
            let _ = PKey::public_key_from_der(data);
        }
        6 => {
            let _ = PKey::private_key_from_pkcs8(data);
        }
        _ => {
            let _ = PKey::private_key_from_der(data);
        }
    }
});
