//! The document of `compare`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use lastbyte_exchange::Negotiated;
use lastbyte_link::{Direction, Link, Order, Probability, Qdisc, Rate, Trace};
use lastbyte_sizes::Message;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::answer::answer;
use super::assumed;
use super::text;
use super::waiting::{WaitingDocument, waiting_document};
use lastbyte_results::check::{cipher_suite_name, group_name, signature_name};
use lastbyte_results::{
    Absent, ArmSummary, CellSummary, Contents, EarlyData, Environment, Estimate, Interval,
    Measured, Metric, MetricSummary, Moment, Pairing, Percent, Percentile, Resumption, Role, Since,
    Summary, Typical, Validity, WireSummary,
};
use lastbyte_study::{Cell, Connections, Parameter, ParameterValue};

/// The JSON Schema of the document.
pub const SCHEMA: &str = include_str!("../schemas/compare-1.schema.json");

/// The whole summary as one JSON document, as [`SCHEMA`] has it. A number that can't be had is null,
/// and an entry in `notes` says why.
pub fn json(summary: &Summary, environment: &Environment) -> String {
    let mut notes = Notes::default();
    if let Some(precision) = text::precision(summary) {
        let of = match summary.experiment.connections {
            Connections::Until(_) => "until",
            Connections::UpTo(_) | Connections::Fixed(_) => "connections",
        };
        notes.add(of, precision);
    }
    let cells = summary.cells.iter().enumerate();
    let cells = cells
        .map(|(index, cell)| {
            let path = format!("cells[{index}]");
            MeasuredDocument::new(cell, summary.since.as_ref(), &path, &mut notes)
        })
        .collect();
    let document = Document {
        schema: "lastbyte.compare/1",
        engine: environment.engine.name(),
        seed: summary.experiment.seed.0,
        answer: answer(summary),
        contents: summary.contents().map(Contents::name),
        warnings: summary.warnings.iter().map(ToString::to_string).collect(),
        notes: notes.0,
        environment,
        connections: summary.experiment.connections.most(),
        until: UntilDocument::new(summary),
        timeout_ms: milliseconds(summary.experiment.timeout),
        since: summary.since.as_ref().map(|since| SinceDocument {
            name: &since.name,
            saved: since.at.map(Moment::rfc3339),
            paired: since.pairing == Pairing::ByConnection,
        }),
        arms: (summary.experiment.arms.iter())
            .map(|arm| (arm.name.as_str(), arm.label.as_str()))
            .collect(),
        assumptions: assumed::of_experiment(&summary.experiment),
        cells,
    };
    // Serialising plain structures to memory cannot fail.
    serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
}

/// The columns of sizes that are reported of each arm's handshake besides those of its messages.
const SIZES: [&str; 4] = [
    "client_hello_segments",
    "certificates",
    "server_flight_wire_bytes",
    "ticket_wire_bytes",
];

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    engine: &'a str,
    seed: u64,
    answer: Vec<String>,
    contents: Option<&'static str>,
    warnings: Vec<String>,
    notes: Vec<String>,
    environment: &'a Environment,
    connections: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<UntilDocument>,
    timeout_ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<SinceDocument<'a>>,
    /// Each arm as it was written, by what it is called.
    arms: BTreeMap<&'a str, &'a str>,
    assumptions: serde_json::Value,
    cells: Vec<MeasuredDocument<'a>>,
}

/// How precise cells were to be.
#[derive(Serialize)]
struct UntilDocument {
    precision_percent: f64,
    least: u32,
    most: u32,
    looks: usize,
    level_percent: f64,
}

/// The saved results that changes are since.
#[derive(Serialize)]
struct SinceDocument<'a> {
    name: &'a str,
    saved: Option<String>,
    paired: bool,
}

/// A cell with what was measured in it.
#[derive(Serialize)]
struct MeasuredDocument<'a> {
    #[serde(flatten)]
    cell: CellDocument<'a>,
    arms: Vec<ArmDocument<'a>>,
    increase_percent: Vec<IncreaseDocument<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    change_percent: Option<Vec<IncreaseDocument<'a>>>,
}

/// A cell: its link and its other parameters.
#[derive(Serialize)]
pub(super) struct CellDocument<'a> {
    /// What each connection draws.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    drawn: Vec<&'static str>,
    /// The name of the network, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<&'a str>,
    rtt_ms: Option<f64>,
    #[serde(flatten)]
    both: Option<BothDocument>,
    #[serde(skip_serializing_if = "Option::is_none")]
    forward: Option<DirectionDocument>,
    #[serde(skip_serializing_if = "Option::is_none")]
    backward: Option<DirectionDocument>,
    #[serde(flatten)]
    parameters: Parameters<'a>,
}

