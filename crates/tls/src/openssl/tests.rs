#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use lastbyte_pki::{ChainSpec, KeyAlgorithm, RootDelivery, test_chains};
use openssl::hash::MessageDigest;
use openssl::pkey::PKey;
use openssl::ssl::AlpnError;
use openssl::x509::X509;
use proptest::prelude::*;

use super::*;
use crate::fixtures::{chain, fast, observe, openssl, plain_chain};
use crate::observer::Message;
use crate::observer::{MessageType, Observation, Side};
use crate::pairing::Pairing;
use crate::{Group, Handshake, Stack, handshake_between, handshake_in_memory, names};

#[test]
fn every_group_is_negotiated_at_once() {
    // Group, ClientHello, ServerHello. These sizes hold for the name server.example.
    let table = [
        (Group::Secp256r1, 266, 155),
        (Group::X25519, 233, 122),
        (Group::Secp384r1, 298, 187),
        (Group::Secp256r1MlKem768, 1444, 1243),
        (Group::X25519MlKem768, 1411, 1210),
        (Group::Secp384r1MlKem1024, 1860, 1755),
        (Group::MlKem768, 1379, 1178),
        (Group::MlKem1024, 1763, 1658),
    ];
    assert_eq!(table.map(|(group, ..)| group), Group::ALL);
    let chain = plain_chain(KeyAlgorithm::EcdsaP256);
    for (group, client_hello, server_hello) in table {
        let observation = observe(&openssl(group, &chain));
        assert_eq!(observation.group, Some(group.code_point()), "{group}");
        assert_eq!(
            observation.bytes(Message::ClientHello),
            Some(client_hello),
            "{group}"
        );
        assert_eq!(
            observation.bytes(Message::ServerHello),
            Some(server_hello),
            "{group}"
        );
        assert_eq!(
            observation.bytes(Message::HelloRetryRequest),
            None,
            "{group}"
        );
        assert_eq!(
            observation.server_name.as_deref(),
            Some("server.example"),
            "{group}"
        );
    }
}

#[test]
fn every_algorithm_proves_its_chain() {
    use lastbyte_pki::SlhDsa::*;

    // Signature scheme, and the signature in a CertificateVerify.
    let table = [
        (KeyAlgorithm::EcdsaP256, "ecdsa_secp256r1_sha256", 68..=72),
        (KeyAlgorithm::EcdsaP384, "ecdsa_secp384r1_sha384", 100..=104),
        (KeyAlgorithm::Rsa2048, "rsa_pss_rsae_sha256", 256..=256),
        (KeyAlgorithm::Rsa3072, "rsa_pss_rsae_sha256", 384..=384),
        (KeyAlgorithm::Rsa4096, "rsa_pss_rsae_sha256", 512..=512),
        (KeyAlgorithm::MlDsa44, "mldsa44", 2420..=2420),
        (KeyAlgorithm::MlDsa65, "mldsa65", 3309..=3309),
        (KeyAlgorithm::MlDsa87, "mldsa87", 4627..=4627),
        (
            KeyAlgorithm::SlhDsa(Sha2_128s),
            "slhdsa_sha2_128s",
            7856..=7856,
        ),
        (
            KeyAlgorithm::SlhDsa(Sha2_128f),
            "slhdsa_sha2_128f",
            17088..=17088,
        ),
        (
            KeyAlgorithm::SlhDsa(Sha2_192s),
            "slhdsa_sha2_192s",
            16224..=16224,
        ),
        (
            KeyAlgorithm::SlhDsa(Sha2_192f),
            "slhdsa_sha2_192f",
            35664..=35664,
        ),
        (
            KeyAlgorithm::SlhDsa(Sha2_256s),
            "slhdsa_sha2_256s",
            29792..=29792,
        ),
        (
            KeyAlgorithm::SlhDsa(Sha2_256f),
            "slhdsa_sha2_256f",
            49856..=49856,
        ),
        (
            KeyAlgorithm::SlhDsa(Shake128s),
            "slhdsa_shake_128s",
            7856..=7856,
        ),
        (
            KeyAlgorithm::SlhDsa(Shake128f),
            "slhdsa_shake_128f",
            17088..=17088,
        ),
        (
            KeyAlgorithm::SlhDsa(Shake192s),
            "slhdsa_shake_192s",
            16224..=16224,
        ),
        (
            KeyAlgorithm::SlhDsa(Shake192f),
            "slhdsa_shake_192f",
            35664..=35664,
        ),
        (
            KeyAlgorithm::SlhDsa(Shake256s),
            "slhdsa_shake_256s",
            29792..=29792,
        ),
        (
            KeyAlgorithm::SlhDsa(Shake256f),
            "slhdsa_shake_256f",
            49856..=49856,
        ),
        (KeyAlgorithm::FnDsa512, "fndsa512", 666..=666),
        (KeyAlgorithm::FnDsa1024, "fndsa1024", 1280..=1280),
    ];
    assert_eq!(
        table.clone().map(|(algorithm, ..)| algorithm),
        KeyAlgorithm::ALL
    );
    for (algorithm, scheme, signature_bytes) in table {
        let chain = plain_chain(algorithm);
        let observation = observe(&openssl(Group::X25519, &chain));
        assert_eq!(
            observation.signature.and_then(names::signature_scheme),
            Some(scheme)
        );
        // The header takes 4 bytes, the scheme 2, the length 2.
        let signature = observation.bytes(Message::CertificateVerify).unwrap() - 8;
        assert!(
            signature_bytes.contains(&signature),
            "{algorithm}: {signature}"
        );
        assert_chain_was_sent(&observation, &chain);
    }
}

