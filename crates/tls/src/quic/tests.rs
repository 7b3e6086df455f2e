#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use lastbyte_pki::KeyAlgorithm;

use super::*;
use crate::fixtures::{openssl, plain_chain};
use crate::pairing::Pairing;
use crate::{Group, Resumption, Stack, StackName, Tickets, TlsConfig};

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
    let mut server = stack.quic_server(Tickets::Configured, parameters[1])?;
    let sent = complete(client.as_mut(), server.as_mut())?;
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

fn complete(client: &mut dyn QuicTls, server: &mut dyn QuicTls) -> Result<[Sent; 2], TlsError> {
    let mut sent = [Sent::default(), Sent::default()];
    for _ in 0..3 {
        carry(client, server, &mut sent[0])?;
        carry(server, client, &mut sent[1])?;
    }
    assert_eq!(client.advance()?, Progress::Established);
    assert_eq!(server.advance()?, Progress::Established);
    Ok(sent)
}

/// The stacks that do without records, as far as they are built in.
fn stacks() -> impl Iterator<Item = StackName> + Clone {
    let all = StackName::ALL.into_iter();
    all.filter(|stack| stack.has_quic() && crate::version(*stack).is_some())
}

#[test]
fn who_has_no_quic_says_so() {
    let chain = plain_chain(KeyAlgorithm::EcdsaP256);
    for name in StackName::ALL {
        let stack = Pairing::new(&TlsConfig {
            client: name,
            server: name,
            ..TlsConfig::new(Group::X25519, &chain)
        });
        let Ok(stack) = stack else { continue };
        let both = [
            stack.quic_client(b""),
            stack.quic_server(Tickets::Configured, b""),
        ];
        for side in both {
            assert_eq!(side.is_ok(), name.has_quic(), "{name}");
        }
    }
}

#[test]
fn messages_leave_at_their_levels_and_both_sides_have_the_same_secrets() {
    let pairs = stacks().flat_map(|client| stacks().map(move |server| (client, server)));
    let algorithms = [KeyAlgorithm::EcdsaP256, KeyAlgorithm::MlDsa87];
    for ((client, server), algorithm) in
        pairs.flat_map(|pair| algorithms.map(|algorithm| (pair, algorithm)))
    {
        let chain = plain_chain(algorithm);
        let stack = Pairing::new(&TlsConfig {
            client,
            server,
            ..TlsConfig::new(Group::X25519MlKem768, &chain)
        });
        let stack = stack.unwrap();
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
    for name in stacks() {
        let stack = Pairing::new(&TlsConfig {
            client: name,
            server: name,
            tickets: 2,
            ..TlsConfig::new(Group::X25519, &chain)
        });
        let [_, server] = handshake(&stack.unwrap(), [b"", b""]).unwrap();
        assert_eq!(
            server.crypto.last().unwrap().0,
            Some(Level::Application),
            "{name}"
        );
    }
}

#[test]
fn both_sides_have_the_secret_of_early_data_that_is_taken() {
    let chain = plain_chain(KeyAlgorithm::EcdsaP256);
    for (client, server) in stacks().flat_map(|client| stacks().map(move |server| (client, server)))
    {
        let what = format!("{client}, {server}");
        let stack = Pairing::new(&TlsConfig {
            client,
            server,
            resumption: Resumption::EarlyData,
            ..TlsConfig::new(Group::X25519MlKem768, &chain)
        });
        let stack = stack.unwrap();
        let server = |tickets| stack.quic_server(tickets, b"server's").unwrap();
        let (mut before, mut its) = (stack.quic_client(b"").unwrap(), server(Tickets::OfSession));
        complete(before.as_mut(), its.as_mut()).unwrap();
        assert!(before.early_secret().is_none() && its.early_secret().is_none());
        let session = before.session().unwrap();
        let mut client = stack.quic_resuming_client(&session, b"").unwrap();
        let mut server = server(Tickets::Configured);
        client.advance().unwrap();
        // Before anything has come: what the client remembers (RFC 9000, 7.4.1).
        assert_eq!(client.peer_parameters().as_deref(), Some(&b"server's"[..]));
        let secret = client.early_secret().expect(&what);
        carry(client.as_mut(), server.as_mut(), &mut Sent::default()).unwrap();
        assert!(server.early_secret() == Some(secret), "{what}");
        complete(client.as_mut(), server.as_mut()).unwrap();
        assert!(client.is_early_data_accepted(), "{what}");
    }
}

#[test]
fn a_client_that_does_not_trust_the_chain_has_an_alert() {
    let [own, foreign] = [KeyAlgorithm::EcdsaP256, KeyAlgorithm::MlDsa44].map(plain_chain);
    for client in stacks() {
        let one = Pairing::new(&TlsConfig {
            client,
            ..TlsConfig::new(Group::X25519, &own)
        });
        let other = openssl(Group::X25519, &foreign);
        let is_rustls = client != StackName::OpenSsl;
        let mut client = one.unwrap().quic_client(b"").unwrap();
        let mut server = other.quic_server(Tickets::Configured, b"").unwrap();
        let mut sent = Sent::default();
        carry(client.as_mut(), server.as_mut(), &mut sent).unwrap();
        let error = carry(server.as_mut(), client.as_mut(), &mut sent).unwrap_err();
        assert!(matches!(error, TlsError::Certificate { .. }), "{error}");
        // unknown_ca; decrypt_error of rustls, whose root has the name of the other's and another key.
        let alert = if is_rustls { 51 } else { 48 };
        assert_eq!(client.alert(), Some(Alert(alert)));
    }
}

#[test]
fn what_is_no_handshake_is_an_error() {
    let chain = plain_chain(KeyAlgorithm::EcdsaP256);
    for name in stacks() {
        let stack = Pairing::new(&TlsConfig {
            server: name,
            ..TlsConfig::new(Group::X25519, &chain)
        });
        let mut server = stack
            .unwrap()
            .quic_server(Tickets::Configured, b"")
            .unwrap();
        server.receive(&[7; 100]);
        assert!(server.advance().is_err());
        // rustls has no alert for a type that it does not know.
        assert_eq!(server.alert().is_some(), name == StackName::OpenSsl);
    }
}

#[test]
fn a_seed_decides_every_byte() {
    let chain = plain_chain(KeyAlgorithm::EcdsaP256);
    for client in stacks() {
        let stack = Pairing::new(&TlsConfig {
            client,
            ..TlsConfig::new(Group::X25519MlKem768, &chain)
        });
        decides_every_byte(&stack.unwrap());
    }
}

fn decides_every_byte(stack: &dyn Stack) {
    use crate::Randomness;

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

#[test]
fn sequences_that_take_turns_go_on_where_they_were() {
    use crate::RandomSequence;

    let draw = || {
        let mut bytes = [0; 8];
        ::openssl::rand::rand_bytes(&mut bytes).unwrap();
        bytes
    };
    let alone = |seed| {
        let mut sequence = RandomSequence::of_seed(seed);
        sequence.within(|| [draw(), draw(), draw()])
    };
    let mut taking_turns = [1, 2].map(RandomSequence::of_seed);
    let mut drawn = [Vec::new(), Vec::new()];
    for _ in 0..3 {
        for (sequence, drawn) in taking_turns.iter_mut().zip(&mut drawn) {
            drawn.push(sequence.within(draw));
        }
    }
    assert_eq!(
        drawn.map(|drawn| [drawn[0], drawn[1], drawn[2]]),
        [alone(1), alone(2)]
    );
    // And none is left behind.
    assert_ne!(draw(), draw());
}
