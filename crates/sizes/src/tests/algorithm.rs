use crate::{ChainSpec, KeyAlgorithm, RootDelivery};

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
fn a_specification_is_written_as_an_arm_has_it() {
    let padded = ChainSpec {
        certificate_bytes: Some(16_000),
        ..ChainSpec::new(KeyAlgorithm::Rsa2048)
    };
    assert_eq!(padded.to_string(), "rsa-2048:16000B");
    let mixed = ChainSpec {
        ca: KeyAlgorithm::MlDsa65,
        root_key: KeyAlgorithm::MlDsa65,
        intermediates: 2,
        root: RootDelivery::Sent,
        ..ChainSpec::new(KeyAlgorithm::EcdsaP256)
    };
    assert_eq!(
        mixed.to_string(),
        "ecdsa-p256+ml-dsa-65/intermediates=2/root=sent"
    );
}
