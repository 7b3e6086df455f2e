//! Fewer certificates on the wire.

use super::{About, Asks, Kind, Lever, Unpulled, with};
use lastbyte_study::ArmChain;

pub(super) const LEVER: Lever = Lever {
    name: "no intermediate",
    doc: "no intermediate in the chain, where clients have its issuer for a root",
    about: About::Certificates,
    kind: Kind::Own {
        pull: |setting, _| match &setting.arm.chain {
            ArmChain::Pem(_) => Err(Unpulled::OwnChain),
            ArmChain::Made(spec) if spec.certificate_bytes.is_some() => Err(Unpulled::Sized),
            ArmChain::Made(spec) if spec.intermediates == 0 => Err(Unpulled::NoIntermediate),
            ArmChain::Made(_) => with(setting, "intermediates", "0"),
        },
        words: |_, _| "no intermediate, to clients that have it".to_owned(),
        asks: Asks::Clients,
    },
};
