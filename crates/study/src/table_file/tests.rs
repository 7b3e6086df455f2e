#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use ::parquet::column::writer::ColumnWriter;
use ::parquet::file::metadata::{ParquetMetaDataReader, ParquetMetaDataWriter};
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::parser::parse_message_type;

use super::*;

#[test]
fn columns_of_a_csv_file() {
    let columns =
        csv(b"\xef\xbb\xbf# measured in May\nrtt, class\n 5ms,near\n70ms,\"far, far\"\n").unwrap();
    assert_eq!(
        columns[0],
        ("rtt".to_owned(), vec!["5ms".to_owned(), "70ms".to_owned()])
    );
    assert_eq!(columns[1].1, ["near", "far, far"]);
}

#[test]
fn what_is_no_table() {
    insta::assert_snapshot!(
        [
            &b"a,b\n1\n"[..],
            b"a,b\n1,2,3\n",
            b"a\n\xff\xfe\n",
            b"PAR1 and no more"
        ]
        .map(|content| if content.starts_with(b"PAR1") {
            parquet(content).unwrap_err().to_string()
        } else {
            csv(content).unwrap_err().to_string()
        })
        .join("\n")
    );
    assert_eq!(csv(b"").unwrap(), []);
}

/// A file of so many rows of this column, and of the rows that it tells of.
fn written(schema: &str, rows: i64) -> Vec<u8> {
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut file = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut file, schema, Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    while let Some(mut column) = group.next_column().unwrap() {
        match column.untyped() {
            ColumnWriter::Int64ColumnWriter(out) => {
                out.write_batch(&[5, 70], Some(&[1, 1]), Some(&[0, 0]))
                    .unwrap();
            }
            ColumnWriter::ByteArrayColumnWriter(out) => {
                let texts = ["near".into(), "x".repeat(2000).as_str().into()];
                out.write_batch(&texts, None, None).unwrap();
            }
            _ => unreachable!(),
        }
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
    let metadata = ParquetMetaDataReader::new()
        .parse_and_finish(&bytes::Bytes::copy_from_slice(&file))
        .unwrap();
    let length = u32::from_le_bytes(*file[file.len() - 8..].first_chunk().unwrap());
    file.truncate(file.len() - 8 - length as usize);
    let group = metadata.row_group(0).clone().into_builder();
    let group = group.set_num_rows(rows).build().unwrap();
    let metadata = metadata.into_builder().set_row_groups(vec![group]).build();
    ParquetMetaDataWriter::new(&mut file, &metadata)
        .finish()
        .unwrap();
    file
}

#[test]
fn a_table_is_no_larger_than_its_file() {
    let numbers = "message m { optional int64 rtt_ms; }";
    let columns = parquet(&written(numbers, 2)).unwrap();
    assert_eq!(
        columns,
        [("rtt_ms".to_owned(), vec!["5".to_owned(), "70".to_owned()])]
    );
    for rows in [1 << 62, 1 << 33, 1 << 22, -1] {
        assert_eq!(
            parquet(&written(numbers, rows)).unwrap_err().to_string(),
            "Parquet error: it tells of more rows than it can hold"
        );
    }
    assert_eq!(
        parquet(&written("message m { required binary class (STRING); }", 2))
            .unwrap_err()
            .to_string(),
        "column \"class\" holds bytes, or a text of more than 1024"
    );
    assert_eq!(
        parquet(&written("message m { repeated int64 rtts; }", 2))
            .unwrap_err()
            .to_string(),
        "column \"rtts\" is no column of plain values"
    );
}

/// A file of no rows, each node of whose schema has so many children: none with a name.
fn of_schema(children: &[u32]) -> Vec<u8> {
    fn varint(bytes: &mut Vec<u8>, mut number: u32) {
        while number > 0x7f {
            bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        bytes.push(number as u8);
    }
    let mut file = b"PAR1".to_vec();
    // The version, and a list of structs.
    file.extend([0x15, 2, 0x19, 0xfc]);
    varint(&mut file, children.len() as u32);
    for children in children {
        file.extend([0x15, 2, 0x25, 2, 0x18, 0, 0x15]);
        varint(&mut file, children << 1);
        file.push(0);
    }
    // No rows, in no row groups.
    file.extend([0x16, 0, 0x19, 0x0c, 0]);
    let length = file.len() as u32 - 4;
    file.extend(length.to_le_bytes());
    file.extend(b"PAR1");
    file
}

/// The library makes room for children before it has seen any, and calls itself for each column in another: both would end
/// the program.
#[test]
fn a_schema_is_as_wide_and_as_deep_as_it_can_be() {
    let told = |children: &[u32]| parquet(&of_schema(children)).unwrap_err().to_string();
    // As many beside each other as you like.
    assert_eq!(
        parquet(&of_schema(&[&[300][..], &[0; 300]].concat()))
            .unwrap()
            .len(),
        300
    );
    let deep = |nodes: usize| [vec![1; nodes], vec![0]].concat();
    assert_eq!(
        told(&deep(24)),
        "column \".......................\" is no column of plain values"
    );
    assert_eq!(
        told(&deep(100_000)),
        "Parquet error: its columns are more than 24 deep in each other"
    );
    assert_eq!(
        told(&[0x3fff_ffff, 0]),
        "Parquet error: it tells of more than it holds"
    );
}

/// As spreadsheets of other languages, editors of Windows and old ones write a table.
#[test]
fn a_table_is_the_same_however_it_is_written() {
    let plain = "rtt_ms,class\n9.5,near\n70,far\n";
    let expected = csv(plain.as_bytes()).unwrap();
    let tabs = plain.replace(',', "\t");
    let marked: Vec<u16> = format!("\u{feff}{tabs}").encode_utf16().collect();
    for content in [
        plain.replace(',', ";").into_bytes(),
        tabs.into_bytes(),
        plain.replace('\n', "\r").into_bytes(),
        plain.replace('\n', "\r\n").into_bytes(),
        format!(
            "\u{feff}# a comment, with a comma\n\n{}",
            plain.replace(',', ";")
        )
        .into_bytes(),
        marked
            .iter()
            .flat_map(|letter| letter.to_le_bytes())
            .collect(),
        marked
            .iter()
            .flat_map(|letter| letter.to_be_bytes())
            .collect(),
    ] {
        assert_eq!(
            csv(&content).unwrap(),
            expected,
            "{:?}",
            String::from_utf8_lossy(&content)
        );
    }
}

#[test]
fn numbers_are_written_in_many_ways() {
    for (written, meant) in [
        ("9.5", "9.5"),
        ("9,5", "9.5"),
        ("9,5 ms", "9.5 ms"),
        ("-0,25", "-0.25"),
        ("400000.0", "400000.0"),
        ("1.234,5", "1234.5"),
        ("1,234.5", "1234.5"),
        ("1,234,567", "1234567"),
        ("1\u{a0}234,5", "1234.5"),
        ("1'234.5ms", "1234.5ms"),
        ("0,125", "0.125"),
        ("Paris, France", "Paris, France"),
        ("1e3", "1e3"),
        ("", ""),
    ] {
        assert_eq!(number(written).unwrap(), meant, "{written}");
    }
    let refused = number("1,234").unwrap_err().to_string();
    assert!(
        refused.contains("may have decimals or thousands"),
        "{refused}"
    );
}

#[test]
fn a_file_tells_what_its_marks_mean() {
    let cells = |content: &str| {
        let (_, rows) = rows(content.as_bytes()).map_err(|error| error.to_string())?;
        let cells = rows.into_iter().flat_map(|(_, cells)| cells);
        let read = cells.map(|cell| number(&cell).map(|read| read.into_owned()));
        read.collect::<Result<Vec<_>, _>>()
            .map_err(|error| error.to_string())
    };
    let ok = |read: &[&str]| Ok(read.iter().map(|cell| (*cell).to_owned()).collect());
    for (content, read) in [
        ("a;b\n35,5;1.234\n", ok(&["35.5", "1234"])),
        ("a;b\n35,5 ms;1.234 ms\n", ok(&["35.5 ms", "1234 ms"])),
        ("a;b\n1.234,5;1,234\n", ok(&["1234.5", "1.234"])),
        ("a;b\n1.234.567;1.234\n", ok(&["1234567", "1234"])),
        ("a\tb\n35,5\t1.234\n", ok(&["35.5", "1234"])),
        ("a;b\n35.5;1.234\n", ok(&["35.5", "1.234"])),
        ("a,b\n9.5,\"1,234\"\n", ok(&["9.5", "1234"])),
        ("a,b\n\"9,5\",1.234\n", ok(&["9.5", "1234"])),
        // Where nothing tells, a comma or a tab between cells leaves points to decimals.
        ("a,b\n1.234,7\n", ok(&["1.234", "7"])),
        ("a\tb\n1.234\t7\n", ok(&["1.234", "7"])),
        ("a;b\n0.234;1234.567\n", ok(&["0.234", "1234.567"])),
        ("a;b\nv1.234;7\n", ok(&["v1.234", "7"])),
    ] {
        assert_eq!(cells(content), read, "{content:?}");
    }
    for (content, place) in [
        ("a;b\n7;8\n9;1.234\n", "line 3: \"1.234\" may have"),
        ("a;b\n35,5;9.5\n9;1.234\n", "line 3: \"1.234\" may have"),
        (
            "a,b\n7,\"1,234\"\n",
            "\"1,234\" may have decimals or thousands",
        ),
    ] {
        let said = cells(content).unwrap_err();
        assert!(said.starts_with(place), "{content:?}: {said}");
    }
}
