//! Captures and key logs, end to end: what is inside connections, without anything being different for it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use lastbyte::report::inside::SCHEMA;
use lastbyte::results::Dataset;
use lastbyte_capture::{Capture, Connection, Fate, Trigger, connections, read};
use lastbyte_link::Side;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

use crate::common::{Ended, assert_fits, need_live_engine, need_root, run};

/// Lossy enough that several of ten connections lose something.
const LOSSY: &str = r#"
connections = 40
seed = 3
[arm.old]
tls = "secp256r1/ecdsa-p256"
[arm.new]
tls = "SecP256r1MLKEM768/ml-dsa-65"
[link.bad]
rtt = "35ms"
rate = "10mbit"
loss = "4%"
jitter = "2ms"
[[measure]]
id = "m"
data = ["0KiB", "100KiB"]
"#;

/// The program with the user's own cache, which has the kernel.
fn lastbyte(arguments: impl IntoIterator<Item: AsRef<OsStr>>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lastbyte"));
    command.args(arguments);
    command
}

fn succeed(command: &mut Command) -> Ended {
    let ended = run(command);
    assert_eq!(ended.code, Some(0), "{command:?}: {}", ended.stderr);
    ended
}

/// Runs a study in a folder, with these options.
fn run_study(place: &TempDir, study: &str, folder: &str, options: &[&str]) -> PathBuf {
    let file = place.path().join("study.toml");
    fs::write(&file, study).unwrap();
    let results = place.path().join(folder);
    let mut command = lastbyte(["run", "--engine", "virtual", "-o"]);
    succeed(command.arg(&results).arg(&file).args(options));
    results
}

fn captures(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
}

fn open(path: &Path) -> Capture {
    read(&*fs::read(path).unwrap()).unwrap()
}

/// The number in `connection 17`.
fn index(connection: &Connection) -> u32 {
    let number = connection.comment.strip_prefix("connection ").unwrap();
    number.parse().unwrap()
}

/// `show --format json` of a connection.
fn shown(path: &Path, index: usize) -> Value {
    let command = lastbyte(["show", "--format", "json"]);
    let mut command = command;
    command.arg(path).arg(index.to_string());
    let document = serde_json::from_str(&succeed(&mut command).stdout).unwrap();
    assert_fits(&document, SCHEMA);
    document
}

#[test]
fn no_row_tells_whether_anybody_looks_inside() {
    let place = TempDir::new().unwrap();
    let keys = place.path().join("keys.txt");
    let keys = keys.to_str().unwrap();
    for (emulation, more) in [("netem", ""), ("link", "emulation = \"link\"\n")] {
        let study = format!("{LOSSY}{more}");
        let rows = |options: &[&str]| {
            let folder = format!("{emulation}-{}", options.len());
            let results = run_study(&place, &study, &folder, options);
            let data = Dataset::open(&results).unwrap();
            let samples = data.samples().unwrap();
            let rows = samples.map(|sample| sample.unwrap().1.rows);
            rows.collect::<Vec<_>>()
        };
        let without = rows(&[]);
        assert!(
            without
                .iter()
                .flatten()
                .any(|row| { row.server_tcp().is_some_and(|tcp| tcp.retransmits > 0) })
        );
        assert_eq!(rows(&["--capture", "15"]), without, "{emulation}");
        assert_eq!(
            rows(&["--capture", "15", "--keylog", keys]),
            without,
            "{emulation}"
        );
    }
}

