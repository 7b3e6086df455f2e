//! Results that are saved and compared with later, end to end, in the virtual engine: its kernel
//! must be built (`lastbyte kernel build`).
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::common::{Ended, assert_fits, at, need_live_engine, run};
use lastbyte::results::rows::ParquetWriter;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use roxmltree::Document;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A certificate of one's own, as a site has it: its arm is called the same whatever is in it.
const SITE: &str = "x25519/./site/chain.pem/ca=./site/root.pem";

/// A folder to work in, with a small chain in it.
struct Place(TempDir);

impl Place {
    fn new() -> Place {
        let place = Place(TempDir::new().unwrap());
        place.make_chain("ecdsa-p256", "site");
        place
    }

    fn make_chain(&self, kind: &str, folder: &str) {
        let mut command = self.command("chain new");
        succeed(command.args([kind, "-o", folder]));
    }

    /// Another chain under the same names.
    fn replace_chain(&self, kind: &str, folder: &str) {
        fs::remove_dir_all(self.file(folder)).unwrap();
        self.make_chain(kind, folder);
    }

    /// `lastbyte` here, with the user's own cache, which has the kernel.
    fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lastbyte"));
        command
            .current_dir(&self.0)
            .args(arguments.split_whitespace());
        command
    }

    fn compare(&self, options: &str) -> Command {
        let mut command = self.command("compare --engine virtual --baseline");
        command.arg(SITE).args(options.split_whitespace());
        command
    }

    fn file(&self, name: &str) -> PathBuf {
        at(&self.0, name)
    }
}

/// Runs what must succeed.
fn succeed(command: &mut Command) -> Ended {
    let ended = run(command);
    assert_eq!(ended.code, Some(0), "{command:?}: {}", ended.stderr);
    ended
}

fn document(ended: &Ended) -> Value {
    let document = serde_json::from_str(&ended.stdout).unwrap();
    assert_fits(&document, lastbyte::report::SCHEMA);
    document
}

/// All numbers of all changes.
fn changes(document: &Value) -> Vec<f64> {
    let cells = document["cells"].as_array().unwrap().iter();
    let changes = cells.flat_map(|cell| cell["change_percent"].as_array().unwrap());
    let numbers = changes.flat_map(|change| {
        let estimates = change.as_object().unwrap().values();
        estimates.flat_map(|of| ["value", "low", "high"].map(|name| of[name].as_f64()))
    });
    numbers.flatten().collect()
}

/// What else than the arms is not as it was.
fn warnings(document: &Value) -> Vec<&str> {
    let warnings = document["warnings"].as_array().unwrap().iter();
    let texts = warnings.map(|warning| warning.as_str().unwrap());
    texts.filter(|text| text.starts_with("since ")).collect()
}

#[test]
fn the_same_since_is_no_change_at_all() {
    let place = Place::new();
    let question = "--loss 3% --data 0KiB,20KiB --connections 60 --format json";
    succeed(&mut place.compare(&format!("{question} --save main")));
    let files: Vec<_> = fs::read_dir(place.file(".lastbyte"))
        .unwrap()
        .flatten()
        .collect();
    assert_eq!(files.len(), 1, "{files:?}");

    // Compared with the old, then in its place.
    let ended = succeed(
        place
            .compare(&format!(
                "{question} --compare-to main --save main --strict"
            ))
            .args([
                "--fail-if",
                "ttlb.p50 > 0% since saved,handshake.p90 > 0% since saved",
            ]),
    );
    assert_eq!(ended.stderr, "");
    let told = document(&ended);
    assert_eq!(told["since"]["name"], "main");
    assert_eq!(told["since"]["paired"], true);
    assert!(told["since"]["saved"].as_str().unwrap().ends_with('Z'));
    assert_eq!(warnings(&told), [""; 0]);
    let numbers = changes(&told);
    // Two cells of 4 metrics, 3 percentiles and 3 numbers, but for the first byte of no data.
    assert_eq!(numbers.len(), (4 + 3) * 9);
    assert!(numbers.iter().all(|number| *number == 0.0), "{numbers:?}");

    // Another seed has other luck, which explains what there is.
    let ended = succeed(&mut place.compare(&format!("{question} --compare-to main --seed 2")));
    let told = document(&ended);
    assert_eq!(told["since"]["paired"], false);
    assert_eq!(
        warnings(&told),
        ["since main, the seed has changed from 1 to 2: its effect is in the changes, too"]
    );
    assert!(changes(&told).iter().any(|number| *number != 0.0));

    // That comes first.
    let asked = question.replace(" --format json", "");
    let ended = succeed(&mut place.compare(&format!("{asked} --compare-to main")));
    let first = "Nothing was shown to have changed since main, in ";
    assert!(ended.stdout.starts_with(first), "{}", ended.stdout);

    // Neither was saved.
    let ended = succeed(&mut place.compare(&format!("{question} --compare-to main")));
    assert!(
        changes(&document(&ended))
            .iter()
            .all(|number| *number == 0.0)
    );
}

