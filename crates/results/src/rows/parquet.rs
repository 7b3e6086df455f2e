//! Rows as Parquet, with a document about them in the file's metadata, under the key `lastbyte`.
//!
//! A seal stands between the file's first four bytes and its first column, where readers of Parquet
//! don't look: the SHA-256 of all that follows it. So a file that was not written to its end, or
//! has changed since, is known before anything in it is believed. It is no signature: anybody can make one. So what
//! such a file says is bounded by what [`ParquetWriter`] writes.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use lastbyte_link::visible;
use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::column::writer::ColumnWriterImpl;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{ChunkReader, FileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use super::described::descriptions;
use super::{Batch, COLUMNS, Column, Kind, Presence, Value};
use crate::Row;
use lastbyte_files::bounded_parquet::{BoundedParquet, Bounds, unless_it_panics};

/// Where the document is in the metadata.
const KEY: &str = "lastbyte";
/// And what each column holds.
const COLUMNS_KEY: &str = "columns";
/// Rows that are held in memory at most: those of a row group.
const GROUP: usize = 8192;
/// Rows of a part that is not worth packing.
const FEW: usize = 64;
/// Rows that get their fields, column by column, before the next ones do: all of a group would leave the processor's caches at
/// each column.
const AT_ONCE: usize = 256;
const MAGIC: &[u8; 4] = b"PAR1";
const SEAL: usize = 32;
/// No row group has more rows than are written into one, and no row takes less than a byte, as each has another index.
const BOUNDS: Bounds = Bounds {
    group_rows: GROUP as u64,
    rows_per_byte: 1,
    fields_per_byte: u64::MAX,
};
/// Bytes of a part that are read: far more than a block of the most connections has.
const MOST_PART: u64 = 1 << 28;
/// Bytes of a text that are kept. Reasons are sentences.
const MOST_TEXT: usize = 4096;

/// Writes rows as Parquet.
pub struct ParquetWriter<W: Write + Seek + Send>(Table<W>);

impl<W: Write + Seek + Send> ParquetWriter<W> {
    /// Begins a file at the beginning of `out`.
    ///
    /// # Errors
    ///
    /// When `out` can't be written.
    pub fn new(out: W) -> io::Result<Self> {
        Table::new(out, "connection", &COLUMNS, Packing::Whole).map(Self)
    }

    /// The same for a file that is soon merged with others, of so many rows.
    ///
    /// # Errors
    ///
    /// As [`ParquetWriter::new`].
    pub fn of_part(out: W, rows: usize) -> io::Result<Self> {
        let packing = if rows <= FEW {
            Packing::Plain
        } else {
            Packing::Whole
        };
        Table::new(out, "connection", &COLUMNS, packing).map(Self)
    }

    /// Has the file tell what each column holds, for readers that know nothing else of it.
    pub fn describe(&mut self) {
        self.0.describe(&COLUMNS);
    }

    /// Writes the connections of `batch`.
    ///
    /// # Errors
    ///
    /// When they can't be written, or a whole number needs more than 63 bits.
    pub fn write(&mut self, batch: &Batch<'_>) -> io::Result<()> {
        let mut connections = batch.connections();
        loop {
            let room = self.0.room()?;
            let some: Vec<_> = connections.by_ref().take(room).collect();
            let Some(first) = some.first() else {
                return Ok(());
            };
            for (column, buffer) in COLUMNS.iter().zip(&mut self.0.columns) {
                if column.is_common(batch) {
                    buffer.push(column.value(first))?;
                    buffer.repeat(some.len() - 1);
                } else {
                    for connection in &some {
                        buffer.push(column.value(connection))?;
                    }
                }
            }
        }
    }

    /// Writes what is still held back, and `about` as JSON.
    ///
    /// # Errors
    ///
    /// When it can't be written.
    pub fn finish(self, about: &impl Serialize) -> io::Result<W> {
        self.0.finish(about)
    }
}

/// What is done for a file to be small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packing {
    /// Fields are in dictionaries, and compressed; readers find the least and the greatest of each column.
    Whole,
    /// Nothing: of a few rows, all that takes longer than the rest of the writing, and than of the reading.
    Plain,
}

