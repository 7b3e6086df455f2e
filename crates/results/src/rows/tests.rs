#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;

use insta::assert_snapshot;
use lastbyte_link::Direction;
use lastbyte_study::QuicIn;

use super::columns::COLUMNS;
use super::*;
use crate::fixtures::{CLASSICAL, HYBRID, cell, experiment, failed, samples};
use crate::{Exchange, Outcome, Times, TransportStats};

const ORIGIN: Origin<'_> = Origin {
    study: "trees",
    measure: "growth",
    engine: EngineName::Live,
};

fn csv(experiment: &Experiment, samples: &[Sample]) -> String {
    let mut out = Vec::new();
    let mut writer = CsvWriter::new(&mut out).unwrap();
    for sample in samples {
        let batch = Batch::new(ORIGIN, experiment, sample).unwrap();
        writer.write(&batch).unwrap();
    }
    writer.finish().unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn the_columns() {
    let columns = COLUMNS.iter().map(|column| {
        let Column {
            name,
            doc,
            kind,
            presence,
            ..
        } = column;
        format!("{name} ({kind:?}, {presence:?}): {doc}")
    });
    assert_snapshot!(columns.collect::<Vec<_>>().join("\n"));
}

/// Whose fields are of the kinds, and there or absent, as the columns say is what Parquet relies on.
#[test]
fn connections_that_completed_failed_and_timed_out() {
    let mut cell = cell("5%", "50KiB");
    cell.link_name = Some("the hill".to_owned());
    cell.link.forward = Direction {
        jitter: Duration::from_micros(1500),
        loss: "gemodel:1%/50%".parse().unwrap(),
        rate: None,
        queue: 200,
        ..cell.link.forward
    };
    let arms = [CLASSICAL, "x25519/ecdsa-p256/record_size=1400"];
    let mut experiment = experiment(&arms, vec![cell], 2);
    experiment.arms[1].name = "short records".to_owned();
    let mut samples = samples(&experiment);
    samples[1].rows[0].outcome = failed("reset, \"by peer\"");
    samples[1].rows[0].times.ttlb = None;
    samples[1].rows[1] = Row {
        outcome: Outcome::TimedOut,
        times: Times::default(),
        exchange: Exchange::default(),
        transport: TransportStats::default(),
        ..samples[1].rows[1].clone()
    };
    samples[1].engine.validity = Validity::Invalid("too busy".into());
    assert_snapshot!(csv(&experiment, &samples));
}

#[test]
fn names_are_unique_and_every_line_is_full() {
    let names: BTreeSet<_> = COLUMNS.iter().map(|column| column.name).collect();
    assert_eq!(names.len(), COLUMNS.len());

    let experiment = experiment(&[CLASSICAL, HYBRID], vec![cell("0%", "0B")], 3);
    let csv = csv(&experiment, &samples(&experiment));
    let mut reader = ::csv::Reader::from_reader(csv.as_bytes());
    assert_eq!(reader.records().map(Result::unwrap).count(), 6);
}

/// What a column of an experiment's first connection has, where an engine measured it.
fn field(experiment: &Experiment, engine: EngineName, name: &str) -> String {
    let samples = samples(experiment);
    let origin = Origin { engine, ..ORIGIN };
    let batch = Batch::new(origin, experiment, &samples[0]).unwrap();
    let column = COLUMNS.iter().find(|column| column.name == name).unwrap();
    let connection = batch.connections().next().unwrap();
    match column.value(&connection) {
        Value::Text(text) => text.into_owned(),
        value => format!("{value:?}"),
    }
}

#[test]
fn an_engine_says_what_it_emulates_with() {
    let experiment = experiment(&[CLASSICAL], vec![cell("0%", "0B")], 1);
    let field = |engine, name| field(&experiment, engine, name);
    assert_eq!(field(EngineName::Live, "emulation"), "link");
    assert_eq!(field(EngineName::Live, "cpu"), "Absent");
    assert_eq!(field(EngineName::Virtual, "emulation"), "netem");
    assert_eq!(field(EngineName::Virtual, "cpu"), "none");
}

#[test]
fn an_arm_over_quic_has_the_emulation_of_what_carries_it() {
    let emulation = |engine, quic_in| {
        let quic = "x25519/ecdsa-p256/transport=quic";
        let experiment = Experiment {
            quic_in,
            ..experiment(&[quic], vec![cell("0%", "0B")], 1)
        };
        field(&experiment, engine, "emulation")
    };
    assert_eq!(emulation(EngineName::Virtual, QuicIn::Model), "link");
    assert_eq!(emulation(EngineName::Virtual, QuicIn::Guest), "netem");
    assert_eq!(emulation(EngineName::Live, QuicIn::Guest), "link");
}

#[test]
fn a_sample_of_another_experiment_is_an_error() {
    let experiment = experiment(&[CLASSICAL], vec![cell("0%", "0B")], 1);
    let mut samples = samples(&experiment);
    samples[0].cell = 1;
    assert!(Batch::new(ORIGIN, &experiment, &samples[0]).is_err());
}

#[test]
fn what_parquet_can_not_hold_is_an_error() {
    let mut experiment = experiment(&[CLASSICAL], vec![cell("0%", "0B")], 1);
    experiment.seed.0 = u64::MAX;
    let samples = samples(&experiment);
    let batch = Batch::new(ORIGIN, &experiment, &samples[0]).unwrap();
    let mut writer = ParquetWriter::new(std::io::Cursor::new(Vec::new())).unwrap();
    let error = writer.write(&batch).unwrap_err().to_string();
    assert_eq!(
        error,
        "seed 18446744073709551615 is too large for Parquet: write CSV"
    );
}

#[test]
fn a_part_of_few_rows_holds_what_one_of_many_does() {
    let experiment = experiment(&[CLASSICAL, HYBRID], vec![cell("1%", "50KiB")], 3);
    for mut sample in samples(&experiment) {
        sample.rows[1].outcome = failed("reset");
        sample.rows[2].times = Times::default();
        let batch = Batch::new(ORIGIN, &experiment, &sample).unwrap();
        let written = |rows: usize| {
            let out = std::io::Cursor::new(Vec::new());
            let mut writer = ParquetWriter::of_part(out, rows).unwrap();
            writer.write(&batch).unwrap();
            writer.finish(&()).unwrap().into_inner()
        };
        let (few, many) = (written(3), written(1000));
        assert_ne!(few, many);
        for bytes in [few, many] {
            let rows = ParquetReader::of_bytes(bytes).unwrap().take(3).unwrap();
            assert_eq!(rows, sample.rows);
        }
    }
}

/// Parquet has such a field of the first row alone.
#[test]
fn what_is_no_row_s_own_is_common_to_all_rows() {
    let experiment = experiment(&[CLASSICAL, HYBRID], vec![cell("1%", "50KiB")], 3);
    for mut sample in samples(&experiment) {
        sample.rows[1].outcome = failed("reset");
        sample.rows[2] = Row {
            outcome: Outcome::TimedOut,
            times: Times::default(),
            exchange: Exchange::default(),
            transport: TransportStats::default(),
            ..sample.rows[2].clone()
        };
        let batch = Batch::new(ORIGIN, &experiment, &sample).unwrap();
        let connections: Vec<_> = batch.connections().collect();
        for column in COLUMNS.iter().filter(|column| column.is_common(&batch)) {
            let values: Vec<_> = connections.iter().map(|c| column.value(c)).collect();
            assert!(
                values.iter().all(|value| *value == values[0]),
                "{}: rows differ, so it is the row's own: .restored(...)",
                column.name
            );
        }
    }
}
