//! QUIC's connections: both ends without a socket or a clock, which the model moves in memory and every other engine
//! over sockets of UDP.

mod ledger;
mod pair;
#[cfg(test)]
mod tests;

pub(crate) use self::pair::{QuicPair, QuicSettings, Transmit, UnderWay, never_began};

use crate::study::{Arm, Cell, Gso, Preset, ReceiveBuffer, Study, TransportName, Writes};

/// Headers of IPv4 and of UDP, in bytes.
pub(crate) const HEADERS: usize = 20 + 8;

/// The IP packet of a datagram, in bytes.
pub(crate) fn packet(datagram: u16) -> u16 {
    datagram + HEADERS as u16
}

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
    let not_there = |parameter: &str| {
        Err(format!(
            "{parameter} is TCP's, and transport=quic has none of it: leave it out"
        ))
    };
    if cell.page.is_some() {
        return Err("pages are loaded over TCP alone: leave transport=quic out".to_owned());
    }
    if cell.preset == Preset::Published2024 {
        return Err(format!(
            "the preset {} is of TCP: leave it out",
            cell.preset
        ));
    }
    if cell.gso == Gso::On {
        return not_there("gso");
    }
    if cell.hosts.receive_buffer != ReceiveBuffer::Unset {
        return not_there("receive_buffer");
    }
    if cell.hosts.writes != Writes::WHOLE {
        return not_there("writes");
    }
    let largest = cell.quic.client_datagram.max(cell.quic.server_datagram);
    if cell.hosts.mtu.bytes() < packet(largest) {
        return Err(format!(
            "an mtu of {} holds no QUIC datagram of {largest} bytes: {} does, and 1200 are the least (RFC 9000, 14)",
            cell.hosts.mtu,
            packet(largest)
        ));
    }
    if arm.possible_sessions(cell).len() > 1 {
        return Err(
            "it begins in several ways, which transport=quic does not have yet: give it resume=no or resume=ticket"
                .to_owned(),
        );
    }
    Ok(())
}
