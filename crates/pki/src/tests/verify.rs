use std::slice;

use super::Maker;
use crate::keys::key_algorithm;
use crate::verify::{Purpose, verify};
use crate::{Chain, ChainRole, ChainSpec, KeyAlgorithm, test_chains};

/// What a client says to a chain.
fn verdict(chain: &Chain, server_name: &str) -> Result<(), &'static str> {
    verdict_for(chain, Purpose::Server(server_name))
}

fn verdict_for(chain: &Chain, purpose: Purpose<'_>) -> Result<(), &'static str> {
    let (end_entity, issuers) = chain.certificates().split_first().unwrap();
    let anchors = slice::from_ref(chain.root());
    match verify(end_entity, issuers, anchors, purpose).unwrap() {
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

#[test]
fn a_client_proves_that_it_is_one_and_no_server() {
    for intermediates in 0..=2 {
        let spec = ChainSpec {
            role: ChainRole::Client,
            intermediates,
            ..ChainSpec::new(KeyAlgorithm::EcdsaP256)
        };
        let chain = Maker::new(spec).chain(None);
        assert_eq!(chain.server_name(), "client.example");
        assert_eq!(verdict_for(&chain, Purpose::Client), Ok(()));
        assert_eq!(
            verdict(&chain, "client.example"),
            Err("unsuitable certificate purpose")
        );
    }
}

#[test]
fn each_faulty_client_chain_has_its_fault() {
    let verdict = |chain: Chain| verdict_for(&chain, Purpose::Client);
    assert_eq!(
        verdict(test_chains::expired_client().unwrap()),
        Err("certificate has expired")
    );
    assert_eq!(
        verdict(test_chains::untrusted_client().unwrap()),
        Err("unable to get local issuer certificate")
    );
    assert_eq!(
        verdict(test_chains::server_as_client().unwrap()),
        Err("unsuitable certificate purpose")
    );
}

#[test]
fn a_root_may_be_of_a_third_algorithm() {
    let spec = ChainSpec {
        ca: KeyAlgorithm::FnDsa512,
        root_key: KeyAlgorithm::MlDsa87,
        intermediates: 2,
        ..ChainSpec::new(KeyAlgorithm::EcdsaP256)
    };
    let chain = Maker::new(spec.clone()).chain(None);
    assert_eq!(verdict(&chain, "server.example"), Ok(()));
    assert_eq!(chain.certificate_message_bytes(), spec.unpadded_bytes());
    let root = chain.root().public_key().unwrap();
    assert_eq!(key_algorithm(&root), Some(KeyAlgorithm::MlDsa87));

    let direct = ChainSpec {
        intermediates: 0,
        ..spec
    };
    assert_eq!(
        direct.validate().unwrap_err().to_string(),
        "chain \"ecdsa-p256+fn-dsa-512+ml-dsa-87/intermediates=0\": without intermediates the root \
         issues; leave its intermediates' algorithm out"
    );
}
