//! The virtual engine, end to end: its kernel must be built (`lastbyte kernel build`).
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use crate::common::{Ended, assert_fits, run};
use lastbyte::kernel;
use lastbyte::lab::{
    self, Ending, Engine, Finished, GuestTerm, Interception, PreparedArm, Runner, VirtualEngine,
    Watcher,
};
use lastbyte::results::{
    Dataset, Folder, Manifest, Metric, Row, Sample, Start, Validity, expected,
};
use lastbyte::study::Study;
use lastbyte_flights::Compute;
use lastbyte_link::{Bytes, Side};
use lastbyte_pki::Store;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

/// Eight blocks, in which luck decides much.
const LOSSY: &str = r#"
connections = 500
[arm.old]
tls = "secp256r1/ecdsa-p256"
[arm.new]
tls = "SecP256r1MLKEM768/ml-dsa-65"
[link.bad]
rtt = "35ms"
rate = "10mbit"
loss = ["3%", "gemodel:1%/20%"]
jitter = "2ms"
jitter_distribution = "paretonormal"
[[measure]]
id = "m"
data = ["20KiB"]
"#;

/// The program with the user's own cache, which has the kernel.
fn lastbyte(arguments: impl IntoIterator<Item: AsRef<OsStr>>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lastbyte"));
    command.args(arguments);
    command
}

/// A folder with a study in it.
struct Place(TempDir);

impl Place {
    fn new(study: &str) -> Place {
        let place = Place(TempDir::new().unwrap());
        fs::write(place.path("study.toml"), study).unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, folder: &str) -> Command {
        let mut command = lastbyte(["run"]);
        command
            .arg(self.path("study.toml"))
            .args(["--engine", "virtual", "-o"])
            .arg(self.path(folder));
        command
    }

    fn measured(&self, folder: &str) -> Vec<Sample> {
        samples(&self.path(folder))
    }

    /// The page of what a folder holds.
    fn page(&self, folder: &str) -> String {
        let folder = self.path(folder);
        succeed(lastbyte(["report"]).arg(&folder));
        fs::read_to_string(folder.join("report.html")).unwrap()
    }
}

/// Runs what must succeed.
fn succeed(command: &mut Command) -> Ended {
    let ended = run(command);
    assert_eq!(ended.code, Some(0), "{command:?}: {}", ended.stderr);
    ended
}

fn samples(folder: &Path) -> Vec<Sample> {
    let data = Dataset::open(folder).unwrap();
    let samples = data.samples().unwrap();
    samples.map(|sample| sample.unwrap().1).collect()
}

/// The processes of guests that write below `folder`.
fn guests(folder: &Path) -> Vec<Pid> {
    let is_guest = |id: &i32| {
        let words = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let mut words = words.split(|byte| *byte == 0);
        // The guest's job is behind a link.
        words.any(|word| word == b"__guest")
            && words.next().is_some_and(|job| {
                let job = fs::read_link(OsStr::from_bytes(job));
                job.is_ok_and(|job| job.starts_with(folder))
            })
    };
    let ids = fs::read_dir("/proc").unwrap().flatten();
    let ids = ids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut ids: Vec<i32> = ids.filter(is_guest).collect();
    ids.sort_unstable();
    ids.into_iter().map(Pid::from_raw).collect()
}

#[test]
fn the_same_question_has_the_same_answer_to_the_nanosecond() {
    let place = TempDir::new().unwrap();
    let deeper = place.path().join("a folder with a longer name");
    fs::create_dir(&deeper).unwrap();
    let question = "compare --engine virtual --loss 5% --jitter 3ms --data 20KiB --connections 120";
    let ask = |folder: &Path, mut command: Command| {
        let file = folder.join("rows.csv");
        command
            .args(question.split(' '))
            .arg("-o")
            .arg(&file)
            .current_dir(folder);
        succeed(&mut command);
        fs::read(file).unwrap()
    };
    // Another place for everything, and one core instead of all.
    let elsewhere = deeper.join("lastbyte");
    fs::copy(env!("CARGO_BIN_EXE_lastbyte"), &elsewhere).unwrap();
    let mut one_core = Command::new("taskset");
    one_core.args(["--cpu-list", "0"]).arg(&elsewhere);

    let first = ask(place.path(), Command::new(env!("CARGO_BIN_EXE_lastbyte")));
    let again = ask(&deeper, one_core);
    assert_eq!(first.iter().filter(|byte| **byte == b'\n').count(), 241);
    assert!(first == again, "two runs differ");
}

#[test]
fn without_loss_it_agrees_with_flight_arithmetic() {
    let study = r#"
        connections = 3
        [arm.old]
        tls = "secp256r1/rsa-2048"
        [arm.new]
        tls = "SecP256r1MLKEM768/ml-dsa-65"
        [link.fast]
        rtt = ["10ms", "35ms"]
        rate = "1gbit"
        [link.slow]
        rtt = "200ms"
        rate = ["1mbit", "10mbit"]
        [link.edge]
        rtt = "45ms"
        rate = "300mbit"
        [[measure]]
        id = "netem"
        links = ["fast", "slow"]
        initcwnd = [10, 20]
        data = ["0KiB", "50KiB", "300KiB"]
        [[measure]]
        id = "link"
        links = ["fast", "slow"]
        emulation = "link"
        data = ["0KiB", "200KiB"]
        [[measure]]
        id = "a window that grows"
        links = ["edge"]
        initcwnd = 13
        data = "500KB"
        [[measure]]
        id = "Linux's own buffers"
        buffers = "linux"
        initcwnd = [10, 48]
        data = ["50KiB", "300KiB"]
        [[measure]]
        id = "up"
        links = ["fast", "edge"]
        buffers = "linux"
        client_initcwnd = [10, 48]
        upload = "300KiB"
    "#;
    let place = Place::new(study);
    succeed(&mut place.run("results"));
    let data = Dataset::open(&place.path("results")).unwrap();
    let mut samples = 0;
    for sample in data.samples().unwrap() {
        let (key, sample) = sample.unwrap();
        samples += 1;
        let experiment = &data.study.measures[key.measure].experiment;
        let (cell, arm) = (&experiment.cells[key.cell], &experiment.arms[key.arm]);
        for row in &sample.rows {
            let compute = Compute::default();
            let expected = expected(&row.exchange, cell, arm.record_size, compute).ttlb;
            let measured = Metric::Ttlb.of(row).unwrap();
            let ratio = measured.as_secs_f64() / expected.as_secs_f64();
            assert!(
                (ratio - 1.0).abs() < 0.001,
                "{}, {cell}: {measured:?}, by arithmetic {expected:?}",
                arm.label
            );
        }
    }
    assert_eq!(samples, 2 * (24 + 8 + 1 + 20 + 6));
}

#[test]
fn super_packets_are_lost_together_and_the_preset_is_as_published() {
    let place = TempDir::new().unwrap();
    let document = |options: &str| {
        let command = format!("compare --engine virtual --format json {options}");
        let ended = succeed(lastbyte(command.split(' ')).current_dir(place.path()));
        serde_json::from_str::<serde_json::Value>(&ended.stdout).unwrap()
    };
    let median = |document: &serde_json::Value| {
        let ttlb = &document["cells"][0]["arms"][0]["ttlb_ms"]["p50"];
        ttlb.as_f64().unwrap()
    };
    let slow = "--baseline secp256r1/rsa-2048 --rtt 200ms --rate 1mbit --initcwnd 20 \
                --data 200KiB --connections 10";
    // On a path of 1 Mbit/s, a ping's serialisation is 0.784 ms each way, and each of the five
    // round trips of this transfer has it twice.
    let plain = median(&document(&format!("{slow} --gso on")));
    let published = median(&document(&format!(
        "{slow} --preset published-2024 --writes whole"
    )));
    assert!(
        (4.0..12.0).contains(&(published - plain)),
        "{plain} ms, with the preset {published} ms"
    );

    let lossy = "--baseline secp256r1/rsa-2048 --rate 100mbit --loss 3% --data 100KiB \
                 --connections 300";
    let single = median(&document(lossy));
    let super_packets = median(&document(&format!("{lossy} --gso on")));
    assert!(
        super_packets < single,
        "{super_packets} ms with super-packets, {single} ms without"
    );
}

