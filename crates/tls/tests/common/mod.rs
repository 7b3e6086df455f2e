//! What the tests of all stacks share.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests, not all of which need all of it"
)]

use std::path::Path;

use lastbyte_pki::{Chain, ChainSpec, KeyAlgorithm, PemFiles, Store};
use lastbyte_tls::observer::{Observation, Side};
use lastbyte_tls::{Group, Handshake, StackName, TlsConfig, TlsError, stack};
use openssl::asn1::Asn1Time;
use openssl::bn::BigNum;
use openssl::ec::{EcGroup, EcKey};
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::{KeyType, PKey};
use openssl::rand::rand_bytes;
use openssl::x509::extension::{
    BasicConstraints, ExtendedKeyUsage, KeyUsage, SubjectAlternativeName,
};
use openssl::x509::{X509, X509Extension, X509Name};

pub(crate) fn chain_of(spec: &ChainSpec) -> Chain {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    Store::open(target.join("test-chains")).chain(spec).unwrap()
}

pub(crate) fn chain(algorithm: KeyAlgorithm) -> Chain {
    chain_of(&ChainSpec::new(algorithm))
}

/// A chain of a new CA whose end-entity certificate is for clients as well as for servers.
pub(crate) fn client_chain(algorithm: KeyAlgorithm) -> Chain {
    let (key, digest) = match algorithm {
        KeyAlgorithm::MlDsa87 => {
            let mut seed = [0; 32];
            rand_bytes(&mut seed).unwrap();
            let key = PKey::private_key_from_seed(None, KeyType::ML_DSA_87, None, &seed);
            (key.unwrap(), MessageDigest::null())
        }
        _ => {
            let curve = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1).unwrap();
            let key = EcKey::generate(&curve).unwrap();
            (PKey::from_ec_key(key).unwrap(), MessageDigest::sha256())
        }
    };
    let name = |text: &str| {
        let mut name = X509Name::builder().unwrap();
        name.append_entry_by_text("CN", text).unwrap();
        name.build()
    };
    let certificate = |serial: u32, subject: &str, extensions: &[X509Extension]| {
        let mut builder = X509::builder().unwrap();
        builder.set_version(2).unwrap();
        let serial = BigNum::from_u32(serial).unwrap().to_asn1_integer().unwrap();
        builder.set_serial_number(&serial).unwrap();
        builder.set_issuer_name(&name("Clients' CA")).unwrap();
        builder.set_subject_name(&name(subject)).unwrap();
        let days = |days| Asn1Time::days_from_now(days).unwrap();
        builder.set_not_before(&days(0)).unwrap();
        builder.set_not_after(&days(2)).unwrap();
        builder.set_pubkey(&key).unwrap();
        for extension in extensions {
            builder.append_extension2(extension).unwrap();
        }
        builder.sign(&key, digest).unwrap();
        builder.build().to_pem().unwrap()
    };
    let ca = [
        BasicConstraints::new().critical().ca().build().unwrap(),
        KeyUsage::new().critical().key_cert_sign().build().unwrap(),
    ];
    let root = certificate(1, "Clients' CA", &ca);
    let client = [
        KeyUsage::new()
            .critical()
            .digital_signature()
            .build()
            .unwrap(),
        ExtendedKeyUsage::new()
            .client_auth()
            .server_auth()
            .build()
            .unwrap(),
        subject_alternative_name("client.example"),
    ];
    let end_entity = certificate(2, "client.example", &client);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chain.pem");
    let key = key.private_key_to_pem_pkcs8().unwrap();
    std::fs::write(&path, [end_entity, root, key].concat()).unwrap();
    lastbyte_pki::load_pem(&PemFiles {
        chain: path,
        key: None,
        ca: None,
    })
    .unwrap()
}

fn subject_alternative_name(name: &str) -> X509Extension {
    let root = X509::builder().unwrap();
    let context = root.x509v3_context(None, None);
    SubjectAlternativeName::new()
        .dns(name)
        .build(&context)
        .unwrap()
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
}

/// The table of what one side of one stack can do, in the tests' own words.
pub(crate) fn can(stack: StackName, side: Side, feature: Feature) -> bool {
    use Feature as F;
    use Group::*;
    use KeyAlgorithm::*;
    use StackName as S;
    match (stack, feature) {
        (S::OpenSsl, _) => true,
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
