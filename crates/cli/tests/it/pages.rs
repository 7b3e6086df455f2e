//! Page loads in the guest: Chromium, Node.js and a kernel have to be there (`scripts/interop`, `lastbyte kernel build`).
use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use lastbyte::results::{Dataset, Loaded, Outcome, PAGES, Sample, Validity};
use lastbyte_page::cdp::{Load, Source};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::common::{Ended, read_rows, run};

mod computing;
mod http3;

const CLASSICAL: &str = "x25519/ecdsa-p256/server=node";
const POST_QUANTUM: &str = "X25519MLKEM768/ml-dsa-44+ml-dsa-44+ecdsa-p256/server=node";

/// A study in a folder.
pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new(arm: &str, measure: &str) -> Place {
        // Not in /tmp, in place of which a test has another.
        let place = Place(TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap());
        let study = format!(
            "engine = \"virtual\"\nconnections = 2\ntimeout = \"20s\"\n[arm.a]\ntls = \"{arm}\"\n\
             [link.l]\nrtt = \"50ms\"\nrate = \"50mbit\"\n[[measure]]\nid = \"m\"\n{measure}\n"
        );
        fs::write(place.path("study.toml"), study).unwrap();
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn run(&self, folder: &str) -> Command {
        let mut command = self.lastbyte();
        command.args(["run", "study.toml", "-o", folder]);
        command
    }

    /// A comparison in virtual time.
    pub(crate) fn compare(&self, options: &[&str]) -> Command {
        let mut command = self.lastbyte();
        command
            .args(["compare", "--engine", "virtual"])
            .args(options);
        command
    }

    /// On one processor: of two guests with browsers at once, each would need its memory.
    fn lastbyte(&self) -> Command {
        let mut command = Command::new("taskset");
        command
            .args(["--cpu-list", "0", env!("CARGO_BIN_EXE_lastbyte")])
            .current_dir(self.0.path())
            .env("LASTBYTE_NODE", peers().join("bin/node"))
            .env("LASTBYTE_GO", peers().join("bin/go"));
        command
    }
}

/// Where scripts/interop has put Node.js.
fn peers() -> PathBuf {
    env::var_os("LASTBYTE_PEERS").map_or_else(
        || {
            let cache = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
            let cache = cache.or_else(|| Some(env::home_dir()?.join(".cache")));
            cache.unwrap().join("lastbyte/tools/peers")
        },
        PathBuf::from,
    )
}

pub(crate) fn samples(folder: &Path) -> Vec<Sample> {
    let data = Dataset::open(folder).unwrap();
    let samples = data.samples().unwrap();
    samples.map(|sample| sample.unwrap().1).collect()
}

/// What ends with a code and one line of what is wrong.
pub(crate) fn refused(ended: &Ended, code: i32, expected: &str) {
    assert_eq!(ended.code, Some(code), "{}", ended.stderr);
    assert!(ended.stderr.contains(expected), "{}", ended.stderr);
    assert_eq!(told(ended).len(), 1, "{}", ended.stderr);
}

/// What was told beside the results, but for how long it takes on a machine that is busy.
pub(crate) fn told(ended: &Ended) -> Vec<&str> {
    let lines = ended.stderr.lines();
    let lines = lines.filter(|line| !line.starts_with("lastbyte: measuring takes about"));
    lines.collect()
}