#[test]
fn a_larger_chain_in_the_same_file_fails_the_build() {
    let place = Place::new();
    let question = "--data 0KiB,20KiB --connections 40 --save main --junit junit.xml";
    let junit = || fs::read_to_string(place.file("junit.xml")).unwrap();
    let verdicts = |text: &str, name: &str| -> Vec<String> {
        let document = Document::parse(text).unwrap();
        let all = document
            .descendants()
            .filter(|node| node.has_tag_name(name));
        let parents = all.map(|node| node.parent().unwrap().attribute("name").unwrap().to_owned());
        parents.collect()
    };
    succeed(
        place
            .compare(question)
            .args(["--fail-if", "ttlb.p50 > 100s"]),
    );
    assert_eq!(verdicts(&junit(), "failure"), [""; 0]);

    place.replace_chain("ml-dsa-87", "site");
    let threshold = "ttlb.p50 > 2% since saved";
    let again = || {
        run(place
            .compare(question)
            .args(["--compare-to", "main", "--fail-if", threshold]))
    };
    let ended = again();
    assert_eq!(ended.code, Some(99), "{}", ended.stderr);
    let crossed = format!("lastbyte: threshold crossed: {threshold}: {SITE} at 0B changed by 50.");
    assert!(ended.stderr.starts_with(&crossed), "{}", ended.stderr);
    let first = format!("Since main, the handshake of {SITE} comes 50");
    assert!(ended.stdout.starts_with(&first), "{}", ended.stdout);
    let warning = format!("warning: {SITE}: its certificates are not those of main\n");
    assert!(ended.stdout.contains(&warning), "{}", ended.stdout);
    let heading = ended
        .stdout
        .lines()
        .find(|line| line.starts_with("since main, saved 2"));
    assert!(
        heading
            .unwrap()
            .ends_with(" UTC, paired by connection, on the network"),
        "{}",
        ended.stdout
    );
    let told = junit();
    // With data, what the handshake takes longer has opened the window.
    assert_eq!(verdicts(&told, "failure"), [format!("{threshold} at 0B")]);
    let told = Document::parse(&told).unwrap();
    let property = |name: &str| {
        let mut nodes = told.descendants();
        let node = nodes
            .find(|node| node.attribute("name") == Some(name))
            .unwrap();
        node.attribute("value").unwrap().to_owned()
    };
    assert_eq!(property("engine"), "virtual");
    assert_eq!(property("seed"), "1");
    assert!(property("kernel").starts_with("Linux "));
    assert!(property("command").ends_with(&format!("--fail-if '{threshold}'")));
    assert_eq!(property("version of lastbyte"), env!("CARGO_PKG_VERSION"));

    // It was measured, so it was saved: from here on, it is what there was.
    let ended = again();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

#[test]
fn the_script_of_the_documentation_works() {
    let text = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/ci.md");
    let text = fs::read_to_string(text).unwrap();
    let (_, script) = text.split_once("```sh\n#!").unwrap();
    let (script, _) = script.split_once("```").unwrap();
    let place = Place::new();
    fs::write(place.file("check"), format!("#!{script}")).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_lastbyte")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let check = |branch: &str, code| {
        let mut command = Command::new("sh");
        command.arg("check").current_dir(&place.0);
        let ended = run(command.env("PATH", &path).env("BRANCH", branch));
        assert_eq!(ended.code, Some(code), "{}", ended.stderr);
    };
    place.make_chain("ecdsa-p256", "tls");
    check("topic", 0);
    assert!(!place.file(".lastbyte").exists());
    check("main", 0);
    check("topic", 0);
    Document::parse(&fs::read_to_string(place.file("junit.xml")).unwrap()).unwrap();
    place.replace_chain("ml-dsa-87", "tls");
    check("topic", 99);
}

