//! Parquet that anybody may have written.
//!
//! What a file says of itself is looked at before the library reads it, and bounded before anything
//! is allocated: rows by what the reader allows, pages by what is compressed in them, dictionaries
//! by their bytes. Encodings are those that tables of rows have. Where the library panics on what
//! is left, the file is damaged.

mod thrift;

use std::cell::Cell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::{Arc, Once};

use bytes::Bytes;
use parquet::basic::{Compression, Encoding};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, FileReader, RowGroupReader};
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::record::reader::RowIter;
use parquet::schema::types::Type;

use self::thrift::PageKind;

/// What a file may have.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Rows of a row group.
    pub group_rows: u64,
    /// Rows for each byte of the file.
    pub rows_per_byte: u64,
    /// Fields for each byte of the file.
    pub fields_per_byte: u64,
}

/// A file whose metadata keeps to some bounds.
pub struct BoundedParquet<R: ChunkReader + 'static> {
    file: Arc<R>,
    metadata: ParquetMetaData,
    /// Of all row groups.
    rows: u64,
}

impl<R: ChunkReader + 'static> BoundedParquet<R> {
    /// Reads what a file says of itself.
    ///
    /// # Errors
    ///
    /// When it is no Parquet, or does not keep to its bounds.
    pub fn new(file: R, bounds: Bounds) -> Result<Self> {
        check_footer(&file)?;
        let metadata = ParquetMetaDataReader::new().parse_and_finish(&file)?;
        let columns = metadata.file_metadata().schema_descr().num_columns() as u64;
        let groups = metadata.row_groups().iter();
        let all: Option<u64> = groups
            .map(|group| {
                let rows = u64::try_from(group.num_rows()).ok()?;
                (rows <= bounds.group_rows).then_some(rows)
            })
            .try_fold(0, |sum: u64, rows| sum.checked_add(rows?));
        let fits = |number: Option<u64>, per_byte| {
            number.is_some_and(|number| number <= file.len().saturating_mul(per_byte))
        };
        let fields = all.and_then(|rows| rows.checked_mul(columns));
        check_places(&metadata)?;
        match all {
            Some(rows)
                if fits(all, bounds.rows_per_byte) && fits(fields, bounds.fields_per_byte) =>
            {
                Ok(Self {
                    file: Arc::new(file),
                    metadata,
                    rows,
                })
            }
            _ => Err(refused("it tells of more rows than it can hold")),
        }
    }

    /// How many rows there are in all row groups.
    pub fn rows(&self) -> u64 {
        self.rows
    }
}

/// Columns that are all of the same bytes would have those read once for each.
fn check_places(metadata: &ParquetMetaData) -> Result<()> {
    let groups = metadata.row_groups().iter();
    let mut places: Vec<_> = groups
        .flat_map(|group| group.columns())
        .map(|column| column.byte_range())
        .collect();
    places.sort_unstable();
    if places.is_sorted_by(|(start, length), (next, _)| start.saturating_add(*length) <= *next) {
        Ok(())
    } else {
        Err(refused("it has columns in the place of others"))
    }
}

/// Looks at the metadata at a file's end. Where there are none, the library knows what to say.
fn check_footer(file: &impl ChunkReader) -> Result<()> {
    /// The metadata's length, and the format's name.
    const FOOTER: u64 = 8;
    let Some(end) = file.len().checked_sub(FOOTER) else {
        return Ok(());
    };
    let footer = file.get_bytes(end, FOOTER as usize)?;
    let Some((length, b"PAR1")) = footer.split_first_chunk() else {
        return Ok(());
    };
    let length = u32::from_le_bytes(*length);
    match end.checked_sub(length.into()) {
        Some(start) => thrift::check_file(&file.get_bytes(start, length as usize)?),
        None => Ok(()),
    }
}

fn refused(problem: impl Into<String>) -> ParquetError {
    ParquetError::General(problem.into())
}

