//! What Parquet says of itself, in Thrift's compact protocol: read before the library reads it, to
//! see that it tells of no more than it holds.
//!
//! The library skips fields that it does not know by what they say of themselves, and takes those
//! that it knows for what they should be, whatever they say. So a list of two billion truths that
//! have no bytes, or a text that holds one, has it count for minutes. Here everything that it knows
//! has to be of its type, and what it does not know has to be made of bytes.

use std::io::{Read, sink};

use parquet::errors::Result;

use super::refused;

/// What a field is. The library tells whole numbers of 16 to 64 bits apart only once they are read.
enum Shape {
    Truth,
    Byte,
    Whole,
    Fraction,
    Bytes,
    List(&'static Shape),
    Struct(&'static [(i16, Shape)]),
    /// A struct that is a node of the schema's tree.
    Node(&'static [(i16, Shape)]),
}

use Shape::{Byte, Bytes, Fraction, List, Node, Struct, Truth, Whole};

// The format's `parquet.thrift`, as far as the library knows it. Whoever takes a new version of
// that looks whether it knows more.

const FILE: Shape = Struct(&[
    (1, Whole),
    (2, List(&SCHEMA_ELEMENT)),
    (3, Whole),
    (4, List(&ROW_GROUP)),
    (5, List(&KEY_VALUE)),
    (6, Bytes),
    (7, List(&COLUMN_ORDER)),
]);

const CHILDREN: i16 = 5;
const SCHEMA_ELEMENT: Shape = Node(&[
    (1, Whole),
    (2, Whole),
    (3, Whole),
    (4, Bytes),
    (CHILDREN, Whole),
    (6, Whole),
    (7, Whole),
    (8, Whole),
    (9, Whole),
    (10, LOGICAL_TYPE),
]);

const LOGICAL_TYPE: Shape = Struct(&[
    (1, NOTHING),
    (2, NOTHING),
    (3, NOTHING),
    (4, NOTHING),
    (5, Struct(&[(1, Whole), (2, Whole)])),
    (6, NOTHING),
    (7, TIME),
    (8, TIME),
    (10, Struct(&[(1, Byte), (2, Truth)])),
    (11, NOTHING),
    (12, NOTHING),
    (13, NOTHING),
    (14, NOTHING),
    (15, NOTHING),
    (16, Struct(&[(1, Byte)])),
    (17, Struct(&[(1, Bytes)])),
    (18, Struct(&[(1, Bytes), (2, Whole)])),
]);

const NOTHING: Shape = Struct(&[]);

const TIME: Shape = Struct(&[
    (1, Truth),
    (2, Struct(&[(1, NOTHING), (2, NOTHING), (3, NOTHING)])),
]);

const ROW_GROUP: Shape = Struct(&[
    (1, List(&COLUMN_CHUNK)),
    (2, Whole),
    (3, Whole),
    (4, List(&Struct(&[(1, Whole), (2, Truth), (3, Truth)]))),
    (5, Whole),
    (6, Whole),
    (7, Whole),
]);

const COLUMN_CHUNK: Shape = Struct(&[
    (1, Bytes),
    (2, Whole),
    (3, COLUMN),
    (4, Whole),
    (5, Whole),
    (6, Whole),
    (7, Whole),
]);

const COLUMN: Shape = Struct(&[
    (1, Whole),
    (2, List(&Whole)),
    (3, List(&Bytes)),
    (4, Whole),
    (5, Whole),
    (6, Whole),
    (7, Whole),
    (8, List(&KEY_VALUE)),
    (9, Whole),
    (10, Whole),
    (11, Whole),
    (12, STATISTICS),
    (13, List(&Struct(&[(1, Whole), (2, Whole), (3, Whole)]))),
    (14, Whole),
    (15, Whole),
    (
        16,
        Struct(&[(1, Whole), (2, List(&Whole)), (3, List(&Whole))]),
    ),
    (17, Struct(&[(1, BOX), (2, List(&Whole))])),
]);

const STATISTICS: Shape = Struct(&[
    (1, Bytes),
    (2, Bytes),
    (3, Whole),
    (4, Whole),
    (5, Bytes),
    (6, Bytes),
    (7, Truth),
    (8, Truth),
    (9, Whole),
]);

const BOX: Shape = Struct(&[
    (1, Fraction),
    (2, Fraction),
    (3, Fraction),
    (4, Fraction),
    (5, Fraction),
    (6, Fraction),
    (7, Fraction),
    (8, Fraction),
]);

const KEY_VALUE: Shape = Struct(&[(1, Bytes), (2, Bytes)]);

const COLUMN_ORDER: Shape = Struct(&[(1, NOTHING), (2, NOTHING), (3, NOTHING)]);

const PAGE_KIND: i16 = 1;
const PAGE_LENGTH: i16 = 3;
const PAGE: Shape = Struct(&[
    (PAGE_KIND, Whole),
    (2, Whole),
    (PAGE_LENGTH, Whole),
    (4, Whole),
    (
        5,
        Struct(&[
            (1, Whole),
            (2, Whole),
            (3, Whole),
            (4, Whole),
            (5, STATISTICS),
        ]),
    ),
    (6, NOTHING),
    (7, Struct(&[(1, Whole), (2, Whole), (3, Truth)])),
    (
        8,
        Struct(&[
            (1, Whole),
            (2, Whole),
            (3, Whole),
            (4, Whole),
            (5, Whole),
            (6, Whole),
            (7, Truth),
            (8, STATISTICS),
        ]),
    ),
]);

/// A page, as its header has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Page {
    /// Bytes of the header and of the page.
    pub(super) length: u64,
    pub(super) kind: PageKind,
}

/// What a page is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PageKind {
    /// Values, or a dictionary of them.
    Values,
    /// Passed over.
    Index,
}

/// Looks at what stands at the end of a file.
///
/// # Errors
///
/// When it tells of more than it holds, or of something else than Parquet does.
pub(super) fn check_file(metadata: &[u8]) -> Result<()> {
    Walker::new(metadata, metadata.len() as u64).value(STRUCT, Some(&FILE), DEPTH)
}

/// Looks at the header of a page that has `left` bytes at most, header and all.
///
/// # Errors
///
/// As [`check_file`].
pub(super) fn page(header: impl Read, left: u64) -> Result<Page> {
    const INDEX: i64 = 1;
    let mut walker = Walker::new(header, left);
    let (mut kind, mut length) = (None, None);
    walker.fields(Some(&PAGE), DEPTH, |id, value| match id {
        PAGE_KIND => kind = value,
        PAGE_LENGTH => length = value,
        _ => {}
    })?;
    let length = length.and_then(|length| u64::try_from(length).ok());
    let (Some(kind), Some(length)) = (kind, length) else {
        return Err(foreign());
    };
    if length > walker.left {
        return Err(more());
    }
    Ok(Page {
        length: left - walker.left + length,
        kind: match kind {
            INDEX => PageKind::Index,
            _ => PageKind::Values,
        },
    })
}

// Types in the compact protocol.
const STOP: u8 = 0;
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const SHORT: u8 = 4;
const LONG: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;
const UUID: u8 = 13;

/// Structs in lists in structs, and so on: the format has nine. And columns in columns.
const DEPTH: u8 = 24;

struct Walker<R> {
    from: R,
    /// Bytes that there may be.
    left: u64,
    /// Of each node of the schema above the one that is next, how many children are still to come.
    above: Vec<u64>,
}

impl<R: Read> Walker<R> {
    fn new(from: R, left: u64) -> Self {
        Self {
            from,
            left,
            above: Vec::new(),
        }
    }