/// Cells that are known well at once and late, of at most eight blocks each.
const UNTIL: &str = r#"
connections = { until = "±3%", least = 200, most = 500 }
percentiles = [50, 75]
[arm.old]
tls = "secp256r1/ecdsa-p256"
[arm.new]
tls = "SecP256r1MLKEM768/ml-dsa-65"
[link.l]
rtt = "35ms"
rate = "10mbit"
jitter = ["4ms", "20ms"]
[[measure]]
id = "m"
"#;

#[test]
fn a_cell_ends_when_it_is_precise_enough_wherever_and_however_it_is_measured() {
    let place = Place::new(UNTIL);
    let told = succeed(place.run("out").arg("--dry-run")).stdout;
    assert!(
        told.contains("2 cells, 4 samples, 1000 to 2000 connections in 4 to 8 blocks: about "),
        "{told}"
    );
    let told = succeed(&mut place.run("out")).stdout;
    assert!(
        told.contains("Measured until ±3%, with 200 to 500"),
        "{told}"
    );
    let connections = |folder| -> Vec<_> {
        let samples = place.measured(folder).into_iter();
        samples.map(|sample| sample.rows.len()).collect()
    };
    let ends = connections("out");
    assert_eq!(ends, [250, 250, 500, 500]);
    assert!(told.contains("after 500 connections, "), "{told}");

    // Each connection is what it would have been among a fixed number.
    let fixed = UNTIL.replace(r#"{ until = "±3%", least = 200, most = 500 }"#, "500");
    let all = Place::new(&fixed);
    succeed(&mut all.run("all"));
    for (some, all) in place.measured("out").iter().zip(all.measured("all")) {
        assert!(some.rows == all.rows[..some.rows.len()]);
    }

    // Killed now and then, and with one processor at last.
    let folder = place.path("killed");
    for pause in [600, 1200] {
        let mut command = place.run("killed");
        if folder.exists() {
            command.arg("--resume");
        }
        let mut child = command.stdout(Stdio::null()).spawn().unwrap();
        thread::sleep(Duration::from_millis(pause));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let run = place.run("killed");
    let mut command = Command::new("taskset");
    command.args(["-c", "0"]).arg(run.get_program());
    succeed(command.args(run.get_args()).arg("--resume"));
    assert_same_rows(&place, "out", "killed");

    // By two machines, of which neither knows when the other one is done.
    for shard in ["1/2", "2/2"] {
        let mut command = place.run(&format!("shared-{}", &shard[..1]));
        succeed(command.args(["--shard", shard]));
    }
    let ended = succeed(&mut gather(&place, &["shared-1", "shared-2"]));
    assert!(ended.stdout.contains("finish it with"), "{ended:?}");
    succeed(place.run("shared").arg("--resume"));
    assert_same_rows(&place, "out", "shared");
}

/// Makes a run of shards, in the folder "shared".
fn gather(place: &Place, shards: &[&str]) -> Command {
    let mut command = lastbyte(["run", "--gather"]);
    command.args(shards.iter().map(|shard| place.path(shard)));
    command.arg("-o").arg(place.path("shared"));
    command
}

#[test]
fn shards_with_the_same_chains_make_the_rows_of_one_machine() {
    let place = Place::new(&LOSSY.replace("connections = 500", "connections = 40"));
    succeed(&mut place.run("whole"));
    let mut command = place.run("one");
    let ended = succeed(command.args(["--shard", "1/2"]));
    assert!(ended.stdout.contains("lastbyte run --gather"), "{ended:?}");
    let mut command = place.run("two");
    command.args(["--shard", "auto"]);
    command.env("SLURM_ARRAY_TASK_ID", "2");
    succeed(command.env("SLURM_ARRAY_TASK_COUNT", "2"));
    let mut command = place.run("foreign");
    command.args(["--shard", "2/2", "--chains"]);
    succeed(command.arg(place.path("chains")));
    let ended = run(&mut gather(&place, &["one", "foreign"]));
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("had another chain"), "{ended:?}");
    // What does not fit leaves nothing behind, and what is missing can be measured.
    assert!(!place.path("shared").exists());
    // Nor does a run go on with other chains than it began with.
    fs::remove_file(first_part(&place.path("foreign"))).unwrap();
    let ended = run(place.run("foreign").args(["--shard", "2/2", "--resume"]));
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(
        ended.stderr.contains("its server had another chain, "),
        "{ended:?}"
    );
    let ended = run(&mut gather(&place, &["one"]));
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("missing: m of "), "{ended:?}");
    fs::remove_dir_all(place.path("shared")).unwrap();
    let ended = succeed(&mut gather(&place, &["one", "two"]));
    assert!(ended.stdout.contains("Results: "), "{ended:?}");
    assert_same_rows(&place, "whole", "shared");
}

fn first_part(folder: &Path) -> PathBuf {
    let parts = fs::read_dir(folder.join("parts")).unwrap();
    let parts = parts.map(|part| part.unwrap().path());
    parts.min().unwrap()
}

/// A machine that has a kernel and no chains, and a study that has them with it.
#[test]
fn chains_travel_with_the_study() {
    let place = Place::new(&LOSSY.replace("connections = 500", "connections = 40"));
    let study = place.path("study.toml");
    let nowhere = ["run", "--prepare", "--chains", "/dev/null/chains"];
    let ended = run(lastbyte(nowhere).arg(&study));
    assert_eq!(ended.code, Some(2), "{ended:?}");
    let told = "name a folder that can be written\n";
    assert!(ended.stderr.ends_with(told), "{ended:?}");
    let ended = succeed(lastbyte(["run", "--prepare"]).arg(&study));
    assert!(
        ended
            .stdout
            .contains("study.chains: the chains of 2 arms; "),
        "{ended:?}"
    );
    succeed(&mut place.run("whole"));

    let other = Place::new("");
    let copied = Command::new("cp")
        .arg("-r")
        .args([&study, &place.path("study.chains")])
        .arg(other.path(""))
        .status();
    assert!(copied.unwrap().success());
    let cache = other.path("cache");
    fs::create_dir(&cache).unwrap();
    std::os::unix::fs::symlink(
        Store::default_dir().unwrap().join("kernel"),
        cache.join("kernel"),
    )
    .unwrap();
    for shard in ["1/2", "2/2"] {
        let mut command = other.run(&shard[..1]);
        succeed(
            command
                .args(["--shard", shard])
                .env("LASTBYTE_CACHE", &cache),
        );
    }
    assert!(!cache.join("chains").exists());
    succeed(&mut gather(&other, &["1", "2"]));
    for (folder, is_complete) in [("1", false), ("shared", true)] {
        let ended = succeed(lastbyte(["report"]).arg(other.path(folder)));
        let page = fs::read_to_string(other.path(folder).join("report.html")).unwrap();
        let told = "the numbers are of what has been measured so far";
        assert_eq!(ended.stderr.contains(told), !is_complete, "{ended:?}");
        assert_eq!(page.contains(told), !is_complete, "{folder}");
    }
    let rows = |samples: Vec<Sample>| {
        samples
            .into_iter()
            .map(|sample| sample.rows)
            .collect::<Vec<_>>()
    };
    assert!(rows(other.measured("shared")) == rows(place.measured("whole")));

    // An arm that came later has no chain.
    let text = fs::read_to_string(&study).unwrap();
    fs::write(&study, text.replace("ml-dsa-65", "ml-dsa-87")).unwrap();
    let ended = run(&mut place.run("later"));
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(
        ended
            .stderr
            .contains("has no chain ml-dsa-87 that this user can read"),
        "{ended:?}"
    );
    assert!(!place.path("later").exists());
}

#[test]
fn a_guest_that_is_killed_fails_its_block_and_no_other() {
    // Two blocks of each sample.
    let place = Place::new(&LOSSY.replace("connections = 500", "connections = 260"));
    succeed(&mut place.run("undisturbed"));

    let child = place
        .run("disturbed")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let folder = place.path("disturbed");
    let victim = (0..500).find_map(|_| {
        thread::sleep(Duration::from_millis(10));
        guests(&folder).first().copied()
    });
    let victim = victim.expect("no guest was seen");
    // In the middle of its work, or still at its boot: both must do.
    kill(victim, Signal::SIGKILL).unwrap();
    let ended = Ended::from(child.wait_with_output().map(with_no_stdout).unwrap());
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(
        ended
            .stderr
            .contains("failed: its guest was ended by signal 9")
            && ended.stderr.contains("1 of 8 blocks failed"),
        "{}",
        ended.stderr
    );
    succeed(place.run("disturbed").arg("--resume"));
    assert_same_rows(&place, "undisturbed", "disturbed");
}

