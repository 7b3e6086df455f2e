//! The connections of settings by arithmetic alone: over each one's own link, at its best. It takes no kernel and no second,
//! and it is what a measurement is held against.

use std::collections::HashMap;
use std::time::Duration;

use lastbyte_exchange::Exchange;
use lastbyte_flights::Compute;
use lastbyte_link::Seed;
use lastbyte_sizes::Resumption;

use super::{Lever, Measured, Plan, Setting, Tale};
use crate::{Unknown, suppositions, window_that_saves_of, without_certificates};
use lastbyte_results::{Metric, Percentile, expected};
use lastbyte_study::row::{Dns, Lateness, Measurement, Outcome, Row, Times, TransportStats};
use lastbyte_study::{Arm, Cell};

/// What an arm puts on the wire in a full handshake.
pub type OnWire<'a> = &'a dyn Fn(&Arm) -> Result<Exchange, Unknown>;

/// What arithmetic knows of a plan.
#[derive(Clone, Debug)]
pub struct Arithmetic {
    /// As it is today.
    pub today: Calculated,
    /// With the chain that is planned.
    pub planned: Calculated,
    /// What is planned, with each lever that arithmetic knows, whether a stack of this build has it or not.
    pub levers: Vec<(&'static Lever, Measured)>,
    /// What is planned, if something about the chain were otherwise, as in "if …".
    pub supposed: Vec<(String, Measured)>,
}

impl Arithmetic {
    /// All that arithmetic knows.
    ///
    /// # Errors
    ///
    /// [`Unknown`] where it does not know what one of the two chains puts on the wire.
    pub fn new(plan: &Plan, connections: u32, on_wire: OnWire<'_>) -> Result<Arithmetic, Unknown> {
        let first = Arithmetic::first(plan, connections, on_wire)?;
        Ok(first.with_levers(plan, connections, on_wire))
    }

    /// Who waits, and what would turn that, without what the levers win back: a third of the work.
    ///
    /// # Errors
    ///
    /// [`Unknown`] where it does not know what one of the two chains puts on the wire.
    pub fn first(
        plan: &Plan,
        connections: u32,
        on_wire: OnWire<'_>,
    ) -> Result<Arithmetic, Unknown> {
        let of = |setting: &Setting| calculated(setting, connections, on_wire);
        let cells = [plan.planned.cell.clone()];
        let Setting { arm, cell, .. } = &plan.planned;
        let window = on_wire(arm).ok();
        let window = window.and_then(|wire| window_that_saves_of(arm, &wire, cell));
        let window = window.and_then(|window| {
            let mut setting = plan.planned.clone();
            setting.cell.initcwnd = window.at_once;
            Some((window.supposed(arm.transport), of(&setting).ok()?.measured))
        });
        let supposed = suppositions(&plan.planned.arm, &cells).into_iter();
        let supposed = supposed.filter_map(|supposition| {
            let setting = Setting {
                arm: supposition.arm,
                ..plan.planned.clone()
            };
            Some((supposition.what, of(&setting).ok()?.measured))
        });
        Ok(Arithmetic {
            today: of(&plan.today)?,
            planned: of(&plan.planned)?,
            levers: Vec::new(),
            supposed: window.into_iter().chain(supposed).collect(),
        })
    }

    /// The same with what each lever wins back, as far as arithmetic knows it.
    #[must_use]
    pub fn with_levers(self, plan: &Plan, connections: u32, on_wire: OnWire<'_>) -> Arithmetic {
        let levers = Lever::all().iter().filter_map(|lever| {
            let setting = lever.supposed(&plan.planned, &plan.amounts).ok()?;
            let calculated = calculated(&setting, connections, on_wire).ok()?;
            Some((lever, calculated.measured))
        });
        Arithmetic {
            levers: levers.collect(),
            ..self
        }
    }

    /// What it comes to, without a measurement.
    pub fn tale(&self, metric: Metric, percentiles: &[Percentile], seed: Seed) -> Option<Tale> {
        let levers: Vec<_> = self
            .levers
            .iter()
            .map(|(lever, measured)| (*lever, measured))
            .collect();
        let both = [&self.today.measured, &self.planned.measured];
        let mut tale = Tale::of(metric, percentiles, seed, both, &levers)?;
        tale.add_arithmetic(self, percentiles, seed, both);
        Some(tale)
    }
}

/// The connections of a setting, and in how many flights the server sends the handshake of each.
#[derive(Clone, Debug)]
pub struct Calculated {
    /// As if they were measured.
    pub measured: Measured,
    /// Flights, by index.
    pub flights: Vec<usize>,
}

/// The connections of a setting. One that resumes has a handshake without certificates.
///
/// # Errors
///
/// [`Unknown`] where arithmetic does not know what the setting's arm puts on the wire.
pub fn calculated(
    setting: &Setting,
    connections: u32,
    on_wire: OnWire<'_>,
) -> Result<Calculated, Unknown> {
    let full = on_wire(&setting.arm.beginning(Resumption::Full))?;
    let resumed = without_certificates(&full);
    let mut known: HashMap<Vec<String>, (Times, usize)> = HashMap::new();
    let rows = (0..connections).map(|index| {
        let draw = setting.cell.draw(index).unwrap_or_default();
        let session = setting.arm.session_of(&setting.cell, &draw, index);
        let wire = match session {
            Resumption::Full => &full,
            Resumption::Ticket | Resumption::EarlyData => &resumed,
        };
        let values = draw.values.iter();
        let mut key: Vec<String> = values
            .map(|(parameter, value)| format!("{}={value}", parameter.name()))
            .collect();
        key.push(session.name().to_owned());
        let (times, flights) = known.entry(key).or_insert_with(|| {
            let over = over(&setting.cell.with(&draw));
            let walked = expected(wire, &over, setting.arm.record_size, Compute::default());
            let times = Times {
                connect: walked.connect,
                handshake: Some(walked.handshake),
                server_handshake: None,
                ttfb: walked.ttfb,
                ttlb: Some(walked.ttlb),
            };
            (times, walked.handshake_flights())
        });
        (row(index, *times, wire.clone()), *flights)
    });
    let (rows, flights) = rows.unzip();
    Ok(Calculated {
        measured: Measured {
            rows,
            setting: setting.clone(),
        },
        flights,
    })
}

/// A link at its best.
fn over(cell: &Cell) -> Cell {
    Cell {
        link: cell.link.without_luck(),
        ..cell.clone()
    }
}

fn row(index: u32, times: Times, wire: Exchange) -> Row {
    Row {
        index,
        block: 0,
        outcome: Outcome::Completed,
        times,
        exchange: wire,
        dns: Dns::default(),
        measurement: Measurement::Transfer,
        transport: TransportStats::default(),
        lateness: Lateness {
            link: Duration::ZERO,
            endpoint: Duration::ZERO,
        },
    }
}