impl<R: ChunkReader + 'static> FileReader for BoundedParquet<R> {
    fn metadata(&self) -> &ParquetMetaData {
        &self.metadata
    }

    fn num_row_groups(&self) -> usize {
        self.metadata.num_row_groups()
    }

    fn get_row_group(&self, index: usize) -> Result<Box<dyn RowGroupReader + '_>> {
        let group = self.metadata.row_groups().get(index);
        Ok(Box::new(BoundedGroup {
            file: &self.file,
            group: group.ok_or_else(|| refused("it has no such row group"))?,
        }))
    }

    fn get_row_iter(&self, projection: Option<Type>) -> Result<RowIter<'_>> {
        RowIter::from_file(projection, self)
    }
}

struct BoundedGroup<'a, R> {
    file: &'a Arc<R>,
    group: &'a RowGroupMetaData,
}

impl<R: ChunkReader + 'static> RowGroupReader for BoundedGroup<'_, R> {
    fn metadata(&self) -> &RowGroupMetaData {
        self.group
    }

    fn num_columns(&self) -> usize {
        self.group.num_columns()
    }

    fn get_column_page_reader(&self, index: usize) -> Result<Box<dyn PageReader>> {
        let column = self.group.columns().get(index);
        let column = column.ok_or_else(|| refused("it has no such column"))?;
        let packed = match column.compression() {
            Compression::UNCOMPRESSED => Packed::Plain,
            Compression::SNAPPY => Packed::Snappy,
            other => {
                return Err(refused(format!(
                    "it is compressed with {other}: write it with Snappy, or without compression"
                )));
            }
        };
        // Decompressed here, where it is known how much that may become.
        let column = column.clone().into_builder();
        let column = column.set_compression(Compression::UNCOMPRESSED).build()?;
        let rows = usize::try_from(self.group.num_rows()).unwrap_or(0);
        let pages = SerializedPageReader::new(Arc::clone(self.file), &column, rows, None)?;
        let (start, length) = column.byte_range();
        Ok(Box::new(BoundedPages {
            file: Arc::clone(self.file),
            pages,
            packed,
            ahead: start..start.saturating_add(length),
            next: Next::Unseen,
        }))
    }

    fn get_column_bloom_filter(&self, _: usize) -> Option<&parquet::bloom_filter::Sbbf> {
        None
    }

    fn get_row_iter(&self, projection: Option<Type>) -> Result<RowIter<'_>> {
        RowIter::from_row_group(projection, self)
    }
}

#[derive(Clone, Copy)]
enum Packed {
    Plain,
    Snappy,
}

impl Packed {
    /// What was compressed, behind the `levels` bytes that never are.
    fn unpack(self, page: &Bytes, levels: usize) -> Result<Bytes> {
        /// A copy of 64 bytes takes three (its format, 2.2.2).
        const MOST_SNAPPY: usize = 22;
        if let Packed::Plain = self {
            return Ok(page.clone());
        }
        let cut = || refused("it is cut short");
        let (levels, packed) = page.split_at_checked(levels).ok_or_else(cut)?;
        let mut whole = levels.to_vec();
        if !packed.is_empty() {
            let length = snap::raw::decompress_len(packed).map_err(|_| cut())?;
            if length > packed.len().saturating_mul(MOST_SNAPPY) {
                return Err(refused("it tells of more bytes than are compressed in it"));
            }
            whole.resize(levels.len() + length, 0);
            let room = whole.get_mut(levels.len()..).unwrap_or_default();
            let read = snap::raw::Decoder::new().decompress(packed, room);
            read.map_err(|error| refused(error.to_string()))?;
        }
        Ok(whole.into())
    }
}

/// The pages of a column.
struct BoundedPages<R: ChunkReader> {
    file: Arc<R>,
    pages: SerializedPageReader<R>,
    packed: Packed,
    /// Where headers are that nobody has looked at.
    ahead: Range<u64>,
    next: Next,
}

/// Whether the header of the page that is read next was looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Seen,
    Unseen,
}

impl<R: ChunkReader> BoundedPages<R> {
    /// Looks at all headers that the library reads for the next page.
    fn check_next(&mut self) -> Result<()> {
        while self.next == Next::Unseen && !self.ahead.is_empty() {
            let left = self.ahead.end - self.ahead.start;
            let page = thrift::page(self.file.get_read(self.ahead.start)?, left)?;
            self.ahead.start += page.length;
            if page.kind == PageKind::Values {
                self.next = Next::Seen;
            }
        }
        Ok(())
    }