#[test]
fn lastbyte_can_be_killed_at_any_time_and_takes_its_guests_along() {
    let place = Place::new(&LOSSY.replace("connections = 500", "connections = 300"));
    succeed(&mut place.run("undisturbed"));
    let folder = place.path("disturbed");
    for pause in [300, 700, 900] {
        let mut command = place.run("disturbed");
        if folder.exists() {
            command.arg("--resume");
        }
        let mut child = command.stdout(Stdio::null()).spawn().unwrap();
        thread::sleep(Duration::from_millis(pause));
        child.kill().unwrap();
        child.wait().unwrap();
        let gone = (0..250).any(|_| {
            thread::sleep(Duration::from_millis(20));
            guests(&folder).is_empty()
        });
        assert!(gone, "guests outlive lastbyte: {:?}", guests(&folder));
    }
    succeed(place.run("disturbed").arg("--resume"));
    assert_same_rows(&place, "undisturbed", "disturbed");
    let left: Vec<_> = fs::read_dir(&folder).unwrap().flatten().collect();
    assert!(
        left.iter().all(|entry| entry.file_name() != "parts"),
        "{left:?}"
    );
}

#[test]
fn what_it_cannot_do_is_told_before_anything_runs() {
    let no_kernel = TempDir::new().unwrap();
    let mut command = lastbyte(["compare", "--engine", "virtual"]);
    let ended = run(command.env("LASTBYTE_CACHE", no_kernel.path()));
    assert_eq!(
        (ended.code, ended.stderr.as_str()),
        (
            Some(3),
            &*format!(
                "lastbyte: no kernel is built for the virtual engine in \"{}/kernel\": run `lastbyte kernel build`, or `lastbyte kernel fetch` with one that is built\n",
                no_kernel.path().display()
            )
        )
    );
    // Who names a kernel is not given this machine's, whatever engine could run.
    let mut command = lastbyte(["compare"]);
    command.env("LASTBYTE_CACHE", no_kernel.path());
    let ended = run(command.env("LASTBYTE_LINUX", "7.3"));
    let told = "lastbyte: no kernel of Linux 7.3, which LASTBYTE_LINUX asks for, is built";
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(ended.stderr.starts_with(told), "{ended:?}");

    let study = LOSSY.replace("10mbit", "1000001bit");
    let place = Place::new(&study);
    let ended = run(&mut place.run("results"));
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("measure \"m\"")
            && ended.stderr.ends_with(
                "netem can't limit a rate to 1000001bit: use a multiple of 8 bits a second, \
                 or emulation = \"link\"\n"
            ),
        "{}",
        ended.stderr
    );
    assert!(!place.path("results").exists());
}

#[test]
fn left_alone_it_is_the_virtual_engine_that_measures_and_says_so() {
    let place = TempDir::new().unwrap();
    let question = "compare --data 0KiB --connections 2 --format json";
    let ended = succeed(lastbyte(question.split(' ')).current_dir(place.path()));
    let document: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(document["engine"], "virtual");
    assert!(
        ended
            .stderr
            .contains("the virtual engine, as its kernel is built (Linux 6."),
        "{}",
        ended.stderr
    );
}

/// Calibrated CPU time shows, by as much as it is: no handshake takes 20 ms.
#[test]
fn cpu_time_can_be_put_back() {
    let place = TempDir::new().unwrap();
    let median = |cpu: &str| {
        let question = format!(
            "compare --engine virtual --baseline secp256r1/rsa-2048 --data 0KiB \
             --connections 5 --format json --cpu {cpu}"
        );
        let mut command = lastbyte(question.split_whitespace());
        let ended = succeed(command.current_dir(place.path()));
        let document: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
        let handshake = &document["cells"][0]["arms"][0]["handshake_ms"]["p50"];
        handshake.as_f64().unwrap()
    };
    let more = median("calibrated") - median("none");
    assert!((0.1..20.0).contains(&more), "{more} ms");
}

/// What is told beside the network's time is in no row, and its sum is what a clock tells that waits for it.
#[test]
fn computing_beside_the_network_changes_no_row_and_adds_up() {
    const ARMS: &str = "--baseline X25519MLKEM768/ecdsa-p256 --against X25519MLKEM768/slh-dsa-sha2-128f \
         --against X25519MLKEM768/ml-dsa-65/resume=ticket --against secp256r1/rsa-2048/mutual=rsa-2048";
    let place = TempDir::new().unwrap();
    let ask = |cpu: &str| -> (Vec<u8>, serde_json::Value) {
        let rows = place.path().join(format!("{cpu}.csv"));
        let question = format!(
            "compare --engine virtual {ARMS} --rtt 1ms,80ms --data 0KiB,60KiB --connections 20 --format json --cpu {cpu}"
        );
        let mut command = lastbyte(question.split_whitespace());
        command.arg("-o").arg(&rows).current_dir(place.path());
        let ended = succeed(&mut command);
        (
            fs::read(rows).unwrap(),
            serde_json::from_str(&ended.stdout).unwrap(),
        )
    };
    let (rows, none) = ask("none");
    let (beside_rows, beside) = ask("beside");
    let (_, calibrated) = ask("calibrated");
    assert!(rows == beside_rows, "rows differ");
    let contents = [&none, &beside, &calibrated].map(|document| document["contents"].clone());
    assert_eq!(contents, ["network", "network+computing", "calibrated"]);
    for cell in 0..4 {
        for arm in 0..4 {
            for metric in ["handshake_ms", "ttlb_ms"] {
                let of =
                    |document: &serde_json::Value| document["cells"][cell]["arms"][arm].clone();
                let time = |document| of(document)[metric]["p50"].as_f64().unwrap();
                let shares = &of(&beside)["shares"][metric]["p50"];
                let [network, computing] =
                    ["network", "computing"].map(|share| shares[share].as_f64().unwrap());
                assert_eq!(network, time(&none));
                assert!((network + computing - time(&beside)).abs() < 1e-5);
                let off = time(&beside) - time(&calibrated);
                let bound = (0.03 * computing).max(0.1);
                assert!(
                    off.abs() < bound,
                    "{cell} {arm} {metric}: off by {off} of {computing} ms"
                );
            }
        }
    }
}

