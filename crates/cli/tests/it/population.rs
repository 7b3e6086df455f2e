//! Populations in the virtual kernel: each connection meets what it drew, in every arm.
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{Ended, at, run};
use lastbyte::results::{Dataset, Outcome, Resumption, Row, Sample, SampleKey};
use lastbyte::study::{Metric, Percentile};
use tempfile::TempDir;

const ARMS: &str = r#"
[arm.classical]
tls = "x25519/rsa-2048"
[arm.ml-dsa]
tls = "X25519MLKEM768/ml-dsa-65"
"#;

/// The program with the user's own cache, which has the kernel.
fn lastbyte(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lastbyte"));
    command.args(arguments);
    command
}

/// The results of a study with this text.
fn measure(folder: &TempDir, name: &str, text: &str) -> Dataset {
    let (study, results) = (format!("{name}.toml"), at(folder, name));
    fs::write(at(folder, &study), format!("engine = \"virtual\"\n{text}")).unwrap();
    let mut command = lastbyte(&["run", &study, "-o", name]);
    let ended = run(command.current_dir(folder.path()));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    Dataset::open(&results).unwrap()
}

fn samples(dataset: &Dataset) -> Vec<(SampleKey, Sample)> {
    dataset.samples().unwrap().map(Result::unwrap).collect()
}

fn refuse(folder: &Path, arguments: &[&str]) -> Ended {
    let mut command = lastbyte(arguments);
    let ended = run(command.current_dir(folder));
    assert_eq!(ended.code, Some(2), "{}{}", ended.stdout, ended.stderr);
    ended
}

/// Times to the nanosecond, retransmissions and message sizes: luck is that of the link, the index and nothing else.
#[test]
fn a_population_of_one_point_is_a_cell() {
    let folder = TempDir::new().unwrap();
    let rest = format!("connections = 60\nseed = 7\n{ARMS}");
    let measure_with = |name, population: &str, cell: &str| {
        let text = format!("{population}\n{cell}");
        samples(&measure(&folder, name, &text))
    };
    let grid = measure_with(
        "grid",
        &rest,
        "[link.one]\nrtt = \"40ms\"\nrate = \"5mbit\"\nloss = \"2%\"\nqueue = 20\n\
         [[measure]]\nid = \"m\"\ndata = \"60KiB\"\nrequests = 2\n",
    );
    let population = measure_with(
        "population",
        &rest,
        "[population]\nrtt = \"40ms\"\nrate = \"5mbit\"\nloss = \"2%\"\nqueue = 20\ndata = \"60KiB\"\nrequests = 2\n\
         [[measure]]\nid = \"m\"\n",
    );
    assert_eq!(grid.len(), 2);
    for ((key, cell), (other, point)) in grid.iter().zip(&population) {
        assert_eq!(key, other);
        let lost: u32 = cell
            .rows
            .iter()
            .filter_map(|row| Some(row.server_tcp()?.retransmits))
            .sum();
        assert!(lost > 0);
        assert_eq!(cell.rows, point.rows);
    }
}

/// Every connection has the link, the response and the session that it drew, and a part of them that drew one
/// link has the times of the cell with that link.
#[test]
fn connections_meet_what_they_drew() {
    let folder = TempDir::new().unwrap();
    let text = format!(
        "connections = 400\n{ARMS}\
         [population]\nresumes = {{ near = \"50%\", far = \"80%\" }}\nearly_data = \"30%\"\n\
         [population.joint]\nclass = [\"near\", \"far\"]\nrtt_ms = [20, 150]\nrate = [\"unlimited\", \"20mbit\"]\ndata_bytes = [5000, 40000]\n\
         [[measure]]\nid = \"m\"\n"
    );
    let dataset = measure(&folder, "population", &text);
    let experiment = &dataset.study.measures[0].experiment;
    let cell = &experiment.cells[0];
    let all = samples(&dataset);
    for (key, sample) in &all {
        let arm = &experiment.arms[key.arm];
        for row in &sample.rows {
            assert_eq!(row.outcome, Outcome::Completed);
            let of = cell.of_connection(row.index);
            let rtt = row.client_tcp().unwrap().min_rtt;
            let (least, most) = (of.link.rtt(), of.link.rtt().mul_f64(1.1));
            assert!((least..most).contains(&rtt), "{rtt:?} of {least:?}");
            let is_resumed = row.exchange.negotiated.resumption == Resumption::Resumed;
            assert_eq!(is_resumed, arm.session(cell, row.index).name() != "no");
        }
    }
    let grid = format!(
        "connections = 30\n{ARMS}\
         [link.near]\nrtt = \"20ms\"\n[link.far]\nrtt = \"150ms\"\nrate = \"20mbit\"\n\
         [[measure]]\nid = \"near\"\nlinks = [\"near\"]\ndata = \"5000B\"\n\
         [[measure]]\nid = \"far\"\nlinks = [\"far\"]\ndata = \"40000B\"\n"
    );
    let grid = samples(&measure(&folder, "grid", &grid));
    for (class, place) in [("near", 0), ("far", 1)] {
        for arm in 0..2 {
            let alike = |row: &&Row| {
                let draw = cell.draw(row.index).unwrap();
                draw.class.as_deref() == Some(class)
                    && row.exchange.negotiated.resumption == Resumption::Full
            };
            let (_, of_population) = all.iter().find(|(key, _)| key.arm == arm).unwrap();
            let part: Vec<_> = of_population.rows.iter().filter(alike).cloned().collect();
            let is_it = |(key, _): &&(SampleKey, Sample)| (key.measure, key.arm) == (place, arm);
            let (_, of_grid) = grid.iter().find(is_it).unwrap();
            assert!(part.len() > 15, "{}", part.len());
            for metric in [Metric::Handshake, Metric::Ttfb, Metric::Ttlb] {
                let (one, other) = (median(metric, &part), median(metric, &of_grid.rows));
                assert!(
                    (one / other - 1.0).abs() < 0.001,
                    "{class} {metric}: {one} and {other}"
                );
            }
        }
    }
}

