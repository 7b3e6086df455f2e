//! What the tests of all stacks share.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests, not all of which need all of it"
)]

use std::path::Path;

use lastbyte_pki::{Chain, ChainRole, ChainSpec, KeyAlgorithm, Store};
use lastbyte_tls::observer::{Observation, Side};
use lastbyte_tls::{Group, Handshake, StackName, TlsConfig, TlsError, stack};

pub(crate) fn chain_of(spec: &ChainSpec) -> Chain {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    Store::open(target.join("test-chains")).chain(spec).unwrap()
}

pub(crate) fn chain(algorithm: KeyAlgorithm) -> Chain {
    chain_of(&ChainSpec::new(algorithm))
}

/// A client's chain.
pub(crate) fn client_chain(algorithm: KeyAlgorithm) -> Chain {
    chain_of(&ChainSpec {
        role: ChainRole::Client,
        ..ChainSpec::new(algorithm)
    })
}

/// The same of another CA.
pub(crate) fn strange_client_chain(algorithm: KeyAlgorithm) -> Chain {
    chain_of(&ChainSpec {
        role: ChainRole::Client,
        intermediates: 0,
        ..ChainSpec::new(algorithm)
    })
}

pub(crate) fn observe(handshake: &Handshake) -> Observation {
    let observation = handshake.observer.observe(&handshake.client.key_log());
    let theirs = handshake.observer.observe(&handshake.server.key_log());
    assert_eq!(observation, theirs, "the two key logs differ");
    observation
}

/// The stacks that are built in.
pub(crate) fn built_in() -> Vec<StackName> {
    let chain = chain(KeyAlgorithm::EcdsaP256);
    let is_built_in = |name: &StackName| {
        let config = TlsConfig {
            client: *name,
            server: *name,
            ..TlsConfig::new(Group::X25519, &chain)
        };
        match stack(&config) {
            Err(error @ TlsError::Unsupported { .. }) => {
                assert!(error.to_string().contains("not built in"), "{error}");
                false
            }
            other => other.is_ok(),
        }
    };
    StackName::ALL.into_iter().filter(is_built_in).collect()
}

/// Every client with every server.
pub(crate) fn pairs() -> Vec<(StackName, StackName)> {
    let all = built_in();
    let with_all = |&client: &StackName| all.iter().map(move |&server| (client, server));
    all.iter().flat_map(with_all).collect()
}

/// What a configuration asks beyond a group in one round trip and classical keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Feature {
    Group(Group, KeyAlgorithm),
    EarlyData,
    TwoTickets,
    CertificateLimit,
    MutualResumption,
    Compression,
}

/// The table of what one side of one stack can do, in the tests' own words.
pub(crate) fn can(stack: StackName, side: Side, feature: Feature) -> bool {
    use Feature as F;
    use Group::*;
    use KeyAlgorithm::*;
    use StackName as S;
    match (stack, feature) {
        (_, F::Compression) => stack == S::Rustls,
        (S::OpenSsl, _) => true,
        (_, F::Group(_, key)) if key.provided().is_some() => false,
        (S::Rustls, F::Group(group, _)) => group != Secp384r1MlKem1024,
        (S::Rustls, F::CertificateLimit) => side == Side::Server,
        (S::Rustls, F::EarlyData | F::TwoTickets | F::MutualResumption) => true,
        (S::S2nTls, F::Group(group, key)) => match (side, key) {
            (_, MlDsa87) if group == MlKem1024 => true,
            (Side::Client, MlDsa44 | MlDsa65 | MlDsa87) => false,
            (Side::Client, _) => [Secp256r1, X25519, Secp384r1, X25519MlKem768].contains(&group),
            (Side::Server, MlDsa44 | MlDsa65) => ![MlKem768, MlKem1024].contains(&group),
            (Side::Server, _) => group != MlKem768,
        },
        (S::S2nTls, F::CertificateLimit | F::TwoTickets) => match feature {
            F::TwoTickets => side == Side::Client,
            _ => side == Side::Server,
        },
        (S::S2nTls, F::EarlyData | F::MutualResumption) => false,
    }
}

/// Sets `config` up, or asserts that the pair says that it can't, where the table says so.
pub(crate) fn stack_if_can(
    config: &TlsConfig<'_>,
    feature: Feature,
) -> Option<Box<dyn lastbyte_tls::Stack>> {
    let what = format!("{} {} {feature:?}", config.client, config.server);
    let can =
        can(config.client, Side::Client, feature) && can(config.server, Side::Server, feature);
    match stack(config) {
        Ok(stack) => {
            assert!(can, "{what} is possible");
            Some(stack)
        }
        Err(error @ TlsError::Unsupported { .. }) => {
            assert!(!can, "{what}: {error}");
            None
        }
        Err(error) => panic!("{what}: {error}"),
    }
}
