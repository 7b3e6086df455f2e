//! What documents say of the program is so, and their links lead somewhere.
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::common::repository::root;

fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap()
}

/// What a document written in Markdown leads to, and the anchors that its headings have.
#[derive(Default)]
struct Document {
    links: Vec<String>,
    anchors: BTreeSet<String>,
}

impl Document {
    fn new(text: &str) -> Document {
        let mut document = Document::default();
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        let mut heading: Option<String> = None;
        for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
            match event {
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    document.links.push(dest_url.into_string());
                }
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::Text(text) | Event::Code(text) if heading.is_some() => {
                    heading.as_mut().unwrap().push_str(&text);
                }
                Event::End(TagEnd::Heading(_)) => {
                    let anchor = anchor(&heading.take().unwrap());
                    let before = seen.entry(anchor.clone()).or_default();
                    document.anchors.insert(match *before {
                        0 => anchor,
                        again => format!("{anchor}-{again}"),
                    });
                    *before += 1;
                }
                _ => {}
            }
        }
        document
    }
}

/// The anchor of a heading, as GitHub and mdbook have it.
fn anchor(heading: &str) -> String {
    let letters = heading.chars().filter_map(|letter| match letter {
        ' ' => Some('-'),
        '-' | '_' => Some(letter),
        _ => letter.is_alphanumeric().then_some(letter),
    });
    letters.flat_map(char::to_lowercase).collect()
}

/// All documents of the repository, as paths below its root, without what was made or fetched.
fn documents(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let is_made = name.starts_with('.') || matches!(name, "target" | "corpus" | "node_modules");
        if path.is_dir() && !path.is_symlink() && !is_made {
            documents(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

/// A path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => _ = plain.pop(),
            part => plain.push(part),
        }
    }
    plain
}

/// Why a link leads nowhere, if it does.
fn broken(link: &str, from: &Path) -> Option<String> {
    let (target, anchor) = link.split_once('#').unwrap_or((link, ""));
    let at = match target {
        "" => from.to_owned(),
        target => plain(&from.parent().unwrap().join(target)),
    };
    if !at.starts_with(root()) || !at.exists() {
        return Some(format!("{link}: no such file"));
    }
    if anchor.is_empty() {
        return None;
    }
    let text = fs::read_to_string(&at).unwrap();
    let is_there = match at.extension().and_then(|extension| extension.to_str()) {
        Some("md") => Document::new(&text).anchors.contains(anchor),
        _ => text.contains(&format!("id=\"{anchor}\"")),
    };
    (!is_there).then(|| format!("{link}: no such heading"))
}

#[test]
fn links_of_documents_lead_somewhere() {
    let mut files = Vec::new();
    documents(&root(), &mut files);
    let (mut links, mut problems) = (0, Vec::new());
    for file in &files {
        let document = Document::new(&fs::read_to_string(file).unwrap());
        for link in &document.links {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            links += 1;
            if let Some(problem) = broken(link, file) {
                let file = file.strip_prefix(root()).unwrap();
                problems.push(format!("{}: {problem}", file.display()));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(
        files.len() > 60 && links > 400,
        "{links} links in {}",
        files.len()
    );
}

/// The book has every page of docs/, and the benchmarks' index has each of theirs.
#[test]
fn pages_are_in_the_book() {
    let listed = |index: &str| -> BTreeSet<PathBuf> {
        let folder = root().join(index);
        let links = Document::new(&read(index)).links.into_iter();
        links
            .map(|link| plain(&folder.parent().unwrap().join(link)))
            .collect()
    };
    let mut pages = Vec::new();
    documents(&root().join("docs"), &mut pages);
    let (book, benchmarks) = (listed("docs/SUMMARY.md"), listed("BENCHMARKS.md"));
    for page in &pages {
        let is_listed = book.contains(page) || page.ends_with("SUMMARY.md");
        assert!(is_listed, "docs/SUMMARY.md has no {}", page.display());
        let is_benchmark = page.starts_with(root().join("docs/benchmarks"));
        assert!(
            !is_benchmark || benchmarks.contains(page),
            "BENCHMARKS.md has no {}",
            page.display()
        );
    }
    assert!(pages.len() > 45 && benchmarks.len() > 15);
}

/// Who arrives reads these whole.
#[test]
fn what_is_read_first_is_short() {
    for (name, most) in [
        ("README.md", 10_000),
        ("ARCHITECTURE.md", 15_000),
        ("BENCHMARKS.md", 5_000),
        ("CHANGELOG.md", 12_000),
    ] {
        let bytes = read(name).len();
        assert!(bytes <= most, "{name} has {bytes} bytes: {most} are enough");
    }
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
    let recipes = read("crates/lastbyte/src/kernel/recipe.rs");
    let packages = recipes.split("            version: \"").skip(1);
    let kernels: Vec<_> = packages
        .map(|rest| rest.split_once('-').unwrap().0)
        .collect();
    let [kernel, other] = kernels[..] else {
        panic!("{kernels:?}");
    };
    has(&format!(
        "| Linux {kernel}, as Debian packages it; or {other} "
    ));
    let (minor, _) = kernel.rsplit_once('.').unwrap();
    assert_eq!(minor, lastbyte::study::Buffers::LINUX_SERIES);
    has(&format!("those of Linux {minor}, on whatever kernel: "));
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