    /// The same before that is taken.
    fn check_taken(&mut self) -> Result<()> {
        self.check_next()?;
        self.next = Next::Unseen;
        Ok(())
    }

    fn bounded(&self, mut page: Page) -> Result<Page> {
        // Others are decoded with numbers that nobody has checked.
        let is_read = matches!(
            page.encoding(),
            Encoding::PLAIN | Encoding::RLE | Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY
        );
        if !is_read {
            return Err(refused(format!(
                "it has pages as {}: write them plain or with dictionaries",
                page.encoding()
            )));
        }
        match &mut page {
            Page::DataPage { buf, .. } => *buf = self.packed.unpack(buf, 0)?,
            Page::DataPageV2 {
                is_compressed: false,
                ..
            } => {}
            Page::DataPageV2 {
                buf,
                def_levels_byte_len,
                rep_levels_byte_len,
                ..
            } => {
                let levels = def_levels_byte_len.saturating_add(*rep_levels_byte_len);
                *buf = self.packed.unpack(buf, levels as usize)?;
            }
            Page::DictionaryPage {
                buf, num_values, ..
            } => {
                *buf = self.packed.unpack(buf, 0)?;
                if *num_values as usize > buf.len() {
                    return Err(refused("it has a dictionary of more values than bytes"));
                }
            }
        }
        Ok(page)
    }
}

impl<R: ChunkReader> Iterator for BoundedPages<R> {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Result<Page>> {
        self.get_next_page().transpose()
    }
}

impl<R: ChunkReader> PageReader for BoundedPages<R> {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        self.check_taken()?;
        let page = self.pages.get_next_page()?;
        page.map(|page| self.bounded(page)).transpose()
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.check_next()?;
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.check_taken()?;
        self.pages.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.check_next()?;
        self.pages.at_record_boundary()
    }
}

thread_local! {
    /// Whether a panic of this thread is an answer.
    static EXPECTED: Cell<bool> = const { Cell::new(false) };
}

/// What `read` makes of a file; nothing where the library panics, which nobody hears of.
pub fn unless_it_panics<T>(read: impl FnOnce() -> T) -> Option<T> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |panic| {
            if !EXPECTED.try_with(Cell::get).unwrap_or(false) {
                usual(panic);
            }
        }));
    });
    let before = EXPECTED.replace(true);
    let read = catch_unwind(AssertUnwindSafe(read));
    EXPECTED.set(before);
    read.ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn what_is_compressed_is_unpacked_as_far_as_it_can_reach() {
        let text = b"what a fine day it is, what a fine day".repeat(1000);
        let packed = snap::raw::Encoder::new().compress_vec(&text).unwrap();
        let page: Bytes = [b"levels", &packed[..]].concat().into();
        let whole = Packed::Snappy.unpack(&page, 6).unwrap();
        assert_eq!(whole, [b"levels", &text[..]].concat());
        assert_eq!(Packed::Plain.unpack(&page, 6).unwrap(), page);
        // The best that there is.
        let zeros = snap::raw::Encoder::new()
            .compress_vec(&[0; 1 << 20])
            .unwrap();
        assert_eq!(
            Packed::Snappy.unpack(&zeros.into(), 0).unwrap().len(),
            1 << 20
        );

        let told = |page: &[u8], levels| {
            let page = Bytes::copy_from_slice(page);
            Packed::Snappy
                .unpack(&page, levels)
                .unwrap_err()
                .to_string()
        };
        // 2 GiB in a byte.
        let bomb = [0xff, 0xff, 0xff, 0xff, 0x07, 0];
        assert!(told(&bomb, 0).ends_with("it tells of more bytes than are compressed in it"));
        assert!(told(b"", 1).ends_with("it is cut short"));
        assert!(told(b"\xff", 0).ends_with("it is cut short"));
    }

    #[test]
    fn a_panic_is_an_answer() {
        assert_eq!(unless_it_panics(|| 7), Some(7));
        assert_eq!(
            unless_it_panics(|| -> u8 { Vec::<u8>::new().remove(0) }),
            None
        );
        assert!(!EXPECTED.get());
    }
}
