//! Tables in files of the user's: names of columns, and cells as texts.

use std::borrow::Cow;

use parquet::file::reader::FileReader;
use parquet::record::Field;
use thiserror::Error;

use lastbyte_files::bounded_parquet::{BoundedParquet, Bounds, unless_it_panics};

/// A file is no table.
#[derive(Debug, Error)]
pub enum TableError {
    /// A line has more cells than the first one, or fewer.
    #[error("line {line} has {cells} cells, the first line names {columns} columns")]
    Cells {
        /// From 1.
        line: u64,
        /// What it has.
        cells: u64,
        /// What the first line has.
        columns: u64,
    },
    /// A line is no UTF-8.
    #[error("line {line} is no UTF-8: it may be another kind of file")]
    Encoding {
        /// From 1.
        line: u64,
    },
    /// It is no CSV.
    #[error("{}", in_one_line(.0))]
    Csv(#[source] ::csv::Error),
    /// A number may have decimals or thousands, and others say the one and the other.
    #[error(
        "{0:?} may have decimals or thousands: write decimals with a point, and thousands with nothing between them"
    )]
    Ambiguous(String),
    /// The same, where nothing tells.
    #[error(
        "line {line}: {cell:?} may have decimals or thousands, and the rest of the file does not tell: have commas between its \
         cells, write decimals with a point, and thousands with nothing between them"
    )]
    Undecided {
        /// From 1.
        line: u64,
        /// The number.
        cell: String,
    },
    /// A Parquet file was cut.
    #[error("it is no whole Parquet file")]
    NotWhole,
    /// It is no Parquet.
    #[error("{}", in_one_line(.0))]
    Parquet(#[from] ::parquet::errors::ParquetError),
    /// A column has more than plain values.
    #[error("column {0:?} is no column of plain values")]
    Nested(String),
    /// A cell is no text, or a long one.
    #[error("column {column:?} holds bytes, or a text of more than {longest}")]
    LongCell {
        /// Its name.
        column: String,
        /// The most bytes of a text.
        longest: usize,
    },
}

fn in_one_line(error: &impl ToString) -> String {
    error.to_string().replace('\n', " ")
}

/// Columns with their names; all are equally long.
pub(super) type Columns = Vec<(String, Vec<String>)>;

/// Rows of a file, each with the line that it begins in.
pub(crate) type Rows = Vec<(u64, Vec<String>)>;

/// Reads CSV, whose first line names the columns.
///
/// # Errors
///
/// Where it is none, in one line.
pub(super) fn csv(content: &[u8]) -> Result<Columns, TableError> {
    let (names, rows) = rows(content)?;
    let mut columns: Columns = names.into_iter().map(|name| (name, Vec::new())).collect();
    for (_, row) in rows {
        for ((_, cells), cell) in columns.iter_mut().zip(row) {
            cells.push(cell);
        }
    }
    Ok(columns)
}

/// Reads CSV row by row: the names of its columns, and what stands below them.
///
/// # Errors
///
/// Where it is none, in one line.
pub fn rows(content: &[u8]) -> Result<(Vec<String>, Rows), TableError> {
    let utf_8 = utf_8(content);
    let content = utf_8.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&utf_8);
    let mut reader = ::csv::ReaderBuilder::new()
        .delimiter(delimiter(content))
        .trim(::csv::Trim::All)
        .comment(Some(b'#'))
        .from_reader(content);
    let in_line = |error: ::csv::Error| match error.kind() {
        ::csv::ErrorKind::UnequalLengths {
            pos,
            expected_len,
            len,
        } => {
            let line = line(content, pos.as_ref());
            TableError::Cells {
                line,
                cells: *len,
                columns: *expected_len,
            }
        }
        ::csv::ErrorKind::Utf8 { pos, .. } => {
            let line = line(content, pos.as_ref());
            TableError::Encoding { line }
        }
        _ => TableError::Csv(error),
    };
    let cells = |record: &::csv::StringRecord| record.iter().map(str::to_owned).collect();
    let names = cells(reader.headers().map_err(in_line)?);
    let mut rows = Rows::new();
    for record in reader.records() {
        let record = record.map_err(in_line)?;
        rows.push((line(content, record.position()), cells(&record)));
    }
    decide(&mut rows, delimiter(content))?;
    Ok((names, rows))
}

/// What begins the decimals of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    Comma,
    Point,
}

