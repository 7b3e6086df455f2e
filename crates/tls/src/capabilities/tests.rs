#![allow(clippy::unwrap_used)]

use lastbyte_sizes::Elision;
use pqtlsad::openssl::EndEntity;

use super::*;
use crate::abridged::Listing;
use crate::{CertificateCompression, Compressions};

fn of(stack: StackName, side: Side) -> Option<Capabilities> {
    let mut all = capabilities().into_iter();
    all.find(|found| found.stack == stack && found.side == side)
}

/// What stacks have of their own.
#[cfg(any(feature = "rustls", feature = "s2n-tls"))]
fn common() -> Vec<KeyAlgorithm> {
    let all = KeyAlgorithm::ALL.into_iter();
    all.filter(|key| key.provided().is_none()).collect()
}

#[test]
fn openssl_can_do_everything_but_compress() {
    let compressions = Compressions::both(&CertificateCompression::ALL);
    for side in [Side::Client, Side::Server] {
        let openssl = of(StackName::OpenSsl, side).unwrap();
        assert_eq!(openssl.key_algorithms, KeyAlgorithm::ALL);
        assert!(
            openssl
                .groups
                .iter()
                .all(|(_, groups)| groups == &Group::ALL)
        );
        assert_eq!(openssl.features, Feature::ALL);
        let [abridges, lists] = [(); 2].map(|()| Listing::default());
        for (delivery, can) in [
            (Delivery::Compressed(compressions.clone()), false),
            (
                Delivery::Abridged {
                    server: abridges,
                    client: lists,
                },
                false,
            ),
            (Delivery::Elided(Elision::default()), true),
            (Delivery::PqtlsAd(EndEntity::default()), true),
        ] {
            let delivered = delivers(StackName::OpenSsl, side, &delivery);
            assert_eq!(delivered, can, "{delivery:?}");
        }
        assert_eq!(openssl.max_tickets, u8::MAX);
        assert_eq!(openssl.two_key_shares.len(), 8 * 7);
        assert_eq!(openssl.max_certificate_message, (1 << 24) + 3);
    }
}

#[test]
fn every_stack_that_is_built_in_tells_its_version() {
    for found in capabilities() {
        let version = crate::version(found.stack).unwrap();
        assert!(version.contains('.'), "{version}");
        assert!(!version.contains("unknown"), "{version}");
    }
}

#[cfg(feature = "rustls")]
#[test]
fn rustls_sends_one_key_share_and_the_half_of_it() {
    let client = of(StackName::Rustls, Side::Client).unwrap();
    assert_eq!(
        client.two_key_shares,
        [
            [Group::Secp256r1MlKem768, Group::Secp256r1],
            [Group::X25519MlKem768, Group::X25519],
        ]
    );
    assert_eq!(client.key_algorithms, common());
    assert_eq!(
        client.max_certificate_message,
        crate::rustls::MAX_CERTIFICATE_MESSAGE
    );
}

#[cfg(feature = "s2n-tls")]
#[test]
fn s2n_tls_does_what_its_policies_say() {
    let client = of(StackName::S2nTls, Side::Client).unwrap();
    assert_eq!(
        client.two_key_shares,
        [
            [Group::X25519MlKem768, Group::Secp256r1],
            [Group::X25519MlKem768, Group::X25519],
            [Group::MlKem1024, Group::Secp384r1],
        ]
    );
    assert_eq!(client.key_algorithms, common());
    let server = of(StackName::S2nTls, Side::Server).unwrap();
    assert_eq!(server.max_tickets, 1);
    assert!(!server.features.contains(&Feature::EarlyData));
}
