//! What would make a handshake smaller, and what that buys.

use lastbyte_exchange::{Exchange, HandshakeFlight};
use lastbyte_sizes::{ChainSpec, KeyAlgorithm, Message, RootDelivery, framing};

use super::flights;
use super::wire::{self, OwnChain, Sizes};
use lastbyte_study::{Arm, ArmChain, Cell, Delivery};

/// One thing less.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// What is cut, in the words of an arm.
    pub what: String,
    /// Bytes less of the Certificate message.
    pub certificate: usize,
    /// Bytes less of the server's messages on the wire.
    pub server_flight: usize,
    /// The server's flights that are left, for each of the windows.
    pub flights: Vec<usize>,
}

/// All that make a handshake smaller, the smallest cut first.
pub(super) fn cuts(arm: &Arm, chain: Sizes<'_>, own: &Exchange, probes: &[Cell]) -> Vec<Cut> {
    let spec = match chain {
        Sizes::Made(spec) => spec,
        Sizes::Own(chain) if arm.delivery == Delivery::Full => {
            return fewer(arm, chain, own, probes);
        }
        // What comes otherwise is no list that could be shorter.
        Sizes::Own(_) => return Vec::new(),
    };
    let mut cuts = Vec::new();
    for (what, smaller) in smaller(spec) {
        let smaller = Arm {
            chain: ArmChain::Made(padded_alike(spec, smaller)),
            ..arm.clone()
        };
        // What is delivered apart is no longer in it.
        if smaller.delivery.check_arm(&smaller).is_err() {
            continue;
        }
        // What arithmetic does not know of is no advice either.
        let Ok(left) = wire::wire(&smaller) else {
            continue;
        };
        let less = |of: fn(&Exchange) -> u32| of(own).saturating_sub(of(&left)) as usize;
        let cut = Cut {
            what,
            certificate: less(|wire| wire.bytes(Message::Certificate)),
            server_flight: less(|wire| wire.carried(HandshakeFlight::Server)),
            flights: (probes.iter())
                .map(|cell| flights(arm, &left, cell))
                .collect(),
        };
        if cut.server_flight > 0 {
            cuts.push(cut);
        }
    }
    cuts.sort_by_key(|cut| cut.server_flight);
    cuts
}

/// The first certificates of a chain alone: clients may have the others.
fn fewer(arm: &Arm, chain: &OwnChain, own: &Exchange, probes: &[Cell]) -> Vec<Cut> {
    let verify = own.bytes(Message::CertificateVerify) as usize;
    let certificate = chain.certificate_bytes();
    let fewer = (1..chain.certificates.len()).rev();
    let cuts = fewer.map(|count| {
        let kept = chain.certificates.iter().take(count);
        let kept = framing::certificate_message(kept.copied());
        let left = wire::with(own, kept, verify);
        Cut {
            what: match chain.certificates.len() {
                all if all == count + 1 => format!("without certificate {all}"),
                all => format!("without certificates {} to {all}", count + 1),
            },
            certificate: certificate - kept,
            server_flight: (own.carried(HandshakeFlight::Server)
                - left.carried(HandshakeFlight::Server)) as usize,
            flights: (probes.iter())
                .map(|cell| flights(arm, &left, cell))
                .collect(),
        }
    });
    cuts.collect()
}

/// With as much padding as `spec` has.
fn padded_alike(spec: &ChainSpec, smaller: ChainSpec) -> ChainSpec {
    let padding = wire::certificate_bytes(spec) - spec.unpadded_bytes();
    let unpadded = smaller.unpadded_bytes();
    ChainSpec {
        certificate_bytes: spec.certificate_bytes.map(|_| unpadded + padding),
        ..smaller
    }
}

fn smaller(spec: &ChainSpec) -> Vec<(String, ChainSpec)> {
    let mut found = Vec::new();
    for intermediates in (0..spec.intermediates).rev() {
        // Without intermediates the root issues, so it has to be of their algorithm.
        if intermediates > 0 || spec.root_key == spec.ca {
            let smaller = ChainSpec {
                intermediates,
                ..spec.clone()
            };
            found.push((format!("intermediates={intermediates}"), smaller));
        }
    }
    if spec.root == RootDelivery::Sent {
        let smaller = ChainSpec {
            root: RootDelivery::Omitted,
            ..spec.clone()
        };
        found.push(("root=omitted".to_owned(), smaller));
    }
    if spec.scts > 0 {
        found.push((
            "scts=0".to_owned(),
            ChainSpec {
                scts: 0,
                ..spec.clone()
            },
        ));
        let sct_algorithm = KeyAlgorithm::EcdsaP256;
        let smaller = ChainSpec {
            sct_algorithm,
            ..spec.clone()
        };
        found.push((format!("sct_algorithm={sct_algorithm}"), smaller));
    }
    for algorithm in wire::algorithms(spec) {
        let others = KeyAlgorithm::ALL.into_iter();
        for other in others.filter(|other| *other != algorithm && kind(*other) == kind(algorithm)) {
            let with = |key| if key == algorithm { other } else { key };
            let smaller = ChainSpec {
                leaf: with(spec.leaf),
                ca: with(spec.ca),
                root_key: with(spec.root_key),
                ..spec.clone()
            };
            found.push((format!("{other} for {algorithm}"), smaller));
        }
    }
    found
}

/// The name without its size: `ml-dsa`, `slh-dsa-sha2`.
fn kind(algorithm: KeyAlgorithm) -> &'static str {
    let name = algorithm.name();
    name.rsplit_once('-').map_or(name, |(kind, _)| kind)
}