/// Users of networks by name: as many of each as was said, with its RTT.
#[test]
fn a_mix_of_networks_is_one_population() {
    let place = TempDir::new().unwrap();
    let rows = place.path().join("rows.csv");
    let question = "compare --engine virtual --mix geo=1,fibre=3 --baseline x25519/ecdsa-p256 --data 1KiB \
                    --connections 80 --cpu none";
    let mut command = lastbyte(question.split_whitespace());
    let told = succeed(command.arg("-o").arg(&rows).current_dir(place.path()));
    let title = "geo=1, fibre=3, initcwnd 10, 1KiB: 80 connections";
    assert!(told.stdout.contains(title), "{told:?}");
    let mut reader = csv::Reader::from_path(&rows).unwrap();
    let titles = reader.headers().unwrap().clone();
    let place_of = |title: &str| titles.iter().position(|known| known == title).unwrap();
    let (class, connect) = (place_of("class"), place_of("connect_ns"));
    let mut counts = [0, 0];
    for record in reader.records() {
        let record = record.unwrap();
        let milliseconds = record[connect].parse::<u64>().unwrap() / 1_000_000;
        match (&record[class], milliseconds) {
            ("geo", 600) => counts[0] += 1,
            ("fibre", 16) => counts[1] += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(counts[0] + counts[1], 80);
    assert!((19..=21).contains(&counts[0]), "{counts:?}");

    let refused = run(&mut lastbyte(["compare", "--mix", "geo=1", "--rtt", "5ms"]));
    assert_eq!(refused.code, Some(2));
    assert_eq!(
        refused.stderr,
        "lastbyte: --rtt: the networks of --mix have their own: leave one out\n"
    );
}

fn with_no_stdout(mut output: std::process::Output) -> std::process::Output {
    output.stdout.clear();
    output
}

#[track_caller]
fn assert_same_rows(place: &Place, one: &str, other: &str) {
    let rows = |folder| {
        let samples = place.measured(folder).into_iter();
        samples.map(|sample| sample.rows).collect::<Vec<_>>()
    };
    assert!(
        rows(one) == rows(other),
        "the rows of {one} and {other} differ"
    );
}

/// Five blocks, of which each takes a moment.
const SOME: &str = r#"
connections = 1250
[arm.old]
tls = "secp256r1/ecdsa-p256"
[link.l]
rtt = "35ms"
rate = "10mbit"
[[measure]]
id = "m"
data = "20KiB"
"#;

struct Unwatched;

impl Watcher for Unwatched {
    fn expect(&self, _: Duration) {}
    fn advance(&self, _: Duration) {}
    fn warn(&self, _: &str) {}
}

/// Everything that flight arithmetic knows, on a path without loss.
#[test]
fn handshakes_and_loads_of_all_kinds_take_as_long_as_arithmetic_says() {
    let place = Place::new(
        r#"
connections = 3
[arm.full]
tls = "X25519MLKEM768/ml-dsa-44"
[arm.retried]
tls = "X25519MLKEM768/ml-dsa-44/key_share=x25519"
[arm.resumed]
tls = "X25519MLKEM768/ml-dsa-44/resume=ticket"
[arm.ticketed]
tls = "X25519MLKEM768/ml-dsa-44/tickets=2"
[arm.early]
tls = "X25519MLKEM768/ml-dsa-44/resume=0rtt"
[arm.mutual]
tls = "X25519MLKEM768/ml-dsa-44/mutual=ml-dsa-65/client_intermediates=2"
[link.path]
rtt = "80ms"
rate = "100mbit"
[[measure]]
id = "download"
client_initcwnd = [10, 24]
data = ["0B", "5KB", "100KB"]
[[measure]]
id = "upload"
arms = ["full", "retried", "resumed", "early", "mutual"]
upload = ["1B", "5KB", "100KB"]
[[measure]]
id = "early upload"
arms = ["resumed", "early"]
upload = ["14000B", "16324B", "16325B", "16326B", "40KB"]
data = ["0B", "5KB"]
[[measure]]
id = "downloads, several times"
requests = 3
think = "1s"
data = "5KB"
[[measure]]
id = "both, several times"
requests = [1, 4]
think = ["0ms", "100ms", "2s"]
upload = "30KB"
data = "30KB"
[[measure]]
id = "hosts"
arms = ["full", "ticketed", "early"]
mtu = [576, 9000]
timestamps = ["off", "on"]
writes = ["whole", "17B+8087B"]
data = ["1B", "100KB"]
[[measure]]
id = "hosts, emulated link"
emulation = "link"
arms = ["full", "ticketed"]
mtu = [576, 9000]
timestamps = ["off", "on"]
writes = ["whole", "17B+8087B"]
data = ["1B", "100KB"]
"#,
    );
    succeed(place.run("out").arg("--strict"));
    assert_agree_with_arithmetic(&place);
}

/// All connections of a run, with what flight arithmetic says of them: within 0.1 % each.
fn assert_agree_with_arithmetic(place: &Place) {
    let data = Dataset::open(&place.path("out")).unwrap();
    for sample in data.samples().unwrap() {
        let (key, sample) = sample.unwrap();
        let experiment = &data.study.measures[key.measure].experiment;
        let (cell, arm) = (&experiment.cells[key.cell], &experiment.arms[key.arm]);
        assert_eq!(
            sample.validity(experiment),
            Validity::Valid,
            "{} {cell}",
            arm.name
        );
        for row in &sample.rows {
            let expected = expected(&row.exchange, cell, arm.record_size, Compute::default());
            // The server goes on while the client thinks.
            let half = row.times.server_handshake.unwrap() - row.times.handshake.unwrap();
            assert!(half < cell.link.rtt() * 3, "{} {cell}: {half:?}", arm.name);
            let times = [
                (row.times.connect, expected.connect),
                (row.times.handshake, Some(expected.handshake)),
                (row.times.ttfb, expected.ttfb),
                (row.times.ttlb, Some(expected.ttlb)),
            ];
            for (measured, expected) in times {
                let apart = match (measured, expected) {
                    (Some(measured), Some(expected)) => measured.abs_diff(expected),
                    (None, None) => Duration::ZERO,
                    _ => panic!("{} {cell}: {measured:?} {expected:?}", arm.name),
                };
                let most = expected.unwrap_or_default() / 1000;
                assert!(
                    apart <= most,
                    "{} {cell}: {measured:?} {expected:?}",
                    arm.name
                );
            }
        }
    }
}

/// Runs the study of a place on an engine of the library.
fn run_on(place: &Place, change: impl FnOnce(VirtualEngine) -> VirtualEngine) -> Finished {
    run_with_store(place, Store::default_dir().unwrap(), change)
}

fn engine_with_store(store: PathBuf) -> VirtualEngine {
    VirtualEngine::new(
        kernel::require().unwrap(),
        Interception::Ptrace,
        env!("CARGO_BIN_EXE_lastbyte").into(),
        store,
        lab::environment(&[]),
    )
}

fn run_with_store(
    place: &Place,
    store: PathBuf,
    change: impl FnOnce(VirtualEngine) -> VirtualEngine,
) -> Finished {
    let engine = change(engine_with_store(store.clone()));
    let study = Study::load(&place.path("study.toml")).unwrap();
    let size = engine.block_size(&study);
    let manifest = Manifest::new(&study, size, engine.environment().clone());
    let folder = Folder::take(&place.path("out"), &study, manifest, Start::Afresh).unwrap();
    let store = Store::open(store);
    let experiments = study.measures.iter().map(|measure| &measure.experiment);
    let arms: Vec<_> = experiments
        .flat_map(|experiment| &experiment.arms)
        .map(|arm| PreparedArm::new(arm.clone(), &store).unwrap())
        .collect();
    let runner = Runner {
        inspection: None,
        study: &study,
        engine: &engine,
        arms: &arms,
        interrupt: &AtomicBool::new(false),
        watcher: &Unwatched,
    };
    runner
        .run(&study.blocks(size).collect::<Vec<_>>(), &folder)
        .unwrap()
}

#[test]
fn workers_that_begin_together_calibrate_an_arm_once() {
    let place = Place::new(&format!("cpu = \"calibrated\"\n{}", SOME.trim_start()));
    // Nothing is calibrated in it yet.
    let finished = run_with_store(&place, place.path("store"), |engine| engine);
    assert_eq!((finished.measured, finished.failed.len()), (5, 0));
    let samples = place.measured("out");
    let engine = &samples[0].engine;
    assert!(engine.cpu_costs.is_some());
    assert_eq!(engine.validity, Validity::Valid);
}

#[test]
fn a_guest_that_hangs_is_given_up_and_the_others_go_on() {
    let place = Place::new(SOME);
    let out = place.path("out");
    let hang = thread::spawn(move || {
        for _ in 0..1000 {
            if let Some(guest) = guests(&out).first() {
                return kill(*guest, Signal::SIGSTOP).is_ok();
            }
            thread::sleep(Duration::from_millis(10));
        }
        false
    });
    let finished = run_on(&place, |engine| {
        engine.with_patience(Duration::from_secs(5))
    });
    assert!(hang.join().unwrap(), "no guest was there to be stopped");
    assert_eq!(finished.ending, Ending::Complete);
    assert_eq!(finished.measured, 4);
    let [failed] = finished.failed.as_slice() else {
        panic!("{:?}", finished.failed);
    };
    assert_eq!(
        failed.reason,
        "its guest gave no sign of life for 5s: it hangs, or the machine is overloaded"
    );
    assert_eq!(guests(&place.path("out")), [], "it is still there");
}

#[test]
fn a_guest_without_enough_memory_says_so() {
    let place = Place::new(&SOME.replace("1250", "10"));
    let finished = run_on(&place, |engine| engine.with_memory(Bytes(48 << 20)));
    let reasons: Vec<_> = finished.failed.iter().map(|block| &block.reason).collect();
    assert_eq!(reasons, ["its guest ran out of memory"]);
}

#[test]
fn a_disk_that_becomes_full_ends_the_run_and_keeps_what_is_finished() {
    let place = Place::new(SOME);
    let script = "mount -t tmpfs -o size=120k tmpfs \"$1\" && shift && exec \"$@\"";
    fs::create_dir(place.path("small")).unwrap();
    let run_it = place.run("small/out");
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "sh", "-c", script, "sh"])
        .arg(place.path("small"))
        .arg(run_it.get_program())
        .args(run_it.get_args());
    let ended = run(&mut command);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    let line = ended.stderr.lines().last().unwrap();
    assert!(line.contains("No space left on device"), "{line}");
    assert!(
        line.contains("finished blocks are kept: go on with `lastbyte run"),
        "{line}"
    );
}

