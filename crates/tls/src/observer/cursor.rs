//! Bytes that are read from the front.

/// Reads big-endian numbers and vectors (RFC 8446, 3) off the front of bytes.
/// Every reading gives `None` where the bytes end too early.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a>(pub(super) &'a [u8]);

impl<'a> Cursor<'a> {
    pub(super) fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    /// A number of at most four bytes.
    pub(super) fn number(&mut self, length: usize) -> Option<usize> {
        let bytes = self.bytes(length)?;
        Some(
            bytes
                .iter()
                .fold(0, |number, byte| number << 8 | usize::from(*byte)),
        )
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.number(1).and_then(|number| u8::try_from(number).ok())
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.number(2).and_then(|number| u16::try_from(number).ok())
    }

    /// A vector whose length stands before it in `prefix` bytes.
    pub(super) fn vector(&mut self, prefix: usize) -> Option<Cursor<'a>> {
        let length = self.number(prefix)?;
        self.bytes(length).map(Cursor)
    }
}
