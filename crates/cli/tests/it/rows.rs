//! The files that `lastbyte compare -o` writes, and the luck of their connections.
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use crate::common::{Measured, Row, at, compare, lastbyte, need_live_engine, run};
use lastbyte::results::rows::COLUMNS;
use parquet::file::reader::{FileReader, SerializedFileReader};
use serde_json::Value;
use tempfile::TempDir;

#[test]
fn every_connection_has_one_line() {
    need_live_engine();
    let arms = ["x25519/ecdsa-p256", "secp256r1/rsa-2048"];
    let folder = TempDir::new().unwrap();
    let file = at(&folder, "rows.csv");
    let mut command = lastbyte([
        "compare",
        "--chain-profile=private",
        "--baseline",
        arms[0],
        "--against",
        arms[1],
    ]);
    command.args([
        "--rtt",
        "2ms",
        "--data",
        "0KiB,1KiB",
        "--connections",
        "105",
    ]);
    let ended = run(command.arg("-o").arg(&file));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);

    let text = fs::read_to_string(&file).unwrap();
    let names: Vec<_> = COLUMNS.iter().map(|column| column.name).collect();
    assert_eq!(text.lines().next(), Some(names.join(",").as_str()));
    let rows = crate::common::read_rows(&file);
    assert_eq!(rows.len(), 2 * 2 * 105);
    for arm in arms {
        for data in ["0", "1024"] {
            let is_of_sample =
                |row: &&Row| row.text("arm") == arm && row.text("data_bytes") == data;
            let sample: Vec<_> = rows.iter().filter(is_of_sample).collect();
            let indices: Vec<_> = sample.iter().map(|row| row.number("index")).collect();
            assert_eq!(indices, Vec::from_iter(0..105));
            for row in sample {
                assert_eq!(row.number("block"), row.number("index") / 100);
                assert_eq!(row.text("outcome"), "completed");
                assert_eq!(row.text("study"), "compare");
            }
        }
    }
    let digest = |arm: &str| {
        let of_arm = rows.iter().filter(|row| row.text("arm") == arm);
        let digests: BTreeSet<_> = of_arm.map(|row| row.text("chain_sha256")).collect();
        assert_eq!(digests.len(), 1, "{digests:?}");
        digests
    };
    assert_ne!(digest(arms[0]), digest(arms[1]));
}

#[test]
fn parquet_has_the_same_columns() {
    need_live_engine();
    let folder = TempDir::new().unwrap();
    let file = at(&folder, "rows.parquet");
    let mut command = lastbyte([
        "compare",
        "--chain-profile=private",
        "--baseline",
        "x25519/ecdsa-p256",
    ]);
    command.args(["--engine", "live", "--rtt", "2ms", "--data", "0KiB"]);
    let ended = run(command.args(["--connections", "30", "-o"]).arg(&file));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);

    let reader = SerializedFileReader::new(fs::File::open(&file).unwrap()).unwrap();
    let metadata = reader.metadata().file_metadata();
    assert_eq!(metadata.num_rows(), 30);
    let columns = metadata.schema_descr().columns().iter();
    let columns: Vec<_> = columns.map(|column| column.name().to_owned()).collect();
    let names: Vec<_> = COLUMNS.iter().map(|column| column.name).collect();
    assert_eq!(columns, names);
    let about = metadata.key_value_metadata().unwrap();
    let about = about.iter().find(|pair| pair.key == "lastbyte").unwrap();
    let about: Value = serde_json::from_str(about.value.as_ref().unwrap()).unwrap();
    assert_eq!(about["schema"], "lastbyte.rows/1");
    assert_eq!(about["samples"][0]["connections"], 30);
    assert_eq!(about["environments"][0]["command"][1], "compare");
}

#[test]
fn a_document_in_a_file_is_the_one_that_is_printed() {
    need_live_engine();
    let folder = TempDir::new().unwrap();
    let file = at(&folder, "results.json");
    fs::write(&file, "an earlier one").unwrap();
    let mut command = lastbyte([
        "compare",
        "--baseline",
        "x25519/ecdsa-p256",
        "--rtt",
        "10ms",
    ]);
    command.args([
        "--data",
        "0KiB",
        "--connections",
        "2",
        "--format",
        "json",
        "-o",
    ]);
    let ended = run(command.arg(&file));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(fs::read_to_string(&file).unwrap(), ended.stdout);
    assert_eq!(names(&folder), ["results.json"]);
}

#[test]
fn a_file_has_the_permissions_of_any_other() {
    need_live_engine();
    let folder = TempDir::new().unwrap();
    let file = at(&folder, "rows.csv");
    let mut command = lastbyte([
        "compare",
        "--baseline",
        "x25519/ecdsa-p256",
        "--rtt",
        "10ms",
    ]);
    command.args(["--data", "0KiB", "--connections", "1", "-o"]);
    assert_eq!(run(command.arg(&file)).code, Some(0));
    fs::write(at(&folder, "other"), "").unwrap();
    let mode = |name| {
        fs::metadata(at(&folder, name))
            .unwrap()
            .permissions()
            .mode()
    };
    assert_eq!(mode("rows.csv"), mode("other"));
}

#[test]
fn a_run_that_fails_leaves_an_earlier_file_alone() {
    need_live_engine();
    let folder = TempDir::new().unwrap();
    let file = at(&folder, "rows.csv");
    fs::write(&file, "an earlier one").unwrap();
    let mut command = lastbyte(["compare", "--baseline", "x25519/missing.pem", "-o"]);
    assert_eq!(run(command.arg(&file)).code, Some(2));
    assert_eq!(fs::read_to_string(&file).unwrap(), "an earlier one");
    assert_eq!(names(&folder), ["rows.csv"]);
}

fn names(folder: &TempDir) -> Vec<String> {
    let entries = fs::read_dir(folder.path()).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

/// Who waits for the SYN's retransmission timeout is decided by the seed and the link alone.
#[test]
fn arms_and_runs_share_the_luck_of_their_seed() {
    let [baseline, against] = ["x25519/ecdsa-p256", "SecP256r1MLKEM768/rsa-2048"];
    let compare = |options: &str| {
        compare(&format!(
            "--baseline {baseline} --loss 5% --rtt 10ms --timeout 20s --connections 60 --concurrency 20 {options}"
        ))
    };
    let run = compare(&format!("--against {against} --data 0KiB --seed 1"));
    let unlucky = late_to_connect(&run, baseline);
    assert!(!unlucky.is_empty());
    assert_eq!(late_to_connect(&run, against), unlucky);
    // Data is lost too, of connections whose SYN was lucky.
    let retransmits =
        |row: &Row| row.number("client_retransmits") + row.number("server_retransmits");
    assert!(
        (run.rows.iter())
            .any(|row| !unlucky.contains(&row.number("index")) && retransmits(row) > 0)
    );

    let again = compare("--data 1KiB --seed 1");
    assert_eq!(late_to_connect(&again, baseline), unlucky);
    let other = compare("--data 0KiB --seed 2");
    assert_ne!(late_to_connect(&other, baseline), unlucky);
}

/// The connections that lost their first SYN or SYN-ACK.
fn late_to_connect(measured: &Measured, arm: &str) -> BTreeSet<u64> {
    measured
        .rows_of(arm)
        // The timeout is 1 s (RFC 6298, section 2), counted in the kernel's ticks.
        .filter(|row| row.time("connect_ns") >= Duration::from_millis(950))
        .map(|row| row.number("index"))
        .collect()
}
