//! What the live engine promises, measured. As root:
//!
//! - `cargo bench --bench live -- arithmetic`: medians without loss against flight
//!   arithmetic, to which the arm's own handshake CPU time in memory is added.
//! - `cargo bench --bench live -- concurrency`: medians and p90 at the concurrency that the
//!   engine chooses against one connection at a time.
//! - `cargo bench --bench live -- emulator`: packets that the emulator carries.
#![allow(clippy::unwrap_used, missing_docs)]

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use lastbyte::lab::{self, LiveEngine, PreparedArm, Runner, Watcher};
use lastbyte::results::{Environment, Sample, expected};
use lastbyte::study::{Arm, Cell, Experiment, Study};
use lastbyte_flights::Compute;
use lastbyte_link::{Bytes, Direction, Link, parse_duration};
use lastbyte_pki::Store;
use lastbyte_tls::{StepTimes, time_handshake};
use nix::time::{ClockId, clock_gettime};

const ARMS: [&str; 2] = ["secp256r1/rsa-2048", "SecP256r1MLKEM768/ml-dsa-65"];

fn main() {
    lab::acquire().unwrap();
    let wanted: Vec<_> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    let benches: [(&str, fn()); 3] = [
        ("arithmetic", arithmetic),
        ("concurrency", concurrency),
        ("emulator", emulator),
    ];
    for (name, bench) in benches {
        if wanted.is_empty() || wanted.iter().any(|wanted| wanted == name) {
            println!("## {name}\n");
            bench();
            println!();
        }
    }
}

fn arithmetic() {
    const CONNECTIONS: u32 = 100;
    let arms = prepare();
    let mut cells = Vec::new();
    for (rtt, rate) in [("35ms", "1gbit"), ("200ms", "1mbit")] {
        for initcwnd in [10, 20] {
            cells.extend([0, 50, 100, 200, 300].map(|size| cell(rtt, rate, initcwnd, size)));
        }
    }
    let experiment = experiment(&arms, cells, CONNECTIONS, None);
    println!("p50 TTLB, n = {CONNECTIONS}\n");
    println!("| cell | arm | at once | expected ms | measured ms | difference |");
    println!("|---|---|--:|--:|--:|--:|");
    let steps: Vec<_> = arms.iter().map(steps).collect();
    let mut worst: f64 = 0.0;
    for sample in run(&experiment, &arms) {
        let (arm, cell) = (&arms[sample.arm], &experiment.cells[sample.cell]);
        let steps = &steps[sample.arm];
        let compute = Compute {
            client_hello: steps.client_hello,
            server_flight: steps.server_flight,
            client_finish: steps.client_finish,
            response: steps.server_finish,
        };
        let wire = &sample.rows[0].exchange;
        let expected = expected(wire, cell, arm.arm.record_size, compute).ttlb;
        let measured = percentile(&sample, 0.5);
        let difference = 100.0 * (measured.as_secs_f64() / expected.as_secs_f64() - 1.0);
        worst = worst.max(difference.abs());
        println!(
            "| {cell} | {} | {} | {:.2} | {:.2} | {difference:+.2} % |",
            arm.arm.label,
            sample.engine.concurrency,
            milliseconds(expected),
            milliseconds(measured),
        );
    }
    println!("\nlargest difference: {worst:.2} %");
}

fn concurrency() {
    const CONNECTIONS: u32 = 200;
    let arms = prepare();
    let cells = [0, 50, 200].map(|size| cell("35ms", "1gbit", 10, size));
    let alone = experiment(&arms, cells.to_vec(), CONNECTIONS, Some(1));
    let chosen = experiment(&arms, cells.to_vec(), CONNECTIONS, None);
    let (alone, chosen) = (run(&alone, &arms), run(&chosen, &arms));
    println!("TTLB at the chosen concurrency against one at a time, n = {CONNECTIONS}\n");
    println!("| cell | arm | at once | p50 alone ms | p50 | p90 alone ms | p90 |");
    println!("|---|---|--:|--:|--:|--:|--:|");
    for (alone, chosen) in alone.iter().zip(&chosen) {
        let change = |share| {
            let (alone, chosen) = (percentile(alone, share), percentile(chosen, share));
            100.0 * (chosen.as_secs_f64() / alone.as_secs_f64() - 1.0)
        };
        println!(
            "| {} | {} | {} | {:.2} | {:+.2} % | {:.2} | {:+.2} % |",
            cells[chosen.cell],
            arms[chosen.arm].arm.label,
            chosen.engine.concurrency,
            milliseconds(percentile(alone, 0.5)),
            change(0.5),
            milliseconds(percentile(alone, 0.9)),
            change(0.9),
        );
    }
}

