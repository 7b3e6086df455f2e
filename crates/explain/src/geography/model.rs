//! The first byte by region, with an edge and without.
//!
//! Without an edge, a user connects to the origin. With one, the user connects to the edge; when the request is
//! there, the edge asks the origin; when the first byte of the answer is back, it passes that on. So the TTFB is
//! that of the connection in front plus that of the connection behind, each over its own RTT.

use std::time::Duration;

use lastbyte_exchange::{Quic, Transport};
use lastbyte_flights::{Compute, Timeline};
use lastbyte_link::{Bytes, Direction, Link, format_duration, named, nearest};

use thiserror::Error;

use super::{GeographyError, Region, RttTable, Source, Users};
use crate::{check_over, wire};
use lastbyte_results::{Exchange, expected};
use lastbyte_study::{Arm, Cell, TransportName};

/// How an edge comes by what it answers with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OriginConnection {
    /// Over a new connection to the origin: TCP, handshake, request.
    Cold,
    /// Over a connection that it has, idle for long: the request alone.
    Warm,
    /// It has it, and asks nobody.
    Cached,
}

named!(OriginConnection, "connection to the origin", { Cold => "cold", Warm => "warm", Cached => "cached" });

/// How an answer comes to a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    /// From the origin, without an edge.
    Direct,
    /// Through an edge.
    Edge(OriginConnection),
}

impl Way {
    /// As it is called in tables and documents.
    pub fn name(self) -> &'static str {
        match self {
            Way::Direct => "direct",
            Way::Edge(connection) => connection.name(),
        }
    }
}

/// What is asked.
#[derive(Clone, Debug)]
pub struct Question {
    /// The arms; the first is the baseline.
    pub arms: Vec<Arm>,
    /// The arm of connections from edges to the origin; `None` if it is that of the users.
    pub origin_arm: Option<Arm>,
    /// The network of users, but for its RTT, and what they ask for.
    pub front: Cell,
    /// The same between edges and the origin.
    pub back: Cell,
    /// How edges come by answers.
    pub connections: Vec<OriginConnection>,
    /// The place of the origin.
    pub origin: String,
    /// Where there are edges; empty if it is only known of each region.
    pub edges: Vec<String>,
    /// From users to their edge, where neither their file nor a table of the user's says it: each is a case of
    /// its own.
    pub stated: Vec<Duration>,
    /// Between an edge and the origin where both are in one place, and the table does not say it.
    pub within: Option<Duration>,
}

/// Where an RTT is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RttSource {
    /// The file of regions.
    Users,
    /// The table of RTTs.
    Table,
    /// Stated, not measured.
    Stated,
    /// The sum of the way to the edge and from there to the origin.
    Sum,
}

named!(RttSource, { Users => "users", Table => "table", Stated => "stated", Sum => "sum" });

/// How far it is from where to where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distances {
    /// The place of the edge.
    pub edge: String,
    /// From the users to the edge.
    pub user_edge: (Duration, RttSource),
    /// From the edge to the origin.
    pub edge_origin: (Duration, RttSource),
    /// From the users to the origin, without an edge.
    pub user_origin: (Duration, RttSource),
}

/// What comes of it.
#[derive(Clone, Debug)]
pub struct Geography {
    /// What was asked.
    pub question: Question,
    /// Direct, and then through edges.
    pub ways: Vec<Way>,
    /// One, or one for each RTT that was stated between users and edges.
    pub settings: Vec<Setting>,
}

/// All regions, at one stated RTT between users and edges.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The RTT that was stated; `None` if none was needed.
    pub stated: Option<Duration>,
    /// The regions, in the order of their file.
    pub regions: Vec<RegionTimes>,
    /// All users together, by arm and way. Empty if it is not known how many users regions have.
    pub population: Vec<Vec<Aggregate>>,
}

/// One region.
#[derive(Clone, Debug)]
pub struct RegionTimes {
    /// The region.
    pub region: Region,
    /// How far it is from all.
    pub distances: Distances,
    /// TTFB by arm and way.
    pub ttfb: Vec<Vec<Duration>>,
}