/// Two origins, so that one connection is to a chain that is no arm's; ML-DSA, which is verified; and twice, to the nanosecond.
#[test]
fn a_page_loads_the_same_each_time() {
    let place = Place::new(POST_QUANTUM, "page = \"median-2024\"\norigins = 2");
    let [one, other] = ["one", "other"].map(|folder| {
        let ended = run(&mut place.run(folder));
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        samples(&place.path(folder))
    });
    let rows = &one[0].rows;
    assert_eq!(*rows, other[0].rows);
    assert_eq!(one[0].engine.validity, Validity::Valid);
    for row in rows {
        assert_eq!(row.outcome, Outcome::Completed);
        // What the observer saw: the group, and a signature of ML-DSA-44.
        assert_eq!(row.exchange.negotiated.group, Some(0x11ec));
        assert_eq!(row.exchange.negotiated.signature, Some(0x0904));
        assert_eq!(row.load().unwrap().requests, Some(71));
        assert!(row.load().unwrap().connections >= Some(2));
        let times = [
            row.times.connect,
            row.times.handshake,
            row.times.ttfb,
            row.load().unwrap().fcp,
            row.load().unwrap().load,
        ];
        let times = times.map(Option::unwrap);
        assert!(times.is_sorted(), "{times:?}");
        assert!(row.load().unwrap().lcp >= row.load().unwrap().fcp);
        assert!(row.load().unwrap().speed_index.is_some());
    }
    // What there is besides rows: a file for each block, with both connections as they were on the wire.
    let files: Vec<_> = fs::read_dir(place.path("one").join(PAGES))
        .unwrap()
        .collect();
    let [file] = files.as_slice() else {
        panic!("{files:?}");
    };
    let text = fs::read(file.as_ref().unwrap().path()).unwrap();
    let loads: Vec<Loaded> = serde_json::from_slice(&text).unwrap();
    for loaded in &loads {
        // Those that the browser has given up again were never signed.
        let whole = loaded
            .connections
            .iter()
            .filter(|one| one.signature.is_some());
        let mut names: Vec<_> = whole.map(|one| one.name.as_str()).collect();
        names.dedup();
        assert_eq!(names, ["server.example", "asset1.example"]);
        let load = loaded.load.as_ref().unwrap();
        assert_eq!(load.requests.len(), 71);
    }
}

/// A program that says it is a Chromium, and then ends.
#[test]
fn a_browser_that_ends_is_a_failure_with_its_reason() {
    let place = Place::new(CLASSICAL, "page = \"median-2024\"");
    let ended = run(place
        .run("results")
        .env("LASTBYTE_CHROMIUM", "/usr/bin/true"));
    assert_ne!(ended.code, Some(0), "{}", ended.stdout);
    let rows = &samples(&place.path("results"))[0].rows;
    for row in rows {
        let Outcome::Failed { reason, .. } = &row.outcome else {
            panic!("{:?}", row.outcome);
        };
        assert!(reason.starts_with("the browser has ended"), "{reason}");
    }
}

/// Programs that stand in for a browser or a server, made once, under names that say what each does.
pub(crate) struct StandIns(PathBuf);

impl StandIns {
    pub(crate) fn new(place: &Place) -> StandIns {
        let program = place.path("stand-in");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/pages/stand_in.rs");
        let mut rustc = Command::new("rustc");
        let made = run(rustc
            .args(["--edition=2024", "-o"])
            .arg(&program)
            .arg(source));
        assert_eq!(made.code, Some(0), "{}", made.stderr);
        StandIns(program)
    }

    pub(crate) fn named(&self, name: &str) -> PathBuf {
        let path = self.0.with_file_name(name);
        fs::hard_link(&self.0, &path).unwrap();
        path
    }
}

/// Whatever a browser does, its navigations are rows with the reason.
#[test]
fn browsers_that_load_nothing_are_failures_with_their_reason() {
    let place = Place::new(CLASSICAL, "page = \"median-2024\"");
    let programs = StandIns::new(&place);
    let failures = [
        (
            "browser-hangs",
            "the browser hangs: no answer to Browser.getVersion within 60s",
        ),
        ("browser-crashes", "the page crashed in the browser"),
        (
            "browser-never-paints",
            "the page was loaded and never painted",
        ),
        ("browser-spins", "the page was loaded and never painted"),
        (
            "browser-waits",
            "the page is not done within 20s: 1 of its requests are open, the first is https://server.example/1",
        ),
        (
            "browser-asks-for-ever",
            "the page makes more requests than are counted",
        ),
    ];
    for (name, expected) in failures {
        let folder = format!("of-{name}");
        let mut command = place.run(&folder);
        let ended = run(command.env("LASTBYTE_CHROMIUM", programs.named(name)));
        refused(&ended, 1, "no connection completed");
        let words: Vec<&str> = ended.stdout.split_whitespace().collect();
        let told = words.join(" ");
        assert!(
            told.contains(&format!("2 of 2 connections failed ({expected}: 2)")),
            "{told}"
        );
        let rows = &samples(&place.path(&folder))[0].rows;
        assert_eq!(rows.len(), 2);
        for row in rows {
            let Outcome::Failed { reason, .. } = &row.outcome else {
                panic!("{:?}", row.outcome);
            };
            assert_eq!(reason, expected);
        }
    }
}

