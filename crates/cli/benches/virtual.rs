//! What the virtual engine promises, measured. Its kernel must be built (`lastbyte kernel build`):
//!
//! - `cargo bench --bench virtual -- speed`: wall time of samples on one core, virtual seconds
//!   per wall second, and wall time against the CPU time of the same handshakes in memory.
//! - `cargo bench --bench virtual -- cores`: blocks on two cores against one.
#![allow(clippy::unwrap_used, missing_docs)]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use lastbyte::lab::PreparedArm;
use lastbyte::results::{Dataset, Metric};
use lastbyte_pki::Store;
use lastbyte_tls::handshake_in_memory;
use nix::time::{ClockId, clock_gettime};

const CONNECTIONS: u32 = 1000;
const CLASSICAL: &str = "secp256r1/rsa-2048";
const POST_QUANTUM: &str = "SecP256r1MLKEM768/ml-dsa-65";

/// How many of the machine's cores guests may use.
#[derive(Clone, Copy)]
enum Cores {
    One,
    Two,
}

struct Run {
    wall: Duration,
    /// Sum of all connections' times to the last byte.
    virtual_time: Duration,
}

fn main() {
    let wanted: Vec<_> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    let benches: [(&str, fn()); 2] = [("speed", speed), ("cores", cores)];
    for (name, bench) in benches {
        if wanted.is_empty() || wanted.iter().any(|wanted| wanted == name) {
            println!("## {name}\n");
            bench();
            println!();
        }
    }
}

/// How often each sample is measured: shared machines have slow spells.
const ROUNDS: usize = 5;

fn speed() {
    println!("{CONNECTIONS} connections on one core, boots included; {ROUNDS} rounds\n");
    println!(
        "| arm | link | data | wall s: least, median | virtual s per wall s: most, median \
         | against CPU time in memory: least, median |"
    );
    println!("|---|---|--:|--:|--:|--:|");
    for (arm, rtt, rate, data) in [
        (CLASSICAL, "200ms", "1mbit", "200KiB"),
        (POST_QUANTUM, "35ms", "1gbit", "200KiB"),
        (POST_QUANTUM, "35ms", "1gbit", "0KiB"),
        (CLASSICAL, "35ms", "1gbit", "0KiB"),
    ] {
        let (mut walls, mut speeds, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let memory = in_memory(arm);
            let run = run(arm, rtt, rate, data, Cores::One);
            let wall = run.wall.as_secs_f64();
            walls.push(wall);
            speeds.push(wall / run.virtual_time.as_secs_f64());
            ratios.push(wall / memory.as_secs_f64());
        }
        let [wall, speed, ratio] = [walls, speeds, ratios].map(least_and_median);
        println!(
            "| {arm} | {rtt}, {rate} | {data} | {:.2}, {:.2} | {:.0}, {:.0} | {:.2}, {:.2} |",
            wall[0],
            wall[1],
            1.0 / speed[0],
            1.0 / speed[1],
            ratio[0],
            ratio[1]
        );
    }
}

fn least_and_median(mut figures: Vec<f64>) -> [f64; 2] {
    figures.sort_by(f64::total_cmp);
    [figures[0], figures[figures.len() / 2]]
}

fn cores() {
    println!("| one core: wall s | two cores: wall s | ratio |\n|--:|--:|--:|");
    let mut ratios = Vec::new();
    for _ in 0..ROUNDS {
        let wall = |cores| {
            let run = run(POST_QUANTUM, "35ms", "1gbit", "200KiB", cores);
            run.wall.as_secs_f64()
        };
        let (one, two) = (wall(Cores::One), wall(Cores::Two));
        println!("| {one:.2} | {two:.2} | {:.2} |", one / two);
        ratios.push(one / two);
    }
    println!("\nMedian ratio: {:.2}.", least_and_median(ratios)[1]);
}

/// CPU time of as many handshakes in memory, both ends.
fn in_memory(arm: &str) -> Duration {
    let store = Store::open(Store::default_dir().unwrap());
    let arm = PreparedArm::new(arm.parse().unwrap(), &store).unwrap();
    let clock = || Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap());
    for _ in 0..20 {
        handshake_in_memory(arm.stack.as_ref()).unwrap();
    }
    let start = clock();
    for _ in 0..CONNECTIONS {
        handshake_in_memory(arm.stack.as_ref()).unwrap();
    }
    clock() - start
}

/// Runs a study of one sample as a user does.
fn run(arm: &str, rtt: &str, rate: &str, data: &str, cores: Cores) -> Run {
    let place = tempfile::tempdir().unwrap();
    let study = place.path().join("study.toml");
    let folder = place.path().join("results");
    let text = format!(
        "connections = {CONNECTIONS}\n[arm.a]\ntls = {arm:?}\n\
         [link.l]\nrtt = {rtt:?}\nrate = {rate:?}\n\
         [[measure]]\nid = \"m\"\ndata = {data:?}\n"
    );
    fs::write(&study, text).unwrap();
    let mut command = match cores {
        Cores::One => {
            let mut command = Command::new("taskset");
            command.args(["--cpu-list", "0", env!("CARGO_BIN_EXE_lastbyte")]);
            command
        }
        Cores::Two => Command::new(env!("CARGO_BIN_EXE_lastbyte")),
    };
    command
        .arg("run")
        .arg(&study)
        .args(["--engine", "virtual", "-o"])
        .arg(&folder)
        .stdout(Stdio::null());
    let start = Instant::now();
    assert!(command.status().unwrap().success());
    Run {
        wall: start.elapsed(),
        virtual_time: virtual_time(&folder),
    }
}

fn virtual_time(folder: &Path) -> Duration {
    let data = Dataset::open(folder).unwrap();
    let samples = data.samples().unwrap();
    samples
        .flat_map(|sample| sample.unwrap().1.rows)
        .filter_map(|row| Metric::Ttlb.of(&row))
        .sum()
}
