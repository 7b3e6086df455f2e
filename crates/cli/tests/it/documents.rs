//! What documents say of the program is so.
use std::fs;
use std::path::Path;

fn read(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::read_to_string(root.join(name)).unwrap()
}

/// Versions, code points and drafts of docs/standards.md are those of the code.
#[test]
fn what_is_said_to_be_followed_is() {
    use lastbyte_tls::{Group, names};
    let page = read("docs/standards.md");
    let has = |text: &str| assert!(page.contains(text), "docs/standards.md has no {text:?}");
    for group in Group::ALL {
        has(&format!(
            "| {} | {:#06x} |",
            group.name(),
            group.code_point()
        ));
    }
    for code_point in [0x0904, 0x0905, 0x0906] {
        let name = names::signature_scheme(code_point).unwrap();
        has(&format!("{name} is {code_point:#06x}"));
    }
    let lock = read("Cargo.lock");
    let version = |name: &str| {
        let (_, rest) = lock
            .split_once(&format!("name = \"{name}\"\nversion = \""))
            .unwrap();
        rest.split_once('"').unwrap().0.to_owned()
    };
    let vendored = version("openssl-src");
    let (_, openssl) = vendored.split_once('+').unwrap();
    has(&format!("| {openssl} (`openssl-src` {vendored}) |"));
    let series = openssl.rsplit_once('.').unwrap().0;
    has(&format!("{series} is no LTS series"));
    for name in ["rustls", "s2n-tls"] {
        has(&format!("| {name} | {} |", version(name)));
    }
    let source = read("crates/lastbyte/src/kernel/source.rs");
    let (_, kernel) = source.split_once("const VERSION: &str = \"").unwrap();
    let kernel = kernel.split_once('-').unwrap().0;
    has(&format!("| Linux {kernel}, "));
    let (minor, _) = kernel.rsplit_once('.').unwrap();
    has(&format!("those of Linux {minor}: "));
    // What the code says that it follows.
    for (place, draft) in [
        ("crates/mtc/src/id.rs", "draft-ietf-tls-trust-anchor-ids-06"),
        (
            "crates/results/src/reduce/reduction/mtc.rs",
            "draft-ietf-plants-merkle-tree-certs-07",
        ),
        (
            "crates/tls/src/abridged.rs",
            "draft-ietf-tls-cert-abridge-02",
        ),
        (
            "crates/results/src/reduce/reduction/elided.rs",
            "draft-kampanakis-tls-scas-latest-03",
        ),
        ("crates/sizes/src/signature.rs", "draft-reddy-tls-slhdsa-02"),
        (
            "crates/sizes/src/signature.rs",
            "draft-ietf-lamps-fn-dsa-certificates-00",
        ),
        ("crates/sizes/src/group.rs", "RFC 10024"),
        ("crates/tls/src/s2n/policies.rs", "20250721"),
    ] {
        assert!(read(place).contains(draft), "{place} has no {draft:?}");
        has(draft);
    }
    let anchors = read("crates/results/src/reduce/reduction/elided.rs");
    assert!(anchors.contains("names 28 anchors in its ClientHello, in 186 bytes"));
    has("name 28 trust anchors in their ClientHello, 186 bytes");
}

#[test]
fn who_cites_names_this_version_and_its_licences() {
    let citation = read("CITATION.cff");
    let value = |key: &str| {
        let mut lines = citation.lines();
        lines
            .find_map(|line| line.strip_prefix(key))
            .unwrap()
            .trim()
    };
    assert_eq!(value("cff-version:"), "1.2.0");
    assert_eq!(value("version:"), env!("CARGO_PKG_VERSION"));
    let (_, licences) = citation.split_once("\nlicense:\n").unwrap();
    let licences = licences.lines().map_while(|line| line.strip_prefix("  - "));
    let licences: Vec<_> = licences.collect();
    assert_eq!(licences.join(" OR "), env!("CARGO_PKG_LICENSE"));
}