/// What both directions of a link have in common.
#[derive(Serialize)]
struct BothDocument {
    rate_bps: Option<u64>,
    loss: Option<f64>,
    loss_model: Option<String>,
    jitter_ms: Option<f64>,
}

/// One direction of a link.
#[derive(Serialize)]
struct DirectionDocument {
    delay_ms: f64,
    jitter_ms: f64,
    jitter_distribution: String,
    loss: f64,
    loss_model: Option<String>,
    rate_bps: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    jitter_order: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    qdisc: Option<String>,
    queue_packets: u32,
}

#[derive(Serialize)]
struct ArmDocument<'a> {
    arm: &'a str,
    baseline: bool,
    valid: bool,
    invalid_reason: Option<&'a str>,
    connections: u32,
    failed: u32,
    failures: Vec<FailureDocument<'a>>,
    #[serde(flatten)]
    sizes: BTreeMap<&'static str, Option<u32>>,
    server_segments: Option<usize>,
    server_flights: Option<u32>,
    negotiated: NegotiatedDocument,
    chain_sha256: &'a str,
    #[serde(flatten)]
    times: BTreeMap<String, ByPercentile<Option<f64>>>,
    intervals: BTreeMap<String, ByPercentile<IntervalDocument>>,
    /// Where they are known.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    shares: BTreeMap<String, ByPercentile<SharesDocument>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    delivery_outcomes: BTreeMap<&'static str, u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    waiting: Vec<WaitingDocument<'a>>,
    measurement: MeasurementDocument,
}

#[derive(Serialize)]
struct FailureDocument<'a> {
    cause: String,
    reason: &'a str,
    connections: u32,
}

#[derive(Default, Serialize)]
struct NegotiatedDocument {
    group: Option<String>,
    cipher_suite: Option<String>,
    signature: Option<String>,
    client_signature: Option<String>,
    resumed: Option<bool>,
    early_data: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    certificate_compression: Option<CompressionDocument>,
}

#[derive(Serialize)]
struct CompressionDocument {
    algorithm: String,
    uncompressed_bytes: u32,
}

/// How the engine fared.
#[derive(Serialize)]
struct MeasurementDocument {
    concurrency: u32,
    lowered: u32,
    link_lateness_p99_ms: f64,
    endpoint_wait_p50_ms: f64,
}

/// What a time consists of, in milliseconds.
#[derive(Serialize)]
struct SharesDocument {
    network: f64,
    computing: f64,
}

/// Increases over the baseline, or changes since results were saved.
#[derive(Serialize)]
struct IncreaseDocument<'a> {
    arm: &'a str,
    metric: &'static str,
    #[serde(flatten)]
    percentiles: ByPercentile<EstimateDocument>,
}

#[derive(Serialize)]
struct IntervalDocument {
    low: Option<f64>,
    high: Option<f64>,
}

#[derive(Serialize)]
struct EstimateDocument {
    value: Option<f64>,
    #[serde(flatten)]
    interval: IntervalDocument,
}

/// By `p50` and so on.
type ByPercentile<T> = BTreeMap<String, T>;

/// Why numbers are null, each after the path of what it is about.
#[derive(Default)]
struct Notes(Vec<String>);

impl Notes {
    fn add(&mut self, path: &str, why: impl fmt::Display) {
        self.0.push(format!("{path}: {why}"));
    }

    /// Says why percentiles, or ends of their intervals, are absent.
    fn add_absent<T>(&mut self, path: &str, measured: &BTreeMap<Percentile, Measured<T>>) {
        for (percentile, measured) in measured {
            match measured {
                Err(absent @ (Absent::NoData | Absent::NoTcp)) => return self.add(path, *absent),
                Err(absent) => self.add(&format!("{path}.{percentile}"), absent),
                Ok(Estimate {
                    interval:
                        Interval {
                            low: Some(_),
                            high: Some(_),
                        },
                    ..
                }) => (),
                Ok(_) => self.add(
                    &format!("{path}.{percentile}"),
                    "its interval is open, since connections failed or there are too few",
                ),
            }
        }
    }
}

impl UntilDocument {
    fn new(summary: &Summary) -> Option<UntilDocument> {
        let connections = &summary.experiment.connections;
        let Connections::Until(until) = connections else {
            return None;
        };
        Some(UntilDocument {
            precision_percent: until.precision.percent(),
            least: until.least,
            most: until.most,
            looks: connections.looks().len(),
            level_percent: percent(summary.level().percent()),
        })
    }
}

