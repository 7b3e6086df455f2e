//! Made-up logs are counted by `lastbyte zeek`, by DataFusion in a process, and by a cluster that loses one of its
//! two executors while it counts.
//!
//! `lastbyte` and `logs`, the example of lastbyte-zeek that makes logs up, are where `LASTBYTE_PROGRAMS` says, or
//! where the project builds them; scripts/zeek-sql sees to both.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::env;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// Each is a folder of Parquet with one file, as of a machine with Zeek.
const SENSORS: u64 = 16;
const CONNECTIONS: &str = "20000";

/// Nothing of this may hang. It is no measure: a loaded machine has minutes.
const PATIENCE: Duration = Duration::from_secs(300);

#[test]
fn sql_counts_the_same_in_a_process_and_on_a_cluster_that_loses_an_executor() {
    let logs = Logs::of(SENSORS);
    let in_process = logs.count().output().unwrap();
    logs.are_counted_by(&in_process);

    let scheduler = Scheduler::new(logs.home.path());
    let mut executors = [1, 2].map(|number| Executor::new(&scheduler, logs.home.path(), number));
    let mut on_cluster = logs.count();
    on_cluster.args(["--scheduler", &scheduler.address]);
    let mut client = Running::new(on_cluster.stderr(Stdio::piped()));
    let first = first_with_a_result(&executors);
    assert!(
        client.is_running(),
        "all was counted before an executor could be killed"
    );
    executors[first].process.kill();
    // A machine that is lost takes its disk with it.
    fs::remove_dir_all(&executors[first].work).unwrap();
    logs.are_counted_by(&client.output());

    // What it was to do was somebody else's then.
    let said = fs::read_to_string(&scheduler.log).unwrap();
    assert!(
        said.contains("on lost Executor"),
        "nothing was done again:\n{said}"
    );
    assert!(executors[1 - first].process.is_running());
}

#[test]
fn other_counts_than_the_documents_are_an_error() {
    let logs = Logs::of(1);
    let text = fs::read_to_string(&logs.document).unwrap();
    let mut document: Value = serde_json::from_str(&text).unwrap();
    document["quic"]["resumed"] = Value::from(1);
    fs::write(&logs.document, document.to_string()).unwrap();
    let ended = logs.count().output().unwrap();
    assert_eq!(ended.status.code(), Some(1));
    let told = String::from_utf8(ended.stderr).unwrap();
    assert!(told.contains("its counts differ from SQL's"), "{told}");
}

/// Made-up logs, what `lastbyte zeek` counts in them, and their connections as Parquet.
struct Logs {
    home: TempDir,
    document: PathBuf,
    folders: Vec<PathBuf>,
}

impl Logs {
    fn of(sensors: u64) -> Logs {
        let home = TempDir::new().unwrap();
        let logs = home.path().join("logs");
        fs::create_dir(&logs).unwrap();
        let folders = (1..=sensors).map(|seed| {
            let files = ["ssl", "conn", "lastbyte"].map(|kind| {
                let file = logs.join(format!("{kind}-{seed}.log"));
                let mut command = lastbytes("examples/logs");
                command.args([kind, CONNECTIONS, &seed.to_string()]);
                succeed(command.stdout(File::create(&file).unwrap()));
                file
            });
            let folder = home.path().join(format!("sensor-{seed}"));
            let mut command = lastbytes("lastbyte");
            command.args(["zeek", "--parquet"]).arg(&folder).args(files);
            succeed(command.stdout(Stdio::null()));
            folder
        });
        let folders = folders.collect();
        let document = home.path().join("document.json");
        let mut command = lastbytes("lastbyte");
        command.args(["zeek", "--format", "json"]).arg(logs);
        succeed(command.stdout(File::create(&document).unwrap()));
        Logs {
            home,
            document,
            folders,
        }
    }

    fn count(&self) -> Command {
        let mut command = program("count");
        command
            .arg("--same-as")
            .arg(&self.document)
            .args(&self.folders);
        command
    }

