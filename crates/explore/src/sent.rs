//! What a server sends at once besides its handshake, as numbers.

use lastbyte_exchange::{Records, Then, Transfer, Transport, Unit, Writes};
use lastbyte_sizes::framing;

use super::{LEAST_REPEATED, whole};
use crate::value::{NO_SIZES, Sizes, numbers};

numbers! {
    /// Tickets, or a response. What is 0 is not there, or as usual.
    Sent {
        /// Bytes on the wire; of a response, those follow from its payload.
        wire: f64 = 0.0,
        /// Bytes of payload of each record; 0 where the first one fills a segment, and later ones
        /// hold as much as records can.
        record: f64 = 0.0,
        /// The writes that it leaves in, if they are several: those of a response go on as the last
        /// one.
        writes: Sizes = NO_SIZES,
    }
}

/// More bytes than tickets, and than a response, have.
const MOST_TICKETS: u32 = 1 << 20;
const MOST_RESPONSE: u32 = 1 << 26;

impl Sent {
    /// What was seen of a transfer, whose records have so much payload each; 0 where they are as
    /// usual.
    pub fn of(transfer: &Transfer, record: u16) -> Sent {
        let mut sent = Sent {
            wire: Transport::default().framed(transfer).bytes as f64,
            record: f64::from(record),
            ..Sent::default()
        };
        let seen = transfer.writes.iter().flat_map(Writes::sizes);
        for (place, bytes) in sent.writes.iter_mut().zip(seen) {
            *place = f64::from(*bytes);
        }
        sent
    }

    /// As tickets; none where it has no bytes.
    pub(crate) fn tickets(&self) -> Option<Transfer> {
        let bytes = Some(self.ticket_bytes()).filter(|bytes| *bytes > 0)?;
        Some(Transfer::seen(bytes).in_writes(writes(self.writes, Then::Rest, MOST_TICKETS)))
    }

    /// Bytes of those on the wire.
    pub(crate) fn ticket_bytes(&self) -> usize {
        whole(self.wire, MOST_TICKETS)
    }

    /// As a response of so much payload, over segments of so many bytes.
    pub(crate) fn response(&self, payload: usize, mss: usize) -> Transfer {
        let mut sizes = self.writes;
        let mut given = sizes
            .iter_mut()
            .take_while(|bytes| whole(**bytes, MOST_RESPONSE) > 0);
        if let Some(last) = given.by_ref().last() {
            *last = last.max(LEAST_REPEATED as f64);
        }
        Transfer::of_records(payload, self.records(mss)).in_writes(writes(
            sizes,
            Then::Again,
            MOST_RESPONSE,
        ))
    }

    /// How a response is cut.
    pub(crate) fn records(&self, mss: usize) -> Records {
        match whole(self.record, framing::MAX_PLAINTEXT as u32) {
            0 => Records {
                first: mss - framing::RECORD_OVERHEAD,
                ..Records::default()
            },
            payload => Records {
                first: payload.max(LEAST_REPEATED),
                later: payload.max(LEAST_REPEATED),
            },
        }
    }
}

/// Writes as they were seen, each of at most so many bytes; none where there are no sizes.
pub(crate) fn writes(sizes: Sizes, then: Then, most: u32) -> Option<Writes> {
    let sizes = sizes.map(|bytes| whole(bytes, most) as u32);
    let writes = Writes::new(Unit::Wire, then, sizes);
    (!writes.sizes().is_empty()).then_some(writes)
}