/// Each costs 2 bytes of the ClientHello, and only arms that need it pay them.
#[test]
fn only_the_signatures_of_the_chain_are_offered() {
    let bytes = |leaf, ca| {
        let spec = ChainSpec {
            ca,
            root_key: ca,
            ..ChainSpec::new(leaf)
        };
        let observation = observe(&openssl(Group::X25519, &chain(&spec)));
        assert_chain_was_sent(&observation, &chain(&spec));
        observation.bytes(Message::ClientHello)
    };
    let slh_dsa = KeyAlgorithm::SlhDsa(lastbyte_pki::SlhDsa::Sha2_192f);
    assert_eq!(bytes(KeyAlgorithm::FnDsa512, slh_dsa), Some(233 + 4));
    assert_eq!(bytes(KeyAlgorithm::EcdsaP256, slh_dsa), Some(233 + 2));
    assert_eq!(
        bytes(KeyAlgorithm::FnDsa512, KeyAlgorithm::MlDsa44),
        Some(233 + 2)
    );
    assert_eq!(
        bytes(KeyAlgorithm::MlDsa44, KeyAlgorithm::MlDsa44),
        Some(233)
    );
}

#[test]
fn the_chain_is_sent_as_it_is() {
    let plain = ChainSpec::new(KeyAlgorithm::EcdsaP256);
    for (spec, certificates) in [
        (
            ChainSpec {
                intermediates: 0,
                ..plain.clone()
            },
            1,
        ),
        (plain.clone(), 2),
        (
            ChainSpec {
                root: RootDelivery::Sent,
                ..plain.clone()
            },
            3,
        ),
        (
            ChainSpec {
                intermediates: 3,
                ..plain.clone()
            },
            4,
        ),
        (
            ChainSpec {
                certificate_bytes: Some(16_000),
                ..plain.clone()
            },
            2,
        ),
        (
            ChainSpec {
                certificate_bytes: Some(120_000),
                ..plain.clone()
            },
            2,
        ),
        (
            ChainSpec {
                certificate_bytes: Some(1_000_000),
                ..plain.clone()
            },
            2,
        ),
    ] {
        let chain = chain(&spec);
        let observation = observe(&openssl(Group::X25519, &chain));
        assert_eq!(observation.certificates.len(), certificates, "{spec}");
        assert_chain_was_sent(&observation, &chain);
        if let Some(bytes) = spec.certificate_bytes {
            assert_eq!(observation.bytes(Message::Certificate), Some(bytes));
        }
    }
}

fn assert_chain_was_sent(observation: &Observation, chain: &Chain) {
    assert_eq!(
        observation.bytes(Message::Certificate),
        Some(chain.certificate_message_bytes())
    );
    let certificates: Vec<usize> = chain
        .certificates()
        .iter()
        .map(|certificate| certificate.to_der().unwrap().len())
        .collect();
    assert_eq!(observation.certificates, certificates);
}