impl<'a> MeasuredDocument<'a> {
    fn new(
        summary: &'a CellSummary,
        since: Option<&Since>,
        path: &str,
        notes: &mut Notes,
    ) -> MeasuredDocument<'a> {
        let mut arms = Vec::new();
        let mut increase_percent = Vec::new();
        for (index, arm) in summary.arms.iter().enumerate() {
            arms.push(ArmDocument::new(
                &summary.cell,
                arm,
                &format!("{path}.arms[{index}]"),
                notes,
            ));
            if arm.role == Role::Baseline {
                continue;
            }
            for metric in summary.cell.all_metrics().iter().copied() {
                let path = format!("{path}.increase_percent[{}]", increase_percent.len());
                let increases = &arm.metric(metric).increases;
                increase_percent.push(IncreaseDocument::new(arm, metric, increases, &path, notes));
            }
        }
        let change_percent = since.map(|_| {
            let mut changes = Vec::new();
            for arm in &summary.arms {
                for metric in summary.cell.all_metrics().iter().copied() {
                    let path = format!("{path}.change_percent[{}]", changes.len());
                    let of = &arm.metric(metric).changes;
                    changes.push(IncreaseDocument::new(arm, metric, of, &path, notes));
                }
            }
            changes
        });
        MeasuredDocument {
            cell: CellDocument {
                both: Some(BothDocument::new(&summary.cell, path, notes)),
                parameters: Parameters(summary.as_measured()),
                ..CellDocument::new(&summary.cell)
            },
            arms,
            increase_percent,
            change_percent,
        }
    }
}

impl<'a> CellDocument<'a> {
    /// Without what both directions have in common.
    pub(super) fn new(cell: &'a Cell) -> CellDocument<'a> {
        let population = cell.population.iter();
        let drawn: Vec<Parameter> = population
            .flat_map(|population| population.drawn())
            .collect();
        let is_fixed = !drawn.iter().any(|parameter| parameter.is_of_link());
        let direction = |direction| is_fixed.then(|| DirectionDocument::new(direction));
        CellDocument {
            link: cell.link_name.as_deref(),
            rtt_ms: (!cell.draws(Parameter::RTT)).then(|| milliseconds(cell.link.rtt())),
            both: None,
            forward: direction(&cell.link.forward),
            backward: direction(&cell.link.backward),
            drawn: drawn.into_iter().map(Parameter::name).collect(),
            parameters: Parameters(Cow::Borrowed(cell)),
        }
    }
}

impl BothDocument {
    fn new(cell: &Cell, path: &str, notes: &mut Notes) -> BothDocument {
        let Link { forward, backward } = &cell.link;
        let path = |name| format!("{path}.{name}");
        // What is drawn is each connection's.
        let told = |name: &str| {
            !cell
                .population
                .iter()
                .any(|population| population.drawn().any(|parameter| parameter.name() == name))
        };
        if told("rate") && forward.rate.is_none() && backward.rate.is_none() {
            let why = if cell.has_trace() {
                "the rate is a trace's: see forward and backward"
            } else {
                "the link has no rate limit"
            };
            notes.add(&path("rate_bps"), why);
        }
        let rate = both(forward.rate, backward.rate, &path("rate_bps"), notes);
        let [one, other] = [forward.loss.mean(), backward.loss.mean()];
        let loss = both(one, other, &path("loss"), notes);
        let [one, other] = [forward.loss.model(), backward.loss.model()];
        let loss_model = both(one, other, &path("loss_model"), notes);
        let jitter = both(forward.jitter, backward.jitter, &path("jitter_ms"), notes);
        BothDocument {
            rate_bps: rate
                .flatten()
                .filter(|_| told("rate"))
                .map(Rate::bits_per_second),
            loss: loss.filter(|_| told("loss")).map(Probability::fraction),
            loss_model: loss_model.flatten().filter(|_| told("loss")),
            jitter_ms: jitter.filter(|_| told("jitter")).map(milliseconds),
        }
    }
}

/// The parameters of a cell that are no part of its link.
struct Parameters<'a>(Cow<'a, Cell>);

