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
        .map(|content| match content.starts_with(b"PAR1") {
            true => parquet(content).unwrap_err(),
            false => csv(content).unwrap_err(),
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
            parquet(&written(numbers, rows)).unwrap_err(),
            "Parquet error: it tells of more rows than it can hold"
        );
    }
    assert_eq!(
        parquet(&written("message m { required binary class (STRING); }", 2)).unwrap_err(),
        "column \"class\" holds bytes, or a text of more than 1024"
    );
    assert_eq!(
        parquet(&written("message m { repeated int64 rtts; }", 2)).unwrap_err(),
        "column \"rtts\" is no column of plain values"
    );
}
