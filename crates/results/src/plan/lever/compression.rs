//! Compressed certificates.

use lastbyte_sizes::StackName;

use super::{Lever, with};
use crate::study::{ArmChain, Delivery};

pub(super) static LEVER: Lever = Lever {
    name: "compression",
    doc: "certificates compressed with brotli (RFC 8879), by rustls on both sides; keys and signatures do not compress",
    pull: |setting, _| match (&setting.arm.chain, &setting.arm.delivery) {
        (ArmChain::Made(spec), _) if spec.certificate_bytes.is_some() => Err(
            "the chain is padded, and padding says nothing of how real certificates compress"
                .to_owned(),
        ),
        (_, Delivery::Full) => match (setting.arm.client_stack, setting.arm.server_stack) {
            (StackName::Rustls, StackName::Rustls) => with(setting, "delivery", "compressed"),
            // Or the difference would be that of the stacks, too.
            _ => {
                Err("only rustls compresses: give both chains as arms with stack=rustls".to_owned())
            }
        },
        _ => Err(format!(
            "certificates come {} already",
            setting.arm.delivery.name()
        )),
    },
    words: |_| "brotli".to_owned(),
};