impl Serialize for Parameters<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (parameter, column) in Parameter::columns() {
            if self.0.page.is_none() && parameter.is_of_pages() {
                continue;
            }
            let name = column.name;
            match parameter.value(&self.0) {
                None => map.serialize_entry(name, &())?,
                Some(ParameterValue::Text(text)) => map.serialize_entry(name, &text)?,
                Some(ParameterValue::Count(count)) => map.serialize_entry(name, &count)?,
                Some(ParameterValue::Bytes(bytes)) => map.serialize_entry(name, &bytes.0)?,
                Some(ParameterValue::Time(time)) => {
                    let name = format!("{}_ms", parameter.name());
                    map.serialize_entry(&name, &milliseconds(time))?;
                }
                Some(ParameterValue::Rate(rate)) => {
                    map.serialize_entry(name, &rate.map(Rate::bits_per_second))?;
                }
                Some(ParameterValue::Loss(loss)) => {
                    map.serialize_entry(name, &loss.mean().fraction())?;
                }
            }
        }
        map.end()
    }
}

/// What both directions have in common.
fn both<T: PartialEq>(forward: T, backward: T, path: &str, notes: &mut Notes) -> Option<T> {
    if forward != backward {
        notes.add(path, "the directions differ: see forward and backward");
        return None;
    }
    Some(forward)
}

impl DirectionDocument {
    fn new(direction: &Direction) -> DirectionDocument {
        DirectionDocument {
            delay_ms: milliseconds(direction.delay),
            jitter_ms: milliseconds(direction.jitter),
            jitter_distribution: direction.distribution.to_string(),
            loss: direction.loss.mean().fraction(),
            loss_model: direction.loss.model(),
            rate_bps: direction.rate.map(Rate::bits_per_second),
            trace: direction.trace.as_ref().map(Trace::to_string),
            jitter_order: (direction.order != Order::default()).then(|| direction.order.name()),
            qdisc: direction.qdisc.as_ref().map(Qdisc::to_string),
            queue_packets: direction.queue,
        }
    }
}

impl<'a> ArmDocument<'a> {
    fn new(cell: &Cell, arm: &'a ArmSummary, path: &str, notes: &mut Notes) -> ArmDocument<'a> {
        let wire = arm.wire.as_ref();
        let server_flights = wire.and_then(|wire| wire.server_flights);
        match wire {
            None => notes.add(
                path,
                "no connection completed, so the handshake is not known",
            ),
            Some(_) if server_flights.is_none() => {
                notes.add(
                    &format!("{path}.server_flights"),
                    "the server's segment size is not known",
                );
            }
            Some(_) => (),
        }
        let sizes = sizes(wire, path, notes);
        let metrics = metrics(cell, arm);
        for metric in &metrics {
            let path = format!("{path}.{}", milliseconds_name(*metric));
            notes.add_absent(&path, &arm.metric(*metric).percentiles);
        }
        let times = |metric: Metric| {
            by_percentile(&arm.metric(metric).percentiles, |time| {
                time.map(|time| milliseconds(time.value))
            })
        };
        let intervals = |metric: Metric| {
            by_percentile(&arm.metric(metric).percentiles, |time| {
                interval(time, milliseconds)
            })
        };
        let shares = |metric: Metric| shares(arm.metric(metric));
        ArmDocument {
            arm: &arm.label,
            baseline: arm.role == Role::Baseline,
            valid: arm.validity == Validity::Valid,
            invalid_reason: match &arm.validity {
                Validity::Valid => None,
                Validity::Invalid(reason) => Some(reason),
            },
            connections: arm.connections,
            failed: arm.failed(),
            failures: arm
                .failures
                .iter()
                .map(|failures| FailureDocument {
                    cause: (failures.cause)
                        .map_or_else(|| "timed-out".to_owned(), |cause| cause.to_string()),
                    reason: &failures.reason,
                    connections: failures.connections,
                })
                .collect(),
            shares: (by_metric(&metrics, shares).into_iter())
                .filter(|(_, shares)| !shares.is_empty())
                .collect(),
            waiting: arm.waiting.iter().map(waiting_document).collect(),
            delivery_outcomes: (arm.deliveries.iter())
                .map(|(outcome, connections)| (outcome.name(), *connections))
                .collect(),
            sizes,
            server_segments: server_flights.map(|server| server.segments),
            server_flights: server_flights.map(|server| server.flights),
            negotiated: arm
                .wire
                .as_ref()
                .map(|wire| NegotiatedDocument::new(&wire.negotiated))
                .unwrap_or_default(),
            chain_sha256: &arm.chain_digest,
            times: by_metric(&metrics, times),
            intervals: by_metric(&metrics, intervals),
            measurement: MeasurementDocument {
                concurrency: arm.engine.concurrency,
                lowered: arm.engine.lowered,
                link_lateness_p99_ms: milliseconds(arm.engine.link_lateness_p99),
                endpoint_wait_p50_ms: milliseconds(arm.engine.endpoint_wait_p50),
            },
        }
    }
}

/// The sizes of a handshake, each the median where connections differ; none where none completed.
fn sizes(
    wire: Option<&WireSummary>,
    path: &str,
    notes: &mut Notes,
) -> BTreeMap<&'static str, Option<u32>> {
    let columns = Message::all().map(Message::column).chain(SIZES);
    let sizes = columns.map(|name| {
        let size = wire.map(|wire| wire.size(name));
        if let Some(Typical { least, most, .. }) = size
            && least != most
        {
            notes.add(
                &format!("{path}.{name}"),
                format!("the median of {least} to {most}"),
            );
        }
        (name, size.map(|size| size.median))
    });
    sizes.collect()
}

