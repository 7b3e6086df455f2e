//! What is compared: measured results, or what flight arithmetic says of them.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lastbyte_exchange::HandshakeFlight;
use lastbyte_flights::{Compute, Timeline};
use lastbyte_link::Bytes;

use super::Connections;
use crate::{
    CpuCosts, Dataset, Exchange, FolderError, Metric, Outcome, Row, Sample, Saved, SavedError,
    Validity, expected,
};
use lastbyte_study::{Arm, Buffers, Cell, CpuTime, Delivery, EngineName, Experiment, RecordSize};

/// What results of flight arithmetic are called, and their engine.
pub(super) const ARITHMETIC: &str = "arithmetic";

/// A set of samples that can be compared with another.
#[derive(Clone, Debug)]
pub struct Results {
    /// What they are called: where they were read from.
    pub name: String,
    /// What carried the bytes: `live` or `virtual`.
    pub engine: &'static str,
    /// In their own order.
    pub samples: Vec<SampleTimes>,
}

/// The times of one sample.
#[derive(Clone, Debug)]
pub struct SampleTimes {
    /// Which sample.
    pub key: Key,
    /// Where its times come from.
    pub nature: Nature,
    /// Whether they hold CPU time.
    pub computing: Computing,
    /// The CPU time that was put back, where it was.
    pub cpu_costs: Option<CpuCosts>,
    /// The times of each connection in the order of [`Metric::FROM_CONNECT`]. One that failed has none.
    pub times: Vec<[Option<Duration>; 4]>,
    /// Whether the engine vouches for it.
    pub validity: Validity,
    /// What the first connection that completed had on the wire.
    pub wire: Option<Exchange>,
    /// The times by arithmetic of each connection of a population that completed, in the order of
    /// [`Metric::FROM_CONNECT`], if there is arithmetic for all of them.
    pub drawn: Option<Vec<[Option<Duration>; 4]>>,
    /// How the response was cut into records.
    pub record_size: RecordSize,
    /// Whose buffers hosts had where the cell leaves that to the engine.
    pub buffers: Buffers,
    /// SHA-256 of the certificates as sent, in hex.
    pub chain_digest: String,
}

/// What two samples must share to be compared. The engine, the seed and the study's name are no
/// part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// The measure that it belongs to; empty outside of a study.
    pub measure: String,
    /// What the arm is called: its name in the study, else as it was written.
    pub arm: String,
    /// The cell.
    pub cell: Cell,
}

/// Where times come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nature {
    /// From connections: other ones would have had other times.
    Measured,
    /// From arithmetic: they are what they are.
    Computed,
}

/// Whether computing takes time on the clock that measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Computing {
    /// All time is the network's.
    Free,
    /// As long as it takes, or as a calibration says.
    TakesTime,
}

impl Computing {
    /// On the clock of this engine.
    fn of(engine: EngineName, cpu: CpuTime) -> Computing {
        match (engine, cpu.in_clock()) {
            (EngineName::Virtual, CpuTime::None) => Computing::Free,
            _ => Computing::TakesTime,
        }
    }
}

/// Results can't be read.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// A file can't be read.
    #[error(transparent)]
    Rows(#[from] SavedError),
    /// A file is for other programs.
    #[error(
        "{0:?} does not say all that was measured: name rows .parquet, as -o rows.parquet does"
    )]
    Csv(PathBuf),
    /// A folder can't be read.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// There is nothing in it.
    #[error("{0:?} holds no connection: measure some first")]
    Empty(PathBuf),
}

impl Results {
    /// Reads a folder of `lastbyte run`, complete or not, or rows of `lastbyte compare -o rows.parquet`.
    ///
    /// # Errors
    ///
    /// When `path` can't be read, or holds no results.
    pub fn open(path: &Path) -> Result<Results, SourceError> {
        let results = match path.extension().and_then(OsStr::to_str) {
            Some("parquet") => Results::saved(path)?,
            Some("csv") => return Err(SourceError::Csv(path.to_owned())),
            _ => Results::read(path)?,
        };
        if results.samples.is_empty() {
            return Err(SourceError::Empty(path.to_owned()));
        }
        Ok(results)
    }

    /// Reads a file of rows.
    fn saved(path: &Path) -> Result<Results, SourceError> {
        let name = path.display().to_string();
        let saved = Saved::open(path, &name)?;
        let experiment = &saved.experiment;
        let engine = saved.environment.engine;
        let samples = saved.samples().iter().filter_map(|sample| {
            let arm = experiment.arms.get(sample.arm)?;
            let cell = experiment.cells.get(sample.cell)?;
            let key = Key::new("", &arm.name, cell.clone());
            Some(SampleTimes::new(engine, key, experiment, arm, sample))
        });
        Ok(Results {
            samples: samples.collect(),
            engine: engine.name(),
            name,
        })
    }