/// One column of a file of rows, as numbers, of each arm.
fn column(file: &Path, name: &str) -> Vec<Vec<u64>> {
    let mut arms: Vec<(String, Vec<u64>)> = Vec::new();
    for row in crate::common::read_rows(file) {
        let (arm, value) = (row.text("arm").to_owned(), row.number(name));
        match arms.iter_mut().find(|(known, _)| *known == arm) {
            Some((_, values)) => values.push(value),
            None => arms.push((arm, vec![value])),
        }
    }
    arms.into_iter().map(|(_, values)| values).collect()
}

/// The handshake's first packets are the same for all arms, so what happens to them is.
#[test]
fn arms_share_their_luck_in_both_emulations() {
    let place = TempDir::new().unwrap();
    let weathers = [
        "--jitter 4ms",
        "--jitter 20ms --jitter-distribution pareto",
        "--loss 5%",
        "--loss gemodel:2%/30% --jitter 4ms",
    ];
    for (number, weather) in weathers.into_iter().enumerate() {
        // The emulator in user space reads a clock whose last digit depends on when it is read.
        for (emulation, apart) in [("netem", 0), ("link", 5000)] {
            let file = place.path().join(format!("{number}-{emulation}.csv"));
            let question = format!(
                "compare --engine virtual {weather} --emulation {emulation} --data 20KiB \
                 --connections 120 --rate 10mbit"
            );
            succeed(lastbyte(question.split_whitespace()).arg("-o").arg(&file));
            let connects = column(&file, "connect_ns");
            let [classical, pq] = connects.as_slice() else {
                panic!("{} arms", connects.len());
            };
            let alike = (classical.iter().zip(pq))
                .filter(|(one, other)| one.abs_diff(**other) <= apart)
                .count();
            assert!(
                alike >= 119,
                "{emulation}, {weather}: {alike} of 120 connect times are alike"
            );
        }
    }
}

/// Low-water marks, short reads and timers that are set once are for speed alone.
#[test]
fn shortcuts_show_in_no_row() {
    let place = Place::new(
        r#"
connections = 12
[arm.file]
tls = "X25519MLKEM768/own/chain.pem"
[arm.whole]
tls = "SecP256r1MLKEM768/ml-dsa-65"
[arm.native]
tls = "X25519MLKEM768/ml-dsa-44/flush=native/tickets=2"
[link.good]
rtt = "70ms"
rate = "1gbit"
[link.bad]
rtt = "35ms"
rate = "10mbit"
loss = "3%"
jitter = "2ms"
[[measure]]
id = "netem"
data = ["0KiB", "200KiB", "700KiB"]
[[measure]]
id = "buffers and writes"
buffers = "linux"
writes = "17B+8087B"
data = "100KiB"
[[measure]]
id = "published"
preset = "published-2024"
initcwnd = 20
data = "300KiB"
[[measure]]
id = "link"
emulation = "link"
data = "200KiB"
[[measure]]
id = "up and down"
requests = 2
think = "100ms"
upload = "100KiB"
data = "30KiB"
"#,
    );
    let made = ["chain", "new", "ecdsa-p256", "-o"];
    succeed(lastbyte(made).arg(place.path("own")));
    let run = |shortcuts: &str| {
        succeed(place.run(shortcuts).args(["--shortcuts", shortcuts]));
        place.measured(shortcuts)
    };
    let (taken, avoided) = (run("taken"), run("avoid"));
    assert_eq!(taken.len(), avoided.len());
    let rows = |samples: &[Sample]| -> Vec<Row> {
        samples
            .iter()
            .flat_map(|sample| sample.rows.clone())
            .collect()
    };
    let (mut all, mut apart) = (0, 0);
    for (one, other) in rows(&taken).iter().zip(&rows(&avoided)) {
        // Each look at the clock takes a nanosecond, and the emulator in user space waits for whoever is in a
        // system call.
        let is_alike = Metric::ALL.into_iter().all(|metric| {
            let (one, other) = (metric.of(one), metric.of(other));
            let least = Duration::from_micros(60);
            one.is_some() == other.is_some()
                && one.unwrap_or_default().abs_diff(other.unwrap_or_default())
                    < least + one.unwrap_or_default() / 5000
        });
        let resent = |row: &Row| {
            let [server, client] = [row.server_tcp(), row.client_tcp()];
            server.unwrap().retransmits + client.unwrap().retransmits
        };
        assert!(is_alike || resent(one) > 0, "{one:?} and {other:?}");
        // Whatever the preset that has three before it has drawn for those.
        assert!(
            one.index > 0 || resent(one) == resent(other),
            "{one:?} and {other:?}"
        );
        all += 1;
        apart += u32::from(!is_alike);
    }
    // Where packets are lost, a nanosecond can be a tick of TCP's clock.
    assert!(50 * apart <= all, "{apart} of {all} rows");
}

/// What repeats itself is measured until that shows, and results report it.
#[test]
fn cells_without_luck_end_early_and_pages_report_that() {
    let place = Place::new(
        r#"
connections = "up to 200"
cpu = "none"
percentiles = [50, 90]
[arm.classical]
tls = "x25519/rsa-2048"
[link.good]
rtt = "70ms"
[link.bad]
rtt = "70ms"
loss = "1%"
[[measure]]
id = "good"
links = ["good"]
data = "0B"
[[measure]]
id = "both"
data = "0B"
"#,
    );
    succeed(&mut place.run("early"));
    let rows = place.measured("early");
    let rows: Vec<usize> = rows.iter().map(|sample| sample.rows.len()).collect();
    assert_eq!(rows, [40, 40, 200]);
    let page = place.page("early");
    for reported in [
        "<p>Exact after 40 connections, as nothing is by chance: 200 would have",
        "<p>Exact after 40 connections in cells in which nothing is by chance: 200",
    ] {
        assert_eq!(page.matches(reported).count(), 1, "{reported}");
    }
}

/// Whatever a guest has measured before, rows are those of one that has measured nothing.
#[test]
fn a_guest_measures_each_block_as_if_it_were_its_first() {
    let study = r#"
connections = 3
cpu = "none"
[arm.classical]
tls = "x25519/ecdsa-p256"
[arm.early]
tls = "X25519MLKEM768/ml-dsa-44/resume=0rtt/tickets=2"
[arm.from-dns]
tls = "MLKEM768/ml-dsa-65/intermediates=0/root=sent/delivery=pqtls-ad/from=root"
[link.good]
rtt = "70ms"
rate = "1gbit"
[link.bad]
rtt = "35ms"
rate = "10mbit"
loss = "3%"
jitter = "2ms"
[[measure]]
id = "netem"
arms = ["classical", "early"]
data = ["0KiB", "200KiB"]
congestion = ["cubic", "bbr"]
[[measure]]
id = "hosts"
arms = ["classical"]
buffers = "linux"
mtu = 1280
timestamps = "off"
data = "100KiB"
[[measure]]
id = "published"
arms = ["classical"]
preset = "published-2024"
data = "100KiB"
[[measure]]
id = "link"
arms = ["classical"]
emulation = "link"
data = "100KiB"
[[measure]]
id = "dns"
arms = ["from-dns"]
data = ["0KiB", "1KiB"]
# Ten minutes of virtual time, in which OpenSSL draws new seeds.
[[measure]]
id = "long"
arms = ["classical"]
requests = 4
think = "50s"
data = ["1KiB", "2KiB"]
"#;
    let rows = |term: GuestTerm| -> Vec<Row> {
        let place = Place::new(study);
        let finished = run_on(&place, |engine| engine.with_term(term));
        assert_eq!(finished.failed, []);
        let samples = place.measured("out").into_iter();
        samples.flat_map(|sample| sample.rows).collect()
    };
    let (alone, together) = (rows(GuestTerm::Block), rows(GuestTerm::Blocks));
    assert_eq!(alone.len(), together.len());
    for (one, other) in alone.iter().zip(&together) {
        assert_eq!(one, other);
    }
}

