//! A process that is really killed loses no entry that it acknowledged.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use lastbyte_mtc::log::Log;
use lastbyte_mtc::{HashValue, LogId, LogNumber, Tree, entry};

const FOLDER: &str = "LASTBYTE_MTC_APPEND_TO";

fn open(folder: &Path) -> Log {
    let id = LogId::new("32473.1".parse().unwrap(), LogNumber::FIRST).unwrap();
    Log::open(id, folder).unwrap()
}

/// The entry of a process: each writes others, so that a log which took some back would show it.
fn entry_of(process: u32, index: u64) -> Vec<u8> {
    format!("{process} {index}").into_bytes()
}

/// What the killed process does.
fn append_until_killed(folder: &Path) {
    let mut log = open(folder);
    let process = std::process::id();
    let mut out = std::io::stdout();
    for batch in (1..).map(|round| round * 37 % 300) {
        let size = log.size();
        let entries: Vec<_> = (size..size + batch)
            .map(|index| entry_of(process, index))
            .collect();
        log.append(&entries).unwrap();
        writeln!(out, "acknowledged {}", log.size()).unwrap();
        out.flush().unwrap();
    }
}

#[test]
fn what_was_acknowledged_is_there_after_kill_9() {
    // The processes that are killed are this one, once more.
    if let Some(folder) = std::env::var_os(FOLDER) {
        return append_until_killed(Path::new(&folder));
    }
    let folder = tempfile::tempdir().unwrap();
    let mut tree = Tree::new();
    let mut entries: Vec<Vec<u8>> = Vec::new();
    for round in 0..8 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "what_was_acknowledged_is_there_after_kill_9",
                "--nocapture",
            ])
            .env(FOLDER, folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let process = child.id();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let acknowledged = lines.map_while(Result::ok);
        let mut sizes =
            acknowledged.filter_map(|line| line.strip_prefix("acknowledged ")?.parse::<u64>().ok());
        let mut last = 0;
        for _ in 0..=round {
            last = sizes.next().unwrap();
        }
        // Somewhere in the batches after that.
        child.kill().unwrap();
        last = sizes.last().unwrap_or(last);
        child.wait().unwrap();
        let log = open(folder.path());
        assert!(
            log.size() >= last,
            "{} entries, {last} acknowledged",
            log.size()
        );
        // What earlier ones wrote is unchanged, and all after it is this one's.
        for index in entries.len() as u64..log.size() {
            let entry = log.entry(index).unwrap();
            assert_eq!(entry, entry_of(process, index));
            tree.push(entry::leaf(&entry));
            entries.push(entry);
        }
        for index in (0..log.size()).step_by(97) {
            assert_eq!(log.entry(index).unwrap(), entries[index as usize]);
        }
        let root: HashValue = tree.root().unwrap();
        assert_eq!(log.root().unwrap(), root);
    }
}