    /// A value of the type `tag`, which has to be of a shape that is known. Tells the field's
    /// number if it is whole.
    fn value(&mut self, tag: u8, shape: Option<&Shape>, depth: u8) -> Result<()> {
        self.field(tag, shape, depth).map(drop)
    }

    fn field(&mut self, tag: u8, shape: Option<&Shape>, depth: u8) -> Result<Option<i64>> {
        let depth = depth.checked_sub(1).ok_or_else(foreign)?;
        match (tag, shape) {
            // It is in the tag.
            (TRUE | FALSE, None | Some(Truth)) => {}
            (BYTE, None | Some(Byte)) => self.skip(1)?,
            (SHORT..=LONG, None | Some(Whole)) => return self.whole().map(Some),
            (DOUBLE, None | Some(Fraction)) => self.skip(8)?,
            (BINARY, None | Some(Bytes)) => {
                let length = self.varint()?;
                self.skip(length)?;
            }
            (LIST, None | Some(List(_))) | (SET, None) => {
                let element = match shape {
                    Some(List(element)) => Some(*element),
                    _ => None,
                };
                self.list(element, depth)?;
            }
            (MAP, None) => self.map(depth)?,
            (STRUCT, None | Some(Struct(_))) => self.fields(shape, depth, |_, _| {})?,
            (STRUCT, Some(Node(_))) => {
                let mut children = None;
                self.fields(shape, depth, |id, value| {
                    if id == CHILDREN {
                        children = value;
                    }
                })?;
                self.node(children.unwrap_or(0))?;
            }
            (UUID, None) => self.skip(16)?,
            _ => return Err(foreign()),
        }
        Ok(None)
    }

