//! From rows to a summary.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::thread;
use std::time::Duration;

use lastbyte_flights::quic::{Hold, ServerFlight};
use lastbyte_flights::{flights_needed, segments};
use lastbyte_link::Bytes;

use super::expected::{is_followed_over_quic, linux_buffers_matter, quic_flights, sent_again};
use super::failures::failures;
use super::modes::modes;
use super::rows::COLUMNS;
use super::stats::{self, Level, Percentiles, Series, count};
use super::summary::{
    Absent, ArmSummary, CellSummary, MetricSummary, Role, ServerFlights, Summary, Typical,
    WireSummary,
};
use super::waiting::{Side as ComparedSide, Waiting, waiting};
use super::{
    Contents, DeliveryOutcome, Look, Metric, Outcome, PageLoad, Percentile, Row, Sample, family,
    look, problems,
};
use lastbyte_study::{Arm, Cell, Experiment, TransportName, distinctions};

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
        let warnings = problems::find(experiment, &cells);
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
        let networks: Vec<_> = arms.map(|(index, arm)| (arm, of_arm(index))).collect();
        let waited: Vec<_> = (networks.iter())
            .map(|(_, sample)| sample.map(|sample| sample.waited(experiment)))
            .collect();
        let measured = (networks.iter().zip(&waited)).map(|((arm, network), waited)| SampleOf {
            arm,
            network: *network,
            waited: waited.as_deref(),
        });
        let measured = MeasuredCell {
            experiment,
            cell,
            percentiles,
            arms: measured.collect(),
        };
        measured.summarise(name)
    }
}

/// A cell as it was measured, and which percentiles are wanted of it.
struct MeasuredCell<'a> {
    experiment: &'a Experiment,
    cell: &'a Cell,
    percentiles: &'a [Percentile],
    /// In the experiment's order: the first one is the baseline.
    arms: Vec<SampleOf<'a>>,
}

/// What was measured of an arm in a cell.
struct SampleOf<'a> {
    arm: &'a Arm,
    /// As it was measured.
    network: Option<&'a Sample>,
    /// As a user waits.
    waited: Option<&'a Sample>,
}

/// The percentiles of each metric, of all arms in their order.
struct Ranked(Vec<(Metric, Vec<Percentiles>)>);

