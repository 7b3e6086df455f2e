//! `lastbyte reduce`: every way to send less than a chain, measured in the virtual kernel.
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::common::{Ended, assert_fits, run};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

const CHAIN: &str = "X25519MLKEM768/ml-dsa-44";

/// The program with the user's own cache, which has the kernel.
fn reduce(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lastbyte"));
    command.arg("reduce").args(arguments);
    command.args(["--rtt", "35ms", "--handshakes", "1", "--format", "json"]);
    command.args(["--chain-profile", "private"]);
    command
}

fn document(ended: &Ended) -> Value {
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_fits(&document, lastbyte::report::reduced::SCHEMA);
    document
}

/// The row of a way whose clients have what they need.
fn row<'a>(document: &'a Value, way: Option<&str>) -> &'a Value {
    let ranked = document["cells"][0]["ranked"].as_array().unwrap();
    // Whole chains of other stacks are there, too.
    let is_it = |row: &&Value| {
        let is_given = way.is_some() || row["arm"] == CHAIN;
        row["way"].as_str() == way && row["clients"] == "ready" && is_given
    };
    ranked.iter().find(is_it).unwrap()
}

fn bytes(row: &Value, key: &str) -> u64 {
    row[key].as_u64().unwrap()
}

#[test]
fn every_way_is_measured_and_ranked() {
    let document = document(&run(&mut reduce(&[
        CHAIN,
        "--data",
        "20KiB",
        "--connections",
        "10",
    ])));
    let unavailable = document["unavailable"].as_object().unwrap();
    assert!(unavailable.is_empty(), "{unavailable:?}");

    let whole = row(&document, None);
    assert_eq!(bytes(whole, "certificate_bytes"), 8562);
    assert_eq!(whole["multiple"], 1.0);
    // ServerHello, EncryptedExtensions, Certificate, CertificateVerify and Finished, in one flight.
    let landmark = row(&document, Some("MTC, landmark"));
    assert!(bytes(landmark, "server_bytes") <= 6200, "{landmark}");
    assert_eq!(landmark["flights"], 1);
    let cut = bytes(whole, "server_bytes") - bytes(landmark, "server_bytes");
    let multiple = 8584.0 / (8584 - cut) as f64;
    let ours = landmark["multiple"].as_f64().unwrap();
    assert!((ours - multiple).abs() < 1e-9, "{ours}, not {multiple}");

    let ranked = document["cells"][0]["ranked"].as_array().unwrap();
    let first_bytes: Vec<f64> = ranked
        .iter()
        .map(|row| row["ms"]["ttfb"]["p50"].as_f64().unwrap())
        .collect();
    assert!(first_bytes.is_sorted(), "{first_bytes:?}");
    let stale = ranked
        .iter()
        .filter(|row| row["clients"] == "stale")
        .count();
    assert!(stale >= 3, "{stale}");
}

/// The guests of a program that has its temporary files in `folder`, and what they are to do.
fn guests(folder: &Path) -> Vec<(Pid, String)> {
    let ids = fs::read_dir("/proc").unwrap().flatten();
    let ids = ids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let job = |id: &i32| {
        let words = fs::read_to_string(format!("/proc/{id}/cmdline")).ok()?;
        let mut words = words.split('\0').skip_while(|word| *word != "__guest");
        let job = Path::new(words.nth(1)?);
        let is_ours = fs::read_link(job).ok()?.starts_with(folder);
        is_ours.then(|| fs::read_to_string(job.join("job.json")).ok())?
    };
    ids.filter_map(|id| Some((Pid::from_raw(id), job(&id)?)))
        .collect()
}

#[test]
fn a_way_that_fails_takes_nothing_else_away() {
    let folder = TempDir::new().unwrap();
    let temporary = folder.path().canonicalize().unwrap();
    let mut command = reduce(&[CHAIN, "--data", "0B", "--connections", "20"]);
    command.env("TMPDIR", &temporary);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while child.try_wait().unwrap().is_none() {
        for (guest, job) in guests(&temporary) {
            if job.contains("delivery=elide") && job.contains("client=stale") {
                // It may have ended by itself.
                let _ = kill(guest, Signal::SIGKILL);
            }
        }
        thread::sleep(Duration::from_millis(5));
    }
    let document = document(&child.wait_with_output().unwrap().into());
    let unavailable = document["unavailable"].as_object().unwrap();
    let failed: Vec<&String> = unavailable.keys().collect();
    assert_eq!(failed, ["elision, by anchor", "elision, by flag"]);
    for reason in unavailable.values() {
        assert!(reason.as_str().unwrap().contains("signal 9"), "{reason}");
    }
    row(&document, Some("abridged"));
}
