//! Whether connections did what their arm says.

use std::slice;

use lastbyte_pki::{ChainSpec, KeyAlgorithm, RootDelivery};
use lastbyte_tls::names;

use super::{Outcome, Resumption, Row, Sample, Validity};
use crate::study::{Arm, ArmChain};

impl Sample {
    /// Whether the sample may be trusted: the engine kept out of its way, and its connections did
    /// what `arm` says.
    pub fn validity(&self, arm: &Arm) -> Validity {
        match (&self.engine.validity, check(arm, &self.rows)) {
            (Validity::Valid, Ok(())) => Validity::Valid,
            (Validity::Valid, Err(reason)) => Validity::Invalid(reason),
            (Validity::Invalid(reason), Ok(())) => Validity::Invalid(reason.clone()),
            (Validity::Invalid(engine), Err(check)) => {
                Validity::Invalid(format!("{check}; {engine}"))
            }
        }
    }
}

/// Checks that every completed connection negotiated what `arm` says: its group, a signature of
/// its end-entity's key, its certificates, no resumption.
///
/// # Errors
///
/// One line for the first connection that did not.
pub fn check(arm: &Arm, rows: &[Row]) -> Result<(), String> {
    rows.iter()
        .filter(|row| row.outcome == Outcome::Completed)
        .try_for_each(|row| {
            check_row(arm, row).map_err(|what| format!("connection {} {what}", row.index))
        })
}

fn check_row(arm: &Arm, row: &Row) -> Result<(), String> {
    let wire = &row.wire;
    if wire.resumption == Resumption::Resumed {
        return Err("resumed an earlier session, which the arm does not ask for".into());
    }
    if wire.group != Some(arm.group.code_point()) {
        let negotiated = wire.group.map_or("no group".into(), group_name);
        return Err(format!("negotiated {negotiated}, not {}", arm.group));
    }
    match &arm.chain {
        ArmChain::Made(spec) => check_chain(spec, row),
        ArmChain::Pem(_) => Ok(()),
    }
}

fn check_chain(spec: &ChainSpec, row: &Row) -> Result<(), String> {
    let wire = &row.wire;
    if !wire
        .signature
        .is_some_and(|signature| signature_schemes(spec.leaf).contains(&signature))
    {
        let signature = wire.signature.map_or("nothing".into(), signature_name);
        return Err(format!(
            "was signed with {signature}, which is not of a key {}",
            spec.leaf
        ));
    }
    let root = match spec.root {
        RootDelivery::Omitted => 0,
        RootDelivery::Sent => 1,
    };
    let certificates = 1 + u32::from(spec.intermediates) + root;
    if wire.certificates != certificates {
        return Err(format!(
            "got {} certificates, not {certificates}",
            wire.certificates
        ));
    }
    match spec.certificate_bytes {
        Some(bytes) if usize::try_from(wire.certificate_bytes) != Ok(bytes) => Err(format!(
            "got a Certificate message of {} bytes, not {bytes}",
            wire.certificate_bytes
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

/// The signature schemes (IANA code points) with which a key can sign in TLS 1.3.
fn signature_schemes(key: KeyAlgorithm) -> &'static [u16] {
    match key {
        KeyAlgorithm::EcdsaP256 => &[0x0403],
        KeyAlgorithm::EcdsaP384 => &[0x0503],
        KeyAlgorithm::Rsa2048 | KeyAlgorithm::Rsa3072 | KeyAlgorithm::Rsa4096 => {
            &[0x0804, 0x0805, 0x0806]
        }
        KeyAlgorithm::MlDsa44 => &[0x0904],
        KeyAlgorithm::MlDsa65 => &[0x0905],
        KeyAlgorithm::MlDsa87 => &[0x0906],
        KeyAlgorithm::SlhDsa(_) | KeyAlgorithm::FnDsa512 | KeyAlgorithm::FnDsa1024 => key
            .provided()
            .map_or(&[], |signature| slice::from_ref(&signature.code_point)),
    }
}
