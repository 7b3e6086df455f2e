//! `lastbyte run` on the live engine: whatever happens on the way, each connection of the study is
//! measured once.
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{Ended, at, lastbyte, need_live_engine, need_root, run};
use lastbyte::results::{Dataset, Outcome, SampleKey};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

/// Two measures with two arms: blocks of 100, 100 and 30 connections in two samples, and one block in
/// each of four.
const STUDY: &str = r#"
name = "two trees"
engine = "live"
connections = 230
concurrency = 10

[arm.old]
tls = "secp256r1/ecdsa-p256"
[arm.new]
tls = "x25519/ecdsa-p256"

[link.near]
rtt = "2ms"

[[measure]]
id = "tall/one"

[[measure]]
id = "small"
connections = 20
data = ["0KiB", "10KiB"]
"#;
const BLOCKS: usize = 10;
const SAMPLES: [(SampleKey, u32); 6] = [
    (sample(0, 0, 0), 230),
    (sample(0, 0, 1), 230),
    (sample(1, 0, 0), 20),
    (sample(1, 0, 1), 20),
    (sample(1, 1, 0), 20),
    (sample(1, 1, 1), 20),
];

const fn sample(measure: usize, cell: usize, arm: usize) -> SampleKey {
    SampleKey { measure, cell, arm }
}

/// A folder with the study in it.
struct Place(TempDir);

