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