/// What TCP says of retransmissions is what is seen of them, and what was lost is told with how it was recovered.
fn check_losses(results: &Path, clock: Duration) {
    let data = Dataset::open(results).unwrap();
    let (mut losses, mut triggers) = (0, BTreeSet::new());
    for sample in data.samples().unwrap() {
        let (key, sample) = sample.unwrap();
        let (cell, arm) = (key.cell, key.arm);
        let name = &data.study.measures[key.measure].experiment.arms[arm].name;
        let path = results
            .join("captures")
            .join(format!("m-cell-{cell}-arm-{arm}-{name}.pcapng"));
        let capture = open(&path);
        assert_eq!(capture.unseen, 0);
        let found = connections(&capture.packets);
        assert_eq!(found.len(), 15, "{path:?}");
        for (place, connection) in found.iter().enumerate() {
            let row = &sample.rows[index(connection) as usize];
            let retransmits = |side| connection.retransmissions(side) as u32;
            let name = format!("{path:?} {place}");
            assert_eq!(
                retransmits(Side::Client),
                row.client_tcp().unwrap().retransmits,
                "{name}"
            );
            assert_eq!(
                retransmits(Side::Server),
                row.server_tcp().unwrap().retransmits,
                "{name}"
            );
            let document = shown(&path, place);
            let answer = document["answer"][0].as_str().unwrap();
            let matter: Vec<_> = connection
                .losses()
                .into_iter()
                .filter(|loss| connection.transmissions[loss.lost].takes_place())
                .collect();
            assert_eq!(
                matter.is_empty(),
                answer.starts_with("Nothing was lost") || answer.starts_with("No data was lost"),
                "{name}: {answer}"
            );
            losses += matter.len();
            // The time that is told is the row's, but for what computing nobody counts.
            let end = document["end_ms"].as_f64().unwrap() / 1e3;
            let ttlb = row.times.ttlb.unwrap().as_secs_f64();
            assert!(
                (end - ttlb).abs() < clock.as_secs_f64(),
                "{name}: {end} s, by its row {ttlb} s"
            );
            let again = connection
                .transmissions
                .iter()
                .filter_map(|sent| sent.again);
            triggers.extend(again.map(|again| match again {
                Trigger::FastRetransmit => "fast retransmit",
                Trigger::LossProbe(_) => "loss probe",
                Trigger::Timeout(waited) => {
                    assert!(waited >= Duration::from_millis(200), "{name}: {waited:?}");
                    "timeout"
                }
                Trigger::AfterTimeout => "after timeout",
            }));
        }
    }
    assert!(losses > 20, "{losses}");
    assert!(
        triggers.contains("fast retransmit") && triggers.contains("loss probe"),
        "{triggers:?}"
    );
}

#[test]
fn what_was_lost_is_told_with_how_it_was_recovered() {
    let place = TempDir::new().unwrap();
    check_losses(
        &run_study(&place, LOSSY, "netem", &["--capture", "15"]),
        Duration::from_micros(1),
    );
    let link = format!("{LOSSY}emulation = \"link\"\n");
    // The emulator reads the clock for each packet, which takes a nanosecond.
    check_losses(
        &run_study(&place, &link, "link", &["--capture", "15"]),
        Duration::from_micros(50),
    );
}

#[test]
fn a_queue_that_is_too_short_is_told_from_bad_luck() {
    let place = TempDir::new().unwrap();
    let study = |emulation: &str| {
        format!(
            "connections = 2\n[arm.a]\ntls = \"x25519/rsa-2048\"\n[link.short]\nrtt = \"40ms\"\nrate = \"5mbit\"\n\
             queue = 12\n[[measure]]\nid = \"m\"\ninitcwnd = 32\ndata = \"100KiB\"\nemulation = \"{emulation}\"\n"
        )
    };
    let dropped = |emulation: &str| {
        let results = run_study(&place, &study(emulation), emulation, &["--capture", "2"]);
        let capture = open(&captures(&results.join("captures"))[0]);
        let fates = connections(&capture.packets)
            .into_iter()
            .flat_map(|connection| connection.transmissions)
            .filter(|sent| sent.arrived.is_none())
            .map(|sent| (sent.offset, sent.payload.len(), sent.fate));
        fates
            .filter(|(.., fate)| *fate != Fate::UnderWay)
            .collect::<Vec<_>>()
    };
    let netem = dropped("netem");
    assert!(netem.len() > 5);
    assert!(
        netem.iter().all(|(.., fate)| *fate == Fate::QueueFull),
        "{netem:?}"
    );
    // The link says itself what netem's packets tell by what does not come.
    assert_eq!(dropped("link"), netem);
}

