//! Whether connections did what their arm says.

use lastbyte_sizes::{ChainSpec, Message, Resumption as Asked, names};

use super::{ChainSignal, Dns, EarlyData, Outcome, Resumption, Row, Sample, Validity, Wire};
use crate::study::{Arm, ArmChain, Cache, Cell, Certificates, Experiment};

impl Sample {
    /// Whether the sample may be trusted: the engine kept out of its way, and its connections did
    /// what its arm in the `experiment` says.
    pub fn validity(&self, experiment: &Experiment) -> Validity {
        let (Some(arm), Some(cell)) = (
            experiment.arms.get(self.arm),
            experiment.cells.get(self.cell),
        ) else {
            return Validity::Invalid("it is of no arm or no cell of its experiment".to_owned());
        };
        match (&self.engine.validity, check(arm, cell, &self.rows)) {
            (Validity::Valid, Ok(())) => Validity::Valid,
            (Validity::Valid, Err(reason)) => Validity::Invalid(reason),
            (Validity::Invalid(reason), Ok(())) => Validity::Invalid(reason.clone()),
            (Validity::Invalid(engine), Err(check)) => {
                Validity::Invalid(format!("{check}; {engine}"))
            }
        }
    }
}

/// Checks that every completed connection in `cell` did what `arm` says: its group, with a HelloRetryRequest if
/// the client guessed another one; its resumption and early data; in a full handshake, the chains
/// of both sides and signatures of their keys.
///
/// # Errors
///
/// One line for the first connection that did not.
pub fn check(arm: &Arm, cell: &Cell, rows: &[Row]) -> Result<(), String> {
    rows.iter()
        .filter(|row| row.outcome == Outcome::Completed)
        .try_for_each(|row| {
            let arm = arm.of_connection(cell, row.index);
            let checked = match cell.page {
                Some(_) => check_page_wire(&arm, cell.cache, &row.wire),
                None => check_row(&arm, row),
            };
            checked.map_err(|what| format!("connection {} {what}", row.index))
        })
}

fn check_row(arm: &Arm, row: &Row) -> Result<(), String> {
    check_wire(arm, &row.wire, &row.dns)?;
    match arm.resumption {
        Asked::EarlyData => check_early_data(row),
        Asked::Full | Asked::Ticket => Ok(()),
    }
}

/// What [`check`] asks of each handshake of a page load, of whose server the browser had so much. It guesses groups of its own, and
/// resumes whatever it has a session of.
///
/// # Errors
///
/// What it did not do.
pub fn check_page_wire(arm: &Arm, cache: Cache, wire: &Wire) -> Result<(), String> {
    let resumption = match (cache, wire.resumption) {
        (Cache::Warm, Resumption::Resumed) => Asked::Ticket,
        (Cache::Warm, Resumption::Full) | (Cache::Cold, _) => Asked::Full,
    };
    let arm = Arm {
        resumption,
        ..arm.of_browser()
    };
    // What it says of anchors that it trusts asks for nothing of ours.
    let wire = Wire {
        signal: ChainSignal::None,
        ..*wire
    };
    check_wire(&arm, &wire, &Dns::default())
}

/// What [`check`] asks of a handshake, whatever data came with it.
pub fn check_wire(arm: &Arm, wire: &Wire, dns: &Dns) -> Result<(), String> {
    check_key_exchange(arm, wire)?;
    let shown = arm.delivery.check_handshake(arm, wire, dns)?;
    match (arm.resumption, wire.resumption) {
        (Asked::Full, Resumption::Full) => check_authentication(arm, wire, shown),
        (Asked::Full, Resumption::Resumed) => {
            Err("resumed an earlier session, which the arm does not ask for".into())
        }
        (Asked::Ticket | Asked::EarlyData, Resumption::Full) => {
            Err("did not resume its session: the server did not accept its ticket".into())
        }
        (Asked::Ticket | Asked::EarlyData, Resumption::Resumed) => Ok(()),
    }
}

