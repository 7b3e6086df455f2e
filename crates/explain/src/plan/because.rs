//! Why connections wait longer: each that does, for one reason.

use std::collections::BTreeMap;

use lastbyte_link::named;
use lastbyte_sizes::Resumption;

use super::{Measured, Setting};
use lastbyte_results::{Metric, Step};
use lastbyte_study::row::Row;

/// Why a connection waits longer than with the chain of today.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Because {
    /// The server sends its handshake in more flights, and waits for an acknowledgement between them.
    Acknowledgement,
    /// A packet of it was lost, or of the same connection with the chain of today was not.
    Loss,
    /// Its link takes longer to carry more bytes.
    Sending,
}

named!(Because, {
    Acknowledgement => "waits for an acknowledgement",
    Loss => "lost packets",
    Sending => "a slow link",
});

/// Who waits, among the connections of a class or all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// Of which class; all, without one.
    pub class: Option<String>,
    /// Connections that are compared.
    pub connections: u32,
    /// Connections that resume, and need no chain.
    pub resumed: u32,
    /// Connections that wait longer by more than the step, by their reason.
    pub waiting: BTreeMap<Because, u32>,
}

impl Cause {
    fn new(class: Option<String>) -> Cause {
        Cause {
            class,
            connections: 0,
            resumed: 0,
            waiting: BTreeMap::new(),
        }
    }

    /// All that wait.
    pub fn all(&self) -> u32 {
        self.waiting.values().sum()
    }
}

/// Why connections wait longer by more than `step`: all of them, and then each class, the largest first. `flights` are
/// those of the same connections by arithmetic.
pub(super) fn causes(
    metric: Metric,
    step: Step,
    [today, planned]: [&Measured; 2],
    flights: [&[usize]; 2],
) -> Vec<Cause> {
    let mut all = Cause::new(None);
    let mut classes: BTreeMap<String, Cause> = BTreeMap::new();
    let rows = today.rows.iter().zip(&planned.rows);
    let [flights_before, flights_after] = flights;
    let flights = flights_before.iter().zip(flights_after);
    for ((before, after), (flights_before, flights_after)) in rows.zip(flights) {
        let draw = today.setting.cell.draw(before.index).unwrap_or_default();
        let rtt = today.setting.cell.with(&draw).link.rtt();
        let difference = match (metric.of(before), metric.of(after)) {
            (None, None) => continue,
            (Some(before), Some(after)) => after.as_nanos() as f64 - before.as_nanos() as f64,
            // It came to its end with one of the two only.
            (Some(_), None) => f64::INFINITY,
            (None, Some(_)) => f64::NEG_INFINITY,
        };
        let because = step.is_passed(difference, rtt.as_nanos() as f64).then(|| {
            if flights_after > flights_before {
                Because::Acknowledgement
            } else if difference.is_infinite() || [before, after].into_iter().any(has_lost) {
                Because::Loss
            } else {
                Because::Sending
            }
        });
        let Setting { arm, cell, .. } = &planned.setting;
        let session = arm.session_of(cell, &draw, after.index);
        let class = draw.class.map(|class| class.to_string());
        let own = class.map(|class| {
            let new = Cause::new(Some(class.clone()));
            classes.entry(class).or_insert(new)
        });
        for cause in [Some(&mut all), own].into_iter().flatten() {
            cause.connections += 1;
            cause.resumed += u32::from(session != Resumption::Full);
            if let Some(because) = because {
                *cause.waiting.entry(because).or_default() += 1;
            }
        }
    }
    let mut classes: Vec<Cause> = classes.into_values().collect();
    classes.sort_by_key(|cause| std::cmp::Reverse(cause.connections));
    [all].into_iter().chain(classes).collect()
}

/// Whether TCP has sent anything of it again, on either side.
fn has_lost(row: &Row) -> bool {
    let sides = [row.client_tcp(), row.server_tcp()].into_iter().flatten();
    let mut lost = sides.map(|side| side.retransmits + side.lost);
    lost.any(|lost| lost > 0)
}
