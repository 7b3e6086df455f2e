//! Edges: sizes of chains at which a time steps, searched by measuring, with the arithmetic's beside them.
//!
//! A search measures in rounds. Each is a study of its own, which asks for what the earlier ones leave open: first
//! a few sizes of every arm in every cell, then the middle between two that differ, until a step is known to the
//! byte. What comes next depends on finished rounds alone, so a search goes on where it was. Arithmetic decides
//! nothing here; it only says where it has its edges.

mod change;
mod implied;
mod steps;
#[cfg(test)]
mod tests;

pub use change::Change;
pub use implied::{Implied, implied};

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use lastbyte_exchange::HandshakeFlight;
use lastbyte_flights::{Compute, Timeline};
use lastbyte_link::Link;
use lastbyte_sizes::framing;
use thiserror::Error;

use self::change::{Size, changes};
use self::steps::{Stepping, TimesBySize};
use crate::{ByChance, NotWalked, Unknown, check, check_over, wire_with};
use lastbyte_results::{Dataset, FolderError, Row, Sample, Validity, expected, file_name};
use lastbyte_study::search::is_possible;
use lastbyte_study::{
    Arm, Cell, EngineChoice, Experiment, Measure, Metric, Percentile, Search, Study,
};

/// Samples of a round, at most: what measures a block reads all of its study.
const ROUND: usize = 64;
/// Where the rounds of searches are, in the folder of a run.
const FOLDER: &str = "search";

/// The folder of a round of a search, in that of the run.
pub fn round_folder(run: &Path, search: &Search, round: usize) -> PathBuf {
    let name = file_name(&search.id);
    run.join(FOLDER).join(name).join(format!("{round:03}"))
}

/// One size of an arm in a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Point {
    cell: usize,
    arm: usize,
    bytes: usize,
}

/// What is known of a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Connection {
    index: u32,
    time: Option<Duration>,
    by_chance: ByChance,
    /// Bytes from ServerHello to Finished on the wire; over QUIC without frames and packets.
    flight: u32,
}

/// A search, as far as it has come.
#[derive(Clone, Debug)]
pub struct Searched {
    /// What is searched.
    pub search: Search,
    /// How many rounds there were.
    pub rounds: usize,
    points: BTreeMap<Point, Vec<Connection>>,
    /// Why samples are not to be trusted, each once.
    pub problems: BTreeSet<String>,
}

/// What came of an arm in a cell.
#[derive(Clone, Debug)]
pub struct Found {
    /// Index among the search's cells.
    pub cell: usize,
    /// Index among its arms.
    pub arm: usize,
    /// Each size that was measured with the median, or none where that leans on failures: the line to be drawn.
    pub line: Vec<(usize, Option<Duration>)>,
    /// What was found.
    pub edges: Edges,
    /// Where arithmetic has its edges, without loss and jitter; or why it has none, in one line.
    pub arithmetic: Result<Vec<Computed>, NoArithmetic>,
}

/// Why arithmetic has no edges.
#[derive(Clone, Debug, Error)]
pub enum NoArithmetic {
    /// There is no size to begin with.
    #[error("nothing is measured")]
    NothingMeasured,
    /// The network is none that it walks through.
    #[error(transparent)]
    Network(#[from] NotWalked),
    /// It does not know what the arm puts on the wire.
    #[error(transparent)]
    Wire(#[from] Unknown),
}

/// Edges, as luck allows to tell them.
#[derive(Clone, Debug)]
pub enum Edges {
    /// Without luck: each with what was seen on either side.
    Exact(Vec<Edge>),
    /// With loss or jitter: change points of the median.
    Told(Vec<Change>),
}

/// An edge: the time steps between two sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The largest that is still quick, or as it was.
    pub below: SizeOnWire,
    /// The smallest beyond it.
    pub above: SizeOnWire,
    /// The medians on either side; absent where half of the connections failed.
    pub times: (Option<Duration>, Option<Duration>),
    /// The most bytes of any connection near it, from ServerHello to Finished on the wire, that was on the near
    /// side, and the fewest of any on the far side. Where these are neighbours, it is known to the byte on the wire,
    /// too, whatever length signatures have.
    pub seen: (usize, usize),
}

/// A size in both words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeOnWire {
    /// Bytes of the Certificate message.
    pub certificate: usize,
    /// Bytes from ServerHello to Finished on the wire, with a signature of the usual length; over QUIC of the messages alone, as
    /// frames and packets depend on where datagrams end.
    pub server_flight: usize,
}