    /// Reads a folder. Of each connection, only its times are kept.
    fn read(folder: &Path) -> Result<Results, SourceError> {
        let dataset = Dataset::open(folder)?;
        let mut samples = Vec::new();
        for sample in dataset.samples()? {
            let (key, sample) = sample?;
            // A key that the study does not have is not of this folder.
            let Some(measure) = dataset.study.measures.get(key.measure) else {
                continue;
            };
            let experiment = &measure.experiment;
            let (Some(arm), Some(cell)) =
                (experiment.arms.get(key.arm), experiment.cells.get(key.cell))
            else {
                continue;
            };
            let engine = dataset.manifest.engine;
            let key = Key::new(&measure.id, &arm.name, cell.clone());
            let times = SampleTimes::new(engine, key, experiment, arm, &sample);
            samples.push(times);
        }
        Ok(Results {
            name: folder.display().to_string(),
            engine: dataset.manifest.engine.name(),
            samples,
        })
    }

    /// What flight arithmetic says of these samples, as far as it goes: those without loss, jitter and super-packets,
    /// of which a connection has completed, up to the first time that is not modelled.
    pub fn arithmetic(&self) -> Results {
        Results {
            name: ARITHMETIC.to_owned(),
            engine: ARITHMETIC,
            samples: (self.samples.iter())
                .filter_map(SampleTimes::arithmetic)
                .collect(),
        }
    }

    pub(super) fn sample(&self, key: &Key) -> Option<&SampleTimes> {
        self.samples.iter().find(|sample| sample.key == *key)
    }
}

/// The times of a connection of a sample by flight arithmetic, as far as it goes, in the order of
/// [`Metric::FROM_CONNECT`].
pub fn arithmetic(
    engine: EngineName,
    experiment: &Experiment,
    sample: &Sample,
) -> Option<[Option<Duration>; 4]> {
    let mut rows = sample.rows.iter();
    let first = rows.find(|row| row.outcome == Outcome::Completed)?;
    arithmetic_of(engine, experiment, sample, first)
}

/// The times of one connection of a sample by flight arithmetic, in the same order: over the link and with
/// the responses that it drew.
pub(crate) fn arithmetic_of(
    engine: EngineName,
    experiment: &Experiment,
    sample: &Sample,
    row: &Row,
) -> Option<[Option<Duration>; 4]> {
    let arm = experiment.arms.get(sample.arm)?;
    let cell = experiment.cells.get(sample.cell)?;
    let cell = cell.of_connection(row.index).into_owned();
    let mut times = SampleTimes {
        key: Key::new("", &arm.name, cell),
        nature: Nature::Measured,
        computing: Computing::of(engine, experiment.cpu),
        cpu_costs: sample.engine.cpu_costs,
        times: Vec::with_capacity(1),
        validity: Validity::Valid,
        wire: None,
        drawn: None,
        record_size: arm.record_size,
        buffers: sample.engine.buffers,
        chain_digest: String::new(),
    };
    times.add_of(arm, row);
    times.arithmetic()?.times.first().copied()
}

/// The same, if there is arithmetic for each time that the connection has.
fn all_arithmetic_of(
    engine: EngineName,
    experiment: &Experiment,
    sample: &Sample,
    row: &Row,
) -> Option<[Option<Duration>; 4]> {
    let times = arithmetic_of(engine, experiment, sample, row)?;
    let mut pairs = times.iter().zip(times_of(row));
    pairs
        .all(|(computed, measured)| computed.is_some() || measured.is_none())
        .then_some(times)
}

impl SampleTimes {
    /// Those of a sample that was measured.
    fn new(
        engine: EngineName,
        key: Key,
        experiment: &Experiment,
        arm: &Arm,
        sample: &Sample,
    ) -> SampleTimes {
        let mut times = SampleTimes {
            key,
            nature: Nature::Measured,
            computing: Computing::of(engine, experiment.cpu),
            cpu_costs: sample.engine.cpu_costs,
            times: Vec::with_capacity(sample.rows.len()),
            validity: sample.validity(experiment),
            wire: None,
            drawn: None,
            record_size: arm.record_size,
            buffers: sample.engine.buffers,
            chain_digest: sample.chain_digest.clone(),
        };
        for row in &sample.rows {
            times.add_of(arm, row);
        }
        if times.key.cell.population.is_some() {
            let completed = sample
                .rows
                .iter()
                .filter(|row| row.outcome == Outcome::Completed);
            let of_row = |row| all_arithmetic_of(engine, experiment, sample, row);
            times.drawn = completed.map(of_row).collect();
        }
        times
    }

