//! What an experiment found: the numbers of every sample, and what to mind.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use jiff::SignedDuration;
use lastbyte_exchange::Negotiated;
use lastbyte_flights::Reason;
use lastbyte_flights::quic::Hold;
use lastbyte_sizes::Message;

use super::costs::Beside;
use super::failures::Failures;
use super::look::Look;
use super::modes::Mode;
use super::since::Since;
use super::stats::{Estimate, Interval, Level, Percent};
use super::waited::apart;
use super::waiting::Waiting;
use super::warning::Warning;
use super::{Contents, DeliveryOutcome, EngineReport, Metric, Percentile, Validity};
use lastbyte_study::{Cell, Experiment, TransportName};

/// What an experiment found.
#[derive(Clone, Debug)]
pub struct Summary {
    /// What was asked.
    pub experiment: Experiment,
    /// The percentiles that are reported, in ascending order.
    pub percentiles: Vec<Percentile>,
    /// The cells, in the order of the experiment.
    pub cells: Vec<CellSummary>,
    /// What to mind when reading the results.
    pub warnings: Vec<Warning>,
    /// The largest p-value that counts as a difference among all that are reported together.
    pub critical: f64,
    /// The same of changes.
    pub critical_change: f64,
    /// The saved results that the changes are since, if it was compared with any.
    pub since: Option<Since>,
}

/// What was found in one cell.
#[derive(Clone, Debug)]
pub struct CellSummary {
    /// The cell.
    pub cell: Cell,
    /// What tells it from the other cells; empty when it stands alone.
    pub name: String,
    /// The arms that were measured in it, in the order of the experiment.
    pub arms: Vec<ArmSummary>,
    /// Whether all that is reported of it is as precise as was asked for.
    pub look: Look,
}

/// One sample.
#[derive(Clone, Debug)]
pub struct ArmSummary {
    /// What the arm is called.
    pub label: String,
    /// What it is compared with.
    pub role: Role,
    /// Whether the sample may be trusted.
    pub validity: Validity,
    /// Connections measured, those that failed included.
    pub connections: u32,
    /// Connections that failed or timed out, by cause, the most frequent first.
    pub failures: Vec<Failures>,
    /// Message sizes and what was negotiated; `None` if no connection completed.
    pub wire: Option<WireSummary>,
    /// Whether Linux's own buffers, in place of large ones, would change the last byte by more than 1 %.
    pub(super) linux_buffers_matter: bool,
    /// Connections that sent packets again over a link that loses and delays none, and why, if arithmetic has that.
    pub(super) sent_again: Option<(u32, Option<Reason>)>,
    /// SHA-256 of the certificates as sent, in hex.
    pub chain_digest: String,
    /// How the engine fared.
    pub engine: EngineReport,
    /// In the order of [`Metric::ALL`]; empty of those that the cell does not have.
    pub(super) metrics: [MetricSummary; Metric::ALL.len()],
    /// How much longer connections wait than with the baseline, where a population is measured: for each metric
    /// that says something, all of them and then each class.
    pub waiting: Vec<Waiting>,
    /// What became of the records that clients asked for, and of how many connections that is said.
    /// Empty if they asked for none.
    pub deliveries: Vec<(DeliveryOutcome, u32)>,
    /// The times that loads of a page end at, of those of its times that have several.
    pub modes: Vec<(Metric, Vec<Mode>)>,
    /// How much of a page's time to first byte browser and server computed, in the middle of all loads; none where that was not seen.
    pub ttfb_computing: Option<Duration>,
    /// Processor time that the page's main thread had taken by the load event, in the middle of all loads; none where that was not
    /// traced.
    pub load_cpu: Option<Duration>,
    /// Processor time of all of browser's and server's processes by then, likewise.
    pub programs_cpu: Option<Duration>,
}

/// What an arm is to the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The others are compared with it.
    Baseline,
    /// It is compared with the baseline.
    Compared,
}

/// One metric of one sample.
#[derive(Clone, Debug, Default)]
pub struct MetricSummary {
    /// The percentiles that are reported.
    pub percentiles: BTreeMap<Percentile, Measured<Duration>>,
    /// What is the network's of them, where computing is known beside it: the percentiles without that, and where luck
    /// makes networks other than each other, the percentiles less what computing typically adds. Empty where
    /// nothing is known of it.
    pub network: BTreeMap<Percentile, Duration>,
    /// Their increases over the baseline's; none for the baseline itself.
    pub increases: BTreeMap<Percentile, Measured<Percent>>,
    /// How probable such increases would be without a difference; none for the baseline itself.
    pub p_values: BTreeMap<Percentile, f64>,
    /// Their changes since results were saved; none if they were not compared with any.
    pub changes: BTreeMap<Percentile, Measured<Percent>>,
    /// How probable such changes would be if nothing had changed.
    pub change_p_values: BTreeMap<Percentile, f64>,
    /// The connections just below and just above each percentile.
    pub neighbours: BTreeMap<Percentile, (Duration, Duration)>,
}