    /// That the program found no difference, and that there is none in what it prints.
    fn are_counted_by(&self, ended: &Output) {
        let told = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{told}");
        let counted: Value = serde_json::from_slice(&ended.stdout).unwrap();
        let document: Value =
            serde_json::from_str(&fs::read_to_string(&self.document).unwrap()).unwrap();
        for key in ["joined", "tls", "quic", "classes", "bytes_per_connection"] {
            assert_part(&counted[key], &document[key], key);
        }
        let joined = SENSORS * CONNECTIONS.parse::<u64>().unwrap();
        assert_eq!(counted["joined"], joined);
    }
}

/// Whatever is counted is counted alike in the document. What is in the document alone, `--same-as` looks for.
fn assert_part(counted: &Value, document: &Value, path: &str) {
    match counted {
        Value::Object(counts) => {
            for (key, count) in counts {
                assert_part(count, &document[key], &format!("{path}.{key}"));
            }
        }
        count => assert_eq!(count, document, "{path}"),
    }
}

/// The place of the first that holds a result, of which others will ask it.
fn first_with_a_result(executors: &[Executor]) -> usize {
    let begun = Instant::now();
    loop {
        if let Some(first) = executors
            .iter()
            .position(|executor| has_file(&executor.work))
        {
            return first;
        }
        assert!(begun.elapsed() < PATIENCE, "no executor has done anything");
        sleep(Duration::from_millis(1));
    }
}

fn has_file(folder: &Path) -> bool {
    // What is there may go at any time.
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths = entries.map(|entry| entry.path());
    paths.any(|path| match path.is_dir() {
        true => has_file(&path),
        false => path.metadata().is_ok_and(|file| file.len() > 0),
    })
}

struct Scheduler {
    address: String,
    log: PathBuf,
    _process: Running,
}

impl Scheduler {
    fn new(home: &Path) -> Scheduler {
        let log = home.join("scheduler.log");
        let mut command = program("scheduler");
        command.args(["--bind", "127.0.0.1:0", "--patience", "10"]);
        let mut process = Running::new(command.stderr(File::create(&log).unwrap()));
        let mut address = String::new();
        BufReader::new(process.stdout())
            .read_line(&mut address)
            .unwrap();
        Scheduler {
            address: address.trim().to_owned(),
            log,
            _process: process,
        }
    }
}

struct Executor {
    work: PathBuf,
    process: Running,
}

impl Executor {
    fn new(scheduler: &Scheduler, home: &Path, number: u32) -> Executor {
        let work = home.join(format!("work-{number}"));
        let log = File::create(home.join(format!("executor-{number}.log"))).unwrap();
        // Each has an address of its own, as on another machine.
        let bind = format!("127.0.0.{}:0", number + 1);
        let mut command = program("executor");
        command.args(["--scheduler", &scheduler.address, "--bind", &bind]);
        command.args(["--tasks", "1", "--work"]).arg(&work);
        Executor {
            process: Running::new(command.stderr(log)),
            work,
        }
    }
}

/// A process that does not outlive the test.
struct Running(Child);

impl Running {
    fn new(command: &mut Command) -> Running {
        Running(command.stdout(Stdio::piped()).spawn().unwrap())
    }

    fn stdout(&mut self) -> ChildStdout {
        self.0.stdout.take().unwrap()
    }

    fn is_running(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }

    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    /// What it printed, once it has ended.
    fn output(&mut self) -> Output {
        let begun = Instant::now();
        while self.is_running() {
            assert!(begun.elapsed() < PATIENCE, "it does not end");
            sleep(Duration::from_millis(20));
        }
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        self.stdout().read_to_end(&mut stdout).unwrap();
        if let Some(mut from) = self.0.stderr.take() {
            from.read_to_end(&mut stderr).unwrap();
        }
        let status = self.0.wait().unwrap();
        Output {
            status,
            stdout,
            stderr,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn program(subcommand: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lastbyte-sql"));
    command.arg(subcommand);
    command
}

/// One of the project's own programs.
fn lastbytes(name: &str) -> Command {
    let built = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/release");
    let folder = env::var_os("LASTBYTE_PROGRAMS").unwrap_or_else(|| built.into());
    let path = Path::new(&folder).join(name);
    assert!(
        path.exists(),
        "{} is not there: run scripts/zeek-sql",
        path.display()
    );
    Command::new(path)
}

fn succeed(command: &mut Command) {
    let ended = command.stderr(Stdio::inherit()).status().unwrap();
    assert!(ended.success(), "{command:?}");
}