/// What tshark makes of a file, one line for each packet with these fields.
fn tshark(path: &Path, filter: &str, fields: &[&str]) -> Vec<Vec<String>> {
    let mut command = Command::new("tshark");
    command
        .arg("-r")
        .arg(path)
        .args(["-Y", filter, "-T", "fields"]);
    for field in fields {
        command.args(["-e", field]);
    }
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("this test needs tshark (apt-get install tshark): {error}"));
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let lines = String::from_utf8(output.stdout).unwrap();
    let words = |line: &str| line.split('\t').map(str::to_owned).collect();
    lines.lines().map(words).collect()
}

#[test]
fn tshark_opens_captures_without_a_key_file() {
    let place = TempDir::new().unwrap();
    let folder = place.path().join("captures");
    let question = "compare --engine virtual --loss 3% --data 20KiB --connections 12 --format csv --capture 10";
    succeed(
        lastbyte(question.split(' '))
            .arg("--capture-to")
            .arg(&folder),
    );
    let files = captures(&folder);
    assert_eq!(files.len(), 2);
    for file in &files {
        // Where it is delivered, tshark takes a packet for one that is sent again, and reads no TLS in it.
        let sent = "frame.interface_name == \"sent by the server\"";
        let types = tshark(file, sent, &["tls.handshake.type"]);
        let types: BTreeSet<&str> = types
            .iter()
            .flatten()
            .flat_map(|types| types.split(','))
            .collect();
        // EncryptedExtensions, Certificate, CertificateVerify, Finished: none is in the clear.
        for kind in ["8", "11", "15", "20"] {
            assert!(types.contains(kind), "{kind}: {types:?}");
        }
        // What a record of application data has inside is known where it was opened.
        let data = tshark(file, "tls.app_data", &["frame.interface_name"]);
        let opened = tshark(
            file,
            "data.data || http || tls.app_data_proto",
            &["frame.interface_name"],
        );
        assert!(
            !data.is_empty() && !opened.is_empty(),
            "{} {}",
            data.len(),
            opened.len()
        );
        let names = tshark(file, "tcp", &["frame.interface_name"]);
        let names: BTreeSet<String> = names.into_iter().flatten().collect();
        assert_eq!(names.len(), 4, "{names:?}");
        let lost = tshark(
            file,
            "frame.comment contains \"lost by the link\"",
            &["frame.interface_name"],
        );
        assert!(
            lost.iter()
                .flatten()
                .all(|name| name.starts_with("sent by")),
            "{lost:?}"
        );
        let wrong = tshark(file, "tcp.checksum.status == 0", &["frame.number"]);
        assert!(wrong.is_empty());
    }
    let lost: usize = (files.iter())
        .map(|file| {
            tshark(
                file,
                "frame.comment == \"lost by the link\"",
                &["frame.number"],
            )
            .len()
        })
        .sum();
    assert!(lost > 0);
}

#[test]
fn a_key_log_has_the_secrets_of_every_connection() {
    let place = TempDir::new().unwrap();
    let keys = place.path().join("keys.txt");
    let question = "compare --engine virtual --baseline x25519/ecdsa-p256 --data 1KiB --connections 30 --format csv";
    succeed(lastbyte(question.split(' ')).arg("--keylog").arg(&keys));
    let text = fs::read_to_string(&keys).unwrap();
    let mut labels: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        let [label, random, secret] = words[..] else {
            panic!("{line}");
        };
        assert!(random.len() == 64 && secret.len() >= 64, "{line}");
        labels.entry(label).or_default().insert(random);
    }
    for label in [
        "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
        "SERVER_HANDSHAKE_TRAFFIC_SECRET",
        "CLIENT_TRAFFIC_SECRET_0",
        "SERVER_TRAFFIC_SECRET_0",
    ] {
        assert_eq!(labels[label].len(), 30, "{label}");
    }
}