fn check_key_exchange(arm: &Arm, wire: &Wire) -> Result<(), String> {
    if wire.group != Some(arm.group.code_point()) {
        let negotiated = wire.group.map_or("no group".into(), group_name);
        return Err(format!("negotiated {negotiated}, not {}", arm.group));
    }
    let is_guessed = arm.key_shares.contains(&arm.group);
    match (is_guessed, wire.bytes(Message::HelloRetryRequest)) {
        (true, 1..) => Err("needed a HelloRetryRequest, which the arm does not ask for".into()),
        (false, 0) => Err(format!(
            "needed no HelloRetryRequest: its client sent a key share for {} after all",
            arm.group
        )),
        _ => Ok(()),
    }
}

/// A connection without a request has no early data.
fn check_early_data(row: &Row) -> Result<(), String> {
    match row.wire.early_data {
        EarlyData::Refused => Err("sent early data that the server refused".into()),
        EarlyData::None if row.times.ttlb != row.times.handshake => {
            Err("sent no early data: its session did not allow it".into())
        }
        EarlyData::Accepted | EarlyData::None => Ok(()),
    }
}

fn check_authentication(arm: &Arm, wire: &Wire, shown: Certificates) -> Result<(), String> {
    match (&arm.chain, shown) {
        (ArmChain::Made(spec), Certificates::Rest) => check_signature(spec, wire.signature)?,
        (ArmChain::Made(spec), Certificates::Whole) => check_chain(spec, wire)?,
        (ArmChain::Pem(_), _) => {}
    }
    match (&arm.client_chain, wire.client_certificate_bytes()) {
        (None, 0) => Ok(()),
        (None, _) => Err("sent a client's chain, which the arm does not ask for".into()),
        (Some(_), 0) => Err("sent no client's chain".into()),
        (Some(ArmChain::Made(spec)), bytes) => check_signature(spec, wire.client_signature)
            .and_then(|()| check_bytes(spec, bytes))
            .map_err(|what| format!("{what}, of the client")),
        (Some(ArmChain::Pem(_)), _) => Ok(()),
    }
}

fn check_signature(spec: &ChainSpec, signature: Option<u16>) -> Result<(), String> {
    match signature {
        Some(scheme) if spec.leaf.signature_schemes().contains(&scheme) => Ok(()),
        _ => Err(format!(
            "was signed with {}, which is not of a key {}",
            signature.map_or("nothing".into(), signature_name),
            spec.leaf
        )),
    }
}

fn check_chain(spec: &ChainSpec, wire: &Wire) -> Result<(), String> {
    check_signature(spec, wire.signature)?;
    let certificates = spec.certificates();
    if usize::try_from(wire.certificates) != Ok(certificates) {
        return Err(format!(
            "got {} certificates, not {certificates}",
            wire.certificates
        ));
    }
    check_bytes(spec, wire.certificate_bytes())
}

fn check_bytes(spec: &ChainSpec, certificate_bytes: u32) -> Result<(), String> {
    match spec.certificate_bytes {
        Some(bytes) if usize::try_from(certificate_bytes) != Ok(bytes) => Err(format!(
            "got a Certificate message of {certificate_bytes} bytes, not {bytes}"
        )),
        _ => Ok(()),
    }
}

/// IANA's name of a key-exchange group, else its code point.
pub(crate) fn group_name(code_point: u16) -> String {
    names::group(code_point).map_or_else(|| format!("{code_point:#06x}"), str::to_owned)
}

/// IANA's name of a signature scheme, else its code point.
pub(crate) fn signature_name(code_point: u16) -> String {
    names::signature_scheme(code_point).map_or_else(|| format!("{code_point:#06x}"), str::to_owned)
}

/// IANA's name of a cipher suite, else its code point.
pub(crate) fn cipher_suite_name(code_point: u16) -> String {
    names::cipher_suite(code_point).map_or_else(|| format!("{code_point:#06x}"), str::to_owned)
}
