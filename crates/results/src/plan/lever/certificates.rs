//! Fewer certificates on the wire.

use super::{About, Kind, Lever, with};
use crate::study::ArmChain;

pub(super) const LEVER: Lever = Lever {
    name: "no intermediate",
    doc: "no intermediate in the chain, where clients have its issuer for a root",
    about: About::Certificates,
    kind: Kind::Own {
        pull: |setting, _| match &setting.arm.chain {
            ArmChain::Pem(_) => {
                Err("the chain is the user's own: give one without intermediates".to_owned())
            }
            ArmChain::Made(spec) if spec.certificate_bytes.is_some() => Err(
                "the chain has a size, and not certificates: name an algorithm alone".to_owned(),
            ),
            ArmChain::Made(spec) if spec.intermediates == 0 => {
                Err("there is no intermediate".to_owned())
            }
            ArmChain::Made(_) => with(setting, "intermediates", "0"),
        },
        words: |_| "no intermediate, to clients that have it".to_owned(),
    },
};
