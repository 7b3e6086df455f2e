//! What documents say of the program is so.
use std::fs;
use std::path::Path;

fn read(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::read_to_string(root.join(name)).unwrap()
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
