use openssl::sign::Verifier;

use crate::KeyAlgorithm;
use crate::KeyAlgorithm::SlhDsa;
use crate::keys::{Keys, key_algorithm};

#[test]
fn keys_and_signatures_have_the_sizes_that_are_stated() {
    for algorithm in KeyAlgorithm::ALL {
        let key = algorithm.generate().unwrap();
        assert_eq!(key_algorithm(&key), Some(algorithm));
        let info = key.public_key_to_der().unwrap();
        assert_eq!(info.len(), algorithm.key_info_bytes(), "{algorithm}");
        // SLH-DSA takes up to a second for one.
        let signatures = if matches!(algorithm, SlhDsa(_)) { 1 } else { 8 };
        for _ in 0..signatures {
            let signature = algorithm.sign(&key, b"message").unwrap();
            assert_eq!(signature.len(), algorithm.signature_bytes(), "{algorithm}");
        }
    }
}

#[test]
fn ml_dsa_signs_the_message_itself() {
    let key = KeyAlgorithm::MlDsa44.generate().unwrap();
    let signature = KeyAlgorithm::MlDsa44.sign(&key, b"message").unwrap();
    let mut verifier = Verifier::new_without_digest(&key).unwrap();
    assert!(verifier.verify_oneshot(&signature, b"message").unwrap());
}
