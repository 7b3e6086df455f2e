//! What the code writes of `docs` is there as it would write it. With `UPDATE_DOCS=1`, it writes it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::Path;

use crate::explore;
use lastbyte_results::rows;
use lastbyte_study::file;

#[test]
fn study_md_has_every_key() {
    is_as_written("study.md", &file::reference());
}

#[test]
fn columns_md_has_every_column() {
    is_as_written("columns.md", &rows::reference());
}

#[test]
fn explore_html_is_the_page() {
    is_as_written("explore.html", &explore::page(None).unwrap());
}

/// Its author knows why, or what was tried.
#[test]
fn claims_and_published_numbers_that_are_not_met_have_a_cause() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let (mut claims, mut tables) = (0, 0);
    for entry in fs::read_dir(docs).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "html") {
            continue;
        }
        let page = fs::read_to_string(&path).unwrap();
        let of_claims = page.split_once("<table class=\"claims\">");
        let of_claims = of_claims.map_or("", |(_, rest)| rest.split("</table>").next().unwrap());
        for row in of_claims.split("<tr id=").skip(1) {
            let claim = row.split("<details>").next().unwrap();
            let holds = claim.contains("<b class=\"agrees\">");
            assert!(
                holds || claim.contains("class=\"cause\""),
                "{}: {claim}",
                path.display()
            );
            claims += 1;
        }
        let of_published = page.split("another run, 95 %</th>").skip(1);
        for table in of_published {
            let (numbers, after) = table.split_once("</table>").unwrap();
            let differs = numbers.contains("class=\"differs\"");
            assert!(
                !differs || after.starts_with("</div><p class=\"caption\">"),
                "{}: {numbers}",
                path.display()
            );
            tables += 1;
        }
    }
    assert!(
        claims > 20 && tables > 5,
        "{claims} claims, {tables} tables"
    );
}

fn is_as_written(name: &str, text: &str) {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let path = docs.join(name);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, text).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    let hint = "cargo nextest run --release -p lastbyte-report documents:: with UPDATE_DOCS=1 writes it anew";
    assert!(
        found == text,
        "docs/{name} is not what the code says: {hint}"
    );
}
