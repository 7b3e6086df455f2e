//! Every group with every key algorithm, on every pair of stacks: what a pair negotiates is read
//! off the wire, and what it can't do it says beforehand.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use lastbyte_pki::KeyAlgorithm;
use lastbyte_tls::observer::Message;
use lastbyte_tls::{Group, StackName, TlsConfig, handshake_in_memory, names};

use common::{Feature, chain, observe, pairs, stack_if_can};

#[test]
fn every_group_and_algorithm_on_every_pair() {
    for key in KeyAlgorithm::ALL {
        let chain = chain(key);
        // Signatures of SLH-DSA take up to seconds.
        let groups = match key.provided() {
            Some(_) => &[Group::X25519MlKem768][..],
            None => &Group::ALL[..],
        };
        for &group in groups {
            for (client, server) in pairs() {
                let config = TlsConfig {
                    client,
                    server,
                    ..TlsConfig::new(group, &chain)
                };
                let Some(stack) = stack_if_can(&config, Feature::Group(group, key)) else {
                    continue;
                };
                let what = format!("{client} {server} {group} {key}");
                let observation = observe(&handshake_in_memory(stack.as_ref()).expect(&what));
                assert_eq!(observation.version, Some(0x0304), "{what}");
                assert_eq!(observation.group, Some(group.code_point()), "{what}");
                assert_eq!(
                    observation.bytes(Message::HelloRetryRequest),
                    None,
                    "{what}"
                );
                assert_eq!(
                    observation.signature.and_then(names::signature_scheme),
                    Some(scheme(client, server, key)),
                    "{what}"
                );
                assert_eq!(
                    observation.bytes(Message::Certificate),
                    Some(chain.certificate_message_bytes()),
                    "{what}"
                );
                assert_eq!(observation.certificates.len(), 2, "{what}");
                assert_eq!(
                    observation.server_name.as_deref(),
                    Some("server.example"),
                    "{what}"
                );
            }
        }
    }
}

/// What `server` signs with. For RSA, rustls prefers the longest hash, on either side, and the
/// others the shortest. OpenSSL's server obeys the client.
fn scheme(client: StackName, server: StackName, key: KeyAlgorithm) -> &'static str {
    match key {
        KeyAlgorithm::EcdsaP256 => "ecdsa_secp256r1_sha256",
        KeyAlgorithm::EcdsaP384 => "ecdsa_secp384r1_sha384",
        KeyAlgorithm::Rsa2048 | KeyAlgorithm::Rsa3072 | KeyAlgorithm::Rsa4096 => {
            match (client, server) {
                (_, StackName::Rustls) | (StackName::Rustls, StackName::OpenSsl) => {
                    "rsa_pss_rsae_sha512"
                }
                _ => "rsa_pss_rsae_sha256",
            }
        }
        KeyAlgorithm::MlDsa44 => "mldsa44",
        KeyAlgorithm::MlDsa65 => "mldsa65",
        KeyAlgorithm::MlDsa87 => "mldsa87",
        KeyAlgorithm::SlhDsa(_) | KeyAlgorithm::FnDsa512 | KeyAlgorithm::FnDsa1024 => {
            key.provided().unwrap().scheme.to_str().unwrap()
        }
    }
}

/// Whatever shares are asked for, they are what is sent, or the client says that it can't.
#[test]
fn every_choice_of_key_shares_on_every_pair() {
    let mut done = 0;
    for key in [KeyAlgorithm::EcdsaP256, KeyAlgorithm::MlDsa44] {
        let chain = chain(key);
        for group in Group::ALL {
            for key_shares in [
                vec![Group::X25519],
                vec![Group::Secp256r1],
                vec![Group::X25519MlKem768],
                vec![Group::X25519MlKem768, Group::X25519],
                vec![Group::X25519MlKem768, Group::Secp256r1],
                vec![Group::Secp256r1MlKem768, Group::Secp256r1],
            ] {
                for (client, server) in pairs() {
                    let config = TlsConfig {
                        client,
                        server,
                        key_shares: key_shares.clone(),
                        ..TlsConfig::new(group, &chain)
                    };
                    let stack = match lastbyte_tls::stack(&config) {
                        Err(lastbyte_tls::TlsError::Unsupported { stack, .. }) => {
                            assert_ne!(stack, "openssl");
                            continue;
                        }
                        stack => stack.unwrap(),
                    };
                    let what = format!("{client} {server} {group} {key} {key_shares:?}");
                    let hello = first_flight(stack.as_ref());
                    assert_eq!(sent_key_shares(&hello), key_shares, "{what}");
                    let observation = observe(&handshake_in_memory(stack.as_ref()).expect(&what));
                    assert_eq!(observation.group, Some(group.code_point()), "{what}");
                    assert_eq!(
                        observation.bytes(Message::HelloRetryRequest).is_none(),
                        key_shares.contains(&group),
                        "{what}"
                    );
                    done += 1;
                }
            }
        }
    }
    // All that OpenSSL does with itself, at least.
    assert!(done >= 2 * 8 * 6, "{done}");
}

fn first_flight(stack: &dyn lastbyte_tls::Stack) -> Vec<u8> {
    let mut client = stack.client().unwrap();
    client.advance().unwrap();
    let mut sent = Vec::new();
    client.transmit(&mut sent);
    sent
}

/// The groups of the key_share extension of a ClientHello (RFC 8446, 4.1.2 and 4.2.8).
fn sent_key_shares(record: &[u8]) -> Vec<Group> {
    let number = |at: usize, width: usize| {
        let bytes = &record[at..at + width];
        bytes
            .iter()
            .fold(0, |sum, &byte| sum << 8 | usize::from(byte))
    };
    // The headers, the version and the random.
    let mut at = 5 + 4 + 2 + 32;
    at += 1 + number(at, 1);
    at += 2 + number(at, 2);
    at += 1 + number(at, 1);
    let end = at + 2 + number(at, 2);
    at += 2;
    while at < end {
        let (kind, length) = (number(at, 2), number(at + 2, 2));
        at += 4;
        if kind == 51 {
            let mut groups = Vec::new();
            let mut share = at + 2;
            while share < at + length {
                let code_point = number(share, 2);
                let group = |group: &Group| usize::from(group.code_point()) == code_point;
                groups.push(Group::ALL.into_iter().find(group).unwrap());
                share += 4 + number(share + 2, 2);
            }
            return groups;
        }
        at += length;
    }
    panic!("no key_share extension");
}
