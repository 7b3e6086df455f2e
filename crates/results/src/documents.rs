//! What the code writes of `docs` is there as it would write it. With `UPDATE_DOCS=1`, it writes it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::Path;

use crate::results::rows;
use crate::study::file;

#[test]
fn study_md_has_every_key() {
    is_as_written("study.md", &file::reference());
}

#[test]
fn columns_md_has_every_column() {
    is_as_written("columns.md", &rows::reference());
}

fn is_as_written(name: &str, text: &str) {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let path = docs.join(name);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, text).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    let hint = "cargo nextest run --release -p lastbyte-results documents:: with UPDATE_DOCS=1 writes it anew";
    assert!(
        found == text,
        "docs/{name} is not what the code says: {hint}"
    );
}
