//! What a configuration can ask for besides a group and a chain, on every pair of stacks.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;

use lastbyte_pki::{Chain, ChainSpec, KeyAlgorithm, Role, Store};
use lastbyte_tls::observer::{EarlyData, Observation};
use lastbyte_tls::{
    Connection, Group, Handshake, Progress, Resumption, Stack, TlsConfig, TlsError,
    handshake_between, handshake_in_memory, stack,
};

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\n\r\n";

fn chain(algorithm: KeyAlgorithm) -> Chain {
    made(&ChainSpec::new(algorithm))
}

fn client_chain(algorithm: KeyAlgorithm) -> Chain {
    made(&ChainSpec {
        role: Role::Client,
        ..ChainSpec::new(algorithm)
    })
}

fn made(spec: &ChainSpec) -> Chain {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let store = Store::open(target.join("test-chains"));
    store.chain(spec).unwrap()
}

fn observe(handshake: &Handshake) -> Observation {
    handshake.observer.observe(&handshake.client.key_log())
}

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

#[test]
fn a_wrong_guess_costs_a_hello_retry_request() {
    let chain = chain(KeyAlgorithm::EcdsaP256);
    let stack = stack(&TlsConfig {
        key_shares: vec![Group::X25519],
        ..TlsConfig::new(Group::X25519MlKem768, &chain)
    })
    .unwrap();
    let mut handshake = handshake_in_memory(stack.as_ref()).unwrap();
    let observation = observe(&handshake);
    assert_eq!(observation.group, Some(Group::X25519MlKem768.code_point()));
    assert_eq!(observation.hello_retry_request_bytes, Some(88));
    assert!(observation.second_client_hello_bytes > observation.client_hello_bytes);
    assert_talks(&mut handshake);
}

#[test]
fn several_key_shares_make_the_hello_larger() {
    let chain = chain(KeyAlgorithm::EcdsaP256);
    let stack = stack(&TlsConfig {
        key_shares: vec![Group::X25519MlKem768, Group::X25519],
        ..TlsConfig::new(Group::X25519MlKem768, &chain)
    })
    .unwrap();
    let observation = observe(&handshake_in_memory(stack.as_ref()).unwrap());
    assert_eq!(observation.hello_retry_request_bytes, None);
    // The group in supported_groups, a share of 32 bytes with its header, and ec_point_formats.
    assert_eq!(
        observation.client_hello_bytes,
        Some(1411 + 2 + (4 + 32) + 6)
    );
}

#[test]
fn both_sides_prove_themselves() {
    let server = chain(KeyAlgorithm::EcdsaP256);
    let client = client_chain(KeyAlgorithm::MlDsa44);
    let stack = stack(&TlsConfig {
        client_chain: Some(&client),
        ..TlsConfig::new(Group::X25519, &server)
    })
    .unwrap();
    let mut handshake = handshake_in_memory(stack.as_ref()).unwrap();
    let observation = observe(&handshake);
    assert!(observation.certificate_request_bytes.is_some());
    assert_eq!(
        observation.client_certificate_bytes,
        Some(client.certificate_message_bytes())
    );
    assert_eq!(observation.client_certificate_verify_bytes, Some(2428));
    assert_talks(&mut handshake);
}

fn resuming(resumption: Resumption, chain: &Chain) -> Box<dyn Stack> {
    stack(&TlsConfig {
        resumption,
        ..TlsConfig::new(Group::X25519MlKem768, chain)
    })
    .unwrap()
}

#[test]
fn a_session_is_resumed_as_often_as_one_likes() {
    let chain = chain(KeyAlgorithm::MlDsa44);
    let stack = resuming(Resumption::Ticket, &chain);
    let session = stack.session().unwrap();
    for _ in 0..3 {
        let client = stack.resuming_client(&session).unwrap();
        let mut handshake = handshake_between(client, stack.server().unwrap()).unwrap();
        let observation = observe(&handshake);
        assert_eq!(observation.resumed, Some(true));
        assert_eq!(observation.group, Some(Group::X25519MlKem768.code_point()));
        assert_eq!(observation.certificate_bytes, None);
        assert_eq!(observation.early_data, EarlyData::NotOffered);
        assert_talks(&mut handshake);
    }
    // A client gets a session by itself, as often as need be.
    for _ in 0..40 {
        let observation = observe(&handshake_in_memory(stack.as_ref()).unwrap());
        assert_eq!(observation.resumed, Some(true));
    }
}

