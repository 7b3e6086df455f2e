//! `lastbyte explore`: a page, or one line; and what the page says is what the program says.
use std::collections::BTreeSet;
use std::fs;

use lastbyte_explore::{CONNECTION, Question, answer, layout};
use serde_json::Value;
use tempfile::TempDir;

use crate::common::repository::root;
use crate::common::{lastbyte, run};

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
    let said = root().join("crates/report/src/explore/said.txt");
    let said = fs::read_to_string(said).unwrap();
    let mut compared = 0;
    let mut questions = BTreeSet::new();
    for state in said.split("\n\n") {
        let mut lines = state.lines();
        let command = lines
            .find_map(|line| line.strip_prefix("$ lastbyte "))
            .unwrap();
        let (question, command) = command.split_once(' ').unwrap();
        let command = command.strip_prefix("--baseline ").unwrap_or(command);
        questions.insert(question);
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
            // Beyond the limit of arithmetic, the page draws on, and says so.
            let is_limited = !time["limit"].is_null();
            if !is_limited || of("handshake_ns").is_some() {
                assert_eq!(of("handshake_ns"), Some(told[0]), "{command}: {time}");
            }
            if !is_limited || of("ttfb_ns").is_some() {
                let ttfb = of("ttfb_ns").unwrap_or(-1_000_000);
                assert_eq!(ttfb, told[1], "{command}: {time}");
            }
            if !is_limited || of("ttlb_ns").is_some() {
                assert_eq!(of("ttlb_ns"), Some(told[2]), "{command}: {time}");
            }
            compared += 1;
        }
        // And by `compare` itself, up to an arm that is none.
        if question == "compare" {
            let ended = run(lastbyte(["compare", "--baseline"])
                .args(command.split(' '))
                .args(["--against", "nonsense"]));
            assert_eq!(ended.code, Some(2), "{ended:?}");
            assert!(
                ended.stderr.contains("unknown chain \"nonsense\""),
                "{command}: {ended:?}"
            );
        }
    }
    assert!(compared > 30, "{compared}");
    assert_eq!(questions, ["compare", "explain"].into());
}

/// A number of a page's question by its name: of the network, or of an arm as `model.js` puts it together.
fn number(data: &Value, chain: &Value, name: &str, place: usize) -> Option<f64> {
    let (sizes, start, site) = (&data["sizes"], &data["start"], &data["site"]);
    let (group, _) = start["baseline"].as_str()?.split_once('/')?;
    let mut groups = sizes["groups"].as_array()?.iter();
    let group = groups.find(|known| known["name"] == group)?;
    let own = &chain["ways"][0];
    let sum = |one: &Value, other: &Value| Some(one.as_f64()? + other.as_f64()?);
    let write = |writes: &Value| writes.get(place).map_or(Some(0.0), Value::as_f64);
    match name {
        "rtt" | "rate" | "initcwnd" => start[name].as_f64(),
        // What was seen was seen over TCP.
        "transport" => Some(0.0),
        "payload" => start["data"].as_f64(),
        "mss" | "request" => data[name].as_f64(),
        "client_hello" => sum(&group["client_hello"], &own[0]),
        "server_hello" => sum(&group["server_hello"], &own[4]),
        "encrypted_extensions" => own[1].as_f64(),
        "certificate" => own[2].as_f64(),
        "certificate_verify" => chain[name].as_f64(),
        "server_finished" | "client_finish" | "hello_retry_request" => sizes[name].as_f64(),
        "second_client_hello" if group[name] == 0 => Some(0.0),
        "second_client_hello" => sum(&group[name], &own[0]),
        "tickets" | "response" => write(&site[name]),
        "server_writes" => write(&chain["writes"]),
        _ => None,
    }
}

