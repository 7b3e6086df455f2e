use openssl::sign::Verifier;

use crate::KeyAlgorithm::SlhDsa;
use crate::{ChainSpec, KeyAlgorithm};

#[test]
fn names_are_read_as_they_are_written() {
    for algorithm in KeyAlgorithm::ALL {
        assert_eq!(algorithm.to_string().parse(), Ok(algorithm));
    }
}

#[test]
fn an_unknown_name_is_answered_with_the_nearest() {
    let error = |name: &str| name.parse::<KeyAlgorithm>().unwrap_err().to_string();
    assert_eq!(
        error("rsa2048"),
        "unknown key algorithm \"rsa2048\": did you mean \"rsa-2048\"?"
    );
    assert_eq!(
        error("ML-DSA-65"),
        "unknown key algorithm \"ML-DSA-65\": did you mean \"ml-dsa-65\"?"
    );
    assert_eq!(
        error("P-256"),
        "unknown key algorithm \"P-256\": use one of ecdsa-p256, ecdsa-p384, rsa-2048, rsa-3072, \
         rsa-4096, ml-dsa-44, ml-dsa-65, ml-dsa-87, slh-dsa-sha2-128s, slh-dsa-sha2-128f, \
         slh-dsa-sha2-192s, slh-dsa-sha2-192f, slh-dsa-sha2-256s, slh-dsa-sha2-256f, \
         slh-dsa-shake-128s, slh-dsa-shake-128f, slh-dsa-shake-192s, slh-dsa-shake-192f, \
         slh-dsa-shake-256s, slh-dsa-shake-256f, fn-dsa-512, fn-dsa-1024"
    );
}

#[test]
fn keys_and_signatures_have_the_sizes_that_are_stated() {
    for algorithm in KeyAlgorithm::ALL {
        let key = algorithm.generate().unwrap();
        assert_eq!(KeyAlgorithm::of(&key), Some(algorithm));
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

#[test]
fn a_specification_is_written_as_an_arm_has_it() {
    let padded = ChainSpec {
        certificate_bytes: Some(16_000),
        ..ChainSpec::new(KeyAlgorithm::Rsa2048)
    };
    assert_eq!(padded.to_string(), "rsa-2048:16000B");
    assert_eq!(
        super::mixed().to_string(),
        "ecdsa-p256+ml-dsa-65/intermediates=2/root=sent"
    );
}