#[test]
fn a_session_of_another_server_is_not_resumed() {
    let chain = chain(KeyAlgorithm::EcdsaP256);
    let [stack, other] = [(); 2].map(|()| resuming(Resumption::Ticket, &chain));
    let session = other.session().unwrap();
    let client = stack.resuming_client(&session).unwrap();
    let mut handshake = handshake_between(client, stack.server().unwrap()).unwrap();
    let observation = observe(&handshake);
    assert_eq!(observation.resumed, Some(false));
    assert!(observation.certificate_bytes.is_some());
    assert_talks(&mut handshake);
}

#[test]
fn early_data_is_answered_before_the_handshake_ends() {
    let chain = chain(KeyAlgorithm::MlDsa44);
    let stack = resuming(Resumption::EarlyData, &chain);
    let session = stack.session().unwrap();
    let mut client = stack.resuming_client(&session).unwrap();
    let mut server = stack.server().unwrap();

    client.write_early_data(REQUEST).unwrap();
    assert_eq!(client.advance().unwrap(), Progress::Handshaking);
    server.receive(&sent_by(client.as_mut()));
    assert_eq!(server.advance().unwrap(), Progress::Handshaking);
    let mut buffer = [0; 100];
    let count = server.read(&mut buffer).unwrap();
    assert_eq!(&buffer[..count], REQUEST);
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

#[test]
fn early_data_that_is_refused_can_be_sent_again() {
    let chain = chain(KeyAlgorithm::EcdsaP256);
    let [stack, other] = [(); 2].map(|()| resuming(Resumption::EarlyData, &chain));
    let session = other.session().unwrap();
    let mut client = stack.resuming_client(&session).unwrap();
    client.write_early_data(REQUEST).unwrap();
    let mut handshake = handshake_between(client, stack.server().unwrap()).unwrap();
    let observation = observe(&handshake);
    assert_eq!(observation.resumed, Some(false));
    assert_eq!(observation.early_data, EarlyData::Offered);
    assert!(!handshake.client.is_early_data_accepted());
    assert_talks(&mut handshake);
}

#[test]
fn early_data_needs_a_session_that_allows_it() {
    let chain = chain(KeyAlgorithm::EcdsaP256);
    let stack = resuming(Resumption::Ticket, &chain);
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

#[test]
fn a_server_that_expects_early_data_does_without() {
    let chain = chain(KeyAlgorithm::EcdsaP256);
    let stack = resuming(Resumption::EarlyData, &chain);
    let full = self::stack(&TlsConfig::new(Group::X25519MlKem768, &chain)).unwrap();
    for client in [full.client().unwrap(), stack.client().unwrap()] {
        let mut handshake = handshake_between(client, stack.server().unwrap()).unwrap();
        assert!(!handshake.client.is_early_data_accepted());
        assert_talks(&mut handshake);
    }
}

#[test]
fn tickets_are_sent_as_many_as_asked_for() {
    let chain = chain(KeyAlgorithm::EcdsaP256);
    let after_handshake = |tickets| {
        let stack = stack(&TlsConfig {
            tickets,
            ..TlsConfig::new(Group::X25519, &chain)
        })
        .unwrap();
        let handshake = handshake_in_memory(stack.as_ref()).unwrap();
        handshake.tickets_bytes
    };
    assert_eq!(after_handshake(0), 0);
    let one = after_handshake(1);
    assert!(one > 100);
    assert_eq!(after_handshake(2), 2 * one);
}

#[test]
fn a_chain_above_the_limit_is_refused() {
    let chain = chain(KeyAlgorithm::MlDsa65);
    let with_limit = |max_certificate_list| {
        let stack = stack(&TlsConfig {
            max_certificate_list: Some(max_certificate_list),
            ..TlsConfig::new(Group::X25519, &chain)
        })
        .unwrap();
        handshake_in_memory(stack.as_ref()).map(drop)
    };
    assert!(with_limit(chain.certificate_message_bytes()).is_ok());
    let error = with_limit(4096).unwrap_err().to_string();
    assert!(error.contains("excessive message size"), "{error}");
}

#[test]
fn what_a_stack_writes_at_once_can_be_had_apart() {
    let chain = chain(KeyAlgorithm::MlDsa65);
    let stack = stack(&TlsConfig::new(Group::X25519, &chain)).unwrap();
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
    assert!(ends.len() > 1, "{ends:?}");
    assert_eq!(sent_by(server.as_mut()), []);
    client.receive(&flight);
    assert_eq!(client.advance().unwrap(), Progress::Established);
}

#[test]
fn a_hello_may_come_byte_by_byte() {
    let chain = chain(KeyAlgorithm::EcdsaP256);
    let stack = stack(&TlsConfig::new(Group::X25519MlKem768, &chain)).unwrap();
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
