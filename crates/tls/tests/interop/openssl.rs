//! Debian's `openssl` program. Its version is the system's, so only what each has is asked of
//! it: classical groups and chains.

use std::process::Stdio;

use lastbyte_tls::Group;

use crate::harness::{Arm, BODY, Program, Server, classical, classical_arms, get, stranger, tool};

#[test]
fn our_client_speaks_with_s_server() {
    for arm in classical_arms() {
        let mut command = tool("openssl");
        command
            .args("s_server -accept 127.0.0.1:0 -naccept 1 -tls1_3 -www".split(' '))
            .arg("-cert")
            .arg(arm.chain_file())
            .arg("-cert_chain")
            .arg(arm.issuers_file())
            .arg("-key")
            .arg(arm.key_file());
        let mut server = Program::start(command.stdin(Stdio::piped()));
        let address = server.line_after("ACCEPT ").parse().unwrap();
        arm.expect(&get(&arm, address, "</HTML>"));
    }
}

#[test]
fn our_server_speaks_with_s_client() {
    for arm in classical_arms() {
        let server = Server::start(&arm);
        let mut client = s_client(&server, &arm, arm.openssl_group(), &arm);
        client.say("GET / HTTP/1.1\r\n\r\n");
        client.end().expect(BODY);
        arm.expect(&server.answered());
    }
}

#[test]
fn s_client_tries_again_with_our_group() {
    let arm = classical(Group::Secp384r1);
    let server = Server::start(&arm);
    // It sends a key share of the first alone.
    let mut client = s_client(&server, &arm, "X25519:P-384", &arm);
    client.say("GET / HTTP/1.1\r\n\r\n");
    client.end().expect(BODY);
    arm.expect_retried(&server.answered());
}

#[test]
fn s_client_refuses_an_unknown_root() {
    let (ours, other) = (classical(Group::X25519), stranger(Group::X25519));
    let server = Server::start(&ours);
    let client = s_client(&server, &ours, "X25519", &other);
    client.end().expect_failure("unable to get local issuer");
    assert_eq!(server.refusal(), "unknown_ca");
}

/// A client of an arm that offers these groups and trusts the root of another arm.
fn s_client(server: &Server, arm: &Arm, groups: &str, trusted: &Arm) -> Program {
    let mut command = tool("openssl");
    // Our server leaves without close_notify.
    let options = "s_client -tls1_3 -quiet -verify_return_error -ignore_unexpected_eof";
    command
        .args(options.split(' '))
        .args(["-groups", groups])
        .args(["-servername", arm.name(), "-verify_hostname", arm.name()])
        .args(["-connect", &server.address.to_string()])
        .arg("-CAfile")
        .arg(trusted.root_file());
    Program::start(command.stdin(Stdio::piped()))
}
