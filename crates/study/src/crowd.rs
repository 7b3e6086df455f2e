//! What else is on a link besides the connection that is measured.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use lastbyte_link::named;

use super::Congestion;
use super::value::CrowdError;

/// What else is on the link of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crowd {
    /// Bulk transfers through the same bottleneck.
    pub cross_traffic: CrossTraffic,
    /// How long they have been under way at least when the connection begins: each connection's luck draws up to twice as long.
    pub cross_lead: Duration,
    /// Connections of one user that begin together over one link, all of which are measured.
    pub at_once: u32,
}

impl Default for Crowd {
    fn default() -> Crowd {
        Crowd {
            cross_traffic: CrossTraffic::default(),
            cross_lead: Crowd::USUAL_LEAD,
            at_once: 1,
        }
    }
}

impl Crowd {
    /// Slow start is over by then, and a queue of Linux' usual length is full over all but the slowest links.
    pub const USUAL_LEAD: Duration = Duration::from_secs(5);

    /// Whether a connection has its link to itself.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        self.cross_traffic.flows().is_empty() && self.at_once == 1
    }
}

/// Bulk transfers of other people: each a connection of TCP that always has something to send.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CrossTraffic(Vec<CrossFlow>);

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrossFlow {
    /// The congestion control of its sender.
    pub congestion: Congestion,
    /// Which way its bytes go.
    pub way: CrossWay,
}

/// Which way bytes go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CrossWay {
    /// To the client.
    #[default]
    Down,
    /// To the server.
    Up,
}

named!(CrossWay, "direction of a bulk transfer", { Down => "down", Up => "up" });

impl CrossTraffic {
    /// The most transfers at once.
    pub const MOST: usize = 32;
    /// What stands for none.
    pub const NONE: &str = "none";

    /// Each of them.
    #[must_use]
    pub fn flows(&self) -> &[CrossFlow] {
        &self.0
    }
}

impl fmt::Display for CrossTraffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let alike = self.0.chunk_by(|one, other| one == other);
        let words = alike.filter_map(|alike| {
            let CrossFlow { congestion, way } = alike.first()?;
            let count = match alike.len() {
                1 => String::new(),
                count => format!("{count} "),
            };
            Some(match way {
                CrossWay::Down => format!("{count}{congestion}"),
                CrossWay::Up => format!("{count}{congestion} {way}"),
            })
        });
        let words: Vec<String> = words.collect();
        f.pad(
            if words.is_empty() {
                CrossTraffic::NONE.to_owned()
            } else {
                words.join("+")
            }
            .as_str(),
        )
    }
}

impl FromStr for CrossTraffic {
    type Err = CrowdError;

    /// `cubic`, `2 cubic+bbr`, `cubic up`, or `none`.
    fn from_str(text: &str) -> Result<CrossTraffic, CrowdError> {
        if text == CrossTraffic::NONE {
            return Ok(CrossTraffic::default());
        }
        let mut flows = Vec::new();
        for part in text.split('+') {
            let words: Vec<&str> = part.split_whitespace().collect();
            let (count, words) = match words.split_first() {
                Some((first, rest)) if first.bytes().all(|byte| byte.is_ascii_digit()) => {
                    let count = first.parse().ok().filter(|count| *count > 0);
                    (count.ok_or(CrowdError::TooMany)?, rest)
                }
                _ => (1, words.as_slice()),
            };
            let (congestion, way) = match words {
                [congestion] => (congestion.parse()?, CrossWay::Down),
                [congestion, way] => (congestion.parse()?, way.parse()?),
                _ => return Err(CrowdError::NoFlow(part.trim().to_owned())),
            };
            let room = CrossTraffic::MOST - flows.len();
            if count > room {
                return Err(CrowdError::TooMany);
            }
            flows.extend(std::iter::repeat_n(CrossFlow { congestion, way }, count));
        }
        Ok(CrossTraffic(flows))
    }
}

#[cfg(test)]
mod tests;
