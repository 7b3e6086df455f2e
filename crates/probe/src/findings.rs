//! A probe: connections in, findings out.

use std::time::Duration;

use crate::plan::{self, Ask, Limits};
use crate::window::{self, Look, Window, candidates};
use crate::{Connection, PathSeen, RateSeen, Rtt, path};

/// Connections to one server.
#[derive(Clone, Debug, Default)]
pub struct Probe {
    limits: Limits,
    connections: Vec<Connection>,
    /// What they say of the window, with the round-trip time that was known then.
    looks: (Rtt, Vec<Look>),
}

/// What they tell.
#[derive(Clone, Debug, PartialEq)]
pub struct Findings {
    /// The path; none if no connection was established.
    pub path: Option<PathSeen>,
    /// The server's initial window; none if nothing tells.
    pub window: Option<Window>,
    /// What each connection showed of the window, in their order.
    pub looks: Vec<Look>,
}

impl Probe {
    /// One that has made no connection yet.
    #[must_use]
    pub fn new(limits: Limits) -> Probe {
        Probe {
            limits,
            ..Probe::default()
        }
    }

    /// The connection to make next, if another one may tell more.
    #[must_use]
    pub fn next(&self) -> Option<Ask> {
        let findings = self.findings();
        plan::next(
            self.limits,
            &self.connections,
            (findings.path).map_or(Duration::ZERO, |path| path.rtt.least),
            &findings.looks,
            findings.window.as_ref(),
        )
    }

    /// Takes one that was made.
    pub fn add(&mut self, connection: Connection) {
        self.connections.push(connection);
        let Some(rtt) = path::rtt(&self.connections) else {
            return;
        };
        let (before, looks) = &mut self.looks;
        if (before.least, before.spread()) != (rtt.least, rtt.spread()) {
            looks.clear();
        }
        *before = rtt;
        let new = self.connections.iter().skip(looks.len());
        let new: Vec<Look> = new.map(|connection| candidates(connection, &rtt)).collect();
        looks.extend(new);
    }

    /// Those that were made.
    #[must_use]
    pub fn connections(&self) -> &[Connection] {
        &self.connections
    }

    /// What they tell.
    #[must_use]
    pub fn findings(&self) -> Findings {
        let Some(rtt) = path::rtt(&self.connections) else {
            return Findings {
                path: None,
                window: None,
                looks: Vec::new(),
            };
        };
        let (_, looks) = &self.looks;
        Findings {
            path: Some(PathSeen {
                rtt,
                // A sender that paces itself can look like a path.
                rate: path::rate(&self.connections, &rtt).map(|rate| {
                    if looks.iter().any(|look| look.paced > 0) {
                        RateSeen::AtLeast(rate.bits())
                    } else {
                        rate
                    }
                }),
                loss: path::loss(&self.connections),
            }),
            window: window::window(looks),
            looks: looks.clone(),
        }
    }
}
