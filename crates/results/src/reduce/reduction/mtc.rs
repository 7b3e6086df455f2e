//! Merkle Tree Certificates.

use super::{Had, Holds, Reduction, Subject, Unavailable, as_it_is, with};
use lastbyte_study::{Arm, ArmChain, Delivery};

pub(super) static LANDMARK: Reduction = Reduction {
    name: "MTC, landmark",
    doc: "one certificate whose proof ends in a landmark that clients have, and no signature but the handshake's \
          (draft-ietf-plants-merkle-tree-certs-07)",
    words: "4.4 million entries a landmark",
    subject: Subject::Chain,
    holds: Some(Holds {
        what: "two hashes for each landmark of each log",
        age: "a landmark's hour: who lacks the newest has all that is older",
        bytes: held,
    }),
    stale: "a standalone certificate in the same handshake, at no round trip",
    had: Had::Experiments,
    support: "experiments of Chrome and Cloudflare; Chrome's phase 2 is announced for the first quarter of 2027 (2026)",
    whole: as_it_is,
    apply: |whole| Ok(whole.as_merkle_tree_certificate("mtc-landmark")?),
    lacking: Some(|whole| with(&(LANDMARK.apply)(whole)?, &[("client", "stale")])),
};

pub(super) static STANDALONE: Reduction = Reduction {
    name: "MTC, standalone",
    doc: "one certificate with a short proof, and the cosignatures of its CA and of a mirror over that \
          (draft-ietf-plants-merkle-tree-certs-07; Chrome's draft policy of August 2026)",
    words: "the CA and a mirror",
    subject: Subject::Chain,
    holds: Some(Holds {
        what: "nothing but the cosigners' keys, as a root",
        age: "a root's",
        bytes: |_| Some(0),
    }),
    stale: "none can be",
    had: Had::Experiments,
    support: "as for landmarks",
    whole: as_it_is,
    apply: |whole| Ok(whole.as_merkle_tree_certificate("mtc-standalone")?),
    lacking: None,
};

pub(super) static PRIVATE: Reduction = Reduction {
    name: "MTC, private",
    doc: "one certificate with a short proof and the cosignature of its CA alone, as inside a company, without landmarks and mirrors \
          (draft-elkins-plants-enterprise-mtc-deployment-01)",
    words: "the CA alone",
    had: Had::Experiments,
    support: "a draft of October 2026; no product is known",
    whole: of_a_company,
    apply: |whole| with(&(STANDALONE.apply)(whole)?, &[("cosigners", "ca")]),
    ..STANDALONE
};

/// Without timestamps, which public sites have.
fn of_a_company(arm: &Arm) -> Result<Arm, Unavailable> {
    match &arm.chain {
        ArmChain::Made(spec) if spec.scts > 0 => Err(Unavailable::Public),
        _ => as_it_is(arm),
    }
}

fn held(arm: &Arm) -> Option<u64> {
    match &arm.delivery {
        Delivery::Mtc(mtc) => Some(mtc.held_bytes()),
        _ => None,
    }
}
