#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use lastbyte_pki::{KeyAlgorithm, test_chains};

use super::{EndEntity, client, server};
use crate::Part;
use crate::client::Outcome;
use crate::fixtures::{
    self, NAME, Sender, chain, checked, connect, connect_over, delivered, of_pki, pki,
    plain_client, shared, spec,
};
use crate::server::Chain;

const ML_DSA: KeyAlgorithm = KeyAlgorithm::MlDsa65;

fn outcome(done: &fixtures::Done) -> Option<Outcome> {
    let outcome = client::outcome(done.client.ssl())?;
    Some(outcome.map_or_else(|fallback| fallback.outcome, |()| Outcome::Used))
}

#[test]
fn what_dns_delivered_is_left_out() {
    let (own, root) = chain(&spec(ML_DSA));
    let lengths: Vec<_> = own.lengths().collect();
    let public_key = own.key().public_key_to_der().unwrap();
    let offers: Vec<_> = (1..=3)
        .map(|count| checked(delivered(&own, count), &root).unwrap())
        .collect();
    let chains = shared(vec![own]);
    let run = |offer| {
        let server = fixtures::server(&chains, EndEntity::RawPublicKey);
        connect(fixtures::client(&root), server, offer).unwrap()
    };
    let plain = run(None);
    assert_eq!(outcome(&plain), None);
    assert_eq!(server::omitted(plain.server.ssl()), None);
    assert_eq!(plain.client.ssl().peer_cert_chain().unwrap().len(), 3);

    for (count, offer) in (1..).zip(offers) {
        let done = run(Some((offer, EndEntity::RawPublicKey)));
        assert_eq!(outcome(&done), Some(Outcome::Used));
        let part = Part::ALL[count - 1];
        assert_eq!(server::omitted(done.server.ssl()), Some((part, count)));
        let mut saved: usize = lengths.iter().rev().take(count).map(|der| der + 5).sum();
        // The rest fits one record where the whole took two.
        saved += 22;
        // The ServerHello grows by 4 + 32 bytes.
        saved -= 36;
        if part == Part::EndEntity {
            // Its key remains, and the server says in five bytes that it is one.
            saved -= 5 + public_key.len() + 5;
            assert!(done.client.ssl().peer_certificate().is_none());
        } else {
            let sent = done.client.ssl().peer_cert_chain().unwrap().len();
            assert_eq!(sent, 3 - count);
            assert_eq!(done.client.ssl().verified_chain().unwrap().len(), 3);
        }
        assert_eq!(plain.from_server - done.from_server, saved, "{part}");
    }
}

#[test]
fn the_carrier_proves_the_delivered_end_entity() {
    let (own, root) = chain(&spec(ML_DSA));
    let offer = checked(delivered(&own, 3), &root).unwrap();
    let end_entity = own.end_entity().to_der().unwrap();
    let chains = shared(vec![own]);
    let server = || fixtures::server(&chains, EndEntity::Carrier);

    let offered = Some((offer.clone(), EndEntity::Carrier));
    let carrier = connect(fixtures::client(&root), server(), offered).unwrap();
    assert_eq!(outcome(&carrier), Some(Outcome::Used));
    let peer = carrier.client.ssl().peer_certificate().unwrap();
    assert_eq!(peer.to_der().unwrap(), end_entity);

    // Whoever takes raw public keys gets those.
    let offered = Some((offer, EndEntity::RawPublicKey));
    let raw = connect(fixtures::client(&root), server(), offered).unwrap();
    assert_eq!(outcome(&raw), Some(Outcome::Used));
    assert!(raw.client.ssl().peer_certificate().is_none());
    assert!(carrier.from_server < raw.from_server - 1500);
}

#[test]
fn another_key_behind_a_delivered_end_entity_is_refused() {
    // Somebody else's server, who has the record but not the key.
    let (own, root) = of_pki(&test_chains::for_name(NAME).unwrap());
    let (impostor, _) = of_pki(&test_chains::for_name(NAME).unwrap());
    let offer = checked(delivered(&own, 2), &root).unwrap();
    let raw_key = (EndEntity::RawPublicKey, &impostor);
    let carrier = (EndEntity::Carrier, &own);
    for (end_entity, sent) in [raw_key, carrier] {
        let chains = shared(vec![Chain::pretending(&own, sent, &impostor)]);
        let server = fixtures::server(&chains, end_entity);
        let offered = Some((offer.clone(), end_entity));
        let error = connect(fixtures::client(&root), server, offered).map(drop);
        assert!(error.unwrap_err().starts_with("client:"));
    }
}

