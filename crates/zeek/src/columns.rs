//! Connections as Parquet, for those who count with SQL.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lastbyte_files::Draft;
use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as PhysicalType};
use parquet::column::writer::ColumnWriterImpl;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};

use crate::handshake::Carrier;
use crate::handshake::Handshake;
use crate::join::{Connection, SslPart};
use crate::servers::Names;
use crate::tally::verdict;

/// Rows of a row group, which is what memory holds.
const GROUP: usize = 32 << 10;
/// Row groups of a file, so that several readers have something to do.
const GROUPS: usize = 32;

/// The counts of [`crate::Survey`] from these files, in SQL.
pub const SQL: &str = include_str!("../sql/counts.sql");

/// A folder of Parquet files: `connections-0000.parquet` and so on.
pub struct ParquetFolder {
    folder: PathBuf,
    names: Names,
    columns: Vec<Column>,
    out: Option<Out>,
    files: usize,
}

/// The file that is written.
struct Out {
    draft: Draft,
    writer: SerializedFileWriter<BufWriter<File>>,
    groups: usize,
}

struct Column {
    name: &'static str,
    optional: bool,
    values: Values,
    /// 1 for each field that is there, 0 for each that is absent.
    levels: Vec<i16>,
}

enum Values {
    Text(Vec<ByteArray>),
    Whole(Vec<i64>),
    Time(Vec<i64>),
    Truth(Vec<bool>),
}

/// One field.
enum Value<'a> {
    Uid(String),
    Text(Option<&'a str>),
    Whole(Option<u64>),
    Time(Option<i64>),
    Truth(bool),
}

impl ParquetFolder {
    /// Begins in a folder that is empty or is not there yet.
    ///
    /// # Errors
    ///
    /// When it can't be made, or is not empty.
    pub fn new(folder: &Path, names: Names) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        if folder.read_dir()?.next().is_some() {
            return Err(io::Error::other("it is not empty: name another folder"));
        }
        Ok(ParquetFolder {
            folder: folder.to_owned(),
            names,
            columns: columns(names),
            out: None,
            files: 0,
        })
    }

    pub(crate) fn write(
        &mut self,
        connection: &Connection,
        ssl: &SslPart,
        name: Option<&str>,
    ) -> io::Result<()> {
        let values = values(connection, ssl, name);
        let count = match self.names {
            Names::Kept => values.len(),
            Names::LeftOut => values.len() - 1,
        };
        for (column, value) in self.columns.iter_mut().zip(values.into_iter().take(count)) {
            column.push(value);
        }
        if self.buffered() >= GROUP {
            self.group()?;
        }
        Ok(())
    }

    /// Writes what is left. A folder of no connections has one file all the same.
    ///
    /// # Errors
    ///
    /// When it can't be written.
    pub fn finish(mut self) -> io::Result<()> {
        if self.buffered() > 0 || self.files == 0 {
            self.group()?;
        }
        self.close()
    }

    fn buffered(&self) -> usize {
        self.columns.first().map_or(0, |column| column.levels.len())
    }

    fn group(&mut self) -> io::Result<()> {
        let mut out = match self.out.take() {
            Some(out) => out,
            None => self.begin()?,
        };
        let mut group = out.writer.next_row_group().map_err(into_io)?;
        for column in &mut self.columns {
            column.write(&mut group).map_err(into_io)?;
        }
        group.close().map_err(into_io)?;
        out.groups += 1;
        let is_full = out.groups == GROUPS;
        self.out = Some(out);
        if is_full { self.close() } else { Ok(()) }
    }

    fn begin(&mut self) -> io::Result<Out> {
        let name = format!("connections-{:04}.parquet", self.files);
        self.files += 1;
        let mut draft = Draft::new(&self.folder.join(name))?;
        let file = BufWriter::new(draft.file().try_clone()?);
        let properties = WriterProperties::builder()
            .set_created_by(concat!("lastbyte ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_compression(Compression::SNAPPY)
            .build();
        let schema = schema(&self.columns).map_err(into_io)?;
        let writer = SerializedFileWriter::new(file, schema, Arc::new(properties));
        Ok(Out {
            draft,
            writer: writer.map_err(into_io)?,
            groups: 0,
        })
    }

    fn close(&mut self) -> io::Result<()> {
        if let Some(out) = self.out.take() {
            let file = out.writer.into_inner().map_err(into_io)?;
            file.into_inner().map_err(io::IntoInnerError::into_error)?;
            out.draft.keep()?;
        }
        Ok(())
    }
}

/// As [`values`] has them. The last is left out where names are.
fn columns(names: Names) -> Vec<Column> {
    let text = || Values::Text(Vec::new());
    let whole = || Values::Whole(Vec::new());
    let truth = || Values::Truth(Vec::new());
    let mut columns = vec![
        ("uid", false, text()),
        ("ts", true, Values::Time(Vec::new())),
        ("version", false, text()),
        ("quic", false, truth()),
        ("established", false, truth()),
        ("handshake", true, text()),
        ("class", false, text()),
        ("joined", false, truth()),
        ("usable", false, truth()),
        ("state", true, text()),
        ("orig_bytes", true, whole()),
        ("resp_bytes", true, whole()),
        ("duration_us", true, whole()),
        ("tcp_rtt_us", true, whole()),
        ("client_handshake_bytes", true, whole()),
        ("server_handshake_bytes", true, whole()),
    ];
    if names == Names::Kept {
        columns.push(("server_name", true, text()));
    }
    let columns = columns.into_iter().map(|(name, optional, values)| Column {
        name,
        optional,
        values,
        levels: Vec::new(),
    });
    columns.collect()
}

fn values<'a>(connection: &Connection, ssl: &SslPart, name: Option<&'a str>) -> [Value<'a>; 17] {
    let conn = connection.conn.as_ref();
    let ours = connection.ours.as_ref();
    let verdict = verdict(ssl, conn);
    // The uid itself leads into other logs of the same network.
    let uid = format!("{:016x}", connection.uid.0);
    [
        Value::Uid(uid),
        Value::Time(ssl.time.map(std::num::NonZeroI64::get)),
        Value::Text(Some(ssl.version.name())),
        Value::Truth(verdict.carrier == Carrier::Quic),
        Value::Truth(ssl.established),
        Value::Text(verdict.handshake.map(Handshake::name)),
        Value::Text(Some(ssl.class.name())),
        Value::Truth(conn.is_some()),
        Value::Truth(verdict.usable),
        Value::Text(conn.and_then(|conn| conn.state.name())),
        Value::Whole(conn.and_then(|conn| conn.sent).map(|amount| amount.get())),
        Value::Whole(
            conn.and_then(|conn| conn.received)
                .map(|amount| amount.get()),
        ),
        Value::Whole(
            conn.and_then(|conn| conn.duration)
                .map(|amount| amount.get()),
        ),
        Value::Whole(ours.and_then(|ours| ours.rtt).map(|amount| amount.get())),
        Value::Whole(
            ours.and_then(|ours| ours.client_bytes)
                .map(|amount| amount.get()),
        ),
        Value::Whole(
            ours.and_then(|ours| ours.server_bytes)
                .map(|amount| amount.get()),
        ),
        Value::Text(name),
    ]
}