/// What another arm's server has answered is kept, and the run goes on when the server does.
#[test]
fn a_server_that_does_not_start_is_told() {
    let place = Place::new(CLASSICAL, "page = \"shop.har\"");
    fs::write(place.path("shop.har"), har(&[json!({})])).unwrap();
    let study = place.path("study.toml");
    let text = fs::read_to_string(&study).unwrap();
    let other = "[arm.b]\ntls = \"x25519/ecdsa-p256/server=nginx\"\n[link.l]";
    fs::write(study, text.replace("[link.l]", other)).unwrap();
    let programs = StandIns::new(&place);
    let failed = |command: &mut Command, expected: &str| {
        let ended = run(command);
        assert_eq!(ended.code, Some(1), "{}", ended.stderr);
        let lines = told(&ended);
        let [block, all] = lines.as_slice() else {
            panic!("{}", ended.stderr);
        };
        assert!(
            block.contains("block 0 of b (") && block.ends_with(expected),
            "{block}"
        );
        assert!(all.contains("blocks failed; the others are kept"), "{all}");
    };
    let ends = programs.named("nginx-ends");
    let expected = "failed: nginx did not start: nginx: bad option";
    failed(place.run("results").env("LASTBYTE_NGINX", ends), expected);
    let mut command = place.run("results");
    let deaf = command
        .arg("--resume")
        .env("LASTBYTE_NGINX", programs.named("nginx-deaf"));
    let expected = "failed: nginx did not start: it does not listen within 60s: it said nothing";
    failed(deaf, expected);
    let kept = place.path("results/pages/m-cell-0-arm-0-a.json");
    let before = fs::metadata(&kept).unwrap().modified().unwrap();
    let ended = run(place.run("results").arg("--resume"));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(fs::metadata(kept).unwrap().modified().unwrap(), before);
    let rows: Vec<_> = samples(&place.path("results"))
        .into_iter()
        .flat_map(|sample| sample.rows)
        .collect();
    assert_eq!(rows.len(), 4);
    for row in rows {
        assert_eq!(row.outcome, Outcome::Completed);
    }
}

/// A guest with a browser takes 2 GB: of the machine, and of the folder that it is in.
#[test]
fn too_little_memory_is_told() {
    let place = Place::new(CLASSICAL, "page = \"median-2024\"");
    fs::write(
        place.path("meminfo"),
        "MemTotal: 8000000 kB\nMemAvailable: 1000000 kB\n",
    )
    .unwrap();
    let machine = "mount --bind meminfo /proc/meminfo";
    let folders =
        "mount -t tmpfs -o size=64m tmpfs /dev/shm && mount -t tmpfs -o size=64m tmpfs /tmp";
    for (mounts, expected) in [
        (
            machine,
            "needs 2048 MB of memory (the machine has 976 MB left)",
        ),
        (
            folders,
            "needs 2048 MB of memory (/dev/shm has 64 MB left, /tmp has 64 MB left)",
        ),
    ] {
        let mut command = Command::new("unshare");
        command
            .args([
                "--mount",
                "sh",
                "-c",
                &format!("{mounts} && exec \"$@\""),
                "sh",
            ])
            .args([
                env!("CARGO_BIN_EXE_lastbyte"),
                "run",
                "study.toml",
                "-o",
                "results",
            ])
            .current_dir(place.0.path())
            .env("LASTBYTE_NODE", peers().join("bin/node"))
            .env_remove("TMPDIR");
        refused(&run(&mut command), 3, expected);
        assert!(!place.path("results").exists());
    }
}

#[test]
fn programs_that_are_missing_or_too_old_are_told() {
    let place = Place::new(POST_QUANTUM, "page = \"median-2024\"");
    let named = place.path("chromium");
    let browser = |script: &str| {
        fs::write(&named, script).unwrap();
        fs::set_permissions(&named, fs::Permissions::from_mode(0o755)).unwrap();
        run(place.run("results").env("LASTBYTE_CHROMIUM", &named))
    };
    let missing = run(place
        .run("results")
        .env("LASTBYTE_CHROMIUM", "/nowhere/chromium"));
    refused(&missing, 3, "apt-get install chromium");
    refused(&browser("#!/bin/sh\nexit 1\n"), 3, "none that runs");
    let old = browser("#!/bin/sh\necho Chromium 149.0.1.2\n");
    refused(
        &old,
        3,
        "(Chromium 149.0.1.2) has no ML-DSA: that takes Chromium 151 or newer",
    );
    let node = browser("#!/bin/sh\necho Chromium 156.0.1.2\n");
    // The browser is good, and so is Node.js: what is left is that it does not run in the guest.
    assert_ne!(node.code, Some(3), "{}", node.stderr);
    let missing = run(place.run("results").env("LASTBYTE_NODE", "/nowhere/node"));
    refused(&missing, 3, "LASTBYTE_NODE");
    let missing = run(place.run("results").env("LASTBYTE_NODE", "/usr/bin/true"));
    refused(&missing, 3, "has no ML-DSA: that takes OpenSSL 3.5");
}

