//! What the end-to-end tests share. They need what `lastbyte doctor` asks for.
//!
//! Nothing here or in the tests bounds a latency from above: the machine that runs them may
//! be busy. What physics says is bounded from below; for the rest the fastest of several
//! connections speaks.

pub(crate) mod repository;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use lastbyte::lab::{self, LiveEngine, PreparedArm, Run, Runner, Watcher};
use lastbyte::results::Environment;
use lastbyte::study::{Cell, Experiment, Study};
use lastbyte_link::{Bytes, Link};
use lastbyte_pki::Store;
use serde_json::Value;
use tempfile::TempDir;

/// Chains that all tests share, since making them takes longer than using them.
pub(crate) const CACHE: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/chains");

pub(crate) fn store() -> Store {
    Store::open(CACHE)
}

/// The program, about to run with these arguments.
pub(crate) fn lastbyte(arguments: impl IntoIterator<Item: AsRef<OsStr>>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lastbyte"));
    command.args(arguments).env("LASTBYTE_CACHE", CACHE);
    command
}

/// A document is as a schema says.
#[track_caller]
pub(crate) fn assert_fits(document: &Value, schema: &str) {
    let schema = serde_json::from_str(schema).unwrap();
    let schema = jsonschema::draft202012::new(&schema).unwrap();
    let errors: Vec<_> = schema
        .iter_errors(document)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}: {document:#}");
}

/// How a program ended, and what it said.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Ended {
        let stderr = String::from_utf8(output.stderr).unwrap();
        // Why it is the live engine is told by tests of the engines.
        let told = |line: &&str| !line.starts_with("lastbyte: the live engine, as no kernel");
        Ended {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: stderr.split_inclusive('\n').filter(told).collect(),
        }
    }
}

pub(crate) fn run(command: &mut Command) -> Ended {
    let output = command.output();
    Ended::from(output.unwrap_or_else(|error| panic!("{command:?}: {error}")))
}

/// Fails unless this machine can run the live engine, with the hint.
pub(crate) fn need_live_engine() {
    static DOCTOR: OnceLock<Ended> = OnceLock::new();
    let doctor = DOCTOR.get_or_init(|| run(&mut lastbyte(["doctor"])));
    assert!(
        doctor.code == Some(0),
        "this test needs the live engine; what is missing:\n{}{}",
        doctor.stdout,
        doctor.stderr
    );
}

pub(crate) fn need_root() {
    assert!(
        nix::unistd::geteuid().is_root(),
        "this test needs root: run `sudo -E cargo test --release -p lastbyte-cli`"
    );
}

/// The document and the rows of a `compare`.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) document: Value,
    pub(crate) rows: Vec<Row>,
}

/// One line of a rows file, by column.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row(HashMap<String, String>);

/// Runs `compare` with these options, separated by blanks, which must succeed.
pub(crate) fn compare(options: &str) -> Measured {
    compare_with(&options.split_whitespace().collect::<Vec<_>>())
}

/// Runs `compare` with these options, which must succeed.
pub(crate) fn compare_with(options: &[&str]) -> Measured {
    need_live_engine();
    let folder = TempDir::new().unwrap();
    let file = at(&folder, "rows.csv");
    let mut command = lastbyte(["compare", "--format", "json", "-o"]);
    command.arg(&file).args(options);
    // An arm has what it says, as in a study.
    if !options.contains(&"--chain-profile") {
        command.args(["--chain-profile", "private"]);
    }
    let ended = run(&mut command);
    assert_eq!(ended.code, Some(0), "{command:?}: {}", ended.stderr);
    Measured {
        document: serde_json::from_str(&ended.stdout).unwrap(),
        rows: read_rows(&file),
    }
}

pub(crate) fn read_rows(file: &Path) -> Vec<Row> {
    let mut reader = csv::Reader::from_path(file).unwrap();
    reader.deserialize().map(|row| Row(row.unwrap())).collect()
}

impl Measured {
    /// The sample of an arm in a cell of the document.
    pub(crate) fn sample(&self, cell: usize, arm: usize) -> &Value {
        &self.document["cells"][cell]["arms"][arm]
    }

    pub(crate) fn rows_of<'a>(&'a self, arm: &'a str) -> impl Iterator<Item = &'a Row> {
        self.rows.iter().filter(move |row| row.text("arm") == arm)
    }
}

impl Row {
    pub(crate) fn text(&self, column: &str) -> &str {
        &self.0[column]
    }

    pub(crate) fn number(&self, column: &str) -> u64 {
        let text = self.text(column);
        text.parse()
            .unwrap_or_else(|_| panic!("{column} is no number: {text:?}"))
    }

    /// The time in a column, which is in nanoseconds.
    pub(crate) fn time(&self, column: &str) -> Duration {
        Duration::from_nanos(self.number(column))
    }
}

/// A cell that is as usual but for its link and the response.
pub(crate) fn cell(link: Link, data: Bytes) -> Cell {
    Cell {
        link,
        data,
        ..Cell::default()
    }
}

/// An arm for [`measure`].
pub(crate) fn prepare(arm: &str) -> PreparedArm {
    // The test harness has threads, so it can't acquire the right to make namespaces as the
    // program does.
    need_root();
    need_live_engine();
    PreparedArm::new(arm.parse().unwrap(), &store()).unwrap()
}

/// Measures one arm in one cell through the library, one connection after the other.
pub(crate) fn measure(arm: PreparedArm, cell: Cell, connections: u32, timeout: Duration) -> Run {
    let experiment = Experiment {
        concurrency: Some(1),
        timeout,
        ..Experiment::new(vec![arm.arm.clone()], vec![cell], connections)
    };
    let mut study = Study::single("test", experiment);
    study.text = study.to_toml();
    let run = lab::run_in_passing(&Runner {
        inspection: None,
        study: &study,
        engine: &LiveEngine::new(Environment::default()),
        arms: &[arm],
        interrupt: &AtomicBool::new(false),
        watcher: &Silent,
    });
    run.unwrap()
}

struct Silent;

impl Watcher for Silent {
    fn expect(&self, _: Duration) {}
    fn advance(&self, _: Duration) {}
    fn warn(&self, _: &str) {}
}

/// Where a file of a folder is.
pub(crate) fn at(folder: &TempDir, name: &str) -> PathBuf {
    folder.path().join(name)
}