/// The TTFB of all users together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aggregate {
    /// The mean of users.
    pub mean: Duration,
    /// What half of the users do not exceed.
    pub p50: Duration,
    /// What 95 of 100 users do not exceed.
    pub p95: Duration,
}

impl Geography {
    /// Answers a question about users, over a table of RTTs.
    ///
    /// # Errors
    ///
    /// Where arithmetic does not go, or an RTT is not known, with the hint.
    pub fn new(
        question: Question,
        users: &Users,
        table: &RttTable,
    ) -> Result<Geography, GeographyError> {
        let asked = |problem: String| GeographyError::new("", None, problem);
        if question.front.data == Bytes(0) {
            return Err(asked(
                "a response of no bytes has no first byte: ask for data".to_owned(),
            ));
        }
        for cell in [&question.front, &question.back] {
            crate::check(cell).map_err(|problem| asked(problem.to_string()))?;
        }
        let fronts = question.arms.iter().map(|arm| (arm, &question.front));
        let origin_arms = match &question.origin_arm {
            None => &*question.arms,
            Some(arm) => std::slice::from_ref(arm),
        };
        let behind = origin_arms.iter().map(|arm| (arm, &question.back));
        for (arm, cell) in fronts.chain(behind) {
            check_over(arm, cell).map_err(|unknown| asked(unknown.to_string()))?;
        }
        let wires = |arms: &[Arm]| -> Result<Vec<Exchange>, GeographyError> {
            let wires = arms
                .iter()
                .map(|arm| wire(arm).map_err(|unknown| asked(unknown.to_string())));
            wires.collect()
        };
        let fronts = wires(&question.arms)?;
        let backs = match &question.origin_arm {
            None => question.arms.clone(),
            Some(arm) => vec![arm.clone(); question.arms.len()],
        };
        let back_wires = wires(&backs)?;
        let edges = question.connections.iter().copied().map(Way::Edge);
        let ways: Vec<Way> = [Way::Direct].into_iter().chain(edges).collect();
        let stated = if is_stated(&question, users, table) {
            question.stated.iter().copied().map(Some).collect()
        } else {
            vec![None]
        };
        let mut settings = Vec::new();
        for stated in stated {
            let mut regions = Vec::new();
            for region in &users.regions {
                let distances = distances(&question, users, region, table, stated)?;
                let arms = question.arms.iter().zip(&fronts);
                let backs = backs.iter().zip(&back_wires);
                let ttfb = arms.zip(backs).map(|(front, back)| {
                    let of = |way: &Way| ttfb(&question, front, back, &distances, *way);
                    ways.iter().map(of).collect::<Result<_, _>>()
                });
                let ttfb: Result<_, String> = ttfb.collect();
                regions.push(RegionTimes {
                    ttfb: ttfb
                        .map_err(|problem| asked(format!("region {:?}: {problem}", region.name)))?,
                    region: region.clone(),
                    distances,
                });
            }
            settings.push(Setting {
                stated,
                population: if users.are_counted() {
                    population(&regions, question.arms.len(), ways.len())
                } else {
                    Vec::new()
                },
                regions,
            });
        }
        Ok(Geography {
            question,
            ways,
            settings,
        })
    }
}

/// From just before a user's `connect()` to the first byte.
fn ttfb(
    question: &Question,
    (arm, arm_wire): (&Arm, &Exchange),
    (back, back_wire): (&Arm, &Exchange),
    distances: &Distances,
    way: Way,
) -> Result<Duration, String> {
    let front = |rtt| new_connection(arm, arm_wire, &question.front, rtt);
    let (behind, _) = distances.edge_origin;
    let connection = match way {
        Way::Direct => return front(distances.user_origin.0),
        Way::Edge(connection) => connection,
    };
    let fetched = match connection {
        OriginConnection::Cold => new_connection(back, back_wire, &question.back, behind)?,
        OriginConnection::Warm => open_connection(back, &question.back, behind)?,
        OriginConnection::Cached => Duration::ZERO,
    };
    Ok(front(distances.user_edge.0)? + fetched)
}

