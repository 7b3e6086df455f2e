//! Whether connections did what their arm says.

use lastbyte_exchange::{AddressValidation, Negotiated};
use lastbyte_sizes::{ChainSpec, Message, Resumption as Asked, names};
use thiserror::Error;

use super::{ChainSignal, Dns, EarlyData, Exchange, Outcome, Resumption, Row, Sample, Validity};
use lastbyte_study::{Arm, ArmChain, Cache, Cell, Certificates, Experiment, Mismatch};

/// A connection did not do what its arm says.
#[derive(Debug, Error)]
#[error("connection {index} {what}")]
pub struct Unlike {
    /// Which one.
    pub index: u32,
    /// What it did.
    pub what: Mismatch,
}

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
            (Validity::Valid, Err(reason)) => Validity::Invalid(reason.to_string()),
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
pub fn check(arm: &Arm, cell: &Cell, rows: &[Row]) -> Result<(), Unlike> {
    rows.iter()
        .filter(|row| row.outcome == Outcome::Completed)
        .try_for_each(|row| {
            let arm = arm.of_connection(cell, row.index);
            let checked = match cell.page {
                Some(_) => check_page_wire(&arm, cell.cache, &row.exchange),
                None => check_row(&arm, row),
            };
            checked.map_err(|what| Unlike {
                index: row.index,
                what,
            })
        })
}

