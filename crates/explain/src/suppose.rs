//! What an answer would be if the chain's surroundings were others: what logs sign with, how many intermediates are sent,
//! whether Merkle Tree Certificates take the place of both. Nobody who asks about a chain says so, and each can turn the answer.

use lastbyte_exchange::{Exchange, HandshakeFlight};
use lastbyte_sizes::{ChainSpec, Message};

use super::{OwnChain, flights, probe, wire};
use lastbyte_study::{Arm, ArmChain, ArmProblem, Cell};

/// A chain in other surroundings.
#[derive(Clone, Debug)]
pub struct Supposition {
    /// What is supposed, as in "if …".
    pub what: String,
    /// The arm that has it.
    pub arm: Arm,
    /// Bytes of its Certificate message.
    pub certificate: usize,
    /// Bytes of the server's messages on the wire.
    pub server_flight: usize,
    /// The server's flights, for each of the cells.
    pub flights: Vec<usize>,
}

/// What could be otherwise around an arm's chain, and what each comes to with the windows and hosts of these cells. None where
/// the chain is a file's, where arithmetic does not go, or where no post-quantum signature is in it.
pub fn suppositions(arm: &Arm, cells: &[Cell]) -> Vec<Supposition> {
    let ArmChain::Made(spec) = &arm.chain else {
        return Vec::new();
    };
    if !wire::algorithms(spec)
        .iter()
        .any(|key| key.is_post_quantum())
        || arm.delivery.is_alone()
    {
        return Vec::new();
    }
    let others = surroundings(arm, spec).into_iter();
    let named = others.filter_map(|(what, other)| {
        let supposed = supposed(what, &other.ok()?, cells)?;
        Some(Supposition {
            arm: Arm {
                name: arm.name.clone(),
                ..supposed.arm
            },
            ..supposed
        })
    });
    named.collect()
}

/// What another arm in the place of one comes to; none where arithmetic does not know what it puts on the wire.
pub fn supposed(what: String, other: &Arm, cells: &[Cell]) -> Option<Supposition> {
    let on_wire = wire::wire(other).ok()?;
    Some(comes_to(what, other, &on_wire, cells))
}

/// What a user's own chain comes to where it is sent by an arm.
pub fn supposed_own(
    what: String,
    arm: &Arm,
    own: &OwnChain,
    cells: &[Cell],
) -> Option<Supposition> {
    let on_wire = wire::wire_of_own(arm, own).ok()?;
    Some(comes_to(what, arm, &on_wire, cells))
}

fn comes_to(what: String, arm: &Arm, on_wire: &Exchange, cells: &[Cell]) -> Supposition {
    Supposition {
        what,
        certificate: on_wire.bytes(Message::Certificate) as usize,
        server_flight: on_wire.carried(HandshakeFlight::Server) as usize,
        flights: flights_in(arm, on_wire, cells),
        arm: arm.clone(),
    }
}

/// The server's flights of an arm, for each of the cells; none where arithmetic does not know what it puts on the wire.
pub fn handshake_flights(arm: &Arm, cells: &[Cell]) -> Option<Vec<usize>> {
    let on_wire = wire::wire(arm).ok()?;
    Some(flights_in(arm, &on_wire, cells))
}

fn flights_in(arm: &Arm, on_wire: &Exchange, cells: &[Cell]) -> Vec<usize> {
    let cells = cells.iter();
    cells
        .map(|cell| flights(arm, on_wire, &probe(cell)))
        .collect()
}

type Other = (String, Result<Arm, ArmProblem>);

/// Each thing that could be otherwise, with the arm that has it.
fn surroundings(arm: &Arm, spec: &ChainSpec) -> Vec<Other> {
    let mut others = Vec::new();
    let is_sized = spec.certificate_bytes.is_some();
    if spec.scts > 0 && !spec.sct_algorithm.is_post_quantum() && !is_sized {
        others.push((
            format!("logs sign with {} too", spec.ca),
            arm.with("sct_algorithm", spec.ca.name()),
        ));
    }
    if spec.scts > 0 && spec.sct_algorithm.is_post_quantum() && !is_sized {
        others.push((
            "logs sign with ecdsa-p256, as today".to_owned(),
            arm.with("sct_algorithm", "ecdsa-p256"),
        ));
    }
    // What a chain of a public site has besides: two sites of three send two, one of four one.
    let intermediates = match spec.intermediates {
        1 => Some(("two intermediates are sent", "2")),
        2 => Some(("one intermediate is sent", "1")),
        _ => None,
    };
    if let Some((what, number)) = intermediates.filter(|_| spec.scts > 0 && !is_sized) {
        others.push((what.to_owned(), arm.with("intermediates", number)));
    }
    if spec.scts > 0 && !is_sized {
        others.push((
            "a Merkle Tree Certificate relative to a landmark is sent".to_owned(),
            arm.as_merkle_tree_certificate("mtc-landmark"),
        ));
        others.push((
            "a standalone Merkle Tree Certificate is sent".to_owned(),
            arm.as_merkle_tree_certificate("mtc-standalone"),
        ));
    }
    others
}
