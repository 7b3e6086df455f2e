//! What a chain may grow to when less of it is sent.

use lastbyte_sizes::framing::{MAX_PLAINTEXT, RECORD_OVERHEAD, encrypted};

use lastbyte_study::Cell;

/// What a server sends in a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    /// Its Certificate message, in bytes with the message's header.
    pub(crate) certificate_bytes: u32,
    /// All its messages, in bytes on the wire.
    pub(crate) server_wire_bytes: u32,
}

/// What is sent in place of a whole chain's Certificate message, in bytes on the wire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    /// The message as a whole.
    whole: f64,
    /// What is sent of it, and of what depends on it.
    sent: f64,
    /// What the first flight has room for besides all other messages of the server.
    room: f64,
}

impl Cut {
    /// Of what is sent in a cell, and what a whole chain sends there.
    pub(crate) fn new(cell: &Cell, sent: Sent, whole: Sent) -> Cut {
        let certificate = encrypted(whole.certificate_bytes as usize) as f64;
        let others = f64::from(whole.server_wire_bytes) - certificate;
        let window = cell.initcwnd as f64 * cell.hosts.mss() as f64;
        Cut {
            whole: certificate,
            sent: f64::from(sent.server_wire_bytes) - others,
            room: window - others,
        }
    }

    /// How much more a chain may be whose parts all grow alike. None if nothing of it is sent, or if there is no
    /// room for any.
    pub(crate) fn multiple(self) -> Option<f64> {
        (self.sent > 0.0 && self.room > 0.0).then(|| self.whole / self.sent)
    }

    /// The largest Certificate message whose records fit, in bytes.
    pub(crate) fn supportable(self) -> Option<u32> {
        let on_wire = (self.room * self.multiple()?) as usize;
        let records = on_wire.div_ceil(MAX_PLAINTEXT + RECORD_OVERHEAD);
        Some(on_wire.saturating_sub(records * RECORD_OVERHEAD) as u32)
    }
}