#[test]
fn the_live_engine_captures_too() {
    need_root();
    need_live_engine();
    let place = TempDir::new().unwrap();
    let folder = place.path().join("captures");
    let keys = place.path().join("keys.txt");
    let rows = place.path().join("rows.csv");
    let question = "compare --engine live --baseline x25519/ecdsa-p256 --rtt 20ms --loss 3% --data 50KiB \
                    --connections 20 --capture 8 --format json";
    let mut command = lastbyte(question.split_whitespace());
    command.arg("--capture-to").arg(&folder);
    let ended = succeed(command.arg("--keylog").arg(&keys).arg("-o").arg(&rows));
    assert!(ended.stderr.contains("1 capture in "), "{}", ended.stderr);
    let file = &captures(&folder)[0];
    let found = connections(&open(file).packets);
    assert_eq!(found.len(), 8);
    let rows = crate::common::read_rows(&rows);
    for connection in &found {
        let row = &rows[index(connection) as usize];
        let seen = connection.retransmissions(Side::Server) as u64;
        assert_eq!(
            seen,
            row.number("server_retransmits"),
            "{}",
            connection.comment
        );
    }
    let document = shown(file, 0);
    let what = |message: &Value| message["what"].as_str().unwrap().to_owned();
    let messages: Vec<String> = document["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(what)
        .collect();
    for message in [
        "ClientHello",
        "Certificate",
        "Finished",
        "request",
        "response",
    ] {
        assert!(
            messages.iter().any(|known| known == message),
            "{message}: {messages:?}"
        );
    }
    let secrets = fs::read_to_string(&keys).unwrap();
    assert_eq!(secrets.matches("\nSERVER_TRAFFIC_SECRET_0 ").count(), 20);
}

#[test]
fn captures_of_an_interrupted_run_open() {
    let place = TempDir::new().unwrap();
    let study = "connections = 1500\n[arm.a]\ntls = \"x25519/ecdsa-p256\"\n[link.plain]\nrtt = \"10ms\"\n[[measure]]\nid = \"m\"\ndata = \"100KiB\"\n";
    let file = place.path().join("study.toml");
    fs::write(&file, study).unwrap();
    let results = place.path().join("results");
    let start = |resume: &[&str]| {
        let mut command = lastbyte(["run", "--engine", "virtual", "--capture", "600", "-o"]);
        command.arg(&results).arg(&file).args(resume);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().unwrap()
    };
    let folder = results.join("captures");
    let mut child = start(&[]);
    while !folder.exists() || captures(&folder).is_empty() {
        assert!(child.try_wait().unwrap().is_none());
        thread::sleep(Duration::from_millis(10));
    }
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let before = captures(&folder);
    let whole = |path: &PathBuf| {
        path.extension()
            .is_some_and(|extension| extension == "pcapng")
    };
    assert!(!before.is_empty() && before.iter().all(whole), "{before:?}");
    for path in &before {
        assert!(!connections(&open(path).packets).is_empty());
    }
    assert_eq!(start(&["--resume"]).wait().unwrap().code(), Some(0));
    let after: Vec<String> = (captures(&folder).iter())
        .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        after,
        [
            "m-cell-0-arm-0-a-from-250.pcapng",
            "m-cell-0-arm-0-a-from-500.pcapng",
            "m-cell-0-arm-0-a.pcapng"
        ]
    );
}