fn median(metric: Metric, rows: &[Row]) -> f64 {
    let mut times: Vec<f64> = rows
        .iter()
        .map(|row| metric.of(row).unwrap().as_secs_f64())
        .collect();
    times.sort_unstable_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Times and differences are told, and arithmetic has the same of each connection.
#[test]
fn what_a_population_waits_longer() {
    let folder = TempDir::new().unwrap();
    let text = format!(
        "connections = 300\n{ARMS}\
         [population]\nrtt = {{ median = \"30ms\", p95 = \"150ms\" }}\ndata = \"20KiB\"\n\
         [[measure]]\nid = \"users\"\n"
    );
    let dataset = measure(&folder, "population", &text);
    let experiment = &dataset.study.measures[0].experiment;
    let all: Vec<Sample> = samples(&dataset)
        .into_iter()
        .map(|(_, sample)| sample)
        .collect();
    let summary = lastbyte::results::Summary::new(experiment, &all, &Percentile::USUAL);
    let waits = &summary.cells[0].arms[1].waiting;
    assert_eq!(waits.len(), 3);
    // 16 KB of handshake at a window of 14 KB: a round trip for each.
    for waiting in &waits[..2] {
        let of_trips = waiting.slower[4].connections.value;
        assert!(of_trips > 0.99, "{of_trips}");
        assert_eq!(waiting.connections, 300);
    }
    let mut command = lastbyte(&["validate", "arithmetic", "population"]);
    let ended = run(command.current_dir(folder.path()));
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains("24"), "{}", ended.stdout);
    let mut command = lastbyte(&["report", "population"]);
    let ended = run(command.current_dir(folder.path()));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

#[test]
fn what_the_engines_can_not_draw() {
    let folder = TempDir::new().unwrap();
    let write = |text: &str| {
        let rest = format!("{ARMS}[[measure]]\nid = \"m\"\n");
        fs::write(at(&folder, "study.toml"), format!("{text}\n{rest}")).unwrap();
    };
    write("engine = \"live\"\n[population]\nrtt = \"10ms\"");
    let ended = refuse(folder.path(), &["run", "study.toml", "-o", "out"]);
    assert!(
        ended
            .stderr
            .contains("the live engine measures one network at a time, and no population (m)"),
        "{}",
        ended.stderr
    );
    for (text, problem) in [
        (
            "emulation = \"link\"\n[population]\nrtt = \"10ms\"",
            "a population needs netem",
        ),
        (
            "cpu = \"calibrated\"\n[population]\nrtt = \"10ms\"\nresumes = \"50%\"",
            "begins in several ways",
        ),
        (
            "[population]\nrtt = \"10ms\"\nrate = \"1001bit\"",
            "connection 0 of the population: netem can't limit a rate",
        ),
        (
            "[population]\nrtt = \"10ms\"\nrate = { values = [\"8mbit\", \"1001bit\"], weights = [9, 1] }",
            " of the population: netem can't limit a rate",
        ),
    ] {
        write(&format!("engine = \"virtual\"\n{text}"));
        let ended = refuse(folder.path(), &["run", "study.toml", "-o", "out"]);
        assert!(ended.stderr.contains(problem), "{}", ended.stderr);
        assert_eq!(
            ended.stderr.trim_end().lines().count(),
            1,
            "{}",
            ended.stderr
        );
    }
    assert!(!at(&folder, "out").exists());
}

/// A table that changes between two halves of a run would have two populations in one folder.
#[test]
fn a_run_goes_on_with_the_population_that_it_began_with() {
    let folder = TempDir::new().unwrap();
    let table = at(&folder, "users.csv");
    fs::write(&table, "rtt_ms\n10\n20\n").unwrap();
    let text = format!(
        "engine = \"virtual\"\nconnections = 10\n{ARMS}[population]\njoint = \"users.csv\"\n[[measure]]\nid = \"m\"\n"
    );
    fs::write(at(&folder, "study.toml"), text).unwrap();
    let mut command = lastbyte(&["run", "study.toml", "-o", "out"]);
    assert_eq!(run(command.current_dir(folder.path())).code, Some(0));
    fs::write(&table, "rtt_ms\n10\n30\n").unwrap();
    let ended = refuse(
        folder.path(),
        &["run", "study.toml", "-o", "out", "--resume"],
    );
    assert!(ended.stderr.contains("study"), "{}", ended.stderr);
}