#[test]
fn the_flights_of_a_full_handshake() {
    let observation = observe(&fast());
    let sizes = |flight: usize| {
        let flight = observation.flights.get(flight).unwrap();
        let kinds: Vec<MessageType> = flight.messages.iter().map(|message| message.kind).collect();
        let bytes: usize = flight.messages.iter().map(|message| message.bytes).sum();
        (
            flight.sender,
            flight.records,
            kinds,
            flight.wire_bytes - bytes,
        )
    };
    use MessageType::*;
    const HEADER: usize = 5;
    const PROTECTION: usize = HEADER + 1 + 16;
    const CHANGE_CIPHER_SPEC: usize = HEADER + 1;
    assert_eq!(observation.flights.len(), 3);
    assert_eq!(sizes(0), (Side::Client, 1, vec![ClientHello], HEADER));
    assert_eq!(
        sizes(1),
        (
            Side::Server,
            6,
            vec![
                ServerHello,
                EncryptedExtensions,
                Certificate,
                CertificateVerify,
                Finished
            ],
            HEADER + CHANGE_CIPHER_SPEC + 4 * PROTECTION,
        ),
    );
    assert_eq!(
        sizes(2),
        (
            Side::Client,
            2,
            vec![Finished],
            CHANGE_CIPHER_SPEC + PROTECTION
        )
    );
}

#[test]
fn every_handshake_is_full_and_gives_no_ticket() {
    let stack = fast();
    for _ in 0..2 {
        let observation = observe(&stack);
        assert_eq!(observation.version, Some(0x0304));
        assert_eq!(observation.resumed, Some(false));
        assert_eq!(
            observation.cipher_suite.and_then(names::cipher_suite),
            Some("TLS_AES_256_GCM_SHA384"),
        );

        let (mut client, mut server) = before_the_last_flight(&stack);
        assert_eq!(client.advance(), Ok(Progress::Established));
        server.receive(&sent_by(client.as_mut()));
        assert_eq!(server.advance(), Ok(Progress::Established));
        assert_eq!(sent_by(server.as_mut()), []);
    }
}

#[test]
fn the_observer_opens_every_cipher_suite() {
    let chain = plain_chain(KeyAlgorithm::EcdsaP256);
    for (suite, finished) in [
        ("TLS_AES_128_GCM_SHA256", 36),
        ("TLS_AES_256_GCM_SHA384", 52),
        ("TLS_CHACHA20_POLY1305_SHA256", 36),
    ] {
        let observation = observe(&customised(&chain, |client, _| {
            client.set_ciphersuites(suite).unwrap();
        }));
        assert_eq!(
            observation.cipher_suite.and_then(names::cipher_suite),
            Some(suite)
        );
        assert_eq!(observation.bytes(Message::ServerFinished), Some(finished));
        assert_eq!(observation.bytes(Message::ClientFinished), Some(finished));
        assert_chain_was_sent(&observation, &chain);
    }
}

#[test]
fn the_observer_follows_a_hello_retry_request() {
    let chain = plain_chain(KeyAlgorithm::EcdsaP256);
    let stack = Pairing::new(&TlsConfig {
        key_shares: vec![Group::X25519],
        ..TlsConfig::new(Group::Secp384r1, &chain)
    })
    .unwrap();
    let observation = observe(&stack);
    assert_eq!(observation.group, Some(Group::Secp384r1.code_point()));
    let first = observation.bytes(Message::ClientHello).unwrap();
    // A key share of 97 bytes instead of 32.
    assert_eq!(
        observation.bytes(Message::SecondClientHello),
        Some(first - 32 + 97)
    );
    assert!(observation.bytes(Message::HelloRetryRequest).is_some());
    let senders: Vec<Side> = observation
        .flights
        .iter()
        .map(|flight| flight.sender)
        .collect();
    use Side::*;
    assert_eq!(senders, [Client, Server, Client, Server, Client]);
    // A clock of which every reading takes ten times as long as the one before.
    let (mut time, mut step) = (0, 1);
    let mut clock = || {
        time += step;
        step *= 10;
        std::time::Duration::from_nanos(time)
    };
    let (client, server) = (stack.client().unwrap(), stack.server().unwrap());
    let steps = crate::time_handshake(client, server, &mut clock).unwrap();
    let nanos = |time: std::time::Duration| time.as_nanos();
    assert_eq!(nanos(steps.client_hello), (10 + 100_000) / 2);
    assert_eq!(nanos(steps.server_flight), (1_000 + 10_000_000) / 2);
    assert_eq!(nanos(steps.client_finish), 1_000_000_000);
    assert_eq!(nanos(steps.server_finish), 100_000_000_000);
}

