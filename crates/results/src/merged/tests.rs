#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs::{self, File};

use tempfile::TempDir;

use super::*;
use crate::fixtures::{CLASSICAL, HYBRID, cell, experiment, samples};

const ORIGIN: Origin<'_> = Origin {
    study: "compare",
    measure: "compare",
    engine: EngineName::Live,
};

/// More rows than a row group has, in samples that don't end where it does.
#[test]
fn samples_are_read_as_they_were_written() {
    let cells = vec![cell("0%", "0B"), cell("1%", "50KiB")];
    let experiment = experiment(&[CLASSICAL, HYBRID], cells, 5000);
    let samples = samples(&experiment);
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("rows.parquet");
    let file = File::create(&path).unwrap();
    let environment = Environment::default();
    write_rows(file, ORIGIN, &experiment, &samples, &environment, None).unwrap();

    let mut read = MergedSamples::open(&path).unwrap();
    for sample in &samples {
        let (key, other) = read.next().unwrap().unwrap();
        assert_eq!(
            (key.measure, key.cell, key.arm),
            (0, sample.cell, sample.arm)
        );
        assert_eq!((other.cell, other.arm), (sample.cell, sample.arm));
        assert!(other.rows == sample.rows);
        assert_eq!(other.engine, sample.engine);
        assert_eq!(other.chain_digest, sample.chain_digest);
    }
    assert!(read.next().is_none());

    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, bytes).unwrap();
    let line = MergedSamples::open(&path).err().unwrap().to_string();
    assert!(
        line.ends_with("rows.parquet\": it is incomplete or damaged"),
        "{line}"
    );
}

#[test]
fn a_sample_of_another_experiment_is_not_written() {
    let experiment = experiment(&[CLASSICAL], vec![cell("0%", "0B")], 1);
    let mut samples = samples(&experiment);
    samples[0].arm = 1;
    let out = io::Cursor::new(Vec::new());
    let environment = Environment::default();
    let written = write_rows(out, ORIGIN, &experiment, &samples, &environment, None);
    assert!(written.is_err());
}
