//! An experiment's results: what every sample comes to.

use std::borrow::Borrow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::thread;
use std::time::Duration;

use lastbyte_flights::{flights_needed, segments};
use lastbyte_link::Bytes;

use super::change::Since;
use super::expected::linux_buffers_matter;
use super::family;
use super::look::{self, Look};
use super::stats::{self, Estimate, Level, Percent, Percentiles, Series};
use super::warning::{self, Warning};
use super::{
    DeliveryOutcome, EarlyData, EngineReport, Metric, Outcome, Percentile, Resumption, Row, Sample,
    Validity, Wire,
};
use lastbyte_sizes::Message;

use crate::study::{Arm, Cell, Experiment, distinctions};

/// What an experiment found.
#[derive(Clone, Debug)]
pub struct Summary {
    /// What was asked.
    pub experiment: Experiment,
    /// The percentiles that are told, in ascending order.
    pub percentiles: Vec<Percentile>,
    /// The cells, in the order of the experiment.
    pub cells: Vec<CellSummary>,
    /// What to mind when reading the results.
    pub warnings: Vec<Warning>,
    /// The largest p-value that counts as a difference among all that are told together.
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
    /// Whether all that is told of it is as precise as was asked for.
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
    /// Connections that failed or timed out, by reason, the most frequent first.
    pub failures: Vec<(String, u32)>,
    /// Message sizes and what was negotiated; `None` if no connection completed.
    pub wire: Option<WireSummary>,
    /// Whether Linux's own buffers, in place of the cell's, would change the last byte by more than 1 %.
    pub(super) linux_buffers_matter: bool,
    /// SHA-256 of the certificates as sent, in hex.
    pub chain_digest: String,
    /// How the engine fared.
    pub engine: EngineReport,
    /// To TCP established.
    pub connect: MetricSummary,
    /// To the client's Finished written.
    pub handshake: MetricSummary,
    /// To the first response payload byte decrypted.
    pub ttfb: MetricSummary,
    /// To the last response payload byte decrypted.
    pub ttlb: MetricSummary,
    /// From TCP established to the client's Finished written. Empty in an experiment without DNS.
    pub tls_handshake: MetricSummary,
    /// From the queries to the record. Empty in an experiment without DNS.
    pub dns_record: MetricSummary,
    /// What became of the records that clients asked for, and of how many connections that is said.
    /// Empty if they asked for none.
    pub deliveries: Vec<(DeliveryOutcome, u32)>,
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
    /// The percentiles that are told.
    pub percentiles: BTreeMap<Percentile, Measured<Duration>>,
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
    /// There is nothing to compare with.
    #[error("the baseline has none")]
    NoBaseline,
    /// There was nothing then to compare with.
    #[error("the saved results have none")]
    NoSaved,
}

/// What the handshakes of a sample's completed connections were on the wire. Message sizes are
/// bytes with the 4-byte handshake header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireSummary {
    /// How large each message was, in the order of [`Message`].
    messages: [Typical; Message::COUNT],
    /// Segments that the ClientHello took.
    pub client_hello_segments: Typical,
    /// Certificates in the server's Certificate.
    pub certificates: Typical,
    /// The server's session tickets on the wire, record framing included, in bytes.
    pub ticket_wire_bytes: Typical,
    /// The server's handshake messages on the wire, record framing included, in bytes.
    pub server_wire_bytes: Typical,
    /// How the server's messages were cut, if its MSS is known.
    pub server_flights: Option<ServerFlights>,
    /// Key-exchange group (IANA code point).
    pub group: Option<u16>,
    /// Cipher suite (IANA code point).
    pub cipher_suite: Option<u16>,
    /// Signature scheme of the server's CertificateVerify (IANA code point).
    pub signature: Option<u16>,
    /// Signature scheme of the client's CertificateVerify (IANA code point).
    pub client_signature: Option<u16>,
    /// Whether a session was resumed.
    pub resumption: Resumption,
    /// What became of early data.
    pub early_data: EarlyData,
}

/// A number that all connections of a sample have in common, or nearly: the lengths of
/// ECDSA signatures vary by a byte or two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Typical {
    /// The median; what all have, when they agree.
    pub median: u32,
    /// The least.
    pub least: u32,
    /// The most.
    pub most: u32,
}

/// The server's handshake messages as TCP sends them without loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerFlights {
    /// Segments that hold them.
    pub segments: usize,
    /// Flights: each one after the first costs the handshake a round trip.
    pub flights: u32,
}