#[test]
fn every_format_tells_the_changes() {
    let place = Place::new();
    let question = "--data 0KiB --connections 20";
    succeed(&mut place.compare(&format!("{question} --save ./kept.parquet")));
    assert!(!place.file(".lastbyte").exists());
    let told = |format: &str| {
        let options = format!("{question} --compare-to ./kept.parquet --format {format}");
        succeed(&mut place.compare(&options)).stdout
    };
    let table = told("table");
    assert!(table.contains("  ~0.0 %  ~0.0 %"), "{table}");
    assert!(
        table.contains("paired by connection, on the network\n"),
        "{table}"
    );
    let markdown = told("markdown");
    assert!(
        markdown.contains("**since ./kept.parquet, saved 2"),
        "{markdown}"
    );
    assert!(
        markdown.contains("| handshake | `x25519/./site/chain.pem/ca=./site/root.pem` | ~0.0 %"),
        "{markdown}"
    );
    let csv = told("csv");
    let mut records = csv::Reader::from_reader(csv.as_bytes());
    let titles = records.headers().unwrap();
    assert_eq!(titles.iter().next_back(), Some("p90_change_high_percent"));
    let row: std::collections::HashMap<String, String> =
        records.deserialize().next().unwrap().unwrap();
    assert_eq!(row["since"], "./kept.parquet");
    assert_eq!(row["paired"], "true");
    assert_eq!(row["p75_change_percent"], "0");
}

/// Rows that were kept can be compared with as well; they don't say when.
#[test]
fn rows_that_were_kept_are_results_too() {
    let place = Place::new();
    let question = "--data 0KiB --connections 20";
    succeed(&mut place.compare(&format!("{question} -o rows.parquet")));
    let options = format!("{question} --compare-to ./rows.parquet --format json");
    let told = document(&succeed(&mut place.compare(&options)));
    assert_eq!(told["since"]["saved"], Value::Null);
    assert!(changes(&told).iter().all(|number| *number == 0.0));
}

#[test]
fn another_engine_is_compared_with_a_warning() {
    need_live_engine();
    let place = Place::new();
    let question = "--data 0KiB --connections 8 --rtt 10ms";
    succeed(&mut place.compare(&format!("{question} --save main")));
    let mut command =
        place.command("compare --engine live --format json --compare-to main --baseline");
    let ended = succeed(command.arg(SITE).args(question.split_whitespace()));
    let told = document(&ended);
    assert_eq!(told["since"]["paired"], false);
    let warnings = warnings(&told);
    let warned = |start: &str| warnings.iter().any(|warning| warning.starts_with(start));
    assert!(
        warned("since main, the engine has changed from virtual to live: "),
        "{warnings:?}"
    );
    assert!(
        warned("since main, the kernel has changed from Linux 6"),
        "{warnings:?}"
    );
}

