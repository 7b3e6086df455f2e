#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use lastbyte_exchange::Transfer;
use std::fs;
use std::time::Duration;

use lastbyte_sizes::Message;
use parquet::file::metadata::{ParquetMetaDataReader, ParquetMetaDataWriter, RowGroupMetaData};
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::arbitrary::row;
use crate::fixtures::{self, CLASSICAL, HYBRID, cell, failed};
use crate::rows::reseal;
use crate::{Cause, Outcome};

const ID: BlockId = BlockId {
    measure: 0,
    cell: 1,
    block: 3,
    arm: 1,
};

fn study() -> Study {
    let cells = vec![cell("0%", "0B"), cell("1%", "50KiB")];
    Study::single(
        "trees",
        fixtures::experiment(&[CLASSICAL, HYBRID], cells, 40),
    )
}

fn header(study: &Study, connections: Range<u32>) -> PartHeader {
    let samples = fixtures::samples(&study.measures[0].experiment);
    let environment = Environment {
        engine: EngineName::Live,
        command: vec!["lastbyte".to_owned(), "run".to_owned()],
        ..Environment::default()
    };
    PartHeader::new(
        study,
        ID,
        connections,
        "ab".repeat(32),
        samples[0].engine.clone(),
        environment,
    )
    .unwrap()
}

/// Rows 30 to 39 of a study.
fn part() -> (Study, Part) {
    let study = study();
    let header = header(&study, 30..40);
    let samples = fixtures::samples(&study.measures[0].experiment);
    let mut rows = samples[3].rows[30..].to_vec();
    for row in &mut rows {
        row.block = ID.block;
    }
    (study, Part { header, rows })
}

fn bytes(study: &Study, part: &Part) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_part(&mut bytes, &part.header, study, &part.rows).unwrap();
    bytes
}

fn read(bytes: &[u8]) -> Result<Part, PartError> {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("part.parquet");
    fs::write(&path, bytes).unwrap();
    read_part(&path)
}

#[test]
fn a_part_is_read_as_it_was_written() {
    let (study, part) = part();
    assert_eq!(read(&bytes(&study, &part)).unwrap(), part);
}

#[test]
fn a_part_without_rows_is_read_too() {
    let study = study();
    let header = header(&study, 0..0);
    let part = Part {
        header,
        rows: Vec::new(),
    };
    assert_eq!(read(&bytes(&study, &part)).unwrap(), part);
}

/// Files of earlier versions have no column of causes: here its name is another one.
#[test]
fn causes_of_earlier_versions_are_unknown() {
    let (study, mut part) = part();
    part.rows[2].outcome = failed("reset");
    let mut file = bytes(&study, &part);
    assert_eq!(read(&file).unwrap(), part);
    let name = "cause".as_bytes();
    for place in 0..file.len() - name.len() {
        if file[place..].starts_with(name) {
            file[place] = b'C';
        }
    }
    part.rows[2].outcome = Outcome::Failed {
        cause: Cause::Unknown,
        reason: "reset".to_owned(),
    };
    assert_eq!(read(&resealed(file)).unwrap(), part);
}

/// Every byte counts, and so does the end.
#[test]
fn a_damaged_part_is_told_in_one_line() {
    let (study, part) = part();
    let whole = bytes(&study, &part);
    let damaged = |bytes: &[u8]| {
        let error = read(bytes).unwrap_err();
        assert!(
            matches!(error.problem, PartProblem::Unreadable(Unreadable::Damaged)),
            "{error}"
        );
        let line = error.to_string();
        assert!(
            line.ends_with(
                "part.parquet\": it is incomplete or damaged: delete it and run again with --resume"
            ),
            "{line}"
        );
        assert!(
            line.starts_with("can't use \"") && !line.contains('\n'),
            "{line}"
        );
    };
    for length in [
        0,
        1,
        3,
        4,
        35,
        36,
        37,
        100,
        whole.len() / 2,
        whole.len() - 1,
    ] {
        damaged(&whole[..length]);
    }
    for place in (0..whole.len()).step_by(61) {
        let mut bytes = whole.clone();
        bytes[place] ^= 1;
        damaged(&bytes);
    }
    damaged(&[&whole[..], b"\n"].concat());
}