/// A HAR of entries that differ from a usual one.
fn har(entries: &[Value]) -> String {
    let entries: Vec<Value> = (entries.iter().enumerate())
        .map(|(place, changes)| {
            let mut entry = json!({
                "startedDateTime": format!("2026-11-25T01:00:{place:02}.000Z"), "time": 10,
                "request": { "method": "GET", "url": format!("https://a.example/{place}") },
                "response": {
                    "status": 200, "redirectURL": "", "bodySize": 500,
                    "content": { "size": 700, "mimeType": "text/html" },
                },
            });
            for (pointer, value) in changes.as_object().unwrap() {
                *entry.pointer_mut(pointer).unwrap() = value.clone();
            }
            entry
        })
        .collect();
    json!({ "log": { "entries": entries } }).to_string()
}

/// A HAR is named in a study or on the command line, and refused in one line that says what is wrong with it.
#[test]
fn hars_of_no_page_are_refused() {
    let url = |url: &str| json!({ "/request/url": url });
    let whole = har(&[json!({})]);
    let refusals = [
        (whole[..whole.len() / 2].to_owned(), "the HAR ends early"),
        (
            " ".repeat((64 << 20) + 1),
            "has more than 64 MiB: save it without content",
        ),
        ("<html>".to_owned(), "it is no HAR"),
        (har(&[url("data:text/html,x")]), "the HAR has no requests"),
        (
            har(&[url("wss://a.example/live")]),
            "the HAR has no requests",
        ),
        (
            har(&[json!({ "/time": -3 })]),
            "a time of -3 ms: a time is no less than 0",
        ),
        (
            har(&[json!({ "/response/content/mimeType": "image/png" })]),
            "begins with https://a.example/0, which is no document",
        ),
    ];
    let place = Place::new(CLASSICAL, "page = \"shop.har\"");
    for (content, expected) in refusals {
        fs::write(place.path("shop.har"), content).unwrap();
        refused(&run(&mut place.run("results")), 2, expected);
        refused(
            &run(&mut place.compare(&["--page", "shop.har"])),
            2,
            expected,
        );
    }
    refused(
        &run(&mut place.compare(&["--page", "https://shop.example/"])),
        2,
        "is an address, and nothing is fetched from there: record the page as a HAR",
    );
    // Each option of pages says so itself.
    for option in ["--cache=warm", "--origins=2", "--cpu-slowdown=4"] {
        let ended = run(&mut place.compare(&[option, "--data", "1KiB"]));
        refused(&ended, 2, "cannot be used with");
        refused(&run(&mut place.compare(&[option])), 2, "--page");
    }
    fs::remove_file(place.path("shop.har")).unwrap();
    refused(
        &run(&mut place.run("results")),
        2,
        "can't read \"shop.har\"",
    );
    assert!(!place.path("results").exists());
}

/// What is no resource of a page is left out, and said to be.
#[test]
fn what_is_left_out_of_a_har_is_told() {
    let place = Place::new(CLASSICAL, "page = \"shop.har\"");
    let url = |url: &str| json!({ "/request/url": url });
    let entries = [
        json!({}),
        url("data:image/png;base64,AAAA"),
        url("wss://a.example/live"),
    ];
    fs::write(place.path("shop.har"), har(&entries)).unwrap();
    let mut command = place.compare(&["--page", "shop.har"]);
    let ended = run(command.env("LASTBYTE_CHROMIUM", "/nowhere/chromium"));
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    let lines: Vec<&str> = ended.stderr.lines().collect();
    assert_eq!(
        lines[..lines.len() - 1],
        [
            "lastbyte: \"shop.har\": left out: 1 URL without need of a network (data:, blob: and their like)",
            "lastbyte: \"shop.har\": left out: 1 websocket",
        ]
    );
}

