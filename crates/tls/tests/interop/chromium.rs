//! Debian's Chromium, as a client: BoringSSL, and what a browser offers by itself.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use lastbyte_pki::{ChainSpec, KeyAlgorithm};
use lastbyte_tls::Group;
use openssl::base64::encode_block;
use openssl::sha::sha256;

use crate::harness::{
    Arm, BODY, Ended, Program, Server, arm, classical, post_quantum, stranger, tool,
};

#[test]
fn our_server_speaks_with_chromium() {
    let chains = [
        ChainSpec::new(KeyAlgorithm::EcdsaP384),
        ChainSpec::new(KeyAlgorithm::Rsa2048),
        // A leaf of ML-DSA below a CA that its certificate store can hold.
        ChainSpec {
            leaf: KeyAlgorithm::MlDsa44,
            certificate_bytes: Some(16_000),
            ..ChainSpec::new(KeyAlgorithm::EcdsaP256)
        },
    ];
    for spec in chains {
        let arm = arm(Group::X25519MlKem768, &spec);
        let server = Server::start(&arm);
        browse(&server, &arm, Trust::Root(&arm)).expect(BODY);
        arm.expect(&server.answered());
    }
}

/// Nothing puts a root of ML-DSA in the store of certificates: there the leaf's key is trusted.
#[test]
fn chromium_takes_signatures_of_ml_dsa() {
    for key in [
        KeyAlgorithm::MlDsa44,
        KeyAlgorithm::MlDsa65,
        KeyAlgorithm::MlDsa87,
    ] {
        let arm = arm(Group::X25519MlKem768, &ChainSpec::new(key));
        let server = Server::start(&arm);
        browse(&server, &arm, Trust::Key).expect(BODY);
        arm.expect(&server.answered());
    }
}

#[cfg(feature = "rustls")]
#[test]
fn chromium_decompresses_our_certificates() {
    use lastbyte_tls::CertificateCompression::Brotli;
    let arm = arm(
        Group::X25519MlKem768,
        &ChainSpec::new(KeyAlgorithm::EcdsaP384),
    );
    let arm = arm.compressed(Brotli);
    let server = Server::start(&arm);
    browse(&server, &arm, Trust::Root(&arm)).expect(BODY);
    let seen = server.answered();
    assert!(seen.offered_compressions.contains(&Brotli.code_point()));
    arm.expect(&seen);
}

#[test]
fn chromium_tries_again_with_our_group() {
    for group in [Group::X25519, Group::Secp256r1, Group::Secp384r1] {
        let arm = classical(group);
        let server = Server::start(&arm);
        browse(&server, &arm, Trust::Root(&arm)).expect(BODY);
        // It sends a key share of X25519 beside that of X25519MLKEM768.
        match group {
            Group::X25519 => arm.expect(&server.answered()),
            _ => arm.expect_retried(&server.answered()),
        }
    }
}

#[test]
fn chromium_refuses_an_unknown_root() {
    let ours = post_quantum();
    let server = Server::start(&ours);
    let other = stranger(ours.group);
    let page = browse(&server, &ours, Trust::Root(&other));
    page.expect_complaint("ERR_CERT_AUTHORITY_INVALID");
    assert_eq!(server.refusal(), "certificate_unknown");
}

/// What a browser trusts.
enum Trust<'a> {
    /// The root of an arm.
    Root(&'a Arm),
    /// The key of the arm itself, whoever certified it.
    Key,
}

/// Opens a page of our server, which is of this arm.
fn browse(server: &Server, arm: &Arm, trust: Trust<'_>) -> Ended {
    let home = arm.file("home");
    let mut command = tool("chromium");
    // Without the last five, it speaks with its vendor's hosts.
    let options = "--headless --no-sandbox --disable-gpu --disable-quic --dump-dom \
        --no-first-run --disable-background-networking --disable-component-update \
        --disable-sync --disable-default-apps";
    command
        .env("HOME", &home)
        .args(options.split(' '))
        .arg(format!(
            "--user-data-dir={}",
            home.join("profile").display()
        ))
        .arg("--host-resolver-rules=MAP * 127.0.0.1");
    match trust {
        Trust::Root(trusted) => trust_root(&home, trusted),
        Trust::Key => {
            let key = sha256(&arm.chain.key().public_key_to_der().unwrap());
            let option = "--ignore-certificate-errors-spki-list";
            command.arg(format!("{option}={}", encode_block(&key)));
        }
    }
    let url = format!("https://{}:{}/", arm.name(), server.address.port());
    Program::start(command.arg(url).stdin(Stdio::null())).end()
}

/// Makes the store of certificates that Chromium looks for in a home.
fn trust_root(home: &Path, arm: &Arm) {
    let store = home.join(".pki/nssdb");
    std::fs::create_dir_all(&store).unwrap();
    let database = format!("sql:{}", store.display());
    let certutil = |options: &str, files: &[PathBuf]| {
        let mut command = tool("certutil");
        command
            .args(["-d", &database])
            .args(options.split(' '))
            .args(files);
        Program::start(&mut command).end().expect("");
    };
    certutil("-N --empty-password", &[]);
    certutil("-A -n root -t C,, -i", &[arm.root_file()]);
}
