//! What crosses the wire of a connection besides its handshake.

#[cfg(test)]
mod tests;

use lastbyte_exchange::Records;
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

/// The records that an arm cuts payload into, over the segments of a cell.
pub fn records(size: RecordSize, cell: &Cell) -> Records {
    records_over(size, cell.hosts.mss())
}

/// The same, over segments of so many bytes.
pub fn records_over(size: RecordSize, mss: usize) -> Records {
    match size {
        RecordSize::FirstSegment => Records {
            first: mss.saturating_sub(RECORD_OVERHEAD),
            later: MAX_PLAINTEXT,
        },
        RecordSize::Fixed(size) => Records {
            first: size.into(),
            later: size.into(),
        },
    }
}