/// An edge of arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Computed {
    /// The largest before it.
    pub below: SizeOnWire,
    /// The server's flights until the handshake is done, on either side.
    pub flights: (usize, usize),
    /// The times on either side.
    pub times: (Duration, Duration),
}

impl Searched {
    /// A search of which nothing is measured.
    pub fn new(search: &Search) -> Searched {
        Searched {
            search: search.clone(),
            rounds: 0,
            points: BTreeMap::new(),
            problems: BTreeSet::new(),
        }
    }

    /// What the folder of a run has of its searches.
    ///
    /// # Errors
    ///
    /// When a round can't be read.
    pub fn read_all(run: &Path, study: &Study) -> Result<Vec<Searched>, FolderError> {
        let read = |search: &Search| {
            let mut searched = Searched::new(search);
            while searched.next().is_some() {
                let folder = round_folder(run, search, searched.rounds);
                if !folder.exists() {
                    break;
                }
                if !searched.add(&Dataset::open(&folder)?)? {
                    break;
                }
            }
            Ok(searched)
        };
        study.searches.iter().map(read).collect()
    }

    /// Whether everything is measured.
    pub fn is_complete(&self) -> bool {
        self.next().is_none()
    }

    /// The next round, or none if nothing is left open.
    pub fn next(&self) -> Option<Study> {
        let first = self.open(|_, arm, _| self.search.first_sizes(arm));
        let leaders: BTreeSet<usize> = (0..self.cells().len())
            .map(|cell| self.leader(cell))
            .collect();
        let steps = |is_led: bool| {
            self.open(|cell, arm, index| {
                if leaders.contains(&cell) != is_led {
                    self.stepping(cell, arm, index, |asked, times_by_size| {
                        asked.next(times_by_size)
                    })
                } else {
                    Vec::new()
                }
            })
        };
        let rounds = [first, steps(false), steps(true)];
        let points = rounds.into_iter().find(|points| !points.is_empty())?;
        Some(self.round(points.into_iter().take(ROUND).collect()))
    }

    /// Adds what a round measured; whether there was anything new in it.
    ///
    /// # Errors
    ///
    /// When its rows can't be read.
    pub fn add(&mut self, data: &Dataset) -> Result<bool, FolderError> {
        let before = self.points.len();
        for sample in data.samples()? {
            let (key, sample) = sample?;
            let measure = data.study.measures.get(key.measure);
            let arm = measure.and_then(|measure| measure.experiment.arms.get(key.arm));
            if let Some((measure, arm)) = measure.zip(arm) {
                let validity = sample.validity(&measure.experiment);
                self.add_sample(&measure.id, arm, &sample, validity);
            }
        }
        self.rounds += 1;
        Ok(self.points.len() > before)
    }

    fn add_sample(&mut self, measure: &str, arm: &Arm, sample: &Sample, validity: Validity) {
        let bytes = match &arm.chain {
            lastbyte_study::ArmChain::Made(spec) => spec.certificate_bytes,
            lastbyte_study::ArmChain::Pem(_) => None,
        };
        let Some((cell, bytes)) = measure.parse().ok().zip(bytes) else {
            return;
        };
        let is_it = |times_by_size: &Arm| {
            times_by_size
                .padded(bytes)
                .is_some_and(|padded| padded.label == arm.label)
        };
        let Some(index) = self.search.experiment.arms.iter().position(is_it) else {
            return;
        };
        if let Validity::Invalid(problem) = validity {
            self.problems.insert(format!("{}: {problem}", arm.label));
        }
        let metric = self.search.metric;
        let connection = |row: &Row| Connection {
            index: row.index,
            time: metric.of(row),
            by_chance: ByChance::of(&row.exchange),
            flight: row.exchange.carried(HandshakeFlight::Server),
        };
        let point = Point {
            cell,
            arm: index,
            bytes,
        };
        self.points
            .insert(point, sample.rows.iter().map(connection).collect());
    }

    fn cells(&self) -> &[Cell] {
        &self.search.experiment.cells
    }

