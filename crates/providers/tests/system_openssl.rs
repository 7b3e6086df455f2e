//! What the build says to an OpenSSL of the machine.
#![allow(clippy::unwrap_used)]

use std::process::Command;

#[test]
fn an_openssl_without_post_quantum_cryptography_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("build-script");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/build.rs");
    let mut compiler = Command::new("rustc");
    // sudo has another.
    compiler.env("PATH", env!("PATH"));
    compiler.args(["--edition=2024", "-o"]).arg(&script);
    assert!(compiler.arg(source).status().unwrap().success());
    let said = |number: &str| {
        let mut script = Command::new(&script);
        let output = script.env("DEP_OPENSSL_VERSION_NUMBER", number).output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    };
    // OpenSSL 3.0.17, 3.5.0 and 3.6.3.
    assert!(said("30000110").contains(
        "cargo::error=this machine's OpenSSL 3.0.17 has no post-quantum cryptography: 3.5 or newer is needed"
    ));
    assert!(!said("30500000").contains("error"));
    assert!(!said("30600030").contains("error"));
}