/// In the published preset buffers are as Linux has them, so what wakes a client must not enlarge them.
#[test]
fn a_large_response_takes_no_round_trip_more_after_a_small_handshake() {
    let place = TempDir::new().unwrap();
    let medians = |preset: &str| {
        let question = format!(
            "compare --engine virtual --preset {preset} --rtt 70ms --initcwnd 20 --data 300KiB \
             --baseline secp256r1/rsa-2048:2560B --against SecP256r1MLKEM768/rsa-2048:16384B \
             --connections 5 --format json"
        );
        let command = &mut lastbyte(question.split_whitespace());
        let ended = succeed(command.current_dir(place.path()));
        let document: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
        let median = |arm: usize| {
            let ttlb = &document["cells"][0]["arms"][arm]["ttlb_ms"]["p50"];
            ttlb.as_f64().unwrap()
        };
        [median(0), median(1)]
    };
    for (published, network) in medians("published-2024")
        .into_iter()
        .zip(medians("network"))
    {
        assert!(
            (published - network).abs() < 5.0,
            "{published} ms, {network} ms with the preset network"
        );
    }
}

/// A study of handshakes with calibrated costs, over netem and over the emulator.
fn over_both_emulations(connections: u32, arm: &str, link: &str) -> Place {
    Place::new(&format!(
        r#"
cpu = "calibrated"
connections = {connections}
[arm.a]
tls = "{arm}"
[link.l]
{link}
[[measure]]
id = "netem"
data = "0KiB"
[[measure]]
id = "link"
emulation = "link"
data = "0KiB"
"#
    ))
}

/// One of twenty costs in turn, by the connection's index in its sample, in every emulation.
#[test]
fn calibrated_costs_go_by_the_index_of_a_connection() {
    let link = "rtt = \"35ms\"\nrate = \"1gbit\"";
    let place = over_both_emulations(270, "SecP256r1MLKEM768/ml-dsa-65", link);
    succeed(&mut place.run("out"));
    let measured = place.measured("out");
    let handshakes = |sample: &Sample| -> Vec<Duration> {
        let rows = sample.rows.iter();
        rows.map(|row| row.times.handshake.unwrap()).collect()
    };
    let (netem, link) = (handshakes(&measured[0]), handshakes(&measured[1]));
    for (index, (netem, link)) in netem.iter().zip(&link).enumerate() {
        assert!(
            netem.abs_diff(*link) < Duration::from_micros(20),
            "connection {index}: {netem:?} with netem, {link:?} with the emulator"
        );
    }
}

/// Setting up a connection takes the server as long over either emulation: here so long that no round trip hides it.
#[test]
fn every_emulation_has_servers_take_their_time() {
    const TAKEN: Duration = Duration::from_millis(50);
    let place = over_both_emulations(3, "x25519/rsa-2048", "rtt = \"0ms\"");
    // What a step takes on this machine is kept in a file, which the test changes.
    let cache = place.path("cache");
    fs::create_dir(&cache).unwrap();
    let kernel = Store::default_dir().unwrap().join("kernel");
    std::os::unix::fs::symlink(kernel, cache.join("kernel")).unwrap();
    succeed(place.run("as-it-is").env("LASTBYTE_CACHE", &cache));
    let machines = fs::read_dir(cache.join("calibration")).unwrap();
    let files = machines.flat_map(|machine| fs::read_dir(machine.unwrap().path()).unwrap());
    for file in files.map(|file| file.unwrap().path()) {
        let mut kept: serde_json::Value =
            serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        let spread = kept["server_setup"].as_object_mut().unwrap();
        for time in spread.values_mut() {
            *time = (TAKEN.as_nanos() as u64).into();
        }
        fs::write(&file, kept.to_string()).unwrap();
    }
    succeed(place.run("slow").env("LASTBYTE_CACHE", &cache));
    let measured = place.measured("slow");
    let rows = measured[0].rows.iter().zip(&measured[1].rows);
    for (netem, link) in rows {
        let [netem, link] = [netem, link].map(|row| row.times.handshake.unwrap());
        assert!(netem > TAKEN, "{netem:?}");
        assert!(
            netem.abs_diff(link) < Duration::from_millis(1),
            "{netem:?} with netem, {link:?} with the emulator"
        );
    }
}

/// Where a link has no rate, all of a window comes in one moment, and how much of it one read takes decides how far a receive buffer
/// grows, and so a round trip of the second response.
#[test]
fn shortcuts_show_in_no_row_where_all_comes_at_once() {
    let rows = |shortcuts: &str| {
        let question = "compare --baseline X25519MLKEM768/ml-dsa-87 --engine virtual --rtt 5ms --rate unlimited --requests 2 \
                        --data 180KiB,208KiB --cpu none --connections 2 --format csv --shortcuts";
        succeed(lastbyte(question.split_whitespace()).arg(shortcuts)).stdout
    };
    assert_eq!(rows("taken"), rows("avoid"));
}

/// It is mounted for the guest, unless whoever makes such a call may be killed.
#[test]
fn a_guests_memory_is_in_large_pages_where_they_can_be_had() {
    const KERNEL: &str = "echo $TMPDIR; stat --file-system --format %T $TMPDIR/";
    let parent = std::process::id().to_string();
    let memory = |shortcuts: &str, refused: Option<Refused>| {
        let step = ["__boot", &parent, "anywhere", shortcuts];
        let mut command = lastbyte(step);
        command.args(["sh", "-c", KERNEL]).env("TMPDIR", "/dev/shm");
        if let Some(refused) = refused {
            refuse(&mut command, refused);
        }
        succeed(&mut command).stdout
    };
    let usual = "/dev/shm\ntmpfs\n";
    let large = memory("taken", None);
    let own = fs::read_to_string("/proc/self/status").unwrap();
    let is_free = own.lines().any(|line| line == "Seccomp:\t0");
    if is_free && Path::new("/sys/kernel/mm/transparent_hugepage").exists() {
        assert!(large.starts_with("/proc/self/fd/"), "{large}");
        assert!(large.ends_with("\ntmpfs\n"), "{large}");
    } else {
        assert_eq!(large, usual);
    }
    assert_eq!(memory("avoid", None), usual);
    assert_eq!(memory("taken", Some(Refused::FsopenOrDie)), usual);
}

/// What a container's seccomp profile refuses.
#[derive(Clone, Copy)]
enum Refused {
    Ptrace,
    /// seccomp(2): what is in it can't have filters of its own.
    Filters,
    /// mount(2), which guests call and hosts of programs rarely: whoever calls it is killed, as by a service of systemd.
    MountOrDie,
    /// fsopen(2), in the same way.
    FsopenOrDie,
    /// personality(2), but for the values that the profiles of Docker, Podman and Kubernetes let pass.
    Personality,
}

/// Makes `command` one that runs under such a profile.
fn refuse(command: &mut Command, refused: Refused) {
    use nix::libc;

    const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    const JUMP_IF_EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    const RETURN: u32 = libc::BPF_RET | libc::BPF_K;
    const NUMBER: u32 = 0;
    const FIRST_ARGUMENT: u32 = 16;
    let filter = |code: u32, if_equal, if_not, k| libc::sock_filter {
        code: code as u16,
        jt: if_equal,
        jf: if_not,
        k,
    };
    let (call, allowed): (_, &[u32]) = match refused {
        Refused::Ptrace => (libc::SYS_ptrace, &[]),
        Refused::Filters => (libc::SYS_seccomp, &[]),
        Refused::MountOrDie => (libc::SYS_mount, &[]),
        Refused::FsopenOrDie => (libc::SYS_fsopen, &[]),
        Refused::Personality => (
            libc::SYS_personality,
            &[0, 0x8, 0x2_0000, 0x2_0008, 0xffff_ffff],
        ),
    };
    let checks = allowed.len() as u8;
    let mut filters = vec![
        filter(LOAD, 0, 0, NUMBER),
        filter(JUMP_IF_EQUAL, 0, checks + 2, call as u32),
        filter(LOAD, 0, 0, FIRST_ARGUMENT),
    ];
    for (value, left) in allowed.iter().zip((1..=checks).rev()) {
        filters.push(filter(JUMP_IF_EQUAL, left, 0, *value));
    }
    let refusal = match refused {
        Refused::MountOrDie | Refused::FsopenOrDie => libc::SECCOMP_RET_KILL_PROCESS,
        _ => libc::SECCOMP_RET_ERRNO | libc::EPERM as u32,
    };
    filters.push(filter(RETURN, 0, 0, refusal));
    filters.push(filter(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW));
    let restrict = move || {
        let program = libc::sock_fprog {
            len: filters.len() as u16,
            filter: filters.as_mut_ptr(),
        };
        // SAFETY: the kernel only reads the program, which outlives both calls.
        #[allow(unsafe_code)]
        let done = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program) == 0
        };
        done.then_some(()).ok_or_else(std::io::Error::last_os_error)
    };
    // SAFETY: it makes two system calls and allocates nothing.
    #[allow(unsafe_code)]
    unsafe {
        command.pre_exec(restrict);
    }
}

