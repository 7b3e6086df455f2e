//! What a configuration can ask for besides a group and a chain, on every pair of stacks.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use lastbyte_pki::{Chain, ChainSpec, KeyAlgorithm, test_chains};
use lastbyte_tls::observer::Message;
use lastbyte_tls::observer::{EarlyData, Side};
use lastbyte_tls::{
    CertificateCompression, Compressions, Connection, Delivery, Group, Handshake, MAX_PLAINTEXT,
    Progress, Resumption, Stack, StackName, TlsConfig, TlsError, handshake_between,
    handshake_in_memory, stack,
};

use common::{
    Feature, chain, chain_of, client_chain, observe, pairs, stack_if_can, strange_client_chain,
};

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\n\r\n";

fn sent_by(connection: &mut dyn Connection) -> Vec<u8> {
    let mut sent = Vec::new();
    connection.transmit(&mut sent);
    sent
}

/// What arrives of one application-data exchange.
fn echo(from: &mut dyn Connection, to: &mut dyn Connection, data: &[u8]) -> Vec<u8> {
    from.write_record(data).unwrap();
    to.receive(&sent_by(from));
    let mut buffer = vec![0; data.len()];
    let count = to.read(&mut buffer).unwrap();
    buffer.truncate(count);
    buffer
}

fn assert_talks(handshake: &mut Handshake) {
    let (client, server) = (handshake.client.as_mut(), handshake.server.as_mut());
    assert_eq!(echo(client, server, REQUEST), REQUEST);
    assert_eq!(echo(server, client, b"200 OK"), b"200 OK");
}

/// A configuration for a pair.
fn config(pair: (StackName, StackName), chain: &Chain) -> TlsConfig<'_> {
    TlsConfig {
        client: pair.0,
        server: pair.1,
        ..TlsConfig::new(Group::X25519MlKem768, chain)
    }
}

#[test]
fn a_wrong_guess_costs_a_hello_retry_request() {
    let chain = chain(KeyAlgorithm::EcdsaP256);
    for pair in pairs() {
        // From X25519 every pair can be sent on to P-384.
        let stack = stack(&TlsConfig {
            group: Group::Secp384r1,
            key_shares: vec![Group::X25519],
            ..config(pair, &chain)
        })
        .unwrap();
        let mut handshake = handshake_in_memory(stack.as_ref()).unwrap();
        let observation = observe(&handshake);
        assert_eq!(observation.group, Some(Group::Secp384r1.code_point()));
        assert_eq!(
            observation.bytes(Message::HelloRetryRequest),
            Some(88),
            "{pair:?}"
        );
        assert!(
            observation.bytes(Message::SecondClientHello) > observation.bytes(Message::ClientHello)
        );
        assert_talks(&mut handshake);
    }
}

#[test]
fn several_key_shares_make_the_hello_larger() {
    let chain = chain(KeyAlgorithm::EcdsaP256);
    for pair in pairs() {
        let hello = |key_shares: &[Group]| {
            let stack = stack(&TlsConfig {
                key_shares: key_shares.to_vec(),
                ..config(pair, &chain)
            })
            .unwrap();
            let observation = observe(&handshake_in_memory(stack.as_ref()).unwrap());
            assert_eq!(observation.bytes(Message::HelloRetryRequest), None);
            observation.bytes(Message::ClientHello).unwrap()
        };
        let one = hello(&[Group::X25519MlKem768]);
        let two = hello(&[Group::X25519MlKem768, Group::X25519]);
        // A share of 32 bytes with its header, and the group in supported_groups.
        assert!(two > one + (4 + 32), "{pair:?}: {one} {two}");
        if pair.0 == StackName::OpenSsl {
            // And ec_point_formats.
            assert_eq!((one, two), (1411, 1411 + 2 + (4 + 32) + 6));
        }
    }
}

fn resuming(
    pair: (StackName, StackName),
    resumption: Resumption,
    chain: &Chain,
) -> Option<Box<dyn Stack>> {
    let config = TlsConfig {
        resumption,
        ..config(pair, chain)
    };
    match resumption {
        Resumption::EarlyData => stack_if_can(&config, Feature::EarlyData),
        Resumption::Full | Resumption::Ticket => Some(stack(&config).unwrap()),
    }
}

