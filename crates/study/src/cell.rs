//! How a cell is named.

use std::fmt;
use std::time::Duration;

use lastbyte_link::{Bytes, Direction, Distribution, Loss, format_duration};

use thiserror::Error;

use super::value::PageError;
use super::{Cell, Gso, Metric, Parameter, Tso};

impl fmt::Display for Cell {
    /// Its parameters in the units of the command line, without those that are as usual.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let captions = Parameter::ALL.into_iter();
        let captions: Vec<String> = captions
            .filter_map(|parameter| parameter.caption(self))
            .collect();
        f.pad(&captions.join(", "))
    }
}

/// Names for `cells` that tell them apart: the parameters in which they differ, those of links by the links' names
/// where these tell them. A cell that stands alone has an empty one.
pub fn distinctions(cells: &[Cell]) -> Vec<String> {
    let captions = |parameter: Parameter| -> Vec<Option<String>> {
        cells.iter().map(|cell| parameter.caption(cell)).collect()
    };
    let differ =
        |captions: &Vec<Option<String>>| captions.iter().any(|one| captions.first() != Some(one));
    let is_told_by_name =
        |parameter: Parameter| parameter.is_of_link() && parameter != Parameter::LINK;
    let names_tell = differ(&captions(Parameter::LINK)) && names_tell_links(cells);
    let told: Vec<_> = (Parameter::ALL.into_iter())
        .filter(|parameter| !(names_tell && is_told_by_name(*parameter)))
        .filter(|parameter| differ(&captions(*parameter)))
        .collect();
    let name = |cell: &Cell| {
        let words: Vec<String> = told
            .iter()
            .map(|parameter| parameter.describe(cell))
            // A link may be without a name.
            .filter(|word| !word.is_empty())
            .collect();
        words.join(", ")
    };
    cells.iter().map(name).collect()
}

/// What is said of all `cells` alike: of one alone, all of it.
pub fn common(cells: &[Cell]) -> String {
    let Some(first) = cells.first() else {
        return String::new();
    };
    let captions = Parameter::ALL.into_iter().filter_map(|parameter| {
        let caption = parameter.caption(first)?;
        let mut cells = cells.iter();
        let is_common = cells.all(|cell| parameter.caption(cell).as_ref() == Some(&caption));
        is_common.then_some(caption)
    });
    captions.collect::<Vec<_>>().join(", ")
}

/// Whether every link has a name, and no two links have the same.
fn names_tell_links(cells: &[Cell]) -> bool {
    let agree = |one: &Cell, other: &Cell| {
        one.link_name.is_some() && (one.link_name != other.link_name || one.link == other.link)
    };
    (cells.iter()).all(|one| cells.iter().all(|other| agree(one, other)))
}

/// What the connections of a cell carry, whatever the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Work {
    /// [`Cell::upload`]
    pub upload: Bytes,
    /// [`Cell::data`]
    pub data: Bytes,
    /// Requests; none without data in either direction.
    pub requests: u32,
}

impl Work {
    /// Payload in both directions.
    pub fn payload(&self) -> Bytes {
        let each = self.upload.0.saturating_add(self.data.0);
        Bytes(each.saturating_mul(self.requests.into()))
    }
}

/// What no connection in a cell can carry.
#[derive(Debug, Error)]
pub enum CellError {
    /// There is no such page.
    #[error(transparent)]
    Page(#[from] PageError),
    /// Requests wait for nothing.
    #[error("{requests} requests need a response to wait for: ask for data, or for one request")]
    NoResponse {
        /// How many there are.
        requests: u32,
    },
}

impl Cell {
    /// Whether either direction loses packets.
    pub fn has_loss(&self) -> bool {
        let directions = [&self.link.forward, &self.link.backward];
        directions.iter().any(|way| way.loss != Loss::NONE)
    }