/// What the page of a probe says of the site's chains, as they are and under ML-DSA, is what `lastbyte probe --what-if` says. That the
/// page's own scripts ask so is checked by scripts/explore.
#[test]
fn a_site_s_page_says_what_is_supposed_of_it() {
    let folder = TempDir::new().unwrap();
    let inside = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (probe, page) = (inside("probe.json"), inside("page.html"));
    let site = root().join("crates/report/src/explore/site.json");
    let site: Value = serde_json::from_str(&fs::read_to_string(site).unwrap()).unwrap();
    let remove = |document: &mut Value, part: &str, name: &str| {
        let removed = document[part].as_object_mut().unwrap().remove(name);
        assert!(removed.is_some(), "{name}");
    };
    type Change<'a> = (&'a str, Box<dyn Fn(&mut Value) + 'a>);
    let changes: [Change<'_>; 11] = [
        ("as it is", Box::new(|_| {})),
        (
            "no HelloRetryRequest",
            Box::new(|site| site["tls"]["hello_retry"] = false.into()),
        ),
        (
            "its usual share",
            Box::new(|site| site["group"] = "x25519".into()),
        ),
        (
            "no tickets",
            Box::new(|site| remove(site, "tls", "ticket_wire_bytes")),
        ),
        (
            "tickets with the response",
            Box::new(|site| remove(site, "tls", "ticket_writes")),
        ),
        ("one write", Box::new(|site| remove(site, "tls", "writes"))),
        (
            "a response in one",
            Box::new(|site| remove(site, "response", "writes")),
        ),
        (
            "a short record",
            Box::new(|site| site["response"]["first_record_wire_bytes"] = 600.into()),
        ),
        (
            "no response",
            Box::new(|site| {
                site.as_object_mut().unwrap().remove("response");
            }),
        ),
        (
            "small segments, a slow path",
            Box::new(|site| {
                site["mss"] = 1220.into();
                site["rate_mbit"] = 7.654_321.into();
                site["initial_window"] = 4.into();
            }),
        ),
        (
            "a window of which little is known",
            Box::new(|site| {
                site.as_object_mut().unwrap().remove("initial_window");
                site["window"] = serde_json::json!({"least": 6, "certainty": "at-least"});
            }),
        ),
    ];
    let mut handshakes = Vec::new();
    for (what, change) in changes {
        let mut document = site.clone();
        change(&mut document);
        fs::write(&probe, document.to_string()).unwrap();
        let ended = run(&mut lastbyte(["explore", &probe, "-o", &page]));
        assert_eq!(ended.code, Some(0), "{what}: {ended:?}");
        let text = fs::read_to_string(&page).unwrap();
        assert!(text.len() < 300_000);
        let (_, known) = text
            .split_once("id=\"known\" type=\"application/json\">")
            .unwrap();
        let data: Value = serde_json::from_str(known.split_once("</script>").unwrap().0).unwrap();
        let supposed = "today,ml-dsa-44,ml-dsa-65,ml-dsa-87";
        let asked = [
            "probe",
            "--from",
            &probe,
            "--format",
            "json",
            "--what-if",
            supposed,
        ];
        let ended = run(&mut lastbyte(asked));
        assert_eq!(ended.code, Some(0), "{what}: {ended:?}");
        let told: Value = serde_json::from_str(&ended.stdout).unwrap();
        let told = told["what_if"].as_array().unwrap();
        assert_eq!(told.len(), 4, "{what}");
        for (chain, told) in data["sizes"]["chains"].as_array().unwrap().iter().zip(told) {
            let name = chain["name"].as_str().unwrap();
            let ends = match told["chain"].as_str().unwrap() {
                "today" => "shop.example.com:443".to_owned(),
                key => format!("shop.example.com:443 under {key}"),
            };
            assert_eq!(name, ends);
            let layout = layout();
            let numbers = (layout.iter().take(2)).flat_map(|(_, names)| {
                // A list has its name as often as it can have numbers.
                let first = |name| names.iter().position(|known| *known == name);
                let place = move |(at, name)| (name, at - first(name).unwrap_or(at));
                names.iter().copied().enumerate().map(place)
            });
            let numbers = numbers.map(|(name, place)| {
                // Of a page without a response, it is the usual one.
                match (name, document.get("response")) {
                    ("payload", None) => 0.0,
                    _ => number(&data, chain, name, place)
                        .unwrap_or_else(|| panic!("{what}: {name}")),
                }
            });
            let question: Vec<f64> = std::iter::once(1.0).chain(numbers).collect();
            let found = answer(&Question::of(&question).numbers());
            let page =
                |name: &str| found[CONNECTION.iter().position(|known| *known == name).unwrap()];
            let times = &told["times"][0];
            for (name, told) in [
                ("sent", &told["server_flight_wire_bytes"]),
                ("serverFlights", &told["flights"]),
                ("handshake", &times["handshake_ms"]),
                ("first", &times["first_byte_ms"]),
                ("last", &times["last_byte_ms"]),
            ] {
                let told = told.as_f64().unwrap_or(-1.0);
                assert!(
                    (page(name) - told).abs() < 0.001,
                    "{what}, {name}: {} and {told}",
                    page(name)
                );
            }
            assert_eq!(chain["ways"][0][2], told["certificate_bytes"], "{what}");
            handshakes.push(page("first"));
        }
    }
    // Each change matters somewhere.
    handshakes.sort_by(f64::total_cmp);
    handshakes.dedup();
    assert!(handshakes.len() > 12, "{handshakes:?}");
}