    /// The first cell that is alike but for its link: where arithmetic has the same edges, others show whether they
    /// are.
    pub fn leader(&self, cell: usize) -> usize {
        let without_link = |cell: &Cell| Cell {
            link: Link::default(),
            link_name: None,
            ..cell.clone()
        };
        let own = self.cells().get(cell).map(without_link);
        let is_alike = |other: &Cell| Some(without_link(other)) == own && !Search::has_luck(other);
        self.cells().iter().position(is_alike).unwrap_or(cell)
    }

    /// Those of an arm's sizes in a cell that are not known yet, of all arms and cells.
    fn open(&self, sizes: impl Fn(usize, &Arm, usize) -> Vec<usize>) -> Vec<Point> {
        let mut open = Vec::new();
        for cell in 0..self.cells().len() {
            for (arm, of) in self.search.experiment.arms.iter().enumerate() {
                let points =
                    sizes(cell, of, arm)
                        .into_iter()
                        .map(|bytes| Point { cell, arm, bytes });
                open.extend(points.filter(|point| !self.points.contains_key(point)));
            }
        }
        open
    }

    /// Asks what steps in a cell in which luck decides nothing.
    fn stepping<T: Default>(
        &self,
        cell: usize,
        of: &Arm,
        arm: usize,
        ask: fn(&Stepping<'_>, &TimesBySize) -> T,
    ) -> T {
        let Some(in_cell) = self
            .cells()
            .get(cell)
            .filter(|cell| !Search::has_luck(cell))
        else {
            return T::default();
        };
        let leader = self.leader(cell);
        let hints = if leader == cell {
            Vec::new()
        } else {
            self.stepping(leader, of, arm, |asked, times_by_size| {
                asked.steps(times_by_size)
            })
        };
        let hints: Vec<usize> = hints.into_iter().map(|(below, _)| below).collect();
        let stepping = Stepping {
            threshold: Search::threshold(in_cell),
            is_possible: &|bytes| is_possible(of, bytes),
            hints: &hints,
        };
        ask(&stepping, &self.times_by_size(cell, arm))
    }

    /// A round of these points: a measure for each cell, named by its number.
    fn round(&self, points: Vec<Point>) -> Study {
        let mut measures = Vec::new();
        let Experiment { arms, cells, .. } = &self.search.experiment;
        for part in points.chunk_by(|one, other| one.cell == other.cell) {
            let Some((first, cell)) = part
                .first()
                .and_then(|first| Some((first, cells.get(first.cell)?)))
            else {
                continue;
            };
            let padded = part.iter();
            let padded = padded.filter_map(|point| arms.get(point.arm)?.padded(point.bytes));
            measures.push(Measure {
                id: first.cell.to_string(),
                experiment: Experiment {
                    arms: padded.collect(),
                    cells: vec![cell.clone()],
                    ..self.search.experiment.clone()
                },
            });
        }
        let id = &self.search.id;
        let study = Study {
            measures,
            percentiles: vec![Percentile::MEDIAN],
            engine: EngineChoice::Auto,
            ..Study::single(
                &format!("{id}, round {}", self.rounds),
                self.search.experiment.clone(),
            )
        };
        Study {
            text: study.to_toml(),
            ..study
        }
    }

    fn measured(&self, cell: usize, arm: usize) -> impl Iterator<Item = (usize, &[Connection])> {
        let at = move |bytes| Point { cell, arm, bytes };
        let points = self.points.range(at(0)..=at(usize::MAX));
        points.map(|(point, connections)| (point.bytes, connections.as_slice()))
    }

    /// The lengths that connections of an arm have most often of what varies by chance: signatures of ECDSA differ, and over QUIC
    /// more does. None where none came so far.
    fn usual(&self, arm: usize) -> Option<ByChance> {
        let mut counts: BTreeMap<ByChance, usize> = BTreeMap::new();
        let points = self.points.iter().filter(|(point, _)| point.arm == arm);
        for connection in points.flat_map(|(_, connections)| connections) {
            if connection.by_chance.verify > 0 {
                *counts.entry(connection.by_chance).or_default() += 1;
            }
        }
        let most = counts.into_iter().max_by_key(|(_, count)| *count);
        most.map(|(usual, _)| usual)
    }

    /// The time of each size: the median of connections with the usual lengths, or of all if none has them.
    fn times_by_size(&self, cell: usize, arm: usize) -> TimesBySize {
        let most = self.usual(arm);
        let time = |connections: &[Connection]| {
            let usual = |connection: &&Connection| Some(connection.by_chance) == most;
            let alike: Vec<_> = connections.iter().filter(usual).map(|c| c.time).collect();
            match &*alike {
                [] => median(connections.iter().map(|c| c.time).collect()),
                _ => median(alike),
            }
        };
        let measured = self.measured(cell, arm);
        measured
            .map(|(bytes, connections)| (bytes, time(connections)))
            .collect()
    }

    /// What came of each arm in each cell.
    pub fn found(&self) -> Vec<Found> {
        let mut found = Vec::new();
        for (cell, in_cell) in self.cells().iter().enumerate() {
            for (arm, of) in self.search.experiment.arms.iter().enumerate() {
                let times_by_size = self.times_by_size(cell, arm);
                if times_by_size.is_empty() {
                    continue;
                }
                found.push(Found {
                    cell,
                    arm,
                    edges: if Search::has_luck(in_cell) {
                        Edges::Told(self.changes(cell, arm, in_cell))
                    } else {
                        Edges::Exact(self.edges(cell, of, arm))
                    },
                    arithmetic: self.computed(in_cell, of, arm, &times_by_size),
                    line: times_by_size.into_iter().collect(),
                });
            }
        }
        found
    }

    fn edges(&self, cell: usize, of: &Arm, arm: usize) -> Vec<Edge> {
        let times_by_size = self.times_by_size(cell, arm);
        let steps = self.stepping(cell, of, arm, |asked, times_by_size| {
            asked.steps(times_by_size)
        });
        let time = |bytes| times_by_size.get(&bytes).copied().flatten();
        let edge = |(below, above): (usize, usize)| Edge {
            below: self.on_wire(cell, arm, below),
            above: self.on_wire(cell, arm, above),
            times: (time(below), time(above)),
            seen: self.seen(cell, arm, (below, above), (time(below), time(above))),
        };
        steps.into_iter().map(edge).collect()
    }

    /// A size as it was seen on the wire.
    fn on_wire(&self, cell: usize, arm: usize, bytes: usize) -> SizeOnWire {
        let most = self.usual(arm);
        let connections = self.points.get(&Point { cell, arm, bytes });
        let connections = || connections.into_iter().flatten();
        let usual = connections().find(|connection| Some(connection.by_chance) == most);
        SizeOnWire {
            certificate: bytes,
            server_flight: usual
                .or(connections().next())
                .map_or(0, |c| c.flight as usize),
        }
    }

    /// The most bytes of a connection on the near side of an edge, and the fewest on the far side, among sizes near
    /// it.
    fn seen(
        &self,
        cell: usize,
        arm: usize,
        (below, above): (usize, usize),
        times: (Option<Duration>, Option<Duration>),
    ) -> (usize, usize) {
        const NEAR: usize = 16;
        let between = match times {
            (Some(near), Some(far)) => near.min(far) + near.abs_diff(far) / 2,
            (Some(near), None) => near * 2,
            (None, _) => Duration::ZERO,
        };
        let is_rise = times
            .1
            .is_none_or(|far| times.0.is_some_and(|near| far > near));
        let mut near = below.saturating_sub(NEAR)..=above + NEAR;
        let sizes = near
            .by_ref()
            .filter_map(|bytes| self.points.get(&Point { cell, arm, bytes }));
        let (mut most, mut fewest) = (0, usize::MAX);
        for connection in sizes.flatten() {
            let is_late = connection.time.is_none_or(|time| time > between);
            let flight = connection.flight as usize;
            if is_late == is_rise {
                fewest = fewest.min(flight)
            } else {
                most = most.max(flight)
            }
        }
        (most, fewest)
    }

    fn changes(&self, cell: usize, arm: usize, in_cell: &Cell) -> Vec<Change> {
        let milliseconds =
            |time: Option<Duration>| time.map_or(f64::INFINITY, |time| time.as_secs_f64() * 1e3);
        let sizes: Vec<Size> = self
            .measured(cell, arm)
            .map(|(bytes, connections)| {
                let mut connections = connections.to_vec();
                connections.sort_by_key(|connection| connection.index);
                Size {
                    bytes,
                    times: connections.iter().map(|c| milliseconds(c.time)).collect(),
                }
            })
            .collect();
        let threshold = milliseconds(Some(Search::threshold(in_cell)));
        changes(&sizes, threshold, self.search.experiment.seed)
    }

    /// Where arithmetic has edges among the sizes that were measured.
    fn computed(
        &self,
        cell: &Cell,
        of: &Arm,
        arm: usize,
        times_by_size: &TimesBySize,
    ) -> Result<Vec<Computed>, NoArithmetic> {
        let bounds = times_by_size
            .keys()
            .next()
            .zip(times_by_size.keys().next_back());
        let (first, last) = bounds.ok_or(NoArithmetic::NothingMeasured)?;
        computed(
            of,
            &without_luck(cell),
            self.search.metric,
            (*first, *last),
            self.usual(arm),
        )
    }
}

/// The edges of arithmetic between two sizes, both in bytes of the Certificate message, with what varies by chance of these
/// lengths, or of the likeliest.
///
/// # Errors
///
/// What arithmetic does not know, in one line.
pub fn computed(
    arm: &Arm,
    cell: &Cell,
    metric: Metric,
    (first, last): (usize, usize),
    by_chance: Option<ByChance>,
) -> Result<Vec<Computed>, NoArithmetic> {
    /// Finer than a segment, so that no two edges lie between two sizes.
    const GRID: usize = framing::MSS / 4;
    check(cell)?;
    check_over(arm, cell)?;
    let walk = |bytes| {
        let padded = match wire_with(arm, bytes, by_chance) {
            Ok(wire) => wire,
            Err(_) => return None,
        };
        let timeline = expected(&padded, cell, arm.record_size, Compute::default());
        Some((timeline, padded.carried(HandshakeFlight::Server) as usize))
    };
    wire_with(arm, first, by_chance)?;
    let time = |timeline: &Timeline| match metric {
        Metric::Connect => timeline.modelled(timeline.connect?),
        Metric::Handshake => timeline.modelled(timeline.handshake),
        Metric::Ttfb => timeline.modelled(timeline.ttfb?),
        Metric::Ttlb => timeline.modelled(timeline.ttlb),
        Metric::TlsHandshake => {
            let handshake = timeline.modelled(timeline.handshake)?;
            handshake.checked_sub(timeline.connect?)
        }
        Metric::DnsRecord | Metric::Fcp | Metric::Lcp | Metric::Load | Metric::SpeedIndex => None,
    };
    let stepping = Stepping {
        threshold: Search::threshold(cell),
        is_possible: &|_| true,
        hints: &[],
    };
    let grid = (first..last).step_by(GRID).chain([last]);
    let steps = stepping.walk(grid, |bytes| time(&walk(bytes)?.0));
    let edge = |(below, above): (usize, usize)| {
        let (near, server_flight) = walk(below)?;
        let (far, _) = walk(above)?;
        Some(Computed {
            below: SizeOnWire {
                certificate: below,
                server_flight,
            },
            flights: (near.handshake_flights(), far.handshake_flights()),
            times: (time(&near)?, time(&far)?),
        })
    };
    Ok(steps.into_iter().filter_map(edge).collect())
}

/// A cell that loses nothing and has no jitter.
fn without_luck(cell: &Cell) -> Cell {
    let mut cell = cell.clone();
    cell.link = cell.link.without_luck();
    cell
}

/// The one in the middle; of two, the later one. None counts as infinitely late.
fn median(mut times: Vec<Option<Duration>>) -> Option<Duration> {
    times.sort_by_key(|time| time.unwrap_or(Duration::MAX));
    times.get(times.len() / 2).copied().flatten()
}

impl Found {
    /// The edge of arithmetic that is nearest to a measured one, as bytes from there to here, if there is one.
    pub fn difference(&self, edge: &Edge) -> Option<i64> {
        let computed = self.arithmetic.as_ref().ok()?.iter();
        let apart =
            |computed: &Computed| edge.below.certificate as i64 - computed.below.certificate as i64;
        computed.map(apart).min_by_key(|apart| apart.abs())
    }
}
