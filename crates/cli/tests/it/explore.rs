//! `lastbyte explore`: a page, or one line; and what the page says is what the program says.
use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::common::{lastbyte, run};

fn root() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_page_is_the_one_in_docs() {
    let folder = TempDir::new().unwrap();
    let ended = run(lastbyte(["explore"]).current_dir(folder.path()));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.stdout, "explore.html\n");
    let page = fs::read(folder.path().join("explore.html")).unwrap();
    assert!(page == fs::read(root().join("docs/explore.html")).unwrap());
}

#[test]
fn a_page_begins_with_a_probe() {
    let folder = TempDir::new().unwrap();
    let inside = |name: &str| folder.path().join(name);
    // As docs/explore.md has it.
    let document = fs::read_to_string(root().join("docs/explore.md")).unwrap();
    let (_, example) = document.split_once("```json\n").unwrap();
    let (example, _) = example.split_once("```").unwrap();
    fs::write(inside("probe.json"), example).unwrap();
    let explore = |probe: &str, page: &str| {
        let command = ["explore", probe, "-o", page];
        run(lastbyte(command).current_dir(folder.path()))
    };
    let ended = explore("probe.json", "page.html");
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), "page.html\n"),
        "{ended:?}"
    );
    let page = fs::read_to_string(inside("page.html")).unwrap();
    assert!(page.contains("X25519MLKEM768/example.com:443"));

    fs::write(
        inside("later.json"),
        example.replace("\"version\": 1", "\"version\": 2"),
    )
    .unwrap();
    for (probe, page, why) in [
        ("none.json", "x.html", "\"none.json\": No such file"),
        (
            "later.json",
            "x.html",
            "\"later.json\": version 2 is not known here",
        ),
        ("page.html", "x.html", "\"page.html\": no JSON"),
        ("probe.json", "x.txt", "name it .html"),
        ("probe.json", "none/x.html", "there is no folder \"none\""),
    ] {
        let ended = explore(probe, page);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.contains(why), "{why}: {ended:?}");
        assert_eq!(ended.stderr.trim_end().lines().count(), 1, "{ended:?}");
        assert!(!inside("x.html").exists());
    }
}

/// `scripts/explore` has written down what the page's own scripts say of some states: commands, and times.
#[test]
fn commands_of_the_page_are_taken_and_tell_the_same() {
    let said = root().join("crates/results/src/report/explore/said.txt");
    let said = fs::read_to_string(said).unwrap();
    let mut compared = 0;
    for state in said.split("\n\n") {
        let mut lines = state.lines();
        let command = lines
            .find_map(|line| line.strip_prefix("$ lastbyte compare --baseline "))
            .unwrap();
        let times: Vec<Vec<i64>> = lines
            .filter_map(|line| line.strip_prefix("ns: "))
            .map(|line| line.split(' ').map(|time| time.parse().unwrap()).collect())
            .collect();
        // What is drawn are OpenSSL's messages, whatever stack measures.
        let drawn = command.replace("/stack=rustls", "");
        let words: Vec<&str> = drawn
            .split(' ')
            .filter(|word| *word != "--against")
            .collect();
        let ended = run(lastbyte(["explain", "--format", "json"]).args(&words));
        assert_eq!(ended.code, Some(0), "{command}: {ended:?}");
        let document: Value = serde_json::from_str(&ended.stdout).unwrap();
        for (arm, told) in document["arms"].as_array().unwrap().iter().zip(&times) {
            let time = &arm["times"][0];
            let of = |key: &str| time[key].as_i64();
            assert_eq!(of("handshake_ns"), Some(told[0]), "{command}: {time}");
            assert_eq!(
                of("ttfb_ns").unwrap_or(-1_000_000),
                told[1],
                "{command}: {time}"
            );
            assert_eq!(of("ttlb_ns"), Some(told[2]), "{command}: {time}");
            compared += 1;
        }
        // And by `compare` itself, up to a threshold that is of no metric.
        let compare = command.split(' ');
        let ended = run(lastbyte(["compare", "--baseline"])
            .args(compare)
            .args(["--against", "nonsense"]));
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(
            ended.stderr.contains("arm \"nonsense\""),
            "{command}: {ended:?}"
        );
    }
    assert!(compared > 30, "{compared}");
}