#[test]
fn a_session_is_resumed_as_often_as_one_likes() {
    let chain = chain(KeyAlgorithm::EcdsaP256);
    for pair in pairs() {
        let stack = resuming(pair, Resumption::Ticket, &chain).unwrap();
        let session = stack.session().unwrap();
        // rustls offers a ticket once, and s2n-tls sends no more than one.
        let uses = match pair {
            (StackName::Rustls, StackName::S2nTls) => 1,
            _ => 16,
        };
        for _ in 0..uses {
            let client = stack.resuming_client(&session).unwrap();
            let mut handshake = handshake_between(client, stack.server().unwrap()).unwrap();
            let observation = observe(&handshake);
            assert_eq!(observation.resumed, Some(true), "{pair:?}");
            assert_eq!(observation.group, Some(Group::X25519MlKem768.code_point()));
            assert_eq!(observation.bytes(Message::Certificate), None);
            assert_eq!(observation.early_data, EarlyData::NotOffered);
            // Tickets are sent when they are asked for, not whenever they can be.
            assert_eq!(handshake.tickets_bytes, 0, "{pair:?}");
            assert_talks(&mut handshake);
        }
        if pair.0 == StackName::Rustls {
            assert_eq!(
                stack.resuming_client(&session).err(),
                Some(TlsError::NoSession)
            );
        }
        // A client gets a session by itself, as often as need be.
        for _ in 0..40 {
            let observation = observe(&handshake_in_memory(stack.as_ref()).unwrap());
            assert_eq!(observation.resumed, Some(true));
        }
    }
}

#[test]
fn a_session_of_another_server_is_not_resumed() {
    let chain = chain(KeyAlgorithm::EcdsaP256);
    for pair in pairs() {
        let [stack, other] = [(); 2].map(|()| resuming(pair, Resumption::Ticket, &chain).unwrap());
        let session = other.session().unwrap();
        let client = other.resuming_client(&session).unwrap();
        let mut handshake = handshake_between(client, stack.server().unwrap()).unwrap();
        let observation = observe(&handshake);
        assert_eq!(observation.resumed, Some(false), "{pair:?}");
        assert!(observation.bytes(Message::Certificate).is_some());
        assert_talks(&mut handshake);
    }
}

#[test]
fn a_session_of_another_stack_is_none() {
    let chain = chain(KeyAlgorithm::EcdsaP256);
    for pair in pairs() {
        for other in pairs().into_iter().filter(|other| other.0 != pair.0) {
            let session = resuming(other, Resumption::Ticket, &chain)
                .unwrap()
                .session()
                .unwrap();
            let stack = resuming(pair, Resumption::Ticket, &chain).unwrap();
            assert_eq!(
                stack.resuming_client(&session).err(),
                Some(TlsError::NoSession)
            );
        }
    }
}

#[test]
fn early_data_is_answered_before_the_handshake_ends() {
    let chain = chain(KeyAlgorithm::MlDsa44);
    for pair in pairs() {
        let Some(stack) = resuming(pair, Resumption::EarlyData, &chain) else {
            continue;
        };
        let session = stack.session().unwrap();
        let mut client = stack.resuming_client(&session).unwrap();
        let mut server = stack.server().unwrap();

        client.write_early_data(REQUEST).unwrap();
        assert_eq!(client.advance().unwrap(), Progress::Handshaking);
        server.receive(&sent_by(client.as_mut()));
        assert_eq!(server.advance().unwrap(), Progress::Handshaking);
        let mut buffer = [0; 100];
        let count = server.read(&mut buffer).unwrap();
        assert_eq!(&buffer[..count], REQUEST, "{pair:?}");
        server.write_record(b"200 OK").unwrap();
        client.receive(&sent_by(server.as_mut()));
        assert_eq!(client.advance().unwrap(), Progress::Established);
        assert!(client.is_early_data_accepted());
        let count = client.read(&mut buffer).unwrap();
        assert_eq!(&buffer[..count], b"200 OK");

        // All that follows is as ever.
        server.receive(&sent_by(client.as_mut()));
        assert_eq!(server.advance().unwrap(), Progress::Established);
        assert_eq!(server.read(&mut buffer).unwrap(), 0);
        assert_eq!(echo(client.as_mut(), server.as_mut(), b"more"), b"more");
        assert_eq!(echo(server.as_mut(), client.as_mut(), b"less"), b"less");
    }
}

