#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use lastbyte_pki::{ChainSpec, KeyAlgorithm, test_chains};
use openssl::ssl::{
    ExtensionContext, NameType, SslContextBuilder, SslRef, SslSession, SslSessionCacheMode,
    SslVerifyMode,
};
use openssl::x509::store::X509StoreBuilder;
use openssl::x509::{X509, X509Ref, X509StoreContext};

use super::{EndEntity, client, server};
use crate::Part;
use crate::client::{Fallback, Outcome};
use crate::fixtures::{
    self, NAME, Sender, chain, checked, connect, connect_over, connect_prepared, delivered, of_pki,
    pki, plain_client, shared, spec,
};
use crate::record::{Assembly, Fragment, RecordType, split};
use crate::server::{Chain, Chains};
use crate::validate::{Algorithms, Offer, Trust, validate};

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

/// How a connection ends whose application refuses certificates, and whom its callback was asked about.
fn refusing(
    end_entity: EndEntity,
    offer: Option<Offer>,
    server: SslContextBuilder,
    root: &X509,
    verdict: fn(usize) -> bool,
) -> (Result<fixtures::Done, String>, Vec<String>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let asked = Arc::clone(&seen);
    let mut client = fixtures::client(root);
    client.set_verify_callback(SslVerifyMode::PEER, move |fine, context| {
        let certificate = context.current_cert().map(|one| one.to_der().unwrap());
        // Whose connection it is, an application learns so.
        let ssl = context.ex_data(X509StoreContext::ssl_idx().unwrap());
        let name = ssl.and_then(|ssl| ssl.servername(NameType::HOST_NAME));
        let length = certificate.map_or(0, |der| der.len());
        let told = format!("{:?} {length} {fine}", name);
        let mut seen = asked.lock().unwrap();
        seen.push(told);
        fine && verdict(seen.len())
    });
    let done = connect(client, server, offer.map(|offer| (offer, end_entity)));
    let seen = seen.lock().unwrap().clone();
    (done, seen)
}

#[test]
fn the_applications_callback_has_the_last_word_in_every_mode() {
    let (own, root) = chain(&spec(ML_DSA));
    let offers: Vec<_> = (1..=3)
        .map(|count| checked(delivered(&own, count), &root).unwrap())
        .collect();
    let chains = shared(vec![own]);
    let [raw, carrier] = [EndEntity::RawPublicKey, EndEntity::Carrier];
    let mut modes = vec![(raw, None), (carrier, Some(offers[2].clone()))];
    modes.extend(offers.into_iter().map(|offer| (raw, Some(offer))));
    let run = |(end_entity, offer): &(EndEntity, Option<Offer>), verdict| {
        let server = fixtures::server(&chains, *end_entity);
        refusing(*end_entity, offer.clone(), server, &root, verdict)
    };
    let (plain, seen_in_plain) = run(&modes[0], |_| true);
    assert!(plain.is_ok());
    assert!(seen_in_plain.len() >= 3, "{seen_in_plain:?}");
    assert!(seen_in_plain[0].contains(NAME), "{seen_in_plain:?}");
    for mode in &modes {
        let (accepted, seen) = run(mode, |_| true);
        assert!(accepted.is_ok(), "{mode:?}");
        assert_eq!(seen, seen_in_plain, "{mode:?}");
        // The first certificate, and the last.
        for verdict in [(|_| false) as fn(usize) -> bool, |asked| asked < 3] {
            let (refused, _) = run(mode, verdict);
            assert!(refused.is_err(), "{mode:?}");
        }
    }
}

