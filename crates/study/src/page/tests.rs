#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::*;
use crate::{Cell, Metric, Study, assumptions};

/// A study of page loads with these arms, and these lines of the measure.
fn study(arms: &[&str], measure: &str) -> Result<Study, String> {
    let arms: String = (arms.iter().enumerate())
        .map(|(place, arm)| format!("[arm.a{place}]\ntls = \"{arm}\"\n"))
        .collect();
    let text = format!(
        "{arms}[link.l]\nrtt = \"50ms\"\n[[measure]]\nid = \"m\"\nconnections = 2\n{measure}\n"
    );
    Study::parse(&text, Path::new("s.toml")).map_err(|error| error.to_string())
}

const NODE: &str = "x25519/ecdsa-p256/server=node";
const HTTP3: &str = "x25519/ecdsa-p256/transport=quic/server=caddy";
const MEDIAN: &str = "page = \"median-2024\"";

#[test]
fn pages_are_parameters_of_cells() {
    let measure = "page = \"median-2024\"\norigins = [1, 6]\ncache = [\"cold\", \"warm\"]";
    let study = study(&[NODE], measure).unwrap();
    let experiment = &study.measures[0].experiment;
    let told: Vec<String> = experiment.cells.iter().map(Cell::to_string).collect();
    let page = "l, RTT 50ms, no rate limit, loss 0%, initcwnd 10, page median-2024";
    let expected = [
        page.to_owned(),
        format!("{page}, cache warm"),
        format!("{page}, 6 origins"),
        format!("{page}, 6 origins, cache warm"),
    ];
    assert_eq!(told, expected);
    assert_eq!(experiment.cells[0].metrics(), Metric::OF_PAGE);
    assert_eq!(experiment.cpu, CpuTime::Laptop);
    // What is written is read as the same.
    let again = Study::parse(&study.to_toml(), Path::new("s.toml")).unwrap();
    assert_eq!(again.measures, study.measures);
}

/// Beside others over HTTP/2, and as long as those are with ML-DSA.
#[test]
fn pages_come_over_both_transports() {
    let arms = [
        NODE,
        "x25519/ecdsa-p256/server=caddy",
        HTTP3,
        "X25519MLKEM768/ecdsa-p256:13000B/transport=quic/server=quic-go",
    ];
    let study = study(&arms, MEDIAN).unwrap();
    let experiment = &study.measures[0].experiment;
    // What programs compute over QUIC is in no clock but where they load pages.
    assert_eq!(experiment.cpu, CpuTime::Laptop);
    let cell = &experiment.cells[0];
    assert_eq!(cell.check_quic(), Ok(()));
    let assumed = assumptions(&experiment.arms[2], &experiment.cells);
    let quic = assumed.iter().find(|one| one.subject == "QUIC").unwrap();
    assert_eq!(
        quic.value,
        "as chromium has it at the client and caddy at the server"
    );
    let again = Study::parse(&study.to_toml(), Path::new("s.toml")).unwrap();
    assert_eq!(again.measures, study.measures);
}

#[test]
fn what_is_a_transfer_writes_nothing_of_pages() {
    let study = study(&["x25519/ecdsa-p256"], "data = \"1KiB\"").unwrap();
    let text = study.to_toml();
    for key in ["page", "origins", "cache"] {
        assert!(!text.contains(&format!("\n{key} = ")), "{text}");
    }
}

#[test]
fn what_a_browser_can_not_is_refused_with_the_reason() {
    let refusals = [
        (
            "SecP256r1MLKEM768/ecdsa-p256/server=node",
            MEDIAN,
            "Chromium has no SecP256r1MLKEM768",
        ),
        (
            "x25519/ml-dsa-65/server=node",
            MEDIAN,
            "SEC_ERROR_ADDING_CERT",
        ),
        (
            "x25519/ml-dsa-65/server=node",
            MEDIAN,
            "write ml-dsa-65+ml-dsa-65+ecdsa-p256",
        ),
        (
            "x25519/slh-dsa-sha2-128s+ecdsa-p256+ecdsa-p256/server=node",
            MEDIAN,
            "can't verify slh-dsa-sha2-128s",
        ),
        ("x25519/ecdsa-p256", MEDIAN, "add server=node"),
        (
            "x25519/ecdsa-p256/transport=quic",
            MEDIAN,
            "write server=quic-go or server=caddy",
        ),
        (
            "x25519/ecdsa-p256/transport=quic/server=s2n-quic",
            MEDIAN,
            "pages come over QUIC from quic-go and from Caddy",
        ),
        (
            "x25519/ecdsa-p256/transport=quic/server=quic-go/client_program=chromium",
            MEDIAN,
            "leave client_program= out",
        ),
        (
            "x25519/ecdsa-p256/transport=quic/server=quic-go/stack=rustls",
            MEDIAN,
            "stack= is for Lastbyte's own ends; a browser and quic-go decide that themselves",
        ),
        (
            "x25519/ecdsa-p256/transport=quic/server=caddy/address_validation=retry",
            MEDIAN,
            "address_validation= is for Lastbyte's own ends",
        ),
        (
            "x25519/ml-dsa-44+ml-dsa-44+ecdsa-p256/transport=quic/server=caddy",
            MEDIAN,
            "offers no ml-dsa-44 over QUIC",
        ),
        (
            HTTP3,
            "page = \"median-2024\"\nquic_datagram = 1300",
            "quic_datagram is of Lastbyte's own ends of QUIC",
        ),
        (
            HTTP3,
            "page = \"median-2024\"\nemulation = \"link\"",
            "leave emulation",
        ),
        (
            "x25519/ecdsa-p256/resume=ticket/server=node",
            MEDIAN,
            "resume= is for Lastbyte's own ends",
        ),
        (
            "x25519/ecdsa-p256/mutual=ecdsa-p256/server=node",
            MEDIAN,
            "mutual= is for",
        ),
        (
            NODE,
            "page = \"median-2023\"",
            "did you mean \"median-2024\"",
        ),
        (NODE, "page = \"none.har\"", "can't read"),
        (NODE, "page = \"median-2024\"\norigins = 7", "origins"),
        (NODE, "page = \"median-2024\"\ncache = \"hot\"", "cold"),
        (
            NODE,
            "page = \"median-2024\"\ncpu = \"calibrated\"",
            "leave cpu out",
        ),
        (
            NODE,
            "page = \"median-2024\"\nemulation = \"link\"",
            "leave emulation",
        ),
        (NODE, "page = [\"median-2024\", \"none\"]", "measured apart"),
    ];
    for (arm, measure, expected) in refusals {
        let problem = study(&[arm], measure).unwrap_err();
        assert!(problem.contains(expected), "{arm}, {measure}: {problem}");
        assert!(!problem.contains('\n'), "{problem}");
    }
}

