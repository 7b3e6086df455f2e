use std::slice;

use super::Maker;
use crate::verify::verify;
use crate::{Chain, ChainSpec, KeyAlgorithm, test_chains};

/// What a client says to a chain.
fn verdict(chain: &Chain, server_name: &str) -> Result<(), &'static str> {
    let (end_entity, issuers) = chain.certificates().split_first().unwrap();
    let anchors = slice::from_ref(chain.root());
    match verify(end_entity, issuers, anchors, server_name).unwrap() {
        Ok(root) => {
            assert!(root == *chain.root());
            Ok(())
        }
        Err(unverified) => Err(unverified.reason.error_string()),
    }
}

#[test]
fn made_chains_verify_for_their_names_only() {
    for (algorithm, chain) in super::chains() {
        assert_eq!(verdict(chain, "server.example"), Ok(()), "{algorithm}");
        assert_eq!(verdict(chain, "www.server.example"), Ok(()));
        assert_eq!(verdict(chain, "other.example"), Err("hostname mismatch"));
    }
}

#[test]
fn chains_of_any_length_verify() {
    for intermediates in 0..=ChainSpec::MAX_INTERMEDIATES {
        let spec = ChainSpec {
            intermediates,
            ..super::mixed()
        };
        let chain = Maker::new(spec).chain(None);
        assert_eq!(verdict(&chain, "server.example"), Ok(()));
    }
}

#[test]
fn padded_chains_verify() {
    let maker = Maker::new(ChainSpec::new(KeyAlgorithm::EcdsaP256));
    for bytes in [1380, 16_000, 100_000] {
        assert_eq!(verdict(&maker.chain(Some(bytes)), "server.example"), Ok(()));
    }
}

#[test]
fn each_faulty_chain_has_its_fault() {
    let verdict = |chain: Chain| verdict(&chain, chain.server_name());
    let chain = test_chains::for_name("another.example").unwrap();
    assert_eq!(chain.server_name(), "another.example");
    assert_eq!(verdict(chain), Ok(()));
    assert_eq!(
        verdict(test_chains::wrong_name().unwrap()),
        Err("hostname mismatch")
    );
    assert_eq!(
        verdict(test_chains::expired().unwrap()),
        Err("certificate has expired")
    );
    assert_eq!(
        verdict(test_chains::not_yet_valid().unwrap()),
        Err("certificate is not yet valid or the system clock is incorrect")
    );
    for chain in [test_chains::broken(), test_chains::untrusted()] {
        assert_eq!(
            verdict(chain.unwrap()),
            Err("unable to get local issuer certificate")
        );
    }
}