#[test]
fn early_data_that_is_refused_can_be_sent_again() {
    let chain = chain(KeyAlgorithm::EcdsaP256);
    for pair in pairs() {
        let [Some(stack), Some(other)] =
            [(); 2].map(|()| resuming(pair, Resumption::EarlyData, &chain))
        else {
            continue;
        };
        let session = other.session().unwrap();
        let mut client = other.resuming_client(&session).unwrap();
        client.write_early_data(REQUEST).unwrap();
        let mut handshake = handshake_between(client, stack.server().unwrap()).unwrap();
        let observation = observe(&handshake);
        assert_eq!(observation.resumed, Some(false));
        assert_eq!(observation.early_data, EarlyData::Offered);
        assert!(!handshake.client.is_early_data_accepted());
        assert_talks(&mut handshake);
    }
}

#[test]
fn early_data_needs_a_session_that_allows_it() {
    let chain = chain(KeyAlgorithm::EcdsaP256);
    for pair in pairs() {
        let stack = resuming(pair, Resumption::Ticket, &chain).unwrap();
        let session = stack.session().unwrap();
        for mut client in [
            stack.client().unwrap(),
            stack.resuming_client(&session).unwrap(),
        ] {
            assert_eq!(client.write_early_data(REQUEST), Err(TlsError::NoEarlyData));
            // It is of use all the same.
            let mut handshake = handshake_between(client, stack.server().unwrap()).unwrap();
            assert_talks(&mut handshake);
        }
    }
}

#[test]
fn a_server_that_expects_early_data_does_without() {
    let chain = chain(KeyAlgorithm::EcdsaP256);
    for pair in pairs() {
        let Some(early) = resuming(pair, Resumption::EarlyData, &chain) else {
            continue;
        };
        let full = stack(&config(pair, &chain)).unwrap();
        for client in [full.client().unwrap(), early.client().unwrap()] {
            let mut handshake = handshake_between(client, early.server().unwrap()).unwrap();
            assert!(!handshake.client.is_early_data_accepted());
            assert_talks(&mut handshake);
        }
    }
}

#[test]
fn tickets_are_sent_as_many_as_asked_for() {
    let chain = chain(KeyAlgorithm::EcdsaP256);
    for pair in pairs() {
        let after_handshake = |tickets| {
            let config = TlsConfig {
                tickets,
                ..config(pair, &chain)
            };
            let stack = match tickets {
                0 | 1 => stack(&config).unwrap(),
                _ => stack_if_can(&config, Feature::TwoTickets)?,
            };
            let mut handshake = handshake_in_memory(stack.as_ref()).unwrap();
            assert_talks(&mut handshake);
            assert_eq!(handshake.client.session().is_some(), tickets > 0);
            Some(handshake.tickets_bytes)
        };
        assert_eq!(after_handshake(0), Some(0), "{pair:?}");
        let one = after_handshake(1).unwrap();
        assert!(one > 100);
        // rustls puts both into one record.
        if let Some(two) = after_handshake(2) {
            let overhead = 2 * one - two;
            assert!([0, 5 + 1 + 16].contains(&overhead), "{pair:?} {one} {two}");
        }
    }
}

#[test]
fn a_chain_above_the_limit_is_refused() {
    let chain = chain(KeyAlgorithm::EcdsaP256);
    for pair in pairs() {
        let with_limit = |max_certificate_list| {
            let config = TlsConfig {
                max_certificate_list: Some(max_certificate_list),
                ..config(pair, &chain)
            };
            let stack = stack_if_can(&config, Feature::CertificateLimit)?;
            Some(handshake_in_memory(stack.as_ref()).map(drop))
        };
        let enough = with_limit(chain.certificate_message_bytes());
        assert!(matches!(enough, None | Some(Ok(()))), "{pair:?}");
        if let Some(refused) = with_limit(512) {
            let error = refused.unwrap_err().to_string();
            assert!(error.contains("excessive message size"), "{error}");
        }
    }
}