#[test]
fn options_of_pages_are_for_pages() {
    let place = Place::new(CLASSICAL, "page = \"median-2024\"");
    let refusals: [(&[&str], &str); 13] = [
        (&["--page", "median-2025"], "did you mean \"median-2024\""),
        (&["--page", "median-2024", "--data", "1KiB"], "--data"),
        (&["--page", "median-2024", "--mix", "lte=1"], "population"),
        (&["--page", "median-2024", "--cache", "hot"], "cold"),
        (&["--page", "median-2024", "--origins", "7"], "1 to 6"),
        (&["--origins", "2"], "--page"),
        (&["--cpu-slowdown", "4"], "--page"),
        (
            &[
                "--page",
                "median-2024",
                "--cpu-slowdown",
                "4",
                "--cpu",
                "none",
            ],
            "computing takes no time, however slow it is",
        ),
        (
            &["--page", "median-2024", "--cpu", "calibrated"],
            "write laptop, phone or none",
        ),
        (
            &["--cpu", "laptop"],
            "cpu laptop is of browsers and of servers that people run",
        ),
        (
            &["--page", "median-2024", "--capture", "1"],
            "--capture is of transfers",
        ),
        (
            &["--page", "median-2024", "--baseline", "x25519/ecdsa-p256"],
            "add server=node",
        ),
        (
            &[
                "--page",
                "median-2024",
                "--baseline",
                "x25519/ml-dsa-65/server=node",
            ],
            "SEC_ERROR_ADDING_CERT",
        ),
    ];
    for (options, expected) in refusals {
        refused(&run(&mut place.compare(options)), 2, expected);
    }
    let mut command = place.run("results");
    refused(
        &run(command.args(["--keylog", "keys"])),
        2,
        "--keylog is of transfers",
    );
}

/// Two loads of a HAR by the command line, and their page with what was asked for when.
#[test]
fn a_har_is_loaded_by_the_command_line() {
    let place = Place::new(CLASSICAL, "page = \"shop.har\"");
    let image =
        |url: &str| json!({ "/request/url": url, "/response/content/mimeType": "image/png" });
    let entries = [
        json!({}),
        image("https://a.example/1"),
        image("https://b.example/2"),
    ];
    fs::write(place.path("shop.har"), har(&entries)).unwrap();
    let mut command = place.compare(&["--page", "shop.har", "--baseline", CLASSICAL]);
    command.args([
        "--connections",
        "2",
        "--rtt",
        "50ms",
        "--rate",
        "50mbit",
        "--format",
        "json",
    ]);
    let ended = run(command.args(["-o", "rows.csv", "--report", "page.html"]));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let rows = read_rows(&place.path("rows.csv"));
    assert_eq!(rows.len(), 2);
    for row in &rows {
        assert_eq!(
            (row.text("page"), row.text("outcome")),
            ("shop.har", "completed")
        );
        assert_eq!(row.number("page_requests"), 3);
        assert!(row.number("load_ns") > row.number("ttfb_ns"));
    }
    let page = fs::read_to_string(place.path("page.html")).unwrap();
    assert!(page.contains("A page, request by request"));
}

