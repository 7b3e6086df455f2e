//! What ways to send less are sorted by.

use lastbyte_link::named;

use crate::Metric;

/// Whose gain counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum By {
    /// That of the first byte of the response.
    FirstByte,
    /// That of its last byte.
    LastByte,
    /// The lesser of both: what brings the one sooner and the other later gains nothing.
    #[default]
    Both,
}

named!(By, "order", {
    FirstByte => "first-byte",
    LastByte => "last-byte",
    Both => "both",
});

impl By {
    /// The times that count, where there is a response.
    pub fn metrics(self) -> &'static [Metric] {
        match self {
            By::FirstByte => &[Metric::Ttfb],
            By::LastByte => &[Metric::Ttlb],
            By::Both => &[Metric::Ttfb, Metric::Ttlb],
        }
    }
}
