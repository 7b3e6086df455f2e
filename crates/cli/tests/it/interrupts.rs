//! Ends that nobody asked for, and ends that somebody did: nothing is left behind.
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use crate::common::{Ended, Row, at, lastbyte, need_live_engine, need_root, read_rows};
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use tempfile::TempDir;

/// How long the machine may take for what it does at once when it is not busy.
const PATIENCE: Duration = Duration::from_secs(60);
const BLOCK: usize = 100;

#[test]
fn ctrl_c_keeps_the_finished_blocks() {
    // How many blocks a moment holds is the machine's choice, so wait longer until some are done.
    for seconds in [2, 4, 8, 16, 32] {
        let folder = TempDir::new().unwrap();
        let file = at(&folder, "rows.csv");
        let child = long_compare(&file);
        thread::sleep(Duration::from_secs(seconds));
        send(&child, Signal::SIGINT);
        let ended = end(child);
        assert_eq!(ended.code, Some(130), "{ended:?}");
        let told: Vec<_> = ended.stderr.lines().collect();
        assert_eq!(told.len(), 2, "{told:?}");
        // There is no bar to tell.
        assert!(
            told[0].starts_with("lastbyte: measuring takes about "),
            "{told:?}"
        );
        assert_eq!(
            told[1],
            "lastbyte: interrupted; the results above are those of the finished blocks"
        );
        assert_eq!(names(folder.path()), ["rows.csv"]);
        let rows = read_rows(&file);
        if rows.is_empty() {
            continue;
        }
        let baseline = rows_of(&rows, BASELINE);
        let against = rows_of(&rows, AGAINST);
        // Arms take turns, block by block.
        assert_eq!(baseline.len() % BLOCK, 0);
        assert!(
            [0, BLOCK].contains(&(baseline.len() - against.len())),
            "{ended:?}"
        );
        for rows in [&baseline, &against] {
            let indices: Vec<_> = rows.iter().map(|row| row.number("index")).collect();
            assert_eq!(indices, Vec::from_iter(0..rows.len() as u64));
            assert!(rows.iter().all(|row| row.text("outcome") == "completed"));
        }
        let told = format!("{BASELINE},");
        assert!(ended.stdout.contains(&told), "{}", ended.stdout);
        return;
    }
    panic!("not one block was finished in 32 s: is the machine very busy?");
}

fn rows_of<'a>(rows: &'a [Row], arm: &str) -> Vec<&'a Row> {
    rows.iter().filter(|row| row.text("arm") == arm).collect()
}

#[test]
fn a_second_ctrl_c_ends_at_once() {
    // Making these keys takes seconds, in which nobody looks for an interrupt.
    let cache = TempDir::new().unwrap();
    let mut command = lastbyte(["compare", "--baseline", "x25519/rsa-4096/intermediates=3"]);
    command.env("LASTBYTE_CACHE", cache.path());
    let mut child = piped(&mut command);
    wait_for("a chain to be in the making", || {
        names(cache.path()).contains(&"lock".to_owned())
    });
    send(&child, Signal::SIGINT);
    thread::sleep(Duration::from_millis(50));
    assert_eq!(
        child.try_wait().unwrap(),
        None,
        "one Ctrl-C lets it finish what it is at"
    );
    send(&child, Signal::SIGINT);
    let status = child.wait().unwrap();
    assert_eq!(status.signal(), Some(Signal::SIGINT as i32), "{status:?}");
}

/// However it ends, the kernel takes namespaces and devices away.
#[test]
fn no_end_leaves_anything_behind() {
    need_root();
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGKILL] {
        let folder = TempDir::new().unwrap();
        let child = long_compare(&at(&folder, "rows.csv"));
        let pid = child.id();
        let mut namespaces = BTreeSet::new();
        wait_for("both ends to be there", || {
            namespaces = own_namespaces(pid);
            namespaces.len() >= 2 && has_device(pid)
        });
        send(&child, signal);
        end(child);
        let group = killpg(Pid::from_raw(pid as i32), None);
        assert_eq!(group, Err(Errno::ESRCH), "a child of its own outlives it");
        assert!(
            !fs::read_to_string("/proc/net/dev")
                .unwrap()
                .contains("lastbyte0")
        );
        wait_for("nobody to hold a namespace any more", || {
            namespaces.is_disjoint(&held_namespaces())
        });
        match signal {
            // Nobody was there to take its draft away; it is hidden.
            Signal::SIGKILL => {
                let names = names(folder.path());
                assert!(
                    names.iter().all(|name| name.starts_with(".lastbyte-")),
                    "{names:?}"
                );
            }
            _ => assert_eq!(names(folder.path()), ["rows.csv"]),
        }
    }
}

