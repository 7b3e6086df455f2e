//! Chains and stacks for tests.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;

use lastbyte_pki::{Chain, ChainSpec, KeyAlgorithm, Store};

use crate::observer::Observation;
use crate::pairing::Pairing;
use crate::{Group, Stack, TlsConfig, handshake_in_memory};

/// Chains are kept from one test run to the next: RSA keys take long to make.
pub(crate) fn chain(spec: &ChainSpec) -> Chain {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    Store::open(target.join("test-chains")).chain(spec).unwrap()
}

pub(crate) fn plain_chain(algorithm: KeyAlgorithm) -> Chain {
    chain(&ChainSpec::new(algorithm))
}

pub(crate) fn openssl(group: Group, chain: &Chain) -> Pairing {
    Pairing::new(&TlsConfig::new(group, chain)).unwrap()
}

/// An arm that takes little time.
pub(crate) fn fast() -> Pairing {
    openssl(Group::X25519, &plain_chain(KeyAlgorithm::EcdsaP256))
}

pub(crate) fn observe(stack: &dyn Stack) -> Observation {
    let handshake = handshake_in_memory(stack).unwrap();
    let observation = handshake.observer.observe(&handshake.client.key_log());
    assert_eq!(
        observation,
        handshake.observer.observe(&handshake.server.key_log())
    );
    observation
}
