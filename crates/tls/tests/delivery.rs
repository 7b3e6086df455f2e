//! Chains that DNS delivered, as the observer sees them on the wire.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::time::SystemTime;

use lastbyte_pki::{Chain, ChainSpec, KeyAlgorithm, RootDelivery, SlhDsa};
use lastbyte_tls::observer::Message;
use lastbyte_tls::observer::{CertificateType, Observation, Side};
use lastbyte_tls::{Delivery, Group, Stack, TlsConfig, TlsError, handshake_between, stack};
use openssl::x509::store::X509StoreBuilder;
use pqtlsad::Part;
use pqtlsad::openssl::EndEntity;
use pqtlsad::record::Delivered;
use pqtlsad::validate::{Algorithms, Offer, Trust, validate};

use crate::common::chain_of;

fn chain(algorithm: KeyAlgorithm) -> Chain {
    let spec = ChainSpec {
        intermediates: 0,
        root: RootDelivery::Sent,
        ..ChainSpec::new(algorithm)
    };
    chain_of(&spec)
}

fn offer(chain: &Chain, part: Part) -> Offer {
    let own = pqtlsad::server::Chain::new(chain.certificates().to_vec(), chain.key().clone());
    let own = own.unwrap();
    let mut anchors = X509StoreBuilder::new().unwrap();
    anchors.add_cert(chain.root().clone()).unwrap();
    let delivered = Delivered {
        part,
        list: own.topmost(own.count(part).unwrap()).unwrap(),
    };
    let trust = Trust {
        anchors: &anchors.build(),
        at: SystemTime::now(),
        algorithms: Algorithms::All,
    };
    validate(delivered, chain.server_name(), &trust).unwrap()
}

fn prepare(chain: &Chain, end_entity: EndEntity) -> Box<dyn Stack> {
    stack(&TlsConfig {
        delivery: Delivery::PqtlsAd(end_entity),
        ..TlsConfig::new(Group::MlKem768, chain)
    })
    .unwrap()
}

fn observe(stack: &dyn Stack, offer: Option<&Offer>) -> Observation {
    let client = match offer {
        Some(offer) => stack.offering_client(offer),
        None => stack.client(),
    };
    let handshake = handshake_between(client.unwrap(), stack.server().unwrap()).unwrap();
    let delivery = handshake.client.delivery();
    assert_eq!(delivery, offer.map(|_| Ok(())));
    handshake.observer.observe(&handshake.client.key_log())
}

#[test]
fn each_part_leaves_its_bytes_out() {
    let slh_dsa = KeyAlgorithm::SlhDsa(SlhDsa::Sha2_192f);
    for algorithm in [KeyAlgorithm::MlDsa65, slh_dsa] {
        let chain = chain(algorithm);
        let lengths: Vec<usize> = (chain.certificates().iter())
            .map(|certificate| certificate.to_der().unwrap().len())
            .collect();
        let stack = prepare(&chain, EndEntity::RawPublicKey);
        let plain = observe(stack.as_ref(), None);
        assert_eq!(plain.certificates, lengths);
        assert_eq!(plain.offered_certificates, None);

        let root = offer(&chain, Part::Root);
        let without_root = observe(stack.as_ref(), Some(&root));
        assert_eq!(without_root.certificates, lengths[..1]);
        assert_eq!(without_root.offered_certificates, Some(*root.digest()));
        assert_eq!(without_root.answered_certificates, Some(*root.digest()));
        let grown = |now: Option<usize>, before: Option<usize>| now.unwrap() - before.unwrap();
        let hellos = [
            (
                without_root.bytes(Message::ClientHello),
                plain.bytes(Message::ClientHello),
            ),
            (
                without_root.bytes(Message::ServerHello),
                plain.bytes(Message::ServerHello),
            ),
        ];
        assert_eq!(hellos.map(|(now, before)| grown(now, before)), [36, 36]);
        assert_eq!(
            grown(
                plain.bytes(Message::Certificate),
                without_root.bytes(Message::Certificate)
            ),
            lengths[1] + 5
        );

        let whole = offer(&chain, Part::EndEntity);
        let raw_key = observe(stack.as_ref(), Some(&whole));
        let key = chain.key().public_key_to_der().unwrap().len();
        assert_eq!(raw_key.certificate_type, CertificateType::RawPublicKey);
        assert_eq!(
            raw_key.bytes(Message::Certificate),
            Some(4 + 1 + 3 + 3 + key + 2)
        );

        let carrier = observe(prepare(&chain, EndEntity::Carrier).as_ref(), Some(&whole));
        assert_eq!(carrier.certificate_type, CertificateType::X509);
        // A digest in place of a key, and a signature of Ed25519.
        assert!(carrier.bytes(Message::Certificate).unwrap() < 250);
    }
}