#[test]
fn the_observer_reads_mutual_authentication_and_alpn() {
    let chain = plain_chain(KeyAlgorithm::MlDsa44);
    let observation = observe(&customised(&chain, |client, server| {
        let (end_entity, issuers) = chain.certificates().split_first().unwrap();
        client.set_certificate(end_entity).unwrap();
        client
            .add_extra_chain_cert(issuers.first().unwrap().clone())
            .unwrap();
        client.set_private_key(chain.key()).unwrap();
        client.set_alpn_protos(b"\x08http/1.1\x02h2").unwrap();
        let mode = SslVerifyMode::PEER | SslVerifyMode::FAIL_IF_NO_PEER_CERT;
        server.set_verify_callback(mode, |_, _| true);
        server.set_alpn_select_callback(|_, offered| {
            ssl::select_next_proto(b"\x02h2", offered).ok_or(AlpnError::NOACK)
        });
    }));
    assert_eq!(observation.alpn.as_deref(), Some("h2"));
    assert!(observation.bytes(Message::CertificateRequest).is_some());
    assert_eq!(
        observation.bytes(Message::ClientCertificate),
        Some(chain.certificate_message_bytes())
    );
    assert_eq!(
        observation.bytes(Message::ClientCertificateVerify),
        Some(8 + 2420)
    );
    assert_chain_was_sent(&observation, &chain);
}

#[test]
fn the_observer_reads_a_pre_shared_key() {
    let chain = plain_chain(KeyAlgorithm::EcdsaP256);
    const KEY: [u8; 32] = [7; 32];
    let observation = observe(&customised(&chain, |client, server| {
        // The callbacks below are for SHA-256 alone.
        client.set_ciphersuites("TLS_AES_128_GCM_SHA256").unwrap();
        client.set_psk_client_callback(|_, _, identity, key| {
            identity[..2].copy_from_slice(b"x\0");
            key[..32].copy_from_slice(&KEY);
            Ok(32)
        });
        server.set_psk_server_callback(|_, _, key| {
            key[..32].copy_from_slice(&KEY);
            Ok(32)
        });
    }));
    assert_eq!(observation.resumed, Some(true));
    assert_eq!(observation.bytes(Message::Certificate), None);
    assert_eq!(observation.signature, None);
    assert!(observation.bytes(Message::ClientFinished).is_some());
}

#[test]
fn what_the_client_does_not_trust_is_refused() {
    let table = [
        (
            test_chains::wrong_name(),
            "hostname mismatch",
            "bad_certificate (42)",
        ),
        (
            test_chains::expired(),
            "certificate has expired",
            "certificate_expired (45)",
        ),
        (
            test_chains::not_yet_valid(),
            "certificate is not yet valid or the system clock is incorrect",
            "bad_certificate (42)",
        ),
        (
            test_chains::broken(),
            "unable to get local issuer certificate",
            "unknown_ca (48)",
        ),
        (
            test_chains::untrusted(),
            "unable to get local issuer certificate",
            "unknown_ca (48)",
        ),
    ];
    for (chain, reason, alert) in table {
        assert_refused(&openssl(Group::X25519, &chain.unwrap()), reason, alert);
    }
    // The same rules find no fault with these.
    let good = test_chains::for_name("www.example").unwrap();
    let observation = observe(&openssl(Group::X25519, &good));
    assert_eq!(observation.server_name.as_deref(), Some("www.example"));
    // An issuer that the server does not send is not found elsewhere.
    let chain = plain_chain(KeyAlgorithm::EcdsaP256);
    let mut server = context(SslMethod::tls_server(), "x25519").unwrap();
    server
        .set_certificate(chain.certificates().first().unwrap())
        .unwrap();
    server.set_private_key(chain.key()).unwrap();
    let incomplete = Pairing {
        server: Box::new(OpenSslServer {
            context: server.build(),
            resumption: Resumption::Full,
            chosen: None,
        }),
        ..fast()
    };
    assert_refused(
        &incomplete,
        "unable to get local issuer certificate",
        "unknown_ca (48)",
    );
}

fn assert_refused(stack: &dyn Stack, reason: &str, alert: &str) {
    let (mut client, mut server) = before_the_last_flight(stack);
    assert_eq!(
        client.advance().unwrap_err().to_string(),
        format!("certificate verification failed: {reason}"),
    );
    // The server hears of it.
    server.receive(&sent_by(client.as_mut()));
    assert_eq!(
        server.advance().unwrap_err().to_string(),
        format!("the peer refused: alert {alert}")
    );
}