    /// Adds a connection of an arm.
    fn add_of(&mut self, arm: &Arm, row: &Row) {
        self.add(times_of(row), &row.exchange);
        // Arithmetic knows nothing of waiting for a record, nor of what another's end sends when.
        let waits =
            matches!(&arm.delivery, Delivery::PqtlsAd(delivery) if !delivery.grace.is_zero());
        if waits || arm.has_foreign_ends() {
            self.wire = None;
        }
    }

    /// The times of one metric, by connection.
    pub(super) fn times(&self, metric: Metric) -> impl Iterator<Item = Option<Duration>> {
        self.times
            .iter()
            .map(move |[connect, handshake, ttfb, ttlb]| match metric {
                Metric::Connect => *connect,
                Metric::Handshake => *handshake,
                Metric::Ttfb => *ttfb,
                Metric::Ttlb => *ttlb,
                Metric::TlsHandshake => handshake.and_then(|at| at.checked_sub((*connect)?)),
                Metric::DnsRecord
                | Metric::Fcp
                | Metric::Lcp
                | Metric::Load
                | Metric::SpeedIndex => None,
            })
    }

    /// Whether its connections have such a time, if they come so far: those over QUIC have no connect time.
    pub(super) fn has(&self, metric: Metric) -> bool {
        let any = |metric| self.times(metric).any(|time| time.is_some());
        metric != Metric::Connect || any(metric) || !any(Metric::Handshake)
    }

    pub(super) fn connections(&self) -> Option<Connections> {
        (self.nature == Nature::Measured).then(|| Connections {
            all: self.times.len(),
            failed: self.times(Metric::Ttlb).filter(Option::is_none).count(),
        })
    }

    /// Adds a connection.
    fn add(&mut self, times: [Option<Duration>; 4], wire: &Exchange) {
        if self.wire.is_none() && times != [None; 4] {
            self.wire = Some(wire.clone());
        }
        self.times.push(times);
    }

    /// What arithmetic has of computing.
    fn computed(&self) -> Computing {
        match self.cpu_costs {
            Some(_) => Computing::TakesTime,
            None => Computing::Free,
        }
    }

    fn arithmetic(&self) -> Option<SampleTimes> {
        let cell = &self.key.cell;
        if cell.population.is_some() {
            return Some(SampleTimes {
                nature: Nature::Computed,
                computing: self.computed(),
                times: self.drawn.clone()?,
                validity: Validity::Valid,
                ..self.clone()
            });
        }
        // Tickets that leave while the client sends change how it is acknowledged.
        let work = cell.work();
        let crosses = work.data == Bytes(0) && self.wire.as_ref()?.ticket_wire_bytes().is_some();
        // It knows what a download computes, and nothing else.
        let computes = self.cpu_costs.is_some() && (work.requests > 1 || work.upload > Bytes(0));
        // What a client computes before it gives up, nobody has measured.
        let wire = self.wire.as_ref()?;
        let fails = wire.failed.is_some()
            && (self.cpu_costs.is_some() || wire.sent(HandshakeFlight::HelloRetryRequest) > 0);
        // And it has every segment leave and arrive on its own.
        let is_walked = !cell.has_super_packets() && cell.hosts.receive_buffer.is_walked();
        if self.key.has_chance() || crosses || computes || fails || !is_walked {
            return None;
        }
        let compute = self.cpu_costs.map_or_else(Compute::default, |costs| {
            costs.compute(cell, self.record_size)
        });
        let cell = cell.with_buffers(self.buffers);
        let timeline = expected(self.wire.as_ref()?, &cell, self.record_size, compute);
        let Timeline {
            connect,
            handshake,
            ttfb,
            ttlb,
            ..
        } = timeline;
        let times = [connect, Some(handshake), ttfb, Some(ttlb)];
        let times = times.map(|time| timeline.modelled(time?));
        // Over QUIC it follows some handshakes not at all.
        if wire.transport.quic().is_some() && times.iter().all(Option::is_none) {
            return None;
        }
        Some(SampleTimes {
            nature: Nature::Computed,
            computing: self.computed(),
            times: vec![times],
            validity: Validity::Valid,
            ..self.clone()
        })
    }
}

impl Key {
    /// The name of a link is no part of it.
    fn new(measure: &str, arm: &str, cell: Cell) -> Key {
        Key {
            measure: measure.to_owned(),
            arm: arm.to_owned(),
            cell: Cell {
                link_name: None,
                ..cell
            },
        }
    }

    /// Whether the network does what it does at random.
    pub(super) fn has_chance(&self) -> bool {
        self.cell.has_loss() || self.cell.has_jitter()
    }
}

fn times_of(row: &Row) -> [Option<Duration>; 4] {
    Metric::FROM_CONNECT.map(|metric| metric.of(row))
}