impl Place {
    fn new() -> Place {
        need_live_engine();
        let folder = TempDir::new().unwrap();
        fs::write(at(&folder, "study.toml"), STUDY).unwrap();
        Place(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        at(&self.0, name)
    }

    /// `lastbyte run` into a folder of it.
    fn command(&self, output: &str, options: &[&str]) -> Command {
        let mut command = lastbyte(["run", "study.toml", "-o", output]);
        command.args(options).current_dir(self.0.path());
        command
    }

    fn run(&self, output: &str, options: &[&str]) -> Ended {
        run(&mut self.command(output, options))
    }

    fn start(&self, output: &str, options: &[&str]) -> Child {
        let mut command = self.command(output, options);
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    fn parts(&self, output: &str) -> BTreeMap<String, Vec<u8>> {
        let folder = self.path(output).join("parts");
        let names = names(&folder).into_iter();
        names
            .filter(|name| !name.starts_with('.'))
            .map(|name| (name.clone(), fs::read(folder.join(name)).unwrap()))
            .collect()
    }

    /// Waits until so many blocks are finished.
    fn wait_for_parts(&self, output: &str, count: usize, child: &mut Child) {
        let start = Instant::now();
        while self.parts(output).len() < count {
            assert!(
                start.elapsed() < Duration::from_secs(60),
                "waited in vain for {count} parts"
            );
            assert_eq!(
                child.try_wait().unwrap(),
                None,
                "it ended with too few parts"
            );
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Fails unless each connection of the study is there once, and complete.
    fn assert_complete(&self, output: &str) {
        let path = self.path(output);
        assert_eq!(
            names(&path),
            [
                "00-tall-one.json",
                "01-small.json",
                "answer.json",
                "manifest.json",
                "rows.parquet",
                "study.toml"
            ]
        );
        let data = Dataset::open(&path).unwrap();
        let samples = data.samples().unwrap().map(|sample| {
            let (key, sample) = sample.unwrap();
            let indices: Vec<_> = sample.rows.iter().map(|row| row.index).collect();
            assert_eq!(indices, Vec::from_iter(0..indices.len() as u32));
            for row in &sample.rows {
                assert_eq!(row.outcome, Outcome::Completed);
                assert_eq!(row.block, row.index / 100);
            }
            (key, indices.len() as u32)
        });
        assert_eq!(samples.collect::<Vec<_>>(), SAMPLES);
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort_unstable();
    names
}

fn assert_one_line(stderr: &str) {
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.starts_with("lastbyte: "), "{stderr}");
}

#[test]
fn a_study_from_its_beginning_to_its_end() {
    let place = Place::new();
    let ended = place.run("out", &["--strict"]);
    // The machine may be busy, and then `--strict` says so.
    if ended.code == Some(0) {
        assert!(
            !ended.stdout.contains("Nothing can be said"),
            "{}",
            ended.stdout
        );
    } else {
        assert_one_line(&ended.stderr);
        assert!(
            ended.stderr.starts_with("lastbyte: invalid sample: "),
            "{ended:?}"
        );
    }
    place.assert_complete("out");
    for told in [
        "tall/one\n\n",
        "small\n\n",
        "  handshake",
        "    old ",
        "    new ",
        "Results: out\n",
    ] {
        assert!(ended.stdout.contains(told), "{told:?} in {}", ended.stdout);
    }

    let read = |name: &str| -> Value {
        let text = fs::read_to_string(place.path("out").join(name)).unwrap();
        serde_json::from_str(&text).unwrap()
    };
    let manifest = read("manifest.json");
    assert_eq!(manifest["schema"], "lastbyte.run/1");
    assert_eq!(manifest["study"], "two trees");
    assert_eq!(manifest["engine"], "live");
    assert_eq!(manifest["blocks"], BLOCKS);
    assert_eq!(manifest["connections"], 540);
    let summary = read("01-small.json");
    assert_eq!(summary["schema"], "lastbyte.compare/1");
    assert_eq!(summary["cells"].as_array().unwrap().len(), 2);
    assert_eq!(summary["cells"][1]["arms"][1]["arm"], "new");
    assert_eq!(
        fs::read_to_string(place.path("out").join("study.toml")).unwrap(),
        STUDY
    );

    // There is nothing more to do, and nothing is done.
    let ended = place.run("out", &["--resume"]);
    assert_eq!(
        (ended.code, &*ended.stdout),
        (Some(0), "out is complete\n"),
        "{ended:?}"
    );
    place.assert_complete("out");
}

#[test]
fn the_folder_is_named_after_the_study() {
    let place = Place::new();
    let mut command = lastbyte(["run", "study.toml", "--shard", "4/4"]);
    let ended = run(command.current_dir(place.0.path()));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(
        names(&place.path("two-trees")),
        ["manifest.json", "parts", "study.toml"]
    );
}

#[test]
fn killed_again_and_again_it_comes_to_the_same_end() {
    let place = Place::new();
    let mut kept = BTreeMap::new();
    // Each time at another moment of a block, and never too early for one to be finished.
    for (kills, moment) in [0, 70, 210, 330, 20].into_iter().enumerate() {
        let options: &[&str] = if kills == 0 { &[] } else { &["--resume"] };
        let mut child = place.start("out", options);
        place.wait_for_parts("out", kills + 1, &mut child);
        thread::sleep(Duration::from_millis(moment));
        child.kill().unwrap();
        child.wait().unwrap();
        let parts = place.parts("out");
        for (name, part) in &kept {
            assert!(parts.get(name) == Some(part), "{name} has changed");
        }
        kept = parts;
    }
    let ended = place.run("out", &["--resume"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    place.assert_complete("out");
}

#[test]
fn an_interrupt_keeps_finished_blocks() {
    let place = Place::new();
    let mut child = place.start("out", &[]);
    place.wait_for_parts("out", 2, &mut child);
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    let ended = Ended::from(child.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(130), "{ended:?}");
    assert_one_line(&ended.stderr);
    let finished = place.parts("out").len();
    assert_eq!(
        ended.stderr,
        format!(
            "lastbyte: interrupted; {finished} of {BLOCKS} blocks are finished and kept: go on with \
             `lastbyte run study.toml -o out --resume`\n"
        )
    );
    let ended = place.run("out", &["--resume"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    place.assert_complete("out");
}

#[test]
fn a_damaged_part_is_measured_again() {
    let place = Place::new();
    let ended = place.run("out", &["--shard", "1/2"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let parts = place.parts("out");
    let (name, part) = parts.first_key_value().unwrap();
    let path = place.path("out").join("parts").join(name);
    fs::write(&path, &part[..part.len() / 2]).unwrap();
    let ended = place.run("out", &["--resume"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_one_line(&ended.stderr);
    assert!(ended.stderr.contains(name), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("it is incomplete or damaged"),
        "{}",
        ended.stderr
    );
    place.assert_complete("out");
}

#[test]
fn shards_make_the_whole() {
    let place = Place::new();
    let mut together = BTreeMap::new();
    for shard in ["1/3", "2/3", "3/3"] {
        let output = format!("shard-{}", &shard[..1]);
        let ended = place.run(&output, &["--shard", shard]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(
            ended.stdout.contains(&format!("shard {shard} is complete")),
            "{ended:?}"
        );
        let parts = place.parts(&output);
        assert!(parts.len() < BLOCKS, "{:?}", parts.keys());
        let before = together.len();
        together.extend(parts.clone());
        assert_eq!(together.len(), before + parts.len(), "shards overlap");
    }
    assert_eq!(together.len(), BLOCKS);

    let whole = place.path("whole/parts");
    fs::create_dir_all(&whole).unwrap();
    for (name, part) in together {
        fs::write(whole.join(name), part).unwrap();
    }
    let ended = place.run("whole", &["--resume"]);
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{ended:?}");
    place.assert_complete("whole");
}

/// A study below another folder, whose jitter is in a file that is gone when its results are read.
#[test]
fn what_a_study_names_is_kept_with_its_results() {
    let place = Place::new();
    let study = STUDY.replace("connections = 230", "connections = 5\nfolder = \"..\"");
    let jitter = "rtt = \"2ms\"\njitter = \"1ms\"\njitter_distribution = \"wifi.csv\"";
    let study = study.replace("rtt = \"2ms\"", jitter);
    let below = place.path("below");
    fs::create_dir(&below).unwrap();
    fs::write(below.join("study.toml"), study).unwrap();
    fs::write(place.path("wifi.csv"), "1ms\n2ms\n3ms\n5ms\n").unwrap();
    let ended = run(lastbyte(["run", "study.toml", "-o", "../out"]).current_dir(&below));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    fs::remove_file(place.path("wifi.csv")).unwrap();
    let ended = run(lastbyte(["report", "out", "-o", "out.html"]).current_dir(&place.0));
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn a_shard_without_a_block_says_so() {
    let place = Place::new();
    let study = STUDY.split("\n[[measure]]").next().unwrap();
    let study =
        study.replace("connections = 230", "connections = 5") + "\n[[measure]]\nid = \"one\"\n";
    fs::write(place.path("study.toml"), study).unwrap();
    let ended = place.run("second", &["--shard", "2/2"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let told = "second: shard 2/2 has nothing to measure, and no parts to copy: the study has 2 blocks, which \
                others measure\n";
    assert_eq!(ended.stdout, told);
}

#[test]
fn another_folder_is_left_alone() {
    let place = Place::new();
    let refused = |output: &str, options: &[&str], told: &str| {
        let ended = place.run(output, options);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert_one_line(&ended.stderr);
        assert!(ended.stderr.contains(told), "{}", ended.stderr);
    };
    refused(
        ".",
        &[],
        "is not empty and holds no run: name another folder with -o",
    );
    let ended = place.run("out", &["--shard", "4/4"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let parts = place.parts("out");
    refused("out", &[], "holds a run already: go on with it by --resume");
    fs::write(
        place.path("study.toml"),
        STUDY.replace("seed = 1", "seed = 2") + "# other\n",
    )
    .unwrap();
    refused(
        "out",
        &["--resume"],
        "its study \"two trees\" was another file",
    );
    assert_eq!(place.parts("out"), parts);
}

#[test]
fn a_full_disk_keeps_finished_blocks() {
    need_root();
    let place = Place::new();
    let disk = place.path("disk");
    fs::create_dir(&disk).unwrap();
    let _disk = Tmpfs::new(&disk, "96k");
    let ended = place.run("disk/out", &[]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert_one_line(&ended.stderr);
    assert!(
        ended.stderr.contains("No space left on device"),
        "{}",
        ended.stderr
    );
    assert!(
        ended
            .stderr
            .contains("finished blocks are kept: go on with `"),
        "{}",
        ended.stderr
    );
    let parts = place.parts("disk/out");
    assert!(
        !parts.is_empty() && parts.len() < BLOCKS,
        "{:?}",
        parts.keys()
    );

    mount(&["-o", "remount,size=10m", disk.to_str().unwrap()]);
    let ended = place.run("disk/out", &["--resume"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    place.assert_complete("disk/out");
}

#[test]
fn a_full_disk_gathers_nothing_and_leaves_nothing_behind() {
    need_root();
    let place = Place::new();
    for shard in ["1/2", "2/2"] {
        let ended = place.run(&shard[..1], &["--shard", shard]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }
    let disk = place.path("disk");
    fs::create_dir(&disk).unwrap();
    let _disk = Tmpfs::new(&disk, "96k");
    let gather = || {
        let mut command = lastbyte(["run", "--gather", "1", "2", "-o", "disk/out"]);
        run(command.current_dir(place.0.path()))
    };
    let ended = gather();
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert_one_line(&ended.stderr);
    assert!(
        ended.stderr.contains("No space left on device"),
        "{ended:?}"
    );
    assert!(!disk.join("out").exists());

    mount(&["-o", "remount,size=10m", disk.to_str().unwrap()]);
    let ended = gather();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    place.assert_complete("disk/out");
}

/// A small disk, until it is dropped.
struct Tmpfs(PathBuf);

impl Tmpfs {
    fn new(at: &Path, size: &str) -> Tmpfs {
        let size = format!("size={size}");
        mount(&["-t", "tmpfs", "-o", &size, "tmpfs", at.to_str().unwrap()]);
        Tmpfs(at.to_owned())
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

fn mount(arguments: &[&str]) {
    let status = Command::new("mount").args(arguments).status().unwrap();
    assert!(status.success(), "mount {arguments:?}: {status}");
}

#[test]
fn a_folder_that_can_not_be_made_is_a_wrong_command_line() {
    let place = Place::new();
    let ended = place.run("study.toml/out", &[]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    let problem = "study.toml/out\": Not a directory (os error 20)\n";
    assert!(
        ended.stderr.contains("lastbyte: can't make \""),
        "{ended:?}"
    );
    assert!(ended.stderr.ends_with(problem), "{ended:?}");
}

#[test]
fn a_dry_run_tells_and_measures_nothing() {
    let place = Place::new();
    let ended = place.run("out", &["--dry-run"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for told in [
        "tall/one: old, new\n  near, RTT 2ms, ",
        ": 6 blocks, about ",
        "small: old, new\n",
        "3 cells, 6 samples, 540 connections in 10 blocks: about ",
        " on the live engine\n",
    ] {
        assert!(ended.stdout.contains(told), "{told:?} in {}", ended.stdout);
    }
    assert_eq!(names(place.0.path()), ["study.toml"]);
    let ended = place.run("out", &["--dry-run", "--shard", "1/5"]);
    assert!(ended.stdout.contains(" in 2 blocks: "), "{}", ended.stdout);
}

#[test]
fn what_can_not_be_run_is_told_in_one_line() {
    let place = Place::new();
    let ended = place.run("out", &["--shard", "3/2"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(
        ended.stderr.contains("\"3/2\" is no shard"),
        "{}",
        ended.stderr
    );

    let refused = |study: String, told: &str| {
        fs::write(place.path("study.toml"), study).unwrap();
        let ended = place.run("out", &[]);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert_one_line(&ended.stderr);
        assert!(ended.stderr.contains(told), "{}", ended.stderr);
        assert!(!place.path("out").exists());
    };
    refused(STUDY.replace("concurrency", "concurency"), "study.toml:5: ");
    refused(
        format!("{STUDY}gso = \"on\"\n"),
        "the live engine has no super-packets (gso = \"on\"), which measure \"small\" asks for",
    );
    // 2 samples of 10,000 blocks in each of 600 cells, and of one in each of 1,200.
    let round_trips: Vec<String> = (1..=600).map(|rtt| format!("\"{rtt}ms\"")).collect();
    let many = STUDY.replace("connections = 230", "connections = 1000000");
    refused(
        many.replace("\"2ms\"", &format!("[{}]", round_trips.join(", "))),
        "would take 12002400 blocks, and a run has at most 10000000: ask for fewer connections or cells",
    );
    fs::remove_file(place.path("study.toml")).unwrap();
    let ended = place.run("out", &[]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert_one_line(&ended.stderr);
}

/// So that a study that was wrong can be run once it is right.
#[test]
fn what_can_not_be_measured_leaves_no_folder() {
    let folder = TempDir::new().unwrap();
    let study = at(&folder, "s.toml");
    let results = at(&folder, "out");
    let text = |arm: &str| {
        format!(
            "[arm.a]\ntls = \"{arm}\"\n[link.l]\nrtt = \"5ms\"\n[[measure]]\nid = \"m\"\ndata = \"0B\"\n"
        )
    };
    std::fs::write(
        &study,
        text("x25519/ecdsa-p256/stack=s2n-tls/max_cert_list=500B"),
    )
    .unwrap();
    let mut command = lastbyte(["run", "--engine", "live", "-o"]);
    let ended = run(command.arg(&results).arg(&study));
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("s2n-tls can't"), "{}", ended.stderr);
    assert!(!results.exists());
}

/// One measure alone first, and then the others into the same folder.
#[test]
fn a_measure_can_be_measured_alone() {
    let place = Place::new();
    let refused = place.run("out", &["--only", "smal"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    let line =
        "lastbyte: --only \"smal\": study.toml has no such measure: did you mean \"small\"?\n";
    assert_eq!(refused.stderr, line);
    let ended = place.run("out", &["--only", "small"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(
        ended
            .stdout
            .contains("out: 4 of 10 blocks are measured: `lastbyte report out`"),
        "{}",
        ended.stdout
    );
    let ended = place.run("out", &["--resume"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    place.assert_complete("out");
}