#[test]
fn the_plan_is_what_goes_over_the_wire() {
    let chain = chain(KeyAlgorithm::MlDsa65);
    let own = pqtlsad::server::Chain::new(chain.certificates().to_vec(), chain.key().clone());
    let plan = pqtlsad::flight::Plan::new(&own.unwrap(), 1088, Default::default());
    assert_eq!(plan.chosen, 1);
    let stack = prepare(&chain, EndEntity::RawPublicKey);
    let offers = [None, Some(Part::Root), Some(Part::EndEntity)];
    for (flight, part) in plan.flights.iter().zip(offers) {
        let offer = part.map(|part| offer(&chain, part));
        let seen = observe(stack.as_ref(), offer.as_ref());
        assert_eq!(flight.part, part);
        assert_eq!(Some(flight.server_hello), seen.bytes(Message::ServerHello));
        assert_eq!(Some(flight.certificate), seen.bytes(Message::Certificate));
        assert_eq!(
            Some(flight.certificate_verify),
            seen.bytes(Message::CertificateVerify)
        );
        let sent = seen
            .flights
            .iter()
            .find(|flight| flight.sender == Side::Server);
        assert_eq!(flight.bytes, sent.unwrap().wire_bytes);
    }
}

#[test]
fn stacks_for_whole_chains_take_no_offers() {
    let chain = chain(KeyAlgorithm::MlDsa65);
    let offer = offer(&chain, Part::Root);
    let plain = stack(&TlsConfig::new(Group::MlKem768, &chain)).unwrap();
    let refused = plain.offering_client(&offer).map(drop);
    assert_eq!(refused, Err(TlsError::NoOffers));
}

/// Intermediates that a server leaves out for clients that have them.
mod elision {
    use lastbyte_sizes::{Elision, Fallback, Held, Signal};
    use lastbyte_tls::{Retry, anchors, first_attempt};

    use super::*;

    const INTERMEDIATES: usize = 2;

    fn spec() -> ChainSpec {
        ChainSpec {
            intermediates: INTERMEDIATES as u8,
            root: RootDelivery::Sent,
            ..ChainSpec::new(KeyAlgorithm::MlDsa44)
        }
    }

    fn elided(elision: Elision) -> Box<dyn Stack> {
        stack(&TlsConfig {
            delivery: Delivery::Elided(elision),
            ..TlsConfig::new(Group::X25519, &chain_of(&spec()))
        })
        .unwrap()
    }

    fn last(stack: &dyn Stack, retry: Option<&Retry>) -> Observation {
        let client = match retry {
            Some(retry) => stack.retrying_client(retry),
            None => stack.client(),
        };
        let handshake = handshake_between(client.unwrap(), stack.server().unwrap()).unwrap();
        handshake.observer.observe(&handshake.client.key_log())
    }