/// The metrics of a cell, and those of a record where the arm asks DNS for one.
fn metrics(cell: &Cell, arm: &ArmSummary) -> Vec<Metric> {
    let of_dns: &[Metric] = if arm.deliveries.is_empty() {
        &[]
    } else {
        &[Metric::TlsHandshake, Metric::DnsRecord]
    };
    [cell.all_metrics(), of_dns].concat()
}

fn by_metric<D>(metrics: &[Metric], document: impl Fn(Metric) -> D) -> BTreeMap<String, D> {
    let documents = metrics.iter().copied();
    documents
        .map(|metric| (milliseconds_name(metric), document(metric)))
        .collect()
}

/// The key of a metric in milliseconds.
fn milliseconds_name(metric: Metric) -> String {
    format!("{metric}_ms")
}

/// What each percentile consists of, where that is known.
fn shares(metric: &MetricSummary) -> ByPercentile<SharesDocument> {
    let shares = metric.network.keys().filter_map(|percentile| {
        let shares = metric.shares(*percentile)?;
        let shares = SharesDocument {
            network: milliseconds(shares.network),
            computing: shares.cpu.as_nanos() as f64 / 1e6,
        };
        Some((percentile.to_string(), shares))
    });
    shares.collect()
}

impl NegotiatedDocument {
    fn new(negotiated: &Negotiated) -> NegotiatedDocument {
        NegotiatedDocument {
            group: negotiated.group.map(group_name),
            cipher_suite: negotiated.cipher_suite.map(cipher_suite_name),
            signature: negotiated.signature.map(signature_name),
            client_signature: negotiated.client_signature.map(signature_name),
            resumed: Some(negotiated.resumption == Resumption::Resumed),
            early_data: match negotiated.early_data {
                EarlyData::None => None,
                EarlyData::Accepted => Some("accepted"),
                EarlyData::Refused => Some("refused"),
            },
            certificate_compression: negotiated.compression.map(|compression| {
                CompressionDocument {
                    algorithm: compression.algorithm_name(),
                    uncompressed_bytes: compression.uncompressed_bytes,
                }
            }),
        }
    }
}

impl<'a> IncreaseDocument<'a> {
    fn new(
        arm: &'a ArmSummary,
        metric: Metric,
        increases: &BTreeMap<Percentile, Measured<Percent>>,
        path: &str,
        notes: &mut Notes,
    ) -> IncreaseDocument<'a> {
        notes.add_absent(path, increases);
        IncreaseDocument {
            arm: &arm.label,
            metric: metric.name(),
            percentiles: by_percentile(increases, |increase| EstimateDocument {
                value: increase.map(|increase| percent(increase.value)),
                interval: interval(increase, percent),
            }),
        }
    }
}

/// A document of each estimate, or of its absence.
fn by_percentile<T: Copy, D>(
    measured: &BTreeMap<Percentile, Measured<T>>,
    document: impl Fn(Option<Estimate<T>>) -> D,
) -> ByPercentile<D> {
    measured
        .iter()
        .map(|(percentile, known)| (percentile.to_string(), document(known.ok())))
        .collect()
}

fn interval<T: Copy>(estimate: Option<Estimate<T>>, number: fn(T) -> f64) -> IntervalDocument {
    let interval = estimate.map(|estimate| estimate.interval);
    IntervalDocument {
        low: interval.and_then(|interval| interval.low).map(number),
        high: interval.and_then(|interval| interval.high).map(number),
    }
}

/// In milliseconds, to the nanosecond.
pub(super) fn milliseconds(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e6
}

/// In percent, to a ten-thousandth.
pub(super) fn percent(Percent(percent): Percent) -> f64 {
    // Adding zero makes one zero of the two that there are.
    (percent * 1e4).round() / 1e4 + 0.0
}