#[test]
fn plain_clients_and_plain_servers_are_served() {
    let (own, root) = chain(&spec(ML_DSA));
    let offer = checked(delivered(&own, 2), &root).unwrap();
    let chains = shared(vec![own]);
    let plain = connect(
        plain_client(&root),
        fixtures::server(&chains, EndEntity::RawPublicKey),
        None,
    );
    assert_eq!(
        plain.unwrap().client.ssl().peer_cert_chain().unwrap().len(),
        3
    );

    // A server that does not know the extension.
    let pki = pki(&spec(ML_DSA));
    let mut server =
        openssl::ssl::SslContext::builder(openssl::ssl::SslMethod::tls_server()).unwrap();
    server.set_certificate(&pki.certificates()[0]).unwrap();
    for issuer in &pki.certificates()[1..] {
        server.add_extra_chain_cert(issuer.clone()).unwrap();
    }
    server.set_private_key(pki.key()).unwrap();
    let offered = Some((offer, EndEntity::RawPublicKey));
    let done = connect(fixtures::client(&root), server, offered).unwrap();
    assert_eq!(outcome(&done), Some(Outcome::RefusedByServer));
}

#[test]
fn a_rotated_chain_falls_back_and_the_previous_one_is_good_for_its_ttl() {
    let old = test_chains::for_name(NAME).unwrap();
    let new = test_chains::for_name(NAME).unwrap();
    let (old_chain, old_root) = of_pki(&old);
    let (new_chain, new_root) = of_pki(&new);
    let both = || {
        let mut client = fixtures::client(&old_root);
        let mut anchors = openssl::x509::store::X509StoreBuilder::new().unwrap();
        anchors.add_cert(old_root.clone()).unwrap();
        anchors.add_cert(new_root.clone()).unwrap();
        client.set_cert_store(anchors.build());
        client
    };
    let offers = [1, 2].map(|count| checked(delivered(&old_chain, count), &old_root).unwrap());
    let chains = shared(vec![old_chain]);
    let now = SystemTime::now();
    let until = now + Duration::from_secs(300);
    chains.update(|chains| chains.rotate(vec![new_chain], until));
    let run = |offer: &crate::validate::Offer| {
        let offered = Some((offer.clone(), EndEntity::RawPublicKey));
        let server = fixtures::server(&chains, EndEntity::RawPublicKey);
        outcome(&connect(both(), server, offered).unwrap())
    };
    for offer in &offers {
        assert_eq!(run(offer), Some(Outcome::Used));
    }
    chains.update(|chains| chains.expire(until));
    for offer in &offers {
        assert_eq!(run(offer), Some(Outcome::Mismatch));
    }
}

#[test]
fn a_digest_of_another_name_is_no_match() {
    let here = test_chains::for_name(NAME).unwrap();
    let there = test_chains::for_name("other.example").unwrap();
    let (here_chain, here_root) = of_pki(&here);
    let (there_chain, there_root) = of_pki(&there);
    // The client was told by DNS of this name that the other's CA certificates are its own.
    let foreign = checked(delivered(&there_chain, 1), &there_root).unwrap();
    let chains = shared(vec![here_chain, there_chain]);
    let server = fixtures::server(&chains, EndEntity::RawPublicKey);
    let offered = Some((foreign, EndEntity::RawPublicKey));
    let done = connect(fixtures::client(&here_root), server, offered).unwrap();
    assert_eq!(outcome(&done), Some(Outcome::Mismatch));
}