    #[test]
    fn every_handshake_is_as_arithmetic_has_it() {
        let chain = chain_of(&spec());
        let lengths: Vec<usize> = (chain.certificates().iter())
            .map(|certificate| certificate.to_der().unwrap().len())
            .collect();
        assert_eq!(lengths, spec().certificate_lengths().unwrap());
        let plain = stack(&TlsConfig::new(Group::X25519, &chain)).unwrap();
        let plain = last(plain.as_ref(), None);
        for signal in Signal::ALL {
            for client in Held::ALL {
                for fallback in Fallback::ALL {
                    let elision = Elision {
                        signal,
                        client,
                        fallback,
                    };
                    let stack = elided(elision);
                    let failed = match client {
                        Held::Current => None,
                        Held::Stale if elision.retries() => first_attempt(stack.as_ref()).unwrap(),
                        Held::Stale => None,
                    };
                    assert_eq!(failed.is_some(), elision.retries(), "{elision:?}");
                    let retry = failed.as_ref().map(|failed| &failed.retry);
                    let first = failed
                        .as_ref()
                        .map(|failed| failed.observer.observe(&failed.keys));
                    let seen = [first, Some(last(stack.as_ref(), retry))];
                    let expected = elision.handshakes(INTERMEDIATES);
                    for (seen, expected) in seen.into_iter().flatten().zip(expected) {
                        let more =
                            |message| seen.bytes(message).unwrap() - plain.bytes(message).unwrap();
                        assert_eq!(
                            more(Message::ClientHello),
                            expected.client_hello,
                            "{elision:?}"
                        );
                        assert_eq!(
                            more(Message::EncryptedExtensions),
                            expected.encrypted_extensions,
                            "{elision:?}"
                        );
                        let count = expected.sent.count(INTERMEDIATES, lengths.len());
                        assert_eq!(seen.certificates, lengths[..count], "{elision:?}");
                        assert_eq!(
                            seen.bytes(Message::Certificate).unwrap(),
                            expected.certificate_bytes(INTERMEDIATES, &lengths),
                            "{elision:?}"
                        );
                        assert_eq!(seen.is_anchored, expected.certificate > 0, "{elision:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_named_and_answered_is_seen() {
        let elision = Elision {
            signal: Signal::TrustAnchors,
            client: Held::Stale,
            fallback: Fallback::Short,
        };
        let stack = elided(elision);
        let failed = first_attempt(stack.as_ref()).unwrap().unwrap();
        let seen = failed.observer.observe(&failed.keys);
        let earlier = anchors::of_earlier(INTERMEDIATES);
        assert_eq!(seen.named_anchors, Some(vec![earlier]));
        assert_eq!(seen.available_anchors, anchors::available(INTERMEDIATES));
        let root = anchors::of_level(0);
        assert_eq!(failed.retry, Retry::Anchor(root.clone()));
        let seen = last(stack.as_ref(), Some(&failed.retry));
        assert_eq!(seen.named_anchors, Some(vec![root]));
        assert!(seen.is_anchored);
    }

    #[test]
    fn a_client_without_the_intermediate_fails_and_tries_once() {
        let stale = Elision {
            client: Held::Stale,
            ..Elision::default()
        };
        let stack = elided(stale);
        let failed = handshake_between(stack.client().unwrap(), stack.server().unwrap());
        assert!(matches!(
            failed.map(drop),
            Err(TlsError::Certificate { .. })
        ));
        let failed = first_attempt(stack.as_ref()).unwrap().unwrap();
        let seen = failed.observer.observe(&failed.keys);
        assert!(seen.suppresses_cas);
        assert_eq!(failed.retry, Retry::Whole);
        let (sender, alert) = seen.alert.unwrap();
        // unknown_ca.
        assert_eq!((sender, alert.0), (Side::Client, 48));
        assert!(!last(stack.as_ref(), Some(&failed.retry)).suppresses_cas);
        // A client of another delivery has nothing else to try.
        let plain = stack_of_whole_chains();
        let refused = plain.retrying_client(&Retry::Whole).map(drop);
        assert_eq!(refused, Err(TlsError::NoRetry));
    }

    fn stack_of_whole_chains() -> Box<dyn Stack> {
        stack(&TlsConfig::new(Group::X25519, &chain_of(&spec()))).unwrap()
    }
}