/// Has numbers of three digits behind their only comma or point say what they mean, where the other numbers of their file tell: as
/// `1.234` is 1234 beside `9,5`, and `1,234` is beside `9.5`.
///
/// # Errors
///
/// Where nothing tells, of those with a point: semicolons stand between cells because decimals may have a comma.
fn decide(rows: &mut Rows, delimiter: u8) -> Result<(), TableError> {
    let cells = || rows.iter().flat_map(|(_, cells)| cells);
    let has = |mark| cells().any(|cell| decimal_mark(cell) == Some(mark));
    let mark = match (has(Mark::Comma), has(Mark::Point)) {
        (true, false) => Some(Mark::Comma),
        (false, true) => Some(Mark::Point),
        (true, true) => None,
        // A comma between cells is none in them, but in quotes, of which it is asked.
        (false, false) if delimiter != b';' => return Ok(()),
        (false, false) => None,
    };
    for (line, cells) in rows {
        for cell in cells {
            let (written, _) = written(cell);
            let own = match ambiguous(written) {
                None => continue,
                Some(own) => own,
            };
            let is_decimal = match mark {
                Some(mark) => mark == own,
                // It is asked of where it is read as a number.
                None if own == Mark::Comma => continue,
                None => {
                    let (line, cell) = (*line, cell.clone());
                    return Err(TableError::Undecided { line, cell });
                }
            };
            *cell = match (own, is_decimal) {
                (Mark::Point, true) => continue,
                (Mark::Comma, true) => cell.replacen(',', ".", 1),
                (Mark::Point, false) => cell.replacen('.', "", 1),
                (Mark::Comma, false) => cell.replacen(',', "", 1),
            };
        }
    }
    Ok(())
}

/// A number as it is written, and what follows it.
fn written(cell: &str) -> (&str, &str) {
    let end = cell.find(|letter: char| {
        !letter.is_ascii_digit()
            && !matches!(letter, '.' | ',' | '+' | '-' | '\u{a0}' | '\u{202f}' | '\'')
    });
    cell.split_at(end.unwrap_or(cell.len()))
}

/// What follows each of these marks has three digits.
fn are_groups(written: &str, mark: char) -> bool {
    written.split(mark).skip(1).all(|group| group.len() == 3)
}

/// The only mark of a number, where that may begin decimals or group thousands.
fn ambiguous(written: &str) -> Option<Mark> {
    let digits = written.trim_start_matches(['+', '-']);
    let (mark, found) = match (digits.matches(',').count(), digits.matches('.').count()) {
        (1, 0) => (Mark::Comma, ','),
        (0, 1) => (Mark::Point, '.'),
        _ => return None,
    };
    let (whole, _) = digits.split_once(found)?;
    // Nobody writes 0 thousand, or 1234 thousand without a mark between.
    let is_group = (1..=3).contains(&whole.len()) && !whole.starts_with('0');
    (is_group && are_groups(digits, found)).then_some(mark)
}

/// What begins the decimals in the file of a cell, if that tells.
fn decimal_mark(cell: &str) -> Option<Mark> {
    let (written, unit) = written(cell);
    let digits = written.trim_start_matches(['+', '-']);
    let is_number = digits.starts_with(|first: char| first.is_ascii_digit())
        && unit.trim().chars().all(|letter| letter.is_alphabetic());
    if !is_number || ambiguous(written).is_some() {
        return None;
    }
    match (digits.matches(',').count(), digits.matches('.').count()) {
        (1, 0) => Some(Mark::Comma),
        (0, 1) => Some(Mark::Point),
        (2.., 0) if are_groups(digits, ',') => Some(Mark::Point),
        (0, 2..) if are_groups(digits, '.') => Some(Mark::Comma),
        (1.., 1..) if digits.rfind(',') > digits.rfind('.') => Some(Mark::Comma),
        (1.., 1..) => Some(Mark::Point),
        _ => None,
    }
}

/// What spreadsheets write as "Unicode text".
fn utf_8(content: &[u8]) -> Cow<'_, [u8]> {
    let decode: fn([u8; 2]) -> u16 = match content {
        [0xff, 0xfe, ..] => u16::from_le_bytes,
        [0xfe, 0xff, ..] => u16::from_be_bytes,
        _ => return Cow::Borrowed(content),
    };
    let (letters, _) = content.as_chunks::<2>();
    let letters: Vec<u16> = letters
        .iter()
        .skip(1)
        .map(|letter| decode(*letter))
        .collect();
    Cow::Owned(String::from_utf16_lossy(&letters).into_bytes())
}