/// A number with its interval, or why there is none.
pub type Measured<T> = Result<Estimate<T>, Absent>;

/// Why there is no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Absent {
    /// The percentile leans on a connection that failed.
    #[error("{failed} of {connections} connections failed")]
    Failures {
        /// Connections that failed or timed out.
        failed: u32,
        /// Connections measured.
        connections: u32,
    },
    /// No request is sent for 0 bytes of data, so there is no first byte.
    #[error("no request is sent for 0 bytes of data")]
    NoData,
    /// QUIC has no handshake of its own before TLS's.
    #[error("there is no TCP")]
    NoTcp,
    /// There is nothing to compare with.
    #[error("the baseline has none")]
    NoBaseline,
    /// There was nothing then to compare with.
    #[error("the saved results have none")]
    NoSaved,
}

/// What the handshakes of a sample's completed connections were on the wire.
#[derive(Clone, Debug)]
pub struct WireSummary {
    /// What the first of them negotiated.
    pub negotiated: Negotiated,
    /// How the server's messages were cut, if its MSS is known.
    pub server_flights: Option<ServerFlights>,
    /// By the names of their columns.
    pub(super) sizes: BTreeMap<&'static str, Typical>,
}

/// A number that all connections of a sample have in common, or nearly: the lengths of
/// ECDSA signatures vary by a byte or two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Typical {
    /// The median; what all have, when they agree.
    pub median: u32,
    /// The least.
    pub least: u32,
    /// The most.
    pub most: u32,
}

/// The server's handshake messages as its transport sends them without loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerFlights {
    /// Segments of TCP, or datagrams of QUIC, that hold them.
    pub segments: usize,
    /// Flights: each one after the first costs the handshake a round trip.
    pub flights: u32,
    /// What ended the flight before the last one, where there is one.
    pub held: Option<Hold>,
    /// What carries them.
    pub transport: TransportName,
}

impl Summary {
    /// The percentile that sentences are about: the median, if that is reported.
    pub fn representative(&self) -> Option<Percentile> {
        let mut known = self.percentiles.iter();
        let median = known.find(|percentile| **percentile == Percentile::MEDIAN);
        median.or(self.percentiles.first()).copied()
    }

    /// What its times consist of; of samples that differ, what has most in it. `None` if nothing was measured.
    pub fn contents(&self) -> Option<Contents> {
        let samples = self.cells.iter().flat_map(|cell| &cell.arms);
        samples.map(|sample| sample.engine.contents()).max()
    }

    /// Those of all increases that are reported.
    pub fn p_values(&self) -> impl Iterator<Item = f64> {
        self.reported(|metric| &metric.p_values)
    }

    /// Those of all changes that are reported.
    pub(super) fn change_p_values(&self) -> impl Iterator<Item = f64> {
        self.reported(|metric| &metric.change_p_values)
    }

    fn reported(
        &self,
        of: impl Fn(&MetricSummary) -> &BTreeMap<Percentile, f64>,
    ) -> impl Iterator<Item = f64> {
        self.cells.iter().flat_map(move |cell| {
            let metrics = cell.cell.metrics().iter();
            let told = metrics.filter(|metric| **metric != Metric::Connect);
            let of_cell =
                told.flat_map(|metric| cell.arms.iter().map(move |arm| arm.metric(*metric)));
            let p_values = of_cell.flat_map(|metric| of(metric).values().copied());
            p_values.collect::<Vec<_>>()
        })
    }
}

/// What a time consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    /// The network's, and what waits for it.
    pub network: Duration,
    /// What it adds that the client and the server compute meanwhile. It takes time off where what is sent later meets
    /// a larger window.
    pub cpu: SignedDuration,
}

impl MetricSummary {
    /// What a percentile consists of, where that is known.
    pub fn shares(&self, percentile: Percentile) -> Option<Shares> {
        let whole = self.percentiles.get(&percentile)?.ok()?.value;
        let network = *self.network.get(&percentile)?;
        Some(Shares {
            network,
            cpu: apart(whole, network),
        })
    }

    /// Has its numbers as sure as they are where more connections would take the same time.
    pub(super) fn is_not_by_chance(&mut self) {
        for time in self.percentiles.values_mut().flatten() {
            time.interval = time.interval.or(time.value);
        }
        for (percentile, increase) in &mut self.increases {
            let Ok(increase) = increase else { continue };
            if increase.interval.is_unknown() {
                let p_value = if increase.value.0 == 0.0 { 1.0 } else { 0.0 };
                self.p_values.insert(*percentile, p_value);
            }
            increase.interval = increase.interval.or(increase.value);
        }
    }

    /// Widens the intervals of increases by what the calibrations of both sides may be off, each for itself.
    pub(super) fn widen_by_calibrations(&mut self, baseline: &MetricSummary) {
        let own = self.clone();
        for (percentile, increase) in &mut self.increases {
            let (Ok(increase), Some(before), Some(off)) = (
                increase,
                baseline.shares(*percentile),
                own.calibrations_apart(baseline, *percentile),
            ) else {
                continue;
            };
            let whole = before.network.as_secs_f64() + before.cpu.as_secs_f64();
            let off = 100.0 * off.as_secs_f64() / whole;
            let Interval { low, high } = &mut increase.interval;
            *low = low.map(|Percent(low)| Percent(low - off));
            *high = high.map(|Percent(high)| Percent(high + off));
        }
    }

