//! `lastbyte report`: from a run to a page, and what it says of runs that it can't tell of.
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::common::{Ended, lastbyte, need_live_engine, run};
use tempfile::TempDir;

const STUDY: &str = r#"
name = "two trees"
engine = "live"
connections = 20
concurrency = 10

[arm.old]
tls = "secp256r1/ecdsa-p256"
[arm.new]
tls = "X25519MLKEM768/ml-dsa-44"

[link.near]
rtt = ["2ms", "4ms"]

[[measure]]
id = "tall"
data = ["0KiB", "10KiB"]
"#;

/// A run that all tests share, and a copy of it for each.
fn measured() -> TempDir {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    let whole = FOLDER.get_or_init(|| {
        need_live_engine();
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join("study.toml"), STUDY).unwrap();
        let ended = run(lastbyte(["run", "study.toml", "-o", "run"]).current_dir(folder.path()));
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        folder
    });
    let copy = TempDir::new().unwrap();
    fs::create_dir(copy.path().join("run")).unwrap();
    for name in ["study.toml", "manifest.json", "rows.parquet"] {
        let name = Path::new("run").join(name);
        fs::copy(whole.path().join(&name), copy.path().join(&name)).unwrap();
    }
    fs::write(copy.path().join("study.toml"), STUDY).unwrap();
    copy
}

fn report(folder: &TempDir, options: &[&str]) -> Ended {
    run(lastbyte(["report", "run"])
        .args(options)
        .current_dir(folder.path()))
}

fn file(folder: &TempDir, name: &str) -> PathBuf {
    folder.path().join(name)
}

/// That it ends with this code and one line that has all of these.
fn assert_refused(ended: &Ended, code: i32, words: &[&str]) {
    assert_eq!(ended.code, Some(code), "{}", ended.stderr);
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    for word in words {
        assert!(ended.stderr.contains(word), "{word}: {}", ended.stderr);
    }
}

#[test]
fn a_page_and_its_figures() {
    let folder = measured();
    let ended = report(&folder, &["-o", "page.html", "--figures", "figures"]);
    assert_eq!(
        (ended.code, &*ended.stdout),
        (Some(0), "page.html\n"),
        "{}",
        ended.stderr
    );
    let page = fs::read_to_string(file(&folder, "page.html")).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    // What can be said depends on how busy the machine is.
    assert!(page.contains("<p class=\"verdict\">"));
    assert!(page.contains("n = 20 connections each; live engine"));
    for (name, start) in [
        ("figures/tall-increase.svg", &b"<svg"[..]),
        ("figures/tall-increase.png", &b"\x89PNG"[..]),
        ("figures/tall-increase-slide.svg", &b"<svg"[..]),
        ("figures/tall-increase-slide.png", &b"\x89PNG"[..]),
        (
            "figures/tall-increase.csv",
            &b"panel,data,series,percentile,"[..],
        ),
        ("figures/tall-percentiles.svg", &b"<svg"[..]),
    ] {
        assert!(
            fs::read(file(&folder, name)).unwrap().starts_with(start),
            "{name}"
        );
    }
}

#[test]
fn it_says_what_it_takes_and_where_it_can_not_write() {
    let folder = measured();
    fs::write(file(&folder, "g.json"), "").unwrap();
    let ended = run(lastbyte(["report", "g.json"]).current_dir(folder.path()));
    let words = [
        "takes a folder of `lastbyte run`",
        "g.json",
        "is another file",
    ];
    assert_refused(&ended, 2, &words);
    // A part of a run does not say what it is of.
    let ended = run(lastbyte(["report", "run/rows.parquet"]).current_dir(folder.path()));
    assert_refused(&ended, 2, &["name the folder of its run, \"run\""]);
    for options in [["-o", "g.json/page.html"], ["--figures", "g.json/figures"]] {
        assert_refused(&report(&folder, &options), 2, &["can't write \"g.json/"]);
    }
    // Nor is there a page, then.
    assert!(!file(&folder, "run/report.html").exists());
    let ended = run(
        lastbyte(["validate", "run", "arithmetic", "-o", "g.json/page.html"])
            .current_dir(folder.path()),
    );
    assert_refused(&ended, 2, &["can't write \"g.json/"]);
}

#[test]
fn the_page_is_in_the_folder_if_nothing_else_is_said() {
    let folder = measured();
    let ended = report(&folder, &[]);
    assert_eq!((ended.code, &*ended.stdout), (Some(0), "run/report.html\n"));
    assert!(file(&folder, "run/report.html").exists());
}

