//! Node.js, with the OpenSSL 3.5 that it brings along.

use lastbyte_tls::Group;

use crate::harness::{
    Arm, BODY, Program, Server, arms, classical, get, installed, post_quantum, refuse, stranger,
};

#[test]
fn our_client_speaks_with_node() {
    for arm in arms(&Group::ALL, Group::Secp256r1MlKem768) {
        let mut server = server(&arm, Some(arm.group));
        let address = server.line_after("listening on ").parse().unwrap();
        arm.expect(&get(&arm, address, "hello from Node.js"));
    }
}

#[test]
fn our_client_speaks_with_a_node_of_defaults() {
    for group in [Group::X25519MlKem768, Group::X25519, Group::Secp256r1] {
        let arm = classical(group);
        let mut server = server(&arm, None);
        let address = server.line_after("listening on ").parse().unwrap();
        arm.expect(&get(&arm, address, "hello from Node.js"));
    }
}

#[test]
fn our_client_refuses_an_unknown_root_of_node() {
    let (ours, other) = (post_quantum(), stranger(Group::X25519MlKem768));
    let mut server = server(&ours, None);
    let address = server.line_after("listening on ").parse().unwrap();
    assert_eq!(refuse(&other, address), "unknown_ca");
}

#[test]
fn our_server_speaks_with_node() {
    for arm in arms(&Group::ALL, Group::Secp256r1MlKem768) {
        let server = Server::start(&arm);
        let client = client(&server, &arm, Some(arm.group), &arm);
        client.end().expect(BODY);
        arm.expect(&server.answered());
    }
}

#[test]
fn node_tries_again_with_our_group() {
    for group in [Group::X25519MlKem768, Group::X25519, Group::Secp384r1] {
        let arm = classical(group);
        let server = Server::start(&arm);
        client(&server, &arm, None, &arm).end().expect(BODY);
        // It sends a key share of the first two at once.
        match group {
            Group::Secp384r1 => arm.expect_retried(&server.answered()),
            _ => arm.expect(&server.answered()),
        }
    }
}

#[test]
fn node_refuses_an_unknown_root() {
    let (ours, other) = (post_quantum(), stranger(Group::X25519MlKem768));
    let server = Server::start(&ours);
    let client = client(&server, &ours, None, &other);
    // It judges after the handshake, and sends no alert.
    client
        .end()
        .expect_failure("UNABLE_TO_GET_ISSUER_CERT_LOCALLY");
}

/// A server of an arm that takes one group, or Node's choice.
fn server(arm: &Arm, group: Option<Group>) -> Program {
    let mut command = peer("server");
    command
        .args([arm.chain_file(), arm.key_file()])
        .args(group.map(Group::name));
    Program::start(&mut command)
}

/// A client of an arm that offers one group, or Node's choice, and trusts the root of another.
fn client(server: &Server, arm: &Arm, group: Option<Group>, trusted: &Arm) -> Program {
    let mut command = peer("client");
    command
        .args([&server.address.to_string(), arm.name()])
        .arg(trusted.root_file())
        .args(group.map(Group::name));
    Program::start(&mut command)
}

fn peer(role: &str) -> std::process::Command {
    let mut command = installed("node");
    command
        .arg(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/interop/node.js"
        ))
        .arg(role);
    command
}