fn check_row(arm: &Arm, row: &Row) -> Result<(), Mismatch> {
    check_handshake(arm, &row.exchange, &row.dns)?;
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
pub fn check_page_wire(arm: &Arm, cache: Cache, wire: &Exchange) -> Result<(), Mismatch> {
    let resumption = match (cache, wire.negotiated.resumption) {
        (Cache::Warm, Resumption::Resumed) => Asked::Ticket,
        (Cache::Warm, Resumption::Full) | (Cache::Cold, _) => Asked::Full,
    };
    // It shows a token where it has one of that server, from another connection of this page, too.
    let token = wire
        .transport
        .quic()
        .and_then(|quic| quic.address_validation);
    let arm = Arm {
        resumption,
        address_validation: token.filter(|token| *token == AddressValidation::Token),
        ..arm.of_browser()
    };
    // What it says of anchors that it trusts asks for nothing of ours.
    let wire = Exchange {
        negotiated: Negotiated {
            signal: ChainSignal::None,
            ..wire.negotiated
        },
        ..wire.clone()
    };
    check_handshake(&arm, &wire, &Dns::default())
}

/// What [`check`] asks of a handshake, whatever data came with it.
///
/// # Errors
///
/// What it did not do, as a line has it.
pub fn check_wire(arm: &Arm, wire: &Exchange, dns: &Dns) -> Result<(), String> {
    check_handshake(arm, wire, dns).map_err(|what| what.to_string())
}

fn check_handshake(arm: &Arm, wire: &Exchange, dns: &Dns) -> Result<(), Mismatch> {
    check_key_exchange(arm, wire)?;
    check_address(arm, wire)?;
    let shown = arm.delivery.check_handshake(arm, wire, dns)?;
    match (arm.resumption, wire.negotiated.resumption) {
        (Asked::Full, Resumption::Full) => check_authentication(arm, wire, shown),
        (Asked::Full, Resumption::Resumed) => Err(Mismatch::Unasked("resumed an earlier session")),
        (Asked::Ticket | Asked::EarlyData, Resumption::Full) => Err(Mismatch::NotResumed),
        (Asked::Ticket | Asked::EarlyData, Resumption::Resumed) => Ok(()),
    }
}

fn check_key_exchange(arm: &Arm, wire: &Exchange) -> Result<(), Mismatch> {
    if wire.negotiated.group != Some(arm.group.code_point()) {
        let negotiated = wire.negotiated.group.map_or("no group".into(), group_name);
        return Err(Mismatch::Group {
            negotiated,
            asked: arm.group,
        });
    }
    let is_guessed = arm.key_shares.contains(&arm.group);
    match (is_guessed, wire.bytes(Message::HelloRetryRequest)) {
        (true, 1..) => Err(Mismatch::Unasked("needed a HelloRetryRequest")),
        (false, 0) => Err(Mismatch::NeedlessShare(arm.group)),
        _ => Ok(()),
    }
}

/// How the server knew its client's address.
fn check_address(arm: &Arm, wire: &Exchange) -> Result<(), Mismatch> {
    let Some(quic) = wire.transport.quic() else {
        return Ok(());
    };
    match (arm.address_validation, quic.address_validation) {
        (asked, seen) if asked == seen => Ok(()),
        (_, Some(AddressValidation::Retry)) => Err(Mismatch::Unasked("was sent a Retry packet")),
        (_, Some(AddressValidation::Token)) => Err(Mismatch::Unasked("had a token")),
        (_, None) => Err(Mismatch::NoAddressValidation),
    }
}

/// A connection without a request has no early data.
fn check_early_data(row: &Row) -> Result<(), Mismatch> {
    match row.exchange.negotiated.early_data {
        EarlyData::Refused => Err(Mismatch::EarlyDataRefused),
        EarlyData::None if row.times.ttlb != row.times.handshake => Err(Mismatch::NoEarlyData),
        EarlyData::Accepted | EarlyData::None => Ok(()),
    }
}

fn check_authentication(arm: &Arm, wire: &Exchange, shown: Certificates) -> Result<(), Mismatch> {
    match (&arm.chain, shown) {
        (ArmChain::Made(spec), Certificates::Rest) => {
            check_signature(spec, wire.negotiated.signature)?
        }
        (ArmChain::Made(spec), Certificates::Whole) => check_chain(spec, wire)?,
        (ArmChain::Pem(_), _) => {}
    }
    match (&arm.client_chain, wire.client_certificate_bytes()) {
        (None, 0) => Ok(()),
        (None, _) => Err(Mismatch::Unasked("sent a client's chain")),
        (Some(_), 0) => Err(Mismatch::NoClientChain),
        (Some(ArmChain::Made(spec)), bytes) => {
            check_signature(spec, wire.negotiated.client_signature)
                .and_then(|()| check_bytes(spec, bytes))
                .map_err(|what| Mismatch::OfClient(Box::new(what)))
        }
        (Some(ArmChain::Pem(_)), _) => Ok(()),
    }
}

fn check_signature(spec: &ChainSpec, signature: Option<u16>) -> Result<(), Mismatch> {
    match signature {
        Some(scheme) if spec.leaf.signature_schemes().contains(&scheme) => Ok(()),
        _ => Err(Mismatch::Signature {
            signed: signature.map_or("nothing".into(), signature_name),
            key: spec.leaf,
        }),
    }
}

fn check_chain(spec: &ChainSpec, wire: &Exchange) -> Result<(), Mismatch> {
    check_signature(spec, wire.negotiated.signature)?;
    Mismatch::check_count(wire, spec.certificates())?;
    check_bytes(spec, wire.certificate_bytes())
}

fn check_bytes(spec: &ChainSpec, certificate_bytes: u32) -> Result<(), Mismatch> {
    match spec.certificate_bytes {
        Some(bytes) if usize::try_from(certificate_bytes) != Ok(bytes) => {
            Err(Mismatch::CertificateBytes {
                got: certificate_bytes as usize,
                asked: bytes,
            })
        }
        _ => Ok(()),
    }
}

/// IANA's name of a key-exchange group, else its code point.
pub fn group_name(code_point: u16) -> String {
    names::group(code_point).map_or_else(|| format!("{code_point:#06x}"), str::to_owned)
}

/// IANA's name of a signature scheme, else its code point.
pub fn signature_name(code_point: u16) -> String {
    names::signature_scheme(code_point).map_or_else(|| format!("{code_point:#06x}"), str::to_owned)
}

/// IANA's name of a cipher suite, else its code point.
pub fn cipher_suite_name(code_point: u16) -> String {
    names::cipher_suite(code_point).map_or_else(|| format!("{code_point:#06x}"), str::to_owned)
}
