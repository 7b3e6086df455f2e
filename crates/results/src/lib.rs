//! Rows, samples, percentiles and their intervals.

#[cfg(any(test, feature = "fixtures"))]
pub mod arbitrary;
mod budget;
mod change;
pub mod check;
mod costs;
mod cut;
mod dataset;
mod environment;
mod expected;
mod failures;
pub mod family;
#[cfg(any(test, feature = "fixtures"))]
pub mod fixtures;
mod folder;
mod gather;
mod loaded;
mod loads;
mod look;
mod lost;
mod measurements;
mod merged;
mod modes;
pub mod number;
mod part;
mod problems;
pub mod reduce;
mod repeats;
pub mod rows;
mod saved;
mod since;
pub mod stats;
mod summarise;
mod summary;
#[cfg(test)]
mod tests;
mod threshold;
pub mod validate;
mod waited;
mod waiting;
mod warning;

pub use budget::{Budget, BudgetError, BudgetProblem, Facts, Need, Spending, Spent};
pub use check::{Unlike, check, check_page_wire, check_wire};
pub use costs::{Beside, CpuCosts, CpuCostsError, Flights, Picoseconds, RecordCost};
pub(crate) use cut::{Cut, Sent};
pub use dataset::{Dataset, Progress, Samples};
pub use environment::{Environment, Host, KERNEL_SOURCE, QUIC, command_of};
pub use expected::buffers_change_no_packet;
pub use expected::{expected, expected_duration, quic_flights};
pub use failures::{Failures, Reasons};
pub use folder::{Action, Damage, Folder, FolderError, Manifest, ManifestError, Start, file_name};
pub use gather::{GatherError, Gathered, gather};
pub use lastbyte_exchange::{
    ChainSignal, Compression, EarlyData, Exchange, FailedAttempt, HandshakeFlight, HelloDigest,
    Negotiated, Resumption,
};
pub use lastbyte_sizes::Outcome as DeliveryOutcome;
pub use lastbyte_study::row::{
    Cause, Dns, EndStats, FailureKind, Lateness, Measurement, Outcome, PageLoad, QuicCounts,
    QuicStats, Row, TcpStats, Times, TransportStats,
};
pub use loaded::{Loaded, SeenConnection};
pub use loads::{PAGES, block_name, loads_path, read_loads};
pub use look::{Fault, Imprecision, Look, look};
pub use lost::{Losses, Lost};
pub use measurements::group_by;
pub use measurements::{Group, Measurements, Missing, SampleTimes, baseline, groups};
pub use merged::{SampleKey, write_rows};
pub use modes::Mode;
#[cfg(feature = "fixtures")]
pub use part::parse_part;
pub use part::{Part, PartError, PartHeader, PartProblem, part_of, read_part, write_part};
pub use saved::{Moment, SILENT, Saved, SavedError};
pub use since::{Pairing, Since};
pub use stats::{Estimate, Interval, Level, Percent};
pub use summary::{
    Absent, ArmSummary, CellSummary, Measured, MetricSummary, Role, ServerFlights, Shares, Summary,
    Typical, WireSummary,
};
pub use threshold::{Bound, Comparison, Threshold, ThresholdError, ThresholdProblem, Verdict};
pub use waiting::{Side as ComparedSide, Slower, Step, Waiting, waiting};
pub use warning::{Problem, Warning};

pub use lastbyte_study::{Metric, NoPercentile, Percentile};

use std::time::Duration;

use serde::{Deserialize, Serialize};

use lastbyte_study::{Buffers, Profile};

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

/// How the engine fared in a sample, or in a block of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EngineReport {
    /// Connections under way at once, at most.
    pub concurrency: u32,
    /// How often the concurrency was lowered because the gate did not pass.
    pub lowered: u32,
    /// 99th percentile of packets' lateness.
    #[serde(rename = "link_lateness_p99_ns", with = "nanoseconds")]
    pub link_lateness_p99: Duration,
    /// Median over connections of the time that their steps waited for other connections.
    #[serde(rename = "endpoint_wait_p50_ns", with = "nanoseconds")]
    pub endpoint_wait_p50: Duration,
    /// Packets that the emulator delivered.
    pub packets: u64,
    /// CPU time of the emulator, with what the kernel did in its system calls.
    #[serde(rename = "emulator_cpu_ns", with = "nanoseconds")]
    pub emulator_cpu: Duration,
    /// CPU time of the endpoints, with what the kernel did in their system calls.
    #[serde(rename = "endpoint_cpu_ns", with = "nanoseconds")]
    pub endpoint_cpu: Duration,
    /// CPU time that was put back into virtual time, where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_costs: Option<CpuCosts>,
    /// CPU time beside virtual time, where it is known.
    #[serde(default, skip_serializing_if = "Beside::is_empty")]
    pub beside: Beside,
    /// What other people's programs took in virtual time, where they took any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub computing: Option<Profile>,
    /// Whose buffers hosts had where that was left to the engine.
    #[serde(default)]
    pub buffers: Buffers,
    /// Whether the engine disturbed the sample.
    pub validity: Validity,
}

/// What times consist of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Contents {
    /// The network, and what waits for it: computing took no time.
    Network,
    /// The network, and what computing takes on the machine that measured, each for itself and in their sum.
    Shares,
    /// The network, and in its clock what programs that people run compute by a named profile: the same on every machine.
    Profile,
    /// The network, and in its clock what computing took on the machine that measured.
    Calibrated,
    /// All that happened, in real time.
    RealTime,
}

lastbyte_link::named!(Contents, "contents", {
    Network => "network",
    Shares => "network+computing",
    Profile => "profile",
    Calibrated => "calibrated",
    RealTime => "real-time",
});

impl EngineReport {
    /// What the times of the sample consist of.
    pub fn contents(&self) -> Contents {
        let is_real = !(self.emulator_cpu.is_zero() && self.endpoint_cpu.is_zero());
        match self.cpu_costs {
            _ if !self.beside.is_empty() => Contents::Shares,
            Some(_) => Contents::Calibrated,
            None if self.computing.is_some() => Contents::Profile,
            None if is_real => Contents::RealTime,
            None => Contents::Network,
        }
    }
}

/// Whether a sample may be trusted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Validity {
    /// The engine stayed within its bounds.
    Valid,
    /// It did not, for this reason, in one line with the hint.
    Invalid(String),
}

/// Durations as whole nanoseconds.
mod nanoseconds {
    use std::time::Duration;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    use super::rows::LONGEST;

    pub(super) fn serialize<S: Serializer>(duration: &Duration, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_u64(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        let time = Duration::from_nanos(u64::deserialize(from)?);
        if time <= LONGEST {
            Ok(time)
        } else {
            Err(D::Error::custom(format_args!(
                "{} ns are no time that anything takes",
                time.as_nanos()
            )))
        }
    }
}