/// The program where these mounts are made before, with nobody else seeing them.
fn mounted(mounts: &str, arguments: &str) -> Command {
    let script = format!("{mounts} && exec \"$@\"");
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "sh", "-c", &script, "sh"])
        .arg(env!("CARGO_BIN_EXE_lastbyte"))
        .args(arguments.split(' '));
    command
}

/// Asserts that the doctor and `--engine auto` name what keeps virtual kernels from running, and that
/// nothing else is measured where they are asked for.
fn assert_live_instead(hint: &str, command: impl Fn(&str) -> Command) {
    const WHY: &str = "virtual kernels can't run here";
    const QUESTION: &str =
        "compare --rtt 4ms --data 0KiB --connections 2 --baseline secp256r1/ecdsa-p256";

    let doctor = run(&mut command("doctor"));
    assert!(
        doctor.stdout.contains(hint)
            && doctor
                .stdout
                .contains("This machine can't run the virtual engine."),
        "{}",
        doctor.stdout
    );
    let auto = run(&mut command(QUESTION));
    assert_eq!(auto.code, Some(0), "{}", auto.stderr);
    assert!(
        auto.stderr.contains(WHY) && auto.stderr.contains(hint),
        "{}",
        auto.stderr
    );
    let virtually = run(&mut command(&format!("{QUESTION} --engine virtual")));
    assert_eq!(virtually.code, Some(3), "{}", virtually.stderr);
    assert!(virtually.stderr.contains(hint), "{}", virtually.stderr);
}