impl Summary {
    /// Summarises `samples` of `experiment`, in any order. Samples that are missing, as after an
    /// interruption, are left out.
    pub fn new(experiment: &Experiment, samples: &[Sample], percentiles: &[Percentile]) -> Summary {
        let in_cell = |cell| -> Result<Vec<&Sample>, Infallible> {
            Ok(samples
                .iter()
                .filter(|sample| sample.cell == cell)
                .collect())
        };
        let Ok(summary) = Summary::by_cell(experiment, percentiles, in_cell);
        summary
    }

    /// Summarises an experiment of which no more cells are in memory than there are processors:
    /// `samples_of` gives the samples of a cell, by its index, one cell after the other.
    ///
    /// # Errors
    ///
    /// When `samples_of` has one.
    pub fn by_cell<S: Borrow<Sample> + Send, E>(
        experiment: &Experiment,
        percentiles: &[Percentile],
        mut samples_of: impl FnMut(usize) -> Result<Vec<S>, E>,
    ) -> Result<Summary, E> {
        let mut percentiles = percentiles.to_vec();
        percentiles.sort_unstable();
        percentiles.dedup();
        let names = distinctions(&experiment.cells);
        let mut cells = Vec::new();
        let mut left = experiment.cells.iter().zip(names).enumerate().peekable();
        // As many cells at once as there are processors.
        let most = thread::available_parallelism().map_or(1, NonZero::get);
        while left.peek().is_some() {
            let mut batch = Vec::new();
            for (index, (cell, name)) in left.by_ref().take(most) {
                batch.push((cell, name, samples_of(index)?));
            }
            cells.extend(thread::scope(|scope| {
                let running: Vec<_> = (batch.into_iter())
                    .map(|(cell, name, samples)| {
                        let percentiles = &percentiles;
                        scope.spawn(move || {
                            CellSummary::new(experiment, cell, name, &samples, percentiles)
                        })
                    })
                    .collect();
                // A panic there is one here.
                let join = |cell: thread::ScopedJoinHandle<'_, _>| {
                    cell.join().unwrap_or_else(|panic| resume_unwind(panic))
                };
                running.into_iter().map(join).collect::<Vec<CellSummary>>()
            }));
        }
        let warnings = warning::warnings(experiment, &cells);
        let mut summary = Summary {
            experiment: experiment.clone(),
            percentiles,
            cells,
            warnings,
            critical: 0.0,
            critical_change: 0.0,
            since: None,
        };
        summary.critical = family::critical(summary.p_values().collect());
        Ok(summary)
    }

    /// Those of all increases that are told.
    pub fn p_values(&self) -> impl Iterator<Item = f64> {
        self.told(|metric| &metric.p_values)
    }

    /// Those of all changes that are told.
    pub(super) fn change_p_values(&self) -> impl Iterator<Item = f64> {
        self.told(|metric| &metric.change_p_values)
    }

    fn told(
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

impl MetricSummary {
    /// The increase of a percentile, if it is a difference: its interval does not hold zero, and it
    /// stands out among all that are told together, of whose p-values `critical` is the last that counts.
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
    fn new<S: Borrow<Sample>>(
        experiment: &Experiment,
        cell: &Cell,
        name: String,
        samples: &[S],
        percentiles: &[Percentile],
    ) -> CellSummary {
        let of_arm = |arm| {
            let mut samples = samples.iter().map(Borrow::borrow);
            samples.find(|sample: &&Sample| sample.arm == arm)
        };
        let arms = experiment.arms.iter().enumerate();
        let measured: Vec<_> = arms.map(|(index, arm)| (arm, of_arm(index))).collect();
        summarise(cell, name, &measured, percentiles, experiment)
    }

    /// The arm that the others are compared with, if it was measured.
    pub fn baseline(&self) -> Option<&ArmSummary> {
        self.arms.iter().find(|arm| arm.role == Role::Baseline)
    }

    /// ` at 50KiB`, to stand behind what is told of it; nothing if it stands alone.
    pub(crate) fn place(&self) -> String {
        match &*self.name {
            "" => String::new(),
            name => format!(" at {name}"),
        }
    }
}

impl ArmSummary {
    /// One of its metrics.
    pub fn metric(&self, metric: Metric) -> &MetricSummary {
        match metric {
            Metric::Connect => &self.connect,
            Metric::Handshake => &self.handshake,
            Metric::Ttfb => &self.ttfb,
            Metric::Ttlb => &self.ttlb,
            Metric::TlsHandshake => &self.tls_handshake,
            Metric::DnsRecord => &self.dns_record,
        }
    }

    pub(super) fn metric_mut(&mut self, metric: Metric) -> &mut MetricSummary {
        match metric {
            Metric::Connect => &mut self.connect,
            Metric::Handshake => &mut self.handshake,
            Metric::Ttfb => &mut self.ttfb,
            Metric::Ttlb => &mut self.ttlb,
            Metric::TlsHandshake => &mut self.tls_handshake,
            Metric::DnsRecord => &mut self.dns_record,
        }
    }

    /// Connections that failed or timed out.
    pub fn failed(&self) -> u32 {
        self.failures
            .iter()
            .map(|(_, connections)| connections)
            .sum()
    }
}

/// The samples of one cell, in the order of their arms, the first of which is the baseline.
fn summarise(
    cell: &Cell,
    name: String,
    measured: &[(&Arm, Option<&Sample>)],
    percentiles: &[Percentile],
    experiment: &Experiment,
) -> CellSummary {
    let level = Level::of(&experiment.connections);
    let series = |metric: Metric, sample: Option<&Sample>| -> Series {
        look::series(metric, sample.into_iter().flat_map(|sample| &sample.rows))
    };
    let uses_dns = experiment.arms.iter().any(|arm| arm.delivery.asks_dns());
    let metrics: &[Metric] = match uses_dns {
        true => &Metric::ALL,
        false => &Metric::FROM_CONNECT,
    };
    // All at once, since drawing the resamples takes as long as ranking them.
    let all: Vec<Series> = (metrics.iter())
        .flat_map(|metric| measured.iter().map(|(_, sample)| series(*metric, *sample)))
        .collect();
    let known = stats::percentiles(&all, percentiles, experiment.seed);
    let known = |metric: Metric| -> &[Percentiles] {
        let place = metrics.iter().position(|known| *known == metric);
        let mut chunks = known.chunks(measured.len().max(1));
        place
            .and_then(|place| chunks.nth(place))
            .unwrap_or_default()
    };
    let arms = measured
        .iter()
        .enumerate()
        .filter_map(|(index, (arm, sample))| {
            let sample = (*sample)?;
            let [connect, handshake, ttfb, ttlb, tls_handshake, dns_record] =
                Metric::ALL.map(|metric| {
                    let absent = absence(metric, cell, sample);
                    MetricSummary::new(absent, known(metric), index, percentiles, level)
                });
            Some(ArmSummary {
                label: arm.name.clone(),
                role: if index == 0 {
                    Role::Baseline
                } else {
                    Role::Compared
                },
                validity: sample.validity(arm),
                connections: count(sample.rows.len()),
                failures: failures(&sample.rows),
                wire: WireSummary::of(&sample.rows, cell),
                linux_buffers_matter: (sample.rows.iter())
                    .find(|row| row.outcome == Outcome::Completed)
                    .is_some_and(|row| linux_buffers_matter(&row.wire, cell, arm.record_size)),
                chain_digest: sample.chain_digest.clone(),
                engine: sample.engine.clone(),
                connect,
                handshake,
                ttfb,
                ttlb,
                tls_handshake,
                dns_record,
                deliveries: deliveries(&sample.rows),
            })
        });
    let told = look::told(cell).map(|metric| (metric, known(metric)));
    let samples = measured.iter().filter_map(|(_, sample)| *sample);
    CellSummary {
        cell: cell.clone(),
        name,
        arms: arms.collect(),
        look: look::judge(
            &experiment.connections,
            samples.map(|sample| sample.rows.len()).min().unwrap_or(0),
            percentiles,
            told,
        ),
    }
}

/// What became of records, in the order of [`DeliveryOutcome::ALL`].
fn deliveries(rows: &[Row]) -> Vec<(DeliveryOutcome, u32)> {
    let of = |outcome| {
        let such = rows.iter().filter(|row| row.dns.outcome == Some(outcome));
        (outcome, count(such.count()))
    };
    let all = DeliveryOutcome::ALL.map(of).into_iter();
    all.filter(|(_, connections)| *connections > 0).collect()
}

/// Why percentiles of a sample are absent, if they are.
fn absence(metric: Metric, cell: &Cell, sample: &Sample) -> Absent {
    let late = sample.rows.iter().filter(|row| metric.of(row).is_none());
    match metric {
        Metric::Ttfb if cell.data == Bytes(0) => Absent::NoData,
        _ => Absent::Failures {
            failed: count(late.count()),
            connections: count(sample.rows.len()),
        },
    }
}

impl MetricSummary {
    /// Of the arm at `index` of those that are `known`, of which the first is the baseline.
    fn new(
        absent: Absent,
        known: &[Percentiles],
        index: usize,
        percentiles: &[Percentile],
        level: Level,
    ) -> MetricSummary {
        let mut summary = MetricSummary::default();
        let (Some(own), Some(baseline)) = (known.get(index), known.first()) else {
            return summary;
        };
        for percentile in percentiles.iter().copied() {
            let time = own.estimate(percentile, level).ok_or(absent);
            if index > 0 {
                let increase = own
                    .increase(baseline, percentile, level)
                    .ok_or(Absent::NoBaseline);
                summary.increases.insert(percentile, time.and(increase));
                let p_value = own.p_value(baseline, percentile, level);
                summary.p_values.insert(percentile, p_value);
            }
            summary.percentiles.insert(percentile, time);
            let neighbours = own.neighbours(percentile).map(|pair| (percentile, pair));
            summary.neighbours.extend(neighbours);
        }
        summary
    }
}

/// Reasons with how many connections failed for them, the most frequent first.
fn failures(rows: &[Row]) -> Vec<(String, u32)> {
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for row in rows {
        let reason = match &row.outcome {
            Outcome::Completed => continue,
            Outcome::TimedOut => "timed out",
            Outcome::Failed(reason) => reason,
        };
        *counts.entry(reason).or_default() += 1;
    }
    let mut failures: Vec<_> = counts
        .into_iter()
        .map(|(reason, count)| (reason.to_owned(), count))
        .collect();
    failures.sort_by_key(|(_, count)| Reverse(*count));
    failures
}

impl WireSummary {
    /// How large a message was, in bytes with its 4-byte handshake header; zero if there was none.
    pub fn bytes(&self, message: Message) -> Typical {
        self.messages[message as usize]
    }

    fn of(rows: &[Row], cell: &Cell) -> Option<WireSummary> {
        let completed = || rows.iter().filter(|row| row.outcome == Outcome::Completed);
        let first = completed().next()?.wire;
        let typical =
            |number: fn(&Wire) -> u32| Typical::of(completed().map(|row| number(&row.wire)));
        let server_wire_bytes = typical(|wire| wire.server_flight_wire_bytes)?;
        let mss = Typical::of(completed().filter_map(|row| Some(row.server_tcp?.mss)));
        Some(WireSummary {
            messages: Message::all()
                .map(|message| Typical::of(completed().map(|row| row.wire.bytes(message))))
                .collect::<Option<Vec<_>>>()?
                .try_into()
                .ok()?,
            client_hello_segments: typical(|wire| wire.client_hello_segments)?,
            certificates: typical(|wire| wire.certificates)?,
            ticket_wire_bytes: typical(|wire| wire.ticket_wire_bytes)?,
            server_wire_bytes,
            server_flights: mss.map(|mss| {
                let (bytes, mss) = (server_wire_bytes.median as usize, mss.median as usize);
                ServerFlights {
                    segments: segments(bytes, mss),
                    flights: flights_needed(bytes, mss, cell.initcwnd),
                }
            }),
            group: first.group,
            cipher_suite: first.cipher_suite,
            signature: first.signature,
            client_signature: first.client_signature,
            resumption: first.resumption,
            early_data: first.early_data,
        })
    }
}

impl Typical {
    /// Of two samples that should agree.
    pub(crate) fn merge(self, other: Typical) -> Typical {
        Typical {
            median: self.median,
            least: self.least.min(other.least),
            most: self.most.max(other.most),
        }
    }

    /// `None` of nothing. Of an even number of numbers, the median is the lower one.
    fn of(numbers: impl IntoIterator<Item = u32>) -> Option<Typical> {
        let mut numbers: Vec<u32> = numbers.into_iter().collect();
        numbers.sort_unstable();
        Some(Typical {
            median: *numbers.get(numbers.len().checked_sub(1)? / 2)?,
            least: *numbers.first()?,
            most: *numbers.last()?,
        })
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

fn count(connections: usize) -> u32 {
    u32::try_from(connections).unwrap_or(u32::MAX)
}
