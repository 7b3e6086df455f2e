//! Users of whom some come over TCP and some over QUIC: what each of both, and all together, would wait.

use lastbyte_link::{Probability, Seed, counted};

use super::arithmetic::{Arithmetic, OnWire, calculated};
use super::tale::side;
use super::{Measured, Plan, Setting};
use crate::{Unknown, check_over};
use lastbyte_results::{Metric, Percentile, Row, Waiting, waiting};
use lastbyte_study::{ArmProblem, TransportName};

/// How much longer connections wait as planned than today, by what carries them: all by arithmetic.
///
/// Each connection of the population is over one of both, as planned and today, so all together are these and those.
#[derive(Clone, Debug)]
pub struct Transports {
    /// The share of connections over QUIC.
    pub quic_share: Probability,
    /// All together.
    pub all: Waiting,
    /// Those over each, where there are any.
    pub of_each: Vec<(TransportName, Waiting)>,
}

/// Why the two can't be put beside each other.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unmixed {
    /// One of the chains is over QUIC already.
    #[error("{0} is over QUIC already: leave transport=quic out, and the share has both")]
    IsOverQuic(String),
    /// One can't be over QUIC.
    #[error("{arm} can't be had over QUIC: {problem}")]
    Arm {
        /// As it was written.
        arm: String,
        /// What it has that QUIC has not.
        problem: ArmProblem,
    },
    /// Arithmetic does not know it.
    #[error(transparent)]
    Unknown(#[from] Unknown),
    /// Arithmetic ends at the first byte.
    #[error("arithmetic has no last byte of a response over QUIC: ask for handshake or ttfb")]
    LastByte,
    /// Too few were drawn for the share.
    #[error("{share} of {} are none over QUIC: draw more", counted(*connections, "connection"))]
    TooFew {
        /// The share over QUIC.
        share: Probability,
        /// All that are drawn.
        connections: u32,
    },
}

impl Transports {
    /// What a plan's connections come to, if this share of them is over QUIC. `arithmetic` is that of the plan, over TCP.
    ///
    /// # Errors
    ///
    /// Why there is no answer.
    pub fn new(
        plan: &Plan,
        quic_share: Probability,
        arithmetic: &Arithmetic,
        on_wire: OnWire<'_>,
        (metric, percentiles, seed): (Metric, &[Percentile], Seed),
    ) -> Result<Transports, Unmixed> {
        if metric == Metric::Ttlb {
            return Err(Unmixed::LastByte);
        }
        let over_tcp = [&arithmetic.today.measured, &arithmetic.planned.measured];
        let connections = over_tcp[0].rows.len() as u32;
        let population = plan.today.cell.population.as_ref();
        let transports = population
            .map(|population| population.transports(quic_share, connections))
            .unwrap_or_default();
        if !transports.contains(&TransportName::Quic) {
            return Err(Unmixed::TooFew {
                share: quic_share,
                connections,
            });
        }
        let [today, planned] = [&plan.today, &plan.planned].map(over_quic);
        let today = calculated(&today?, connections, on_wire)?;
        let planned = calculated(&planned?, connections, on_wire)?;
        let over_quic = [&today.measured, &planned.measured];

        let is_over = |transport| {
            let transports = &transports;
            move |row: &&Row| transports.get(row.index as usize) == Some(&transport)
        };
        let of = |transport, both: [&Measured; 2]| {
            both.map(|measured| Measured {
                setting: measured.setting.clone(),
                rows: (measured.rows.iter().filter(is_over(transport)).cloned()).collect(),
            })
        };
        let each = [
            (TransportName::Tcp, of(TransportName::Tcp, over_tcp)),
            (TransportName::Quic, of(TransportName::Quic, over_quic)),
        ];
        let together = [0, 1].map(|at| {
            let mut rows: Vec<Row> = Vec::new();
            let mut setting = plan.today.clone();
            for (_, both) in &each {
                if let Some(measured) = both.get(at) {
                    rows.extend(measured.rows.iter().cloned());
                    setting = measured.setting.clone();
                }
            }
            rows.sort_by_key(|row| row.index);
            Measured { setting, rows }
        });
        let wait = |[today, planned]: &[Measured; 2]| {
            let mut all = waiting(metric, side(today), side(planned), percentiles, seed);
            all.next()
        };
        let of_each = each.iter().filter(|(_, both)| !both[0].rows.is_empty());
        let of_each = of_each.filter_map(|(transport, both)| Some((*transport, wait(both)?)));
        let of_each: Vec<_> = of_each.collect();
        let all = wait(&together).ok_or(Unmixed::TooFew {
            share: quic_share,
            connections,
        })?;
        Ok(Transports {
            quic_share,
            all,
            of_each,
        })
    }
}

/// The setting over QUIC instead of TCP.
fn over_quic(setting: &Setting) -> Result<Setting, Unmixed> {
    if setting.arm.transport == TransportName::Quic {
        return Err(Unmixed::IsOverQuic(setting.arm.label.clone()));
    }
    let arm = setting.arm.over(TransportName::Quic);
    let arm = arm.map_err(|problem| Unmixed::Arm {
        arm: setting.arm.label.clone(),
        problem,
    })?;
    check_over(&arm, &setting.cell)?;
    Ok(Setting {
        arm,
        ..setting.clone()
    })
}
