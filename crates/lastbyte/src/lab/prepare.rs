//! Arms made ready: their chains and configured stacks.

use lastbyte_pki::{Chain, Store};
use lastbyte_tls::{Stack, TlsConfig, stack};

use super::LabError;
use crate::study::{Arm, ArmChain};

/// An arm with its chain and its stack.
pub struct PreparedArm {
    /// The arm.
    pub arm: Arm,
    /// Its chain.
    pub chain: Chain,
    /// Its stack, configured for both sides.
    pub stack: Box<dyn Stack>,
}

impl PreparedArm {
    /// Makes or loads the chain and configures the stack.
    pub fn new(arm: Arm, store: &Store) -> Result<Self, LabError> {
        let load = |chain: &ArmChain| match chain {
            ArmChain::Made(spec) => store.chain(spec),
            ArmChain::Pem(files) => lastbyte_pki::load_pem(files),
        };
        let chain = load(&arm.chain)?;
        let client_chain = arm.client_chain.as_ref().map(load).transpose()?;
        let stack = stack(&TlsConfig {
            client: arm.client_stack,
            server: arm.server_stack,
            group: arm.group,
            key_shares: arm.key_shares.clone(),
            chain: &chain,
            client_chain: client_chain.as_ref(),
            resumption: arm.resumption,
            tickets: arm.tickets,
            max_certificate_list: arm.max_cert_list,
        })?;
        Ok(Self { arm, chain, stack })
    }
}