#[test]
fn figures_can_be_described_afterwards() {
    let folder = measured();
    let figure = "[[figure]]\nid = \"mine\"\nmeasure = \"tall\"\nplot = \"cdf\"\nfacet = [\"rtt\", \"data\"]\n";
    fs::write(file(&folder, "drawn.toml"), format!("{STUDY}{figure}")).unwrap();
    let ended = report(&folder, &["--study", "drawn.toml"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let page = fs::read_to_string(file(&folder, "run/report.html")).unwrap();
    assert!(page.contains("id=\"mine\"") && !page.contains("id=\"tall-increase\""));

    let other = STUDY.replace("10KiB", "20KiB");
    fs::write(file(&folder, "other.toml"), other).unwrap();
    let ended = report(&folder, &["--study", "other.toml"]);
    assert_refused(&ended, 2, &["other.toml", "measures something else"]);

    for (bad, word) in [
        ("measure = \"tall\"", "measure = \"tal\""),
        ("plot = \"cdf\"", "plot = \"cdf\"\nmetric = \"ttbl\""),
    ]
    .map(|(good, bad)| (figure.replace(good, bad), bad))
    {
        fs::write(file(&folder, "drawn.toml"), format!("{STUDY}{bad}")).unwrap();
        let ended = report(&folder, &["--study", "drawn.toml"]);
        assert_refused(&ended, 2, &["drawn.toml:", "did you mean"]);
        assert!(
            ended.stderr.contains("\"tal\"") || ended.stderr.contains("\"ttbl\""),
            "{word}"
        );
    }
}

#[test]
fn what_is_no_run() {
    let folder = TempDir::new().unwrap();
    fs::create_dir(file(&folder, "run")).unwrap();
    assert_refused(&report(&folder, &[]), 2, &["holds no run"]);
}

#[test]
fn another_schema() {
    let folder = measured();
    let path = file(&folder, "run/manifest.json");
    let manifest = fs::read_to_string(&path).unwrap();
    fs::write(&path, manifest.replace("lastbyte.run/1", "lastbyte.run/9")).unwrap();
    assert_refused(
        &report(&folder, &[]),
        2,
        &[
            "lastbyte.run/9",
            "use the version of Lastbyte that measured it",
        ],
    );
}

#[test]
fn a_file_that_is_half_there() {
    let folder = measured();
    let path = file(&folder, "run/rows.parquet");
    let rows = fs::read(&path).unwrap();
    fs::write(&path, &rows[..rows.len() / 2]).unwrap();
    let words = ["rows.parquet", "delete it, and measure again with --resume"];
    assert_refused(&report(&folder, &[]), 2, &words);
    assert!(!file(&folder, "run/report.html").exists());
    // Nor does whoever goes on with it take it for complete.
    let ended =
        run(lastbyte(["run", "study.toml", "-o", "run", "--resume"]).current_dir(folder.path()));
    assert_refused(&ended, 2, &words);

    fs::write(file(&folder, "run/manifest.json"), "{\"schema\": ").unwrap();
    assert_refused(
        &report(&folder, &[]),
        2,
        &["manifest.json", "it is no manifest, or damaged"],
    );
}

#[test]
fn a_place_that_can_not_be_written() {
    let folder = measured();
    let ended = report(&folder, &["-o", "no/where/page.html"]);
    assert_refused(&ended, 2, &["can't write \"no/where/page.html\""]);
}

#[test]
fn a_comparison_is_a_page_at_once_and_later() {
    need_live_engine();
    let folder = TempDir::new().unwrap();
    let arms = [
        "--baseline",
        "x25519/ecdsa-p256",
        "--against",
        "X25519MLKEM768/ml-dsa-44",
    ];
    let cell = [
        "--engine",
        "live",
        "--rtt",
        "2ms",
        "--data",
        "0KiB",
        "--connections",
        "10",
    ];
    let files = ["--report", "page.html", "--output", "rows.parquet"];
    let mut command = lastbyte(["compare"]);
    let ended = run(command
        .args(arms)
        .args(cell)
        .args(files)
        .current_dir(folder.path()));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let ended = run(lastbyte(["report", "rows.parquet"]).current_dir(folder.path()));
    assert_eq!(
        (ended.code, &*ended.stdout),
        (Some(0), "rows.html\n"),
        "{}",
        ended.stderr
    );
    let read = |name| fs::read_to_string(file(&folder, name)).unwrap();
    let page = read("page.html");
    assert!(page.contains("<h1>What does "), "{page}");
    assert!(page.contains("lastbyte compare --baseline x25519/ecdsa-p256 "));
    assert!(
        page == read("rows.html"),
        "the same rows make the same page"
    );

    let rows = fs::read(file(&folder, "rows.parquet")).unwrap();
    for (length, name) in [
        (rows.len() / 2, "half"),
        (0, "empty"),
        (rows.len() - 1, "short"),
    ] {
        let name = format!("{name}.parquet");
        fs::write(file(&folder, &name), &rows[..length]).unwrap();
        let ended = run(lastbyte(["report", &name]).current_dir(folder.path()));
        assert_refused(&ended, 2, &[&name, "measure it again"]);
        assert!(!file(&folder, &name.replace("parquet", "html")).exists());
    }
    // Before anything is measured.
    let ended = run(lastbyte(["compare", "--report", "no/where.html"]).current_dir(folder.path()));
    assert_refused(&ended, 2, &["can't write \"no/where.html\""]);
}

#[test]
fn a_page_to_be_shared_has_its_picture() {
    let folder = measured();
    let ended = report(
        &folder,
        &[
            "-o",
            "page.html",
            "--url",
            "https://example.com/a/page.html",
        ],
    );
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(
        fs::read(file(&folder, "page.png"))
            .unwrap()
            .starts_with(b"\x89PNG")
    );
    let page = fs::read_to_string(file(&folder, "page.html")).unwrap();
    assert!(page.contains("property=\"og:image\" content=\"https://example.com/a/page.png\""));
    let ended = report(&folder, &["--url", "example.com"]);
    assert_refused(
        &ended,
        2,
        &["is no address of a page", "https://example.com/report.html"],
    );
}
