//! How a cell is named.

use std::fmt;
use std::time::Duration;

use lastbyte_link::{Bytes, Direction, Link, format_duration};

use super::{Cell, Metric, SETTINGS};

impl fmt::Display for Cell {
    /// Its parameters in the units of the command line, without those that are as usual.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parameters = self.parameters();
        let unusual = parameters
            .iter()
            .filter(|parameter| parameter.usual != Some(parameter.text.as_str()));
        f.pad(&join(unusual))
    }
}

/// Names for `cells` that tell them apart: the parameters in which they differ. A cell that stands
/// alone has an empty one.
pub fn distinctions(cells: &[Cell]) -> Vec<String> {
    let cells: Vec<_> = cells.iter().map(Cell::parameters).collect();
    let Some((first, others)) = cells.split_first() else {
        return Vec::new();
    };
    let differs: Vec<bool> = first
        .iter()
        .enumerate()
        .map(|(index, parameter)| others.iter().any(|cell| cell.get(index) != Some(parameter)))
        .collect();
    cells
        .iter()
        .map(|cell| {
            join(
                cell.iter()
                    .zip(&differs)
                    .filter(|(_, differs)| **differs)
                    .map(|(p, _)| p),
            )
        })
        .collect()
}

/// One parameter of a cell, in words.
#[derive(PartialEq)]
struct Parameter {
    text: String,
    /// The text that need not be told.
    usual: Option<&'static str>,
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

impl Cell {
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
        match (self.upload, self.data) {
            (Bytes(0), Bytes(0)) => &[Metric::Connect, Metric::Handshake],
            (_, Bytes(0)) => &[Metric::Connect, Metric::Handshake, Metric::Ttlb],
            _ => &Metric::FROM_CONNECT,
        }
    }

    /// Whether a connection can carry this.
    ///
    /// # Errors
    ///
    /// What it can't, with the mend.
    pub fn check(&self) -> Result<(), String> {
        match (self.requests, self.data) {
            (2.., Bytes(0)) => Err(format!(
                "{} requests need a response to wait for: ask for data, or for one request",
                self.requests
            )),
            _ => Ok(()),
        }
    }

    fn parameters(&self) -> Vec<Parameter> {
        let Link { forward, backward } = &self.link;
        let both = |text: fn(&Direction) -> String| match (text(forward), text(backward)) {
            (up, down) if up == down => up,
            (up, down) => format!("{up} up and {down} down"),
        };
        let always = |text| Parameter { text, usual: None };
        let unless = |usual, text| Parameter {
            text,
            usual: Some(usual),
        };
        let mut parameters = vec![
            always(rtt(&self.link)),
            always(both(rate)),
            always(format!(
                "loss {}",
                both(|direction| direction.loss.to_string())
            )),
            unless("jitter 0s", format!("jitter {}", both(jitter))),
            unless(
                "queue 1000",
                format!("queue {}", both(|direction| direction.queue.to_string())),
            ),
            always(format!("initcwnd {}", self.initcwnd)),
            unless(
                "client initcwnd 10",
                format!("client initcwnd {}", self.client_initcwnd),
            ),
            unless("cubic", self.congestion.to_string()),
            match self.gso == self.preset.gso() {
                // Goes without saying.
                true => unless("", String::new()),
                false => always(format!("gso {}", self.gso)),
            },
            unless("preset network", format!("preset {}", self.preset)),
        ];
        parameters.extend(SETTINGS.iter().map(|setting| match setting.is_usual(self) {
            true => unless("", String::new()),
            false => always(format!("{} {}", setting.name, (setting.of)(&self.hosts))),
        }));
        parameters.extend([
            unless("upload 0B", format!("upload {}", self.upload)),
            unless("1 requests", format!("{} requests", self.requests)),
            unless("think 0s", format!("think {}", format_duration(self.think))),
            always(self.data.to_string()),
        ]);
        parameters
    }
}

fn join<'a>(parameters: impl Iterator<Item = &'a Parameter>) -> String {
    parameters
        .map(|parameter| parameter.text.as_str())
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join(", ")
}

fn rtt(link: &Link) -> String {
    let (up, down) = (link.forward.delay, link.backward.delay);
    let rtt = format_duration(link.rtt());
    // Half of an odd number of nanoseconds is not a whole one.
    if up.abs_diff(down) <= Duration::from_nanos(1) {
        return format!("RTT {rtt}");
    }
    format!(
        "RTT {rtt} ({} up and {} down)",
        format_duration(up),
        format_duration(down)
    )
}

fn rate(direction: &Direction) -> String {
    direction
        .rate
        .map_or("no rate limit".into(), |rate| rate.to_string())
}

fn jitter(direction: &Direction) -> String {
    let jitter = format_duration(direction.jitter);
    if direction.jitter.is_zero() {
        jitter
    } else {
        format!("{jitter} {}", direction.distribution)
    }
}
