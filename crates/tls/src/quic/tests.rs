#![allow(clippy::unwrap_used, clippy::panic)]

use lastbyte_pki::KeyAlgorithm;

use super::*;
use crate::fixtures::{openssl, plain_chain};
use crate::{Group, Stack};

/// Messages by who sent them and the level that they were written at; none is before any other.
#[derive(Default)]
struct Sent {
    level: Option<Level>,
    secrets: Vec<(Level, PacketSecret)>,
    crypto: Vec<(Option<Level>, usize)>,
}

/// Moves what one side has to the other.
fn carry(from: &mut dyn QuicTls, to: &mut dyn QuicTls, sent: &mut Sent) -> Result<(), TlsError> {
    from.advance()?;
    while let Some(output) = from.next() {
        match output {
            QuicOutput::Crypto(bytes) => {
                sent.crypto.push((sent.level, bytes.len()));
                to.receive(&bytes);
                // A level is read before the next one is begun.
                to.advance()?;
            }
            QuicOutput::Level(level, secret) => {
                sent.level = Some(level);
                sent.secrets.push((level, secret));
            }
        }
    }
    Ok(())
}

fn handshake(stack: &dyn Stack, parameters: [&[u8]; 2]) -> Result<[Sent; 2], TlsError> {
    let mut client = stack.quic_client(parameters[0])?;
    let mut server = stack.quic_server(parameters[1])?;
    let mut sent = [Sent::default(), Sent::default()];
    for _ in 0..3 {
        carry(client.as_mut(), server.as_mut(), &mut sent[0])?;
        carry(server.as_mut(), client.as_mut(), &mut sent[1])?;
    }
    assert_eq!(client.advance()?, Progress::Established);
    assert_eq!(server.advance()?, Progress::Established);
    assert_eq!(client.peer_parameters().as_deref(), Some(parameters[1]));
    assert_eq!(server.peer_parameters().as_deref(), Some(parameters[0]));
    for (secrets, peer) in [(&sent[0].secrets, &server), (&sent[1].secrets, &client)] {
        for (level, secret) in secrets {
            assert!(peer.opening_secret(*level) == Some(secret.clone()));
        }
        assert_eq!(secrets.len(), 2);
    }
    Ok(sent)
}

#[test]
fn messages_leave_at_their_levels_and_both_sides_have_the_same_secrets() {
    for algorithm in [KeyAlgorithm::EcdsaP256, KeyAlgorithm::MlDsa87] {
        let stack = openssl(Group::X25519MlKem768, &plain_chain(algorithm));
        let [client, server] = handshake(&stack, [b"client", b"server's"]).unwrap();
        let levels = |sent: &Sent| {
            let mut levels: Vec<_> = sent.crypto.iter().map(|(level, _)| *level).collect();
            levels.dedup();
            levels
        };
        assert_eq!(levels(&client), [None, Some(Level::Handshake)]);
        assert_eq!(levels(&server), [None, Some(Level::Handshake)]);
        // Neither has a session ID of compatibility (RFC 9001, 8.4): over TCP it has 1210.
        assert_eq!(server.crypto[0].1, 1178);
    }
}

#[test]
fn tickets_follow_at_the_last_level() {
    let chain = plain_chain(KeyAlgorithm::EcdsaP256);
    let mut stack = openssl(Group::X25519, &chain);
    stack.tickets = 2;
    let [_, server] = handshake(&stack, [b"", b""]).unwrap();
    assert_eq!(server.crypto.last().unwrap().0, Some(Level::Application));
}

#[test]
fn a_client_that_does_not_trust_the_chain_has_an_alert() {
    let one = openssl(Group::X25519, &plain_chain(KeyAlgorithm::EcdsaP256));
    let other = openssl(Group::X25519, &plain_chain(KeyAlgorithm::MlDsa44));
    let mut client = one.quic_client(b"").unwrap();
    let mut server = other.quic_server(b"").unwrap();
    let mut sent = Sent::default();
    carry(client.as_mut(), server.as_mut(), &mut sent).unwrap();
    let error = carry(server.as_mut(), client.as_mut(), &mut sent).unwrap_err();
    assert!(matches!(error, TlsError::Certificate { .. }), "{error}");
    // unknown_ca.
    assert_eq!(client.alert(), Some(Alert(48)));
}

#[test]
fn what_is_no_handshake_is_an_error() {
    let stack = openssl(Group::X25519, &plain_chain(KeyAlgorithm::EcdsaP256));
    let mut server = stack.quic_server(b"").unwrap();
    server.receive(&[7; 100]);
    assert!(server.advance().is_err());
    assert!(server.alert().is_some());
}

#[test]
fn a_seed_decides_every_byte() {
    use crate::Randomness;

    let stack = openssl(Group::X25519MlKem768, &plain_chain(KeyAlgorithm::EcdsaP256));
    let hello = |seed| {
        let _seeded = Randomness::of_seed(seed);
        let mut client = stack.quic_client(b"").unwrap();
        client.advance().unwrap();
        match client.next() {
            Some(QuicOutput::Crypto(bytes)) => bytes,
            _ => panic!("no ClientHello"),
        }
    };
    assert_eq!(hello(1), hello(1));
    assert_ne!(hello(1), hello(2));
    // And none is left behind.
    let free = || {
        let mut client = stack.quic_client(b"").unwrap();
        client.advance().unwrap();
        client.next().is_some().then(|| client.key_log())
    };
    let mut random = [[0; 32]; 2];
    for bytes in &mut random {
        ::openssl::rand::rand_bytes(bytes).unwrap();
    }
    assert_ne!(random[0], random[1]);
    assert!(free().is_some());
}