/// A client that has received the server's flight, but not looked at it.
fn before_the_last_flight(stack: &dyn Stack) -> (Box<dyn Connection>, Box<dyn Connection>) {
    let mut client = stack.client().unwrap();
    let mut server = stack.server().unwrap();
    assert_eq!(client.advance(), Ok(Progress::Handshaking));
    server.receive(&sent_by(client.as_mut()));
    assert_eq!(server.advance(), Ok(Progress::Handshaking));
    client.receive(&sent_by(server.as_mut()));
    (client, server)
}

fn sent_by(connection: &mut dyn Connection) -> Vec<u8> {
    let mut bytes = Vec::new();
    connection.transmit(&mut bytes);
    bytes
}

#[test]
fn application_data_arrives_in_the_records_that_were_written() {
    let Handshake {
        mut client,
        mut server,
        ..
    } = handshake_in_memory(&fast()).unwrap();
    for (length, record_length) in [
        (1, 1),
        (200 << 10, MAX_PLAINTEXT),
        (300 << 10, MAX_PLAINTEXT),
        (50_000, 1369),
    ] {
        let response: Vec<u8> = (0..length)
            .map(|i| u8::try_from(i % 251).unwrap())
            .collect();
        let mut on_the_wire = Vec::new();
        for plaintext in response.chunks(record_length) {
            let before = on_the_wire.len();
            server.write_record(plaintext).unwrap();
            server.transmit(&mut on_the_wire);
            let record = &on_the_wire[before..];
            // Header, content type and tag around it.
            assert_eq!(record.len(), 5 + plaintext.len() + 1 + 16);
            assert_eq!(
                usize::from(u16::from_be_bytes([record[3], record[4]])),
                record.len() - 5
            );
        }
        let mut received = Vec::new();
        let mut buffer = [0; MAX_PLAINTEXT];
        for segment in on_the_wire.chunks(1448) {
            client.receive(segment);
            loop {
                match client.read(&mut buffer).unwrap() {
                    0 => break,
                    length => received.extend_from_slice(&buffer[..length]),
                }
            }
        }
        assert!(
            received == response,
            "{length} bytes in records of {record_length}"
        );
    }
}

#[test]
fn a_record_can_be_read_in_pieces() {
    let Handshake {
        mut client,
        mut server,
        ..
    } = handshake_in_memory(&fast()).unwrap();
    client.write_record(b"request").unwrap();
    server.receive(&sent_by(client.as_mut()));
    let mut buffer = [0; 4];
    assert_eq!((server.read(&mut buffer), &buffer), (Ok(4), b"requ"));
    assert_eq!(
        (server.read(&mut buffer), &buffer[..3]),
        (Ok(3), &b"est"[..])
    );
    assert_eq!(server.read(&mut buffer), Ok(0));
    assert_eq!(server.read(&mut []), Ok(0));
}

#[test]
fn a_record_of_no_or_too_many_bytes_is_an_error() {
    let Handshake { mut client, .. } = handshake_in_memory(&fast()).unwrap();
    assert_eq!(client.write_record(&[]), Err(TlsError::RecordLength(0)));
    assert_eq!(
        client
            .write_record(&[0; MAX_PLAINTEXT + 1])
            .unwrap_err()
            .to_string(),
        "a record holds 1 to 16384 bytes, not 16385",
    );
    assert_eq!(sent_by(client.as_mut()), []);
}

#[test]
fn no_application_data_before_the_handshake() {
    let mut client = fast().client().unwrap();
    assert_eq!(client.write_record(b"early"), Err(TlsError::NotEstablished));
    assert_eq!(client.read(&mut [0; 8]), Ok(0));
    assert_eq!(sent_by(client.as_mut()), []);
}