/// A recorded page: for each resource its kind, what found it, its priority, its bytes, and what may be kept of it.
fn recorded() -> String {
    const DOCUMENT: &str = "https://a.example/0";
    let resources: [(&str, &str, &str, u64, &str); 16] = [
        ("document", "", "VeryHigh", 9_000, "no-cache"),
        ("stylesheet", DOCUMENT, "VeryHigh", 18_091, "max-age=3600"),
        ("script", DOCUMENT, "High", 30_000, "max-age=3600"),
        ("script", DOCUMENT, "Low", 6_000, "max-age=3600"),
        ("image", DOCUMENT, "Medium", 836, "max-age=3600"),
        // Large enough to be on its way still when the page is drawn, and it is seen to be on the screen.
        ("image", DOCUMENT, "High", 400_000, "max-age=3600"),
        ("image", DOCUMENT, "Medium", 1_000, "no-store"),
        ("image", DOCUMENT, "Low", 40_000, "max-age=3600"),
        ("image", DOCUMENT, "Low", 2_000, "no-cache"),
        ("script", DOCUMENT, "Medium", 25_000, "max-age=3600"),
        ("script", DOCUMENT, "Medium", 700, "max-age=0"),
        ("stylesheet", DOCUMENT, "VeryLow", 3_000, "max-age=3600"),
        ("fetch", "https://a.example/3", "High", 900, "max-age=3600"),
        (
            "font",
            "https://a.example/1",
            "VeryHigh",
            20_000,
            "max-age=3600",
        ),
        (
            "image",
            "https://a.example/1",
            "High",
            5_000,
            "max-age=3600",
        ),
        ("fetch", "https://a.example/9", "High", 800, "no-store"),
    ];
    let entries = resources.iter().enumerate();
    let entries = entries.map(|(place, (kind, finder, priority, bytes, kept))| {
        let began = match place {
            13.. => 300 + place,
            _ => 100 + place,
        };
        json!({
            "startedDateTime": format!("2026-11-25T01:00:00.{began}Z"),
            "time": if place == 0 { 200 } else { 150 },
            "request": { "method": "GET", "url": format!("https://a.example/{place}") },
            "response": {
                "status": 200,
                "headers": [
                    { "name": "Cache-Control", "value": kept },
                    { "name": "ETag", "value": "\"x\"" },
                ],
                "content": { "size": bytes, "mimeType": "" },
                "bodySize": -1,
                "headersSize": -1,
                "_transferSize": bytes,
            },
            "_resourceType": kind,
            "_priority": priority,
            "_initiator": { "type": "parser", "url": finder, "lineNumber": place },
        })
    });
    json!({ "log": { "entries": entries.collect::<Vec<_>>() } }).to_string()
}

/// The number of a recorded resource is that of its URL.
fn number_of(url: &str) -> usize {
    let name = url.rsplit('/').next().unwrap_or_default();
    let number = name.split('.').next().unwrap_or_default();
    number.parse().unwrap_or(0)
}

/// What was recorded, and what Chromium reports of the page that is made of it: priorities, the order in which things are found, sizes,
/// and what is asked for again.
#[test]
fn a_hars_page_is_the_page_that_was_recorded() {
    for server in ["node", "go"] {
        let place = Place::new(
            &format!("x25519/ecdsa-p256/server={server}"),
            "page = \"own.har\"\ncache = [\"cold\", \"warm\"]",
        );
        let study = fs::read_to_string(place.path("study.toml")).unwrap();
        let once = study.replace("connections = 2", "connections = 1");
        fs::write(place.path("study.toml"), once).unwrap();
        let text = recorded();
        fs::write(place.path("own.har"), &text).unwrap();
        let har: Value = serde_json::from_str(&text).unwrap();
        let entries = har["log"]["entries"].as_array().unwrap();
        let ended = run(&mut place.run("results"));
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        for file in fs::read_dir(place.path("results").join(PAGES)).unwrap() {
            let text = fs::read(file.unwrap().path()).unwrap();
            let loads: Vec<Loaded> = serde_json::from_slice(&text).unwrap();
            for loaded in loads {
                let load = loaded.load.unwrap();
                is_as_recorded(&load, entries);
            }
        }
    }
}

fn is_as_recorded(load: &Load, entries: &[Value]) {
    let is_warm = load.requests.iter().any(|one| one.source == Source::Cache);
    let mut found: Vec<usize> = load
        .requests
        .iter()
        .map(|one| number_of(&one.url))
        .collect();
    // Each is found where it was, and what a document names in its order; but for a style that nothing waits for.
    let of_document: Vec<usize> = (found.iter().copied()).filter(|one| *one < 11).collect();
    assert_eq!(of_document, (0..11).collect::<Vec<_>>());
    found.sort_unstable();
    assert_eq!(found, (0..16).collect::<Vec<_>>());
    for request in &load.requests {
        let number = number_of(&request.url);
        let entry = &entries[number];
        let named = format!("{number} {} of {request:?}", entry["_resourceType"]);
        // Pictures of the cache are there before it is known which are on the screen.
        if !(is_warm && entry["_resourceType"] == "image") {
            assert_eq!(entry["_priority"], request.priority.as_str(), "{named}");
        }
        let finder = entry["_initiator"]["url"].as_str().unwrap();
        let by = request.found_in.as_deref().map(number_of);
        assert_eq!(by, (number > 0).then(|| number_of(finder)), "{named}");
        let kept = entry["response"]["headers"][0]["value"].as_str().unwrap();
        let is_kept = is_warm && kept == "max-age=3600";
        assert_eq!(request.source == Source::Cache, is_kept, "{named}");
        let whole = entry["response"]["_transferSize"].as_u64().unwrap();
        match (is_warm, kept) {
            (false, _) => assert_eq!(request.wire.0, whole, "{named}"),
            // Of the first response on a connection, which is another one now, three bytes are HPACK's.
            (true, "no-store") => assert!(request.wire.0.abs_diff(whole) <= 3, "{named}"),
            // It has not changed.
            (true, "no-cache" | "max-age=0") => assert!(request.wire.0 < 100, "{named}"),
            (true, _) => assert_eq!(request.wire.0, 0, "{named}"),
        }
    }
}