#[test]
fn a_page_shows_the_slowest_connection_of_each_arm_and_a_drawing_is_a_file() {
    let place = TempDir::new().unwrap();
    let results = run_study(&place, LOSSY, "results", &["--capture", "100"]);
    succeed(lastbyte(["report"]).arg(&results));
    let page = fs::read_to_string(results.join("report.html")).unwrap();
    let (_, section) = page.split_once("id=\"inside\"").unwrap();
    let (section, _) = section.split_once("</section>").unwrap();
    // Twice for each of two arms: for screens and for phones.
    assert_eq!(section.matches("<svg ").count(), 4);
    let file = &captures(&results.join("captures"))[0];
    // N is larger than the sample: all of it is there.
    assert_eq!(connections(&open(file).packets).len(), 40);
    let drawing = place.path().join("drawing.svg");
    let ended = succeed(lastbyte(["show"]).arg(file).arg("--svg").arg(&drawing));
    assert!(ended.stdout.contains("under way"), "{}", ended.stdout);
    let drawing = fs::read_to_string(&drawing).unwrap();
    assert!(drawing.starts_with("<svg ") && drawing.ends_with("</svg>\n"));
    // Without a number it is the slowest, below a list.
    let listed = succeed(lastbyte(["show"]).arg(file)).stdout;
    assert!(listed.starts_with("40 connections in "), "{listed}");
    let (list, drawn) = listed.split_once("\n\n").unwrap();
    let lines: Vec<Vec<&str>> = (list.lines())
        .filter(|line| line.starts_with("  ") && line.contains(" ms"))
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(lines.len(), 10, "{list}");
    let times = lines.iter().map(|line| line[1].parse::<f64>().unwrap());
    assert!(times.is_sorted_by(|one, other| one >= other), "{list}");
    let by_number = succeed(lastbyte(["show"]).arg(file).arg(lines[0][0])).stdout;
    assert_eq!(drawn, by_number);
    let folder = succeed(lastbyte(["show"]).arg(results.join("captures"))).stdout;
    assert!(
        folder.starts_with("160 connections in several files"),
        "{folder}"
    );
    // Without captures, a page has no such section.
    let without = run_study(&place, LOSSY, "without", &[]);
    succeed(lastbyte(["report"]).arg(&without));
    let page = fs::read_to_string(without.join("report.html")).unwrap();
    assert!(!page.contains("id=\"inside\""));
}

/// `compare --engine virtual` of one arm with these options, and its capture.
fn compared(place: &TempDir, options: &str) -> PathBuf {
    let command = "compare --engine virtual --cpu none --format csv";
    let words = command.split_whitespace().chain(options.split_whitespace());
    // Connections that fail are what some of these are about.
    let ended = run(lastbyte(words).current_dir(place.path()));
    let found = captures(&place.path().join("captures"));
    assert_eq!(found.len(), 1, "{}", ended.stderr);
    found.into_iter().next().unwrap()
}

/// What `show` says first.
fn answer(document: &Value) -> String {
    let sentences = document["answer"].as_array().unwrap().iter();
    let sentences: Vec<&str> = sentences
        .map(|sentence| sentence.as_str().unwrap())
        .collect();
    sentences.join(" ")
}

#[test]
fn connections_that_ask_dns_are_captured_over_netem_too() {
    let place = TempDir::new().unwrap();
    let arm = "SecP256r1MLKEM768/ml-dsa-65/delivery=pqtls-ad";
    let file = compared(
        &place,
        &format!("--baseline {arm} --connections 2 --capture 2 --data 0KiB"),
    );
    // What asks DNS over TCP is in the file, and none of the sample's.
    assert_eq!(connections(&open(&file).packets).len(), 2);
    for index in 0..2 {
        let document = shown(&file, index);
        assert!(document["end_ms"].is_number(), "{document}");
    }
}

#[test]
fn a_connection_that_timed_out_has_no_last_byte() {
    let place = TempDir::new().unwrap();
    let file = compared(
        &place,
        "--baseline SecP256r1MLKEM768/ml-dsa-65 --connections 60 --capture 60 --loss gemodel:10%/30% --data 20KiB \
         --timeout 2s",
    );
    let mut unended = 0;
    for index in 0..connections(&open(&file).packets).len() {
        let document = shown(&file, index);
        let answer = answer(&document);
        let messages = document["messages"].as_array().unwrap();
        let response = messages.iter().filter(|span| span["what"] == "response");
        let bytes: u64 = response
            .map(|span| span["end"].as_u64().unwrap() - span["start"].as_u64().unwrap())
            .sum();
        if document["end_ms"].is_null() {
            unended += 1;
            assert!(answer.contains("Its last byte never came"), "{answer}");
        } else {
            assert!(bytes >= 20 << 10, "{document}");
            assert!(document["end_ms"].as_f64().unwrap() <= 2000.0, "{document}");
        }
    }
    assert!(unended > 0);
}