#[test]
fn a_peer_that_closes_is_an_error() {
    let stack = fast();
    let mut server = OpenSslServer::new(&TlsConfig::new(
        Group::X25519,
        &plain_chain(KeyAlgorithm::EcdsaP256),
    ))
    .unwrap()
    .connection(0)
    .unwrap();
    let mut client = stack.client().unwrap();
    client.advance().unwrap();
    server.receive(&sent_by(client.as_mut()));
    server.advance().unwrap();
    client.receive(&sent_by(&mut server));
    client.advance().unwrap();
    server.receive(&sent_by(client.as_mut()));
    assert_eq!(server.advance(), Ok(Progress::Established));

    server.write_record(b"last words").unwrap();
    server.stream.shutdown().unwrap();
    client.receive(&sent_by(&mut server));
    assert_eq!(client.read(&mut [0; 64]), Ok(10));
    assert_eq!(client.read(&mut [0; 64]), Err(TlsError::Closed));
}

#[test]
fn an_alert_is_named() {
    let mut client = fast().client().unwrap();
    client.advance().unwrap();
    client.receive(&[21, 3, 3, 0, 2, 2, 40]);
    assert_eq!(
        client.advance().unwrap_err().to_string(),
        "the peer refused: alert handshake_failure (40)",
    );
    assert!(client.advance().is_err());
}

#[test]
fn close_notify_during_the_handshake_is_an_error() {
    let mut client = fast().client().unwrap();
    client.advance().unwrap();
    client.receive(&[21, 3, 3, 0, 2, 1, 0]);
    assert_eq!(client.advance(), Err(TlsError::Closed));
}

#[test]
fn no_common_group_is_an_error_on_both_sides() {
    let chain = plain_chain(KeyAlgorithm::EcdsaP256);
    let stack = customised(&chain, |_, server| {
        server.set_groups_list("secp384r1").unwrap()
    });
    let mut client = stack.client().unwrap();
    let mut server = stack.server().unwrap();
    client.advance().unwrap();
    server.receive(&sent_by(client.as_mut()));
    assert_eq!(
        server.advance().unwrap_err().to_string(),
        "TLS failed: no suitable key share",
    );
    client.receive(&sent_by(server.as_mut()));
    assert_eq!(
        client.advance().unwrap_err().to_string(),
        "the peer refused: alert handshake_failure (40)",
    );
}

#[test]
fn a_key_that_can_not_sign_is_named() {
    let key = PKey::generate_x25519().unwrap();
    let mut certificate = X509::builder().unwrap();
    certificate.set_pubkey(&key).unwrap();
    let issuer = plain_chain(KeyAlgorithm::EcdsaP256);
    certificate
        .sign(issuer.key(), MessageDigest::sha256())
        .unwrap();
    let mut context = context(SslMethod::tls_server(), "x25519").unwrap();
    assert_eq!(
        context
            .set_certificate(&certificate.build())
            .map_err(setup("the end-entity certificate"))
            .unwrap_err()
            .to_string(),
        "openssl can't use the end-entity certificate: unknown certificate type",
    );
}

