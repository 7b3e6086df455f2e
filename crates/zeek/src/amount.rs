//! Numbers that take no more room for being optional.

use std::num::{NonZeroU32, NonZeroU64};

/// A number, stored as the next one, so that none can be zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Amount<N>(N);

impl<N: Copy + TryFrom<NonZeroU64> + Into<NonZeroU64>> Amount<N> {
    /// `None` of what it does not hold.
    pub(crate) fn new(number: u64) -> Option<Self> {
        let next = NonZeroU64::new(number.checked_add(1)?)?;
        N::try_from(next).ok().map(Amount)
    }

    pub(crate) fn get(self) -> u64 {
        self.0.into().get() - 1
    }
}

/// Bytes or microseconds.
pub(crate) type Large = Amount<NonZeroU64>;
/// As many as 32 bits hold.
pub(crate) type Small = Amount<NonZeroU32>;
