//! How results are drawn.

use super::Metric;
use super::named::named;

/// A drawing of the results of a measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    /// Its name, unique in the study.
    pub id: String,
    /// The measure whose results are drawn.
    pub measure: String,
    /// What is drawn.
    pub plot: Plot,
    /// What changes along the horizontal axis. The CDF has the time there, a table nothing.
    pub x: Option<Parameter>,
    /// What changes from panel to panel.
    pub facet: Option<Parameter>,
    /// The time that is drawn.
    pub metric: Metric,
}

/// What a figure draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plot {
    /// The increase of each arm over the baseline.
    Increase,
    /// Percentiles of each arm.
    Percentiles,
    /// The distribution function of each arm.
    Cdf,
    /// The numbers themselves.
    Table,
}

named!(Plot, "plot", {
    Increase => "increase",
    Percentiles => "percentiles",
    Cdf => "cdf",
    Table => "table",
});

impl Plot {
    /// Whether something changes along its horizontal axis.
    pub(super) fn needs_x(self) -> bool {
        matches!(self, Plot::Increase | Plot::Percentiles)
    }
}

/// What can change from cell to cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// The name of the link.
    Link,
    /// Round-trip time.
    Rtt,
    /// Rate limit.
    Rate,
    /// Loss.
    Loss,
    /// Jitter.
    Jitter,
    /// The server's initial congestion window.
    Initcwnd,
    /// Response payload.
    Data,
}

named!(Parameter, "parameter", {
    Link => "link",
    Rtt => "rtt",
    Rate => "rate",
    Loss => "loss",
    Jitter => "jitter",
    Initcwnd => "initcwnd",
    Data => "data",
});