#[test]
fn what_can_not_be_compared_is_told_before_anything_is_measured() {
    let place = Place::new();
    // It would take hours.
    let question = "--connections 1000000 --data 0KiB";
    let refused = |options: &str, problem: &str| {
        let ended = run(&mut place.compare(&format!("{question} {options}")));
        assert_eq!(ended.code, Some(2), "{options}: {}", ended.stderr);
        assert_eq!(ended.stdout, "", "{options}");
        assert_eq!(ended.stderr, format!("lastbyte: {problem}\n"), "{options}");
    };
    refused(
        "--compare-to main",
        r#"nothing is saved as "main": save results with --save main"#,
    );
    succeed(&mut place.compare("--connections 2 --data 0KiB --save main"));
    let file = place.file(".lastbyte/main.parquet");
    let whole = fs::read(&file).unwrap();
    refused(
        "--compare-to mian",
        r#"nothing is saved as "mian": did you mean "main"?"#,
    );
    refused(
        "--compare-to ./main.parquet",
        r#"there is no file "./main.parquet": save results there with --save ./main.parquet"#,
    );
    refused(
        "--compare-to main --initcwnd 10,20",
        "results saved as \"main\" lack the cell \"RTT 35ms, 1gbit, loss 0%, initcwnd 20, 0B\": save \
         it first, or did you mean \"RTT 35ms, 1gbit, loss 0%, initcwnd 10, 0B\"?",
    );
    refused(
        "--compare-to main --against x25519/rsa-2048",
        "results saved as \"main\" lack the arm \"x25519/rsa-2048\": save it first, or use \
         \"x25519/./site/chain.pem/ca=./site/root.pem\"",
    );
    let unreadable =
        |problem| format!("can't read \".lastbyte/main.parquet\": {problem}: save them anew");
    fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    refused(
        "--compare-to main",
        &unreadable("it is incomplete or damaged"),
    );
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 1;
    fs::write(&file, &damaged).unwrap();
    refused(
        "--compare-to main",
        &unreadable("it is incomplete or damaged"),
    );
    let writer = ParquetWriter::new(File::create(&file).unwrap()).unwrap();
    writer
        .finish(&json!({"schema": "lastbyte.rows/2"}))
        .unwrap();
    refused(
        "--compare-to main",
        &unreadable(r#"its schema is "lastbyte.rows/2", not "lastbyte.rows/1""#),
    );
    refused(
        "--fail-if ttlb.p75>2%sincesaved",
        "threshold \"ttlb.p75 > 2% since saved\" is a change since saved results: name them with \
         --compare-to",
    );
    refused(
        "--junit junit.xml",
        "--junit has nothing to tell: state what must hold with --fail-if or --strict",
    );
    refused(
        "--save missing/main.parquet",
        r#"can't write "missing/main.parquet": there is no folder "missing": make it first"#,
    );
    assert!(!place.file("junit.xml").exists());
}

#[test]
fn a_run_that_does_not_complete_saves_nothing() {
    let place = Place::new();
    let save = "--data 0KiB --save main";
    succeed(&mut place.compare(&format!("{save} --connections 2")));
    let file = place.file(".lastbyte/main.parquet");
    let before = fs::read(&file).unwrap();

    let ended = run(&mut place.compare(&format!("{save} --connections 2 --timeout 5ms")));
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let told = "lastbyte: nothing was saved\n\
        lastbyte: no connection completed: timed out after 5ms, which is the timeout\n";
    assert_eq!(ended.stderr, told);
    assert_eq!(fs::read(&file).unwrap(), before);

    let mut command = place.compare(&format!("{save} --connections 1000000 --junit junit.xml"));
    command.args(["--fail-if", "ttlb.p50 > 100s"]);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    thread::sleep(Duration::from_secs(3));
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).unwrap();
    let ended = Ended::from(child.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("lastbyte: nothing was saved\n"),
        "{}",
        ended.stderr
    );
    assert_eq!(fs::read(&file).unwrap(), before);
    let files: Vec<_> = fs::read_dir(place.file(".lastbyte"))
        .unwrap()
        .flatten()
        .collect();
    assert_eq!(files.len(), 1, "{files:?}");
}