impl MeasuredCell<'_> {
    fn summarise(&self, name: String) -> CellSummary {
        let ranked = self.rank();
        let arms = self.arms.iter().enumerate();
        let arms = arms.filter_map(|(index, of)| self.arm(index, of, &ranked));
        let mut arms: Vec<ArmSummary> = arms.collect();
        widen_by_calibrations(&mut arms);
        if is_exact(self.cell, self.arms.iter().filter_map(|of| of.network)) {
            for arm in &mut arms {
                for metric in Metric::ALL {
                    arm.metric_mut(metric).is_not_by_chance();
                }
            }
        }
        CellSummary {
            cell: self.cell.clone(),
            name,
            arms,
            look: self.look(&ranked),
        }
    }

    /// Ranks all metrics at once, since drawing the resamples takes as long as ranking them.
    fn rank(&self) -> Ranked {
        let mut arms = self.experiment.arms.iter();
        let of_dns: &[Metric] = if arms.any(|arm| arm.delivery.asks_dns()) {
            &[Metric::TlsHandshake, Metric::DnsRecord]
        } else {
            &[]
        };
        let metrics: Vec<Metric> = [self.cell.all_metrics(), of_dns].concat();
        let series = (metrics.iter())
            .flat_map(|metric| self.arms.iter().map(|of| self.series(*metric, of.waited)));
        let series: Vec<Series> = series.collect();
        let mut ranked =
            stats::percentiles(&series, self.percentiles, self.experiment.seed).into_iter();
        let of_arms = |metric| (metric, ranked.by_ref().take(self.arms.len()).collect());
        Ranked(metrics.into_iter().map(of_arms).collect())
    }

    fn series(&self, metric: Metric, sample: Option<&Sample>) -> Series {
        let rows = sample.into_iter().flat_map(|sample| &sample.rows);
        look::series(metric, self.cell, rows)
    }

    /// The arm at `index`, if it was measured.
    fn arm(&self, index: usize, of: &SampleOf<'_>, ranked: &Ranked) -> Option<ArmSummary> {
        let (arm, sample, cell) = (of.arm, of.waited?, self.cell);
        let engine = &of.network?.engine;
        let metric = |metric| MetricSummary {
            network: self.network_percentiles(metric, of),
            ..MetricSummary::new(
                absence(metric, cell, sample),
                ranked.of(metric),
                index,
                self.percentiles,
                self.level(),
            )
        };
        Some(ArmSummary {
            label: arm.name.clone(),
            role: if index == 0 {
                Role::Baseline
            } else {
                Role::Compared
            },
            validity: sample.validity(self.experiment),
            connections: count(sample.rows.len()),
            failures: failures(&sample.rows),
            wire: WireSummary::of(&sample.rows, arm, cell),
            linux_buffers_matter: (sample.rows.iter())
                .find(|row| row.outcome == Outcome::Completed)
                .is_some_and(|row| {
                    let cell = cell.with_buffers(engine.buffers);
                    let cell = cell.of_connection(row.index);
                    linux_buffers_matter(&row.exchange, &cell, arm.record_size)
                }),
            sent_again: sent_again(&sample.rows, cell, arm.record_size),
            chain_digest: sample.chain_digest.clone(),
            engine: engine.clone(),
            metrics: Metric::ALL.map(metric),
            deliveries: deliveries(&sample.rows),
            modes: modes(&sample.rows, cell),
            ttfb_computing: middle(&sample.rows, |page| page.ttfb_computing),
            load_cpu: middle(&sample.rows, |page| page.load_cpu),
            programs_cpu: middle(&sample.rows, |page| page.programs_cpu),
            waiting: match index {
                0 => Vec::new(),
                _ => self.waiting(sample),
            },
        })
    }

    fn level(&self) -> Level {
        Level::of(&self.experiment.connections)
    }

    /// See [`MetricSummary::network`]; none where nothing computes beside the network.
    fn network_percentiles(
        &self,
        metric: Metric,
        of: &SampleOf<'_>,
    ) -> BTreeMap<Percentile, Duration> {
        let (Some(network), Some(waited)) = (of.network, of.waited) else {
            return BTreeMap::new();
        };
        if network.engine.beside.is_empty() {
            return BTreeMap::new();
        }
        let percentiles_of = |sample| {
            let times = self.series(metric, Some(sample));
            let times = stats::measured(&times, self.percentiles).into_iter();
            let times = self.percentiles.iter().copied().zip(times);
            times.filter_map(|(percentile, time)| Some((percentile, time?)))
        };
        if !self.cell.has_luck() {
            return percentiles_of(network).collect();
        }
        let typical = typically_added(metric, network, waited);
        percentiles_of(waited)
            .map(|(percentile, time)| (percentile, time.saturating_sub(typical)))
            .collect()
    }

    /// How much longer the connections of a sample of a population wait than the baseline's.
    fn waiting(&self, sample: &Sample) -> Vec<Waiting> {
        let cell = self.cell;
        let baseline = self.arms.first().and_then(|of| of.waited);
        let Some(baseline) = baseline.filter(|_| cell.population.is_some()) else {
            return Vec::new();
        };
        let [baseline, arm] =
            [&baseline.rows, &sample.rows].map(|rows| ComparedSide { cell, rows });
        let seed = self.experiment.seed;
        look::reported(cell)
            .flat_map(|metric| waiting(metric, baseline, arm, self.percentiles, seed))
            .collect()
    }

    /// Whether what was measured is as precise as it was to be.
    fn look(&self, ranked: &Ranked) -> Look {
        let samples = self.arms.iter().filter_map(|of| of.network);
        let rows: Vec<&[Row]> = samples.map(|sample| sample.rows.as_slice()).collect();
        look::judge(
            self.experiment,
            self.cell,
            &rows,
            self.percentiles,
            look::reported(self.cell).map(|metric| (metric, ranked.of(metric))),
        )
    }
}

impl Ranked {
    /// Those of each arm; none of a metric that was not ranked.
    fn of(&self, metric: Metric) -> &[Percentiles] {
        let of_metric = self.0.iter().find(|(ranked, _)| *ranked == metric);
        of_metric.map_or(&[], |(_, percentiles)| percentiles)
    }
}

/// Widens the increases of arms that are not calibrated as the baseline is: what was calibrated
/// once is off alike on both sides.
fn widen_by_calibrations(arms: &mut [ArmSummary]) {
    let Some((baseline, others)) = arms.split_first_mut() else {
        return;
    };
    for arm in others {
        if arm.engine.beside != baseline.engine.beside {
            arm.widen_by_calibrations(baseline);
        }
    }
}