#[test]
fn what_lacks_a_file_is_told_as_the_system_does() {
    let error = read_part(Path::new("/nowhere/part.parquet")).unwrap_err();
    let line = error.to_string();
    assert!(line.contains("No such file or directory"), "{line}");
}

#[test]
fn rows_that_the_header_does_not_tell_of_are_refused() {
    let refused = |change: fn(&mut Part)| {
        let (study, mut part) = part();
        change(&mut part);
        let problem = read(&bytes(&study, &part)).unwrap_err().problem;
        assert!(matches!(problem, PartProblem::Rows), "{problem}");
    };
    refused(|part| part.header.first = 29);
    refused(|part| part.header.connections = 9);
    refused(|part| part.rows.swap(0, 1));
    refused(|part| part.rows[4].block = 2);
    refused(|part| part.rows.truncate(5));
}

#[test]
fn another_schema_is_refused() {
    let (study, mut part) = part();
    part.header.schema = "lastbyte.rows/2".to_owned();
    let line = read(&bytes(&study, &part)).unwrap_err().to_string();
    let told = "its schema is \"lastbyte.rows/2\", not \"lastbyte.rows/1\"";
    assert!(line.contains(told), "{line}");
}

#[test]
fn a_block_that_the_study_does_not_have_has_no_part() {
    let (study, mut part) = part();
    part.header.id.arm = 2;
    let error = write_part(Vec::new(), &part.header, &study, &part.rows).unwrap_err();
    assert!(error.to_string().contains("no arm"), "{error}");
}

/// Most of a part is the same in every row.
#[test]
fn a_part_is_small() {
    let study = study();
    let rows = fixtures::samples(&fixtures::experiment(
        &[HYBRID],
        vec![cell("0%", "50KiB")],
        100,
    ));
    let part = Part {
        header: header(&study, 0..100),
        rows: rows[0].rows.clone(),
    };
    let length = bytes(&study, &part).len();
    assert!(length < 40_000, "{length} bytes");
}

/// The seal is no signature.
fn resealed(mut file: Vec<u8>) -> Vec<u8> {
    reseal(&mut file);
    file
}

/// The file of a part, whose metadata tell of other row groups.
fn with_groups(
    whole: &[u8],
    change: impl Fn(&[RowGroupMetaData]) -> Vec<RowGroupMetaData>,
) -> Vec<u8> {
    let file = bytes::Bytes::copy_from_slice(whole);
    let metadata = ParquetMetaDataReader::new()
        .parse_and_finish(&file)
        .unwrap();
    let groups = change(metadata.row_groups());
    let metadata = metadata.into_builder().set_row_groups(groups);
    let length = u32::from_le_bytes(*whole[whole.len() - 8..].first_chunk().unwrap());
    let mut told = whole[..whole.len() - 8 - length as usize].to_vec();
    ParquetMetaDataWriter::new(&mut told, &metadata.build())
        .finish()
        .unwrap();
    resealed(told)
}

#[test]
fn rows_that_can_not_be_there_take_no_memory() {
    let (study, part) = part();
    let whole = bytes(&study, &part);
    let of = |group: &RowGroupMetaData, rows| {
        let group = group.clone().into_builder().set_num_rows(rows);
        group.build().unwrap()
    };
    let read = |rows| read(&with_groups(&whole, |groups| vec![of(&groups[0], rows)]));
    assert_eq!(read(10).unwrap(), part);
    for rows in [1 << 62, 1 << 33, 1 << 22, 8193, -1, i64::MIN] {
        let line = read(rows).unwrap_err().to_string();
        assert!(
            line.contains("it tells of more rows than it can hold"),
            "{rows}: {line}"
        );
    }
    for rows in [0, 9, 11, 8192] {
        let problem = read(rows).unwrap_err().problem;
        assert!(matches!(problem, PartProblem::Rows), "{rows}: {problem}");
    }
}