    fn fields(
        &mut self,
        shape: Option<&Shape>,
        depth: u8,
        mut see: impl FnMut(i16, Option<i64>),
    ) -> Result<()> {
        let fields = match shape {
            Some(Struct(fields) | Node(fields)) => *fields,
            _ => &[],
        };
        let mut last = 0;
        loop {
            let head = self.byte()?;
            let (delta, tag) = (i16::from(head >> 4), head & 0xf);
            if tag == STOP {
                return Ok(());
            }
            let id = match delta {
                0 => i16::try_from(self.whole()?).ok(),
                delta => i16::checked_add(last, delta),
            };
            let id = id.ok_or_else(foreign)?;
            let shape = fields.iter().find(|(number, _)| *number == id);
            let value = self.field(tag, shape.map(|(_, shape)| shape), depth)?;
            see(id, value);
            last = id;
        }
    }

    /// A node of the schema. The library makes room for as many children as it tells of, and calls
    /// itself for each.
    fn node(&mut self, children: i64) -> Result<()> {
        let children = u64::try_from(children).map_err(|_| foreign())?;
        if children > self.left {
            return Err(more());
        }
        while self.above.last() == Some(&0) {
            self.above.pop();
        }
        if let Some(siblings) = self.above.last_mut() {
            *siblings -= 1;
        }
        if children > 0 {
            self.above.push(children);
        }
        if self.above.len() > usize::from(DEPTH) {
            Err(refused(format!(
                "its columns are more than {DEPTH} deep in each other"
            )))
        } else {
            Ok(())
        }
    }

    fn list(&mut self, element: Option<&Shape>, depth: u8) -> Result<()> {
        let head = self.byte()?;
        let count = match head >> 4 {
            0xf => self.varint()?,
            few => u64::from(few),
        };
        self.elements(count, |walker| walker.value(head & 0xf, element, depth))
    }

    fn map(&mut self, depth: u8) -> Result<()> {
        let count = self.varint()?;
        if count == 0 {
            return Ok(());
        }
        let tags = self.byte()?;
        self.elements(count, |walker| {
            walker.value(tags >> 4, None, depth)?;
            walker.value(tags & 0xf, None, depth)
        })
    }

    /// As many as there are. Each takes a byte at least, by whatever reads them: so truths are
    /// refused, which take one by the protocol, and none by the library. No header has them.
    fn elements(&mut self, count: u64, mut one: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        if count > self.left {
            return Err(more());
        }
        for _ in 0..count {
            let before = self.left;
            one(self)?;
            if self.left == before {
                return Err(more());
            }
        }
        Ok(())
    }