fn new_connection(
    arm: &Arm,
    wire: &Exchange,
    cell: &Cell,
    rtt: Duration,
) -> Result<Duration, String> {
    let cell = over(cell, rtt);
    let times = expected(wire, &cell, arm.record_size, Compute::default());
    first_byte(arm, &times, rtt)
}

/// Over TCP it is near even where a SYN comes again. Over QUIC, ends that begin with a round-trip time below the path's send again
/// what is on its way, and nothing of that is known.
fn first_byte(arm: &Arm, times: &Timeline, rtt: Duration) -> Result<Duration, String> {
    let first = times.ttfb.unwrap_or(times.ttlb);
    match (arm.transport, times.beyond(first)) {
        (TransportName::Quic, Some(reason)) => Err(format!(
            "over an RTT of {}, {reason}: leave transport=quic of arm {:?} out, or ask for another --quic-initial-rtt",
            format_duration(rtt),
            arm.label
        )),
        (TransportName::Tcp, _) | (TransportName::Quic, None) => Ok(first),
    }
}

/// A request after the handshake, with windows as at the beginning: that is where idleness takes them.
fn open_connection(arm: &Arm, cell: &Cell, rtt: Duration) -> Result<Duration, String> {
    let cell = over(cell, rtt);
    let no_handshake = Exchange {
        transport: match arm.transport {
            TransportName::Tcp => Transport::default(),
            TransportName::Quic => Transport::Quic(Quic::default()),
        },
        ..Exchange::default()
    };
    let times = expected(&no_handshake, &cell, arm.record_size, Compute::default());
    Ok(first_byte(arm, &times, rtt)? - times.connect.unwrap_or_default())
}

/// The same network at another RTT.
fn over(cell: &Cell, rtt: Duration) -> Cell {
    let halves = Link::symmetric(rtt, Direction::default());
    let mut cell = cell.clone();
    cell.link.forward.delay = halves.forward.delay;
    cell.link.backward.delay = halves.backward.delay;
    cell
}

/// Whether any region needs an RTT that was stated.
fn is_stated(question: &Question, users: &Users, table: &RttTable) -> bool {
    let mut regions = users.regions.iter();
    !question.stated.is_empty()
        && regions.any(|region| measured_edge(question, region, table).is_none())
}

/// A region's RTT to its edge, if it was measured, with the place of the edge if that follows.
fn measured_edge<'a>(
    question: &'a Question,
    region: &'a Region,
    table: &RttTable,
) -> Option<(Option<&'a str>, Duration, RttSource)> {
    if let Some(rtt) = region.edge_rtt {
        return Some((region.edge.as_deref(), rtt, RttSource::Users));
    }
    if table.source != Source::Own {
        return None;
    }
    let edges = match &region.edge {
        Some(edge) => std::slice::from_ref(edge),
        None => &question.edges[..],
    };
    let measured = edges
        .iter()
        .filter_map(|edge| Some((edge.as_str(), table.get(&region.name, edge)?)));
    let (edge, rtt) = measured.min_by_key(|(_, rtt)| *rtt)?;
    Some((Some(edge), rtt, RttSource::Table))
}