impl Column {
    fn push(&mut self, value: Value<'_>) {
        let is_there = match (&mut self.values, value) {
            (Values::Text(values), Value::Uid(uid)) => {
                values.push(uid.into_bytes().into());
                true
            }
            (Values::Text(values), Value::Text(Some(text))) => {
                let same = values.last().filter(|last| last.data() == text.as_bytes());
                let text = same.cloned().unwrap_or_else(|| text.into());
                values.push(text);
                true
            }
            // More than 63 bits are nobody's bytes.
            (Values::Whole(values), Value::Whole(Some(number))) => {
                values.push(i64::try_from(number).unwrap_or(i64::MAX));
                true
            }
            (Values::Time(values), Value::Time(Some(micros))) => {
                values.push(micros);
                true
            }
            (Values::Truth(values), Value::Truth(truth)) => {
                values.push(truth);
                true
            }
            _ => false,
        };
        self.levels.push(i16::from(is_there));
    }

    fn write<W: io::Write + Send>(
        &mut self,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<(), ParquetError> {
        let Some(mut out) = group.next_column()? else {
            return Ok(());
        };
        let levels = self.optional.then_some(self.levels.as_slice());
        match &mut self.values {
            Values::Text(values) => put(out.typed::<ByteArrayType>(), values, levels)?,
            Values::Whole(values) | Values::Time(values) => {
                put(out.typed::<Int64Type>(), values, levels)?;
            }
            Values::Truth(values) => put(out.typed::<BoolType>(), values, levels)?,
        }
        self.levels.clear();
        out.close()
    }

    fn schema(&self) -> Result<TypePtr, ParquetError> {
        let (physical, logical) = match self.values {
            Values::Text(_) => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
            Values::Whole(_) => (PhysicalType::INT64, None),
            Values::Time(_) => {
                let time = LogicalType::timestamp(true, TimeUnit::MICROS);
                (PhysicalType::INT64, Some(time))
            }
            Values::Truth(_) => (PhysicalType::BOOLEAN, None),
        };
        Type::primitive_type_builder(self.name, physical)
            .with_logical_type(logical)
            .with_repetition(if self.optional {
                Repetition::OPTIONAL
            } else {
                Repetition::REQUIRED
            })
            .build()
            .map(Arc::new)
    }
}

fn put<T: DataType>(
    out: &mut ColumnWriterImpl<'_, T>,
    values: &mut Vec<T::T>,
    levels: Option<&[i16]>,
) -> Result<(), ParquetError> {
    out.write_batch(values, levels, None)?;
    values.clear();
    Ok(())
}

fn schema(columns: &[Column]) -> Result<TypePtr, ParquetError> {
    let fields: Result<_, _> = columns.iter().map(Column::schema).collect();
    let schema = Type::group_type_builder("connection").with_fields(fields?);
    schema.build().map(Arc::new)
}

/// Keeps what the system says, such as that a disk is full.
fn into_io(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(error) => io::Error::other(error),
        },
        error => io::Error::other(error),
    }
}
