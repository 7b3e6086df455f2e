//! What crosses the wire of a connection besides its handshake.

#[cfg(test)]
mod tests;

use lastbyte_sizes::framing::{MAX_EARLY_DATA, MAX_PLAINTEXT, RECORD_OVERHEAD};

use super::{Cell, RecordSize};

/// The request: what a client asks for is known, so its content does not matter.
pub const REQUEST: &[u8] = b"GET /object HTTP/1.1\r\nHost: server.example\r\nAccept: */*\r\n\r\n";

/// What it asks for.
pub const OBJECT: &str = "/object";

/// How much of the body of a first request is early data, where that is sent: as much as servers take,
/// after the head.
pub fn early_upload(upload: u64) -> u64 {
    upload.min(u64::from(MAX_EARLY_DATA) - REQUEST.len() as u64)
}

/// How payload is cut into records.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    /// Payload of the first record, at most.
    pub first: usize,
    /// Of each later one.
    pub later: usize,
}

impl Cut {
    /// As an arm says, over the segments of a cell.
    pub fn new(size: RecordSize, cell: &Cell) -> Cut {
        Cut::over(size, cell.hosts.mss())
    }

    /// The same, over segments of so many bytes.
    pub fn over(size: RecordSize, mss: usize) -> Cut {
        match size {
            RecordSize::FirstSegment => Cut {
                first: mss.saturating_sub(RECORD_OVERHEAD),
                later: MAX_PLAINTEXT,
            },
            RecordSize::Fixed(size) => Cut {
                first: size.into(),
                later: size.into(),
            },
        }
    }

    /// Payload of the record that starts at offset `sent` of a response of `data` bytes.
    pub fn payload(self, sent: u64, data: u64) -> usize {
        let limit = match sent {
            0 => self.first,
            _ => self.later,
        };
        usize::try_from(data - sent).map_or(limit, |left| left.min(limit))
    }
}