/// Where a filter of its own is refused, or another one would kill guests' processes, kernels trace them.
#[test]
fn whether_calls_can_become_signals_is_tried() {
    let tried = |refused: Option<Refused>, without: &[&str]| {
        let mut command = match without.split_first() {
            Some((program, arguments)) => {
                let mut command = Command::new(program);
                command.args(arguments).arg(env!("CARGO_BIN_EXE_lastbyte"));
                command
            }
            None => lastbyte([""; 0]),
        };
        command.arg("__try-seccomp");
        if let Some(refused) = refused {
            refuse(&mut command, refused);
        }
        command.output().unwrap()
    };
    for without in [&[][..], &["setpriv", "--no-new-privs"]] {
        let usual = tried(None, without);
        assert!(usual.status.success(), "{usual:?}");
    }
    // One that refuses what guests call is no obstacle: signals come before it.
    for refused in [Refused::Ptrace, Refused::Personality] {
        let within = tried(Some(refused), &[]);
        assert!(within.status.success(), "{within:?}");
    }
    let refused = tried(Some(Refused::Filters), &[]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    let reason = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(reason, "seccomp: EPERM: Operation not permitted\n");
    let killed = tried(Some(Refused::MountOrDie), &[]);
    assert_eq!(
        killed.status.signal(),
        Some(Signal::SIGSYS as i32),
        "{killed:?}"
    );
}

/// A kernel of 6.12 has only one way, which is refused another by name.
#[test]
fn kernels_have_ways_to_intercept_calls() {
    let doctor = run(&mut lastbyte(["doctor"]));
    let way =
        "ok    its system calls       by ptrace: kernels have a faster way since Linux 6.16\n";
    assert!(doctor.stdout.contains(way), "{doctor:?}");
    let question = "compare --engine virtual --connections 2 --interception";
    let ended = run(lastbyte(question.split(' ')).arg("seccomp"));
    assert_eq!(ended.code, Some(2), "{ended:?}");
    let problem = "has no seccomp as a way to intercept calls\n";
    assert!(ended.stderr.ends_with(problem), "{ended:?}");
    succeed(lastbyte(question.split(' ')).arg("ptrace"));
}

#[test]
fn where_ptrace_is_forbidden_the_doctor_says_so_and_live_is_used() {
    assert_live_instead("allow ptrace", |arguments| {
        let mut command = lastbyte(arguments.split(' '));
        refuse(&mut command, Refused::Ptrace);
        command
    });
}

#[test]
fn where_no_folder_may_hold_programs_the_doctor_says_so_and_live_is_used() {
    const MOUNTS: &str = "mount -t tmpfs -o noexec tmpfs /dev/shm && \
                          mount -t tmpfs -o noexec tmpfs /tmp";
    assert_live_instead("no folder for its memory: /dev/shm", |arguments| {
        let mut command = mounted(MOUNTS, arguments);
        command.env_remove("TMPDIR");
        command
    });
}

/// As Docker, Podman and Kubernetes have it: no personality(2), and a /dev/shm that is small and may
/// hold no programs.
#[test]
fn in_a_container_the_rows_are_the_same() {
    const QUESTION: &str =
        "compare --engine virtual --loss 3% --jitter 2ms --data 20KiB --connections 60";
    let place = TempDir::new().unwrap();
    let rows = |name: &str, mut command: Command| {
        let file = place.path().join(name);
        succeed(command.arg("-o").arg(&file));
        fs::read(file).unwrap()
    };
    let usual = rows("usual.csv", lastbyte(QUESTION.split(' ')));

    let mut command = lastbyte(QUESTION.split(' '));
    refuse(&mut command, Refused::Personality);
    assert!(
        usual == rows("personality.csv", command),
        "without personality(2)"
    );

    for (name, options) in [("noexec.csv", "noexec"), ("small.csv", "size=64m")] {
        let mounts = format!("mount -t tmpfs -o {options} tmpfs /dev/shm");
        let again = rows(name, mounted(&mounts, QUESTION));
        assert!(usual == again, "with a /dev/shm of {options}");
    }
}

#[test]
fn what_the_engine_has_no_use_for_is_said() {
    const QUESTION: &str = "compare --engine virtual --data 0KiB --connections 2 --concurrency 4";
    let ended = run(&mut lastbyte(QUESTION.split(' ')));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let told = "lastbyte: --concurrency changes nothing: in virtual time there is one connection at a time\n";
    assert_eq!(ended.stderr, told);
}

#[test]
fn the_doctor_boots_a_kernel_and_names_what_a_container_refuses() {
    let doctor = |mut command: Command| run(&mut command).stdout;
    let usual = doctor(lastbyte(["doctor"]));
    assert!(
        usual.contains("ok    their memory           /dev/shm")
            && usual.contains(" boots\nThis machine can run the virtual engine."),
        "{usual}"
    );

    let mut command = lastbyte(["doctor"]);
    refuse(&mut command, Refused::Personality);
    let told = doctor(command);
    assert!(
        told.contains("without personality(2), which is refused: rows are the same")
            && told.contains("This machine can run the virtual engine."),
        "{told}"
    );

    let told = doctor(mounted("mount -t tmpfs -o noexec tmpfs /dev/shm", "doctor"));
    assert!(
        told.contains("poor  their memory           /")
            && told.contains("/dev/shm may hold no programs (it is mounted noexec)")
            && told.contains("This machine can run the virtual engine."),
        "{told}"
    );
}

/// What stands below a figure to be copied measures what the figure shows, to the nanosecond.
#[test]
fn the_command_of_a_figure_measures_it_again() {
    const STUDY: &str = r#"
connections = 20
[arm.old]
tls = "secp256r1/ecdsa-p256"
[arm.new]
tls = "SecP256r1MLKEM768/ml-dsa-65"
[link.bad]
rtt = "35ms"
rate = "10mbit"
loss = ["0%", "10%"]
jitter = "2ms"
jitter_distribution = "paretonormal"
queue = 30
[[measure]]
id = "m"
preset = "published-2024"
initcwnd = 20
data = ["0KiB", "20KiB"]
"#;
    let place = Place::new(STUDY);
    succeed(&mut place.run("results"));
    let page = place.page("results");
    let (_, command) = page.split_once("<pre>lastbyte ").unwrap();
    let (command, _) = command.split_once('<').unwrap();
    let rows = place.path("rows.csv");
    succeed(lastbyte(command.split_whitespace()).arg("-o").arg(&rows));

    let text = fs::read_to_string(rows).unwrap();
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let titles = lines.next().unwrap();
    let column = titles.iter().position(|title| *title == "ttlb_ns").unwrap();
    let again: Vec<String> = lines.map(|line| line[column].to_owned()).collect();
    let measured = place.measured("results");
    let rows = measured.iter().flat_map(|sample| &sample.rows);
    let measured: Vec<String> = rows
        .map(|row| Metric::Ttlb.of(row).unwrap().as_nanos().to_string())
        .collect();
    assert_eq!(again.len(), 160);
    assert_eq!(again, measured);
}

/// Two arms, a window of 10 and two links: each has its first edge where the segments of the window are full.
#[test]
fn a_search_finds_edges_to_the_byte() {
    let place = Place::new(
        r#"
connections = 16
[arm.ecdsa]
tls = "X25519MLKEM768/ecdsa-p256"
[arm.ml-dsa]
tls = "X25519MLKEM768/ml-dsa-44"
[link.clean]
rtt = ["35ms", "100ms"]
[[measure]]
id = "m"
arms = ["ecdsa"]
connections = 2
[[search]]
id = "edges"
links = ["clean"]
from = "9KB"
to = "15KB"
sizes = 4
data = "1KiB"
"#,
    );
    let ended = succeed(&mut place.run("results"));
    assert!(
        ended
            .stdout
            .contains("4 edges without loss, 4 of them exactly"),
        "{}",
        ended.stdout
    );
    let text = fs::read_to_string(place.path("results/search-edges.json")).unwrap();
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_fits(&document, lastbyte::report::SEARCH_SCHEMA);
    for found in document["found"].as_array().unwrap() {
        let [edge] = &found["edges"].as_array().unwrap()[..] else {
            panic!("{found:#}")
        };
        assert_eq!(edge["most_wire_bytes_below"], 14_480, "{edge:#}");
        assert_eq!(edge["fewest_wire_bytes_above"], 14_481, "{edge:#}");
        assert_eq!(edge["from_arithmetic_bytes"], 0, "{edge:#}");
    }
    // What rounds made is gone but their rows, and a finished run has nothing more to search.
    assert!(!place.path("results/search/edges/.chains").exists());
    let again = succeed(place.run("results").arg("--resume"));
    assert!(again.stdout.contains("is complete"), "{}", again.stdout);
    // A round that is lost is measured again, and comes to the same.
    fs::remove_file(place.path("results/rows.parquet")).unwrap();
    fs::remove_dir_all(place.path("results/search/edges/002")).unwrap();
    succeed(place.run("results").arg("--resume"));
    assert_eq!(
        fs::read_to_string(place.path("results/search-edges.json")).unwrap(),
        text
    );
    let page = place.page("results");
    assert!(page.contains("Edges of the first byte: edges"), "{page}");
}

/// Arms as one says them: one behind the other, a chain alone, in any letters, with names of one's own. What is measured is the same.
#[test]
fn arms_are_asked_for_as_one_says_them() {
    let rest = [
        "--engine",
        "virtual",
        "--cpu",
        "none",
        "--connections",
        "2",
        "--data",
        "1KiB",
        "--format",
        "csv",
    ];
    let ask = |arms: &[&str]| {
        let ended = run(lastbyte(["compare"]).args(arms).args(rest));
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        ended.stdout
    };
    let said = ask(&["x25519mlkem768/ML-DSA-44", "ml-dsa-65"]);
    let options = ask(&[
        "--baseline",
        "X25519MLKEM768/ml-dsa-44",
        "--against",
        "X25519MLKEM768/ml-dsa-65",
    ]);
    assert_eq!(said, options);
    let named = ask(&["today=ml-dsa-44", "next year=ml-dsa-65"]);
    assert_eq!(named.lines().count(), options.lines().count());
    assert!(named.contains("next year"), "{named}");
}

/// Timers end on the kernel's wheel, whose places are a tick of 1 ms apart below 64 ms, 8 below 512, and 64 below 4096
/// (`calc_wheel_index` in kernel/time/timer.c).
#[test]
fn each_lost_segment_of_a_handshake_costs_what_linux_makes_of_it() {
    const STUDY: &str = r#"
connections = 3
[arm.a]
tls = "x25519/rsa-2048"
[link.l]
rtt = "100ms"
[[measure]]
id = "m"
data = ["0B"]
emulation = "link"
"#;
    let place = Place::new(STUDY);
    run_on(&place, |engine| engine);
    let rows = place.measured("out").remove(0).rows;

    let store = Store::default_dir().unwrap();
    let study = Study::load(&place.path("study.toml")).unwrap();
    let experiment = &study.measures[0].experiment;
    let arm = experiment.arms[0].clone();
    let arm = PreparedArm::new(arm, &Store::open(store.clone())).unwrap();
    let losses = engine_with_store(store)
        .lose(
            &arm,
            &experiment.cells[0],
            experiment,
            &AtomicBool::new(false),
        )
        .unwrap()
        .unwrap();
    // That others lose something is nothing to the one that does not.
    assert_eq!(losses.whole, rows[0]);
    let all: Vec<_> = (losses.lost.iter())
        .map(|lost| {
            let added = losses.added(lost).unwrap().as_secs_f64() * 1e3;
            (lost.sender, lost.number, &*lost.carries, added)
        })
        .collect();
    // What the peer acknowledges besides, it acknowledges with what comes next.
    let nothing = 0.0..0.01;
    // TCP_TIMEOUT_INIT; the server's timer of its SYN-ACK begins later than the client's of its SYN.
    let initial = 1000.0..1066.0;
    // One segment under way: the probe would come after 2 SRTT + 200 ms, but not later than a timeout would,
    // SRTT + max(200 ms, 4 RTTVAR) (`tcp_schedule_loss_probe`, RFC 8985, 7.2).
    let probe = 300.0..310.0;
    // The same, counted from the acknowledgement of the segment before, which comes a round trip later.
    let later_probe = 400.0..410.0;
    // A round trip until the segment behind it is acknowledged, and a quarter of one for reordering
    // (`tcp_rack_reo_wnd`), with two ticks (TCP_TIMEOUT_MIN).
    let reordering = 125.0..130.0;
    let ack = "an acknowledgement";
    let certificate = "ServerHello, EncryptedExtensions, the beginning of Certificate";
    let end = "the end of Certificate, CertVerify, server Finished";
    let wanted = [
        (Side::Client, 1, "SYN", &initial),
        (Side::Server, 1, "SYN-ACK", &initial),
        (Side::Client, 2, ack, &nothing),
        (Side::Client, 3, "ClientHello", &probe),
        (Side::Server, 2, ack, &nothing),
        (Side::Server, 3, certificate, &reordering),
        (Side::Server, 4, end, &later_probe),
        (Side::Client, 4, ack, &nothing),
        (Side::Client, 5, ack, &nothing),
        (Side::Client, 6, "client Finished", &nothing),
    ];
    assert_eq!(all.len(), wanted.len(), "{all:?}");
    for (lost, (sender, number, carries, added)) in all.iter().zip(wanted) {
        assert_eq!(
            (lost.0, lost.1, lost.2),
            (sender, number, carries),
            "{all:?}"
        );
        assert!(added.contains(&lost.3), "{lost:?}, {added:?}");
    }
    // The client is done when its Finished is written.
    let finished = losses.lost.last().unwrap();
    assert_eq!(finished.handshake(), losses.whole.times.handshake);
    assert!(finished.row.times.server_handshake > losses.whole.times.server_handshake);
}