/// A page of one request comes as a transfer of as many bytes does, where nobody computes: its first byte, and so many bytes in as
/// many flights.
#[test]
fn a_hars_page_of_one_request_is_a_transfer() {
    let place = Place::new(CLASSICAL, "page = \"own.har\"\ncpu = \"none\"");
    let whole = 30_000;
    let document = json!({ "/response/bodySize": whole - 400 });
    let mut value: Value = serde_json::from_str(&har(&[document])).unwrap();
    value["log"]["entries"][0]["response"]["_transferSize"] = whole.into();
    fs::write(place.path("own.har"), value.to_string()).unwrap();
    let ended = run(&mut place.run("results"));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let page = &samples(&place.path("results"))[0].rows[0];
    let other = Place::new(CLASSICAL, &format!("data = \"{whole}B\"\ncpu = \"none\""));
    let ended = run(&mut other.run("results"));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let transfer = &samples(&other.path("results"))[0].rows[0];
    assert_eq!(page.load().unwrap().bytes, Some(whole));
    // HTTP/2 and the browser's hello have other bytes than a request of HTTP/1.1, which takes microseconds at 50 Mbit/s.
    let near = |one: Duration, other: Duration| one.abs_diff(other) < Duration::from_millis(1);
    let [first, other] = [page, transfer].map(|row| row.times.ttfb.unwrap());
    assert!(near(first, other), "{first:?} {other:?}");
    let end = page.load().unwrap().load.unwrap();
    let whole = transfer.times.ttlb.unwrap();
    assert!(near(end, whole), "{end:?} {whole:?}");
}

/// Over Lastbyte's own link in real time, where the page's thread computes, and more of it as the browser slows it down.
#[test]
fn a_page_is_loaded_in_real_time_with_what_it_computes() {
    let place = Place::new(CLASSICAL, "page = \"shop.har\"");
    let image =
        |url: &str| json!({ "/request/url": url, "/response/content/mimeType": "image/png" });
    let entries = [json!({}), image("https://a.example/1")];
    fs::write(place.path("shop.har"), har(&entries)).unwrap();
    let asked = "compare --engine live --page shop.har --cpu-slowdown 1,8 --connections 2 --rtt 50ms -o rows.csv --baseline";
    let mut command = place.lastbyte();
    let ended = run(command.args(asked.split(' ')).arg(CLASSICAL));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let told = ended.stdout.replace('\n', " ");
    assert!(
        told.contains("the page's main thread had computed for"),
        "{told}"
    );
    let rows = read_rows(&place.path("rows.csv"));
    let least = ["1", "8"].map(|slowdown| {
        let such = rows
            .iter()
            .filter(|row| row.text("cpu_slowdown") == slowdown);
        let computed = such.map(|row| {
            assert_eq!(row.text("outcome"), "completed");
            assert_eq!(row.number("page_requests"), 2);
            // TCP, TLS and the request, a round trip each.
            assert!(row.number("connect_ns") >= 50_000_000);
            assert!(row.number("ttfb_ns") >= 150_000_000);
            // Of that, some is the ends', and the rest three round trips: or more, where an end computes for longer than one.
            let computing = row.number("ttfb_computing_ns");
            let network = row.number("ttfb_ns") - computing;
            assert!(computing > 0);
            let late = 6 * row.number("link_lateness_ns");
            assert!(network + late >= 150_000_000, "{network}");
            assert!((network + late) % 50_000_000 <= 2 * late, "{network}");
            let computed = row.number("load_cpu_ns");
            assert!(computed <= row.number("load_ns") && row.number("fcp_cpu_ns") > 0);
            // The page's thread is one of many.
            assert!(row.number("programs_cpu_ns") > row.number("fcp_cpu_ns"));
            computed
        });
        computed.min().unwrap()
    });
    assert!(least[1] > least[0], "{least:?}");
}