fn distances(
    question: &Question,
    users: &Users,
    region: &Region,
    table: &RttTable,
    stated: Option<Duration>,
) -> Result<Distances, GeographyError> {
    let unknown = |problem: String| GeographyError::new(&users.file, None, problem);
    let name = &region.name;
    let known = measured_edge(question, region, table);
    let edge = match (known, &region.edge) {
        (Some((Some(edge), ..)), _) => edge,
        (_, Some(edge)) => edge,
        (_, None) => {
            only_edge(question, name, table).map_err(|problem| unknown(problem.to_string()))?
        }
    };
    if !question.edges.is_empty() && !question.edges.iter().any(|known| known == edge) {
        let names = question.edges.iter().map(String::as_str);
        return Err(unknown(format!(
            "the edge of region {name:?} is {edge:?}, which --edge does not name: {}",
            nearest(edge, names)
        )));
    }
    let user_edge = match (known, stated) {
        (Some((_, rtt, known)), _) => (rtt, known),
        (None, Some(rtt)) => (rtt, RttSource::Stated),
        (None, None) => {
            return Err(unknown(format!(
                "region {name:?} has no RTT to its edge {edge:?}: give it in a column edge_rtt, or state it, such as \
                 --user-edge 5ms,15ms,30ms,60ms"
            )));
        }
    };
    let origin = &question.origin;
    let edge_origin = match (table.get(edge, origin), question.within) {
        (None, Some(within)) if edge == origin => (within, RttSource::Stated),
        (None, None) if edge == origin && table.knows(origin) => {
            return Err(GeographyError::new(
                &table.file,
                None,
                format!(
                    "it has no RTT from {edge:?} to itself, where the edge of region {name:?} and the origin are: \
                     state it, such as --within 1ms"
                ),
            ));
        }
        _ => (table.need(edge, origin)?, RttSource::Table),
    };
    let measured = match table.source {
        Source::Own => table.get(name, origin),
        Source::Azure => None,
    };
    let user_origin = match (region.origin_rtt, measured) {
        (Some(rtt), _) => (rtt, RttSource::Users),
        (None, Some(rtt)) => (rtt, RttSource::Table),
        (None, None) => (user_edge.0 + edge_origin.0, RttSource::Sum),
    };
    Ok(Distances {
        edge: edge.to_owned(),
        user_edge,
        edge_origin,
        user_origin,
    })
}

/// Nothing says where a region's edge is.
#[derive(Debug, Error)]
#[error(
    "nothing says where the edge of region {0:?} is: name it in a column edge, or one for all with --edge"
)]
struct NoEdge(String);

/// The edge of a region of which nothing says it: the only one, or that in the place of the same name.
fn only_edge<'a>(
    question: &'a Question,
    region: &'a str,
    table: &RttTable,
) -> Result<&'a str, NoEdge> {
    match &question.edges[..] {
        [edge] => Ok(edge),
        [] if table.knows(region) => Ok(region),
        edges if edges.iter().any(|edge| edge == region) => Ok(region),
        _ => Err(NoEdge(region.to_owned())),
    }
}

/// By arm and way.
fn population(regions: &[RegionTimes], arms: usize, ways: usize) -> Vec<Vec<Aggregate>> {
    let of = |arm: usize, way: usize| {
        let times = regions.iter().filter_map(|one| {
            let time = one.ttfb.get(arm)?.get(way)?;
            Some((*time, one.region.users?))
        });
        aggregate(times.collect())
    };
    (0..arms)
        .map(|arm| (0..ways).map(|way| of(arm, way)).collect())
        .collect()
}

/// Of times with their weights, some of which are above zero.
pub(super) fn aggregate(mut times: Vec<(Duration, f64)>) -> Aggregate {
    times.sort_by_key(|(time, _)| *time);
    times.retain(|(_, weight)| *weight > 0.0);
    let total: f64 = times.iter().map(|(_, weight)| weight).sum();
    let sum: f64 = times
        .iter()
        .map(|(time, weight)| time.as_secs_f64() * (weight / total))
        .sum();
    let not_exceeded = |share: f64| {
        let mut before = 0.0;
        let found = times.iter().find(|(_, weight)| {
            before += weight;
            before >= share * total
        });
        // A sum of shares may miss the whole by a little.
        found
            .or(times.last())
            .map_or(Duration::ZERO, |(time, _)| *time)
    };
    Aggregate {
        mean: Duration::try_from_secs_f64(sum).unwrap_or_default(),
        p50: not_exceeded(0.5),
        p95: not_exceeded(0.95),
    }
}

impl Setting {
    /// The regions as a study's `joint` table draws them: a class for each region, with the RTT of users to
    /// their edge, and as much weight as the region has users.
    pub fn joint_csv(&self) -> String {
        let mut writer = ::csv::Writer::from_writer(Vec::new());
        // Nothing that is written to memory fails.
        let _ = writer.write_record(["class", "rtt", "weight"]);
        for RegionTimes {
            region, distances, ..
        } in &self.regions
        {
            let rtt = lastbyte_link::format_duration(distances.user_edge.0);
            let weight = region.users.unwrap_or(1.0).to_string();
            let _ = writer.write_record([&region.name, &rtt, &weight]);
        }
        let bytes = writer.into_inner().unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}