    fn whole(&mut self) -> Result<i64> {
        let number = self.varint()?;
        // Zigzag: the sign is in the last bit.
        Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }

    fn varint(&mut self) -> Result<u64> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(foreign())
    }

    fn byte(&mut self) -> Result<u8> {
        self.left = self.left.checked_sub(1).ok_or_else(more)?;
        let mut byte = [0];
        self.from.read_exact(&mut byte)?;
        Ok(byte[0])
    }

    fn skip(&mut self, length: u64) -> Result<()> {
        self.left = self.left.checked_sub(length).ok_or_else(more)?;
        let mut skipped = self.from.by_ref().take(length);
        match std::io::copy(&mut skipped, &mut sink())? {
            skipped if skipped < length => Err(more()),
            _ => Ok(()),
        }
    }
}

fn more() -> parquet::errors::ParquetError {
    refused("it tells of more than it holds")
}

fn foreign() -> parquet::errors::ParquetError {
    refused("it tells of itself what Parquet does not")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Of a page of values: 10 bytes, of which 7 are there.
    const HEADER: &[u8] = &[
        0x15, 0, 0x15, 14, 0x15, 14, 0x2c, 0x15, 2, 0x15, 0, 0x15, 6, 0x15, 6, 0, 0,
    ];
    /// A list of 2^31 - 1 truths, in field 15 after the one before.
    const TRUTHS: &[u8] = &[0xf9, 0xf1, 0xff, 0xff, 0xff, 0xff, 0x07];

    fn told(header: &[u8], left: u64) -> String {
        page(header, left).unwrap_err().to_string()
    }

    #[test]
    fn a_header_tells_how_long_a_page_is() {
        let length = HEADER.len() as u64 + 7;
        let kind = PageKind::Values;
        assert_eq!(page(HEADER, length).unwrap(), Page { length, kind });
        assert!(told(HEADER, length - 1).ends_with("more than it holds"));
        let mut index = HEADER.to_vec();
        index[1] = 2;
        assert_eq!(page(&index[..], 100).unwrap().kind, PageKind::Index);
        // Fields that nobody knows yet.
        let mut later = HEADER.to_vec();
        later.splice(
            16..,
            [0xf9, 0x35, 1, 2, 3, 0x1b, 1, 0x88, 1, 7, 1, 8, 0x11, 0],
        );
        let length = later.len() as u64 + 7;
        assert_eq!(page(&later[..], length).unwrap().length, length);
    }

    #[test]
    fn what_has_no_bytes_is_not_counted() {
        for lists in [
            TRUTHS,
            // In a list of lists, as the keys and values of a map, and one only.
            &[0xf9, 0x19, 0xf1, 0xff, 0xff, 0xff, 0xff, 0x07],
            &[0xfb, 0xff, 0xff, 0xff, 0xff, 0x07, 0x11],
            &[0xf9, 0x11, 1],
        ] {
            let mut header = lists.to_vec();
            header.extend(HEADER);
            assert!(
                told(&header, 1 << 40).ends_with("more than it holds"),
                "{lists:x?}"
            );
            assert!(check_file(&header).is_err());
        }
    }

    #[test]
    fn what_is_known_has_its_type() {
        // The library takes a text in place of the page's kind for the number 7, and then reads
        // what is in it.
        let mut header = vec![0x18, 7];
        header.extend(TRUTHS);
        header.extend(HEADER);
        assert!(told(&header, 1 << 40).ends_with("what Parquet does not"));
        assert!(check_file(&header).is_err());
        let deep = [&[0xfc][..], &[0x1c; 100]].concat();
        assert!(told(&deep, 1 << 40).ends_with("what Parquet does not"));
    }

    proptest! {
        /// No number of steps that bytes do not pay for: otherwise this takes for ever.
        #[test]
        fn any_bytes_are_walked(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = page(&bytes[..], bytes.len() as u64);
            let _ = check_file(&bytes);
        }
    }
}