/// Certificate messages of these sizes pass, up to what a stack says that it can take.
#[test]
fn large_chains_pass_up_to_the_limit_that_a_stack_states() {
    let limit = |name: StackName| {
        let all = lastbyte_tls::capabilities();
        let client = all
            .into_iter()
            .find(|found| found.stack == name && found.side == Side::Client);
        client.unwrap().max_certificate_message
    };
    for bytes in [
        16_000, 60_000, 60_001, 65_535, 65_536, 65_540, 65_541, 102_400, 120_000, 1_000_000,
    ] {
        let chain = chain_of(&ChainSpec {
            certificate_bytes: Some(bytes),
            ..ChainSpec::new(KeyAlgorithm::EcdsaP256)
        });
        for pair in pairs() {
            let what = format!("{pair:?} {bytes}");
            match stack(&config(pair, &chain)) {
                Err(TlsError::Unsupported { .. }) => assert!(bytes > limit(pair.0), "{what}"),
                stack => {
                    assert!(bytes <= limit(pair.0), "{what}");
                    let handshake = handshake_in_memory(stack.unwrap().as_ref()).expect(&what);
                    assert_eq!(
                        observe(&handshake).bytes(Message::Certificate),
                        Some(bytes),
                        "{what}"
                    );
                }
            }
        }
    }
}

