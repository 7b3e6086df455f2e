//! curl, as a client: Debian's with the system's OpenSSL and classical chains, and PyPI's with
//! OpenSSL 3.6, through Python.

use lastbyte_tls::Group;

use crate::harness::{
    Arm, BODY, Program, Server, arms, classical, classical_arms, installed, post_quantum, stranger,
    tool,
};

#[test]
fn our_server_speaks_with_curl() {
    for arm in classical_arms() {
        let server = Server::start(&arm);
        curl(&server, &arm, &arm).end().expect(BODY);
        arm.expect(&server.answered());
    }
}

#[test]
fn curl_refuses_an_unknown_root() {
    let (ours, other) = (classical(Group::X25519), stranger(Group::X25519));
    let server = Server::start(&ours);
    let failure = "unable to get local issuer certificate";
    curl(&server, &ours, &other).end().expect_failure(failure);
    assert_eq!(server.refusal(), "unknown_ca");
}

#[test]
fn our_server_speaks_with_pycurl() {
    for arm in arms(&Group::ALL, Group::X25519MlKem768) {
        let server = Server::start(&arm);
        let client = pycurl(&server, &arm, Some(arm.group), &arm);
        client.end().expect(BODY);
        arm.expect(&server.answered());
    }
}

#[test]
fn pycurl_tries_again_with_our_group() {
    for group in [Group::X25519MlKem768, Group::X25519, Group::Secp384r1] {
        let arm = classical(group);
        let server = Server::start(&arm);
        pycurl(&server, &arm, None, &arm).end().expect(BODY);
        // It sends a key share of the first two at once.
        match group {
            Group::Secp384r1 => arm.expect_retried(&server.answered()),
            _ => arm.expect(&server.answered()),
        }
    }
}

#[test]
fn pycurl_refuses_an_unknown_root() {
    let (ours, other) = (post_quantum(), stranger(Group::X25519MlKem768));
    let server = Server::start(&ours);
    let client = pycurl(&server, &ours, None, &other);
    // It judges after the handshake, and sends no alert.
    client.end().expect_failure("unable to get local issuer");
}

/// Debian's curl of an arm, which trusts the root of another.
fn curl(server: &Server, arm: &Arm, trusted: &Arm) -> Program {
    let (name, port) = (arm.name(), server.address.port());
    let mut command = tool("curl");
    command
        .args(["--silent", "--show-error", "--tlsv1.3", "--max-time", "20"])
        .args(["--curves", arm.openssl_group()])
        .args(["--resolve", &format!("{name}:{port}:127.0.0.1")])
        .arg("--cacert")
        .arg(trusted.root_file())
        .arg(format!("https://{name}:{port}/"));
    Program::start(&mut command)
}

/// PyPI's curl of an arm that offers one group, or its choice, and trusts the root of another.
fn pycurl(server: &Server, arm: &Arm, group: Option<Group>, trusted: &Arm) -> Program {
    let mut command = installed("python");
    command
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/interop/ask.py"))
        .args([&server.address.port().to_string(), arm.name()])
        .arg(trusted.root_file())
        .args(group.map(Group::name));
    Program::start(&mut command)
}