/// Whether all connections of all arms take the same time, as nothing that happens to them is by chance: no luck of the
/// network, and nothing that computes.
pub(super) fn is_exact<'a>(cell: &Cell, samples: impl Iterator<Item = &'a Sample>) -> bool {
    /// An ECDSA signature is now and then a byte shorter.
    const SPREAD: f64 = 1e-3;
    let is_same = |sample: &Sample, metric: Metric| {
        let times = sample.rows.iter().filter_map(|row| metric.of(row));
        let (least, most) = (times.clone().min(), times.max());
        let (least, most) = (least.unwrap_or_default(), most.unwrap_or_default());
        most - least <= most.mul_f64(SPREAD)
    };
    // A browser decides what it does, and one load of its does not tell whether the next one takes as long.
    let least = match cell.page {
        Some(_) => 2,
        None => 1,
    };
    let mut samples = samples;
    !cell.has_luck()
        && samples.all(|sample| {
            sample.engine.contents() == Contents::Network
                && sample.rows.len() >= least
                && (sample.rows.iter()).all(|row| row.outcome == Outcome::Completed)
                && cell
                    .all_metrics()
                    .iter()
                    .all(|metric| is_same(sample, *metric))
        })
}

/// What computing adds to half of the connections at most: percentiles of times that luck spreads are those of other
/// connections with it than without, so that their difference is no connection's computing.
fn typically_added(metric: Metric, network: &Sample, waited: &Sample) -> Duration {
    let pairs = network.rows.iter().zip(&waited.rows);
    let added = pairs.filter_map(|(network, waited)| {
        Some(metric.of(waited)?.saturating_sub(metric.of(network)?))
    });
    let mut added: Vec<Duration> = added.collect();
    added.sort_unstable();
    added.get(added.len() / 2).copied().unwrap_or_default()
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

/// The one in the middle, or the later of both.
fn middle(rows: &[Row], of: impl Fn(&PageLoad) -> Option<Duration>) -> Option<Duration> {
    let mut all: Vec<Duration> = rows.iter().filter_map(|row| of(row.load()?)).collect();
    all.sort_unstable();
    all.get(all.len() / 2).copied()
}

/// Why percentiles of a sample are absent, if they are.
fn absence(metric: Metric, cell: &Cell, sample: &Sample) -> Absent {
    let late = sample.rows.iter().filter(|row| metric.of(row).is_none());
    let is_quic = |row: &Row| row.exchange.transport.quic().is_some();
    match metric {
        metric if metric.is_of_tcp() && sample.rows.iter().any(is_quic) => Absent::NoTcp,
        Metric::Ttfb if cell.page.is_none() && cell.data == Bytes(0) => Absent::NoData,
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

impl WireSummary {
    fn of(rows: &[Row], arm: &Arm, cell: &Cell) -> Option<WireSummary> {
        let completed = || rows.iter().filter(|row| row.outcome == Outcome::Completed);
        let first = completed().next()?;
        let sizes = COLUMNS.iter().filter_map(|column| {
            let sizes: Option<Vec<u32>> =
                completed().map(|row| column.size(&row.exchange)).collect();
            Some((column.name, Typical::of(sizes?)?))
        });
        let mut wire = WireSummary {
            negotiated: first.exchange.negotiated,
            server_flights: None,
            sizes: sizes.collect(),
        };
        wire.server_flights = match first.exchange.transport.quic() {
            // Arithmetic has the credit of RFC 9000.
            Some(_) if arm.amplification.is_some() => None,
            Some(_) => ServerFlights::over_quic(first, cell),
            None => {
                // A server that is not ours has none: nor is it known how it fills segments.
                let mss = Typical::of(completed().filter_map(|row| Some(row.server_tcp()?.mss)));
                mss.map(|mss| ServerFlights::over_tcp(wire.server_wire_bytes(), mss, cell))
            }
        };
        Some(wire)
    }
}

impl ServerFlights {
    /// Of so many bytes.
    fn over_tcp(bytes: Typical, mss: Typical, cell: &Cell) -> ServerFlights {
        let (bytes, mss) = (bytes.median as usize, mss.median as usize);
        let flights = flights_needed(bytes, mss, cell.initcwnd);
        ServerFlights {
            segments: segments(bytes, mss),
            flights,
            held: (flights > 1).then_some(Hold::Window),
            transport: TransportName::Tcp,
        }
    }

    /// By arithmetic, as long as it follows the handshake.
    fn over_quic(row: &Row, cell: &Cell) -> Option<ServerFlights> {
        let exchange = &row.exchange;
        if !is_followed_over_quic(exchange, cell) {
            return None;
        }
        let flights = quic_flights(exchange, cell);
        let (_, before) = flights.split_last()?;
        Some(ServerFlights {
            segments: flights.iter().map(|flight| flight.datagrams.len()).sum(),
            flights: u32::try_from(flights.len()).ok()?,
            held: before.last().and_then(ServerFlight::held),
            transport: TransportName::Quic,
        })
    }
}

impl Typical {
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