/// As `config`, with what each side compresses with.
fn compressing(config: TlsConfig<'_>, compressions: Compressions) -> TlsConfig<'_> {
    TlsConfig {
        delivery: Delivery::Compressed(compressions),
        ..config
    }
}

/// The bytes of each certificate.
fn lengths(chain: &Chain) -> Vec<usize> {
    let certificates = chain.certificates().iter();
    let lengths = certificates.map(|certificate| certificate.to_der().unwrap().len());
    lengths.collect()
}

#[test]
fn certificates_are_compressed_with_every_algorithm() {
    for key in [
        KeyAlgorithm::EcdsaP256,
        KeyAlgorithm::Rsa2048,
        KeyAlgorithm::MlDsa65,
    ] {
        let (chain, client_chain) = (chain(key), client_chain(key));
        for algorithm in CertificateCompression::ALL {
            for pair in pairs() {
                let what = format!("{pair:?} {key} {algorithm}");
                let config = TlsConfig {
                    client_chain: Some(&client_chain),
                    ..config(pair, &chain)
                };
                let config = compressing(config, Compressions::both(&[algorithm]));
                let Some(stack) = stack_if_can(&config, Feature::Compression) else {
                    continue;
                };
                // The second time, the server knows what to send.
                for _ in 0..2 {
                    let mut handshake = handshake_in_memory(stack.as_ref()).expect(&what);
                    let seen = observe(&handshake);
                    let code_point = Some(algorithm.code_point());
                    assert_eq!(seen.offered_compressions, [algorithm.code_point()]);
                    assert_eq!(seen.certificate_compression, code_point, "{what}");
                    assert_eq!(seen.client_certificate_compression, code_point, "{what}");
                    let plain = chain.certificate_message_bytes();
                    assert_eq!(seen.uncompressed_certificate, Some(plain - 4));
                    assert!(seen.bytes(Message::Certificate).unwrap() < plain, "{what}");
                    let plain = client_chain.certificate_message_bytes();
                    assert_eq!(seen.uncompressed_client_certificate, Some(plain - 4));
                    let sent = seen.bytes(Message::ClientCertificate).unwrap();
                    assert!(sent < plain, "{what}");
                    assert_eq!(seen.certificates, lengths(&chain), "{what}");
                    assert_talks(&mut handshake);
                }
            }
        }
    }
}

/// Either certificate is compressed as its sender prefers, with what the other side has.
#[test]
fn the_sender_chooses_the_compression() {
    use CertificateCompression::{Brotli, Zlib, Zstd};
    let (chain, client_chain) = (
        chain(KeyAlgorithm::EcdsaP256),
        client_chain(KeyAlgorithm::EcdsaP256),
    );
    for (server, client, chosen) in [
        (vec![Zlib, Brotli], vec![Brotli, Zlib], [Zlib, Brotli]),
        (vec![Zstd, Brotli], vec![Zlib, Brotli], [Brotli, Brotli]),
        (vec![Brotli, Zlib, Zstd], vec![Zstd], [Zstd, Zstd]),
    ] {
        for pair in pairs() {
            let config = TlsConfig {
                client_chain: Some(&client_chain),
                ..config(pair, &chain)
            };
            let compressions = Compressions {
                server: server.clone(),
                client: client.clone(),
            };
            let config = compressing(config, compressions);
            let Some(stack) = stack_if_can(&config, Feature::Compression) else {
                continue;
            };
            let seen = observe(&handshake_in_memory(stack.as_ref()).unwrap());
            let offered: Vec<_> = client
                .iter()
                .map(|algorithm| algorithm.code_point())
                .collect();
            assert_eq!(seen.offered_compressions, offered);
            let found = [
                seen.certificate_compression,
                seen.client_certificate_compression,
            ];
            assert_eq!(found, chosen.map(|algorithm| Some(algorithm.code_point())));
        }
    }
}

/// What only one side has changes nothing (RFC 8879, section 3), whatever the other one is.
#[test]
fn without_a_common_algorithm_certificates_are_sent_as_they_are() {
    use CertificateCompression::{Brotli, Zlib};
    let (chain, client_chain) = (
        chain(KeyAlgorithm::EcdsaP256),
        client_chain(KeyAlgorithm::EcdsaP256),
    );
    for (server, client) in [
        (vec![], vec![]),
        (vec![Brotli], vec![]),
        (vec![], vec![Brotli]),
        (vec![Brotli], vec![Zlib]),
    ] {
        for pair in pairs() {
            let asked_of = [(pair.0, &client), (pair.1, &server)];
            let can = asked_of
                .iter()
                .all(|(stack, has)| has.is_empty() || *stack == StackName::Rustls);
            let config = TlsConfig {
                client_chain: Some(&client_chain),
                ..config(pair, &chain)
            };
            let offered: Vec<_> = client
                .iter()
                .map(|algorithm| algorithm.code_point())
                .collect();
            let compressions = Compressions {
                server: server.clone(),
                client: client.clone(),
            };
            let stack = match stack(&compressing(config, compressions)) {
                Err(TlsError::Unsupported { what, hint, .. }) => {
                    assert!(
                        !can && what.starts_with("compress certificates: "),
                        "{what}"
                    );
                    assert_eq!(hint, "use stack=rustls");
                    continue;
                }
                stack => stack.unwrap(),
            };
            assert!(can, "{pair:?}");
            let mut handshake = handshake_in_memory(stack.as_ref()).unwrap();
            let seen = observe(&handshake);
            assert_eq!(seen.offered_compressions, offered);
            assert_eq!(seen.certificate_compression, None);
            assert_eq!(seen.uncompressed_certificate, None);
            assert_eq!(seen.client_certificate_compression, None);
            let sizes =
                [&chain, &client_chain].map(|chain| Some(chain.certificate_message_bytes()));
            let sent = [Message::Certificate, Message::ClientCertificate];
            assert_eq!(sent.map(|message| seen.bytes(message)), sizes, "{pair:?}");
            assert_eq!(seen.certificates, lengths(&chain));
            assert_talks(&mut handshake);
        }
    }
}

#[test]
fn bad_chains_are_refused_and_the_server_hears_of_it() {
    for bad in [
        test_chains::expired(),
        test_chains::not_yet_valid(),
        test_chains::wrong_name(),
        test_chains::broken(),
        test_chains::untrusted(),
    ] {
        let chain = bad.unwrap();
        for pair in pairs() {
            let stack = stack(&config(pair, &chain)).unwrap();
            let mut client = stack.client().unwrap();
            let mut server = stack.server().unwrap();
            client.advance().unwrap();
            server.receive(&sent_by(client.as_mut()));
            server.advance().unwrap();
            client.receive(&sent_by(server.as_mut()));
            let error = client.advance().unwrap_err();
            assert!(
                matches!(error, TlsError::Certificate { .. }),
                "{pair:?}: {error}"
            );
            server.receive(&sent_by(client.as_mut()));
            let error = server.advance().unwrap_err();
            match pair.0 {
                // It says no more than close_notify, on purpose; rustls goes on waiting then.
                StackName::S2nTls => assert!(!matches!(error, TlsError::Certificate { .. })),
                _ => assert!(matches!(error, TlsError::Refused(_)), "{pair:?}: {error}"),
            }
        }
    }
}

#[test]
fn what_a_stack_writes_at_once_can_be_had_apart() {
    let chain = chain(KeyAlgorithm::Rsa4096);
    for pair in pairs() {
        let stack = stack(&config(pair, &chain)).unwrap();
        let mut client = stack.client().unwrap();
        let mut server = stack.server().unwrap();
        client.advance().unwrap();
        server.receive(&sent_by(client.as_mut()));
        server.advance().unwrap();
        let mut flight = Vec::new();
        let mut ends = Vec::new();
        while server.transmit_write(&mut flight) {
            ends.push(flight.len());
        }
        // rustls gives all that it has at once.
        assert_eq!(
            ends.len() > 1,
            pair.1 != StackName::Rustls,
            "{pair:?} {ends:?}"
        );
        assert_eq!(sent_by(server.as_mut()), []);
        client.receive(&flight);
        assert_eq!(client.advance().unwrap(), Progress::Established);
    }
}

#[test]
fn a_hello_may_come_byte_by_byte() {
    let chain = chain(KeyAlgorithm::EcdsaP256);
    for pair in pairs() {
        let stack = stack(&config(pair, &chain)).unwrap();
        let mut client = stack.client().unwrap();
        let mut server = stack.server().unwrap();
        client.advance().unwrap();
        for byte in sent_by(client.as_mut()) {
            assert_eq!(sent_by(server.as_mut()), []);
            server.receive(&[byte]);
            assert_eq!(server.advance().unwrap(), Progress::Handshaking);
        }
        client.receive(&sent_by(server.as_mut()));
        assert_eq!(client.advance().unwrap(), Progress::Established);
    }
}

#[test]
fn a_record_is_written_and_read_as_one() {
    let chain = chain(KeyAlgorithm::EcdsaP256);
    for pair in pairs() {
        let stack = stack(&config(pair, &chain)).unwrap();
        let Handshake {
            mut client,
            mut server,
            ..
        } = handshake_in_memory(stack.as_ref()).unwrap();
        let mut buffer = vec![0; 3 * MAX_PLAINTEXT];
        assert_records(client.as_mut(), server.as_mut());
        assert_records(server.as_mut(), client.as_mut());
        // Half a record, then the rest, read into little.
        server.write_record(&[9; 1000]).unwrap();
        let sent = sent_by(server.as_mut());
        client.receive(&sent[..500]);
        assert_eq!(client.read(&mut buffer), Ok(0));
        client.receive(&sent[500..]);
        assert_eq!(client.read(&mut buffer[..600]), Ok(600));
        assert_eq!(client.read(&mut buffer[..600]), Ok(400));
    }
}

fn assert_records(from: &mut dyn Connection, to: &mut dyn Connection) {
    let mut buffer = vec![0; 3 * MAX_PLAINTEXT];
    let mut sent = Vec::new();
    let lengths = [1, 100, 8088, MAX_PLAINTEXT - 1, MAX_PLAINTEXT];
    for length in lengths {
        from.write_record(&vec![7; length]).unwrap();
        let before = sent.len();
        from.transmit(&mut sent);
        // A header, the type and a tag.
        assert_eq!(sent.len() - before, 5 + length + 1 + 16);
    }
    to.receive(&sent);
    for length in lengths {
        assert_eq!(to.read(&mut buffer), Ok(length));
    }
    assert_eq!(to.read(&mut buffer), Ok(0));
    for length in [0, MAX_PLAINTEXT + 1] {
        let error = from.write_record(&vec![0; length]);
        assert_eq!(error, Err(TlsError::RecordLength(length)));
    }
}

#[test]
fn nothing_is_written_before_the_handshake_is_complete() {
    let chain = chain(KeyAlgorithm::EcdsaP256);
    for pair in pairs() {
        let stack = stack(&config(pair, &chain)).unwrap();
        for mut connection in [stack.client().unwrap(), stack.server().unwrap()] {
            assert_eq!(connection.write_record(b"x"), Err(TlsError::NotEstablished));
            assert_eq!(connection.read(&mut [0; 8]), Ok(0));
            assert!(connection.session().is_none());
            assert_eq!(sent_by(connection.as_mut()), []);
        }
    }
}

/// Neither side panics, hangs or succeeds on what the other did not send.
#[test]
fn garbage_and_truncated_flights_do_no_harm() {
    let chain = chain(KeyAlgorithm::EcdsaP256);
    for pair in pairs() {
        let stack = stack(&config(pair, &chain)).unwrap();
        let hello = || {
            let mut client = stack.client().unwrap();
            client.advance().unwrap();
            let hello = sent_by(client.as_mut());
            (client, hello)
        };
        let answer = |hello: &[u8]| {
            let mut server = stack.server().unwrap();
            server.receive(hello);
            let progress = server.advance();
            (progress, sent_by(server.as_mut()))
        };
        for garbage in [
            b"GET / HTTP/1.1\r\nHost: server.example\r\n\r\n".to_vec(),
            vec![0; 20_000],
            vec![0xff; 20_000],
        ] {
            assert_ne!(answer(&garbage).0, Ok(Progress::Established), "{pair:?}");
            let (mut client, _) = hello();
            client.receive(&garbage);
            for _ in 0..2 {
                assert_ne!(client.advance(), Ok(Progress::Established), "{pair:?}");
            }
            assert!(client.write_record(b"x").is_err());
        }
        let (_, sent) = hello();
        for length in (0..sent.len()).step_by(97) {
            assert_eq!(
                answer(&sent[..length]).0,
                Ok(Progress::Handshaking),
                "{pair:?}"
            );
        }
        let (_, flight) = answer(&sent);
        for at in (0..flight.len()).step_by(41) {
            let (mut client, _) = hello();
            client.receive(&flight[..at]);
            assert_ne!(client.advance(), Ok(Progress::Established), "{pair:?} {at}");
            let (mut client, sent) = hello();
            let (_, mut flight) = answer(&sent);
            flight[at] ^= 0x55;
            client.receive(&flight);
            // A version in a record's header is to be ignored (RFC 8446, 5.1).
            let _ = client.advance();
            sent_by(client.as_mut());
        }
    }
}

#[test]
fn mutual_tls_proves_both_sides() {
    for key in [KeyAlgorithm::EcdsaP256, KeyAlgorithm::MlDsa87] {
        let (group, chain) = match key {
            KeyAlgorithm::MlDsa87 => (Group::X25519MlKem768, chain(KeyAlgorithm::EcdsaP256)),
            _ => (Group::X25519, chain(key)),
        };
        let client_chain = client_chain(key);
        for pair in pairs() {
            let key_shares = match key {
                KeyAlgorithm::MlDsa87 if pair.0 == StackName::S2nTls => {
                    vec![group, Group::Secp256r1]
                }
                _ => vec![group],
            };
            let config = TlsConfig {
                group,
                key_shares,
                client_chain: Some(&client_chain),
                ..config(pair, &chain)
            };
            let stack = stack(&config).unwrap();
            let mut handshake = handshake_in_memory(stack.as_ref()).unwrap();
            let observation = observe(&handshake);
            assert!(observation.bytes(Message::CertificateRequest).is_some());
            assert_eq!(
                observation.bytes(Message::ClientCertificate),
                Some(client_chain.certificate_message_bytes()),
                "{pair:?}"
            );
            assert_talks(&mut handshake);

            // A client that is not trusted, or that has no purpose as a client.
            for bad in [&strange_client_chain(key), &chain] {
                let server = lastbyte_tls::stack(&config).unwrap();
                let bad = TlsConfig {
                    client_chain: Some(bad),
                    ..config.clone()
                };
                let client = lastbyte_tls::stack(&bad).unwrap();
                let error = handshake_between(client.client().unwrap(), server.server().unwrap());
                let error = error.err().unwrap();
                assert!(
                    matches!(error, TlsError::Certificate { .. }),
                    "{pair:?}: {error}"
                );
            }
            let resumed = TlsConfig {
                resumption: Resumption::Ticket,
                ..config.clone()
            };
            if let Some(stack) = stack_if_can(&resumed, Feature::MutualResumption) {
                let handshake = handshake_in_memory(stack.as_ref()).unwrap();
                let observation = observe(&handshake);
                assert_eq!(observation.resumed, Some(true), "{pair:?}");
                assert_eq!(observation.bytes(Message::ClientCertificate), None);
            }
        }
    }
}