#[test]
fn a_har_is_a_page_with_origins_of_its_own() {
    let place = TempDir::new().unwrap();
    let har = place.path().join("site.har");
    let asked = |url: &str, of: &str| {
        format!(
            r#"{{"startedDateTime":"2026-11-25T00:00:00.000Z","time":1,"request":{{"method":"GET","url":"{url}"}},
                "response":{{"status":200,"content":{{"size":900,"mimeType":"{of}"}},"bodySize":900}},"_resourceType":"document"}}"#
        )
    };
    let document = asked("https://a.example/", "text/html");
    let entries = format!(r#"{{"log":{{"version":"1.2","entries":[{document}]}}}}"#);
    fs::write(&har, &entries).unwrap();
    let named = har.display();
    let whole = study(&[NODE], &format!("page = \"{named}\"")).unwrap();
    let cell = &whole.measures[0].experiment.cells[0];
    let page = cell.page.as_ref().unwrap();
    assert_eq!(page.to_string(), named.to_string());
    assert_eq!(page.page(cell.origins).unwrap().origins(), 1);

    let problem = study(&[NODE], &format!("page = \"{named}\"\norigins = 2")).unwrap_err();
    assert!(problem.contains("leave origins out"), "{problem}");
    fs::write(&har, &entries[..entries.len() / 2]).unwrap();
    let problem = study(&[NODE], &format!("page = \"{named}\"")).unwrap_err();
    assert!(problem.contains("ends early"), "{problem}");
}

/// Results are read where the HAR is not, and have nothing of it but the page.
#[test]
fn results_keep_the_page_of_a_har() {
    let place = TempDir::new().unwrap();
    let har = place.path().join("site.har");
    let entry = |url: &str, of: &str| {
        serde_json::json!({
            "startedDateTime": "2026-11-25T00:00:00.000Z", "time": 1,
            "request": {
                "method": "GET", "url": url, "headers": [{ "name": "Cookie", "value": "secret=1" }],
            },
            "response": { "status": 200, "content": { "size": 900, "mimeType": of }, "bodySize": 900 },
        })
    };
    let entries = [
        entry("https://a.example/", "text/html"),
        entry("https://a.example/logo", "image/png"),
        entry("wss://a.example/live", ""),
    ];
    let text = serde_json::json!({ "log": { "entries": entries } }).to_string();
    fs::write(&har, text).unwrap();
    let text = format!(
        "[arm.a]\ntls = \"{NODE}\"\n[link.l]\nrtt = \"50ms\"\n[[measure]]\nid = \"m\"\npage = \"site.har\"\n"
    );
    let study = Study::parse(&text, &place.path().join("study.toml")).unwrap();
    let experiment = &study.measures[0].experiment;
    assert_eq!(
        experiment.har_notes(),
        ["\"site.har\": left out: 1 websocket"]
    );
    let retained = study.named_files().unwrap();
    let [retained] = retained.as_slice() else {
        panic!("{retained:?}");
    };
    let said = String::from_utf8_lossy(&retained.content);
    assert!(
        !said.contains("secret") && !said.contains("a.example"),
        "{said}"
    );
    // As results have it, after the HAR has gone.
    fs::remove_file(&har).unwrap();
    let results = place.path().join("results");
    let files = results.join(NamedFile::FOLDER);
    fs::create_dir_all(&files).unwrap();
    fs::write(files.join(&retained.name), &retained.content).unwrap();
    let again = Study::parse(&text, &results.join("study.toml")).unwrap();
    assert_eq!(again.measures, study.measures);
    let lost = Study::parse(&text, &place.path().join("study.toml")).unwrap_err();
    assert!(
        lost.to_string().contains("can't read \"site.har\""),
        "{lost}"
    );
}

#[test]
fn a_browser_guesses_its_own_groups() {
    let arm: Arm = "x25519/ecdsa-p256/server=node".parse().unwrap();
    let groups = [Group::X25519MlKem768, Group::X25519];
    assert_eq!(arm.of_browser().key_shares, groups);
}