    /// That packets would have to arrive before they are sent, where the jitter is wider than the delay: what comes of it, and which
    /// jitter would not do that.
    pub fn jitter_note(&self) -> Option<String> {
        /// Less is a tail that changes no percentile.
        const NEGLIGIBLE: f64 = 0.01;
        let directions = [&self.link.forward, &self.link.backward];
        let way = directions
            .into_iter()
            .max_by(|one, other| one.share_below_zero().total_cmp(&other.share_below_zero()))?;
        let share = way.share_below_zero();
        if share < NEGLIGIBLE {
            let way = directions.into_iter().find(|way| way.is_reordering())?;
            return Some(format!(
                "with a jitter of {} and no rate, packets overtake each other, as in netem, which TCP and QUIC take for losses: \
                 --jitter-order kept keeps their order, as does a --rate",
                format_duration(way.jitter)
            ));
        }
        let fits = |jitter: Duration, distribution: &Distribution| {
            let other = Direction {
                jitter,
                distribution: distribution.clone(),
                ..way.clone()
            };
            other.share_below_zero() < NEGLIGIBLE
        };
        // Of as many milliseconds as leave all but a tail of packets delayed.
        let most = (0..way.jitter.as_millis()).rev().find_map(|ms| {
            let jitter = Duration::from_millis(u64::try_from(ms).ok()?);
            fits(jitter, &way.distribution).then_some(jitter)
        });
        let most = most.filter(|most| !most.is_zero());
        let lower = match most {
            Some(most) => format!("lower --jitter to {}", format_duration(most)),
            None => "lower --jitter".to_owned(),
        };
        // Whose earliest are early by less.
        let other = if fits(way.jitter, &Distribution::Pareto) {
            ", or take --jitter-distribution pareto"
        } else {
            ""
        };
        let order = if way.is_reordering() {
            ", packets overtake each other (with a --rate, or --jitter-order kept, they would not)"
        } else {
            ""
        };
        let mean = directions.map(Direction::mean_delay);
        let mean = mean.iter().sum::<Duration>().as_secs_f64() * 1e3;
        Some(format!(
            "a jitter of {} is wider than the delay of {} one way: {:.0} % of packets are not delayed at all{order}, and a round trip takes \
             {mean:.1} ms in the mean, not {}; {lower}{other}",
            format_duration(way.jitter),
            format_duration(way.delay),
            100.0 * share,
            format_duration(self.link.rtt()),
        ))
    }

    /// Whether either direction delays packets by more than how many of the connection's own are before them: at random, by
    /// what else is on the link, or by a discipline of its queue.
    pub fn has_jitter(&self) -> bool {
        let directions = [&self.link.forward, &self.link.backward];
        directions.iter().any(|way| !way.jitter.is_zero())
            || self.has_trace()
            || self.has_qdisc()
            || !self.crowd.is_alone()
    }

    /// Whether connections have other networks than each other, by luck or by what they draw.
    pub fn has_luck(&self) -> bool {
        self.has_loss() || self.has_jitter() || self.population.is_some()
    }

    /// Whether either direction has a rate that changes. Connections begin anywhere in a trace.
    pub fn has_trace(&self) -> bool {
        let directions = [&self.link.forward, &self.link.backward];
        directions.iter().any(|way| way.trace.is_some())
    }

    /// Whether packets wait by a discipline of their own in either direction, which drops them by chance or by how long
    /// they have waited.
    pub fn has_qdisc(&self) -> bool {
        let directions = [&self.link.forward, &self.link.backward];
        directions.iter().any(|way| way.qdisc.is_some())
    }

    /// Whether super-packets cross the link whole.
    pub fn has_super_packets(&self) -> bool {
        self.gso == Gso::On && self.hosts.tso == Tso::On
    }

    /// What its connections carry.
    pub fn work(&self) -> Work {
        let (upload, data) = (self.upload, self.data);
        Work {
            upload,
            data,
            requests: match (upload, data) {
                (Bytes(0), Bytes(0)) => 0,
                _ => self.requests,
            },
        }
    }

    /// The metrics that say something of their own, in the order of time: without data, the last byte
    /// is the handshake's.
    pub fn metrics(&self) -> &'static [Metric] {
        if self.page.is_some() {
            return &Metric::OF_PAGE;
        }
        if self.draws(Parameter::DATA) {
            return &Metric::FROM_CONNECT;
        }
        match (self.upload, self.data) {
            (Bytes(0), Bytes(0)) => &[Metric::Connect, Metric::Handshake],
            (_, Bytes(0)) => &[Metric::Connect, Metric::Handshake, Metric::Ttlb],
            _ => &Metric::FROM_CONNECT,
        }
    }

    /// All metrics that it can have, in the order of time.
    pub fn all_metrics(&self) -> &'static [Metric] {
        match self.page {
            Some(_) => &Metric::OF_PAGE,
            None => &Metric::FROM_CONNECT,
        }
    }

    /// Whether a connection can carry this.
    ///
    /// # Errors
    ///
    /// What it can't, with the hint.
    pub fn check(&self) -> Result<(), CellError> {
        if let Some(page) = &self.page {
            return Ok(page.check(self.origins)?);
        }
        match (self.requests, self.data) {
            (2.., Bytes(0)) => Err(CellError::NoResponse {
                requests: self.requests,
            }),
            _ => Ok(()),
        }
    }
}