#[test]
fn the_chain_that_was_verified_is_handed_out_in_every_mode() {
    let (own, root) = chain(&spec(ML_DSA));
    let ders =
        |chain: Vec<X509>| -> Vec<_> { chain.iter().map(|one| one.to_der().unwrap()).collect() };
    let whole = ders(own.certificates().to_vec());
    let offer = |count| checked(delivered(&own, count), &root).unwrap();
    let [raw, carrier] = [EndEntity::RawPublicKey, EndEntity::Carrier];
    let offers = [
        None,
        Some((offer(1), raw)),
        Some((offer(2), raw)),
        Some((offer(3), raw)),
        Some((offer(3), carrier)),
    ];
    let chains = shared(vec![own]);
    for offered in offers {
        let server = fixtures::server(&chains, carrier);
        let done = connect(fixtures::client(&root), server, offered).unwrap();
        let verified = client::verified_chain(done.client.ssl()).unwrap();
        assert_eq!(ders(verified), whole);
    }
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
fn a_resumed_session_says_nothing_of_the_offer() {
    let (own, root) = chain(&spec(ML_DSA));
    for count in [2, 3] {
        let offer = checked(delivered(&own, count), &root).unwrap();
        let chains = shared(vec![Chain::pretending(&own, &own, &own)]);
        let session = Arc::new(Mutex::new(None));
        let kept = Arc::clone(&session);
        let mut client = fixtures::client(&root);
        client.set_session_cache_mode(SslSessionCacheMode::CLIENT);
        client.set_new_session_callback(move |_, new| {
            // A copy: OpenSSL forbids to resume the session of a connection that ends without closing.
            let copy = SslSession::from_der(&new.to_der().unwrap()).unwrap();
            *kept.lock().unwrap() = Some(copy);
        });
        let mut server = fixtures::server(&chains, EndEntity::RawPublicKey);
        server.set_session_id_context(b"test").unwrap();
        let (client, server) = (client.build(), server.build());
        let run = |session: Option<SslSession>| {
            let prepare = |ssl: &mut SslRef| {
                client::offer(ssl, offer.clone(), EndEntity::RawPublicKey).unwrap();
                if let Some(session) = &session {
                    super::ffi::resume(ssl, session);
                }
            };
            let mut done = connect_prepared(&client, &server, prepare, &mut |_, _| {}).unwrap();
            // The ticket comes after the handshake.
            done.read_at_client();
            done
        };
        assert_eq!(outcome(&run(None)), Some(Outcome::Used));
        let ticket = session.lock().unwrap().take();
        let again = run(Some(ticket.unwrap()));
        assert!(again.client.ssl().session_reused());
        assert_eq!(outcome(&again), None);
    }
}

#[test]
fn a_rotated_chain_falls_back_and_the_previous_one_is_good_for_its_ttl() {
    let old = test_chains::for_name(NAME).unwrap();
    let new = test_chains::for_name(NAME).unwrap();
    let (old_chain, old_root) = of_pki(&old);
    let (new_chain, new_root) = of_pki(&new);
    let both = || {
        let mut client = fixtures::client(&old_root);
        let mut anchors = X509StoreBuilder::new().unwrap();
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
    let run = |offer: &Offer| {
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

/// A hello of these groups: with X25519 first, the server asks for another hello.
fn with_retry(client: &mut SslContextBuilder, server: &mut SslContextBuilder) {
    client.set_groups_list("X25519:P-256").unwrap();
    server.set_groups_list("P-256").unwrap();
}

#[test]
fn nothing_of_the_first_hello_sticks_when_chains_are_loaded_before_the_second() {
    let of_name = || of_pki(&test_chains::for_name(NAME).unwrap());
    let ((old, root), (new, new_root)) = (of_name(), of_name());
    let (ml_dsa, ml_dsa_root) = chain(&spec(ML_DSA));
    let offer = checked(delivered(&old, 2), &root).unwrap();
    let new_der = new.end_entity().to_der().unwrap();
    let new = Chains::new(vec![new]);
    let roots = [root, new_root, ml_dsa_root];
    // A raw public key would have been sent, or a chain of an algorithm that no chain has any more.
    for (before, offer) in [(old, Some(offer)), (ml_dsa, None)] {
        let mut client = fixtures::client(&roots[0]);
        let mut trusted = X509StoreBuilder::new().unwrap();
        for root in &roots {
            trusted.add_cert(root.clone()).unwrap();
        }
        client.set_cert_store(trusted.build());
        let chains = shared(vec![before]);
        let mut server = fixtures::server(&chains, EndEntity::RawPublicKey);
        with_retry(&mut client, &mut server);
        let mut loaded = false;
        let is_offer = offer.is_some();
        let done = connect_over(
            &client.build(),
            &server.build(),
            NAME,
            offer.map(|offer| (offer, EndEntity::RawPublicKey)),
            &mut |from, _| {
                // The HelloRetryRequest is what the server sends first.
                if from == Sender::Server && !loaded {
                    chains.update(|chains| *chains = new.clone());
                    loaded = true;
                }
            },
        );
        let done = done.unwrap();
        assert_eq!(outcome(&done), is_offer.then_some(Outcome::Mismatch));
        let sent = done.client.ssl().peer_certificate().unwrap();
        assert_eq!(sent.to_der().unwrap(), new_der);
        assert_eq!(server::omitted(done.server.ssl()), None);
    }
}

#[test]
fn a_second_hello_without_the_digest_gets_the_whole_chain() {
    let (own, root) = chain(&spec(ML_DSA));
    let digest = *own.topmost(3).unwrap().digest().as_bytes();
    let chains = shared(vec![own]);
    for second in [None, Some([7; 32])] {
        let mut client = plain_client(&root);
        let hellos = AtomicUsize::new(0);
        let say = move |_: &mut SslRef, _: ExtensionContext, _: Option<(usize, &X509Ref)>| {
            let first = hellos.fetch_add(1, Ordering::Relaxed) == 0;
            Ok(if first { Some(digest) } else { second })
        };
        client
            .add_custom_ext(64, super::hellos(), say, |_, _, _, _| Ok(()))
            .unwrap();
        let mut server = fixtures::server(&chains, EndEntity::RawPublicKey);
        with_retry(&mut client, &mut server);
        let done = connect_prepared(
            &client.build(),
            &server.build(),
            |ssl| super::ffi::set_server_certificate_types(ssl, &[2, 0]).unwrap(),
            &mut |_, _| {},
        )
        .unwrap();
        let sent = done.client.ssl().peer_cert_chain().unwrap();
        assert_eq!(sent.len(), 3, "{second:?}");
    }
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

#[test]
fn chains_of_one_ca_are_all_offered_to_whoever_has_that() {
    // One root and one intermediate for both.
    let ecdsa_spec = spec(KeyAlgorithm::EcdsaP256);
    let ml_dsa_spec = ChainSpec {
        leaf: ML_DSA,
        ..ecdsa_spec.clone()
    };
    let (ml_dsa, root) = chain(&ml_dsa_spec);
    let (ecdsa, same_root) = chain(&ecdsa_spec);
    assert_eq!(root.to_der().unwrap(), same_root.to_der().unwrap());
    let offer = checked(delivered(&ml_dsa, 2), &root).unwrap();
    let chains = shared(vec![ml_dsa, ecdsa]);
    for (algorithms, certificate) in [
        ("ecdsa_secp256r1_sha256", "id-ecPublicKey"),
        ("mldsa65:ecdsa_secp256r1_sha256", "id-ml-dsa-65"),
    ] {
        let mut client = fixtures::client(&root);
        client.set_sigalgs_list(algorithms).unwrap();
        let server = fixtures::server(&chains, EndEntity::RawPublicKey);
        let offered = Some((offer.clone(), EndEntity::RawPublicKey));
        let done = connect(client, server, offered).unwrap();
        assert_eq!(outcome(&done), Some(Outcome::Used));
        let sent = done.client.ssl().peer_certificate().unwrap();
        let algorithm = super::ffi::key_algorithm(&sent);
        assert_eq!(algorithm.short_name().unwrap(), certificate);
    }
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

/// What an attacker puts in the place of a record, and what comes of it.
fn poisons(own: &Chain, other: &Chain, stale: &Chain) -> Vec<(&'static str, Vec<u8>, Outcome)> {
    let record = |chain: &Chain, count| {
        let list = chain.topmost(count).unwrap();
        let fragments = split(chain.part(count), &list).unwrap();
        fragments[0].encode(RecordType::DEFAULT)
    };
    let good = record(own, 2);
    let mut version = good.clone();
    version[0] = 9;
    let mut forged = good.clone();
    let last = forged.len() - 1;
    forged[last] ^= 1;
    let mut bomb = good[..36].to_vec();
    bomb.extend([0, 0, 1, 48].repeat(16_000));
    let garbage: Vec<u8> = (0..64_000u32).map(|n| (n * 131 % 251) as u8).collect();
    vec![
        ("nothing", vec![], Outcome::Invalid),
        ("another version", version, Outcome::Invalid),
        (
            "cut short",
            good[..good.len() - 1].to_vec(),
            Outcome::Invalid,
        ),
        ("forged", forged, Outcome::Invalid),
        ("a bomb", bomb, Outcome::Invalid),
        ("64 KB of garbage", garbage, Outcome::Invalid),
        (
            "another name's end-entity",
            record(other, 2),
            Outcome::Invalid,
        ),
        ("another name's CA", record(other, 1), Outcome::Mismatch),
        ("a stale chain", record(stale, 2), Outcome::Mismatch),
        ("a stale chain's CA", record(stale, 1), Outcome::Mismatch),
    ]
}

#[test]
fn poisoned_records_end_in_verified_connections() {
    let [own, other, stale] =
        [NAME, "other.example", NAME].map(|name| of_pki(&test_chains::for_name(name).unwrap()));
    // The attacker may be a customer of a CA that the client trusts.
    let roots = [&own.1, &other.1, &stale.1].map(Clone::clone);
    let anchors = || {
        let mut anchors = X509StoreBuilder::new().unwrap();
        for root in &roots {
            anchors.add_cert(root.clone()).unwrap();
        }
        anchors.build()
    };
    let poisons = poisons(&own.0, &other.0, &stale.0);
    let chains = shared(vec![own.0]);
    let run = |offer: Option<Offer>| {
        let mut client = fixtures::client(&own.1);
        client.set_cert_store(anchors());
        let server = fixtures::server(&chains, EndEntity::RawPublicKey);
        connect(
            client,
            server,
            offer.map(|offer| (offer, EndEntity::RawPublicKey)),
        )
        .unwrap()
    };
    let plain = run(None).from_server;
    for (what, rdata, expected) in poisons {
        let trust = Trust {
            anchors: &anchors(),
            at: SystemTime::now(),
            algorithms: Algorithms::All,
        };
        let assembled = Fragment::decode(RecordType::DEFAULT, &rdata).and_then(|fragment| {
            let mut assembly = Assembly::default();
            assembly.add(fragment)?;
            assembly.finish().remove(0)
        });
        let offer = assembled
            .map_err(|error| Fallback::new(Outcome::Invalid, error.to_string()))
            .and_then(|delivered| validate(delivered, NAME, &trust));
        let refused = offer.as_ref().err().map(|fallback| fallback.outcome);
        let done = run(offer.ok());
        assert_eq!(refused.or(outcome(&done)), Some(expected), "{what}");
        // The connection is verified, with the chain that the server sent.
        let ssl = done.client.ssl();
        assert_eq!(ssl.verify_result(), openssl::x509::X509VerifyResult::OK);
        assert_eq!(ssl.peer_cert_chain().unwrap().len(), 2, "{what}");
        // All that is more than in plain TLS is the extension in the server's hello.
        let answered = if expected == Outcome::Mismatch { 36 } else { 0 };
        assert!(done.from_server.abs_diff(plain + answered) <= 4, "{what}");
    }
}