/// Its connection's first response is not the document's, so nothing is told of what that took to compute.
#[test]
fn a_redirected_document_is_not_told_to_compute() {
    let place = Place::new(CLASSICAL, "page = \"shop.har\"");
    let redirect =
        json!({ "/response/status": 301, "/response/redirectURL": "https://a.example/1" });
    fs::write(place.path("shop.har"), har(&[redirect, json!({})])).unwrap();
    let asked =
        "compare --engine live --page shop.har --connections 1 --rtt 20ms -o rows.csv --baseline";
    let mut command = place.lastbyte();
    let ended = run(command.args(asked.split(' ')).arg(CLASSICAL));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let rows = read_rows(&place.path("rows.csv"));
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].text("outcome"), "completed");
    // TCP, TLS, the redirect and the document, a round trip each.
    assert!(rows[0].number("ttfb_ns") >= 80_000_000);
    assert_eq!(rows[0].text("ttfb_computing_ns"), "");
}

/// What the visit before has left is found, and only what counts is told. It takes half a minute, in which idle connections end.
#[test]
fn a_warm_page_is_loaded_in_real_time() {
    let place = Place::new(CLASSICAL, "page = \"shop.har\"");
    fs::write(place.path("shop.har"), har(&[json!({})])).unwrap();
    let asked = "compare --engine live --page shop.har --cache warm --connections 2 --rtt 20ms -o rows.csv --baseline";
    let mut command = place.lastbyte();
    let ended = run(command.args(asked.split(' ')).arg(CLASSICAL));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let rows = read_rows(&place.path("rows.csv"));
    assert_eq!(rows.len(), 2);
    for row in &rows {
        assert_eq!(
            (row.text("outcome"), row.text("resumed")),
            ("completed", "true")
        );
        assert_eq!(row.number("page_connections"), 1);
    }
}

/// Debian's nginx is built with an older OpenSSL, and Caddy has signatures of its own list.
#[test]
fn servers_without_the_arms_algorithms_are_told() {
    let servers = [
        (
            "LASTBYTE_NGINX",
            "nginx",
            "printf 'nginx version: nginx/1.22.1\\nbuilt with OpenSSL 3.0.22\\n' >&2",
        ),
        ("LASTBYTE_CADDY", "caddy", "echo v2.9.1"),
    ];
    let chain = "ml-dsa-44+ml-dsa-44+ecdsa-p256";
    let refusals = [
        (
            0,
            chain,
            "nginx (1.22.1 (OpenSSL 3.0.22)) has no ML-DSA: that takes OpenSSL 3.5 in it or newer",
        ),
        (
            0,
            "ecdsa-p256",
            "has no X25519MLKEM768: that takes OpenSSL 3.5 in it or newer",
        ),
        (
            1,
            chain,
            "caddy (v2.9.1) has no ML-DSA, nor has a newer one: write server=node or server=go",
        ),
        (
            1,
            "ecdsa-p256",
            "caddy (v2.9.1) has no X25519MLKEM768: that takes Caddy 2.10 or newer",
        ),
    ];
    for (server, chain, expected) in refusals {
        let (variable, name, says) = servers[server];
        let arm = format!("X25519MLKEM768/{chain}/server={name}");
        let place = Place::new(&arm, "page = \"median-2024\"");
        let program = place.path(name);
        fs::write(&program, format!("#!/bin/sh\n{says}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        refused(
            &run(place.run("results").env(variable, &program)),
            3,
            expected,
        );
        assert!(!place.path("results").exists());
    }
}

#[test]
fn what_can_not_be_loaded_is_refused_before() {
    let refusals = [
        (
            "x25519/ecdsa-p256/server=lastbyte",
            "page = \"median-2024\"",
            "add server=node",
        ),
        (
            "x25519/ml-dsa-65/server=node",
            "page = \"median-2024\"",
            "SEC_ERROR_ADDING_CERT",
        ),
        (CLASSICAL, "page = \"medium\"", "there is no page"),
        (CLASSICAL, "page = \"none.har\"", "can't read"),
    ];
    for (arm, measure, expected) in refusals {
        let place = Place::new(arm, measure);
        refused(&run(&mut place.run("results")), 2, expected);
    }
}