/// The library would pass over two billion truths that have no bytes, for as many fields as there are: minutes for these.
#[test]
fn headers_that_tell_of_what_has_no_bytes_take_no_time() {
    const TRUTHS: [u8; 7] = [0xf9, 0xf2, 0xff, 0xff, 0xff, 0xff, 0x07];
    let (study, part) = part();
    let whole = bytes(&study, &part);
    let end = whole.len() - 8;
    let length = u32::from_le_bytes(*whole[end..].first_chunk().unwrap());
    let file = bytes::Bytes::copy_from_slice(&whole);
    let metadata = ParquetMetaDataReader::new()
        .parse_and_finish(&file)
        .unwrap();
    let columns = metadata.row_group(0).columns().iter();
    let pages: Vec<_> = columns.map(|one| one.byte_range().0 as usize).collect();
    for places in [pages, vec![end - length as usize]] {
        let mut file = whole.clone();
        for place in places {
            file[place..place + 14].copy_from_slice(&[TRUTHS, TRUTHS].concat());
        }
        let line = read(&resealed(file)).unwrap_err().to_string();
        assert!(line.contains("it tells of more than it holds"), "{line}");
    }
}

/// Row groups that are all in one place would have what is there read once for each.
#[test]
fn no_bytes_are_of_many_columns() {
    let (study, part) = part();
    let whole = bytes(&study, &part);
    let groups = |count| {
        with_groups(&whole, |groups| {
            std::iter::repeat_n(groups[0].clone(), count).collect()
        })
    };
    assert_eq!(read(&groups(1)).unwrap(), part);
    let line = read(&groups(2)).unwrap_err().to_string();
    assert!(
        line.contains("it has columns in the place of others"),
        "{line}"
    );
}

/// What is summed up later can't be more than sums hold.
#[test]
fn what_no_connection_has_is_refused_in_one_line() {
    let told = |change: fn(&mut Part)| {
        let (study, mut part) = part();
        change(&mut part);
        let line = read(&bytes(&study, &part)).unwrap_err().to_string();
        assert!(!line.contains('\n'), "{line}");
        let (_, told) = line.split_once("part.parquet\": ").unwrap();
        told.split(':').next().unwrap().to_owned()
    };
    let late = |part: &mut Part| {
        part.rows[3].times.handshake = Some(Duration::from_nanos((1 << 53) + 1));
    };
    assert_eq!(
        told(late),
        "column handshake_ns holds 9007199254740993, which no connection has"
    );
    let large = |part: &mut Part| {
        let messages = &mut part.rows[3].exchange.handshake.messages;
        messages.set(Message::Certificate, Some((1 << 24) + 4));
    };
    assert_eq!(
        told(large),
        "column certificate_bytes holds 16777220, which no connection has"
    );
    let many =
        |part: &mut Part| part.rows[3].exchange.tickets = Some(Transfer::seen(u32::MAX as usize));
    assert_eq!(
        told(many),
        "column ticket_wire_bytes holds 4294967295, which no connection has"
    );
    let long = |part: &mut Part| part.header.report.emulator_cpu = Duration::MAX;
    assert_eq!(told(long), "what it says about its rows can't be read");
}

#[test]
fn a_long_reason_is_cut() {
    let (study, mut part) = part();
    part.rows[0].outcome = failed("é".repeat(10_000));
    let read = read(&bytes(&study, &part)).unwrap();
    assert_eq!(read.rows[0].outcome, failed("é".repeat(2048)));
}

proptest! {
    /// Whatever a file says that somebody has changed and sealed anew.
    #[test]
    fn a_change_under_a_new_seal_is_read_or_told_in_one_line(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        end in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let (study, part) = part();
        let mut file = bytes(&study, &part);
        for (place, byte) in changes {
            let place = place.index(file.len());
            file[place] = byte;
        }
        if let Some(end) = end {
            file.truncate(end.index(file.len()));
        }
        if let Err(error) = read(&resealed(file)) {
            prop_assert!(!error.to_string().contains('\n'), "{}", error);
        }
    }

    #[test]
    fn rows_are_read_as_they_were_written(rows in prop::collection::vec(row(), 0..20)) {
        let study = study();
        let part = Part {
            header: header(&study, 0..rows.len() as u32),
            rows: (rows.into_iter().enumerate())
                .map(|(index, row)| Row { index: index as u32, block: ID.block, ..row })
                .collect(),
        };
        prop_assert_eq!(read(&bytes(&study, &part)).unwrap(), part);
    }
}