#[test]
fn after_a_hello_retry_request_both_hellos_still_say_it() {
    let (own, root) = chain(&spec(ML_DSA));
    let offer = checked(delivered(&own, 2), &root).unwrap();
    let chains = shared(vec![own]);
    let mut client = fixtures::client(&root);
    client.set_groups_list("X25519:P-256").unwrap();
    let mut server = fixtures::server(&chains, EndEntity::RawPublicKey);
    server.set_groups_list("P-256").unwrap();
    let offered = Some((offer, EndEntity::RawPublicKey));
    let done = connect(client, server, offered).unwrap();
    assert_eq!(outcome(&done), Some(Outcome::Used));
    assert_eq!(server::omitted(done.server.ssl()).unwrap().1, 2);
}

#[test]
fn several_algorithms_of_one_name_each_match_their_own_records() {
    let (ml_dsa, root) = chain(&spec(ML_DSA));
    let (ecdsa, ecdsa_root) = chain(&spec(KeyAlgorithm::EcdsaP256));
    let offers = [
        (checked(delivered(&ml_dsa, 2), &root).unwrap(), &root),
        (
            checked(delivered(&ecdsa, 2), &ecdsa_root).unwrap(),
            &ecdsa_root,
        ),
    ];
    let chains = shared(vec![ml_dsa, ecdsa]);
    for (offer, root) in offers {
        let server = fixtures::server(&chains, EndEntity::RawPublicKey);
        let offered = Some((offer, EndEntity::RawPublicKey));
        let done = connect(fixtures::client(root), server, offered).unwrap();
        assert_eq!(outcome(&done), Some(Outcome::Used));
    }
    // A client that knows ECDSA alone gets that chain, and no record is needed.
    let mut old = plain_client(&ecdsa_root);
    old.set_sigalgs_list("ecdsa_secp256r1_sha256").unwrap();
    let server = fixtures::server(&chains, EndEntity::RawPublicKey);
    connect(old, server, None).unwrap();
}

/// Where the extension begins in a hello, its type included.
fn position(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|window| window == [0, 64, 0, 32])
}

#[test]
fn an_extension_changed_on_the_way_ends_the_handshake() {
    let (own, root) = chain(&spec(ML_DSA));
    let offer = checked(delivered(&own, 2), &root).unwrap();
    let chains = shared(vec![own]);
    type Change = fn(&mut [u8], usize);
    let hide: Change = |bytes, at| bytes[at + 1] = 77;
    let change: Change = |bytes, at| bytes[at + 4] ^= 1;
    for sender in [Sender::Client, Sender::Server] {
        for how in [hide, change] {
            let mut changed = 0;
            let result = connect_over(
                &fixtures::client(&root).build(),
                &fixtures::server(&chains, EndEntity::RawPublicKey).build(),
                NAME,
                Some((offer.clone(), EndEntity::RawPublicKey)),
                &mut |from, bytes| {
                    if from == sender
                        && let Some(at) = position(bytes)
                    {
                        how(bytes, at);
                        changed += 1;
                    }
                },
            );
            assert_eq!(changed, 1);
            assert!(result.is_err());
        }
    }
}

#[test]
fn an_extension_of_another_length_is_a_decoding_error() {
    let (own, root) = chain(&spec(ML_DSA));
    let chains = shared(vec![own]);
    for length in [0, 8, 31, 33] {
        let mut client = plain_client(&root);
        client
            .add_custom_ext(
                64,
                super::hellos(),
                move |_, _, _| Ok(Some(vec![7; length])),
                |_, _, _, _| Ok(()),
            )
            .unwrap();
        let server = fixtures::server(&chains, EndEntity::RawPublicKey);
        let error = connect(client, server, None).map(drop).unwrap_err();
        assert!(error.starts_with("server:"), "{error}");
    }
}

#[test]
fn many_handshakes_at_once_share_the_chains() {
    let (own, root) = chain(&spec(KeyAlgorithm::EcdsaP256));
    let offer = checked(delivered(&own, 3), &root).unwrap();
    let chains = shared(vec![own]);
    let client = fixtures::client(&root).build();
    let server = fixtures::server(&chains, EndEntity::Carrier).build();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    for end_entity in [EndEntity::Carrier, EndEntity::RawPublicKey] {
                        let offered = Some((offer.clone(), end_entity));
                        connect_over(&client, &server, NAME, offered, &mut |_, _| {}).unwrap();
                    }
                }
            });
        }
    });
    assert_eq!(Arc::strong_count(&chains), 2);
}
