//! The writes that something leaves in.

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