    /// How far the calibrations of both sides may be off together, each for itself, where computing is known.
    pub fn calibrations_apart(
        &self,
        other: &MetricSummary,
        percentile: Percentile,
    ) -> Option<Duration> {
        let sides = [other.shares(percentile)?, self.shares(percentile)?];
        let [one, other] =
            sides.map(|shares| shares.cpu.unsigned_abs().as_secs_f64() * Beside::APART);
        Some(Duration::from_secs_f64(one.hypot(other)))
    }

    /// The increase of a percentile, if it is a difference: its interval does not hold zero, and it
    /// stands out among all that are reported together, of whose p-values `critical` is the last that counts.
    pub fn difference(&self, percentile: Percentile, critical: f64) -> Option<Estimate<Percent>> {
        shown(&self.increases, &self.p_values, percentile, critical)
    }

    /// The change of a percentile, if something has changed by the same criterion.
    pub fn change(&self, percentile: Percentile, critical: f64) -> Option<Estimate<Percent>> {
        shown(&self.changes, &self.change_p_values, percentile, critical)
    }
}

fn shown(
    estimates: &BTreeMap<Percentile, Measured<Percent>>,
    p_values: &BTreeMap<Percentile, f64>,
    percentile: Percentile,
    critical: f64,
) -> Option<Estimate<Percent>> {
    let estimate = estimates.get(&percentile)?.ok()?;
    let stands_out = p_values.get(&percentile).is_some_and(|p| *p <= critical);
    (stands_out && !estimate.interval.holds_zero()).then_some(estimate)
}

impl Summary {
    /// How sure its intervals are.
    pub fn level(&self) -> Level {
        Level::of(&self.experiment.connections)
    }
}

impl CellSummary {
    /// The cell with the buffers that its hosts had.
    pub fn as_measured(&self) -> Cow<'_, Cell> {
        match self.arms.first() {
            Some(arm) => self.cell.with_buffers(arm.engine.buffers),
            None => Cow::Borrowed(&self.cell),
        }
    }

    /// The arm that the others are compared with, if it was measured.
    pub fn baseline(&self) -> Option<&ArmSummary> {
        self.arms.iter().find(|arm| arm.role == Role::Baseline)
    }

    /// ` at 50KiB`, to stand behind what is reported of it; nothing if it stands alone.
    pub fn place(&self) -> String {
        match &*self.name {
            "" => String::new(),
            name => format!(" at {name}"),
        }
    }
}

impl ArmSummary {
    /// One of its metrics.
    pub fn metric(&self, metric: Metric) -> &MetricSummary {
        &self.metrics[metric as usize]
    }

    /// Widens the intervals of all increases, see [`MetricSummary::widen_by_calibrations`].
    pub(super) fn widen_by_calibrations(&mut self, baseline: &ArmSummary) {
        for metric in Metric::ALL {
            let before = baseline.metric(metric);
            self.metric_mut(metric).widen_by_calibrations(before);
        }
    }

    /// The same, to change it.
    pub fn metric_mut(&mut self, metric: Metric) -> &mut MetricSummary {
        &mut self.metrics[metric as usize]
    }

    /// Connections that failed or timed out.
    pub fn failed(&self) -> u32 {
        self.failures
            .iter()
            .map(|failures| failures.connections)
            .sum()
    }
}

impl WireSummary {
    /// How large a message was, in bytes with its 4-byte handshake header; zero if there was none.
    pub fn bytes(&self, message: Message) -> Typical {
        self.size(message.column())
    }

    /// The server's handshake messages on the wire, record framing included, in bytes.
    pub fn server_wire_bytes(&self) -> Typical {
        self.size("server_flight_wire_bytes")
    }

    /// What the server wrote of its handshake on connections that failed before these, record framing included,
    /// in bytes: zero where the first connection was the only one.
    pub fn failed_server_wire_bytes(&self) -> Typical {
        self.size("failed_server_flight_wire_bytes")
    }

    /// What a [column](super::rows::COLUMNS) of sizes says of them; zeros where it says nothing.
    pub fn size(&self, column: &str) -> Typical {
        self.sizes.get(column).copied().unwrap_or_default()
    }
}

impl Typical {
    /// Of two samples that should agree.
    pub fn merge(self, other: Typical) -> Typical {
        Typical {
            median: self.median,
            least: self.least.min(other.least),
            most: self.most.max(other.most),
        }
    }
}

impl fmt::Display for Typical {
    /// `1471`, or `79 (78-80)` when connections differ.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Typical {
            median,
            least,
            most,
        } = self;
        if least == most {
            return f.pad(&median.to_string());
        }
        f.pad(&format!("{median} ({least}-{most})"))
    }
}