/// A process that is killed can't take its folder away: the next one does.
#[test]
fn what_a_killed_process_left_is_removed_by_the_next_one() {
    let [temporary, results] = [(); 2].map(|()| TempDir::new().unwrap());
    let start = |folders: usize| {
        let mut command = long_compare_command(&at(&results, "rows.csv"));
        let child = piped(command.env("TMPDIR", temporary.path()));
        wait_for("a folder of its own", || {
            names(temporary.path()).len() == folders
        });
        child
    };
    let make_old = |name: &str| {
        let folder = fs::File::open(at(&temporary, name)).unwrap();
        let old = SystemTime::now() - Duration::from_secs(3600);
        folder.set_modified(old).unwrap();
    };
    let killed = start(1);
    send(&killed, Signal::SIGKILL);
    end(killed);
    let left = names(temporary.path());
    make_old(&left[0]);
    let mut command = long_compare_command(&at(&results, "rows.csv"));
    let next = piped(command.env("TMPDIR", temporary.path()));
    wait_for("another one in its place", || {
        let names = names(temporary.path());
        names.len() == 1 && names != left
    });
    // That of a process that lives is left alone, however old it is.
    let held = names(temporary.path());
    make_old(&held[0]);
    let third = start(2);
    for child in [third, next] {
        assert!(names(temporary.path()).contains(&held[0]));
        send(&child, Signal::SIGINT);
        end(child);
    }
    assert_eq!(names(temporary.path()), [""; 0]);
}

const BASELINE: &str = "x25519/ecdsa-p256";
const AGAINST: &str = "secp256r1/ecdsa-p256";

/// A `compare` that would go on for hours.
fn long_compare(output: &Path) -> Child {
    piped(&mut long_compare_command(output))
}

fn long_compare_command(output: &Path) -> Command {
    need_live_engine();
    let mut command = lastbyte(["compare", "--baseline", BASELINE, "--against", AGAINST]);
    command.args(["--rtt", "2ms", "--data", "0KiB", "--connections", "1000000"]);
    command.args(["--format", "csv", "-o"]);
    command.arg(output).process_group(0);
    command
}

fn piped(command: &mut Command) -> Child {
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn send(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id() as i32), signal).unwrap();
}

/// How it ended; it was told to.
fn end(mut child: Child) -> Ended {
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > PATIENCE {
            child.kill().unwrap();
            panic!("it did not end");
        }
        thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().unwrap().into()
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "waited in vain for {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

/// The network namespaces that a process has descriptors of.
fn own_namespaces(pid: u32) -> BTreeSet<PathBuf> {
    let descriptors = entries(format!("/proc/{pid}/fd")).into_iter();
    descriptors
        .filter_map(|descriptor| fs::read_link(descriptor).ok())
        .filter(|link| link.to_string_lossy().starts_with("net:["))
        .collect()
}

/// Whether a thread of a process sees the device.
fn has_device(pid: u32) -> bool {
    entries(format!("/proc/{pid}/task")).iter().any(|task| {
        let devices = fs::read_to_string(task.join("net/dev")).unwrap_or_default();
        devices.contains("lastbyte0")
    })
}

/// All network namespaces that a thread is in or has a descriptor of, or that are mounted,
/// but for those of other runs of this program.
fn held_namespaces() -> BTreeSet<PathBuf> {
    let mut held = BTreeSet::new();
    for process in entries("/proc") {
        let name = fs::read_to_string(process.join("comm")).unwrap_or_default();
        if name.trim() == "lastbyte" {
            continue;
        }
        let tasks = entries(process.join("task")).into_iter();
        let links = tasks.map(|task| task.join("ns/net"));
        let links = links.chain(entries(process.join("fd")));
        held.extend(links.filter_map(|link| fs::read_link(link).ok()));
        let mounts = fs::read_to_string(process.join("mountinfo")).unwrap_or_default();
        held.extend(mounts.split_whitespace().map(PathBuf::from));
    }
    held
}

/// Empty for what has just gone.
fn entries(folder: impl AsRef<Path>) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect()
}