/// What is between cells: in languages whose decimals have a comma, a semicolon. The first line tells.
fn delimiter(content: &[u8]) -> u8 {
    let mut lines = content.split(|byte| matches!(byte, b'\n' | b'\r'));
    let first = lines.find(|line| !line.is_empty() && !line.starts_with(b"#"));
    let has = |byte: u8| first.is_some_and(|line| line.contains(&byte));
    match () {
        () if has(b',') => b',',
        () if has(b';') => b';',
        () if has(b'\t') => b'\t',
        () => b',',
    }
}

/// A number as it is written in Rust, from one as spreadsheets write it, with what follows it: `9,5 ms` is `9.5 ms`, `1.234,5` is
/// `1234.5`. What is no such number stays.
///
/// # Errors
///
/// Where a comma or a blank before three digits may begin decimals or group thousands.
pub fn number(cell: &str) -> Result<Cow<'_, str>, TableError> {
    let (written, rest) = written(cell);
    let groups = |mark: char| are_groups(written, mark);
    let without = |mark: char| written.replace(mark, "");
    let commas = written.matches(',').count();
    let points = written.matches('.').count();
    let number = match (commas, points) {
        (0, 2..) if groups('.') => without('.'),
        (0, _) => written.to_owned(),
        // The last of both begins the decimals.
        (_, 1..) if written.rfind(',') > written.rfind('.') => without('.').replace(',', "."),
        (_, 1..) => without(','),
        (1, 0) if ambiguous(written).is_some() => {
            return Err(TableError::Ambiguous(cell.to_owned()));
        }
        (1, 0) => written.replace(',', "."),
        (_, 0) if groups(',') => without(','),
        _ => return Ok(Cow::Borrowed(cell)),
    };
    let number = number.replace(['\u{a0}', '\u{202f}', '\''], "");
    Ok(if number == written {
        Cow::Borrowed(cell)
    } else {
        Cow::Owned(number + rest)
    })
}

/// The line of what is read from a position on, which may be before lines that say nothing.
fn line(content: &[u8], position: Option<&::csv::Position>) -> u64 {
    let Some(position) = position else { return 0 };
    let at = usize::try_from(position.byte()).unwrap_or(usize::MAX);
    let rest = content.get(at..).unwrap_or_default();
    let says_nothing = |line: &&[u8]| matches!(line, [] | [b'\r'] | [b'#', ..]);
    let lines = rest.split(|byte| *byte == b'\n');
    position.line() + lines.take_while(says_nothing).count() as u64
}

/// Of a Parquet file, whose columns of one value take next to nothing.
const BOUNDS: Bounds = Bounds {
    group_rows: u64::MAX,
    rows_per_byte: 16,
    fields_per_byte: 16,
};
/// Bytes of a cell.
const LONGEST_CELL: usize = 1024;

/// Reads Parquet; what is null is an empty text.
///
/// # Errors
///
/// Why it is none, in one line.
pub(super) fn parquet(content: &[u8]) -> Result<Columns, TableError> {
    let content = content.to_vec();
    unless_it_panics(|| parquet_columns(content)).unwrap_or(Err(TableError::NotWhole))
}

fn parquet_columns(content: Vec<u8>) -> Result<Columns, TableError> {
    let reader = BoundedParquet::new(bytes::Bytes::from(content), BOUNDS)?;
    let schema = reader.metadata().file_metadata().schema_descr();
    let nested = schema.columns().iter().find(|column| {
        // A row of a list may hold any number of values.
        column.max_rep_level() > 0 || column.path().parts().len() > 1
    });
    if let Some(nested) = nested {
        return Err(TableError::Nested(nested.path().string()));
    }
    let names = schema
        .root_schema()
        .get_fields()
        .iter()
        .map(|field| field.name().to_owned());
    let mut columns: Columns = names.map(|name| (name, Vec::new())).collect();
    for row in reader.get_row_iter(None)? {
        let row = row?;
        for ((name, cells), (_, field)) in columns.iter_mut().zip(row.get_column_iter()) {
            let cell = match field {
                Field::Null => String::new(),
                Field::Str(text) if text.len() <= LONGEST_CELL => text.clone(),
                Field::Str(_) | Field::Bytes(_) => {
                    return Err(TableError::LongCell {
                        column: name.clone(),
                        longest: LONGEST_CELL,
                    });
                }
                other => other.to_string(),
            };
            cells.push(cell);
        }
    }
    Ok(columns)
}

#[cfg(test)]
mod tests;