#[test]
fn a_failed_first_attempt_is_told_from_the_second_one() {
    let place = TempDir::new().unwrap();
    let arm = "SecP256r1MLKEM768/ml-dsa-65/delivery=elide/client=stale";
    let file = compared(
        &place,
        &format!("--baseline {arm} --connections 1 --capture 1 --data 1KiB"),
    );
    let [failed, second] = [0, 1].map(|index| shown(&file, index));
    let told = answer(&failed);
    assert!(
        told.starts_with("The handshake failed: the client said alert "),
        "{told}"
    );
    assert!(told.contains("It was made anew"), "{told}");
    assert!(failed["end_ms"].is_null());
    let messages = failed["messages"].as_array().unwrap();
    assert!(
        messages.iter().any(|span| span["what"] == "alert"),
        "{failed}"
    );
    assert!(
        messages.iter().all(|span| span["what"] != "request"),
        "{failed}"
    );
    let told = answer(&second);
    assert!(told.starts_with("It is a second attempt"), "{told}");
    assert!(second["end_ms"].is_number());
}

#[test]
fn what_can_t_be_captured_or_shown_is_a_line() {
    let place = TempDir::new().unwrap();
    let refused = |command: &mut Command| {
        let ended = run(command.current_dir(place.path()));
        assert_eq!(ended.code, Some(2), "{command:?}: {}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
        ended.stderr
    };
    let question = |options: &str| {
        let command =
            format!("compare --engine virtual --connections 2 --data 0KiB --format csv {options}");
        lastbyte(command.split_whitespace())
    };
    let told = refused(&mut question("--preset published-2024 --capture 1"));
    assert!(
        told.contains("nobody is between TCP and the link"),
        "{told}"
    );
    refused(&mut question("--capture 0"));
    refused(&mut question("--capture-to elsewhere"));
    refused(&mut question("--keylog nowhere/keys"));
    for options in [
        "--keylog same.csv -o ./same.csv",
        "--strict -o same.csv --junit same.csv",
        "--save ./same.parquet -o same.parquet",
    ] {
        let told = refused(&mut question(options));
        assert!(
            told.contains("is named for two outputs: name another"),
            "{options}: {told}"
        );
    }
    assert!(!place.path().join("same.csv").exists());
    assert!(!place.path().join("captures").exists());

    succeed(question("--capture 1").current_dir(place.path()));
    // The same question may be asked again, and another may not take its place.
    succeed(question("--capture 1").current_dir(place.path()));
    let told = refused(&mut question("--capture 1 --rtt 99ms"));
    assert!(told.contains("of another question"), "{told}");

    let file = &captures(&place.path().join("captures"))[0];
    let show = |path: &Path, more: &[&str]| {
        let mut command = lastbyte(["show"]);
        command.arg(path).args(more);
        command
    };
    let told = refused(&mut show(file, &["7"]));
    assert!(told.contains("has one connection"), "{told}");
    refused(&mut show(file, &["--svg", "drawing.png"]));
    refused(&mut show(&place.path().join("none.pcapng"), &[]));
    refused(&mut show(place.path(), &[]));
    let pipe = place.path().join("pipe.pcapng");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let told = refused(&mut show(&pipe, &[]));
    assert!(told.contains("it is no regular file"), "{told}");
    let bytes = fs::read(file).unwrap();
    let damaged = place.path().join("damaged.pcapng");
    fs::write(&damaged, &bytes[1..]).unwrap();
    let told = refused(&mut show(&damaged, &[]));
    assert!(told.contains("it is no pcapng file"), "{told}");
    // Cut short, it is shown as far as it goes.
    fs::write(&damaged, &bytes[..bytes.len() * 2 / 3]).unwrap();
    let ended = succeed(&mut show(&damaged, &[]));
    assert!(ended.stderr.contains("it is cut short"), "{}", ended.stderr);
    assert!(ended.stdout.contains("ClientHello"), "{}", ended.stdout);
}
