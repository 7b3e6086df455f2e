//! Reads and writes what TLS's presentation language describes (RFC 8446, section 3).

/// Bytes that end before they should, or go on after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// There are bytes missing.
    #[error("{what} is cut short")]
    Short {
        /// Of what.
        what: &'static str,
    },
    /// There are bytes left.
    #[error("{bytes} bytes follow {what}")]
    Trailing {
        /// After what.
        what: &'static str,
        /// As many as there are.
        bytes: usize,
    },
    /// It is longer than its length can say.
    #[error("{what} is too long: {bytes} bytes")]
    Long {
        /// What is.
        what: &'static str,
        /// As many bytes as it has.
        bytes: usize,
    },
}

/// What is still to be read of `what`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    what: &'static str,
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(what: &'static str, rest: &'a [u8]) -> Reader<'a> {
        Reader { what, rest }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn rest(self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8], WireError> {
        let short = WireError::Short { what: self.what };
        let (bytes, rest) = self.rest.split_at_checked(count).ok_or(short)?;
        self.rest = rest;
        Ok(bytes)
    }

    /// A number of up to 8 bytes.
    pub(crate) fn uint(&mut self, bytes: usize) -> Result<u64, WireError> {
        let digits = self.bytes(bytes)?;
        Ok(digits
            .iter()
            .fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// As many bytes as the length before them says, which has so many itself.
    pub(crate) fn vector(&mut self, bytes_of_length: usize) -> Result<&'a [u8], WireError> {
        let length = self.uint(bytes_of_length)?;
        self.bytes(usize::try_from(length).unwrap_or(usize::MAX))
    }

    pub(crate) fn finish(self) -> Result<(), WireError> {
        match self.rest.len() {
            0 => Ok(()),
            bytes => Err(WireError::Trailing {
                what: self.what,
                bytes,
            }),
        }
    }
}

/// Appends a number in so many bytes.
pub(crate) fn put_uint(out: &mut Vec<u8>, bytes: usize, number: u64) {
    out.extend_from_slice(&number.to_be_bytes()[8 - bytes..]);
}

/// Appends bytes behind their length, which has so many bytes.
pub(crate) fn put_vector(
    out: &mut Vec<u8>,
    what: &'static str,
    bytes_of_length: usize,
    content: &[u8],
) -> Result<(), WireError> {
    let bytes = content.len();
    if bytes >> (8 * bytes_of_length) != 0 {
        return Err(WireError::Long { what, bytes });
    }
    put_uint(out, bytes_of_length, bytes as u64);
    out.extend_from_slice(content);
    Ok(())
}