/// A table of some columns, written row group by row group.
pub(super) struct Table<W: Write + Seek + Send> {
    file: SerializedFileWriter<Sealed<W>>,
    /// As many as the columns, in their order.
    pub(super) columns: Vec<Buffer>,
}

impl<W: Write + Seek + Send> Table<W> {
    /// Begins a file at the beginning of `out`, each row of which is a `row`.
    pub(super) fn new<V>(
        out: W,
        row: &str,
        columns: &[Column<V>],
        packing: Packing,
    ) -> io::Result<Self> {
        let properties = WriterProperties::builder()
            .set_created_by(concat!("lastbyte ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_offset_index_disabled(true);
        let properties = match packing {
            Packing::Whole => properties
                .set_compression(Compression::SNAPPY)
                .set_statistics_enabled(EnabledStatistics::Chunk),
            Packing::Plain => properties
                .set_dictionary_enabled(false)
                .set_statistics_enabled(EnabledStatistics::None),
        };
        let properties = properties.build();
        let schema = schema(row, columns).map_err(into_io)?;
        let mut file = SerializedFileWriter::new(Sealed::new(out), schema, Arc::new(properties))
            .map_err(into_io)?;
        file.write_all(&[0; SEAL])?;
        Ok(Self {
            file,
            columns: columns.iter().map(Buffer::new).collect(),
        })
    }

    /// Has the file tell what each column holds.
    pub(super) fn describe<V>(&mut self, columns: &[Column<V>]) {
        let told = KeyValue::new(COLUMNS_KEY.to_owned(), descriptions(columns));
        self.file.append_key_value_metadata(told);
    }

    /// How many rows may be held back still; at least one.
    pub(super) fn room(&mut self) -> io::Result<usize> {
        if self.held() >= GROUP {
            self.write_group()?;
        }
        Ok(GROUP - self.held())
    }

    fn held(&self) -> usize {
        self.columns.first().map_or(0, |buffer| buffer.levels.len())
    }

    /// Writes what is still held back, and `about` as JSON.
    pub(super) fn finish(mut self, about: &impl Serialize) -> io::Result<W> {
        if self.held() > 0 {
            self.write_group()?;
        }
        let about = serde_json::to_string(about)?;
        self.file
            .append_key_value_metadata(KeyValue::new(KEY.to_owned(), about));
        self.file.into_inner().map_err(into_io)?.seal()
    }

    fn write_group(&mut self) -> io::Result<()> {
        let mut group = self.file.next_row_group().map_err(into_io)?;
        for buffer in &mut self.columns {
            buffer.write(&mut group).map_err(into_io)?;
            buffer.clear();
        }
        group.close().map_err(into_io)?;
        Ok(())
    }
}

/// The fields of one column, until they make a row group.
pub(super) struct Buffer {
    name: &'static str,
    presence: Presence,
    /// 1 for each field that is there, 0 for each that is absent.
    levels: Vec<i16>,
    values: Values,
}

enum Values {
    Text(Vec<ByteArray>),
    Whole(Vec<i64>),
    Fraction(Vec<f64>),
    Truth(Vec<bool>),
}

impl Buffer {
    fn new<V>(column: &Column<V>) -> Self {
        Self {
            name: column.name,
            presence: column.presence,
            levels: Vec::new(),
            values: match column.kind {
                Kind::Text => Values::Text(Vec::new()),
                Kind::Whole => Values::Whole(Vec::new()),
                Kind::Fraction => Values::Fraction(Vec::new()),
                Kind::Truth => Values::Truth(Vec::new()),
            },
        }
    }

    /// Has one more field.
    pub(super) fn push(&mut self, value: Value<'_>) -> io::Result<()> {
        let level = match (&mut self.values, value) {
            (_, Value::Absent) => 0,
            (Values::Text(texts), Value::Text(text)) => {
                let same = texts.last().filter(|last| last.data() == text.as_bytes());
                let text = same.cloned().unwrap_or_else(|| text.as_ref().into());
                texts.push(text);
                1
            }
            (Values::Whole(numbers), Value::Whole(number)) => {
                numbers.push(i64::try_from(number).map_err(|_| {
                    io::Error::other(format!(
                        "{} {number} is too large for Parquet: write CSV",
                        self.name
                    ))
                })?);
                1
            }
            (Values::Fraction(numbers), Value::Fraction(number)) => {
                numbers.push(number);
                1
            }
            (Values::Truth(truths), Value::Truth(truth)) => {
                truths.push(truth);
                1
            }
            (_, value) => {
                return Err(io::Error::other(format!(
                    "{value:?} is not for column {}",
                    self.name
                )));
            }
        };
        self.levels.push(level);
        Ok(())
    }

    /// Has the last field so many times more.
    pub(super) fn repeat(&mut self, times: usize) {
        fn again<T: Clone>(values: &mut Vec<T>, times: usize) {
            if let Some(last) = values.last().cloned() {
                values.resize(values.len() + times, last);
            }
        }
        if self.levels.last() == Some(&1) {
            match &mut self.values {
                Values::Text(values) => again(values, times),
                Values::Whole(values) => again(values, times),
                Values::Fraction(values) => again(values, times),
                Values::Truth(values) => again(values, times),
            }
        }
        again(&mut self.levels, times);
    }

    fn write<W: Write + Send>(
        &self,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<(), ParquetError> {
        let Some(mut out) = group.next_column()? else {
            return Ok(());
        };
        match &self.values {
            Values::Text(values) => self.put(out.typed::<ByteArrayType>(), values)?,
            Values::Whole(values) => self.put(out.typed::<Int64Type>(), values)?,
            Values::Fraction(values) => self.put(out.typed::<DoubleType>(), values)?,
            Values::Truth(values) => self.put(out.typed::<BoolType>(), values)?,
        }
        out.close()
    }

    fn put<T: DataType>(
        &self,
        out: &mut ColumnWriterImpl<'_, T>,
        values: &[T::T],
    ) -> Result<(), ParquetError> {
        let levels = match self.presence {
            Presence::Required => None,
            Presence::Optional => Some(self.levels.as_slice()),
        };
        out.write_batch(values, levels, None)?;
        Ok(())
    }

    fn clear(&mut self) {
        self.levels.clear();
        match &mut self.values {
            Values::Text(values) => values.clear(),
            Values::Whole(values) => values.clear(),
            Values::Fraction(values) => values.clear(),
            Values::Truth(values) => values.clear(),
        }
    }
}

fn schema<V>(row: &str, columns: &[Column<V>]) -> Result<TypePtr, ParquetError> {
    let fields = columns.iter().map(|column| {
        let (physical, logical) = column.kind.types();
        Type::primitive_type_builder(column.name, physical)
            .with_logical_type(logical)
            .with_repetition(match column.presence {
                Presence::Required => Repetition::REQUIRED,
                Presence::Optional => Repetition::OPTIONAL,
            })
            .build()
            .map(Arc::new)
    });
    let schema = Type::group_type_builder(row).with_fields(fields.collect::<Result<_, _>>()?);
    schema.build().map(Arc::new)
}

impl Kind {
    fn types(self) -> (PhysicalType, Option<LogicalType>) {
        match self {
            Kind::Text => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
            Kind::Whole => (PhysicalType::INT64, None),
            Kind::Fraction => (PhysicalType::DOUBLE, None),
            Kind::Truth => (PhysicalType::BOOLEAN, None),
        }
    }
}

/// Hashes what is written behind the seal.
struct Sealed<W> {
    out: W,
    /// Bytes still to come that are before the seal's end.
    before: usize,
    hash: Sha256,
}

impl<W: Write + Seek> Sealed<W> {
    fn new(out: W) -> Self {
        Self {
            out,
            before: MAGIC.len() + SEAL,
            hash: Sha256::new(),
        }
    }

    fn seal(mut self) -> io::Result<W> {
        self.out.seek(SeekFrom::Start(MAGIC.len() as u64))?;
        self.out.write_all(&self.hash.finalize())?;
        self.out.flush()?;
        Ok(self.out)
    }
}

impl<W: Write> Write for Sealed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        let before = self.before.min(written);
        self.before -= before;
        self.hash
            .update(bytes.get(before..written).unwrap_or_default());
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
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

/// Reads the rows of a Parquet file that [`ParquetWriter`] wrote.
pub(crate) struct ParquetReader {
    file: Box<dyn FileReader>,
    /// Of all row groups.
    rows: u64,
    /// The columns that make a row, with their places in the file.
    columns: Vec<(usize, &'static Column)>,
    /// The row group that is opened next.
    next: usize,
    /// Rows of the last one that nobody has taken yet.
    left: usize,
    /// Its columns.
    open: Vec<(&'static Column, ColumnReader)>,
}

/// Why rows can't be had from a file.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// The system says so.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The seal does not fit what follows it.
    #[error("it is incomplete or damaged")]
    Damaged,
    /// It holds what this version of Lastbyte does not write.
    #[error("{0}")]
    Foreign(String),
}

impl ParquetReader {
    pub(crate) fn open(path: &Path) -> Result<Self, Unreadable> {
        let mut file = lastbyte_files::open(path)?;
        check_seal(&mut file)?;
        Self::of(file)
    }

    /// The same of a small file, which is read whole: one by one, its columns would take several system calls each.
    pub(crate) fn read(path: &Path) -> Result<Self, Unreadable> {
        Self::of_bytes(lastbyte_files::read(path, MOST_PART)?)
    }

    /// The same of the bytes of a file.
    pub(crate) fn of_bytes(bytes: Vec<u8>) -> Result<Self, Unreadable> {
        check_seal(&mut bytes.as_slice())?;
        Self::of(Bytes::from(bytes))
    }

    fn of(file: impl ChunkReader + 'static) -> Result<Self, Unreadable> {
        unless_it_panics(|| {
            let file = BoundedParquet::new(file, BOUNDS)?;
            let mut columns = Vec::new();
            for column in COLUMNS.iter().filter(|column| column.is_restored()) {
                let schema = file.metadata().file_metadata().schema_descr();
                let place = schema.columns().iter().position(|found| {
                    found.path().parts() == [column.name] && found.max_rep_level() == 0
                });
                match (place, column.presence) {
                    (Some(place), _) => columns.push((place, column)),
                    // Of an earlier version.
                    (None, Presence::Optional) => {}
                    (None, Presence::Required) => return Err(column.missing()),
                }
            }
            let rows = file.rows();
            Ok(Self {
                file: Box::new(file),
                rows,
                columns,
                next: 0,
                left: 0,
                open: Vec::new(),
            })
        })
        .unwrap_or(Err(Unreadable::Damaged))
    }

    /// The document about the rows.
    pub(crate) fn about<T: DeserializeOwned>(&self) -> Result<T, Unreadable> {
        let metadata = self.file.metadata().file_metadata();
        let text = metadata
            .key_value_metadata()
            .into_iter()
            .flatten()
            .find(|pair| pair.key == KEY)
            .and_then(|pair| pair.value.as_deref())
            .ok_or_else(|| Unreadable::Foreign("it says nothing about its rows".to_owned()))?;
        serde_json::from_str(text).map_err(|error| {
            // It may have a text of the file's in it.
            let error = visible(&error.to_string());
            Unreadable::Foreign(format!(
                "what it says about its rows can't be read: {error}"
            ))
        })
    }

    /// How many rows there are in all row groups.
    pub(crate) fn count(&self) -> u64 {
        self.rows
    }

    /// The next rows, at most so many: fewer only where there are no more.
    pub(crate) fn take(&mut self, most: usize) -> Result<Vec<Row>, Unreadable> {
        // Before there is anything to fill it with, it is no larger than a group.
        let mut rows = Vec::with_capacity(most.min(GROUP));
        unless_it_panics(|| {
            while rows.len() < most {
                if self.left == 0 && !self.open_next()? {
                    break;
                }
                let from = rows.len();
                let some = self.left.min(most - from).min(AT_ONCE);
                rows.resize_with(from + some, Row::default);
                let some_rows = rows.get_mut(from..).unwrap_or_default();
                for (column, reader) in &mut self.open {
                    column.read(reader, some_rows)?;
                }
                self.left -= some;
            }
            Ok(())
        })
        .unwrap_or(Err(Unreadable::Damaged))?;
        Ok(rows)
    }

    /// Opens the next row group; false if there is none.
    fn open_next(&mut self) -> Result<bool, Unreadable> {
        if self.next >= self.file.num_row_groups() {
            return Ok(false);
        }
        let group = self.file.get_row_group(self.next)?;
        self.next += 1;
        self.left = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
        self.open.clear();
        for (place, column) in &self.columns {
            self.open.push((column, group.get_column_reader(*place)?));
        }
        Ok(true)
    }
}

impl Column {
    /// Gives `rows` what the next fields of the column say.
    fn read(&self, reader: &mut ColumnReader, rows: &mut [Row]) -> Result<(), Unreadable> {
        match (self.kind, reader) {
            (Kind::Text, ColumnReader::ByteArrayColumnReader(reader)) => {
                self.restore(reader, rows, |text| {
                    let text = text.as_utf8().ok()?;
                    let end = text.floor_char_boundary(MOST_TEXT);
                    text.get(..end).map(Value::from)
                })
            }
            (Kind::Whole, ColumnReader::Int64ColumnReader(reader)) => {
                self.restore(reader, rows, |number| {
                    u64::try_from(*number).ok().map(Value::Whole)
                })
            }
            (Kind::Fraction, ColumnReader::DoubleColumnReader(reader)) => {
                self.restore(reader, rows, |number| Some(Value::Fraction(*number)))
            }
            (Kind::Truth, ColumnReader::BoolColumnReader(reader)) => {
                self.restore(reader, rows, |truth| Some(Value::Truth(*truth)))
            }
            _ => Err(Unreadable::Foreign(format!(
                "column {} has another type",
                self.name
            ))),
        }
    }

    fn restore<T: DataType>(
        &self,
        reader: &mut ColumnReaderImpl<T>,
        rows: &mut [Row],
        value: impl for<'v> Fn(&'v T::T) -> Option<Value<'v>>,
    ) -> Result<(), Unreadable> {
        let mut levels = Vec::new();
        let mut values = Vec::new();
        let (records, present, _) =
            reader.read_records(rows.len(), Some(&mut levels), None, &mut values)?;
        if records != rows.len() {
            return Err(self.missing());
        }
        if present == 0 {
            return Ok(());
        }
        // Without levels, every row has a field.
        let there = levels
            .iter()
            .map(|level| *level > 0)
            .chain(std::iter::repeat(true));
        let rows = rows.iter_mut().zip(there);
        let rows = rows.filter_map(|(row, there)| there.then_some(row));
        for (row, field) in rows.zip(values.iter().take(present)) {
            value(field)
                .and_then(|value| self.give_back(row, value))
                .ok_or_else(|| {
                    Unreadable::Foreign(format!(
                        "column {} holds {field:?}, which no connection has",
                        self.name
                    ))
                })?;
        }
        Ok(())
    }

    fn missing(&self) -> Unreadable {
        Unreadable::Foreign(format!("column {} is missing", self.name))
    }
}

fn check_seal(file: &mut impl Read) -> Result<(), Unreadable> {
    let mut start = [0; MAGIC.len() + SEAL];
    file.read_exact(&mut start)
        .map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => Unreadable::Damaged,
            _ => Unreadable::Io(error),
        })?;
    let mut hash = Sha256::new();
    let mut piece = vec![0; 1 << 16];
    loop {
        match file.read(&mut piece)? {
            0 => break,
            count => hash.update(piece.get(..count).unwrap_or_default()),
        }
    }
    let sealed = start.starts_with(MAGIC) && start.ends_with(&hash.finalize());
    sealed.then_some(()).ok_or(Unreadable::Damaged)
}

/// Makes the seal of a file anew, as anybody can.
#[cfg(any(test, feature = "fixtures"))]
pub fn reseal(file: &mut [u8]) {
    if let Some((start, sealed)) = file.split_at_mut_checked(MAGIC.len() + SEAL)
        && let Some((magic, seal)) = start.split_at_mut_checked(MAGIC.len())
    {
        magic.copy_from_slice(MAGIC);
        seal.copy_from_slice(&Sha256::digest(sealed));
    }
}

impl From<ParquetError> for Unreadable {
    fn from(error: ParquetError) -> Self {
        Unreadable::Foreign(error.to_string())
    }
}
