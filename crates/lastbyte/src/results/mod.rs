//! Rows, samples, percentiles and their intervals.

pub(crate) mod check;
mod environment;
#[cfg(test)]
pub(crate) mod fixtures;
mod metric;
pub(crate) mod number;
mod row;
pub mod rows;
pub mod stats;
mod summary;
#[cfg(test)]
mod tests;
mod threshold;
mod warning;

pub use check::check;
pub use environment::{Environment, Host};
pub use metric::{Metric, NoPercentile, Percentile, UnknownMetric};
pub use row::{Lateness, Outcome, Resumption, Row, TcpStats, Times, Wire};
pub use stats::{Estimate, Interval, Percent};
pub use summary::{
    Absent, ArmSummary, CellSummary, Measured, MetricSummary, Role, ServerFlights, Summary,
    Typical, WireSummary,
};
pub use threshold::{Bound, Comparison, Threshold, ThresholdError, ThresholdProblem};
pub use warning::{Problem, Warning};

use std::time::Duration;

/// One arm in one cell: its connections and how the engine fared.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Index into the experiment's arms.
    pub arm: usize,
    /// Index into the experiment's cells.
    pub cell: usize,
    /// The connections, by index.
    pub rows: Vec<Row>,
    /// SHA-256 of the certificates as sent, in hex.
    pub chain_digest: String,
    /// The sample as the engine saw it.
    pub engine: EngineReport,
}

/// How the engine fared in a sample.
#[derive(Clone, Debug, PartialEq)]
pub struct EngineReport {
    /// Connections under way at once, at most.
    pub concurrency: u32,
    /// How often the concurrency was lowered because the gate did not pass.
    pub lowered: u32,
    /// 99th percentile of packets' lateness.
    pub link_lateness_p99: Duration,
    /// Median over connections of the time that their steps waited for other connections.
    pub endpoint_wait_p50: Duration,
    /// Packets that the emulator delivered.
    pub packets: u64,
    /// CPU time of the emulator, with what the kernel did in its system calls.
    pub emulator_cpu: Duration,
    /// CPU time of the endpoints, with what the kernel did in their system calls.
    pub endpoint_cpu: Duration,
    /// Whether the engine disturbed the sample.
    pub validity: Validity,
}

/// Whether a sample may be trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Validity {
    /// The engine stayed within its bounds.
    Valid,
    /// It did not, for this reason, in one line with the mend.
    Invalid(String),
}