#[test]
fn each_connection_has_its_own_key_log() {
    let stack = fast();
    let (mut first, mut first_server) = before_the_last_flight(&stack);
    let (mut second, _second_server) = before_the_last_flight(&stack);
    assert_eq!(second.advance(), Ok(Progress::Established));
    assert_eq!(first.advance(), Ok(Progress::Established));
    first_server.receive(&sent_by(first.as_mut()));
    assert_eq!(first_server.advance(), Ok(Progress::Established));

    let sorted = |connection: &dyn Connection| {
        let log = connection.key_log();
        let mut lines: Vec<String> = log.as_str().lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let lines = sorted(first.as_ref());
    let labels: Vec<&str> = lines
        .iter()
        .map(|line| line.split(' ').next().unwrap())
        .collect();
    assert_eq!(
        labels,
        [
            "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
            "CLIENT_TRAFFIC_SECRET_0",
            "EXPORTER_SECRET",
            "SERVER_HANDSHAKE_TRAFFIC_SECRET",
            "SERVER_TRAFFIC_SECRET_0",
        ],
    );
    assert_eq!(sorted(first_server.as_ref()), lines);
    assert!(
        sorted(second.as_ref())
            .iter()
            .all(|line| !lines.contains(line))
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_handshake_does_not_depend_on_how_bytes_arrive(length in 1_usize..2000) {
        let stack = fast();
        let mut client = stack.client().unwrap();
        let mut server = stack.server().unwrap();
        let mut progress = client.advance().unwrap();
        let mut peer_progress = Progress::Handshaking;
        while progress == Progress::Handshaking || peer_progress == Progress::Handshaking {
            for segment in sent_by(client.as_mut()).chunks(length) {
                server.receive(segment);
                peer_progress = server.advance().unwrap();
            }
            for segment in sent_by(server.as_mut()).chunks(length) {
                client.receive(segment);
                progress = client.advance().unwrap();
            }
        }
    }

    #[test]
    fn garbage_is_no_handshake(bytes: Vec<u8>) {
        let stack = fast();
        for mut connection in [stack.client().unwrap(), stack.server().unwrap()] {
            connection.advance().unwrap();
            connection.receive(&bytes);
            prop_assert_ne!(connection.advance(), Ok(Progress::Established));
            prop_assert_ne!(connection.advance(), Ok(Progress::Established));
            prop_assert!(connection.write_record(b"x").is_err());
        }
    }

    #[test]
    fn a_changed_server_flight_is_refused(position: prop::sample::Index, change in 1_u8..) {
        let stack = fast();
        let mut client = stack.client().unwrap();
        let mut server = stack.server().unwrap();
        client.advance().unwrap();
        server.receive(&sent_by(client.as_mut()));
        server.advance().unwrap();
        let mut flight = sent_by(server.as_mut());
        // A ServerHello and change_cipher_spec, whose headers nobody protects.
        let (_, protected) = flight.split_at_mut(5 + 122 + 6);
        *position.get_mut(protected) ^= change;
        client.receive(&flight);
        prop_assert_ne!(client.advance(), Ok(Progress::Established));
    }
}

fn resuming() -> Pairing {
    Pairing::new(&TlsConfig {
        resumption: Resumption::Ticket,
        ..TlsConfig::new(Group::X25519, &plain_chain(KeyAlgorithm::EcdsaP256))
    })
    .unwrap()
}

/// Whether a handshake that offers a changed session resumes it; `None` if there is none.
fn resumed(stack: &Pairing, session: Vec<u8>) -> Option<bool> {
    let session = Session::new(SessionDer {
        der: session,
        parameters: None,
    });
    let client = stack.resuming_client(&session).ok()?;
    let mut handshake = handshake_between(client, stack.server().unwrap()).ok()?;
    handshake.client.write_record(b"hello").unwrap();
    handshake
        .server
        .receive(&sent_by(handshake.client.as_mut()));
    assert_eq!(handshake.server.read(&mut [0; 8]), Ok(5));
    let key_log = handshake.client.key_log();
    handshake.observer.observe(&key_log).resumed
}

#[test]
fn a_session_that_was_tampered_with_is_not_resumed() {
    let stack = resuming();
    let session = stack.session().unwrap();
    let SessionDer { der, .. } = session.get().unwrap();
    assert_eq!(resumed(&stack, der.clone()), Some(true));
    let mut full = 0;
    for position in 0..der.len() {
        let mut changed = der.clone();
        changed[position] ^= 1;
        full += u32::from(resumed(&stack, changed) == Some(false));
    }
    // All bytes of the ticket, and some of what the client keeps beside it.
    assert!(full > 150, "{full} of {}", der.len());
}

#[test]
fn a_stale_session_is_not_offered() {
    let stack = resuming();
    let session = stack.session().unwrap();
    let SessionDer { der, .. } = session.get().unwrap();
    let time = SslSession::from_der(der).unwrap().time();
    let aged = |seconds| {
        let (now, then) = (time as u32, (time - seconds) as u32);
        let place = (der.windows(4)).position(|bytes| bytes == now.to_be_bytes());
        let mut aged = der.clone();
        aged[place.unwrap()..][..4].copy_from_slice(&then.to_be_bytes());
        aged
    };
    assert_eq!(resumed(&stack, aged(7000)), Some(true));
    assert_eq!(resumed(&stack, aged(8000)), Some(false));
}

/// A stack whose two sides the test changes.
fn customised(
    chain: &Chain,
    change: impl FnOnce(&mut SslContextBuilder, &mut SslContextBuilder),
) -> Pairing {
    let config = TlsConfig::new(Group::X25519, chain);
    let (mut client, elision) = client_context(&config).unwrap();
    let (mut server, chosen) = server_context(&config).unwrap();
    change(&mut client, &mut server);
    Pairing {
        client: Box::new(OpenSslClient {
            context: client.build(),
            server_name: chain.server_name().to_owned(),
            delivery: config.delivery,
            resumption: config.resumption,
            elision,
        }),
        server: Box::new(OpenSslServer {
            context: server.build(),
            resumption: config.resumption,
            chosen,
        }),
        ..fast()
    }
}
