//! What one end sends at once, messages or application data: how it is cut, and in which writes it leaves.

use lastbyte_sizes::framing::{MAX_PLAINTEXT, MSS, RECORD_OVERHEAD};

/// What one end sends before it waits for the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Messages with their headers, or application data, in bytes.
    pub payload: usize,
    /// How that is cut.
    pub cut: Cut,
    /// In which writes it leaves; none where that is not known, which is as if it were one.
    pub writes: Option<Writes>,
}

/// How payload is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Into records of these sizes, at most.
    Records(Records),
    /// As it was seen: so many bytes of records around it, and of what is no payload.
    Around(usize),
}

/// How application data are cut into TLS records, in bytes of payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Records {
    /// What the first record holds.
    pub first: usize,
    /// What each later record holds.
    pub later: usize,
}

impl Transfer {
    /// Application data in records of these sizes, in one write as far as is known.
    #[must_use]
    pub fn of_records(payload: usize, records: Records) -> Transfer {
        Transfer {
            payload,
            cut: Cut::Records(records),
            writes: None,
        }
    }

    /// What was seen to have so many bytes on the wire, however many of those are payload.
    #[must_use]
    pub fn seen(wire_bytes: usize) -> Transfer {
        Transfer {
            payload: 0,
            cut: Cut::Around(wire_bytes),
            writes: None,
        }
    }

    /// The same in these writes.
    #[must_use]
    pub fn in_writes(self, writes: Option<Writes>) -> Transfer {
        Transfer { writes, ..self }
    }
}

impl Records {
    /// Records that hold as much as they can.
    #[must_use]
    pub fn whole() -> Records {
        Records {
            first: MAX_PLAINTEXT,
            later: MAX_PLAINTEXT,
        }
    }

    /// Payload of the record that starts at offset `sent` of `all` bytes.
    #[must_use]
    pub fn payload(&self, sent: u64, all: u64) -> usize {
        let limit = match sent {
            0 => self.first,
            _ => self.later,
        };
        usize::try_from(all - sent).map_or(limit, |left| left.min(limit))
    }

    /// The bytes on the wire of `payload` bytes.
    #[must_use]
    pub fn wire_bytes(&self, payload: usize) -> usize {
        let first = payload.min(self.first.max(1));
        let later = (payload - first).div_ceil(self.later.max(1));
        payload + RECORD_OVERHEAD * (later + usize::from(first > 0))
    }

    /// The bytes on the wire of the first record of `payload` bytes.
    #[must_use]
    pub fn first_wire_bytes(&self, payload: usize) -> usize {
        self.wire_bytes(payload.min(self.first.max(1)))
    }
}

impl Default for Records {
    /// As large sites do: the first record fills one segment, the others hold as much as records can.
    fn default() -> Records {
        Records {
            first: MSS - RECORD_OVERHEAD,
            later: MAX_PLAINTEXT,
        }
    }
}

/// The sizes of the writes in which an end sends something. In TCP, each ends with a segment that need not be full. There are at
/// most [`Writes::MOST`] sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Writes {
    sizes: Vec<u32>,
    unit: Unit,
    then: Then,
}

/// What the bytes of a write are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Payload: each write has records of its own.
    Payload,
    /// All that was seen on the wire.
    Wire,
}

/// What follows the last size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// All that is left, in one write.
    Rest,
    /// Writes of the same size.
    Again,
}

impl Writes {
    /// Sizes at most: until records of Go's net/http, which grow, fill sixty segments.
    pub const MOST: usize = 12;

    /// All is one write.
    #[must_use]
    pub fn one() -> Writes {
        Writes::new(Unit::Wire, Then::Rest, [])
    }

    /// The first of these sizes, as many as there may be, up to the first that is 0.
    #[must_use]
    pub fn new(unit: Unit, then: Then, sizes: impl IntoIterator<Item = u32>) -> Writes {
        let sizes = sizes.into_iter().take_while(|size| *size > 0);
        Writes {
            sizes: sizes.take(Writes::MOST).collect(),
            unit,
            then,
        }
    }

    /// The sizes that are known, in bytes.
    #[must_use]
    pub fn sizes(&self) -> &[u32] {
        &self.sizes
    }

    /// What their bytes are.
    #[must_use]
    pub fn unit(&self) -> Unit {
        self.unit
    }

    /// So many bytes in these writes.
    #[must_use]
    pub fn of(&self, bytes: usize) -> Vec<usize> {
        let known = self.sizes.iter().map(|size| *size as usize);
        let again = match (self.then, self.sizes.last()) {
            (Then::Again, Some(last)) => *last as usize,
            _ => usize::MAX,
        };
        let mut sizes = known.chain(std::iter::repeat(again));
        let mut left = bytes;
        let mut writes = Vec::new();
        while let Some(size) = sizes.next().filter(|_| left > 0) {
            writes.push(size.min(left));
            left = left.saturating_sub(size);
        }
        writes
    }
}
