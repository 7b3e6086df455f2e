//! What of cells acts on one transport alone.

use thiserror::Error;

use crate::{Arm, Cell, Metric, Parameter, QuicIn, StudyFolder, TransportName};

/// Something of a cell acts on no arm, as none of them has its transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "{parameter} is of {} alone, and no arm has transport={transport}: {}, or leave {parameter} out",
    transport.protocol(),
    hint(*transport)
)]
pub struct NobodyHas {
    /// By its name in studies.
    pub parameter: &'static str,
    /// What an arm would need.
    pub transport: TransportName,
}

fn hint(transport: TransportName) -> &'static str {
    match transport {
        TransportName::Tcp => "add one without transport=quic",
        TransportName::Quic => "add one with it",
    }
}

/// Whether each parameter of these cells acts on some of these arms.
///
/// # Errors
///
/// The first that acts on none, with the transport that an arm would need for it.
pub fn check_transports(arms: &[Arm], cells: &[Cell]) -> Result<(), NobodyHas> {
    let acts_on_some =
        |transport| arms.is_empty() || arms.iter().any(|arm| arm.transport == transport);
    for parameter in Parameter::ALL {
        let Some(transport) = parameter.transport() else {
            continue;
        };
        let is_usual = |cell: &Cell| parameter.is_usual(cell);
        if !acts_on_some(transport) && !cells.iter().all(is_usual) {
            let parameter = parameter.name();
            return Err(NobodyHas {
                parameter,
                transport,
            });
        }
    }
    Ok(())
}

impl Cell {
    /// The cell of an arm that is measured alone: what acts on another transport alone is as it
    /// is without saying.
    #[must_use]
    pub fn of_transport(&self, transport: TransportName) -> Cell {
        let mut cell = self.clone();
        for parameter in Parameter::ALL {
            let is_of_another = parameter.transport().is_some_and(|own| own != transport);
            if is_of_another && !parameter.is_usual(self) {
                let usual = parameter.of(&Cell::of(self.preset));
                // It takes what it has written.
                let _ = parameter.set(&mut cell, &usual, &StudyFolder::HERE);
            }
        }
        cell
    }
}

/// Whether some of these arms can be carried where arms over QUIC are said to be.
///
/// # Errors
///
/// That there are none over QUIC, where they are not in their usual place.
pub fn check_place<'a>(
    place: QuicIn,
    arms: impl IntoIterator<Item = &'a Arm>,
) -> Result<(), NobodyHas> {
    let transport = TransportName::Quic;
    let is_of_some = || arms.into_iter().any(|arm| arm.transport == transport);
    if place == QuicIn::default() || is_of_some() {
        return Ok(());
    }
    Err(NobodyHas {
        parameter: "quic_in",
        transport,
    })
}

/// A time that none of these arms has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "there is no {0} over QUIC, and all arms have transport=quic: add one without it, or ask for the handshake"
)]
pub struct NoSuchTime(Metric);

/// Whether some of these arms have a time.
///
/// # Errors
///
/// That all are over QUIC, which has no handshake before TLS's.
pub fn check_metric<'a>(
    metric: Metric,
    arms: impl IntoIterator<Item = &'a Arm>,
) -> Result<(), NoSuchTime> {
    let mut arms = arms.into_iter().peekable();
    let is_any = arms.peek().is_some();
    let is_quic = |arm: &Arm| arm.transport == TransportName::Quic;
    if metric.is_of_tcp() && is_any && arms.all(is_quic) {
        return Err(NoSuchTime(metric));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
