//! Go's crypto/tls: TLS, ML-KEM and ML-DSA that share no line with OpenSSL.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use lastbyte_tls::Group;

use crate::harness::{
    Arm, BODY, Program, Server, arms, classical, get, installed, installed_at, post_quantum,
    refuse, stranger,
};

/// All but ML-KEM alone.
const GROUPS: [Group; 6] = [
    Group::Secp256r1,
    Group::X25519,
    Group::Secp384r1,
    Group::Secp256r1MlKem768,
    Group::X25519MlKem768,
    Group::Secp384r1MlKem1024,
];

#[test]
fn our_client_speaks_with_go() {
    for arm in arms(&GROUPS, Group::X25519MlKem768) {
        let mut server = server(&arm);
        let address = server.line_after("listening on ").parse().unwrap();
        arm.expect(&get(&arm, address, "hello from Go"));
        assert_eq!(
            server.line_after("group "),
            arm.group.code_point().to_string()
        );
    }
}

#[test]
fn our_client_refuses_an_unknown_root_of_go() {
    let (ours, other) = (post_quantum(), stranger(Group::X25519MlKem768));
    let mut server = server(&ours);
    let address = server.line_after("listening on ").parse().unwrap();
    assert_eq!(refuse(&other, address), "unknown_ca");
}

#[test]
fn our_server_speaks_with_go() {
    for arm in arms(&GROUPS, Group::X25519MlKem768) {
        let server = Server::start(&arm);
        let mut client = client(&server, &arm, Some(arm.group), &arm);
        assert_eq!(
            client.line_after("group "),
            arm.group.code_point().to_string()
        );
        client.end().expect(BODY);
        arm.expect(&server.answered());
    }
}

#[test]
fn go_tries_again_with_our_group() {
    for group in GROUPS {
        let arm = classical(group);
        let server = Server::start(&arm);
        client(&server, &arm, None, &arm).end().expect(BODY);
        // It sends a key share of these two at once.
        match group {
            Group::X25519MlKem768 | Group::X25519 => arm.expect(&server.answered()),
            _ => arm.expect_retried(&server.answered()),
        }
    }
}

#[test]
fn go_refuses_an_unknown_root() {
    let (ours, other) = (post_quantum(), stranger(Group::X25519MlKem768));
    let server = Server::start(&ours);
    let client = client(&server, &ours, None, &other);
    client.end().expect_failure("signed by unknown authority");
    assert_eq!(server.refusal(), "bad_certificate");
}

fn server(arm: &Arm) -> Program {
    let mut command = peer();
    let files = [arm.chain_file(), arm.key_file()];
    Program::start(command.arg("server").args(files))
}

/// A client of an arm that offers one group, or Go's choice, and trusts the root of another.
fn client(server: &Server, arm: &Arm, group: Option<Group>, trusted: &Arm) -> Program {
    let mut command = peer();
    command
        .args(["client", &server.address.to_string(), arm.name()])
        .arg(trusted.root_file())
        .args(group.map(|group| group.code_point().to_string()));
    Program::start(&mut command)
}

/// The program, compiled once for all tests.
fn peer() -> Command {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    let program = PROGRAM.get_or_init(|| {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        // Other test processes may be at it: each compiles its own, and the last one stays.
        let program = folder.join("go-peer");
        let draft = folder.join(format!("go-peer-{}", std::process::id()));
        let mut compiler = installed("go");
        compiler
            .env("GOCACHE", installed_at("go-cache"))
            .env("GOTOOLCHAIN", "local")
            .args(["build", "-o"])
            .arg(&draft)
            .arg(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/tests/interop/go/peer.go"
            ));
        Program::start(&mut compiler).end().expect("");
        std::fs::rename(draft, &program).unwrap();
        program
    });
    Command::new(program)
}
