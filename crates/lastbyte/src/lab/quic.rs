//! QUIC's connections: both ends without a socket or a clock, which the model moves in memory and every other engine
//! over sockets of UDP.

mod ledger;
mod pair;
#[cfg(test)]
mod tests;

pub(crate) use self::ledger::Ledger;
pub(crate) use self::pair::{QuicPair, QuicSettings, Transmit, UnderWay, never_began};

use crate::study::{Arm, Cell, Study, TransportName};

/// Whether all arms of a study over QUIC can be had in its cells, whatever carries them.
///
/// # Errors
///
/// What can't, with the hint.
pub(crate) fn check(study: &Study) -> Result<(), String> {
    for measure in &study.measures {
        let experiment = &measure.experiment;
        let quic = |arm: &&Arm| arm.transport == TransportName::Quic;
        for arm in experiment.arms.iter().filter(quic) {
            for cell in &experiment.cells {
                check_cell(arm, cell).map_err(|problem| {
                    format!("measure {:?}, arm {:?}: {problem}", measure.id, arm.name)
                })?;
            }
        }
    }
    Ok(())
}

fn check_cell(arm: &Arm, cell: &Cell) -> Result<(), String> {
    cell.check_quic().map_err(|problem| problem.to_string())?;
    if arm.possible_sessions(cell).len() > 1 {
        return Err(
            "it begins in several ways, which transport=quic does not have yet: give it resume=no, resume=ticket or resume=0rtt"
                .to_owned(),
        );
    }
    Ok(())
}