/// Large transfers, many at once: what the emulator does is the kernel's work in its system
/// calls, TCP's receiving side included.
fn emulator() {
    let arms = prepare();
    let cells = vec![cell("35ms", "1gbit", 10, 1024)];
    let experiment = experiment(&arms[..1], cells, 1000, Some(200));
    let start = Instant::now();
    for sample in run(&experiment, &arms[..1]) {
        let engine = &sample.engine;
        let cpu = engine.emulator_cpu.as_secs_f64();
        println!(
            "{} packets, {} connections at once; emulator {cpu:.2} s of CPU: {:.0} packets a CPU second\n\
             wall {:.1} s, chains and pilots included; endpoints {:.2} s of CPU",
            engine.packets,
            engine.concurrency,
            engine.packets as f64 / cpu,
            start.elapsed().as_secs_f64(),
            engine.endpoint_cpu.as_secs_f64(),
        );
    }
}

struct Silent;

impl Watcher for Silent {
    fn expect(&self, _: Duration) {}
    fn advance(&self, _: Duration) {}
    fn warn(&self, _: &str) {}
}

fn run(experiment: &Experiment, arms: &[PreparedArm]) -> Vec<Sample> {
    let mut study = Study::single("bench", experiment.clone());
    study.text = study.to_toml();
    let run = lab::run_in_passing(&Runner {
        inspection: None,
        study: &study,
        engine: &LiveEngine::new(Environment::default()),
        arms,
        interrupt: &AtomicBool::new(false),
        watcher: &Silent,
    });
    run.unwrap().samples
}

fn prepare() -> Vec<PreparedArm> {
    let store = Store::open(Store::default_dir().unwrap());
    let prepare = |arm: &str| PreparedArm::new(arm.parse::<Arm>().unwrap(), &store).unwrap();
    ARMS.map(prepare).into()
}

fn experiment(
    arms: &[PreparedArm],
    cells: Vec<Cell>,
    connections: u32,
    concurrency: Option<u32>,
) -> Experiment {
    let arms = arms.iter().map(|arm| arm.arm.clone()).collect();
    Experiment {
        concurrency,
        ..Experiment::new(arms, cells, connections)
    }
}

fn cell(rtt: &str, rate: &str, initcwnd: u32, kibibytes: u64) -> Cell {
    let direction = Direction {
        rate: Some(rate.parse().unwrap()),
        ..Direction::default()
    };
    Cell {
        link: Link::symmetric(parse_duration(rtt).unwrap(), direction),
        initcwnd,
        data: Bytes(kibibytes << 10),
        ..Cell::default()
    }
}

/// Medians of the CPU time of the handshake's steps in memory.
fn steps(arm: &PreparedArm) -> StepTimes {
    let mut clock = || Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap());
    let times: Vec<_> = (0..201)
        .map(|_| {
            let (client, server) = (arm.stack.client().unwrap(), arm.stack.server().unwrap());
            time_handshake(client, server, &mut clock).unwrap()
        })
        .collect();
    let median = |step: fn(&StepTimes) -> Duration| {
        let mut times: Vec<_> = times.iter().map(step).collect();
        times.sort_unstable();
        times[times.len() / 2]
    };
    StepTimes {
        client_hello: median(|times| times.client_hello),
        server_flight: median(|times| times.server_flight),
        client_finish: median(|times| times.client_finish),
        server_finish: median(|times| times.server_finish),
    }
}

fn percentile(sample: &Sample, share: f64) -> Duration {
    let mut times: Vec<_> = (sample.rows.iter())
        .map(|row| row.times.ttlb.unwrap())
        .collect();
    times.sort_unstable();
    times[((times.len() - 1) as f64 * share).round() as usize]
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
